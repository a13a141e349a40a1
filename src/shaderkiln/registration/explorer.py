"""The read-only view of what is registered (ID3DShaderCacheExplorer), and the choice of a PSDB for a driver."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from shaderkiln.errors import NotFoundError, ShaderkilnError
from shaderkiln.identity import CompilerIdentity

from .records import CompilerProperties, RegisteredApplication, Scope
from .registry import Registry, normal_executable, registry_path
from .selection import by_preference

log = logging.getLogger(__name__)


class Explorer:
    """Reads the user's registrations and the system's; each call sees them as they are at that moment. Changes nothing."""

    def __init__(self, registries: Iterable[tuple[Scope, Path]] | None = None) -> None:
        """``registries`` are read in that order; by default the user's registry, then the system's."""
        self._registries = tuple((scope, registry_path(scope)) for scope in Scope) if registries is None else tuple(registries)

    def applications(self, executable: Path | str | None = None) -> tuple[RegisteredApplication, ...]:
        """Everything registered, or what is registered for one executable: at most one application a scope.

        A registry that does not exist holds nothing. Raises CacheCorruptError for a damaged one.
        """
        key = None if executable is None else normal_executable(executable)
        return tuple(application for scope, path in self._registries for application in _read(scope, path, key))

    def application(self, executable: Path | str) -> RegisteredApplication:
        """The application of an executable; the user's registration goes before the system's. Raises NotFoundError."""
        found = self.applications(executable)
        if not found:
            raise NotFoundError(f"{executable}: no application is registered for this executable")
        return found[0]

    def candidates(self, executable: Path | str, component: str, driver: CompilerProperties) -> tuple[Path, ...]:
        """The registered PSDBs of a component that the driver can use, the best first (EP-05), of all scopes together.

        What a PSDB was made for is read from the file itself. A program must run whatever happened to its precompiled shaders, so
        PSDBs and registries that are missing, damaged or unreadable are passed over with a warning.
        """
        key = normal_executable(executable)
        found: list[tuple[CompilerIdentity, Path]] = []
        for scope, registry in self._registries:
            try:
                applications = _read(scope, registry, key)
            except ShaderkilnError as error:
                log.warning("%s", error)
                continue
            for registered in filter(None, (application.component(component) for application in applications)):
                for path in registered.precompiled_cache_paths(driver.adapter_family):
                    try:
                        found.append((_identity(path), path))
                    except ShaderkilnError as error:
                        log.warning("component %r: %s", component, error)
        return tuple(by_preference(found, driver))

    def resolve(self, executable: Path | str, component: str, driver: CompilerProperties) -> Path | None:
        """The PSDB that a driver uses for a component, or None."""
        return next(iter(self.candidates(executable, component, driver)), None)


@dataclass(frozen=True, slots=True)
class RegistryResolver:
    """What REGISTERED sessions and the default PSDB of one application and driver ask; it reads the registry again each time."""

    executable: Path
    driver: CompilerProperties
    explorer: Explorer

    def resolve(self, component_name: str) -> Path | None:
        """The PSDB to use for a component, or None where none that fits is registered."""
        return self.explorer.resolve(self.executable, component_name, self.driver)


def _read(scope: Scope, path: Path, executable: str | None) -> tuple[RegisteredApplication, ...]:
    try:
        registry = Registry.open(path, scope, write=False)
    except NotFoundError:
        return ()
    with registry, registry.transaction(write=False):
        return registry.applications(executable=executable)


def _identity(path: Path) -> CompilerIdentity:
    from shaderkiln.databases.psdb_live import read_stored_identity

    return read_stored_identity(path)[0]
