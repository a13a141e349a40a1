"""Which extensions can be enabled: the registry's notation of what an extension depends on."""

from __future__ import annotations

import re

import pytest

from shaderkiln.drivers.physical_device import result_name, satisfied
from shaderkiln.vulkan_registry._device import EXTENSIONS, FEATURES

VERSION_1_1 = 0x401000
VERSION_1_3 = 0x403000


@pytest.mark.parametrize(
    ("depends", "enabled", "version", "expected"),
    [
        ("", (), VERSION_1_1, True),
        ("VK_A", (), VERSION_1_3, False),
        ("VK_A", ("VK_A",), VERSION_1_1, True),
        ("VK_A+VK_B", ("VK_A",), VERSION_1_1, False),
        ("VK_A,VK_B", ("VK_B",), VERSION_1_1, True),
        ("VK_VERSION_1_3", (), VERSION_1_1, False),
        ("VK_VERSION_1_3", (), VERSION_1_3, True),
        ("(VK_A,VK_VERSION_1_3)+VK_B", ("VK_B",), VERSION_1_3, True),
        ("(VK_A,VK_VERSION_1_3)+VK_B", ("VK_B",), VERSION_1_1, False),
        ("((VK_A+VK_B),VK_C)+VK_D", ("VK_C", "VK_D"), VERSION_1_1, True),
        ("((VK_A+VK_B),VK_C)+VK_D", ("VK_A", "VK_D"), VERSION_1_1, False),
        ("VK_A+VkPhysicalDeviceFeatures::geometryShader", ("VK_A",), VERSION_1_1, True),
    ],
)
def test_dependencies(depends: str, enabled: tuple[str, ...], version: int, expected: bool) -> None:
    assert satisfied(depends, enabled, version) is expected


def test_every_dependency_in_the_registry_can_be_read() -> None:
    assert len(EXTENSIONS) > 250
    for depends in EXTENSIONS.values():
        names = set(re.findall(r"VK_\w+", depends))
        assert satisfied(depends, names, 0x404000)
    # Windows are of no use here: the instance has no surface extension.
    assert not satisfied(EXTENSIONS["VK_KHR_swapchain"], set(EXTENSIONS), 0x404000)
    assert "VK_KHR_pipeline_binary" in EXTENSIONS
    assert not any(name.startswith(("VK_ANDROID", "VK_AMDX")) for name in EXTENSIONS)


def test_every_feature_of_a_core_version_is_in_its_structure() -> None:
    members = {m for minor in (1, 2, 3, 4) for m in FEATURES[f"VkPhysicalDeviceVulkan1{minor}Features"][3]}
    assert {"multiview", "bufferDeviceAddress", "dynamicRendering", "pipelineCreationCacheControl", "maintenance5"} <= members


def test_results_have_names() -> None:
    assert result_name(0) == "VK_SUCCESS"
    assert result_name(1000297000) == "VK_PIPELINE_COMPILE_REQUIRED"
    assert result_name(-13) == "VK_ERROR_UNKNOWN"
    assert result_name(-123456) == "VkResult(-123456)"
