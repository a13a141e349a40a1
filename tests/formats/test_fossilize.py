"""The archive format as bytes: headers, payloads, coded words, hash."""

from __future__ import annotations

import contextlib
import json
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.errors import DamagedInputError, InvalidArgumentError
from shaderkiln.formats import fossilize as foz
from shaderkiln.formats.fossilize import DEFLATED, STORED, EntryHeader, Hasher, Tag

CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "data" / "captures"
U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)


def test_tags_have_the_numbers_of_the_format() -> None:
    assert [tag.name for tag in sorted(Tag)] == [
        "APPLICATION_INFO",
        "SAMPLER",
        "DESCRIPTOR_SET_LAYOUT",
        "PIPELINE_LAYOUT",
        "SHADER_MODULE",
        "RENDER_PASS",
        "GRAPHICS_PIPELINE",
        "COMPUTE_PIPELINE",
        "APPLICATION_BLOB_LINK",
        "RAYTRACING_PIPELINE",
        "BUCKET_INFO",
    ]
    assert [int(tag) for tag in sorted(Tag)] == list(range(11))


def test_entry_header_bytes() -> None:
    header = EntryHeader(Tag.BUCKET_INFO, 0x0123456789ABCDEF, 7, DEFLATED, 0xA1B2C3D4, 9)
    expected = b"00000000000000000000000a" + b"0123456789abcdef" + bytes.fromhex("07000000 02000000 d4c3b2a1 09000000")
    assert header.pack() == expected
    assert EntryHeader.parse(b"??" + expected, 2) == header


@pytest.mark.parametrize(
    ("position", "value"),
    [
        (0, b"1"),
        (23, b"b"),
        (24, b"A"),
        (39, b" "),
        (44, b"\0"),
        (44, b"\3"),
        (47, b"\1"),
        (40, b"\xff"),
        (54, b"\xff"),
        (25, b"_"),
    ],
)
def test_header_that_cannot_be_true_is_refused(position: int, value: bytes) -> None:
    good = bytearray(EntryHeader(Tag.SAMPLER, 1, 7, STORED, 1, 7).pack())
    good[position : position + 1] = value
    with pytest.raises(DamagedInputError):
        EntryHeader.parse(bytes(good))


def test_file_header_versions() -> None:
    assert foz.file_header() == b"\x81FOSSILIZEDB\0\0\0\6"
    assert foz.parse_file_header(b"\x81FOSSILIZEDB\0\0\0\5 and more") == 5
    for bad in (b"", b"\x81FOSSILIZEDB\0\0\0", b"\x81FOSSILIZEDB\0\0\0\4", b"\x81FOSSILIZEDB\0\0\0\7", b"SQLite format 3\0"):
        with pytest.raises(DamagedInputError):
            foz.parse_file_header(bad)


@given(st.sampled_from(Tag), U64, st.binary(max_size=2000), st.booleans())
def test_entry_round_trip(tag: Tag, hash: int, payload: bytes, compress: bool) -> None:
    entry = foz.pack_entry(tag, hash, payload, compress=compress)
    header = EntryHeader.parse(entry)
    stored = entry[56:]
    assert (header.tag, header.hash, header.raw_size) == (tag, hash, len(payload))
    assert (header.stored_size, header.crc) == (len(stored), zlib.crc32(stored))
    assert len(stored) <= len(payload)
    assert foz.unpack_payload(stored, header.flags, header.raw_size) == payload


@pytest.mark.spec("AL-02")
def test_inflating_stops_at_the_stated_size() -> None:
    bomb = zlib.compress(bytes(50_000_000), 9)
    with pytest.raises(DamagedInputError, match="more than the stated 1000"):
        foz.unpack_payload(bomb, DEFLATED, 1000)
    with pytest.raises(DamagedInputError, match="limit"):
        foz.unpack_payload(bomb, DEFLATED, 2**32 - 1)


@pytest.mark.spec("AL-02")
def test_damaged_streams_are_refused() -> None:
    payload = b"a payload that deflates well " * 20
    stored = zlib.compress(payload)
    for bad, size in (
        (stored[:-1], len(payload)),
        (stored + b"x", len(payload)),
        (stored, len(payload) - 1),
        (stored, len(payload) + 1),
    ):
        with pytest.raises(DamagedInputError):
            foz.unpack_payload(bad, DEFLATED, size)
    for index in range(len(stored)):
        damaged = bytearray(stored)
        damaged[index] ^= 0x10
        with contextlib.suppress(DamagedInputError):  # a bit that means nothing may pass
            assert foz.unpack_payload(bytes(damaged), DEFLATED, len(payload)) == payload
    with pytest.raises(DamagedInputError):
        foz.unpack_payload(b"abc", STORED, 4)
    with pytest.raises(DamagedInputError):
        foz.unpack_payload(b"abc", 3, 3)


def test_arguments_out_of_range_are_refused() -> None:
    for hash in (-1, 1 << 64):
        with pytest.raises(InvalidArgumentError):
            foz.pack_entry(Tag.SAMPLER, hash, b"")
    for word in (-1, 1 << 32):
        with pytest.raises(InvalidArgumentError):
            foz.encode_varint_words([word])
    with pytest.raises(InvalidArgumentError):
        foz.spirv_to_varint(b"12345")


def test_coded_words_by_hand() -> None:
    # 0x07230203, the SPIR-V magic, in groups of 7 bits from the low end: 03 04 0c 39.
    assert foz.encode_varint_words([0x07230203, 0, 127, 128, 0xFFFFFFFF]) == bytes.fromhex("83848c39 00 7f 8001 ffffffff0f")
    assert list(foz.decode_varint_words(bytes.fromhex("83848c39 00 7f 8001 ffffffff0f"))) == [
        0x07230203,
        0,
        127,
        128,
        0xFFFFFFFF,
    ]


@given(st.lists(st.one_of(U32, st.integers(0, 300))))
def test_coded_words_round_trip(words: list[int]) -> None:
    coded = foz.encode_varint_words(words)
    assert list(foz.decode_varint_words(coded)) == words
    code = struct.pack(f"<{len(words)}I", *words)
    assert foz.spirv_from_varint(coded, len(code)) == code
    assert foz.spirv_to_varint(code) == coded
    with pytest.raises(DamagedInputError):
        foz.spirv_from_varint(coded, len(code) + 4)


@pytest.mark.spec("AL-02")
@pytest.mark.parametrize(
    "coded", ["80", "83848c", "ffffffff1f", "ffffffff8f00", "ffffffffff01", "80808080", "8080808080", "808080808000"]
)
def test_words_too_long_or_cut_off_are_refused(coded: str) -> None:
    with pytest.raises(DamagedInputError):
        foz.decode_varint_words(bytes.fromhex(coded))


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(coded: bytes) -> None:
    try:
        words = foz.decode_varint_words(coded)
    except DamagedInputError:
        return
    assert len(words) == sum(byte < 128 for byte in coded)


def fnv(values: list[int], state: int = 0xCBF29CE484222325) -> int:
    for value in values:
        state = (state * 0x100000001B3) % 2**64 ^ value
    return state


def test_hash_primitives() -> None:
    hasher = Hasher()
    hasher.u32(7)
    hasher.u64(0x1122334455667788)
    hasher.s32(-2)
    hasher.f32(1.0)
    hasher.string("né")
    hasher.data(b"\1\2")
    assert hasher.state == fnv([7, 0x55667788, 0x11223344, 0xFFFFFFFE, 0x3F800000, 0xFF, ord("n"), 0xC3, 0xA9, 1, 2])
    # FNV-1 of the byte "a", a published test vector.
    known = Hasher()
    known.data(b"a")
    assert known.state == 0xAF63BD4C8601B7BE


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the real captures are not beside the project")
@pytest.mark.parametrize("name", ["mpv", "pygfx", "taichi", "vkcube", "wgpu"])
def test_real_modules_decode_to_their_hash(name: str) -> None:
    data = (CAPTURES / f"{name}.foz").read_bytes()
    assert foz.parse_file_header(data) == 6
    at, modules = 16, 0
    while at < len(data):
        header = EntryHeader.parse(data, at)
        payload = foz.unpack_payload(data[at + 56 : at + 56 + header.stored_size], header.flags, header.raw_size)
        at += 56 + header.stored_size
        if header.tag is not Tag.SHADER_MODULE:
            continue
        modules += 1
        head, coded = foz.split_shader_module(payload)
        assert foz.join_shader_module(head, coded) == payload
        (digest, module), *_ = json.loads(head)["shaderModules"].items()
        coded = coded[module["varintOffset"] :][: module["varintSize"]]
        code = foz.spirv_from_varint(coded, module["codeSize"])
        assert code[:4] == bytes.fromhex("03022307")
        assert foz.spirv_to_varint(code) == coded
        assert foz.hash_shader_module(foz.decode_varint_words(coded), module["flags"]) == header.hash == int(digest, 16)
    assert modules
