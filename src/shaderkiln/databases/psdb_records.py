"""Plain types around a precompiled shader database: poison entries, differences, damage, statistics and its errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from msgspec import Struct

from ..endings import Ending
from ..errors import CacheCorruptError, ShaderkilnError, Trouble
from ..identity import ApplicationIdentity, CompilerIdentity, Difference, differences
from ..keys import ObjectKey, ValueKey, ValueType


class DamagedValueError(CacheCorruptError):
    """One stored value does not have the checksum it was stored with, or cannot be read; other values may be sound."""

    def __init__(self, key: ValueKey, type: ValueType, reason: str) -> None:
        super().__init__(f"value {key.hex()} ({type.name}) is damaged: {reason}")
        self.key = key
        self.type = type
        self.reason = reason


class DatabaseBusyError(ShaderkilnError):
    """Another process is building the same database (``E_ACCESSDENIED``)."""

    default_code = "E_ACCESSDENIED"
    trouble = Trouble.OUTPUT


class DatabaseWriteError(ShaderkilnError):
    """The system refused a write, for example for want of disk space; what was committed before is kept."""

    trouble = Trouble.OUTPUT


class Poison(Struct, frozen=True):
    """A pipeline that must not be given to this driver build again without being asked for."""

    object_key: ObjectKey
    kind: str
    name: str
    outcome: Ending
    signal: int
    """Number of the signal that ended the worker; 0 where there was none."""
    driver_build: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Who wants to use a database."""

    application: ApplicationIdentity
    compiler: CompilerIdentity | None = None
    """None compares no field of the adapter; then a database cannot be created."""
    abi_range: tuple[int, int] | None = None
    """The lowest and highest ABI version that the driver accepts; None asks for that of ``compiler``."""

    def differences(self, compiler: CompilerIdentity, application: ApplicationIdentity) -> tuple[Difference, ...]:
        """Every field of a stored identity that does not fit."""
        found = [] if self.compiler is None else list(differences(compiler, self.compiler))
        if self.abi_range is not None:
            low, high = self.abi_range
            found = [difference for difference in found if difference.field != "abi_version"]
            if not low <= compiler.abi_version <= high:
                found.append(Difference("abi_version", compiler.abi_version, f"{low} to {high}"))
        for field in fields(ApplicationIdentity):
            stored, expected = getattr(application, field.name), getattr(self.application, field.name)
            if stored != expected:
                found.append(Difference(f"application.{field.name}", stored, expected))
        return tuple(found)


class ValueDifference(Struct, frozen=True):
    """A compile gave other bytes under a key and type that were stored already; the stored ones were kept."""

    key: ValueKey
    type: ValueType
    kept_size: int
    other_size: int
    kept_checksum: bytes
    """xxh3_128 of the stored bytes."""
    other_checksum: bytes

    def __str__(self) -> str:
        return (
            f"value {self.key.hex()} ({self.type.name}) is not deterministic: kept {self.kept_size} bytes with xxh3_128 "
            f"{self.kept_checksum.hex()}, was given {self.other_size} bytes with {self.other_checksum.hex()}"
        )


class GroupDifference(Struct, frozen=True):
    """A compile gave other value keys for a group that was stored already; the stored ones were kept."""

    object_key: ObjectKey
    version: int
    kept: tuple[ValueKey, ...]
    other: tuple[ValueKey, ...]

    def __str__(self) -> str:
        return (
            f"group {self.object_key.hex()} is not deterministic: kept {len(self.kept)} value keys, "
            f"was given {len(self.other)}, not all equal"
        )


class Damage(Struct, frozen=True):
    """One finding of a verification."""

    subject: str
    """``value``, ``group``, ``poison`` or ``index``."""
    key: bytes | None
    """Value key of a value, object key of a group or poison entry; None where not even that can be read."""
    type: ValueType | None
    reason: str

    def __str__(self) -> str:
        name = self.subject if self.key is None else f"{self.subject} {self.key.hex()}"
        return f"{name}{f' ({self.type.name})' if self.type is not None else ''}: {self.reason}"


class StoredValue(Struct, frozen=True):
    """Where one value lies; values with equal ``payload`` have equal bytes."""

    key: ValueKey
    type: ValueType
    size: int
    payload: int


class TypeStatistics(Struct, frozen=True):
    """What one value type holds: how many values, their bytes before and after identical payloads are stored once."""

    values: int
    bytes: int
    stored_bytes: int


class PsdbStatistics(Struct, frozen=True):
    """Counts and sizes in bytes of one database."""

    groups: int
    values: int
    poisoned: int
    payloads: int
    payload_bytes: int
    """Bytes of the payloads as stored, each once."""
    saved_bytes: int
    """Bytes that storing identical payloads once saves."""
    file_bytes: int
    by_type: Mapping[ValueType, TypeStatistics]
