"""MEMORY sessions: a cache of the process, gone with the last session of its identifier (EP-30)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

from ..errors import AlreadyExistsError, CacheFullError, NotFoundError
from ..keys import ValueType
from .control import CacheKindFlags
from .descs import DEFAULT_MEMORY_BYTES, DEFAULT_MEMORY_ENTRIES, MemorySessionDesc, ShaderCacheSessionDesc
from .interface import ShaderCacheSession, check_key

Values = tuple[bytes | None, bytes | None]
"""Object code and metadata of one key. Never changed, only replaced: who reads it reads one moment, without a lock."""

_NOTHING: dict[bytes, Values] = {}


class MemoryCache:
    """What the sessions of one identifier share.

    Readers use ``entries`` without a lock; writers take turns. The oldest entry, by the first store of its key, goes first.
    """

    def __init__(self, version: int, maximum_bytes: int, maximum_entries: int) -> None:
        self.version = version
        self.maximum_bytes = maximum_bytes or DEFAULT_MEMORY_BYTES
        self.maximum_entries = maximum_entries or DEFAULT_MEMORY_ENTRIES
        self.entries: dict[bytes, Values] = {}
        self.sessions = 0
        self.used_bytes = 0
        self._kept: dict[bytes, set[int]] = {}
        self._order: OrderedDict[bytes, None] = OrderedDict()
        """Keys that may be evicted, oldest first."""
        self._lock = threading.Lock()

    def store(self, key: bytes, values: Mapping[int, bytes], overwrite: bool, keep: bool) -> None:
        with self._lock:
            old = self.entries.get(key)
            present: list[bytes | None] = [None, None] if old is None else list(old)
            there = [ValueType(type).name for type in values if present[type] is not None]
            if there and not overwrite:
                raise AlreadyExistsError(f"value {key.hex()} ({', '.join(there)}) is stored already")
            before = _size(present)
            for type, data in values.items():
                present[type] = data
            added = _size(present) - before
            self._make_room(key, added, old is None)
            self.entries[key] = (present[0], present[1])
            self.used_bytes += added
            self._note_kept(key, set(values), keep, old is None)

    def clear(self) -> None:
        with self._lock:
            self.entries.clear()
            self._kept.clear()
            self._order.clear()
            self.used_bytes = 0

    def _make_room(self, key: bytes, added: int, is_new: bool) -> None:
        excess_bytes = self.used_bytes + added - self.maximum_bytes
        excess_entries = len(self.entries) + is_new - self.maximum_entries
        if excess_bytes <= 0 and excess_entries <= 0:
            return
        victims = []
        for victim in self._order:
            if excess_bytes <= 0 and excess_entries <= 0:
                break
            if victim != key:
                victims.append(victim)
                excess_bytes -= _size(self.entries[victim])
                excess_entries -= 1
        if excess_bytes > 0 or excess_entries > 0:
            raise CacheFullError(
                f"{added} bytes more do not fit: {self.used_bytes} of {self.maximum_bytes} bytes and "
                f"{len(self.entries)} of {self.maximum_entries} entries are used"
            )
        for victim in victims:
            del self._order[victim]
            self.used_bytes -= _size(self.entries.pop(victim))

    def _note_kept(self, key: bytes, types: set[int], keep: bool, is_new: bool) -> None:
        before = self._kept.get(key, set())
        after = before | types if keep else before - types
        if after:
            self._kept[key] = after
            if not before and not is_new:
                del self._order[key]
        else:
            self._kept.pop(key, None)
            if before or is_new:
                self._order[key] = None


_caches: dict[Hashable, MemoryCache] = {}
_caches_lock = threading.Lock()


class MemorySession(ShaderCacheSession):
    """A session on a cache of the process. ``find_value`` gives the bytes object that was stored, without a copy."""

    cache_kind: ClassVar = CacheKindFlags.APPLICATION_MANAGED
    persistent: ClassVar = False
    shared_between_processes: ClassVar = False
    evicts = True

    def __init__(
        self, desc: MemorySessionDesc, adapter: Hashable = None, made_with: ShaderCacheSessionDesc | None = None, **common: Any
    ) -> None:
        """``adapter`` tells apart caches that are DRIVER_VERSIONED. Limits are those of the first session on the cache.

        Raises AlreadyExistsError while the cache is open with another version, NotCurrentlyAvailableError.
        """
        name = (desc.identifier, adapter)
        # So that an error in the middle leaves an object that can be dropped.
        self._references = 0
        with _caches_lock:
            cache = _caches.get(name)
            if cache is not None and cache.version != desc.version:
                raise AlreadyExistsError(f"cache {desc.identifier} is open with version {cache.version}, not {desc.version}")
            if cache is None:
                cache = MemoryCache(desc.version, desc.maximum_in_memory_cache_size_bytes, desc.maximum_in_memory_cache_entries)
            self._name = name
            self._cache = cache
            self._entries = cache.entries
            super().__init__(made_with or desc, **common)
            _caches[name] = cache
            cache.sessions += 1

    @property
    def maximum_size_bytes(self) -> int:
        """Limit of the bytes of all values."""
        return self._cache.maximum_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes of all values."""
        return self._cache.used_bytes

    def find_value(self, key: bytes) -> bytes:
        try:
            value = self._entries[key][0]
            if value is not None:
                return value
        except (KeyError, TypeError):
            pass
        return super().find_value(key)

    def set_enabled(self, enabled: bool) -> None:
        super().set_enabled(enabled)
        # find_value looks here first and asks nothing else.
        self._entries = self._cache.entries if self._usable else _NOTHING

    def set_delete_on_destroy(self) -> None:
        """Nothing to do: the cache is gone with its last session."""

    def _find(self, key: bytes, type: int) -> bytes:
        check_key(key)
        values = self._entries.get(key)
        value = values[type] if values is not None else None
        if value is None:
            raise NotFoundError(f"no value {key.hex()}")
        return value

    def _find_many(self, key: bytes, types: Sequence[int]) -> Sequence[bytes | None]:
        values = self._entries.get(key, (None, None))
        return [values[type] for type in types]

    def _sizes(self, key: bytes) -> Mapping[int, int]:
        values = self._entries.get(key, (None, None))
        return {type: len(value) for type, value in enumerate(values) if value is not None}

    def _exists(self, key: bytes) -> bool:
        return key in self._entries

    def _store(self, key: bytes, values: Mapping[int, bytes], overwrite: bool, keep: bool) -> None:
        self._cache.store(key, values, overwrite, keep)

    def _clear(self) -> None:
        self._cache.clear()

    def _close(self) -> None:
        with _caches_lock:
            self._cache.sessions -= 1
            if not self._cache.sessions:
                _caches.pop(self._name, None)
                self._cache.clear()


def _size(values: Sequence[bytes | None]) -> int:
    return sum(len(value) for value in values if value is not None)
