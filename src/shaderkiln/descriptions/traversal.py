"""Which fields of a structure lead to handles or to pNext chains, found once per class from its annotations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from shaderkiln.vulkan_registry import structures
from shaderkiln.vulkan_registry.handles import Handle


def fields_leading_to(cls: type[Struct], wanted: Callable[[str, str], bool]) -> tuple[str, ...]:
    """The fields for which ``wanted(field, annotation)`` holds, or whose structures have such fields at any depth."""
    return tuple(
        field
        for field, annotation in cls.__annotations__.items()
        if wanted(field, annotation) or (field != "next" and any(map(_leads(wanted), _named(annotation))))
    )


def _leads(wanted: Callable[[str, str], bool]) -> Callable[[type[Struct]], bool]:
    return lambda cls: bool(fields_leading_to(cls, wanted))


def _named(annotation: str) -> list[type[Struct]]:
    """The structures that an annotation names."""
    found = (getattr(structures, name, None) for name in re.findall(r"[A-Z]\w+", annotation))
    return [cls for cls in found if isinstance(cls, type) and issubclass(cls, Struct)]


_HANDLE_FIELDS: dict[type, tuple[str, ...]] = {}


def references(structure: Struct) -> tuple[Handle, ...]:
    """Every handle in a structure, each once, in the order of the fields."""
    found: dict[Handle, None] = {}
    _collect(structure, found)
    return tuple(found)


def _collect(value: Any, found: dict[Handle, None]) -> None:
    cls = type(value)
    fields = _HANDLE_FIELDS.get(cls)
    if fields is None:
        if not issubclass(cls, Struct) or not hasattr(structures, cls.__name__):
            return
        fields = _HANDLE_FIELDS[cls] = fields_leading_to(
            cls, lambda field, annotation: field == "next" or "Handle" in annotation
        )
    for field in fields:
        item = getattr(value, field)
        if item is None or item == ():
            continue
        if type(item) is tuple:
            for element in item:
                if isinstance(element, Handle):
                    found[element] = None
                elif element is not None:
                    _collect(element, found)
        elif isinstance(item, Handle):
            found[item] = None
        else:
            _collect(item, found)
