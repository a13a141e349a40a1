"""Root signatures as Vulkan's set layouts, immutable samplers and push constants.

SPIR-V that a pipeline brings as bytecode says itself where its resources lie. Where that is the scheme of ``binding_layout``, the
root signature's layout serves it; else, if all shaders of the pipeline are SPIR-V, the layout is made from what they declare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shaderkiln.descriptions.direct3d12.binding_layout import (
    SAMPLER_SET,
    TABLE_SET,
    UNBOUNDED_COUNT,
    BindingLayout,
    LayoutBinding,
    PushConstants,
)
from shaderkiln.formats.root_signature import (
    DescriptorRangeFlag,
    DescriptorTable,
    RootSignature,
    RootSignatureVersion,
    SamplerFlag,
    StaticSampler,
)
from shaderkiln.formats.spirv import Binding, EntryPoint
from shaderkiln.lowering import tables
from shaderkiln.lowering.objects import Objects, Reasons
from shaderkiln.vulkan_registry import structures as vk

_UPDATE_AFTER_BIND, _UPDATE_UNUSED_WHILE_PENDING, _PARTIALLY_BOUND = 1, 2, 4
_UPDATE_AFTER_BIND_POOL = 2


@dataclass(frozen=True, slots=True)
class RootLayout:
    """A root signature with its Vulkan layout."""

    signature: RootSignature
    bindings: BindingLayout


def pipeline_layout(objects: Objects, root: RootLayout, stages: int, reasons: Reasons) -> vk.PipelineLayoutHandle:
    """The pipeline layout of a root signature for pipelines of ``stages`` (VkShaderStageFlags of their kind)."""
    handles = []
    for number in range(root.bindings.set_count):
        bindings, flags = [], []
        for b in root.bindings.set(number):
            samplers = None
            if b.static_sampler is not None:
                sampler = sampler_info(b.static_sampler, reasons)
                samplers = (objects.add(vk.SamplerHandle, sampler),)
            bindings.append(vk.DescriptorSetLayoutBinding(b.binding, int(b.kind), b.count, b.stages & stages, samplers))
            flags.append(_binding_flags(root.signature, b))
        handles.append(objects.add(vk.DescriptorSetLayoutHandle, _set_layout(bindings, flags)))
    ranges = _ranges(root.bindings.push_constants, stages)
    return objects.add(vk.PipelineLayoutHandle, vk.PipelineLayoutCreateInfo(0, tuple(handles), ranges))


def _set_layout(bindings: Sequence[vk.DescriptorSetLayoutBinding], flags: Sequence[int]) -> vk.DescriptorSetLayoutCreateInfo:
    chain = (vk.DescriptorSetLayoutBindingFlagsCreateInfo(tuple(flags)),) if any(flags) else ()
    pool = _UPDATE_AFTER_BIND_POOL if any(flag & _UPDATE_AFTER_BIND for flag in flags) else 0
    return vk.DescriptorSetLayoutCreateInfo(pool, tuple(bindings), chain)


def _binding_flags(signature: RootSignature, binding: LayoutBinding) -> int:
    """Descriptors in tables that no shader uses need not be there, and volatile ones may change until the GPU runs."""
    if binding.set not in (TABLE_SET, SAMPLER_SET) or binding.parameter is None or binding.range is None:
        return 0
    table = signature.parameters[binding.parameter]
    assert isinstance(table, DescriptorTable)
    volatile = table.ranges[binding.range].flags & DescriptorRangeFlag.DESCRIPTORS_VOLATILE
    if signature.version is RootSignatureVersion.V1_0 or volatile:
        return _PARTIALLY_BOUND | _UPDATE_AFTER_BIND | _UPDATE_UNUSED_WHILE_PENDING
    return _PARTIALLY_BOUND


def _ranges(constants: Sequence[PushConstants], stages: int) -> tuple[vk.PushConstantRange, ...]:
    """Push constant ranges: Vulkan allows a stage in one range only, so each stage has the span of its own constants."""
    spans: dict[int, tuple[int, int]] = {}
    for bit in (1 << n for n in range(14)):
        seen = [c for c in constants if c.stages & stages & bit]
        if seen:
            spans[bit] = (min(c.offset for c in seen), max(c.offset + c.size for c in seen))
    found: dict[tuple[int, int], int] = {}
    for bit, span in spans.items():
        found[span] = found.get(span, 0) | bit
    return tuple(vk.PushConstantRange(bits, start, end - start) for (start, end), bits in sorted(found.items()))


def sampler_info(sampler: StaticSampler, reasons: Reasons) -> vk.SamplerCreateInfo:
    """A static sampler as an immutable one."""
    bits = sampler.filter
    reduction = bits >> 7 & 3
    anisotropic = bool(bits & 0x40)
    address = [tables.ADDRESS_MODES.get(mode) for mode in (sampler.address_u, sampler.address_v, sampler.address_w)]
    border = tables.BORDER_COLORS.get(sampler.border_color)
    if None in address or border is None:
        reasons.add("static_samplers", f"static sampler s{sampler.register}: an address mode or border colour is not known")
        return vk.SamplerCreateInfo()
    u, v, w = (mode or 0 for mode in address)
    mode = tables.REDUCTIONS[reduction]
    unnormalized = bool(sampler.flags & SamplerFlag.NON_NORMALIZED_COORDINATES)
    return vk.SamplerCreateInfo(
        0,
        tables.FILTERS[bits >> 2 & 1],
        tables.FILTERS[bits >> 4 & 1],
        tables.FILTERS[bits & 1],
        u,
        v,
        w,
        sampler.mip_lod_bias,
        int(anisotropic),
        float(min(max(sampler.max_anisotropy, 1), 16)) if anisotropic else 1.0,
        int(reduction == 1),
        _compare(sampler.comparison) if reduction == 1 else 0,
        sampler.min_lod,
        sampler.max_lod,
        border,
        int(unnormalized),
        () if mode is None else (vk.SamplerReductionModeCreateInfo(mode),),
    )


def _compare(number: int) -> int:
    """D3D12_COMPARISON_FUNC → VkCompareOp."""
    return max(number - 1, 0)


# SPIR-V with places of its own


def misfit(root: RootLayout, entry: EntryPoint, stage: int) -> str:
    """What a SPIR-V shader uses that the root signature's layout does not have; empty if it fits."""
    places = {(b.set, b.binding): b for b in root.bindings.bindings}
    for used in entry.bindings:
        place = places.get((used.set, used.binding))
        if place is None or int(place.kind) not in used.descriptor_types or not place.stages & stage:
            return f"set {used.set}, binding {used.binding} is not in the root signature's layout, or of another type"
        if used.count is not None and used.count > place.count:
            return f"set {used.set}, binding {used.binding} has {used.count} descriptors, the root signature {place.count}"
    room = max((c.offset + c.size for c in root.bindings.push_constants if c.stages & stage), default=0)
    if entry.push_constant_bytes > room:
        return f"it uses {entry.push_constant_bytes} bytes of push constants, the root signature has {room}"
    return ""


def declared_layout(objects: Objects, entries: Iterable[tuple[int, EntryPoint]], reasons: Reasons) -> vk.PipelineLayoutHandle:
    """A pipeline layout from what shaders declare; ``entries`` are stage bits with entry points."""
    found: dict[tuple[int, int], tuple[tuple[int, ...], int, int]] = {}
    push, push_stages = 0, 0
    for stage, entry in entries:
        if entry.push_constant_bytes:
            push, push_stages = max(push, entry.push_constant_bytes), push_stages | stage
        for b in entry.bindings:
            _declare(found, b, stage, reasons)
    handles = []
    for number in range(max((place[0] for place in found), default=-1) + 1):
        bindings, flags = [], []
        for (set_, binding), (types, count, stages) in sorted(found.items()):
            if set_ == number:
                bindings.append(vk.DescriptorSetLayoutBinding(binding, types[0], count, stages))
                flags.append(_PARTIALLY_BOUND if count == UNBOUNDED_COUNT else 0)
        handles.append(objects.add(vk.DescriptorSetLayoutHandle, _set_layout(bindings, flags)))
    ranges = (vk.PushConstantRange(push_stages, 0, push + -push % 4),) if push else ()
    return objects.add(vk.PipelineLayoutHandle, vk.PipelineLayoutCreateInfo(0, tuple(handles), ranges))


def _declare(
    found: dict[tuple[int, int], tuple[tuple[int, ...], int, int]], used: Binding, stage: int, reasons: Reasons
) -> None:
    count = UNBOUNDED_COUNT if used.count is None else used.count
    types, before, stages = found.get((used.set, used.binding), (used.descriptor_types, 0, 0))
    both = tuple(type_ for type_ in types if type_ in used.descriptor_types)
    if not both or used.set >= 32:
        reasons.add("root_signature", f"set {used.set}, binding {used.binding}: the shaders declare it in two ways")
        return
    found[used.set, used.binding] = (both, max(before, count), stages | stage)
