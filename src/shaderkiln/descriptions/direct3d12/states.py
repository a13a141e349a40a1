"""The fixed-function states of pipelines, as both pipeline state streams and state objects use them.

Fields are those of the Direct3D 12 structures in snake case, their defaults those of the CD3DX12 helpers. Nothing is checked
when an object is made: that is what ``validation.validate`` is for. The same classes are subobjects of state objects, and
``subobject_type`` is their type there.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct

from shaderkiln.descriptions.direct3d12.enums import (
    DEFAULT_SAMPLE_MASK,
    Blend,
    BlendOp,
    ColorWriteEnable,
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
    StateSubobjectType,
    StencilOp,
    ViewInstancingFlags,
)

# Rasterizer


class RasterizerDesc2(Struct, frozen=True, tag_field="class"):
    """D3D12_RASTERIZER_DESC2, the form that every other one is turned into."""

    fill_mode: FillMode = FillMode.SOLID
    cull_mode: CullMode = CullMode.BACK
    front_counter_clockwise: bool = False
    depth_bias: float = 0.0
    depth_bias_clamp: float = 0.0
    slope_scaled_depth_bias: float = 0.0
    depth_clip_enable: bool = True
    line_rasterization_mode: LineRasterizationMode = LineRasterizationMode.ALIASED
    forced_sample_count: int = 0
    conservative_raster: ConservativeRasterizationMode = ConservativeRasterizationMode.OFF

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.RASTERIZER

    def to_desc2(self) -> RasterizerDesc2:
        """Itself."""
        return self


class RasterizerDesc1(Struct, frozen=True, tag_field="class"):
    """D3D12_RASTERIZER_DESC1: as the first form, with a depth bias that is a floating-point number."""

    fill_mode: FillMode = FillMode.SOLID
    cull_mode: CullMode = CullMode.BACK
    front_counter_clockwise: bool = False
    depth_bias: float = 0.0
    depth_bias_clamp: float = 0.0
    slope_scaled_depth_bias: float = 0.0
    depth_clip_enable: bool = True
    multisample_enable: bool = False
    antialiased_line_enable: bool = False
    forced_sample_count: int = 0
    conservative_raster: ConservativeRasterizationMode = ConservativeRasterizationMode.OFF

    def to_desc2(self) -> RasterizerDesc2:
        """The same state as RasterizerDesc2."""
        return _rasterizer2(self)


class RasterizerDesc(Struct, frozen=True, tag_field="class"):
    """D3D12_RASTERIZER_DESC; its depth bias is an integer."""

    fill_mode: FillMode = FillMode.SOLID
    cull_mode: CullMode = CullMode.BACK
    front_counter_clockwise: bool = False
    depth_bias: int = 0
    depth_bias_clamp: float = 0.0
    slope_scaled_depth_bias: float = 0.0
    depth_clip_enable: bool = True
    multisample_enable: bool = False
    antialiased_line_enable: bool = False
    forced_sample_count: int = 0
    conservative_raster: ConservativeRasterizationMode = ConservativeRasterizationMode.OFF

    def to_desc2(self) -> RasterizerDesc2:
        """The same state as RasterizerDesc2."""
        return _rasterizer2(self)


def _rasterizer2(desc: RasterizerDesc | RasterizerDesc1) -> RasterizerDesc2:
    if desc.multisample_enable:
        lines = LineRasterizationMode.QUADRILATERAL_WIDE
    elif desc.antialiased_line_enable:
        lines = LineRasterizationMode.ALPHA_ANTIALIASED
    else:
        lines = LineRasterizationMode.ALIASED
    return RasterizerDesc2(
        fill_mode=desc.fill_mode,
        cull_mode=desc.cull_mode,
        front_counter_clockwise=desc.front_counter_clockwise,
        depth_bias=float(desc.depth_bias),
        depth_bias_clamp=desc.depth_bias_clamp,
        slope_scaled_depth_bias=desc.slope_scaled_depth_bias,
        depth_clip_enable=desc.depth_clip_enable,
        line_rasterization_mode=lines,
        forced_sample_count=desc.forced_sample_count,
        conservative_raster=desc.conservative_raster,
    )


AnyRasterizerDesc: TypeAlias = RasterizerDesc | RasterizerDesc1 | RasterizerDesc2

# Depth and stencil


class DepthStencilOpDesc(Struct, frozen=True):
    """D3D12_DEPTH_STENCILOP_DESC: what happens to the stencil value of one face."""

    stencil_fail_op: StencilOp = StencilOp.KEEP
    stencil_depth_fail_op: StencilOp = StencilOp.KEEP
    stencil_pass_op: StencilOp = StencilOp.KEEP
    stencil_func: ComparisonFunc = ComparisonFunc.ALWAYS


class DepthStencilOpDesc1(Struct, frozen=True):
    """D3D12_DEPTH_STENCILOP_DESC1: one face with masks of its own."""

    stencil_fail_op: StencilOp = StencilOp.KEEP
    stencil_depth_fail_op: StencilOp = StencilOp.KEEP
    stencil_pass_op: StencilOp = StencilOp.KEEP
    stencil_func: ComparisonFunc = ComparisonFunc.ALWAYS
    stencil_read_mask: int = 0xFF
    stencil_write_mask: int = 0xFF


class DepthStencilDesc2(Struct, frozen=True, tag_field="class"):
    """D3D12_DEPTH_STENCIL_DESC2, the form that every other one is turned into."""

    depth_enable: bool = True
    depth_write_mask: DepthWriteMask = DepthWriteMask.ALL
    depth_func: ComparisonFunc = ComparisonFunc.LESS
    stencil_enable: bool = False
    front_face: DepthStencilOpDesc1 = DepthStencilOpDesc1()
    back_face: DepthStencilOpDesc1 = DepthStencilOpDesc1()
    depth_bounds_test_enable: bool = False

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.DEPTH_STENCIL2

    def to_desc2(self) -> DepthStencilDesc2:
        """Itself."""
        return self


class DepthStencilDesc1(Struct, frozen=True, tag_field="class"):
    """D3D12_DEPTH_STENCIL_DESC1: as the first form, with a depth bounds test."""

    depth_enable: bool = True
    depth_write_mask: DepthWriteMask = DepthWriteMask.ALL
    depth_func: ComparisonFunc = ComparisonFunc.LESS
    stencil_enable: bool = False
    stencil_read_mask: int = 0xFF
    stencil_write_mask: int = 0xFF
    front_face: DepthStencilOpDesc = DepthStencilOpDesc()
    back_face: DepthStencilOpDesc = DepthStencilOpDesc()
    depth_bounds_test_enable: bool = False

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.DEPTH_STENCIL1

    def to_desc2(self) -> DepthStencilDesc2:
        """The same state as DepthStencilDesc2."""
        return _depth_stencil2(self, self.depth_bounds_test_enable)


class DepthStencilDesc(Struct, frozen=True, tag_field="class"):
    """D3D12_DEPTH_STENCIL_DESC; its stencil masks hold for both faces."""

    depth_enable: bool = True
    depth_write_mask: DepthWriteMask = DepthWriteMask.ALL
    depth_func: ComparisonFunc = ComparisonFunc.LESS
    stencil_enable: bool = False
    stencil_read_mask: int = 0xFF
    stencil_write_mask: int = 0xFF
    front_face: DepthStencilOpDesc = DepthStencilOpDesc()
    back_face: DepthStencilOpDesc = DepthStencilOpDesc()

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.DEPTH_STENCIL

    def to_desc2(self) -> DepthStencilDesc2:
        """The same state as DepthStencilDesc2."""
        return _depth_stencil2(self, False)


def _depth_stencil2(desc: DepthStencilDesc | DepthStencilDesc1, bounds: bool) -> DepthStencilDesc2:
    def face(op: DepthStencilOpDesc) -> DepthStencilOpDesc1:
        return DepthStencilOpDesc1(
            stencil_fail_op=op.stencil_fail_op,
            stencil_depth_fail_op=op.stencil_depth_fail_op,
            stencil_pass_op=op.stencil_pass_op,
            stencil_func=op.stencil_func,
            stencil_read_mask=desc.stencil_read_mask,
            stencil_write_mask=desc.stencil_write_mask,
        )

    return DepthStencilDesc2(
        depth_enable=desc.depth_enable,
        depth_write_mask=desc.depth_write_mask,
        depth_func=desc.depth_func,
        stencil_enable=desc.stencil_enable,
        front_face=face(desc.front_face),
        back_face=face(desc.back_face),
        depth_bounds_test_enable=bounds,
    )


AnyDepthStencilDesc: TypeAlias = DepthStencilDesc | DepthStencilDesc1 | DepthStencilDesc2

# Blend


class RenderTargetBlendDesc(Struct, frozen=True):
    """D3D12_RENDER_TARGET_BLEND_DESC."""

    blend_enable: bool = False
    logic_op_enable: bool = False
    src_blend: Blend = Blend.ONE
    dest_blend: Blend = Blend.ZERO
    blend_op: BlendOp = BlendOp.ADD
    src_blend_alpha: Blend = Blend.ONE
    dest_blend_alpha: Blend = Blend.ZERO
    blend_op_alpha: BlendOp = BlendOp.ADD
    logic_op: LogicOp = LogicOp.NOOP
    render_target_write_mask: ColorWriteEnable = ColorWriteEnable.ALL


class BlendDesc(Struct, frozen=True, tag_field="class"):
    """D3D12_BLEND_DESC with its eight render targets."""

    alpha_to_coverage_enable: bool = False
    independent_blend_enable: bool = False
    render_target: tuple[RenderTargetBlendDesc, ...] = (RenderTargetBlendDesc(),) * 8
    """Up to eight; the rest are as ``RenderTargetBlendDesc()``. Without independent blending only the first counts."""

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.BLEND

    def render_targets(self) -> tuple[RenderTargetBlendDesc, ...]:
        """All eight, those that are not named included."""
        return self.render_target + (RenderTargetBlendDesc(),) * (8 - len(self.render_target))


# Input and output


class InputElementDesc(Struct, frozen=True):
    """D3D12_INPUT_ELEMENT_DESC."""

    semantic_name: str
    semantic_index: int = 0
    format: DxgiFormat = DxgiFormat.UNKNOWN
    input_slot: int = 0
    aligned_byte_offset: int = 0
    """Bytes from the start of the vertex, or APPEND_ALIGNED_ELEMENT."""
    input_slot_class: InputClassification = InputClassification.PER_VERTEX_DATA
    instance_data_step_rate: int = 0


class InputLayoutDesc(Struct, frozen=True, tag_field="class"):
    """D3D12_INPUT_LAYOUT_DESC; the order of the elements matters."""

    elements: tuple[InputElementDesc, ...] = ()

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.INPUT_LAYOUT


class StreamOutputDeclarationEntry(Struct, frozen=True):
    """D3D12_SO_DECLARATION_ENTRY. Without a semantic name it is a gap."""

    stream: int = 0
    semantic_name: str | None = None
    semantic_index: int = 0
    start_component: int = 0
    component_count: int = 0
    output_slot: int = 0


class StreamOutputDesc(Struct, frozen=True, tag_field="class"):
    """D3D12_STREAM_OUTPUT_DESC; the order of declarations and strides matters."""

    declarations: tuple[StreamOutputDeclarationEntry, ...] = ()
    buffer_strides: tuple[int, ...] = ()
    """Bytes, one for each output slot."""
    rasterized_stream: int = 0
    """0 to 3, or NO_RASTERIZED_STREAM."""

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.STREAM_OUTPUT


class ViewInstanceLocation(Struct, frozen=True):
    """D3D12_VIEW_INSTANCE_LOCATION."""

    viewport_array_index: int = 0
    render_target_array_index: int = 0


class ViewInstancingDesc(Struct, frozen=True, tag_field="class"):
    """D3D12_VIEW_INSTANCING_DESC; the order of the views matters."""

    view_instance_locations: tuple[ViewInstanceLocation, ...] = ()
    flags: ViewInstancingFlags = ViewInstancingFlags.NONE

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.VIEW_INSTANCING


class RenderTargetFormats(Struct, frozen=True, tag_field="class"):
    """D3D12_RT_FORMAT_ARRAY: as many formats as there are render targets."""

    formats: tuple[DxgiFormat, ...] = ()

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.RENDER_TARGET_FORMATS


class SampleDesc(Struct, frozen=True, tag_field="class"):
    """DXGI_SAMPLE_DESC."""

    count: int = 1
    quality: int = 0

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.SAMPLE_DESC


# Single values, which state objects wrap


class NodeMask(Struct, frozen=True, tag_field="class"):
    """D3D12_NODE_MASK; 0 stands for the first node."""

    node_mask: int = 0

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.NODE_MASK


class SampleMask(Struct, frozen=True, tag_field="class"):
    """D3D12_SAMPLE_MASK."""

    sample_mask: int = DEFAULT_SAMPLE_MASK

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.SAMPLE_MASK


class IbStripCutValue(Struct, frozen=True, tag_field="class"):
    """D3D12_IB_STRIP_CUT_VALUE."""

    value: IndexBufferStripCutValue = IndexBufferStripCutValue.DISABLED

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.IB_STRIP_CUT_VALUE


class PrimitiveTopologyDesc(Struct, frozen=True, tag_field="class"):
    """D3D12_PRIMITIVE_TOPOLOGY_DESC."""

    primitive_topology: PrimitiveTopologyType = PrimitiveTopologyType.UNDEFINED

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.PRIMITIVE_TOPOLOGY


class DepthStencilFormat(Struct, frozen=True, tag_field="class"):
    """D3D12_DEPTH_STENCIL_FORMAT."""

    format: DxgiFormat = DxgiFormat.UNKNOWN

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.DEPTH_STENCIL_FORMAT


class PipelineFlags(Struct, frozen=True, tag_field="class"):
    """D3D12_STATE_SUBOBJECT_TYPE_FLAGS: the pipeline state flags of generic programs."""

    flags: PipelineStateFlags = PipelineStateFlags.NONE

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.FLAGS
