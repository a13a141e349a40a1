"""How much of a Fossilize body was understood."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from shaderkiln.formats.fossilize_json import (
    FEATURE_MEMBERS,
    UNKNOWN_MEMBERS,
    ApplicationInfo,
    FeatureStructure,
    UnknownStructure,
)
from shaderkiln.vulkan_registry._members import MEMBERS


class Coverage:
    """How much of a source was understood: structures by C name, unknown structures by type, unknown members by path."""

    def __init__(self) -> None:
        self.known: Counter[str] = Counter()
        self.unknown: Counter[int] = Counter()
        self.unknown_members: Counter[str] = Counter()

    def add(self, structure: Struct) -> None:
        """Count a structure and everything in it."""
        for part in walk(structure):
            if isinstance(part, FeatureStructure):
                self.known[FEATURE_MEMBERS[part.s_type][0]] += 1
            elif not isinstance(part, UnknownStructure):
                self.known[_c_name(part)] += 1
                if isinstance(part, ApplicationInfo) and part.unknown_members:
                    self.unknown_members.update(_paths("VkApplicationInfo", json.loads(part.unknown_members)))
            elif part.s_type != UNKNOWN_MEMBERS:
                self.unknown[part.s_type] += 1
        for owner in walk(structure):
            for link in getattr(owner, "next", ()):
                if isinstance(link, UnknownStructure) and link.s_type == UNKNOWN_MEMBERS:
                    self.unknown_members.update(_paths(_c_name(owner), json.loads(link.text)))

    @property
    def complete(self) -> bool:
        """Whether everything was understood."""
        return not self.unknown and not self.unknown_members


def walk(structure: Struct) -> Iterator[Struct]:
    """A structure and every structure in it, outermost first."""
    pending: list[Any] = [structure]
    while pending:
        item = pending.pop()
        if isinstance(item, Struct):
            yield item
            pending.extend(getattr(item, field) for field in reversed(item.__struct_fields__))
        elif type(item) is tuple:
            pending.extend(reversed(item))


def _c_name(structure: Struct) -> str:
    name = type(structure).__name__
    return MEMBERS[name][0] if name in MEMBERS else name


def _paths(prefix: str, value: Any) -> Iterator[str]:
    """Names of unknown members, with those that lead to them; indices are left out."""
    for key, item in value.items():
        path = prefix if key.isdigit() else f"{prefix}.{key}"
        if isinstance(item, dict) and item:
            yield from _paths(path, item)
        else:
            yield path
