"""Descriptions as C structures: what a driver would read, read back through the C definitions."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from shaderkiln.drivers import marshal
from shaderkiln.drivers.bindings import ffi
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.vulkan_registry import structures as s
from shaderkiln.vulkan_registry._members import MEMBERS
from shaderkiln.vulkan_registry.handles import Handle, UnknownStructure


def built(description: Struct) -> tuple[Any, marshal.Call]:
    call = marshal.Call(lambda handle: handle.value + 1000)
    return marshal.structure(description, call), call


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_every_described_structure_can_be_given_to_a_driver(name: str) -> None:
    memory, _call = built(getattr(s, name)())
    structure_type = MEMBERS[name][1]
    names = [member for member, _ in ffi.typeof(memory).item.fields]
    if "sType" in names:
        assert memory.sType == structure_type
        assert memory.pNext == ffi.NULL
    assert ffi.typeof(memory).item.cname == f"struct {MEMBERS[name][0]}"


def test_a_stage_with_specialization_and_chain() -> None:
    stage = s.PipelineShaderStageCreateInfo(
        flags=3,
        stage=0x20,
        module=s.ShaderModuleHandle(7),
        name="müll",
        specialization_info=s.SpecializationInfo(
            map_entries=(s.SpecializationMapEntry(constant_id=9, offset=4, size=8),), data=bytes(range(12))
        ),
        next=(
            s.PipelineShaderStageRequiredSubgroupSizeCreateInfo(required_subgroup_size=64),
            s.ShaderModuleCreateInfo(code=struct.pack("<2I", 0x07230203, 5)),
        ),
    )
    memory, _call = built(stage)
    assert (memory.sType, memory.flags, memory.stage, memory.module) == (18, 3, 0x20, 1007)
    assert ffi.string(memory.pName) == "müll".encode()
    info = memory.pSpecializationInfo
    assert (info.mapEntryCount, info.dataSize) == (1, 12)
    entry = info.pMapEntries[0]
    assert (entry.constantID, entry.offset, entry.size) == (9, 4, 8)
    assert bytes(ffi.buffer(info.pData, 12)) == bytes(range(12))
    first = ffi.cast("VkPipelineShaderStageRequiredSubgroupSizeCreateInfo *", memory.pNext)
    assert (first.sType, first.requiredSubgroupSize) == (1000225001, 64)
    second = ffi.cast("VkShaderModuleCreateInfo *", first.pNext)
    assert (second.sType, second.codeSize, second.pNext) == (16, 8, ffi.NULL)
    assert list(second.pCode[0:2]) == [0x07230203, 5]


def test_null_where_nothing_is_described() -> None:
    memory, _call = built(s.GraphicsPipelineCreateInfo())
    assert memory.stageCount == 0
    for member in ("pStages", "pVertexInputState", "pViewportState", "pMultisampleState", "pDynamicState"):
        assert getattr(memory, member) == ffi.NULL
    assert (memory.layout, memory.renderPass, memory.basePipelineHandle) == (0, 0, 0)


def test_a_count_beside_an_optional_array() -> None:
    only_counts, _1 = built(s.PipelineViewportStateCreateInfo(viewport_count=2, scissor_count=3))
    assert (only_counts.viewportCount, only_counts.pViewports) == (2, ffi.NULL)
    assert (only_counts.scissorCount, only_counts.pScissors) == (3, ffi.NULL)
    arrays, _2 = built(
        s.PipelineViewportStateCreateInfo(
            viewport_count=9,
            viewports=(s.Viewport(x=1.5, width=2.0),),
            scissors=(s.Rect2D(s.Offset2D(-1, 2), s.Extent2D(3, 4)),) * 2,
        )
    )
    assert (arrays.viewportCount, arrays.scissorCount) == (1, 2)
    assert (arrays.pViewports[0].x, arrays.pViewports[0].width) == (1.5, 2.0)
    rectangle = arrays.pScissors[1]
    assert (rectangle.offset.x, rectangle.offset.y, rectangle.extent.width, rectangle.extent.height) == (-1, 2, 3, 4)


@pytest.mark.parametrize(
    ("samples", "mask", "words"),
    [
        (1, (5,), [5]),
        (32, (5,), [5]),
        (64, (5,), [5, 0xFFFFFFFF]),
        (64, (5, 6), [5, 6]),
        (0, (), [0xFFFFFFFF]),
        (1, (5, 6), [5, 6]),
    ],
)
def test_a_sample_mask_is_as_long_as_the_driver_reads(samples: int, mask: tuple[int, ...], words: list[int]) -> None:
    memory, _call = built(s.PipelineMultisampleStateCreateInfo(rasterization_samples=samples, sample_mask=mask))
    assert list(memory.pSampleMask[0 : len(words)]) == words


def test_no_sample_mask_and_impossible_samples() -> None:
    memory, _call = built(s.PipelineMultisampleStateCreateInfo(rasterization_samples=64))
    assert memory.pSampleMask == ffi.NULL
    with pytest.raises(InvalidArgumentError, match="4294967295 samples"):
        built(s.PipelineMultisampleStateCreateInfo(rasterization_samples=0xFFFFFFFF, sample_mask=(1,)))


def test_immutable_samplers_and_null_handles() -> None:
    binding = s.DescriptorSetLayoutBinding(
        binding=4, descriptor_count=9, immutable_samplers=(s.SamplerHandle(1), s.SamplerHandle(2))
    )
    memory, _call = built(s.DescriptorSetLayoutCreateInfo(bindings=(binding, s.DescriptorSetLayoutBinding(descriptor_count=9))))
    assert (memory.bindingCount, memory.pBindings[0].descriptorCount, memory.pBindings[1].descriptorCount) == (2, 2, 9)
    assert list(memory.pBindings[0].pImmutableSamplers[0:2]) == [1001, 1002]
    assert memory.pBindings[1].pImmutableSamplers == ffi.NULL
    layout, _call2 = built(s.PipelineLayoutCreateInfo(set_layouts=(None, s.DescriptorSetLayoutHandle(3))))
    assert list(layout.pSetLayouts[0:2]) == [0, 1003]


def test_arrays_in_structures_and_unions() -> None:
    blend, _1 = built(s.PipelineColorBlendStateCreateInfo(attachment_count=3, blend_constants=(0.25, 0.5, 0.75, 1.0)))
    assert list(blend.blendConstants) == [0.25, 0.5, 0.75, 1.0]
    assert (blend.attachmentCount, blend.pAttachments) == (3, ffi.NULL)
    color, _2 = built(s.SamplerCustomBorderColorCreateInfoEXT(custom_border_color=(1, 0x3F800000, 0xFFFFFFFF, 0), format=37))
    assert list(color.customBorderColor.uint32) == [1, 0x3F800000, 0xFFFFFFFF, 0]
    assert color.customBorderColor.float32[1] == 1.0


def test_arrays_of_structures_with_chains() -> None:
    reference = s.AttachmentReference2(
        attachment=0, layout=2, next=(s.AttachmentReferenceStencilLayout(stencil_layout=1000241003),)
    )
    subpass = s.SubpassDescription2(view_mask=3, color_attachments=(reference,), depth_stencil_attachment=reference)
    memory, _call = built(s.RenderPassCreateInfo2(subpasses=(subpass, subpass), correlated_view_masks=(3,)))
    assert (memory.subpassCount, memory.correlatedViewMaskCount, memory.pCorrelatedViewMasks[0]) == (2, 1, 3)
    second = memory.pSubpasses[1]
    assert (second.sType, second.viewMask, second.colorAttachmentCount) == (1000109002, 3, 1)
    for attachment in (second.pColorAttachments[0], second.pDepthStencilAttachment[0]):
        chained = ffi.cast("VkAttachmentReferenceStencilLayout *", attachment.pNext)
        assert (attachment.sType, chained.sType, chained.stencilLayout) == (1000109001, 1000241001, 1000241003)


def test_arrays_that_share_a_count() -> None:
    one = s.AttachmentReference(attachment=1)
    same, _call = built(s.SubpassDescription(color_attachments=(one, one), resolve_attachments=(one, one)))
    assert (same.colorAttachmentCount, same.pResolveAttachments[1].attachment) == (2, 1)
    with pytest.raises(InvalidArgumentError, match="arrays of colorAttachmentCount differ in length"):
        built(s.SubpassDescription(color_attachments=(one, one), resolve_attachments=(one,)))


@pytest.mark.parametrize(
    "description",
    [
        s.PushConstantRange(offset=1 << 32),
        s.PushConstantRange(offset=-1),
        s.Offset2D(x=1 << 31),
        s.PipelineDynamicStateCreateInfo(dynamic_states=(1, 1 << 31)),
        s.PipelineColorBlendStateCreateInfo(blend_constants=(1.0,) * 5),
        s.SamplerCustomBorderColorCreateInfoEXT(custom_border_color=(-1, 0, 0, 0)),
        s.SamplerCustomBorderColorCreateInfoEXT(custom_border_color=(0,) * 5),
        s.PushConstantRange(offset="4"),  # type: ignore[arg-type]
        s.PushConstantRange(offset=1.5),  # type: ignore[arg-type]
        s.PipelineLayoutCreateInfo(push_constant_ranges=(s.PushConstantRange(size=1 << 40),)),
        s.ShaderModuleCreateInfo(code=b"\0" * 5),
        s.PipelineShaderStageCreateInfo(name="ma\0in"),
        s.PipelineShaderStageCreateInfo(name="\ud800"),
    ],
    ids=repr,
)
def test_values_that_do_not_fit_are_told(description: Struct) -> None:
    with pytest.raises(InvalidArgumentError):
        built(description)


def test_structures_that_are_not_known_are_told() -> None:
    unknown = UnknownStructure(s_type=1000999001, text="{}")
    for description in (
        s.GraphicsPipelineCreateInfo(next=(s.PipelineRenderingCreateInfo(), unknown)),
        s.GraphicsPipelineCreateInfo(stages=(s.PipelineShaderStageCreateInfo(next=(unknown,)),)),
        s.ComputePipelineCreateInfo(stage=s.PipelineShaderStageCreateInfo(next=(unknown,))),
    ):
        with pytest.raises(marshal.UnknownStructureError, match="structure with sType 1000999001 is not known here") as caught:
            built(description)
        assert caught.value.code == "VK_ERROR_EXTENSION_NOT_PRESENT"


def test_a_chain_in_a_chain_is_told() -> None:
    inner = s.PipelineRenderingCreateInfo(next=(UnknownStructure(s_type=5, text="{}"),))
    with pytest.raises(marshal.UnknownStructureError):
        built(s.GraphicsPipelineCreateInfo(next=(inner,)))


def test_a_handle_that_cannot_be_resolved_raises_what_the_resolver_raises() -> None:
    def refuse(handle: Handle) -> int:
        raise KeyError(handle)

    with pytest.raises(KeyError):
        marshal.structure(s.ComputePipelineCreateInfo(layout=s.PipelineLayoutHandle(1)), marshal.Call(refuse))


@given(
    x=st.floats(width=32, allow_nan=True),
    offset=st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 31), (1 << 31) - 1)),
    states=st.lists(st.integers(0, (1 << 31) - 1), max_size=40),
    data=st.binary(max_size=200),
)
def test_values_arrive_unchanged(x: float, offset: tuple[int, int], states: list[int], data: bytes) -> None:
    viewport, _1 = built(s.Viewport(x=x))
    assert viewport.x == x or (math.isnan(viewport.x) and math.isnan(x))
    rectangle, _2 = built(replace(s.Rect2D(), offset=s.Offset2D(*offset)))
    assert (rectangle.offset.x, rectangle.offset.y) == offset
    dynamic, _3 = built(s.PipelineDynamicStateCreateInfo(dynamic_states=tuple(states)))
    assert dynamic.dynamicStateCount == len(states)
    assert [dynamic.pDynamicStates[n] for n in range(len(states))] == states
    constants, _4 = built(s.SpecializationInfo(data=data))
    assert (constants.dataSize, bytes(ffi.buffer(constants.pData, len(data))) if data else b"") == (len(data), data)
