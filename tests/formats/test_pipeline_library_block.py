"""Blocks of pipeline libraries: content, layout, and what becomes of damage and lies."""

from __future__ import annotations

import hashlib
import mmap
import random
import struct
import time
import tracemalloc
from pathlib import Path

import msgspec
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from shaderkiln.errors import DamagedInputError, DriverVersionMismatchError, InvalidArgumentError, ShaderkilnError
from shaderkiln.formats.pipeline_library import (
    FORMAT_VERSION,
    KINDS,
    LIBRARY_MAGIC,
    SINGLE_MAGIC,
    Block,
    BlockWriter,
    Kind,
    LibraryPipeline,
    PiecePool,
    check_combination,
)
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity

COMPILER = CompilerIdentity(
    "one", 1, 2, 3, "driver", 4, "build", 5, "compiler", 6, b"uuid-of-16-bytes", b"global", "pipeline-binary", ("f",), 64
)  # fmt: skip
APPLICATION = ApplicationIdentity("Game", "game.exe", 1, "Engine", 2)
Content = dict[bytes, tuple[Kind, bytes, tuple[tuple[bytes, tuple[bytes, ...]], ...]]]


def write(content: Content, magic: bytes = LIBRARY_MAGIC) -> bytes:
    pool = PiecePool()
    pipelines = []
    for name, (kind, key, values) in content.items():
        combination = pool.combination((driver_key, map(pool.piece, parts)) for driver_key, parts in values)
        pipelines.append((name, LibraryPipeline(kind, key, combination)))
    return BlockWriter(pipelines, COMPILER, APPLICATION, magic).to_bytes()


def read(block: Block) -> Content:
    return {
        name: (
            found.kind,
            found.key,
            tuple((key, tuple(bytes(piece.data) for piece in parts)) for key, parts in found.combination),
        )
        for name, found in block.pipelines()
    }


def sealed(blob: bytes | bytearray) -> bytes:
    """The same bytes with the checksum that they need."""
    return bytes(blob[:8]) + xxhash.xxh3_128_digest(blob[24:]) + bytes(blob[24:])


def everything(blob: bytes) -> None:
    """What can be asked of a block."""
    block = Block(blob)
    block.find(b"absent")
    for name in EXAMPLE:
        place = block.find(name)
        if place is not None:
            found = block.pipeline(place)
            kind, key, values = EXAMPLE[name]
            assert (found.kind, found.key) == (kind, key)
            assert found.values() == tuple((driver_key, b"".join(pieces)) for driver_key, pieces in values)
    for place in range(min(len(block), 50)):
        block.pipeline(place).values()


parts = st.lists(st.binary(max_size=40), max_size=3).map(tuple)
driver_values = st.lists(st.tuples(st.binary(max_size=5), parts), max_size=4).map(tuple)
contents = st.dictionaries(
    st.binary(min_size=1, max_size=20),
    st.tuples(st.sampled_from(KINDS), st.binary(min_size=20, max_size=20), driver_values),
    max_size=8,
)
EXAMPLE: Content = {
    f"pipeline {number}".encode(): (
        KINDS[number % 3],
        bytes([number]) * 20,
        ((b"key", (b"shared " * 20,)), (b"own %d" % number, (b"own piece %d" % number, b"shared " * 20))),
    )
    for number in range(6)
}


@given(contents)
def test_what_was_written_is_read(content: Content) -> None:
    blob = write(content)
    block = Block(blob)
    assert read(block) == content
    assert len(block) == len(content)
    assert (block.compiler, block.application) == (COMPILER, APPLICATION)
    for name, (kind, key, values) in content.items():
        place = block.find(name)
        assert place is not None
        found = block.pipeline(place)
        assert (found.kind, found.key) == (kind, key)
        assert found.values() == tuple((driver_key, b"".join(pieces)) for driver_key, pieces in values)
    assert block.find(b"a name of more than twenty bytes") is None


@given(contents, st.randoms(use_true_random=False))
def test_equal_content_gives_equal_bytes(content: Content, order: random.Random) -> None:
    blob = write(content)
    names = list(content)
    order.shuffle(names)
    assert write({name: content[name] for name in names}) == blob
    assert BlockWriter(Block(blob).pipelines(), COMPILER, APPLICATION).to_bytes() == blob


@given(contents)
def test_the_size_is_known_before_it_is_written(content: Content) -> None:
    writer = BlockWriter(Block(write(content)).pipelines(), COMPILER, APPLICATION)
    assert len(writer.to_bytes()) == writer.size


@pytest.mark.spec("PL-10")
@given(contents)
def test_a_block_holds_each_piece_once(content: Content) -> None:
    block = Block(write(content))
    distinct = {piece for _, _, values in content.values() for _, pieces in values for piece in pieces}
    assert {bytes(block.piece(number).data) for number in range(block.piece_count)} == distinct
    assert block.piece_count == len(distinct)
    assert block.piece_bytes == sum(map(len, distinct))


@pytest.mark.spec("PL-10")
def test_identical_pieces_are_held_once_in_memory_and_in_the_block() -> None:
    """By counting bytes: forty pipelines that share one megabyte of object code."""
    shared = random.Random(1).randbytes(1 << 20)
    tracemalloc.start()
    try:
        pool = PiecePool()
        pipelines = []
        for number in range(40):
            copy = bytes(bytearray(shared))
            combination = pool.combination(((b"a", [pool.piece(copy)]), (b"b", [pool.piece(b"own %d" % number)])))
            pipelines.append((b"%d" % number, LibraryPipeline("compute", bytes(20), combination)))
        del copy
        held, _ = tracemalloc.get_traced_memory()
        assert len(shared) <= held < 1.1 * len(shared)
        blob = BlockWriter(pipelines, COMPILER, APPLICATION).to_bytes()
    finally:
        tracemalloc.stop()
    assert blob.count(shared) == 1
    assert len(blob) < len(shared) + 40 * 150 + 500
    # Beside an opened block, too: what it has is not held again.
    again = PiecePool(Block(blob))
    assert again.piece(bytes(bytearray(shared))).data.obj is blob  # type: ignore[union-attr]
    assert again.own_bytes == 0
    again.piece(b"new")
    assert again.own_bytes == 3


def test_pieces_of_one_checksum_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shaderkiln.formats.pipeline_library.checksum_of", lambda data: 7)
    pool = PiecePool()
    assert pool.piece(b"one") is pool.piece(bytes(bytearray(b"one")))
    assert pool.piece(b"one") is not pool.piece(b"two")
    content: Content = {
        b"n": ("compute", bytes(20), ((b"k", (b"one", b"two")),)),
        b"m": ("mesh", bytes(20), ((b"k", (b"two",)),)),
    }
    block = Block(write(content))
    assert read(block) == content
    found = block.find_piece(7, b"two")
    assert found is not None
    assert bytes(found.data) == b"two"
    assert block.find_piece(7, b"three") is None


def test_names_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shaderkiln.formats.pipeline_library.name_hash", lambda name: 3)
    block = Block(write(EXAMPLE))
    assert [block.find(name) is None for name in (*EXAMPLE, b"x")] == [False] * len(EXAMPLE) + [True]


def test_the_layout_is_the_documented_one() -> None:
    """Read by hand, by docs/formats.md."""
    blob = write({b"n1": ("mesh", b"K" * 20, ((b"key", (b"piece one", b"2")),))})
    assert blob[:8] == b"SKPIPLIB"
    assert xxhash.xxh3_128_digest(blob[24:]) == blob[8:24]
    size, version, *counts = struct.unpack_from("<Q10I", blob, 24)
    assert (size, version) == (len(blob), 1)
    identity_size = counts[0]
    assert counts[1:] == [1, 2, 1, 1, 1, 3, 2, 2]
    assert struct.unpack_from("<Q", blob, 72)[0] in (16 + 9, 16 + 1)
    assert msgspec.msgpack.decode(blob[80 : 80 + identity_size])["compiler"]["family"] == "one"
    at = -(-(80 + identity_size) // 16) * 16
    assert struct.unpack_from("<I", blob, at) == (xxhash.xxh3_64_intdigest(b"n1") & 0xFFFFFFFF,)
    assert struct.unpack_from("<I", blob, at + 16) == (2,)
    assert struct.unpack_from("<I", blob, at + 32) == (2 << 30,)
    order = sorted((b"piece one", b"2"), key=xxhash.xxh3_64_intdigest)
    sums = [struct.pack("<Q", xxhash.xxh3_64_intdigest(piece)) for piece in (b"piece one", b"2")]
    together = b"\2\0\0\0n1\2" + b"K" * 20 + b"\3\0\0\0key\2\0\0\0" + b"".join(sums)
    assert struct.unpack_from("<I", blob, at + 48) == (xxhash.xxh3_64_intdigest(together) & 0xFFFFFFFF,)
    at += 16
    assert blob[at + 48 : at + 68] == b"K" * 20
    assert blob[at + 80 : at + 82] == b"n1"
    # Ends and items of combinations, ends of keys and items of values, items, keys.
    rest = [struct.unpack_from("<2I", blob, at + 96 + 16 * number) for number in range(5)]
    items = (order.index(b"piece one"), order.index(b"2"))
    assert [rest[0][0], rest[1][0], rest[2][0], rest[3][0], rest[4]] == [1, 0, 3, 2, items]
    assert blob[at + 176 : at + 179] == b"key"
    assert struct.unpack_from("<2Q", blob, at + 192) == tuple(map(xxhash.xxh3_64_intdigest, order))
    assert struct.unpack_from("<2Q", blob, at + 208) == (len(order[0]), 16 + len(order[1]))
    assert blob[at + 224 :] == order[0] + bytes(16 - len(order[0])) + order[1]


@pytest.mark.spec("PL-03")
def test_every_truncation_and_every_changed_byte_is_refused() -> None:
    blob = write(EXAMPLE)
    for length in range(len(blob)):
        with pytest.raises(DamagedInputError):
            Block(blob[:length])
    for more in (b"\0", bytes(16), blob):
        with pytest.raises(DamagedInputError):
            Block(blob + more)
    changed = bytearray(blob)
    for at in range(len(blob)):
        for bits in (1, 0x80, 0xFF):
            changed[at] ^= bits
            with pytest.raises(DamagedInputError):
                Block(changed)
            changed[at] ^= bits
    assert read(Block(bytes(changed))) == EXAMPLE


@pytest.mark.spec("PL-03")
def test_what_is_not_recognised_is_refused() -> None:
    blob = write(EXAMPLE)
    for other in (b"\0" * 200, b"SQLite format 3\0" * 20, write(EXAMPLE, SINGLE_MAGIC)):
        with pytest.raises(DamagedInputError):
            Block(other)
    with pytest.raises(DamagedInputError):
        Block(blob, SINGLE_MAGIC)
    for nothing in ("text", 7, None, [1]):
        with pytest.raises(InvalidArgumentError):
            Block(nothing)  # type: ignore[arg-type]


@pytest.mark.spec("PL-03")
def test_another_version_of_the_format_is_another_runtime() -> None:
    blob = bytearray(write(EXAMPLE))
    for version in (FORMAT_VERSION - 1, FORMAT_VERSION + 1):
        blob[32:36] = struct.pack("<I", version)
        with pytest.raises(DamagedInputError):
            Block(blob)  # only damaged, as long as the checksum says so
        with pytest.raises(DriverVersionMismatchError) as refused:
            Block(sealed(blob))
        assert refused.value.code == "D3D12_ERROR_DRIVER_VERSION_MISMATCH"


@settings(max_examples=300)
@given(st.data())
def test_lies_under_a_right_checksum_are_refused_or_harmless(data: st.DataObject) -> None:
    """Numbers of the index, and bytes anywhere: the documented errors, or what was written, and nothing else."""
    blob = bytearray(write(EXAMPLE))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(6, len(blob) // 4 - 1)) * 4
        wide = st.sampled_from((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)) | st.integers(0, 60) | st.integers(0, 0xFFFFFFFF)
        blob[at : at + 4] = struct.pack("<I", data.draw(wide))
    try:
        everything(sealed(blob))
    except ShaderkilnError as error:
        assert error.code in ("E_INVALIDARG", "D3D12_ERROR_DRIVER_VERSION_MISMATCH")


def test_a_small_block_cannot_ask_for_much_memory() -> None:
    """Ten thousand values, of which each is the whole object code again, a hundred million bytes and more."""
    piece = bytes(20_000)
    content: Content = {b"n": ("compute", bytes(20), tuple((b"%d" % number, (piece,)) for number in range(10_000)))}
    blob = write(content)
    tracemalloc.start()
    try:
        begin = time.perf_counter()
        block = Block(blob)
        with pytest.raises(DamagedInputError):
            block.pipeline(0)
        seconds = time.perf_counter() - begin
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20
    assert seconds < 60  # it ends; how fast is a matter of benchmarks
    # Nor is such a pipeline taken when it is to be stored.
    pool = PiecePool()
    repeated = pool.combination((b"%d" % number, [pool.piece(piece)]) for number in range(10_000))
    with pytest.raises(InvalidArgumentError):
        check_combination(repeated)
    check_combination(repeated[:8])


@pytest.mark.spec("PL-02")
def test_a_mapped_file_is_used_in_place(tmp_path: Path) -> None:
    big = random.Random(2).randbytes(8 << 20)
    path = tmp_path / "library"
    path.write_bytes(write(EXAMPLE | {b"big": ("compute", bytes(20), ((b"", (big,)),))}))
    before = path.read_bytes()
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    tracemalloc.start()
    try:
        block = Block(mapped)
        place = block.find(b"big")
        assert place is not None
        ((_, (piece,)),) = block.pipeline(place).combination
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
    assert isinstance(piece.data, memoryview)
    assert piece.data.obj is mapped
    with pytest.raises(BufferError):
        mapped.close()  # the block needs it
    del block, piece
    mapped.close()
    assert path.read_bytes() == before


def test_a_piece_that_changes_after_opening_is_found_when_it_is_used() -> None:
    blob = bytearray(write(EXAMPLE))
    block = Block(blob)
    place = block.find(b"pipeline 3")
    assert place is not None
    pipeline = block.pipeline(place)
    at = blob.index(b"own piece 3")
    blob[at] ^= 1
    with pytest.raises(DamagedInputError):
        pipeline.values()
    blob[at] ^= 1
    assert pipeline.values()[1][1].startswith(b"own piece 3")


def test_ten_thousand_pipelines_over_two_hundred_shaders() -> None:
    """The size of a large block; names count as what is beside the pieces."""
    shaders = [hashlib.shake_128(b"%d" % number).digest(2_000 + 40 * number) for number in range(200)]
    keys = [hashlib.sha256(shader).digest() for shader in shaders]
    pool = PiecePool()
    pipelines = []
    for number in range(10_000):
        used = (number // 100, 100 + number % 100)  # each combination once
        combination = pool.combination((keys[shader], [pool.piece(shaders[shader])]) for shader in used)
        key = hashlib.sha256(b"desc %d" % number).digest()[:20]
        pipelines.append((b"pso-%08d" % number, LibraryPipeline("graphics", key, combination)))
    blob = BlockWriter(pipelines, COMPILER, APPLICATION).to_bytes()
    distinct = sum(map(len, shaders))
    assert len(blob) <= 1.05 * distinct + 64 * 10_000
    path_like = memoryview(blob)
    tracemalloc.start()
    try:
        block = Block(path_like)
        for number in range(0, 10_000, 100):
            assert block.find(b"pso-%08d" % number) is not None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 << 20


@pytest.mark.soak
def test_soak_of_random_mutations() -> None:
    chance = random.Random(4)
    blob = write(EXAMPLE)
    for number in range(200_000):
        mutant = bytearray(blob)
        for _ in range(chance.randrange(1, 6)):
            match chance.randrange(3):
                case 0:
                    mutant[chance.randrange(len(mutant))] = chance.randrange(256)
                case 1:
                    at = chance.randrange(len(mutant) - 8) & ~3
                    numbers = (0, 1, 2, 5, 0x3FFFFFFF, 0x7FFFFFFF, 0xFFFFFFFF, len(blob))
                    mutant[at : at + 4] = struct.pack("<I", chance.choice(numbers))
                case 2:
                    at, other = chance.randrange(len(mutant) - 8), chance.randrange(len(mutant) - 8)
                    mutant[at : at + 8] = mutant[other : other + 8]
        if number % 8 == 0:
            del mutant[chance.randrange(len(mutant)) :]
        if bytes(mutant) != blob:
            with pytest.raises(DamagedInputError):
                Block(mutant)
        try:
            everything(sealed(mutant))
        except ShaderkilnError as error:
            assert error.code in ("E_INVALIDARG", "D3D12_ERROR_DRIVER_VERSION_MISMATCH")
