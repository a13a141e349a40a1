"""Fossilize's 64-bit hash of every kind of object: the name of an archive's entry, computed again from what the entry says.

Handles are taken for the hashes of what they refer to, as they are in an archive. State that Fossilize takes for dynamic, or for
not used, takes no part. The hash is 64-bit FNV-1 over words: it tells damage and mistakes, not malice. Source: the hashing of the
Fossilize project, format version 6.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats.fossilize import Hasher, hash_shader_module
from shaderkiln.formats.fossilize_json import (
    FEATURE_MEMBERS,
    ApplicationInfo,
    ApplicationLink,
    FeatureStructure,
)
from shaderkiln.vulkan_registry import constants as vk
from shaderkiln.vulkan_registry import structures as s
from shaderkiln.vulkan_registry.handles import Handle, UnknownStructure

Resolve = Callable[[Handle], Struct]
"""Gives the object that a handle refers to; needed for the render pass of a graphics pipeline only."""


def compute_hash(structure: Struct, resolve: Resolve) -> int:
    """The hash under which Fossilize stores an object.

    Raises InvalidArgumentError for what Fossilize does not hash, an unknown structure for example, and what ``resolve`` raises.
    """
    for cls, compute in _OBJECTS.items():
        if isinstance(structure, cls):
            hasher = Hasher()
            compute(hasher, structure, resolve)
            return hasher.state
    raise InvalidArgumentError(f"Fossilize has no hash of {type(structure).__name__}")


# Flags and dynamic states

_NOT_COMPILED: Final = (
    vk.VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR
    | vk.VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR
    | vk.VK_PIPELINE_CREATE_EARLY_RETURN_ON_FAILURE_BIT
    | vk.VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT
    | vk.VK_PIPELINE_CREATE_2_CAPTURE_DATA_BIT_KHR
)
"""Create flags that do not change what is compiled."""
# VkGraphicsPipelineLibraryFlagBitsEXT
_VERTEX_INPUT: Final = 1
_PRE_RASTERIZATION: Final = 2
_FRAGMENT: Final = 4
_OUTPUT: Final = 8
_COMPLETE: Final = _VERTEX_INPUT | _PRE_RASTERIZATION | _FRAGMENT | _OUTPUT
_CONSTANT_FACTORS: Final = frozenset((10, 12))
"""VK_BLEND_FACTOR_CONSTANT_COLOR and VK_BLEND_FACTOR_CONSTANT_ALPHA."""
_USER_DEFINED_CLAMP_RANGE: Final = 1
"""VK_DEPTH_CLAMP_MODE_USER_DEFINED_RANGE_EXT."""
_NO_ATTACHMENT: Final = 0xFFFFFFFF
"""VK_ATTACHMENT_UNUSED."""


class _State:
    """What the hash of a structure in a graphics pipeline depends on beside the structure."""

    __slots__ = ("dynamic", "given", "parts")

    def __init__(self, dynamic: frozenset[int], parts: int, *, given: bool = True) -> None:
        self.dynamic = dynamic
        """Dynamic states, by their bare numbers."""
        self.parts = parts
        """The parts of a pipeline that are defined (VkGraphicsPipelineLibraryFlagsEXT)."""
        self.given = given
        """False outside graphics pipelines."""


_NOWHERE: Final = _State(frozenset(), 0, given=False)

# Objects


def _sampler(h: Hasher, o: s.SamplerCreateInfo, _resolve: Resolve) -> None:
    h.u32(o.flags & ~vk.VK_SAMPLER_CREATE_DESCRIPTOR_BUFFER_CAPTURE_REPLAY_BIT_EXT)
    for number in (o.max_anisotropy, o.mip_lod_bias, o.min_lod, o.max_lod):
        h.f32(number)
    _words(h, o.min_filter, o.mag_filter, o.mipmap_mode, o.compare_enable, o.compare_op, o.anisotropy_enable)
    _words(h, o.address_mode_u, o.address_mode_v, o.address_mode_w, o.border_color, o.unnormalized_coordinates)
    _chain(h, o.next, _NOWHERE)


def _set_layout(h: Hasher, o: s.DescriptorSetLayoutCreateInfo, _resolve: Resolve) -> None:
    _words(h, len(o.bindings), o.flags)
    for binding in o.bindings:
        _words(h, binding.binding, binding.descriptor_count, binding.descriptor_type, binding.stage_flags)
        if binding.immutable_samplers and binding.descriptor_type in (
            vk.VK_DESCRIPTOR_TYPE_SAMPLER,
            vk.VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
        ):
            for sampler in binding.immutable_samplers:
                h.u64(_value(sampler))
    _chain(h, o.next, _NOWHERE)


def _pipeline_layout(h: Hasher, o: s.PipelineLayoutCreateInfo, _resolve: Resolve) -> None:
    h.u32(len(o.set_layouts))
    for layout in o.set_layouts:
        if layout is None:
            h.u32(0)
        else:
            h.u64(layout.value)
    h.u32(len(o.push_constant_ranges))
    for constants in o.push_constant_ranges:
        _words(h, constants.stage_flags, constants.size, constants.offset)
    h.u32(o.flags)


def _shader_module(h: Hasher, o: s.ShaderModuleCreateInfo, _resolve: Resolve) -> None:
    if len(o.code) % 4:
        raise InvalidArgumentError(f"{len(o.code)} bytes of SPIR-V are no whole number of words")
    words = array("I", o.code)
    if sys.byteorder != "little":
        words.byteswap()
    h.state = hash_shader_module(words, o.flags)


def _render_pass(h: Hasher, o: s.RenderPassCreateInfo, _resolve: Resolve) -> None:
    if o.flags:
        h.u32(o.flags)
    _words(h, len(o.attachments), len(o.dependencies), len(o.subpasses))
    for attachment in o.attachments:
        _attachment(h, attachment)
    for dependency in o.dependencies:
        _dependency(h, dependency)
    for subpass in o.subpasses:
        _subpass(h, subpass)
    _chain(h, o.next, _NOWHERE)


def _render_pass2(h: Hasher, o: s.RenderPassCreateInfo2, _resolve: Resolve) -> None:
    _words(h, o.flags, len(o.attachments), len(o.dependencies), len(o.subpasses), len(o.correlated_view_masks), 2)
    for attachment in o.attachments:
        _attachment(h, attachment)
        _chain(h, attachment.next, _NOWHERE)
    for dependency in o.dependencies:
        _dependency(h, dependency)
        h.s32(dependency.view_offset)
        _chain(h, dependency.next, _NOWHERE)
    for subpass in o.subpasses:
        _subpass(h, subpass)
        h.u32(subpass.view_mask)
        _chain(h, subpass.next, _NOWHERE)
    _words(h, *o.correlated_view_masks)
    _chain(h, o.next, _NOWHERE)


def _attachment(h: Hasher, o: s.AttachmentDescription | s.AttachmentDescription2) -> None:
    _words(h, o.flags, o.initial_layout, o.final_layout, o.format, o.load_op, o.store_op)
    _words(h, o.stencil_load_op, o.stencil_store_op, o.samples)


def _dependency(h: Hasher, o: s.SubpassDependency | s.SubpassDependency2) -> None:
    _words(h, o.dependency_flags, o.dst_access_mask, o.src_access_mask, o.src_subpass, o.dst_subpass)
    _words(h, o.src_stage_mask, o.dst_stage_mask)


def _subpass(h: Hasher, o: s.SubpassDescription | s.SubpassDescription2) -> None:
    _words(h, o.flags, len(o.color_attachments), len(o.input_attachments), len(o.preserve_attachments), o.pipeline_bind_point)
    _words(h, *o.preserve_attachments)
    for reference in (*o.color_attachments, *o.input_attachments, *(o.resolve_attachments or ())):
        _reference(h, reference)
    if o.depth_stencil_attachment is None:
        h.u32(0)
    else:
        _reference(h, o.depth_stencil_attachment)


def _reference(h: Hasher, o: s.AttachmentReference | s.AttachmentReference2) -> None:
    _words(h, o.attachment, o.layout)
    if isinstance(o, s.AttachmentReference2):
        h.u32(o.aspect_mask)
        _chain(h, o.next, _NOWHERE)


def _compute(h: Hasher, o: s.ComputePipelineCreateInfo, _resolve: Resolve) -> None:
    h.u64(_value(o.layout))
    _create_flags(h, o)
    if not _base_pipeline(h, o):
        h.u32(0)
    stage = o.stage
    h.u64(_module(stage))
    h.string(stage.name)
    _words(h, stage.flags, stage.stage)
    _specialization(h, stage.specialization_info)
    _chain(h, stage.next, _NOWHERE)
    _chain(h, o.next, _NOWHERE)


def _raytracing(h: Hasher, o: s.RayTracingPipelineCreateInfoKHR, _resolve: Resolve) -> None:
    _create_flags(h, o)
    h.u32(o.max_pipeline_ray_recursion_depth)
    h.u64(_value(o.layout))
    if not _base_pipeline(h, o):
        h.u32(0)
    h.u32(len(o.stages))
    for stage in o.stages:
        _stage(h, stage)
    if o.library_interface is None:
        h.u32(0)
    else:
        interface = o.library_interface
        _words(h, interface.max_pipeline_ray_hit_attribute_size, interface.max_pipeline_ray_payload_size)
        _chain(h, interface.next, _NOWHERE)
    _dynamic_state(h, o.dynamic_state, _NOWHERE)
    h.u32(len(o.groups))
    for group in o.groups:
        _words(h, group.type, group.any_hit_shader, group.closest_hit_shader, group.general_shader, group.intersection_shader)
        _chain(h, group.next, _NOWHERE)
    if o.library_info is None:
        h.u32(0)
    else:
        _libraries(h, o.library_info, _NOWHERE)
        _chain(h, o.library_info.next, _NOWHERE)
    _chain(h, o.next, _NOWHERE)


def _graphics(h: Hasher, o: s.GraphicsPipelineCreateInfo, resolve: Resolve) -> None:
    dynamic = frozenset(o.dynamic_state.dynamic_states) if o.dynamic_state else frozenset[int]()
    parts = _COMPLETE
    library = _find(o.next, s.GraphicsPipelineLibraryCreateInfoEXT)
    if o.flags & vk.VK_PIPELINE_CREATE_LIBRARY_BIT_KHR and library is not None:
        parts = library.flags
    state = _State(dynamic, parts)
    with_modules = bool(parts & (_PRE_RASTERIZATION | _FRAGMENT))
    with_render_pass = bool(parts & (_PRE_RASTERIZATION | _FRAGMENT | _OUTPUT))

    _create_flags(h, o)
    _base_pipeline(h, o)
    h.u64(_value(o.layout) if with_modules else 0)
    render_pass = o.render_pass if with_render_pass else None
    h.u64(_value(render_pass))
    uses_color, uses_depth_stencil = _used_attachments(o, render_pass, library, resolve)

    _words(h, o.subpass if with_render_pass else 0, len(o.stages or ()) if with_modules else 0)
    _dynamic_state(h, o.dynamic_state, state)

    rasterization = o.rasterization_state if parts & _PRE_RASTERIZATION else None
    discards = bool(
        rasterization
        and rasterization.rasterizer_discard_enable == 1
        and vk.VK_DYNAMIC_STATE_RASTERIZER_DISCARD_ENABLE not in dynamic
    )
    stages = {stage.stage for stage in o.stages or ()} if with_modules else set[int]()
    meshes = bool(stages & {vk.VK_SHADER_STAGE_MESH_BIT_EXT, vk.VK_SHADER_STAGE_TASK_BIT_EXT})
    has_input = bool(parts & _VERTEX_INPUT) and not meshes
    tessellates = bool(stages & {vk.VK_SHADER_STAGE_TESSELLATION_CONTROL_BIT, vk.VK_SHADER_STAGE_TESSELLATION_EVALUATION_BIT})

    def part(used: object, structure: Any, compute: Callable[[Hasher, Any, _State], None], *, otherwise: bool = True) -> None:
        if used and structure is not None:
            compute(h, structure, state)
            _chain(h, structure.next, state)
        elif otherwise:
            h.u32(0)

    part(uses_depth_stencil and not discards and parts & _FRAGMENT, o.depth_stencil_state, _depth_stencil)
    part(has_input, o.input_assembly_state, _input_assembly)
    part(rasterization, rasterization, _rasterization)
    part(not discards and parts & (_FRAGMENT | _OUTPUT), o.multisample_state, _multisample, otherwise=False)
    part(not discards and parts & _PRE_RASTERIZATION, o.viewport_state, _viewport)
    part(has_input and vk.VK_DYNAMIC_STATE_VERTEX_INPUT_EXT not in dynamic, o.vertex_input_state, _vertex_input)
    part(uses_color and not discards and parts & _OUTPUT, o.color_blend_state, _color_blend)
    part(tessellates and parts & _PRE_RASTERIZATION, o.tessellation_state, _tessellation)
    if with_modules:
        for stage in o.stages or ():
            _stage(h, stage)
    _chain(h, o.next, state)


def _used_attachments(
    o: s.GraphicsPipelineCreateInfo,
    render_pass: Handle | None,
    library: s.GraphicsPipelineLibraryCreateInfoEXT | None,
    resolve: Resolve,
) -> tuple[bool, bool]:
    """Whether the pipeline writes color, and depth or stencil."""
    if render_pass is not None:
        described = resolve(render_pass)
        if not isinstance(described, (s.RenderPassCreateInfo, s.RenderPassCreateInfo2)):
            raise InvalidArgumentError(f"{render_pass!r} is no render pass")
        if o.subpass >= len(described.subpasses):
            raise InvalidArgumentError(f"subpass {o.subpass} is not in {render_pass!r}")
        subpass = described.subpasses[o.subpass]
        depth_stencil = subpass.depth_stencil_attachment
        return bool(subpass.color_attachments), depth_stencil is not None and depth_stencil.attachment != _NO_ATTACHMENT
    rendering = _find(o.next, s.PipelineRenderingCreateInfo)
    uses_color = rendering is not None and bool(rendering.color_attachment_formats)
    uses_depth_stencil = rendering is not None and bool(
        rendering.depth_attachment_format or rendering.stencil_attachment_format
    )
    # A library of fragment shaders alone cannot know, and so has the state.
    forced = library is not None and bool(library.flags & _FRAGMENT) and not library.flags & _OUTPUT
    return uses_color, uses_depth_stencil or forced


# Parts of pipelines


def _create_flags(h: Hasher, o: Any) -> None:
    wide = _find(o.next, s.PipelineCreateFlags2CreateInfo)
    h.u32(o.flags & ~_NOT_COMPILED if wide is None else 0)


def _base_pipeline(h: Hasher, o: Any) -> bool:
    if not o.flags & vk.VK_PIPELINE_CREATE_DERIVATIVE_BIT or o.base_pipeline_handle is None:
        return False
    h.u64(o.base_pipeline_handle.value)
    h.s32(o.base_pipeline_index)
    return True


def _module(stage: s.PipelineShaderStageCreateInfo) -> int:
    if stage.module is not None:
        return stage.module.value
    inlined = _find(stage.next, s.ShaderModuleCreateInfo)
    if inlined is None:
        raise InvalidArgumentError("a stage without a shader module has no hash")
    hasher = Hasher()
    _shader_module(hasher, inlined, _nothing)
    return hasher.state


def _nothing(handle: Handle) -> Struct:
    raise InvalidArgumentError(f"{handle!r} is not expected here")


def _stage(h: Hasher, o: s.PipelineShaderStageCreateInfo) -> None:
    h.u32(o.flags)
    h.string(o.name)
    h.u32(o.stage)
    h.u64(_module(o))
    _specialization(h, o.specialization_info)
    _chain(h, o.next, _NOWHERE)


def _specialization(h: Hasher, o: s.SpecializationInfo | None) -> None:
    if o is None:
        h.u32(0)
        return
    h.data(o.data)
    h.u64(len(o.data))
    h.u32(len(o.map_entries))
    for entry in o.map_entries:
        h.u32(entry.offset)
        h.u64(entry.size)
        h.u32(entry.constant_id)


def _dynamic_state(h: Hasher, o: s.PipelineDynamicStateCreateInfo | None, state: _State) -> None:
    if o is None:
        h.u32(0)
        return
    _words(h, len(o.dynamic_states), o.flags, *o.dynamic_states)
    _chain(h, o.next, state)


def _depth_stencil(h: Hasher, o: s.PipelineDepthStencilStateCreateInfo, state: _State) -> None:
    dynamic = state.dynamic
    h.u32(o.flags)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_DEPTH_BOUNDS_TEST_ENABLE, o.depth_bounds_test_enable)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_DEPTH_COMPARE_OP, o.depth_compare_op)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_DEPTH_TEST_ENABLE, o.depth_test_enable)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_DEPTH_WRITE_ENABLE, o.depth_write_enable)
    for face in (o.front, o.back):
        for value in (face.compare_op, face.depth_fail_op, face.fail_op, face.pass_op):
            _static(h, dynamic, vk.VK_DYNAMIC_STATE_STENCIL_OP, value)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_STENCIL_TEST_ENABLE, o.stencil_test_enable)
    if vk.VK_DYNAMIC_STATE_DEPTH_BOUNDS not in dynamic and (
        o.depth_bounds_test_enable or vk.VK_DYNAMIC_STATE_DEPTH_BOUNDS_TEST_ENABLE in dynamic
    ):
        h.f32(o.min_depth_bounds)
        h.f32(o.max_depth_bounds)
    if o.stencil_test_enable or vk.VK_DYNAMIC_STATE_STENCIL_TEST_ENABLE in dynamic:
        if vk.VK_DYNAMIC_STATE_STENCIL_COMPARE_MASK not in dynamic:
            _words(h, o.front.compare_mask, o.back.compare_mask)
        if vk.VK_DYNAMIC_STATE_STENCIL_REFERENCE not in dynamic:
            _words(h, o.front.reference, o.back.reference)
        if vk.VK_DYNAMIC_STATE_STENCIL_WRITE_MASK not in dynamic:
            _words(h, o.front.write_mask, o.back.write_mask)


def _input_assembly(h: Hasher, o: s.PipelineInputAssemblyStateCreateInfo, state: _State) -> None:
    h.u32(o.flags)
    _static(h, state.dynamic, vk.VK_DYNAMIC_STATE_PRIMITIVE_RESTART_ENABLE, o.primitive_restart_enable)
    h.u32(o.topology)


def _rasterization(h: Hasher, o: s.PipelineRasterizationStateCreateInfo, state: _State) -> None:
    dynamic = state.dynamic
    h.u32(o.flags)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_CULL_MODE, o.cull_mode)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_DEPTH_CLAMP_ENABLE_EXT, o.depth_clamp_enable)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_FRONT_FACE, o.front_face)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_RASTERIZER_DISCARD_ENABLE, o.rasterizer_discard_enable)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_POLYGON_MODE_EXT, o.polygon_mode)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_DEPTH_BIAS_ENABLE, o.depth_bias_enable)
    biased = o.depth_bias_enable or vk.VK_DYNAMIC_STATE_DEPTH_BIAS_ENABLE in dynamic
    if biased and vk.VK_DYNAMIC_STATE_DEPTH_BIAS not in dynamic:
        h.f32(o.depth_bias_clamp)
        h.f32(o.depth_bias_slope_factor)
        h.f32(o.depth_bias_constant_factor)
    if vk.VK_DYNAMIC_STATE_LINE_WIDTH not in dynamic:
        h.f32(o.line_width)


def _multisample(h: Hasher, o: s.PipelineMultisampleStateCreateInfo, state: _State) -> None:
    dynamic = state.dynamic
    h.u32(o.flags)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_ALPHA_TO_COVERAGE_ENABLE_EXT, o.alpha_to_coverage_enable)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_ALPHA_TO_ONE_ENABLE_EXT, o.alpha_to_one_enable)
    h.f32(o.min_sample_shading)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_RASTERIZATION_SAMPLES_EXT, o.rasterization_samples)
    h.u32(o.sample_shading_enable)
    if vk.VK_DYNAMIC_STATE_SAMPLE_MASK_EXT not in dynamic and o.sample_mask is not None:
        _words(h, *o.sample_mask)
    else:
        h.u32(0)


def _viewport(h: Hasher, o: s.PipelineViewportStateCreateInfo, state: _State) -> None:
    dynamic = state.dynamic
    h.u32(o.flags)
    scissors = o.scissor_count if o.scissors is None else len(o.scissors)
    viewports = o.viewport_count if o.viewports is None else len(o.viewports)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_SCISSOR_WITH_COUNT, scissors)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_VIEWPORT_WITH_COUNT, viewports)
    if not dynamic & {vk.VK_DYNAMIC_STATE_SCISSOR, vk.VK_DYNAMIC_STATE_SCISSOR_WITH_COUNT}:
        for rectangle in o.scissors or ():
            _rectangle(h, rectangle)
    if not dynamic & {vk.VK_DYNAMIC_STATE_VIEWPORT, vk.VK_DYNAMIC_STATE_VIEWPORT_WITH_COUNT}:
        for viewport in o.viewports or ():
            for number in (viewport.x, viewport.y, viewport.width, viewport.height, viewport.min_depth, viewport.max_depth):
                h.f32(number)


def _rectangle(h: Hasher, o: s.Rect2D) -> None:
    _words(h, o.offset.x, o.offset.y, o.extent.width, o.extent.height)


def _vertex_input(h: Hasher, o: s.PipelineVertexInputStateCreateInfo, state: _State) -> None:
    _words(h, o.flags, len(o.vertex_attribute_descriptions), len(o.vertex_binding_descriptions))
    for attribute in o.vertex_attribute_descriptions:
        _words(h, attribute.offset, attribute.binding, attribute.format, attribute.location)
    for binding in o.vertex_binding_descriptions:
        _words(h, binding.binding, binding.input_rate)
        _static(h, state.dynamic, vk.VK_DYNAMIC_STATE_VERTEX_INPUT_BINDING_STRIDE, binding.stride)


def _color_blend(h: Hasher, o: s.PipelineColorBlendStateCreateInfo, state: _State) -> None:
    dynamic = state.dynamic
    count = o.attachment_count if o.attachments is None else len(o.attachments)
    _words(h, o.flags, count)
    logic_dynamic = vk.VK_DYNAMIC_STATE_LOGIC_OP_ENABLE_EXT in dynamic
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_LOGIC_OP_ENABLE_EXT, o.logic_op_enable)
    if vk.VK_DYNAMIC_STATE_LOGIC_OP_EXT in dynamic or not (o.logic_op_enable or logic_dynamic):
        h.u32(0)
    else:
        h.u32(o.logic_op)
    enable_dynamic = vk.VK_DYNAMIC_STATE_COLOR_BLEND_ENABLE_EXT in dynamic
    equation_dynamic = vk.VK_DYNAMIC_STATE_COLOR_BLEND_EQUATION_EXT in dynamic
    advanced_dynamic = vk.VK_DYNAMIC_STATE_COLOR_BLEND_ADVANCED_EXT in dynamic
    needs_constants = equation_dynamic
    if enable_dynamic and equation_dynamic and vk.VK_DYNAMIC_STATE_COLOR_WRITE_MASK_EXT in dynamic:
        h.u32(0)
    else:
        for attachment in o.attachments or ():
            _static(h, dynamic, vk.VK_DYNAMIC_STATE_COLOR_BLEND_ENABLE_EXT, attachment.blend_enable)
            _static(h, dynamic, vk.VK_DYNAMIC_STATE_COLOR_WRITE_MASK_EXT, attachment.color_write_mask)
            if not attachment.blend_enable and not enable_dynamic:
                h.u32(0)
                continue
            factors = (
                attachment.dst_alpha_blend_factor,
                attachment.src_alpha_blend_factor,
                attachment.dst_color_blend_factor,
                attachment.src_color_blend_factor,
            )
            if equation_dynamic:
                h.u32(0)
            else:
                h.u32(0 if advanced_dynamic else attachment.alpha_blend_op)
                h.u32(0 if advanced_dynamic else attachment.color_blend_op)
                _words(h, *factors)
            needs_constants = needs_constants or not _CONSTANT_FACTORS.isdisjoint(factors)
    if needs_constants and vk.VK_DYNAMIC_STATE_BLEND_CONSTANTS not in dynamic:
        for constant in o.blend_constants:
            h.f32(constant)


def _tessellation(h: Hasher, o: s.PipelineTessellationStateCreateInfo, state: _State) -> None:
    h.u32(o.flags)
    _static(h, state.dynamic, vk.VK_DYNAMIC_STATE_PATCH_CONTROL_POINTS_EXT, o.patch_control_points)


# Structures in chains


def _chain(h: Hasher, chain: tuple[Any, ...], state: _State) -> None:
    """Structure type and content of each structure of a chain."""
    for link in chain:
        cls = type(link)
        if cls in _INVARIANT:
            continue
        if cls is UnknownStructure:
            raise InvalidArgumentError(f"a structure of type {link.s_type} is not known here, so it has no hash")
        compute = _LINKS.get(cls)
        if compute is None:
            raise InvalidArgumentError(f"Fossilize has no hash of {cls.__name__}")
        h.s32(cls.__struct_config__.tag)
        compute(h, link, state)


_INVARIANT: Final = frozenset((s.ShaderModuleCreateInfo, s.PipelineShaderStageModuleIdentifierCreateInfoEXT))
_Link = Callable[[Hasher, Any, _State], None]


def _plain(*fields: str) -> _Link:
    """The hash of a structure that is one word per field, in this order."""

    def compute(h: Hasher, o: Any, _state: _State) -> None:
        for field in fields:
            h.u32(getattr(o, field))

    return compute


def _sized(*fields: str) -> _Link:
    """The hash of a structure of arrays: for each its size and its words."""

    def compute(h: Hasher, o: Any, _state: _State) -> None:
        for field in fields:
            values = getattr(o, field)
            _words(h, len(values), *values)

    return compute


def _unless(dynamic: int, field: str, *before: str) -> _Link:
    """The hash of a structure whose last field is 0 where it is dynamic."""

    def compute(h: Hasher, o: Any, state: _State) -> None:
        for name in before:
            h.u32(getattr(o, name))
        _static(h, state.dynamic, dynamic, getattr(o, field))

    return compute


def _divisors(h: Hasher, o: s.PipelineVertexInputDivisorStateCreateInfo, _state: _State) -> None:
    h.u32(len(o.vertex_binding_divisors))
    for divisor in o.vertex_binding_divisors:
        _words(h, divisor.binding, divisor.divisor)


def _blend_advanced(h: Hasher, o: s.PipelineColorBlendAdvancedStateCreateInfoEXT, state: _State) -> None:
    if vk.VK_DYNAMIC_STATE_COLOR_BLEND_ADVANCED_EXT in state.dynamic:
        h.u32(0)
    else:
        _words(h, o.src_premultiplied, o.dst_premultiplied, o.blend_overlap)


def _conservative(h: Hasher, o: s.PipelineRasterizationConservativeStateCreateInfoEXT, state: _State) -> None:
    h.u32(o.flags)
    _static(h, state.dynamic, vk.VK_DYNAMIC_STATE_CONSERVATIVE_RASTERIZATION_MODE_EXT, o.conservative_rasterization_mode)
    dynamic_size = vk.VK_DYNAMIC_STATE_EXTRA_PRIMITIVE_OVERESTIMATION_SIZE_EXT in state.dynamic
    h.f32(0.0 if dynamic_size else o.extra_primitive_overestimation_size)


def _line(h: Hasher, o: s.PipelineRasterizationLineStateCreateInfo, state: _State) -> None:
    dynamic = state.dynamic
    enabled = o.stippled_line_enable or vk.VK_DYNAMIC_STATE_LINE_STIPPLE_ENABLE_EXT in dynamic
    stipples = enabled and vk.VK_DYNAMIC_STATE_LINE_STIPPLE not in dynamic
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_LINE_RASTERIZATION_MODE_EXT, o.line_rasterization_mode)
    _static(h, dynamic, vk.VK_DYNAMIC_STATE_LINE_STIPPLE_ENABLE_EXT, o.stippled_line_enable)
    _words(h, o.line_stipple_factor if stipples else 0, o.line_stipple_pattern if stipples else 0)


def _mutable_types(h: Hasher, o: s.MutableDescriptorTypeCreateInfoEXT, _state: _State) -> None:
    h.u32(len(o.mutable_descriptor_type_lists))
    for types in o.mutable_descriptor_type_lists:
        _words(h, len(types.descriptor_types), *types.descriptor_types)


def _shading_rate_attachment(h: Hasher, o: s.FragmentShadingRateAttachmentInfoKHR, _state: _State) -> None:
    reference = o.fragment_shading_rate_attachment
    if reference is None:
        h.u32(0)
        return
    if reference.next:
        raise InvalidArgumentError("Fossilize has no hash of a fragment shading rate attachment with a chain")
    size = o.shading_rate_attachment_texel_size
    _words(h, reference.attachment, reference.layout, reference.aspect_mask, size.width, size.height)


def _depth_stencil_resolve(h: Hasher, o: s.SubpassDescriptionDepthStencilResolve, _state: _State) -> None:
    if o.depth_stencil_resolve_attachment is None:
        h.u32(0)
    else:
        _words(h, o.depth_resolve_mode, o.stencil_resolve_mode)
        _reference(h, o.depth_stencil_resolve_attachment)


def _rendering(h: Hasher, o: s.PipelineRenderingCreateInfo, state: _State) -> None:
    formats = state.parts & _OUTPUT
    if formats:
        h.u32(len(o.color_attachment_formats))
    if state.parts & (_OUTPUT | _FRAGMENT | _PRE_RASTERIZATION):
        h.u32(o.view_mask)
    if formats:
        _words(h, *o.color_attachment_formats, o.depth_attachment_format, o.stencil_attachment_format)


def _color_write(h: Hasher, o: s.PipelineColorWriteCreateInfoEXT, state: _State) -> None:
    h.u32(len(o.color_write_enables))
    if state.given and vk.VK_DYNAMIC_STATE_COLOR_WRITE_ENABLE_EXT not in state.dynamic:
        _words(h, *o.color_write_enables)


def _sample_locations_state(h: Hasher, o: s.PipelineSampleLocationsStateCreateInfoEXT, state: _State) -> None:
    dynamic_enable = vk.VK_DYNAMIC_STATE_SAMPLE_LOCATIONS_ENABLE_EXT in state.dynamic
    _static(h, state.dynamic, vk.VK_DYNAMIC_STATE_SAMPLE_LOCATIONS_ENABLE_EXT, o.sample_locations_enable)
    if not (dynamic_enable or o.sample_locations_enable) or vk.VK_DYNAMIC_STATE_SAMPLE_LOCATIONS_EXT in state.dynamic:
        h.u32(0)
        return
    info = o.sample_locations_info
    size = info.sample_location_grid_size
    _words(h, size.width, size.height, info.sample_locations_per_pixel, len(info.sample_locations))
    _locations(h, info)


def _sample_locations(h: Hasher, o: s.SampleLocationsInfoEXT, _state: _State) -> None:
    size = o.sample_location_grid_size
    _words(h, len(o.sample_locations), size.width, size.height, o.sample_locations_per_pixel)
    _locations(h, o)


def _locations(h: Hasher, o: s.SampleLocationsInfoEXT) -> None:
    for location in o.sample_locations:
        h.f32(location.x)
        h.f32(location.y)


def _custom_border(h: Hasher, o: s.SamplerCustomBorderColorCreateInfoEXT, _state: _State) -> None:
    _words(h, *o.custom_border_color, o.format)


def _input_aspects(h: Hasher, o: s.RenderPassInputAttachmentAspectCreateInfo, _state: _State) -> None:
    h.u32(len(o.aspect_references))
    for reference in o.aspect_references:
        _words(h, reference.subpass, reference.input_attachment_index, reference.aspect_mask)


def _discard_rectangles(h: Hasher, o: s.PipelineDiscardRectangleStateCreateInfoEXT, state: _State) -> None:
    h.u32(o.flags)
    _static(h, state.dynamic, vk.VK_DYNAMIC_STATE_DISCARD_RECTANGLE_MODE_EXT, o.discard_rectangle_mode)
    h.u32(len(o.discard_rectangles))
    if state.given and vk.VK_DYNAMIC_STATE_DISCARD_RECTANGLE_EXT not in state.dynamic:
        for rectangle in o.discard_rectangles:
            _rectangle(h, rectangle)


def _memory_barrier(h: Hasher, o: s.MemoryBarrier2, _state: _State) -> None:
    for mask in (o.src_stage_mask, o.src_access_mask, o.dst_stage_mask, o.dst_access_mask):
        h.u64(mask)


def _shading_rate(h: Hasher, o: s.PipelineFragmentShadingRateStateCreateInfoKHR, state: _State) -> None:
    if state.given and vk.VK_DYNAMIC_STATE_FRAGMENT_SHADING_RATE_KHR not in state.dynamic:
        _words(h, o.fragment_size.width, o.fragment_size.height, *o.combiner_ops)


def _conversion(h: Hasher, o: s.SamplerYcbcrConversionCreateInfo, _state: _State) -> None:
    _words(h, o.format, o.ycbcr_model, o.ycbcr_range, o.components.r, o.components.g, o.components.b, o.components.a)
    _words(h, o.x_chroma_offset, o.y_chroma_offset, o.chroma_filter, o.force_explicit_reconstruction)


def _libraries(h: Hasher, o: s.PipelineLibraryCreateInfoKHR, _state: _State) -> None:
    h.u32(len(o.libraries))
    for library in o.libraries:
        h.u64(_value(library))


def _flags2(h: Hasher, o: s.PipelineCreateFlags2CreateInfo, _state: _State) -> None:
    h.u64(o.flags & ~_NOT_COMPILED)


def _border_components(h: Hasher, o: s.SamplerBorderColorComponentMappingCreateInfoEXT, _state: _State) -> None:
    _words(h, o.srgb, o.components.r, o.components.g, o.components.b, o.components.a)


def _depth_bias(h: Hasher, o: s.DepthBiasRepresentationInfoEXT, state: _State) -> None:
    if vk.VK_DYNAMIC_STATE_DEPTH_BIAS in state.dynamic:
        h.u32(0)
    else:
        _words(h, o.depth_bias_exact, o.depth_bias_representation)


def _density_map(h: Hasher, o: s.RenderPassFragmentDensityMapCreateInfoEXT, _state: _State) -> None:
    _words(h, o.fragment_density_map_attachment.attachment, o.fragment_density_map_attachment.layout)


def _depth_clamp(h: Hasher, o: s.PipelineViewportDepthClampControlCreateInfoEXT, state: _State) -> None:
    if vk.VK_DYNAMIC_STATE_DEPTH_CLAMP_RANGE_EXT in state.dynamic:
        return
    h.u32(o.depth_clamp_mode)
    if o.depth_clamp_mode == _USER_DEFINED_CLAMP_RANGE and o.depth_clamp_range is not None:
        h.f32(o.depth_clamp_range.min_depth_clamp)
        h.f32(o.depth_clamp_range.max_depth_clamp)
    else:
        h.u32(0)


def _input_indices(h: Hasher, o: s.RenderingInputAttachmentIndexInfo, _state: _State) -> None:
    if o.color_attachment_input_indices is None:
        _words(h, o.color_attachment_count, 0)
    else:
        _words(h, len(o.color_attachment_input_indices), *o.color_attachment_input_indices)
    # No depth and no stencil input attachment.
    _words(h, 0xFFFF, 0xFFFF)


_LINKS: Final[dict[type, _Link]] = {
    s.PipelineTessellationDomainOriginStateCreateInfo: _unless(
        vk.VK_DYNAMIC_STATE_TESSELLATION_DOMAIN_ORIGIN_EXT, "domain_origin"
    ),
    s.PipelineVertexInputDivisorStateCreateInfo: _divisors,
    s.PipelineRasterizationDepthClipStateCreateInfoEXT: _unless(
        vk.VK_DYNAMIC_STATE_DEPTH_CLIP_ENABLE_EXT, "depth_clip_enable", "flags"
    ),
    s.PipelineRasterizationStateStreamCreateInfoEXT: _unless(
        vk.VK_DYNAMIC_STATE_RASTERIZATION_STREAM_EXT, "rasterization_stream", "flags"
    ),
    s.RenderPassMultiviewCreateInfo: _sized("view_masks", "view_offsets", "correlation_masks"),
    s.DescriptorSetLayoutBindingFlagsCreateInfo: _sized("binding_flags"),
    s.PipelineColorBlendAdvancedStateCreateInfoEXT: _blend_advanced,
    s.PipelineRasterizationConservativeStateCreateInfoEXT: _conservative,
    s.PipelineRasterizationLineStateCreateInfo: _line,
    s.PipelineShaderStageRequiredSubgroupSizeCreateInfo: _plain("required_subgroup_size"),
    s.MutableDescriptorTypeCreateInfoEXT: _mutable_types,
    s.AttachmentDescriptionStencilLayout: _plain("stencil_initial_layout", "stencil_final_layout"),
    s.FragmentShadingRateAttachmentInfoKHR: _shading_rate_attachment,
    s.SubpassDescriptionDepthStencilResolve: _depth_stencil_resolve,
    s.AttachmentReferenceStencilLayout: _plain("stencil_layout"),
    s.PipelineRenderingCreateInfo: _rendering,
    s.PipelineColorWriteCreateInfoEXT: _color_write,
    s.PipelineSampleLocationsStateCreateInfoEXT: _sample_locations_state,
    s.PipelineRasterizationProvokingVertexStateCreateInfoEXT: _unless(
        vk.VK_DYNAMIC_STATE_PROVOKING_VERTEX_MODE_EXT, "provoking_vertex_mode"
    ),
    s.SamplerCustomBorderColorCreateInfoEXT: _custom_border,
    s.SamplerReductionModeCreateInfo: _plain("reduction_mode"),
    s.RenderPassInputAttachmentAspectCreateInfo: _input_aspects,
    s.PipelineDiscardRectangleStateCreateInfoEXT: _discard_rectangles,
    s.MemoryBarrier2: _memory_barrier,
    s.PipelineFragmentShadingRateStateCreateInfoKHR: _shading_rate,
    s.SamplerYcbcrConversionCreateInfo: _conversion,
    s.GraphicsPipelineLibraryCreateInfoEXT: _plain("flags"),
    s.PipelineLibraryCreateInfoKHR: _libraries,
    s.PipelineViewportDepthClipControlCreateInfoEXT: _unless(
        vk.VK_DYNAMIC_STATE_DEPTH_CLIP_NEGATIVE_ONE_TO_ONE_EXT, "negative_one_to_one"
    ),
    s.PipelineCreateFlags2CreateInfo: _flags2,
    s.RenderPassCreationControlEXT: _plain("disallow_merging"),
    s.SamplerBorderColorComponentMappingCreateInfoEXT: _border_components,
    s.MultisampledRenderToSingleSampledInfoEXT: _plain("multisampled_render_to_single_sampled_enable", "rasterization_samples"),
    s.DepthBiasRepresentationInfoEXT: _depth_bias,
    s.RenderPassFragmentDensityMapCreateInfoEXT: _density_map,
    s.SampleLocationsInfoEXT: _sample_locations,
    s.PipelineRobustnessCreateInfo: _plain("images", "vertex_inputs", "uniform_buffers", "storage_buffers"),
    s.PipelineViewportDepthClampControlCreateInfoEXT: _depth_clamp,
    s.RenderingAttachmentLocationInfo: _sized("color_attachment_locations"),
    s.RenderingInputAttachmentIndexInfo: _input_indices,
    s.RayTracingPipelineClusterAccelerationStructureCreateInfoNV: _plain("allow_cluster_acceleration_structure"),
}

# Applications

_FEATURE_ORDER: Final[dict[int, tuple[int, ...]]] = {
    vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FRAGMENT_SHADING_RATE_ENUMS_FEATURES_NV: (2, 0, 1),
    vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PRIMITIVES_GENERATED_QUERY_FEATURES_EXT: (0, 2, 1),
}
"""Indices of feature members in the order of hashing, where it is not that of writing."""


def _application(h: Hasher, o: ApplicationInfo, _resolve: Resolve) -> None:
    info, features = 0, 0
    if o.api_version is not None:
        part = Hasher()
        _words(part, o.application_version, o.api_version, o.engine_version)
        for name in (o.application_name, o.engine_name):
            if name is None:
                part.u32(0)
            else:
                part.string(name)
        info = part.state
    if o.robust_buffer_access is not None:
        part = Hasher()
        part.u32(o.robust_buffer_access)
        for structure in o.features:
            if not isinstance(structure, FeatureStructure):
                raise InvalidArgumentError(f"features of type {structure.s_type} are not known here, so they have no hash")
            part.s32(structure.s_type)
            for index in _FEATURE_ORDER.get(structure.s_type, range(len(FEATURE_MEMBERS[structure.s_type][1]))):
                part.u32(structure.values[index])
        features = part.state
    h.u64(info)
    h.u64(features)


def _link(h: Hasher, o: ApplicationLink, _resolve: Resolve) -> None:
    h.u64(o.application)
    h.s32(o.tag)
    h.u64(o.hash)


_OBJECTS: Final[dict[type[Struct], Callable[[Hasher, Any, Resolve], None]]] = {
    s.SamplerCreateInfo: _sampler,
    s.DescriptorSetLayoutCreateInfo: _set_layout,
    s.PipelineLayoutCreateInfo: _pipeline_layout,
    s.ShaderModuleCreateInfo: _shader_module,
    s.RenderPassCreateInfo: _render_pass,
    s.RenderPassCreateInfo2: _render_pass2,
    s.GraphicsPipelineCreateInfo: _graphics,
    s.ComputePipelineCreateInfo: _compute,
    s.RayTracingPipelineCreateInfoKHR: _raytracing,
    ApplicationInfo: _application,
    ApplicationLink: _link,
}


# Helpers


def _words(h: Hasher, *values: int) -> None:
    for value in values:
        h.u32(value)


def _static(h: Hasher, dynamic: frozenset[int], state: int, value: int) -> None:
    """A word that is 0 where it is dynamic."""
    h.u32(0 if state in dynamic else value)


def _value(handle: Handle | None) -> int:
    return handle.value if handle is not None else 0


def _find(chain: tuple[Any, ...], cls: type[Any]) -> Any:
    """The first structure of a class in a chain, or None."""
    return next((link for link in chain if type(link) is cls), None)
