"""The local driver cache of a device: a DISK cache of its own kind, one for each driver build and device (EP-03, EP-04)."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import ClassVar
from uuid import UUID
from weakref import WeakSet

from shaderkiln.errors import NotCurrentlyAvailableError, ShaderkilnError
from shaderkiln.identity import CompilerIdentity
from shaderkiln.sessions.control import CacheKindFlags, ShaderCacheControl
from shaderkiln.sessions.debug_layer import DebugLayer, Severity
from shaderkiln.sessions.descs import DiskSessionDesc, ShaderCacheFlags
from shaderkiln.sessions.disk import DiskSession
from shaderkiln.sessions.disk_folder import clear_folder

IDENTIFIER = UUID("7d2a1d5e-96a0-4a3c-8f5b-0c5c7c1f3a44")
MAXIMUM_BYTES = 4 << 30
FRONT_BYTES = 1 << 20
FRONT_ENTRIES = 1024


def default_folder() -> Path:
    """In the user's folder of caches (XDG_CACHE_HOME)."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "shaderkiln" / "driver-cache"


class LocalCacheSession(DiskSession):
    """As every DISK session, under the control of the driver's cache."""

    cache_kind: ClassVar = CacheKindFlags.IMPLICIT_DRIVER_MANAGED


class LocalCache:
    """Opens the cache when it is first used. A cache that cannot be opened is told once and then done without."""

    def __init__(
        self, compiler: CompilerIdentity, folder: Path | str | None, control: ShaderCacheControl, debug: DebugLayer
    ) -> None:
        self.folder = default_folder() if folder is None else Path(folder)
        self._compiler = compiler
        self._control = control
        self._debug = debug
        self._lock = threading.Lock()
        self._session: LocalCacheSession | None = None
        self._done_without = False
        _clear_when_told(control)

    def session(self) -> LocalCacheSession | None:
        """The session to use now; None while its kind of cache is disabled."""
        if not self._control.enabled(CacheKindFlags.IMPLICIT_DRIVER_MANAGED):
            return None
        with self._lock:
            if self._session is None and not self._done_without:
                try:
                    self._session = self._open()
                except NotCurrentlyAvailableError:
                    return None
                except ShaderkilnError as error:
                    self._done_without = True
                    self._debug.write(Severity.WARNING, "no-local-cache", str(error))
            return self._session

    def close(self) -> None:
        """Release the file; nothing is found or stored afterwards."""
        with self._lock:
            self._done_without = True
            session, self._session = self._session, None
        if session is not None:
            session.close()

    def _open(self) -> LocalCacheSession:
        desc = DiskSessionDesc(
            IDENTIFIER,
            ShaderCacheFlags.DRIVER_VERSIONED,
            directory=self.folder,
            maximum_in_memory_cache_size_bytes=FRONT_BYTES,
            maximum_in_memory_cache_entries=FRONT_ENTRIES,
            maximum_value_file_size_bytes=MAXIMUM_BYTES,
            version=1,
        )
        return LocalCacheSession(desc, self._compiler, control=self._control, debug=self._debug)


_cleared: WeakSet[ShaderCacheControl] = WeakSet()
_cleared_lock = threading.Lock()


def _clear_when_told(control: ShaderCacheControl) -> None:
    """CLEAR also deletes the caches of the default folder that no process has open."""
    with _cleared_lock:
        if control not in _cleared:
            _cleared.add(control)
            control.add_clear_hook(CacheKindFlags.IMPLICIT_DRIVER_MANAGED, lambda: clear_folder(default_folder()))
