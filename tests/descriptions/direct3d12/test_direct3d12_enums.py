"""The numbers of the enumerations, written down from the public headers."""

from __future__ import annotations

import pytest

from shaderkiln.descriptions.direct3d12 import enums


@pytest.mark.spec("EP-09")
def test_psdb_subobject_types_have_the_numbers_of_the_specification() -> None:
    assert enums.PipelineStateSubobjectType.PSDB == 30
    assert enums.StateSubobjectType.PSDB == 43
    assert enums.ShaderCacheSessionSubobjectFlags.NONE == 0
    assert enums.ShaderCacheSessionSubobjectFlags.CREATE_ONLY == 1


def test_pipeline_state_subobject_types() -> None:
    names = [
        *("ROOT_SIGNATURE", "VS", "PS", "DS", "HS", "GS", "CS", "STREAM_OUTPUT", "BLEND", "SAMPLE_MASK", "RASTERIZER"),
        *("DEPTH_STENCIL", "INPUT_LAYOUT", "IB_STRIP_CUT_VALUE", "PRIMITIVE_TOPOLOGY", "RENDER_TARGET_FORMATS"),
        *("DEPTH_STENCIL_FORMAT", "SAMPLE_DESC", "NODE_MASK", "CACHED_PSO", "FLAGS", "DEPTH_STENCIL1", "VIEW_INSTANCING"),
    ]
    later = {
        "AS": 24,
        "MS": 25,
        "DEPTH_STENCIL2": 26,
        "RASTERIZER1": 27,
        "RASTERIZER2": 28,
        "SERIALIZED_ROOT_SIGNATURE": 29,
        "PSDB": 30,
    }
    expected = {**{name: number for number, name in enumerate(names)}, **later}
    assert {member.name: member.value for member in enums.PipelineStateSubobjectType} == expected


def test_state_subobject_types() -> None:
    expected = {
        "STATE_OBJECT_CONFIG": 0,
        "GLOBAL_ROOT_SIGNATURE": 1,
        "LOCAL_ROOT_SIGNATURE": 2,
        "NODE_MASK": 3,
        "DXIL_LIBRARY": 5,
        "EXISTING_COLLECTION": 6,
        "SUBOBJECT_TO_EXPORTS_ASSOCIATION": 7,
        "DXIL_SUBOBJECT_TO_EXPORTS_ASSOCIATION": 8,
        "RAYTRACING_SHADER_CONFIG": 9,
        "RAYTRACING_PIPELINE_CONFIG": 10,
        "HIT_GROUP": 11,
        "RAYTRACING_PIPELINE_CONFIG1": 12,
        "WORK_GRAPH": 13,
        "STREAM_OUTPUT": 14,
        "BLEND": 15,
        "SAMPLE_MASK": 16,
        "RASTERIZER": 17,
        "DEPTH_STENCIL": 18,
        "INPUT_LAYOUT": 19,
        "IB_STRIP_CUT_VALUE": 20,
        "PRIMITIVE_TOPOLOGY": 21,
        "RENDER_TARGET_FORMATS": 22,
        "DEPTH_STENCIL_FORMAT": 23,
        "SAMPLE_DESC": 24,
        "FLAGS": 26,
        "DEPTH_STENCIL1": 27,
        "VIEW_INSTANCING": 28,
        "GENERIC_PROGRAM": 29,
        "DEPTH_STENCIL2": 30,
        "GLOBAL_SERIALIZED_ROOT_SIGNATURE": 31,
        "LOCAL_SERIALIZED_ROOT_SIGNATURE": 32,
        "COMPILER_EXISTING_COLLECTION": 33,
        "EXISTING_COLLECTION_BY_KEY": 36,
        "PSDB": 43,
    }
    assert {member.name: member.value for member in enums.StateSubobjectType} == expected


@pytest.mark.parametrize(
    ("member", "number"),
    [
        (enums.FillMode.WIREFRAME, 2),
        (enums.FillMode.SOLID, 3),
        (enums.CullMode.NONE, 1),
        (enums.CullMode.BACK, 3),
        (enums.ComparisonFunc.NONE, 0),
        (enums.ComparisonFunc.LESS, 2),
        (enums.ComparisonFunc.ALWAYS, 8),
        (enums.StencilOp.KEEP, 1),
        (enums.StencilOp.DECR, 8),
        (enums.Blend.ZERO, 1),
        (enums.Blend.SRC_ALPHA_SAT, 11),
        (enums.Blend.BLEND_FACTOR, 14),
        (enums.Blend.INV_ALPHA_FACTOR, 21),
        (enums.BlendOp.MAX, 5),
        (enums.LogicOp.NOOP, 4),
        (enums.LogicOp.OR_INVERTED, 15),
        (enums.ColorWriteEnable.ALL, 15),
        (enums.PrimitiveTopologyType.PATCH, 4),
        (enums.IndexBufferStripCutValue.VALUE_0xFFFFFFFF, 2),
        (enums.InputClassification.PER_INSTANCE_DATA, 1),
        (enums.LineRasterizationMode.QUADRILATERAL_NARROW, 3),
        (enums.PipelineStateFlags.DYNAMIC_DEPTH_BIAS, 4),
        (enums.PipelineStateFlags.DISABLE_CACHED_BLOB, 16),
        (enums.StateObjectType.COLLECTION, 0),
        (enums.StateObjectType.RAYTRACING_PIPELINE, 3),
        (enums.StateObjectType.EXECUTABLE, 4),
        (enums.StateObjectFlags.ALLOW_STATE_OBJECT_ADDITIONS, 4),
        (enums.HitGroupType.PROCEDURAL_PRIMITIVE, 1),
        (enums.RaytracingPipelineFlags.SKIP_TRIANGLES, 0x100),
        (enums.RaytracingPipelineFlags.ALLOW_OPACITY_MICROMAPS, 0x400),
        (enums.WorkGraphFlags.INCLUDE_ALL_AVAILABLE_NODES, 1),
        (enums.NodeOverridesType.COMMON_COMPUTE, 4),
        (enums.DxgiFormat.R32G32B32A32_FLOAT, 2),
        (enums.DxgiFormat.R8G8B8A8_UNORM, 28),
        (enums.DxgiFormat.D32_FLOAT, 40),
        (enums.DxgiFormat.D24_UNORM_S8_UINT, 45),
        (enums.DxgiFormat.B8G8R8A8_UNORM, 87),
        (enums.DxgiFormat.BC7_UNORM_SRGB, 99),
        (enums.DxgiFormat.OPAQUE_420, 106),
        (enums.DxgiFormat.B4G4R4A4_UNORM, 115),
        (enums.DxgiFormat.V408, 132),
        (enums.DxgiFormat.A4B4G4R4_UNORM, 191),
    ],
)
def test_numbers_are_those_of_the_headers(member: int, number: int) -> None:
    assert member == number


def test_formats_are_as_many_as_the_header_has() -> None:
    # 0 to 115 without a gap, three of video, two of sampler feedback, one with four bits each.
    assert len(enums.DxgiFormat) == 116 + 3 + 2 + 1
