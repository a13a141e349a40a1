"""From the catalogue's words to Vulkan descriptions, and the objects that these refer to."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import vulkan_values as values
from catalogue import FRAGMENT_OUTPUT, FRAGMENT_SHADER, PRE_RASTERIZATION, VERTEX_INPUT, Compute, Graphics, RayTracing, Stage
from msgspec import Struct

from shaderkiln.formats.spirv import EntryPoint, inspect_module
from shaderkiln.vulkan_registry import constants as vk
from shaderkiln.vulkan_registry.handles import Handle
from shaderkiln.vulkan_registry.structures import (
    AttachmentDescription,
    AttachmentDescription2,
    AttachmentReference,
    AttachmentReference2,
    ComputePipelineCreateInfo,
    DescriptorSetLayoutBinding,
    DescriptorSetLayoutBindingFlagsCreateInfo,
    DescriptorSetLayoutCreateInfo,
    DescriptorSetLayoutHandle,
    Extent2D,
    GraphicsPipelineCreateInfo,
    GraphicsPipelineLibraryCreateInfoEXT,
    InputAttachmentAspectReference,
    Offset2D,
    PipelineColorBlendAttachmentState,
    PipelineColorBlendStateCreateInfo,
    PipelineDepthStencilStateCreateInfo,
    PipelineDynamicStateCreateInfo,
    PipelineFragmentShadingRateStateCreateInfoKHR,
    PipelineHandle,
    PipelineInputAssemblyStateCreateInfo,
    PipelineLayoutCreateInfo,
    PipelineLayoutHandle,
    PipelineLibraryCreateInfoKHR,
    PipelineMultisampleStateCreateInfo,
    PipelineRasterizationConservativeStateCreateInfoEXT,
    PipelineRasterizationDepthClipStateCreateInfoEXT,
    PipelineRasterizationLineStateCreateInfo,
    PipelineRasterizationProvokingVertexStateCreateInfoEXT,
    PipelineRasterizationStateCreateInfo,
    PipelineRenderingCreateInfo,
    PipelineShaderStageCreateInfo,
    PipelineShaderStageRequiredSubgroupSizeCreateInfo,
    PipelineTessellationDomainOriginStateCreateInfo,
    PipelineTessellationStateCreateInfo,
    PipelineVertexInputDivisorStateCreateInfo,
    PipelineVertexInputStateCreateInfo,
    PipelineViewportStateCreateInfo,
    PushConstantRange,
    RayTracingPipelineCreateInfoKHR,
    RayTracingPipelineInterfaceCreateInfoKHR,
    RayTracingShaderGroupCreateInfoKHR,
    Rect2D,
    RenderPassCreateInfo,
    RenderPassCreateInfo2,
    RenderPassHandle,
    RenderPassInputAttachmentAspectCreateInfo,
    RenderPassMultiviewCreateInfo,
    SamplerCreateInfo,
    SamplerHandle,
    SamplerReductionModeCreateInfo,
    ShaderModuleCreateInfo,
    ShaderModuleHandle,
    SpecializationInfo,
    SpecializationMapEntry,
    StencilOpState,
    SubpassDependency,
    SubpassDependency2,
    SubpassDescription,
    SubpassDescription2,
    SubpassDescriptionDepthStencilResolve,
    VertexInputAttributeDescription,
    VertexInputBindingDescription,
    VertexInputBindingDivisorDescription,
    Viewport,
)

H = TypeVar("H", bound=Handle)


class Recorder(Protocol):
    """Takes a description, and gives the handle that others refer to it by; equal descriptions get equal handles."""

    def __call__(self, kind: type[H], description: Struct) -> H: ...


# ---- samplers and descriptor set layouts

REPEAT, CLAMP, BORDER = (
    values.VK_SAMPLER_ADDRESS_MODE_REPEAT,
    values.VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
    values.VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
)


def sampler(filter: int, address: int, **rest: Any) -> SamplerCreateInfo:
    return SamplerCreateInfo(
        mag_filter=filter,
        min_filter=filter,
        mipmap_mode=filter,
        address_mode_u=address,
        address_mode_v=address,
        address_mode_w=address,
        **rest,
    )


SAMPLERS = {
    "anisotropic": sampler(1, REPEAT, anisotropy_enable=1, max_anisotropy=8.0, max_lod=1000.0, mip_lod_bias=-0.5),
    "clamp": sampler(1, CLAMP, max_lod=1000.0),
    "nearest": sampler(0, CLAMP, max_lod=1000.0),
    "shadow": sampler(
        1,
        BORDER,
        compare_enable=1,
        compare_op=values.VK_COMPARE_OP_LESS_OR_EQUAL,
        border_color=values.VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE,
    ),
    "farthest": sampler(1, CLAMP, max_lod=1000.0, next=(SamplerReductionModeCreateInfo(values.VK_SAMPLER_REDUCTION_MODE_MAX),)),
}

ALL_GRAPHICS = vk.VK_SHADER_STAGE_ALL_GRAPHICS
VERTEX, FRAGMENT, COMPUTE = vk.VK_SHADER_STAGE_VERTEX_BIT, vk.VK_SHADER_STAGE_FRAGMENT_BIT, vk.VK_SHADER_STAGE_COMPUTE_BIT
UNIFORM, STORAGE, TEXTURE = (
    vk.VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
    vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
    vk.VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
)
SHARED_SETS: tuple[tuple[tuple[int, int, str | None], ...], ...] = (
    (
        (UNIFORM, ALL_GRAPHICS, None),
        (STORAGE, FRAGMENT, None),
        (TEXTURE, FRAGMENT, "shadow"),
        (TEXTURE, FRAGMENT, "clamp"),
        (TEXTURE, FRAGMENT, "clamp"),
        (STORAGE, FRAGMENT, None),
    ),
    ((UNIFORM, FRAGMENT, None), *(5 * ((TEXTURE, FRAGMENT, "anisotropic"),))),
    ((STORAGE, VERTEX, None),),
)
"""The layout ``material``: what changes by frame, by material and by object. Type, stages and immutable sampler by binding."""
SHARED_PUSH_BYTES = 80
BINDLESS_COUNT = 1024
TEXEL_BUFFERS = frozenset((("image_convert.comp", 0, 3),))
"""Sampled buffers by shader, set and binding."""

# ---- vertices: attributes as (location, binding, format, offset), bindings as (stride, per instance, divisor)

F: dict[str, int] = {
    name.removeprefix("VK_FORMAT_"): value for name, value in vars(vk).items() if name.startswith("VK_FORMAT_")
}
"""Formats by the registry's names without the prefix."""
Attribute = tuple[int, int, int, int]
MESH: tuple[Attribute, ...] = (
    (0, 0, F["R32G32B32_SFLOAT"], 0),
    (1, 0, F["R16G16B16A16_SNORM"], 12),
    (2, 0, F["R16G16B16A16_SNORM"], 20),
    (3, 0, F["R16G16_SFLOAT"], 28),
    (4, 0, F["R8G8B8A8_UNORM"], 32),
)
MESH_STREAMS: tuple[Attribute, ...] = (
    (0, 0, F["R32G32B32_SFLOAT"], 0),
    (1, 1, F["R32G32B32_SFLOAT"], 0),
    (2, 1, F["R32G32B32A32_SFLOAT"], 12),
    (3, 2, F["R32G32_SFLOAT"], 0),
    (4, 3, F["R32G32B32A32_SFLOAT"], 0),
)
SKINNED: tuple[Attribute, ...] = (*MESH, (5, 1, F["R8G8B8A8_UINT"], 0), (6, 1, F["R8G8B8A8_UNORM"], 4))
SKINNED_WIDE: tuple[Attribute, ...] = (*MESH, (5, 1, F["R16G16B16A16_UINT"], 0), (6, 1, F["R16G16B16A16_SFLOAT"], 8))
TERRAIN: tuple[Attribute, ...] = ((0, 0, F["R32G32_SFLOAT"], 0), (1, 1, F["R32G32_UINT"], 0))
VERTICES: dict[str, tuple[tuple[Attribute, ...], tuple[tuple[int, bool, int], ...]]] = {
    "none": ((), ()),
    "mesh": (MESH, ((36, False, 1),)),
    "mesh-streams": (MESH_STREAMS, ((12, False, 1), (28, False, 1), (8, False, 1), (16, False, 1))),
    "skinned": (SKINNED, ((36, False, 1), (8, False, 1))),
    "skinned-wide": (SKINNED_WIDE, ((36, False, 1), (16, False, 1))),
    "terrain": (TERRAIN, ((8, False, 1), (8, True, 1))),
    "terrain-divisor": (TERRAIN, ((8, False, 1), (8, True, 4))),
    "plane": (((0, 0, F["R32G32_SFLOAT"], 0),), ((8, False, 1),)),
    "grass": (((0, 0, F["R32G32B32_SFLOAT"], 0), (1, 0, F["R32_SFLOAT"], 12)), ((16, False, 1),)),
    "points": (((0, 0, F["R32G32B32A32_SFLOAT"], 0), (1, 0, F["R16G16B16A16_SFLOAT"], 16)), ((24, False, 1),)),
    "lines": (((0, 0, F["R32G32B32_SFLOAT"], 0), (1, 0, F["R8G8B8A8_UNORM"], 12)), ((16, False, 1),)),
    "ui": (((0, 0, F["R32G32_SFLOAT"], 0), (1, 0, F["R16G16_UNORM"], 8), (2, 0, F["R8G8B8A8_UNORM"], 12)), ((16, False, 1),)),
}


def vertex_input(word: str) -> PipelineVertexInputStateCreateInfo:
    attributes, bindings = VERTICES[word]
    divisors = tuple(VertexInputBindingDivisorDescription(i, d) for i, (_, _, d) in enumerate(bindings) if d != 1)
    return PipelineVertexInputStateCreateInfo(
        vertex_binding_descriptions=tuple(VertexInputBindingDescription(i, s, int(r)) for i, (s, r, _) in enumerate(bindings)),
        vertex_attribute_descriptions=tuple(VertexInputAttributeDescription(*a) for a in sorted_attributes(attributes)),
        next=(PipelineVertexInputDivisorStateCreateInfo(divisors),) if divisors else (),
    )


def sorted_attributes(attributes: Iterable[Attribute]) -> list[tuple[int, int, int, int]]:
    return [(location, binding, format, offset) for location, binding, format, offset in sorted(attributes)]


# ---- what is drawn to

GENERAL, COLOUR, DEPTH, DEPTH_READ, SHADER_READ, PRESENT = 1, 2, 3, 4, 5, 1000001002
CLEAR, DISCARD, LOAD, STORE = (
    values.VK_ATTACHMENT_LOAD_OP_CLEAR,
    values.VK_ATTACHMENT_LOAD_OP_DONT_CARE,
    values.VK_ATTACHMENT_LOAD_OP_LOAD,
    values.VK_ATTACHMENT_STORE_OP_STORE,
)
UNUSED = 0xFFFFFFFF
EXTERNAL = 0xFFFFFFFF
HDR, D32, D32S8 = F["R16G16B16A16_SFLOAT"], F["D32_SFLOAT"], F["D32_SFLOAT_S8_UINT"]


def attachment(format: int, final: int, load: int = CLEAR, samples: int = 1, store: int = STORE) -> AttachmentDescription:
    has_stencil = format == D32S8
    stencil = (load, store) if has_stencil else (DISCARD, values.VK_ATTACHMENT_STORE_OP_DONT_CARE)
    return AttachmentDescription(0, format, samples, load, store, *stencil, final if load == LOAD else 0, final)


def attachment2(*arguments: Any, **rest: Any) -> AttachmentDescription2:
    old = attachment(*arguments, **rest)
    return AttachmentDescription2(*(getattr(old, name) for name in old.__struct_fields__))


def reference(index: int, layout: int) -> AttachmentReference:
    return AttachmentReference(index, layout)


def reference2(index: int, layout: int, aspect: int) -> AttachmentReference2:
    return AttachmentReference2(index, layout, aspect)


COLOUR_ASPECT, DEPTH_ASPECT = values.VK_IMAGE_ASPECT_COLOR_BIT, values.VK_IMAGE_ASPECT_DEPTH_BIT
COLOUR_OUTPUT, FRAGMENT_READS = (
    values.VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
    values.VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT,
)
FRAGMENT_TESTS = values.VK_PIPELINE_STAGE_EARLY_FRAGMENT_TESTS_BIT | values.VK_PIPELINE_STAGE_LATE_FRAGMENT_TESTS_BIT
COLOUR_WRITE, DEPTH_WRITE = values.VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, values.VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT
INPUT_READ, SAMPLED_READ = values.VK_ACCESS_INPUT_ATTACHMENT_READ_BIT, values.VK_ACCESS_SHADER_READ_BIT
BY_REGION = values.VK_DEPENDENCY_BY_REGION_BIT

GBUFFER = RenderPassCreateInfo(
    attachments=(
        attachment(F["R8G8B8A8_UNORM"], SHADER_READ),
        attachment(F["R16G16_SFLOAT"], SHADER_READ),
        attachment(F["R8G8B8A8_UNORM"], SHADER_READ),
        attachment(F["R32_UINT"], SHADER_READ),
        attachment(D32S8, DEPTH_READ),
        attachment(HDR, SHADER_READ),
    ),
    subpasses=(
        SubpassDescription(
            color_attachments=tuple(reference(i, COLOUR) for i in range(4)), depth_stencil_attachment=reference(4, DEPTH)
        ),
        SubpassDescription(
            input_attachments=(
                reference(0, SHADER_READ),
                reference(1, SHADER_READ),
                reference(2, SHADER_READ),
                reference(4, DEPTH_READ),
            ),
            color_attachments=(reference(5, COLOUR),),
            depth_stencil_attachment=reference(4, DEPTH_READ),
            preserve_attachments=(3,),
        ),
    ),
    dependencies=(
        SubpassDependency(
            0, 1, COLOUR_OUTPUT | FRAGMENT_TESTS, FRAGMENT_READS, COLOUR_WRITE | DEPTH_WRITE, INPUT_READ, BY_REGION
        ),
        SubpassDependency(1, EXTERNAL, COLOUR_OUTPUT, FRAGMENT_READS, COLOUR_WRITE, SAMPLED_READ, 0),
    ),
    next=(
        RenderPassInputAttachmentAspectCreateInfo(
            (
                *(InputAttachmentAspectReference(1, i, COLOUR_ASPECT) for i in range(3)),
                InputAttachmentAspectReference(1, 3, DEPTH_ASPECT),
            )
        ),
    ),
)
SCENE = RenderPassCreateInfo(
    attachments=(attachment(HDR, SHADER_READ, LOAD), attachment(D32, DEPTH, LOAD)),
    subpasses=(SubpassDescription(color_attachments=(reference(0, COLOUR),), depth_stencil_attachment=reference(1, DEPTH)),),
)
SCENE_MULTISAMPLE = RenderPassCreateInfo2(
    attachments=(
        attachment2(HDR, COLOUR, CLEAR, 4),
        attachment2(D32, DEPTH, CLEAR, 4),
        attachment2(HDR, SHADER_READ, DISCARD),
        attachment2(D32, DEPTH_READ, DISCARD),
    ),
    subpasses=(
        SubpassDescription2(
            color_attachments=(reference2(0, COLOUR, COLOUR_ASPECT),),
            resolve_attachments=(reference2(2, COLOUR, COLOUR_ASPECT),),
            depth_stencil_attachment=reference2(1, DEPTH, DEPTH_ASPECT),
            next=(
                SubpassDescriptionDepthStencilResolve(
                    values.VK_RESOLVE_MODE_SAMPLE_ZERO_BIT, values.VK_RESOLVE_MODE_NONE, reference2(3, DEPTH, DEPTH_ASPECT)
                ),
            ),
        ),
    ),
    dependencies=(SubpassDependency2(0, EXTERNAL, COLOUR_OUTPUT, FRAGMENT_READS, COLOUR_WRITE, SAMPLED_READ),),
)
STEREO = RenderPassCreateInfo2(
    attachments=(attachment2(HDR, SHADER_READ), attachment2(D32, DEPTH)),
    subpasses=(
        SubpassDescription2(
            view_mask=3,
            color_attachments=(reference2(0, COLOUR, COLOUR_ASPECT),),
            depth_stencil_attachment=reference2(1, DEPTH, DEPTH_ASPECT),
        ),
    ),
    correlated_view_masks=(3,),
)
SHADOW = RenderPassCreateInfo(
    attachments=(attachment(F["D16_UNORM"], DEPTH_READ),),
    subpasses=(SubpassDescription(depth_stencil_attachment=reference(0, DEPTH)),),
    dependencies=(SubpassDependency(0, EXTERNAL, FRAGMENT_TESTS, FRAGMENT_READS, DEPTH_WRITE, SAMPLED_READ, 0),),
)
SHADOW_CASCADES = RenderPassCreateInfo(
    attachments=(attachment(D32, DEPTH_READ),),
    subpasses=(SubpassDescription(depth_stencil_attachment=reference(0, DEPTH)),),
    next=(RenderPassMultiviewCreateInfo(view_masks=(0xF,), correlation_masks=(0xF,)),),
)
DISPLAY = RenderPassCreateInfo(
    attachments=(attachment(F["B8G8R8A8_SRGB"], PRESENT, DISCARD),),
    subpasses=(SubpassDescription(color_attachments=(reference(0, COLOUR),)),),
    dependencies=(SubpassDependency(EXTERNAL, 0, COLOUR_OUTPUT, COLOUR_OUTPUT, 0, COLOUR_WRITE, 0),),
)

Rendering = PipelineRenderingCreateInfo
TARGETS: dict[str, tuple[RenderPassCreateInfo | RenderPassCreateInfo2 | PipelineRenderingCreateInfo, int, int]] = {
    "scene": (SCENE, 0, 1),
    "scene-multisample": (SCENE_MULTISAMPLE, 0, 4),
    "gbuffer": (GBUFFER, 0, 1),
    "gbuffer-light": (GBUFFER, 1, 1),
    "stereo": (STEREO, 0, 1),
    "shadow": (SHADOW, 0, 1),
    "shadow-cascades": (SHADOW_CASCADES, 0, 1),
    "display": (DISPLAY, 0, 1),
    "rendering-scene": (Rendering(0, (HDR,), D32), 0, 1),
    "rendering-stencil": (Rendering(0, (HDR,), D32S8, D32S8), 0, 1),
    "rendering-depth": (Rendering(0, (), D32), 0, 1),
    "rendering-colour": (Rendering(0, (HDR,)), 0, 1),
    "rendering-wide": (Rendering(0, (F["A2B10G10R10_UNORM_PACK32"],)), 0, 1),
    "rendering-multisample": (Rendering(0, (F["R8G8B8A8_UNORM"],)), 0, 8),
    "moments": (Rendering(0, (F["R32G32_SFLOAT"],), D32), 0, 1),
    "transparent": (Rendering(0, (HDR, F["R16_SFLOAT"]), D32), 0, 1),
}
"""Render pass or formats of dynamic rendering, subpass, samples."""

# ---- states

TOPOLOGIES = {
    "points": vk.VK_PRIMITIVE_TOPOLOGY_POINT_LIST,
    "lines": vk.VK_PRIMITIVE_TOPOLOGY_LINE_LIST,
    "line strip": vk.VK_PRIMITIVE_TOPOLOGY_LINE_STRIP,
    "triangles": vk.VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST,
    "triangle strip": vk.VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP,
    "patches": vk.VK_PRIMITIVE_TOPOLOGY_PATCH_LIST,
}
CULLS = {"none": values.VK_CULL_MODE_NONE, "front": values.VK_CULL_MODE_FRONT_BIT, "back": values.VK_CULL_MODE_BACK_BIT}
POLYGONS = {"fill": vk.VK_POLYGON_MODE_FILL, "line": vk.VK_POLYGON_MODE_LINE, "point": vk.VK_POLYGON_MODE_POINT}
LESS, EQUAL, GREATER, ALWAYS, NOT_EQUAL = (
    values.VK_COMPARE_OP_LESS,
    values.VK_COMPARE_OP_EQUAL,
    values.VK_COMPARE_OP_GREATER,
    values.VK_COMPARE_OP_ALWAYS,
    values.VK_COMPARE_OP_NOT_EQUAL,
)
DEPTHS = {  # test, write, comparison, bounds
    "less": (1, 1, LESS, 0),
    "equal": (1, 0, EQUAL, 0),
    "greater": (1, 1, GREATER, 0),
    "read": (1, 0, values.VK_COMPARE_OP_LESS_OR_EQUAL, 0),
    "always": (1, 1, ALWAYS, 0),
    "bounds": (1, 1, LESS, 1),
    "off": (0, 0, ALWAYS, 0),
}
KEEP, REPLACE = values.VK_STENCIL_OP_KEEP, values.VK_STENCIL_OP_REPLACE
STENCILS = {  # fail, pass, depth fail, comparison, masks, reference
    "off": StencilOpState(),
    "write": StencilOpState(KEEP, REPLACE, KEEP, ALWAYS, 0xFF, 0xFF, 1),
    "replace": StencilOpState(REPLACE, REPLACE, REPLACE, ALWAYS, 0xFF, 0x7F, 0),
    "equal": StencilOpState(KEEP, KEEP, KEEP, EQUAL, 0x01, 0x00, 1),
    "not equal": StencilOpState(KEEP, KEEP, KEEP, NOT_EQUAL, 0xFF, 0x00, 1),
}
ZERO, ONE = values.VK_BLEND_FACTOR_ZERO, values.VK_BLEND_FACTOR_ONE
SOURCE_ALPHA, LESS_SOURCE_ALPHA = values.VK_BLEND_FACTOR_SRC_ALPHA, values.VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA
ADD, MAXIMUM = values.VK_BLEND_OP_ADD, values.VK_BLEND_OP_MAX
Blend = PipelineColorBlendAttachmentState
BLENDS = {
    "opaque": Blend(color_write_mask=15),
    "no colour": Blend(color_write_mask=0),
    "red green": Blend(color_write_mask=3),
    "alpha": Blend(1, SOURCE_ALPHA, LESS_SOURCE_ALPHA, ADD, ONE, LESS_SOURCE_ALPHA, ADD, 15),
    "premultiplied": Blend(1, ONE, LESS_SOURCE_ALPHA, ADD, ONE, LESS_SOURCE_ALPHA, ADD, 15),
    "additive": Blend(1, ONE, ONE, ADD, ZERO, ONE, ADD, 15),
    "multiply": Blend(1, values.VK_BLEND_FACTOR_DST_COLOR, ZERO, ADD, ZERO, ONE, ADD, 7),
    "maximum": Blend(1, ONE, ONE, MAXIMUM, ONE, ONE, MAXIMUM, 15),
    "constant": Blend(1, values.VK_BLEND_FACTOR_CONSTANT_COLOR, ONE, ADD, ONE, ZERO, ADD, 15),
    "accumulate": Blend(1, ONE, ONE, ADD, ONE, ONE, ADD, 15),
    "revealage": Blend(1, ZERO, values.VK_BLEND_FACTOR_ONE_MINUS_SRC_COLOR, ADD, ZERO, ONE, ADD, 1),
    "dual source": Blend(1, ONE, values.VK_BLEND_FACTOR_SRC1_COLOR, ADD, ONE, values.VK_BLEND_FACTOR_SRC1_ALPHA, ADD, 15),
}
RASTER: dict[str, Any] = {
    "conservative": PipelineRasterizationConservativeStateCreateInfoEXT(
        conservative_rasterization_mode=values.VK_CONSERVATIVE_RASTERIZATION_MODE_OVERESTIMATE_EXT
    ),
    "no depth clip": PipelineRasterizationDepthClipStateCreateInfoEXT(depth_clip_enable=0),
    "stipple": PipelineRasterizationLineStateCreateInfo(values.VK_LINE_RASTERIZATION_MODE_BRESENHAM, 1, 2, 0xF0F0),
    "last vertex": PipelineRasterizationProvokingVertexStateCreateInfoEXT(values.VK_PROVOKING_VERTEX_MODE_LAST_VERTEX_EXT),
}

# ---- stages and layouts

STAGE_OF_MODEL = {
    0: vk.VK_SHADER_STAGE_VERTEX_BIT,
    1: vk.VK_SHADER_STAGE_TESSELLATION_CONTROL_BIT,
    2: vk.VK_SHADER_STAGE_TESSELLATION_EVALUATION_BIT,
    3: vk.VK_SHADER_STAGE_GEOMETRY_BIT,
    4: vk.VK_SHADER_STAGE_FRAGMENT_BIT,
    5: vk.VK_SHADER_STAGE_COMPUTE_BIT,
    5313: vk.VK_SHADER_STAGE_RAYGEN_BIT_KHR,
    5314: vk.VK_SHADER_STAGE_INTERSECTION_BIT_KHR,
    5315: vk.VK_SHADER_STAGE_ANY_HIT_BIT_KHR,
    5316: vk.VK_SHADER_STAGE_CLOSEST_HIT_BIT_KHR,
    5317: vk.VK_SHADER_STAGE_MISS_BIT_KHR,
    5364: vk.VK_SHADER_STAGE_TASK_BIT_EXT,
    5365: vk.VK_SHADER_STAGE_MESH_BIT_EXT,
}


def specialization(constants: Mapping[int, bool | int | float]) -> SpecializationInfo | None:
    """Constants packed in order of their ids, four bytes each."""
    if not constants:
        return None
    data, entries = b"", []
    for number, value in sorted(constants.items()):
        entries.append(SpecializationMapEntry(number, len(data), 4))
        data += struct.pack("<f", value) if isinstance(value, float) else struct.pack("<i", int(value))
    return SpecializationInfo(tuple(entries), data)


class Assembler:
    """Describes the catalogue's pipelines; every object that they need goes to ``record`` before its users."""

    def __init__(self, shaders: Mapping[str, bytes], record: Recorder) -> None:
        self._shaders = shaders
        self._record = record
        self._entries: dict[str, EntryPoint] = {}
        self._pipelines: dict[str, PipelineHandle] = {}

    def entry_point(self, shader: str) -> EntryPoint:
        if shader not in self._entries:
            self._entries[shader] = inspect_module(self._shaders[shader]).entry_points[0]
        return self._entries[shader]

    def stage(self, stage: Stage, flags: int = 0) -> PipelineShaderStageCreateInfo:
        entry = self.entry_point(stage.shader)
        return PipelineShaderStageCreateInfo(
            flags=flags,
            stage=STAGE_OF_MODEL[entry.execution_model],
            module=self._record(ShaderModuleHandle, ShaderModuleCreateInfo(code=self._shaders[stage.shader])),
            name=entry.name,
            specialization_info=specialization(stage.constants),
            next=(PipelineShaderStageRequiredSubgroupSizeCreateInfo(stage.subgroup_size),) if stage.subgroup_size else (),
        )

    def set_layout(
        self, bindings: Iterable[tuple[int, int, int | None, int, str | None]], flags: int = 0
    ) -> DescriptorSetLayoutHandle:
        """From (binding, type, count, stages, immutable sampler); a count of None is an array that the layout sizes."""
        described, binding_flags = [], []
        for number, kind, count, stages, immutable in sorted(bindings, key=lambda b: b[0]):
            samplers = (self._record(SamplerHandle, SAMPLERS[immutable]),) * (count or 1) if immutable else None
            described.append(
                DescriptorSetLayoutBinding(number, kind, BINDLESS_COUNT if count is None else count, stages, samplers)
            )
            binding_flags.append(values.VK_DESCRIPTOR_BINDING_PARTIALLY_BOUND_BIT if count is None else 0)
        chain = (DescriptorSetLayoutBindingFlagsCreateInfo(tuple(binding_flags)),) if any(binding_flags) else ()
        return self._record(DescriptorSetLayoutHandle, DescriptorSetLayoutCreateInfo(flags, tuple(described), chain))

    def shared_layout(self) -> PipelineLayoutHandle:
        sets = tuple(
            self.set_layout((number, kind, 1, stages, immutable) for number, (kind, stages, immutable) in enumerate(bindings))
            for bindings in SHARED_SETS
        )
        ranges = (PushConstantRange(VERTEX | FRAGMENT, 0, SHARED_PUSH_BYTES),)
        return self._record(PipelineLayoutHandle, PipelineLayoutCreateInfo(0, sets, ranges))

    def derived_layout(self, stages: Iterable[Stage], immutable: Mapping[tuple[int, int], str]) -> PipelineLayoutHandle:
        """The smallest layout that covers what the stages use."""
        sets: dict[int, dict[int, tuple[int, int | None, int]]] = {}
        push_stages = push_bytes = 0
        for stage in stages:
            entry = self.entry_point(stage.shader)
            bit = STAGE_OF_MODEL[entry.execution_model]
            for used in entry.bindings:
                kind = used.descriptor_types[0]
                if (stage.shader, used.set, used.binding) in TEXEL_BUFFERS:
                    kind = vk.VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                _, _, others = sets.setdefault(used.set, {}).get(used.binding, (kind, used.count, 0))
                sets[used.set][used.binding] = kind, used.count, others | bit
            if entry.push_constant_bytes:
                push_stages |= bit
                push_bytes = max(push_bytes, -(-entry.push_constant_bytes // 16) * 16)
        layouts = tuple(
            self.set_layout(
                (binding, kind, count, bits, immutable.get((number, binding)))
                for binding, (kind, count, bits) in sets.get(number, {}).items()
            )
            for number in range(max(sets, default=-1) + 1)
        )
        ranges = (PushConstantRange(push_stages, 0, push_bytes),) if push_bytes else ()
        return self._record(PipelineLayoutHandle, PipelineLayoutCreateInfo(0, layouts, ranges))

    def _base(self, derivable: bool, derived_from: str | None) -> dict[str, Any]:
        flags = vk.VK_PIPELINE_CREATE_ALLOW_DERIVATIVES_BIT if derivable else 0
        if derived_from is not None:
            flags |= vk.VK_PIPELINE_CREATE_DERIVATIVE_BIT
        parent = self._pipelines[derived_from] if derived_from is not None else None
        return {"flags": flags, "base_pipeline_handle": parent, "base_pipeline_index": -1}

    def compute(self, pipeline: Compute) -> PipelineHandle:
        flags = vk.VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT if pipeline.full_subgroups else 0
        return self._keep(
            pipeline.name,
            ComputePipelineCreateInfo(
                stage=self.stage(pipeline.stage, flags),
                layout=self.derived_layout((pipeline.stage,), pipeline.immutable),
                **self._base(pipeline.derivable, pipeline.derived_from),
            ),
        )

    def ray_tracing(self, pipeline: RayTracing) -> PipelineHandle:
        unused = UNUSED
        general = tuple(
            RayTracingShaderGroupCreateInfoKHR(values.VK_RAY_TRACING_SHADER_GROUP_TYPE_GENERAL_KHR, i, unused, unused, unused)
            for i in pipeline.general
        )
        triangles, procedural = (
            values.VK_RAY_TRACING_SHADER_GROUP_TYPE_TRIANGLES_HIT_GROUP_KHR,
            values.VK_RAY_TRACING_SHADER_GROUP_TYPE_PROCEDURAL_HIT_GROUP_KHR,
        )
        hits = tuple(
            RayTracingShaderGroupCreateInfoKHR(
                triangles if intersection is None else procedural,
                unused,
                unused if closest is None else closest,
                unused if any_hit is None else any_hit,
                unused if intersection is None else intersection,
            )
            for closest, any_hit, intersection in pipeline.hits
        )
        libraries = tuple(self._pipelines[name] for name in pipeline.libraries)
        interface = RayTracingPipelineInterfaceCreateInfoKHR(32, 8) if pipeline.library or libraries else None
        return self._keep(
            pipeline.name,
            RayTracingPipelineCreateInfoKHR(
                flags=vk.VK_PIPELINE_CREATE_LIBRARY_BIT_KHR if pipeline.library else 0,
                stages=tuple(map(self.stage, pipeline.stages)),
                groups=general + hits,
                max_pipeline_ray_recursion_depth=pipeline.recursion,
                library_info=PipelineLibraryCreateInfoKHR(libraries) if libraries else None,
                library_interface=interface,
                layout=self.derived_layout(pipeline.layout_of or pipeline.stages, {}),
                base_pipeline_index=-1,
            ),
        )

    def graphics(self, pipeline: Graphics) -> PipelineHandle:
        p = pipeline
        target, subpass, samples = TARGETS[p.target]
        # A pipeline that is no library has every part, or gets its parts from libraries.
        parts = p.parts or (0 if p.libraries else VERTEX_INPUT | PRE_RASTERIZATION | FRAGMENT_SHADER | FRAGMENT_OUTPUT)
        is_mesh = any(s.shader.endswith(".mesh") for s in p.stages)
        needs_layout = bool(p.stages) or bool(p.libraries)
        chain: list[Any] = []
        base = self._base(p.derivable, p.derived_from)
        if p.parts:
            chain.append(GraphicsPipelineLibraryCreateInfoEXT(p.parts))
            base["flags"] |= (
                vk.VK_PIPELINE_CREATE_LIBRARY_BIT_KHR | vk.VK_PIPELINE_CREATE_RETAIN_LINK_TIME_OPTIMIZATION_INFO_BIT_EXT
            )
        if p.libraries:
            chain.append(PipelineLibraryCreateInfoKHR(tuple(self._pipelines[name] for name in p.libraries)))
            base["flags"] |= vk.VK_PIPELINE_CREATE_LINK_TIME_OPTIMIZATION_BIT_EXT if p.optimise_link else 0
        if isinstance(target, PipelineRenderingCreateInfo):
            render_pass = None
            if parts & FRAGMENT_OUTPUT:
                chain.append(target)
            elif parts & (PRE_RASTERIZATION | FRAGMENT_SHADER):
                chain.append(PipelineRenderingCreateInfo(target.view_mask))
        else:
            render_pass = self._record(RenderPassHandle, target)
        if p.shading_rate:
            combiners = (values.VK_FRAGMENT_SHADING_RATE_COMBINER_OP_KEEP_KHR,) * 2
            chain.append(PipelineFragmentShadingRateStateCreateInfoKHR(Extent2D(*p.shading_rate), combiners))
        layout = None
        if needs_layout:
            layout = self.shared_layout() if p.layout == "material" else self.derived_layout(p.stages, p.immutable)
        return self._keep(
            p.name,
            GraphicsPipelineCreateInfo(
                stages=tuple(map(self.stage, p.stages)) if p.stages or p.libraries else None,
                vertex_input_state=vertex_input(p.vertices)
                if parts & VERTEX_INPUT and not is_mesh and p.vertices != "dynamic"
                else None,
                input_assembly_state=input_assembly(p) if parts & VERTEX_INPUT and not is_mesh else None,
                tessellation_state=tessellation(p) if p.patch_points else None,
                viewport_state=viewports(p) if parts & PRE_RASTERIZATION else None,
                rasterization_state=rasterization(p) if parts & PRE_RASTERIZATION else None,
                multisample_state=multisample(p, samples) if parts & FRAGMENT_OUTPUT else None,
                depth_stencil_state=depth_stencil(p) if parts & FRAGMENT_SHADER and p.depth != "none" else None,
                color_blend_state=color_blend(p) if parts & FRAGMENT_OUTPUT and p.blends else None,
                dynamic_state=dynamic(p),
                layout=layout,
                render_pass=render_pass,
                subpass=subpass,
                next=tuple(chain),
                **base,
            ),
        )

    def _keep(self, name: str, description: Struct) -> PipelineHandle:
        if name in self._pipelines:
            raise ValueError(f"two pipelines are called {name}")
        handle = self._record(PipelineHandle, description)
        self._pipelines[name] = handle
        return handle

    @property
    def pipelines(self) -> Mapping[str, PipelineHandle]:
        """Handles by the catalogue's names, in order."""
        return self._pipelines


def input_assembly(p: Graphics) -> PipelineInputAssemblyStateCreateInfo:
    return PipelineInputAssemblyStateCreateInfo(topology=TOPOLOGIES[p.topology], primitive_restart_enable=int(p.restart))


def tessellation(p: Graphics) -> PipelineTessellationStateCreateInfo:
    origin = PipelineTessellationDomainOriginStateCreateInfo(values.VK_TESSELLATION_DOMAIN_ORIGIN_LOWER_LEFT)
    return PipelineTessellationStateCreateInfo(
        patch_control_points=p.patch_points, next=(origin,) if p.lower_left_domain else ()
    )


def viewports(p: Graphics) -> PipelineViewportStateCreateInfo:
    if p.fixed_viewport:
        area = Viewport(0.0, 720.0, 1280.0, -720.0, 0.0, 1.0)
        return PipelineViewportStateCreateInfo(
            viewport_count=1, viewports=(area,), scissor_count=1, scissors=(Rect2D(Offset2D(), Extent2D(1280, 720)),)
        )
    count = 0 if "VIEWPORT_WITH_COUNT" in p.dynamic else p.viewports
    return PipelineViewportStateCreateInfo(viewport_count=count, scissor_count=count)


def rasterization(p: Graphics) -> PipelineRasterizationStateCreateInfo:
    constant, slope = p.depth_bias or (0.0, 0.0)
    return PipelineRasterizationStateCreateInfo(
        depth_clamp_enable=int(p.depth_clamp),
        polygon_mode=POLYGONS[p.polygon],
        cull_mode=CULLS[p.cull],
        front_face=values.VK_FRONT_FACE_CLOCKWISE if p.clockwise else values.VK_FRONT_FACE_COUNTER_CLOCKWISE,
        depth_bias_enable=int(p.depth_bias is not None),
        depth_bias_constant_factor=constant,
        depth_bias_slope_factor=slope,
        line_width=p.line_width,
        next=tuple(RASTER[word] for word in p.raster),
    )


def multisample(p: Graphics, samples: int) -> PipelineMultisampleStateCreateInfo:
    return PipelineMultisampleStateCreateInfo(
        rasterization_samples=samples,
        sample_shading_enable=int(p.sample_shading > 0),
        min_sample_shading=p.sample_shading,
        sample_mask=None if p.sample_mask is None else (p.sample_mask,),
        alpha_to_coverage_enable=int(p.alpha_to_coverage),
    )


def depth_stencil(p: Graphics) -> PipelineDepthStencilStateCreateInfo:
    test, write, compare, bounds = DEPTHS[p.depth]
    state = STENCILS[p.stencil]
    return PipelineDepthStencilStateCreateInfo(
        depth_test_enable=test,
        depth_write_enable=write,
        depth_compare_op=compare,
        depth_bounds_test_enable=bounds,
        stencil_test_enable=int(p.stencil != "off"),
        front=state,
        back=state,
        min_depth_bounds=0.25 if bounds else 0.0,
        max_depth_bounds=0.75 if bounds else 1.0,
    )


def color_blend(p: Graphics) -> PipelineColorBlendStateCreateInfo:
    blends = tuple(BLENDS[word] for word in p.blends)
    return PipelineColorBlendStateCreateInfo(
        logic_op_enable=int(p.logic is not None),
        logic_op=getattr(values, f"VK_LOGIC_OP_{p.logic}") if p.logic else values.VK_LOGIC_OP_COPY,
        attachments=blends,
        blend_constants=p.blend_constants,
    )


def dynamic(p: Graphics) -> PipelineDynamicStateCreateInfo | None:
    if not p.dynamic:
        return None
    return PipelineDynamicStateCreateInfo(dynamic_states=tuple(getattr(vk, f"VK_DYNAMIC_STATE_{word}") for word in p.dynamic))


ASSEMBLE: dict[type, Callable[[Assembler, Any], PipelineHandle]] = {
    Graphics: Assembler.graphics,
    Compute: Assembler.compute,
    RayTracing: Assembler.ray_tracing,
}
