"""Small files in the user's cache folder: believed only if they are whole, and missed by nobody.

A file is a line with the CRC-32 of what follows, in hexadecimal. Only the standard library's small modules are used here.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from shaderkiln.system.files import open_to_read

_HEAD = 9


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """This program's folder below ``$XDG_CACHE_HOME`` or ``~/.cache``; None where there is no home. A relative path is no home."""
    base = environment.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        base = environment.get("HOME", "") or os.path.expanduser("~")  # noqa: PTH111  Path.expanduser raises without a home
        if not base.startswith("/"):
            return None
        base += "/.cache"
    return Path(base) / "shaderkiln"


def read_cached(path: Path, limit: int) -> bytes | None:
    """What ``write_cached`` wrote, of at most ``limit`` bytes; None for anything else."""
    try:
        descriptor = open_to_read(path)
    except (OSError, ValueError):
        return None
    try:
        data = os.read(descriptor, limit + _HEAD + 1) if S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return None
    finally:
        os.close(descriptor)
    body = data[_HEAD:]
    return body if len(body) <= limit and data[:_HEAD] == _head(body) else None


def write_cached(path: Path, data: bytes) -> None:
    """Keeps a file, whole or not at all. A folder that cannot be written costs time, nothing else: no error is raised."""
    import tempfile

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
            try:
                file.write(_head(data) + data)
                file.flush()
                Path(file.name).replace(path)
            except BaseException:
                with suppress(OSError):
                    Path(file.name).unlink()
                raise
    except (OSError, ValueError):
        return


def _head(data: bytes) -> bytes:
    return b"%08x\n" % zlib.crc32(data)
