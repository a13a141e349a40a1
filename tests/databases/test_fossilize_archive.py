"""Fossilize archives as files: reading, the cached index, salvage of damaged files, writing, merging."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from shaderkiln.databases import fossilize_index
from shaderkiln.databases.fossilize import ArchiveWriter, FossilizeArchive, merge, salvage
from shaderkiln.errors import (
    AccessDeniedError,
    DamagedInputError,
    InvalidArgumentError,
    NotFoundError,
)
from shaderkiln.formats.fossilize import Tag

CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "data" / "captures"
HEAD = b"\x81FOSSILIZEDB\0\0\0\6"
Key = tuple[Tag, int]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path / "cache" / "shaderkiln" / "fossilize"


def entry(tag: int, hash: int, payload: bytes, *, deflate: bool = True, crc: bool = True) -> bytes:
    """An entry, made here without the code under test."""
    stored = zlib.compress(payload) if deflate else payload
    sizes = struct.pack("<4I", len(stored), 2 if deflate else 1, zlib.crc32(stored) if crc else 0, len(payload))
    return b"%024x%016x" % (tag, hash) + sizes + stored


def body(number: int) -> bytes:
    """A payload that looks like a description and differs for each number."""
    return b'{"version":6,"samplers":{"%016x":{"flags":%d,"minFilter":1,"magFilter":1}}}' % (
        number * 0x9E3779B97F4A7C15 % 2**64,
        number,
    )


SMALL: list[tuple[Key, bytes, bytes]] = [
    ((tag, hash), payload, entry(tag, hash, payload, deflate=deflate, crc=crc))
    for tag, hash, payload, deflate, crc in (
        (Tag.APPLICATION_INFO, 0xABC, body(1), True, True),
        (Tag.SAMPLER, 0x1111111111111111, body(2) * 3, True, True),
        (Tag.APPLICATION_BLOB_LINK, 0xFFFFFFFFFFFFFFFF, body(3), False, True),
        (Tag.SHADER_MODULE, 0xABC, body(4) + b"\0" + bytes(range(200)), True, True),
        (Tag.GRAPHICS_PIPELINE, 5, body(5) * 2, False, True),
        (Tag.COMPUTE_PIPELINE, 6, body(6), True, True),
    )
]
SMALL_BYTES = HEAD + b"".join(raw for _, _, raw in SMALL)
STARTS = [len(HEAD) + sum(len(raw) for _, _, raw in SMALL[:number]) for number in range(len(SMALL) + 1)]


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def contents(path: Path, *, verify: bool = False, index: bool = False) -> dict[Key, bytes]:
    """Every payload that can be read."""
    found = {}
    with FossilizeArchive.open(path, index=index, verify=verify) as archive:
        for tag in Tag:
            for hash in archive.hashes(tag):
                try:
                    found[tag, hash] = archive.read(tag, hash)
                except DamagedInputError as error:
                    assert str(path) in str(error) and f"{hash:016x}" in str(error) and tag.name.lower() in str(error)
    return found


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the real captures are not beside the project")
@pytest.mark.parametrize("name", ["mpv", "pygfx", "taichi", "vkcube", "wgpu"])
def test_real_captures(name: str) -> None:
    path = CAPTURES / f"{name}.foz"
    data = path.read_bytes()
    expected: dict[Key, bytes] = {}
    at = 16
    while at < len(data):
        tag, hash = Tag(int(data[at : at + 24], 16)), int(data[at + 24 : at + 40], 16)
        stored, flags = struct.unpack_from("<2I", data, at + 40)
        raw = data[at + 56 : at + 56 + stored]
        expected[tag, hash] = zlib.decompress(raw) if flags == 2 else raw
        at += 56 + stored
    with FossilizeArchive.open(path) as archive:
        assert archive.version == 6
        assert len(archive) == len(expected)
        assert archive.damage == () and archive.duplicates == 0 and archive.verify_all() == ()
        for tag in Tag:
            hashes = list(archive.hashes(tag))
            assert hashes == [hash for other, hash in expected if other == tag]
            assert archive.counts()[tag] == len(hashes)
            for hash in hashes:
                assert archive.contains(tag, hash)
                assert archive.read(tag, hash) == expected[tag, hash]
                assert archive.raw_size(tag, hash) == len(expected[tag, hash])


def test_what_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.foz", SMALL_BYTES)
    with FossilizeArchive.open(path) as archive:
        assert not archive.contains(Tag.SAMPLER, 0xABC)
        for ask in (archive.read, archive.raw_size):
            with pytest.raises(NotFoundError, match="sampler 0000000000000abc"):
                ask(Tag.SAMPLER, 0xABC)
    with pytest.raises(InvalidArgumentError):
        archive.contains(Tag.SAMPLER, 1)
    archive.close()
    with pytest.raises(NotFoundError):
        FossilizeArchive.open(tmp_path / "none.foz")


@pytest.mark.spec("AL-02")
def test_what_is_no_archive(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    write(tmp_path / "empty", b"")
    write(tmp_path / "old", b"\x81FOSSILIZEDB\0\0\0\4")
    for name in ("pipe", "folder", "empty", "old"):
        with pytest.raises(DamagedInputError, match=name):
            FossilizeArchive.open(tmp_path / name)


def test_version_5_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.foz", SMALL_BYTES[:15] + b"\5" + SMALL_BYTES[16:])
    assert contents(path) == {key: payload for key, payload, _ in SMALL}


def test_of_equal_keys_the_first_good_one_counts(tmp_path: Path) -> None:
    bad = bytearray(entry(1, 7, body(1)))
    bad[-3] ^= 1
    path = write(tmp_path / "a.foz", HEAD + entry(1, 5, body(1)) + entry(1, 5, body(2)) + bytes(bad) + entry(1, 7, body(3)))
    with FossilizeArchive.open(path) as archive:
        assert list(archive.hashes(Tag.SAMPLER)) == [5, 7]
        assert len(archive) == 2 and archive.duplicates == 2
        assert archive.read(Tag.SAMPLER, 5) == body(1)
        assert archive.read(Tag.SAMPLER, 7) == body(3)


def test_entries_without_checksum_and_larger_than_the_window(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(3_000_000)
    data = HEAD + entry(4, 1, noise) + entry(4, 2, noise, deflate=False, crc=False) + entry(1, 3, body(1), crc=False)
    path = write(tmp_path / "a.foz", data + entry(4, 4, bytes(5_000_000)))
    expected = {
        (Tag.SHADER_MODULE, 1): noise,
        (Tag.SHADER_MODULE, 2): noise,
        (Tag.SAMPLER, 3): body(1),
        (Tag.SHADER_MODULE, 4): bytes(5_000_000),
    }
    assert contents(path) == contents(path, verify=True) == expected
    ledger = salvage(path, tmp_path / "b.foz")
    assert (ledger.kept, ledger.dropped) == (4, 0)
    assert (tmp_path / "b.foz").read_bytes() == path.read_bytes()


@pytest.mark.spec("AL-02")
def test_cut_off_anywhere(tmp_path: Path) -> None:
    for length in range(len(SMALL_BYTES)):
        path = write(tmp_path / "a.foz", SMALL_BYTES[:length])
        if length < 16:
            with pytest.raises(DamagedInputError):
                FossilizeArchive.open(path)
            continue
        whole = {key: payload for (key, payload, _), end in zip(SMALL, STARTS[1:], strict=True) if end <= length}
        assert contents(path) == whole
        with FossilizeArchive.open(path) as archive:
            end = archive.end
            assert end == STARTS[len(whole)]
            assert [(item.offset, item.length) for item in archive.damage] == ([(end, length - end)] if end < length else [])
        assert path.read_bytes() == SMALL_BYTES[:length]


@pytest.mark.spec("AL-02")
def test_any_byte_altered(tmp_path: Path) -> None:
    for position in range(len(SMALL_BYTES)):
        for flip in (1, 0x10, 0x80):
            data = bytearray(SMALL_BYTES)
            data[position] ^= flip
            path = write(tmp_path / "a.foz", bytes(data))
            if position < 16:
                with pytest.raises(DamagedInputError):
                    FossilizeArchive.open(path)
                continue
            others = {
                key: payload
                for (key, payload, raw), end in zip(SMALL, STARTS[1:], strict=True)
                if not end - len(raw) <= position < end
            }
            for verify in (False, True):
                found = contents(path, verify=verify)
                assert {key: found.get(key) for key in others} == others, (position, flip)
                # The key is covered by no checksum: an altered digit may name another entry, with the payload unchanged.
                extra = {key: payload for key, payload in found.items() if key not in others}
                assert len(extra) <= 1
                assert set(extra.values()) <= {payload for _, payload, _ in SMALL}
            if position % 5 == 0:  # each waits for the disk
                ledger = salvage(path, tmp_path / "b.foz")
                assert contents(tmp_path / "b.foz") == found
                assert ledger.kept == len(found) and ledger.kept + ledger.dropped == len(SMALL)
            assert path.read_bytes() == data


@pytest.mark.spec("AL-02")
def test_any_bit_of_a_size_loses_no_other_entry(tmp_path: Path) -> None:
    # Entries of 2 ** n bytes in all, so that a size with one more bit ends exactly where a later entry begins.
    def exact(number: int, size: int, deflate: bool) -> bytes:
        noise = random.Random(number).randbytes(size)
        for length in range(size - 56, 0, -1):
            made = entry(4, number, noise[:length], deflate=deflate)
            if len(made) == size:
                return made
        raise AssertionError

    entries = [exact(number, 128 << number % 3, deflate=number % 2 == 0) for number in range(1, 13)]
    data = HEAD + b"".join(entries)
    start = 16
    for number, raw in enumerate(entries, 1):
        for field in (40, 52):
            for bit in range(32):
                damaged = bytearray(data)
                damaged[start + field + bit // 8] ^= 1 << bit % 8
                path = write(tmp_path / "a.foz", bytes(damaged))
                found = contents(path, verify=True)
                assert set(range(1, 13)) - {hash for _, hash in found} == {number}, (number, field, bit)
                ledger = merge([path], tmp_path / "b.foz", inflate=True)
                assert (ledger.kept, ledger.dropped) == (11, 1)
                if field == 40:
                    assert merge([path], tmp_path / "b.foz").kept == 11
        start += len(raw)


@pytest.mark.spec("AL-02")
@given(
    st.lists(st.tuples(st.sampled_from(Tag), st.integers(0, 40), st.binary(max_size=300), st.booleans()), max_size=12),
    st.lists(st.tuples(st.integers(0, 4000), st.binary(min_size=1, max_size=90)), max_size=4),
    st.integers(0, 1),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_written_over_and_between(
    tmp_path: Path, items: list[tuple[Tag, int, bytes, bool]], garbage: list[tuple[int, bytes]], insert: int
) -> None:
    data, touched, ends = bytearray(HEAD), set(), []
    for tag, hash, payload, deflate in items:
        start = len(data)
        data += entry(tag, hash, payload, deflate=deflate)
        ends.append((start, len(data)))
    size = len(data)
    for position, noise in garbage:
        position = 16 + position % (size - 15)
        if insert:
            touched |= {number for number, (start, end) in enumerate(ends) if start < position < end}
            continue
        noise = noise[: size - position]
        data[position : position + len(noise)] = noise
        touched |= {number for number, (start, end) in enumerate(ends) if start < position + len(noise) and position < end}
    if insert:
        for position, noise in sorted(garbage, key=lambda item: 16 + item[0] % (size - 15), reverse=True):
            position = 16 + position % (size - 15)
            data[position:position] = noise
    good: dict[Key, set[bytes]] = {}
    for number, (tag, hash, payload, _) in enumerate(items):
        if number not in touched:
            good.setdefault((tag, hash), set()).add(payload)
    path = write(tmp_path / "a.foz", bytes(data))
    found = contents(path, verify=True)
    assert set(good) <= set(found)
    contents(path)
    if len({(tag, hash) for tag, hash, *_ in items}) == len(items):
        assert all(found[key] in payloads for key, payloads in good.items())
    ledger = salvage(path, tmp_path / "b.foz")
    assert ledger.inputs[0].balanced and ledger.kept == len(found)
    assert contents(tmp_path / "b.foz", verify=True) == found
    with FossilizeArchive.open(tmp_path / "b.foz") as archive:
        assert archive.damage == () and archive.duplicates == 0


@pytest.mark.spec("AL-02")
def test_false_starts_cost_no_more_than_linear_time(tmp_path: Path) -> None:
    # Every 60 bytes a header that claims everything up to the end of the file.
    size = 3_000_000
    data = bytearray(HEAD + b"garbage!")
    while len(data) < size - 200:
        data += (
            b"%024x%016x" % (4, len(data)) + struct.pack("<4I", size - len(data) - 56, 1, 1, size - len(data) - 56) + b"none"
        )
    data += bytes(size - len(data))
    begun = time.monotonic()
    with FossilizeArchive.open(write(tmp_path / "a.foz", bytes(data))) as archive:
        assert len(archive) <= 1
        assert "false starts" in archive.damage[-1].reason
    assert time.monotonic() - begun < 5


@pytest.mark.spec("AL-02")
@pytest.mark.parametrize("verify", [False, True])
def test_very_many_damaged_places_cost_little_time_and_memory(tmp_path: Path, verify: bool) -> None:
    count = 40_000
    good = [entry(1, number, b"", deflate=False) + b"?" * (1 + number % 3) for number in range(count)]
    begun = time.monotonic()
    with FossilizeArchive.open(write(tmp_path / "a.foz", HEAD + b"".join(good)), verify=verify) as archive:
        assert len(archive) == count
        assert len(archive.damage) == 10_000
        last = archive.damage[-1]
        assert last.offset + last.length == archive.stored_size
    assert time.monotonic() - begun < 10


def test_old_indexes_go(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fossilize_index, "MIN_ENTRIES", 1)
    monkeypatch.setattr(fossilize_index, "MAX_FILES", 3)
    for number in range(6):
        with FossilizeArchive.open(archive_of(tmp_path / f"{number}.foz", many(5))):
            pass
    assert len(list(cache.iterdir())) == 3
    with FossilizeArchive.open(tmp_path / "5.foz") as archive:
        assert archive.indexed


def test_use_after_closing_is_refused(tmp_path: Path) -> None:
    path = archive_of(tmp_path / "a.foz", many())
    for indexed in (False, True):
        archive = FossilizeArchive.open(path, index=indexed)
        hashes = archive.hashes(Tag.SAMPLER)
        first = next(hashes)
        archive.close()
        with pytest.raises(InvalidArgumentError):
            archive.read(Tag.SAMPLER, first)
        with pytest.raises(InvalidArgumentError):
            archive.verify_all()
        with pytest.raises(InvalidArgumentError):
            next(archive.hashes(Tag.SAMPLER))
        if indexed:
            with pytest.raises(InvalidArgumentError):
                next(hashes)


def test_memory_stays_flat(tmp_path: Path) -> None:
    script = (
        "import resource, sys\n"
        "from shaderkiln.databases.fossilize import FossilizeArchive\n"
        "from shaderkiln.formats.fossilize import Tag\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "FossilizeArchive.open(sys.argv[1]).close()\n"
        "before = peak()\n"
        "with FossilizeArchive.open(sys.argv[2]) as archive:\n"
        "    for tag in Tag:\n"
        "        for hash in archive.hashes(tag): archive.read(tag, hash)\n"
        "print(peak() - before)\n"
    )
    small, large = archive_of(tmp_path / "small.foz", many(2000)), archive_of(tmp_path / "large.foz", many(60_000))
    growth = []
    for _ in range(2):
        result = subprocess.run([sys.executable, "-c", script, small, large], capture_output=True, text=True, check=True)
        growth.append(int(result.stdout))
    # KiB; a dict of tuples takes 20 MB. The second process has an index and reads it in place.
    assert growth[0] < 8000 and growth[1] < 4000


@pytest.mark.spec("AL-02")
def test_sizes_that_lie_use_no_memory(tmp_path: Path) -> None:
    bomb = zlib.compress(bytes(200_000_000), 9)
    lie = b"%024x%016x" % (4, 1) + struct.pack("<4I", len(bomb), 2, zlib.crc32(bomb), 300_000) + bomb
    huge = b"%024x%016x" % (4, 2) + struct.pack("<4I", 0xFFFFFFF0, 1, 5, 0xFFFFFFF0)
    path = write(tmp_path / "a.foz", HEAD + lie + huge + entry(1, 3, body(3)))
    script = (
        "import resource, sys\n"
        "from shaderkiln.databases.fossilize import FossilizeArchive, salvage\n"
        "from shaderkiln.formats.fossilize import Tag\n"
        "archive = FossilizeArchive.open(sys.argv[1])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(archive.contains(Tag.SAMPLER, 3), len(archive.verify_all()), salvage(sys.argv[1], sys.argv[2]).kept)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, path, tmp_path / "b.foz"], capture_output=True, text=True, check=True
    )
    first, growth = result.stdout.splitlines()
    assert first == "True 2 1"
    assert int(growth) < 20_000  # KiB


# The cached index


def many(count: int = 1500, first: int = 1) -> dict[Key, bytes]:
    return {(Tag(number % 9), number * 0x9E3779B97F4A7C15 % 2**64): body(number) for number in range(first, first + count)}


def archive_of(path: Path, items: dict[Key, bytes]) -> Path:
    return write(path, HEAD + b"".join(entry(tag, hash, payload) for (tag, hash), payload in items.items()))


def test_index_is_made_used_and_kept_up_to_date(tmp_path: Path, cache: Path) -> None:
    items = many()
    path = archive_of(tmp_path / "a.foz", items)
    with FossilizeArchive.open(path, index=False):
        assert not cache.exists()
    assert contents(path, index=True) == items
    (index,) = cache.iterdir()
    with FossilizeArchive.open(path) as archive:
        assert archive.indexed
        assert archive.counts()[Tag.SAMPLER] == sum(tag == Tag.SAMPLER for tag, _ in items)
    assert contents(path, index=True) == items
    with path.open("ab") as file:
        file.write(entry(1, 77, b"new") + b"cut off")
    with FossilizeArchive.open(path) as archive:
        assert archive.read(Tag.SAMPLER, 77) == b"new"
        damage = archive.damage
        assert [item.length for item in damage] == [7]
    with FossilizeArchive.open(path) as archive:
        assert archive.indexed and archive.damage == damage and archive.end == path.stat().st_size - 7
    index.chmod(0o666)
    with FossilizeArchive.open(path, index=True) as archive:
        assert list(cache.iterdir()) == [index]
        assert archive.read(Tag.SAMPLER, 77) == b"new"


def test_index_of_a_changed_file_is_not_believed(tmp_path: Path) -> None:
    items, others = many(), many(first=5000)
    path = archive_of(tmp_path / "a.foz", items)
    contents(path, index=True)
    before = path.stat()
    archive_of(tmp_path / "b.foz", others).replace(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert contents(path, index=True) == others


def test_folder_that_cannot_be_written_means_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = many()
    path = archive_of(tmp_path / "a.foz", items)
    monkeypatch.setenv("XDG_CACHE_HOME", str(write(tmp_path / "file", b"")))
    assert contents(path, index=True) == items
    with FossilizeArchive.open(path) as archive:
        assert not archive.indexed


@pytest.mark.spec("AL-02")
def test_damaged_index_is_discarded(tmp_path: Path, cache: Path) -> None:
    items = many(1100)
    path = archive_of(tmp_path / "a.foz", items)
    with FossilizeArchive.open(path):
        pass
    (index,) = cache.iterdir()
    good = index.read_bytes()
    rnd = random.Random(3)
    positions = list(range(232)) + [rnd.randrange(len(good)) for _ in range(200)] + [len(good) - 1]
    for position in positions:
        damaged = bytearray(good)
        damaged[position] ^= 1 << rnd.randrange(8)
        index.write_bytes(damaged)
        with FossilizeArchive.open(path) as archive:
            assert len(archive) == 1100
    for length in (0, 1, 100, len(good) - 1):
        index.write_bytes(good[:length])
        assert len(FossilizeArchive.open(path)) == 1100
    assert index.read_bytes() != good[:100]


@pytest.mark.spec("AL-02")
def test_hostile_index_with_right_checksum(tmp_path: Path, cache: Path) -> None:
    items = many(1100)
    path = archive_of(tmp_path / "a.foz", items)
    with FossilizeArchive.open(path):
        pass
    (index,) = cache.iterdir()
    good = index.read_bytes()
    head = struct.calcsize("=8sIIQQQQ16sQQQQQQ11Q")
    columns = {"offsets": (head + 8 * 1100, 8 * 1100), "table": (head + 16 * 1100, 4 * 4096)}
    for start, length in columns.values():
        for filler in (b"\xff", b"\x01", b"\x00"):
            if (start, filler) == (columns["table"][0], b"\x00"):
                continue  # an empty table hides entries, which is all that its owner can do
            hostile = bytearray(good[:-8])
            hostile[start : start + length] = filler * length
            index.write_bytes(hostile + xxhash.xxh3_64_digest(bytes(hostile)))
            with FossilizeArchive.open(path) as archive:
                assert archive.indexed
                for (tag, hash), payload in items.items():
                    assert archive.read(tag, hash) == payload
                assert not archive.indexed


# Writing


def test_new_archive_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "a.foz"
    with ArchiveWriter.create(path) as writer:
        for (tag, hash), payload, _ in SMALL:
            assert writer.put(tag, hash, payload, compress=hash != 5)
            assert not writer.put(tag, hash, b"other")
        assert not path.exists()
    assert (writer.written, writer.duplicates) == (6, 6)
    assert contents(path) == {key: payload for key, payload, _ in SMALL}
    assert path.read_bytes()[:16] == HEAD
    assert list(tmp_path.glob(".*")) == []
    with pytest.raises(InvalidArgumentError):
        writer.put(Tag.SAMPLER, 1, b"")
    before = path.read_bytes()
    with pytest.raises(RuntimeError), ArchiveWriter.create(path) as writer:
        writer.put(Tag.SAMPLER, 1, b"")
        raise RuntimeError
    assert path.read_bytes() == before and list(tmp_path.glob(".*")) == []


def test_appending_cuts_off_a_damaged_tail(tmp_path: Path) -> None:
    path = write(tmp_path / "a.foz", SMALL_BYTES[:-5])
    with ArchiveWriter.append(path) as writer:
        assert writer.cut == len(SMALL[-1][2]) - 5
        assert not writer.put(Tag.SAMPLER, 0x1111111111111111, b"")
        assert writer.put(*SMALL[-1][0], SMALL[-1][1])
        with pytest.raises(AccessDeniedError, match="another writer"):
            ArchiveWriter.append(path)
    assert contents(path) == {key: payload for key, payload, _ in SMALL}
    with FossilizeArchive.open(path) as archive:
        assert archive.damage == ()
    other = write(tmp_path / "b.foz", b"something else")
    with pytest.raises(DamagedInputError):
        ArchiveWriter.append(other)
    assert other.read_bytes() == b"something else"


def test_put_over_a_damaged_entry_is_kept(tmp_path: Path) -> None:
    data = bytearray(SMALL_BYTES)
    data[STARTS[2] - 2] ^= 1
    path = write(tmp_path / "a.foz", bytes(data))
    (tag, hash), payload, _ = SMALL[1]
    with ArchiveWriter.append(path) as writer:
        assert writer.put(tag, hash, payload)
    assert contents(path) == {key: payload for key, payload, _ in SMALL}


def test_reader_beside_an_appending_writer(tmp_path: Path) -> None:
    path = write(tmp_path / "a.foz", SMALL_BYTES)
    with ArchiveWriter.append(path) as writer, FossilizeArchive.open(path) as archive:
        writer.put(Tag.SAMPLER, 99, b"new")
        assert not archive.contains(Tag.SAMPLER, 99)
        assert archive.read(Tag.SAMPLER, 0x1111111111111111) == SMALL[1][1]
        assert FossilizeArchive.open(path).read(Tag.SAMPLER, 99) == b"new"


APPENDER = """
import os, sys
from shaderkiln.databases.fossilize import ArchiveWriter
from shaderkiln.formats.fossilize import Tag
writer = ArchiveWriter.append(sys.argv[1])
number = int(sys.argv[2])
while True:
    writer.put(Tag.SHADER_MODULE, number, b"%d " % number * (number % 5000))
    os.write(1, b"%d\\n" % number)
    number += 1
"""


@pytest.mark.spec("AL-03")
def test_killed_while_appending_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.foz"
    rnd, done = random.Random(5), 0
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", APPENDER, path, str(done)], stdout=subprocess.PIPE)
        assert process.stdout
        process.stdout.readline()
        time.sleep(rnd.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        lines = process.stdout.read().split(b"\n")
        process.stdout.close()
        process.wait()
        returned = [int(line) for line in lines[:-1] if line]
        done = max([done + 1, *(number + 1 for number in returned)])
        with FossilizeArchive.open(path) as archive:
            for number in range(done):
                assert archive.read(Tag.SHADER_MODULE, number) == b"%d " % number * (number % 5000)
        # A half-written entry, as a kill within the system call leaves it, must not stop the next process.
        with path.open("ab") as file:
            file.write(entry(4, 10**9, body(1))[: rnd.randrange(100)])
    assert done > 50


@pytest.mark.spec("AL-03")
def test_cut_off_anywhere_then_appended(tmp_path: Path) -> None:
    for length in range(16, len(SMALL_BYTES), 3):
        path = write(tmp_path / "a.foz", SMALL_BYTES[:length])
        with ArchiveWriter.append(path) as writer:
            for (tag, hash), payload, _ in SMALL:
                writer.put(tag, hash, payload)
        assert contents(path) == {key: payload for key, payload, _ in SMALL}
        assert FossilizeArchive.open(path).damage == ()


# Merging


def test_merge_accounts_for_everything(tmp_path: Path) -> None:
    one = HEAD + entry(1, 1, body(1)) + entry(1, 2, body(2)) + entry(1, 3, body(3)) + entry(1, 1, body(1))
    damaged = bytearray(entry(1, 4, body(4)))
    damaged[60] ^= 4
    two = (
        HEAD
        + entry(1, 1, body(1), deflate=False)  # the same payload in another form
        + entry(1, 2, body(9))  # another payload
        + bytes(damaged)
        + b"garbage"
        + entry(2, 1, body(5))
    )
    first, second, output = write(tmp_path / "1.foz", one), write(tmp_path / "2.foz", two), tmp_path / "3.foz"
    calls: list[tuple[int, int]] = []
    ledger = merge([first, second], output, lambda done, total: calls.append((done, total)))
    left, right = ledger.inputs
    assert (left.entries, left.kept, left.duplicates, left.conflicting, left.dropped) == (4, 3, 1, 0, 0)
    # The damaged entry and the garbage behind it are one place: no header follows that would prove where the entry ends.
    assert (right.entries, right.kept, right.duplicates, right.conflicting, right.dropped) == (4, 1, 1, 1, 1)
    assert right.balanced and (right.damage[0].tag, right.damage[0].hash) == (Tag.SAMPLER, 4)
    (conflict,) = right.conflicts
    assert (conflict.tag, conflict.hash, conflict.kept_from) == (Tag.SAMPLER, 2, first)
    assert contents(output) == {
        (Tag.SAMPLER, 1): body(1),
        (Tag.SAMPLER, 2): body(2),
        (Tag.SAMPLER, 3): body(3),
        (Tag(2), 1): body(5),
    }
    assert ledger.bytes_written == output.stat().st_size
    total = len(one) + len(two)
    assert calls[-1] == (total, total) and [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert (first.read_bytes(), second.read_bytes()) == (one, two)


def test_merge_refuses_before_it_writes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.foz", SMALL_BYTES)
    with pytest.raises(InvalidArgumentError):
        merge([path], path)
    with pytest.raises(NotFoundError):
        merge([path, tmp_path / "none.foz"], tmp_path / "b.foz")
    with pytest.raises(DamagedInputError):
        merge([path, write(tmp_path / "c.foz", b"no archive at all")], tmp_path / "b.foz")
    with pytest.raises(AccessDeniedError):
        merge([path], tmp_path / "none" / "b.foz")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.foz", "c.foz"]


def test_merge_of_very_many_inputs(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{number}.foz", HEAD + entry(1, number % 50, body(number % 50))) for number in range(150)]
    ledger = merge(paths, tmp_path / "out.foz")
    assert ledger.kept == 50 and sum(item.duplicates for item in ledger.inputs) == 100


# A model


class ArchiveMachine(RuleBasedStateMachine):
    """Writer and reader against a dict, through reopening, cut-off tails and damaged indexes."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        os.environ["XDG_CACHE_HOME"] = self.folder.name
        fossilize_index.MIN_ENTRIES = 2
        self.path = Path(self.folder.name) / "a.foz"
        self.model: dict[Key, bytes] = {}

    @initialize()
    def begin(self) -> None:
        self.writer = ArchiveWriter.append(self.path)

    @rule(target=keys, tag=st.sampled_from(Tag), hash=st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1)))
    def key(self, tag: Tag, hash: int) -> Key:
        return tag, hash

    @rule(key=keys, payload=st.binary(max_size=300), compress=st.booleans())
    def put(self, key: Key, payload: bytes, compress: bool) -> None:
        assert self.writer.put(*key, payload, compress) == (key not in self.model)
        self.model.setdefault(key, payload)

    @rule(junk=st.binary(max_size=70))
    def die_and_reopen(self, junk: bytes) -> None:
        self.writer.abort()
        with self.path.open("ab") as file:
            file.write(junk)
        self.writer = ArchiveWriter.append(self.path)
        assert self.writer.cut == len(junk)

    @rule()
    def merge(self) -> None:
        merged = self.path.with_name("merged.foz")
        ledger = merge([self.path, self.path], merged)
        assert [(item.kept, item.duplicates) for item in ledger.inputs] == [(len(self.model), 0), (0, len(self.model))]
        assert merged.read_bytes() == self.path.read_bytes()

    @rule(key=keys)
    def look(self, key: Key) -> None:
        with FossilizeArchive.open(self.path) as archive:
            assert archive.contains(*key) == (key in self.model)
            if key in self.model:
                assert archive.read(*key) == self.model[key]
                assert archive.raw_size(*key) == len(self.model[key])
            else:
                with pytest.raises(NotFoundError):
                    archive.read(*key)

    @invariant()
    def same(self) -> None:
        if hasattr(self, "writer"):
            with FossilizeArchive.open(self.path) as archive:
                assert len(archive) == len(self.model) and archive.damage == ()
                assert {tag: list(archive.hashes(tag)) for tag in Tag} == {
                    tag: [hash for other, hash in self.model if other == tag] for tag in Tag
                }

    def teardown(self) -> None:
        if hasattr(self, "writer"):
            self.writer.close()
        fossilize_index.MIN_ENTRIES = 1024
        self.folder.cleanup()


TestArchiveMachine = ArchiveMachine.TestCase
TestArchiveMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
