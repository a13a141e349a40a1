"""SQLite files as every database here uses them: nothing in a file is trusted, and what SQLite says of it comes in our words."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

import apsw
from msgspec import Struct

from ..errors import AccessDeniedError, CacheCorruptError, InvalidArgumentError, NotFoundError, ShaderkilnError, UnreadableError
from ..identity import ApplicationIdentity
from ..system.files import sync
from .psdb_records import DatabaseBusyError, DatabaseWriteError

JOURNALS = ("-wal", "-shm", "-journal")
"""What SQLite puts beside a file, by the end of its name."""
_HEADER_BYTES = 100
_STEPS = 20_000


class EmptyFileError(CacheCorruptError):
    """A file without a byte: nothing, or what another process is about to write."""


class FileForm(Struct, frozen=True):
    """One kind of database, as the header of its files says it."""

    what: str
    """Its name in messages."""
    application_id: int
    version: int
    advice: str = ""
    """What to do about another file in its place."""

    def create(self, connection: apsw.Connection, statements: Iterable[str]) -> None:
        """Make an empty database of this form, inside the caller's transaction."""
        for statement in (
            f"PRAGMA application_id = {self.application_id}",
            f"PRAGMA user_version = {self.version}",
            *statements,
        ):
            connection.execute(statement)


class FileHeader(Struct, frozen=True):
    """What the header of a database says of the file."""

    size: int
    """Bytes of the file, of which the header says nothing."""
    is_wal: bool
    is_rollback: bool
    page_size: int
    pages: int


def read_header(path: Path, form: FileForm) -> FileHeader:
    """The header of a file of that form, looked at before SQLite touches it.

    Raises NotFoundError, UnreadableError where the system refuses, InvalidArgumentError for what is no path, and CacheCorruptError,
    with the reason, for anything else than a file of that form and version.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise CacheCorruptError(f"{path}: not a file")
        if not status.st_size:
            raise EmptyFileError(f"{path}: not a {form.what}: it is empty")
        # Through SQLite: closing a descriptor of our own would drop every lock that this process holds on the file.
        with closing(connect(path)) as connection:
            _, data = connection.read("main", 0, 0, min(_HEADER_BYTES, status.st_size))
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: no such file") from error
    except ValueError as error:
        raise InvalidArgumentError(f"{path!r}: {error}") from error
    except (OSError, apsw.CantOpenError, apsw.IOError) as error:
        raise UnreadableError(f"{path}: cannot be read: {getattr(error, 'strerror', '') or error}") from error
    if len(data) < _HEADER_BYTES or not data.startswith(b"SQLite format 3\0"):
        raise CacheCorruptError(f"{path}: not a {form.what}{form.advice}")

    def number(start: int, end: int) -> int:
        return int.from_bytes(data[start:end], "big")

    if number(68, 72) != form.application_id:
        raise CacheCorruptError(f"{path}: not a {form.what} (application id {number(68, 72):#010x}){form.advice}")
    if number(60, 64) != form.version:
        raise CacheCorruptError(f"{path}: a {form.what} of format version {number(60, 64)}, this program reads {form.version}")
    forms = data[18:20]
    return FileHeader(status.st_size, 2 in forms, forms == b"\x01\x01", number(16, 18), number(28, 32))


def connect(
    path: Path, *, write: bool = False, create: bool = False, immutable: bool = False, foreign_keys: bool = False
) -> apsw.Connection:
    """A connection that runs nothing that stands in the file. Raises apsw errors."""
    flags = apsw.SQLITE_OPEN_URI | (apsw.SQLITE_OPEN_READWRITE if write or create else apsw.SQLITE_OPEN_READONLY)
    flags |= apsw.SQLITE_OPEN_CREATE if create else 0
    name = quote_from_bytes(os.fsencode(path.absolute()))
    connection = apsw.Connection(f"file:{name}{'?immutable=1' if immutable else ''}", flags=flags)
    for option, value in (
        (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
        (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_FKEY, int(foreign_keys)),
    ):
        connection.config(option, value)
    return connection


def limit_resources(connection: apsw.Connection, largest: int) -> None:
    """Bounds for a file that may be hostile; ``largest``: bytes of a row. Raises apsw errors."""
    for limit, value in (
        (apsw.SQLITE_LIMIT_LENGTH, largest),
        (apsw.SQLITE_LIMIT_SQL_LENGTH, 10_000),
        (apsw.SQLITE_LIMIT_COLUMN, 64),
        (apsw.SQLITE_LIMIT_EXPR_DEPTH, 64),
        (apsw.SQLITE_LIMIT_ATTACHED, 0),
        (apsw.SQLITE_LIMIT_WORKER_THREADS, 0),
    ):
        connection.limit(limit, value)
    connection.execute("PRAGMA cell_size_check = ON")


class StepBudget:
    """Ends statements that do not come to an end: the trees of a damaged file may have cycles."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._left = 0
        connection.set_progress_handler(self._is_spent, _STEPS)

    def renew(self, size: int) -> None:
        """What statements over a file of ``size`` bytes may take from here on together."""
        self._left = 200 + 8 * size // _STEPS

    def renew_for(self, path: Path, *, at_least: int = 0) -> None:
        """The same by the size that the file has."""
        try:
            self.renew(at_least or path.stat().st_size)
        except OSError:
            self.renew(0)

    def _is_spent(self) -> bool:
        self._left -= 1
        return self._left < 0


class Translated:
    """A context in which the errors of SQLite, and of the system where it is asked for files, become those of ``translated``."""

    __slots__ = ("_busy", "_damaged", "_path", "_refused", "_writing")

    def __init__(
        self,
        path: Path,
        *,
        writing: bool = False,
        busy: Callable[[str], ShaderkilnError] = DatabaseBusyError,
        refused: Callable[[str], ShaderkilnError] = AccessDeniedError,
        damaged: str = "damaged",
    ) -> None:
        """``damaged``: what damage is called."""
        self._path = path
        self._writing = writing
        self._busy = busy
        self._refused = refused
        self._damaged = damaged

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, apsw.Error | OSError | UnicodeDecodeError | MemoryError):
            raise self.translated(error) from error

    def translated(self, error: BaseException) -> ShaderkilnError:
        """Our error for one of SQLite's: who else has the file, what the system refuses, or damage."""
        path = self._path
        if isinstance(error, apsw.ConnectionClosedError | apsw.CursorClosedError):
            return InvalidArgumentError(f"{path}: the database is closed")
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return self._busy(f"{path}: another process is writing it")
        if isinstance(error, apsw.InterruptError):
            return CacheCorruptError(f"{path}: {self._damaged}: reading does not come to an end")
        if isinstance(error, apsw.FullError):
            return DatabaseWriteError(f"{path}: cannot be written: no space left on the device")
        if isinstance(
            error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError | apsw.AuthError | PermissionError
        ):
            return self._refused(f"{path}: {error}")
        if self._writing and isinstance(error, apsw.IOError | OSError):
            return DatabaseWriteError(f"{path}: cannot be written: {error}")
        if isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) != apsw.SQLITE_IOERR_SHORT_READ:
            return UnreadableError(f"{path}: {error}")
        return CacheCorruptError(f"{path}: {self._damaged}: {error}")


def beside(path: Path, suffix: str) -> Path:
    """The path with more at the end of its name."""
    return path.with_name(path.name + suffix)


def put_in_place(finished: Path, path: Path) -> None:
    """Put a closed database in the place of another at once; the journal of the old one never lies beside the new one."""
    sync(finished)
    remove(path, JOURNALS)
    finished.replace(path)
    sync(path.parent)


def remove(path: Path, suffixes: Iterable[str] = ("", *JOURNALS)) -> None:
    """Remove a file and what SQLite left beside it, or only that; what is not there is no error."""
    for suffix in suffixes:
        beside(path, suffix).unlink(missing_ok=True)


def signed(value: int, what: str = "value") -> int:
    """An unsigned 64-bit integer as SQLite stores it. Raises InvalidArgumentError where it is none."""
    if not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise InvalidArgumentError(f"{what}: {value!r} is no unsigned 64-bit integer")
    return value - (1 << 64) if value >= 1 << 63 else value


def unsigned(value: int) -> int:
    """The inverse of ``signed``."""
    return value & ((1 << 64) - 1)


def application_row(application: ApplicationIdentity) -> tuple[str, str, int, str, int]:
    """Name, executable, version, engine and its version, as columns. Raises InvalidArgumentError."""
    engine = application.engine_name, signed(application.engine_version, "engine_version")
    return application.name, application.exe_filename, signed(application.version, "version"), *engine


def application_from_row(row: Sequence[Any]) -> ApplicationIdentity:
    """The inverse of ``application_row``."""
    name, exe_filename, version, engine_name, engine_version = row
    return ApplicationIdentity(name, exe_filename, unsigned(version), engine_name, unsigned(engine_version))


def foreign_and_missing(found: Set[tuple[Any, ...]], expected: Set[tuple[Any, ...]]) -> str:
    """How rows (type, name, sql) of sqlite_schema differ from those expected; at most five of either."""
    foreign = sorted({f"foreign {kind} {name}" for kind, name, _ in found - expected})
    missing = sorted({f"missing {kind} {name}" for kind, name, _ in expected - found})
    return "; ".join(foreign[:5] + missing[:5])
