"""Entries of Mesa's pipeline caches: layouts written by hand, every truncation and change, hostile sizes."""

from __future__ import annotations

import resource
import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats.mesa_cache import PLAIN, CacheData, Entry, Layout, radv_shader_keys, read, seal, write
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


def fault_of(cache: CacheData) -> tuple[int, str, bool, bool]:
    assert cache.fault is not None
    return cache.fault.position, cache.fault.reason, cache.fault.truncated, cache.fault.remainder


def mesa_payload(count: int, *parts: bytes) -> bytes:
    return bytes(HEADER) + struct.pack("<I", count) + b"".join(parts)


# 36 + 12 + 4 = 52, up to 56; 56 + 4 = 60.
WHOLE = struct.pack("<iII", 3, 4, 4) + b"key1" + bytes(4) + b"data"


@pytest.mark.parametrize(
    ("data", "expected", "entries", "end"),
    [
        (bytes(HEADER) + b"\1\0", (34, "ends in the number of entries", True), 0, 32),
        (mesa_payload(2, WHOLE), (60, "ends where entry 1 of 2 should begin", True), 1, 60),
        (mesa_payload(1, WHOLE[:11]), (47, "ends where entry 0 of 1 should begin", True), 0, 36),
        (mesa_payload(1, WHOLE[:12]), (36, "entry 0 claims 24 bytes where 12 are left", True), 0, 36),
        (mesa_payload(1, WHOLE[:-1]), (36, "entry 0 claims 24 bytes where 23 are left", True), 0, 36),
        (mesa_payload(2, WHOLE, struct.pack("<iII", 0, 0, 5)), (60, "entry 1 has no key", False), 1, 60),
        (mesa_payload(2, WHOLE, struct.pack("<iII", 0, 5, 0)), (60, "entry 1 has no data", False), 1, 60),
        (
            mesa_payload(1, WHOLE[:19], b"\1", WHOLE[20:]),
            (36, "entry 0 has something else than zeros between its parts", False), 0, 36,
        ),
        (
            # Data of one byte ends at 57; the next entry begins at 60, and its own parts leave no gap: 60 + 12 = 72.
            mesa_payload(
                2, struct.pack("<iII", 3, 4, 1), b"key1", bytes(4), b"d\0\0\1", struct.pack("<iII", 0, 8, 1), b"k" * 8, b"d"
            ),
            (60, "entry 1 has something else than zeros between its parts", False), 1, 57,
        ),
        (mesa_payload(1, WHOLE, b"\xff" * 12), (60, "12 bytes follow the last of 1 entries", False), 1, 60),
    ],
)  # fmt: skip
def test_where_the_common_layout_stops_to_make_sense(
    data: bytes, expected: tuple[int, str, bool], entries: int, end: int
) -> None:
    cache = read(data, Layout.MESA)
    assert fault_of(cache) == (*expected, False)
    assert (cache.data, cache.header, cache.layout, len(cache), cache.end) == (data, HEADER, Layout.MESA, entries, end)
    assert all(entry.key == b"key1" and entry.type == 3 for entry in cache)


def test_a_remainder_is_at_most_the_numbers_a_key_and_zeros_of_an_entry_that_begins_at_a_multiple_of_four() -> None:
    # 36 + 12 + 32 = 80; 80 + 5 = 85; the next entry would begin at 88.
    data = write(HEADER, [Entry(PLAIN, b"k" * 32, b"d" * 5)])
    begun = bytes(3) + struct.pack("<iII", PLAIN, 32, 100)
    for size, remainder in ((15, True), (52, True), (53, False)):
        cache = read(data + begun + bytes(size - 15))
        assert fault_of(cache) == (85, f"{size} bytes follow the last of 1 entries", False, remainder)
        assert list(cache.ends()) == [85]
    assert not fault_of(read(data + b"\xff" * 20))[3]


@pytest.mark.parametrize(
    ("kind", "key_size", "layout"),
    [
        (-2, 20, Layout.OPAQUE), (-1, 20, Layout.MESA), (0, 20, Layout.MESA), (63, 20, Layout.MESA), (64, 20, Layout.OPAQUE),
        (0, 0, Layout.OPAQUE), (0, 1, Layout.MESA), (0, 1024, Layout.MESA), (0, 1025, Layout.OPAQUE),
    ],
)  # fmt: skip
def test_a_first_entry_that_is_cut_off_is_known_by_its_small_numbers(kind: int, key_size: int, layout: Layout) -> None:
    data = mesa_payload(1, struct.pack("<iII", kind, key_size, 5000))
    cache = read(data)
    assert (cache.data, cache.header, cache.layout, cache.end, len(cache)) == (
        data,
        HEADER,
        layout,
        32 if layout is Layout.OPAQUE else 36,
        0,
    )
    assert (cache.fault is None) is (layout is Layout.OPAQUE)
    # With fewer bytes it may be one in any case.
    assert read(data[:-1]).layout is Layout.MESA


def test_entries_are_had_one_by_one_and_the_payload_as_a_whole() -> None:
    entries = [Entry(1, b"one", b"1"), Entry(PLAIN, b"two", b"22"), Entry(3, b"three", b"333")]
    cache = read(write(HEADER, entries))
    assert [cache[0], cache[1], cache[-1]] == entries
    assert bytes(cache.payload) == write(HEADER, entries)[32:]
    assert read(bytes(HEADER)).fault is None
    assert not cache.sealed


def test_the_names_of_the_layouts() -> None:
    assert [str(layout) for layout in Layout] == ["mesa", "radv-22", "opaque"]


@pytest.mark.spec("VC-02")
def test_the_seal_byte_for_byte() -> None:
    data = write(HEADER, [Entry(0, b"key", b"data")])
    sealed = seal(data)
    assert sealed[:-32] == data
    assert sealed[-32:-16] == b"SKVC\x01\x00\x00\x00" + len(data).to_bytes(8, "little")
    # The XXH3-128 of nothing is published as 99aa06d3014798d86001c324468d497f.
    assert seal(b"")[-16:] == bytes.fromhex("99aa06d3014798d86001c324468d497f")
    empty = read(seal(bytes(HEADER)))
    assert (empty.sealed, empty.data, empty.fault, len(empty)) == (True, bytes(HEADER), None, 0)


@pytest.mark.parametrize("layout", [None, Layout.RADV_22, Layout.MESA])
def test_what_is_not_what_was_sealed_has_no_entries(layout: Layout | None) -> None:
    data = bytes(AMD) + radv_entry(b"a" * 20, {0: b"vertex.."})
    sealed = bytearray(seal(data))
    sealed[40] ^= 1
    cache = read(bytes(sealed), layout)
    assert fault_of(cache) == (32, "it is not what was written: its checksum is another", False, False)
    assert (cache.data, cache.header, cache.end, len(cache), list(cache)) == (bytes(sealed[:-32]), AMD, 32, 0, [])
    assert cache.layout is (layout or Layout.MESA)
    whole = read(seal(data), Layout.RADV_22)
    assert (whole.sealed, whole.layout, len(whole), whole.header) == (True, Layout.RADV_22, 1, AMD)


def test_a_seal_of_another_length_is_data() -> None:
    data = seal(write(HEADER, [Entry(0, b"key", b"data")]))
    moved = data[:-24] + (5).to_bytes(8, "little") + data[-16:]
    for layout in (None, Layout.MESA):
        cache = read(moved, layout)
        assert (cache.sealed, cache.data, cache.header, cache.layout, len(cache)) == (False, moved, HEADER, Layout.MESA, 1)
        assert fault_of(cache)[1] == "32 bytes follow the last of 1 entries"
    assert read(moved, Layout.OPAQUE).header == HEADER


def test_a_cache_uuid_that_looks_like_a_seal_is_none() -> None:
    header = CacheHeader(0x5143, 1, b"SKVC\1\0\0\0" + (16).to_bytes(8, "little"))
    cache = read(bytes(header) + bytes(16))
    assert (cache.header, cache.data, cache.sealed) == (header, bytes(header) + bytes(16), False)


class Long(bytes):
    """Claims to be longer than it is."""

    length = 0

    def __new__(cls, data: bytes, length: int) -> Long:
        made = super().__new__(cls, data)
        made.length = length
        return made

    def __len__(self) -> int:
        return self.length


@pytest.mark.parametrize("part", ["key", "data"])
def test_keys_and_data_of_four_gigabytes_are_refused(part: str) -> None:
    entry = Entry(0, b"k", b"d")
    with pytest.raises(InvalidArgumentError, match="shorter than 4 GiB"):
        write(HEADER, [entry._replace(**{part: Long(b"x", 1 << 32)})])
    last = (1 << 32) - 1
    assert last.to_bytes(4, "little") in write(HEADER, [entry._replace(**{part: Long(b"x", last)})])


RADV_FIXED = 200
"""Key 20, sizes of 14 stages 56, number of stacks 4, pointers 120."""


def radv_fixed(key: bytes = b"a" * 20, **places: int) -> bytes:
    """A fixed part of zeros but for its key and bytes at ``_<place>``."""
    data = bytearray(key + bytes(180))
    for place, value in places.items():
        data[int(place[1:])] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (b"x" * 199, (248, "ends in entry 1", True)),
        (radv_fixed(), (248, "entry 1 has no binaries", False)),
        (radv_fixed(_80=1), (248, "entry 1 has no binaries", False)),
        (radv_fixed(_20=1), (248, "entry 1 claims 208 bytes where 200 are left", True)),
        (radv_fixed(_72=1), (248, "entry 1 claims 208 bytes where 200 are left", True)),
        (radv_fixed(_76=2), (248, "entry 1 claims 216 bytes where 200 are left", True)),
        (radv_fixed(_79=1), (248, "entry 1 claims 134217928 bytes where 200 are left", True)),
        (radv_fixed(_20=1, _80=1), (248, "entry 1 has something else than zeros in place of pointers", False)),
        (radv_fixed(_20=1, _199=1), (248, "entry 1 has something else than zeros in place of pointers", False)),
    ],
)  # fmt: skip
def test_where_the_layout_of_radv_22_stops_to_make_sense(last: bytes, expected: tuple[int, str, bool]) -> None:
    # 200 + 9 bytes of a binary, up to a multiple of 8: 216.
    first = radv_entry(b"f" * 20, {13: b"last one."})
    assert len(first) == 216
    for layout in (None, Layout.RADV_22):
        cache = read(bytes(AMD) + first + last, layout)
        assert fault_of(cache) == (*expected, False)
        assert (cache.layout, cache.header, len(cache), cache.end) == (Layout.RADV_22, AMD, 1, 248)
        assert cache[0] == Entry(0, b"f" * 20, first[20:])
        assert list(cache.ends()) == [248]
    assert "entry 2" in fault_of(read(bytes(AMD) + first + first + last))[1]
    assert "entry 0" in fault_of(read(bytes(AMD) + last, Layout.RADV_22))[1]


def test_stack_sizes_take_eight_bytes_each() -> None:
    blob = radv_entry(b"s" * 20, {12: b"callable"}, bytes(8 * 9))
    cache = read(bytes(AMD) + blob)
    assert (cache.fault, [entry.data for entry in cache]) == (None, [blob[20:]])


def test_amds_data_is_of_the_layout_that_gives_more() -> None:
    cut = bytes(AMD) + mesa_payload(1, WHOLE[:12])[32:]
    assert (read(cut).layout, read(cut).header) == (Layout.MESA, AMD)
    one = bytes(AMD) + mesa_payload(2, WHOLE)[32:]
    assert (read(one).layout, len(read(one))) == (Layout.MESA, 1)
    # A key that would be a small number after the zeros of the cache UUID.
    key = struct.pack("<I", 1) + b"a" * 16
    begun = bytes(AMD) + radv_entry(key, {0: b"vertex.."})[:-1]
    assert (read(begun).layout, read(begun).fault is None) == (Layout.RADV_22, False)
    assert read(bytes(AMD) + b"\xf1\x02\x9c\x77" * 80).layout is Layout.OPAQUE
    # Another vendor's data is never of RADV's layout.
    assert read(bytes(HEADER) + radv_entry(b"a" * 20, {0: b"vertex.."})).layout is Layout.OPAQUE


def test_shader_keys_follow_two_numbers_of_four_bytes() -> None:
    keys = (b"a" * 32, b"b" * 32, b"c" * 32)
    assert radv_shader_keys(Entry(PLAIN, b"p", struct.pack("<II", 3, 1) + b"".join(keys) + b"m")) == keys
    assert radv_shader_keys(Entry(PLAIN, b"p", struct.pack("<II", 0, 0))) == ()
    assert radv_shader_keys(Entry(PLAIN, b"p", bytes(7))) is None
