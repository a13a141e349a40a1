"""Making sessions from descs: CreateShaderCacheSession and CreateShaderCacheSession1 without a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgumentError
from ..identity import ApplicationIdentity, CompilerIdentity
from .control import ShaderCacheControl, process_control
from .debug_layer import DebugLayer, process_debug_layer
from .descs import (
    SESSION_SUPPORT,
    DiskSessionDesc,
    FileSessionDesc,
    MemorySessionDesc,
    RegisteredSessionDesc,
    SessionDesc1,
    ShaderCacheFlags,
    ShaderCacheSessionDesc,
    ShaderCacheSupportFlags,
)
from .interface import ShaderCacheSession

if TYPE_CHECKING:
    from .file import ComponentResolver


@dataclass(frozen=True, slots=True)
class SessionEnvironment:
    """What sessions need of the device and process that they are made by."""

    application: ApplicationIdentity | None = None
    """Needed for FILE and REGISTERED (EP-42)."""
    compiler: CompilerIdentity | None = None
    """The adapter: needed to create a FILE database, and for DRIVER_VERSIONED. Without it no field of it is compared."""
    abi_range: tuple[int, int] | None = None
    """The lowest and highest ABI version that the driver takes; None: that of ``compiler`` only."""
    resolver: ComponentResolver | None = None
    """Needed for REGISTERED."""
    support: ShaderCacheSupportFlags = SESSION_SUPPORT
    explicit_psdbs: bool = True
    """D3D12_FEATURE_EXPLICIT_PSDBS: without it FILE and REGISTERED are refused (EP-07)."""
    control: ShaderCacheControl = process_control
    debug: DebugLayer = process_debug_layer


def create_shader_cache_session(
    desc: ShaderCacheSessionDesc, environment: SessionEnvironment | None = None
) -> ShaderCacheSession:
    """A MEMORY or DISK session. Raises as ``create_shader_cache_session1``."""
    if not isinstance(desc, ShaderCacheSessionDesc):
        raise InvalidArgumentError(f"desc is {type(desc).__name__}: ShaderCacheSessionDesc is needed")
    return _create(desc.as_desc1(), desc, environment or SessionEnvironment())


def create_shader_cache_session1(desc: SessionDesc1, environment: SessionEnvironment | None = None) -> ShaderCacheSession:
    """A session of any mode.

    Raises InvalidArgumentError for a desc that is not valid, or where application identity or device are needed and missing;
    NotFoundError for a file or component that is not there; AlreadyExistsError for a cache that is open with another version;
    CacheCorruptError for an incompatible database, with debug messages; AccessDeniedError, DatabaseBusyError or
    DatabaseWriteError where the system refuses; NotCurrentlyAvailableError while the kind of cache is disabled.
    """
    return _create(desc, None, environment or SessionEnvironment())


def _create(
    desc: SessionDesc1, made_with: ShaderCacheSessionDesc | None, environment: SessionEnvironment
) -> ShaderCacheSession:
    if not isinstance(desc, MemorySessionDesc | DiskSessionDesc | RegisteredSessionDesc | FileSessionDesc):
        raise InvalidArgumentError(f"desc is {type(desc).__name__}: that is no desc of a session")
    desc.check(environment.support)
    common: dict[str, Any] = {
        "support": environment.support,
        "control": environment.control,
        "debug": environment.debug,
    }
    if isinstance(desc, MemorySessionDesc):
        from .memory import MemorySession

        versioned = desc.flags & ShaderCacheFlags.DRIVER_VERSIONED
        return MemorySession(desc, environment.compiler if versioned else None, made_with, **common)
    if isinstance(desc, DiskSessionDesc):
        from .disk import DiskSession

        return DiskSession(desc, environment.compiler, made_with, **common)
    return _open_database(desc, environment, common)


def _open_database(
    desc: FileSessionDesc | RegisteredSessionDesc, environment: SessionEnvironment, common: dict[str, Any]
) -> ShaderCacheSession:
    from ..databases.psdb_records import Expectation
    from .file import FileSession, RegisteredSession

    if not environment.explicit_psdbs:
        raise InvalidArgumentError(f"{desc.mode.name} sessions need EXPLICIT_PSDBS, which this device does not support")
    if environment.application is None:
        raise InvalidArgumentError(
            f"{desc.mode.name} sessions need an application identity, set before the device is created: none was set"
        )
    expected = Expectation(environment.application, environment.compiler, environment.abi_range)
    if isinstance(desc, FileSessionDesc):
        return FileSession(desc, expected, **common)
    return RegisteredSession(desc, expected, environment.resolver, **common)
