"""Variations of deserialized pipelines, which keep the object code (Xbox: CreateDerivedComputePipelineStateX; XS-06)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from shaderkiln.compilers.value_keys import PIPELINE_BINARY
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats.pipeline_components import assemble
from shaderkiln.formats.vendors import RADV
from shaderkiln.identity import CompilerIdentity
from shaderkiln.vulkan_registry import structures as vk
from shaderkiln.vulkan_registry.handles import Handle

from .creation import ObjectCreation
from .serialized_components import DeserializedPipelineState

_COMPUTE_STAGE = 0x20
_DYNAMIC_BUFFERS = (8, 9)
"""VkDescriptorType of uniform and storage buffers with dynamic offsets."""


class ComputeVariation(msgspec.Struct, frozen=True):
    """What a derived compute pipeline has in place of its base's; None: the same."""

    root_signature: bytes | None = None
    """A serialized root signature."""


def derive(creation: ObjectCreation, base: DeserializedPipelineState, variation: ComputeVariation) -> DeserializedPipelineState:
    """A variation of a compute pipeline with its object code, created with compiling forbidden.

    A root signature may be another one where everything that the base's has keeps its register and its place, and the object code
    stays as it is. With any driver that is one with the same Vulkan layout: other flags, another version. With RADV it may also add
    to it, as long as the descriptor sets that the base has stay as they are (``keeps_object_code``). Raises InvalidArgumentError
    for another one, and for a base that is no compute pipeline of this device; DamagedInputError for a damaged root signature and
    as ``deserialize``.
    """
    creation.check_open()
    if not isinstance(base, DeserializedPipelineState) or base.creation is not creation or base.kind != "compute":
        raise InvalidArgumentError("base: a deserialized compute pipeline of this device is needed")
    if not isinstance(variation, ComputeVariation):
        raise InvalidArgumentError(f"variation: {type(variation).__name__} is no ComputeVariation")
    found = assemble(base.serialized)
    description, root_signature = base.description, base.root_signature
    if variation.root_signature is not None:
        root_signature = bytes(variation.root_signature)
        description = _with_layout(creation.compiler, base, root_signature)
    return DeserializedPipelineState(creation, base.serialized, found, description, root_signature)


def keeps_object_code(compiler: CompilerIdentity, before: _Layout, after: _Layout) -> bool:
    """Whether a shader compiled with one layout has the same object code with another.

    RADV compiles into a shader where in its set a descriptor lies, and which of the sets that it uses comes first; so every set
    that is not empty has to stay, and others may be added. A descriptor that is added to a set moves others. Sets with dynamic
    offsets move what lies behind the push constants.
    """
    old, new = before.content(), after.content()
    if old == new:
        return True
    if compiler.driver_id != RADV or compiler.object_code_form != PIPELINE_BINARY:
        return False
    if old.rest != new.rest or old.has_dynamic_offsets or new.has_dynamic_offsets or len(new.sets) < len(old.sets):
        return False
    if any(one != other and one[0].bindings for one, other in zip(old.sets, new.sets, strict=False)):
        return False
    return all(
        any(r.stage_flags == o.stage_flags and r.offset == o.offset and r.size >= o.size for r in new.ranges)
        for o in old.ranges
    )


def _with_layout(compiler: CompilerIdentity, base: DeserializedPipelineState, blob: bytes) -> PipelineDescription:
    """The base's description with the layout of another root signature."""
    from shaderkiln.descriptions.direct3d12.binding_layout import BindingLayout, binding_layout
    from shaderkiln.formats import root_signature
    from shaderkiln.lowering.layout import RootLayout, pipeline_layout
    from shaderkiln.lowering.objects import Objects, Reasons

    def lowered(signature: root_signature.RootSignature, bindings: BindingLayout) -> _Layout:
        objects, reasons = Objects(), Reasons()
        handle = pipeline_layout(objects, RootLayout(signature, bindings), _COMPUTE_STAGE, reasons)
        reasons.check()
        return _Layout(handle, objects.found)

    def places(bindings: BindingLayout) -> set[tuple[int | bool, ...]]:
        """Which register lies where, as far as a compute shader sees it."""
        sees = _COMPUTE_STAGE
        return {
            (b.set, b.binding, b.register_type, b.register, b.space, b.count, b.is_counter, bool(b.stages & sees))
            for b in bindings.bindings
        } | {(c.offset, c.size, c.register, c.space, bool(c.stages & sees)) for c in bindings.push_constants}

    description = base.description
    assert isinstance(description.create_info, vk.ComputePipelineCreateInfo)
    new = root_signature.parse(blob)
    if base.root_signature and description.create_info.layout is not None:
        before = _Layout(description.create_info.layout, description.objects)
        old = root_signature.parse(base.root_signature)
        # In which of the two schemes the base was made is for its translator to know: its layout tells.
        for arrays in (False, True):
            old_bindings, new_bindings = (binding_layout(one, arrays=arrays) for one in (old, new))
            after = lowered(new, new_bindings)
            if (
                places(old_bindings) <= places(new_bindings)
                and lowered(old, old_bindings).content() == before.content()
                and keeps_object_code(compiler, before, after)
            ):
                info = replace(description.create_info, layout=after.handle)
                objects: dict[Handle, Any] = {**description.objects, **after.objects}
                return PipelineDescription(description.name, description.kind, info, objects)
    raise InvalidArgumentError("root_signature: with it the shader would have to be compiled again")


@dataclass(frozen=True, slots=True)
class _Content:
    """What a pipeline layout says, whatever its objects are called."""

    sets: tuple[tuple[vk.DescriptorSetLayoutCreateInfo, tuple[Any, ...]], ...]
    """Each with its immutable samplers."""
    ranges: tuple[vk.PushConstantRange, ...]
    rest: tuple[Any, ...]

    @property
    def has_dynamic_offsets(self) -> bool:
        return any(b.descriptor_type in _DYNAMIC_BUFFERS for one, _ in self.sets for b in one.bindings)


@dataclass(frozen=True, slots=True)
class _Layout:
    """A pipeline layout and the objects that it refers to."""

    handle: vk.PipelineLayoutHandle
    objects: Mapping[Handle, Any]

    def content(self) -> _Content:
        made = self.objects[self.handle]
        sets = []
        for handle in made.set_layouts:
            one = vk.DescriptorSetLayoutCreateInfo() if handle is None else self.objects[handle]
            sets.append(
                (one, tuple(self.objects[s] for b in one.bindings for s in b.immutable_samplers or () if s is not None))
            )
        return _Content(tuple(sets), made.push_constant_ranges, (made.flags, made.next))
