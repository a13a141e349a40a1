"""Root signatures and declarations of shaders as Vulkan's layouts, written out whole.

Bits are those of the Vulkan specification: VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT 1, UPDATE_UNUSED_WHILE_PENDING_BIT 2,
PARTIALLY_BOUND_BIT 4, VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT 2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shaderkiln.descriptions.direct3d12.binding_layout import binding_layout
from shaderkiln.formats.root_signature import (
    DescriptorRange,
    DescriptorRangeFlag,
    DescriptorRangeType,
    DescriptorTable,
    RootConstants,
    RootDescriptor,
    RootParameterType,
    RootSignature,
    RootSignatureVersion,
    SamplerFlag,
    ShaderVisibility,
    StaticSampler,
)
from shaderkiln.formats.spirv import Binding, EntryPoint
from shaderkiln.lowering.layout import RootLayout, declared_layout, misfit, pipeline_layout, sampler_info
from shaderkiln.lowering.objects import Objects, Reasons
from shaderkiln.vulkan_registry import structures as vk

VERTEX, PIXEL = 0x1, 0x10
GRAPHICS = 0x1F
RANGE, FLAG = DescriptorRangeType, DescriptorRangeFlag


def root(*parameters: Any, samplers: tuple[StaticSampler, ...] = (), version: Any = RootSignatureVersion.V1_1) -> RootLayout:
    signature = RootSignature(parameters, samplers, version=version)
    return RootLayout(signature, binding_layout(signature))


def layout_of(objects: Objects, handle: Any) -> tuple[Any, list[Any]]:
    info: Any = objects.found[handle]
    return info, [objects.found[set_] for set_ in info.set_layouts]


def entry(*bindings: Binding, push: int = 0) -> EntryPoint:
    return EntryPoint(0, "main", (), {}, bindings, frozenset(), frozenset(), False, False, (), (), push, ())


def used(set_: int, binding: int, *types: int, count: int | None = 1) -> Binding:
    return Binding(set_, binding, types, count, False)


# Root signatures


def test_a_root_signature_as_a_whole() -> None:
    sampler = StaticSampler(3, visibility=ShaderVisibility.PIXEL)
    table = DescriptorTable(
        (DescriptorRange(RANGE.CBV, 2, 0), DescriptorRange(RANGE.CBV, 1, 5, flags=FLAG.DESCRIPTORS_VOLATILE))
    )
    still = DescriptorTable((DescriptorRange(RANGE.SAMPLER, 4, 0),), ShaderVisibility.PIXEL)
    made = root(
        RootDescriptor(RootParameterType.CBV, 7),
        table,
        still,
        RootConstants(9, 0, 3, ShaderVisibility.VERTEX),
        samplers=(sampler,),
    )
    objects, reasons = Objects(), Reasons()
    info, sets = layout_of(objects, pipeline_layout(objects, made, GRAPHICS, reasons))
    assert (info.flags, info.push_constant_ranges) == (0, (vk.PushConstantRange(VERTEX, 0, 12),))
    binding, flags = vk.DescriptorSetLayoutBinding, vk.DescriptorSetLayoutBindingFlagsCreateInfo
    # Sets: root descriptors, tables, samplers in tables, static samplers. VkDescriptorType: 0 sampler, 6 uniform buffer.
    assert sets[0] == vk.DescriptorSetLayoutCreateInfo(0, (binding(0, 6, 1, GRAPHICS, None),), ())
    assert [flag for link in sets[1].next for flag in link.binding_flags].count(7) == 1
    assert (sets[1].flags, {b.stage_flags for b in sets[1].bindings}) == (2, {GRAPHICS})
    assert sets[1].next == (flags((4, 7)),)
    assert [(b.binding, b.descriptor_type, b.descriptor_count) for b in sets[1].bindings] == [(0, 6, 2), (1, 6, 1)]
    assert sets[2] == vk.DescriptorSetLayoutCreateInfo(0, (binding(0, 0, 4, PIXEL, None),), (flags((4,)),))
    (static,) = sets[3].bindings
    assert (static.binding, static.descriptor_type, static.descriptor_count, static.stage_flags) == (0, 0, 1, PIXEL)
    assert [objects.found[handle] for handle in static.immutable_samplers] == [sampler_info(sampler, reasons)]
    assert (sets[3].flags, sets[3].next) == (0, ())
    assert reasons.found == []


def test_descriptors_in_tables_are_volatile_in_version_1_0_and_where_they_say_so() -> None:
    def flags(version: RootSignatureVersion, flag: DescriptorRangeFlag) -> tuple[int, tuple[int, ...]]:
        objects = Objects()
        made = root(DescriptorTable((DescriptorRange(RANGE.CBV, 1, 0, flags=flag),)), version=version)
        _, sets = layout_of(objects, pipeline_layout(objects, made, GRAPHICS, Reasons()))
        return sets[1].flags, sets[1].next[0].binding_flags

    assert flags(RootSignatureVersion.V1_0, FLAG.NONE) == (2, (7,))
    assert flags(RootSignatureVersion.V1_1, FLAG.NONE) == (0, (4,))
    assert flags(RootSignatureVersion.V1_1, FLAG.DATA_VOLATILE) == (0, (4,))
    assert flags(RootSignatureVersion.V1_1, FLAG.DESCRIPTORS_VOLATILE) == (2, (7,))


def test_each_stage_has_one_range_of_push_constants() -> None:
    def ranges(stages: int, *parameters: RootConstants) -> tuple[tuple[int, int, int], ...]:
        objects = Objects()
        info, _ = layout_of(objects, pipeline_layout(objects, root(*parameters), stages, Reasons()))
        return tuple((r.stage_flags, r.offset, r.size) for r in info.push_constant_ranges)

    vertex, pixel = RootConstants(0, 0, 4, ShaderVisibility.VERTEX), RootConstants(1, 0, 2, ShaderVisibility.PIXEL)
    both, more = RootConstants(2, 0, 1), RootConstants(3, 0, 1, ShaderVisibility.VERTEX)
    # Words 0 to 3 vertex, 4 and 5 pixel, 6 both, 7 vertex.
    assert ranges(VERTEX | PIXEL, vertex, pixel, both, more) == ((VERTEX, 0, 32), (PIXEL, 16, 12))
    assert ranges(VERTEX | PIXEL, both) == ((VERTEX | PIXEL, 0, 4),)
    assert ranges(VERTEX, vertex, pixel) == ((VERTEX, 0, 16),)
    assert ranges(0x20, both) == ((0x20, 0, 4),)
    assert ranges(0x2000, both) == ((0x2000, 0, 4),)
    assert ranges(0x20, vertex) == ()


# Static samplers

SAMPLER = StaticSampler(0, 0, 0, 1, 2, 3, -1.5, 8, 2, 0, 0.25, 7.5)


def lowered(**fields: Any) -> vk.SamplerCreateInfo:
    reasons = Reasons()
    made = sampler_info(replace(SAMPLER, **fields), reasons)
    reasons.check()
    return made


def test_a_static_sampler_as_a_whole() -> None:
    # Flags, magnification, minification, mipmaps, address modes (repeat, mirrored, clamp), bias, anisotropy, comparison, levels,
    # border colour, unnormalized.
    assert lowered() == vk.SamplerCreateInfo(0, 0, 0, 0, 0, 1, 2, -1.5, 0, 1.0, 0, 0, 0.25, 7.5, 0, 0, ())
    unnormalized = lowered(flags=SamplerFlag.NON_NORMALIZED_COORDINATES)
    assert unnormalized == vk.SamplerCreateInfo(0, 0, 0, 0, 0, 1, 2, -1.5, 0, 1.0, 0, 0, 0.25, 7.5, 0, 1, ())
    everything = lowered(filter=0x80 | 0x40 | 0x15, comparison=5, address_u=5, address_v=4, address_w=1, border_color=4)
    assert everything == vk.SamplerCreateInfo(0, 1, 1, 1, 4, 3, 0, -1.5, 1, 8.0, 1, 4, 0.25, 7.5, 5, 0, ())


@pytest.mark.parametrize(
    ("number", "minify", "magnify", "mipmap"),
    [(0x0, 0, 0, 0), (0x1, 0, 0, 1), (0x4, 0, 1, 0), (0x10, 1, 0, 0), (0x15, 1, 1, 1)],
)
def test_filters(number: int, minify: int, magnify: int, mipmap: int) -> None:
    made = lowered(filter=number)
    found = (made.min_filter, made.mag_filter, made.mipmap_mode, made.anisotropy_enable, made.compare_enable, made.next)
    assert found == (minify, magnify, mipmap, 0, 0, ())


@pytest.mark.parametrize(("given", "expected"), [(0, 1.0), (1, 1.0), (2, 2.0), (16, 16.0), (17, 16.0), (99, 16.0)])
def test_anisotropy_is_from_one_to_sixteen(given: int, expected: float) -> None:
    made = lowered(filter=0x55, max_anisotropy=given)
    assert (made.anisotropy_enable, made.max_anisotropy) == (1, expected)


@pytest.mark.parametrize("function", range(9))
def test_comparisons(function: int) -> None:
    # D3D12_COMPARISON_FUNC is NONE 0, NEVER 1 to ALWAYS 8; VkCompareOp NEVER 0 to ALWAYS 7.
    made = lowered(filter=0x80, comparison=function)
    assert (made.compare_enable, made.compare_op, made.next) == (1, max(function - 1, 0), ())
    assert (lowered(comparison=function).compare_enable, lowered(comparison=function).compare_op) == (0, 0)


def test_reductions() -> None:
    # Minimum 0x100 and maximum 0x180 of D3D12_FILTER; VK_SAMPLER_REDUCTION_MODE_MIN 1 and MAX 2.
    for number, mode in ((0x100, 1), (0x180, 2)):
        made = lowered(filter=number, comparison=5)
        assert (made.next, made.compare_enable, made.compare_op) == ((vk.SamplerReductionModeCreateInfo(mode),), 0, 0)


@pytest.mark.parametrize("field", ["address_u", "address_v", "address_w", "border_color"])
def test_modes_and_colours_that_are_not_known_are_reported(field: str) -> None:
    reasons = Reasons()
    assert sampler_info(replace(SAMPLER, **{field: 9}), reasons) == vk.SamplerCreateInfo()
    assert [reason.name for reason in reasons.found] == ["static_samplers"]


# SPIR-V with places of its own

FITTING = root(
    RootDescriptor(RootParameterType.CBV, 0),
    DescriptorTable((DescriptorRange(RANGE.CBV, 3, 0),), ShaderVisibility.PIXEL),
    RootConstants(1, 0, 2),
    RootConstants(2, 0, 3, ShaderVisibility.VERTEX),
)


@pytest.mark.parametrize(
    ("shader", "stage", "words"),
    [
        (entry(), VERTEX, ""),
        (entry(used(0, 0, 7, 6)), VERTEX, ""),
        (entry(used(1, 0, 6, count=3)), PIXEL, ""),
        (entry(used(1, 0, 6, count=None)), PIXEL, ""),
        (entry(used(1, 0, 6, count=4)), PIXEL, "set 1, binding 0 has 4 descriptors, the root signature 3"),
        (entry(used(1, 0, 6)), VERTEX, "set 1, binding 0 is not in the root signature's layout, or of another type"),
        (entry(used(0, 0, 7)), VERTEX, "set 0, binding 0 is not in the root signature's layout, or of another type"),
        (entry(used(0, 1, 6)), VERTEX, "set 0, binding 1 is not in the root signature's layout, or of another type"),
        (
            entry(used(0, 0, 6), used(5, 0, 6)),
            VERTEX,
            "set 5, binding 0 is not in the root signature's layout, or of another type",
        ),
        (entry(push=20), VERTEX, ""),
        (entry(push=21), VERTEX, "it uses 21 bytes of push constants, the root signature has 20"),
        (entry(push=8), PIXEL, ""),
        (entry(push=9), PIXEL, "it uses 9 bytes of push constants, the root signature has 8"),
    ],
)
def test_what_does_not_fit_a_root_signature(shader: EntryPoint, stage: int, words: str) -> None:
    assert misfit(FITTING, shader, stage) == words


def test_a_root_signature_without_constants_has_no_room_for_any() -> None:
    bare = root(RootDescriptor(RootParameterType.CBV, 0))
    assert misfit(bare, entry(push=0), VERTEX) == ""
    assert misfit(bare, entry(push=1), VERTEX) == "it uses 1 bytes of push constants, the root signature has 0"


def declared(*entries: tuple[int, EntryPoint]) -> tuple[Any, list[Any], list[str]]:
    objects, reasons = Objects(), Reasons()
    info, sets = layout_of(objects, declared_layout(objects, entries, reasons))
    assert info.flags == 0
    return info.push_constant_ranges, sets, [reason.name for reason in reasons.found]


def test_a_layout_of_what_shaders_declare() -> None:
    ranges, sets, reasons = declared(
        (VERTEX, entry(used(2, 1, 6), used(0, 3, 1, 2, count=2), push=5)),
        (PIXEL, entry(used(0, 3, 2, 1, count=5), used(0, 0, 7, count=None))),
    )
    binding = vk.DescriptorSetLayoutBinding
    assert sets == [
        vk.DescriptorSetLayoutCreateInfo(
            0,
            (binding(0, 7, 65536, PIXEL), binding(3, 1, 5, VERTEX | PIXEL)),
            (vk.DescriptorSetLayoutBindingFlagsCreateInfo((4, 0)),),
        ),
        vk.DescriptorSetLayoutCreateInfo(0, (), ()),
        vk.DescriptorSetLayoutCreateInfo(0, (binding(1, 6, 1, VERTEX),), ()),
    ]
    # Sizes are multiples of 4.
    assert ranges == (vk.PushConstantRange(VERTEX, 0, 8),)
    assert reasons == []


def test_push_constants_that_shaders_declare_are_one_range() -> None:
    assert declared((VERTEX, entry(push=4)), (PIXEL, entry(push=16)))[0] == (vk.PushConstantRange(VERTEX | PIXEL, 0, 16),)
    assert declared((VERTEX, entry(push=16)), (PIXEL, entry()))[0] == (vk.PushConstantRange(VERTEX, 0, 16),)
    assert declared((VERTEX, entry()), (PIXEL, entry(push=4)))[0] == (vk.PushConstantRange(PIXEL, 0, 4),)
    assert declared((VERTEX, entry()))[:2] == ((), [])


def test_declarations_that_contradict_each_other_are_reported() -> None:
    _, sets, reasons = declared((VERTEX, entry(used(0, 0, 6))), (PIXEL, entry(used(0, 0, 7), used(0, 1, 2))))
    assert reasons == ["root_signature"]
    assert [(b.binding, b.descriptor_type, b.stage_flags) for b in sets[0].bindings] == [(0, 6, VERTEX), (1, 2, PIXEL)]
    assert declared((VERTEX, entry(used(31, 0, 6))))[2] == []
    assert declared((VERTEX, entry(used(32, 0, 6))))[1:] == ([], ["root_signature"])
    # A type that fits both, in either order.
    _, sets, reasons = declared((VERTEX, entry(used(0, 0, 6, 7))), (PIXEL, entry(used(0, 0, 7), used(0, 0, 7, 8))))
    assert (reasons, sets[0].bindings[0].descriptor_type) == ([], 7)
