"""One pass over a Fossilize archive: every good entry in file order, and what lies between them.

The file is read with ``pread`` through one window of fixed size. Compared with a memory map that keeps the memory of the
process the same whatever the size of the archive, and a file that another process truncates meanwhile cannot kill this one.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from array import array
from binascii import unhexlify
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG

from msgspec import Struct

from shaderkiln.errors import AccessDeniedError, DamagedInputError, NotFoundError
from shaderkiln.formats.fossilize import (
    DEFLATED,
    ENTRY,
    ENTRY_HEADER_SIZE,
    FILE_HEADER_SIZE,
    MAX_RAW_SIZE,
    TAGS,
    EntryHeader,
    Tag,
    implausible,
    is_hex,
    parse_file_header,
    unpack_payload,
)
from shaderkiln.system.files import open_to_read

WINDOW = 1 << 20
"""Bytes read at once: large enough that a system call costs nothing, small enough for the processor's cache."""
_FIRST_STEP = 1 << 12
"""Bytes read at first behind a damaged place, because the next may be near: more would be read many times."""
MAX_DAMAGE = 10_000
"""Damaged places that are kept by name; a file with more is garbage, and the last one then stands for the rest."""

_CANDIDATE = re.compile(b"0" * 23 + rb"[0-9a][0-9a-f]{16}.{4}[\x01\x02]\0\0\0", re.DOTALL)
"""The first 48 bytes of an entry header with a known tag and known flags."""
_CANDIDATE_SIZE = 48
_BAD_CHECKSUM = "payload does not match its checksum"


class Damage(Struct, frozen=True):
    """A part of an archive that is no good entry. ``tag`` and ``hash`` are given where a header names the entry."""

    offset: int
    length: int
    reason: str
    tag: Tag | None = None
    hash: int | None = None

    def __str__(self) -> str:
        name = "" if self.tag is None or self.hash is None else f" ({self.tag.name.lower()} {self.hash:016x})"
        return f"{self.length} bytes at {self.offset}{name}: {self.reason}"


class Batch(Struct):
    """Neighbouring good entries. ``offsets`` and ``ends`` count from ``base``; ``view`` holds the bytes from ``base`` on.

    ``view`` is valid until the next batch is asked for. It is empty for an entry that is larger than the window, and ``ends``
    is empty unless the scan verifies. ``retracted`` is the offset in the file of an earlier entry that proved bad, or -1.
    """

    base: int
    offsets: list[int]
    ends: list[int]
    tags: bytearray
    hashes: array[int]
    view: memoryview
    retracted: int = -1


def open_archive(path: Path) -> tuple[int, os.stat_result, int]:
    """Open an archive for reading: its descriptor, its status, and the version of the format.

    Raises NotFoundError, AccessDeniedError, or DamagedInputError if it is no archive of a readable version.
    """
    try:
        descriptor = open_to_read(path)
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file") from None
    except OSError as error:
        raise AccessDeniedError(f"{path}: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if not S_ISREG(status.st_mode):
            raise DamagedInputError("not a regular file")
        version = parse_file_header(os.pread(descriptor, FILE_HEADER_SIZE, 0))
    except DamagedInputError as error:
        os.close(descriptor)
        raise DamagedInputError(f"{path}: {error}") from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status, version


class Scanner:
    """Reads entries from ``start`` to ``size`` of an open archive.

    Where a header makes no sense, the scan goes on at the next place that has a plausible header and a payload that proves
    good; the entry that led to such a place is taken back if its payload is bad. With ``verify`` every payload is checked
    (checksum; where none is stored, by inflating) and with ``inflate`` every payload is inflated too, which also proves its
    raw size. After the last batch ``damage`` lists the rest of the file, by offset.
    """

    def __init__(
        self,
        descriptor: int,
        size: int,
        *,
        start: int = FILE_HEADER_SIZE,
        verify: bool = False,
        inflate: bool = False,
        window: int = WINDOW,
    ) -> None:
        self.descriptor = descriptor
        self.size = size
        self.start = start
        self.position = start
        self.verify = verify or inflate
        self.inflate = inflate
        self.damage: list[Damage] = []
        self.damage_count = 0
        self.end = start
        """Where the last good entry ends."""
        self._buffer = bytearray(min(window, max(size - start, ENTRY_HEADER_SIZE)))
        # What false starts may cost while searching: a file made to have many of them must not take quadratic time.
        self._budget = 8 * size + (64 << 20)

    def batches(self) -> Iterator[Batch]:
        """Every good entry in file order."""
        buffer, size, verify, inflate = self._buffer, self.size, self.verify, self.inflate
        whole = memoryview(buffer)
        unpack, find_tag, crc32, header_size = ENTRY.unpack_from, _TAG_NUMBERS.get, zlib.crc32, ENTRY_HEADER_SIZE
        base = self.start
        reach = len(buffer)
        last = -1  # absolute offset of the entry before ``base``, unless it is known to be good
        while base < size:
            self.position = base
            length = self._fill(base, reach)
            reach = min(reach * 4, len(buffer))
            offsets: list[int] = []
            ends: list[int] = []
            tags = bytearray()
            texts: list[bytes] = []
            add_offset, add_end, add_tag, add_text = offsets.append, ends.append, tags.append, texts.append
            at = 0
            limit = length - header_size
            room = size - base
            trouble = ""
            bad_payload = False
            large: EntryHeader | None = None
            while at <= limit:
                tag_text, text, stored, flags, crc, raw = unpack(buffer, at)
                tag = find_tag(tag_text)
                end = at + header_size + stored
                if tag is None or end > room or not (flags == 2 and stored < raw <= MAX_RAW_SIZE and raw < stored << 10):
                    trouble = implausible(tag_text, text if tag is None else b"", stored, flags, raw)
                    if not trouble and end > room:
                        trouble = "payload reaches beyond the end of the file"
                    if trouble:
                        break
                    assert tag is not None
                if verify:
                    if end > length:
                        if not at and end > len(buffer):
                            large = EntryHeader(Tag(tag), 0, stored, flags, crc, raw)
                        reach = max(reach, min(end - at, len(buffer)))
                        break
                    if crc and not inflate:
                        if crc32(whole[at + header_size : end]) != crc:
                            trouble, bad_payload = _BAD_CHECKSUM, True
                            break
                    else:
                        trouble = _fault(whole[at + header_size : end], flags, crc, raw)
                        if trouble:
                            bad_payload = True
                            break
                    add_end(end)
                add_offset(at)
                add_tag(tag)
                add_text(text)
                at = end
            else:
                if room - at < header_size and at < room:
                    trouble = "entry header is cut off"
                elif limit < 0:
                    trouble = "file became shorter while it was read"
                    size = self.size = base + length
            view = whole[:length]
            if large:
                trouble = self._large_fault(base, large)
                bad_payload = bool(trouble)
                if not trouble:
                    at = header_size + large.stored_size
                    offsets, ends, tags, texts = [0], [at], bytearray((large.tag,)), [bytes(buffer[24:40])]
                    view = whole[:0]
            if offsets:
                last = base + offsets[-1]
                self.end = base + at
                yield self._batch(base, offsets, ends, tags, texts, view)
            position = base + at
            if not trouble:
                base = position
                continue
            reach = min(_FIRST_STEP, len(buffer))
            if bad_payload:
                header = _header(buffer, at)
                if header.crc and trouble != _BAD_CHECKSUM:
                    found = position + header_size + header.stored_size
                else:
                    # It may be the size that is wrong, so that good entries lie in what seems to be the payload.
                    found = self._search(position + header_size, self._landing(position))
                self._note(position, found, trouble, header)
                base, last = found, -1
                continue
            if last >= 0 and not verify:
                previous = self._header_at(last)
                if previous is None or not self._intact(last, previous):
                    # The size of that entry is what led here, so that it cannot be trusted either.
                    empty = Batch(last, [], [], bytearray(), array("Q"), whole[:0], retracted=last)
                    if self.damage and self.damage[-1].offset == last:
                        self.damage.pop()
                        self.damage_count -= 1
                    self.end = last
                    yield empty
                    found = self._search(last + header_size, size)
                    self._note(last, found, "payload or size is damaged: " + trouble, previous)
                    base, last = found, -1
                    continue
            found = self._search(position + 1, self._landing(position))
            self._note(position, found, trouble)
            base, last = found, -1
        self.position = size
        self.damage.sort(key=lambda damage: damage.offset)

    def _fill(self, base: int, reach: int) -> int:
        """Read up to ``reach`` bytes at ``base`` into the window; how many there were, at most up to ``size``."""
        length = 0
        view = memoryview(self._buffer)[: min(reach, self.size - base)]
        while length < len(view):
            count = os.preadv(self.descriptor, [view[length:]], base + length)
            if not count:
                break
            length += count
        return length

    def _batch(
        self, base: int, offsets: list[int], ends: list[int], tags: bytearray, texts: list[bytes], view: memoryview
    ) -> Batch:
        joined = b"".join(texts)
        if not is_hex(joined):
            kept = []
            for index, text in enumerate(texts):
                if is_hex(text):
                    kept.append(index)
                else:
                    offset = base + offsets[index]
                    length = ENTRY_HEADER_SIZE + _stored_size(os.pread(self.descriptor, ENTRY_HEADER_SIZE, offset))
                    self._note(offset, offset + length, "hash is not 16 lowercase hex digits")
            offsets, texts = [offsets[index] for index in kept], [texts[index] for index in kept]
            tags = bytearray(tags[index] for index in kept)
            ends = [ends[index] for index in kept] if ends else ends
            joined = b"".join(texts)
        hashes = array("Q", unhexlify(joined))
        if sys.byteorder == "little":
            hashes.byteswap()
        return Batch(base, offsets, ends, tags, hashes, view)

    def _note(self, start: int, end: int, reason: str, header: EntryHeader | None = None) -> None:
        self.damage_count += 1
        if self._budget < 0:
            reason += "; too many false starts, so that good entries may be among it"
        if len(self.damage) < MAX_DAMAGE:
            tag, hash = (header.tag, header.hash) if header else (None, None)
            self.damage.append(Damage(start, end - start, reason, tag, hash))
        else:
            first = self.damage[-1]
            self.damage[-1] = Damage(first.offset, end - first.offset, "damaged in many more places")

    def _header_at(self, offset: int) -> EntryHeader | None:
        """The header at ``offset`` if it is plausible and its payload ends within the file."""
        try:
            header = EntryHeader.parse(os.pread(self.descriptor, ENTRY_HEADER_SIZE, offset))
        except DamagedInputError:
            return None
        return header if offset + ENTRY_HEADER_SIZE + header.stored_size <= self.size else None

    def _landing(self, offset: int) -> int:
        """Where the header at ``offset`` says its entry ends, if another one follows there; else the end of the file."""
        data = os.pread(self.descriptor, ENTRY_HEADER_SIZE, offset)
        if len(data) == ENTRY_HEADER_SIZE:
            end = offset + ENTRY_HEADER_SIZE + _stored_size(data)
            if end < self.size and self._header_at(end):
                return end
        return self.size

    def _search(self, start: int, stop: int) -> int:
        """The offset in ``start`` .. ``stop`` of the first entry that proves good; ``stop`` if there is none."""
        base, step = start, _FIRST_STEP
        while base < stop:
            data = os.pread(self.descriptor, min(step, stop - base + _CANDIDATE_SIZE), base)
            step = min(step * 4, WINDOW)
            if len(data) < _CANDIDATE_SIZE:
                break
            match = _CANDIDATE.search(data)
            while match:
                offset = base + match.start()
                if offset >= stop:
                    return stop
                header = self._header_at(offset)
                if header:
                    if self._intact(offset, header):
                        return offset
                    self._budget -= header.stored_size + (0 if header.crc else header.raw_size)
                    if self._budget < 0:
                        return stop
                match = _CANDIDATE.search(data, match.start() + 1)
            base += len(data) - _CANDIDATE_SIZE + 1
        return stop

    def _intact(self, offset: int, header: EntryHeader) -> bool:
        """Whether an entry proves good: by its checksum, else by inflating, else by its two sizes, which are the same."""
        if header.crc:
            return self._checksum(offset + ENTRY_HEADER_SIZE, header.stored_size) == header.crc
        return header.flags != DEFLATED or not self._large_fault(offset, header)

    def _checksum(self, offset: int, length: int) -> int:
        crc = 0
        while length:
            data = os.pread(self.descriptor, min(length, WINDOW), offset)
            if not data:
                return -1
            crc = zlib.crc32(data, crc)
            offset += len(data)
            length -= len(data)
        return crc

    def _large_fault(self, offset: int, header: EntryHeader) -> str:
        """As ``_fault``, without holding the payload in memory."""
        start = offset + ENTRY_HEADER_SIZE
        if header.crc and self._checksum(start, header.stored_size) != header.crc:
            return _BAD_CHECKSUM
        if header.flags != DEFLATED or (header.crc and not self.inflate):
            return ""
        stream, raw, left = zlib.decompressobj(), 0, header.stored_size
        try:
            while left and raw <= header.raw_size and not stream.eof:
                data = os.pread(self.descriptor, min(left, WINDOW), start)
                if not data:
                    break
                start += len(data)
                left -= len(data)
                while data and raw <= header.raw_size:
                    raw += len(stream.decompress(data, WINDOW))
                    data = stream.unconsumed_tail
            while not stream.eof and raw <= header.raw_size:
                more = stream.decompress(b"", WINDOW)
                if not more:
                    break
                raw += len(more)
        except zlib.error as error:
            return f"damaged zlib stream: {error}"
        if raw != header.raw_size or not stream.eof or left or stream.unused_data:
            return f"does not inflate to the stated {header.raw_size} bytes"
        return ""


_TAG_NUMBERS = {text: int(tag) for text, tag in TAGS.items()}


def _fault(stored: memoryview, flags: int, crc: int, raw_size: int) -> str:
    """Why a payload is bad, by checksum and by inflating; empty if it is good."""
    if crc and zlib.crc32(stored) != crc:
        return _BAD_CHECKSUM
    try:
        unpack_payload(stored, flags, raw_size)
    except DamagedInputError as error:
        return str(error)
    return ""


def _header(buffer: bytearray, at: int) -> EntryHeader:
    """A header whose tag and sizes are known to be plausible; a hash that is no number reads as 0."""
    tag_text, text, stored, flags, crc, raw = ENTRY.unpack_from(buffer, at)
    return EntryHeader(TAGS[tag_text], int(text, 16) if is_hex(text) else 0, stored, flags, crc, raw)


def _stored_size(header: bytes) -> int:
    return int.from_bytes(header[40:44], "little")
