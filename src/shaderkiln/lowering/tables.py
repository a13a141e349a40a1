"""Direct3D 12 enumerations in Vulkan's: each table has every member, with its Vulkan number or the reason why it has none."""

from __future__ import annotations

from typing import Final

from shaderkiln.descriptions.direct3d12.enums import (
    Blend,
    BlendOp,
    ComparisonFunc,
    CullMode,
    DxgiFormat,
    FillMode,
    InputClassification,
    LineRasterizationMode,
    LogicOp,
    PrimitiveTopologyType,
    StencilOp,
)
from shaderkiln.vulkan_registry import constants as c

POLYGON_MODES: Final = {FillMode.WIREFRAME: 1, FillMode.SOLID: 0}
"""VkPolygonMode."""
CULL_MODES: Final = {CullMode.NONE: 0, CullMode.FRONT: 1, CullMode.BACK: 2}
"""VkCullModeFlags."""
COMPARE_OPS: Final = {
    ComparisonFunc.NONE: 7,
    ComparisonFunc.NEVER: 0,
    ComparisonFunc.LESS: 1,
    ComparisonFunc.EQUAL: 2,
    ComparisonFunc.LESS_EQUAL: 3,
    ComparisonFunc.GREATER: 4,
    ComparisonFunc.NOT_EQUAL: 5,
    ComparisonFunc.GREATER_EQUAL: 6,
    ComparisonFunc.ALWAYS: 7,
}
"""VkCompareOp. NONE is valid only where nothing is compared."""
STENCIL_OPS: Final = {
    StencilOp.KEEP: 0,
    StencilOp.ZERO: 1,
    StencilOp.REPLACE: 2,
    StencilOp.INCR_SAT: 3,
    StencilOp.DECR_SAT: 4,
    StencilOp.INVERT: 5,
    StencilOp.INCR: 6,
    StencilOp.DECR: 7,
}
"""VkStencilOp."""
BLEND_FACTORS: Final = {
    Blend.ZERO: 0,
    Blend.ONE: 1,
    Blend.SRC_COLOR: 2,
    Blend.INV_SRC_COLOR: 3,
    Blend.DEST_COLOR: 4,
    Blend.INV_DEST_COLOR: 5,
    Blend.SRC_ALPHA: 6,
    Blend.INV_SRC_ALPHA: 7,
    Blend.DEST_ALPHA: 8,
    Blend.INV_DEST_ALPHA: 9,
    Blend.BLEND_FACTOR: 10,
    Blend.INV_BLEND_FACTOR: 11,
    Blend.ALPHA_FACTOR: 12,
    Blend.INV_ALPHA_FACTOR: 13,
    Blend.SRC_ALPHA_SAT: 14,
    Blend.SRC1_COLOR: 15,
    Blend.INV_SRC1_COLOR: 16,
    Blend.SRC1_ALPHA: 17,
    Blend.INV_SRC1_ALPHA: 18,
}
"""VkBlendFactor. In the place of a factor for alpha, those of colours are their alpha in both interfaces."""
BLEND_OPS: Final = {BlendOp.ADD: 0, BlendOp.SUBTRACT: 1, BlendOp.REV_SUBTRACT: 2, BlendOp.MIN: 3, BlendOp.MAX: 4}
"""VkBlendOp."""
LOGIC_OPS: Final = {
    LogicOp.CLEAR: 0,
    LogicOp.AND: 1,
    LogicOp.AND_REVERSE: 2,
    LogicOp.COPY: 3,
    LogicOp.AND_INVERTED: 4,
    LogicOp.NOOP: 5,
    LogicOp.XOR: 6,
    LogicOp.OR: 7,
    LogicOp.NOR: 8,
    LogicOp.EQUIV: 9,
    LogicOp.INVERT: 10,
    LogicOp.OR_REVERSE: 11,
    LogicOp.COPY_INVERTED: 12,
    LogicOp.OR_INVERTED: 13,
    LogicOp.NAND: 14,
    LogicOp.SET: 15,
}
"""VkLogicOp."""
TOPOLOGIES: Final[dict[PrimitiveTopologyType, int | str]] = {
    PrimitiveTopologyType.UNDEFINED: "only mesh pipelines have no topology",
    PrimitiveTopologyType.POINT: 0,
    PrimitiveTopologyType.LINE: 1,
    PrimitiveTopologyType.TRIANGLE: 3,
    PrimitiveTopologyType.PATCH: 10,
}
"""VkPrimitiveTopology that stands for its class; the topology of each draw is dynamic."""
STRIPS: Final = {PrimitiveTopologyType.LINE: 2, PrimitiveTopologyType.TRIANGLE: 4}
"""VkPrimitiveTopology of the strips of a class."""
LINE_MODES: Final = {
    LineRasterizationMode.ALIASED: (2, 1.0),
    LineRasterizationMode.ALPHA_ANTIALIASED: (3, 1.0),
    LineRasterizationMode.QUADRILATERAL_WIDE: (1, 1.4),
    LineRasterizationMode.QUADRILATERAL_NARROW: (1, 1.0),
}
"""VkLineRasterizationMode and width in pixels (Direct3D 11.3 functional specification, "Line Rasterization Rules")."""
INPUT_RATES: Final = {InputClassification.PER_VERTEX_DATA: 0, InputClassification.PER_INSTANCE_DATA: 1}
"""VkVertexInputRate."""

# Samplers: D3D12_FILTER is bits, its fields have these values.

FILTERS: Final = (0, 1)
"""VkFilter and VkSamplerMipmapMode of D3D12_FILTER_TYPE POINT and LINEAR."""
REDUCTIONS: Final[dict[int, int | None]] = {0: None, 1: None, 2: 1, 3: 2}
"""D3D12_FILTER_REDUCTION_TYPE STANDARD, COMPARISON, MINIMUM, MAXIMUM → VkSamplerReductionMode."""
ADDRESS_MODES: Final = {1: 0, 2: 1, 3: 2, 4: 3, 5: 4}
"""D3D12_TEXTURE_ADDRESS_MODE WRAP, MIRROR, CLAMP, BORDER, MIRROR_ONCE → VkSamplerAddressMode."""
BORDER_COLORS: Final = {0: 0, 1: 2, 2: 4, 3: 3, 4: 5}
"""D3D12_STATIC_BORDER_COLOR → VkBorderColor: transparent and opaque black, opaque white, and the last two as integers."""

# Formats

_TYPELESS: Final = "typeless: a view's format says how its bits are read"
_VIDEO: Final = "a format of video: no render target, depth buffer or vertex has it"
_NO_SUCH: Final = "Vulkan has no such format"
_F = DxgiFormat
FORMATS: Final[dict[DxgiFormat, int | str]] = {
    _F.UNKNOWN: 0,
    _F.R32G32B32A32_TYPELESS: _TYPELESS,
    _F.R32G32B32A32_FLOAT: 109,
    _F.R32G32B32A32_UINT: 107,
    _F.R32G32B32A32_SINT: 108,
    _F.R32G32B32_TYPELESS: _TYPELESS,
    _F.R32G32B32_FLOAT: 106,
    _F.R32G32B32_UINT: 104,
    _F.R32G32B32_SINT: 105,
    _F.R16G16B16A16_TYPELESS: _TYPELESS,
    _F.R16G16B16A16_FLOAT: 97,
    _F.R16G16B16A16_UNORM: 91,
    _F.R16G16B16A16_UINT: 95,
    _F.R16G16B16A16_SNORM: 92,
    _F.R16G16B16A16_SINT: 96,
    _F.R32G32_TYPELESS: _TYPELESS,
    _F.R32G32_FLOAT: 103,
    _F.R32G32_UINT: 101,
    _F.R32G32_SINT: 102,
    _F.R32G8X24_TYPELESS: _TYPELESS,
    _F.D32_FLOAT_S8X24_UINT: 130,
    _F.R32_FLOAT_X8X24_TYPELESS: _TYPELESS,
    _F.X32_TYPELESS_G8X24_UINT: _TYPELESS,
    _F.R10G10B10A2_TYPELESS: _TYPELESS,
    _F.R10G10B10A2_UNORM: 64,
    _F.R10G10B10A2_UINT: 68,
    _F.R11G11B10_FLOAT: 122,
    _F.R8G8B8A8_TYPELESS: _TYPELESS,
    _F.R8G8B8A8_UNORM: 37,
    _F.R8G8B8A8_UNORM_SRGB: 43,
    _F.R8G8B8A8_UINT: 41,
    _F.R8G8B8A8_SNORM: 38,
    _F.R8G8B8A8_SINT: 42,
    _F.R16G16_TYPELESS: _TYPELESS,
    _F.R16G16_FLOAT: 83,
    _F.R16G16_UNORM: 77,
    _F.R16G16_UINT: 81,
    _F.R16G16_SNORM: 78,
    _F.R16G16_SINT: 82,
    _F.R32_TYPELESS: _TYPELESS,
    _F.D32_FLOAT: 126,
    _F.R32_FLOAT: 100,
    _F.R32_UINT: 98,
    _F.R32_SINT: 99,
    _F.R24G8_TYPELESS: _TYPELESS,
    _F.D24_UNORM_S8_UINT: 129,
    _F.R24_UNORM_X8_TYPELESS: _TYPELESS,
    _F.X24_TYPELESS_G8_UINT: _TYPELESS,
    _F.R8G8_TYPELESS: _TYPELESS,
    _F.R8G8_UNORM: 16,
    _F.R8G8_UINT: 20,
    _F.R8G8_SNORM: 17,
    _F.R8G8_SINT: 21,
    _F.R16_TYPELESS: _TYPELESS,
    _F.R16_FLOAT: 76,
    _F.D16_UNORM: 124,
    _F.R16_UNORM: 70,
    _F.R16_UINT: 74,
    _F.R16_SNORM: 71,
    _F.R16_SINT: 75,
    _F.R8_TYPELESS: _TYPELESS,
    _F.R8_UNORM: 9,
    _F.R8_UINT: 13,
    _F.R8_SNORM: 10,
    _F.R8_SINT: 14,
    _F.A8_UNORM: c.VK_FORMAT_A8_UNORM,
    _F.R1_UNORM: _NO_SUCH,
    _F.R9G9B9E5_SHAREDEXP: 123,
    _F.R8G8_B8G8_UNORM: _NO_SUCH,
    _F.G8R8_G8B8_UNORM: _NO_SUCH,
    _F.BC1_TYPELESS: _TYPELESS,
    _F.BC1_UNORM: 133,
    _F.BC1_UNORM_SRGB: 134,
    _F.BC2_TYPELESS: _TYPELESS,
    _F.BC2_UNORM: 135,
    _F.BC2_UNORM_SRGB: 136,
    _F.BC3_TYPELESS: _TYPELESS,
    _F.BC3_UNORM: 137,
    _F.BC3_UNORM_SRGB: 138,
    _F.BC4_TYPELESS: _TYPELESS,
    _F.BC4_UNORM: 139,
    _F.BC4_SNORM: 140,
    _F.BC5_TYPELESS: _TYPELESS,
    _F.BC5_UNORM: 141,
    _F.BC5_SNORM: 142,
    _F.B5G6R5_UNORM: 4,
    _F.B5G5R5A1_UNORM: 8,
    _F.B8G8R8A8_UNORM: 44,
    _F.B8G8R8X8_UNORM: 44,
    _F.R10G10B10_XR_BIAS_A2_UNORM: _NO_SUCH,
    _F.B8G8R8A8_TYPELESS: _TYPELESS,
    _F.B8G8R8A8_UNORM_SRGB: 50,
    _F.B8G8R8X8_TYPELESS: _TYPELESS,
    _F.B8G8R8X8_UNORM_SRGB: 50,
    _F.BC6H_TYPELESS: _TYPELESS,
    _F.BC6H_UF16: 143,
    _F.BC6H_SF16: 144,
    _F.BC7_TYPELESS: _TYPELESS,
    _F.BC7_UNORM: 145,
    _F.BC7_UNORM_SRGB: 146,
    _F.AYUV: _VIDEO,
    _F.Y410: _VIDEO,
    _F.Y416: _VIDEO,
    _F.NV12: _VIDEO,
    _F.P010: _VIDEO,
    _F.P016: _VIDEO,
    _F.OPAQUE_420: _VIDEO,
    _F.YUY2: _VIDEO,
    _F.Y210: _VIDEO,
    _F.Y216: _VIDEO,
    _F.NV11: _VIDEO,
    _F.AI44: _VIDEO,
    _F.IA44: _VIDEO,
    _F.P8: _VIDEO,
    _F.A8P8: _VIDEO,
    _F.B4G4R4A4_UNORM: c.VK_FORMAT_A4R4G4B4_UNORM_PACK16,
    _F.P208: _VIDEO,
    _F.V208: _VIDEO,
    _F.V408: _VIDEO,
    _F.SAMPLER_FEEDBACK_MIN_MIP_OPAQUE: _NO_SUCH,
    _F.SAMPLER_FEEDBACK_MIP_REGION_USED_OPAQUE: _NO_SUCH,
    _F.A4B4G4R4_UNORM: 2,
}
"""VkFormat. Direct3D names the components of packed formats from the lowest bit on, Vulkan from the highest."""
DEPTH_FORMATS: Final = {
    _F.UNKNOWN: (0, 0),
    _F.D16_UNORM: (124, 0),
    _F.R16_TYPELESS: (124, 0),
    _F.D24_UNORM_S8_UINT: (129, 129),
    _F.R24G8_TYPELESS: (129, 129),
    _F.D32_FLOAT: (126, 0),
    _F.R32_TYPELESS: (126, 0),
    _F.D32_FLOAT_S8X24_UINT: (130, 130),
    _F.R32G8X24_TYPELESS: (130, 130),
}
"""VkFormat of depth and of stencil, 0 where a format has none of it; typeless formats are those of the resource."""
WITHOUT_ALPHA: Final = frozenset((_F.B8G8R8X8_UNORM, _F.B8G8R8X8_UNORM_SRGB))
"""Formats whose alpha is 1 and never written; Vulkan's has an alpha in its place."""
INTEGER_FORMATS: Final = frozenset(f for f in DxgiFormat if f.name.endswith(("_UINT", "_SINT")) and "TYPELESS" not in f.name)
"""Formats that do not blend."""
