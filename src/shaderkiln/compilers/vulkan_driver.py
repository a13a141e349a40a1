"""What the Mesa plugin and the native plugin share: families that are targets of driver packages."""

from __future__ import annotations

import os
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from shaderkiln.capabilities import Capabilities
from shaderkiln.compilers.plugin import AdapterFamily, Compiler, FamilyCompiler, FamilyNotFoundError, WorkerCommand
from shaderkiln.descriptions.pipeline import Application, PipelineDescription
from shaderkiln.drivers.packages import DriverPackage, DriverPackages
from shaderkiln.drivers.probe import Probe, probe
from shaderkiln.drivers.targets import (
    KNOWN_FAMILIES,
    Target,
    candidate_targets,
    canonical_family,
    family_of_device,
    process_environment,
)
from shaderkiln.formats.vendors import version_parts
from shaderkiln.identity import CompilerIdentity, format_version
from shaderkiln.system.processes import usable_processors

if TYPE_CHECKING:
    from shaderkiln.descriptions.requirements import RequirementChecker
    from shaderkiln.descriptions.unmet import Unmet

APPLICATION_PROFILE_VERSION = 1 << 32
"""No application profiles are used: the first version of that, in the top 32 bits (EP-05)."""


class VulkanFamily(FamilyCompiler):
    """A family whose worker holds a Vulkan driver."""

    def __init__(
        self, target: Target, family: str, application: Application, answer: Probe, capabilities: Capabilities
    ) -> None:
        self.target = target
        self.capabilities = capabilities
        self.identity = identity_of(family, answer, capabilities, application.features)
        self.files = tuple(_files(target))
        self._checker: RequirementChecker | None = None

    def worker_command(self) -> WorkerCommand:
        from shaderkiln.drivers.client import worker_arguments

        return WorkerCommand(worker_arguments(self.target.icd), process_environment(self.target))

    def check(self, description: PipelineDescription) -> tuple[Unmet, ...]:
        if self._checker is None:
            from shaderkiln.descriptions.requirements import RequirementChecker

            self._checker = RequirementChecker(self.capabilities)
        return self._checker.check(description)


class VulkanCompiler(Compiler):
    """Compiles with the drivers of some driver packages."""

    def __init__(self, packages: DriverPackages | None = None) -> None:
        self._packages = packages or DriverPackages()

    @abstractmethod
    def packages(self) -> tuple[DriverPackage, ...]:
        """The driver packages that this plugin answers for."""

    @abstractmethod
    def advice(self) -> str:
        """What a user can do to get more families."""

    def adapter_families(
        self, *, family: str | None = None, refresh: bool = False, progress: Callable[[str], None] | None = None
    ) -> tuple[AdapterFamily, ...]:
        from concurrent.futures import ThreadPoolExecutor

        def ask(target: Target) -> Probe:
            name = f"{target.package} {target.family or target.icd.rsplit('/', 1)[-1]}"
            return probe(target, refresh=refresh, on_ask=partial(progress, name) if progress else None)

        found: dict[tuple[str, str], AdapterFamily] = {}
        with ThreadPoolExecutor(max_workers=usable_processors()) as pool:
            targets = self._candidates(family)
            try:
                for target, answer in zip(targets, pool.map(ask, targets), strict=True):
                    if answer.capabilities is not None:
                        name = family_name(target, answer.capabilities)
                        found.setdefault((name, target.package), self._describe(name, target, answer, answer.capabilities))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return tuple(sorted((f for f in found.values() if f.object_code_form != "none"), key=lambda f: (f.name, f.package)))

    def known_families(self) -> Iterable[str]:
        families = {target.family for package in self.packages() for target in candidate_targets(package)} - {""}
        return families or KNOWN_FAMILIES

    def _candidates(self, family: str | None) -> list[Target]:
        """The targets to try: all, those of the family, or, where none is called so, those whose names begin so."""
        targets = [target for package in self.packages() for target in candidate_targets(package)]
        if family is None:
            return targets
        wanted = canonical_family(family)
        is_name = any(target.family == wanted for target in targets)
        return [
            target
            for target in targets
            # Of a real device the driver must be asked.
            if not target.family or (target.family == wanted if is_name else target.family.startswith(wanted))
        ]

    def open(
        self, family: str, application: Application, *, package: str | None = None, abi_version: int | None = None
    ) -> VulkanFamily:
        wanted = canonical_family(family)
        best: VulkanFamily | None = None
        reasons: list[str] = []
        for target, answer in self._working_targets(wanted, application.features, package, reasons):
            if answer.capabilities is None or answer.capabilities.object_code_form == "none":
                continue
            opened = VulkanFamily(target, wanted, application, answer, answer.capabilities)
            if abi_version in (None, opened.identity.abi_version) and (
                best is None or opened.identity.abi_version > best.identity.abi_version
            ):
                best = opened
        if best is None:
            wish = f" in driver package {package!r}" if package else ""
            wish += f" with ABI version {format_version(abi_version)}" if abi_version is not None else ""
            why = f" ({'; '.join(reasons)})" if reasons else ""
            raise FamilyNotFoundError(f"plugin {self.name!r} has no family {wanted!r}{wish}{why}; {self.advice()}")
        return best

    def _working_targets(
        self, family: str, features: tuple[str, ...], package: str | None, reasons: list[str]
    ) -> Iterator[tuple[Target, Probe]]:
        """For each package the first target of that family that works; what does not work is added to ``reasons``."""
        for each in self.packages():
            if package not in (None, each.name):
                continue
            failures = []
            for target in candidate_targets(each, family):
                answer = probe(target, features)
                if answer.capabilities is None:
                    failures.append(f"{each.name}: {answer.error}")
                elif family_name(target, answer.capabilities) == family:
                    yield target, answer
                    break
            else:
                reasons += failures[:1]

    def _describe(self, family: str, target: Target, answer: Probe, capabilities: Capabilities) -> AdapterFamily:
        identity = identity_of(family, answer, capabilities, ())
        return AdapterFamily(
            name=family,
            compiler=self.name,
            package=target.package,
            abi_versions=(identity.abi_version,),
            compiler_version=identity.compiler_version,
            application_profile_version=identity.application_profile_version,
            device_name=capabilities.device_name,
            object_code_form=capabilities.object_code_form,
        )


def family_name(target: Target, capabilities: Capabilities) -> str:
    """The adapter family of a target: its own name, or for a real device what its driver says."""
    return target.family or family_of_device(capabilities.device_name, capabilities.vendor_id)


def _files(target: Target) -> Iterator[str]:
    """The driver, what is preloaded, and all in the folders of its package that its process uses: libraries and configuration."""
    yield target.icd
    if (preloaded := target.environment.get("LD_PRELOAD", "")).startswith("/"):
        yield preloaded
    folders = target.environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    for folder in (Path(name) for name in (*folders, target.environment.get("DRIRC_CONFIGDIR", "")) if name):
        if folder.is_dir():
            yield str(folder)
            yield from (str(path) for path in folder.iterdir() if path.is_file())


def identity_of(family: str, answer: Probe, capabilities: Capabilities, features: tuple[str, ...]) -> CompilerIdentity:
    """Who object code made by that device of that driver belongs to."""
    return CompilerIdentity(
        family=family,
        vendor_id=capabilities.vendor_id,
        device_id=capabilities.device_id,
        driver_id=capabilities.driver_id,
        driver_name=capabilities.driver_name,
        driver_version=capabilities.driver_version,
        driver_build=" ".join(part for part in (capabilities.driver_info, answer.build_id) if part),
        abi_version=abi_version_of(capabilities.driver_id, capabilities.driver_version),
        compiler_version=f"{capabilities.driver_name} {capabilities.driver_info}".strip(),
        application_profile_version=APPLICATION_PROFILE_VERSION,
        cache_uuid=capabilities.cache_uuid,
        global_key=answer.global_key,
        object_code_form=capabilities.object_code_form,
        features=features,
        pointer_bits=struct.calcsize("P") * 8,
    )


def abi_version_of(driver_id: int, driver_version: int) -> int:
    """The ABI version of a driver build: the parts of its version number as four 16-bit parts, the most significant first.

    A driver takes only the object code of its own build, so a build has one ABI version; the other fields of the identity tell
    two builds of one version number apart.
    """
    parts = version_parts(driver_id, driver_version)
    version = parts[0] << 48 | parts[1] << 32 | parts[2] << 16 | parts[3]
    return max(version, 1)
