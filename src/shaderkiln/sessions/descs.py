"""What describes a session: modes, flags and descs, with the specification's numbers, and their validation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import ClassVar
from uuid import UUID

from ..errors import InvalidArgumentError


class ShaderCacheMode(IntEnum):
    """D3D12_SHADER_CACHE_MODE."""

    MEMORY = 0
    DISK = 1
    REGISTERED = 2
    FILE = 3


class ShaderCacheFlags(IntFlag):
    """D3D12_SHADER_CACHE_FLAGS, for MEMORY and DISK."""

    NONE = 0
    DRIVER_VERSIONED = 1
    """One cache per adapter and driver build, side by side."""
    USE_WORKING_DIR = 2
    """DISK: stored in the working directory instead of the default one."""


class SessionFileFlags(IntFlag):
    """D3D12_SHADER_CACHE_SESSION_FILE_FLAGS."""

    NONE = 0
    READ_ONLY = 1
    TRIM_WHEN_FULL = 2
    RESERVE_MAXIMUM_SIZE = 4
    OPEN_EXISTING_ONLY = 8
    ALLOW_CACHE_RESET = 0x10


class SessionRegisteredFlags(IntFlag):
    """D3D12_SHADER_CACHE_SESSION_REGISTERED_FLAGS."""

    NONE = 0


class CacheValueTypeFlags(IntFlag):
    """D3D12_CACHE_VALUE_TYPE_FLAGS: 1 << type (EP-14)."""

    NONE = 0
    OBJECT_CODE = 1
    METADATA = 2
    DEBUG_PDB = 4
    PERFORMANCE_DATA = 8


class ShaderCacheSupportFlags(IntFlag):
    """D3D12_SHADER_CACHE_SUPPORT_FLAGS.

    The specification names the last five without a number; theirs here are provisional, the next free bits (EP-08).
    """

    NONE = 0
    SINGLE_PSO = 1
    LIBRARY = 2
    AUTOMATIC_INPROC_CACHE = 4
    AUTOMATIC_DISK_CACHE = 8
    DRIVER_MANAGED_CACHE = 0x10
    SHADER_CONTROL_CLEAR = 0x20
    SHADER_SESSION_DELETE = 0x40
    SESSION_DESC1 = 0x80
    TRIM_WHEN_FULL = 0x100
    RESERVE_MAXIMUM_SIZE = 0x200
    STORE_OVERWRITE = 0x400
    STORE_DO_NOT_EVICT = 0x800


SESSION_SUPPORT = (
    ShaderCacheSupportFlags.SHADER_CONTROL_CLEAR
    | ShaderCacheSupportFlags.SHADER_SESSION_DELETE
    | ShaderCacheSupportFlags.SESSION_DESC1
    | ShaderCacheSupportFlags.TRIM_WHEN_FULL
    | ShaderCacheSupportFlags.RESERVE_MAXIMUM_SIZE
    | ShaderCacheSupportFlags.STORE_OVERWRITE
    | ShaderCacheSupportFlags.STORE_DO_NOT_EVICT
)
"""What the sessions of this package can do."""

DEFAULT_MEMORY_BYTES = 1024
DEFAULT_MEMORY_ENTRIES = 128
DEFAULT_FILE_BYTES = 128 << 20
FILE_TYPES = CacheValueTypeFlags.OBJECT_CODE | CacheValueTypeFlags.METADATA
DEFAULT_COMPONENT = "default"


@dataclass(frozen=True, slots=True)
class ShaderCacheSessionDesc:
    """The older desc: MEMORY and DISK only. Zero means the default of a limit."""

    identifier: UUID
    mode: ShaderCacheMode = ShaderCacheMode.MEMORY
    flags: ShaderCacheFlags = ShaderCacheFlags.NONE
    maximum_in_memory_cache_size_bytes: int = 0
    maximum_in_memory_cache_entries: int = 0
    maximum_value_file_size_bytes: int = 0
    version: int = 0

    def as_desc1(self) -> MemorySessionDesc | DiskSessionDesc:
        """The same as a newer desc. Raises InvalidArgumentError for any other mode."""
        size, entries = self.maximum_in_memory_cache_size_bytes, self.maximum_in_memory_cache_entries
        if self.mode == ShaderCacheMode.MEMORY:
            return MemorySessionDesc(self.identifier, self.flags, size, entries, self.version)
        if self.mode == ShaderCacheMode.DISK:
            file_size = self.maximum_value_file_size_bytes
            return DiskSessionDesc(self.identifier, self.flags, None, size, entries, file_size, self.version)
        raise InvalidArgumentError(f"mode is {_shown(self.mode)}: this desc takes MEMORY and DISK only")


@dataclass(frozen=True, slots=True)
class MemorySessionDesc:
    """A cache in memory, shared by the sessions of one identifier in the process. Zero means the default of a limit."""

    mode: ClassVar = ShaderCacheMode.MEMORY
    identifier: UUID
    flags: ShaderCacheFlags = ShaderCacheFlags.NONE
    maximum_in_memory_cache_size_bytes: int = 0
    """Bytes of all values; 0 is 1 KiB."""
    maximum_in_memory_cache_entries: int = 0
    """Keys; 0 is 128."""
    version: int = 0

    def check(self, support: ShaderCacheSupportFlags = SESSION_SUPPORT) -> None:
        """Raise InvalidArgumentError, which names the field, where the desc is not valid."""
        _check_cache(self)


@dataclass(frozen=True, slots=True)
class DiskSessionDesc:
    """A cache in a folder of its own, which survives the process. Zero means the default of a limit."""

    mode: ClassVar = ShaderCacheMode.DISK
    identifier: UUID
    flags: ShaderCacheFlags = ShaderCacheFlags.NONE
    directory: Path | str | None = None
    """None is the default location."""
    maximum_in_memory_cache_size_bytes: int = 0
    """Of the values kept in memory in front of the file; 0 is 1 KiB."""
    maximum_in_memory_cache_entries: int = 0
    """0 is 128."""
    maximum_value_file_size_bytes: int = 0
    """Bytes of all values in the file; 0 is 128 MiB."""
    version: int = 0

    def check(self, support: ShaderCacheSupportFlags = SESSION_SUPPORT) -> None:
        """Raise InvalidArgumentError, which names the field, where the desc is not valid."""
        _check_cache(self)
        _check_range("maximum_value_file_size_bytes", self.maximum_value_file_size_bytes, 63)
        if self.directory is None:
            return
        _check_path("directory", self.directory)
        if not support & ShaderCacheSupportFlags.SESSION_DESC1:
            raise InvalidArgumentError("directory is given: that needs SESSION_DESC1 in the support flags")
        if self.flags & ShaderCacheFlags.USE_WORKING_DIR:
            raise InvalidArgumentError("directory is given, and flags has USE_WORKING_DIR: only one of them can be")


@dataclass(frozen=True, slots=True)
class RegisteredSessionDesc:
    """A registered PSDB by the name of its component."""

    mode: ClassVar = ShaderCacheMode.REGISTERED
    component_name: str
    flags: SessionRegisteredFlags = SessionRegisteredFlags.NONE

    def check(self, support: ShaderCacheSupportFlags = SESSION_SUPPORT) -> None:
        """Raise InvalidArgumentError, which names the field, where the desc is not valid."""
        if not isinstance(self.component_name, str) or not self.component_name:
            raise InvalidArgumentError(f"component_name is {self.component_name!r}: a name is needed")
        if self.component_name == DEFAULT_COMPONENT:
            raise InvalidArgumentError('component_name is "default": that is the default PSDB, which is used without a session')
        if self.flags:
            raise InvalidArgumentError(f"flags is {_shown(self.flags)}: only NONE is allowed for REGISTERED")


@dataclass(frozen=True, slots=True)
class CacheFileDesc:
    """D3D12_CACHE_FILE_DESC: one database file."""

    path: Path | str
    maximum_size_bytes: int = 0
    """Bytes of all values; 0 asks for no new limit (EP-40)."""
    types: CacheValueTypeFlags = FILE_TYPES


@dataclass(frozen=True, slots=True)
class FileSessionDesc:
    """A PSDB by file. ``FileSessionDesc("MyShaders.psdb")`` is enough (EP-13)."""

    mode: ClassVar = ShaderCacheMode.FILE
    descs: Sequence[CacheFileDesc] | CacheFileDesc | Path | str
    """Exactly one file; after construction a tuple of CacheFileDesc."""
    flags: SessionFileFlags = SessionFileFlags.NONE

    def __post_init__(self) -> None:
        given = self.descs
        if isinstance(given, str | os.PathLike):
            given = CacheFileDesc(given)
        files = (given,) if isinstance(given, CacheFileDesc) else tuple(given or ())
        object.__setattr__(self, "descs", files)

    @property
    def files(self) -> tuple[CacheFileDesc, ...]:
        """``descs`` as a tuple."""
        assert isinstance(self.descs, tuple)
        return self.descs

    def check(self, support: ShaderCacheSupportFlags = SESSION_SUPPORT) -> None:
        """Raise InvalidArgumentError, which names the field, where the desc is not valid."""
        if len(self.files) != 1:
            raise InvalidArgumentError(f"descs has {len(self.files)} files: exactly one is needed")
        file = self.files[0]
        _check_path("path", file.path)
        _check_range("maximum_size_bytes", file.maximum_size_bytes, 63)
        if file.types != FILE_TYPES:
            raise InvalidArgumentError(f"types is {_shown(file.types)}: OBJECT_CODE | METADATA is needed")
        flags = SessionFileFlags
        _check_flags(self.flags, flags)
        if self.flags & flags.READ_ONLY:
            for flag in (flags.TRIM_WHEN_FULL, flags.RESERVE_MAXIMUM_SIZE, flags.ALLOW_CACHE_RESET):
                if self.flags & flag:
                    raise InvalidArgumentError(f"flags is {_shown(self.flags)}: READ_ONLY excludes {flag.name}")
        if self.flags & flags.RESERVE_MAXIMUM_SIZE and not file.maximum_size_bytes:
            raise InvalidArgumentError("maximum_size_bytes is 0: RESERVE_MAXIMUM_SIZE needs a maximum size")
        for flag, needed in (
            (flags.TRIM_WHEN_FULL, ShaderCacheSupportFlags.TRIM_WHEN_FULL),
            (flags.RESERVE_MAXIMUM_SIZE, ShaderCacheSupportFlags.RESERVE_MAXIMUM_SIZE),
        ):
            if self.flags & flag and not support & needed:
                raise InvalidArgumentError(f"flags has {flag.name}, which is not among the support flags here")


SessionDesc1 = MemorySessionDesc | DiskSessionDesc | RegisteredSessionDesc | FileSessionDesc
"""D3D12_SHADER_CACHE_SESSION_DESC1: which of the four it is, is its mode."""


def _check_cache(desc: MemorySessionDesc | DiskSessionDesc) -> None:
    if not isinstance(desc.identifier, UUID):
        raise InvalidArgumentError(f"identifier is {desc.identifier!r}: a UUID is needed")
    _check_flags(desc.flags, ShaderCacheFlags)
    _check_range("maximum_in_memory_cache_size_bytes", desc.maximum_in_memory_cache_size_bytes, 32)
    _check_range("maximum_in_memory_cache_entries", desc.maximum_in_memory_cache_entries, 32)
    _check_range("version", desc.version, 64)


def _check_flags(flags: int, known: type[IntFlag]) -> None:
    unknown = int(flags) & ~sum(known)
    if unknown:
        raise InvalidArgumentError(f"flags has {unknown:#x}, which is none of {known.__name__}")


def _check_range(name: str, value: int, bits: int) -> None:
    if not isinstance(value, int) or not 0 <= value < 1 << bits:
        raise InvalidArgumentError(f"{name} is {value!r}: a number of {bits} bits is needed")


def _check_path(name: str, path: object) -> None:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in os.fsdecode(path):
        raise InvalidArgumentError(f"{name} is {path!r}: a path is needed")


def _shown(value: int) -> str:
    return f"{value!r}" if isinstance(value, IntEnum | IntFlag) else f"{value:#x}"
