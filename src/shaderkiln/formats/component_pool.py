"""The file of a component pool: pieces of serialized pipelines, each different one once, and which of them a pipeline has.

Opening is a check of the header and the tables; pieces are used where they lie in the mapped file. docs/formats.md has the layout.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import xxhash

from shaderkiln.errors import DamagedInputError, InvalidArgumentError
from shaderkiln.formats.pipeline_components import MAXIMUM_PIECE, MAXIMUM_SHARED, Buffer, ShaderSlot

MAGIC = b"SKCP\x01\0\0\0"
_HEADER = struct.Struct("<8s16sQIIQ")
"""Magic; checksum of the tables and of what follows here; size of the file; pieces; pipelines; size of the table of pipelines."""
_PIECE = struct.Struct("<QQ")
"""Offset from the start of the file, size."""
ALIGNMENT = 8
_CHECKSUM_AT = len(MAGIC)
_CHECKED_FROM = _CHECKSUM_AT + 16

PiecePair = tuple[int, int | None]
"""Numbers of a shader's instructions and of its metadata, None where it has none."""


class PooledPipeline(msgspec.Struct, frozen=True, array_like=True):
    """A pipeline of a pool: numbers of its pieces."""

    name: str
    pipeline: int
    shaders: tuple[PiecePair | None, ...]
    """One for each ShaderSlot."""
    shared: tuple[PiecePair, ...] = ()

    def numbers(self) -> Iterator[int]:
        """The number of every piece, in the order of ``SerializedPipelineState.pieces``."""
        yield self.pipeline
        for pair in (*self.shaders, *self.shared):
            if pair is not None:
                yield from (number for number in pair if number is not None)


def encode(pieces: Sequence[Buffer], pipelines: Sequence[PooledPipeline]) -> Iterator[Buffer]:
    """The file in parts. Equal arguments give equal bytes."""
    table = msgspec.msgpack.encode(pipelines)
    offset = _HEADER.size + _PIECE.size * len(pieces) + len(table)
    places = bytearray()
    for piece in pieces:
        offset += -offset % ALIGNMENT
        size = memoryview(piece).nbytes
        places += _PIECE.pack(offset, size)
        offset += size
    numbers = struct.pack("<QIIQ", offset, len(pieces), len(pipelines), len(table))
    yield MAGIC + xxhash.xxh3_128_digest(numbers + places + table) + numbers
    yield places
    yield table
    at = _HEADER.size + len(places) + len(table)
    for piece in pieces:
        gap = -at % ALIGNMENT
        yield bytes(gap)
        yield piece
        at += gap + memoryview(piece).nbytes


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """A pool where it lies: places of the pieces in its memory, and the pipelines by name."""

    places: tuple[tuple[int, int], ...]
    """Offset and size of each piece."""
    pipelines: Mapping[str, PooledPipeline]


def parse(memory: memoryview) -> PoolLayout:
    """Raises DamagedInputError for what is no pool or a damaged one. The pieces themselves are not looked at: the CRC of the
    pipeline to which they belong finds damage in them."""
    if len(memory) < _HEADER.size or memory[: len(MAGIC)] != MAGIC:
        raise DamagedInputError("no component pool, or one of another version")
    _, checksum, size, piece_count, pipeline_count, table_size = _HEADER.unpack_from(memory)
    tables_end = _HEADER.size + _PIECE.size * piece_count + table_size
    if size != len(memory) or tables_end > size:
        raise DamagedInputError("component pool: it is cut off, or its sizes are wrong")
    if xxhash.xxh3_128_digest(memory[_CHECKED_FROM:tables_end]) != checksum:
        raise DamagedInputError("component pool: its tables are damaged")
    places = tuple(_PIECE.iter_unpack(memory[_HEADER.size : _HEADER.size + _PIECE.size * piece_count]))
    if any(at < tables_end or length > MAXIMUM_PIECE or at + length > size for at, length in places):
        raise DamagedInputError("component pool: a piece lies outside of it")
    try:
        found = msgspec.msgpack.decode(memory[tables_end - table_size : tables_end], type=tuple[PooledPipeline, ...])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DamagedInputError(f"component pool: its table of pipelines cannot be read: {error}") from None
    pipelines = {one.name: one for one in found}
    if len(found) != pipeline_count or len(pipelines) != len(found):
        raise DamagedInputError("component pool: two pipelines have one name, or some are missing")
    for one in found:
        if len(one.shaders) != len(ShaderSlot) or len(one.shared) > MAXIMUM_SHARED:
            raise DamagedInputError(f"component pool: {one.name!r} has another number of shaders than there are")
        if any(not 0 <= number < piece_count for number in one.numbers()):
            raise DamagedInputError(f"component pool: {one.name!r} has a piece that is not there")
    return PoolLayout(places, pipelines)


def check_name(name: object) -> str:
    """Raises InvalidArgumentError for a name that no pipeline of a pool can have."""
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"name: {name!r} is no text, or empty")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"name: {name!r} is no valid text") from None
    return name
