"""What fixed-function state, layouts, samplers and render passes need.

The registry does not hold these rules; each stands beside the Vulkan structure or feature whose description states it. State
that is dynamic is not looked at, as drivers do not look at it either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from shaderkiln.descriptions.requirements_device import Findings
from shaderkiln.vulkan_registry import constants as c
from shaderkiln.vulkan_registry import structures as vk
from shaderkiln.vulkan_registry._device import FEATURES
from shaderkiln.vulkan_registry._requirements import ENUMERANTS
from shaderkiln.vulkan_registry.constants import NAMES
from shaderkiln.vulkan_registry.handles import Handle

_F = "VkPhysicalDeviceFeatures."
_F11 = "VkPhysicalDeviceVulkan11Features."
_F12 = "VkPhysicalDeviceVulkan12Features."
_F13 = "VkPhysicalDeviceVulkan13Features."
_F14 = "VkPhysicalDeviceVulkan14Features."
_RAYS = "VkPhysicalDeviceRayTracingPipelineFeaturesKHR."
_ACCELERATION = "VkPhysicalDeviceAccelerationStructureFeaturesKHR."
_FEEDBACK_LOOP = "VkPhysicalDeviceAttachmentFeedbackLoopDynamicStateFeaturesEXT.attachmentFeedbackLoopDynamicState"

STAGE_FEATURES = {
    0x02: _F + "tessellationShader",
    0x04: _F + "tessellationShader",
    0x08: _F + "geometryShader",
    0x40: "VkPhysicalDeviceMeshShaderFeaturesEXT.taskShader",
    0x80: "VkPhysicalDeviceMeshShaderFeaturesEXT.meshShader",
}
"""VkShaderStageFlagBits → feature (VkPipelineShaderStageCreateInfo); mesh and task also by VK_NV_mesh_shader."""

NV_STAGE_FEATURES = {
    0x40: "VkPhysicalDeviceMeshShaderFeaturesNV.taskShader",
    0x80: "VkPhysicalDeviceMeshShaderFeaturesNV.meshShader",
}

_EDS = "VkPhysicalDeviceExtendedDynamicStateFeaturesEXT.extendedDynamicState"
_EDS2 = "VkPhysicalDeviceExtendedDynamicState2FeaturesEXT.extendedDynamicState2"
_EDS3 = "VkPhysicalDeviceExtendedDynamicState3FeaturesEXT"
_RATES = tuple(
    f"VkPhysicalDeviceFragmentShadingRateFeaturesKHR.{n}FragmentShadingRate" for n in ("pipeline", "primitive", "attachment")
)
_STIPPLES = tuple(f"{_F14}stippled{n}Lines" for n in ("Rectangular", "Bresenham", "Smooth"))


def _dynamic_features() -> dict[int, tuple[str, ...]]:
    """VkDynamicState → features, any of which is enough (descriptions of the feature structures). Core 1.3 states need none."""
    table: dict[int, tuple[str, ...]] = {
        c.VK_DYNAMIC_STATE_PATCH_CONTROL_POINTS_EXT: (_EDS2 + "PatchControlPoints",),
        c.VK_DYNAMIC_STATE_LOGIC_OP_EXT: (_EDS2 + "LogicOp",),
        c.VK_DYNAMIC_STATE_VERTEX_INPUT_EXT: ("VkPhysicalDeviceVertexInputDynamicStateFeaturesEXT.vertexInputDynamicState",),
        c.VK_DYNAMIC_STATE_COLOR_WRITE_ENABLE_EXT: ("VkPhysicalDeviceColorWriteEnableFeaturesEXT.colorWriteEnable",),
        c.VK_DYNAMIC_STATE_LINE_STIPPLE: _STIPPLES,
        c.VK_DYNAMIC_STATE_FRAGMENT_SHADING_RATE_KHR: _RATES,
        c.VK_DYNAMIC_STATE_ATTACHMENT_FEEDBACK_LOOP_ENABLE_EXT: (
            "VkPhysicalDeviceAttachmentFeedbackLoopDynamicStateFeaturesEXT.attachmentFeedbackLoopDynamicState",
        ),
        c.VK_DYNAMIC_STATE_DEPTH_CLAMP_RANGE_EXT: ("VkPhysicalDeviceDepthClampControlFeaturesEXT.depthClampControl",),
        c.VK_DYNAMIC_STATE_RAY_TRACING_PIPELINE_STACK_SIZE_KHR: (
            "VkPhysicalDeviceRayTracingPipelineFeaturesKHR.rayTracingPipeline",
        ),
        c.VK_DYNAMIC_STATE_EXCLUSIVE_SCISSOR_ENABLE_NV: ("VkPhysicalDeviceExclusiveScissorFeaturesNV.exclusiveScissor",),
        c.VK_DYNAMIC_STATE_EXCLUSIVE_SCISSOR_NV: ("VkPhysicalDeviceExclusiveScissorFeaturesNV.exclusiveScissor",),
        c.VK_DYNAMIC_STATE_VIEWPORT_SHADING_RATE_PALETTE_NV: ("VkPhysicalDeviceShadingRateImageFeaturesNV.shadingRateImage",),
    }
    by_name = {member.lower(): member for member in FEATURES[_EDS3][3]}
    for value, name in NAMES["VkDynamicState"].items():
        words = name.removeprefix("VK_DYNAMIC_STATE_").removesuffix("_EXT").removesuffix("_NV")
        if value not in table and (member := by_name.get("extendeddynamicstate3" + words.replace("_", "").lower())):
            table[value] = (f"{_EDS3}.{member}",)
    return table


DYNAMIC_FEATURES = _dynamic_features()
_CORE_13_DYNAMIC = {
    **dict.fromkeys(range(c.VK_DYNAMIC_STATE_CULL_MODE, c.VK_DYNAMIC_STATE_STENCIL_OP + 1), _EDS),
    **dict.fromkeys(
        (
            c.VK_DYNAMIC_STATE_RASTERIZER_DISCARD_ENABLE,
            c.VK_DYNAMIC_STATE_DEPTH_BIAS_ENABLE,
            c.VK_DYNAMIC_STATE_PRIMITIVE_RESTART_ENABLE,
        ),
        _EDS2,
    ),
}
"""In Vulkan 1.3 without a feature; before that by extension and feature."""

_CREATE_FLAG_FEATURES: dict[int, tuple[str, ...]] = {
    0x100: (_F13 + "pipelineCreationCacheControl",),
    0x200: (_F13 + "pipelineCreationCacheControl",),
    0x40: ("VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR.pipelineExecutableInfo",),
    0x80: ("VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR.pipelineExecutableInfo",),
    0x1000: (_RAYS + "rayTraversalPrimitiveCulling",),
    0x2000: (_RAYS + "rayTraversalPrimitiveCulling",),
    0x80000: (_RAYS + "rayTracingPipelineShaderGroupHandleCaptureReplay",),
    0x20000000: ("VkPhysicalDeviceDescriptorBufferFeaturesEXT.descriptorBuffer",),
    0x8000000: (_F14 + "pipelineProtectedAccess",),
    0x40000000: (_F14 + "pipelineProtectedAccess",),
    0x2000000: ("VkPhysicalDeviceAttachmentFeedbackLoopLayoutFeaturesEXT.attachmentFeedbackLoopLayout",),
    0x4000000: ("VkPhysicalDeviceAttachmentFeedbackLoopLayoutFeaturesEXT.attachmentFeedbackLoopLayout",),
    0x800000: ("VkPhysicalDeviceGraphicsPipelineLibraryFeaturesEXT.graphicsPipelineLibrary",),
    0x1000000: ("VkPhysicalDeviceOpacityMicromapFeaturesEXT.micromap",),
    0x100000: ("VkPhysicalDeviceRayTracingMotionBlurFeaturesNV.rayTracingMotionBlur",),
    0x40000: ("VkPhysicalDeviceDeviceGeneratedCommandsFeaturesNV.deviceGeneratedCommands",),
    0x4000000000: ("VkPhysicalDeviceDeviceGeneratedCommandsFeaturesEXT.deviceGeneratedCommands",),
}
"""VkPipelineCreateFlagBits and -Bits2 → features (VkGraphicsPipelineCreateInfo, VkRayTracingPipelineCreateInfoKHR)."""


def create_flags(found: Findings, flags: int, chain: Iterable[Struct], where: str) -> int:
    """Flags of a pipeline, those of VkPipelineCreateFlags2CreateInfo in their place where it is chained."""
    for structure in chain:
        if type(structure) is vk.PipelineCreateFlags2CreateInfo:
            flags = structure.flags
            found.feature(_F14 + "maintenance5", where, "VkPipelineCreateFlags2CreateInfo")
    if flags:
        found.flags("VkPipelineCreateFlagBits", flags & 0xFFFFFFFF, where)
        found.flags("VkPipelineCreateFlagBits2", flags & ~0xFFFFFFFF, where)
        for bit, features in _CREATE_FLAG_FEATURES.items():
            if flags & bit:
                found.feature(features[0], where, f"pipeline creation flag 0x{bit:x}", *features[1:])
    return flags


def dynamic_states(found: Findings, states: Iterable[int]) -> None:
    """Dynamic states, by version or extension and by feature."""
    for state in states:
        if state <= 8:
            continue
        name = NAMES["VkDynamicState"].get(state)
        if name is None:
            text = f"dynamic state {state} is not known here"
            found.unknown("dynamic-state", f"VkDynamicState {state}", "dynamic state", text)
        elif not found.enumerant("VkDynamicState", state, "dynamic state", "dynamic-state"):
            continue
        elif (early := _CORE_13_DYNAMIC.get(state)) is not None:
            if found.device.version < (1 << 22 | 3 << 12):
                found.feature(early, "dynamic state", name, kind="dynamic-state")
        elif features := DYNAMIC_FEATURES.get(state):
            found.feature(features[0], "dynamic state", name, *features[1:], kind="dynamic-state")


def graphics_state(
    found: Findings, info: vk.GraphicsPipelineCreateInfo, dynamic: frozenset[int], stages: int, lines: bool
) -> None:
    """Every state structure of a graphics pipeline. ``lines``: the last shader stage before rasterization makes lines."""
    if (
        (state := info.vertex_input_state) is not None
        and c.VK_DYNAMIC_STATE_VERTEX_INPUT_EXT not in dynamic
        and stages & 0x80 == 0
    ):
        _vertex_input(found, state, dynamic)
    if (assembly := info.input_assembly_state) is not None:
        lines = _input_assembly(found, assembly, dynamic, stages) or lines
    if (
        (tessellation := info.tessellation_state) is not None
        and stages & 0x06
        and c.VK_DYNAMIC_STATE_PATCH_CONTROL_POINTS_EXT not in dynamic
    ):
        found.at_most(tessellation.patch_control_points, "maxTessellationPatchSize", "tessellation", "patchControlPoints")
        found.chain(tessellation.next, "tessellation")
    if (viewport := info.viewport_state) is not None:
        _viewport(found, viewport, dynamic)
    rasterizer = info.rasterization_state
    if rasterizer is not None:
        _rasterization(found, rasterizer, dynamic, lines)
        if rasterizer.rasterizer_discard_enable and c.VK_DYNAMIC_STATE_RASTERIZER_DISCARD_ENABLE not in dynamic:
            return
    if (multisample := info.multisample_state) is not None:
        _multisample(found, multisample, dynamic)
    if (depth := info.depth_stencil_state) is not None:
        if depth.depth_bounds_test_enable and c.VK_DYNAMIC_STATE_DEPTH_BOUNDS_TEST_ENABLE not in dynamic:
            found.feature(_F + "depthBounds", "depth and stencil", "depthBoundsTestEnable")
        found.flags("VkPipelineDepthStencilStateCreateFlagBits", depth.flags, "depth and stencil")
        if depth.next:
            found.chain(depth.next, "depth and stencil")
    if (blend := info.color_blend_state) is not None:
        _color_blend(found, blend, dynamic)


def _vertex_input(found: Findings, state: vk.PipelineVertexInputStateCreateInfo, dynamic: frozenset[int]) -> None:
    where = "vertex input"
    bindings, attributes = state.vertex_binding_descriptions, state.vertex_attribute_descriptions
    if bindings:
        found.at_most(len(bindings), "maxVertexInputBindings", where, "bindings")
        found.at_most(max(b.binding for b in bindings) + 1, "maxVertexInputBindings", where, "binding number plus 1")
        if c.VK_DYNAMIC_STATE_VERTEX_INPUT_BINDING_STRIDE not in dynamic:
            found.at_most(max(b.stride for b in bindings), "maxVertexInputBindingStride", where, "stride")
    if attributes:
        found.at_most(len(attributes), "maxVertexInputAttributes", where, "attributes")
        found.at_most(max(a.location for a in attributes) + 1, "maxVertexInputAttributes", where, "location plus 1")
        found.at_most(max(a.offset for a in attributes), "maxVertexInputAttributeOffset", where, "attribute offset")
        for attribute in attributes:
            if attribute.format > 184:
                found.enumerant("VkFormat", attribute.format, where)
    if state.next:
        found.chain(state.next, where)
        for structure in state.next:
            if type(structure) is vk.PipelineVertexInputDivisorStateCreateInfo:
                _divisors(found, structure, where)


def _divisors(found: Findings, structure: vk.PipelineVertexInputDivisorStateCreateInfo, where: str) -> None:
    # VkVertexInputBindingDivisorDescription
    divisors = [d.divisor for d in structure.vertex_binding_divisors]
    if any(d != 1 for d in divisors):
        found.feature(_F14 + "vertexAttributeInstanceRateDivisor", where, "a divisor other than 1")
    if 0 in divisors:
        found.feature(_F14 + "vertexAttributeInstanceRateZeroDivisor", where, "divisor 0")
    limit = "VkPhysicalDeviceVulkan14Properties.maxVertexAttribDivisor"
    if limit not in found.device.properties:
        limit = "VkPhysicalDeviceVertexAttributeDivisorPropertiesEXT.maxVertexAttribDivisor"
    found.at_most(max(divisors, default=0), limit, where, "divisor")


def _input_assembly(
    found: Findings, state: vk.PipelineInputAssemblyStateCreateInfo, dynamic: frozenset[int], stages: int
) -> bool:
    """True if lines are assembled, or a dynamic topology may do so."""
    if stages & 0xC0:  # mesh shaders assemble themselves
        return False
    where, topology = "input assembly", state.topology
    unrestricted = found.device.properties.get(
        _EDS3.replace("Features", "Properties") + ".dynamicPrimitiveTopologyUnrestricted"
    )
    if topology in (6, 7, 8, 9) and not (c.VK_DYNAMIC_STATE_PRIMITIVE_TOPOLOGY in dynamic and unrestricted):
        found.feature(_F + "geometryShader", where, "a topology with adjacency")
    elif topology == 10:
        found.feature(_F + "tessellationShader", where, "a topology of patches")
    elif topology > 10:
        found.unknown("enumerant", f"VkPrimitiveTopology {topology}", where, f"topology {topology} is not known here")
    if (
        state.primitive_restart_enable
        and c.VK_DYNAMIC_STATE_PRIMITIVE_RESTART_ENABLE not in dynamic
        and c.VK_DYNAMIC_STATE_PRIMITIVE_TOPOLOGY not in dynamic
    ):
        # VK_EXT_primitive_topology_list_restart
        restart = "VkPhysicalDevicePrimitiveTopologyListRestartFeaturesEXT.primitiveTopology"
        if topology in (0, 1, 3, 6, 8):
            found.feature(restart + "ListRestart", where, "primitive restart with a list topology")
        elif topology == 10:
            found.feature(restart + "PatchListRestart", where, "primitive restart with patches")
    if state.next:
        found.chain(state.next, where)
    return not stages & 0x0E and topology in (1, 2, 6, 7)


def _viewport(found: Findings, state: vk.PipelineViewportStateCreateInfo, dynamic: frozenset[int]) -> None:
    where = "viewport"
    for count, counted in (
        (state.viewport_count, c.VK_DYNAMIC_STATE_VIEWPORT_WITH_COUNT),
        (state.scissor_count, c.VK_DYNAMIC_STATE_SCISSOR_WITH_COUNT),
    ):
        if count > 1 and counted not in dynamic:
            found.feature(_F + "multiViewport", where, "more than one viewport or scissor")
            found.at_most(count, "maxViewports", where, "viewports or scissors")
    if state.next:
        found.chain(state.next, where)
        for structure in state.next:
            if isinstance(structure, vk.PipelineViewportDepthClipControlCreateInfoEXT):
                if structure.negative_one_to_one and c.VK_DYNAMIC_STATE_DEPTH_CLIP_NEGATIVE_ONE_TO_ONE_EXT not in dynamic:
                    found.feature("VkPhysicalDeviceDepthClipControlFeaturesEXT.depthClipControl", where, "negativeOneToOne")
            elif isinstance(structure, vk.PipelineViewportDepthClampControlCreateInfoEXT):
                found.feature("VkPhysicalDeviceDepthClampControlFeaturesEXT.depthClampControl", where, "a depth clamp range")
            elif isinstance(structure, vk.PipelineViewportExclusiveScissorStateCreateInfoNV) and structure.exclusive_scissors:
                found.feature("VkPhysicalDeviceExclusiveScissorFeaturesNV.exclusiveScissor", where, "exclusive scissors")
            elif (
                isinstance(structure, vk.PipelineViewportShadingRateImageStateCreateInfoNV)
                and structure.shading_rate_image_enable
            ):
                found.feature("VkPhysicalDeviceShadingRateImageFeaturesNV.shadingRateImage", where, "a shading rate image")


def _rasterization(
    found: Findings, state: vk.PipelineRasterizationStateCreateInfo, dynamic: frozenset[int], lines: bool
) -> None:
    where = "rasterization"
    if state.depth_clamp_enable and c.VK_DYNAMIC_STATE_DEPTH_CLAMP_ENABLE_EXT not in dynamic:
        found.feature(_F + "depthClamp", where, "depthClampEnable")
    if (mode := state.polygon_mode) and c.VK_DYNAMIC_STATE_POLYGON_MODE_EXT not in dynamic:
        if mode in (1, 2):
            found.feature(_F + "fillModeNonSolid", where, "a polygon mode other than fill")
        else:
            found.enumerant("VkPolygonMode", mode, where)
    if (lines or mode == 1) and state.line_width != 1.0 and c.VK_DYNAMIC_STATE_LINE_WIDTH not in dynamic:
        found.feature(_F + "wideLines", where, f"line width {state.line_width:g}")
    if (
        state.depth_bias_enable
        and state.depth_bias_clamp
        and c.VK_DYNAMIC_STATE_DEPTH_BIAS not in dynamic
        and c.VK_DYNAMIC_STATE_DEPTH_BIAS_ENABLE not in dynamic
    ):
        found.feature(_F + "depthBiasClamp", where, "depthBiasClamp")
    if state.next:
        found.chain(state.next, where)
        for structure in state.next:
            _rasterization_chain(found, structure, dynamic, where)


_LINE_MODES = {1: "rectangularLines", 2: "bresenhamLines", 3: "smoothLines"}
_STIPPLED = {
    0: "stippledRectangularLines",
    1: "stippledRectangularLines",
    2: "stippledBresenhamLines",
    3: "stippledSmoothLines",
}


def _rasterization_chain(found: Findings, structure: Struct, dynamic: frozenset[int], where: str) -> None:
    match structure:
        case vk.PipelineRasterizationDepthClipStateCreateInfoEXT() if c.VK_DYNAMIC_STATE_DEPTH_CLIP_ENABLE_EXT not in dynamic:
            found.feature("VkPhysicalDeviceDepthClipEnableFeaturesEXT.depthClipEnable", where, "depthClipEnable")
        case vk.PipelineRasterizationProvokingVertexStateCreateInfoEXT(provoking_vertex_mode=1) if (
            c.VK_DYNAMIC_STATE_PROVOKING_VERTEX_MODE_EXT not in dynamic
        ):
            found.feature("VkPhysicalDeviceProvokingVertexFeaturesEXT.provokingVertexLast", where, "last provoking vertex")
        case vk.PipelineRasterizationStateStreamCreateInfoEXT(rasterization_stream=stream) if (
            c.VK_DYNAMIC_STATE_RASTERIZATION_STREAM_EXT not in dynamic
        ):
            found.feature("VkPhysicalDeviceTransformFeedbackFeaturesEXT.geometryStreams", where, "a rasterization stream")
            limit = "VkPhysicalDeviceTransformFeedbackPropertiesEXT.maxTransformFeedbackStreams"
            found.at_most(stream + 1, limit, where, "rasterization stream plus 1")
        case vk.PipelineRasterizationLineStateCreateInfo(line_rasterization_mode=mode, stippled_line_enable=stipple):
            if c.VK_DYNAMIC_STATE_LINE_RASTERIZATION_MODE_EXT in dynamic:
                return
            if feature := _LINE_MODES.get(mode):
                found.feature(_F14 + feature, where, f"line rasterization mode {mode}")
            if stipple and c.VK_DYNAMIC_STATE_LINE_STIPPLE_ENABLE_EXT not in dynamic and (feature := _STIPPLED.get(mode)):
                found.feature(_F14 + feature, where, "stippled lines")
        case vk.DepthBiasRepresentationInfoEXT(depth_bias_representation=form):
            members = {1: "leastRepresentableValueForceUnormRepresentation", 2: "floatRepresentation"}
            if form in members:
                found.feature(
                    f"VkPhysicalDeviceDepthBiasControlFeaturesEXT.{members[form]}", where, "depth bias representation"
                )
        case _:
            return


def _multisample(found: Findings, state: vk.PipelineMultisampleStateCreateInfo, dynamic: frozenset[int]) -> None:
    where = "multisampling"
    if state.sample_shading_enable:
        found.feature(_F + "sampleRateShading", where, "sampleShadingEnable")
    if state.alpha_to_one_enable and c.VK_DYNAMIC_STATE_ALPHA_TO_ONE_ENABLE_EXT not in dynamic:
        found.feature(_F + "alphaToOne", where, "alphaToOneEnable")
    if state.rasterization_samples > 1 and c.VK_DYNAMIC_STATE_RASTERIZATION_SAMPLES_EXT not in dynamic:
        sample_count(found, state.rasterization_samples, where)
    if state.next:
        found.chain(state.next, where)
        for structure in state.next:
            if type(structure) is vk.PipelineCoverageReductionStateCreateInfoNV:
                found.feature(
                    "VkPhysicalDeviceCoverageReductionModeFeaturesNV.coverageReductionMode", where, "coverage reduction"
                )


_SAMPLE_LIMITS = (
    "framebufferColorSampleCounts",
    "framebufferDepthSampleCounts",
    "framebufferStencilSampleCounts",
    "framebufferNoAttachmentsSampleCounts",
)


def sample_count(found: Findings, samples: int, where: str) -> None:
    """A sample count that no kind of framebuffer has."""
    reported = [v for name in _SAMPLE_LIMITS if (v := found.device.limit(name)) is not None]
    if reported and not any(int(v) & samples for v in reported):
        name = "VkPhysicalDeviceLimits." + _SAMPLE_LIMITS[0]
        found.add(
            "limit", name, samples, reported[0], where, f"{samples} samples are in no framebuffer sample count of the device"
        )


def _color_blend(found: Findings, state: vk.PipelineColorBlendStateCreateInfo, dynamic: frozenset[int]) -> None:
    where = "color blending"
    if state.logic_op_enable and c.VK_DYNAMIC_STATE_LOGIC_OP_ENABLE_EXT not in dynamic:
        found.feature(_F + "logicOp", where, "logicOpEnable")
    found.flags("VkPipelineColorBlendStateCreateFlagBits", state.flags, where)
    attachments = state.attachments or ()
    if attachments:
        first = attachments[0]
        found.at_most(len(attachments), "maxColorAttachments", where, "attachments")
        if not dynamic.isdisjoint((c.VK_DYNAMIC_STATE_COLOR_BLEND_ENABLE_EXT, c.VK_DYNAMIC_STATE_COLOR_BLEND_EQUATION_EXT)):
            pass
        elif len(attachments) > 1 and any(a != first for a in attachments):
            found.feature(_F + "independentBlend", where, "attachments that differ")
        if (
            c.VK_DYNAMIC_STATE_COLOR_BLEND_EQUATION_EXT not in dynamic
            and c.VK_DYNAMIC_STATE_COLOR_BLEND_ENABLE_EXT not in dynamic
        ):
            for a in attachments:
                if a.blend_enable:
                    _blend(found, a, where)
    if state.next:
        found.chain(state.next, where)
        for structure in state.next:
            if type(structure) is vk.PipelineColorWriteCreateInfoEXT:
                found.feature("VkPhysicalDeviceColorWriteEnableFeaturesEXT.colorWriteEnable", where, "color write enables")


def _blend(found: Findings, a: vk.PipelineColorBlendAttachmentState, where: str) -> None:
    for factor in (
        a.src_color_blend_factor,
        a.dst_color_blend_factor,
        a.src_alpha_blend_factor,
        a.dst_alpha_blend_factor,
    ):
        if 15 <= factor <= 18:  # SRC1
            found.feature(_F + "dualSrcBlend", where, "a blend factor of a second source")
    for operation in (a.color_blend_op, a.alpha_blend_op):
        if operation > 4:
            found.enumerant("VkBlendOp", operation, where)


# ------------------------------------------------------------------------------------------------------------ samplers, layouts


# VkSamplerCreateInfo
def sampler(found: Findings, info: vk.SamplerCreateInfo, where: str) -> None:
    """A sampler."""
    if info.anisotropy_enable:
        found.feature(_F + "samplerAnisotropy", where, "anisotropyEnable")
        found.at_most(info.max_anisotropy, "maxSamplerAnisotropy", where, "maxAnisotropy")
    if 4 in (info.address_mode_u, info.address_mode_v, info.address_mode_w):
        found.feature(_F12 + "samplerMirrorClampToEdge", where, "address mode mirror clamp to edge")
    if info.flags:
        found.flags("VkSamplerCreateFlagBits", info.flags, where)
        if info.flags & 4:
            found.feature("VkPhysicalDeviceNonSeamlessCubeMapFeaturesEXT.nonSeamlessCubeMap", where, "a cube map with seams")
    for one in (info.mag_filter, info.min_filter):
        if one > 1:
            found.enumerant("VkFilter", one, where)
    if info.border_color > 5:
        found.enumerant("VkBorderColor", info.border_color, where)
    found.at_most(abs(info.mip_lod_bias), "maxSamplerLodBias", where, "mipLodBias")
    if info.next:
        found.chain(info.next, where)
        for structure in info.next:
            if isinstance(structure, vk.SamplerReductionModeCreateInfo) and structure.reduction_mode in (1, 2):
                found.feature(_F12 + "samplerFilterMinmax", where, "a minimum or maximum filter")
            elif isinstance(structure, vk.SamplerCustomBorderColorCreateInfoEXT):
                found.feature("VkPhysicalDeviceCustomBorderColorFeaturesEXT.customBorderColors", where, "a custom border color")
                if not structure.format:
                    name = "VkPhysicalDeviceCustomBorderColorFeaturesEXT.customBorderColorWithoutFormat"
                    found.feature(name, where, "a custom border color without format")
            elif isinstance(structure, vk.SamplerYcbcrConversionInfo):
                found.feature(_F11 + "samplerYcbcrConversion", where, "a Y'CbCr conversion")
            elif isinstance(structure, vk.SamplerBorderColorComponentMappingCreateInfoEXT):
                found.feature(
                    "VkPhysicalDeviceBorderColorSwizzleFeaturesEXT.borderColorSwizzle", where, "a border color swizzle"
                )


_UPDATE_AFTER_BIND: dict[int, tuple[str, ...]] = {
    0: (_F12 + "descriptorBindingSampledImageUpdateAfterBind",),
    1: (_F12 + "descriptorBindingSampledImageUpdateAfterBind",),
    2: (_F12 + "descriptorBindingSampledImageUpdateAfterBind",),
    3: (_F12 + "descriptorBindingStorageImageUpdateAfterBind",),
    4: (_F12 + "descriptorBindingUniformTexelBufferUpdateAfterBind",),
    5: (_F12 + "descriptorBindingStorageTexelBufferUpdateAfterBind",),
    6: (_F12 + "descriptorBindingUniformBufferUpdateAfterBind",),
    7: (_F12 + "descriptorBindingStorageBufferUpdateAfterBind",),
    c.VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK: (_F13 + "descriptorBindingInlineUniformBlockUpdateAfterBind",),
    c.VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR: (
        "VkPhysicalDeviceAccelerationStructureFeaturesKHR.descriptorBindingAccelerationStructureUpdateAfterBind",
    ),
}
"""VkDescriptorType → feature for VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT (VkDescriptorSetLayoutBindingFlagsCreateInfo)."""
_BINDING_FLAGS = {
    2: _F12 + "descriptorBindingUpdateUnusedWhilePending",
    4: _F12 + "descriptorBindingPartiallyBound",
    8: _F12 + "descriptorBindingVariableDescriptorCount",
}


def set_layout(found: Findings, info: vk.DescriptorSetLayoutCreateInfo, where: str) -> None:
    """A descriptor set layout, its samplers aside."""
    if info.flags:
        found.flags("VkDescriptorSetLayoutCreateFlagBits", info.flags, where)
        if info.flags & 0x10:
            found.feature("VkPhysicalDeviceDescriptorBufferFeaturesEXT.descriptorBuffer", where, "a descriptor buffer layout")
        if info.flags & 1:
            limit = "VkPhysicalDeviceVulkan14Properties.maxPushDescriptors"
            found.at_most(sum(b.descriptor_count for b in info.bindings), limit, where, "push descriptors")
    for binding in info.bindings:
        kind = binding.descriptor_type
        if kind > 10 and found.enumerant("VkDescriptorType", kind, where):
            if kind == c.VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK:
                found.feature(_F13 + "inlineUniformBlock", where, "an inline uniform block")
                limit = "VkPhysicalDeviceVulkan13Properties.maxInlineUniformBlockSize"
                found.at_most(binding.descriptor_count, limit, where, "inline uniform block bytes")
            elif kind == c.VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR:
                name = _ACCELERATION + "accelerationStructure"
                found.feature(name, where, "an acceleration structure")
            elif kind == c.VK_DESCRIPTOR_TYPE_MUTABLE_EXT:
                name = "VkPhysicalDeviceMutableDescriptorTypeFeaturesEXT.mutableDescriptorType"
                found.feature(name, where, "a mutable descriptor type")
    if not info.next:
        return
    found.chain(info.next, where)
    for structure in info.next:
        if type(structure) is vk.DescriptorSetLayoutBindingFlagsCreateInfo:
            for binding, flags in zip(info.bindings, structure.binding_flags, strict=False):
                if flags & 1 and (features := _UPDATE_AFTER_BIND.get(binding.descriptor_type)):
                    found.feature(features[0], where, "a binding that is updated after bind")
                for bit, feature in _BINDING_FLAGS.items():
                    if flags & bit:
                        found.feature(feature, where, f"descriptor binding flag 0x{bit:x}")


# Descriptor types that count against each limit (VkPipelineLayoutCreateInfo).
_COUNTED: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("Samplers", (0, 1)),
    ("UniformBuffers", (6, 8)),
    ("StorageBuffers", (7, 9)),
    ("SampledImages", (1, 2, 4)),
    ("StorageImages", (3, 5)),
    ("InputAttachments", (10,)),
)
_LAYOUT_STAGES = (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x100, 0x200, 0x400, 0x800, 0x1000, 0x2000)


def pipeline_layout(
    found: Findings, info: vk.PipelineLayoutCreateInfo, sets: Iterable[vk.DescriptorSetLayoutCreateInfo], where: str
) -> None:
    """Number of sets, push constants, and descriptors of each kind per stage and in all."""
    if info.flags:
        found.flags("VkPipelineLayoutCreateFlagBits", info.flags, where)
    if info.next:
        found.chain(info.next, where)
    found.at_most(len(info.set_layouts), "maxBoundDescriptorSets", where, "descriptor sets")
    for pushed in info.push_constant_ranges:
        found.at_most(pushed.offset + pushed.size, "maxPushConstantsSize", where, "push constant bytes")
    bound: Counter[tuple[int, int]] = Counter()
    every: Counter[tuple[int, int]] = Counter()
    total: Counter[int] = Counter()
    total_every: Counter[int] = Counter()
    after_bind = False
    for layout in sets:
        later = layout.flags & 2
        after_bind = after_bind or bool(later)
        for binding in layout.bindings:
            kind = binding.descriptor_type
            count = (
                min(binding.descriptor_count, 1)
                if kind == c.VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK
                else binding.descriptor_count
            )
            total_every[kind] += count
            if not later:
                total[kind] += count
            for stage in _LAYOUT_STAGES:
                if binding.stage_flags & stage:
                    every[kind, stage] += count
                    if not later:
                        bound[kind, stage] += count
    _descriptor_limits(found, bound, total, "VkPhysicalDeviceLimits.", "", where)
    if after_bind:
        _descriptor_limits(found, every, total_every, "VkPhysicalDeviceVulkan12Properties.", "UpdateAfterBind", where)


def _descriptor_limits(
    found: Findings, by_stage: Mapping[tuple[int, int], int], total: Mapping[int, int], structure: str, when: str, where: str
) -> None:
    if not total:
        return
    for name, kinds in _COUNTED:
        most = max(sum(by_stage.get((kind, stage), 0) for kind in kinds) for stage in _LAYOUT_STAGES)
        per_stage = f"{structure}maxPerStageDescriptor{when}{name}"
        found.at_most(most, per_stage, where, f"descriptors ({name}) of one stage")
        # Dynamic buffers have a limit of their own in the sum over all stages.
        in_all = sum(total.get(kind, 0) for kind in kinds if kind not in (8, 9))
        found.at_most(in_all, f"{structure}maxDescriptorSet{when}{name}", where, f"descriptors ({name})")
    for name, kind in (("UniformBuffersDynamic", 8), ("StorageBuffersDynamic", 9)):
        found.at_most(total.get(kind, 0), f"{structure}maxDescriptorSet{when}{name}", where, f"descriptors ({name})")


# ---------------------------------------------------------------------------------------------------------------- render passes

_SEPARATE_LAYOUTS = frozenset(
    value
    for value, (name, _, _) in ENUMERANTS["VkImageLayout"].items()
    if re.fullmatch("VK_IMAGE_LAYOUT_(DEPTH|STENCIL)_(ATTACHMENT|READ_ONLY)_OPTIMAL", name)
)
"""Layouts of depth alone or of stencil alone."""


def render_pass(found: Findings, info: vk.RenderPassCreateInfo | vk.RenderPassCreateInfo2, where: str) -> None:
    """A render pass of either form."""
    second = type(info) is vk.RenderPassCreateInfo2
    if second and type(info) not in found.device.structures:
        found.chain((info,), where)
    if info.flags:
        found.flags("VkRenderPassCreateFlagBits", info.flags, where)
    if info.next:
        found.chain(info.next, where)
    masks = [0]
    for structure in info.next:
        if type(structure) is vk.RenderPassMultiviewCreateInfo:
            masks.extend(structure.view_masks)
        elif type(structure) is vk.RenderPassFragmentDensityMapCreateInfoEXT:
            name = "VkPhysicalDeviceFragmentDensityMapFeaturesEXT.fragmentDensityMap"
            found.feature(name, where, "a fragment density map")
    for attachment in info.attachments:
        if attachment.samples > 1:
            sample_count(found, attachment.samples, where)
        if attachment.format > 184:
            found.enumerant("VkFormat", attachment.format, where)
        for load in (attachment.load_op, attachment.stencil_load_op):
            if load > 2:
                found.enumerant("VkAttachmentLoadOp", load, where)
        for store in (attachment.store_op, attachment.stencil_store_op):
            if store > 1:
                found.enumerant("VkAttachmentStoreOp", store, where)
        for layout in (attachment.initial_layout, attachment.final_layout):
            image_layout(found, layout, where)
        if second and attachment.next:  # type: ignore[union-attr]
            found.chain(attachment.next, where)  # type: ignore[union-attr]
    for subpass in info.subpasses:
        found.at_most(len(subpass.color_attachments), "maxColorAttachments", where, "color attachments")
        if subpass.flags:
            found.flags("VkSubpassDescriptionFlagBits", subpass.flags, where)
        references = (*subpass.color_attachments, *subpass.input_attachments, *(subpass.resolve_attachments or ()))
        for reference in (*references, *((subpass.depth_stencil_attachment,) if subpass.depth_stencil_attachment else ())):
            if reference.attachment != 0xFFFFFFFF:
                image_layout(found, reference.layout, where)
        if second:
            masks.append(subpass.view_mask)  # type: ignore[union-attr]
            if subpass.next:  # type: ignore[union-attr]
                found.chain(subpass.next, where)  # type: ignore[union-attr]
                _resolves(found, subpass.next, where)  # type: ignore[union-attr]
    views(found, max(masks), where)


def image_layout(found: Findings, layout: int, where: str) -> None:
    """A layout that came with a later version, an extension or a feature."""
    if layout > 8 and found.enumerant("VkImageLayout", layout, where) and layout in _SEPARATE_LAYOUTS:
        found.feature(_F12 + "separateDepthStencilLayouts", where, "separate layouts of depth and stencil")


def _resolves(found: Findings, chain: Iterable[Struct], where: str) -> None:
    for structure in chain:
        if type(structure) is vk.SubpassDescriptionDepthStencilResolve:
            for mode, name in (
                (structure.depth_resolve_mode, "supportedDepthResolveModes"),
                (structure.stencil_resolve_mode, "supportedStencilResolveModes"),
            ):
                name = "VkPhysicalDeviceVulkan12Properties." + name
                have = found.device.properties.get(name)
                if mode and have is not None and not int(have) & mode:
                    found.add("limit", name, mode, have, where, f"resolve mode {mode} is not in {name} = {have}")


def views(found: Findings, mask: int, where: str) -> None:
    """A view mask (multiview)."""
    if mask:
        found.feature(_F11 + "multiview", where, "a view mask")
        limit = "VkPhysicalDeviceVulkan11Properties.maxMultiviewViewCount"
        found.at_most(mask.bit_length(), limit, where, "views")


# VkPipelineRobustnessCreateInfo
_ROBUST_BUFFERS = "VkPhysicalDeviceRobustness2FeaturesEXT.robustBufferAccess2"
_ROBUST_IMAGES = "VkPhysicalDeviceRobustness2FeaturesEXT.robustImageAccess2"


def robustness(found: Findings, info: vk.PipelineRobustnessCreateInfo, where: str) -> None:
    """Robustness of one pipeline or stage; the levels of VK_EXT_robustness2 need its features."""
    found.feature(_F14 + "pipelineRobustness", where, "pipeline robustness")
    if 3 in (info.storage_buffers, info.uniform_buffers, info.vertex_inputs):
        found.feature(_ROBUST_BUFFERS, where, "robust buffer access 2")
    if info.images == 3:
        found.feature(_ROBUST_IMAGES, where, "robust image access 2")


def missing(found: Findings, handle: Handle, where: str) -> None:
    """An object that the description refers to and does not hold."""
    name = f"{type(handle).__name__.removesuffix('Handle')} {handle.value:016x}"
    found.add("object", name, "present", "missing", where, f"{name} is not in the description")
