"""What stands behind the header of VkPipelineCache data of Mesa's drivers, entry by entry.

Two layouts are read and written, all numbers little-endian:

``mesa``    Mesa's common code (RADV since 23.1, ANV, NVK, Turnip, Honeykrisp): a count (u32); each entry is its type (i32, -1:
            plain bytes), size of the key (u32), size of the data (u32), the key, zeros up to a multiple of 8, the data; each
            entry starts at a multiple of 4. Positions count from the start of the header.
``radv-22`` RADV up to Mesa 23.0, 64 bit: entries without a count, each the SHA-1 of the pipeline (20 bytes), the size of the
            binary of each of 14 stages (u32), the number of stack sizes (u32), 120 zero bytes that are pointers in the driver,
            the binaries, 8 bytes for each stack size, zeros up to a multiple of 8.

Neither has a checksum: what is altered inside a key or data does not show. ``seal`` therefore adds 32 bytes at the end, which
these drivers do not read: ``SKVC``, 1 and three zero bytes, the number of bytes before (u64), and their xxh3_128 (16 bytes).

The payload of every other driver is ``opaque``.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats import vendors
from shaderkiln.formats.vk_cache import HEADER_SIZE, CacheHeader, read_header

PLAIN = -1
"""Type of an entry that the driver keeps as bytes until it is asked for."""

_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<iII")
_STAGES = 14
_RADV_FIXED = struct.Struct(f"<20s{_STAGES}II120s")
_RADV_KEY = 20
_LIMIT = 1 << 32
_REMAINDER = 52
"""Bytes of an entry that was begun and not finished: its numbers, a key of 32 bytes, and zeros."""
_SEAL = struct.Struct("<8sQ16s")
_SEAL_NAME = b"SKVC\1\0\0\0"


class Layout(StrEnum):
    """How the payload is divided."""

    MESA = "mesa"
    RADV_22 = "radv-22"
    OPAQUE = "opaque"


class Entry(NamedTuple):
    """One object of a cache. In the layout ``radv-22`` the type is always 0, and the data all that follows the key."""

    type: int
    key: bytes
    data: bytes


class Fault(NamedTuple):
    """Where a payload stops to make sense, and why."""

    position: int
    reason: str
    truncated: bool
    """It would make sense if more bytes followed."""
    remainder: bool = False
    """All entries are there; behind them is the start of one for which the driver was given too small a buffer."""


class CacheData:
    """VkPipelineCache data, divided: 8 bytes of memory for each entry, which is cut out when it is asked for.

    ``fault`` is None if the data is whole. Its items are the whole entries before the fault; of an opaque payload, and of data
    that is not what was sealed, there are none.
    """

    def __init__(
        self, data: bytes, header: CacheHeader, layout: Layout, starts: array[int], end: int, fault: Fault | None
    ) -> None:
        self.data = data
        """Without the seal."""
        self.header = header
        self.layout = layout
        self.end = end
        """Position behind the last whole entry."""
        self.fault = fault
        self.sealed = False
        """It had a checksum, and has it still."""
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int) -> Entry:
        return _cut(self.data, self.layout, self._starts[index])

    def __iter__(self) -> Iterator[Entry]:
        return (_cut(self.data, self.layout, start) for start in self._starts)

    def ends(self) -> Iterator[int]:
        """For each entry the position behind its last byte."""
        return (_end(self.data, self.layout, start) for start in self._starts)

    @property
    def payload(self) -> memoryview:
        """Everything behind the header."""
        return memoryview(self.data)[HEADER_SIZE:]


def read(data: bytes, layout: Layout | None = None) -> CacheData:
    """Divide VkPipelineCache data; ``layout`` says how, default: found out from the vendor and from what fits.

    What is wrong behind the header is told in ``fault`` and is no error. Raises CacheRejectedError for a wrong header.
    """
    data = bytes(data)
    header = read_header(data)
    seal = data[-_SEAL.size :]
    if len(data) < HEADER_SIZE + _SEAL.size or not seal.startswith(_SEAL_NAME):
        return _divide(data, header, layout)
    _, length, checksum = _SEAL.unpack(seal)
    if length != len(data) - _SEAL.size:
        return _divide(data, header, layout)  # the end of an entry that looks like a seal, or a seal that is no more one
    data = data[: -_SEAL.size]
    if checksum != _checksum(data):
        fault = Fault(HEADER_SIZE, "it is not what was written: its checksum is another", False)
        return CacheData(data, header, layout or Layout.MESA, array("Q"), HEADER_SIZE, fault)
    divided = _divide(data, header, layout)
    divided.sealed = True
    return divided


def seal(data: bytes) -> bytes:
    """The data with a checksum behind it, by which ``read`` finds every change. Mesa's drivers take it as it is."""
    return data + _SEAL.pack(_SEAL_NAME, len(data), _checksum(data))


def _checksum(data: bytes) -> bytes:
    from xxhash import xxh3_128_digest

    return xxh3_128_digest(data)


def _divide(data: bytes, header: CacheHeader, layout: Layout | None) -> CacheData:
    if layout is Layout.OPAQUE:
        return _opaque(data, header)
    if layout is not None:
        return _read(data, header, layout)
    common = _read(data, header, Layout.MESA)
    if common.fault is None:
        return common
    if header.vendor_id == vendors.AMD:
        old = _read(data, header, Layout.RADV_22)
        if old.fault is None or len(old) > len(common):
            return old
        if not len(common) and not _begins_like_entry(data, HEADER_SIZE + _COUNT.size) and old.fault.truncated:
            return old
    return common if len(common) or _begins_like_entry(data, HEADER_SIZE + _COUNT.size) else _opaque(data, header)


def _begins_like_entry(data: bytes, start: int) -> bool:
    """Whether an entry of the common code may begin there: no other payload is known to have such small numbers."""
    if start + _ENTRY.size > len(data):
        return True
    kind, key_size, _ = _ENTRY.unpack_from(data, start)
    return bool(PLAIN <= kind < 64 and 0 < key_size <= 1024)


def write(header: CacheHeader, entries: Iterable[Entry], layout: Layout = Layout.MESA) -> bytes:
    """VkPipelineCache data with these entries, in this order.

    Raises InvalidArgumentError for an opaque layout, and for entries that the layout cannot hold.
    """
    out = bytearray(bytes(header))
    if layout is Layout.MESA:
        out += bytes(_COUNT.size)
        count = 0
        for type, key, data in entries:
            if not key or not data or len(key) >= _LIMIT or len(data) >= _LIMIT:
                raise InvalidArgumentError("an entry needs a key and data, each shorter than 4 GiB")
            out += bytes(-len(out) % 4)
            out += _ENTRY.pack(type, len(key), len(data))
            out += key
            out += bytes(-len(out) % 8)
            out += data
            count += 1
        if count >= _LIMIT:
            raise InvalidArgumentError(f"{count} entries are more than the layout can count")
        _COUNT.pack_into(out, HEADER_SIZE, count)
    elif layout is Layout.RADV_22:
        for _, key, data in entries:
            start = len(out)
            out += key
            out += data
            if len(key) != _RADV_KEY or _radv_size(out, start) != len(out) - start:
                raise InvalidArgumentError("not an entry of the layout radv-22")
    else:
        raise InvalidArgumentError("an opaque payload has no entries")
    return bytes(out)


def radv_shader_keys(entry: Entry) -> tuple[bytes, ...] | None:
    """The keys of the shader entries that a pipeline entry of RADV (Mesa 23.1 and later) refers to; None for any other entry.

    Such an entry is the number of shaders (u32), the size of what follows their keys (u32), the keys, 32 bytes each, and, for
    ray tracing, more.
    """
    data = entry.data
    if len(data) < 8:
        return None
    count, more = struct.unpack_from("<II", data)
    if len(data) != 8 + 32 * count + more:
        return None
    return tuple(data[8 + 32 * number : 40 + 32 * number] for number in range(count))


def _opaque(data: bytes, header: CacheHeader) -> CacheData:
    return CacheData(data, header, Layout.OPAQUE, array("Q"), HEADER_SIZE, None)


def _read(data: bytes, header: CacheHeader, layout: Layout) -> CacheData:
    starts = array("Q")
    end, fault = (_scan_mesa if layout is Layout.MESA else _scan_radv)(data, starts)
    return CacheData(data, header, layout, starts, end, fault)


def _scan_mesa(data: bytes, starts: array[int]) -> tuple[int, Fault | None]:
    size = len(data)
    if size == HEADER_SIZE:
        return size, None  # what a buffer of just that size gets
    position = HEADER_SIZE + _COUNT.size
    if size < position:
        return HEADER_SIZE, Fault(size, "ends in the number of entries", True)
    (count,) = _COUNT.unpack_from(data, HEADER_SIZE)
    for number in range(count):
        start = position + -position % 4
        if start + _ENTRY.size > size:
            return position, Fault(size, f"ends where entry {number} of {count} should begin", True)
        _, key_size, data_size = _ENTRY.unpack_from(data, start)
        if not key_size or not data_size:
            return position, Fault(start, f"entry {number} has no {'data' if key_size else 'key'}", False)
        body = start + _ENTRY.size + key_size
        end = body + -body % 8 + data_size
        if end > size:
            return position, Fault(start, f"entry {number} claims {end - start} bytes where {size - start} are left", True)
        if any(data[position:start]) or any(data[body : end - data_size]):
            return position, Fault(start, f"entry {number} has something else than zeros between its parts", False)
        starts.append(start)
        position = end
    if position != size:
        reason = f"{size - position} bytes follow the last of {count} entries"
        begun = size - position <= _REMAINDER and _begins_like_entry(data, position + -position % 4)
        return position, Fault(position, reason, False, begun)
    return position, None


def _scan_radv(data: bytes, starts: array[int]) -> tuple[int, Fault | None]:
    size, position, number = len(data), HEADER_SIZE, 0
    while position < size:
        if position + _RADV_FIXED.size > size:
            return position, Fault(position, f"ends in entry {number}", True)
        length = _radv_size(data, position)
        if not any(data[position + _RADV_KEY : position + 80]):
            return position, Fault(position, f"entry {number} has no binaries", False)
        if any(data[position + 80 : position + _RADV_FIXED.size]):
            return position, Fault(position, f"entry {number} has something else than zeros in place of pointers", False)
        if position + length > size:
            return position, Fault(position, f"entry {number} claims {length} bytes where {size - position} are left", True)
        starts.append(position)
        position += length
        number += 1
    return position, None


def _radv_size(data: bytes | bytearray, start: int) -> int:
    """Bytes of an entry in the layout ``radv-22``; 0 if not even its fixed part is there."""
    if start + _RADV_FIXED.size > len(data):
        return 0
    fields = _RADV_FIXED.unpack_from(data, start)
    length: int = _RADV_FIXED.size + sum(fields[1 : 1 + _STAGES]) + 8 * fields[1 + _STAGES]
    return length + -length % 8


def _end(data: bytes, layout: Layout, start: int) -> int:
    if layout is Layout.RADV_22:
        return start + _radv_size(data, start)
    _, key_size, data_size = _ENTRY.unpack_from(data, start)
    body: int = start + _ENTRY.size + key_size
    return body + -body % 8 + int(data_size)


def _cut(data: bytes, layout: Layout, start: int) -> Entry:
    end = _end(data, layout, start)
    if layout is Layout.RADV_22:
        return Entry(0, data[start : start + _RADV_KEY], data[start + _RADV_KEY : end])
    type, key_size, data_size = _ENTRY.unpack_from(data, start)
    key = start + _ENTRY.size
    return Entry(type, data[key : key + key_size], data[end - data_size : end])
