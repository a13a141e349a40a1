"""Objects in cache sessions: the values that an object needs, found by its object key.

A PSDB has groups. In every other session, and in a PSDB that an application fills itself, the group is a METADATA value under the
object key (docs/formats.md, "Groups as metadata").
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import xxhash

from shaderkiln.compilers.value_keys import driver_values, object_code_values
from shaderkiln.errors import AlreadyExistsError, CacheCorruptError, NotFoundError
from shaderkiln.identity import CompilerIdentity
from shaderkiln.keys import OBJECT_VERSION, Group, ObjectKey, ValueKey, ValueType
from shaderkiln.sessions.interface import ShaderCacheSession, StoreFlags, ValueRequest

RECORD_FORM = 1
MAXIMUM_OBJECT_BYTES = 1 << 29
"""Object code of one pipeline. A group may name one large value any number of times."""


class GroupRecord(msgspec.Struct, frozen=True, array_like=True):
    """What the METADATA value holds, as a MessagePack array."""

    form: int
    """RECORD_FORM."""
    compiler: bytes
    """``compiler_digest`` of what made the object code."""
    version: int
    kind: str
    name: str
    value_keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object's group, and its values as the driver takes them: its own keys, and object code."""

    group: Group
    values: tuple[tuple[bytes, bytes], ...]

    @classmethod
    def of(
        cls,
        compiler: CompilerIdentity,
        object_key: ObjectKey,
        values: tuple[tuple[bytes, bytes], ...],
        kind: str,
        name: str,
        version: int = OBJECT_VERSION,
    ) -> StoredObject:
        """The object with the group that values of that compiler have."""
        keys = tuple(value.key for value in object_code_values(compiler.object_code_form, object_key, values))
        return cls(Group(object_key, version, keys, kind, name), values)


def find_object(session: ShaderCacheSession, object_key: ObjectKey, compiler: CompilerIdentity) -> StoredObject | None:
    """The object in a session, or None where it is not there or was made by another compiler.

    Raises CacheCorruptError for damage, and as ``find_value1`` does for a closed session or a disabled kind of cache.
    """
    group = session.find_group(object_key)
    if group is None:
        group = _recorded_group(session, object_key, compiler)
    if group is None:
        return None
    found: dict[bytes, bytes] = {}
    left = MAXIMUM_OBJECT_BYTES
    try:
        for key in group.value_keys:
            found[key] = session.find_value(key)
            left -= len(found[key])
            if left < 0:
                raise CacheCorruptError(f"the values of object {object_key.hex()} have more than {MAXIMUM_OBJECT_BYTES} bytes")
        return StoredObject(group, driver_values(compiler.object_code_form, group, found.__getitem__))
    except NotFoundError:
        return None  # evicted, or not yet stored by somebody who is at it


def store_object(
    session: ShaderCacheSession, stored: StoredObject, compiler: CompilerIdentity, *, replace: bool = False
) -> None:
    """Store an object so that ``find_object`` finds it; one that is there stays, unless it is to be replaced.

    The group comes last: whoever sees it finds its values. Raises as ``store_value1`` does, but for AlreadyExistsError.
    """
    flags = StoreFlags.OVERWRITE if replace else StoreFlags.NONE
    group = stored.group
    for key, (_, data) in zip(group.value_keys, stored.values, strict=True):
        _store(session, key, ValueType.OBJECT_CODE, data, flags)
    record = GroupRecord(
        RECORD_FORM, compiler_digest(compiler), group.version, group.kind, group.name, tuple(map(bytes, group.value_keys))
    )
    _store(session, group.object_key, ValueType.METADATA, msgspec.msgpack.encode(record), flags)


@lru_cache(maxsize=16)
def compiler_digest(compiler: CompilerIdentity) -> bytes:
    """16 bytes that stand for every field of a compiler's identity."""
    return xxhash.xxh3_128_digest(msgspec.msgpack.encode(msgspec.to_builtins(compiler, builtin_types=(bytes,))))


def _store(session: ShaderCacheSession, key: bytes, type: ValueType, data: bytes, flags: StoreFlags) -> None:
    with suppress(AlreadyExistsError):
        session.store_value1(key, ((type, data),), flags)


def _recorded_group(session: ShaderCacheSession, object_key: ObjectKey, compiler: CompilerIdentity) -> Group | None:
    request = ValueRequest(ValueType.METADATA)
    try:
        session.find_value1(object_key, [request], lambda size, _: bytearray(size))
    except NotFoundError:
        return None
    try:
        record = msgspec.msgpack.decode(request.buffer[: request.size], type=GroupRecord)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise CacheCorruptError(f"the metadata of object {object_key.hex()} is no group: {error}") from error
    if record.form != RECORD_FORM or record.compiler != compiler_digest(compiler):
        return None
    return Group(object_key, record.version, tuple(map(ValueKey, record.value_keys)), record.kind, record.name)
