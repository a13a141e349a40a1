"""What the translator is told of a root signature: the registers that one stage sees, and where they lie in Vulkan."""

from __future__ import annotations

from collections.abc import Sequence

from shaderkiln.descriptions.direct3d12.binding_layout import STAGE_OF_VISIBILITY, BindingKind, BindingLayout
from shaderkiln.formats.dxbc import ShaderKind
from shaderkiln.formats.root_signature import UNBOUNDED
from shaderkiln.shaders.messages import (
    CounterBinding,
    PushConstantBuffer,
    ResourceBinding,
    ShaderInterface,
    StreamOutputElement,
)

_BUFFERS = (BindingKind.UNIFORM_BUFFER, BindingKind.UNIFORM_TEXEL_BUFFER, BindingKind.STORAGE_TEXEL_BUFFER)

STAGES = {ShaderKind[visibility.name]: stage for visibility, stage in STAGE_OF_VISIBILITY.items()} | {ShaderKind.COMPUTE: 0x20}
"""VkShaderStageFlagBits of the kinds of shader that a pipeline has one of."""


def shader_interface(
    layout: BindingLayout,
    kind: ShaderKind,
    stream_output: Sequence[StreamOutputElement] = (),
    stream_output_strides: Sequence[int] = (),
) -> ShaderInterface:
    """The interface of a shader of that kind: what its stage sees of the layout."""
    stage = STAGES.get(kind, 0)
    seen = [b for b in layout.bindings if b.stages & stage]
    return ShaderInterface(
        tuple(
            ResourceBinding(
                int(b.register_type), b.space, b.register, b.kind in _BUFFERS, b.set, b.binding,
                UNBOUNDED if b.unbounded else b.count,
            )
            for b in seen
            if not b.is_counter
        ),
        tuple(PushConstantBuffer(p.space, p.register, p.offset, p.size) for p in layout.push_constants if p.stages & stage),
        tuple(
            CounterBinding(b.space, b.register, b.set, b.binding, UNBOUNDED if b.unbounded else b.count)
            for b in seen
            if b.is_counter
        ),
        (),
        tuple(stream_output),
        tuple(stream_output_strides),
    )  # fmt: skip
