"""Merging and salvaging Fossilize archives, with every checksum verified and an account of every entry."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from shaderkiln.closing import Closing
from shaderkiln.databases.fossilize_check import HashCheck
from shaderkiln.databases.fossilize_read import FossilizeArchive
from shaderkiln.databases.fossilize_scan import MAX_DAMAGE, WINDOW, Damage, Scanner, open_archive
from shaderkiln.databases.fossilize_write import NewFile, write_all
from shaderkiln.errors import DamagedInputError, InvalidArgumentError
from shaderkiln.formats.fossilize import (
    ENTRY_HEADER_SIZE,
    FILE_HEADER_SIZE,
    EntryHeader,
    Tag,
    file_header,
    unpack_payload,
)

_OFFSET_BITS = 48
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
_OPEN_INPUTS = 64
_SYNC_EVERY = 32 << 20
"""Bytes written between two requests to the disk."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """An entry left out because an earlier one has its key and another payload."""

    tag: Tag
    hash: int
    offset: int
    kept_from: Path
    """The input that the entry kept came from."""


@dataclass(slots=True)
class InputLedger:
    """What became of one input: ``entries == kept + duplicates + conflicting + dropped``.

    ``entries`` counts every good entry and every damaged place; ``damage`` and ``conflicts`` name the dropped and the
    conflicting ones, up to 10,000 of each.
    """

    path: Path
    entries: int = 0
    kept: int = 0
    duplicates: int = 0
    conflicting: int = 0
    dropped: int = 0
    damage: tuple[Damage, ...] = ()
    conflicts: list[Conflict] = field(default_factory=list)
    not_checked: int = 0
    """Entries whose hash was to be checked and cannot be computed here."""

    @property
    def balanced(self) -> bool:
        """Whether the account adds up."""
        return self.entries == self.kept + self.duplicates + self.conflicting + self.dropped


@dataclass(frozen=True, slots=True)
class Ledger:
    """What became of every entry of every input, in the order of the inputs."""

    output: Path
    inputs: tuple[InputLedger, ...]
    bytes_written: int

    @property
    def kept(self) -> int:
        """Entries of the output."""
        return sum(item.kept for item in self.inputs)

    @property
    def dropped(self) -> int:
        """Damaged places of all inputs."""
        return sum(item.dropped for item in self.inputs)

    @property
    def conflicting(self) -> int:
        """Entries of all inputs that contradict an earlier one."""
        return sum(item.conflicting for item in self.inputs)


Progress = Callable[[int, int], None]
"""Called now and then with the bytes of input done and in all."""


def merge(
    inputs: Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    inflate: bool = False,
    check_hashes: bool = False,
) -> Ledger:
    """Write every good entry of the inputs, in their order, into one new archive; of equal keys the first good one counts.

    Every stored checksum is verified (an entry without one is inflated); ``inflate`` inflates every payload, so that an entry
    whose stated raw size is wrong is dropped as well. With ``check_hashes`` an entry that is not what its name says is dropped too
    (``HashCheck``). Takes up to 170 bytes of memory for each key. The output appears when it
    is complete and on the disk; inputs are never changed.

    Raises as ``FossilizeArchive.open`` does for an input, InvalidArgumentError if the output is one of the inputs, and
    AccessDeniedError or CacheFullError if the output cannot be written.
    """
    paths = [Path(path) for path in inputs]
    output = Path(output)
    if output.exists() and any(path.exists() and output.samefile(path) for path in paths):
        raise InvalidArgumentError(f"{output}: the output is one of the inputs")
    total = sum(path.stat().st_size for path in paths if path.exists())
    with NewFile(output) as new, _Merger(paths, output, new, inflate, check_hashes) as merger:
        write_all(output, new.descriptor, file_header())
        merger.written = FILE_HEADER_SIZE
        for number in range(len(paths)):
            merger.add(number, (lambda done: progress(done, total)) if progress else None)
        new.commit()
        return Ledger(output, tuple(merger.ledgers), merger.written)


def salvage(
    input: str | os.PathLike[str],
    output: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    check_hashes: bool = False,
) -> Ledger:
    """Write every entry of a damaged archive that proves good, by checksum and by inflating, into a new one; see ``merge``."""
    return merge([input], output, progress, inflate=True, check_hashes=check_hashes)


class _Merger(Closing):
    def __init__(self, paths: list[Path], output: Path, new: NewFile, inflate: bool, check_hashes: bool) -> None:
        self.paths = paths
        self.output = output
        self.new = new
        self.descriptor = new.descriptor
        self.inflate = inflate
        self.check_hashes = check_hashes
        self.ledgers: list[InputLedger] = []
        self.written = 0
        self._synced = 0
        self.done = 0
        # For each tag: hash -> number of the input << 48 | offset of the entry that was kept.
        self._seen: list[dict[int, int]] = [{} for _ in range(max(Tag) + 1)]
        self._open: dict[int, int] = {}
        self._archive: FossilizeArchive | None = None
        """The input whose hashes are checked, for looking up what its entries refer to."""

    def close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
        if self._archive:
            self._archive.close()

    def add(self, number: int, progress: Callable[[int], None] | None) -> None:
        """Copy the good entries of one input that are not there yet."""
        ledger = InputLedger(self.paths[number])
        self.ledgers.append(ledger)
        source = self._source(number)
        size = os.fstat(source).st_size
        scanner = Scanner(source, size, verify=True, inflate=self.inflate)
        wrong: list[Damage] = []
        wrong_count = 0
        check = None
        if self.check_hashes:
            self._archive = FossilizeArchive.open(self.paths[number], index=False)
            check = HashCheck(self._archive)
        seen, place = self._seen, number << _OFFSET_BITS
        for batch in scanner.batches():
            place_of_base = place + batch.base
            start = end = 0
            for tag, hash, at, after in zip(batch.tags, batch.hashes, batch.offsets, batch.ends, strict=True):
                where = place_of_base + at
                if check and (fault := self._wrong(check, number, Tag(tag), hash, where & _OFFSET_MASK)):
                    wrong_count += 1
                    if len(wrong) < MAX_DAMAGE:
                        wrong.append(fault)
                    continue
                if (earlier := seen[tag].setdefault(hash, where)) == where:
                    if at == end:
                        end = after
                        continue
                    if end > start:
                        self._copy(source, batch.base, batch.view, start, end)
                    start, end = at, after
                elif self._equal(number, where & _OFFSET_MASK, earlier):
                    ledger.duplicates += 1
                else:
                    ledger.conflicting += 1
                    if len(ledger.conflicts) < MAX_DAMAGE:
                        kept_from = self.paths[earlier >> _OFFSET_BITS]
                        ledger.conflicts.append(Conflict(Tag(tag), hash, where & _OFFSET_MASK, kept_from))
            if end > start:
                self._copy(source, batch.base, batch.view, start, end)
            ledger.entries += len(batch.offsets)
            if self.written - self._synced > _SYNC_EVERY:
                self._synced = self.written
                self.new.sync_behind()
            if progress:
                progress(self.done + scanner.position)
        if check and self._archive:
            self._archive.close()
            ledger.not_checked = sum(check.not_checked.values())
        ledger.kept = ledger.entries - ledger.duplicates - ledger.conflicting - wrong_count
        ledger.dropped = scanner.damage_count + wrong_count
        ledger.entries += scanner.damage_count
        ledger.damage = tuple(sorted([*scanner.damage, *wrong], key=lambda damage: damage.offset)[:MAX_DAMAGE])
        self.done += size
        assert ledger.balanced
        if progress:
            progress(self.done)

    def _wrong(self, check: HashCheck, number: int, tag: Tag, hash: int, offset: int) -> Damage | None:
        """An entry that is not what its name says, as damage; None for every other."""
        header, stored = self._stored(number, offset)
        try:
            reason = check.fault(tag, hash, unpack_payload(stored, header.flags, header.raw_size))
        except DamagedInputError as error:
            reason = str(error)
        return Damage(offset, ENTRY_HEADER_SIZE + header.stored_size, reason, tag, hash) if reason else None

    def _source(self, number: int) -> int:
        """A descriptor of an input; at most ``_OPEN_INPUTS`` are open at once."""
        descriptor = self._open.get(number)
        if descriptor is None:
            if len(self._open) >= _OPEN_INPUTS:
                # The input that is being added was opened last, so that the first is never it.
                os.close(self._open.pop(next(iter(self._open))))
            descriptor = self._open[number] = open_archive(self.paths[number])[0]
        return descriptor

    def _copy(self, source: int, base: int, view: memoryview, start: int, end: int) -> None:
        self.written += end - start
        if view:
            write_all(self.output, self.descriptor, view[start:end])
            return
        position, stop = base + start, base + end
        while position < stop:
            data = os.pread(source, min(WINDOW, stop - position), position)
            if not data:
                raise DamagedInputError("an input became shorter while it was read")
            write_all(self.output, self.descriptor, data)
            position += len(data)

    def _equal(self, number: int, offset: int, earlier: int) -> bool:
        """Whether two good entries with one key hold the same payload."""
        one, stored_one = self._stored(number, offset)
        other, stored_other = self._stored(earlier >> _OFFSET_BITS, earlier & _OFFSET_MASK)
        if one.raw_size != other.raw_size:
            return False
        if one.flags == other.flags and stored_one == stored_other:
            return True
        try:
            raw_one = unpack_payload(stored_one, one.flags, one.raw_size)
            return raw_one == unpack_payload(stored_other, other.flags, other.raw_size)
        except DamagedInputError:
            return False

    def _stored(self, number: int, offset: int) -> tuple[EntryHeader, bytes]:
        source = self._source(number)
        data = os.pread(source, 4096, offset)
        header = EntryHeader.parse(data)
        missing = ENTRY_HEADER_SIZE + header.stored_size - len(data)
        if missing > 0:
            data += os.pread(source, missing, offset + len(data))
        return header, data[ENTRY_HEADER_SIZE : ENTRY_HEADER_SIZE + header.stored_size]
