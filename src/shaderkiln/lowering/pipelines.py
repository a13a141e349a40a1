"""Pipeline states of Direct3D 12 as Vulkan pipelines.

Shaders are translated (SPIR-V stays as it is), the root signature becomes the pipeline layout (``binding_layout`` has the scheme),
and render passes are dynamic. What Direct3D 12 sets in command lists is dynamic here: viewports, scissors, the topology within its
class, vertex strides, stencil reference, blend constants, depth bounds. Equal descs give equal descriptions.

A pipeline that Vulkan or the translator cannot express raises UnsupportedPipelineError with every reason.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from shaderkiln.descriptions.direct3d12.enums import PrimitiveTopologyType
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.states import StreamOutputDesc
from shaderkiln.descriptions.pipeline import Application, PipelineDescription, PipelineKind
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats import dxbc
from shaderkiln.formats.spirv import EntryPoint
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.lowering import state
from shaderkiln.lowering.layout import RootLayout, declared_layout, misfit, pipeline_layout
from shaderkiln.lowering.objects import Objects, Reasons
from shaderkiln.lowering.shaders import (
    STAGES,
    LoweredShader,
    ShaderTranslations,
    StreamOutput,
    input_control_points,
    own_root_signature,
)
from shaderkiln.shaders.messages import StreamOutputElement, TargetOptions
from shaderkiln.shaders.translator import NotTranslatable
from shaderkiln.vulkan_registry import structures as vk

DEVICE_FEATURES: Final = (
    "VkPhysicalDeviceFeatures.robustBufferAccess",
    "VkPhysicalDeviceRobustness2FeaturesEXT.nullDescriptor",
    "VkPhysicalDeviceRobustness2FeaturesEXT.robustBufferAccess2",
)
"""What Direct3D 12 promises about reads outside of resources and null descriptors. It changes object code, so whoever compiles for
a Direct3D 12 application and whoever creates its pipelines must open the device with the same."""

API_VERSION: Final = 1 << 22 | 3 << 12
"""Vulkan 1.3: dynamic rendering and extended dynamic state."""

_GRAPHICS_STAGES, _MESH_STAGES, _COMPUTE_STAGE = 0x1F, 0xD0, 0x20
_OUTPUT_VERTICES = 26
_GAP = " gap"
"""A name that no semantic can have: the translator leaves its components out, and crashes on an element without a name."""
_LAST_STAGES = ("gs", "ds", "vs")
_DECIDING_STAGES = ("hs", "ds", "gs", "ms")
"""What these shaders put out decides the input assembly, and whether lines are drawn."""


def direct3d12_application(identity: ApplicationIdentity | None = None) -> Application:
    """An application of Direct3D 12, as compilers are opened for."""
    return Application(identity or ApplicationIdentity(), API_VERSION, DEVICE_FEATURES)


def kind_of(stream: PipelineStateStream) -> PipelineKind:
    """The kind of Vulkan pipeline."""
    return "compute" if stream.kind == "compute" else "graphics"


def lower_pipeline_state(
    stream: PipelineStateStream,
    translations: ShaderTranslations,
    name: str = "",
    *,
    entry_points: dict[str, str] | None = None,
    with_code: bool = True,
) -> PipelineDescription:
    """The Vulkan pipeline of a pipeline state that ``validation.validate`` takes.

    ``entry_points`` names the entry point of stages whose SPIR-V has several. Without ``with_code`` the stages have no shader
    modules, and only those shaders are translated that decide a state as well; all else is the same.

    Raises UnsupportedPipelineError; DamagedInputError for shaders or root signatures that are damaged; InvalidArgumentError for
    what Direct3D 12 would refuse: no root signature, a shader of another stage, an input layout without what the vertex shader
    reads; NotFoundError without a translator package. Without ``with_code`` it finds less of that.
    """
    return _Lowering(stream.with_defaults(), translations, entry_points or {}, with_code).description(name)


class _Lowering:
    def __init__(
        self, full: PipelineStateStream, translations: ShaderTranslations, entry_points: dict[str, str], with_code: bool
    ) -> None:
        self.full = full
        self.with_code = with_code
        self.translations = translations
        self.entry_points = entry_points
        self.objects = Objects()
        self.reasons = Reasons()
        self.codes = full.shaders()
        if not self.codes:
            raise InvalidArgumentError("the pipeline state has no shader")

    def description(self, name: str) -> PipelineDescription:
        root = self._root()
        samples = 1 if "cs" in self.codes else state.sample_count(self.full, self.reasons)
        shaders = self._shaders(root, samples)
        kind = kind_of(self.full)
        info: Struct
        if kind == "compute":
            layout = self._layout(root, shaders, _COMPUTE_STAGE)
            self.reasons.check()
            info = vk.ComputePipelineCreateInfo(0, self._stage("cs", shaders["cs"]), layout, None, -1)
        else:
            info = self._graphics(root, shaders, samples)
        self.reasons.check()
        return PipelineDescription(name, kind, info, self.objects.found)

    # -- shaders and layout

    def _root(self) -> RootLayout | None:
        direct3d = any(map(dxbc.is_container, self.codes.values()))
        blob = self.full.root_signature_blob or own_root_signature(list(self.codes.values()))
        if blob is None:
            if direct3d:
                raise InvalidArgumentError("root_signature: neither the pipeline state nor a shader has one")
            return None
        return self.translations.root(blob, has_direct3d_shaders=direct3d, translates=self.with_code)

    def _shaders(self, root: RootLayout | None, samples: int) -> dict[str, LoweredShader]:
        found: dict[str, LoweredShader] = {}
        last = next((stage for stage in _LAST_STAGES if stage in self.codes), "")
        output = self._stream_output(self.codes.get(last))
        for stage, code in self.codes.items():
            options = TargetOptions(
                dual_source_blending=stage == "ps" and state.is_dual_source(self.full),
                rasterizer_sample_count=samples if stage == "ps" else 1,
            )
            entry_point = self.entry_points.get(stage)
            if self.with_code or stage in _DECIDING_STAGES:
                captured = output if stage == last else StreamOutput()
                made = self.translations.shader(stage, code, root, options, captured, entry_point)
            else:
                made = self.translations.form_of(stage, code, entry_point)
            if isinstance(made, NotTranslatable):
                self.reasons.add(stage, f"{stage}: not translatable here: {made.reason}", where=f"shader {stage}")
            else:
                found[stage] = made
                if output.elements and stage == last and made.was_spirv:
                    self.reasons.add("stream_output", "stream_output: a SPIR-V shader says itself what is captured")
        if len(found) < len(self.codes):
            if kind_of(self.full) == "graphics":
                # The other reasons belong into the same report.
                state.color_blend(self.full, self.reasons)
                state.rendering(self.full, self.reasons)
            self.reasons.check()
        return found

    def _stream_output(self, code: bytes | None) -> StreamOutput:
        """What the shader that is last before the rasterizer captures. Raises InvalidArgumentError for what it does not write."""
        desc = self.full.stream_output
        if not isinstance(desc, StreamOutputDesc) or not desc.declarations:
            return StreamOutput()
        if code is not None and dxbc.is_container(code):
            written = {(e.semantic_name.upper(), e.semantic_index) for e in dxbc.parse(code).output_signature or ()}
            for index, d in enumerate(desc.declarations):
                if d.semantic_name and (d.semantic_name.upper(), d.semantic_index) not in written:
                    raise InvalidArgumentError(
                        f"stream_output.declarations[{index}]: no shader writes {d.semantic_name}{d.semantic_index}"
                    )
        return StreamOutput(
            tuple(
                StreamOutputElement(
                    d.stream, d.semantic_name or _GAP, d.semantic_index, d.start_component, d.component_count, d.output_slot
                )
                for d in desc.declarations
            ),
            desc.buffer_strides,
        )

    def _layout(self, root: RootLayout | None, shaders: dict[str, LoweredShader], stages: int) -> vk.PipelineLayoutHandle:
        ready = {STAGES[stage]: shader for stage, shader in shaders.items()}
        problems = [
            (bit, problem)
            for bit, shader in ready.items()
            if shader.was_spirv
            if (problem := "there is no root signature" if root is None else misfit(root, shader.entry, bit))
        ]
        if root is not None and not problems:
            return pipeline_layout(self.objects, root, stages, self.reasons)
        if not all(shader.was_spirv for shader in shaders.values()):
            names = {bit: stage for stage, bit in STAGES.items()}
            for bit, problem in problems:
                self.reasons.add(names[bit], f"{names[bit]}: SPIR-V among Direct3D shaders: {problem}")
            self.reasons.check()
        return declared_layout(self.objects, [(bit, s.entry) for bit, s in ready.items()], self.reasons)

    def _stage(self, stage: str, shader: LoweredShader) -> vk.PipelineShaderStageCreateInfo:
        module = None
        if self.with_code:
            module = self.objects.add(vk.ShaderModuleHandle, vk.ShaderModuleCreateInfo(0, shader.spirv))
        return vk.PipelineShaderStageCreateInfo(0, STAGES[stage], module, shader.entry.name)

    # -- graphics

    def _graphics(
        self, root: RootLayout | None, shaders: dict[str, LoweredShader], samples: int
    ) -> vk.GraphicsPipelineCreateInfo:
        full, reasons = self.full, self.reasons
        mesh = full.kind == "mesh"
        layout = self._layout(root, shaders, _MESH_STAGES if mesh else _GRAPHICS_STAGES)
        entries = {stage: shader.entry for stage, shader in shaders.items()}
        vertex = assembly = None
        if not mesh:
            if "vs" not in shaders:
                raise InvalidArgumentError("vs: a graphics pipeline needs a vertex shader")
            signature = dxbc.parse(self.codes["vs"]).input_signature if not shaders["vs"].was_spirv else None
            assert full.input_layout is not None
            vertex = state.vertex_input(
                full.input_layout, signature or (() if not shaders["vs"].was_spirv else None), entries["vs"], reasons
            )
            assembly = state.input_assembly(full, entries.get("gs"), reasons)
        return vk.GraphicsPipelineCreateInfo(
            stage_count=len(shaders),
            stages=tuple(self._stage(stage, shader) for stage, shader in shaders.items()),
            vertex_input_state=vertex,
            input_assembly_state=assembly,
            tessellation_state=self._tessellation(entries),
            viewport_state=vk.PipelineViewportStateCreateInfo(),
            rasterization_state=state.rasterization(full, state.draws_lines(full, entries), reasons),
            multisample_state=state.multisample(full, samples),
            depth_stencil_state=state.depth_stencil(full, reasons),
            color_blend_state=state.color_blend(full, reasons),
            dynamic_state=vk.PipelineDynamicStateCreateInfo(0, state.dynamic_states(full, vertex)),
            layout=layout,
            base_pipeline_index=-1,
            next=(state.rendering(full, reasons),),
        )

    def _tessellation(self, entries: dict[str, EntryPoint]) -> vk.PipelineTessellationStateCreateInfo | None:
        if "hs" not in entries:
            if self.full.primitive_topology == PrimitiveTopologyType.PATCH and "vs" in entries:
                self.reasons.add("primitive_topology", "primitive_topology: PATCH: Vulkan has no patches without a hull shader")
            return None
        points = input_control_points(self.codes["hs"])
        if points is None:
            # SPIR-V does not say it: patches that keep their control points are taken for granted.
            modes = entries["hs"].execution_modes.get(_OUTPUT_VERTICES, ((),))
            points = modes[0][0] if modes and modes[0] else 1
        if not 1 <= points <= 32:
            raise InvalidArgumentError(f"hs: patches of {points} control points; there are 1 to 32")
        return vk.PipelineTessellationStateCreateInfo(0, points)
