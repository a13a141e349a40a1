"""A device opened with everything that it has, so that any pipeline which it can take is taken."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from shaderkiln.capabilities import Capabilities
from shaderkiln.drivers.bindings import ffi, new
from shaderkiln.drivers.icd import Commands
from shaderkiln.drivers.physical_device import (
    API_VERSION_1_2,
    API_VERSION_1_3,
    API_VERSION_1_4,
    FEATURE_MEMBERS,
    PhysicalDevice,
    check,
)
from shaderkiln.errors import DriverError
from shaderkiln.vulkan_registry import constants as vk
from shaderkiln.vulkan_registry._device import FEATURES

FOLLOWING_THE_APPLICATION = frozenset(
    {
        "robustBufferAccess",
        "robustBufferAccess2",
        "robustImageAccess",
        "robustImageAccess2",
        "nullDescriptor",
        "vertexAttributeRobustness",
        "cooperativeMatrixRobustBufferAccess",
        # No pipeline needs these, but RADV makes other code, under another global key, once they are on. Few applications do so.
        "primitivesGeneratedQuery",
        "primitivesGeneratedQueryWithRasterizerDiscard",
        "primitivesGeneratedQueryWithNonZeroStreams",
        "meshShaderQueries",
        "shaderObject",
        "image2DViewOf3D",
        "sampler2DViewOf3D",
    }
)
"""Features that change the code which a driver makes: on only where the application had them on."""

_LEFT_OFF = frozenset(
    {
        # Needs queues and memory of its own kind; a pipeline's code does not depend on it.
        "protectedMemory",
        # Wants the counters of the GPU for itself, which a device without hardware cannot give.
        "performanceCounterQueryPools",
        "performanceCounterMultipleQueryPools",
    }
)

_EXCLUDED_BY_SHADING_RATE = frozenset({"shadingRateImage", "shadingRateCoarseSampleOrder", "fragmentDensityMap"})
_SHADING_RATE = ("pipelineFragmentShadingRate", "primitiveFragmentShadingRate", "attachmentFragmentShadingRate")
_CORE_STRUCTURES = tuple(f"VkPhysicalDeviceVulkan1{minor}Features" for minor in (1, 2, 3, 4))


class _NoSuchFeatureError(DriverError):
    """The device lacks a feature that is wanted, with whatever extensions it is created."""


class LogicalDevice:
    """A VkDevice, its commands, and which of the ways to create and keep pipelines it has.

    ``features`` are the ``VkStructure.member`` names of the ``FOLLOWING_THE_APPLICATION`` features to turn on. Raises
    ``DriverError``: VK_ERROR_FEATURE_NOT_PRESENT where the device lacks one of them, or what the driver answers to the smallest
    device.
    """

    def __init__(self, physical: PhysicalDevice, features: Iterable[str] = ()) -> None:
        self.physical = physical
        wanted = {name.rpartition(".")[2] for name in features} & FOLLOWING_THE_APPLICATION
        if "robustBufferAccess2" in wanted:
            wanted.add("robustBufferAccess")
        usable = physical.usable_extensions()
        attempts = [usable]
        for vendors in (("VK_KHR_", "VK_EXT_"), ("VK_KHR_",), ()):
            fewer = frozenset(name for name in usable if name.startswith(vendors)) if vendors else frozenset()
            if fewer != attempts[-1]:
                attempts.append(fewer)
        for number, extensions in enumerate(attempts):
            try:
                self._create(extensions, wanted)
                self.extensions = extensions
                self.complete = number == 0
                break
            except _NoSuchFeatureError:
                raise
            except DriverError:
                if number == len(attempts) - 1:
                    raise

    def _create(self, extensions: frozenset[str], wanted: set[str]) -> None:
        physical = self.physical

        def enabled(version: int, extension_names: Iterable[str]) -> bool:
            return bool(version and version <= physical.api_version) or not extensions.isdisjoint(extension_names)

        core_members = {
            member
            for name in _CORE_STRUCTURES
            if physical.has(FEATURES[name][1], ())
            for member in FEATURES[name][3]
        }  # fmt: skip

        def use(name: str) -> bool:
            _, version, extension_names, members = FEATURES[name]
            if not enabled(version, extension_names):
                return False
            # A structure that went into VkPhysicalDeviceVulkan1xFeatures must not stand beside it.
            promoted = bool(version) and physical.api_version >= API_VERSION_1_2 and name not in _CORE_STRUCTURES
            return not (promoted and core_members.issuperset(members))

        features, chain = physical.features(use)
        structures = [(features.features, FEATURE_MEMBERS)]
        structures += [(memory, FEATURES[name][3]) for name, memory in chain.structures.items()]
        present = [(memory, member) for memory, members in structures for member in members if getattr(memory, member)]
        found = {member for _, member in present}
        if missing := sorted(wanted - found):
            raise _NoSuchFeatureError(f"no {', '.join(missing)} on this device", code="VK_ERROR_FEATURE_NOT_PRESENT")
        off = _LEFT_OFF | (FOLLOWING_THE_APPLICATION - wanted)
        if not found.isdisjoint(_SHADING_RATE):
            off |= _EXCLUDED_BY_SHADING_RATE
        for memory, member in present:
            if member in off:
                setattr(memory, member, 0)
        self.features = frozenset(found - off)

        binaries = "pipelineBinaries" in self.features
        control = None
        if binaries:
            # Compiled means compiled: nothing may come from a cache inside the driver, and none may grow there.
            structure_type = vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_BINARY_PROPERTIES_KHR
            properties = new("VkPhysicalDevicePipelineBinaryPropertiesKHR", structure_type)
            outer = new("VkPhysicalDeviceProperties2", vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, pNext=properties)
            physical.commands.vkGetPhysicalDeviceProperties2(physical.handle, outer)
            if properties.pipelineBinaryInternalCacheControl:
                control = new(
                    "VkDevicePipelineBinaryInternalCacheControlKHR",
                    vk.VK_STRUCTURE_TYPE_DEVICE_PIPELINE_BINARY_INTERNAL_CACHE_CONTROL_KHR,
                    pNext=features,
                    disableInternalCache=1,
                )
        names = [ffi.new("char[]", name.encode()) for name in sorted(extensions)]
        name_array = ffi.new("char *[]", names)
        priority = ffi.new("float[]", [1.0])
        structure_type = vk.VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO
        queue = new("VkDeviceQueueCreateInfo", structure_type, queueCount=1, pQueuePriorities=priority)
        create = new(
            "VkDeviceCreateInfo",
            vk.VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
            pNext=features if control is None else control,
            queueCreateInfoCount=1,
            pQueueCreateInfos=queue,
            enabledExtensionCount=len(names),
            ppEnabledExtensionNames=name_array,
        )
        created = ffi.new("VkDevice *")
        check(physical.commands.vkCreateDevice(physical.handle, create, ffi.NULL, created), "vkCreateDevice")
        handle = self.handle = created[0]
        get = physical.commands.vkGetDeviceProcAddr
        self.commands = Commands(lambda name: get(handle, name))

        version = physical.api_version
        self.binaries = binaries
        self.flags_2 = (version >= API_VERSION_1_4 and "maintenance5" in self.features) or "VK_KHR_maintenance5" in extensions
        self.feedback = version >= API_VERSION_1_3 or "VK_EXT_pipeline_creation_feedback" in extensions
        self.creation_control = "pipelineCreationCacheControl" in self.features
        self.executable_info = "pipelineExecutableInfo" in self.features
        # Keep what the driver may read until it is used no more.
        self._keep = (features, chain, control, names, name_array)

    def restrict(self, capabilities: Capabilities, object_code_form: str) -> Capabilities:
        """What can be used: all that the device reports, or less where the driver refused to open a device with everything."""
        if not self.complete:
            capabilities = replace(
                capabilities,
                extensions=self.extensions,
                features=frozenset(name for name in capabilities.features if name.rpartition(".")[2] in self.features),
            )
        return replace(capabilities, object_code_form=object_code_form)

    def global_key(self) -> bytes:
        """What the driver adds to every pipeline's key; empty without pipeline binaries."""
        if not self.binaries:
            return b""
        key = new("VkPipelineBinaryKeyKHR", vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_KEY_KHR)
        check(self.commands.vkGetPipelineKeyKHR(self.handle, ffi.NULL, key), "vkGetPipelineKeyKHR")
        return bytes(ffi.buffer(key.key, key.keySize))

    def destroy(self) -> None:
        """Also waits for what the driver still writes (its disk cache)."""
        self.commands.vkDestroyDevice(self.handle, ffi.NULL)
