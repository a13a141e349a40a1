"""Devices of whatever driver packages this user has, for the tests of ``shaderkiln.vulkan``, and the small pipelines of the tests
of the driver worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "drivers"))

from driver_support import OBJECTS, compute_pipeline, graphics_pipeline, targets_of

import shaderkiln.vulkan as vk
from shaderkiln.compilers.plugin import FamilyNotFoundError
from shaderkiln.vulkan import Pipeline, PipelineCache, VulkanDevice
from shaderkiln.vulkan_registry import constants

CAPTURES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "captures"
FORBIDDEN = constants.VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT

DEVICES = (
    ("amd-navi31", "mesa-backports"),
    ("amd-navi21", "mesa-stable"),
    ("nvidia-nvk-172", "mesa-backports"),
    ("qualcomm-a740", "mesa-backports"),
    ("apple-g13g", "mesa-backports"),
)
"""Drivers whose caches differ. Debian 12 has the AMD ones only."""

_targets = {(target.family, target.package) for target in targets_of("")}
HERE = tuple(device for device in DEVICES if device in _targets) or DEVICES[:1]
"""Those that the installed driver packages have; the first one where they have none, for its test to say so."""


@contextmanager
def opened(family: str, package: str, **options: object) -> Iterator[VulkanDevice]:
    """A device; skips the test where the driver package is not installed or lacks the family."""
    try:
        device = vk.open_device(family, package=package, **options)  # type: ignore[arg-type]
    except FamilyNotFoundError:
        pytest.skip(f"driver package {package} (kiln drivers add {package}) has no {family} here")
    with device:
        yield device


def device_of(device: VulkanDevice) -> tuple[str, str]:
    """Family and driver package of one of ``HERE``."""
    return next(found for found in DEVICES if found[0] == device.family)


def create_all(device: VulkanDevice, cache: PipelineCache | None, *, forbidden: bool = False) -> tuple[Pipeline, ...]:
    """Two compute pipelines that differ in a constant, and a graphics pipeline with two stages."""
    flags = FORBIDDEN if forbidden else 0
    compute = [compute_pipeline(3, flags=flags), compute_pipeline(4, flags=flags)]
    return device.create_compute_pipelines(cache, compute, objects=OBJECTS) + device.create_graphics_pipelines(
        cache, [graphics_pipeline(flags=flags)], objects=OBJECTS
    )
