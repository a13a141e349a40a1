"""Keys and value types that every database and driver shares."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

ObjectKey = NewType("ObjectKey", bytes)
"""SHA-256 of a pipeline's canonical description, shaders included: 32 bytes (see ``descriptions.canonical``)."""

ValueKey = NewType("ValueKey", bytes)
"""The driver's key of one value: any non-empty byte string, equal only if every byte is (EP-15)."""

OBJECT_VERSION = 1
"""The version of a group whose source gives its objects none (a capture)."""


class ValueType(IntEnum):
    """The kinds of value that one key can hold, with the numbers of EP-14."""

    OBJECT_CODE = 0
    METADATA = 1
    DEBUG_PDB = 2
    PERFORMANCE_DATA = 3

    @property
    def flag(self) -> int:
        """The bit of this type in a mask of types: ``1 << type`` (EP-14)."""
        return 1 << self.value


@dataclass(frozen=True, slots=True)
class Value:
    """One typed value under a value key."""

    key: ValueKey
    type: ValueType
    data: bytes


@dataclass(frozen=True, slots=True)
class Group:
    """The values that one object needs, in the order the driver gave them (EP-53).

    ``kind`` is ``graphics``, ``compute`` or ``raytracing``; ``name`` is what the source calls the object (a Fossilize hash as
    16 hex digits). Neither takes part in any look-up: the identity of a group is ``object_key`` and ``version``.
    """

    object_key: ObjectKey
    version: int
    value_keys: tuple[ValueKey, ...]
    kind: str
    name: str
