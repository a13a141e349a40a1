"""What an application keeps of pipelines: opened for a compiler, and cached blobs of single pipeline states (PL-03, PL-13)."""

from __future__ import annotations

import hashlib
from dataclasses import fields

import msgspec

from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.errors import AdapterNotFoundError, DamagedInputError, DriverVersionMismatchError, InvalidArgumentError
from shaderkiln.formats.object_code_parts import divided
from shaderkiln.formats.pipeline_library import (
    KEY_BYTES,
    LIBRARY_MAGIC,
    SINGLE_MAGIC,
    Block,
    BlockWriter,
    Buffer,
    LibraryPipeline,
    PiecePool,
    check_combination,
)
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity
from shaderkiln.keys import ObjectKey

from .stored_objects import StoredObject

_HARDWARE = ("family", "vendor_id", "device_id")
_DRIVER = tuple(field.name for field in fields(CompilerIdentity) if field.name not in _HARDWARE)


def is_empty(buffer: Buffer) -> bool:
    """Whether a buffer has no bytes. Raises InvalidArgumentError for what is no buffer."""
    try:
        return not memoryview(buffer).nbytes
    except TypeError as error:
        raise InvalidArgumentError(f"blob: {type(buffer).__name__} is no buffer of bytes") from error


def open_block(buffer: Buffer, compiler: CompilerIdentity, magic: bytes = LIBRARY_MAGIC) -> Block:
    """A block of this compiler.

    Raises, in this order: DamagedInputError for what is damaged or not recognised, DriverVersionMismatchError for another version
    of the format, AdapterNotFoundError for other hardware, whatever its driver, and DriverVersionMismatchError for another driver
    build or other code-changing features.
    """
    block = Block(buffer, magic)
    _compare(block.compiler, compiler, _HARDWARE, AdapterNotFoundError)
    _compare(block.compiler, compiler, _DRIVER, DriverVersionMismatchError)
    return block


def stored_object(pipeline: LibraryPipeline, object_key: ObjectKey, compiler: CompilerIdentity, name: str) -> StoredObject:
    """What the driver takes of a pipeline. Raises DamagedInputError for a piece that is not what its checksum says."""
    return StoredObject.of(compiler, object_key, pipeline.values(), pipeline.kind, name)


def library_pipeline(
    stream: PipelineStateStream, object_key: ObjectKey, stored: StoredObject, compiler: CompilerIdentity, pool: PiecePool
) -> LibraryPipeline:
    """A pipeline state as a block has it, of pieces of a pool. Raises InvalidArgumentError for too much object code."""
    form = compiler.object_code_form
    combination = pool.combination((key, map(pool.piece, divided(form, data))) for key, data in stored.values)
    check_combination(combination)
    return LibraryPipeline(stream.kind, bytes(object_key[:KEY_BYTES]), combination)


def cached_blob(
    stream: PipelineStateStream,
    object_key: ObjectKey,
    stored: StoredObject,
    compiler: CompilerIdentity,
    application: ApplicationIdentity,
) -> bytes:
    """The block of one pipeline state, under a digest of its shaders and root signature."""
    pipeline = library_pipeline(stream, object_key, stored, compiler, PiecePool())
    return BlockWriter([(_program_digest(stream), pipeline)], compiler, application, SINGLE_MAGIC).to_bytes()


def open_cached_blob(
    blob: Buffer, stream: PipelineStateStream, object_key: ObjectKey, compiler: CompilerIdentity
) -> StoredObject | None:
    """The object code for a stream from its cached blob, or None where only its states are others.

    Raises InvalidArgumentError for other shaders or another root signature, and as ``open_block``.
    """
    block = open_block(blob, compiler, SINGLE_MAGIC)
    if len(block) != 1:
        raise DamagedInputError(f"blob: of {len(block)} pipelines in place of one")
    if block.name(0) != _program_digest(stream):
        raise InvalidArgumentError("cached_pso: of a pipeline with other shaders or another root signature")
    pipeline = block.pipeline(0)
    if pipeline.key != object_key[:KEY_BYTES] or pipeline.kind != stream.kind:
        return None
    return stored_object(pipeline, object_key, compiler, "")


def _program_digest(stream: PipelineStateStream) -> bytes:
    content = [stream.root_signature_blob, sorted(stream.shaders().items())]
    return hashlib.sha256(b"shaders and root signature\0" + msgspec.msgpack.encode(content)).digest()


def _compare(
    stored: CompilerIdentity,
    expected: CompilerIdentity,
    names: tuple[str, ...],
    error: type[AdapterNotFoundError] | type[DriverVersionMismatchError],
) -> None:
    found = [(name, getattr(stored, name), getattr(expected, name)) for name in names]
    differing = [f"{name}: stored {one!r}, here {other!r}" for name, one, other in found if one != other]
    if differing:
        raise error("blob: made for or by another: " + "; ".join(differing))
