"""Locks between processes, on files of their own or on the file that is written.

A lock belongs to an open file and to every copy of its descriptor; the system frees it when the last of them is closed, however
its process ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def open_lock(path: Path, *, private: bool = False) -> int:
    """A descriptor of a file to be locked, which is made where it is missing, for this user alone if ``private``.

    Raises OSError; a private one is no symbolic link.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    return os.open(path, flags | os.O_NOFOLLOW, 0o600) if private else os.open(path, flags, 0o644)


def take_lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> bool:
    """Lock the file, alone or with others; a lock that is held already becomes that kind.

    False where another holder is in the way and ``wait`` is off, or where the file system has no locks; with ``wait`` the latter
    raises OSError.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if wait:
            raise
        return False
    return True


def free_lock(descriptor: int) -> None:
    """Free the lock, also for a child that holds a copy of the descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
