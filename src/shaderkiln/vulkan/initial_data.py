"""What must be true of data before a driver gets it as the initial data of a pipeline cache (VC-02)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum

from shaderkiln.capabilities import Capabilities
from shaderkiln.formats import mesa_cache, vk_cache
from shaderkiln.formats.mesa_cache import CacheData, Layout
from shaderkiln.formats.vk_cache import HEADER_SIZE

_BEGUN = struct.Struct("<iII")
_LARGEST_TYPE = 63
_LONGEST_KEY = 64
_SEAL_SIZE = len(mesa_cache.seal(b""))
_SEAL_NAME = mesa_cache.seal(b"")[:8]


class Reason(StrEnum):
    """Why initial data was not taken."""

    HEADER = "header"
    """No header, or not one of version one with 32 bytes."""
    DEVICE = "device"
    """Vendor, device or cache UUID are another device's or driver's."""
    DAMAGED = "damaged"
    """The payload is truncated, or not what was written."""
    UNSEALED = "unsealed"
    """It has no checksum, and one was required."""
    DRIVER = "driver"
    """The driver's process ended when it used the data."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a cache began empty, or was emptied, though initial data was given for it."""

    reason: Reason
    message: str

    def __str__(self) -> str:
        return self.message


def check(
    data: bytes, capabilities: Capabilities, layout: Layout, require_checksum: bool = False
) -> tuple[bytes, Rejection | None]:
    """What a driver may get of initial data for a device whose caches have that layout: all but the checksum, or nothing and the
    reason. ``require_checksum``: nothing of data that has none."""
    try:
        divided = mesa_cache.read(data, layout)
    except vk_cache.CacheRejectedError as error:
        return _rejected(Reason.HEADER, str(error))
    other = vk_cache.fits(divided.header, capabilities.vendor_id, capabilities.device_id, capabilities.cache_uuid)
    if other is not None:
        return _rejected(Reason.DEVICE, other)
    fault = divided.fault
    if fault is not None and (divided.sealed or not _ends_in_begun_entry(divided)):
        return _rejected(Reason.DAMAGED, f"{fault.reason} (byte {fault.position})")
    if not divided.sealed:
        if require_checksum:
            return _rejected(Reason.UNSEALED, "it has no checksum")
        if layout is Layout.OPAQUE and _had_seal(divided.data):
            return _rejected(Reason.DAMAGED, "what is left of its checksum is not whole")
    return divided.data if fault is None else divided.data[: divided.end], None


def _ends_in_begun_entry(divided: CacheData) -> bool:
    """Whether all entries are whole and an entry follows that was begun only: Mesa leaves its first fields, and perhaps its key,
    behind the last whole entry where a buffer was too small."""
    data, end = divided.data, divided.end
    if divided.layout is not Layout.MESA or len(data) < HEADER_SIZE + 4:
        return False
    if int.from_bytes(data[HEADER_SIZE : HEADER_SIZE + 4], "little") != len(divided):
        return False
    padding = -end % 4
    if any(data[end : end + padding]):
        return False
    begun = data[end + padding : end + padding + _BEGUN.size + _LONGEST_KEY + 8]
    kind, key_size, _ = _BEGUN.unpack(begun[: _BEGUN.size].ljust(_BEGUN.size, b"\1"))
    plausible = -1 <= kind <= _LARGEST_TYPE or len(begun) < 4
    if len(begun) >= 8:
        plausible = plausible and 0 < key_size <= _LONGEST_KEY
    longest = _BEGUN.size + min(key_size, _LONGEST_KEY) + 7 if len(begun) > _BEGUN.size else _BEGUN.size
    return plausible and len(data) - end - padding <= longest and (len(begun) % 4 == 0 or len(begun) == _BEGUN.size + key_size)


def _had_seal(data: bytes) -> bool:
    """Whether the data ends in a part of a checksum, or in one that has been altered."""
    if any(data.endswith(_SEAL_NAME[:length]) for length in range(3, 9)) or _SEAL_NAME in data[-_SEAL_SIZE:]:
        return True
    body = data[:-_SEAL_SIZE]
    return mesa_cache.seal(body)[len(body) + 8 : len(body) + 16] == data[len(body) + 8 : len(body) + 16]


def _rejected(reason: Reason, message: str) -> tuple[bytes, Rejection]:
    return b"", Rejection(reason, message)
