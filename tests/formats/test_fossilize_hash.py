"""Fossilize's hashes, computed again from descriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structure_strategies import described

from shaderkiln.databases.fossilize import FossilizeArchive
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats.fossilize import Tag
from shaderkiln.formats.fossilize_hash import _LINKS, compute_hash
from shaderkiln.formats.fossilize_json import ApplicationInfo, ApplicationLink, FeatureStructure, OpaqueBody, parse_body
from shaderkiln.vulkan_registry import structures as s
from shaderkiln.vulkan_registry.handles import Handle, UnknownStructure

CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "data" / "captures"


def nothing(handle: Handle) -> Any:
    raise AssertionError(f"{handle} is not needed")


def fnv(*words: int) -> int:
    """The hash of 32-bit words, written down independently: offset basis and prime of 64-bit FNV-1."""
    state = 14695981039346656037
    for word in words:
        state = (state * 1099511628211) % 2**64 ^ word
    return state


@pytest.mark.parametrize("name", ["mpv", "pygfx", "taichi", "vkcube", "wgpu"])
def test_every_entry_of_the_captures_has_the_hash_that_it_is_stored_under(name: str) -> None:
    path = CAPTURES / f"{name}.foz"
    if not path.exists():
        pytest.skip("the captures of real programs are not here")
    checked = 0
    with FossilizeArchive.open(path, index=False) as archive:

        def resolve(handle: Handle) -> Any:
            return parse_body(Tag.RENDER_PASS, archive.read(Tag.RENDER_PASS, handle.value))[1]

        for tag in Tag:
            for hash in archive.hashes(tag):
                assert compute_hash(parse_body(tag, archive.read(tag, hash))[1], resolve) == hash
                checked += 1
    assert checked > 10


def test_a_module_is_its_words_and_its_flags() -> None:
    code = bytes((3, 2, 0x23, 7, 1, 0, 0, 0))
    assert compute_hash(s.ShaderModuleCreateInfo(5, code), nothing) == fnv(0x07230203, 1, 5)
    with pytest.raises(InvalidArgumentError):
        compute_hash(s.ShaderModuleCreateInfo(0, code[:-1]), nothing)


def test_a_pipeline_layout_names_its_set_layouts_in_two_words_and_a_missing_one_in_one() -> None:
    layout = s.PipelineLayoutCreateInfo(
        7, (s.DescriptorSetLayoutHandle(0x1122334455667788), None), (s.PushConstantRange(1, 4, 8),)
    )
    assert compute_hash(layout, nothing) == fnv(2, 0x55667788, 0x11223344, 0, 1, 1, 8, 4, 7)


def test_immutable_samplers_count_for_sampler_bindings_only() -> None:
    def layout(descriptor_type: int, samplers: tuple[s.SamplerHandle | None, ...] | None) -> int:
        binding = s.DescriptorSetLayoutBinding(2, descriptor_type, 1, 16, samplers)
        return compute_hash(s.DescriptorSetLayoutCreateInfo(0, (binding,)), nothing)

    assert layout(1, (s.SamplerHandle(9),)) == fnv(1, 0, 2, 1, 1, 16, 9, 0)
    assert layout(6, (s.SamplerHandle(9),)) == layout(6, None) == fnv(1, 0, 2, 1, 6, 16)


def test_a_compute_pipeline() -> None:
    pipeline = s.ComputePipelineCreateInfo(
        flags=0x40 | 0x80 | 2,
        stage=s.PipelineShaderStageCreateInfo(
            0, 32, s.ShaderModuleHandle(0xB), "ab", s.SpecializationInfo((s.SpecializationMapEntry(7, 0, 2),), b"\1\xff")
        ),
        layout=s.PipelineLayoutHandle(0xA),
        next=(s.PipelineRobustnessCreateInfo(1, 2, 3, 4),),
    )
    expected = fnv(
        *(0xA, 0),  # layout
        2,  # flags without those that capture
        0,  # no base pipeline
        *(0xB, 0),  # module
        *(0xFF, ord("a"), ord("b")),
        *(0, 32),  # flags and stage
        *(1, 0xFF, 2, 0, 1, 0, 2, 0, 7),  # specialization
        *(1000068000, 4, 3, 2, 1),
    )  # fmt: skip
    assert compute_hash(pipeline, nothing) == expected


def test_a_link() -> None:
    assert compute_hash(ApplicationLink(0x1_00000002, 6, 0x3_00000004), nothing) == fnv(2, 1, 6, 4, 3)


def test_application_information() -> None:
    assert compute_hash(ApplicationInfo(), nothing) == fnv(0, 0, 0, 0)
    info = fnv(1, 4206592, 2, 0xFF, ord("g"), 0)
    features = fnv(1, 1000326001, 30, 10, 20)
    structure = FeatureStructure(1000326001, (10, 20, 30))
    assert compute_hash(ApplicationInfo("g", None, 1, 2, 4206592, 1, (structure,)), nothing) == fnv(
        info & 0xFFFFFFFF, info >> 32, features & 0xFFFFFFFF, features >> 32
    )


def graphics(**changes: Any) -> s.GraphicsPipelineCreateInfo:
    stages = (s.PipelineShaderStageCreateInfo(0, 1, s.ShaderModuleHandle(0xB)),)
    pipeline = s.GraphicsPipelineCreateInfo(
        stages=stages,
        input_assembly_state=s.PipelineInputAssemblyStateCreateInfo(),
        rasterization_state=s.PipelineRasterizationStateCreateInfo(),
        viewport_state=s.PipelineViewportStateCreateInfo(viewports=(s.Viewport(),), scissors=(s.Rect2D(),)),
        multisample_state=s.PipelineMultisampleStateCreateInfo(rasterization_samples=1),
        depth_stencil_state=s.PipelineDepthStencilStateCreateInfo(),
        color_blend_state=s.PipelineColorBlendStateCreateInfo(attachments=(s.PipelineColorBlendAttachmentState(),)),
        next=(s.PipelineRenderingCreateInfo(0, (44,), 126, 0),),
    )
    return msgspec.structs.replace(pipeline, **changes)


def dynamic(*states: int) -> s.PipelineDynamicStateCreateInfo:
    return s.PipelineDynamicStateCreateInfo(0, states)


RASTERIZATION = s.PipelineRasterizationStateCreateInfo
DEPTH = s.PipelineDepthStencilStateCreateInfo


@pytest.mark.parametrize(
    ("states", "changes", "same"),
    [
        ((), {"rasterization_state": RASTERIZATION(cull_mode=2)}, False),
        ((1000267000,), {"rasterization_state": RASTERIZATION(cull_mode=2)}, True),
        ((), {"rasterization_state": RASTERIZATION(line_width=2.0)}, False),
        ((2,), {"rasterization_state": RASTERIZATION(line_width=2.0)}, True),
        ((), {"rasterization_state": RASTERIZATION(depth_bias_clamp=2.0)}, True),
        ((1000377002,), {"rasterization_state": RASTERIZATION(depth_bias_clamp=2.0)}, False),
        ((), {"depth_stencil_state": DEPTH(max_depth_bounds=1.0)}, True),
        ((), {"depth_stencil_state": DEPTH(front=s.StencilOpState(reference=1))}, True),
        ((1000267010,), {"depth_stencil_state": DEPTH(front=s.StencilOpState(reference=1))}, False),
        ((1000267010, 8), {"depth_stencil_state": DEPTH(front=s.StencilOpState(reference=1))}, True),
        ((), {"subpass": 1}, False),
        ((), {"color_blend_state": s.PipelineColorBlendStateCreateInfo(attachments=())}, False),
    ],
)
def test_state_takes_part_where_it_is_used(states: tuple[int, ...], changes: dict[str, Any], same: bool) -> None:
    one = compute_hash(graphics(dynamic_state=dynamic(*states)), nothing)
    other = compute_hash(graphics(dynamic_state=dynamic(*states), **changes), nothing)
    assert (one == other) is same


def test_state_behind_rasterizer_discard_takes_no_part() -> None:
    discards = {"rasterization_state": RASTERIZATION(rasterizer_discard_enable=1)}
    one = compute_hash(graphics(**discards), nothing)
    assert one == compute_hash(graphics(**discards, depth_stencil_state=None, multisample_state=None), nothing)


def test_the_render_pass_says_whether_color_and_depth_are_used() -> None:
    passes = {
        1: s.RenderPassCreateInfo(subpasses=(s.SubpassDescription(color_attachments=(s.AttachmentReference(0, 2),)),)),
        2: s.RenderPassCreateInfo(subpasses=(s.SubpassDescription(depth_stencil_attachment=s.AttachmentReference(0, 3)),)),
    }

    def hash_of(number: int, **changes: Any) -> int:
        pipeline = graphics(render_pass=s.RenderPassHandle(number), next=(), **changes)
        return compute_hash(pipeline, lambda handle: passes[handle.value])

    assert hash_of(1) == hash_of(1, depth_stencil_state=None) != hash_of(1, color_blend_state=None)
    assert hash_of(2) == hash_of(2, color_blend_state=None) != hash_of(2, depth_stencil_state=None)
    with pytest.raises(InvalidArgumentError, match="subpass 1"):
        hash_of(1, subpass=1)


def test_a_library_of_vertex_input_alone_takes_no_notice_of_the_rest() -> None:
    library = (s.GraphicsPipelineLibraryCreateInfoEXT(1),)
    one = graphics(flags=0x800, next=library)
    other = graphics(flags=0x800, next=library, stages=None, viewport_state=None, layout=s.PipelineLayoutHandle(5), subpass=3)
    assert compute_hash(one, nothing) == compute_hash(other, nothing)


def test_what_fossilize_does_not_hash_is_refused() -> None:
    for structure in (
        OpaqueBody(b""),
        s.SamplerCreateInfo(next=(UnknownStructure(1999000000, "{}"),)),
        s.ComputePipelineCreateInfo(),
        ApplicationInfo(robust_buffer_access=0, features=(UnknownStructure(1999000000, "{}"),)),
    ):
        with pytest.raises(InvalidArgumentError):
            compute_hash(structure, nothing)


CHAINED = sorted(_LINKS, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", CHAINED, ids=lambda cls: cls.__name__)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_chained_structure_has_a_hash(cls: Any, data: st.DataObject) -> None:
    pipeline = graphics(next=(data.draw(described(cls, 0)),))
    try:
        assert compute_hash(pipeline, nothing) < 2**64
    except InvalidArgumentError:
        # A reference in a multisample resolve or shading rate attachment may have a chain of its own.
        assert "Attachment" in cls.__name__ or "Resolve" in cls.__name__
