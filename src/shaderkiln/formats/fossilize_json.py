"""The bodies of Fossilize entries as typed descriptions, and back, byte for byte as Fossilize's recorder writes them.

A body is ``{"version":6,"<group>":{"<16 hex digits>":{...}}}``; a shader module's is followed by a zero byte and its words.
Members are named as in C, without Hungarian prefix; exceptions and the order of writing are in ``_LAYOUT``. Source: the bodies
and the serializer of the Fossilize project.

Nothing that a body says is lost:

- A structure of a pNext chain that is not known, not allowed at that place by the registry, or that says something its type
  cannot hold (a count without its array), becomes an ``UnknownStructure`` with its text.
- Unknown members of a known structure are gathered in one ``UnknownStructure`` of type ``UNKNOWN_MEMBERS`` at the end of the
  chain of the nearest structure that has one; members of structures in it stand under the name (and index) that leads to them.

What is not kept: white space, the order of members, an empty array where none is the same, and of
members that stand twice the last; members of the document beside the group. Single-precision numbers are rounded as C would.
"""

from __future__ import annotations

import binascii
import json
import re
import struct
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec import Struct

from shaderkiln.errors import DamagedInputError, InvalidArgumentError
from shaderkiln.formats.fossilize import (
    VERSION,
    Tag,
    join_shader_module,
    spirv_from_varint,
    spirv_to_varint,
    split_shader_module,
)
from shaderkiln.vulkan_registry import structures
from shaderkiln.vulkan_registry._device import FEATURES
from shaderkiln.vulkan_registry._members import MEMBERS
from shaderkiln.vulkan_registry.handles import Handle, UnknownStructure

MAX_BODY_SIZE: Final = 1 << 23
"""Largest JSON text, in bytes, that is read (8 MiB); parsing takes up to about 40 times as much memory."""
MAX_NESTING: Final = 128
"""Deepest nesting of arrays and objects in a body; real ones have about ten levels."""
UNKNOWN_MEMBERS: Final = -1
"""``UnknownStructure.s_type`` of the unknown members of a known structure."""
MAX_BLANK_ATTACHMENTS: Final = 1 << 10
"""More color attachments than any device has."""
READABLE_BODY_VERSIONS: Final = (5, 6)

_U32: Final = 0xFFFFFFFF
_U64: Final = 0xFFFFFFFFFFFFFFFF


class FeatureStructure(Struct, frozen=True):
    """A structure of device features in an application's information: its type and its members in Fossilize's order."""

    s_type: int
    values: tuple[int, ...]


class ApplicationInfo(Struct, frozen=True):
    """``VkApplicationInfo`` and the features, as recorded. ``None`` is a null pointer or a structure that was not given."""

    application_name: str | None = None
    engine_name: str | None = None
    application_version: int = 0
    engine_version: int = 0
    api_version: int | None = None
    """None: no VkApplicationInfo was given."""
    robust_buffer_access: int | None = None
    """None: no VkPhysicalDeviceFeatures2 was given."""
    features: tuple[FeatureStructure | UnknownStructure, ...] = ()
    unknown_members: str = ""
    """JSON of unknown members, by group; empty if there are none."""


class ApplicationLink(Struct, frozen=True):
    """Says that an application, by the hash of its information, used an object."""

    application: int
    tag: int
    hash: int


class OpaqueBody(Struct, frozen=True):
    """A body that has no typed form here: bucket information."""

    payload: bytes


class ModuleHead(Struct, frozen=True):
    """What stands in front of a shader module's code; ``coded`` are its LEB128 words, or None where ``code`` is the SPIR-V."""

    handle: int
    flags: int
    code_size: int
    coded: bytes | None
    code: bytes = b""
    unknown_members: str = ""
    """JSON of unknown members; empty if there are none."""

    def structure(self) -> structures.ShaderModuleCreateInfo:
        """The module; DamagedInputError if its code is not what the head says."""
        unknown = (UnknownStructure(UNKNOWN_MEMBERS, self.unknown_members),) if self.unknown_members else ()
        return structures.ShaderModuleCreateInfo(self.flags, self.spirv(), unknown)

    def spirv(self) -> bytes:
        """Little-endian SPIR-V; DamagedInputError if it is not what the head says."""
        return self.code if self.coded is None else spirv_from_varint(self.coded, self.code_size)


GROUPS: Final[dict[Tag, tuple[tuple[str, type[Struct]], ...]]] = {
    Tag.SAMPLER: (("samplers", structures.SamplerCreateInfo),),
    Tag.DESCRIPTOR_SET_LAYOUT: (("setLayouts", structures.DescriptorSetLayoutCreateInfo),),
    Tag.PIPELINE_LAYOUT: (("pipelineLayouts", structures.PipelineLayoutCreateInfo),),
    Tag.SHADER_MODULE: (("shaderModules", structures.ShaderModuleCreateInfo),),
    Tag.RENDER_PASS: (("renderPasses", structures.RenderPassCreateInfo), ("renderPasses2", structures.RenderPassCreateInfo2)),
    Tag.GRAPHICS_PIPELINE: (("graphicsPipelines", structures.GraphicsPipelineCreateInfo),),
    Tag.COMPUTE_PIPELINE: (("computePipelines", structures.ComputePipelineCreateInfo),),
    Tag.RAYTRACING_PIPELINE: (("raytracingPipelines", structures.RayTracingPipelineCreateInfoKHR),),
}
"""The groups that an entry of a tag can hold, and the structure of each."""

FEATURE_MEMBERS: Final[dict[int, tuple[str, tuple[str, ...]]]] = {
    FEATURES[name][0]: (name, FEATURES[name][3])
    for name in (
        "VkPhysicalDeviceRobustness2FeaturesEXT",
        "VkPhysicalDeviceImageRobustnessFeatures",
        "VkPhysicalDeviceFragmentShadingRateEnumsFeaturesNV",
        "VkPhysicalDeviceFragmentShadingRateFeaturesKHR",
        "VkPhysicalDeviceMeshShaderFeaturesEXT",
        "VkPhysicalDeviceMeshShaderFeaturesNV",
        "VkPhysicalDeviceDescriptorBufferFeaturesEXT",
        "VkPhysicalDeviceShaderObjectFeaturesEXT",
        "VkPhysicalDevicePrimitivesGeneratedQueryFeaturesEXT",
        "VkPhysicalDeviceImage2DViewOf3DFeaturesEXT",
        "VkPhysicalDevicePipelineRobustnessFeatures",
        "VkPhysicalDeviceMaintenance8FeaturesKHR",
    )
}
"""Feature structures that Fossilize records: type, registry name, members in the order of writing."""

# Members in the order of writing. `key=field` where the key is not the C member without prefix; `key#field` is the size of that
# array; `key?` is left out where it has its default. Optional arrays and pointers are left out where they are None. Structures
# that stand in chains start with sType unless it stands elsewhere; pNext is last. A structure that is not here (Fossilize does
# not record it) has its C members in their order.
_LAYOUT: Final[dict[str, str]] = {
    "SamplerCreateInfo": "flags minFilter magFilter maxAnisotropy compareOp anisotropyEnable mipmapMode addressModeU"
    " addressModeV addressModeW borderColor unnormalizedCoordinates compareEnable mipLodBias minLod maxLod",
    "SamplerBorderColorComponentMappingCreateInfoEXT": "srgb components",
    "SamplerYcbcrConversionCreateInfo": "format ycbcrModel ycbcrRange components xChromaOffset yChromaOffset chromaFilter"
    " forceExplicitReconstruction",
    "DescriptorSetLayoutBinding": "descriptorType descriptorCount stageFlags binding immutableSamplers",
    "DescriptorSetLayoutBindingFlagsCreateInfo": "bindingFlags?",
    "PipelineLayoutCreateInfo": "flags pushConstantRanges setLayouts",
    "PushConstantRange": "stageFlags size offset",
    "RenderPassCreateInfo": "flags dependencies? attachments? subpasses",
    "RenderPassCreateInfo2": "flags correlatedViewMasks? dependencies? attachments? subpasses",
    "SubpassDependency": "dependencyFlags dstAccessMask srcAccessMask dstStageMask srcStageMask dstSubpass srcSubpass",
    "SubpassDependency2": "dependencyFlags dstAccessMask srcAccessMask dstStageMask srcStageMask dstSubpass srcSubpass"
    " viewOffset",
    "AttachmentDescription": "flags format finalLayout initialLayout loadOp storeOp samples stencilLoadOp stencilStoreOp",
    "AttachmentDescription2": "flags format finalLayout initialLayout loadOp storeOp samples stencilLoadOp stencilStoreOp",
    "SubpassDescription": "flags pipelineBindPoint preserveAttachments? inputAttachments? colorAttachments? resolveAttachments"
    " depthStencilAttachment",
    "SubpassDescription2": "flags pipelineBindPoint viewMask preserveAttachments? inputAttachments? colorAttachments?"
    " resolveAttachments depthStencilAttachment",
    "RenderPassMultiviewCreateInfo": "viewMasks? viewOffsets? correlationMasks?",
    "MultisampledRenderToSingleSampledInfoEXT": "rasterizationSamples multisampledRenderToSingleSampledEnable",
    "FragmentShadingRateAttachmentInfoKHR": "shadingRateAttachmentTexelSize fragmentShadingRateAttachment",
    "SpecializationMapEntry": "offset size constantID",
    "SpecializationInfo": "dataSize#data data mapEntries",
    "PipelineShaderStageCreateInfo": "flags name module stage specializationInfo",
    "PipelineRobustnessCreateInfo": "storageBuffers vertexInputs uniformBuffers images",
    "PipelineVertexInputDivisorStateCreateInfo": "vertexBindingDivisorCount#vertex_binding_divisors vertexBindingDivisors?",
    "PipelineVertexInputStateCreateInfo": "flags attributes=vertex_attribute_descriptions bindings=vertex_binding_descriptions",
    "VertexInputAttributeDescription": "location binding offset format",
    "PipelineColorWriteCreateInfoEXT": "attachmentCount#color_write_enables colorWriteEnables?",
    "PipelineDiscardRectangleStateCreateInfoEXT": "flags discardRectangleMode discardRectangleCount#discard_rectangles"
    " discardRectangles",
    "PipelineFragmentShadingRateStateCreateInfoKHR": "fragmentSize? combinerOps?",
    "PipelineSampleLocationsStateCreateInfoEXT": "sampleLocationsEnable sampleLocationsInfo?",
    "SampleLocationsInfoEXT": "sampleLocationsPerPixel sampleLocationGridSize sampleLocations?",
    "PipelineLibraryCreateInfoKHR": "libraries sType",
    "PipelineRenderingCreateInfo": "depthAttachmentFormat stencilAttachmentFormat viewMask colorAttachmentFormats?",
    "RenderingAttachmentLocationInfo": "colorAttachmentCount#color_attachment_locations colorAttachmentLocations?",
    "RenderingInputAttachmentIndexInfo": "colorAttachmentCount#color_attachment_input_indices colorAttachmentInputIndices",
    "PipelineDynamicStateCreateInfo": "flags dynamicState=dynamic_states",
    "PipelineTessellationStateCreateInfo": "flags patchControlPoints",
    "PipelineMultisampleStateCreateInfo": "flags rasterizationSamples sampleShadingEnable minSampleShading alphaToOneEnable"
    " alphaToCoverageEnable sampleMask",
    "PipelineRasterizationStateCreateInfo": "flags depthBiasConstantFactor depthBiasSlopeFactor depthBiasClamp depthBiasEnable"
    " depthClampEnable polygonMode rasterizerDiscardEnable frontFace lineWidth cullMode",
    "PipelineColorBlendStateCreateInfo": "flags logicOp logicOpEnable blendConstants attachmentCount? attachments",
    "PipelineColorBlendAttachmentState": "dstAlphaBlendFactor srcAlphaBlendFactor dstColorBlendFactor srcColorBlendFactor"
    " colorWriteMask alphaBlendOp colorBlendOp blendEnable",
    "PipelineViewportStateCreateInfo": "flags viewportCount#viewports scissorCount#scissors viewports scissors",
    "PipelineDepthStencilStateCreateInfo": "flags stencilTestEnable maxDepthBounds minDepthBounds depthBoundsTestEnable"
    " depthWriteEnable depthTestEnable depthCompareOp front back",
    "StencilOpState": "compareOp writeMask reference compareMask passOp failOp depthFailOp",
    "ComputePipelineCreateInfo": "flags layout basePipelineHandle basePipelineIndex stage",
    "RayTracingPipelineCreateInfoKHR": "flags layout basePipelineHandle basePipelineIndex maxPipelineRayRecursionDepth"
    " dynamicState stages libraryInterface libraryInfo groups",
    "RayTracingShaderGroupCreateInfoKHR": "anyHitShader intersectionShader generalShader closestHitShader type",
    "GraphicsPipelineCreateInfo": "flags basePipelineHandle basePipelineIndex layout renderPass subpass tessellationState"
    " dynamicState multisampleState vertexInputState rasterizationState inputAssemblyState colorBlendState viewportState"
    " depthStencilState stageCount? stages",
}
_STAGE_OF_COMPUTE: Final = "flags stage module name specializationInfo"
"""Fossilize writes the stage of a compute pipeline in another order than those of a graphics pipeline."""
_WIDE: Final = frozenset(
    (
        "size_t",
        "VkPipelineStageFlags2",
        "VkAccessFlags2",
        "VkAccessFlags3KHR",
        "VkPipelineCreateFlags2",
        "VkFlags64",
        "uint64_t",
    )
)


class _Bad(Exception):
    """A value that cannot be read; ``path`` leads to it. ``unholdable``: the structure is right, its class cannot hold it."""

    def __init__(self, reason: str, *, unholdable: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []
        self.unholdable = unholdable


class _Context:
    """What readers hand to the structure around them: unknown members found below."""

    __slots__ = ("unknown",)

    def __init__(self) -> None:
        self.unknown: dict[str, Any] | None = None


_Reader = Callable[[Any, _Context], Any]
_Writer = Callable[[Any, dict[str, Any]], str]
_MISSING: Final = object()
_NO_UNKNOWN: Final[dict[str, Any]] = {}


# Scalars


def _integer_reader(low: int, high: int, what: str) -> _Reader:
    def read(value: Any, _context: _Context) -> int:
        if type(value) is int and low <= value <= high:
            return value
        raise _Bad(f"is no {what} number")

    return read


_read_u16: Final = _integer_reader(0, 0xFFFF, "16-bit")
_read_u32: Final = _integer_reader(0, _U32, "32-bit")
_read_s32: Final = _integer_reader(-0x80000000, 0x7FFFFFFF, "signed 32-bit")
_read_u64: Final = _integer_reader(0, _U64, "64-bit")
_FLOAT32: Final = struct.Struct("<f")


def _read_float(value: Any, _context: _Context) -> float:
    if type(value) is float or type(value) is int:
        try:
            single: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
        except (OverflowError, struct.error):
            raise _Bad("is beyond a single-precision number") from None
        return single
    raise _Bad("is no number")


def _read_string(value: Any, _context: _Context) -> str:
    if type(value) is str and "\0" not in value:
        return value
    raise _Bad("is no text")


def _read_bytes(value: Any, _context: _Context) -> bytes:
    if type(value) is not str:
        raise _Bad("is no base64 text")
    try:
        return binascii.a2b_base64(value, strict_mode=True) if value else b""
    except (binascii.Error, ValueError):
        raise _Bad("is no base64 text") from None


def _hash_value(value: Any) -> int:
    if type(value) is str and len(value) == 16:
        try:
            if value.isalnum():
                return int(value, 16)
        except ValueError:
            pass
    raise _Bad("is no hash of 16 hexadecimal digits")


def _write_int(value: int, _unknown: dict[str, Any]) -> str:
    return str(value)


def _write_float(value: float, _unknown: dict[str, Any]) -> str:
    return float_text(value)


def _write_string(value: str, _unknown: dict[str, Any]) -> str:
    return string_text(value)


def _write_bytes(value: bytes, _unknown: dict[str, Any]) -> str:
    return f'"{binascii.b2a_base64(value, newline=False).decode()}"'


def _write_handle(value: Handle | None, _unknown: dict[str, Any]) -> str:
    return f'"{value.value:016x}"' if value is not None else '"0000000000000000"'


def float_text(value: float) -> str:
    """A number as Fossilize's JSON writer has it: shortest digits, a fixed point from 1e-6 to 1e21.

    Raises InvalidArgumentError if it is not finite.
    """
    text = repr(value)
    if "e" not in text:
        if "n" in text:
            raise InvalidArgumentError(f"a Fossilize body cannot hold the number {text}")
        return text
    mantissa, _, exponent_text = text.partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole + (fraction if fraction != "0" else "")
    point = int(exponent_text) + 1
    if len(digits) <= point <= 21:
        return f"{sign}{digits}{'0' * (point - len(digits))}.0"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}{'.' if len(digits) > 1 else ''}{digits[1:]}e{point - 1}"


_ESCAPES: Final = {code: f"\\u{code:04X}" for code in range(32)} | {
    8: "\\b",
    9: "\\t",
    10: "\\n",
    12: "\\f",
    13: "\\r",
    34: '\\"',
    92: "\\\\",
}


def string_text(value: str) -> str:
    """A JSON string with nothing escaped that need not be."""
    return f'"{value.translate(_ESCAPES)}"'


def json_text(value: Any) -> str:
    """Compact JSON of plain values, as Fossilize writes it."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, list):
        return f"[{','.join(map(json_text, value))}]"
    return f"{{{','.join(f'{string_text(key)}:{json_text(item)}' for key, item in value.items())}}}"


# Structures


class _Member:
    """One member of a structure: where it stands in JSON and in the description."""

    __slots__ = ("counts", "default", "field", "index", "key", "prefix", "read", "skip", "write")

    def __init__(self, key: str, field: str, index: int) -> None:
        self.key = key
        self.field = field
        self.index = index
        self.prefix = f'"{key}":'
        self.counts: str | None = None
        """Field of the array whose size this is."""
        self.skip = False
        self.default: Any = None
        self.read: _Reader = _read_u32
        self.write: _Writer = _write_int


class _Codec:
    """Reader and writer of one structure, made from the registry's members and ``_LAYOUT``."""

    def __init__(self, cls: type[Struct], layout: str | None = None) -> None:
        name = cls.__name__
        c_name, s_type, described = MEMBERS[name]
        self.cls = cls
        self.name = c_name
        self.s_type = s_type
        self.chained = "next" in cls.__struct_fields__
        fields = cls.__struct_fields__
        defaults = cls()
        by_key = {_key(c_member): (field, kind, c_type) for field, kind, c_member, c_type, _count in described}
        by_field = {field: (kind, c_type) for field, kind, _c_member, c_type, _count in described}
        tokens = (layout or _LAYOUT.get(name) or " ".join(by_key)).split()
        if s_type and "sType" not in tokens:
            tokens.insert(0, "sType")
        self.members: list[_Member] = []
        self.s_type_at = -1
        """How many members are written before sType."""
        for token in tokens:
            if token == "sType":
                self.s_type_at = len(self.members)
                continue
            skip = token.endswith("?")
            token = token.rstrip("?")
            key, _, counted = token.partition("#")
            key, _, field = key.partition("=")
            if counted:
                field = by_key[key][0] if key in by_key else ""
                kind, c_type = "value", "size_t" if key == "dataSize" else "uint32_t"
            elif field:
                kind, c_type = by_field[field]
            else:
                field, kind, c_type = by_key[key]
            member = _Member(key, field, fields.index(field) if field else -1)
            member.counts = counted or None
            member.skip = skip
            member.default = getattr(defaults, field) if field else 0
            member.read, member.write = _access(name, field, kind, c_type)
            self.members.append(member)
        self.defaults = [getattr(defaults, field) for field in fields]
        self.reading = [(member.key, member.index, member.read) for member in self.members if not member.counts]
        self.counts = [(member.key, member.index, fields.index(member.counts)) for member in self.members if member.counts]
        self.check = _CHECKS.get(name)
        self.allowed: dict[int, type[Struct]] | None = None
        self.writing = [(member, attrgetter(member.field) if member.field else None) for member in self.members]

    def read(self, value: Any, context: _Context) -> Any:
        """The structure that a JSON object describes; its unknown members are in its chain, or left in the context."""
        if type(value) is not dict:
            raise _Bad("is no object")
        arguments = self.defaults.copy()
        get = value.get
        found = 0
        unknown: dict[str, Any] | None = None
        key = ""
        try:
            for key, index, read in self.reading:
                item = get(key, _MISSING)
                if item is not _MISSING:
                    found += 1
                    arguments[index] = read(item, context)
                    if context.unknown is not None:
                        unknown = unknown or {}
                        unknown[key] = context.unknown
                        context.unknown = None
            for key, index, counted in self.counts:
                item = get(key, _MISSING)
                if item is not _MISSING:
                    found += 1
                    _read_count(item, index, counted, arguments)
            if self.chained:
                key = "pNext"
                item = get(key, _MISSING)
                if item is not _MISSING:
                    found += 1
                    arguments[-1] = self.read_chain(item)
                if "sType" in value and self.s_type_at >= 0:
                    found += 1
                    if value["sType"] != self.s_type:
                        raise _Bad("is not the structure type expected here")
            if self.check is not None:
                key = ""
                self.check(arguments)
        except _Bad as bad:
            bad.path.append(key)
            raise
        if found != len(value):
            known = {member.key for member in self.members} | ({"pNext", "sType"} if self.chained else set())
            unknown = (unknown or {}) | {name: item for name, item in value.items() if name not in known}
        if unknown:
            if self.chained:
                arguments[-1] = (*arguments[-1], UnknownStructure(UNKNOWN_MEMBERS, json_text(unknown)))
            else:
                context.unknown = unknown
        return self.cls(*arguments)

    def read_chain(self, value: Any) -> tuple[Struct, ...]:
        """The structures of a pNext chain."""
        if type(value) is not list:
            raise _Bad("is no array")
        return tuple(map(self._read_link, value))

    def _read_link(self, value: Any) -> Struct:
        s_type = value.get("sType") if type(value) is dict else None
        if type(s_type) is not int or not 0 <= s_type <= 0x7FFFFFFF:
            raise _Bad("holds something that is no structure")
        if self.allowed is None:
            self.allowed = _allowed(self.cls)
        cls = self.allowed.get(s_type)
        if cls is not None:
            try:
                structure: Struct = codec(cls).read(value, _Context())
                return structure
            except _Bad as bad:
                if not bad.unholdable:
                    raise
        return UnknownStructure(s_type, json_text(value))

    def write(self, value: Any, unknown: dict[str, Any], *, in_chain: bool = False) -> str:
        """JSON of a structure; ``unknown`` are the unknown members that belong to it."""
        if self.cls is structures.PipelineColorBlendStateCreateInfo and value.attachment_count and value.attachments is None:
            # Fossilize's reader takes the count from the attachments, which are all dynamic here.
            blank = (structures.PipelineColorBlendAttachmentState(),) * min(value.attachment_count, MAX_BLANK_ATTACHMENTS)
            value = msgspec.structs.replace(value, attachments=blank)
        parts: list[str] = []
        chain: tuple[Any, ...] = ()
        if self.chained:
            chain = value.next
            if chain and any(type(link) is UnknownStructure and link.s_type == UNKNOWN_MEMBERS for link in chain):
                chain, unknown = _split_unknown(chain)
        used = 0
        for position, (member, get) in enumerate(self.writing):
            if in_chain and position == self.s_type_at:
                parts.append(f'"sType":{self.s_type}')
            if member.counts:
                array = getattr(value, member.counts)
                item = len(array) if array is not None else get(value) if get else 0
            else:
                item = get(value) if get else None
            if item is None:
                if member.write is not _write_handle:
                    continue
            elif member.skip and item == member.default and member.key not in unknown:
                continue
            if unknown and member.key in unknown:
                used += 1
                parts.append(member.prefix + member.write(item, unknown[member.key]))
            else:
                parts.append(member.prefix + member.write(item, _NO_UNKNOWN))
        if in_chain and self.s_type_at == len(self.writing):
            parts.append(f'"sType":{self.s_type}')
        if chain:
            parts.append(f'"pNext":[{",".join(map(_write_link, chain))}]')
        if len(unknown) > used:
            known = {member.key for member in self.members}
            parts.extend(f"{string_text(key)}:{json_text(item)}" for key, item in unknown.items() if key not in known)
        return f"{{{','.join(parts)}}}"


def _key(c_member: str) -> str:
    """The JSON name of a C member: without the prefix of a pointer."""
    match = re.match(r"p+([A-Z].*)", c_member)
    return match[1][0].lower() + match[1][1:] if match else c_member


def _allowed(cls: type[Struct]) -> dict[int, type[Struct]]:
    """What may stand in the chain of a structure, by structure type."""
    names: list[str] = re.findall(r"[A-Z]\w+", str(cls.__annotations__["next"]))
    allowed = {MEMBERS[name][1]: getattr(structures, name) for name in names if name in MEMBERS}
    if cls is structures.SamplerCreateInfo:
        # Fossilize puts the conversion itself in the place of the structure that refers to one.
        del allowed[MEMBERS["SamplerYcbcrConversionInfo"][1]]
        allowed[MEMBERS["SamplerYcbcrConversionCreateInfo"][1]] = structures.SamplerYcbcrConversionCreateInfo
    return allowed


def _read_count(value: Any, index: int, counted: int, arguments: list[Any]) -> None:
    """Compare a count with its array, or keep it where there is no array and a place for it."""
    if type(value) is not int or not 0 <= value <= _U64:
        raise _Bad("is no count")
    array = arguments[counted]
    if array is not None and (array or index < 0):
        if len(array) != value:
            raise _Bad("is not the size of its array", unholdable=not array)
    elif index >= 0:
        if array is None:
            arguments[index] = value & _U32
        elif value:
            raise _Bad("is not the size of its array")


def _split_unknown(chain: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A chain without its unknown members, and those."""
    unknown: dict[str, Any] = {}
    rest = []
    for link in chain:
        if type(link) is UnknownStructure and link.s_type == UNKNOWN_MEMBERS:
            unknown |= json.loads(link.text)
        else:
            rest.append(link)
    return tuple(rest), unknown


def _write_link(value: Struct) -> str:
    if type(value) is UnknownStructure:
        return value.text
    return codec(type(value)).write(value, _NO_UNKNOWN, in_chain=True)


@cache
def codec(cls: type[Struct]) -> _Codec:
    """The codec of a structure, made when first needed."""
    if cls.__name__ not in MEMBERS:
        raise InvalidArgumentError(f"{cls.__name__} is no structure of a pipeline")
    return _Codec(cls)


# Members


def _access(structure: str, field: str, kind: str, c_type: str) -> tuple[_Reader, _Writer]:
    """Reader and writer of a member of a kind."""
    special = _SPECIAL.get((structure, field))
    if special is not None:
        return special
    if kind in ("value", "values", "fixed", "color"):
        read = _scalar_reader(c_type)
        write: _Writer = _write_float if c_type == "float" else _write_int
        if kind == "value":
            return read, write
        size = len(getattr(getattr(structures, structure)(), field)) if kind in ("fixed", "color") else -1
        return _array_reader(read, size), _array_writer(write)
    if kind in ("handle", "handles"):
        read = _handle_reader(getattr(structures, f"{c_type.removeprefix('Vk')}Handle"))
        return (read, _write_handle) if kind == "handle" else (_array_reader(read, -1), _array_writer(_write_handle))
    if kind == "string":
        return _read_string, _write_string
    if kind == "bytes":
        return _read_bytes, _write_bytes
    nested = _struct_access(getattr(structures, c_type.removeprefix("Vk")))
    return nested if kind in ("struct", "pointer") else (_array_reader(nested[0], -1), _array_writer(nested[1]))


def _scalar_reader(c_type: str) -> _Reader:
    if c_type == "float":
        return _read_float
    if c_type == "int32_t":
        return _read_s32
    if c_type == "uint16_t":
        return _read_u16
    return _read_u64 if c_type in _WIDE else _read_u32


def _handle_reader(cls: type[Handle]) -> _Reader:
    def read(value: Any, _context: _Context) -> Handle | None:
        number = _hash_value(value)
        return cls(number) if number else None

    return read


def _array_reader(read: _Reader, size: int) -> _Reader:
    def read_array(value: Any, context: _Context) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _Bad("is no array")
        if size >= 0 and len(value) != size:
            raise _Bad(f"has not {size} elements")
        items = []
        unknown: dict[str, Any] = {}
        for item in value:
            items.append(read(item, context))
            if context.unknown is not None:
                unknown[str(len(items) - 1)] = context.unknown
                context.unknown = None
        if unknown:
            context.unknown = unknown
        return tuple(items)

    return read_array


def _array_writer(write: _Writer) -> _Writer:
    def write_array(value: tuple[Any, ...], unknown: dict[str, Any]) -> str:
        if unknown:
            return f"[{','.join(write(item, unknown.get(str(index), _NO_UNKNOWN)) for index, item in enumerate(value))}]"
        return f"[{','.join([write(item, _NO_UNKNOWN) for item in value])}]"

    return write_array


def _struct_access(cls: type[Struct]) -> tuple[_Reader, _Writer]:
    def read(value: Any, context: _Context) -> Any:
        return codec(cls).read(value, context)

    def write(value: Any, unknown: dict[str, Any]) -> str:
        return codec(cls).write(value, unknown)

    return read, write


def _read_rectangle(value: Any, context: _Context) -> structures.Rect2D:
    if type(value) is not dict:
        raise _Bad("is no object")
    rectangle = structures.Rect2D(
        structures.Offset2D(_read_s32(value.get("x", 0), context), _read_s32(value.get("y", 0), context)),
        structures.Extent2D(_read_u32(value.get("width", 0), context), _read_u32(value.get("height", 0), context)),
    )
    if unknown := {key: item for key, item in value.items() if key not in ("x", "y", "width", "height")}:
        context.unknown = unknown
    return rectangle


def _write_rectangle(value: structures.Rect2D, unknown: dict[str, Any]) -> str:
    rest = "".join(f",{string_text(key)}:{json_text(item)}" for key, item in unknown.items())
    offset, extent = value.offset, value.extent
    return f'{{"x":{offset.x},"y":{offset.y},"width":{extent.width},"height":{extent.height}{rest}}}'


def _read_swizzles(value: Any, context: _Context) -> structures.ComponentMapping:
    return structures.ComponentMapping(*_array_reader(_read_u32, 4)(value, context))


def _write_swizzles(value: structures.ComponentMapping, _unknown: dict[str, Any]) -> str:
    return f"[{value.r},{value.g},{value.b},{value.a}]"


def _read_type_list(value: Any, context: _Context) -> structures.MutableDescriptorTypeListEXT:
    return structures.MutableDescriptorTypeListEXT(_array_reader(_read_u32, -1)(value, context))


def _write_type_list(value: structures.MutableDescriptorTypeListEXT, _unknown: dict[str, Any]) -> str:
    return f"[{','.join(map(str, value.descriptor_types))}]"


@cache
def _compute_stage_codec() -> _Codec:
    return _Codec(structures.PipelineShaderStageCreateInfo, _STAGE_OF_COMPUTE)


def _write_compute_stage(value: structures.PipelineShaderStageCreateInfo, unknown: dict[str, Any]) -> str:
    return _compute_stage_codec().write(value, unknown)


def _write_locations(value: structures.SampleLocationsInfoEXT, unknown: dict[str, Any]) -> str:
    # Fossilize writes its structure type, though it stands in no chain.
    return codec(structures.SampleLocationsInfoEXT).write(value, unknown, in_chain=True)


_RECTANGLES: Final = (_array_reader(_read_rectangle, -1), _array_writer(_write_rectangle))
_SPECIAL: Final[dict[tuple[str, str], tuple[_Reader, _Writer]]] = {
    ("PipelineViewportStateCreateInfo", "scissors"): _RECTANGLES,
    ("PipelineDiscardRectangleStateCreateInfoEXT", "discard_rectangles"): _RECTANGLES,
    ("SamplerYcbcrConversionCreateInfo", "components"): (_read_swizzles, _write_swizzles),
    ("MutableDescriptorTypeCreateInfoEXT", "mutable_descriptor_type_lists"): (
        _array_reader(_read_type_list, -1),
        _array_writer(_write_type_list),
    ),
    ("ComputePipelineCreateInfo", "stage"): (
        _struct_access(structures.PipelineShaderStageCreateInfo)[0],
        _write_compute_stage,
    ),
    ("PipelineSampleLocationsStateCreateInfoEXT", "sample_locations_info"): (
        _struct_access(structures.SampleLocationsInfoEXT)[0],
        _write_locations,
    ),
}


# Arrays that share a count with another member: C would read past the end of a shorter one.


def _check_binding(arguments: list[Any]) -> None:
    _binding, _type, count, _stages, samplers = arguments
    if samplers is not None and len(samplers) != count:
        raise _Bad("immutableSamplers has not descriptorCount elements")


def _check_subpass(arguments: list[Any], *, shift: int = 0) -> None:
    color, resolve = arguments[3 + shift], arguments[4 + shift]
    if resolve is not None and len(resolve) != len(color):
        raise _Bad("resolveAttachments has not as many elements as colorAttachments")


def _check_multisample(arguments: list[Any]) -> None:
    samples, mask = arguments[1], arguments[4]
    if mask is not None and len(mask) != (samples + 31) // 32:
        raise _Bad("sampleMask has not a word for every 32 samples")


def _check_color_blend(arguments: list[Any]) -> None:
    count, attachments = arguments[3], arguments[4]
    if count and attachments is not None:
        if len(attachments) != min(count, MAX_BLANK_ATTACHMENTS) or any(
            map(structures.PipelineColorBlendAttachmentState().__ne__, attachments)
        ):
            raise _Bad("attachmentCount contradicts attachments")
        arguments[4] = None


def _check_stages(arguments: list[Any]) -> None:
    if arguments[1] and arguments[2] is not None:
        raise _Bad("stageCount stands beside stages")


_CHECKS: Final[dict[str, Callable[[list[Any]], None]]] = {
    "DescriptorSetLayoutBinding": _check_binding,
    "SubpassDescription": _check_subpass,
    "SubpassDescription2": lambda arguments: _check_subpass(arguments, shift=1),
    "PipelineMultisampleStateCreateInfo": _check_multisample,
    "PipelineColorBlendStateCreateInfo": _check_color_blend,
    "GraphicsPipelineCreateInfo": _check_stages,
}


# Bodies


def parse_body(tag: Tag, payload: bytes) -> tuple[int, Struct]:
    """The object that an entry's payload describes, and the name that the body gives it.

    The name is 0 for application information, links and bucket information, whose bodies have none. Objects are structures of
    ``vulkan_registry.structures``, ``ApplicationInfo``, ``ApplicationLink`` or ``OpaqueBody``.

    Raises DamagedInputError that says where.
    """
    if tag is Tag.BUCKET_INFO:
        return 0, OpaqueBody(payload)
    if tag is Tag.SHADER_MODULE:
        head = parse_module_head(payload)
        return head.handle, head.structure()
    try:
        document = _document(payload, names=tag is Tag.APPLICATION_INFO)
        if tag is Tag.APPLICATION_INFO:
            return 0, _read_application(document)
        if tag is Tag.APPLICATION_BLOB_LINK:
            return 0, _read_link(document)
        for group, cls in GROUPS[tag]:
            if group in document:
                name, value = _only_member(document, group)
                try:
                    return _hash_value(name), codec(cls).read(value, _Context())
                except _Bad as bad:
                    bad.path.append(f"{group} {name[:16]}")
                    raise
    except _Bad as bad:
        where = ".".join(filter(None, reversed(bad.path)))
        raise DamagedInputError(f"{where}: {bad.reason}" if where else f"body {bad.reason}") from None
    except RecursionError:
        raise DamagedInputError("body is nested too deeply") from None
    raise DamagedInputError(f"body has no {' or '.join(group for group, _cls in GROUPS[tag])}")


_MODULE_MEMBERS: Final = frozenset(("varintOffset", "varintSize", "codeSize", "flags", "code"))


def parse_module_head(payload: bytes) -> ModuleHead:
    """A shader module's payload without decoding its words. Raises DamagedInputError."""
    head, separator, coded = payload.partition(b"\0")
    try:
        document = _document(head)
        name, value = _only_member(document, "shaderModules")
        if type(value) is not dict:
            raise _Bad("is no object")
        context = _Context()
        handle = _hash_value(name)
        flags = _read_u32(value.get("flags", 0), context)
        size = _read_u64(value.get("codeSize"), context)
        if size % 4 or size > 1 << 28:
            raise _Bad(f"has an impossible code size of {size} bytes")
        rest = {key: item for key, item in value.items() if key not in _MODULE_MEMBERS}
        unknown = json_text(rest) if rest else ""
        if "code" in value:
            code = _read_bytes(value["code"], context)
            if len(code) != size:
                raise _Bad("has not codeSize bytes of code")
            return ModuleHead(handle, flags, size, None, code, unknown)
        offset, length = _read_u64(value.get("varintOffset"), context), _read_u64(value.get("varintSize"), context)
    except _Bad as bad:
        raise DamagedInputError(f"shader module {bad.reason}") from None
    except RecursionError:
        raise DamagedInputError("body is nested too deeply") from None
    if not separator:
        split_shader_module(payload)
    if offset + length > len(coded):
        raise DamagedInputError("shader module's code is cut off")
    return ModuleHead(handle, flags, size, coded[offset : offset + length], b"", unknown)


def write_body(tag: Tag, handle: int, structure: Struct, *, version: int = VERSION) -> bytes:
    """The payload that Fossilize's recorder writes for an object of that name; the inverse of ``parse_body``.

    A color blend state with a count and no attachments gets blank ones, as Fossilize does, and the count. Raises
    InvalidArgumentError for what the format cannot hold: a number that is not finite, a structure of another tag.
    """
    if isinstance(structure, OpaqueBody):
        return structure.payload
    if isinstance(structure, ApplicationInfo):
        return _write_application(structure, version).encode("utf-8", "surrogateescape")
    if isinstance(structure, ApplicationLink):
        link = f'"application":"{structure.application:016x}","tag":{structure.tag},"hash":"{structure.hash:016x}"'
        return f'{{"version":{version},"link":{{{link}}}}}'.encode()
    group = next((group for group, cls in GROUPS.get(tag, ()) if isinstance(structure, cls)), None)
    if group is None:
        raise InvalidArgumentError(f"an entry of tag {tag} cannot hold {type(structure).__name__}")
    if isinstance(structure, structures.ShaderModuleCreateInfo):
        coded = spirv_to_varint(structure.code)
        chain, unknown = _split_unknown(structure.next)
        if chain:
            raise InvalidArgumentError("a shader module in a Fossilize archive has no chain")
        head = {"varintOffset": 0, "varintSize": len(coded), "codeSize": len(structure.code), "flags": structure.flags}
        text = f'{{"version":{version},"{group}":{{"{handle:016x}":{json_text(head | unknown)}}}}}'
        return join_shader_module(text.encode(), coded)
    body = codec(type(structure)).write(structure, _NO_UNKNOWN)
    return f'{{"version":{version},"{group}":{{"{handle:016x}":{body}}}}}'.encode()


def _document(text: bytes, *, names: bool = False) -> dict[str, Any]:
    """The JSON object of a body of a readable version."""
    if len(text) > MAX_BODY_SIZE:
        raise _Bad(f"is larger than {MAX_BODY_SIZE} bytes")
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        if not names:
            raise _Bad(f"is no JSON: {error}") from None
        document = _document_of_any_names(text)
    if type(document) is not dict:
        raise _Bad("is no JSON object")
    # What an interpreter bears differs; the format's limit does not. Few brackets need no closer look.
    if text.count(b"[") + text.count(b"{") > MAX_NESTING and _is_nested_deeper(document, MAX_NESTING):
        raise _Bad("is nested too deeply")
    if document.get("version") not in READABLE_BODY_VERSIONS:
        raise _Bad("is of no readable version")
    return document


def _is_nested_deeper(value: Any, limit: int) -> bool:
    """Whether arrays and objects stand in each other in more than that many levels."""
    level: list[Any] = [value]
    for _ in range(limit):
        inner: list[Any] = []
        for each in level:
            members = each.values() if type(each) is dict else each
            inner += [member for member in members if type(member) is dict or type(member) is list]
        if not inner:
            return False
        level = inner
    return True


def _document_of_any_names(text: bytes) -> Any:
    """JSON whose strings are not all UTF-8: applications' names are what their programmers wrote."""
    try:
        return json.loads(text.decode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise _Bad(f"is no JSON: {error}") from None


def _only_member(document: dict[str, Any], group: str) -> tuple[str, Any]:
    objects = document.get(group)
    if type(objects) is not dict or len(objects) != 1:
        raise _Bad(f"holds not exactly one object in {group}")
    name, value = next(iter(objects.items()))
    return name, value


def _read_link(document: dict[str, Any]) -> ApplicationLink:
    link = document.get("link")
    if type(link) is not dict:
        raise _Bad("has no link")
    tag = _read_u32(link.get("tag"), _Context())
    return ApplicationLink(_hash_value(link.get("application")), tag, _hash_value(link.get("hash")))


def _read_application(document: dict[str, Any]) -> ApplicationInfo:
    info, features = document.get("applicationInfo"), document.get("physicalDeviceFeatures")
    if type(info) is not dict or type(features) is not dict:
        raise _Bad("has no application information")
    context = _Context()
    info, features = dict(info), dict(features)
    names = [_read_string(info.pop(key), context) if key in info else None for key in ("applicationName", "engineName")]
    versions = [_read_u32(info.pop(key, 0), context) for key in ("applicationVersion", "engineVersion")]
    api = _read_u32(info.pop("apiVersion"), context) if "apiVersion" in info else None
    robust = _read_u32(features.pop("robustBufferAccess"), context) if "robustBufferAccess" in features else None
    chain = features.pop("pNext", [])
    if type(chain) is not list:
        raise _Bad("has features that are no array")
    unknown = {group: rest for group, rest in (("applicationInfo", info), ("physicalDeviceFeatures", features)) if rest}
    described = tuple(map(_read_features, chain))
    rest = json_text(unknown) if unknown else ""
    return ApplicationInfo(names[0], names[1], versions[0], versions[1], api, robust, described, rest)


def _read_features(value: Any) -> FeatureStructure | UnknownStructure:
    s_type = value.get("sType") if type(value) is dict else None
    if type(s_type) is not int or not 0 <= s_type <= 0x7FFFFFFF:
        raise _Bad("has features that are no structure")
    members = FEATURE_MEMBERS.get(s_type, ("", ()))[1]
    if members and value.keys() == {"sType", *members}:
        context = _Context()
        return FeatureStructure(s_type, tuple(_read_u32(value[member], context) for member in members))
    return UnknownStructure(s_type, json_text(value))


def _write_application(info: ApplicationInfo, version: int) -> str:
    unknown: dict[str, Any] = json.loads(info.unknown_members) if info.unknown_members else {}
    application: dict[str, Any] = {}
    if info.application_name is not None:
        application["applicationName"] = info.application_name
    if info.engine_name is not None:
        application["engineName"] = info.engine_name
    if info.api_version is not None:
        application["applicationVersion"] = info.application_version
        application["engineVersion"] = info.engine_version
        application["apiVersion"] = info.api_version
    application |= unknown.get("applicationInfo", {})
    parts = []
    if info.robust_buffer_access is not None:
        parts.append(f'"robustBufferAccess":{info.robust_buffer_access}')
    if info.features:
        parts.append(f'"pNext":[{",".join(map(_write_features, info.features))}]')
    parts.extend(f"{string_text(key)}:{json_text(item)}" for key, item in unknown.get("physicalDeviceFeatures", {}).items())
    return f'{{"version":{version},"applicationInfo":{json_text(application)},"physicalDeviceFeatures":{{{",".join(parts)}}}}}'


def _write_features(value: FeatureStructure | UnknownStructure) -> str:
    if isinstance(value, UnknownStructure):
        return value.text
    members = zip(FEATURE_MEMBERS[value.s_type][1], value.values, strict=True)
    return "".join((f'{{"sType":{value.s_type}', *(f',"{key}":{item}' for key, item in members), "}"))
