"""What a pipeline needs and a device does not have, as facts; the sentences that people read are made of them here alone."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

UNKNOWN = "unknown"
"""``Unmet.available`` of what no table here knows."""


class Unmet(Struct, frozen=True):
    """One thing that a pipeline needs and the device does not have."""

    kind: str
    """``capability``, ``spirv-extension``, ``spirv-version``, ``instruction``, ``extension``, ``feature``, ``limit``,
    ``structure``, ``unknown-structure``, ``dynamic-state``, ``enumerant``, ``object`` (a description that lacks a part), or
    ``direct3d12`` (what Vulkan or the shader translator cannot express of a Direct3D 12 pipeline, whatever the device).

    ``instruction``: the module's capabilities are met, but an instruction in it needs a feature that the device lacks.
    """
    name: str
    """The SPIR-V, Vulkan or ``VkStructure.member`` name of what is needed."""
    needed: str | int | float | tuple[str, ...]
    """A tuple: names of what a device can have, each of which is enough."""
    available: str | int | float
    where: str
    """The part of the pipeline, for example ``stage compute, module 0123456789abcdef``."""
    what: str
    """What of the pipeline needs or exceeds it, such as ``anisotropyEnable``; in all other cases what is wrong, as a sentence."""
    exceeds: bool = False
    """``needed`` is more than ``available``, the most that the limit ``name`` allows."""

    @property
    def is_doubt(self) -> bool:
        """Whether this is no reason to keep a pipeline from the driver.

        A shader may declare what the device supports and yet use an instruction in a way that the device does not advertise,
        such as a float atomic add in a buffer where only shared memory is promised. Drivers often take it; one that does not
        fails alone.
        """
        return self.kind == "instruction" and self.available != UNKNOWN

    @property
    def lacks(self) -> str:
        """The names of what would be enough; empty where there is no such thing, as for a limit."""
        return " or ".join(self.needed) if isinstance(self.needed, tuple) else ""

    @property
    def sentence(self) -> str:
        """What is wrong, without where."""
        if lacks := self.lacks:
            return f"{self.what} needs {lacks}, which the device does not have"
        return f"{self.what} {self.needed} exceeds {self.name} = {self.available}" if self.exceeds else self.what

    @property
    def text(self) -> str:
        """The whole in one line. A state of Direct3D 12 says itself where it is."""
        return f"{self.where}: {self.sentence}" if self.where and self.kind != "direct3d12" else self.sentence


def keeps_from_driver(unmet: Iterable[Unmet], *, strict: bool = False) -> bool:
    """Whether what a pipeline needs and the family lacks keeps it from the driver: doubts only where ``strict``."""
    return any(strict or not need.is_doubt for need in unmet)


def text_of(needs: Iterable[Unmet]) -> str:
    """Everything that is unmet in one line, each thing once."""
    return "; ".join(dict.fromkeys(need.text for need in needs))
