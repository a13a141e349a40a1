"""The precompiled shader database (PSDB), format 1: ``Psdb`` reads a finished file, ``PsdbBuilder`` makes one."""

from .psdb_reader import Psdb
from .psdb_records import (
    Damage,
    DamagedValueError,
    DatabaseBusyError,
    DatabaseWriteError,
    GroupDifference,
    Poison,
    PsdbStatistics,
    StoredValue,
    TypeStatistics,
    ValueDifference,
)
from .psdb_writer import PsdbBuilder

__all__ = [
    "Damage",
    "DamagedValueError",
    "DatabaseBusyError",
    "DatabaseWriteError",
    "GroupDifference",
    "Poison",
    "Psdb",
    "PsdbBuilder",
    "PsdbStatistics",
    "StoredValue",
    "TypeStatistics",
    "ValueDifference",
]
