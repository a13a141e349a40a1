"""Writing Fossilize archives: new ones, and appending to one."""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from shaderkiln.closing import on_error
from shaderkiln.databases.fossilize_read import FossilizeArchive
from shaderkiln.errors import AccessDeniedError, CacheFullError, DamagedInputError, InvalidArgumentError
from shaderkiln.formats.fossilize import Tag, file_header, pack_entry
from shaderkiln.system.files import give_default_rights, sync, sync_content
from shaderkiln.system.locks import take_lock


class NewFile:
    """A file that appears under its name only when it is complete and on the disk; a context manager.

    Leaving the context by an exception, or without ``commit``, leaves what was there before.
    """

    def __init__(self, path: Path) -> None:
        import tempfile

        self.path = path
        try:
            self.descriptor, self._temporary = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".new", dir=path.parent)
        except OSError as error:
            raise AccessDeniedError(f"{path}: {error.strerror}") from None
        give_default_rights(self.descriptor)
        self._syncing: threading.Thread | None = None
        self._sync_error: OSError | None = None

    def sync_behind(self) -> None:
        """Let the disk begin with what was written so far, so that ``commit`` has less to wait for."""
        if self._syncing is None or not self._syncing.is_alive():
            self._syncing = threading.Thread(target=self._sync, args=(self.descriptor,), daemon=True)
            self._syncing.start()

    def _sync(self, descriptor: int) -> None:
        try:
            sync_content(descriptor)
        except OSError as error:
            # The system reports a failed write only once, so that ``commit`` would not hear of it.
            self._sync_error = error

    def commit(self) -> None:
        """Bring the file to the disk and to its name."""
        try:
            if self._syncing:
                self._syncing.join()
            if self._sync_error:
                raise self._sync_error
            os.fsync(self.descriptor)
            os.close(self.descriptor)
            self.descriptor = -1
            os.replace(self._temporary, self.path)  # noqa: PTH105
            sync(self.path.parent)
        except OSError as error:
            self.abort()
            raise write_error(self.path, error) from error

    def abort(self) -> None:
        """Remove what was written so far."""
        if self._syncing:
            self._syncing.join()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        with suppress(FileNotFoundError):
            os.unlink(self._temporary)  # noqa: PTH108

    def __enter__(self) -> NewFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.descriptor >= 0:
            self.abort()


def write_all(path: Path, descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte. Raises CacheFullError where the disk is full, AccessDeniedError for other errors of the system."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise write_error(path, error) from error


def write_error(path: Path, error: OSError) -> AccessDeniedError | CacheFullError:
    """The library's error for a write that the system refused."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return (CacheFullError if full else AccessDeniedError)(f"{path}: {error.strerror}")


class ArchiveWriter:
    """Puts entries into an archive; a context manager that commits, or aborts if it is left by an exception.

    Of a new archive nothing is visible before ``close``. In an archive that is appended to, every entry whose ``put`` returned
    survives the death of the process, and the death of the machine once ``flush`` or ``close`` returned; ``abort`` keeps them.
    """

    def __init__(self, path: Path, descriptor: int, new: NewFile | None, present: FossilizeArchive | None) -> None:
        self.path = path
        self.written = 0
        self.duplicates = 0
        self.cut = 0
        """Bytes of a damaged tail that were cut off on opening."""
        self._descriptor = descriptor
        self._new = new
        self._present = present
        self._keys: dict[int, set[int]] = {tag: set() for tag in Tag}
        self._size = os.fstat(descriptor).st_size

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> ArchiveWriter:
        """Begin a new archive of version 6, which replaces what is there when it is closed."""
        path = Path(path)
        new = NewFile(path)
        with on_error(new.abort):
            write_all(path, new.descriptor, file_header())
            return cls(path, new.descriptor, new, None)

    @classmethod
    def append(cls, path: str | os.PathLike[str]) -> ArchiveWriter:
        """Open an archive to add entries; one that does not exist is created.

        What follows the last good entry is cut off first. Raises DamagedInputError if the file is no archive, AccessDeniedError
        if it cannot be written or another writer has it open.
        """
        path = Path(path)
        if not path.exists():
            with NewFile(path) as new:
                write_all(path, new.descriptor, file_header())
                new.commit()
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise AccessDeniedError(f"{path}: {error.strerror}") from None
        with on_error(os.close, descriptor):
            if not take_lock(descriptor):
                raise AccessDeniedError(f"{path}: another writer has it open")
            present = FossilizeArchive.open(path)
            with on_error(present.close):
                if not os.path.sameopenfile(descriptor, present.fileno()):
                    raise AccessDeniedError(f"{path}: was replaced while it was opened")
                if present.end < present.stored_size:
                    os.ftruncate(descriptor, present.end)
                writer = cls(path, descriptor, None, present)
                writer.cut = present.stored_size - present.end
                return writer

    def put(self, tag: Tag, hash: int, payload: bytes, compress: bool = True) -> bool:
        """Add an entry; False, and nothing done, if the archive has one with that key.

        Raises InvalidArgumentError for a hash or payload too large, CacheFullError or AccessDeniedError if the system refuses
        to write; the archive is then as before.
        """
        if self._descriptor < 0:
            raise InvalidArgumentError(f"{self.path}: writer is closed")
        keys = self._keys[Tag(tag)]
        if hash in keys or (self._present is not None and self._holds(self._present, tag, hash)):
            self.duplicates += 1
            return False
        entry = pack_entry(tag, hash, payload, compress=compress)
        try:
            write_all(self.path, self._descriptor, entry)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
                os.lseek(self._descriptor, self._size, os.SEEK_SET)
            raise
        self._size += len(entry)
        keys.add(hash)
        self.written += 1
        return True

    @staticmethod
    def _holds(present: FossilizeArchive, tag: Tag, hash: int) -> bool:
        """Whether an entry was there at the start, and is good: a put over a damaged one must not be dropped."""
        if not present.contains(tag, hash):
            return False
        try:
            present.read(tag, hash)
        except DamagedInputError:
            return False
        return True

    def flush(self) -> None:
        """Bring every entry so far to the disk."""
        if self._descriptor < 0:
            raise InvalidArgumentError(f"{self.path}: writer is closed")
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise write_error(self.path, error) from error

    def close(self) -> None:
        """Commit: bring a new archive to its name, and either kind to the disk. Closing twice is allowed."""
        if self._descriptor < 0:
            return
        try:
            if self._new:
                self._new.commit()
            else:
                self.flush()
        finally:
            self._release()

    def abort(self) -> None:
        """Drop a new archive; of one that is appended to, keep every entry."""
        if self._descriptor >= 0:
            self._release()

    def _release(self) -> None:
        if self._new:
            self._new.abort()
        else:
            os.close(self._descriptor)
        self._descriptor = -1
        if self._present:
            self._present.close()

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind:
            self.abort()
        else:
            self.close()
