"""The contiguous block of a pipeline library, and the block of a single pipeline (docs/formats.md, "Pipeline library").

A block is used where it lies: opening it compares one checksum and finds where its sections begin, and everything else is looked up
when it is asked for. What it is made of is held once each: *pieces* of object code; *values*, which are a driver's key and pieces;
and *combinations*, the values of a pipeline in the driver's order.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from mmap import mmap
from typing import Any, Final, Literal, TypeAlias

import msgspec
import xxhash

from shaderkiln.errors import DamagedInputError, DriverVersionMismatchError, InvalidArgumentError
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap
Kind: TypeAlias = Literal["graphics", "compute", "mesh"]

LIBRARY_MAGIC: Final = b"SKPIPLIB"
SINGLE_MAGIC: Final = b"SKPIPONE"
FORMAT_VERSION: Final = 1
KEY_BYTES: Final = 20
"""How much of an object key is kept: enough that no two descs are taken for each other by accident or by intent."""
MAXIMUM_NAME_BYTES: Final = 65_536
MAXIMUM_PIPELINE_BYTES: Final = 1 << 29
"""Of one pipeline's driver keys and object code."""
KINDS: Final[tuple[Kind, ...]] = ("graphics", "compute", "mesh")

_HEADER = struct.Struct("<8s16sQ10IQ")
_CHECKED_FROM: Final = 24
_ALIGNMENT: Final = 16
_KIND_SHIFT: Final = 30
_NUMBER_MASK: Final = (1 << _KIND_SHIFT) - 1
_FREE_REPEATS: Final = 1 << 20
_MOST_REPEATS: Final = 8
_VALUE_COST: Final = 64


class _Identity(msgspec.Struct, frozen=True):
    compiler: CompilerIdentity
    application: ApplicationIdentity


class Piece:
    """Bytes that are held once; two pieces of one pool are equal only if they are the same object."""

    __slots__ = ("checksum", "data")

    def __init__(self, checksum: int, data: bytes | memoryview) -> None:
        self.checksum = checksum
        """xxh3_64 of the data."""
        self.data = data


Combination: TypeAlias = tuple[tuple[bytes, tuple[Piece, ...]], ...]
"""A pipeline's values in the driver's order: the driver's key, and the pieces that make up its object code."""


@dataclass(frozen=True, slots=True)
class LibraryPipeline:
    """What a block has of one pipeline."""

    kind: Kind
    key: bytes
    """The first KEY_BYTES of its object key."""
    combination: Combination

    def check(self, name: bytes) -> int:
        """32 bits over everything that belongs together under a name: what no piece's own checksum can tell."""
        parts = [len(name).to_bytes(4, "little"), name, bytes((KINDS.index(self.kind),)), self.key]
        for key, pieces in self.combination:
            parts += (len(key).to_bytes(4, "little"), key, len(pieces).to_bytes(4, "little"))
            parts += [piece.checksum.to_bytes(8, "little") for piece in pieces]
        return xxhash.xxh3_64_intdigest(b"".join(parts)) & 0xFFFFFFFF

    def values(self) -> tuple[tuple[bytes, bytes], ...]:
        """Driver keys and object code, after every piece was compared with its checksum. Raises DamagedInputError."""
        return tuple((key, b"".join(map(_verified, pieces))) for key, pieces in self.combination)


def check_combination(combination: Combination) -> None:
    """Raises InvalidArgumentError for more object code than a pipeline in a block can have."""
    pieces = [piece for _, parts in combination for piece in parts]
    whole = sum(_VALUE_COST + len(key) for key, _ in combination) + sum(_VALUE_COST + len(piece.data) for piece in pieces)
    distinct = sum(len(piece.data) for piece in set(pieces))
    if whole > min(MAXIMUM_PIPELINE_BYTES, _FREE_REPEATS + _MOST_REPEATS * distinct):
        raise InvalidArgumentError(f"the pipeline has {whole} bytes of object code, which is more than a library takes")


def checksum_of(data: bytes | memoryview) -> int:
    """The checksum of a piece."""
    return xxhash.xxh3_64_intdigest(data)


def name_hash(name: bytes) -> int:
    """What the name table is sorted by, before the names themselves."""
    return xxhash.xxh3_64_intdigest(name) & 0xFFFFFFFF


def _verified(piece: Piece) -> bytes | memoryview:
    if checksum_of(piece.data) != piece.checksum:
        raise DamagedInputError("blob: a piece of object code is damaged")
    return piece.data


class Block:
    """A block that is used in place; it refers to the caller's buffer as long as it lives. May be used by several threads."""

    def __init__(self, buffer: Buffer, magic: bytes = LIBRARY_MAGIC) -> None:
        """Open a block.

        Raises DamagedInputError for bytes that are no block or damaged, DriverVersionMismatchError for a block of another version
        of the format. An index that contradicts itself under a right checksum, which only intent can make, raises
        DamagedInputError when the pipeline is asked for.
        """
        try:
            data = memoryview(buffer).cast("B").toreadonly()
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"blob: {type(buffer).__name__} is no buffer of bytes") from error
        if len(data) < _HEADER.size or data[:8] != magic:
            raise DamagedInputError("blob: not recognised, or truncated")
        _, checksum, size, version, *counts, piece_bytes = _HEADER.unpack_from(data)
        if size != len(data):
            raise DamagedInputError(f"blob: has {len(data)} bytes, {size} were written")
        if xxhash.xxh3_128_digest(data[_CHECKED_FROM:]) != checksum:
            raise DamagedInputError("blob: damaged: its checksum is another one")
        if version != FORMAT_VERSION:
            raise DriverVersionMismatchError(f"blob: of version {version} of the format, this is version {FORMAT_VERSION}")
        identity, names, combinations, combination_items, values, value_keys, value_items, pieces = counts[:1] + counts[2:]
        self._count: int = counts[1]
        offset = _HEADER.size
        sections: list[memoryview] = []
        for length in (
            identity, *[4 * self._count] * 4, KEY_BYTES * self._count, names, 4 * combinations, 4 * combination_items,
            4 * values, 4 * values, 4 * value_items, value_keys, 8 * pieces, 8 * pieces, piece_bytes,
        ):  # fmt: skip
            offset = _aligned(offset)
            sections.append(data[offset : offset + length])
            offset += length
        if offset != size:
            raise DamagedInputError(f"blob: has {size} bytes, its counts make {offset}")
        try:
            found = msgspec.msgpack.decode(sections[0], type=_Identity)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise DamagedInputError(f"blob: names no compiler: {error}") from error
        self.compiler = found.compiler
        self.application = found.application
        self.data = data
        self._hashes, self._name_ends, self._words, self._checks = (_numbers(section, "I") for section in sections[1:5])
        self._keys, self._names = sections[5:7]
        self._combination_ends, self._combination_items, self._value_key_ends, self._value_item_ends, self._value_items = (
            _numbers(section, "I") for section in sections[7:12]
        )
        self._value_keys = sections[12]
        self._checksums, self._piece_ends = (_numbers(section, "Q") for section in sections[13:15])
        self._pieces = sections[15]

    def __len__(self) -> int:
        return self._count

    @property
    def piece_count(self) -> int:
        """How many distinct pieces of object code there are."""
        return len(self._checksums)

    @property
    def piece_bytes(self) -> int:
        """What they have together, without what aligns them. Raises DamagedInputError."""
        return sum(len(self.piece(number).data) for number in range(self.piece_count))

    def find(self, name: bytes) -> int | None:
        """The place of the pipeline of that name. Raises DamagedInputError."""
        wanted = name_hash(name)
        place = bisect_left(self._hashes, wanted)
        while place < self._count and self._hashes[place] == wanted:
            if self.name(place) == name:
                return place
            place += 1
        return None

    def name(self, place: int) -> bytes:
        """The name of a pipeline. Raises DamagedInputError."""
        begin, end = _run(self._name_ends, place, len(self._names))
        return bytes(self._names[begin:end])

    def pipelines(self) -> Iterator[tuple[bytes, LibraryPipeline]]:
        """Names and what is under them, in the order of the block. Raises DamagedInputError."""
        pieces: dict[int, Piece] = {}
        for place in range(self._count):
            yield self.name(place), self.pipeline(place, pieces)

    def pipeline(self, place: int, known: dict[int, Piece] | None = None) -> LibraryPipeline:
        """What there is of a pipeline; ``known`` are the pieces that were made before. Raises DamagedInputError."""
        word = self._words[place]
        if word >> _KIND_SHIFT >= len(KINDS):
            raise DamagedInputError("blob: a pipeline of an unknown kind")
        key = bytes(self._keys[place * KEY_BYTES : (place + 1) * KEY_BYTES])
        combination = self._combination(word & _NUMBER_MASK, {} if known is None else known)
        found = LibraryPipeline(KINDS[word >> _KIND_SHIFT], key, combination)
        if found.check(self.name(place)) != self._checks[place]:
            raise DamagedInputError("blob: what belongs to a pipeline is not what was written")
        return found

    def piece(self, number: int) -> Piece:
        """A piece in place. Raises DamagedInputError."""
        if number >= len(self._piece_ends):
            raise DamagedInputError("blob: refers to a piece that it does not have")
        begin = _aligned(self._piece_ends[number - 1]) if number else 0
        end = self._piece_ends[number]
        if not begin <= end <= len(self._pieces):
            raise DamagedInputError("blob: a piece lies outside of it")
        return Piece(self._checksums[number], self._pieces[begin:end])

    def find_piece(self, checksum: int, data: bytes | memoryview) -> Piece | None:
        """The piece with these bytes. Raises DamagedInputError."""
        number = bisect_left(self._checksums, checksum)
        while number < len(self._checksums) and self._checksums[number] == checksum:
            piece = self.piece(number)
            if piece.data == data:
                return piece
            number += 1
        return None

    def _combination(self, number: int, known: dict[int, Piece]) -> Combination:
        begin, end = _run(self._combination_ends, number, len(self._combination_items))
        # Values and pieces may be named again and again, so the size of a pipeline has to be bounded by something else.
        left = min(MAXIMUM_PIPELINE_BYTES, _FREE_REPEATS + _MOST_REPEATS * len(self.data))
        values = []
        for value in self._combination_items[begin:end]:
            key_begin, key_end = _run(self._value_key_ends, value, len(self._value_keys))
            item_begin, item_end = _run(self._value_item_ends, value, len(self._value_items))
            left -= _VALUE_COST + key_end - key_begin
            pieces = []
            for item in self._value_items[item_begin:item_end]:
                piece = known.get(item) or known.setdefault(item, self.piece(item))
                left -= _VALUE_COST + len(piece.data)
                if left < 0:
                    break
                pieces.append(piece)
            if left < 0:
                raise DamagedInputError("blob: a pipeline has more object code than it can have")
            values.append((bytes(self._value_keys[key_begin:key_end]), tuple(pieces)))
        return tuple(values)


class PiecePool:
    """Pieces and combinations that are held once, those of a block in its place. For one thread at a time."""

    def __init__(self, block: Block | None = None) -> None:
        self._block = block
        self._pieces: dict[int, list[Piece]] = {}
        self._combinations: dict[Combination, Combination] = {}
        self._keys: dict[bytes, bytes] = {}

    def piece(self, data: bytes | memoryview) -> Piece:
        """The one piece with these bytes, which are copied if they are kept. Raises DamagedInputError."""
        checksum = checksum_of(data)
        known = self._find(checksum, data)
        return known or self._keep(Piece(checksum, bytes(data)))

    def unique(self, piece: Piece) -> Piece:
        """The one piece with the bytes of this one, which is kept if it is the first. Raises DamagedInputError."""
        return self._find(piece.checksum, piece.data) or self._keep(piece)

    def _find(self, checksum: int, data: bytes | memoryview) -> Piece | None:
        for known in self._pieces.get(checksum, ()):
            if known.data is data or known.data == data:
                return known
        found = None if self._block is None else self._block.find_piece(checksum, data)
        return found and self._keep(found)

    def _keep(self, piece: Piece) -> Piece:
        self._pieces.setdefault(piece.checksum, []).append(piece)
        return piece

    def combination(self, values: Iterable[tuple[bytes, Iterable[Piece]]]) -> Combination:
        """The one combination of these values, whose pieces are of this pool."""
        combination = tuple((self._keys.setdefault(key, key), tuple(pieces)) for key, pieces in values)
        return self._combinations.setdefault(combination, combination)

    @property
    def own_bytes(self) -> int:
        """What is held here and not in the block, in bytes of pieces."""
        return sum(len(piece.data) for same in self._pieces.values() for piece in same if isinstance(piece.data, bytes))


class BlockWriter:
    """A block that is to be written. Equal content gives equal bytes."""

    def __init__(
        self,
        pipelines: Iterable[tuple[bytes, LibraryPipeline]],
        compiler: CompilerIdentity,
        application: ApplicationIdentity,
        magic: bytes = LIBRARY_MAGIC,
    ) -> None:
        """``pipelines`` are names and what is under them, each name once. Raises InvalidArgumentError for more than a block can
        hold, and what reading the pipelines raises.
        """
        pool = PiecePool()
        hashes, name_ends, words, checks = array("I"), array("I"), array("I"), array("I")
        names, keys = bytearray(), bytearray()
        combinations: dict[Combination, int] = {}
        for hashed, name, pipeline in sorted(
            ((name_hash(name), name, pipeline) for name, pipeline in pipelines), key=lambda item: item[:2]
        ):
            unique = pool.combination((key, map(pool.unique, pieces)) for key, pieces in pipeline.combination)
            number = combinations.setdefault(unique, len(combinations))
            names += name
            keys += pipeline.key
            _check_size(len(names), number > _NUMBER_MASK)
            hashes.append(hashed)
            name_ends.append(len(names))
            checks.append(pipeline.check(name))
            words.append(KINDS.index(pipeline.kind) << _KIND_SHIFT | number)
        values: dict[tuple[bytes, tuple[Piece, ...]], int] = {}
        combination_ends, combination_items = array("I"), array("I")
        for combination in combinations:
            combination_items.extend(values.setdefault(value, len(values)) for value in combination)
            combination_ends.append(len(combination_items))
        used = {piece for _, pieces in values for piece in pieces}
        pieces = sorted(used, key=lambda piece: piece.checksum)
        for first in range(len(pieces) - 1):
            if pieces[first].checksum == pieces[first + 1].checksum:  # by their bytes then, which costs a copy of all
                pieces.sort(key=lambda piece: (piece.checksum, bytes(piece.data)))
                break
        numbers = {piece: number for number, piece in enumerate(pieces)}
        value_key_ends, value_item_ends, value_items = array("I"), array("I"), array("I")
        value_keys = bytearray()
        for key, parts in values:
            value_keys += key
            value_items.extend(numbers[piece] for piece in parts)
            _check_size(len(value_keys), False)
            value_key_ends.append(len(value_keys))
            value_item_ends.append(len(value_items))
        piece_ends, end = array("Q"), 0
        for piece in pieces:
            end = _aligned(end) + len(piece.data)
            piece_ends.append(end)
        identity = msgspec.msgpack.encode(_Identity(compiler, application))
        checksums = array("Q", (piece.checksum for piece in pieces))
        sections: list[bytes | bytearray] = [
            identity, *map(_little, (hashes, name_ends, words, checks)), keys, names,
            *map(_little, (combination_ends, combination_items, value_key_ends, value_item_ends, value_items)), value_keys,
            *map(_little, (checksums, piece_ends)),
        ]  # fmt: skip
        self._counts = (
            len(identity), len(hashes), len(names), len(combination_ends), len(combination_items), len(value_key_ends),
            len(value_keys), len(value_items), len(checksums),
        )  # fmt: skip
        self._sections = sections
        self._pieces = pieces
        self._piece_bytes = end
        self._magic = magic
        offset = _HEADER.size
        for section in sections:
            offset = _aligned(offset) + len(section)
        self.size = _aligned(offset) + end
        """The length of the block in bytes."""

    def chunks(self) -> list[bytes | bytearray | memoryview]:
        """The block as what has to be joined; object code is where it was."""
        chunks: list[bytes | bytearray | memoryview] = []
        offset = _HEADER.size
        for section in self._sections:
            chunks += (bytes(_aligned(offset) - offset), section)
            offset = _aligned(offset) + len(section)
        chunks.append(bytes(_aligned(offset) - offset))
        offset = 0
        for piece in self._pieces:
            chunks += (bytes(_aligned(offset) - offset), piece.data)
            offset = _aligned(offset) + len(piece.data)
        header = _HEADER.pack(self._magic, bytes(16), self.size, FORMAT_VERSION, *self._counts, self._piece_bytes)
        state = xxhash.xxh3_128(header[_CHECKED_FROM:])
        for chunk in chunks:
            state.update(chunk)
        return [header[:8], state.digest(), header[_CHECKED_FROM:], *chunks]

    def to_bytes(self) -> bytes:
        """The block."""
        return b"".join(self.chunks())


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def _run(ends: Sequence[int], number: int, limit: int) -> tuple[int, int]:
    """Where the run of that number begins and ends, of runs that follow one another."""
    if number >= len(ends):
        raise DamagedInputError("blob: refers to something that it does not have")
    begin, end = ends[number - 1] if number else 0, ends[number]
    if not begin <= end <= limit:
        raise DamagedInputError("blob: its index contradicts itself")
    return begin, end


def _check_size(length: int, too_many: bool) -> None:
    if length >= 1 << 32 or too_many:
        raise InvalidArgumentError("the library has more pipelines, or longer names and keys, than a block can hold")


def _numbers(section: memoryview, code: Literal["I", "Q"]) -> Any:
    """A section of little-endian numbers: in place, but for a machine that has them the other way round."""
    if sys.byteorder == "little":
        return section.cast(code)
    numbers = array(code, bytes(section))  # pragma: no cover
    numbers.byteswap()
    return numbers


def _little(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":  # pragma: no cover
        numbers = array(numbers.typecode, numbers)
        numbers.byteswap()
    return numbers.tobytes()
