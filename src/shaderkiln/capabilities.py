"""What one device of one driver build can do, as plain data; filled by a driver worker, read by the requirement check."""

from __future__ import annotations

from msgspec import Struct


class Capabilities(Struct, frozen=True):
    """Answers of ``vkGetPhysicalDeviceProperties2`` and ``vkGetPhysicalDeviceFeatures2``, and what identifies the device."""

    api_version: int
    """VkPhysicalDeviceProperties::apiVersion."""
    vendor_id: int
    device_id: int
    device_name: str
    device_type: int
    driver_version: int
    driver_id: int
    driver_name: str
    driver_info: str
    cache_uuid: bytes
    extensions: frozenset[str]
    features: frozenset[str]
    """``VkStructure.member`` of every feature that the device reports, for every structure that it knows."""
    properties: dict[str, int | float]
    """``VkStructure.member`` of every scalar property, for example ``VkPhysicalDeviceLimits.maxComputeSharedMemorySize``."""
    object_code_form: str
    """``pipeline-binary``, ``pipeline-cache``, or ``none`` where a driver gives nothing that can be kept."""
