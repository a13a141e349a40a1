"""Vendors of GPUs and their Vulkan drivers, by the numbers that devices, cache data and identities have of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from shaderkiln.vulkan_registry import constants as c

AMD: Final = 0x1002
NVIDIA: Final = 0x10DE
MESA: Final = 0x10005
"""VK_VENDOR_ID_MESA: drivers without a GPU of a vendor of their own."""


class Vendor(NamedTuple):
    name: str
    """First part of the names of its adapter families."""
    mesa_driver: str = "Mesa"
    """Mesa's driver that writes pipeline cache data under that vendor."""


VENDORS: Final = {
    AMD: Vendor("amd", "RADV"),
    0x1010: Vendor("imagination"),
    0x106B: Vendor("apple", "Honeykrisp"),
    NVIDIA: Vendor("nvidia", "NVK"),
    0x13B5: Vendor("arm"),
    0x144D: Vendor("samsung"),
    0x14E4: Vendor("broadcom"),
    0x5143: Vendor("qualcomm", "Turnip"),
    0x8086: Vendor("intel", "ANV"),
    MESA: Vendor("mesa", "Honeykrisp or lavapipe"),
}
"""PCI vendor IDs and VkVendorId values."""

RADV: Final = c.VK_DRIVER_ID_MESA_RADV
MESA_DRIVERS: Final = frozenset(
    value for value, name in c.NAMES["VkDriverId"].items() if "_MESA_" in name or name.endswith("_MESA")
)
"""VkDriverId of Mesa's drivers, whose pipeline cache data have the layout of Mesa's common code."""
NO_VULKAN_DRIVER: Final = 64
"""VkDriverId is below; a compiler that is no Vulkan driver calls itself something else, and may want its shaders."""


def version_parts(driver_id: int, version: int) -> tuple[int, int, int, int]:
    """The parts of VkPhysicalDeviceProperties::driverVersion; NVIDIA's own driver packs it as 10, 8, 8 and 6 bits."""
    if driver_id == c.VK_DRIVER_ID_NVIDIA_PROPRIETARY:
        return version >> 22, version >> 14 & 0xFF, version >> 6 & 0xFF, version & 0x3F
    return version >> 22, version >> 12 & 0x3FF, version & 0xFFF, 0
