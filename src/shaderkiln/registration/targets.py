"""The precompile targets of a machine: what its drivers can use (ID3DShaderCacheInstaller::GetPrecompileTargets)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from shaderkiln.identity import ApplicationIdentity

from .records import CompilerProperties

if TYPE_CHECKING:
    from shaderkiln.compilers.plugin import AdapterFamily, Compiler

log = logging.getLogger(__name__)


def precompile_targets(
    application: ApplicationIdentity | None = None, *, compilers: Iterable[Compiler] | None = None
) -> tuple[CompilerProperties, ...]:
    """Every adapter family that a driver of this machine serves, sorted by family, the largest ABI version first.

    Application profile versions are 0 unless an application is named. ``compilers`` default to the installed plugins; one that
    cannot be loaded is left out with a warning.
    """
    found = {
        _properties(family, application is not None)
        for compiler in (_installed() if compilers is None else compilers)
        for family in compiler.adapter_families()
    }
    return tuple(sorted(found, key=lambda each: (each.adapter_family, -each.maximum_abi_version, each.compiler, each.package)))


def _properties(family: AdapterFamily, with_profile: bool) -> CompilerProperties:
    return CompilerProperties(
        adapter_family=family.name,
        minimum_abi_version=family.abi_versions[-1],
        maximum_abi_version=family.abi_versions[0],
        compiler_version=family.compiler_version,
        application_profile_version=family.application_profile_version if with_profile else 0,
        compiler=family.compiler,
        package=family.package,
    )


def _installed() -> Iterable[Compiler]:
    from shaderkiln.compilers.plugin import PluginError, compiler_names, load_compiler

    for name in compiler_names():
        try:
            yield load_compiler(name)
        except PluginError as error:
            log.warning("%s", error)
