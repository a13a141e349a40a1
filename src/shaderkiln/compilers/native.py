"""The plugin for the drivers that are installed in the system: the GPUs of this machine."""

from __future__ import annotations

from collections.abc import Iterable

from shaderkiln.compilers.vulkan_driver import VulkanCompiler
from shaderkiln.drivers.packages import DriverPackage


class NativeCompiler(VulkanCompiler):
    """Families of the system's own Vulkan drivers."""

    name = "native"

    def packages(self) -> tuple[DriverPackage, ...]:
        return tuple(package for package in self._packages.list() if not package.removable)

    def known_families(self) -> Iterable[str]:
        return ()

    def advice(self) -> str:
        return "the system's own drivers give only the GPUs of this machine"
