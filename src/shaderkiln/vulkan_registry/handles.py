"""The two plain types beneath the generated structures: references to other objects, and structures that are not known here."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Handle:
    """A reference from one description to another object of the same source, by the source's own 64-bit name (never zero)."""

    __slots__ = ("value",)

    value: int

    def __init__(self, value: int) -> None:
        if not 0 < value < 1 << 64:
            raise ValueError(f"a handle is a non-zero 64-bit number, not {value}")
        object.__setattr__(self, "value", value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("handles are immutable")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.value == self.value

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(0x{self.value:016x})"


class UnknownStructure(Struct, frozen=True, array_like=True, tag=-1, tag_field="structure_type"):
    """A structure of a pNext chain that this version does not know, kept as the source's own text.

    ``text`` is the whole JSON object with its ``sType``. It survives a round trip; no driver sees it.
    """

    s_type: int
    text: str
