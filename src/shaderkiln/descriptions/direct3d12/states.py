"""The fixed-function states of pipelines, as both pipeline state streams and state objects use them.

Fields are those of the Direct3D 12 structures in snake case, their defaults those of the CD3DX12 helpers. Nothing is checked
when an object is made: that is what ``validation.validate`` is for. The same classes are subobjects of state objects, and
``subobject_type`` is their type there.
"""

from __future__ import annotations

import re
from typing import ClassVar, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

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


class Subobject(Struct, frozen=True, tag_field="class"):
    """A subobject of a state object. Its type is called as its class is, without Desc, where the class does not name another."""

    subobject_type: ClassVar[StateSubobjectType]

    def __init_subclass__(cls) -> None:
        if "subobject_type" not in cls.__dict__:
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__.replace("Desc", "")).upper()
            cls.subobject_type = StateSubobjectType[name]


# Rasterizer


class _Rasterizer(Struct, frozen=True, tag_field="class"):
    """What every form begins with."""

    fill_mode: FillMode = FillMode.SOLID
    cull_mode: CullMode = CullMode.BACK
    front_counter_clockwise: bool = False
    depth_bias: float = 0.0
    depth_bias_clamp: float = 0.0
    slope_scaled_depth_bias: float = 0.0
    depth_clip_enable: bool = True


class RasterizerDesc2(_Rasterizer, frozen=True):
    """D3D12_RASTERIZER_DESC2, the form that every other one is turned into."""

    line_rasterization_mode: LineRasterizationMode = LineRasterizationMode.ALIASED
    forced_sample_count: int = 0
    conservative_raster: ConservativeRasterizationMode = ConservativeRasterizationMode.OFF

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.RASTERIZER

    def to_desc2(self) -> RasterizerDesc2:
        """Itself."""
        return self


class _OldRasterizer(_Rasterizer, frozen=True):
    multisample_enable: bool = False
    antialiased_line_enable: bool = False
    forced_sample_count: int = 0
    conservative_raster: ConservativeRasterizationMode = ConservativeRasterizationMode.OFF

    def to_desc2(self) -> RasterizerDesc2:
        """The same state as RasterizerDesc2."""
        if self.multisample_enable:
            lines = LineRasterizationMode.QUADRILATERAL_WIDE
        elif self.antialiased_line_enable:
            lines = LineRasterizationMode.ALPHA_ANTIALIASED
        else:
            lines = LineRasterizationMode.ALIASED
        same = {field: getattr(self, field) for field in _Rasterizer.__struct_fields__}
        same["depth_bias"] = float(self.depth_bias)
        return RasterizerDesc2(
            **same,
            line_rasterization_mode=lines,
            forced_sample_count=self.forced_sample_count,
            conservative_raster=self.conservative_raster,
        )


class RasterizerDesc1(_OldRasterizer, frozen=True):
    """D3D12_RASTERIZER_DESC1: as the first form, with a depth bias that is a floating-point number."""


class RasterizerDesc(_OldRasterizer, frozen=True):
    """D3D12_RASTERIZER_DESC; its depth bias is an integer."""

    depth_bias: int = 0


AnyRasterizerDesc: TypeAlias = RasterizerDesc | RasterizerDesc1 | RasterizerDesc2

# Depth and stencil


class _StencilOps(Struct, frozen=True):
    stencil_fail_op: StencilOp = StencilOp.KEEP
    stencil_depth_fail_op: StencilOp = StencilOp.KEEP
    stencil_pass_op: StencilOp = StencilOp.KEEP
    stencil_func: ComparisonFunc = ComparisonFunc.ALWAYS


class DepthStencilOpDesc(_StencilOps, frozen=True):
    """D3D12_DEPTH_STENCILOP_DESC: what happens to the stencil value of one face."""


class DepthStencilOpDesc1(_StencilOps, frozen=True):
    """D3D12_DEPTH_STENCILOP_DESC1: one face with masks of its own."""

    stencil_read_mask: int = 0xFF
    stencil_write_mask: int = 0xFF


class DepthStencilDesc2(Subobject, frozen=True):
    """D3D12_DEPTH_STENCIL_DESC2, the form that every other one is turned into."""

    depth_enable: bool = True
    depth_write_mask: DepthWriteMask = DepthWriteMask.ALL
    depth_func: ComparisonFunc = ComparisonFunc.LESS
    stencil_enable: bool = False
    front_face: DepthStencilOpDesc1 = DepthStencilOpDesc1()
    back_face: DepthStencilOpDesc1 = DepthStencilOpDesc1()
    depth_bounds_test_enable: bool = False

    def to_desc2(self) -> DepthStencilDesc2:
        """Itself."""
        return self


class _OldDepthStencil(Struct, frozen=True, tag_field="class"):
    depth_enable: bool = True
    depth_write_mask: DepthWriteMask = DepthWriteMask.ALL
    depth_func: ComparisonFunc = ComparisonFunc.LESS
    stencil_enable: bool = False
    stencil_read_mask: int = 0xFF
    stencil_write_mask: int = 0xFF
    front_face: DepthStencilOpDesc = DepthStencilOpDesc()
    back_face: DepthStencilOpDesc = DepthStencilOpDesc()

    def to_desc2(self) -> DepthStencilDesc2:
        """The same state as DepthStencilDesc2."""

        def face(op: DepthStencilOpDesc) -> DepthStencilOpDesc1:
            return DepthStencilOpDesc1(
                **asdict(op), stencil_read_mask=self.stencil_read_mask, stencil_write_mask=self.stencil_write_mask
            )

        return DepthStencilDesc2(
            self.depth_enable, self.depth_write_mask, self.depth_func, self.stencil_enable,
            face(self.front_face), face(self.back_face), getattr(self, "depth_bounds_test_enable", False),
        )  # fmt: skip


class DepthStencilDesc1(_OldDepthStencil, frozen=True):
    """D3D12_DEPTH_STENCIL_DESC1: as the first form, with a depth bounds test."""

    depth_bounds_test_enable: bool = False

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.DEPTH_STENCIL1


class DepthStencilDesc(_OldDepthStencil, frozen=True):
    """D3D12_DEPTH_STENCIL_DESC; its stencil masks hold for both faces."""

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.DEPTH_STENCIL


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


class BlendDesc(Subobject, frozen=True):
    """D3D12_BLEND_DESC with its eight render targets."""

    alpha_to_coverage_enable: bool = False
    independent_blend_enable: bool = False
    render_target: tuple[RenderTargetBlendDesc, ...] = (RenderTargetBlendDesc(),) * 8
    """Up to eight; the rest are as ``RenderTargetBlendDesc()``. Without independent blending only the first counts."""

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


class InputLayoutDesc(Subobject, frozen=True):
    """D3D12_INPUT_LAYOUT_DESC; the order of the elements matters."""

    elements: tuple[InputElementDesc, ...] = ()


class StreamOutputDeclarationEntry(Struct, frozen=True):
    """D3D12_SO_DECLARATION_ENTRY. Without a semantic name it is a gap."""

    stream: int = 0
    semantic_name: str | None = None
    semantic_index: int = 0
    start_component: int = 0
    component_count: int = 0
    output_slot: int = 0


class StreamOutputDesc(Subobject, frozen=True):
    """D3D12_STREAM_OUTPUT_DESC; the order of declarations and strides matters."""

    declarations: tuple[StreamOutputDeclarationEntry, ...] = ()
    buffer_strides: tuple[int, ...] = ()
    """Bytes, one for each output slot."""
    rasterized_stream: int = 0
    """0 to 3, or NO_RASTERIZED_STREAM."""


class ViewInstanceLocation(Struct, frozen=True):
    """D3D12_VIEW_INSTANCE_LOCATION."""

    viewport_array_index: int = 0
    render_target_array_index: int = 0


class ViewInstancingDesc(Subobject, frozen=True):
    """D3D12_VIEW_INSTANCING_DESC; the order of the views matters."""

    view_instance_locations: tuple[ViewInstanceLocation, ...] = ()
    flags: ViewInstancingFlags = ViewInstancingFlags.NONE


class RenderTargetFormats(Subobject, frozen=True):
    """D3D12_RT_FORMAT_ARRAY: as many formats as there are render targets."""

    formats: tuple[DxgiFormat, ...] = ()


class SampleDesc(Subobject, frozen=True):
    """DXGI_SAMPLE_DESC."""

    count: int = 1
    quality: int = 0

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.SAMPLE_DESC


# Single values, which state objects wrap


class NodeMask(Subobject, frozen=True):
    """D3D12_NODE_MASK; 0 stands for the first node."""

    node_mask: int = 0


class SampleMask(Subobject, frozen=True):
    """D3D12_SAMPLE_MASK."""

    sample_mask: int = DEFAULT_SAMPLE_MASK


class IbStripCutValue(Subobject, frozen=True):
    """D3D12_IB_STRIP_CUT_VALUE."""

    value: IndexBufferStripCutValue = IndexBufferStripCutValue.DISABLED


class PrimitiveTopologyDesc(Subobject, frozen=True):
    """D3D12_PRIMITIVE_TOPOLOGY_DESC."""

    primitive_topology: PrimitiveTopologyType = PrimitiveTopologyType.UNDEFINED


class DepthStencilFormat(Subobject, frozen=True):
    """D3D12_DEPTH_STENCIL_FORMAT."""

    format: DxgiFormat = DxgiFormat.UNKNOWN


class PipelineFlags(Subobject, frozen=True):
    """D3D12_STATE_SUBOBJECT_TYPE_FLAGS: the pipeline state flags of generic programs."""

    flags: PipelineStateFlags = PipelineStateFlags.NONE

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.FLAGS
