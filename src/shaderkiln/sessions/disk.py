"""DISK sessions: a cache that survives the process, one for each identifier (EP-31, EP-32)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ..databases.psdb_live import LivePsdb
from ..databases.psdb_lock import SharedLock
from ..databases.psdb_records import DatabaseWriteError, Expectation
from ..databases.sqlite_file import remove
from ..errors import AccessDeniedError, AlreadyExistsError, InvalidArgumentError, ShaderkilnError
from ..identity import ApplicationIdentity, CompilerIdentity, IdentityMismatchError
from .control import CacheKindFlags
from .debug_layer import DebugLayer, Severity
from .descs import (
    DEFAULT_FILE_BYTES,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_MEMORY_ENTRIES,
    DiskSessionDesc,
    ShaderCacheFlags,
    ShaderCacheSessionDesc,
)
from .disk_folder import cache_name, default_folder
from .interface import StoreSession, check_key

_NO_ADAPTER = CompilerIdentity("any", 0, 0, 0, "", 0, "", 1, "", 0, bytes(16), b"", "", (), 64)


class _Front:
    """What was stored or found last, up to both limits; valid as long as no other connection changed the file."""

    def __init__(self, maximum_bytes: int, maximum_entries: int) -> None:
        self.maximum_bytes = maximum_bytes or DEFAULT_MEMORY_BYTES
        self._maximum_entries = maximum_entries or DEFAULT_MEMORY_ENTRIES
        self._values: OrderedDict[tuple[bytes, int], bytes] = OrderedDict()
        self._bytes = 0
        self.change_number = -1

    def get(self, key: bytes, type: int) -> bytes | None:
        return self._values.get((key, type))

    def put(self, key: bytes, type: int, data: bytes) -> None:
        self.drop(key, type)
        if len(data) > self.maximum_bytes:
            return
        self._values[key, type] = data
        self._bytes += len(data)
        while self._bytes > self.maximum_bytes or len(self._values) > self._maximum_entries:
            _, oldest = self._values.popitem(last=False)
            self._bytes -= len(oldest)

    def drop(self, key: bytes, type: int) -> None:
        old = self._values.pop((key, type), None)
        self._bytes -= len(old) if old is not None else 0

    def clear(self) -> None:
        self._values.clear()
        self._bytes = 0


class DiskCache:
    """What the sessions of one cache share in this process."""

    def __init__(self, path: Path, expected: Expectation, desc: DiskSessionDesc, debug: DebugLayer) -> None:
        self.path = path
        self.version = desc.version
        self.sessions = 0
        self.delete = False
        self.lock = threading.RLock()
        self.front = _Front(desc.maximum_in_memory_cache_size_bytes, desc.maximum_in_memory_cache_entries)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Held by every process that uses the cache, so that nobody clears it under another one.
        self._in_use = SharedLock(path.with_name(path.name + ".in-use"))
        alone = self._in_use.take()
        try:
            self.database = self._open(expected, desc, alone, debug)
        except IdentityMismatchError as error:
            self._in_use.release()
            raise AlreadyExistsError(f"{path}: another process has it open: {error}") from error
        except BaseException:
            self._in_use.release()
            raise
        self._in_use.share()

    def _open(self, expected: Expectation, desc: DiskSessionDesc, alone: bool, debug: DebugLayer) -> LivePsdb:
        size = desc.maximum_value_file_size_bytes or DEFAULT_FILE_BYTES
        try:
            return LivePsdb.open(self.path, expected, maximum_size=size, recency=False)
        except ShaderkilnError as error:
            if not alone or error.code != "DXGI_ERROR_CACHE_CORRUPT":
                raise
            debug.write(Severity.INFO, "cache-reset", str(error))
            return LivePsdb.open(self.path, expected, maximum_size=size, recency=False, reset=True)

    def close(self) -> None:
        self.database.close()
        if self.delete and self._in_use.take():
            remove(self.path)
        self._in_use.release()


_caches: dict[Path, DiskCache] = {}
_caches_lock = threading.RLock()


class DiskSession(StoreSession):
    """A session on a cache in a file of its own. The cache is not trimmed: a full one refuses stores.

    What is kept in memory in front of the file is asked only while no other process has changed the file.
    """

    cache_kind: ClassVar = CacheKindFlags.APPLICATION_MANAGED

    def __init__(
        self,
        desc: DiskSessionDesc,
        adapter: CompilerIdentity | None = None,
        made_with: ShaderCacheSessionDesc | None = None,
        **common: Any,
    ) -> None:
        """A cache that is damaged, or of another version while no other session is open on it, is cleared.

        Limits of the memory in front are those of the first session on the cache. Raises AlreadyExistsError while another
        session, in any process, has it open with another version; InvalidArgumentError for DRIVER_VERSIONED without an adapter;
        AccessDeniedError, DatabaseBusyError, DatabaseWriteError, NotCurrentlyAvailableError.
        """
        debug = self._begin(**common)
        if not desc.flags & ShaderCacheFlags.DRIVER_VERSIONED:
            adapter = None
        elif adapter is None:
            raise InvalidArgumentError("flags has DRIVER_VERSIONED: that needs a device")
        if desc.directory is not None:
            folder = Path(desc.directory).absolute()
        else:
            folder = Path.cwd() if desc.flags & ShaderCacheFlags.USE_WORKING_DIR else default_folder()
        path = folder.resolve() / cache_name(desc.identifier, adapter)
        application = ApplicationIdentity("shader cache", str(desc.identifier), desc.version)
        with _caches_lock:
            cache = _caches.get(path)
            if cache is None:
                try:
                    cache = DiskCache(path, Expectation(application, adapter or _NO_ADAPTER), desc, debug)
                except OSError as error:
                    raise _unusable(path, error) from error
            elif cache.version != desc.version:
                raise AlreadyExistsError(f"cache {path} is open with version {cache.version}, not {desc.version}")
            else:
                cache.database.raise_limit(desc.maximum_value_file_size_bytes or DEFAULT_FILE_BYTES)
            self._cache = cache
            self._database = cache.database
            self.path = path
            try:
                super().__init__(made_with or desc, **common)
            except BaseException:
                if not cache.sessions:
                    cache.close()
                raise
            _caches[path] = cache
            cache.sessions += 1

    def set_delete_on_destroy(self) -> None:
        """Delete the file when the last session on the cache goes, in this process and in others."""
        self._cache.delete = True

    def _find(self, key: bytes, type: int) -> bytes:
        cache = self._cache
        try:
            with cache.lock:
                front, database = cache.front, cache.database
                data = front.get(key, type)
                if data is not None and self._front_is_valid():
                    return data
                data = database.find(key, type)
                if len(data) <= front.maximum_bytes and self._front_is_valid():
                    front.put(key, type, data)
                return data
        except TypeError:
            check_key(key)
            raise

    _look_up = _find

    def _front_is_valid(self) -> bool:
        """Clears the front where another connection has changed the file since the last look."""
        cache = self._cache
        number = cache.database.change_number()
        if number == cache.front.change_number:
            return True
        cache.front.clear()
        cache.front.change_number = number
        return False

    def _store(self, key: bytes, values: Mapping[int, bytes], overwrite: bool, keep: bool) -> None:
        with self._cache.lock:
            self._cache.database.store(key, values, overwrite=overwrite, keep=keep)
            for type, data in values.items():
                self._cache.front.drop(key, type)
                if len(data) <= self._cache.front.maximum_bytes and self._front_is_valid():
                    self._cache.front.put(key, type, data)

    def _clear(self) -> None:
        with self._cache.lock:
            self._cache.database.clear()
            self._cache.front.clear()

    def _close(self) -> None:
        with _caches_lock:
            self._cache.sessions -= 1
            if not self._cache.sessions:
                _caches.pop(self.path, None)
                self._cache.close()


def _unusable(path: Path, error: OSError) -> ShaderkilnError:
    if isinstance(error, PermissionError):
        return AccessDeniedError(f"{path.parent}: {error.strerror}")
    return DatabaseWriteError(f"{path.parent}: {error.strerror}")
