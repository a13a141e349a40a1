"""Registering applications and their precompiled shaders (ID3DShaderCacheInstaller)."""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from shaderkiln.closing import Closing, on_error
from shaderkiln.databases.sqlite_file import application_row
from shaderkiln.errors import AccessDeniedError, AlreadyExistsError, InvalidArgumentError, NotFoundError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.system.locks import free_lock, open_lock, take_lock

from .records import CompilerProperties, Component, PsdbProperties, RegisteredApplication, RegistryBusyError, Scope
from .registry import Registry, make_folder, normal_executable, registry_path, text

if TYPE_CHECKING:
    from shaderkiln.compilers.plugin import Compiler

MAXIMUM_PSDBS = 1024
"""Precompiled shader databases of one component."""


class Installer(Closing):
    """A store or launcher that registers what it has installed. Made by ``Installer.open``; close it, or use ``with``.

    Only one instance of a name exists at a time, in this and all other processes; the system frees the name when its process ends,
    however that happens. Every change is one transaction. Not for several threads at once, and not for both sides of a fork.
    """

    def __init__(self, name: str, scope: Scope, registry: Registry, lock: int) -> None:
        self.name = name
        self.scope = scope
        self._registry = registry
        self._lock: int | None = lock
        self._process = os.getpid()
        _open_installers.add(self)

    @classmethod
    def open(cls, name: str, scope: Scope = Scope.USER, *, registry: Path | None = None) -> Self:
        """Claim the name and open the scope's registry, which is created where it is missing.

        ``registry`` is another registry file than the scope's own. Raises RegistryBusyError while another installer of this name
        is open, AccessDeniedError where the registry may not be written, CacheCorruptError where it is damaged or something else.
        """
        text("name", name)
        scope = Scope(scope)
        path = registry_path(scope) if registry is None else registry
        lock = _claim(path, scope, name)
        with on_error(os.close, lock):
            return cls(name, scope, Registry.open(path, scope, write=True), lock)

    def close(self) -> None:
        """Give the name back; may be called again."""
        if self._lock is not None and self._process == os.getpid():
            self._registry.close()
            # Freed for a child too that was forked a moment ago and still holds a copy of the descriptor.
            free_lock(self._lock)
            os.close(self._lock)
        self._lock = None

    def register_application(self, executable: Path | str, application: ApplicationIdentity) -> RegisteredApplication:
        """Register an application by its executable, or bring the description of one of ours up to date; components stay.

        Raises InvalidArgumentError for what cannot be stored (a name is required), and AlreadyExistsError where another installer
        has registered the executable.
        """
        key = normal_executable(executable)
        text("name", application.name)
        for field in ("exe_filename", "engine_name"):
            if getattr(application, field):
                text(field, getattr(application, field))
        with self._opened().transaction(write=True):
            for known in self._registry.applications(executable=key):
                if known.installer != self.name:
                    raise AlreadyExistsError(f"{key}: registered by installer {known.installer!r} already")
            execute = self._registry.connection.execute
            execute("INSERT INTO installers (name) VALUES (?) ON CONFLICT DO NOTHING", (self.name,))
            execute(
                "INSERT INTO applications (installer, executable, name, exe_filename, version, engine_name, engine_version)"
                " VALUES ((SELECT id FROM installers WHERE name = ?), ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (executable) DO UPDATE SET name = excluded.name, exe_filename = excluded.exe_filename,"
                " version = excluded.version, engine_name = excluded.engine_name, engine_version = excluded.engine_version",
                (self.name, key, *application_row(application)),
            )
            return self._registry.applications(executable=key)[0]

    def remove_application(self, executable: Path | str) -> None:
        """Forget one of our applications with its components; files stay. Raises NotFoundError where we have none."""
        key = normal_executable(executable)
        with self._opened().transaction(write=True):
            self._registry.connection.execute("DELETE FROM applications WHERE id = ?", (self._application_id(key),))

    def register_component(
        self,
        executable: Path | str,
        name: str,
        state_object_database: Path | str,
        precompiled_shader_databases: Iterable[PsdbProperties] = (),
    ) -> Component:
        """Register a component of one of our applications; an earlier one of that name is replaced as a whole.

        Paths are made absolute; whether the files are there is not asked. Raises NotFoundError where the application is not
        registered by us, InvalidArgumentError for what cannot be stored.
        """
        key = normal_executable(executable)
        text("name", name)
        sodb = _absolute("state_object_database", state_object_database)
        psdbs = [
            (text("adapter_family", psdb.adapter_family), _absolute("precompiled_shader_databases", psdb.path))
            for psdb in precompiled_shader_databases
        ]
        if len(psdbs) > MAXIMUM_PSDBS:
            raise InvalidArgumentError(f"precompiled_shader_databases: {len(psdbs)} are more than {MAXIMUM_PSDBS}")
        with self._opened().transaction(write=True):
            application = self._application_id(key)
            connection = self._registry.connection
            connection.execute("DELETE FROM components WHERE application = ? AND name = ?", (application, name))
            connection.execute("INSERT INTO components (application, name, sodb) VALUES (?, ?, ?)", (application, name, sodb))
            component = connection.last_insert_rowid()
            connection.executemany(
                "INSERT INTO psdbs (component, position, family, path) VALUES (?, ?, ?, ?)",
                [(component, position, *psdb) for position, psdb in enumerate(psdbs)],
            )
        return Component(name, Path(sodb), tuple(PsdbProperties(family, Path(path)) for family, path in psdbs))

    def remove_component(self, executable: Path | str, name: str) -> None:
        """Forget a component of one of our applications; files stay. Raises NotFoundError where there is none."""
        key = normal_executable(executable)
        with self._opened().transaction(write=True):
            application = self._application_id(key)
            connection = self._registry.connection
            connection.execute("DELETE FROM components WHERE application = ? AND name = ?", (application, name))
            if not connection.changes():
                raise NotFoundError(f"{key}: has no component {name!r}")

    def applications(self) -> tuple[RegisteredApplication, ...]:
        """Our applications, sorted by executable."""
        with self._opened().transaction(write=False):
            return self._registry.applications(installer=self.name)

    def application(self, executable: Path | str) -> RegisteredApplication:
        """One of our applications. Raises NotFoundError."""
        key = normal_executable(executable)
        with self._opened().transaction(write=False):
            self._application_id(key)
            return self._registry.applications(executable=key)[0]

    def clear_all_state(self) -> None:
        """Forget everything that this installer has registered; files and other installers' registrations stay."""
        with self._opened().transaction(write=True):
            self._registry.connection.execute("DELETE FROM installers WHERE name = ?", (self.name,))

    def precompile_targets(
        self, application: ApplicationIdentity | None = None, *, compilers: Iterable[Compiler] | None = None
    ) -> tuple[CompilerProperties, ...]:
        """What precompiled shader databases the drivers of this machine can use; see ``targets.precompile_targets``."""
        from .targets import precompile_targets

        return precompile_targets(application, compilers=compilers)

    def _opened(self) -> Registry:
        if self._lock is None:
            raise InvalidArgumentError(f"installer {self.name!r} is closed")
        if self._process != os.getpid():
            raise InvalidArgumentError(f"installer {self.name!r} belongs to process {self._process}")
        return self._registry

    def _application_id(self, key: str) -> int:
        rows: list[tuple[Any, ...]] = self._registry.connection.execute(
            "SELECT a.id FROM applications a JOIN installers i ON i.id = a.installer WHERE a.executable = ? AND i.name = ?",
            (key, self.name),
        ).fetchall()
        if not rows:
            raise NotFoundError(f"{key}: not registered by installer {self.name!r}")
        return int(rows[0][0])


def _claim(registry: Path, scope: Scope, name: str) -> int:
    """A descriptor that holds the name's lock; it is in a file of its own, which stays when it is freed."""
    make_folder(registry, scope)
    path = registry.with_name(f"{registry.name}.{hashlib.sha256(name.encode()).hexdigest()[:16]}.lock")
    try:
        descriptor = open_lock(path, private=True)
    except OSError as error:
        raise AccessDeniedError(f"{path}: {error.strerror}; a registry of this scope needs other rights") from error
    if not take_lock(descriptor):
        os.close(descriptor)
        raise RegistryBusyError(f"an installer named {name!r} is running already")
    return descriptor


def _absolute(field: str, path: Path | str) -> str:
    try:
        return text(field, str(Path.cwd() / text(field, os.fspath(path))))
    except TypeError as error:
        raise InvalidArgumentError(f"{field}: {path!r} is no path") from error


_open_installers: weakref.WeakSet[Installer] = weakref.WeakSet()


def _forget_in_child() -> None:
    """A forked child must not keep the names of its parent alive."""
    for installer in list(_open_installers):
        if installer._lock is not None:
            with suppress(OSError):
                os.close(installer._lock)
            installer._lock = None


os.register_at_fork(after_in_child=_forget_in_child)
