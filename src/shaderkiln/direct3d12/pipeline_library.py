"""Pipeline libraries: pipeline states by name, with their object code, as one string of bytes (ID3D12PipelineLibrary1)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec
import xxhash

from shaderkiln.errors import InvalidArgumentError, ShaderkilnError
from shaderkiln.identity import CompilerIdentity
from shaderkiln.keys import Group, ObjectKey, ValueKey

from .objects import PipelineState
from .stored_objects import StoredObject, compiler_digest

if TYPE_CHECKING:
    from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream

    from .device import Device

MAGIC = b"SKPL\x01\0\0\0"
_CHECKSUM_BYTES = 16
_OTHERS_ADAPTER = "D3D12_ERROR_ADAPTER_NOT_FOUND"
_OTHERS_DRIVER = "D3D12_ERROR_DRIVER_VERSION_MISMATCH"


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    name: str
    object_key: bytes
    version: int
    kind: str
    value_keys: tuple[bytes, ...]
    driver_keys: tuple[bytes, ...]
    values: tuple[bytes, ...]


class _Content(msgspec.Struct, frozen=True, array_like=True):
    family: str
    compiler: bytes
    entries: tuple[_Entry, ...]


class PipelineLibrary:
    """Made by ``Device.create_pipeline_library``. May be used by several threads."""

    def __init__(self, device: Device, blob: bytes = b"") -> None:
        """Raises InvalidArgumentError for bytes that are damaged or none of ``serialize``, and ShaderkilnError with the code
        ``D3D12_ERROR_ADAPTER_NOT_FOUND`` or ``D3D12_ERROR_DRIVER_VERSION_MISMATCH`` for those of another adapter or driver.
        """
        self.device = device
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        if blob:
            for entry in _parse(blob, device.compiler):
                self._entries[entry.name] = entry

    def store_pipeline(self, name: str, pipeline: PipelineState) -> None:
        """Keep a pipeline state under a name.

        Raises InvalidArgumentError for a name that is in use, empty or no text, and for a pipeline of another device;
        NotFoundError where no cache has its object code any more.
        """
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"name: {name!r} is no text, or empty")
        if not isinstance(pipeline, PipelineState) or pipeline.device is not self.device:
            raise InvalidArgumentError("pipeline: a pipeline state of this library's device is needed")
        (stored,) = pipeline._stored()
        group = stored.group
        entry = _Entry(
            name,
            bytes(pipeline.object_key),
            group.version,
            group.kind,
            tuple(map(bytes, group.value_keys)),
            tuple(key for key, _ in stored.values),
            tuple(data for _, data in stored.values),
        )
        with self._lock:
            if name in self._entries:
                raise InvalidArgumentError(f"name: {name!r} is in use")
            self._entries[name] = entry

    def load_pipeline(self, name: str, stream: PipelineStateStream) -> PipelineState:
        """Create the pipeline state of that name without compiling.

        Raises InvalidArgumentError where there is none, or where it was stored for another stream; and as
        ``Device.create_pipeline_state``, which creates it where the driver refuses what the library has.
        """
        with self._lock:
            entry = self._entries.get(name)
        if entry is None:
            raise InvalidArgumentError(f"name: the library has no pipeline {name!r}")
        group = Group(ObjectKey(entry.object_key), entry.version, tuple(map(ValueKey, entry.value_keys)), entry.kind, name)
        stored = StoredObject(group, tuple(zip(entry.driver_keys, entry.values, strict=True)))
        return self.device._create_from_library(stream, stored)

    def serialize(self) -> bytes:
        """Everything as bytes for ``create_pipeline_library``; equal content gives equal bytes."""
        with self._lock:
            entries = tuple(self._entries[name] for name in sorted(self._entries))
        compiler = self.device.compiler
        body = msgspec.msgpack.encode(_Content(compiler.family, compiler_digest(compiler), entries))
        return MAGIC + xxhash.xxh3_128_digest(body) + body

    def get_serialized_size(self) -> int:
        """The length of what ``serialize`` gives now, in bytes."""
        return len(self.serialize())


def _parse(blob: bytes, compiler: CompilerIdentity) -> tuple[_Entry, ...]:
    start = len(MAGIC) + _CHECKSUM_BYTES
    body = bytes(blob[start:])
    if blob[: len(MAGIC)] != MAGIC or xxhash.xxh3_128_digest(body) != blob[len(MAGIC) : start]:
        raise InvalidArgumentError("blob: no pipeline library, or damaged")
    try:
        content = msgspec.msgpack.decode(body, type=_Content)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"blob: no pipeline library: {error}") from error
    if content.family != compiler.family:
        raise ShaderkilnError(f"blob: made for {content.family}, this is {compiler.family}", code=_OTHERS_ADAPTER)
    if content.compiler != compiler_digest(compiler):
        raise ShaderkilnError("blob: made by another driver build", code=_OTHERS_DRIVER)
    for entry in content.entries:
        if not len(entry.value_keys) == len(entry.driver_keys) == len(entry.values):
            raise InvalidArgumentError(f"blob: pipeline {entry.name!r} has not as many values as keys")
    return content.entries
