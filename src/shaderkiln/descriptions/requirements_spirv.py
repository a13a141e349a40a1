"""What shader code needs: capabilities, extensions, instructions, execution modes, and limits on workgroups."""

from __future__ import annotations

from collections.abc import Mapping

from shaderkiln.descriptions.requirements_device import Findings, alternative_text, version_text
from shaderkiln.formats.spirv import (
    IMAGE,
    STORAGE_BUFFER,
    UNIFORM,
    WORKGROUP,
    Atomic,
    EntryPoint,
    ModuleInfo,
)
from shaderkiln.vulkan_registry._requirements import CAPABILITIES, CAPABILITY_NAMES, SPIRV_EXTENSIONS

EXECUTION_MODELS: dict[int, tuple[int, ...]] = {
    0x01: (0,),
    0x02: (1,),
    0x04: (2,),
    0x08: (3,),
    0x10: (4,),
    0x20: (5,),
    0x40: (5364, 5267),
    0x80: (5365, 5268),
    0x100: (5313,),
    0x200: (5315,),
    0x400: (5316,),
    0x800: (5317,),
    0x1000: (5314,),
    0x2000: (5318,),
}
"""VkShaderStageFlagBits → execution models (Vulkan, "Shader Stages")."""

STAGE_NAMES = {
    0x01: "vertex",
    0x02: "tessellation control",
    0x04: "tessellation evaluation",
    0x08: "geometry",
    0x10: "fragment",
    0x20: "compute",
    0x40: "task",
    0x80: "mesh",
    0x100: "raygen",
    0x200: "any hit",
    0x400: "closest hit",
    0x800: "miss",
    0x1000: "intersection",
    0x2000: "callable",
}

# Greatest SPIR-V version by API version (Vulkan, "Versions and Formats" of the SPIR-V environment).
_SPIRV_VERSIONS = {0: (1, 0), 1: (1, 3), 2: (1, 5), 3: (1, 6), 4: (1, 6)}

_FLOAT = "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT."
_FLOAT2 = "VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT."
_FLOAT16_VECTOR = "VkPhysicalDeviceShaderAtomicFloat16VectorFeaturesNV.shaderFloat16VectorAtomics"
_INT64 = "VkPhysicalDeviceVulkan12Features."
_PLACES = {STORAGE_BUFFER: "Buffer", UNIFORM: "Buffer", 5349: "Buffer", WORKGROUP: "Shared", IMAGE: "Image"}
_FLOAT_SUFFIX = {"exchange": "Atomics", "add": "AtomicAdd", "minmax": "AtomicMinMax"}


def atomic_feature(atomic: Atomic) -> str | None:
    """The feature of one kind of atomic (Vulkan, "Runtime SPIR-V Validation"); None: not known."""
    place = _PLACES.get(atomic.storage_class)
    if place is None:
        return None
    if atomic.components > 1:
        return _FLOAT16_VECTOR if atomic.is_float and atomic.width == 16 else None
    if not atomic.is_float:
        if atomic.width != 64:
            return None
        if place == "Image":
            return "VkPhysicalDeviceShaderImageAtomicInt64FeaturesEXT.shaderImageInt64Atomics"
        return f"{_INT64}shader{place}Int64Atomics"
    suffix = _FLOAT_SUFFIX.get(atomic.operation)
    if suffix is None:
        return None
    if place == "Image" and atomic.width != 32:
        return None
    structure = _FLOAT2 if atomic.width == 16 or atomic.operation == "minmax" else _FLOAT
    return f"{structure}shader{place}Float{atomic.width}{suffix}"


# Execution mode → member of VkPhysicalDeviceVulkan12Properties that its operand, the width, completes
# (Vulkan, "Runtime SPIR-V Validation").
_FLOAT_MODES = {
    4459: "shaderDenormPreserveFloat",
    4460: "shaderDenormFlushToZeroFloat",
    4461: "shaderSignedZeroInfNanPreserveFloat",
    4462: "shaderRoundingModeRTEFloat",
    4463: "shaderRoundingModeRTZFloat",
}


def check_module(found: Findings, module: ModuleInfo, where: str) -> None:
    """Version, capabilities, extensions and instructions: what holds for every entry point."""
    device = found.device
    if module.version > (greatest := _spirv_version(found)):
        needed, have = (".".join(map(str, v)) for v in (module.version, greatest))
        text = f"SPIR-V {needed} is newer than {have}, the greatest of Vulkan {version_text(device.version)} on this device"
        found.add("spirv-version", "SPIR-V", needed, have, where, text)
    for number in sorted(module.capabilities):
        row = CAPABILITIES.get(number)
        if row is None:
            name = CAPABILITY_NAMES.get(number, str(number))
            found.unknown("capability", name, where, f"capability {name} is none that Vulkan is known to have")
        elif not any(map(device.alternative, row[1])):
            _alternatives(found, "capability", row[0], row[1], where)
    for name in module.extensions:
        alternatives = SPIRV_EXTENSIONS.get(name)
        if alternatives is None:
            found.unknown("spirv-extension", name, where, f"extension {name} is none that Vulkan is known to have")
        elif not any(map(device.alternative, alternatives)):
            _alternatives(found, "spirv-extension", name, alternatives, where)
    for opcode in module.unknown_instructions:
        found.unknown("instruction", f"opcode {opcode}", where, f"instruction with opcode {opcode} is not known here")


def _spirv_version(found: Findings) -> tuple[int, int]:
    minor = found.device.version >> 12 & 0x3FF
    greatest = _SPIRV_VERSIONS.get(minor, (1, 6))
    return max(greatest, (1, 4)) if "VK_KHR_spirv_1_4" in found.device.extensions else greatest


def _alternatives(found: Findings, kind: str, name: str, alternatives: tuple[tuple[object, ...], ...], where: str) -> None:
    needed = tuple(dict.fromkeys(map(alternative_text, alternatives))) or ("nothing known",)
    found.add(kind, name, needed, "none", where, name)


def check_entry_point(
    found: Findings, module: ModuleInfo, entry: EntryPoint, stage: int, specialization: Mapping[int, bytes], where: str
) -> None:
    """What one entry point uses."""
    properties = found.device.properties
    for atomic in entry.atomics:
        if feature := atomic_feature(atomic):
            what = f"an atomic ({atomic.operation}) on {atomic.width}-bit {'float' if atomic.is_float else 'integer'}"
            found.feature(feature, where, what, kind="instruction")
    for mode, member in _FLOAT_MODES.items():
        for operands in entry.execution_modes.get(mode, ()):
            name = f"VkPhysicalDeviceVulkan12Properties.{member}{operands[0] if operands else 32}"
            if properties.get(name) == 0:
                found.add("limit", name, (name,), 0, where, "an execution mode")
    if entry.subgroup_operations:
        _subgroups(found, entry, stage, where)
    _stores(found, entry, stage, where)
    modes = entry.execution_modes
    if stage == 0x08:
        for mode, limit in ((26, "maxGeometryOutputVertices"), (0, "maxGeometryShaderInvocations")):
            for operands in modes.get(mode, ()):
                found.at_most(operands[0] if operands else 0, limit, where, f"execution mode {mode}")
    elif stage == 0x02:
        for operands in modes.get(26, ()):
            found.at_most(operands[0] if operands else 0, "maxTessellationPatchSize", where, "output vertices")
    elif stage in (0x20, 0x40, 0x80):
        _workgroup(found, module, entry, stage, specialization, where)
    if entry.push_constant_bytes:
        found.at_most(entry.push_constant_bytes, "maxPushConstantsSize", where, "the push constant block's size")


def _subgroups(found: Findings, entry: EntryPoint, stage: int, where: str) -> None:
    properties = found.device.properties
    name = "VkPhysicalDeviceVulkan11Properties.subgroupSupportedStages"
    stages = properties.get(name)
    if stages is not None and not int(stages) & stage:
        text = f"subgroup operations in {STAGE_NAMES.get(stage, stage)} shaders, which {name} = {stages} does not list"
        found.add("limit", name, stage, stages, where, text)
    # VkPhysicalDeviceSubgroupProperties: quad operations are sure in fragment and compute shaders only
    name = "VkPhysicalDeviceVulkan11Properties.subgroupQuadOperationsInAllStages"
    if entry.quad_operations and stage not in (0x10, 0x20) and properties.get(name) == 0:
        found.add("limit", name, 1, 0, where, f"quad operations in {STAGE_NAMES.get(stage, stage)} shaders need {name}")
    # VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures
    if any(width in (8, 16) or (width == 64 and not is_float) for is_float, width in entry.subgroup_types):
        feature = "VkPhysicalDeviceVulkan12Features.shaderSubgroupExtendedTypes"
        found.feature(feature, where, "a subgroup operation on 8-, 16- or 64-bit values")


def _stores(found: Findings, entry: EntryPoint, stage: int, where: str) -> None:
    # VkPhysicalDeviceFeatures: without these features every such variable must be NonWritable
    if stage == 0x10:
        name = "VkPhysicalDeviceFeatures.fragmentStoresAndAtomics"
    elif stage in (0x01, 0x02, 0x04, 0x08):
        name = "VkPhysicalDeviceFeatures.vertexPipelineStoresAndAtomics"
    else:
        return
    if name not in found.device.features and any(b.written for b in entry.bindings):
        found.feature(name, where, "a storage buffer or image that is not declared NonWritable")


# Stage → properties that limit workgroup size in x, y, z, invocations and shared memory.
_MESH = "VkPhysicalDeviceMeshShaderPropertiesEXT."
_WORKGROUP_LIMITS = {
    0x20: (
        "VkPhysicalDeviceLimits.maxComputeWorkGroupSize",
        "VkPhysicalDeviceLimits.maxComputeWorkGroupInvocations",
        "VkPhysicalDeviceLimits.maxComputeSharedMemorySize",
    ),
    0x40: (_MESH + "maxTaskWorkGroupSize", _MESH + "maxTaskWorkGroupInvocations", _MESH + "maxTaskSharedMemorySize"),
    0x80: (_MESH + "maxMeshWorkGroupSize", _MESH + "maxMeshWorkGroupInvocations", _MESH + "maxMeshSharedMemorySize"),
}


def _workgroup(
    found: Findings, module: ModuleInfo, entry: EntryPoint, stage: int, specialization: Mapping[int, bytes], where: str
) -> None:
    # VkPhysicalDeviceLimits and VkPhysicalDeviceMeshShaderPropertiesEXT
    size_limit, invocations_limit, memory_limit = _WORKGROUP_LIMITS[stage]
    if size := module.workgroup_size(entry, specialization):
        for axis, value in enumerate(size):
            found.at_most(value, f"{size_limit}[{axis}]", where, f"workgroup size {'xyz'[axis]}")
        found.at_most(size[0] * size[1] * size[2], invocations_limit, where, "workgroup invocations")
    if entry.workgroup_variables and (used := module.workgroup_bytes(entry, specialization)) is not None:
        found.at_most(used, memory_limit, where, "workgroup memory in bytes")
    if stage == 0x80:
        for mode, limit in ((26, "maxMeshOutputVertices"), (5270, "maxMeshOutputPrimitives")):
            for operands in entry.execution_modes.get(mode, ()):
                found.at_most(operands[0] if operands else 0, _MESH + limit, where, f"execution mode {mode}")
