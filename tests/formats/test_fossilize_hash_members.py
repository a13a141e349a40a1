"""Every member that Fossilize hashes, in its place: objects written out as the words that Fossilize's source feeds to its hash.

Members have values that no other member has, so that one that is left out, doubled or in another's place gives another hash. The
order is that of ``fossilize.cpp`` of the Fossilize project (format version 6); the hash itself is computed here a second time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats.fossilize_hash import compute_hash
from shaderkiln.formats.fossilize_json import ApplicationInfo, FeatureStructure
from shaderkiln.vulkan_registry import constants
from shaderkiln.vulkan_registry import structures as s
from shaderkiln.vulkan_registry.handles import Handle, UnknownStructure


@dataclass(frozen=True)
class Wide:
    """A 64-bit word, which is hashed low half first."""

    value: int


@dataclass(frozen=True)
class When:
    """``then`` if one of the states is dynamic, else ``otherwise``. States are named without VK_DYNAMIC_STATE_."""

    states: tuple[str, ...]
    then: tuple[Any, ...]
    otherwise: tuple[Any, ...]


def zero(state: str, value: int | float) -> When:
    """A word that is 0 where the state is dynamic."""
    return When((state,), (0,) if isinstance(value, int) else (0.0,), (value,))


def gone(state: str, *values: Any) -> When:
    """Words that are left out where the state is dynamic."""
    return When((state,), (), values)


def words(steps: Iterable[Any], dynamic: tuple[str, ...] = ()) -> Iterable[int]:
    """The 32-bit words of steps: numbers, floats by their bits, texts behind 0xff, the halves of wide words."""
    for step in steps:
        match step:
            case When():
                yield from words(step.then if set(step.states) & set(dynamic) else step.otherwise, dynamic)
            case Wide():
                yield from (step.value & 0xFFFFFFFF, step.value >> 32)
            case float():
                yield struct.unpack("<I", struct.pack("<f", step))[0]
            case str():
                yield from (0xFF, *step.encode())
            case _:
                yield step & 0xFFFFFFFF


def fossilize(steps: Iterable[Any], dynamic: tuple[str, ...] = ()) -> int:
    """64-bit FNV-1 over words."""
    state = 0xCBF29CE484222325
    for word in words(steps, dynamic):
        state = (state * 0x100000001B3) % 2**64 ^ word
    return state


def nothing(handle: Handle) -> Any:
    raise AssertionError(f"{handle} is not needed")


def number(state: str) -> int:
    found: int = getattr(constants, f"VK_DYNAMIC_STATE_{state}")
    return found


def check(structure: Any, *steps: Any, resolve: Callable[[Handle], Any] = nothing) -> None:
    assert compute_hash(structure, resolve) == fossilize(steps)


# Objects


SAMPLER = s.SamplerCreateInfo(0x17, 1, 2, 3, 4, 5, 6, 0.5, 7, 1.5, 8, 9, 2.5, 3.5, 10, 11)
SAMPLER_STEPS = (0x17, 1.5, 0.5, 2.5, 3.5, 2, 1, 3, 8, 9, 7, 4, 5, 6, 10, 11)


def test_a_sampler() -> None:
    check(SAMPLER, *SAMPLER_STEPS)
    # VK_SAMPLER_CREATE_DESCRIPTOR_BUFFER_CAPTURE_REPLAY_BIT_EXT is 8.
    assert compute_hash(replace(SAMPLER, flags=0x1F), nothing) == fossilize(SAMPLER_STEPS)
    check(
        replace(SAMPLER, next=(s.SamplerReductionModeCreateInfo(2), s.SamplerCustomBorderColorCreateInfoEXT((1, 2, 3, 4), 5))),
        *SAMPLER_STEPS, 1000130001, 2, 1000287000, 1, 2, 3, 4, 5,
    )  # fmt: skip


def test_a_descriptor_set_layout() -> None:
    layout = s.DescriptorSetLayoutCreateInfo(
        6,
        (
            s.DescriptorSetLayoutBinding(1, 0, 2, 16, (s.SamplerHandle(0x500000004), s.SamplerHandle(7))),
            s.DescriptorSetLayoutBinding(3, 2, 4, 32, (s.SamplerHandle(8),)),
        ),
        (s.DescriptorSetLayoutBindingFlagsCreateInfo((4, 5)),),
    )
    check(layout, 2, 6, 1, 2, 0, 16, Wide(0x500000004), Wide(7), 3, 4, 2, 32, 1000161000, 2, 4, 5)


def test_a_render_pass_of_the_first_version() -> None:
    reference = s.AttachmentReference
    subpass = s.SubpassDescription(
        30, 31, (reference(32, 33),), (reference(34, 35), reference(36, 37)), (reference(38, 39), reference(40, 41)),
        reference(42, 43), (44, 45, 46),
    )  # fmt: skip
    made = s.RenderPassCreateInfo(
        9,
        (s.AttachmentDescription(1, 2, 3, 4, 5, 6, 7, 8, 10),),
        (subpass, s.SubpassDescription(47)),
        (s.SubpassDependency(11, 12, 13, 14, 15, 16, 17),),
        (s.RenderPassMultiviewCreateInfo((1, 2), (-1,), (3, 4, 5)),),
    )
    steps = (
        1, 1, 2,
        1, 8, 10, 2, 4, 5, 6, 7, 3,
        17, 16, 15, 11, 12, 13, 14,
        30, 2, 1, 3, 31, 44, 45, 46, 34, 35, 36, 37, 32, 33, 38, 39, 40, 41, 42, 43,
        47, 0, 0, 0, 0, 0,
        1000053000, 2, 1, 2, 1, -1, 3, 3, 4, 5,
    )  # fmt: skip
    check(made, 9, *steps)
    check(replace(made, flags=0), *steps)


def test_a_render_pass_of_the_second_version() -> None:
    def reference(first: int, *chain: Any) -> s.AttachmentReference2:
        return s.AttachmentReference2(first, first + 1, first + 2, chain)

    stencil = s.AttachmentReferenceStencilLayout(77)
    subpass = s.SubpassDescription2(
        30, 31, 29, (reference(50, stencil),), (reference(53),), (reference(56),), reference(59), (44,),
        (s.SubpassDescriptionDepthStencilResolve(62, 63, reference(64, stencil)),),
    )  # fmt: skip
    made = s.RenderPassCreateInfo2(
        9,
        (s.AttachmentDescription2(1, 2, 3, 4, 5, 6, 7, 8, 10, (s.AttachmentDescriptionStencilLayout(18, 19),)),),
        (subpass,),
        (s.SubpassDependency2(11, 12, 13, 14, 15, 16, 17, -2, (s.MemoryBarrier2(1 << 40, 2, 3 << 33, 4),)),),
        (20, 21),
        (s.RenderPassCreationControlEXT(1),),
    )
    check(
        made,
        9, 1, 1, 1, 2, 2,
        1, 8, 10, 2, 4, 5, 6, 7, 3, 1000241002, 18, 19,
        17, 16, 15, 11, 12, 13, 14, -2, 1000314000, Wide(1 << 40), Wide(2), Wide(3 << 33), Wide(4),
        30, 1, 1, 1, 31, 44, 53, 54, 55, 50, 51, 52, 1000241001, 77, 56, 57, 58, 59, 60, 61, 29,
        1000199001, 62, 63, 64, 65, 66, 1000241001, 77,
        20, 21, 1000458001, 1,
    )  # fmt: skip


SPECIALIZATION = s.SpecializationInfo((s.SpecializationMapEntry(7, 1, 2), s.SpecializationMapEntry(8, 3, 4)), b"\1\xff\2")
SPECIALIZATION_STEPS = (1, 0xFF, 2, Wide(3), 2, 1, Wide(2), 7, 3, Wide(4), 8)
SUBGROUP = s.PipelineShaderStageRequiredSubgroupSizeCreateInfo(32)
SUBGROUP_STEPS = (1000225001, 32)
DERIVATIVE = 4
"""VK_PIPELINE_CREATE_DERIVATIVE_BIT."""
CAPTURING = 0x40 | 0x80 | 0x100 | 0x200 | 1 << 31
"""Create flags for statistics, internal representations, failing when compiling is needed, returning early, capturing data."""


def test_a_compute_pipeline_with_a_base() -> None:
    stage = s.PipelineShaderStageCreateInfo(1, 32, s.ShaderModuleHandle(0x20000000B), "main", SPECIALIZATION, (SUBGROUP,))
    made = s.ComputePipelineCreateInfo(
        DERIVATIVE | 8 | CAPTURING, stage, s.PipelineLayoutHandle(0x30000000A), s.PipelineHandle(0x40000000C), -1,
    )  # fmt: skip
    body = (Wide(0x20000000B), "main", 1, 32, *SPECIALIZATION_STEPS, *SUBGROUP_STEPS)
    check(made, Wide(0x30000000A), DERIVATIVE | 8, Wide(0x40000000C), -1, *body)
    check(replace(made, base_pipeline_handle=None), Wide(0x30000000A), DERIVATIVE | 8, 0, *body)
    check(replace(made, flags=8), Wide(0x30000000A), 8, 0, *body)
    # The wide flags of a chain stand for the others, which may be anything.
    wide = (s.PipelineCreateFlags2CreateInfo(1 << 33 | CAPTURING | 8),)
    check(replace(made, next=wide), Wide(0x30000000A), 0, Wide(0x40000000C), -1, *body, 1000470005, Wide(1 << 33 | 8))


def test_an_inlined_module_counts_by_its_hash_and_not_as_a_link() -> None:
    module = s.ShaderModuleCreateInfo(5, struct.pack("<II", 0x07230203, 9))
    stage = s.PipelineShaderStageCreateInfo(0, 32, None, "f", None, (SUBGROUP, module))
    check(
        s.ComputePipelineCreateInfo(stage=stage),
        Wide(0), 0, 0, Wide(fossilize((0x07230203, 9, 5))), "f", 0, 32, 0, *SUBGROUP_STEPS,
    )  # fmt: skip


def test_a_ray_tracing_pipeline() -> None:
    link = (s.RayTracingPipelineClusterAccelerationStructureCreateInfoNV(1),)
    link_steps = (1000569007, 1)
    stages = tuple(s.PipelineShaderStageCreateInfo(n, 0x100 * n, s.ShaderModuleHandle(n + 4), f"s{n}") for n in (1, 2))
    made = s.RayTracingPipelineCreateInfoKHR(
        DERIVATIVE | CAPTURING,
        stages,
        (s.RayTracingShaderGroupCreateInfoKHR(1, 2, 3, 4, 5, next=link), s.RayTracingShaderGroupCreateInfoKHR(6)),
        31,
        s.PipelineLibraryCreateInfoKHR((s.PipelineHandle(0x500000001), s.PipelineHandle(2)), link),
        s.RayTracingPipelineInterfaceCreateInfoKHR(41, 42, link),
        s.PipelineDynamicStateCreateInfo(51, (1000347000,), link),
        s.PipelineLayoutHandle(0x30000000A),
        s.PipelineHandle(0x40000000C),
        6,
        link,
    )
    stage_steps = (2, 1, "s1", 0x100, Wide(5), 0, 2, "s2", 0x200, Wide(6), 0)
    unused = 0xFFFFFFFF
    other = s.RayTracingShaderGroupCreateInfoKHR(6)
    group_steps = (
        2, 1, 4, 3, 2, 5, *link_steps,
        6, other.any_hit_shader, other.closest_hit_shader, other.general_shader, other.intersection_shader,
    )  # fmt: skip
    assert other.any_hit_shader in (0, unused)
    check(
        made,
        DERIVATIVE, 31, Wide(0x30000000A), Wide(0x40000000C), 6, *stage_steps,
        42, 41, *link_steps, 1, 51, 1000347000, *link_steps, *group_steps,
        2, Wide(0x500000001), Wide(2), *link_steps, *link_steps,
    )  # fmt: skip
    bare = replace(made, flags=0, library_info=None, library_interface=None, dynamic_state=None)
    check(bare, 0, 31, Wide(0x30000000A), 0, *stage_steps, 0, 0, *group_steps, 0, *link_steps)


@pytest.mark.parametrize(("name", "engine"), [("a", "bc"), (None, "bc"), ("a", None)])
def test_application_information(name: str | None, engine: str | None) -> None:
    structures = (FeatureStructure(1000382000, (1, 2, 3)), FeatureStructure(1000335000, (4,)))
    info = fossilize((1, 3, 2, 0 if name is None else name, 0 if engine is None else engine))
    # VK_EXT_primitives_generated_query: the query, with streams other than 0, behind rasterizer discard; in JSON the last two
    # change places.
    features = fossilize((1, 1000382000, 1, 3, 2, 1000335000, 4))
    check(ApplicationInfo(name, engine, 1, 2, 3, 1, structures), Wide(info), Wide(features))
    check(ApplicationInfo(name, engine, 1, 2, 3), Wide(info), Wide(0))


# Graphics pipelines


def skeleton(
    *,
    flags: int = 0,
    base: tuple[Any, ...] = (),
    layout: int = 0,
    render_pass: int = 0,
    subpass: int = 0,
    stage_count: int = 0,
    dynamic: tuple[str, ...] = (),
    depth_stencil: tuple[Any, ...] = (0,),
    input_assembly: tuple[Any, ...] = (0,),
    rasterization: tuple[Any, ...] = (0,),
    multisample: tuple[Any, ...] = (),
    viewport: tuple[Any, ...] = (0,),
    vertex_input: tuple[Any, ...] = (0,),
    color_blend: tuple[Any, ...] = (0,),
    tessellation: tuple[Any, ...] = (0,),
    stages: tuple[Any, ...] = (),
    chain: tuple[Any, ...] = (),
) -> int:
    """The hash of a graphics pipeline from the words of its parts; what is not there is one 0, multisampling nothing."""
    states = (len(dynamic), 0, *map(number, dynamic)) if dynamic else (0,)
    parts = (
        *depth_stencil, *input_assembly, *rasterization, *multisample, *viewport, *vertex_input, *color_blend, *tessellation,
    )  # fmt: skip
    head = (flags, *base, Wide(layout), Wide(render_pass), subpass, stage_count, *states)
    return fossilize((*head, *parts, *stages, *chain), dynamic)


def dynamic_state(dynamic: tuple[str, ...]) -> s.PipelineDynamicStateCreateInfo | None:
    return s.PipelineDynamicStateCreateInfo(0, tuple(map(number, dynamic))) if dynamic else None


DEPTH_STENCIL = s.PipelineDepthStencilStateCreateInfo(
    1, 2, 3, 4, 5, 6, s.StencilOpState(7, 8, 9, 10, 11, 12, 13), s.StencilOpState(14, 15, 16, 17, 18, 19, 20), 0.25, 0.75
)
DEPTH_STENCIL_STEPS = (
    1, zero("DEPTH_BOUNDS_TEST_ENABLE", 5), zero("DEPTH_COMPARE_OP", 4), zero("DEPTH_TEST_ENABLE", 2),
    zero("DEPTH_WRITE_ENABLE", 3), *(zero("STENCIL_OP", value) for value in (10, 9, 7, 8, 17, 16, 14, 15)),
    zero("STENCIL_TEST_ENABLE", 6), gone("DEPTH_BOUNDS", 0.25, 0.75), gone("STENCIL_COMPARE_MASK", 11, 18),
    gone("STENCIL_REFERENCE", 13, 20), gone("STENCIL_WRITE_MASK", 12, 19),
)  # fmt: skip
INPUT_ASSEMBLY = s.PipelineInputAssemblyStateCreateInfo(1, 3, 2)
INPUT_ASSEMBLY_STEPS = (1, zero("PRIMITIVE_RESTART_ENABLE", 2), 3)
RASTERIZATION = s.PipelineRasterizationStateCreateInfo(1, 2, 3, 4, 5, 6, 7, 1.5, 2.5, 3.5, 4.5)
RASTERIZATION_STEPS = (
    1, zero("CULL_MODE", 5), zero("DEPTH_CLAMP_ENABLE_EXT", 2), zero("FRONT_FACE", 6), zero("RASTERIZER_DISCARD_ENABLE", 3),
    zero("POLYGON_MODE_EXT", 4), zero("DEPTH_BIAS_ENABLE", 7), gone("DEPTH_BIAS", 2.5, 3.5, 1.5), gone("LINE_WIDTH", 4.5),
)  # fmt: skip
MULTISAMPLE = s.PipelineMultisampleStateCreateInfo(1, 64, 2, 0.5, (0xF0, 0xA), 3, 4)
MULTISAMPLE_STEPS = (
    1, zero("ALPHA_TO_COVERAGE_ENABLE_EXT", 3), zero("ALPHA_TO_ONE_ENABLE_EXT", 4), 0.5, zero("RASTERIZATION_SAMPLES_EXT", 64), 2,
    When(("SAMPLE_MASK_EXT",), (0,), (0xF0, 0xA)),
)  # fmt: skip
VIEWPORT = s.PipelineViewportStateCreateInfo(
    1,
    viewports=(s.Viewport(1.5, 2.5, 3.5, 4.5, 0.25, 0.75), s.Viewport(5.5)),
    scissors=(s.Rect2D(s.Offset2D(-2, 3), s.Extent2D(4, 5)),),
)
VIEWPORT_STEPS = (
    1, zero("SCISSOR_WITH_COUNT", 1), zero("VIEWPORT_WITH_COUNT", 2),
    When(("SCISSOR", "SCISSOR_WITH_COUNT"), (), (-2, 3, 4, 5)),
    When(("VIEWPORT", "VIEWPORT_WITH_COUNT"), (), (1.5, 2.5, 3.5, 4.5, 0.25, 0.75, 5.5, 0.0, 0.0, 0.0, 0.0, 0.0)),
)  # fmt: skip
VERTEX_INPUT = s.PipelineVertexInputStateCreateInfo(
    1,
    (s.VertexInputBindingDescription(2, 3, 4), s.VertexInputBindingDescription(5, 6, 7)),
    (s.VertexInputAttributeDescription(8, 9, 10, 11),),
)
STRIDE = "VERTEX_INPUT_BINDING_STRIDE"
VERTEX_INPUT_STEPS = (
    When(("VERTEX_INPUT_EXT",), (0,), (1, 1, 2, 11, 9, 10, 8, 2, 4, zero(STRIDE, 3), 5, 7, zero(STRIDE, 6))),
)  # fmt: skip
COLOR_BLEND = s.PipelineColorBlendStateCreateInfo(
    1, 2, 3,
    attachments=(
        s.PipelineColorBlendAttachmentState(1, 4, 5, 6, 7, 8, 9, 11),
        s.PipelineColorBlendAttachmentState(0, 12, 13, 14, 15, 16, 17, 18),
    ),
    blend_constants=(0.5, 1.5, 2.5, 3.5),
)  # fmt: skip
EQUATION, ADVANCED = "COLOR_BLEND_EQUATION_EXT", "COLOR_BLEND_ADVANCED_EXT"
ENABLE, WRITE_MASK = "COLOR_BLEND_ENABLE_EXT", "COLOR_WRITE_MASK_EXT"


def equation(alpha_op: int, color_op: int, *factors: int) -> When:
    return When((EQUATION,), (0,), (zero(ADVANCED, alpha_op), zero(ADVANCED, color_op), *factors))


# The second attachment's factor 12 is VK_BLEND_FACTOR_CONSTANT_ALPHA: it counts where blending is dynamic.
COLOR_BLEND_STEPS = (
    1, 2, zero("LOGIC_OP_ENABLE_EXT", 2), zero("LOGIC_OP_EXT", 3),
    zero(ENABLE, 1), zero(WRITE_MASK, 11), equation(9, 6, 8, 7, 5, 4),
    0, zero(WRITE_MASK, 18), When((ENABLE,), (equation(17, 14, 16, 15, 13, 12),), (0,)),
    When((ENABLE, EQUATION), (gone("BLEND_CONSTANTS", 0.5, 1.5, 2.5, 3.5),), ()),
)  # fmt: skip
TESSELLATION = s.PipelineTessellationStateCreateInfo(1, 2)
TESSELLATION_STEPS = (1, zero("PATCH_CONTROL_POINTS_EXT", 2))

RENDERING = s.PipelineRenderingCreateInfo(5, (44, 45), 126, 127)
RENDERING_STEPS = (1000044002, 2, 5, 44, 45, 126, 127)
STAGES = (
    s.PipelineShaderStageCreateInfo(0, 1, s.ShaderModuleHandle(0x70000000B), "v", SPECIALIZATION, (SUBGROUP,)),
    s.PipelineShaderStageCreateInfo(0, 2, s.ShaderModuleHandle(0xC), "t"),
)
"""A vertex and a tessellation control shader."""
STAGE_STEPS = (0, "v", 1, Wide(0x70000000B), *SPECIALIZATION_STEPS, *SUBGROUP_STEPS, 0, "t", 2, Wide(0xC), 0)
COMPLETE = s.GraphicsPipelineCreateInfo(
    flags=8 | CAPTURING,
    stages=STAGES,
    vertex_input_state=VERTEX_INPUT,
    input_assembly_state=INPUT_ASSEMBLY,
    tessellation_state=TESSELLATION,
    viewport_state=VIEWPORT,
    rasterization_state=RASTERIZATION,
    multisample_state=MULTISAMPLE,
    depth_stencil_state=DEPTH_STENCIL,
    color_blend_state=COLOR_BLEND,
    layout=s.PipelineLayoutHandle(0x800000001),
    subpass=6,
    next=(RENDERING,),
)
COMPLETE_STEPS: dict[str, Any] = {
    "flags": 8,
    "layout": 0x800000001,
    "subpass": 6,
    "stage_count": 2,
    "depth_stencil": DEPTH_STENCIL_STEPS,
    "input_assembly": INPUT_ASSEMBLY_STEPS,
    "rasterization": RASTERIZATION_STEPS,
    "multisample": MULTISAMPLE_STEPS,
    "viewport": VIEWPORT_STEPS,
    "vertex_input": VERTEX_INPUT_STEPS,
    "color_blend": COLOR_BLEND_STEPS,
    "tessellation": TESSELLATION_STEPS,
    "stages": STAGE_STEPS,
    "chain": RENDERING_STEPS,
}


def check_graphics(changes: dict[str, Any], dynamic: tuple[str, ...] = (), **steps: Any) -> None:
    """The complete pipeline with changes has the hash of the complete steps with those given in place of others."""
    pipeline = replace(COMPLETE, dynamic_state=dynamic_state(dynamic), **changes)
    assert compute_hash(pipeline, nothing) == skeleton(dynamic=dynamic, **{**COMPLETE_STEPS, **steps})


DYNAMIC = tuple(
    sorted(name.removeprefix("VK_DYNAMIC_STATE_") for name in vars(constants) if name.startswith("VK_DYNAMIC_STATE_"))
)


def test_a_complete_graphics_pipeline() -> None:
    check_graphics({})


@pytest.mark.parametrize("state", DYNAMIC)
def test_each_dynamic_state_takes_out_its_own_members_and_no_others(state: str) -> None:
    check_graphics({}, (state,))


@pytest.mark.parametrize(
    "states",
    [
        ("DEPTH_BOUNDS_TEST_ENABLE", "STENCIL_TEST_ENABLE", "DEPTH_BIAS_ENABLE"),
        ("SCISSOR", "VIEWPORT_WITH_COUNT"),
        (ENABLE, EQUATION),
        (ENABLE, WRITE_MASK),
        (EQUATION, WRITE_MASK),
        (ENABLE, ADVANCED, "BLEND_CONSTANTS"),
        (EQUATION, "BLEND_CONSTANTS"),
    ],
)
def test_dynamic_states_together(states: tuple[str, ...]) -> None:
    check_graphics({}, states)


def test_attachments_are_not_looked_at_where_all_of_them_is_dynamic() -> None:
    constants_steps = (0.5, 1.5, 2.5, 3.5)
    check_graphics({}, (ENABLE, EQUATION, WRITE_MASK), color_blend=(1, 2, 2, 3, 0, *constants_steps))
    unknown = replace(COLOR_BLEND, attachments=None, attachment_count=7)
    check_graphics(
        {"color_blend_state": unknown}, (ENABLE, EQUATION, WRITE_MASK), color_blend=(1, 7, 2, 3, 0, *constants_steps)
    )


def test_values_that_are_off_take_out_what_they_govern() -> None:
    off = replace(DEPTH_STENCIL, depth_bounds_test_enable=0, stencil_test_enable=0)
    steps = (1, 0, 4, 2, 3, 10, 9, 7, 8, 17, 16, 14, 15, 0)
    check_graphics({"depth_stencil_state": off}, depth_stencil=steps)
    # One of the two is on, then the other.
    check_graphics(
        {"depth_stencil_state": replace(off, depth_bounds_test_enable=5)}, depth_stencil=(1, 5, *steps[2:], 0.25, 0.75)
    )
    check_graphics(
        {"depth_stencil_state": replace(off, stencil_test_enable=6)}, depth_stencil=(*steps[:-1], 6, 11, 18, 13, 20, 12, 19)
    )
    # On the command list they may come on.
    check_graphics(
        {"depth_stencil_state": off}, ("DEPTH_BOUNDS_TEST_ENABLE",), depth_stencil=(*steps, 0.25, 0.75)
    )  # fmt: skip
    check_graphics({"depth_stencil_state": off}, ("STENCIL_TEST_ENABLE",), depth_stencil=(*steps, 11, 18, 13, 20, 12, 19))
    unbiased = replace(RASTERIZATION, depth_bias_enable=0)
    check_graphics({"rasterization_state": unbiased}, rasterization=(1, 5, 2, 6, 3, 4, 0, 4.5))
    check_graphics(
        {"rasterization_state": unbiased}, ("DEPTH_BIAS_ENABLE",), rasterization=(1, 5, 2, 6, 3, 4, 0, 2.5, 3.5, 1.5, 4.5)
    )
    check_graphics({"multisample_state": replace(MULTISAMPLE, sample_mask=None)}, multisample=(1, 3, 4, 0.5, 64, 2, 0))
    no_logic = {"color_blend_state": replace(COLOR_BLEND, logic_op_enable=0)}
    rest = COLOR_BLEND_STEPS[4:]
    check_graphics(no_logic, color_blend=(1, 2, 0, 0, *rest))
    check_graphics(no_logic, ("LOGIC_OP_ENABLE_EXT",), color_blend=(1, 2, 0, 3, *rest))


@pytest.mark.parametrize("factor", [10, 12])
@pytest.mark.parametrize("place", range(4))
def test_blend_constants_count_where_a_factor_is_one(factor: int, place: int) -> None:
    names = ("dst_alpha_blend_factor", "src_alpha_blend_factor", "dst_color_blend_factor", "src_color_blend_factor")
    enabled = s.PipelineColorBlendAttachmentState(1, 2, 2, 0, 2, 2, 0, 15)
    for attachment, constant in ((replace(enabled, **{names[place]: factor}), True), (enabled, False)):
        blend = replace(COLOR_BLEND, attachments=(attachment,))
        factors = tuple(getattr(attachment, name) for name in names)
        check_graphics(
            {"color_blend_state": blend},
            color_blend=(1, 1, 2, 3, 1, 15, 0, 0, *factors, *((0.5, 1.5, 2.5, 3.5) if constant else ())),
        )


def test_counts_stand_for_viewports_and_scissors_that_are_not_given() -> None:
    counted = s.PipelineViewportStateCreateInfo(1, viewport_count=2, viewports=None, scissor_count=3, scissors=None)
    check_graphics({"viewport_state": counted}, ("VIEWPORT", "SCISSOR"), viewport=(1, 3, 2))


def test_each_part_is_followed_by_its_chain() -> None:
    link, steps = s.RenderPassCreationControlEXT(9), (1000458001, 9)
    for field in (
        "depth_stencil", "input_assembly", "rasterization", "multisample", "viewport", "vertex_input", "color_blend", "tessellation"
    ):  # fmt: skip
        part = getattr(COMPLETE, f"{field}_state")
        check_graphics({f"{field}_state": replace(part, next=(link,))}, **{field: (*COMPLETE_STEPS[field], *steps)})


def test_a_dynamic_state_with_flags_and_a_chain() -> None:
    link = s.PipelineTessellationDomainOriginStateCreateInfo(1)
    state = number("TESSELLATION_DOMAIN_ORIGIN_EXT")
    pipeline = s.GraphicsPipelineCreateInfo(dynamic_state=s.PipelineDynamicStateCreateInfo(3, (state,), (link,)))
    check(pipeline, 0, Wide(0), Wide(0), 0, 0, 1, 3, state, 1000117003, 0, *([0] * 7))


def test_a_base_pipeline() -> None:
    derived = {"flags": DERIVATIVE, "base_pipeline_handle": s.PipelineHandle(0x900000002), "base_pipeline_index": -1}
    check_graphics(derived, flags=DERIVATIVE, base=(Wide(0x900000002), -1))
    check_graphics({**derived, "flags": 8})
    check_graphics({**derived, "base_pipeline_handle": None}, flags=DERIVATIVE)


def test_what_is_not_there_is_one_zero() -> None:
    for field in (
        "depth_stencil", "input_assembly", "rasterization", "viewport", "vertex_input", "color_blend", "tessellation"
    ):  # fmt: skip
        check_graphics({f"{field}_state": None}, **{field: (0,)})
    check_graphics({"multisample_state": None}, multisample=())


def test_rasterizer_discard_takes_out_everything_behind_it() -> None:
    discards = {"rasterization_state": replace(RASTERIZATION, rasterizer_discard_enable=1)}
    steps = (*RASTERIZATION_STEPS[:4], zero("RASTERIZER_DISCARD_ENABLE", 1), *RASTERIZATION_STEPS[5:])
    check_graphics(discards, rasterization=steps, depth_stencil=(0,), multisample=(), viewport=(0,), color_blend=(0,))
    check_graphics(discards, ("RASTERIZER_DISCARD_ENABLE",), rasterization=steps)


@pytest.mark.parametrize("stage", [0x40, 0x80], ids=["task", "mesh"])
def test_mesh_pipelines_have_no_vertex_input(stage: int) -> None:
    stages = (s.PipelineShaderStageCreateInfo(0, stage, s.ShaderModuleHandle(1), "m"),)
    check_graphics(
        {"stages": stages},
        stage_count=1, stages=(0, "m", stage, Wide(1), 0), input_assembly=(0,), vertex_input=(0,), tessellation=(0,),
    )  # fmt: skip


@pytest.mark.parametrize("stage", [1, 2, 4, 8, 16])
def test_patches_count_where_a_tessellation_shader_is(stage: int) -> None:
    stages = (s.PipelineShaderStageCreateInfo(0, stage, s.ShaderModuleHandle(1), "m"),)
    tessellation = TESSELLATION_STEPS if stage in (2, 4) else (0,)
    check_graphics({"stages": stages}, stage_count=1, stages=(0, "m", stage, Wide(1), 0), tessellation=tessellation)


@pytest.mark.parametrize("parts", range(16))
def test_a_pipeline_library_has_the_state_of_its_parts(parts: int) -> None:
    # VkGraphicsPipelineLibraryFlagBitsEXT
    vertex, pre_rasterization, fragment, output = (bool(parts & bit) for bit in (1, 2, 4, 8))
    out: dict[str, Any] = {}
    if not vertex:
        out |= {"input_assembly": (0,), "vertex_input": (0,)}
    if not pre_rasterization:
        out |= {"rasterization": (0,), "viewport": (0,), "tessellation": (0,)}
    if not fragment:
        out |= {"depth_stencil": (0,)}
    if not (fragment or output):
        out |= {"multisample": ()}
    if not output:
        out |= {"color_blend": (0,)}
    if not (pre_rasterization or fragment):
        out |= {"layout": 0, "stage_count": 0, "stages": ()}
        out |= {"tessellation": (0,)}
    if not (pre_rasterization or fragment or output):
        out |= {"subpass": 0}
    rendering = (1000044002, *((2,) if output else ()), *((5,) if parts & 14 else ()), *((44, 45, 126, 127) if output else ()))
    library = s.GraphicsPipelineLibraryCreateInfoEXT(parts)
    is_library = 0x800
    check_graphics(
        {"flags": is_library, "next": (RENDERING, library)},
        flags=is_library, chain=(*rendering, 1000320002, parts), **out,
    )  # fmt: skip
    # Without the flag it is a complete pipeline, whatever the chain says.
    check_graphics({"next": (RENDERING, library)}, chain=(*RENDERING_STEPS, 1000320002, parts))


def test_a_discarding_rasterization_state_of_another_part_is_not_looked_at() -> None:
    discards = replace(RASTERIZATION, rasterizer_discard_enable=1)
    check_graphics(
        {"flags": 0x800, "rasterization_state": discards, "next": (RENDERING, s.GraphicsPipelineLibraryCreateInfoEXT(12))},
        flags=0x800, rasterization=(0,), viewport=(0,), vertex_input=(0,), input_assembly=(0,), tessellation=(0,),
        chain=(*RENDERING_STEPS, 1000320002, 12),
    )  # fmt: skip


def test_a_library_of_fragment_shaders_has_depth_and_stencil_though_it_knows_no_attachments() -> None:
    for parts, has_depth in ((4, True), (6, True), (12, False), (8, False)):
        library = s.GraphicsPipelineLibraryCreateInfoEXT(parts)
        pipeline = s.GraphicsPipelineCreateInfo(flags=0x800, depth_stencil_state=DEPTH_STENCIL, next=(library,))
        depth = DEPTH_STENCIL_STEPS if has_depth else (0,)
        assert compute_hash(pipeline, nothing) == skeleton(flags=0x800, depth_stencil=depth, chain=(1000320002, parts)), parts


@pytest.mark.parametrize(
    ("rendering", "color", "depth"),
    [
        (s.PipelineRenderingCreateInfo(0, (), 0, 0), False, False),
        (s.PipelineRenderingCreateInfo(0, (0,), 0, 0), True, False),
        (s.PipelineRenderingCreateInfo(0, (), 1, 0), False, True),
        (s.PipelineRenderingCreateInfo(0, (), 0, 1), False, True),
        (None, False, False),
    ],
)
def test_state_of_attachments_counts_where_there_are_some(rendering: Any, color: bool, depth: bool) -> None:
    chain: tuple[Any, ...] = ()
    if rendering is not None:
        formats = rendering.color_attachment_formats
        ends = (rendering.depth_attachment_format, rendering.stencil_attachment_format)
        chain = (1000044002, len(formats), 0, *formats, *ends)
    check_graphics(
        {"next": () if rendering is None else (rendering,)},
        chain=chain, **({} if color else {"color_blend": (0,)}), **({} if depth else {"depth_stencil": (0,)}),
    )  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
def test_the_subpass_says_which_attachments_are_used(version: int) -> None:
    reference: Any = s.AttachmentReference if version == 1 else s.AttachmentReference2
    subpass: Any = s.SubpassDescription if version == 1 else s.SubpassDescription2
    unused = 0xFFFFFFFF
    subpasses = (
        subpass(color_attachments=(reference(unused),)),
        subpass(depth_stencil_attachment=reference(unused)),
        subpass(depth_stencil_attachment=reference(0)),
    )
    created: Any = s.RenderPassCreateInfo if version == 1 else s.RenderPassCreateInfo2
    described = created(subpasses=subpasses)
    handle = s.RenderPassHandle(0xA00000003)
    for index, out in enumerate(({"depth_stencil": (0,)}, {"depth_stencil": (0,), "color_blend": (0,)}, {"color_blend": (0,)})):
        pipeline = replace(COMPLETE, render_pass=handle, subpass=index)
        expected = skeleton(**{**COMPLETE_STEPS, "render_pass": handle.value, "subpass": index, **out})
        assert compute_hash(pipeline, {handle: described}.__getitem__) == expected
    with pytest.raises(InvalidArgumentError, match="subpass 3"):
        compute_hash(replace(COMPLETE, render_pass=handle, subpass=3), lambda _: described)
    with pytest.raises(InvalidArgumentError, match="no render pass"):
        compute_hash(replace(COMPLETE, render_pass=handle), lambda _: SAMPLER)


def test_a_library_of_vertex_input_does_not_look_at_its_render_pass() -> None:
    pipeline = s.GraphicsPipelineCreateInfo(
        flags=0x800, render_pass=s.RenderPassHandle(5), next=(s.GraphicsPipelineLibraryCreateInfoEXT(1),)
    )
    assert compute_hash(pipeline, nothing) == skeleton(flags=0x800, chain=(1000320002, 1))


# Chains

RATE = "FRAGMENT_SHADING_RATE_KHR"
COMPONENTS = s.ComponentMapping(21, 22, 23, 24)
LOCATIONS = s.SampleLocationsInfoEXT(4, s.Extent2D(5, 6), (s.SampleLocationEXT(0.25, 0.5), s.SampleLocationEXT(0.75, 1.5)))
LINE_STIPPLE = When(("LINE_STIPPLE",), (0, 0), (3, 4))
LINKS: list[tuple[Any, tuple[Any, ...]]] = [
    (s.PipelineTessellationDomainOriginStateCreateInfo(1), (1000117003, zero("TESSELLATION_DOMAIN_ORIGIN_EXT", 1))),
    (
        s.PipelineVertexInputDivisorStateCreateInfo(
            (s.VertexInputBindingDivisorDescription(1, 2), s.VertexInputBindingDivisorDescription(3, 4))
        ),
        (1000190001, 2, 1, 2, 3, 4),
    ),
    (s.PipelineRasterizationDepthClipStateCreateInfoEXT(1, 2), (1000102001, 1, zero("DEPTH_CLIP_ENABLE_EXT", 2))),
    (s.PipelineRasterizationStateStreamCreateInfoEXT(1, 2), (1000028002, 1, zero("RASTERIZATION_STREAM_EXT", 2))),
    (s.RenderPassMultiviewCreateInfo((1, 2), (3,), (4, 5, 6)), (1000053000, 2, 1, 2, 1, 3, 3, 4, 5, 6)),
    (s.DescriptorSetLayoutBindingFlagsCreateInfo((1, 2)), (1000161000, 2, 1, 2)),
    (s.PipelineColorBlendAdvancedStateCreateInfoEXT(1, 2, 3), (1000148002, When((ADVANCED,), (0,), (1, 2, 3)))),
    (
        s.PipelineRasterizationConservativeStateCreateInfoEXT(1, 2, 0.5),
        (
            1000101001, 1, zero("CONSERVATIVE_RASTERIZATION_MODE_EXT", 2),
            zero("EXTRA_PRIMITIVE_OVERESTIMATION_SIZE_EXT", 0.5),
        ),
    ),
    (
        s.PipelineRasterizationLineStateCreateInfo(1, 2, 3, 4),
        (1000259001, zero("LINE_RASTERIZATION_MODE_EXT", 1), zero("LINE_STIPPLE_ENABLE_EXT", 2), LINE_STIPPLE),
    ),
    (
        s.PipelineRasterizationLineStateCreateInfo(1, 0, 3, 4),
        (
            1000259001, zero("LINE_RASTERIZATION_MODE_EXT", 1), 0,
            When(("LINE_STIPPLE_ENABLE_EXT",), (LINE_STIPPLE,), (0, 0)),
        ),
    ),
    (SUBGROUP, SUBGROUP_STEPS),
    (
        s.MutableDescriptorTypeCreateInfoEXT((s.MutableDescriptorTypeListEXT((1, 2)), s.MutableDescriptorTypeListEXT((3,)))),
        (1000351002, 2, 2, 1, 2, 1, 3),
    ),
    (s.AttachmentDescriptionStencilLayout(1, 2), (1000241002, 1, 2)),
    (
        s.FragmentShadingRateAttachmentInfoKHR(s.AttachmentReference2(1, 2, 3), s.Extent2D(4, 5)),
        (1000226000, 1, 2, 3, 4, 5),
    ),
    (s.FragmentShadingRateAttachmentInfoKHR(None, s.Extent2D(4, 5)), (1000226000, 0)),
    (
        s.SubpassDescriptionDepthStencilResolve(1, 2, s.AttachmentReference2(3, 4, 5)),
        (1000199001, 1, 2, 3, 4, 5),
    ),
    (s.SubpassDescriptionDepthStencilResolve(1, 2, None), (1000199001, 0)),
    (s.AttachmentReferenceStencilLayout(1), (1000241001, 1)),
    (s.PipelineRenderingCreateInfo(1, (2, 3), 4, 5), (1000044002, 2, 1, 2, 3, 4, 5)),
    (s.PipelineColorWriteCreateInfoEXT((1, 0, 1)), (1000381001, 3, gone("COLOR_WRITE_ENABLE_EXT", 1, 0, 1))),
    (
        s.PipelineSampleLocationsStateCreateInfoEXT(1, LOCATIONS),
        (
            1000143002, zero("SAMPLE_LOCATIONS_ENABLE_EXT", 1),
            When(("SAMPLE_LOCATIONS_EXT",), (0,), (5, 6, 4, 2, 0.25, 0.5, 0.75, 1.5)),
        ),
    ),
    (
        s.PipelineSampleLocationsStateCreateInfoEXT(0, LOCATIONS),
        (1000143002, 0, When(("SAMPLE_LOCATIONS_ENABLE_EXT",), (5, 6, 4, 2, 0.25, 0.5, 0.75, 1.5), (0,))),
    ),
    (s.PipelineRasterizationProvokingVertexStateCreateInfoEXT(1), (1000254001, zero("PROVOKING_VERTEX_MODE_EXT", 1))),
    (s.SamplerCustomBorderColorCreateInfoEXT((1, 2, 3, 4), 5), (1000287000, 1, 2, 3, 4, 5)),
    (s.SamplerReductionModeCreateInfo(1), (1000130001, 1)),
    (
        s.RenderPassInputAttachmentAspectCreateInfo(
            (s.InputAttachmentAspectReference(1, 2, 3), s.InputAttachmentAspectReference(4, 5, 6))
        ),
        (1000117001, 2, 1, 2, 3, 4, 5, 6),
    ),
    (
        s.PipelineDiscardRectangleStateCreateInfoEXT(1, 2, (s.Rect2D(s.Offset2D(-3, 4), s.Extent2D(5, 6)),)),
        (1000099001, 1, zero("DISCARD_RECTANGLE_MODE_EXT", 2), 1, gone("DISCARD_RECTANGLE_EXT", -3, 4, 5, 6)),
    ),
    (s.MemoryBarrier2(1 << 40, 2 << 40, 3, 4 << 34), (1000314000, Wide(1 << 40), Wide(2 << 40), Wide(3), Wide(4 << 34))),
    (s.PipelineFragmentShadingRateStateCreateInfoKHR(s.Extent2D(1, 2), (3, 4)), (1000226001, gone(RATE, 1, 2, 3, 4))),
    (s.SamplerYcbcrConversionCreateInfo(1, 2, 3, COMPONENTS, 4, 5, 6, 7), (1000156000, 1, 2, 3, 21, 22, 23, 24, 4, 5, 6, 7)),
    (s.GraphicsPipelineLibraryCreateInfoEXT(15), (1000320002, 15)),
    (s.PipelineLibraryCreateInfoKHR((s.PipelineHandle(1 << 40), s.PipelineHandle(2))), (1000290000, 2, Wide(1 << 40), Wide(2))),
    (
        s.PipelineViewportDepthClipControlCreateInfoEXT(1),
        (1000355001, zero("DEPTH_CLIP_NEGATIVE_ONE_TO_ONE_EXT", 1)),
    ),
    (s.RenderPassCreationControlEXT(1), (1000458001, 1)),
    (s.SamplerBorderColorComponentMappingCreateInfoEXT(COMPONENTS, 1), (1000411001, 1, 21, 22, 23, 24)),
    (s.MultisampledRenderToSingleSampledInfoEXT(1, 2), (1000376002, 1, 2)),
    (s.DepthBiasRepresentationInfoEXT(1, 2), (1000283002, When(("DEPTH_BIAS",), (0,), (2, 1)))),
    (s.RenderPassFragmentDensityMapCreateInfoEXT(s.AttachmentReference(1, 2)), (1000218002, 1, 2)),
    (LOCATIONS, (1000143000, 2, 5, 6, 4, 0.25, 0.5, 0.75, 1.5)),
    (s.PipelineRobustnessCreateInfo(1, 2, 3, 4), (1000068000, 4, 3, 2, 1)),
    (
        s.PipelineViewportDepthClampControlCreateInfoEXT(1, s.DepthClampRangeEXT(0.25, 0.75)),
        (1000582001, gone("DEPTH_CLAMP_RANGE_EXT", 1, 0.25, 0.75)),
    ),
    (
        s.PipelineViewportDepthClampControlCreateInfoEXT(0, s.DepthClampRangeEXT(0.25, 0.75)),
        (1000582001, gone("DEPTH_CLAMP_RANGE_EXT", 0, 0)),
    ),
    (s.PipelineViewportDepthClampControlCreateInfoEXT(1, None), (1000582001, gone("DEPTH_CLAMP_RANGE_EXT", 1, 0))),
    (s.RenderingAttachmentLocationInfo((1, 2)), (1000232001, 2, 1, 2)),
    (s.RenderingInputAttachmentIndexInfo(9, (1, 2)), (1000232002, 2, 1, 2, 0xFFFF, 0xFFFF)),
    (s.RenderingInputAttachmentIndexInfo(3, None), (1000232002, 3, 0, 0xFFFF, 0xFFFF)),
    (s.RayTracingPipelineClusterAccelerationStructureCreateInfoNV(1), (1000569007, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("link", "steps"), LINKS, ids=lambda part: type(part).__name__)
def test_each_chained_structure_in_a_pipeline(link: Any, steps: tuple[Any, ...]) -> None:
    named = {state for state in DYNAMIC if f"'{state}'" in repr(steps)}
    for dynamic in ((), *((state,) for state in (*sorted(named), "LINE_WIDTH")), tuple(sorted(named))):
        # The library of the chain is looked for by its class, the attachments by the first that names them.
        pipeline = s.GraphicsPipelineCreateInfo(dynamic_state=dynamic_state(dynamic), next=(link,))
        assert compute_hash(pipeline, nothing) == skeleton(dynamic=dynamic, chain=steps), dynamic


@pytest.mark.parametrize(
    ("link", "steps"),
    [
        (s.PipelineColorWriteCreateInfoEXT((1, 0, 1)), (1000381001, 3)),
        (s.PipelineFragmentShadingRateStateCreateInfoKHR(s.Extent2D(1, 2), (3, 4)), (1000226001,)),
        (s.PipelineRenderingCreateInfo(1, (2, 3), 4, 5), (1000044002,)),
        (s.PipelineViewportDepthClampControlCreateInfoEXT(1, None), (1000582001, 1, 0)),
    ],
)
def test_chained_structures_outside_of_graphics_pipelines(link: Any, steps: tuple[Any, ...]) -> None:
    check(replace(SAMPLER, next=(link,)), *SAMPLER_STEPS, *steps)


def test_a_shading_rate_attachment_with_a_chain_has_no_hash() -> None:
    reference = s.AttachmentReference2(1, 2, 3, (s.AttachmentReferenceStencilLayout(1),))
    with pytest.raises(InvalidArgumentError):
        compute_hash(replace(SAMPLER, next=(s.FragmentShadingRateAttachmentInfoKHR(reference),)), nothing)


def test_a_structure_that_fossilize_does_not_hash_is_refused_wherever_it_stands() -> None:
    unknown = UnknownStructure(1999000000, "{}")
    for link in (unknown, s.PipelineCoverageToColorStateCreateInfoNV(), SAMPLER):
        with pytest.raises(InvalidArgumentError):
            compute_hash(s.GraphicsPipelineCreateInfo(next=(link,)), nothing)
