"""Value keys of object code, and the driver's keys within them."""

from __future__ import annotations

from collections.abc import Callable

from shaderkiln.errors import CacheCorruptError
from shaderkiln.keys import Group, ObjectKey, Value, ValueKey, ValueType

PIPELINE_BINARY = "pipeline-binary"
DIGEST_BYTES = 8


def object_code_values(form: str, object_key: ObjectKey, answered: tuple[tuple[bytes, bytes], ...]) -> tuple[Value, ...]:
    """The typed values of a compile, as the worker answered them.

    In the form ``pipeline-binary`` a value key is the driver's key of the binary and 8 bytes of XXH3-64 of its data. The driver's
    key alone does not name the data: RADV gives the shaders of different ray tracing pipelines one key and different code, and
    NVIDIA's compiler does not give the same bytes twice. Equal binaries of different pipelines still share one value. A driver
    that has no keys of its own answers with empty ones; the object's key and a number stand for them.
    """
    values = []
    for number, (key, data) in enumerate(answered):
        if not key:
            name = bytes(object_key) + number.to_bytes(4, "little")
        elif form == PIPELINE_BINARY:
            name = key + _digest(data)
        else:
            name = key
        values.append(Value(ValueKey(name), ValueType.OBJECT_CODE, data))
    return tuple(values)


def driver_values(form: str, group: Group, find: Callable[[ValueKey], bytes]) -> tuple[tuple[bytes, bytes], ...]:
    """What a worker needs to recreate an object: the driver's own keys, and the data as ``find`` gives it.

    Raises what ``find`` raises, CacheCorruptError for a value key that holds no driver's key.
    """
    values = []
    for key in group.value_keys:
        data = find(key)
        if key.startswith(group.object_key):
            values.append((b"", data))
        elif form == PIPELINE_BINARY:
            if len(key) <= DIGEST_BYTES:
                raise CacheCorruptError(f"value key {key.hex()} of pipeline {group.name} holds no driver's key")
            values.append((bytes(key[:-DIGEST_BYTES]), data))
        else:
            values.append((bytes(key), data))
    return tuple(values)


def _digest(data: bytes) -> bytes:
    from xxhash import xxh3_64_digest

    return xxh3_64_digest(data)
