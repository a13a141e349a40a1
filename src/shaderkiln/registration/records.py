"""Plain types of the registration: applications, components, compiler properties, and the errors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from shaderkiln.errors import ShaderkilnError, Trouble
from shaderkiln.identity import ApplicationIdentity

DEFAULT_COMPONENT = "default"
"""The component whose PSDB every object uses that names none (EP-01)."""


class Scope(IntEnum):
    """D3D_SHADER_CACHE_APP_REGISTRATION_SCOPE: whose registrations these are."""

    USER = 0
    SYSTEM = 1


class RegistryBusyError(ShaderkilnError):
    """Another process holds the installer's name or the registry for too long (``E_ACCESSDENIED``)."""

    default_code = "E_ACCESSDENIED"
    trouble = Trouble.OUTPUT


@dataclass(frozen=True, slots=True)
class PsdbProperties:
    """One precompiled shader database of a component (D3D_SHADER_CACHE_PSDB_PROPERTIES)."""

    adapter_family: str
    path: Path


@dataclass(frozen=True, slots=True)
class Component:
    """A state object database and the precompiled shader databases made from it (ID3DShaderCacheComponent)."""

    name: str
    state_object_database: Path
    precompiled_shader_databases: tuple[PsdbProperties, ...] = ()
    """In the order of registration; a family may occur several times, for several ABI versions."""

    def precompiled_cache_paths(self, adapter_family: str) -> tuple[Path, ...]:
        """The databases registered for one adapter family."""
        return tuple(psdb.path for psdb in self.precompiled_shader_databases if psdb.adapter_family == adapter_family)


@dataclass(frozen=True, slots=True)
class RegisteredApplication:
    """A registered application with its components (ID3DShaderCacheApplication), as it was when it was read."""

    executable: Path
    """The main executable, absolute, symbolic links followed: the key of the registration."""
    application: ApplicationIdentity
    installer: str
    scope: Scope
    components: tuple[Component, ...] = ()
    """Sorted by name."""

    def component(self, name: str) -> Component | None:
        """The component of that name, or None."""
        return next((component for component in self.components if component.name == name), None)


@dataclass(frozen=True, slots=True)
class CompilerProperties:
    """What a driver on this machine takes and makes (D3D_SHADER_CACHE_COMPILER_PROPERTIES)."""

    adapter_family: str
    minimum_abi_version: int
    maximum_abi_version: int
    """Also the version that it compiles itself with."""
    compiler_version: str = ""
    application_profile_version: int = 0
    """0 where no application was named."""
    compiler: str = ""
    """The plugin."""
    package: str = ""
    """The driver package."""
