"""Serialized pipeline components: the object code of a pipeline in pieces that an application places where it likes.

A pipeline has one piece of its own, which says how the others belong together, and for each shader GPU instructions and, where the
driver's object code can be taken apart, metadata. One CRC covers all of them. docs/formats.md has the layout.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import msgspec

from shaderkiln.errors import DamagedInputError, InvalidArgumentError

MAGIC = b"SKPC\x01\0\0\0"
_HEAD = len(MAGIC) + 4
MAXIMUM_PIECE = 1 << 29
"""Bytes, as for every value."""
MAXIMUM_SHARED = 64
"""Pieces of object code that belong to no single shader."""

Buffer: TypeAlias = Any
"""Anything with the buffer protocol that is contiguous: bytes, a slice of a mapped file, an array."""


class ShaderSlot(IntEnum):
    """The shaders of a pipeline, in the order of the bits of VkShaderStageFlagBits."""

    VERTEX = 0
    HULL = 1
    DOMAIN = 2
    GEOMETRY = 3
    PIXEL = 4
    COMPUTE = 5
    AMPLIFICATION = 6
    MESH = 7


_SHARED = len(ShaderSlot)


@dataclass(frozen=True, slots=True)
class SerializedShader:
    """The pieces of one shader (D3D12XBOX_SERIALIZE_SHADER)."""

    gpu_instructions: Buffer
    metadata: Buffer | None = None
    """None where the driver's object code is one piece."""


@dataclass(frozen=True, slots=True)
class SerializedPipelineState:
    """The pieces of one pipeline; to deserialize it, every one of them is needed."""

    pipeline: Buffer
    """What the pipeline itself needs: its description without shaders, whose it is, and the CRC."""
    shaders: tuple[SerializedShader | None, ...]
    """One for each ShaderSlot, in order; None for an inactive shader, and for one whose code is in another's pieces."""
    shared: tuple[SerializedShader, ...] = ()
    """Object code of the pipeline as a whole, or that the driver has added; then the shaders' SPIR-V for drivers that want it."""

    def shader(self, slot: ShaderSlot) -> SerializedShader | None:
        """The pieces of one shader."""
        return self.shaders[slot]

    def pieces(self) -> Iterator[tuple[str, Buffer]]:
        """Every piece that there is, with what it is called in messages, in the order of the CRC."""
        yield "pipeline", self.pipeline
        for name, shader in self.named_shaders():
            if shader is not None:
                yield f"{name}.gpu_instructions", shader.gpu_instructions
                if shader.metadata is not None:
                    yield f"{name}.metadata", shader.metadata

    def named_shaders(self) -> Iterator[tuple[str, SerializedShader | None]]:
        """Every place for a shader, also those without one."""
        for slot, shader in enumerate(self.shaders):
            yield ShaderSlot(slot).name.lower(), shader
        for number, shader in enumerate(self.shared):
            yield f"shared[{number}]", shader


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where one of the driver's binaries went."""

    slot: int
    """A ShaderSlot, or 8 for the next one of ``shared``."""
    driver_key: bytes
    is_split: bool
    """It is the metadata followed by the instructions; else it is the instructions."""


class PipelineRecord(msgspec.Struct, frozen=True, array_like=True):
    """What the pipeline's own piece holds, as a MessagePack array."""

    family: str
    compiler: bytes
    """16 bytes that stand for the compiler's identity."""
    kind: str
    """``graphics`` or ``compute``."""
    object_key: bytes
    version: int
    places: tuple[Place, ...]
    """In the driver's order."""
    description: bytes
    """The pipeline for the driver, in a form that the caller knows."""
    root_signature: bytes = b""
    """Of a compute pipeline, as it was given: where registers lie, for variations. Empty where there is none."""
    modules: int = 0
    """How many of the last shared pieces are shaders and no object code, in the order of the description."""


@dataclass(frozen=True, slots=True)
class Code:
    """One of the driver's binaries, to be serialized: ``slot`` None puts it among the shared ones."""

    slot: ShaderSlot | None
    driver_key: bytes
    data: bytes
    code_offset: int | None = None
    """Where the instructions begin, None: not to be taken apart."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """What a driver needs, out of the pieces; copies."""

    record: PipelineRecord
    values: tuple[tuple[bytes, bytes], ...]
    """Keys and binaries in the driver's order."""
    modules: tuple[bytes, ...]


def serialize(record: PipelineRecord, codes: Sequence[Code], modules: Sequence[bytes] = ()) -> SerializedPipelineState:
    """The pieces of a pipeline; the record's places and modules are filled in here. Equal arguments give equal bytes.

    Raises InvalidArgumentError for two binaries of one slot, no binary, or too many of them.
    """
    shaders: list[SerializedShader | None] = [None] * len(ShaderSlot)
    shared: list[SerializedShader] = []
    places = []
    for code in codes:
        split = code.code_offset
        shader = SerializedShader(code.data) if split is None else SerializedShader(code.data[split:], code.data[:split])
        if code.slot is None:
            shared.append(shader)
        elif shaders[code.slot] is not None:
            raise InvalidArgumentError(f"two binaries of the {code.slot.name.lower()} shader")
        else:
            shaders[code.slot] = shader
        places.append(Place(_SHARED if code.slot is None else code.slot, code.driver_key, split is not None))
    shared += map(SerializedShader, modules)
    if not places or len(shared) > MAXIMUM_SHARED:
        raise InvalidArgumentError(f"{len(places)} binaries and {len(modules)} shaders cannot be serialized")
    body = msgspec.msgpack.encode(msgspec.structs.replace(record, places=tuple(places), modules=len(modules)))
    found = SerializedPipelineState(MAGIC + bytes(4) + body, tuple(shaders), tuple(shared))
    crc = _Crc(body)
    for _, one in found.named_shaders():
        crc.add(None if one is None else one.gpu_instructions)
        crc.add(None if one is None else one.metadata)
    return SerializedPipelineState(MAGIC + struct.pack("<I", crc.value) + body, found.shaders, found.shared)


def assemble(serialized: SerializedPipelineState) -> Assembled:
    """What the driver needs, if the pieces are exactly those that ``serialize`` gave.

    They are copied first and what is checked is the copy, so that nothing can change them in between. Raises DamagedInputError for
    a piece that is missing, too many, altered or in the place of another, InvalidArgumentError for what is no piece.
    """
    if not isinstance(serialized, SerializedPipelineState):
        raise InvalidArgumentError(f"{type(serialized).__name__} is no SerializedPipelineState")
    if len(serialized.shaders) != len(ShaderSlot) or len(serialized.shared) > MAXIMUM_SHARED:
        raise InvalidArgumentError(f"shaders: {len(ShaderSlot)} are needed, and at most {MAXIMUM_SHARED} shared ones")
    pipeline = bytes(_view("pipeline", serialized.pipeline))
    if len(pipeline) < _HEAD or pipeline[: len(MAGIC)] != MAGIC:
        raise DamagedInputError("pipeline: no serialized pipeline, or one of another version")
    crc = _Crc(pipeline[_HEAD:])
    copies: list[tuple[bytes, bool] | None] = []
    for name, shader in serialized.named_shaders():
        copies.append(None if shader is None else _copy(name, shader, crc))
        if shader is None:
            crc.add(None)
            crc.add(None)
    if crc.value != struct.unpack_from("<I", pipeline, len(MAGIC))[0]:
        raise DamagedInputError("CRC: a piece is missing, altered, or in the place of another")
    try:
        record = msgspec.msgpack.decode(pipeline[_HEAD:], type=PipelineRecord)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DamagedInputError(f"pipeline: no serialized pipeline: {error}") from None
    if not 0 <= record.modules <= len(serialized.shared):
        raise DamagedInputError("pipeline: its record does not fit the pieces")
    first = len(copies) - record.modules
    modules = tuple(copy[0] for copy in copies[first:] if copy is not None)
    return Assembled(record, tuple(_in_order(record, copies[:first])), modules)


def _in_order(record: PipelineRecord, copies: list[tuple[bytes, bool] | None]) -> Iterator[tuple[bytes, bytes]]:
    shared = _SHARED
    used = set()
    for place in record.places:
        at = shared if place.slot == _SHARED else place.slot
        shared += place.slot == _SHARED
        copy = copies[at] if 0 <= at < len(copies) else None
        if copy is None or at in used or copy[1] != place.is_split:
            raise DamagedInputError("pipeline: its record does not fit the pieces")
        used.add(at)
        yield place.driver_key, copy[0]
    if len(used) != sum(copy is not None for copy in copies) or not used:
        raise DamagedInputError("pipeline: its record does not fit the pieces")


def _copy(name: str, shader: object, crc: _Crc) -> tuple[bytes, bool]:
    if not isinstance(shader, SerializedShader):
        raise InvalidArgumentError(f"{name}: {type(shader).__name__} is no SerializedShader")
    instructions = _view(f"{name}.gpu_instructions", shader.gpu_instructions)
    metadata = None if shader.metadata is None else _view(f"{name}.metadata", shader.metadata)
    if metadata is None:
        copy = bytes(instructions)
        crc.add(copy)
        crc.add(None)
        return copy, False
    copy = b"".join((metadata, instructions))
    view = memoryview(copy)
    crc.add(view[len(metadata) :])
    crc.add(view[: len(metadata)])
    return copy, True


def _view(name: str, piece: Buffer) -> memoryview:
    """The bytes of a piece where it lies. Raises InvalidArgumentError."""
    try:
        view = memoryview(piece).cast("B")
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{name}: no contiguous bytes: {error}") from None
    if view.nbytes > MAXIMUM_PIECE:
        raise InvalidArgumentError(f"{name}: {view.nbytes} bytes are more than the {MAXIMUM_PIECE} that a piece can have")
    return view


class _Crc:
    """CRC-32 over the pipeline's record and the other pieces, each after its length and one, 0 for a piece that is null."""

    def __init__(self, record: bytes) -> None:
        self.value = 0
        self.add(record)

    def add(self, piece: Buffer | None) -> None:
        length = 0 if piece is None else memoryview(piece).nbytes + 1
        self.value = zlib.crc32(length.to_bytes(8, "little"), self.value)
        if piece is not None:
            self.value = zlib.crc32(piece, self.value)
