"""Pipeline states of Direct3D 12 in Vulkan: what each state becomes, and what is reported. SPIR-V needs no translator."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from direct3d12_strategies import streams
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace
from sodb_example import example

from shaderkiln.descriptions import canonical
from shaderkiln.descriptions.direct3d12.enums import (
    APPEND_ALIGNED_ELEMENT,
    CENTER_MULTISAMPLE_PATTERN,
    NO_RASTERIZED_STREAM,
    STANDARD_MULTISAMPLE_PATTERN,
    Blend,
    ComparisonFunc,
    ConservativeRasterizationMode,
    CullMode,
    DepthWriteMask,
    DxgiFormat,
    FillMode,
    IndexBufferStripCutValue,
    InputClassification,
    LineRasterizationMode,
    LogicOp,
    PipelineStateFlags,
    PrimitiveTopologyType,
    StencilOp,
    ViewInstancingFlags,
)
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.states import (
    BlendDesc,
    DepthStencilDesc,
    DepthStencilDesc1,
    DepthStencilDesc2,
    DepthStencilOpDesc1,
    InputElementDesc,
    InputLayoutDesc,
    RasterizerDesc,
    RasterizerDesc2,
    RenderTargetBlendDesc,
    RenderTargetFormats,
    SampleDesc,
    StreamOutputDeclarationEntry,
    StreamOutputDesc,
    ViewInstanceLocation,
    ViewInstancingDesc,
)
from shaderkiln.descriptions.pipeline import PipelineDescription, UnsupportedPipelineError
from shaderkiln.errors import DamagedInputError, InvalidArgumentError, NotFoundError, UnsupportedError
from shaderkiln.formats import dxbc, root_signature
from shaderkiln.formats.dxbc import SignatureElement
from shaderkiln.formats.root_signature import (
    DescriptorRange,
    DescriptorRangeFlag,
    DescriptorRangeType,
    DescriptorTable,
    RootConstants,
    RootDescriptor,
    RootParameterType,
    RootSignature,
    RootSignatureFlag,
    RootSignatureVersion,
    ShaderVisibility,
    StaticSampler,
)
from shaderkiln.formats.spirv import EntryPoint, inspect_module
from shaderkiln.lowering import state
from shaderkiln.lowering.layout import RootLayout, pipeline_layout, sampler_info
from shaderkiln.lowering.objects import Objects, Reasons
from shaderkiln.lowering.pipelines import DEVICE_FEATURES, direct3d12_application, lower_pipeline_state
from shaderkiln.lowering.shaders import ShaderTranslations, input_control_points
from shaderkiln.shaders.package import NAME, TranslatorPackages
from shaderkiln.vulkan_registry import structures as vk

VS, PS = example.read("spirv/g2_mesh.vs.spv"), example.read("spirv/g2_mesh.ps.spv")
BASE = PipelineStateStream(
    vs=VS,
    ps=PS,
    input_layout=example.input_layout("g2_mesh"),
    render_target_formats=RenderTargetFormats((DxgiFormat.R8G8B8A8_UNORM,)),
    depth_stencil_format=DxgiFormat.D32_FLOAT_S8X24_UINT,
    primitive_topology=PrimitiveTopologyType.TRIANGLE,
)
RANGE = DescriptorRangeType
# Numbers of VkDynamicState.
VIEWPORTS, SCISSORS, TOPOLOGY, STRIDE, RESTART = 1000267003, 1000267004, 1000267002, 1000267005, 1000377004
CONSTANTS, BOUNDS, REFERENCE, BIAS = 4, 5, 8, 3


def lower(stream: PipelineStateStream = BASE, **changes: Any) -> PipelineDescription:
    with ShaderTranslations() as translations:
        return lower_pipeline_state(replace(stream, **changes), translations, "name")


def graphics(**changes: Any) -> Any:
    return lower(**changes).create_info


def reasons(**changes: Any) -> list[str]:
    with pytest.raises(UnsupportedPipelineError) as caught:
        lower(**changes)
    assert isinstance(caught.value, UnsupportedError)
    assert caught.value.code == "DXGI_ERROR_UNSUPPORTED"
    return [reason.name for reason in caught.value.reasons]


def linked(info: Any, kind: type) -> Any:
    return next((link for link in info.next if isinstance(link, kind)), None)


@pytest.fixture(scope="module")
def translations() -> Iterator[ShaderTranslations]:
    try:
        package = TranslatorPackages().get(NAME)
    except NotFoundError:
        pytest.skip(f"needs the shader translator: kiln drivers add {NAME}")
    if package.notice:
        pytest.skip(package.notice)
    with ShaderTranslations() as made:
        yield made


# The whole


def test_equal_descs_give_equal_descriptions_with_everything_they_reach() -> None:
    one, other = lower(), lower(node_mask=1)
    assert one == other
    assert canonical.object_key(one) == canonical.object_key(other)
    info: Any = one.create_info
    assert one.kind == "graphics"
    assert [stage.stage for stage in info.stages] == [1, 0x10]
    assert one.objects[info.stages[0].module] == vk.ShaderModuleCreateInfo(0, VS)
    assert info.layout in one.objects
    assert info.render_pass is None


def test_defaults_are_those_of_the_runtime() -> None:
    info = graphics()
    assert info.rasterization_state.cull_mode == 2  # VK_CULL_MODE_BACK_BIT
    assert info.rasterization_state.front_face == 1  # VK_FRONT_FACE_CLOCKWISE
    assert info.depth_stencil_state.depth_test_enable == info.depth_stencil_state.depth_write_enable == 1
    assert info.depth_stencil_state.depth_compare_op == 1  # VK_COMPARE_OP_LESS
    assert info.multisample_state.sample_mask == (0xFFFFFFFF,)
    assert info.multisample_state.rasterization_samples == 1
    assert info.dynamic_state.dynamic_states == (TOPOLOGY, VIEWPORTS, SCISSORS, STRIDE)
    assert info.viewport_state == vk.PipelineViewportStateCreateInfo()
    assert info.base_pipeline_index == -1


def test_the_application_has_the_robustness_that_direct3d_promises() -> None:
    application = direct3d12_application()
    assert application.features == tuple(sorted(DEVICE_FEATURES))
    assert [name.rsplit(".")[-1] for name in application.features] == [
        "robustBufferAccess", "nullDescriptor", "robustBufferAccess2",
    ]  # fmt: skip
    assert application.api_version >> 12 & 0x3FF == 3


def test_without_shaders_there_is_no_pipeline() -> None:
    with pytest.raises(InvalidArgumentError, match="no shader"):
        lower(vs=None, ps=b"")
    with pytest.raises(InvalidArgumentError, match="needs a vertex shader"):
        lower(vs=None)


@pytest.mark.parametrize("damage", [VS[:-4], VS[:7], b"\0" * 64, b"DXBC" + bytes(60)])
def test_damaged_shaders_are_named_as_such(damage: bytes) -> None:
    with pytest.raises((DamagedInputError, InvalidArgumentError)):
        lower(vs=damage)


def test_a_shader_of_another_stage_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="ps: the shader has no entry point"):
        lower(ps=VS)


# Vertex input


def entry_of(code: bytes) -> EntryPoint:
    return inspect_module(code).entry_points[0]


def element(name: str, format_: DxgiFormat, **more: Any) -> InputElementDesc:
    return InputElementDesc(name, format=format_, **more)


def signature(*names: str, system: dict[str, int] | None = None) -> list[SignatureElement]:
    return [SignatureElement(n, 0, (system or {}).get(n, 0), 3, 10 - i, 15, 15) for i, n in enumerate(names)]


def vertex_input(layout: InputLayoutDesc, inputs: list[SignatureElement] | None, locations: tuple[int, ...]) -> Any:
    found = Reasons()
    entry = EntryPoint(0, "main", (), {}, (), frozenset(), frozenset(), False, False, locations, (), 0, ())
    made = state.vertex_input(layout, inputs, entry, found)
    found.check()
    return made


def test_elements_are_matched_by_semantic_without_case_and_lie_at_the_signatures_registers() -> None:
    layout = InputLayoutDesc(
        (element("color", DxgiFormat.R8G8B8A8_UNORM), element("Position", DxgiFormat.R32G32_FLOAT, input_slot=3))
    )
    made = vertex_input(layout, signature("POSITION", "COLOR", "SV_VertexID", system={"SV_VertexID": 6}), (9, 10))
    # VK_FORMAT_R8G8B8A8_UNORM is 37, VK_FORMAT_R32G32_SFLOAT 103.
    assert made.vertex_attribute_descriptions == (
        vk.VertexInputAttributeDescription(9, 0, 37, 0),
        vk.VertexInputAttributeDescription(10, 3, 103, 0),
    )
    assert [b.binding for b in made.vertex_binding_descriptions] == [0, 3]


def test_appended_elements_are_aligned_to_their_size_up_to_four_bytes_for_each_slot() -> None:
    append = {"aligned_byte_offset": APPEND_ALIGNED_ELEMENT}
    layout = InputLayoutDesc(
        (
            element("A", DxgiFormat.R8_UNORM, **append),
            element("B", DxgiFormat.R16_FLOAT, **append),
            element("X", DxgiFormat.R32_FLOAT, input_slot=1, **append),
            element("C", DxgiFormat.R8G8B8A8_UNORM, **append),
            element("UNUSED", DxgiFormat.R32G32B32_FLOAT, **append),
            element("D", DxgiFormat.R16G16B16A16_FLOAT, **append),
        )
    )
    made = vertex_input(layout, signature("A", "B", "C", "D", "X"), (6, 7, 8, 9, 10))
    offsets = {a.location: (a.binding, a.offset) for a in made.vertex_attribute_descriptions}
    assert offsets == {10: (0, 0), 9: (0, 2), 8: (0, 4), 7: (0, 20), 6: (1, 0)}


def test_instance_step_rates() -> None:
    def instanced(name: str, slot: int, rate: int) -> InputElementDesc:
        class_ = InputClassification.PER_INSTANCE_DATA
        return element(name, DxgiFormat.R32_UINT, input_slot=slot, input_slot_class=class_, instance_data_step_rate=rate)

    layout = InputLayoutDesc(
        (instanced("A", 0, 1), instanced("B", 1, 0), instanced("C", 2, 7), element("D", DxgiFormat.R32_UINT, input_slot=3))
    )
    made = vertex_input(layout, signature("A", "B", "C", "D"), ())
    assert [b.input_rate for b in made.vertex_binding_descriptions] == [1, 1, 1, 0]
    (divisors,) = made.next
    assert [(d.binding, d.divisor) for d in divisors.vertex_binding_divisors] == [(1, 0), (2, 7)]


def test_what_the_shader_reads_and_no_element_provides_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="no element provides NORMAL0"):
        vertex_input(InputLayoutDesc((element("POSITION", DxgiFormat.R32_FLOAT),)), signature("POSITION", "NORMAL"), (9, 10))


def test_spirv_has_its_locations_in_the_order_of_the_elements() -> None:
    info = graphics()
    assert [(a.location, a.binding, a.offset) for a in info.vertex_input_state.vertex_attribute_descriptions] == [
        (0, 0, 0), (1, 0, 12), (3, 1, 0),  # the compiler took out an input that the shader does not use
    ]  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="location 3"):
        graphics(input_layout=InputLayoutDesc(example.input_layout("g2_mesh").elements[:3]))


# Topology


def test_the_topology_is_dynamic_within_its_class() -> None:
    for class_, number in (
        (PrimitiveTopologyType.POINT, 0),
        (PrimitiveTopologyType.LINE, 1),
        (PrimitiveTopologyType.TRIANGLE, 3),
    ):
        info = graphics(primitive_topology=class_)
        assert (info.input_assembly_state.topology, info.input_assembly_state.primitive_restart_enable) == (number, 0)
        assert TOPOLOGY in info.dynamic_state.dynamic_states
    assert reasons(primitive_topology=PrimitiveTopologyType.UNDEFINED) == ["primitive_topology"]
    assert reasons(primitive_topology=PrimitiveTopologyType.PATCH) == ["primitive_topology"]


@pytest.mark.parametrize("cut", [IndexBufferStripCutValue.VALUE_0xFFFF, IndexBufferStripCutValue.VALUE_0xFFFFFFFF, None])
def test_strips_restart_and_lists_do_not(cut: IndexBufferStripCutValue | None) -> None:
    how: dict[str, Any] = {"ib_strip_cut_value": cut}
    if cut is None:
        how = {"flags": PipelineStateFlags.DYNAMIC_INDEX_BUFFER_STRIP_CUT}
    for class_, strip in ((PrimitiveTopologyType.LINE, 2), (PrimitiveTopologyType.TRIANGLE, 4)):
        info = graphics(primitive_topology=class_, **how)
        assert (info.input_assembly_state.topology, info.input_assembly_state.primitive_restart_enable) == (strip, 1)
        assert RESTART in info.dynamic_state.dynamic_states
    info = graphics(primitive_topology=PrimitiveTopologyType.POINT, **how)
    assert info.input_assembly_state.primitive_restart_enable == 0
    assert RESTART not in info.dynamic_state.dynamic_states


# Rasterizer


def rasterizer(desc: RasterizerDesc | RasterizerDesc2, **changes: Any) -> Any:
    return graphics(rasterizer=desc, **changes).rasterization_state


def test_fill_cull_and_winding() -> None:
    made = rasterizer(RasterizerDesc(FillMode.WIREFRAME, CullMode.FRONT, front_counter_clockwise=True))
    assert (made.polygon_mode, made.cull_mode, made.front_face) == (1, 1, 0)
    assert rasterizer(RasterizerDesc(cull_mode=CullMode.NONE)).cull_mode == 0


def test_depth_is_always_clamped_and_clipped_where_direct3d_clips() -> None:
    for clips in (True, False):
        made = rasterizer(RasterizerDesc(depth_clip_enable=clips))
        assert made.depth_clamp_enable == 1
        assert linked(made, vk.PipelineRasterizationDepthClipStateCreateInfoEXT).depth_clip_enable == int(clips)


def test_depth_bias() -> None:
    made = rasterizer(RasterizerDesc(depth_bias=3, depth_bias_clamp=0.5, slope_scaled_depth_bias=-1.5))
    assert (made.depth_bias_enable, made.depth_bias_constant_factor, made.depth_bias_clamp, made.depth_bias_slope_factor) == (
        1, 3.0, 0.5, -1.5,
    )  # fmt: skip
    assert rasterizer(RasterizerDesc(depth_bias_clamp=0.5)).depth_bias_enable == 0
    info = graphics(rasterizer=RasterizerDesc(depth_bias=3), flags=PipelineStateFlags.DYNAMIC_DEPTH_BIAS)
    assert info.rasterization_state.depth_bias_enable == 1
    assert info.rasterization_state.depth_bias_constant_factor == 0.0
    assert BIAS in info.dynamic_state.dynamic_states


def test_conservative_rasterization_overestimates() -> None:
    made = rasterizer(RasterizerDesc(conservative_raster=ConservativeRasterizationMode.ON))
    link = linked(made, vk.PipelineRasterizationConservativeStateCreateInfoEXT)
    assert (link.conservative_rasterization_mode, link.extra_primitive_overestimation_size) == (1, 0.0)
    assert linked(rasterizer(RasterizerDesc()), vk.PipelineRasterizationConservativeStateCreateInfoEXT) is None


def test_lines_have_their_mode_where_there_are_lines() -> None:
    kind = vk.PipelineRasterizationLineStateCreateInfo
    wide = RasterizerDesc2(line_rasterization_mode=LineRasterizationMode.QUADRILATERAL_WIDE)
    made = rasterizer(wide, primitive_topology=PrimitiveTopologyType.LINE)
    assert linked(made, kind).line_rasterization_mode == 1
    assert made.line_width == pytest.approx(1.4)
    triangles = rasterizer(wide)
    assert linked(triangles, kind) is None
    assert triangles.line_width == 1.0
    assert linked(rasterizer(RasterizerDesc(FillMode.WIREFRAME)), kind).line_rasterization_mode == 2
    covered = rasterizer(
        RasterizerDesc(FillMode.WIREFRAME), blend=BlendDesc(alpha_to_coverage_enable=True), sample_desc=SampleDesc(4)
    )
    assert linked(covered, kind) is None


# Samples


def test_sample_counts_masks_and_coverage() -> None:
    info = graphics(sample_desc=SampleDesc(8), sample_mask=0x5A, blend=BlendDesc(alpha_to_coverage_enable=True))
    made = info.multisample_state
    assert (made.rasterization_samples, made.sample_mask, made.alpha_to_coverage_enable) == (8, (0x5A,), 1)
    assert graphics(sample_desc=SampleDesc(4, STANDARD_MULTISAMPLE_PATTERN)).multisample_state.rasterization_samples == 4


def test_qualities_and_odd_counts_are_reported() -> None:
    assert reasons(sample_desc=SampleDesc(4, 2)) == ["sample_desc.quality"]
    assert reasons(sample_desc=SampleDesc(4, CENTER_MULTISAMPLE_PATTERN)) == ["sample_desc.quality"]
    assert reasons(sample_desc=SampleDesc(3)) == ["sample_desc.count"]


def test_a_forced_sample_count_needs_a_pipeline_without_attachments() -> None:
    forced = RasterizerDesc(forced_sample_count=8)
    assert reasons(rasterizer=forced) == ["rasterizer.forced_sample_count"]
    assert graphics(rasterizer=RasterizerDesc(forced_sample_count=1)).multisample_state.rasterization_samples == 1
    bare = graphics(rasterizer=forced, render_target_formats=None, depth_stencil_format=None)
    assert bare.multisample_state.rasterization_samples == 8


# Depth and stencil


def test_stencil_faces() -> None:
    front = DepthStencilOpDesc1(StencilOp.REPLACE, StencilOp.INCR, StencilOp.DECR_SAT, ComparisonFunc.GREATER, 0x0F, 0xF0)
    back = DepthStencilOpDesc1(stencil_read_mask=1, stencil_write_mask=2)
    info = graphics(depth_stencil=DepthStencilDesc2(stencil_enable=True, front_face=front, back_face=back))
    made = info.depth_stencil_state
    assert made.front == vk.StencilOpState(
        fail_op=2, pass_op=4, depth_fail_op=6, compare_op=4, compare_mask=0x0F, write_mask=0xF0, reference=0
    )
    assert made.back == vk.StencilOpState(0, 0, 0, 7, 1, 2, 0)
    assert REFERENCE in info.dynamic_state.dynamic_states


def test_depth_tests() -> None:
    read_only = DepthStencilDesc(depth_write_mask=DepthWriteMask.ZERO, depth_func=ComparisonFunc.GREATER_EQUAL)
    made = graphics(depth_stencil=read_only).depth_stencil_state
    assert (made.depth_test_enable, made.depth_write_enable, made.depth_compare_op) == (1, 0, 6)
    off = graphics(depth_stencil=DepthStencilDesc(depth_enable=False)).depth_stencil_state
    assert (off.depth_test_enable, off.depth_write_enable) == (0, 0)
    info = graphics(depth_stencil=DepthStencilDesc1(depth_bounds_test_enable=True))
    assert (info.depth_stencil_state.depth_bounds_test_enable, info.depth_stencil_state.max_depth_bounds) == (1, 1.0)
    assert BOUNDS in info.dynamic_state.dynamic_states


def test_tests_without_an_attachment_are_off() -> None:
    desc = DepthStencilDesc1(stencil_enable=True, depth_bounds_test_enable=True)
    info = graphics(depth_stencil=desc, depth_stencil_format=None)
    made = info.depth_stencil_state
    assert (made.depth_test_enable, made.stencil_test_enable, made.depth_bounds_test_enable) == (0, 0, 0)
    assert not {REFERENCE, BOUNDS} & set(info.dynamic_state.dynamic_states)
    depth_only = graphics(depth_stencil=desc, depth_stencil_format=DxgiFormat.D32_FLOAT).depth_stencil_state
    assert (depth_only.depth_test_enable, depth_only.stencil_test_enable) == (1, 0)
    assert reasons(depth_stencil_format=DxgiFormat.R8_UNORM)[0] == "depth_stencil_format"


# Blend and attachments

ALPHA = RenderTargetBlendDesc(True, src_blend=Blend.SRC_ALPHA, dest_blend=Blend.INV_SRC_ALPHA, render_target_write_mask=7)  # type: ignore[arg-type]


def test_blending_of_each_target() -> None:
    two = RenderTargetFormats((DxgiFormat.R8G8B8A8_UNORM, DxgiFormat.R16G16B16A16_FLOAT))
    one = graphics(render_target_formats=two, blend=BlendDesc(render_target=(ALPHA,))).color_blend_state
    expected = vk.PipelineColorBlendAttachmentState(1, 6, 7, 0, 1, 0, 0, 7)
    assert one.attachments == (expected, expected)
    independent = BlendDesc(independent_blend_enable=True, render_target=(RenderTargetBlendDesc(), ALPHA))
    each = graphics(render_target_formats=two, blend=independent).color_blend_state
    assert each.attachments == (vk.PipelineColorBlendAttachmentState(0, 1, 0, 0, 1, 0, 0, 15), expected)


def test_blend_constants_are_dynamic_where_they_are_used() -> None:
    factor = RenderTargetBlendDesc(True, src_blend=Blend.BLEND_FACTOR)
    assert CONSTANTS in graphics(blend=BlendDesc(render_target=(factor,))).dynamic_state.dynamic_states
    unused = replace(factor, blend_enable=False)
    assert CONSTANTS not in graphics(blend=BlendDesc(render_target=(unused,))).dynamic_state.dynamic_states


def test_integers_do_not_blend_and_formats_without_alpha_have_one() -> None:
    blend = BlendDesc(
        render_target=(
            replace(ALPHA, dest_blend=Blend.INV_DEST_ALPHA, src_blend=Blend.DEST_ALPHA, render_target_write_mask=15),
        )
    )
    integer = graphics(blend=blend, render_target_formats=RenderTargetFormats((DxgiFormat.R32_UINT,)))
    assert integer.color_blend_state.attachments[0].blend_enable == 0
    without = graphics(blend=blend, render_target_formats=RenderTargetFormats((DxgiFormat.B8G8R8X8_UNORM,)))
    made = without.color_blend_state.attachments[0]
    assert (made.src_color_blend_factor, made.dst_color_blend_factor, made.color_write_mask) == (1, 0, 7)


def test_logic_operations() -> None:
    xor = RenderTargetBlendDesc(logic_op_enable=True, logic_op=LogicOp.XOR)
    made = graphics(blend=BlendDesc(render_target=(xor,))).color_blend_state
    assert (made.logic_op_enable, made.logic_op) == (1, 6)
    two = RenderTargetFormats((DxgiFormat.R8_UNORM,) * 2)
    mixed = BlendDesc(independent_blend_enable=True, render_target=(xor, RenderTargetBlendDesc()))
    assert reasons(render_target_formats=two, blend=mixed) == ["blend.render_target.logic_op"]


def test_attachments_are_those_of_dynamic_rendering() -> None:
    formats = RenderTargetFormats((DxgiFormat.R8G8B8A8_UNORM_SRGB, DxgiFormat.UNKNOWN, DxgiFormat.R11G11B10_FLOAT))
    (made,) = graphics(render_target_formats=formats).next
    assert made == vk.PipelineRenderingCreateInfo(0, (43, 0, 122), 130, 130)
    assert reasons(render_target_formats=RenderTargetFormats((DxgiFormat.R32_TYPELESS,))) == ["render_target_formats[0]"]


def test_views_are_layers() -> None:
    def views(*places: tuple[int, int], flags: ViewInstancingFlags = ViewInstancingFlags.NONE) -> ViewInstancingDesc:
        return ViewInstancingDesc(tuple(ViewInstanceLocation(*place) for place in places), flags)

    assert graphics(view_instancing=views((0, 0), (0, 1), (0, 2))).next[0].view_mask == 0b111
    assert graphics(view_instancing=views()).next[0].view_mask == 0
    assert reasons(view_instancing=views((0, 0), (1, 1))) == ["view_instancing.view_instance_locations[1]"]
    assert reasons(view_instancing=views((0, 1), (0, 0)))[0] == "view_instancing.view_instance_locations[0]"
    masked = views((0, 0), flags=ViewInstancingFlags.ENABLE_VIEW_INSTANCE_MASKING)
    assert reasons(view_instancing=masked) == ["view_instancing.flags"]


def test_every_reason_is_reported_at_once() -> None:
    names = reasons(
        sample_desc=SampleDesc(3, 1),
        render_target_formats=RenderTargetFormats((DxgiFormat.NV12,)),
        primitive_topology=PrimitiveTopologyType.UNDEFINED,
    )
    assert sorted(names) == ["primitive_topology", "render_target_formats[0]", "sample_desc.count", "sample_desc.quality"]


# Stream output


def test_stream_output_of_spirv_is_reported_and_no_rasterized_stream_discards() -> None:
    declared = StreamOutputDesc((StreamOutputDeclarationEntry(0, "POSITION", 0, 0, 4, 0),), (16,))
    assert reasons(stream_output=declared) == ["stream_output"]
    assert (
        graphics(
            stream_output=StreamOutputDesc(rasterized_stream=NO_RASTERIZED_STREAM)
        ).rasterization_state.rasterizer_discard_enable
        == 1
    )
    second = graphics(stream_output=StreamOutputDesc(rasterized_stream=1)).rasterization_state
    assert linked(second, vk.PipelineRasterizationStateStreamCreateInfoEXT).rasterization_stream == 1


@pytest.mark.driver
def test_stream_output_becomes_transform_feedback_with_its_gaps(translations: ShaderTranslations) -> None:
    vs = example.read("dxil/g2_mesh.vs.dxil")
    declared = (
        StreamOutputDeclarationEntry(0, "normal", 0, 0, 3, 0),
        StreamOutputDeclarationEntry(0, None, 0, 0, 2, 0),
        StreamOutputDeclarationEntry(0, "COLOR", 0, 0, 4, 0),
    )
    root = example.fitting_root_signature(vs)
    stream = PipelineStateStream(
        vs=vs, root_signature=root, stream_output=StreamOutputDesc(declared, (36,), NO_RASTERIZED_STREAM),
        primitive_topology=PrimitiveTopologyType.POINT, input_layout=example.input_layout("g2_mesh"),
    )  # fmt: skip
    made = lower_pipeline_state(stream, translations)
    info: Any = made.create_info
    code = made.objects[info.stages[0].module].code  # type: ignore[attr-defined]
    assert 53 in inspect_module(code).capabilities  # TransformFeedback
    words = struct.unpack(f"<{len(code) // 4}I", code)
    # OpDecorate is 71, with 4 words where there is a number: Offset is 35, XfbStride 37.
    numbers = [words[i + 2 : i + 4] for i in range(len(words) - 3) if words[i] == 4 << 16 | 71]
    assert sorted(number for decoration, number in numbers if decoration == 35) == [0, 20]
    assert {number for decoration, number in numbers if decoration == 37} == {36}
    assert info.rasterization_state.rasterizer_discard_enable == 1
    wrong = StreamOutputDesc((StreamOutputDeclarationEntry(0, "NOSUCH", 0, 0, 2, 0),), (8,))
    with pytest.raises(InvalidArgumentError, match=r"declarations\[0\]: no shader writes NOSUCH0"):
        lower_pipeline_state(replace(stream, stream_output=wrong), translations)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(streams())
def test_whatever_the_states_are_there_is_a_description_or_a_documented_error(stream: PipelineStateStream) -> None:
    stream = replace(stream, vs=VS, ps=PS, hs=None, ds=None, gs=None, cs=None, as_=None, ms=None, root_signature=None,
                     serialized_root_signature=None)  # fmt: skip
    try:
        made = lower(stream)
    except (UnsupportedPipelineError, InvalidArgumentError, DamagedInputError):
        return
    assert canonical.object_key(made) == canonical.object_key(lower(stream))


# Root signatures

SIGNATURE = RootSignature(
    (
        RootConstants(0, 0, 4, ShaderVisibility.VERTEX),
        RootConstants(1, 0, 2, ShaderVisibility.PIXEL),
        RootDescriptor(RootParameterType.CBV, 2),
        DescriptorTable(
            (DescriptorRange(RANGE.SRV, 3, 0), DescriptorRange(RANGE.UAV, 1, 0, flags=DescriptorRangeFlag.DESCRIPTORS_VOLATILE))
        ),
        DescriptorTable((DescriptorRange(RANGE.SAMPLER, 1, 0),), ShaderVisibility.PIXEL),
    ),
    (StaticSampler(5),),
    RootSignatureFlag.DENY_HULL_SHADER_ROOT_ACCESS,
)


def lowered_layout(signature_: RootSignature, stages: int = 0x1F) -> tuple[Any, list[Any], Objects]:
    from shaderkiln.descriptions.direct3d12.binding_layout import binding_layout

    objects, found = Objects(), Reasons()
    handle = pipeline_layout(objects, RootLayout(signature_, binding_layout(signature_)), stages, found)
    found.check()
    info: Any = objects.found[handle]
    return info, [objects.found[set_] for set_ in info.set_layouts], objects


def test_a_root_signature_becomes_sets_push_constants_and_immutable_samplers() -> None:
    info, sets, objects = lowered_layout(SIGNATURE)
    assert info.push_constant_ranges == (vk.PushConstantRange(0x1, 0, 16), vk.PushConstantRange(0x10, 16, 8))
    root, table, samplers, static = sets
    # VkDescriptorType: 0 sampler, 2 sampled image, 3 storage image, 4 and 5 texel buffers, 6 uniform buffer. No hull stage.
    assert [(b.binding, b.descriptor_type, b.descriptor_count, b.stage_flags) for b in root.bindings] == [(0, 6, 1, 0x1D)]
    assert [(b.descriptor_type, b.descriptor_count) for b in table.bindings] == [(4, 3), (2, 3), (5, 1), (3, 1), (5, 1)]
    assert [(b.descriptor_type, b.stage_flags) for b in samplers.bindings] == [(0, 0x10)]
    (binding,) = static.bindings
    assert len(binding.immutable_samplers) == 1
    assert isinstance(objects.found[binding.immutable_samplers[0]], vk.SamplerCreateInfo)
    # Partially bound 4; volatile ones also update after bind 1 and update unused while pending 2, in a pool of that kind.
    assert table.next[0].binding_flags == (4, 4, 7, 7, 7)
    assert (root.flags, table.flags, samplers.flags, static.flags) == (0, 2, 0, 0)


def test_descriptors_of_version_1_0_are_volatile() -> None:
    old = RootSignature((DescriptorTable((DescriptorRange(RANGE.CBV, 1, 0),)),), version=RootSignatureVersion.V1_0)
    _, sets, _ = lowered_layout(old)
    assert sets[1].next[0].binding_flags == (7,)


def test_static_samplers() -> None:
    def lowered(**fields: Any) -> vk.SamplerCreateInfo:
        found = Reasons()
        made = sampler_info(StaticSampler(0, **fields), found)
        found.check()
        return made

    # D3D12_FILTER_MIN_MAG_POINT_MIP_LINEAR is 0x1, MIN_LINEAR_MAG_MIP_POINT 0x10, MIN_POINT_MAG_LINEAR_MIP_POINT 0x4.
    assert [(s.min_filter, s.mag_filter, s.mipmap_mode) for s in (lowered(filter=f) for f in (0x1, 0x10, 0x4))] == [
        (0, 0, 1), (1, 0, 0), (0, 1, 0),
    ]  # fmt: skip
    shadow = lowered(filter=0x80 | 0x14, comparison=2, address_u=4, border_color=2)  # COMPARISON_MIN_MAG_LINEAR_MIP_POINT, LESS
    assert (shadow.compare_enable, shadow.compare_op, shadow.address_mode_u, shadow.border_color) == (1, 1, 3, 4)
    anisotropic = lowered(filter=0x55, max_anisotropy=8)
    assert (anisotropic.anisotropy_enable, anisotropic.max_anisotropy, anisotropic.compare_enable) == (1, 8.0, 0)
    assert lowered(filter=0x100 | 0x15).next == (vk.SamplerReductionModeCreateInfo(1),)  # MINIMUM
    with pytest.raises(UnsupportedPipelineError):
        lowered(address_v=9)


def set_layouts(made: PipelineDescription) -> list[list[tuple[int, int, int, int]]]:
    info: Any = made.create_info
    layout: Any = made.objects[info.layout]
    sets: list[Any] = [made.objects[handle] for handle in layout.set_layouts]
    return [[(b.binding, b.descriptor_type, b.descriptor_count, b.stage_flags) for b in s.bindings] for s in sets]


def test_spirv_that_fits_the_scheme_has_the_root_signatures_layout_and_other_its_own() -> None:
    # The shaders read uniform buffers (VkDescriptorType 6) of set 0.
    used = [(b.set, b.binding, b.descriptor_types) for code in (VS, PS) for b in entry_of(code).bindings]
    assert all(set_ == 0 and 6 in types for set_, _, types in used)
    own = set_layouts(lower())
    assert [(binding, kind, count) for binding, kind, count, _ in own[0]] == sorted({(b, 6, 1) for _, b, _ in used})
    last = max(binding for _, binding, _ in used)
    parameters = tuple(RootDescriptor(RootParameterType.CBV, register) for register in range(last + 4))
    fitting = lower(root_signature=root_signature.serialize(RootSignature(parameters)))
    assert set_layouts(fitting) == [[(register, 6, 1, 0x1F) for register in range(last + 4)]]
    unfit = RootSignature(tuple(RootDescriptor(RootParameterType.UAV, register) for register in range(last + 1)))
    assert set_layouts(lower(root_signature=root_signature.serialize(unfit))) == own


@pytest.mark.driver
def test_a_direct3d_shader_needs_a_root_signature(translations: ShaderTranslations) -> None:
    vs = example.read("dxil/g2_mesh.vs.dxil")
    with pytest.raises(InvalidArgumentError, match="root_signature"):
        lower_pipeline_state(replace(BASE, vs=vs, ps=None), translations)


@pytest.mark.driver
def test_what_cannot_be_translated_is_reported_with_the_translators_reason(translations: ShaderTranslations) -> None:
    code = example.read("dxil/c2_reduce.cs.sm6_6.dxil")
    with pytest.raises(UnsupportedPipelineError) as caught:
        lower_pipeline_state(PipelineStateStream(cs=code, root_signature=example.fitting_root_signature(code)), translations)
    (reason,) = caught.value.reasons
    assert reason.name == "cs"
    assert "not translatable here" in reason.text
    assert "createHandleFromBinding" in reason.text


@pytest.mark.driver
def test_locations_are_those_that_the_translated_shader_reads(translations: ShaderTranslations) -> None:
    for folder, extension, sources in example.GRAPHICS[:2]:
        for source in sources:
            vs = example.read(f"{folder}/{source}.vs.{extension}")
            stream = replace(
                BASE,
                vs=vs,
                ps=None,
                input_layout=example.input_layout(source),
                root_signature=example.fitting_root_signature(vs),
            )
            info: Any = lower_pipeline_state(stream, translations).create_info
            made = lower_pipeline_state(stream, translations)
            entry = inspect_module(made.objects[info.stages[0].module].code).entry_points[0]  # type: ignore[attr-defined]
            attributes = {a.location for a in info.vertex_input_state.vertex_attribute_descriptions}
            assert set(entry.input_locations) <= attributes
            register = {e.semantic_name: e.register for e in dxbc.parse(vs).input_signature or ()}
            for number, wanted in enumerate(stream.input_layout.elements):  # type: ignore[union-attr]
                assert register[wanted.semantic_name] in attributes, number


@pytest.mark.driver
def test_dual_source_blending_reaches_the_pixel_shader(translations: ShaderTranslations) -> None:
    ps = example.read("stages/d1.ps.dxbc")
    dual = RenderTargetBlendDesc(True, src_blend=Blend.SRC1_COLOR, dest_blend=Blend.INV_SRC1_ALPHA)
    vs = example.read("dxil/g1_fullscreen.vs.dxil")
    stream = replace(BASE, vs=vs, ps=ps, root_signature=example.fitting_root_signature(vs), input_layout=None)
    plain = lower_pipeline_state(stream, translations)
    blended = lower_pipeline_state(replace(stream, blend=BlendDesc(render_target=(dual,))), translations)

    def outputs(made: PipelineDescription) -> tuple[int, ...]:
        info: Any = made.create_info
        return inspect_module(made.objects[info.stages[1].module].code).entry_points[0].output_locations  # type: ignore[attr-defined]

    assert outputs(plain) == (0, 1)
    assert outputs(blended) == (0, 0)


@pytest.mark.driver
def test_tessellation_and_geometry_stages(translations: ShaderTranslations) -> None:
    hs, ds, gs = (example.read(f"stages/t1.{stage}.dxbc") for stage in ("hs", "ds", "gs"))
    assert input_control_points(hs) == 3
    vs = example.read("dxil/g1_fullscreen.vs.dxil")
    root = example.fitting_root_signature(vs)
    stream = replace(BASE, vs=vs, hs=hs, ds=ds, gs=gs, ps=None, root_signature=root, input_layout=None,
                     primitive_topology=PrimitiveTopologyType.PATCH)  # fmt: skip
    info: Any = lower_pipeline_state(stream, translations).create_info
    assert [stage.stage for stage in info.stages] == [0x1, 0x2, 0x4, 0x8]
    assert info.tessellation_state.patch_control_points == 3
    assert info.input_assembly_state.topology == 10
    bare: Any = lower_pipeline_state(stream, translations, with_code=False).create_info
    assert bare == replace(info, stages=tuple(replace(stage, module=None) for stage in info.stages))
    assert TOPOLOGY not in info.dynamic_state.dynamic_states
