"""The generator of ``vulkan_registry``, and the list of what its input has and the package does not know."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from shaderkiln.vulkan_registry import structures

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools" / "registry"
COMMITTED = ROOT / "src" / "shaderkiln" / "vulkan_registry"
BY_HAND = {"__init__.py", "handles.py"}

EXTENSION_STRUCTURES = """
VkAttachmentSampleCountInfoAMD VkGraphicsPipelineShaderGroupsCreateInfoNV VkMemoryBarrierAccessFlags3KHR
VkMultiviewPerViewAttributesInfoNVX VkPipelineCoverageModulationStateCreateInfoNV VkPipelineCoverageReductionStateCreateInfoNV
VkPipelineCoverageToColorStateCreateInfoNV VkPipelineFragmentShadingRateEnumStateCreateInfoNV
VkPipelineRasterizationStateRasterizationOrderAMD VkPipelineRepresentativeFragmentTestStateCreateInfoNV
VkPipelineShaderStageModuleIdentifierCreateInfoEXT VkPipelineViewportCoarseSampleOrderStateCreateInfoNV
VkPipelineViewportExclusiveScissorStateCreateInfoNV VkPipelineViewportShadingRateImageStateCreateInfoNV
VkPipelineViewportSwizzleStateCreateInfoNV VkPipelineViewportWScalingStateCreateInfoNV VkSamplerBlockMatchWindowCreateInfoQCOM
VkSamplerCubicWeightsCreateInfoQCOM VkSamplerYcbcrConversionInfo VkSamplerYcbcrConversionYcbcrDegammaCreateInfoQCOM
VkSubpassShadingPipelineCreateInfoHUAWEI
"""
"""Chains that Fossilize does not hash, or does not record."""


@pytest.fixture(scope="module")
def tools() -> tuple[ModuleType, ModuleType]:
    """The modules ``generate`` and ``unknown``, which are scripts beside each other."""
    sys.path.insert(0, str(TOOLS))
    try:
        import generate
        import unknown
    finally:
        sys.path.remove(str(TOOLS))
    return generate, unknown


def test_the_generated_modules_are_what_the_generator_writes(tools: tuple[ModuleType, ModuleType], tmp_path: Path) -> None:
    generate, _ = tools
    said = generate.generate(*generate.read_inputs(generate.INPUTS / "vk.xml.xz", _grammar(generate)), tmp_path)
    assert f"header version {structures.HEADER_VERSION}:" in said
    written = {path.name: path.read_bytes() for path in tmp_path.glob("*.py")}
    assert set(written) == {path.name for path in COMMITTED.glob("*.py")} - BY_HAND
    for name, text in written.items():
        assert text == (COMMITTED / name).read_bytes(), name


def test_the_inputs_are_those_of_the_readme(tools: tuple[ModuleType, ModuleType]) -> None:
    import hashlib

    generate, _ = tools
    named = re.findall(r"\b[0-9a-f]{64}\b", (TOOLS / "README.md").read_text())
    inputs = (generate.INPUTS / "vk.xml.xz", _grammar(generate))
    assert [hashlib.sha256(generate.read(path)).hexdigest() for path in inputs] == named


def test_tables_written_by_hand_leave_out_only_what_is_known_to_be_left_out(tools: tuple[ModuleType, ModuleType]) -> None:
    generate, unknown = tools
    found = unknown.unknown(*generate.read_inputs(generate.INPUTS / "vk.xml.xz", _grammar(generate)))
    lacking = {place: set(names) for place, names in found.items() if names}
    place = "descriptions/requirements_state: "
    assert lacking == {
        "tools/registry/generate.py: types whose members it cannot express": {"VkClearColorValue"},
        "formats/fossilize_hash: structures in chains that have no hash": set(EXTENSION_STRUCTURES.split()),
        "formats/vendors: VkVendorId": {
            f"VK_VENDOR_ID_{name}" for name in ("CODEPLAY", "KAZAN", "KHRONOS", "MOBILEYE", "POCL", "VIV", "VSI")
        },
        f"{place}dynamic states of extensions without a feature": {
            f"VK_DYNAMIC_STATE_{name}"
            for name in (
                "DISCARD_RECTANGLE_ENABLE_EXT",
                "DISCARD_RECTANGLE_EXT",
                "DISCARD_RECTANGLE_MODE_EXT",
                "SAMPLE_LOCATIONS_EXT",
                "VIEWPORT_COARSE_SAMPLE_ORDER_NV",
                "VIEWPORT_W_SCALING_NV",
            )
        },
        f"{place}create flags of pipelines without a feature": {
            f"VK_PIPELINE_CREATE_2_{name}"
            for name in (
                "ALLOW_DERIVATIVES_BIT",
                "CAPTURE_DATA_BIT_KHR",
                "DEFER_COMPILE_BIT_NV",
                "DERIVATIVE_BIT",
                "DISABLE_OPTIMIZATION_BIT",
                "DISALLOW_OPACITY_MICROMAP_BIT_ARM",
                "DISPATCH_BASE_BIT",
                "ENABLE_LEGACY_DITHERING_BIT_EXT",
                "EXECUTION_GRAPH_BIT_AMDX",
                "LIBRARY_BIT_KHR",
                "LINK_TIME_OPTIMIZATION_BIT_EXT",
                "RAY_TRACING_ALLOW_SPHERES_AND_LINEAR_SWEPT_SPHERES_BIT_NV",
                "RAY_TRACING_DISPLACEMENT_MICROMAP_BIT_NV",
                "RAY_TRACING_NO_NULL_ANY_HIT_SHADERS_BIT_KHR",
                "RAY_TRACING_NO_NULL_CLOSEST_HIT_SHADERS_BIT_KHR",
                "RAY_TRACING_NO_NULL_INTERSECTION_SHADERS_BIT_KHR",
                "RAY_TRACING_NO_NULL_MISS_SHADERS_BIT_KHR",
                "RENDERING_FRAGMENT_DENSITY_MAP_ATTACHMENT_BIT_EXT",
                "RENDERING_FRAGMENT_SHADING_RATE_ATTACHMENT_BIT_KHR",
                "VIEW_INDEX_FROM_DEVICE_INDEX_BIT",
            )
        },
        f"{place}descriptor types without a feature for update after bind": {
            f"VK_DESCRIPTOR_TYPE_{name}"
            for name in (
                "ACCELERATION_STRUCTURE_NV",
                "BLOCK_MATCH_IMAGE_QCOM",
                "INPUT_ATTACHMENT",
                "MUTABLE_EXT",
                "PARTITIONED_ACCELERATION_STRUCTURE_NV",
                "SAMPLE_WEIGHT_IMAGE_QCOM",
                "STORAGE_BUFFER_DYNAMIC",
                "UNIFORM_BUFFER_DYNAMIC",
            )
        },
        f"{place}descriptor types without a limit for each stage": {
            f"VK_DESCRIPTOR_TYPE_{name}"
            for name in (
                "ACCELERATION_STRUCTURE_KHR",
                "ACCELERATION_STRUCTURE_NV",
                "BLOCK_MATCH_IMAGE_QCOM",
                "INLINE_UNIFORM_BLOCK",
                "MUTABLE_EXT",
                "PARTITIONED_ACCELERATION_STRUCTURE_NV",
                "SAMPLE_WEIGHT_IMAGE_QCOM",
            )
        },
        "descriptions/requirements_spirv: stages": {
            f"VK_SHADER_STAGE_{name}_BIT_HUAWEI" for name in ("CLUSTER_CULLING", "SUBPASS_SHADING")
        },
        "descriptions/requirements_spirv: execution models": {"Kernel"},
    }


def test_what_another_registry_adds_is_listed(tools: tuple[ModuleType, ModuleType]) -> None:
    generate, unknown = tools
    registry, grammar = generate.read_inputs(generate.INPUTS / "vk.xml.xz", _grammar(generate))
    before = unknown.unknown(registry, grammar)
    registry.enums["VkDynamicState"]["VK_DYNAMIC_STATE_WEATHER_EXT"] = 1000999000
    registry.enum_origin["VkDynamicState"]["VK_DYNAMIC_STATE_WEATHER_EXT"].extensions.add("VK_EXT_weather")
    registry.enums["VkShaderStageFlagBits"]["VK_SHADER_STAGE_WEATHER_BIT_EXT"] = 1 << 30
    registry.enums["VkStructureType"]["VK_STRUCTURE_TYPE_SAMPLER_WEATHER_EXT"] = 1000999001
    registry.categories["VkSamplerWeatherEXT"] = "struct"
    registry.origin["VkSamplerWeatherEXT"].extensions.add("VK_EXT_weather")
    registry.structures["VkSamplerWeatherEXT"] = generate.Structure(
        "VkSamplerWeatherEXT", "struct", [], ("VkSamplerCreateInfo",), "VK_STRUCTURE_TYPE_SAMPLER_WEATHER_EXT"
    )
    next(k for k in grammar["operand_kinds"] if k["kind"] == "Capability")["enumerants"].append(
        {"enumerant": "WeatherEXT", "value": 60000}
    )
    added = {
        place: set(names) - set(before[place])
        for place, names in unknown.unknown(registry, grammar).items()
        if set(names) - set(before[place])
    }
    assert added == {
        "formats/fossilize_hash: structures in chains that have no hash": {"VkSamplerWeatherEXT"},
        "vulkan_registry: structures of descriptions (run generate.py)": {"VkSamplerWeatherEXT"},
        "vulkan_registry: VkDynamicState (run generate.py)": {"VK_DYNAMIC_STATE_WEATHER_EXT"},
        "vulkan_registry: VkStructureType (run generate.py)": {"VK_STRUCTURE_TYPE_SAMPLER_WEATHER_EXT"},
        "vulkan_registry: VkShaderStageFlagBits (run generate.py)": {"VK_SHADER_STAGE_WEATHER_BIT_EXT"},
        "vulkan_registry: SPIR-V capabilities (run generate.py)": {"WeatherEXT"},
        "descriptions/requirements_state: dynamic states of extensions without a feature": {"VK_DYNAMIC_STATE_WEATHER_EXT"},
        "descriptions/requirements_spirv: stages": {"VK_SHADER_STAGE_WEATHER_BIT_EXT"},
    }


def _grammar(generate: ModuleType) -> Path:
    path: Path = generate.INPUTS / "spirv.core.grammar.json.xz"
    return path
