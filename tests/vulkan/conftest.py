"""Fixtures of the tests of ``shaderkiln.vulkan``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from vulkan_support import HERE, create_all, opened

from shaderkiln.vulkan import VulkanDevice


@pytest.fixture(scope="module", params=HERE, ids="-".join)
def device(request: pytest.FixtureRequest) -> Iterator[VulkanDevice]:
    """One device of each driver that is installed."""
    with opened(*request.param, threads=4) as device:
        yield device


@pytest.fixture(scope="module")
def blob(device: VulkanDevice) -> bytes:
    """All data of a cache of that device with the three small pipelines."""
    cache = device.create_pipeline_cache()
    assert all(create_all(device, cache))
    return cache.read()
