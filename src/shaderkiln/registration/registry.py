"""The registry file: one SQLite database a scope, its tables, and how it is opened and read.

The rollback journal is used, because a database in WAL mode cannot be read in a folder that the reader may not write to, and a
plain user reads the system's registry. Everything in the file is checked when it is opened: it is small, and other users wrote it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_from_bytes

from shaderkiln.errors import AccessDeniedError, CacheCorruptError, InvalidArgumentError, NotFoundError, ShaderkilnError
from shaderkiln.identity import ApplicationIdentity

from .records import Component, PsdbProperties, RegisteredApplication, RegistryBusyError, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

APPLICATION_ID = 0x534B5247
"""``SKRG``, in the application_id field of the SQLite header."""
FORMAT_VERSION = 1
FILE_NAME = "registry.sqlite"
SYSTEM_FOLDER = Path("/var/lib/shaderkiln")
SYSTEM_FOLDER_VARIABLE = "SHADERKILN_SYSTEM_DATA"
MAXIMUM_TEXT_BYTES = 32_767
MAXIMUM_FILE_BYTES = 1 << 28
BUSY_MILLISECONDS = 10_000
_STEPS = 10_000

_TEXT = f"CHECK (length({{0}}) BETWEEN 1 AND {MAXIMUM_TEXT_BYTES})"
TABLES: dict[str, str] = {
    "installers": f"""CREATE TABLE installers (
 id INTEGER PRIMARY KEY,
 name TEXT NOT NULL UNIQUE {_TEXT.format("name")}
) STRICT""",
    "applications": f"""CREATE TABLE applications (
 id INTEGER PRIMARY KEY,
 installer INTEGER NOT NULL REFERENCES installers (id) ON DELETE CASCADE,
 executable TEXT NOT NULL UNIQUE {_TEXT.format("executable")},
 name TEXT NOT NULL {_TEXT.format("name")}, exe_filename TEXT NOT NULL, version INTEGER NOT NULL,
 engine_name TEXT NOT NULL, engine_version INTEGER NOT NULL
) STRICT""",
    "components": f"""CREATE TABLE components (
 id INTEGER PRIMARY KEY,
 application INTEGER NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
 name TEXT NOT NULL {_TEXT.format("name")},
 sodb TEXT NOT NULL {_TEXT.format("sodb")},
 UNIQUE (application, name)
) STRICT""",
    "psdbs": f"""CREATE TABLE psdbs (
 id INTEGER PRIMARY KEY,
 component INTEGER NOT NULL REFERENCES components (id) ON DELETE CASCADE,
 position INTEGER NOT NULL CHECK (position >= 0),
 family TEXT NOT NULL {_TEXT.format("family")},
 path TEXT NOT NULL {_TEXT.format("path")},
 UNIQUE (component, position)
) STRICT""",
    "applications_by_installer": "CREATE INDEX applications_by_installer ON applications (installer)",
}
_EXPECTED_SCHEMA = frozenset(
    [("index" if "INDEX" in sql else "table", name, sql) for name, sql in TABLES.items()]
    + [("index", f"sqlite_autoindex_{name}_1", None) for name in ("installers", "applications", "components", "psdbs")]
)


def registry_path(scope: Scope, environment: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_DATA_HOME/shaderkiln/registry.sqlite`` (below ``~/.local/share`` by default), or the system's in
    ``/var/lib/shaderkiln``, for which ``$SHADERKILN_SYSTEM_DATA`` may name another folder."""
    if scope == Scope.SYSTEM:
        return Path(environment.get(SYSTEM_FOLDER_VARIABLE) or SYSTEM_FOLDER) / FILE_NAME
    data = environment.get("XDG_DATA_HOME", "")
    home = Path(data) if data.startswith("/") else Path(environment.get("HOME") or Path.home()) / ".local/share"
    return home / "shaderkiln" / FILE_NAME


def normal_executable(path: Path | str) -> str:
    """The key of an application: absolute, symbolic links followed. Raises InvalidArgumentError for what cannot be one."""
    try:
        return text("executable", os.path.realpath(text("executable", os.fspath(path))))
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(f"executable: {path!r} is no path: {error}") from error


def text(field: str, value: object) -> str:
    """``value`` if the registry can hold it; raises InvalidArgumentError."""
    if not isinstance(value, str) or not value:
        raise InvalidArgumentError(f"{field}: {value!r} is no text, or empty")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{field}: {value!r} is no Unicode text") from error
    if "\0" in value or size > MAXIMUM_TEXT_BYTES:
        raise InvalidArgumentError(f"{field}: text of at most {MAXIMUM_TEXT_BYTES} bytes without NUL is needed")
    return value


class Registry:
    """An open registry file. One thread at a time; close it, or use it in a ``with`` statement."""

    def __init__(self, path: Path, scope: Scope, connection: apsw.Connection) -> None:
        self.path = path
        self.scope = scope
        self.connection = connection
        self._steps_left = 0
        connection.set_progress_handler(self._stop_runaway, _STEPS)

    @classmethod
    def open(cls, path: Path, scope: Scope, *, write: bool) -> Registry:
        """Open and check the file; for writing it is created with its folder where it is missing.

        Raises NotFoundError, AccessDeniedError, RegistryBusyError, and CacheCorruptError for a file that is damaged or no registry.
        """
        there = _check_header(path)
        if not (there or write):
            raise NotFoundError(f"{path}: there is no registry")
        try:
            registry = cls._checked(path, scope, write=write, make=write)
        except _NeedsRecoveryError:
            if write:
                raise
            # A writer died. Rolling its journal back needs write access, which is all that this connection does with it.
            registry = cls._checked(path, scope, write=True, make=False)
            registry.connection.execute("PRAGMA query_only = ON")
        if write and not there and scope == Scope.SYSTEM:
            path.chmod(0o644)
        return registry

    @classmethod
    def _checked(cls, path: Path, scope: Scope, *, write: bool, make: bool) -> Registry:
        import apsw

        registry = cls(path, scope, _connect(path, write=write, create=make))
        try:
            registry._steps_left = registry._budget()
            if make:
                # SQLite opens what it may only read, and would say so at the first change.
                if registry.connection.readonly("main") or not os.access(path.parent, os.W_OK | os.X_OK):
                    raise AccessDeniedError(f"{path}: may be read only; a registry of this scope needs other rights")
                _create(registry.connection)
            registry._check()
        except apsw.Error as error:
            registry.close()
            raise _translated(path, error) from error
        except BaseException:
            registry.close()
            raise
        return registry

    def close(self) -> None:
        """Release the file; may be called again."""
        self.connection.close()

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """One consistent view, or one change that happens whole or not at all; SQLite's errors become ours."""
        import apsw

        self._steps_left = self._budget()
        try:
            self.connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
        except UnicodeDecodeError as error:
            raise CacheCorruptError(f"{self.path}: the registry is damaged: {error}") from error
        except apsw.Error as error:
            raise _translated(self.path, error) from error

    def applications(self, *, installer: str | None = None, executable: str | None = None) -> tuple[RegisteredApplication, ...]:
        """The applications sorted by executable, all or those of an installer or of an executable; inside a transaction."""
        rows: list[tuple[Any, ...]] = self.connection.execute(
            "SELECT a.id, i.name, a.executable, a.name, a.exe_filename, a.version, a.engine_name, a.engine_version"
            " FROM applications a JOIN installers i ON i.id = a.installer"
            " WHERE (?1 IS NULL OR i.name = ?1) AND (?2 IS NULL OR a.executable = ?2) ORDER BY a.executable",
            (installer, executable),
        ).fetchall()
        return tuple(
            RegisteredApplication(
                executable=Path(path),
                application=ApplicationIdentity(name, exe_filename, _unsigned(version), engine_name, _unsigned(engine_version)),
                installer=owner,
                scope=self.scope,
                components=self._components(identifier),
            )
            for identifier, owner, path, name, exe_filename, version, engine_name, engine_version in rows
        )

    def _components(self, application: int) -> tuple[Component, ...]:
        rows: list[tuple[Any, ...]] = self.connection.execute(
            "SELECT id, name, sodb FROM components WHERE application = ? ORDER BY name", (application,)
        ).fetchall()
        return tuple(
            Component(
                name,
                Path(sodb),
                tuple(
                    PsdbProperties(str(family), Path(str(path)))
                    for family, path in self.connection.execute(
                        "SELECT family, path FROM psdbs WHERE component = ? ORDER BY position", (identifier,)
                    )
                ),
            )
            for identifier, name, sodb in rows
        )

    def _check(self) -> None:
        """Schema, integrity and references; raises CacheCorruptError and apsw errors."""
        connection = self.connection
        found = set(connection.execute("SELECT type, name, sql FROM sqlite_schema LIMIT 100"))
        if not found:
            raise NotFoundError(f"{self.path}: there is no registry")
        if found != _EXPECTED_SCHEMA:
            names = sorted({str(row[1]) for row in found ^ _EXPECTED_SCHEMA})
            raise CacheCorruptError(f"{self.path}: not this program's registry (schema: {', '.join(names[:5])})")
        faults = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)") if row[0] != "ok"]
        faults += [f"row {row[1]} of {row[0]} has no {row[2]}" for row in connection.execute("PRAGMA foreign_key_check")][:3]
        if faults:
            raise CacheCorruptError(f"{self.path}: the registry is damaged: {'; '.join(faults)}")

    def _budget(self) -> int:
        try:
            return 200 + 4 * self.path.stat().st_size // _STEPS
        except OSError:
            return 200

    def _stop_runaway(self) -> bool:
        """Called by SQLite every so many steps: a cyclic tree must not keep us for ever."""
        self._steps_left -= 1
        return self._steps_left < 0


class _NeedsRecoveryError(AccessDeniedError):
    """SQLite wants to write: most often a writer died in the middle of a change, which is to be rolled back."""


def _create(connection: apsw.Connection) -> None:
    """Make the tables unless another process was faster."""
    connection.execute("BEGIN IMMEDIATE")
    if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        for sql in TABLES.values():
            connection.execute(sql)
    connection.execute("COMMIT")


def _connect(path: Path, *, write: bool, create: bool = False) -> apsw.Connection:
    """A connection that trusts nothing in the file."""
    import apsw

    flags = apsw.SQLITE_OPEN_URI | (apsw.SQLITE_OPEN_READWRITE if write else apsw.SQLITE_OPEN_READONLY)
    flags |= apsw.SQLITE_OPEN_CREATE if create else 0
    try:
        connection = apsw.Connection("file:" + quote_from_bytes(os.fsencode(path.absolute())), flags=flags)
        for option, value in (
            (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
            (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
            (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
            (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
            (apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1),
        ):
            connection.config(option, value)
        for limit, value in (
            (apsw.SQLITE_LIMIT_LENGTH, 1 << 20),
            (apsw.SQLITE_LIMIT_SQL_LENGTH, 10_000),
            (apsw.SQLITE_LIMIT_COLUMN, 32),
            (apsw.SQLITE_LIMIT_ATTACHED, 0),
            (apsw.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            connection.limit(limit, value)
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.execute("PRAGMA cell_size_check = ON; PRAGMA synchronous = FULL")
    except apsw.Error as error:
        raise _translated(path, error) from error
    return connection


def make_folder(path: Path, scope: Scope) -> None:
    """Make the folder of a registry file where it is missing; the system's is readable for everybody."""
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            if scope == Scope.SYSTEM:
                path.parent.chmod(0o755)
    except OSError as error:
        raise AccessDeniedError(f"{path}: cannot be created: {error.strerror}") from error


def _check_header(path: Path) -> bool:
    """Whether there is a registry; raises for anything that is there and is none, before SQLite touches it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except ValueError as error:
        raise InvalidArgumentError(f"{path!r}: {error}") from error
    except OSError as error:
        raise AccessDeniedError(f"{path}: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        regular = stat.S_ISREG(status.st_mode)
        header = os.read(descriptor, 100) if regular else b""
    finally:
        os.close(descriptor)
    if regular and not status.st_size:
        return False  # another process is about to write it
    if status.st_size > MAXIMUM_FILE_BYTES:
        raise CacheCorruptError(f"{path}: too large for a registry ({status.st_size} bytes)")
    identifier, version = header[68:72], int.from_bytes(header[60:64], "big")
    if not header.startswith(b"SQLite format 3\0") or identifier != APPLICATION_ID.to_bytes(4, "big"):
        raise CacheCorruptError(f"{path}: not a registry of this program; remove the file to begin anew")
    if version != FORMAT_VERSION:
        raise CacheCorruptError(f"{path}: registry version {version}, this program reads {FORMAT_VERSION}")
    return True


def _translated(path: Path, error: apsw.Error) -> ShaderkilnError:
    import apsw

    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return RegistryBusyError(f"{path}: another process holds the registry")
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError):
        return _NeedsRecoveryError(f"{path}: {error}")
    if isinstance(error, apsw.PermissionsError | apsw.AuthError):
        return AccessDeniedError(f"{path}: {error}")
    if isinstance(error, apsw.FullError | apsw.IOError):
        return ShaderkilnError(f"{path}: the registry cannot be written: {error}")
    if isinstance(error, apsw.ConnectionClosedError):
        return InvalidArgumentError(f"{path}: the registry is closed")
    if isinstance(error, apsw.InterruptError):
        return CacheCorruptError(f"{path}: damaged: reading does not come to an end")
    return CacheCorruptError(f"{path}: the registry is damaged: {error}")


def signed(value: int) -> int:
    """A 64-bit version as the signed integer with the same bits. Raises InvalidArgumentError where it is none."""
    if not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise InvalidArgumentError(f"{value!r} is no unsigned 64-bit integer")
    return value - (1 << 64) if value >= 1 << 63 else value


def _unsigned(value: Any) -> int:
    return int(value) & ((1 << 64) - 1)
