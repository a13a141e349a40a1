"""The requirement check: each rule with and without what it needs, on minimal descriptions."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaderkiln.capabilities import Capabilities
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.descriptions.requirements import RequirementChecker, check
from shaderkiln.descriptions.requirements_device import AdvertisedDevice
from shaderkiln.descriptions.requirements_state import DYNAMIC_FEATURES
from shaderkiln.errors import DamagedInputError
from shaderkiln.vulkan_registry import structures as vk
from shaderkiln.vulkan_registry._device import FEATURES
from shaderkiln.vulkan_registry.handles import UnknownStructure

sys.path.append(str(Path(__file__).resolve().parents[1] / "formats"))
from spirv_assembly import compute, op

API_1_1, API_1_2, API_1_3, API_1_4 = (1 << 22 | minor << 12 for minor in (1, 2, 3, 4))
MODULE, LAYOUT, SET, SAMPLER, PASS = (
    vk.ShaderModuleHandle(1),
    vk.PipelineLayoutHandle(2),
    vk.DescriptorSetLayoutHandle(3),
    vk.SamplerHandle(4),
    vk.RenderPassHandle(5),
)
F, F11, F12, F13, F14 = (f"VkPhysicalDevice{n}Features." for n in ("", "Vulkan11", "Vulkan12", "Vulkan13", "Vulkan14"))
LIMITS = {
    "maxComputeWorkGroupInvocations": 256,
    "maxComputeWorkGroupSize[0]": 256,
    "maxComputeWorkGroupSize[1]": 256,
    "maxComputeWorkGroupSize[2]": 64,
    "maxComputeSharedMemorySize": 16384,
    "maxPushConstantsSize": 128,
    "maxBoundDescriptorSets": 4,
    "maxPerStageDescriptorSamplers": 16,
    "maxDescriptorSetSamplers": 96,
    "maxVertexInputAttributes": 16,
    "maxVertexInputBindings": 16,
    "maxVertexInputBindingStride": 2048,
    "maxVertexInputAttributeOffset": 2047,
    "maxColorAttachments": 4,
    "maxViewports": 16,
    "maxTessellationPatchSize": 32,
    "maxSamplerAnisotropy": 16.0,
    "maxSamplerLodBias": 4.0,
    "framebufferColorSampleCounts": 0b101,
    "framebufferDepthSampleCounts": 0b101,
    "framebufferStencilSampleCounts": 0b101,
    "framebufferNoAttachmentsSampleCounts": 0b101,
}


def device(
    version: int = API_1_3, *, features: Any = (), extensions: Any = (), properties: Any = (), **limits: int
) -> Capabilities:
    return Capabilities(
        api_version=version,
        vendor_id=1,
        device_id=2,
        device_name="test",
        device_type=0,
        driver_version=1,
        driver_id=0,
        driver_name="",
        driver_info="",
        cache_uuid=bytes(16),
        extensions=frozenset(extensions),
        features=frozenset(features),
        properties={f"VkPhysicalDeviceLimits.{k}": v for k, v in {**LIMITS, **limits}.items()} | dict(properties),
        object_code_form="pipeline-cache",
    )


def compute_pipeline(code: bytes, *, stage: Any = None, objects: Any = (), **fields: Any) -> PipelineDescription:
    stage = {"stage": 0x20, "module": MODULE, **(stage or {})}
    info = vk.ComputePipelineCreateInfo(stage=vk.PipelineShaderStageCreateInfo(**stage), **fields)
    return PipelineDescription("c", "compute", info, {MODULE: vk.ShaderModuleCreateInfo(code=code), **dict(objects)})


def graphics_pipeline(*, objects: Any = (), render_pass: Any = None, **fields: Any) -> PipelineDescription:
    render_pass = render_pass or vk.RenderPassCreateInfo(subpasses=(vk.SubpassDescription(),))
    stages = (vk.PipelineShaderStageCreateInfo(stage=1, module=MODULE),)
    vertex = vk.ShaderModuleCreateInfo(code=compute(model=0, local_size=()))
    info = vk.GraphicsPipelineCreateInfo(**{"stages": stages, "render_pass": PASS, **fields})
    return PipelineDescription("g", "graphics", info, {MODULE: vertex, PASS: render_pass, **dict(objects)})


def names(description: PipelineDescription, capabilities: Capabilities) -> list[tuple[str, str]]:
    return [(u.kind, u.name) for u in check(description, capabilities)]


def test_nothing_is_unmet_for_plain_pipelines() -> None:
    assert check(compute_pipeline(compute()), device(API_1_1)) == ()
    assert check(graphics_pipeline(), device(API_1_1)) == ()


# ------------------------------------------------------------------------------------------------------------------ shaders


@pytest.mark.parametrize(
    ("capability", "name", "enough"),
    [
        (10, "Float64", {"features": [F + "shaderFloat64"]}),
        (9, "Float16", {"features": [F12 + "shaderFloat16"]}),
        (9, "Float16", {"features": ["VkPhysicalDeviceShaderFloat16Int8Features.shaderFloat16"]}),
        (9, "Float16", {"extensions": ["VK_AMD_gpu_shader_half_float"]}),
        (4448, "StorageBuffer8BitAccess", {"features": ["VkPhysicalDevice8BitStorageFeatures.storageBuffer8BitAccess"]}),
        (
            63,
            "GroupNonUniformArithmetic",
            {"properties": {"VkPhysicalDeviceVulkan11Properties.subgroupSupportedOperations": 4}},
        ),
        (63, "GroupNonUniformArithmetic", {"properties": {"VkPhysicalDeviceSubgroupProperties.supportedOperations": 6}}),
        (5297, "GroupNonUniformPartitionedNV", {"properties": {"VkPhysicalDeviceSubgroupProperties.supportedOperations": 256}}),
        (4437, "DeviceGroup", {"version": API_1_1}),
    ],
)
def test_capabilities_and_their_alternatives(capability: int, name: str, enough: Any) -> None:
    pipeline = compute_pipeline(compute(capabilities=(1, capability), version=0x00010000))
    lacking = device(1 << 22, properties={"VkPhysicalDeviceSubgroupProperties.supportedOperations": 3})
    assert names(pipeline, lacking) == [("capability", name)]
    assert check(pipeline, device(**{"version": 1 << 22, **enough})) == ()


def test_capabilities_that_vulkan_does_not_have_are_unmet() -> None:
    assert names(compute_pipeline(compute(capabilities=(1, 6))), device()) == [("capability", "Kernel")]
    assert names(compute_pipeline(compute(capabilities=(1, 4_000_000))), device()) == [("capability", "4000000")]


def test_spirv_extensions() -> None:
    pipeline = compute_pipeline(compute(extensions=("SPV_KHR_non_semantic_info",)))
    assert names(pipeline, device(API_1_2)) == [("spirv-extension", "SPV_KHR_non_semantic_info")]
    assert check(pipeline, device(API_1_3)) == ()
    assert check(pipeline, device(API_1_2, extensions=["VK_KHR_shader_non_semantic_info"])) == ()
    pipeline = compute_pipeline(compute(extensions=("SPV_NOBODY_knows",)))
    assert names(pipeline, device()) == [("spirv-extension", "SPV_NOBODY_knows")]


@pytest.mark.parametrize(
    ("version", "api", "extensions", "taken"),
    [
        ((1, 3), API_1_1, (), True),
        ((1, 4), API_1_1, (), False),
        ((1, 4), API_1_1, ("VK_KHR_spirv_1_4",), True),
        ((1, 5), API_1_1, ("VK_KHR_spirv_1_4",), False),
        ((1, 5), API_1_2, (), True),
        ((1, 6), API_1_2, (), False),
        ((1, 6), API_1_3, (), True),
    ],
)
def test_spirv_version(version: tuple[int, int], api: int, extensions: tuple[str, ...], taken: bool) -> None:
    pipeline = compute_pipeline(compute(version=version[0] << 16 | version[1] << 8))
    expected = [] if taken else [("spirv-version", "SPIR-V")]
    assert names(pipeline, device(api, extensions=extensions)) == expected


def float_atomic(storage: int) -> bytes:
    return compute(
        capabilities=(1, 6033),
        declarations=[op(32, 20, storage, 6), op(59, 20, 21, storage), op(43, 5, 22, 1), op(43, 6, 23, 0)],
        body=[op(6035, 6, 30, 21, 22, 22, 23)],
    )


ATOMICS = "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT."


def test_an_atomic_needs_the_feature_of_its_storage_class() -> None:
    shared_only = device(features=[ATOMICS + "shaderSharedFloat32AtomicAdd"])
    assert check(compute_pipeline(float_atomic(4)), shared_only) == ()
    assert names(compute_pipeline(float_atomic(12)), shared_only) == [("instruction", ATOMICS + "shaderBufferFloat32AtomicAdd")]
    both = device(features=[ATOMICS + "shaderSharedFloat32AtomicAdd", ATOMICS + "shaderBufferFloat32AtomicAdd"])
    assert check(compute_pipeline(float_atomic(12)), both) == ()


def test_workgroup_limits_with_specialization() -> None:
    code = compute(
        decorations=[op(71, 20, 1, 3), op(71, 22, 11, 25)],
        declarations=[op(50, 5, 20, 64), op(43, 5, 21, 1), op(23, 23, 5, 3), op(51, 23, 22, 20, 21, 21)],
    )
    assert check(compute_pipeline(code), device()) == ()

    def specialized(value: int) -> PipelineDescription:
        entry = vk.SpecializationMapEntry(constant_id=3, offset=4, size=4)
        info = vk.SpecializationInfo(map_entries=(entry,), data=struct.pack("<II", 99, value))
        return compute_pipeline(code, stage={"specialization_info": info})

    assert check(specialized(256), device()) == ()
    (unmet,) = check(specialized(257), device(**{"maxComputeWorkGroupSize[0]": 1024}))
    assert (unmet.kind, unmet.name) == ("limit", "VkPhysicalDeviceLimits.maxComputeWorkGroupInvocations")
    assert (unmet.needed, unmet.available) == (257, 256)
    assert "module 0000000000000001" in unmet.where
    assert "\n" not in unmet.text
    (unmet,) = check(specialized(200), device(**{"maxComputeWorkGroupSize[0]": 128}))
    assert unmet.name == "VkPhysicalDeviceLimits.maxComputeWorkGroupSize[0]"


def test_workgroup_memory() -> None:
    declarations = [op(43, 5, 20, 4096), op(28, 21, 6, 20), op(32, 22, 4, 21), op(59, 22, 23, 4)]
    pipeline = compute_pipeline(compute(declarations=declarations, body=[op(61, 21, 30, 23)]))
    assert check(pipeline, device()) == ()
    (unmet,) = check(pipeline, device(maxComputeSharedMemorySize=16383))
    assert (unmet.name, unmet.needed) == ("VkPhysicalDeviceLimits.maxComputeSharedMemorySize", 16384)


def test_malformed_modules_and_missing_entry_points_are_errors() -> None:
    with pytest.raises(DamagedInputError, match="0000000000000001"):
        check(compute_pipeline(compute()[:-4]), device())
    with pytest.raises(DamagedInputError, match="no entry point 'other'"):
        check(compute_pipeline(compute(), stage={"name": "other"}), device())


SUBGROUP = "VkPhysicalDeviceVulkan13Properties."


def sized(size: int, flags: int = 0) -> PipelineDescription:
    chained = (vk.PipelineShaderStageRequiredSubgroupSizeCreateInfo(required_subgroup_size=size),)
    return compute_pipeline(compute(local_size=(64, 1, 1)), stage={"next": chained, "flags": flags})


@pytest.mark.parametrize(
    ("size", "stages", "feature", "expected"),
    [
        (32, 0x20, True, []),
        (64, 0x20, True, []),
        (16, 0x20, True, ["minSubgroupSize to maxSubgroupSize"]),
        (128, 0x20, True, ["minSubgroupSize to maxSubgroupSize"]),
        (32, 0x10, True, ["requiredSubgroupSizeStages"]),
    ],
)
def test_required_subgroup_size(size: int, stages: int, feature: bool, expected: list[str]) -> None:
    properties = {
        SUBGROUP + "minSubgroupSize": 32,
        SUBGROUP + "maxSubgroupSize": 64,
        SUBGROUP + "requiredSubgroupSizeStages": stages,
    }
    capable = device(features=[F13 + "subgroupSizeControl"], properties=properties)
    assert [u.name.removeprefix(SUBGROUP) for u in check(sized(size), capable)] == expected
    incapable = device(properties=properties)
    assert ("feature", F13 + "subgroupSizeControl") in names(sized(size), incapable)


def test_number_of_subgroups() -> None:
    properties = {
        SUBGROUP + "minSubgroupSize": 4,
        SUBGROUP + "maxSubgroupSize": 64,
        SUBGROUP + "maxComputeWorkgroupSubgroups": 8,
    }
    capable = device(features=[F13 + "subgroupSizeControl"], properties=properties)
    assert check(sized(8), capable) == ()
    assert names(sized(4), capable) == [("limit", SUBGROUP + "maxComputeWorkgroupSubgroups")]


# ------------------------------------------------------------------------------------------------------------ pNext, objects


def test_structures_need_their_version_or_extension() -> None:
    assert names(sized(32), device(API_1_2, features=[F13 + "subgroupSizeControl"])) == [
        ("structure", "VkPipelineShaderStageRequiredSubgroupSizeCreateInfo")
    ]
    feature = "VkPhysicalDeviceSubgroupSizeControlFeatures.subgroupSizeControl"
    assert check(sized(32), device(API_1_2, features=[feature], extensions=["VK_EXT_subgroup_size_control"])) == ()


def test_unknown_structures_are_unmet() -> None:
    pipeline = compute_pipeline(compute(), next=(UnknownStructure(1999999000, "{}"),))
    assert names(pipeline, device()) == [("unknown-structure", "sType 1999999000")]


def test_missing_objects() -> None:
    pipeline = compute_pipeline(compute(), layout=LAYOUT)
    assert names(pipeline, device()) == [("object", "PipelineLayout 0000000000000002")]


def laid_out(layout: vk.PipelineLayoutCreateInfo, *bindings: Any, sampler: Any = None, **fields: Any) -> PipelineDescription:
    objects = {LAYOUT: layout, SET: vk.DescriptorSetLayoutCreateInfo(bindings=bindings, **fields)}
    if sampler is not None:
        objects[SAMPLER] = sampler
    return compute_pipeline(compute(), layout=LAYOUT, objects=objects)


def binding(kind: int, count: int = 1, stages: int = 0x20, **fields: Any) -> vk.DescriptorSetLayoutBinding:
    return vk.DescriptorSetLayoutBinding(descriptor_type=kind, descriptor_count=count, stage_flags=stages, **fields)


WITH_SET = vk.PipelineLayoutCreateInfo(set_layouts=(SET,))


def test_pipeline_layout_limits() -> None:
    pushed = vk.PipelineLayoutCreateInfo(push_constant_ranges=(vk.PushConstantRange(0x20, 64, 128),))
    assert names(laid_out(pushed), device()) == [("limit", "VkPhysicalDeviceLimits.maxPushConstantsSize")]
    assert check(laid_out(pushed), device(maxPushConstantsSize=192)) == ()
    sets = vk.PipelineLayoutCreateInfo(set_layouts=(SET,) * 5)
    assert names(laid_out(sets), device()) == [("limit", "VkPhysicalDeviceLimits.maxBoundDescriptorSets")]
    assert check(laid_out(WITH_SET, binding(0, 8), binding(1, 8)), device()) == ()
    assert names(laid_out(WITH_SET, binding(0, 8), binding(1, 9)), device()) == [
        ("limit", "VkPhysicalDeviceLimits.maxPerStageDescriptorSamplers")
    ]
    # 9 for each of two stages is within the limit of 16 for one
    assert check(laid_out(WITH_SET, binding(0, 9, 0x20), binding(1, 9, 0x10)), device()) == ()


def test_samplers() -> None:
    sampler = vk.SamplerCreateInfo(anisotropy_enable=1, max_anisotropy=16.0, address_mode_u=4)
    pipeline = laid_out(WITH_SET, binding(1, immutable_samplers=(SAMPLER,)), sampler=sampler)
    assert names(pipeline, device()) == [("feature", F + "samplerAnisotropy"), ("feature", F12 + "samplerMirrorClampToEdge")]
    capable = device(features=[F + "samplerAnisotropy"], extensions=["VK_KHR_sampler_mirror_clamp_to_edge"])
    assert check(pipeline, capable) == ()


def test_descriptor_indexing() -> None:
    chained = (vk.DescriptorSetLayoutBindingFlagsCreateInfo(binding_flags=(5,)),)
    pipeline = laid_out(WITH_SET, binding(7), flags=2, next=chained)
    needed = [F12 + "descriptorBindingStorageBufferUpdateAfterBind", F12 + "descriptorBindingPartiallyBound"]
    assert names(pipeline, device()) == [("feature", n) for n in needed]
    assert check(pipeline, device(features=needed)) == ()


# ------------------------------------------------------------------------------------------------------------- fixed function

RASTER, MULTI, DEPTH, BLEND, ASSEMBLY = (
    vk.PipelineRasterizationStateCreateInfo,
    vk.PipelineMultisampleStateCreateInfo,
    vk.PipelineDepthStencilStateCreateInfo,
    vk.PipelineColorBlendStateCreateInfo,
    vk.PipelineInputAssemblyStateCreateInfo,
)
ATTACHMENT = vk.PipelineColorBlendAttachmentState
RESTART = "VkPhysicalDevicePrimitiveTopologyListRestartFeaturesEXT."


@pytest.mark.parametrize(
    ("state", "feature", "dynamic"),
    [
        ({"rasterization_state": RASTER(depth_clamp_enable=1)}, F + "depthClamp", 1000455003),
        ({"rasterization_state": RASTER(polygon_mode=1, line_width=1.0)}, F + "fillModeNonSolid", 1000455004),
        (
            {"input_assembly_state": ASSEMBLY(topology=1), "rasterization_state": RASTER(line_width=2.0)},
            F + "wideLines",
            2,
        ),
        ({"rasterization_state": RASTER(depth_bias_enable=1, depth_bias_clamp=1.0)}, F + "depthBiasClamp", 3),
        ({"multisample_state": MULTI(sample_shading_enable=1)}, F + "sampleRateShading", None),
        ({"multisample_state": MULTI(alpha_to_one_enable=1)}, F + "alphaToOne", 1000455008),
        ({"depth_stencil_state": DEPTH(depth_bounds_test_enable=1)}, F + "depthBounds", 1000267009),
        ({"color_blend_state": BLEND(logic_op_enable=1)}, F + "logicOp", 1000455009),
        (
            {"color_blend_state": BLEND(attachments=(ATTACHMENT(), ATTACHMENT(color_write_mask=1)))},
            F + "independentBlend",
            None,
        ),
        (
            {"color_blend_state": BLEND(attachments=(ATTACHMENT(blend_enable=1, src_color_blend_factor=15),))},
            F + "dualSrcBlend",
            1000455011,
        ),
        ({"viewport_state": vk.PipelineViewportStateCreateInfo(viewport_count=2)}, F + "multiViewport", 1000267003),
        ({"input_assembly_state": ASSEMBLY(topology=6)}, F + "geometryShader", None),
        ({"input_assembly_state": ASSEMBLY(topology=10)}, F + "tessellationShader", None),
        (
            {"input_assembly_state": ASSEMBLY(topology=3, primitive_restart_enable=1)},
            RESTART + "primitiveTopologyListRestart",
            1000377004,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_state_needs_its_feature_unless_it_is_dynamic(state: Any, feature: str, dynamic: int | None) -> None:
    pipeline = graphics_pipeline(**state)
    assert names(pipeline, device()) == [("feature", feature)]
    assert check(pipeline, device(features=[feature])) == ()
    if dynamic is not None:
        changing = graphics_pipeline(**state, dynamic_state=vk.PipelineDynamicStateCreateInfo(dynamic_states=(dynamic,)))
        assert ("feature", feature) not in names(changing, device())


def test_wide_lines_matter_only_where_lines_are_drawn() -> None:
    state = {"input_assembly_state": ASSEMBLY(topology=3), "rasterization_state": RASTER(line_width=0.0)}
    assert check(graphics_pipeline(**state), device()) == ()


def test_strips_may_restart() -> None:
    state = ASSEMBLY(topology=4, primitive_restart_enable=1)
    assert check(graphics_pipeline(input_assembly_state=state), device()) == ()


def test_vertex_input_limits() -> None:
    state = vk.PipelineVertexInputStateCreateInfo(
        vertex_binding_descriptions=(vk.VertexInputBindingDescription(stride=4096),),
        vertex_attribute_descriptions=(vk.VertexInputAttributeDescription(location=16),),
    )
    assert {n for _, n in names(graphics_pipeline(vertex_input_state=state), device())} == {
        "VkPhysicalDeviceLimits.maxVertexInputBindingStride",
        "VkPhysicalDeviceLimits.maxVertexInputAttributes",
    }
    roomy = device(maxVertexInputBindingStride=4096, maxVertexInputAttributes=17)
    assert check(graphics_pipeline(vertex_input_state=state), roomy) == ()


def test_sample_counts() -> None:
    state = MULTI(rasterization_samples=2)
    assert names(graphics_pipeline(multisample_state=state), device()) == [
        ("limit", "VkPhysicalDeviceLimits.framebufferColorSampleCounts")
    ]
    assert check(graphics_pipeline(multisample_state=MULTI(rasterization_samples=4)), device()) == ()


def with_dynamic(state: int) -> PipelineDescription:
    return graphics_pipeline(dynamic_state=vk.PipelineDynamicStateCreateInfo(dynamic_states=(state,)))


def test_extended_dynamic_state() -> None:
    cull = with_dynamic(1000267000)
    feature = "VkPhysicalDeviceExtendedDynamicStateFeaturesEXT.extendedDynamicState"
    assert names(cull, device(API_1_2)) == [("dynamic-state", "VK_DYNAMIC_STATE_CULL_MODE")]
    extension = ["VK_EXT_extended_dynamic_state"]
    assert names(cull, device(API_1_2, extensions=extension)) == [("dynamic-state", feature)]
    assert check(cull, device(API_1_2, extensions=extension, features=[feature])) == ()
    assert check(cull, device(API_1_3)) == ()


def test_extended_dynamic_state_3() -> None:
    polygon = with_dynamic(1000455004)
    extension = ["VK_EXT_extended_dynamic_state3"]
    feature = "VkPhysicalDeviceExtendedDynamicState3FeaturesEXT.extendedDynamicState3PolygonMode"
    assert names(polygon, device()) == [("dynamic-state", "VK_DYNAMIC_STATE_POLYGON_MODE_EXT")]
    assert names(polygon, device(extensions=extension)) == [("dynamic-state", feature)]
    assert check(polygon, device(extensions=extension, features=[feature])) == ()


def test_every_feature_of_extended_dynamic_state_3_belongs_to_a_state() -> None:
    members = set(FEATURES["VkPhysicalDeviceExtendedDynamicState3FeaturesEXT"][3])
    found = {f.rpartition(".")[2] for features in DYNAMIC_FEATURES.values() for f in features}
    assert members - found == set()


def test_rendering_without_render_pass() -> None:
    pipeline = graphics_pipeline(render_pass=None, next=(vk.PipelineRenderingCreateInfo(),))
    pipeline = PipelineDescription(
        "g", "graphics", msgspec.structs.replace(pipeline.create_info, render_pass=None), pipeline.objects
    )
    assert names(pipeline, device()) == [("feature", F13 + "dynamicRendering")]
    assert check(pipeline, device(features=[F13 + "dynamicRendering"])) == ()


def test_multiview() -> None:
    chained = (vk.RenderPassMultiviewCreateInfo(view_masks=(3,)),)
    pipeline = graphics_pipeline(render_pass=vk.RenderPassCreateInfo(subpasses=(vk.SubpassDescription(),), next=chained))
    assert names(pipeline, device()) == [("feature", F11 + "multiview")]
    assert check(pipeline, device(features=["VkPhysicalDeviceMultiviewFeatures.multiview"])) == ()


def test_render_pass_2_needs_its_version_or_extension() -> None:
    pipeline = graphics_pipeline(render_pass=vk.RenderPassCreateInfo2(subpasses=(vk.SubpassDescription2(),)))
    assert names(pipeline, device(API_1_1)) == [("structure", "VkRenderPassCreateInfo2")]
    assert check(pipeline, device(API_1_1, extensions=["VK_KHR_create_renderpass2"])) == ()
    assert check(pipeline, device(API_1_2)) == ()


def test_ray_tracing() -> None:
    info = vk.RayTracingPipelineCreateInfoKHR(max_pipeline_ray_recursion_depth=2)
    pipeline = PipelineDescription("r", "raytracing", info, {})
    feature = "VkPhysicalDeviceRayTracingPipelineFeaturesKHR.rayTracingPipeline"
    limit = "VkPhysicalDeviceRayTracingPipelinePropertiesKHR.maxRayRecursionDepth"
    assert names(pipeline, device()) == [("feature", feature)]
    assert names(pipeline, device(features=[feature], properties={limit: 1})) == [("limit", limit)]
    assert check(pipeline, device(features=[feature], properties={limit: 2})) == ()


def test_libraries_that_contain_themselves_end() -> None:
    handle = vk.PipelineHandle(9)
    chained = (vk.PipelineLibraryCreateInfoKHR(libraries=(handle,)),)
    pipeline = graphics_pipeline(next=chained)
    looped = PipelineDescription("g", "graphics", pipeline.create_info, {**pipeline.objects, handle: pipeline.create_info})
    found = names(looped, device(extensions=["VK_KHR_pipeline_library"]))
    assert found == [("object", "Pipeline 0000000000000009")]


# ------------------------------------------------------------------------------------------------------------------ properties


def test_names_that_mean_the_same() -> None:
    alone = "VkPhysicalDeviceCooperativeMatrixFeaturesNV.cooperativeMatrix"
    features = AdvertisedDevice(device(features={F13 + "dynamicRendering", alone})).features
    assert "VkPhysicalDeviceDynamicRenderingFeatures.dynamicRendering" in features
    assert {name for name in features if name.endswith(".cooperativeMatrix")} == {alone}


PIPELINES = [
    compute_pipeline(compute(capabilities=(1, 9, 10, 22, 63), extensions=("SPV_KHR_non_semantic_info",))),
    compute_pipeline(float_atomic(12)),
    sized(32, 2),
    with_dynamic(1000267000),
    with_dynamic(1000455004),
    graphics_pipeline(
        rasterization_state=RASTER(depth_clamp_enable=1, polygon_mode=1, line_width=3.0),
        multisample_state=MULTI(rasterization_samples=8, alpha_to_one_enable=1),
        color_blend_state=BLEND(logic_op_enable=1, attachments=(ATTACHMENT(),) * 8),
    ),
]
NEEDED_FEATURES = sorted({u.name for p in PIPELINES for u in check(p, device()) if "Features" in u.name and " " not in u.name})
EXTENSIONS = ["VK_EXT_extended_dynamic_state", "VK_EXT_extended_dynamic_state3", "VK_AMD_gpu_shader_half_float"]
VERSIONS = [API_1_1, API_1_2, API_1_3, API_1_4]


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(PIPELINES),
    *[st.tuples(st.sampled_from(VERSIONS), st.sets(st.sampled_from(NEEDED_FEATURES)), st.sets(st.sampled_from(EXTENSIONS)))]
    * 2,
)
def test_more_capabilities_never_add_unmet_requirements(pipeline: PipelineDescription, less: Any, more: Any) -> None:
    poor = device(less[0], features=less[1], extensions=less[2])
    rich = device(max(less[0], more[0]), features=less[1] | more[1], extensions=less[2] | more[2], maxColorAttachments=8)

    def keys(capabilities: Capabilities) -> set[str]:
        # A dynamic state is unmet first by its extension, then by its feature.
        return {"dynamic state" if u.kind == "dynamic-state" else u.name for u in check(pipeline, capabilities)}

    assert keys(rich) <= keys(poor)


@given(st.lists(st.sampled_from(PIPELINES), max_size=8))
@settings(deadline=None, max_examples=30)
def test_a_checker_remembers_nothing_wrong(pipelines: list[PipelineDescription]) -> None:
    for pipeline in pipelines:
        checker = RequirementChecker(device())
        assert checker.check(pipeline) == checker.check(pipeline) == check(pipeline, device())
