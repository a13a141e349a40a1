"""How the objects of a device were created (ID3D12DeviceStatistics, EP-51)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import StrEnum


class ObjectSource(StrEnum):
    """Where the object code of an object came from: of several parts, the part that was found last in this order."""

    EXPLICIT_PSDB = "explicit-psdb"
    DEFAULT_PSDB = "default-psdb"
    LOCAL_CACHE = "local-cache"
    LIBRARY = "library"
    """A pipeline library of the application."""
    CACHED_PSO = "cached-pso"
    """The cached blob in the desc."""
    SERIALIZED = "serialized"
    """Serialized components that the application gave."""
    COMPILED = "compiled"
    UNKNOWN = "unknown"
    """No cache was asked: the driver gives no object code, or the object has none of its own."""


@dataclass(frozen=True, slots=True)
class CreateStateObjectStatistics:
    """D3D12_CREATE_STATE_OBJECT_STATISTICS. Hits are what is left of ``num_created``; failed creations count nowhere."""

    num_created: int = 0
    num_psdb_cache_missed: int = 0
    """Not, or not wholly, found in a PSDB; the local cache may have had it."""
    num_total_cache_missed: int = 0
    """Not, or not wholly, found in any cache."""
    num_cache_unknown: int = 0

    @property
    def num_psdb_cache_hits(self) -> int:
        """Objects that were wholly found in a PSDB."""
        return self.num_created - self.num_psdb_cache_missed - self.num_cache_unknown


@dataclass(frozen=True, slots=True)
class StateObjectStatistics:
    """D3D12_STATE_OBJECT_STATISTICS."""

    default_psdb_registered: bool
    pipeline_state_object_statistics: CreateStateObjectStatistics
    state_object_statistics: CreateStateObjectStatistics


class CreationCounter:
    """Counts creations; may be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._created = self._psdb_missed = self._total_missed = self._unknown = 0

    def add(self, source: ObjectSource) -> None:
        """One object was created."""
        with self._lock:
            self._created += 1
            if source is ObjectSource.UNKNOWN:
                self._unknown += 1
                return
            self._psdb_missed += source not in (ObjectSource.EXPLICIT_PSDB, ObjectSource.DEFAULT_PSDB)
            self._total_missed += source is ObjectSource.COMPILED

    def snapshot(self) -> CreateStateObjectStatistics:
        """The counts at one moment."""
        with self._lock:
            return CreateStateObjectStatistics(self._created, self._psdb_missed, self._total_missed, self._unknown)
