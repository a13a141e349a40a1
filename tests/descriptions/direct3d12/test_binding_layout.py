"""The scheme that says where the registers of a root signature lie in Vulkan."""

from __future__ import annotations

import pytest

from shaderkiln.descriptions.direct3d12.binding_layout import (
    UNBOUNDED_COUNT,
    BindingKind,
    LayoutBinding,
    binding_layout,
    visible_stages,
)
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats.root_signature import (
    UNBOUNDED,
    DescriptorRange,
    DescriptorRangeType,
    DescriptorTable,
    RootConstants,
    RootDescriptor,
    RootParameterType,
    RootSignature,
    RootSignatureFlag,
    ShaderVisibility,
    StaticSampler,
)

SRV, UAV, CBV, SAMPLER = DescriptorRangeType

SIGNATURE = RootSignature(
    (
        RootConstants(0, 0, 4),
        RootDescriptor(RootParameterType.CBV, 1),
        RootDescriptor(RootParameterType.SRV, 9, visibility=ShaderVisibility.PIXEL),
        RootDescriptor(RootParameterType.UAV, 9),
        DescriptorTable((DescriptorRange(CBV, 2, 2), DescriptorRange(SRV, 3, 0), DescriptorRange(UAV, 1, 0, 5))),
        DescriptorTable((DescriptorRange(SAMPLER, 2, 0),), ShaderVisibility.PIXEL),
        RootConstants(1, 7, 2, ShaderVisibility.VERTEX),
        DescriptorTable((DescriptorRange(SRV, UNBOUNDED, 0, 1),)),
    ),
    (StaticSampler(2), StaticSampler(3, 1, visibility=ShaderVisibility.VERTEX)),
)


def _short(b: LayoutBinding) -> tuple[int, int, str, int, str, int, int]:
    return b.set, b.binding, b.kind.name, b.count, b.register_type.name, b.register, b.space


def test_the_scheme() -> None:
    layout = binding_layout(SIGNATURE)
    assert [_short(b) for b in layout.bindings] == [
        (0, 0, "UNIFORM_BUFFER", 1, "CBV", 1, 0),
        (0, 1, "UNIFORM_TEXEL_BUFFER", 1, "SRV", 9, 0),
        (0, 2, "STORAGE_TEXEL_BUFFER", 1, "UAV", 9, 0),
        (1, 0, "UNIFORM_BUFFER", 2, "CBV", 2, 0),
        (1, 1, "UNIFORM_TEXEL_BUFFER", 3, "SRV", 0, 0),
        (1, 2, "SAMPLED_IMAGE", 3, "SRV", 0, 0),
        (1, 3, "STORAGE_TEXEL_BUFFER", 1, "UAV", 0, 5),
        (1, 4, "STORAGE_IMAGE", 1, "UAV", 0, 5),
        (1, 5, "STORAGE_TEXEL_BUFFER", 1, "UAV", 0, 5),
        (1, 6, "UNIFORM_TEXEL_BUFFER", UNBOUNDED_COUNT, "SRV", 0, 1),
        (1, 7, "SAMPLED_IMAGE", UNBOUNDED_COUNT, "SRV", 0, 1),
        (2, 0, "SAMPLER", 2, "SAMPLER", 0, 0),
        (3, 0, "SAMPLER", 1, "SAMPLER", 2, 0),
        (3, 1, "SAMPLER", 1, "SAMPLER", 3, 1),
    ]
    assert [b.binding for b in layout.bindings if b.is_counter] == [5]
    assert [b.binding for b in layout.set(1) if b.unbounded] == [6, 7]
    assert [b.table_offset for b in layout.set(1)] == [0, 2, 2, 5, 5, 5, 0, 0]
    assert [b.parameter for b in layout.set(3)] == [None, None]
    assert [b.static_sampler for b in layout.set(3)] == list(SIGNATURE.static_samplers)
    assert layout.set_count == 4
    assert [(p.parameter, p.register, p.space, p.offset, p.size) for p in layout.push_constants] == [
        (0, 0, 0, 0, 16),
        (6, 1, 7, 16, 8),
    ]
    assert layout.push_constant_bytes == 24


def test_the_kinds_are_vulkans_descriptor_types() -> None:
    # vulkan_core.h: VK_DESCRIPTOR_TYPE_…
    assert {k.name: k.value for k in BindingKind} == {
        "SAMPLER": 0,
        "SAMPLED_IMAGE": 2,
        "STORAGE_IMAGE": 3,
        "UNIFORM_TEXEL_BUFFER": 4,
        "STORAGE_TEXEL_BUFFER": 5,
        "UNIFORM_BUFFER": 6,
    }


def test_constants_without_room_become_uniform_buffers() -> None:
    signature = RootSignature((RootConstants(0, 0, 30), RootConstants(1, 0, 4), RootConstants(2, 0, 2)))
    layout = binding_layout(signature, push_constant_bytes=128)
    assert [(p.register, p.offset, p.size) for p in layout.push_constants] == [(0, 0, 120), (2, 120, 8)]
    assert [_short(b) for b in layout.bindings] == [(0, 0, "UNIFORM_BUFFER", 1, "CBV", 1, 0)]
    assert layout.bindings[0].parameter == 1
    assert binding_layout(signature).bindings == ()


def test_without_arrays_each_register_has_its_own() -> None:
    layout = binding_layout(SIGNATURE, arrays=False)
    table = [b for b in layout.set(1) if b.parameter == 4]
    uniform = [b for b in table if b.kind is BindingKind.UNIFORM_BUFFER]
    assert [(b.binding, b.register, b.table_offset) for b in uniform] == [
        (0, 2, 0),
        (1, 3, 1),
    ]
    assert [(b.register, b.table_offset) for b in table if b.kind is BindingKind.SAMPLED_IMAGE] == [(0, 2), (1, 3), (2, 4)]
    assert all(b.count == 1 for b in table)
    assert [b.binding for b in layout.set(1)] == list(range(len(layout.set(1))))


def test_stages() -> None:
    flags = RootSignatureFlag.DENY_VERTEX_SHADER_ROOT_ACCESS | RootSignatureFlag.DENY_MESH_SHADER_ROOT_ACCESS
    assert visible_stages(ShaderVisibility.PIXEL, flags) == 0x10
    assert visible_stages(ShaderVisibility.VERTEX, flags) == 0
    everything = visible_stages(ShaderVisibility.ALL, flags)
    assert everything & 0x20 and not everything & 0x81
    layout = binding_layout(RootSignature((RootConstants(0, 0, 1),), flags=flags))
    assert layout.push_constants[0].stages == everything


def test_local_root_signatures_have_no_layout() -> None:
    with pytest.raises(InvalidArgumentError, match="local"):
        binding_layout(RootSignature(flags=RootSignatureFlag.LOCAL_ROOT_SIGNATURE))


def test_nothing_needs_nothing() -> None:
    layout = binding_layout(RootSignature())
    assert (layout.bindings, layout.push_constants, layout.set_count) == ((), (), 0)
