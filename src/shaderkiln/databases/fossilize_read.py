"""Read access to one Fossilize archive."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from shaderkiln.closing import Closing, on_error
from shaderkiln.databases import fossilize_index
from shaderkiln.databases.fossilize_index import Columns, IndexMismatchError
from shaderkiln.databases.fossilize_scan import Damage, Scanner, open_archive
from shaderkiln.errors import DamagedInputError, InvalidArgumentError, NotFoundError
from shaderkiln.formats.fossilize import ENTRY_HEADER_SIZE, EntryHeader, Tag, unpack_payload

_FIRST_READ = 4096
"""Most entries are read whole with one call of this size."""


class FossilizeArchive(Closing):
    """A Fossilize archive, open for reading; a context manager. Several threads may read from one.

    Opening finds every entry, also in a damaged file; ``damage`` lists the rest. Payloads are verified when they are read, or
    all at once by ``verify_all``. A process that appends to the file meanwhile does no harm: what it adds is seen by the next
    open, and an entry that is only half written is damage until then.
    """

    def __init__(self, path: Path, descriptor: int, status: os.stat_result, version: int, columns: Columns) -> None:
        self.path = path
        self.version = version
        self._descriptor = descriptor
        self._status = status
        self._columns = columns

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, index: bool = True, verify: bool = False) -> FossilizeArchive:
        """Open an archive of version 5 or 6.

        ``index`` allows to use and to write an index in the user's cache folder. ``verify`` checks every payload now and takes
        bad ones for damage; without it, a bad payload is found when it is read, and where its size is damaged so that it
        reaches to the start of a later entry, the entries between are missed.

        Raises NotFoundError, AccessDeniedError, and DamagedInputError if it is no such archive.
        """
        path = Path(path)
        descriptor, status, version = open_archive(path)
        with on_error(os.close, descriptor):
            columns = fossilize_index.load(path, descriptor, status) if index and not verify else None
            if columns is None:
                columns = fossilize_index.build(descriptor, status.st_size, verify=verify)
                if index and not verify and fossilize_index.save(path, descriptor, status, columns):
                    # The copy in the cache file costs no memory of this process.
                    columns = fossilize_index.load(path, descriptor, status) or columns
        return cls(path, descriptor, status, version, columns)

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._columns.release()

    def fileno(self) -> int:
        """The descriptor of the open file. Raises InvalidArgumentError if it is closed."""
        return self._open()

    def __len__(self) -> int:
        """Entries with different keys."""
        return sum(self._columns.counts)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """The parts of the file that hold no good entry, by offset; very many are summed up in the last one."""
        return self._columns.damage

    @property
    def duplicates(self) -> int:
        """Entries left out because an earlier one has their key."""
        return self._columns.duplicates

    @property
    def stored_size(self) -> int:
        """Bytes of the file when it was opened."""
        return self._status.st_size

    @property
    def end(self) -> int:
        """Offset behind the last good entry."""
        return self._columns.end

    @property
    def indexed(self) -> bool:
        """Whether the entries came from a cached index, without a scan."""
        return self._columns.cached

    def counts(self) -> dict[Tag, int]:
        """How many entries there are of each tag, tags without any included."""
        return dict(zip(Tag, self._columns.counts, strict=True))

    def hashes(self, tag: Tag) -> Iterator[int]:
        """The hashes of all entries of a tag in file order, which is the order in which reading them is fastest.

        Raises InvalidArgumentError once the archive is closed.
        """
        self._open()
        columns = self._columns
        try:
            for number in columns.numbers(tag):
                yield columns.hashes[number]
        except ValueError:
            # The index is a released memory map.
            self._open()
            raise
        columns.forget_pages()

    def contains(self, tag: Tag, hash: int) -> bool:
        """Whether there is an entry with that key."""
        return self._locate(tag, hash) >= 0

    def header(self, tag: Tag, hash: int) -> EntryHeader:
        """The header of an entry. Raises as ``read`` does, but for what is wrong with the payload."""
        return self._read(tag, hash, ENTRY_HEADER_SIZE)[1]

    def raw_size(self, tag: Tag, hash: int) -> int:
        """Size of an entry's payload in bytes. Raises as ``header`` does."""
        return self.header(tag, hash).raw_size

    def read(self, tag: Tag, hash: int) -> bytes:
        """The payload of an entry, its checksum and size verified.

        Where the first entry with that key is damaged, a later one counts. Raises NotFoundError, and DamagedInputError that
        names file, tag, hash and reason.
        """
        try:
            return self._payload(tag, hash)
        except DamagedInputError:
            if not self._columns.duplicates or self._columns.verified:
                raise
            columns = fossilize_index.build(self._descriptor, self._status.st_size, verify=True)
            if columns.find(tag, hash) < 0:
                raise
            self._columns = columns
        return self._payload(tag, hash)

    def _payload(self, tag: Tag, hash: int) -> bytes:
        offset, header, data = self._read(tag, hash, _FIRST_READ)
        missing = ENTRY_HEADER_SIZE + header.stored_size - len(data)
        if missing > 0:
            data += os.pread(self._descriptor, missing, offset + len(data))
        stored = memoryview(data)[ENTRY_HEADER_SIZE : ENTRY_HEADER_SIZE + header.stored_size]
        if len(stored) != header.stored_size:
            raise self._damaged(tag, hash, "payload is cut off")
        if header.crc and zlib.crc32(stored) != header.crc:
            raise self._damaged(tag, hash, "payload does not match its checksum")
        try:
            return unpack_payload(stored, header.flags, header.raw_size)
        except DamagedInputError as error:
            raise self._damaged(tag, hash, str(error)) from None

    def verify_all(self) -> tuple[Damage, ...]:
        """Read the whole file, check and inflate every payload, and return everything that is damaged, by offset."""
        scanner = Scanner(self._open(), self._status.st_size, inflate=True)
        for _ in scanner.batches():
            pass
        return tuple(scanner.damage)

    def _open(self) -> int:
        if self._descriptor < 0:
            raise InvalidArgumentError(f"{self.path}: archive is closed")
        return self._descriptor

    def _locate(self, tag: Tag, hash: int) -> int:
        """The offset of an entry, or -1."""
        self._open()
        try:
            number = self._columns.find(tag, hash)
        except IndexMismatchError:
            self._rebuild()
            number = self._columns.find(tag, hash)
        return self._columns.offsets[number] if number >= 0 else -1

    def _read(self, tag: Tag, hash: int, length: int) -> tuple[int, EntryHeader, bytes]:
        """Offset, header and up to ``length`` bytes from the header on, after comparing the header with the key."""
        while True:
            offset = self._locate(tag, hash)
            if offset < 0:
                raise NotFoundError(f"{self.path}: no {Tag(tag).name.lower()} {hash:016x}")
            reason = "the file changed after it was opened"
            if offset <= self._status.st_size - ENTRY_HEADER_SIZE:
                data = os.pread(self._descriptor, length, offset)
                try:
                    header = EntryHeader.parse(data)
                    if header.tag == tag and header.hash == hash:
                        return offset, header, data
                except DamagedInputError as error:
                    reason = str(error)
            if not self._columns.cached:
                raise self._damaged(tag, hash, reason)
            self._rebuild()

    def _rebuild(self) -> None:
        """Scan the archive, because the cached index lies, and replace that index."""
        # The old columns are not released: an iterator of this or another thread may still use them.
        self._columns = fossilize_index.build(self._descriptor, self._status.st_size)
        fossilize_index.save(self.path, self._descriptor, self._status, self._columns)

    def _damaged(self, tag: Tag, hash: int, reason: str) -> DamagedInputError:
        return DamagedInputError(f"{self.path}: {Tag(tag).name.lower()} {hash:016x}: {reason}")
