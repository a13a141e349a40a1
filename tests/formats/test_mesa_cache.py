"""Entries of Mesa's pipeline caches: layouts written by hand, every truncation and change, hostile sizes."""

from __future__ import annotations

import resource
import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats.mesa_cache import PLAIN, Entry, Layout, radv_shader_keys, read, seal, write
from shaderkiln.formats.vk_cache import CacheHeader, CacheRejectedError

HEADER = CacheHeader(0x5143, 0x43050A01, bytes(range(16)))
AMD = CacheHeader(0x1002, 0x744C, bytes(16))

ENTRIES = st.lists(
    st.builds(Entry, st.integers(-1, 7), st.binary(min_size=1, max_size=40), st.binary(min_size=1, max_size=90)), max_size=8
)


def radv_entry(key: bytes, binaries: dict[int, bytes], stacks: bytes = b"") -> bytes:
    """An entry as Mesa 22.3 lays out its structure on 64-bit machines."""
    sizes = [len(binaries.get(stage, b"")) for stage in range(14)]
    data = key + struct.pack("<14I", *sizes) + struct.pack("<I", len(stacks) // 8) + bytes(14 * 8) + bytes(8)
    assert len(data) == 200
    data += b"".join(binaries[stage] for stage in sorted(binaries)) + stacks
    return data + bytes(-len(data) % 8)


@pytest.mark.spec("VC-13")
def test_the_common_layout_byte_for_byte() -> None:
    # Keys of 33 bytes as Turnip has them: the data begins at a multiple of 8, the next entry at one of 4.
    first, second = Entry(0, b"k" * 33, b"abcde"), Entry(PLAIN, b"key2", b"12345678")
    expected = (
        bytes(HEADER)
        + bytes.fromhex("02000000")
        + bytes.fromhex("00000000 21000000 05000000") + b"k" * 33 + bytes(7) + b"abcde" + bytes(3)
        + bytes.fromhex("ffffffff 04000000 08000000") + b"key2" + bytes(4) + b"12345678"
    )  # fmt: skip
    # Where things are, counted by hand: 48 + 33 = 81 → 88; 93 → 96; 108 + 4 = 112, which is a multiple of 8 already.
    expected = expected[:112] + expected[116:]
    assert write(HEADER, [first, second]) == expected
    cache = read(expected)
    assert (cache.layout, cache.fault, list(cache), cache.end) == (Layout.MESA, None, [first, second], 120)
    assert list(cache.ends()) == [93, 120]


@pytest.mark.spec("VC-13")
def test_the_layout_of_radv_22() -> None:
    blob = radv_entry(b"a" * 20, {0: b"vertex..", 4: b"frag"}) + radv_entry(b"b" * 20, {5: b"compute"}, bytes(16))
    cache = read(bytes(AMD) + blob)
    assert (cache.layout, cache.fault) == (Layout.RADV_22, None)
    assert [entry.key for entry in cache] == [b"a" * 20, b"b" * 20]
    assert b"".join(entry.key + entry.data for entry in cache) == blob
    assert write(AMD, cache, cache.layout) == bytes(AMD) + blob
    for size in range(33, len(blob) + 32):
        cut = read((bytes(AMD) + blob)[:size])
        if size != 32 + 216:
            assert cut.fault is not None, size
            assert cut.fault.truncated, size
        assert len(cut) == int(size >= 32 + 216)


@given(ENTRIES)
def test_what_is_written_is_read(entries: list[Entry]) -> None:
    data = write(HEADER, entries)
    cache = read(data)
    assert cache.fault is None
    assert cache.layout is Layout.MESA
    assert list(cache) == entries
    assert write(cache.header, cache) == data


@given(ENTRIES.filter(bool))
@settings(max_examples=30)
def test_every_truncation_is_told_and_keeps_the_whole_entries(entries: list[Entry]) -> None:
    data = write(HEADER, entries)
    ends = list(read(data).ends())
    for size in range(33, len(data)):
        cut = read(data[:size])
        assert cut.fault is not None
        assert cut.fault.truncated
        assert list(cut) == entries[: sum(end <= size for end in ends)]


@pytest.mark.spec("VC-02")
@given(ENTRIES, st.data())
def test_every_change_of_sealed_data_is_found(entries: list[Entry], data: st.DataObject) -> None:
    sealed = seal(write(HEADER, entries))
    assert read(sealed).sealed
    assert list(read(sealed)) == entries
    place = data.draw(st.integers(0, len(sealed) - 1))
    value = data.draw(st.integers(1, 255))
    changed = bytearray(sealed)
    changed[place] ^= value
    try:
        cache = read(bytes(changed))
    except CacheRejectedError:
        assert place < 8
        return
    assert not cache.sealed
    assert cache.fault is not None or len(entries) == 0


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    for header in (HEADER, AMD, CacheHeader(0x10DE, 0x2330, bytes(16))):
        cache = read(bytes(header) + payload)
        assert len(list(cache)) == len(cache)
        assert cache.end <= 32 + len(payload)
        for layout in Layout:
            list(read(bytes(header) + payload, layout))


@pytest.mark.parametrize("layout", [Layout.MESA, Layout.RADV_22])
@pytest.mark.parametrize("word", [0xFFFFFFFF, 0x7FFFFFFF, 0x80000000])
def test_sizes_that_no_file_has_cost_nothing(layout: Layout, word: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    for words in range(1, 60):
        cache = read(bytes(AMD) + struct.pack("<I", word) * words, layout)
        assert cache.fault is not None
        assert len(cache) == 0
    assert time.monotonic() - started < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_many_small_entries_take_eight_bytes_each_until_they_are_asked_for() -> None:
    entry = struct.pack("<iII", PLAIN, 1, 1) + b"k"
    # From a multiple of 4 on: 12 + 1, up to a multiple of 8, 1 byte of data, up to a multiple of 4: at most 24 bytes.
    data = write(HEADER, (Entry(PLAIN, b"k", b"d") for _ in range(50_000)))
    assert len(data) < 50_000 * 24 + 36
    cache = read(data)
    assert len(cache) == 50_000
    assert cache._starts.itemsize == 8
    assert entry in data


def test_a_remainder_of_a_buffer_that_was_too_small_is_told_apart_from_damage() -> None:
    data = write(HEADER, [Entry(PLAIN, b"k" * 32, b"d" * 8)])
    begun = struct.pack("<iII", PLAIN, 32, 100) + b"j" * 32
    cache = read(data + begun)
    assert cache.fault is not None
    assert cache.fault.remainder
    assert len(cache) == 1
    longer = read(data + begun + bytes(9))
    assert longer.fault is not None
    assert not longer.fault.remainder


@pytest.mark.parametrize(
    "entry", [Entry(0, b"", b"d"), Entry(0, b"k", b"")], ids=["no key", "no data"]
)  # fmt: skip
def test_an_entry_needs_a_key_and_data(entry: Entry) -> None:
    with pytest.raises(InvalidArgumentError):
        write(HEADER, [entry])
    raw = bytes(HEADER) + struct.pack("<IiII", 1, 0, len(entry.key), len(entry.data)) + b"x" * 8
    assert read(raw, Layout.MESA).fault is not None


def test_layouts_that_cannot_be_written_are_refused() -> None:
    with pytest.raises(InvalidArgumentError):
        write(AMD, [Entry(0, b"k" * 20, b"short")], Layout.RADV_22)
    with pytest.raises(InvalidArgumentError):
        write(AMD, [], Layout.OPAQUE)


def test_a_payload_of_nobody_known_is_opaque() -> None:
    cache = read(bytes(CacheHeader(0x10DE, 0x2330, bytes(16))) + b"\xf1\x02\x9c\x77" * 20)
    assert (cache.layout, cache.fault, len(cache)) == (Layout.OPAQUE, None, 0)


def test_the_shaders_of_a_pipeline_of_radv() -> None:
    keys = (b"a" * 32, b"b" * 32)
    assert radv_shader_keys(Entry(PLAIN, b"p" * 20, struct.pack("<II", 2, 0) + b"".join(keys))) == keys
    assert radv_shader_keys(Entry(PLAIN, b"p" * 32, struct.pack("<II", 1, 3) + keys[0] + b"ray")) == keys[:1]
    assert radv_shader_keys(Entry(PLAIN, b"s" * 32, struct.pack("<II", 0, 0x8000) + bytes(100))) is None
    assert radv_shader_keys(Entry(PLAIN, b"s" * 32, b"x")) is None
