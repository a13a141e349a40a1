"""What the PSDB tests share: identities and small made-up groups."""

from __future__ import annotations

import hashlib
from pathlib import Path

from shaderkiln.databases.psdb import PsdbBuilder
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity
from shaderkiln.keys import Group, ObjectKey, Value, ValueKey, ValueType

APPLICATION = ApplicationIdentity("Demo", "demo.exe", 0x0001_0002_0003_0004, "Engine", (1 << 64) - 2)


def compiler(**changes: object) -> CompilerIdentity:
    fields: dict[str, object] = {
        "family": "amd-navi31",
        "vendor_id": 0x1002,
        "device_id": 0x744C,
        "driver_id": 3,
        "driver_name": "radv",
        "driver_version": 0x06401006,
        "driver_build": "Mesa 25.0.7 build 00ff",
        "abi_version": (1 << 64) - 2,
        "compiler_version": "25.0.7",
        "application_profile_version": 1 << 63,
        "cache_uuid": bytes(range(16)),
        "global_key": bytes(range(32)),
        "object_code_form": "pipeline-binary",
        "features": ("robustBufferAccess", "robustImageAccess"),
        "pointer_bits": 64,
    }
    return CompilerIdentity(**(fields | changes))  # type: ignore[arg-type]


def object_key(number: int) -> ObjectKey:
    return ObjectKey(hashlib.sha256(b"object %d" % number).digest())


def value_key(number: int) -> ValueKey:
    return ValueKey(hashlib.sha256(b"value %d" % number).digest())


def payload(number: int) -> bytes:
    """Some bytes, short or several pages long; every number divisible by 3 has the same ones."""
    seed = 0 if number % 3 == 0 else number
    return hashlib.shake_128(b"payload %d" % seed).digest(40 + (seed * 2711) % 9000)


def make(number: int) -> tuple[Group, tuple[Value, ...]]:
    """Group ``number`` has one value of its own and shares one with its neighbour."""
    own, shared = value_key(number), value_key(100_000 + number // 2)
    values = (
        Value(own, ValueType.OBJECT_CODE, payload(number)),
        Value(own, ValueType.METADATA, b"statistics %d" % (number % 5)),
        Value(shared, ValueType.OBJECT_CODE, payload(100_000 + number // 2)),
    )
    return Group(object_key(number), 1, (own, shared), "compute", f"{number:016x}"), values


def build(path: Path, numbers: object = range(20), identity: CompilerIdentity | None = None) -> Path:
    with PsdbBuilder(path, identity or compiler(), APPLICATION) as builder:
        for number in numbers:  # type: ignore[attr-defined]
            builder.add(*make(number))
        builder.finish()
    return path
