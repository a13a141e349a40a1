"""FILE and REGISTERED sessions: a PSDB by its path or by the name of its component (EP-33 to EP-44)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

from ..closing import on_error
from ..databases.psdb_live import LivePsdb, journal_form
from ..databases.psdb_reader import Psdb
from ..databases.psdb_records import Expectation
from ..databases.store import Store, WritableStore
from ..errors import CacheCorruptError, NotFoundError, ShaderkilnError
from ..identity import IdentityMismatchError
from ..keys import Group, ObjectKey
from .control import CacheKindFlags
from .debug_layer import DebugLayer, Severity
from .descs import FileSessionDesc, RegisteredSessionDesc, SessionFileFlags
from .interface import StoreSession, check_key


class ComponentResolver(Protocol):
    """Finds the registered PSDB that fits; the registration room has one."""

    def resolve(self, component_name: str) -> Path | None:
        """The path of the PSDB of that component for this application and adapter, None where none is registered."""


def open_for_reading(path: Path, expected: Expectation) -> Store:
    """A PSDB whose bytes do not change by reading it.

    Raises NotFoundError, AccessDeniedError, CacheCorruptError (IdentityMismatchError for another identity).
    """
    if journal_form(path) == "live":
        return LivePsdb.open(path, expected, read_only=True)
    try:
        database = Psdb.open(path)
    except CacheCorruptError:
        # A writer may have replaced it by a live copy since.
        if journal_form(path) == "live":
            return LivePsdb.open(path, expected, read_only=True)
        raise
    found = expected.differences(database.identity, database.application)
    if found:
        database.close()
        raise IdentityMismatchError(path, found)
    return database


class _DatabaseSession(StoreSession):
    """What FILE and REGISTERED sessions share."""

    path: Path

    def find_value(self, key: bytes) -> bytes:
        if not self._usable:
            self._refuse()
        try:
            data: bytes = self._look_up(key, 0)
            return data
        except NotFoundError:
            self._report_miss(key)
            raise
        except TypeError:
            check_key(key)
            raise

    def find_group(self, object_key: ObjectKey) -> Group | None:
        if not self._usable:
            self._refuse()
        return self._database.latest_group(object_key)

    def _attach(self, database: Store) -> None:
        self._database = database
        self._look_up = database.find

    def _find(self, key: bytes, type: int) -> bytes:
        check_key(key)
        return self._database.find(key, type)

    def _store(self, key: bytes, values: Mapping[int, bytes], overwrite: bool, keep: bool) -> None:
        assert isinstance(self._database, WritableStore)
        self._database.store(key, values, overwrite=overwrite, keep=keep)

    def _clear(self) -> None:
        assert isinstance(self._database, WritableStore)
        self._database.clear()

    def set_delete_on_destroy(self) -> None:
        """Clear the cache when the last session on it in this process goes; nothing happens in a read-only session."""


class FileSession(_DatabaseSession):
    """A session on a PSDB file.

    For reading and writing, the file is live (``databases.psdb_live``): a finished PSDB is replaced by a live copy when it is
    opened. READ_ONLY reads finished and live ones, beside writers in other processes, and leaves recency alone: only sessions that
    may write tell the eviction what was used.
    """

    cache_kind: ClassVar = CacheKindFlags.APPLICATION_MANAGED

    def __init__(self, desc: FileSessionDesc, expected: Expectation, **common: Any) -> None:
        """Raises NotFoundError for a missing file that may not be created; CacheCorruptError for an incompatible one, with a
        debug message for each field of an identity that differs; AccessDeniedError, DatabaseBusyError, DatabaseWriteError,
        InvalidArgumentError, NotCurrentlyAvailableError.
        """
        debug = self._begin(**common)
        flags = SessionFileFlags
        file = desc.files[0]
        self.path = Path(file.path).absolute()
        self.read_only = bool(desc.flags & flags.READ_ONLY)
        self.evicts = bool(desc.flags & flags.TRIM_WHEN_FULL)
        with _Reported(debug):
            if self.read_only:
                self._attach(open_for_reading(self.path, expected))
            else:
                self._attach(
                    LivePsdb.open(
                        self.path,
                        expected,
                        create=not desc.flags & flags.OPEN_EXISTING_ONLY,
                        reset=bool(desc.flags & flags.ALLOW_CACHE_RESET),
                        maximum_size=file.maximum_size_bytes,
                        reserve=bool(desc.flags & flags.RESERVE_MAXIMUM_SIZE),
                        trim=self.evicts,
                    )
                )
        self._expected = expected
        with on_error(self._database.close):
            status = self.path.stat()
            self._file = (status.st_dev, status.st_ino)
            super().__init__(desc, **common)
        with _open_lock:
            count, delete = _open_files.get(self._file, (0, False))
            _open_files[self._file] = (count + 1, delete)

    def set_delete_on_destroy(self) -> None:
        if not self.read_only:
            with _open_lock:
                _open_files[self._file] = (_open_files[self._file][0], True)

    def _close(self) -> None:
        with _open_lock:
            count, delete = _open_files.pop(self._file)
            if count > 1:
                _open_files[self._file] = (count - 1, delete)
        try:
            if count == 1 and delete:
                self._delete()
        finally:
            self._database.close()

    def _delete(self) -> None:
        try:
            if not self.read_only:
                self._clear()
                return
            with LivePsdb.open(self.path, self._expected, create=False) as database:
                database.clear()
        except ShaderkilnError as error:
            self._debug.write(Severity.WARNING, "cache-not-cleared", str(error))


_open_files: dict[tuple[int, int], tuple[int, bool]] = {}
"""Number of FILE sessions, and whether to clear at the end, by device and inode."""
_open_lock = threading.Lock()


class RegisteredSession(_DatabaseSession):
    """A read-only session on a registered PSDB."""

    cache_kind: ClassVar = CacheKindFlags.PSDB
    read_only = True

    def __init__(
        self, desc: RegisteredSessionDesc, expected: Expectation, resolver: ComponentResolver | None, **common: Any
    ) -> None:
        """Raises NotFoundError where nothing that fits is registered, CacheCorruptError for a registered file that is damaged or
        made for somebody else, AccessDeniedError, NotCurrentlyAvailableError.
        """
        debug = self._begin(**common)
        path = None if resolver is None else resolver.resolve(desc.component_name)
        if path is None:
            raise NotFoundError(f"no PSDB that fits is registered for component {desc.component_name!r}")
        self.path = Path(path)
        with _Reported(debug):
            self._attach(open_for_reading(self.path, expected))
        with on_error(self._database.close):
            super().__init__(desc, **common)

    def _close(self) -> None:
        self._database.close()


class _Reported:
    """Writes a debug message for an incompatible file: one for each field of its identity that differs."""

    def __init__(self, debug: DebugLayer) -> None:
        self._debug = debug

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, IdentityMismatchError):
            for difference in error.differences:
                self._debug.write(Severity.ERROR, "identity-mismatch", str(difference))
        elif isinstance(error, CacheCorruptError):
            self._debug.write(Severity.ERROR, "cache-corrupt", str(error))
