"""The file of a component pool."""

from __future__ import annotations

import struct

import msgspec
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.errors import DamagedInputError, InvalidArgumentError
from shaderkiln.formats.component_pool import PooledPipeline, check_name, encode, parse

PIECES = (b"first piece", b"", b"third")
PIPELINES = (
    PooledPipeline("one", 0, ((1, 2), *(None,) * 7)),
    PooledPipeline("two", 0, (None,) * 8, ((2, None),)),
)


def file_of(pieces: tuple[bytes, ...] = PIECES, pipelines: tuple[PooledPipeline, ...] = PIPELINES) -> bytes:
    return b"".join(bytes(part) for part in encode(pieces, pipelines))


END = -1
"""Stands for the end of the tables, where a piece of no bytes may lie."""


def built(places: list[tuple[int, int]], table: object, counts: tuple[int, int], size: int | None = None) -> bytes:
    """A file with right checksums from any content, as docs/formats.md has it."""
    encoded = table if isinstance(table, bytes) else msgspec.msgpack.encode(table)
    end = 48 + 16 * len(places) + len(encoded)
    body = b"".join(struct.pack("<QQ", end if at == END else at, length) for at, length in places)
    numbers = struct.pack("<QIIQ", end if size is None else size, *counts, len(encoded))
    return b"SKCP\x01\0\0\0" + xxhash.xxh3_128_digest(numbers + body + encoded) + numbers + body + encoded


def test_the_layout_is_as_documented() -> None:
    data = file_of()
    table = msgspec.msgpack.encode(
        [["one", 0, [[1, 2], *[None] * 7], []], ["two", 0, [None] * 8, [[2, None]]]],
    )
    start = 48 + 3 * 16 + len(table)
    first = start + -start % 8
    places = [(first, 11), (first + 16, 0), (first + 16, 5)]
    size = first + 16 + 5
    numbers = struct.pack("<QIIQ", size, 3, 2, len(table))
    tables = b"".join(struct.pack("<QQ", *place) for place in places) + table
    assert data[:48] == b"SKCP\x01\0\0\0" + xxhash.xxh3_128_digest(numbers + tables) + numbers
    assert data[48:start] == tables
    assert len(data) == size
    layout = parse(memoryview(data))
    assert [bytes(data[at : at + length]) for at, length in layout.places] == list(PIECES)
    assert tuple(layout.pipelines.values()) == PIPELINES


def test_every_changed_byte_outside_of_the_pieces_and_every_cut_is_refused() -> None:
    data = file_of()
    start = parse(memoryview(data)).places[0][0]
    for at in range(start - -start % 8 - 8):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(DamagedInputError):
            parse(memoryview(damaged))
    for end in range(len(data)):
        with pytest.raises(DamagedInputError):
            parse(memoryview(data[:end]))
    with pytest.raises(DamagedInputError):
        parse(memoryview(data + b"\0"))


NONE = [None] * 8


def test_such_a_file_is_taken_when_it_makes_sense() -> None:
    layout = parse(memoryview(built([(END, 0)], [["one", 0, [[0, 0], *NONE[1:]], []]], (1, 1))))
    assert layout.pipelines["one"].shaders[0] == (0, 0)


@pytest.mark.parametrize(
    "data",
    [
        built([], b"\xc1", (0, 0)),
        built([], [], (0, 1)),
        built([], [], (1 << 31, 0)),
        built([], [], (0, 0), size=1 << 60),
        built([(0, 8)], [], (1, 0)),
        built([(1 << 63, 1 << 63)], [], (1, 0)),
        built([(66, 1 << 40)], [], (1, 0)),
        built([], [["one", 0, NONE, []]], (0, 1)),
        built([], [["one", -1, NONE, []]], (0, 1)),
        built([(END, 0)], [["one", 0, [[0, 7], *NONE[1:]], []]], (1, 1)),
        built([(END, 0)], [["one", 0, NONE[1:], []]], (1, 1)),
        built([(END, 0)], [["one", 0, NONE, [[0, None]] * 65]], (1, 1)),
        built([(END, 0)], [["one", 0, NONE, []]] * 2, (1, 2)),
    ],
)
def test_content_that_makes_no_sense_is_refused_whatever_its_checksum(data: bytes) -> None:
    with pytest.raises(DamagedInputError):
        parse(memoryview(data))


@given(st.binary(max_size=200))
def test_what_is_no_pool_is_refused(data: bytes) -> None:
    with pytest.raises(DamagedInputError):
        parse(memoryview(b"SKCP\x01\0\0\0" + data))


def test_names() -> None:
    assert check_name("a name") == "a name"
    for name in ("", None, b"bytes", "\ud800"):
        with pytest.raises(InvalidArgumentError):
            check_name(name)
