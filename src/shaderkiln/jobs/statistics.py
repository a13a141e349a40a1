"""The driver's statistics of a pipeline as a PERFORMANCE_DATA value: JSON under the object's key."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from shaderkiln.drivers.protocol import Executable
from shaderkiln.errors import CacheCorruptError, NotFoundError
from shaderkiln.keys import Group, ObjectKey, Value, ValueKey, ValueType


class ValueSource(Protocol):
    """The part of a database that is read here."""

    def find(self, key: ValueKey, type: ValueType) -> bytes: ...


def statistics_value(object_key: ObjectKey, executables: tuple[Executable, ...]) -> Value:
    """A list of ``{"name", "description", "subgroup_size", "statistics": {name: value}}``, one for each executable."""
    records = [
        {
            "name": each.name,
            "description": each.description,
            "subgroup_size": each.subgroup_size,
            "statistics": {statistic.name: statistic.value for statistic in each.statistics},
        }
        for each in executables
    ]
    return Value(ValueKey(bytes(object_key)), ValueType.PERFORMANCE_DATA, msgspec.json.encode(records))


class _Record(msgspec.Struct):
    name: str
    description: str
    subgroup_size: int
    statistics: dict[str, int | float | bool]


def read_statistics(database: ValueSource, group: Group) -> list[dict[str, Any]] | None:
    """What ``statistics_value`` stored for the group's object, or None.

    Raises CacheCorruptError if it is damaged or holds something else.
    """
    try:
        data = database.find(ValueKey(bytes(group.object_key)), ValueType.PERFORMANCE_DATA)
    except NotFoundError:
        return None
    try:
        records = msgspec.json.decode(data, type=list[_Record])
    except (msgspec.DecodeError, RecursionError) as error:
        raise CacheCorruptError(f"value {group.object_key.hex()} (PERFORMANCE_DATA) holds no statistics: {error}") from error
    return [msgspec.structs.asdict(record) for record in records]
