"""The table of vendors and drivers."""

from __future__ import annotations

import pytest

from shaderkiln.drivers.targets import KNOWN_FAMILIES
from shaderkiln.formats.vendors import MESA_DRIVERS, NO_VULKAN_DRIVER, RADV, VENDORS, version_parts
from shaderkiln.vulkan_registry.constants import NAMES


@pytest.mark.parametrize(
    ("driver", "version", "parts"),
    [
        (4, 560 << 22 | 35 << 14 | 3 << 6 | 1, (560, 35, 3, 1)),
        (3, 25 << 22 | 2 << 12 | 7, (25, 2, 7, 0)),
    ],
)
def test_versions_are_packed_in_the_way_of_their_driver(driver: int, version: int, parts: tuple[int, ...]) -> None:
    assert version_parts(driver, version) == parts


def test_drivers_of_mesa_are_those_that_the_registry_calls_so() -> None:
    # RADV, ANV, lavapipe, Turnip, V3DV, PanVK, Venus, Dozen, NVK, PowerVR, Honeykrisp
    assert {3, 6, 13, 18, 19, 20, 22, 23, 24, 25, 26} == MESA_DRIVERS
    assert RADV in MESA_DRIVERS
    assert max(NAMES["VkDriverId"]) < NO_VULKAN_DRIVER


def test_every_family_begins_with_the_name_of_a_vendor() -> None:
    names = {vendor.name for vendor in VENDORS.values()} | {"software"}
    assert {family.split("-")[0] for family in KNOWN_FAMILIES} <= names
