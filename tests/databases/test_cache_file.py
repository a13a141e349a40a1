"""Pipeline caches as files: whose they are, whole entries, the ledger of a merge."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.databases.cache_file import (
    DamagedCacheError,
    OtherDeviceError,
    State,
    compare,
    examine,
    merge,
    trim,
)
from shaderkiln.errors import InvalidArgumentError, UnsupportedError
from shaderkiln.formats.mesa_cache import PLAIN, Entry, Layout, read, seal, write
from shaderkiln.formats.vk_cache import CacheHeader, CacheRejectedError

HEADER = CacheHeader(0x1002, 0x744C, bytes(16))
OTHER = CacheHeader(0x1002, 0x73BF, bytes(16))
NVIDIA = CacheHeader(0x10DE, 0x2330, bytes(16))
OPAQUE = bytes(NVIDIA) + b"\xf1\x02\x9c\x77" * 40

ENTRIES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), max_size=12)


def blob(entries: list[tuple[int, int]], header: CacheHeader = HEADER) -> bytes:
    """A cache with a key for the first number of each and data for the second."""
    return write(header, (Entry(PLAIN, b"key %d" % key, b"data %d" % data * 4) for key, data in entries))


@pytest.mark.spec("VC-13")
def test_an_examination_counts_pipelines_and_those_without_their_shaders() -> None:
    shader, missing = b"s" * 32, b"m" * 32
    entries = [
        Entry(PLAIN, shader, b"\0\0\0\0\0\x80\0\0code"),
        Entry(PLAIN, b"p" * 32, struct.pack("<II", 1, 0) + shader),
        Entry(PLAIN, b"q" * 32, struct.pack("<II", 2, 0) + shader + missing),
    ]
    found = examine(seal(write(HEADER, entries)))
    assert (found.state, found.driver, found.layout, found.sealed) == (State.VALID, "RADV", Layout.MESA, True)
    assert (found.entries, found.pipelines, found.incomplete) == (3, 2, 1)
    assert found.entry_bytes == sum(len(entry.key) + len(entry.data) for entry in entries)


@pytest.mark.spec("VC-13")
@pytest.mark.parametrize(
    ("data", "state", "driver"),
    [
        (b"", State.FOREIGN, ""),
        (b"SQLite format 3\0" + bytes(100), State.FOREIGN, ""),
        (bytes(HEADER)[:20], State.TRUNCATED, ""),
        (bytes(HEADER), State.VALID, "RADV"),
        (bytes(HEADER) + b"\1\0", State.TRUNCATED, "RADV"),
        (blob([(1, 1)])[:-1], State.TRUNCATED, "RADV"),
        (blob([(1, 1)]) + bytes(60), State.DAMAGED, "RADV"),
        (blob([(1, 1)], CacheHeader(0x10DE, 1, bytes(16))), State.VALID, "NVK"),
        (OPAQUE, State.OPAQUE, "NVIDIA"),
        (bytes(CacheHeader(0xABCD, 1, bytes(16))) + b"\xf1\x02\x9c\x77" * 40, State.OPAQUE, ""),
    ],
)
def test_whose_data_it_is(data: bytes, state: State, driver: str) -> None:
    found = examine(data)
    assert (found.state, found.driver) == (state, driver)
    assert bool(found.fault) == (state not in (State.VALID, State.OPAQUE))


@pytest.mark.spec("VC-06", "VC-07", "VC-08")
@given(ENTRIES)
def test_every_size_gives_whole_entries_and_the_whole_size_everything(entries: list[tuple[int, int]]) -> None:
    data = blob(entries)
    whole, ends = list(read(data)), list(read(data).ends())
    for size in range(len(data) + 2):
        kept = trim(data, size)
        assert kept == trim(data, size)
        assert len(kept) <= size
        if size < 32:
            assert kept == b""
            continue
        cut = read(kept)
        assert cut.fault is None
        assert cut.header == HEADER
        assert list(cut) == whole[: sum(end <= size for end in ends)]
    assert trim(data, len(data)) == data


@pytest.mark.spec("VC-06")
def test_an_opaque_payload_is_kept_whole_or_not_at_all() -> None:
    assert trim(OPAQUE, len(OPAQUE)) == OPAQUE
    assert trim(OPAQUE, len(OPAQUE) - 1) == bytes(NVIDIA)
    assert trim(OPAQUE, 31) == b""
    with pytest.raises(InvalidArgumentError):
        trim(OPAQUE, -1)
    with pytest.raises(DamagedCacheError, match="truncated"):
        trim(blob([(1, 1)])[:-1], 100)


@pytest.mark.spec("VC-10")
@given(st.lists(ENTRIES, min_size=1, max_size=6))
def test_a_merge_keeps_the_first_of_each_key_and_its_ledger_adds_up(caches: list[list[tuple[int, int]]]) -> None:
    model: dict[int, int] = {}
    for cache in caches:
        for key, data in cache:
            model.setdefault(key, data)
    merged = merge((str(number), blob(cache)) for number, cache in enumerate(caches))
    assert {entry.key: entry.data for entry in read(merged.data)} == {
        b"key %d" % key: b"data %d" % data * 4 for key, data in model.items()
    }
    assert merged.entries == len(model)
    assert all(source.balanced for source in merged.sources)
    assert [source.entries for source in merged.sources] == [len(cache) for cache in caches]
    flat = [pair for cache in caches for pair in cache]
    conflicting = sum(model[key] != data for key, data in flat)
    assert sum(source.conflicting for source in merged.sources) == conflicting
    assert sum(source.duplicates for source in merged.sources) == len(flat) - conflicting - len(model)
    again = merge([("merged", merged.data), *((str(n), blob(cache)) for n, cache in enumerate(caches))])
    assert again.data == merged.data


@pytest.mark.spec("VC-10")
def test_fifty_caches_become_their_union_and_a_second_merge_changes_nothing() -> None:
    random_numbers = random.Random(4)
    caches = [[(random_numbers.randrange(4000), 0) for _ in range(200)] for _ in range(50)]
    sources = [(f"cache {number}", blob(cache)) for number, cache in enumerate(caches)]
    merged = merge(sources)
    union = {key for cache in caches for key, _ in cache}
    assert merged.entries == len(read(merged.data)) == len(union)
    assert sum(source.entries for source in merged.sources) == 50 * 200
    assert sum(source.duplicates for source in merged.sources) == 50 * 200 - len(union)
    assert merged.good
    again = merge([("merged", merged.data), *sources])
    assert again.data == merged.data
    assert [source.kept for source in again.sources] == [len(union)] + [0] * 50


@pytest.mark.spec("VC-10")
def test_what_cannot_be_merged_is_refused_or_left_out_with_the_reason() -> None:
    good, damaged = blob([(1, 1), (2, 1)]), blob([(3, 1), (4, 1)])[:-3]
    with pytest.raises(InvalidArgumentError, match="nothing to merge"):
        merge([])
    with pytest.raises(OtherDeviceError, match="b: made for device 0x73bf, not 0x744c"):
        merge([("a", good), ("b", blob([(3, 1)], OTHER))])
    with pytest.raises(DamagedCacheError, match="b: truncated"):
        merge([("a", good), ("b", damaged)])
    with pytest.raises(CacheRejectedError, match="b: "):
        merge([("a", good), ("b", b"nothing")])
    merged = merge(
        [("a", good), ("b", damaged), ("c", b"nothing"), ("d", blob([(3, 1)], OTHER)), ("e", bytes(HEADER))], salvage=True
    )
    assert [entry.key for entry in read(merged.data)] == [b"key 1", b"key 2", b"key 3"]
    a, b, c, d, e = merged.sources
    assert (a.kept, b.kept, c.kept, d.kept, e.kept) == (2, 1, 0, 0, 0)
    assert "truncated" in b.damage
    assert "7 bytes" in c.left_out
    assert "0x73bf" in d.left_out
    assert not (a.left_out or b.left_out or e.left_out)
    assert not merged.good
    with pytest.raises(InvalidArgumentError, match="nothing can be used"):
        merge([("c", b"nothing")], salvage=True)


@pytest.mark.spec("VC-10")
def test_opaque_data_goes_with_its_like_only() -> None:
    merged = merge([("a", OPAQUE), ("b", OPAQUE)])
    assert merged.data == OPAQUE
    assert [(source.kept, source.duplicates) for source in merged.sources] == [(1, 0), (0, 1)]
    with pytest.raises(UnsupportedError, match="b: only its driver"):
        merge([("a", OPAQUE), ("b", OPAQUE + b"more")])


def test_an_empty_cache_goes_with_every_layout() -> None:
    assert merge([("a", bytes(NVIDIA)), ("b", OPAQUE)]).data == OPAQUE
    assert merge([("a", bytes(HEADER)), ("b", blob([(1, 1)]))]).data == blob([(1, 1)])
    assert merge([("a", bytes(HEADER))]).data == bytes(HEADER)


def test_a_comparison_by_key() -> None:
    found = compare(blob([(1, 1), (2, 1), (3, 1)]), blob([(2, 1), (3, 2), (4, 1)]))
    assert (found.only_first, found.only_second, found.changed, found.equal) == ((b"key 1",), (b"key 4",), (b"key 3",), 1)
    with pytest.raises(OtherDeviceError):
        compare(blob([]), blob([], OTHER))


@given(st.binary(max_size=200), st.booleans())
def test_an_examination_never_raises(data: bytes, with_header: bool) -> None:
    examine(bytes(HEADER) + data if with_header else data)
