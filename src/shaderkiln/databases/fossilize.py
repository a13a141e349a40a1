"""Fossilize archives (``.foz``) as databases of descriptions: reading, writing, merging and salvaging them."""

from shaderkiln.databases.fossilize_check import HashCheck
from shaderkiln.databases.fossilize_merge import Conflict, InputLedger, Ledger, merge, salvage
from shaderkiln.databases.fossilize_read import FossilizeArchive
from shaderkiln.databases.fossilize_scan import Damage
from shaderkiln.databases.fossilize_write import ArchiveWriter

__all__ = ["ArchiveWriter", "Conflict", "Damage", "FossilizeArchive", "HashCheck", "InputLedger", "Ledger", "merge", "salvage"]
