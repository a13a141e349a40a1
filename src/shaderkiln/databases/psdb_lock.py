"""Locks between processes, and which live files this process has open."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..closing import on_error
from ..errors import NotFoundError
from ..system.locks import open_lock, take_lock
from .psdb_records import DatabaseBusyError, DatabaseWriteError

_live: dict[tuple[int, int], int] = {}
_live_lock = threading.Lock()


def note_live(path: Path) -> tuple[int, int]:
    """Remember that SQLite has the live file open here; give the result to ``forget_live``."""
    status = path.stat()
    number = (status.st_dev, status.st_ino)
    with _live_lock:
        _live[number] = _live.get(number, 0) + 1
    return number


def forget_live(number: tuple[int, int]) -> None:
    with _live_lock:
        _live[number] -= 1
        if not _live[number]:
            del _live[number]


def is_live(path: Path) -> bool:
    """Whether this process has the file open as a live one.

    Then nobody may open and close it but SQLite: closing any descriptor of a file drops all POSIX locks that the process holds on
    it, SQLite's included.
    """
    if not _live:
        return False
    try:
        status = path.stat()
    except (OSError, ValueError):
        return False
    return (status.st_dev, status.st_ino) in _live


class _Lock:
    """A flock on a file of its own; the system frees it when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def _opened(self, locked: Callable[[int], bool]) -> bool:
        """What ``locked`` said of the lock file, which is then held; False where the folder cannot be written to."""
        while True:
            try:
                descriptor = open_lock(self._path)
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                    return False
                raise
            with on_error(os.close, descriptor):
                result = locked(descriptor)
            # Its last holder may have unlinked it between our open and our lock.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), self._path.stat()):
                    self._descriptor = descriptor
                    return result
            os.close(descriptor)


class FileLock(_Lock):
    """An exclusive lock."""

    def take(self) -> bool:
        """False where the folder cannot be written to; raises DatabaseBusyError, NotFoundError or DatabaseWriteError."""
        try:
            return self._opened(self._alone)
        except FileNotFoundError as error:
            raise NotFoundError(f"{self._path.parent}: no such folder") from error
        except OSError as error:
            raise DatabaseWriteError(f"{self._path}: {error.strerror}") from error

    def _alone(self, descriptor: int) -> bool:
        if not take_lock(descriptor):
            raise DatabaseBusyError(f"{self._path}: another process is building this database")
        return True

    def wait(self, seconds: float) -> bool:
        """As ``take``, but waits that long for another holder before it raises DatabaseBusyError."""
        end = time.monotonic() + seconds
        while True:
            try:
                return self.take()
            except DatabaseBusyError:
                if time.monotonic() >= end:
                    raise
                time.sleep(0.01)

    def release(self) -> None:
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


class SharedLock(_Lock):
    """A lock that many processes hold at once, or one alone.

    Where the folder cannot be written to nothing is locked, and nobody is alone.
    """

    def take(self) -> bool:
        """True with the lock held alone; False with it shared, since others hold it. Raises OSError."""
        if self._descriptor is not None:
            return self._try_alone(self._descriptor)
        return self._opened(self._try_alone)

    def share(self) -> None:
        """Let others in."""
        if self._descriptor is not None:
            take_lock(self._descriptor, shared=True, wait=True)

    def release(self) -> None:
        """Give the lock up; the last holder removes the file."""
        if self._descriptor is not None:
            if self._try_alone(self._descriptor):
                self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    def _try_alone(self, descriptor: int) -> bool:
        return take_lock(descriptor) or not take_lock(descriptor, shared=True, wait=True)
