"""Which precompiled shader database fits a driver, and which of several is taken (EP-05)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from .records import CompilerProperties


class CompiledFor(Protocol):
    """What the choice looks at; ``shaderkiln.identity.CompilerIdentity`` has it."""

    @property
    def family(self) -> str: ...
    @property
    def abi_version(self) -> int: ...
    @property
    def application_profile_version(self) -> int: ...


T = TypeVar("T")


def is_compatible(psdb: CompiledFor, driver: CompilerProperties) -> bool:
    """Same family, ABI version within the driver's range, and the same top 32 bits of the application profile version."""
    return (
        psdb.family == driver.adapter_family
        and driver.minimum_abi_version <= psdb.abi_version <= driver.maximum_abi_version
        and psdb.application_profile_version >> 32 == driver.application_profile_version >> 32
    )


def by_preference(candidates: Iterable[tuple[CompiledFor, T]], driver: CompilerProperties) -> list[T]:
    """The compatible ones: larger ABI versions first, then larger profile versions, then in the order given."""
    fitting = [(psdb, value) for psdb, value in candidates if is_compatible(psdb, driver)]
    fitting.sort(key=lambda pair: (-pair[0].abi_version, -pair[0].application_profile_version))
    return [value for _, value in fitting]
