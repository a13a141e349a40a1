"""The enumerations that pipeline states and state objects use, with the numbers of d3d12.h and dxgiformat.h.

Names are those of the headers without the enumeration's prefix; where that would begin with a digit, the two halves change
places (``DXGI_FORMAT_420_OPAQUE`` is ``DxgiFormat.OPAQUE_420``) or ``VALUE_`` stands before it. ``PSDB`` and
``ShaderCacheSessionSubobjectFlags`` come from the specification of explicit PSDBs (EP-09, EP-11).
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

APPEND_ALIGNED_ELEMENT: Final = 0xFFFFFFFF
"""Byte offset of an input element that directly follows the element before it in its slot."""
NO_RASTERIZED_STREAM: Final = 0xFFFFFFFF
DEFAULT_SAMPLE_MASK: Final = 0xFFFFFFFF
STANDARD_MULTISAMPLE_PATTERN: Final = 0xFFFFFFFF
"""Sample quality that asks for the standard pattern."""
CENTER_MULTISAMPLE_PATTERN: Final = 0xFFFFFFFE
SIMULTANEOUS_RENDER_TARGET_COUNT: Final = 8
MAX_VIEW_INSTANCE_COUNT: Final = 4
INPUT_SLOT_COUNT: Final = 32
INPUT_ELEMENT_COUNT: Final = 32
MAX_INPUT_ELEMENT_OFFSET: Final = 2048
STREAM_OUTPUT_BUFFER_SLOT_COUNT: Final = 4
STREAM_OUTPUT_STREAM_COUNT: Final = 4
STREAM_OUTPUT_MAX_STRIDE: Final = 2048
STREAM_OUTPUT_COMPONENT_COUNT: Final = 128
RAYTRACING_MAX_ATTRIBUTE_SIZE: Final = 32
RAYTRACING_MAX_RECURSION_DEPTH: Final = 31


class FillMode(IntEnum):
    WIREFRAME = 2
    SOLID = 3


class CullMode(IntEnum):
    NONE = 1
    FRONT = 2
    BACK = 3


class ConservativeRasterizationMode(IntEnum):
    OFF = 0
    ON = 1


class LineRasterizationMode(IntEnum):
    ALIASED = 0
    ALPHA_ANTIALIASED = 1
    QUADRILATERAL_WIDE = 2
    QUADRILATERAL_NARROW = 3


class ComparisonFunc(IntEnum):
    NONE = 0
    NEVER = 1
    LESS = 2
    EQUAL = 3
    LESS_EQUAL = 4
    GREATER = 5
    NOT_EQUAL = 6
    GREATER_EQUAL = 7
    ALWAYS = 8


class DepthWriteMask(IntEnum):
    ZERO = 0
    ALL = 1


class StencilOp(IntEnum):
    KEEP = 1
    ZERO = 2
    REPLACE = 3
    INCR_SAT = 4
    DECR_SAT = 5
    INVERT = 6
    INCR = 7
    DECR = 8


class Blend(IntEnum):
    ZERO = 1
    ONE = 2
    SRC_COLOR = 3
    INV_SRC_COLOR = 4
    SRC_ALPHA = 5
    INV_SRC_ALPHA = 6
    DEST_ALPHA = 7
    INV_DEST_ALPHA = 8
    DEST_COLOR = 9
    INV_DEST_COLOR = 10
    SRC_ALPHA_SAT = 11
    BLEND_FACTOR = 14
    INV_BLEND_FACTOR = 15
    SRC1_COLOR = 16
    INV_SRC1_COLOR = 17
    SRC1_ALPHA = 18
    INV_SRC1_ALPHA = 19
    ALPHA_FACTOR = 20
    INV_ALPHA_FACTOR = 21


class BlendOp(IntEnum):
    ADD = 1
    SUBTRACT = 2
    REV_SUBTRACT = 3
    MIN = 4
    MAX = 5


class ColorWriteEnable(IntFlag):
    RED = 1
    GREEN = 2
    BLUE = 4
    ALPHA = 8
    ALL = 15


class LogicOp(IntEnum):
    CLEAR = 0
    SET = 1
    COPY = 2
    COPY_INVERTED = 3
    NOOP = 4
    INVERT = 5
    AND = 6
    NAND = 7
    OR = 8
    NOR = 9
    XOR = 10
    EQUIV = 11
    AND_REVERSE = 12
    AND_INVERTED = 13
    OR_REVERSE = 14
    OR_INVERTED = 15


class PrimitiveTopologyType(IntEnum):
    UNDEFINED = 0
    POINT = 1
    LINE = 2
    TRIANGLE = 3
    PATCH = 4


class IndexBufferStripCutValue(IntEnum):
    DISABLED = 0
    VALUE_0xFFFF = 1
    VALUE_0xFFFFFFFF = 2


class InputClassification(IntEnum):
    PER_VERTEX_DATA = 0
    PER_INSTANCE_DATA = 1


class ViewInstancingFlags(IntFlag):
    NONE = 0
    ENABLE_VIEW_INSTANCE_MASKING = 1


class PipelineStateFlags(IntFlag):
    NONE = 0
    TOOL_DEBUG = 0x1
    DYNAMIC_DEPTH_BIAS = 0x4
    DYNAMIC_INDEX_BUFFER_STRIP_CUT = 0x8
    DISABLE_CACHED_BLOB = 0x10


class ShaderCacheSessionSubobjectFlags(IntFlag):
    """How long a created object keeps its explicit PSDB session (EP-11)."""

    NONE = 0
    CREATE_ONLY = 1


class PipelineStateSubobjectType(IntEnum):
    ROOT_SIGNATURE = 0
    VS = 1
    PS = 2
    DS = 3
    HS = 4
    GS = 5
    CS = 6
    STREAM_OUTPUT = 7
    BLEND = 8
    SAMPLE_MASK = 9
    RASTERIZER = 10
    DEPTH_STENCIL = 11
    INPUT_LAYOUT = 12
    IB_STRIP_CUT_VALUE = 13
    PRIMITIVE_TOPOLOGY = 14
    RENDER_TARGET_FORMATS = 15
    DEPTH_STENCIL_FORMAT = 16
    SAMPLE_DESC = 17
    NODE_MASK = 18
    CACHED_PSO = 19
    FLAGS = 20
    DEPTH_STENCIL1 = 21
    VIEW_INSTANCING = 22
    AS = 24
    MS = 25
    DEPTH_STENCIL2 = 26
    RASTERIZER1 = 27
    RASTERIZER2 = 28
    SERIALIZED_ROOT_SIGNATURE = 29
    PSDB = 30


class StateObjectType(IntEnum):
    COLLECTION = 0
    RAYTRACING_PIPELINE = 3
    EXECUTABLE = 4


class StateObjectFlags(IntFlag):
    NONE = 0
    ALLOW_LOCAL_DEPENDENCIES_ON_EXTERNAL_DEFINITIONS = 0x1
    ALLOW_EXTERNAL_DEPENDENCIES_ON_LOCAL_DEFINITIONS = 0x2
    ALLOW_STATE_OBJECT_ADDITIONS = 0x4


class StateSubobjectType(IntEnum):
    STATE_OBJECT_CONFIG = 0
    GLOBAL_ROOT_SIGNATURE = 1
    LOCAL_ROOT_SIGNATURE = 2
    NODE_MASK = 3
    DXIL_LIBRARY = 5
    EXISTING_COLLECTION = 6
    SUBOBJECT_TO_EXPORTS_ASSOCIATION = 7
    DXIL_SUBOBJECT_TO_EXPORTS_ASSOCIATION = 8
    RAYTRACING_SHADER_CONFIG = 9
    RAYTRACING_PIPELINE_CONFIG = 10
    HIT_GROUP = 11
    RAYTRACING_PIPELINE_CONFIG1 = 12
    WORK_GRAPH = 13
    STREAM_OUTPUT = 14
    BLEND = 15
    SAMPLE_MASK = 16
    RASTERIZER = 17
    DEPTH_STENCIL = 18
    INPUT_LAYOUT = 19
    IB_STRIP_CUT_VALUE = 20
    PRIMITIVE_TOPOLOGY = 21
    RENDER_TARGET_FORMATS = 22
    DEPTH_STENCIL_FORMAT = 23
    SAMPLE_DESC = 24
    FLAGS = 26
    DEPTH_STENCIL1 = 27
    VIEW_INSTANCING = 28
    GENERIC_PROGRAM = 29
    DEPTH_STENCIL2 = 30
    GLOBAL_SERIALIZED_ROOT_SIGNATURE = 31
    LOCAL_SERIALIZED_ROOT_SIGNATURE = 32
    COMPILER_EXISTING_COLLECTION = 33
    EXISTING_COLLECTION_BY_KEY = 36
    PSDB = 43


class ExportFlags(IntFlag):
    NONE = 0


class HitGroupType(IntEnum):
    TRIANGLES = 0
    PROCEDURAL_PRIMITIVE = 1


class RaytracingPipelineFlags(IntFlag):
    NONE = 0
    SKIP_TRIANGLES = 0x100
    SKIP_PROCEDURAL_PRIMITIVES = 0x200
    ALLOW_OPACITY_MICROMAPS = 0x400


class WorkGraphFlags(IntFlag):
    NONE = 0
    INCLUDE_ALL_AVAILABLE_NODES = 1


class NodeType(IntEnum):
    SHADER = 0


class NodeOverridesType(IntEnum):
    NONE = 0
    BROADCASTING_LAUNCH = 1
    COALESCING_LAUNCH = 2
    THREAD_LAUNCH = 3
    COMMON_COMPUTE = 4


class DxgiFormat(IntEnum):
    UNKNOWN = 0
    R32G32B32A32_TYPELESS = 1
    R32G32B32A32_FLOAT = 2
    R32G32B32A32_UINT = 3
    R32G32B32A32_SINT = 4
    R32G32B32_TYPELESS = 5
    R32G32B32_FLOAT = 6
    R32G32B32_UINT = 7
    R32G32B32_SINT = 8
    R16G16B16A16_TYPELESS = 9
    R16G16B16A16_FLOAT = 10
    R16G16B16A16_UNORM = 11
    R16G16B16A16_UINT = 12
    R16G16B16A16_SNORM = 13
    R16G16B16A16_SINT = 14
    R32G32_TYPELESS = 15
    R32G32_FLOAT = 16
    R32G32_UINT = 17
    R32G32_SINT = 18
    R32G8X24_TYPELESS = 19
    D32_FLOAT_S8X24_UINT = 20
    R32_FLOAT_X8X24_TYPELESS = 21
    X32_TYPELESS_G8X24_UINT = 22
    R10G10B10A2_TYPELESS = 23
    R10G10B10A2_UNORM = 24
    R10G10B10A2_UINT = 25
    R11G11B10_FLOAT = 26
    R8G8B8A8_TYPELESS = 27
    R8G8B8A8_UNORM = 28
    R8G8B8A8_UNORM_SRGB = 29
    R8G8B8A8_UINT = 30
    R8G8B8A8_SNORM = 31
    R8G8B8A8_SINT = 32
    R16G16_TYPELESS = 33
    R16G16_FLOAT = 34
    R16G16_UNORM = 35
    R16G16_UINT = 36
    R16G16_SNORM = 37
    R16G16_SINT = 38
    R32_TYPELESS = 39
    D32_FLOAT = 40
    R32_FLOAT = 41
    R32_UINT = 42
    R32_SINT = 43
    R24G8_TYPELESS = 44
    D24_UNORM_S8_UINT = 45
    R24_UNORM_X8_TYPELESS = 46
    X24_TYPELESS_G8_UINT = 47
    R8G8_TYPELESS = 48
    R8G8_UNORM = 49
    R8G8_UINT = 50
    R8G8_SNORM = 51
    R8G8_SINT = 52
    R16_TYPELESS = 53
    R16_FLOAT = 54
    D16_UNORM = 55
    R16_UNORM = 56
    R16_UINT = 57
    R16_SNORM = 58
    R16_SINT = 59
    R8_TYPELESS = 60
    R8_UNORM = 61
    R8_UINT = 62
    R8_SNORM = 63
    R8_SINT = 64
    A8_UNORM = 65
    R1_UNORM = 66
    R9G9B9E5_SHAREDEXP = 67
    R8G8_B8G8_UNORM = 68
    G8R8_G8B8_UNORM = 69
    BC1_TYPELESS = 70
    BC1_UNORM = 71
    BC1_UNORM_SRGB = 72
    BC2_TYPELESS = 73
    BC2_UNORM = 74
    BC2_UNORM_SRGB = 75
    BC3_TYPELESS = 76
    BC3_UNORM = 77
    BC3_UNORM_SRGB = 78
    BC4_TYPELESS = 79
    BC4_UNORM = 80
    BC4_SNORM = 81
    BC5_TYPELESS = 82
    BC5_UNORM = 83
    BC5_SNORM = 84
    B5G6R5_UNORM = 85
    B5G5R5A1_UNORM = 86
    B8G8R8A8_UNORM = 87
    B8G8R8X8_UNORM = 88
    R10G10B10_XR_BIAS_A2_UNORM = 89
    B8G8R8A8_TYPELESS = 90
    B8G8R8A8_UNORM_SRGB = 91
    B8G8R8X8_TYPELESS = 92
    B8G8R8X8_UNORM_SRGB = 93
    BC6H_TYPELESS = 94
    BC6H_UF16 = 95
    BC6H_SF16 = 96
    BC7_TYPELESS = 97
    BC7_UNORM = 98
    BC7_UNORM_SRGB = 99
    AYUV = 100
    Y410 = 101
    Y416 = 102
    NV12 = 103
    P010 = 104
    P016 = 105
    OPAQUE_420 = 106
    YUY2 = 107
    Y210 = 108
    Y216 = 109
    NV11 = 110
    AI44 = 111
    IA44 = 112
    P8 = 113
    A8P8 = 114
    B4G4R4A4_UNORM = 115
    P208 = 130
    V208 = 131
    V408 = 132
    SAMPLER_FEEDBACK_MIN_MIP_OPAQUE = 189
    SAMPLER_FEEDBACK_MIP_REGION_USED_OPAQUE = 190
    A4B4G4R4_UNORM = 191
