"""The header of VkPipelineCache data, version one (Vulkan specification, "Pipeline Cache Header"; VC-09)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from shaderkiln.errors import DamagedInputError

HEADER_SIZE = 32
HEADER_VERSION = 1
UUID_SIZE = 16
_HEADER = struct.Struct("<IIII16s")


class CacheRejectedError(DamagedInputError):
    """Data that is no VkPipelineCache data of header version one; ``position`` is the byte at which that shows."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"no pipeline cache data: {reason} (byte {position})")
        self.reason = reason
        self.position = position


@dataclass(frozen=True, slots=True)
class CacheHeader:
    """Which device and driver build the data that follows belongs to."""

    vendor_id: int
    device_id: int
    uuid: bytes
    """VkPhysicalDeviceProperties::pipelineCacheUUID, 16 bytes."""

    def __bytes__(self) -> bytes:
        return _HEADER.pack(HEADER_SIZE, HEADER_VERSION, self.vendor_id, self.device_id, self.uuid)


def read_header(data: bytes | memoryview) -> CacheHeader:
    """The header at the start of ``data``.

    Raises CacheRejectedError: too short, another header length, or another header version (VC-02).
    """
    if len(data) < HEADER_SIZE:
        raise CacheRejectedError(f"{len(data)} bytes, and a header has {HEADER_SIZE}", len(data))
    length, version, vendor_id, device_id, uuid = _HEADER.unpack_from(data)
    if length != HEADER_SIZE:
        raise CacheRejectedError(f"a header of {length} bytes, not {HEADER_SIZE}", 0)
    if version != HEADER_VERSION:
        raise CacheRejectedError(f"header version {version}, not {HEADER_VERSION}", 4)
    return CacheHeader(vendor_id, device_id, uuid)


def fits(header: CacheHeader, vendor_id: int, device_id: int, uuid: bytes) -> str | None:
    """Why the data does not belong to that device, or None if it does (VC-02).

    That it does is no proof: some drivers give several GPU families one UUID, and some every GPU one device ID.
    """
    if header.vendor_id != vendor_id:
        return f"made for vendor {header.vendor_id:#06x}, not {vendor_id:#06x}"
    if header.device_id != device_id:
        return f"made for device {header.device_id:#06x}, not {device_id:#06x}"
    if header.uuid != uuid:
        return f"made by another driver build: cache UUID {header.uuid.hex()}, not {uuid.hex()}"
    return None
