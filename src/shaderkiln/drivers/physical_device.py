"""An instance of the loaded driver, one of its devices, and everything that the device says about itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from shaderkiln.capabilities import Capabilities
from shaderkiln.drivers.bindings import ffi, new, text
from shaderkiln.drivers.icd import Commands, Driver
from shaderkiln.errors import DriverError, NotFoundError
from shaderkiln.vulkan_registry import constants as vk
from shaderkiln.vulkan_registry._device import EXTENSIONS, FEATURES, PROPERTIES

T = TypeVar("T")

API_VERSION_1_1 = 1 << 22 | 1 << 12
API_VERSION_1_2 = 1 << 22 | 2 << 12
API_VERSION_1_3 = 1 << 22 | 3 << 12
API_VERSION_1_4 = 1 << 22 | 4 << 12

BINARY_FORM = "pipeline-binary"
CACHE_FORM = "pipeline-cache"
NO_FORM = "none"


def result_name(result: int) -> str:
    """The VkResult's name, or ``VkResult(n)`` for a value that the registry does not have."""
    return vk.NAMES["VkResult"].get(result, f"VkResult({result})")


def check(result: int, command: str) -> None:
    """Raise ``DriverError`` for anything but VK_SUCCESS."""
    if result != vk.VK_SUCCESS:
        name = result_name(result)
        raise DriverError(f"{command} gave {name}", code=name)


def enumerate_all(
    commands: Commands, command: str, arguments: tuple[Any, ...], c_type: str, read: Callable[[Any], T], structure_type: int = 0
) -> list[T]:
    """The two-call pattern: ``read`` of every item of ``c_type``, which is gone afterwards; asked again if more have appeared."""
    ask = getattr(commands, command)
    count = ffi.new("uint32_t *")
    while True:
        check(ask(*arguments, count, ffi.NULL), command)
        length = count[0]
        items = ffi.new(f"{c_type}[]", length)
        if structure_type:
            for index in range(length):
                items[index].sType = structure_type
        result = ask(*arguments, count, items)
        if result != vk.VK_INCOMPLETE:
            check(result, command)
            return [read(items[index]) for index in range(min(count[0], length))]


class Chain:
    """Structures linked by pNext, allocated here and written by the driver."""

    def __init__(self) -> None:
        self.structures: dict[str, Any] = {}
        self.first: Any = ffi.NULL

    def add(self, c_name: str, structure_type: int) -> None:
        self.first = self.structures[c_name] = new(c_name, structure_type, pNext=self.first)


class PhysicalDevice:
    """One device of the driver, before it is opened.

    Raises ``NotFoundError`` where the driver has no device with that index, ``DriverError`` where it fails.
    """

    def __init__(self, driver: Driver, index: int = 0) -> None:
        none = driver.commands()
        version = ffi.new("uint32_t *", 1 << 22)
        try:
            check(none.vkEnumerateInstanceVersion(version), "vkEnumerateInstanceVersion")
        except DriverError as error:
            if error.code != "VK_ERROR_EXTENSION_NOT_PRESENT":
                raise
        if version[0] < API_VERSION_1_1:
            raise DriverError("the driver is older than Vulkan 1.1", code="VK_ERROR_INCOMPATIBLE_DRIVER")
        instance_version = min(version[0], API_VERSION_1_4)
        name = ffi.new("char[]", b"shaderkiln")
        application = ffi.new("VkApplicationInfo *", {"pApplicationName": name, "apiVersion": instance_version})
        create = new("VkInstanceCreateInfo", vk.VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, pApplicationInfo=application)
        created = ffi.new("VkInstance *")
        check(none.vkCreateInstance(create, ffi.NULL, created), "vkCreateInstance")
        self.instance = created[0]
        self.commands: Commands = driver.commands(self.instance)
        try:
            self._choose(index, instance_version)
        except BaseException:
            self.destroy()
            raise

    def _choose(self, index: int, instance_version: int) -> None:
        devices = enumerate_all(
            self.commands, "vkEnumeratePhysicalDevices", (self.instance,), "VkPhysicalDevice", lambda item: item
        )
        if index >= len(devices):
            raise NotFoundError(f"the driver has {len(devices)} devices, there is none with index {index}")
        self.handle = devices[index]
        base = ffi.new("VkPhysicalDeviceProperties *")
        self.commands.vkGetPhysicalDeviceProperties(self.handle, base)
        if base.apiVersion < API_VERSION_1_1:
            raise DriverError("the device is older than Vulkan 1.1", code="VK_ERROR_INCOMPATIBLE_DRIVER")
        self.device_api_version = int(base.apiVersion)
        self.api_version = min(self.device_api_version, instance_version)
        command, arguments = "vkEnumerateDeviceExtensionProperties", (self.handle, ffi.NULL)
        found = enumerate_all(self.commands, command, arguments, "VkExtensionProperties", lambda item: text(item.extensionName))
        self.extensions = frozenset(found)

    def destroy(self) -> None:
        self.commands.vkDestroyInstance(self.instance, ffi.NULL)

    def has(self, version: int, extensions: Iterable[str]) -> bool:
        """Whether the device has something that came with this core version (0: none) or any of these extensions."""
        return bool(version and version <= self.api_version) or not self.extensions.isdisjoint(extensions)

    def features(self, use: Callable[[str], bool]) -> tuple[Any, Chain]:
        """VkPhysicalDeviceFeatures2 and its chain, filled in by the driver; ``use`` chooses the structures by name."""
        chain = Chain()
        for name, (structure_type, version, extensions, _) in FEATURES.items():
            if self.has(version, extensions) and use(name):
                chain.add(name, structure_type)
        features = new("VkPhysicalDeviceFeatures2", vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, pNext=chain.first)
        self.commands.vkGetPhysicalDeviceFeatures2(self.handle, features)
        return features, chain

    def capabilities(self) -> Capabilities:
        """Everything the device reports. The object code form is what it offers; only a compile shows whether it is kept."""
        chain = Chain()
        for name, (structure_type, version, extensions, _) in PROPERTIES.items():
            if self.has(version, extensions):
                chain.add(name, structure_type)
        outer = new("VkPhysicalDeviceProperties2", vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, pNext=chain.first)
        self.commands.vkGetPhysicalDeviceProperties2(self.handle, outer)
        base = outer.properties
        properties: dict[str, int | float] = {}
        for c_name, memory in (
            ("VkPhysicalDeviceLimits", base.limits),
            ("VkPhysicalDeviceSparseProperties", base.sparseProperties),
        ):
            for member, field in ffi.typeof(c_name).fields:
                if field.type.kind == "primitive":
                    properties[f"{c_name}.{member}"] = getattr(memory, member)
                elif field.type.kind == "array":
                    # Three sizes of a compute grid, two of a range: one entry each.
                    for index, value in enumerate(getattr(memory, member)):
                        properties[f"{c_name}.{member}[{index}]"] = value
        for c_name, memory in chain.structures.items():
            for member in PROPERTIES[c_name][3]:
                properties[f"{c_name}.{member}"] = getattr(memory, member)
        features_2, feature_chain = self.features(lambda name: True)
        on = [("VkPhysicalDeviceFeatures", features_2.features, FEATURE_MEMBERS)]
        on += [(c_name, memory, FEATURES[c_name][3]) for c_name, memory in feature_chain.structures.items()]
        features = {f"{c_name}.{member}" for c_name, memory, members in on for member in members if getattr(memory, member)}
        driver = chain.structures.get("VkPhysicalDeviceVulkan12Properties") or chain.structures.get(
            "VkPhysicalDeviceDriverProperties"
        )
        binaries = "VkPhysicalDevicePipelineBinaryFeaturesKHR.pipelineBinaries" in features
        return Capabilities(
            api_version=self.api_version,
            vendor_id=base.vendorID,
            device_id=base.deviceID,
            device_name=text(base.deviceName),
            device_type=base.deviceType,
            driver_version=base.driverVersion,
            driver_id=driver.driverID if driver is not None else 0,
            driver_name=text(driver.driverName) if driver is not None else "",
            driver_info=text(driver.driverInfo) if driver is not None else "",
            cache_uuid=bytes(base.pipelineCacheUUID),
            extensions=self.extensions,
            features=frozenset(features),
            properties=properties,
            object_code_form=BINARY_FORM if binaries else CACHE_FORM,
        )

    def usable_extensions(self) -> frozenset[str]:
        """The extensions that can be enabled together on a device of an instance that has no extensions of its own."""
        usable = {name for name in self.extensions if name in EXTENSIONS and name not in NEVER_ENABLED}
        while True:
            kept = {name for name in usable if satisfied(EXTENSIONS[name], usable, self.api_version)}
            if kept == usable:
                return frozenset(kept)
            usable = kept


def satisfied(depends: str, enabled: Collection[str], api_version: int) -> bool:
    """Whether an extension's ``depends`` holds: names joined by ``+`` (and) and ``,`` (or) from left to right, in parentheses.

    ``enabled`` are the names of extensions. A feature (``Structure::member``) holds: it is enabled wherever the device has it.
    """

    def holds(name: str) -> bool:
        if match := re.fullmatch(r"VK_VERSION_(\d+)_(\d+)", name):
            return api_version >= int(match[1]) << 22 | int(match[2]) << 12
        return "::" in name or name in enabled

    def value(flat: str) -> bool:
        result = True
        for operator, name in re.findall(r"([+,]?)([\w:]+)", flat):
            result = (result or holds(name)) if operator == "," else (result and holds(name))
        return result

    inner = 1
    while inner:  # a part in parentheses becomes a name that holds, or one that does not
        depends, inner = re.subn(r"\(([^()]*)\)", lambda part: "::" if value(part[1]) else "_", depends)
    return value(depends)


FEATURE_MEMBERS: tuple[str, ...] = tuple(member for member, _ in ffi.typeof("VkPhysicalDeviceFeatures").fields)

NEVER_ENABLED = frozenset(
    {
        "VK_EXT_buffer_device_address",  # excludes VK_KHR_buffer_device_address and the core feature
        "VK_AMD_negative_viewport_height",  # excludes VK_KHR_maintenance1 and Vulkan 1.1
        # These prepare the device for examining crashes and may put markers into the code; no pipeline depends on them.
        "VK_NV_device_diagnostics_config",
        "VK_NV_device_diagnostic_checkpoints",
    }
)
