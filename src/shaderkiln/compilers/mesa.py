"""The plugin for Mesa's drivers in driver packages of the user's own: AMD, NVIDIA (NVK), Qualcomm, Apple and Intel families."""

from __future__ import annotations

from shaderkiln.compilers.vulkan_driver import VulkanCompiler
from shaderkiln.drivers.packages import FETCHED, DriverPackage


class MesaCompiler(VulkanCompiler):
    """Families of the driver packages that ``kiln drivers add`` made; no GPU is needed."""

    name = "mesa"

    def packages(self) -> tuple[DriverPackage, ...]:
        return tuple(package for package in self._packages.list() if package.removable)

    def advice(self) -> str:
        if not self.packages():
            return "no driver package is here yet: add one with `kiln drivers add mesa-backports`"
        others = [name for name in FETCHED if name not in self._packages.names()]
        more = f"; `kiln drivers add {others[0]}` may add it" if others else ""
        return f"`kiln families` lists those that there are{more}"
