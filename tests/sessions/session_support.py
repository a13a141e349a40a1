"""What the session tests share."""

from __future__ import annotations

import uuid
from pathlib import Path

from shaderkiln.databases.psdb import PsdbBuilder
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity
from shaderkiln.keys import Group, ObjectKey, Value, ValueKey, ValueType
from shaderkiln.sessions import DebugLayer, SessionEnvironment, ShaderCacheControl

APPLICATION = ApplicationIdentity("TestGame", "testgame.exe", 1 << 48, "TestEngine", 2 << 48)
IDENTIFIER = uuid.UUID("a1b2c3d4-e5f6-7890-abcd-ef1234567890")


def compiler(**changes: object) -> CompilerIdentity:
    fields: dict[str, object] = {
        "family": "amd-navi31",
        "vendor_id": 0x1002,
        "device_id": 0x744C,
        "driver_id": 3,
        "driver_name": "radv",
        "driver_version": 0x06401006,
        "driver_build": "Mesa 25.0.7 build 00ff",
        "abi_version": 25 << 48,
        "compiler_version": "25.0.7",
        "application_profile_version": 1 << 63,
        "cache_uuid": bytes(range(16)),
        "global_key": bytes(range(32)),
        "object_code_form": "pipeline-binary",
        "features": ("robustBufferAccess",),
        "pointer_bits": 64,
    }
    return CompilerIdentity(**(fields | changes))  # type: ignore[arg-type]


def environment(**changes: object) -> SessionEnvironment:
    """With a control and a debug layer of its own, so that tests do not meet in those of the process."""
    fields: dict[str, object] = {
        "application": APPLICATION,
        "compiler": compiler(),
        "control": ShaderCacheControl(developer_mode=True),
        "debug": DebugLayer(),
    }
    return SessionEnvironment(**(fields | changes))  # type: ignore[arg-type]


class Components:
    """Registered components by name, as the registration room would find them."""

    def __init__(self, **paths: Path) -> None:
        self.paths = paths

    def resolve(self, component_name: str) -> Path | None:
        return self.paths.get(component_name)


def build(path: Path, contents: dict[bytes, dict[int, bytes]], *, identity: CompilerIdentity | None = None) -> Path:
    """A finished PSDB with one group that has all the values."""
    keys = tuple(ValueKey(key) for key in contents)
    values = [Value(ValueKey(key), ValueType(type), data) for key, one in contents.items() for type, data in one.items()]
    with PsdbBuilder(path, identity or compiler(), APPLICATION) as builder:
        builder.add(Group(ObjectKey(bytes(32)), 1, keys, "compute", "all"), values)
        builder.finish()
    return path
