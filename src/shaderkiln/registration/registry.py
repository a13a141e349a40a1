"""The registry file: one SQLite database a scope, its tables, and how it is opened and read.

The rollback journal is used, because a database in WAL mode cannot be read in a folder that the reader may not write to, and a
plain user reads the system's registry. Everything in the file is checked when it is opened: it is small, and other users wrote it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shaderkiln.closing import Closing, on_error
from shaderkiln.databases.sqlite_file import (
    EmptyFileError,
    FileForm,
    StepBudget,
    Translated,
    application_from_row,
    connect,
    limit_resources,
    read_header,
)
from shaderkiln.errors import AccessDeniedError, CacheCorruptError, InvalidArgumentError, NotFoundError

from .records import Component, PsdbProperties, RegisteredApplication, RegistryBusyError, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

APPLICATION_ID = 0x534B5247
"""``SKRG``, in the application_id field of the SQLite header."""
FORMAT_VERSION = 1
FORM = FileForm("registry of this program", APPLICATION_ID, FORMAT_VERSION, "; remove the file to begin anew")
FILE_NAME = "registry.sqlite"
SYSTEM_FOLDER = Path("/var/lib/shaderkiln")
SYSTEM_FOLDER_VARIABLE = "SHADERKILN_SYSTEM_DATA"
MAXIMUM_TEXT_BYTES = 32_767
MAXIMUM_FILE_BYTES = 1 << 28
BUSY_MILLISECONDS = 10_000

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


class Registry(Closing):
    """An open registry file. One thread at a time; close it, or use it in a ``with`` statement."""

    def __init__(self, path: Path, scope: Scope, connection: apsw.Connection) -> None:
        self.path = path
        self.scope = scope
        self.connection = connection
        self._budget = StepBudget(connection)

    @classmethod
    def open(cls, path: Path, scope: Scope, *, write: bool) -> Registry:
        """Open and check the file; for writing it is created with its folder where it is missing.

        Raises NotFoundError, AccessDeniedError, RegistryBusyError, and CacheCorruptError for a file that is damaged or no registry.
        """
        there = _is_there(path)
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
        registry = cls(path, scope, _connect(path, write=write, create=make))
        with on_error(registry.close), _translated(path):
            registry._budget.renew_for(path)
            if make:
                # SQLite opens what it may only read, and would say so at the first change.
                if registry.connection.readonly("main") or not os.access(path.parent, os.W_OK | os.X_OK):
                    raise AccessDeniedError(f"{path}: may be read only; a registry of this scope needs other rights")
                _create(registry.connection)
            registry._check()
        return registry

    def close(self) -> None:
        """Release the file; may be called again."""
        self.connection.close()

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """One consistent view, or one change that happens whole or not at all; SQLite's errors become ours."""
        self._budget.renew_for(self.path)
        with _translated(self.path):
            self.connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

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
                application=application_from_row(columns),
                installer=owner,
                scope=self.scope,
                components=self._components(identifier),
            )
            for identifier, owner, path, *columns in rows
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


class _NeedsRecoveryError(AccessDeniedError):
    """SQLite wants to write: most often a writer died in the middle of a change, which is to be rolled back."""


def _create(connection: apsw.Connection) -> None:
    """Make the tables unless another process was faster."""
    connection.execute("BEGIN IMMEDIATE")
    if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]:
        FORM.create(connection, TABLES.values())
    connection.execute("COMMIT")


def _connect(path: Path, *, write: bool, create: bool = False) -> apsw.Connection:
    with _translated(path):
        connection = connect(path, write=write, create=create, foreign_keys=True)
        limit_resources(connection, 1 << 20)
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.execute("PRAGMA synchronous = FULL")
    return connection


def _translated(path: Path) -> Translated:
    return Translated(
        path, writing=True, busy=RegistryBusyError, refused=_NeedsRecoveryError, damaged="the registry is damaged"
    )


def make_folder(path: Path, scope: Scope) -> None:
    """Make the folder of a registry file where it is missing; the system's is readable for everybody."""
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            if scope == Scope.SYSTEM:
                path.parent.chmod(0o755)
    except OSError as error:
        raise AccessDeniedError(f"{path}: cannot be created: {error.strerror}") from error


def _is_there(path: Path) -> bool:
    """Whether there is a registry; raises for anything that is there and is none, before SQLite touches it."""
    try:
        size = read_header(path, FORM).size
    except (NotFoundError, EmptyFileError):
        return False
    if size > MAXIMUM_FILE_BYTES:
        raise CacheCorruptError(f"{path}: too large for a registry ({size} bytes)")
    return True
