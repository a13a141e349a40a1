"""Every conversion table against the Vulkan specification, and that no member is left out."""

# ruff: noqa: SIM905 - the names of an enumeration read best as one text

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import pytest

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
from shaderkiln.lowering import tables

# The enumerations of the Vulkan specification in the order of their numbers, which begin at 0.
COMPARE = "NEVER LESS EQUAL LESS_OR_EQUAL GREATER NOT_EQUAL GREATER_OR_EQUAL ALWAYS".split()
STENCIL = "KEEP ZERO REPLACE INCREMENT_AND_CLAMP DECREMENT_AND_CLAMP INVERT INCREMENT_AND_WRAP DECREMENT_AND_WRAP".split()
FACTORS = (
    "ZERO ONE SRC_COLOR ONE_MINUS_SRC_COLOR DST_COLOR ONE_MINUS_DST_COLOR SRC_ALPHA ONE_MINUS_SRC_ALPHA DST_ALPHA "
    "ONE_MINUS_DST_ALPHA CONSTANT_COLOR ONE_MINUS_CONSTANT_COLOR CONSTANT_ALPHA ONE_MINUS_CONSTANT_ALPHA SRC_ALPHA_SATURATE "
    "SRC1_COLOR ONE_MINUS_SRC1_COLOR SRC1_ALPHA ONE_MINUS_SRC1_ALPHA"
).split()
BLEND_OP = "ADD SUBTRACT REVERSE_SUBTRACT MIN MAX".split()
LOGIC = (
    "CLEAR AND AND_REVERSE COPY AND_INVERTED NO_OP XOR OR NOR EQUIVALENT INVERT OR_REVERSE COPY_INVERTED OR_INVERTED NAND SET"
).split()
TOPOLOGY = (
    "POINT_LIST LINE_LIST LINE_STRIP TRIANGLE_LIST TRIANGLE_STRIP TRIANGLE_FAN LINE_LIST_WITH_ADJACENCY LINE_STRIP_WITH_ADJACENCY "
    "TRIANGLE_LIST_WITH_ADJACENCY TRIANGLE_STRIP_WITH_ADJACENCY PATCH_LIST"
).split()
POLYGON = "FILL LINE POINT".split()
CULL = "NONE FRONT BACK FRONT_AND_BACK".split()
LINE = "DEFAULT RECTANGULAR BRESENHAM RECTANGULAR_SMOOTH".split()
RATE = "VERTEX INSTANCE".split()
ADDRESS = "REPEAT MIRRORED_REPEAT CLAMP_TO_EDGE CLAMP_TO_BORDER MIRROR_CLAMP_TO_EDGE".split()
BORDER = (
    "FLOAT_TRANSPARENT_BLACK INT_TRANSPARENT_BLACK FLOAT_OPAQUE_BLACK INT_OPAQUE_BLACK FLOAT_OPAQUE_WHITE INT_OPAQUE_WHITE"
).split()


def _formats() -> list[str]:
    """VkFormat in order, up to the block-compressed ones."""
    eight = "UNORM SNORM USCALED SSCALED UINT SINT".split()
    found = (
        "UNDEFINED R4G4_UNORM_PACK8 R4G4B4A4_UNORM_PACK16 B4G4R4A4_UNORM_PACK16 R5G6B5_UNORM_PACK16 B5G6R5_UNORM_PACK16 "
        "R5G5B5A1_UNORM_PACK16 B5G5R5A1_UNORM_PACK16 A1R5G5B5_UNORM_PACK16"
    ).split()
    for parts in "R8 R8G8 R8G8B8 B8G8R8 R8G8B8A8 B8G8R8A8".split():
        found += [f"{parts}_{kind}" for kind in [*eight, "SRGB"]]
    found += [f"A8B8G8R8_{kind}_PACK32" for kind in [*eight, "SRGB"]]
    for parts in ("A2R10G10B10", "A2B10G10R10"):
        found += [f"{parts}_{kind}_PACK32" for kind in eight]
    for parts in "R16 R16G16 R16G16B16 R16G16B16A16".split():
        found += [f"{parts}_{kind}" for kind in [*eight, "SFLOAT"]]
    for bits in (32, 64):
        for parts in ("R{0}", "R{0}G{0}", "R{0}G{0}B{0}", "R{0}G{0}B{0}A{0}"):
            found += [f"{parts.format(bits)}_{kind}" for kind in ("UINT", "SINT", "SFLOAT")]
    found += "B10G11R11_UFLOAT_PACK32 E5B9G9R9_UFLOAT_PACK32 D16_UNORM X8_D24_UNORM_PACK32 D32_SFLOAT S8_UINT".split()
    found += "D16_UNORM_S8_UINT D24_UNORM_S8_UINT D32_SFLOAT_S8_UINT".split()
    blocks = {
        "BC1_RGB": "UNORM SRGB", "BC1_RGBA": "UNORM SRGB", "BC2": "UNORM SRGB", "BC3": "UNORM SRGB", "BC4": "UNORM SNORM",
        "BC5": "UNORM SNORM", "BC6H": "UFLOAT SFLOAT", "BC7": "UNORM SRGB",
    }  # fmt: skip
    return found + [f"{name}_{kind}_BLOCK" for name, kinds in blocks.items() for kind in kinds.split()]


FORMATS = _formats()
EXTENSION_FORMATS = {1000340000: "A4R4G4B4_UNORM_PACK16", 1000470001: "A8_UNORM"}
UNLIKE = {
    "R10G10B10A2_UNORM": "A2B10G10R10_UNORM_PACK32",
    "R10G10B10A2_UINT": "A2B10G10R10_UINT_PACK32",
    "R11G11B10_FLOAT": "B10G11R11_UFLOAT_PACK32",
    "R9G9B9E5_SHAREDEXP": "E5B9G9R9_UFLOAT_PACK32",
    "B5G6R5_UNORM": "R5G6B5_UNORM_PACK16",
    "B5G5R5A1_UNORM": "A1R5G5B5_UNORM_PACK16",
    "B4G4R4A4_UNORM": "A4R4G4B4_UNORM_PACK16",
    "A4B4G4R4_UNORM": "R4G4B4A4_UNORM_PACK16",
    "D32_FLOAT_S8X24_UINT": "D32_SFLOAT_S8_UINT",
    "B8G8R8X8_UNORM": "B8G8R8A8_UNORM",
    "B8G8R8X8_UNORM_SRGB": "B8G8R8A8_SRGB",
    "BC1_UNORM": "BC1_RGBA_UNORM_BLOCK",
    "BC1_UNORM_SRGB": "BC1_RGBA_SRGB_BLOCK",
    "BC6H_UF16": "BC6H_UFLOAT_BLOCK",
    "BC6H_SF16": "BC6H_SFLOAT_BLOCK",
    "UNKNOWN": "UNDEFINED",
}
"""Formats whose names follow no rule: Vulkan's packed ones are named from the highest bit on."""


def vulkan_name(name: str) -> str:
    """The name that a DXGI format has in Vulkan."""
    if name in UNLIKE:
        return UNLIKE[name]
    found = name.replace("_UNORM_SRGB", "_SRGB").replace("_FLOAT", "_SFLOAT")
    return f"{found}_BLOCK" if name.startswith("BC") else found


def test_the_formats_of_the_specification_are_listed_right() -> None:
    # Numbers that the Vulkan specification prints, spread over the list.
    known = {"R8_UNORM": 9, "R8G8B8A8_UNORM": 37, "B8G8R8A8_SRGB": 50, "R16_SFLOAT": 76, "R32G32B32A32_SFLOAT": 109,
             "R64G64B64A64_SFLOAT": 121, "D32_SFLOAT_S8_UINT": 130, "BC7_SRGB_BLOCK": 146}  # fmt: skip
    assert {name: FORMATS.index(name) for name in known} == known


@pytest.mark.parametrize("format_", DxgiFormat, ids=lambda f: f.name)
def test_each_format_is_vulkans_of_the_same_bits_or_has_a_reason(format_: DxgiFormat) -> None:
    found = tables.FORMATS[format_]
    if isinstance(found, str):
        assert "TYPELESS" in format_.name or format_ >= DxgiFormat.AYUV or format_.name in {
            "R1_UNORM", "R8G8_B8G8_UNORM", "G8R8_G8B8_UNORM", "R10G10B10_XR_BIAS_A2_UNORM",
        }  # fmt: skip
    else:
        name = EXTENSION_FORMATS[found] if found in EXTENSION_FORMATS else FORMATS[found]
        assert name == vulkan_name(format_.name)


def test_depth_formats_and_what_they_hold() -> None:
    named = {f.name: tuple(FORMATS[number] if number else None for number in pair) for f, pair in tables.DEPTH_FORMATS.items()}
    assert named == {
        "UNKNOWN": (None, None),
        "D16_UNORM": ("D16_UNORM", None),
        "R16_TYPELESS": ("D16_UNORM", None),
        "D24_UNORM_S8_UINT": ("D24_UNORM_S8_UINT", "D24_UNORM_S8_UINT"),
        "R24G8_TYPELESS": ("D24_UNORM_S8_UINT", "D24_UNORM_S8_UINT"),
        "D32_FLOAT": ("D32_SFLOAT", None),
        "R32_TYPELESS": ("D32_SFLOAT", None),
        "D32_FLOAT_S8X24_UINT": ("D32_SFLOAT_S8_UINT", "D32_SFLOAT_S8_UINT"),
        "R32G8X24_TYPELESS": ("D32_SFLOAT_S8_UINT", "D32_SFLOAT_S8_UINT"),
    }


def test_integer_formats_are_those_that_do_not_blend() -> None:
    names = {f.name for f in tables.INTEGER_FORMATS}
    assert {"R8_UINT", "R32G32B32A32_SINT", "R10G10B10A2_UINT", "R16G16_UINT"} <= names
    assert names.isdisjoint({"R8_UNORM", "R16_FLOAT", "R8_SNORM", "X32_TYPELESS_G8X24_UINT", "X24_TYPELESS_G8_UINT"})


_C, _S, _B, _L = ComparisonFunc, StencilOp, Blend, LogicOp
CASES: list[tuple[type[IntEnum], Mapping[int, int], list[str], dict[IntEnum, str]]] = [
    (FillMode, tables.POLYGON_MODES, POLYGON, {FillMode.WIREFRAME: "LINE", FillMode.SOLID: "FILL"}),
    (CullMode, tables.CULL_MODES, CULL, {CullMode.NONE: "NONE", CullMode.FRONT: "FRONT", CullMode.BACK: "BACK"}),
    (ComparisonFunc, tables.COMPARE_OPS, COMPARE, {
        _C.NONE: "ALWAYS", _C.NEVER: "NEVER", _C.LESS: "LESS", _C.EQUAL: "EQUAL", _C.LESS_EQUAL: "LESS_OR_EQUAL",
        _C.GREATER: "GREATER", _C.NOT_EQUAL: "NOT_EQUAL", _C.GREATER_EQUAL: "GREATER_OR_EQUAL", _C.ALWAYS: "ALWAYS",
    }),
    (StencilOp, tables.STENCIL_OPS, STENCIL, {
        _S.KEEP: "KEEP", _S.ZERO: "ZERO", _S.REPLACE: "REPLACE", _S.INCR_SAT: "INCREMENT_AND_CLAMP",
        _S.DECR_SAT: "DECREMENT_AND_CLAMP", _S.INVERT: "INVERT", _S.INCR: "INCREMENT_AND_WRAP", _S.DECR: "DECREMENT_AND_WRAP",
    }),
    (Blend, tables.BLEND_FACTORS, FACTORS, {
        _B.ZERO: "ZERO", _B.ONE: "ONE", _B.SRC_COLOR: "SRC_COLOR", _B.INV_SRC_COLOR: "ONE_MINUS_SRC_COLOR",
        _B.SRC_ALPHA: "SRC_ALPHA", _B.INV_SRC_ALPHA: "ONE_MINUS_SRC_ALPHA", _B.DEST_ALPHA: "DST_ALPHA",
        _B.INV_DEST_ALPHA: "ONE_MINUS_DST_ALPHA", _B.DEST_COLOR: "DST_COLOR", _B.INV_DEST_COLOR: "ONE_MINUS_DST_COLOR",
        _B.SRC_ALPHA_SAT: "SRC_ALPHA_SATURATE", _B.BLEND_FACTOR: "CONSTANT_COLOR",
        _B.INV_BLEND_FACTOR: "ONE_MINUS_CONSTANT_COLOR", _B.SRC1_COLOR: "SRC1_COLOR",
        _B.INV_SRC1_COLOR: "ONE_MINUS_SRC1_COLOR", _B.SRC1_ALPHA: "SRC1_ALPHA", _B.INV_SRC1_ALPHA: "ONE_MINUS_SRC1_ALPHA",
        _B.ALPHA_FACTOR: "CONSTANT_ALPHA", _B.INV_ALPHA_FACTOR: "ONE_MINUS_CONSTANT_ALPHA",
    }),
    (BlendOp, tables.BLEND_OPS, BLEND_OP, {
        BlendOp.ADD: "ADD", BlendOp.SUBTRACT: "SUBTRACT", BlendOp.REV_SUBTRACT: "REVERSE_SUBTRACT", BlendOp.MIN: "MIN",
        BlendOp.MAX: "MAX",
    }),
    (LogicOp, tables.LOGIC_OPS, LOGIC, {
        _L.CLEAR: "CLEAR", _L.SET: "SET", _L.COPY: "COPY", _L.COPY_INVERTED: "COPY_INVERTED", _L.NOOP: "NO_OP",
        _L.INVERT: "INVERT", _L.AND: "AND", _L.NAND: "NAND", _L.OR: "OR", _L.NOR: "NOR", _L.XOR: "XOR", _L.EQUIV: "EQUIVALENT",
        _L.AND_REVERSE: "AND_REVERSE", _L.AND_INVERTED: "AND_INVERTED", _L.OR_REVERSE: "OR_REVERSE",
        _L.OR_INVERTED: "OR_INVERTED",
    }),
    (InputClassification, tables.INPUT_RATES, RATE, {
        InputClassification.PER_VERTEX_DATA: "VERTEX", InputClassification.PER_INSTANCE_DATA: "INSTANCE",
    }),
]  # fmt: skip


@pytest.mark.parametrize(("enumeration", "table", "names", "expected"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_each_member_has_the_vulkan_value_of_its_meaning(
    enumeration: type[IntEnum], table: Mapping[int, int], names: list[str], expected: dict[IntEnum, str]
) -> None:
    assert {member: names[table[member]] for member in enumeration} == expected
    assert set(table) == set(enumeration)


def test_topologies() -> None:
    named = {t.name: v if isinstance(v, str) else TOPOLOGY[v] for t, v in tables.TOPOLOGIES.items()}
    assert named.pop("UNDEFINED") == "only mesh pipelines have no topology"
    assert named == {"POINT": "POINT_LIST", "LINE": "LINE_LIST", "TRIANGLE": "TRIANGLE_LIST", "PATCH": "PATCH_LIST"}
    assert set(tables.TOPOLOGIES) == set(PrimitiveTopologyType)
    strips = {t.name: TOPOLOGY[v] for t, v in tables.STRIPS.items()}
    assert strips == {"LINE": "LINE_STRIP", "TRIANGLE": "TRIANGLE_STRIP"}


def test_lines() -> None:
    assert {mode.name: (LINE[number], width) for mode, (number, width) in tables.LINE_MODES.items()} == {
        "ALIASED": ("BRESENHAM", 1.0),
        "ALPHA_ANTIALIASED": ("RECTANGULAR_SMOOTH", 1.0),
        "QUADRILATERAL_WIDE": ("RECTANGULAR", 1.4),
        "QUADRILATERAL_NARROW": ("RECTANGULAR", 1.0),
    }
    assert set(tables.LINE_MODES) == set(LineRasterizationMode)


def test_samplers() -> None:
    # D3D12_TEXTURE_ADDRESS_MODE is 1 to 5, D3D12_STATIC_BORDER_COLOR 0 to 4 (d3d12.h).
    assert [ADDRESS[tables.ADDRESS_MODES[n]] for n in range(1, 6)] == [
        "REPEAT", "MIRRORED_REPEAT", "CLAMP_TO_EDGE", "CLAMP_TO_BORDER", "MIRROR_CLAMP_TO_EDGE",
    ]  # fmt: skip
    assert [BORDER[tables.BORDER_COLORS[n]] for n in range(5)] == [
        "FLOAT_TRANSPARENT_BLACK", "FLOAT_OPAQUE_BLACK", "FLOAT_OPAQUE_WHITE", "INT_OPAQUE_BLACK", "INT_OPAQUE_WHITE",
    ]  # fmt: skip
    assert len(tables.ADDRESS_MODES) == len(tables.BORDER_COLORS) == 5
    # Reductions STANDARD, COMPARISON, MINIMUM, MAXIMUM: VK_SAMPLER_REDUCTION_MODE_MIN is 1, _MAX is 2.
    assert [tables.REDUCTIONS[n] for n in range(4)] == [None, None, 1, 2]
