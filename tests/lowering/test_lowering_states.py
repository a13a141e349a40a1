"""Each state of Direct3D 12 alone, with the Vulkan structure that it becomes written out.

Expected numbers are those of the Vulkan specification, meanings those of the D3D12 documentation. The
stream is one ``with_defaults``, as the functions ask for.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from shaderkiln.descriptions.direct3d12.enums import (
    APPEND_ALIGNED_ELEMENT,
    NO_RASTERIZED_STREAM,
    STANDARD_MULTISAMPLE_PATTERN,
    Blend,
    BlendOp,
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
    DepthStencilDesc2,
    DepthStencilOpDesc1,
    InputElementDesc,
    InputLayoutDesc,
    RasterizerDesc2,
    RenderTargetBlendDesc,
    RenderTargetFormats,
    SampleDesc,
    StreamOutputDesc,
    ViewInstanceLocation,
    ViewInstancingDesc,
)
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats.dxbc import SignatureElement
from shaderkiln.formats.spirv import EntryPoint
from shaderkiln.lowering import state
from shaderkiln.lowering.objects import Reasons
from shaderkiln.vulkan_registry import structures as vk

RGBA, BGRX = DxgiFormat.R8G8B8A8_UNORM, DxgiFormat.B8G8R8X8_UNORM
DEPTH_STENCIL = DxgiFormat.D32_FLOAT_S8X24_UINT


def stream(**fields: Any) -> PipelineStateStream:
    defaults: dict[str, Any] = {
        "vs": b"v",
        "render_target_formats": RenderTargetFormats((RGBA,)),
        "depth_stencil_format": DEPTH_STENCIL,
        "primitive_topology": PrimitiveTopologyType.TRIANGLE,
    }
    return PipelineStateStream(**{**defaults, **fields}).with_defaults()


def entry(*modes: int, locations: tuple[int, ...] = ()) -> EntryPoint:
    return EntryPoint(
        0, "main", (), dict.fromkeys(modes, ()), (), frozenset(), frozenset(), False, False, locations, (), 0, ()
    )  # fmt: skip


def reported(reasons: Reasons) -> list[tuple[str, str | int | float]]:
    return [(reason.name, reason.needed) for reason in reasons.found]


# Rasterizer


DEPTH_CLIP = vk.PipelineRasterizationDepthClipStateCreateInfoEXT
LINE = vk.PipelineRasterizationLineStateCreateInfo


def rasterization(lines: bool = False, **fields: Any) -> vk.PipelineRasterizationStateCreateInfo:
    reasons = Reasons()
    made = state.rasterization(stream(**fields), lines, reasons)
    reasons.check()
    return made


def test_a_rasterizer_as_a_whole() -> None:
    desc = RasterizerDesc2(FillMode.WIREFRAME, CullMode.FRONT, True, 1.5, 2.5, 3.5, False)
    # flags, depth clamp, discard, VK_POLYGON_MODE_LINE, VK_CULL_MODE_FRONT_BIT, counter clockwise, bias: on, constant, clamp, slope
    assert rasterization(rasterizer=desc) == vk.PipelineRasterizationStateCreateInfo(
        0, 1, 0, 1, 1, 0, 1, 1.5, 2.5, 3.5, 1.0, (DEPTH_CLIP(0, 0),)
    )
    assert rasterization(rasterizer=RasterizerDesc2()) == vk.PipelineRasterizationStateCreateInfo(
        0, 1, 0, 0, 2, 1, 0, 0.0, 0.0, 0.0, 1.0, (DEPTH_CLIP(0, 1),)
    )


@pytest.mark.parametrize(
    ("constant", "clamp", "slope", "expected"),
    [
        (1.5, 0.0, 0.0, (1, 1.5, 0.0, 0.0)),
        (0.0, 0.0, -1.5, (1, 0.0, 0.0, -1.5)),
        (-1.0, 2.0, 0.0, (1, -1.0, 2.0, 0.0)),
        (1.0, 2.0, 1.0, (1, 1.0, 2.0, 1.0)),
        (0.0, 2.0, 0.0, (0, 0.0, 0.0, 0.0)),
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_depth_bias_is_on_where_it_moves_anything(
    constant: float, clamp: float, slope: float, expected: tuple[float, ...], dynamic: bool
) -> None:
    desc = RasterizerDesc2(depth_bias=constant, depth_bias_clamp=clamp, slope_scaled_depth_bias=slope)
    flags = PipelineStateFlags.DYNAMIC_DEPTH_BIAS if dynamic else PipelineStateFlags.NONE
    made = rasterization(rasterizer=desc, flags=flags)
    found = (made.depth_bias_enable, made.depth_bias_constant_factor, made.depth_bias_clamp, made.depth_bias_slope_factor)
    assert found == ((1, 0.0, 0.0, 0.0) if dynamic else expected)


def test_conservative_rasterization_overestimates_by_no_extra_size() -> None:
    made = rasterization(rasterizer=RasterizerDesc2(conservative_raster=ConservativeRasterizationMode.ON))
    # VK_CONSERVATIVE_RASTERIZATION_MODE_OVERESTIMATE_EXT is 1.
    assert made.next == (DEPTH_CLIP(0, 1), vk.PipelineRasterizationConservativeStateCreateInfoEXT(0, 1, 0.0))


@pytest.mark.parametrize(
    ("mode", "coverage", "link", "width"),
    [
        # VkLineRasterizationMode: 1 rectangular, 2 Bresenham, 3 smooth rectangular.
        (LineRasterizationMode.ALIASED, False, (LINE(2),), 1.0),
        (LineRasterizationMode.ALPHA_ANTIALIASED, False, (LINE(3),), 1.0),
        (LineRasterizationMode.QUADRILATERAL_WIDE, False, (LINE(1),), 1.4),
        (LineRasterizationMode.QUADRILATERAL_NARROW, False, (LINE(1),), 1.0),
        (LineRasterizationMode.ALIASED, True, (), 1.0),
        (LineRasterizationMode.ALPHA_ANTIALIASED, True, (), 1.0),
        (LineRasterizationMode.QUADRILATERAL_WIDE, True, (LINE(1),), 1.4),
    ],
)
def test_lines(mode: LineRasterizationMode, coverage: bool, link: tuple[Any, ...], width: float) -> None:
    fields = {
        "rasterizer": RasterizerDesc2(line_rasterization_mode=mode),
        "blend": BlendDesc(alpha_to_coverage_enable=coverage),
    }
    made = rasterization(lines=True, **fields)
    assert made.next == (DEPTH_CLIP(0, 1), *link)
    assert made.line_width == pytest.approx(width)
    assert rasterization(lines=False, **fields) == rasterization()


@pytest.mark.parametrize(
    ("number", "discard", "link"),
    [
        (0, 0, ()),
        (1, 0, (vk.PipelineRasterizationStateStreamCreateInfoEXT(0, 1),)),
        (3, 0, (vk.PipelineRasterizationStateStreamCreateInfoEXT(0, 3),)),
        (NO_RASTERIZED_STREAM, 1, ()),
    ],
)
def test_the_rasterized_stream(number: int, discard: int, link: tuple[Any, ...]) -> None:
    made = rasterization(stream_output=StreamOutputDesc(rasterized_stream=number))
    assert (made.rasterizer_discard_enable, made.next) == (discard, (DEPTH_CLIP(0, 1), *link))


# Lines are drawn by a line list, in wireframe, or by the last stage: OutputLineStrip 28, Isolines 25, OutputLinesEXT 5269.
TRIANGLES, STRIP, ISOLINES, MESH_LINES, OTHER = 22, 28, 25, 5269, 29


@pytest.mark.parametrize(
    ("topology", "stages", "expected"),
    [
        (PrimitiveTopologyType.LINE, {}, True),
        (PrimitiveTopologyType.TRIANGLE, {}, False),
        (PrimitiveTopologyType.LINE, {"gs": OTHER}, False),
        (PrimitiveTopologyType.POINT, {"gs": STRIP}, True),
        (PrimitiveTopologyType.PATCH, {"hs": TRIANGLES, "ds": ISOLINES}, True),
        (PrimitiveTopologyType.PATCH, {"hs": ISOLINES, "ds": TRIANGLES}, True),
        (PrimitiveTopologyType.PATCH, {"hs": TRIANGLES, "ds": TRIANGLES}, False),
        (PrimitiveTopologyType.PATCH, {"ds": ISOLINES}, True),
        (PrimitiveTopologyType.PATCH, {"hs": ISOLINES, "ds": ISOLINES, "gs": OTHER}, False),
        (PrimitiveTopologyType.PATCH, {"hs": TRIANGLES, "ds": TRIANGLES, "gs": STRIP}, True),
        (PrimitiveTopologyType.TRIANGLE, {"ms": MESH_LINES}, True),
        (PrimitiveTopologyType.TRIANGLE, {"ms": OTHER}, False),
        (PrimitiveTopologyType.LINE, {"ms": OTHER}, False),
        (PrimitiveTopologyType.LINE, {"hs": ISOLINES, "ms": OTHER}, False),
    ],
)
def test_whether_lines_are_drawn(topology: PrimitiveTopologyType, stages: dict[str, int], expected: bool) -> None:
    entries = {name: entry(mode) for name, mode in stages.items()}
    assert state.draws_lines(stream(primitive_topology=topology), entries) is expected
    wireframe = stream(primitive_topology=topology, rasterizer=RasterizerDesc2(FillMode.WIREFRAME))
    assert state.draws_lines(wireframe, entries) is True


# Topology


def assembly(geometry: EntryPoint | None = None, **fields: Any) -> tuple[vk.PipelineInputAssemblyStateCreateInfo, Any]:
    reasons = Reasons()
    return state.input_assembly(stream(**fields), geometry, reasons), reported(reasons)


@pytest.mark.parametrize(
    ("topology", "mode", "cut", "expected"),
    [
        # VkPrimitiveTopology: 0 points, 1 lines, 2 line strip, 3 triangles, 4 triangle strip, 6 and 8 with adjacency, 10 patches.
        (PrimitiveTopologyType.POINT, None, False, (0, 0)),
        (PrimitiveTopologyType.POINT, None, True, (0, 0)),
        (PrimitiveTopologyType.LINE, None, False, (1, 0)),
        (PrimitiveTopologyType.LINE, None, True, (2, 1)),
        (PrimitiveTopologyType.TRIANGLE, None, False, (3, 0)),
        (PrimitiveTopologyType.TRIANGLE, None, True, (4, 1)),
        (PrimitiveTopologyType.PATCH, None, True, (10, 0)),
        # InputLinesAdjacency is 21, Triangles 22, InputTrianglesAdjacency 23.
        (PrimitiveTopologyType.LINE, 21, False, (6, 0)),
        (PrimitiveTopologyType.LINE, 21, True, (2, 1)),
        (PrimitiveTopologyType.TRIANGLE, 23, False, (8, 0)),
        (PrimitiveTopologyType.TRIANGLE, 22, False, (3, 0)),
        (PrimitiveTopologyType.TRIANGLE, 23, True, (4, 1)),
    ],
)
def test_topologies(topology: PrimitiveTopologyType, mode: int | None, cut: bool, expected: tuple[int, int]) -> None:
    value = IndexBufferStripCutValue.VALUE_0xFFFF if cut else IndexBufferStripCutValue.DISABLED
    geometry = None if mode is None else entry(mode)
    made, reasons = assembly(geometry, primitive_topology=topology, ib_strip_cut_value=value)
    assert made == vk.PipelineInputAssemblyStateCreateInfo(0, *expected)
    assert reasons == []


def test_no_topology_is_reported() -> None:
    made, reasons = assembly(primitive_topology=PrimitiveTopologyType.UNDEFINED)
    assert (made.topology, reasons) == (0, [("primitive_topology", "")])


# Samples


@pytest.mark.parametrize(
    ("sample_desc", "forced", "attachments", "expected", "reasons"),
    [
        *((SampleDesc(count), 0, True, count, []) for count in (1, 2, 4, 8, 16, 32)),
        (SampleDesc(3), 0, True, 1, [("sample_desc.count", 3)]),
        (SampleDesc(33), 0, True, 1, [("sample_desc.count", 33)]),
        (SampleDesc(4, STANDARD_MULTISAMPLE_PATTERN), 0, True, 4, []),
        (SampleDesc(4, 1), 0, True, 4, [("sample_desc.quality", 1)]),
        (SampleDesc(1), 4, True, 1, [("rasterizer.forced_sample_count", 4)]),
        (SampleDesc(4), 4, True, 4, []),
        (SampleDesc(1), 4, False, 4, []),
        (SampleDesc(1), 16, False, 16, []),
        (SampleDesc(1), 3, False, 1, [("sample_desc.count", 3)]),
    ],
)
def test_sample_counts(
    sample_desc: SampleDesc, forced: int, attachments: bool, expected: int, reasons: list[tuple[str, int]]
) -> None:
    found = Reasons()
    bare: dict[str, Any] = {"render_target_formats": RenderTargetFormats(()), "depth_stencil_format": DxgiFormat.UNKNOWN}
    rasterizer = RasterizerDesc2(forced_sample_count=forced)
    full = stream(sample_desc=sample_desc, rasterizer=rasterizer, **({} if attachments else bare))
    assert state.sample_count(full, found) == expected
    assert reported(found) == reasons


@pytest.mark.parametrize(
    "attachment",
    [
        {"render_target_formats": RenderTargetFormats((RGBA,)), "depth_stencil_format": DxgiFormat.UNKNOWN},
        {"render_target_formats": RenderTargetFormats(()), "depth_stencil_format": DEPTH_STENCIL},
    ],
    ids=["color", "depth"],
)
def test_either_kind_of_attachment_stands_against_a_forced_count(attachment: dict[str, Any]) -> None:
    found = Reasons()
    assert state.sample_count(stream(rasterizer=RasterizerDesc2(forced_sample_count=8), **attachment), found) == 1
    assert reported(found) == [("rasterizer.forced_sample_count", 8)]


def test_multisampling() -> None:
    for covers in (False, True):
        made = state.multisample(stream(sample_mask=0x5A, blend=BlendDesc(alpha_to_coverage_enable=covers)), 8)
        assert made == vk.PipelineMultisampleStateCreateInfo(0, 8, 0, 0.0, (0x5A,), int(covers), 0)


# Depth and stencil

FRONT = DepthStencilOpDesc1(StencilOp.ZERO, StencilOp.REPLACE, StencilOp.INCR_SAT, ComparisonFunc.EQUAL, 0x0F, 0xF0)
BACK = DepthStencilOpDesc1(StencilOp.DECR_SAT, StencilOp.INVERT, StencilOp.INCR, ComparisonFunc.NOT_EQUAL, 0x12, 0x34)
# Fail, pass, depth fail, comparison, masks, reference.
FRONT_FACE, BACK_FACE = vk.StencilOpState(1, 3, 2, 2, 0x0F, 0xF0, 0), vk.StencilOpState(4, 6, 5, 5, 0x12, 0x34, 0)
NO_FACE = vk.StencilOpState(0, 0, 0, 0, 0, 0, 0)
ALL_TESTS = DepthStencilDesc2(True, DepthWriteMask.ALL, ComparisonFunc.GREATER, True, FRONT, BACK, True)


@pytest.mark.parametrize(
    ("format_", "changes", "expected"),
    [
        # Test, write, comparison (7: always), bounds, stencil test, faces.
        (DEPTH_STENCIL, {}, (1, 1, 4, 1, 1, FRONT_FACE, BACK_FACE)),
        (DxgiFormat.D32_FLOAT, {}, (1, 1, 4, 1, 0, NO_FACE, NO_FACE)),
        (DxgiFormat.UNKNOWN, {}, (0, 0, 7, 0, 0, NO_FACE, NO_FACE)),
        (DEPTH_STENCIL, {"depth_enable": False}, (0, 0, 7, 1, 1, FRONT_FACE, BACK_FACE)),
        (DEPTH_STENCIL, {"depth_write_mask": DepthWriteMask.ZERO}, (1, 0, 4, 1, 1, FRONT_FACE, BACK_FACE)),
        (DEPTH_STENCIL, {"stencil_enable": False}, (1, 1, 4, 1, 0, NO_FACE, NO_FACE)),
        (DEPTH_STENCIL, {"depth_bounds_test_enable": False}, (1, 1, 4, 0, 1, FRONT_FACE, BACK_FACE)),
    ],
)
def test_depth_and_stencil(format_: DxgiFormat, changes: dict[str, Any], expected: tuple[Any, ...]) -> None:
    reasons = Reasons()
    made = state.depth_stencil(stream(depth_stencil=replace(ALL_TESTS, **changes), depth_stencil_format=format_), reasons)
    assert made == vk.PipelineDepthStencilStateCreateInfo(0, *expected, 0.0, 1.0)
    assert reported(reasons) == []


def test_a_format_without_depth_is_reported_and_taken_for_none() -> None:
    reasons = Reasons()
    assert state.depth_formats(stream(depth_stencil_format=RGBA), reasons) == (0, 0)
    assert reported(reasons) == [("depth_stencil_format", "R8G8B8A8_UNORM")]


# Blending

FULL = RenderTargetBlendDesc(
    True, False, Blend.SRC_ALPHA, Blend.INV_DEST_COLOR, BlendOp.REV_SUBTRACT, Blend.INV_SRC_ALPHA, Blend.DEST_ALPHA, BlendOp.MAX,
    LogicOp.NOOP, 13,  # type: ignore[arg-type]
)  # fmt: skip
# VkBlendFactor: 6 source alpha, 5 one minus destination colour, 7 one minus source alpha, 8 destination alpha; VkBlendOp: 2, 4.
FULL_ATTACHMENT = vk.PipelineColorBlendAttachmentState(1, 6, 5, 2, 7, 8, 4, 13)


def attachments(*descs: RenderTargetBlendDesc, formats: tuple[DxgiFormat, ...] = (RGBA,), independent: bool = True) -> Any:
    reasons = Reasons()
    blend = BlendDesc(independent_blend_enable=independent, render_target=descs)
    made = state.color_blend(stream(blend=blend, render_target_formats=RenderTargetFormats(formats)), reasons)
    reasons.check()
    assert (made.flags, made.attachment_count, made.blend_constants) == (0, len(formats), (0.0, 0.0, 0.0, 0.0))
    return made.attachments


def test_blending_of_an_attachment() -> None:
    off = vk.PipelineColorBlendAttachmentState(0, 1, 0, 0, 1, 0, 0, 13)
    assert attachments(FULL) == (FULL_ATTACHMENT,)
    assert attachments(replace(FULL, blend_enable=False)) == (off,)
    assert attachments(FULL, formats=(DxgiFormat.R8G8B8A8_UINT,)) == (off,)
    assert attachments(FULL, formats=(DxgiFormat.UNKNOWN,)) == (off,)
    assert attachments(FULL, formats=(RGBA, RGBA), independent=False) == (FULL_ATTACHMENT,) * 2
    default = vk.PipelineColorBlendAttachmentState(0, 1, 0, 0, 1, 0, 0, 15)
    assert attachments(FULL, formats=(RGBA, RGBA)) == (FULL_ATTACHMENT, default)
    assert attachments(FULL, formats=()) == ()


@pytest.mark.parametrize(
    ("factor", "color", "alpha"),
    [
        # The alpha of such a target is 1: destination alpha is one (1), its inverse zero (0). SRC_ALPHA_SAT is min(As, 1 - Ad),
        # which is 0 for colour, and 1 for alpha.
        (Blend.DEST_ALPHA, 1, 1),
        (Blend.INV_DEST_ALPHA, 0, 0),
        (Blend.SRC_ALPHA_SAT, 0, 1),
        (Blend.SRC_ALPHA, 6, 6),
    ],
)
def test_factors_of_a_target_without_alpha(factor: Blend, color: int, alpha: int) -> None:
    # Red and alpha of the mask: alpha is not written.
    desc = RenderTargetBlendDesc(
        True, src_blend=factor, dest_blend=Blend.ZERO, src_blend_alpha=factor, dest_blend_alpha=Blend.ZERO,
        render_target_write_mask=9,  # type: ignore[arg-type]
    )  # fmt: skip
    assert attachments(desc, formats=(BGRX,)) == (vk.PipelineColorBlendAttachmentState(1, color, 0, 0, alpha, 0, 0, 1),)
    other = RenderTargetBlendDesc(
        True, src_blend=Blend.ONE, dest_blend=factor, src_blend_alpha=Blend.ONE, dest_blend_alpha=factor
    )
    assert attachments(other, formats=(BGRX,)) == (vk.PipelineColorBlendAttachmentState(1, 1, color, 0, 1, alpha, 0, 7),)
    unlike = attachments(desc, formats=(RGBA,))[0]
    assert (unlike.color_write_mask, unlike.src_color_blend_factor) == (
        9,
        {1: 8, 0: 9}.get(color, 6) if factor != Blend.SRC_ALPHA_SAT else 14,
    )


def test_logic_operations() -> None:
    def made(*descs: RenderTargetBlendDesc) -> tuple[tuple[int, int], list[tuple[str, str | int | float]]]:
        reasons = Reasons()
        blend = BlendDesc(independent_blend_enable=True, render_target=descs)
        targets = RenderTargetFormats((RGBA,) * len(descs))
        found = state.color_blend(stream(blend=blend, render_target_formats=targets), reasons)
        return (found.logic_op_enable, found.logic_op), reported(reasons)

    nor, xor = (RenderTargetBlendDesc(logic_op_enable=True, logic_op=op) for op in (LogicOp.NOR, LogicOp.XOR))
    off, off_xor = RenderTargetBlendDesc(), RenderTargetBlendDesc(logic_op=LogicOp.XOR)
    refused = [("blend.render_target.logic_op", "")]
    # VkLogicOp: 3 copy, 6 exclusive or, 8 nor.
    assert made(nor) == made(nor, nor) == ((1, 8), [])
    assert made(off, off_xor) == made(off_xor) == made() == ((0, 3), [])
    assert made(nor, xor) == ((1, 8), refused)
    assert made(off, xor) == ((0, 3), refused)


DUAL = (Blend.SRC1_COLOR, Blend.INV_SRC1_COLOR, Blend.SRC1_ALPHA, Blend.INV_SRC1_ALPHA)
CONSTANTS = (Blend.BLEND_FACTOR, Blend.INV_BLEND_FACTOR, Blend.ALPHA_FACTOR, Blend.INV_ALPHA_FACTOR)
PLACES = ("src_blend", "dest_blend", "src_blend_alpha", "dest_blend_alpha")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("factor", Blend, ids=lambda factor: factor.name)
def test_factors_that_need_a_second_source_or_constants(factor: Blend, place: str) -> None:
    for enabled in (False, True):
        desc = RenderTargetBlendDesc(enabled, **{place: factor})
        full = stream(blend=BlendDesc(render_target=(desc,)))
        assert state.is_dual_source(full) is (enabled and factor in DUAL)
        # VK_DYNAMIC_STATE_BLEND_CONSTANTS is 4.
        assert (4 in state.dynamic_states(full, None)) is (enabled and factor in CONSTANTS)


def test_only_the_first_target_has_a_second_source_and_every_one_constants() -> None:
    dual, constant = (
        RenderTargetBlendDesc(True, src_blend=Blend.SRC1_COLOR),
        RenderTargetBlendDesc(True, src_blend=Blend.BLEND_FACTOR),
    )
    two = RenderTargetFormats((RGBA, RGBA))
    second = stream(blend=BlendDesc(False, True, (RenderTargetBlendDesc(), dual)), render_target_formats=two)
    assert not state.is_dual_source(second)
    both = stream(blend=BlendDesc(False, True, (constant, constant)), render_target_formats=two)
    assert state.dynamic_states(both, None).count(4) == 1
    last = stream(blend=BlendDesc(False, True, (RenderTargetBlendDesc(), constant)), render_target_formats=two)
    assert 4 in state.dynamic_states(last, None)


# Dynamic states

VIEWPORTS, SCISSORS, TOPOLOGY, STRIDE, RESTART = 1000267003, 1000267004, 1000267002, 1000267005, 1000377004
BIAS, BOUNDS, REFERENCE = 3, 5, 8
BOUND = vk.PipelineVertexInputStateCreateInfo(0, (vk.VertexInputBindingDescription(0, 0, 0),))
CUT = {"ib_strip_cut_value": IndexBufferStripCutValue.VALUE_0xFFFFFFFF}


@pytest.mark.parametrize(
    ("vertex", "fields", "expected"),
    [
        (None, {}, set()),
        (None, CUT, set()),
        (vk.PipelineVertexInputStateCreateInfo(), {}, {TOPOLOGY}),
        (BOUND, {}, {TOPOLOGY, STRIDE}),
        (BOUND, CUT, {TOPOLOGY, STRIDE, RESTART}),
        (BOUND, {"primitive_topology": PrimitiveTopologyType.PATCH}, {STRIDE}),
        (None, {"flags": PipelineStateFlags.DYNAMIC_DEPTH_BIAS}, {BIAS}),
        (BOUND, {"flags": PipelineStateFlags.DYNAMIC_INDEX_BUFFER_STRIP_CUT}, {TOPOLOGY, STRIDE, RESTART}),
        (None, {"depth_stencil": ALL_TESTS}, {BOUNDS, REFERENCE}),
        (None, {"depth_stencil": ALL_TESTS, "depth_stencil_format": DxgiFormat.D16_UNORM}, {BOUNDS}),
        (None, {"depth_stencil": ALL_TESTS, "depth_stencil_format": DxgiFormat.UNKNOWN}, set()),
        (None, {"depth_stencil": DepthStencilDesc2(stencil_enable=True)}, {REFERENCE}),
        (None, {"depth_stencil": DepthStencilDesc2(depth_bounds_test_enable=True)}, {BOUNDS}),
    ],
)
def test_dynamic_states(vertex: Any, fields: dict[str, Any], expected: set[int]) -> None:
    assert state.dynamic_states(stream(**fields), vertex) == tuple(sorted({VIEWPORTS, SCISSORS, *expected}))


# Attachments and views


def test_rendering_names_the_formats_of_all_attachments() -> None:
    reasons = Reasons()
    targets = RenderTargetFormats((RGBA, DxgiFormat.UNKNOWN, DxgiFormat.R32_TYPELESS))
    made = state.rendering(stream(render_target_formats=targets, depth_stencil_format=DxgiFormat.D16_UNORM), reasons)
    assert made == vk.PipelineRenderingCreateInfo(0, (37, 0, 0), 124, 0)
    assert reported(reasons) == [("render_target_formats[2]", "R32_TYPELESS")]


@pytest.mark.parametrize(
    ("places", "flags", "mask", "reasons"),
    [
        ((), ViewInstancingFlags.NONE, 0, []),
        ((), ViewInstancingFlags.ENABLE_VIEW_INSTANCE_MASKING, 0, []),
        (((0, 0),), ViewInstancingFlags.NONE, 1, []),
        (((0, 0), (0, 1), (0, 2), (0, 3)), ViewInstancingFlags.NONE, 15, []),
        (((0, 0),), ViewInstancingFlags.ENABLE_VIEW_INSTANCE_MASKING, 1, ["view_instancing.flags"]),
        (((0, 1), (0, 1)), ViewInstancingFlags.NONE, 3, ["view_instancing.view_instance_locations[0]"]),
        (((0, 0), (2, 1)), ViewInstancingFlags.NONE, 3, ["view_instancing.view_instance_locations[1]"]),
    ],
)
def test_views(places: tuple[tuple[int, int], ...], flags: ViewInstancingFlags, mask: int, reasons: list[str]) -> None:
    desc = ViewInstancingDesc(tuple(ViewInstanceLocation(*place) for place in places), flags)
    found = Reasons()
    assert state.view_mask(stream(view_instancing=desc), found) == mask
    assert [name for name, _ in reported(found)] == reasons
    assert state.rendering(stream(view_instancing=desc), Reasons()).view_mask == mask


# Vertex input


def vertex_input(elements: tuple[InputElementDesc, ...], signature: Any, *locations: int) -> Any:
    reasons = Reasons()
    made = state.vertex_input(InputLayoutDesc(elements), signature, entry(locations=locations), reasons)
    return made, reported(reasons)


def test_vertex_input_as_a_whole() -> None:
    instances = InputClassification.PER_INSTANCE_DATA
    elements = (
        InputElementDesc("TEXCOORD", 1, DxgiFormat.R32G32_FLOAT, 2, 16),
        InputElementDesc("texcoord", 0, DxgiFormat.R8_UINT, 1, 3, instances, 5),
        InputElementDesc("UNREAD", 0, DxgiFormat.R32_FLOAT, 0, 0, instances, 9),
        InputElementDesc("COLOR", 0, RGBA, 1, APPEND_ALIGNED_ELEMENT, instances, 5),
    )
    signature = [
        SignatureElement("TexCoord", 1, 0, 3, 4, 3, 3),
        SignatureElement("TexCoord", 0, 0, 1, 5, 1, 1),
        SignatureElement("COLOR", 0, 0, 3, 6, 15, 15),
    ]
    made, reasons = vertex_input(elements, signature, 4, 5)
    assert made == vk.PipelineVertexInputStateCreateInfo(
        0,
        (vk.VertexInputBindingDescription(1, 0, 1), vk.VertexInputBindingDescription(2, 0, 0)),
        (
            vk.VertexInputAttributeDescription(4, 2, 103, 16),
            vk.VertexInputAttributeDescription(5, 1, 13, 3),
            vk.VertexInputAttributeDescription(6, 1, 37, 4),
        ),
        (vk.PipelineVertexInputDivisorStateCreateInfo((vk.VertexInputBindingDivisorDescription(1, 5),)),),
    )
    assert reasons == []


@pytest.mark.parametrize("system_value", [6, 7, 8], ids=["vertex", "primitive", "instance"])
def test_inputs_that_come_from_no_buffer_are_matched_by_no_element(system_value: int) -> None:
    element = InputElementDesc("SV_ID", 0, DxgiFormat.R32_UINT)
    made, _ = vertex_input((element,), [SignatureElement("SV_ID", 0, system_value, 1, 3, 1, 1)])
    assert made == vk.PipelineVertexInputStateCreateInfo(0, (), (), ())
    other, _ = vertex_input((element,), [SignatureElement("SV_ID", 0, 1, 1, 3, 1, 1)])
    assert other.vertex_attribute_descriptions == (vk.VertexInputAttributeDescription(3, 0, 98, 0),)


@pytest.mark.parametrize(
    ("first", "second", "offset"),
    [
        # After 1, 2, 6 and 12 bytes; elements of 1, 2, 4 and more bytes lie at multiples of 1, 2, 4 and 4.
        (DxgiFormat.R8_UINT, DxgiFormat.R8_UINT, 1),
        (DxgiFormat.R8_UINT, DxgiFormat.R16_UINT, 2),
        (DxgiFormat.R8_UINT, DxgiFormat.R32_UINT, 4),
        (DxgiFormat.R16_UINT, DxgiFormat.R32G32B32A32_UINT, 4),
        (DxgiFormat.R32G32B32_UINT, DxgiFormat.R32G32_UINT, 12),
    ],
)
def test_appended_elements_lie_behind_the_one_before(first: DxgiFormat, second: DxgiFormat, offset: int) -> None:
    elements = tuple(
        InputElementDesc("T", index, format_, 0, APPEND_ALIGNED_ELEMENT) for index, format_ in enumerate((first, second))
    )
    made, _ = vertex_input(elements, None, 0, 1)
    assert [attribute.offset for attribute in made.vertex_attribute_descriptions] == [0, offset]


def test_without_a_signature_elements_have_their_numbers_and_unread_ones_are_left_out() -> None:
    elements = tuple(InputElementDesc("T", index, RGBA, index) for index in range(3))
    made, _ = vertex_input(elements, None, 0, 2)
    assert [(a.location, a.binding) for a in made.vertex_attribute_descriptions] == [(0, 0), (2, 2)]
    assert [binding.binding for binding in made.vertex_binding_descriptions] == [0, 2]


def test_what_no_element_provides_is_named() -> None:
    signature = [SignatureElement("POSITION", 0, 0, 3, 4, 15, 15), SignatureElement("NORMAL", 2, 0, 3, 5, 15, 15)]
    for given, name in ((signature, "NORMAL2"), (None, "location 5")):
        with pytest.raises(InvalidArgumentError, match=f"no element provides {name}, which"):
            vertex_input((InputElementDesc("POSITION", 0, RGBA),), given, *((4, 5) if given else (0, 5)))


def test_a_format_that_vulkan_has_not_is_reported_with_its_place() -> None:
    made, reasons = vertex_input((InputElementDesc("T", 0, DxgiFormat.R32_TYPELESS),), None, 0)
    assert reasons == [("input_layout.elements[0].format", "R32_TYPELESS")]
    assert made.vertex_attribute_descriptions[0].format == 0
