"""Where the registers of a root signature lie in Vulkan: one scheme, used by the shader translator and by the pipeline layout.

Descriptor sets (four, as many as every Vulkan device has):

==== ======================= ==============================================================
set  what                    bindings
==== ======================= ==============================================================
0    root descriptors        one for each CBV, SRV or UAV parameter, in order; then root constants that find no room
1    tables of CBV, SRV, UAV for each range in order: CBV one binding; SRV two, for buffers and for images; UAV three, for
                             buffers, images and counters
2    tables of samplers      one for each range, in order
3    static samplers         one for each, in order, immutable
==== ======================= ==============================================================

Bindings of a set are numbered from 0 without gaps. A root signature does not say whether a view is one of a buffer or of an
image, and a Vulkan binding has one type, so that every such range has a binding for each; a shader uses those that it needs.
Buffers are texel buffers, since that is what raw, structured and typed views of Direct3D have in common. A range without end has
``UNBOUNDED_COUNT`` descriptors, which need not all be there. Root constants are push constants in the order of the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats.root_signature import (
    UNBOUNDED,
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

ROOT_SET, TABLE_SET, SAMPLER_SET, STATIC_SAMPLER_SET = 0, 1, 2, 3

UNBOUNDED_COUNT = 65536
"""Descriptors of a binding that stands for a range without end."""

SPLIT_COUNT = 1024
"""Longest range whose registers get bindings of their own."""

PUSH_CONSTANT_BYTES = 256
"""Bytes of push constants that drivers of today have at least, but Vulkan 1.3 promises 128 only."""

STAGE_OF_VISIBILITY = {
    ShaderVisibility.VERTEX: 0x1,
    ShaderVisibility.HULL: 0x2,
    ShaderVisibility.DOMAIN: 0x4,
    ShaderVisibility.GEOMETRY: 0x8,
    ShaderVisibility.PIXEL: 0x10,
    ShaderVisibility.AMPLIFICATION: 0x40,
    ShaderVisibility.MESH: 0x80,
}
"""VkShaderStageFlagBits."""

ALL_STAGES = 0x3FFF
"""VkShaderStageFlags of the visibility ALL: graphics, compute, mesh and ray tracing stages."""

_DENIED = {
    RootSignatureFlag.DENY_VERTEX_SHADER_ROOT_ACCESS: 0x1,
    RootSignatureFlag.DENY_HULL_SHADER_ROOT_ACCESS: 0x2,
    RootSignatureFlag.DENY_DOMAIN_SHADER_ROOT_ACCESS: 0x4,
    RootSignatureFlag.DENY_GEOMETRY_SHADER_ROOT_ACCESS: 0x8,
    RootSignatureFlag.DENY_PIXEL_SHADER_ROOT_ACCESS: 0x10,
    RootSignatureFlag.DENY_AMPLIFICATION_SHADER_ROOT_ACCESS: 0x40,
    RootSignatureFlag.DENY_MESH_SHADER_ROOT_ACCESS: 0x80,
}


class BindingKind(IntEnum):
    """What lies at a binding, with the VkDescriptorType of each."""

    SAMPLER = 0
    SAMPLED_IMAGE = 2
    STORAGE_IMAGE = 3
    UNIFORM_TEXEL_BUFFER = 4
    STORAGE_TEXEL_BUFFER = 5
    UNIFORM_BUFFER = 6


@dataclass(frozen=True, slots=True)
class LayoutBinding:
    """One binding of a Vulkan descriptor set, and the registers that lie there."""

    set: int
    binding: int
    kind: BindingKind
    """Its number is the VkDescriptorType."""
    count: int
    """Descriptors of the Vulkan binding, ``UNBOUNDED_COUNT`` for a range without end."""
    unbounded: bool
    register_type: DescriptorRangeType
    register: int
    space: int
    visibility: ShaderVisibility
    stages: int
    """VkShaderStageFlags, without those that the root signature denies access."""
    parameter: int | None
    """Index of the root parameter; None for a static sampler."""
    range: int | None = None
    """Index of the range in its table."""
    table_offset: int = 0
    """Descriptors from the start of the table."""
    is_counter: bool = False
    """The counters of a UAV range (a 32-bit number each)."""
    static_sampler: StaticSampler | None = None


@dataclass(frozen=True, slots=True)
class PushConstants:
    """Root constants in Vulkan's push constants."""

    parameter: int
    register: int
    space: int
    visibility: ShaderVisibility
    stages: int
    offset: int
    """Bytes."""
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class BindingLayout:
    """The Vulkan layout of a root signature."""

    bindings: tuple[LayoutBinding, ...]
    """Ordered by set, then binding."""
    push_constants: tuple[PushConstants, ...]
    """Ordered by offset."""

    @property
    def set_count(self) -> int:
        """Descriptor sets of the pipeline layout; those without bindings are empty."""
        return self.bindings[-1].set + 1 if self.bindings else 0

    def set(self, number: int) -> tuple[LayoutBinding, ...]:
        """The bindings of one set, in order."""
        return tuple(b for b in self.bindings if b.set == number)

    @property
    def push_constant_bytes(self) -> int:
        return sum(p.size for p in self.push_constants)


_KINDS = {
    DescriptorRangeType.CBV: (BindingKind.UNIFORM_BUFFER,),
    DescriptorRangeType.SRV: (BindingKind.UNIFORM_TEXEL_BUFFER, BindingKind.SAMPLED_IMAGE),
    DescriptorRangeType.UAV: (BindingKind.STORAGE_TEXEL_BUFFER, BindingKind.STORAGE_IMAGE, BindingKind.STORAGE_TEXEL_BUFFER),
    DescriptorRangeType.SAMPLER: (BindingKind.SAMPLER,),
}
_ROOT = {
    RootParameterType.CBV: (DescriptorRangeType.CBV, BindingKind.UNIFORM_BUFFER),
    RootParameterType.SRV: (DescriptorRangeType.SRV, BindingKind.UNIFORM_TEXEL_BUFFER),
    RootParameterType.UAV: (DescriptorRangeType.UAV, BindingKind.STORAGE_TEXEL_BUFFER),
}
_COUNTER = 2
"""Place of the counters among a UAV range's kinds."""


def visible_stages(visibility: ShaderVisibility, flags: RootSignatureFlag) -> int:
    """VkShaderStageFlags of a parameter, without those that ``flags`` deny access; intersect with what the device knows."""
    stages = STAGE_OF_VISIBILITY.get(visibility, ALL_STAGES)
    for flag, stage in _DENIED.items():
        if flags & flag:
            stages &= ~stage
    return stages


def binding_layout(
    signature: RootSignature, push_constant_bytes: int = PUSH_CONSTANT_BYTES, arrays: bool = True
) -> BindingLayout:
    """The layout of a valid root signature. The same arguments always give the same layout.

    Root constants that do not fit into ``push_constant_bytes`` are uniform buffers of set 0. Without ``arrays`` each register of
    a range that has an end, of at most ``SPLIT_COUNT``, has bindings of its own: for translators that know no arrays of
    descriptors (``Translator.has_arrays``). Raises InvalidArgumentError for a local root signature: its arguments lie in shader
    records, not in sets.
    """
    if signature.flags & RootSignatureFlag.LOCAL_ROOT_SIGNATURE:
        raise InvalidArgumentError("a local root signature has no pipeline layout of its own")
    sets: tuple[list[LayoutBinding], ...] = ([], [], [], [])
    push: list[PushConstants] = []
    overflow: list[tuple[int, RootConstants]] = []
    used = 0

    def add(number: int, kind: BindingKind, register_type: DescriptorRangeType, register: int, space: int,
            visibility: ShaderVisibility, parameter: int | None, count: int = 1, index: int | None = None, offset: int = 0,
            is_counter: bool = False, sampler: StaticSampler | None = None) -> None:  # fmt: skip
        stages = visible_stages(visibility, signature.flags)
        unbounded = count == UNBOUNDED
        sets[number].append(
            LayoutBinding(
                number, len(sets[number]), kind, UNBOUNDED_COUNT if unbounded else count, unbounded, register_type, register,
                space, visibility, stages, parameter, index, offset, is_counter, sampler,
            )
        )  # fmt: skip

    for number, parameter in enumerate(signature.parameters):
        match parameter:
            case RootConstants():
                size = 4 * parameter.count
                if used + size > push_constant_bytes:
                    overflow.append((number, parameter))
                    continue
                stages = visible_stages(parameter.visibility, signature.flags)
                push.append(
                    PushConstants(number, parameter.register, parameter.space, parameter.visibility, stages, used, size)
                )
                used += size
            case RootDescriptor():
                register_type, kind = _ROOT[parameter.type]
                add(ROOT_SET, kind, register_type, parameter.register, parameter.space, parameter.visibility, number)
            case DescriptorTable():
                for index, (r, offset) in enumerate(zip(parameter.ranges, parameter.offsets(), strict=True)):
                    target = SAMPLER_SET if r.type is DescriptorRangeType.SAMPLER else TABLE_SET
                    parts, count = (1, r.count) if arrays or r.count > SPLIT_COUNT else (r.count, 1)
                    for part in range(parts):
                        for place, kind in enumerate(_KINDS[r.type]):
                            add(
                                target, kind, r.type, r.base_register + part, r.space, parameter.visibility, number, count,
                                index, offset + part, place == _COUNTER,
                            )  # fmt: skip
    for number, constants in overflow:
        add(
            ROOT_SET, BindingKind.UNIFORM_BUFFER, DescriptorRangeType.CBV, constants.register, constants.space,
            constants.visibility, number,
        )  # fmt: skip
    for sampler in signature.static_samplers:
        add(
            STATIC_SAMPLER_SET, BindingKind.SAMPLER, DescriptorRangeType.SAMPLER, sampler.register, sampler.space,
            sampler.visibility, None, sampler=sampler,
        )  # fmt: skip
    return BindingLayout(tuple(b for bindings in sets for b in bindings), tuple(push))
