"""The state object database (SODB): descriptions of Direct3D 12 pipelines in the published SQLite form."""

from .sodb_database import (
    ObjectKind,
    StateObjectDatabase,
    StateObjectDatabaseBusyError,
    StoredPipelineState,
    StoredStateObject,
)

__all__ = [
    "ObjectKind",
    "StateObjectDatabase",
    "StateObjectDatabaseBusyError",
    "StoredPipelineState",
    "StoredStateObject",
]
