"""What must be true of data before a driver gets it as the initial data of a pipeline cache (VC-02)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shaderkiln.capabilities import Capabilities
from shaderkiln.formats import mesa_cache, vendors, vk_cache
from shaderkiln.formats.mesa_cache import CacheData, Layout

_SHA1_SIZE = 20
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
    """The driver refused the data, or its process ended when it used them."""


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
    # Mesa leaves the beginning of an entry behind the last whole one where a buffer was too small.
    if fault is not None and (divided.sealed or not fault.remainder):
        return _rejected(Reason.DAMAGED, f"{fault.reason} (byte {fault.position})")
    if not divided.sealed:
        if require_checksum:
            return _rejected(Reason.UNSEALED, "it has no checksum")
        if layout is Layout.OPAQUE and _had_seal(divided.data):
            return _rejected(Reason.DAMAGED, "what is left of its checksum is not whole")
        if (number := _inconsistent_entry(divided)) is not None:
            return _rejected(Reason.DAMAGED, f"entry {number} is not consistent in itself")
    return divided.data if fault is None else divided.data[: divided.end], None


def _inconsistent_entry(divided: CacheData) -> int | None:
    """The number of an entry that says more of itself than it is: RADV believes how many shaders a pipeline has."""
    if divided.layout is Layout.MESA and divided.header.vendor_id == vendors.AMD:
        for number, entry in enumerate(divided):
            # Pipelines have these keys in Mesa 23.1 to 25.0; later ones cannot be told from shaders.
            if entry.type == mesa_cache.PLAIN and len(entry.key) == _SHA1_SIZE and mesa_cache.radv_shader_keys(entry) is None:
                return number
    return None


def _had_seal(data: bytes) -> bool:
    """Whether the data ends in a part of a checksum, or in one that has been altered."""
    if any(data.endswith(_SEAL_NAME[:length]) for length in range(3, 9)) or _SEAL_NAME in data[-_SEAL_SIZE:]:
        return True
    body = data[:-_SEAL_SIZE]
    return mesa_cache.seal(body)[len(body) + 8 : len(body) + 16] == data[len(body) + 8 : len(body) + 16]


def _rejected(reason: Reason, message: str) -> tuple[bytes, Rejection]:
    return b"", Rejection(reason, message)
