"""Root signatures: bytes of a real compiler, bytes written down by hand, conversion, and the rules."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaderkiln.errors import DamagedInputError, InvalidArgumentError
from shaderkiln.formats import dxbc
from shaderkiln.formats import root_signature as rs
from shaderkiln.formats.root_signature import (
    APPEND,
    UNBOUNDED,
    DescriptorRange,
    DescriptorRangeFlag,
    DescriptorRangeType,
    DescriptorTable,
    RootConstants,
    RootDescriptor,
    RootDescriptorFlag,
    RootParameterType,
    RootSignature,
    RootSignatureFlag,
    RootSignatureVersion,
    SamplerFlag,
    ShaderVisibility,
    StaticSampler,
)

SHADERS = Path(__file__).parent.parent / "data" / "shaders" / "dxil"
V1_0, V1_1, V1_2 = RootSignatureVersion
SRV, UAV, CBV, SAMPLER = DescriptorRangeType


def test_a_compilers_root_signature_is_what_the_source_says() -> None:
    # g3_textured.hlsl: RootFlags(ALLOW_INPUT_ASSEMBLER_INPUT_LAYOUT), RootConstants(num32BitConstants=4, b0),
    # DescriptorTable(SRV(t0, numDescriptors=2)), StaticSampler(s0, filter=FILTER_MIN_MAG_MIP_LINEAR)
    signature = rs.parse((SHADERS / "g3_textured.ps.dxil").read_bytes())
    assert signature == RootSignature(
        (RootConstants(0, 0, 4), DescriptorTable((DescriptorRange(SRV, 2, 0),))),
        (StaticSampler(0, filter=0x15),),
        RootSignatureFlag.ALLOW_INPUT_ASSEMBLER_INPUT_LAYOUT,
        V1_1,
    )
    rs.validate(signature)
    assert signature.cost == 5


@pytest.mark.parametrize("name", ["c1_fill.cs", "g3_textured.vs", "g3_textured.ps"])
def test_a_compilers_bytes_are_written_again(name: str) -> None:
    part = dxbc.parse((SHADERS / f"{name}.dxil").read_bytes()).root_signature
    assert part is not None
    assert rs.serialize(rs.parse(part)) == part
    alone = rs.serialize_container(rs.parse(part))
    assert dxbc.has_valid_digest(alone)
    assert rs.parse(alone) == rs.parse(part)


def test_bytes_of_version_1_0() -> None:
    signature = RootSignature(
        (
            DescriptorTable((DescriptorRange(CBV, 3, 2, 1),), ShaderVisibility.PIXEL),
            RootDescriptor(RootParameterType.UAV, 7, 2),
        ),
        (),
        RootSignatureFlag.NONE,
        V1_0,
    )
    assert rs.serialize(signature) == struct.pack(
        "<6I 3I 3I 2I 5I 2I",
        *(1, 2, 24, 0, 84, 0),
        *(0, 5, 48),
        *(4, 0, 76),
        *(1, 56),
        *(2, 3, 2, 1, 0xFFFFFFFF),
        *(7, 2),
    )


def test_bytes_of_version_1_2_end_in_the_samplers_flags() -> None:
    sampler = StaticSampler(
        3, 4, 0x15, 2, 3, 4, -1.5, 8, 5, 1, 0.5, 9.0, ShaderVisibility.VERTEX, SamplerFlag.UINT_BORDER_COLOR
    )
    descriptor = RootDescriptor(RootParameterType.CBV, 1, 0, RootDescriptorFlag.DATA_STATIC, ShaderVisibility.MESH)
    signature = RootSignature((descriptor,), (sampler,), RootSignatureFlag(0x400), V1_2)
    expected = struct.pack("<6I 3I 3I", 3, 1, 24, 1, 48, 0x400, 2, 7, 36, 1, 0, 8)
    expected += struct.pack("<4IfIIIffIII I", 0x15, 2, 3, 4, -1.5, 8, 5, 1, 0.5, 9.0, 3, 4, 1, 1)
    assert rs.serialize(signature) == expected
    assert rs.parse(expected) == signature


numbers = st.integers(0, 0xFFFFFFFF)
small = st.integers(0, 1000)
floats = st.floats(width=32, allow_nan=False)
visibilities = st.sampled_from(ShaderVisibility)


@st.composite
def signatures(draw: st.DrawFn) -> RootSignature:
    version = draw(st.sampled_from(RootSignatureVersion))
    old = version is V1_0
    range_flags = st.just(0) if old else st.sampled_from([0, 1, 2, 4, 8, 3, 0x10000])
    ranges = st.builds(
        DescriptorRange,
        st.sampled_from(DescriptorRangeType),
        numbers,
        numbers,
        numbers,
        range_flags.map(DescriptorRangeFlag),
        numbers,
    )
    descriptor_flags = st.just(0) if old else st.sampled_from([0, 2, 4, 8])
    parameter = st.one_of(
        st.builds(DescriptorTable, st.lists(ranges, max_size=4).map(tuple), visibilities),
        st.builds(RootConstants, numbers, numbers, numbers, visibilities),
        st.builds(
            RootDescriptor,
            st.sampled_from([RootParameterType.CBV, RootParameterType.SRV, RootParameterType.UAV]),
            numbers,
            numbers,
            descriptor_flags.map(RootDescriptorFlag),
            visibilities,
        ),
    )
    sampler_flags = st.integers(0, 3) if version is V1_2 else st.just(0)
    sampler = st.builds(
        StaticSampler,
        *(numbers, numbers, small, small, small, small, floats, small, small, small, floats, floats, visibilities),
        sampler_flags.map(SamplerFlag),
    )
    return RootSignature(
        draw(st.lists(parameter, max_size=5).map(tuple)),
        draw(st.lists(sampler, max_size=3).map(tuple)),
        RootSignatureFlag(draw(st.integers(0, 0xFFF))),
        version,
    )


@settings(max_examples=150, deadline=None)
@given(signatures())
def test_writing_and_reading_gives_the_same(signature: RootSignature) -> None:
    data = rs.serialize(signature)
    assert rs.parse(data) == signature
    assert rs.serialize(rs.parse(data)) == data


@settings(max_examples=30, deadline=None)
@given(signatures())
def test_every_truncation_is_refused(signature: RootSignature) -> None:
    data = rs.serialize(signature)
    for length in range(len(data)):
        with pytest.raises(DamagedInputError):
            rs.parse(data[:length])


@settings(max_examples=300, deadline=None)
@given(signatures(), st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), max_size=5))
def test_altered_data_is_read_or_refused(signature: RootSignature, changes: list[tuple[int, int]]) -> None:
    data = bytearray(rs.serialize(signature))
    for at, value in changes:
        data[at % len(data)] = value
    with contextlib.suppress(DamagedInputError):
        rs.parse(bytes(data))


def test_tables_that_share_their_ranges_cannot_multiply_the_work() -> None:
    # 4000 tables that all point to the same 3000 ranges would be 12 million ranges in 100 KB.
    count, ranges = 4000, 3000
    at = 24 + 12 * count
    head = struct.pack("<6I", 2, count, 24, 0, at, 0) + struct.pack("<3I", 0, 0, at) * count
    with pytest.raises(DamagedInputError, match="more ranges"):
        rs.parse(head + struct.pack("<2I", ranges, at + 8) + bytes(24 * ranges))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (struct.pack("<6I", 4, 0, 24, 0, 24, 0), "version 4"),
        (struct.pack("<6I", 2, 0xFFFFFFFF, 24, 0, 24, 0), "do not fit"),
        (struct.pack("<6I", 2, 0, 24, 0xFFFFFFFF, 24, 0), "do not fit"),
        (struct.pack("<6I 3I", 2, 1, 24, 0, 24, 0, 9, 0, 24), "type 9"),
        (struct.pack("<6I 3I", 2, 1, 24, 0, 24, 0, 1, 8, 24), "visibility 8"),
        (struct.pack("<6I 3I", 2, 1, 24, 0, 24, 0, 1, 0, 0xFFFFFFF0), "outside"),
        (b"", "outside"),
    ],
)
def test_refused_with_the_reason(data: bytes, words: str) -> None:
    with pytest.raises(DamagedInputError, match=words):
        rs.parse(data)


def test_a_container_without_the_part_is_refused() -> None:
    with pytest.raises(DamagedInputError, match="no root signature"):
        rs.parse((SHADERS / "c2_reduce.cs.dxil").read_bytes())


def test_version_1_0_promises_nothing() -> None:
    old = RootSignature(
        (
            DescriptorTable((DescriptorRange(SRV, 1, 0), DescriptorRange(UAV, 1, 0), DescriptorRange(CBV, 1, 0))),
            DescriptorTable((DescriptorRange(SAMPLER, 1, 0),)),
            RootDescriptor(RootParameterType.SRV, 5),
            RootConstants(6, 0, 2),
        ),
        version=V1_0,
    )
    new = rs.convert(old, V1_1)
    table, samplers, descriptor, constants = new.parameters
    assert isinstance(table, DescriptorTable) and isinstance(samplers, DescriptorTable)
    both = DescriptorRangeFlag.DESCRIPTORS_VOLATILE | DescriptorRangeFlag.DATA_VOLATILE
    assert [r.flags for r in table.ranges] == [both, both, both]
    assert [r.flags for r in samplers.ranges] == [DescriptorRangeFlag.DESCRIPTORS_VOLATILE]
    assert isinstance(descriptor, RootDescriptor) and descriptor.flags == RootDescriptorFlag.DATA_VOLATILE
    assert constants == RootConstants(6, 0, 2)
    assert rs.convert(new, V1_0) == old
    assert rs.convert(rs.convert(new, V1_2), V1_1) == new


def test_samplers_with_flags_cannot_become_older() -> None:
    signature = RootSignature((), (StaticSampler(0, flags=SamplerFlag.NON_NORMALIZED_COORDINATES),), version=V1_2)
    with pytest.raises(InvalidArgumentError, match=r"1\.2"):
        rs.convert(signature, V1_1)
    with pytest.raises(InvalidArgumentError, match=r"1\.2"):
        rs.serialize(RootSignature((), signature.static_samplers, version=V1_1))


def test_flags_that_version_1_0_lacks_are_not_dropped() -> None:
    static = DescriptorRange(SRV, 1, 0, flags=DescriptorRangeFlag.DATA_STATIC)
    with pytest.raises(InvalidArgumentError):
        rs.serialize(RootSignature((DescriptorTable((static,)),), version=V1_0))


def test_offsets_of_a_table_append() -> None:
    table = DescriptorTable((DescriptorRange(SRV, 3, 0), DescriptorRange(UAV, 2, 0), DescriptorRange(CBV, 1, 0, offset=20)))
    assert table.offsets() == (0, 3, 20)
    assert DescriptorTable((*table.ranges, DescriptorRange(CBV, 1, 5))).offsets() == (0, 3, 20, 21)
    assert APPEND == 0xFFFFFFFF


def _table(*ranges: DescriptorRange, visibility: ShaderVisibility = ShaderVisibility.ALL) -> DescriptorTable:
    return DescriptorTable(ranges, visibility)


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        (RootSignature((RootConstants(0, 0, 65),)), "65 DWORDs"),
        (RootSignature((_table(DescriptorRange(SRV, 1, 0), DescriptorRange(SAMPLER, 1, 0)),)), "mixes samplers"),
        (RootSignature((RootConstants(0, 0, 1), RootDescriptor(RootParameterType.CBV, 0))), "both have b0"),
        (RootSignature((_table(DescriptorRange(SRV, 4, 0)), _table(DescriptorRange(SRV, 4, 3)))), "both have t3"),
        (RootSignature((_table(DescriptorRange(SRV, UNBOUNDED, 0)), RootDescriptor(RootParameterType.SRV, 9))), "both have t9"),
        (
            RootSignature((RootConstants(0, 0, 1), RootConstants(0, 0, 1, ShaderVisibility.PIXEL))),
            "parameter 1 and parameter 0 both have b0",
        ),
        (RootSignature((_table(DescriptorRange(SAMPLER, 1, 2)),), (StaticSampler(2),)), "both have s2"),
        (RootSignature((), (StaticSampler(2), StaticSampler(2))), "both have s2"),
        (RootSignature((_table(DescriptorRange(SRV, UNBOUNDED, 0), DescriptorRange(SRV, 1, 0, 1)),)), "without end"),
        (RootSignature((_table(DescriptorRange(SRV, 0, 0)),)), "no descriptors"),
        (RootSignature((_table(DescriptorRange(SRV, 2, 0xFFFFFFFF)),)), "past the last one"),
        (RootSignature((RootConstants(0, 0xFFFFFFF0, 1),)), "reserved"),
        (RootSignature((_table(DescriptorRange(SAMPLER, 1, 0, flags=DescriptorRangeFlag.DATA_STATIC)),)), "no data"),
        (RootSignature((_table(DescriptorRange(SRV, 1, 0, flags=DescriptorRangeFlag(0xA))),)), "more than one"),
        (RootSignature((_table(DescriptorRange(SRV, 1, 0, flags=DescriptorRangeFlag(9))),)), "cannot be static"),
        (RootSignature((RootDescriptor(RootParameterType.CBV, 0, 0, RootDescriptorFlag(6)),)), "exclude each other"),
        (RootSignature((RootDescriptor(RootParameterType.DESCRIPTOR_TABLE, 0),)), "no root descriptor"),
        (RootSignature(flags=RootSignatureFlag(0x1000)), "unknown bits"),
        (RootSignature(flags=RootSignatureFlag(0x81)), "LOCAL_ROOT_SIGNATURE"),
        (RootSignature((), (StaticSampler(0, mip_lod_bias=float("nan")),)), "LOD bias"),
        (RootSignature((), (StaticSampler(0, address_u=0),)), "address mode"),
    ],
)
def test_broken_rules_are_named(signature: RootSignature, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        rs.validate(signature)


def test_allowed_neighbours() -> None:
    rs.validate(RootSignature((RootConstants(0, 0, 62), RootDescriptor(RootParameterType.CBV, 1))))
    # One register for each stage, for each type, in each space.
    rs.validate(
        RootSignature(
            (
                RootConstants(0, 0, 1, ShaderVisibility.VERTEX),
                RootConstants(0, 0, 1, ShaderVisibility.PIXEL),
                RootConstants(0, 1, 1),
                RootDescriptor(RootParameterType.SRV, 0),
                RootDescriptor(RootParameterType.UAV, 0),
                _table(DescriptorRange(SRV, 4, 1), DescriptorRange(SRV, UNBOUNDED, 5)),
            ),
            (StaticSampler(0),),
        )
    )
    # A local root signature lies in a shader record and may be longer.
    rs.validate(RootSignature((RootConstants(0, 0, 200),), flags=RootSignatureFlag.LOCAL_ROOT_SIGNATURE))
