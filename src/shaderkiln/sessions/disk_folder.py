"""Where DISK caches lie, and what their files are called."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import xxhash

from ..databases.psdb_lock import SharedLock
from ..databases.sqlite_file import remove
from ..errors import ShaderkilnError
from ..identity import CompilerIdentity

SUFFIX = ".cache"


def default_folder() -> Path:
    """Where DISK caches are by default: in the user's data folder (XDG_DATA_HOME)."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "shaderkiln" / "shader-cache"


def cache_name(identifier: UUID, adapter: CompilerIdentity | None) -> str:
    """The file name of a cache; with an adapter there is one for each driver build and device."""
    if adapter is None:
        return f"{identifier}{SUFFIX}"
    parts = (
        adapter.family,
        adapter.vendor_id,
        adapter.device_id,
        adapter.driver_name,
        adapter.driver_version,
        adapter.driver_build,
        adapter.pointer_bits,
    )
    return f"{identifier}-{xxhash.xxh3_128_hexdigest(repr(parts).encode())}{SUFFIX}"


def clear_folder(folder: Path) -> None:
    """Delete every cache there that no process has open."""
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(OSError, ShaderkilnError):
            lock = SharedLock(path.with_name(path.name + ".in-use"))
            try:
                if lock.take():
                    remove(path)
            finally:
                lock.release()
