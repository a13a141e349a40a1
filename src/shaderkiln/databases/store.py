"""The interface of what holds values behind sessions: a finished PSDB, a live one, or a store of somebody else's.

A store finds typed values under keys and, where it has them, groups of objects. ``shaderkiln.testing.stores`` compares any store
with a model in memory.

Races: a read sees whole stores only. ``find_many`` and ``sizes`` see one moment in a store that several processes write, which is
why they are no loops over ``find`` there. What ``store`` has returned from is found by every process that asks afterwards, and
survives the end of this one. Any thread may call any method; ``close`` ends what others have begun with InvalidArgumentError.

Errors: NotFoundError where a value is not there; CacheCorruptError, with DamagedValueError for one value, where damage leaves that
open; InvalidArgumentError for keys, types and values that cannot be stored, and after ``close``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..closing import Closing
from ..errors import NotFoundError
from ..keys import Group, ObjectKey


class Usage(NamedTuple):
    """Bytes of all values, and the most that they may have; 0: no limit."""

    used: int
    maximum: int


class Store(Closing):
    """What finds values. ``find`` returns exactly the bytes that were stored, or raises."""

    @abstractmethod
    def find(self, key: bytes, type: int = 0) -> bytes:
        """The bytes of one value, proved by a checksum."""

    @abstractmethod
    def sizes(self, key: bytes) -> dict[int, int]:
        """The size in bytes of each value that the key has, by type in rising order, without reading them."""

    def find_many(self, key: bytes, types: Sequence[int]) -> tuple[bytes | None, ...]:
        """The values of several types as they are at one moment; None for each that is not stored."""

        def found(type: int) -> bytes | None:
            try:
                return self.find(key, type)
            except NotFoundError:
                return None

        return tuple(map(found, types))

    def exists(self, key: bytes) -> bool:
        """Whether the key has a value of any type (EP-20)."""
        return bool(self.sizes(key))

    def latest_group(self, object_key: ObjectKey) -> Group | None:
        """The group that the store has for an object, of several versions the largest; None without one."""
        return None

    @abstractmethod
    def usage(self) -> Usage:
        """How full the store is."""


class WritableStore(Store):
    """What stores values too."""

    @abstractmethod
    def store(self, key: bytes, values: Mapping[int, bytes], *, overwrite: bool = False, keep: bool = False) -> None:
        """Store the values of one key, all or none; values of other types that the key has stay.

        ``keep`` excludes them from eviction. Raises AlreadyExistsError where one of them is there already and ``overwrite`` is not
        given, CacheFullError at the limit, AccessDeniedError where the store may only be read; then nothing has changed.
        """

    @abstractmethod
    def clear(self) -> None:
        """Remove every value; limits stay. Raises as ``store``."""
