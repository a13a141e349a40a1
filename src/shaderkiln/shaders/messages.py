"""What the translator's process is asked and what it answers.

The names are those of the public header ``vkd3d_shader.h``; numbers that stand for Direct3D's or vkd3d's enumerations say so.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class ResourceBinding(Struct, frozen=True):
    """Registers from ``register`` on lie at a Vulkan binding of ``count`` descriptors."""

    type: int
    """D3D12_DESCRIPTOR_RANGE_TYPE: 0 SRV, 1 UAV, 2 CBV, 3 sampler."""
    space: int
    register: int
    is_buffer: bool
    """Buffers lie here; False: images and samplers."""
    set: int
    binding: int
    count: int = 1
    """0xFFFFFFFF: without end."""


class PushConstantBuffer(Struct, frozen=True):
    """The constant buffer at a register is a range of push constants, in bytes."""

    space: int
    register: int
    offset: int
    size: int


class CounterBinding(Struct, frozen=True):
    """The counters of the UAVs from ``register`` on."""

    space: int
    register: int
    set: int
    binding: int
    count: int = 1


class CombinedSampler(Struct, frozen=True):
    """A resource and a sampler that are used together lie at one binding as a combined image sampler."""

    resource_space: int
    resource_register: int
    sampler_space: int
    sampler_register: int
    is_buffer: bool
    set: int
    binding: int


class StreamOutputElement(Struct, frozen=True):
    """A declaration of stream output, captured by transform feedback."""

    stream: int
    semantic_name: str
    """Empty: a gap."""
    semantic_index: int
    first_component: int
    component_count: int
    slot: int


class ShaderInterface(Struct, frozen=True):
    """Where the registers that a shader may use lie."""

    bindings: tuple[ResourceBinding, ...] = ()
    push_constants: tuple[PushConstantBuffer, ...] = ()
    counters: tuple[CounterBinding, ...] = ()
    combined_samplers: tuple[CombinedSampler, ...] = ()
    stream_output: tuple[StreamOutputElement, ...] = ()
    stream_output_strides: tuple[int, ...] = ()
    """Bytes of each buffer."""


class TargetOptions(Struct, frozen=True):
    """What the SPIR-V may use, and what the pipeline around the shader is."""

    entry_point: str = "main"
    """Name of the entry point in the result."""
    int64: bool = True
    """Vulkan's ``shaderInt64``."""
    float64: bool = True
    """Vulkan's ``shaderFloat64``."""
    wave_operations: bool = True
    """Vulkan 1.1's subgroup operations in compute and fragment shaders."""
    descriptor_indexing: bool = True
    demote_to_helper_invocation: bool = True
    stencil_export: bool = True
    viewport_index_layer: bool = True
    fragment_shader_interlock: bool = True
    read_without_format: bool = True
    """Vulkan's ``shaderStorageImageReadWithoutFormat``."""
    dual_source_blending: bool = False
    rasterizer_sample_count: int = 1
    tessellator_output: int = 0
    """Domain shaders: D3D_TESSELLATOR_OUTPUT_PRIMITIVE of the hull shader; 0: not known."""
    tessellator_partitioning: int = 0
    """Domain shaders: D3D_TESSELLATOR_PARTITIONING of the hull shader."""


class TranslationRequest(Struct, frozen=True, tag=True):
    """Translate one shader to SPIR-V."""

    code: bytes
    """A DXBC container with a right digest."""
    is_dxil: bool
    interface: ShaderInterface = ShaderInterface()
    options: TargetOptions = TargetOptions()
    seconds: int = 30
    """The process ends itself after so long."""


class Hello(Struct, frozen=True, tag=True):
    """The first message of the process: it is ready."""

    version: str
    """What the library calls itself."""
    sources: tuple[int, ...]
    """vkd3d_shader_source_type: 1 DXBC, 4 DXIL."""


class Done(Struct, frozen=True, tag=True):
    """The answer: SPIR-V, or none and the reason in the messages."""

    result: int
    """vkd3d_result; 0: success."""
    spirv: bytes
    messages: str
    seconds: float


Answer: TypeAlias = Hello | Done
