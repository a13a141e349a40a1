"""Files: opening them without waiting, bringing them to the disk, memory maps that leave no pages behind."""

from __future__ import annotations

import mmap
import os
from pathlib import Path


def open_to_read(path: str | os.PathLike[str]) -> int:
    """A descriptor that no child gets. Raises OSError, and ValueError for a path that cannot be."""
    # Without O_NONBLOCK the opening of a named pipe would wait for a writer.
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)


def read_start(path: str | os.PathLike[str], size: int) -> bytes:
    """The first bytes of a file, without waiting for a writer of a named pipe. Raises as ``open_to_read``."""
    descriptor = open_to_read(path)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Bring a file's content to the disk, or a folder's names. Raises OSError."""
    descriptor = open_to_read(path)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_content(descriptor: int) -> None:
    """Bring an open file's content to the disk, without its times. Raises OSError."""
    os.fdatasync(descriptor)


def own_private(status: os.stat_result) -> bool:
    """Whether the file belongs to this user, and nobody else may write it."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def give_default_rights(descriptor: int) -> None:
    """The rights that a file gets that is simply created; one made by ``tempfile`` has fewer."""
    mask = os.umask(0o077)
    os.umask(mask)
    os.fchmod(descriptor, 0o666 & ~mask)


def forget_pages(mapped: mmap.mmap, start: int = 0, length: int | None = None) -> None:
    """Give pages of a memory map back to the system's cache, where they stay until needed."""
    mapped.madvise(mmap.MADV_DONTNEED, start, len(mapped) - start if length is None else length)
