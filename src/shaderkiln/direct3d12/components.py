"""The registered components of a device's application: the default PSDB, and what REGISTERED sessions ask for (EP-01, EP-05)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shaderkiln.databases.psdb_live import read_stored_identity
from shaderkiln.databases.psdb_records import Expectation
from shaderkiln.errors import NotCurrentlyAvailableError, NotFoundError, ShaderkilnError
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity
from shaderkiln.registration.records import DEFAULT_COMPONENT, CompilerProperties
from shaderkiln.sessions.control import CacheKindFlags, ShaderCacheControl
from shaderkiln.sessions.debug_layer import DebugLayer, Severity
from shaderkiln.sessions.descs import RegisteredSessionDesc, ShaderCacheSupportFlags

if TYPE_CHECKING:
    from shaderkiln.registration.explorer import Explorer
    from shaderkiln.sessions.file import RegisteredSession


@dataclass(frozen=True, slots=True)
class Components:
    """Finds a component's PSDB for one executable and driver; asks the registry again each time."""

    executable: Path
    compiler: CompilerIdentity
    application: ApplicationIdentity | None
    """What the application has declared."""
    explorer: Explorer

    def resolve(self, component_name: str) -> Path | None:
        """The PSDB of a component: among those that EP-05 allows, in its order, the first one that fits wholly.

        Without any that fits wholly it is the first one, so that opening it says what does not fit. None without any.
        """
        candidates = self.explorer.candidates(self.executable, component_name, properties(self.compiler))
        return next(filter(self._fits, candidates), candidates[0] if candidates else None)

    def expected(self) -> ApplicationIdentity | None:
        """Whose PSDBs these are: what was declared, else what was registered, else None."""
        if self.application is not None:
            return self.application
        try:
            return self.explorer.application(self.executable).application
        except NotFoundError:
            return None

    def _fits(self, path: Path) -> bool:
        try:
            compiler, application = read_stored_identity(path)
        except ShaderkilnError:
            return False
        wanted = application if self.application is None else self.application
        return not Expectation(wanted, self.compiler).differences(compiler, application)


def properties(compiler: CompilerIdentity) -> CompilerProperties:
    """What the choice among registered PSDBs looks at; a driver takes the object code of its own build only."""
    return CompilerProperties(
        adapter_family=compiler.family,
        minimum_abi_version=compiler.abi_version,
        maximum_abi_version=compiler.abi_version,
        compiler_version=compiler.compiler_version,
        application_profile_version=compiler.application_profile_version,
    )


class DefaultPsdb:
    """The default PSDB of a device: chosen when the device is created, opened when it is first used."""

    def __init__(
        self, components: Components, support: ShaderCacheSupportFlags, control: ShaderCacheControl, debug: DebugLayer
    ) -> None:
        """Without support there is none. Never raises for what was registered: a PSDB that cannot be used gets a debug message."""
        self._support = support
        self._control = control
        self._debug = debug
        self._lock = threading.Lock()
        self._session: RegisteredSession | None = None
        self._chosen: tuple[Path, Expectation] | None = None
        try:
            path = components.resolve(DEFAULT_COMPONENT) if support else None
            application = None if path is None else components.expected()
            if path is not None and application is not None:
                expected = Expectation(application, components.compiler)
                found = expected.differences(*read_stored_identity(path))
                if found:
                    self._refuse(f"{path}: made for or by another: {'; '.join(map(str, found))}")
                else:
                    self._chosen = path, expected
        except ShaderkilnError as error:
            self._refuse(str(error))

    @property
    def registered(self) -> bool:
        """Whether the device has a default PSDB, be PSDBs enabled or not."""
        return self._chosen is not None

    def session(self) -> RegisteredSession | None:
        """The session to use now; None without a default PSDB and while PSDBs are disabled."""
        from shaderkiln.sessions.file import RegisteredSession

        if self._chosen is None or not self._control.enabled(CacheKindFlags.PSDB):
            return None
        with self._lock:
            if self._session is None and self._chosen is not None:
                path, expected = self._chosen
                try:
                    self._session = RegisteredSession(
                        RegisteredSessionDesc(DEFAULT_COMPONENT),
                        expected,
                        _Chosen({DEFAULT_COMPONENT: path}.get),
                        support=self._support,
                        control=self._control,
                        debug=self._debug,
                    )
                except NotCurrentlyAvailableError:
                    return None
                except ShaderkilnError as error:
                    self._chosen = None
                    self._refuse(str(error))
            return self._session

    def close(self) -> None:
        """Release the file; nothing is found afterwards."""
        with self._lock:
            session, self._session, self._chosen = self._session, None, None
        if session is not None:
            session.close()

    def _refuse(self, why: str) -> None:
        self._debug.write(Severity.WARNING, "no-default-psdb", why)


@dataclass(frozen=True, slots=True)
class _Chosen:
    resolve: Callable[[str], Path | None]
    """The path of a component by its name."""
