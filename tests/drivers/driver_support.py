"""Small shaders and pipelines, and workers of whatever driver packages this user has, for the tests of the driver worker."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import pytest
from msgspec import Struct

from shaderkiln.descriptions.pipeline import PipelineCreateInfo
from shaderkiln.drivers.client import WorkerProcess, worker_arguments
from shaderkiln.drivers.packages import DriverPackages
from shaderkiln.drivers.protocol import Answer, Compile, Compiled, Define, Open, Opened
from shaderkiln.drivers.targets import Target, candidate_targets, process_environment
from shaderkiln.vulkan_registry.handles import Handle
from shaderkiln.vulkan_registry.structures import (
    AttachmentDescription,
    AttachmentReference,
    ComputePipelineCreateInfo,
    DescriptorSetLayoutBinding,
    DescriptorSetLayoutCreateInfo,
    DescriptorSetLayoutHandle,
    Extent2D,
    GraphicsPipelineCreateInfo,
    PipelineColorBlendAttachmentState,
    PipelineColorBlendStateCreateInfo,
    PipelineInputAssemblyStateCreateInfo,
    PipelineLayoutCreateInfo,
    PipelineLayoutHandle,
    PipelineMultisampleStateCreateInfo,
    PipelineRasterizationStateCreateInfo,
    PipelineShaderStageCreateInfo,
    PipelineVertexInputStateCreateInfo,
    PipelineViewportStateCreateInfo,
    Rect2D,
    RenderPassCreateInfo,
    RenderPassHandle,
    ShaderModuleCreateInfo,
    ShaderModuleHandle,
    SpecializationInfo,
    SpecializationMapEntry,
    SubpassDescription,
    Viewport,
)

R8G8B8A8_UNORM = 37


def _text(value: str) -> tuple[int, ...]:
    data = value.encode() + b"\0"
    data += b"\0" * (-len(data) % 4)
    return struct.unpack(f"<{len(data) // 4}I", data)


def _module(bound: int, *instructions: tuple[int, ...]) -> bytes:
    """A SPIR-V 1.0 module; each instruction is its opcode and operand words."""
    words = [0x07230203, 0x00010000, 0, bound, 0]
    for opcode, *operands in instructions:
        words += [(len(operands) + 1) << 16 | opcode, *operands]
    return struct.pack(f"<{len(words)}I", *words)


def multiply_shader() -> bytes:
    """Compute: multiplies one number in a storage buffer (set 0, binding 0) by specialization constant 0."""
    return _module(
        16,
        (17, 1), (14, 0, 1), (15, 5, 1, *_text("main")), (16, 1, 17, 1, 1, 1),
        (71, 9, 1, 0), (71, 6, 3), (72, 6, 0, 35, 0), (71, 8, 34, 0), (71, 8, 33, 0),
        (19, 2), (33, 3, 2), (21, 4, 32, 0), (21, 5, 32, 1), (30, 6, 4), (32, 7, 2, 6), (59, 7, 8, 2),
        (50, 4, 9, 1), (43, 5, 10, 0), (32, 11, 2, 4),
        (54, 2, 1, 0, 3), (248, 12), (65, 11, 13, 8, 10), (61, 4, 14, 13), (132, 4, 15, 14, 9), (62, 13, 15), (253,), (56,),
    )  # fmt: skip


def neighbours_shader() -> bytes:
    """Compute: multiplies two neighbouring numbers of a storage buffer (set 0, binding 0), at the invocation's own place.

    A driver may read both at once only where a read past the end need not be safe by itself.
    """
    return _module(
        40,
        (17, 1), (14, 0, 1), (15, 5, 1, *_text("main"), 20), (16, 1, 17, 64, 1, 1),
        (71, 20, 11, 28), (71, 16, 6, 4), (71, 6, 3), (72, 6, 0, 35, 0), (71, 8, 34, 0), (71, 8, 33, 0),
        (19, 2), (33, 3, 2), (21, 4, 32, 0), (21, 5, 32, 1), (29, 16, 4), (30, 6, 16), (32, 7, 2, 6), (59, 7, 8, 2),
        (23, 17, 4, 3), (32, 18, 1, 17), (59, 18, 20, 1), (32, 19, 1, 4),
        (43, 5, 10, 0), (43, 4, 21, 0), (43, 4, 22, 1), (43, 4, 23, 1), (32, 11, 2, 4),
        (54, 2, 1, 0, 3), (248, 12), (65, 19, 24, 20, 21), (61, 4, 25, 24), (132, 4, 26, 25, 23), (128, 4, 27, 26, 22),
        (65, 11, 28, 8, 10, 26), (65, 11, 29, 8, 10, 27), (61, 4, 30, 28), (61, 4, 31, 29), (132, 4, 32, 30, 31),
        (62, 28, 32), (253,), (56,),
    )  # fmt: skip


def _store_vector(model: int, decoration: tuple[int, ...], *modes: tuple[int, ...]) -> bytes:
    """A stage that stores (x, x, x, 1) to its only output, x being specialization constant 0."""
    return _module(
        16,
        (17, 1), (14, 0, 1), (15, model, 1, *_text("main"), 8), *modes,
        (71, 9, 1, 0), (71, 8, *decoration),
        (19, 2), (33, 3, 2), (22, 4, 32), (23, 5, 4, 4), (32, 7, 3, 5), (59, 7, 8, 3),
        (50, 4, 9, 0x3E800000), (43, 4, 10, 0x3F800000), (51, 5, 11, 9, 9, 9, 10),
        (54, 2, 1, 0, 3), (248, 12), (62, 8, 11), (253,), (56,),
    )  # fmt: skip


def position_shader() -> bytes:
    return _store_vector(0, (11, 0))


def color_shader() -> bytes:
    return _store_vector(4, (30, 0), (16, 1, 7))


MULTIPLY, POSITION, COLOR = ShaderModuleHandle(1), ShaderModuleHandle(2), ShaderModuleHandle(3)
SET, BUFFER_LAYOUT, EMPTY_LAYOUT = DescriptorSetLayoutHandle(4), PipelineLayoutHandle(5), PipelineLayoutHandle(6)
PASS = RenderPassHandle(7)
NEIGHBOURS = ShaderModuleHandle(8)

OBJECTS: Mapping[Handle, Struct] = {
    MULTIPLY: ShaderModuleCreateInfo(code=multiply_shader()),
    NEIGHBOURS: ShaderModuleCreateInfo(code=neighbours_shader()),
    POSITION: ShaderModuleCreateInfo(code=position_shader()),
    COLOR: ShaderModuleCreateInfo(code=color_shader()),
    SET: DescriptorSetLayoutCreateInfo(
        bindings=(DescriptorSetLayoutBinding(binding=0, descriptor_type=7, descriptor_count=1, stage_flags=0x20),)
    ),
    BUFFER_LAYOUT: PipelineLayoutCreateInfo(set_layouts=(SET,)),
    EMPTY_LAYOUT: PipelineLayoutCreateInfo(),
    PASS: RenderPassCreateInfo(
        attachments=(
            AttachmentDescription(
                format=R8G8B8A8_UNORM, samples=1, load_op=1, store_op=0, stencil_load_op=2, stencil_store_op=1, final_layout=2
            ),
        ),
        subpasses=(SubpassDescription(color_attachments=(AttachmentReference(attachment=0, layout=2),)),),
    ),
}


def specialized(word: int) -> SpecializationInfo:
    entry = SpecializationMapEntry(constant_id=0, offset=0, size=4)
    return SpecializationInfo(map_entries=(entry,), data=struct.pack("<I", word))


def compute_pipeline(factor: int = 3, **changes: object) -> ComputePipelineCreateInfo:
    stage = PipelineShaderStageCreateInfo(stage=0x20, module=MULTIPLY, specialization_info=specialized(factor))
    return ComputePipelineCreateInfo(stage=stage, layout=BUFFER_LAYOUT, **changes)  # type: ignore[arg-type]


BLEND = PipelineColorBlendStateCreateInfo(attachments=(PipelineColorBlendAttachmentState(color_write_mask=15),))
VIEWPORT = PipelineViewportStateCreateInfo(
    viewports=(Viewport(width=64.0, height=64.0, max_depth=1.0),), scissors=(Rect2D(extent=Extent2D(64, 64)),)
)
RASTER = PipelineRasterizationStateCreateInfo(line_width=1.0)
SAMPLES = PipelineMultisampleStateCreateInfo(rasterization_samples=1, sample_mask=(1,))
ASSEMBLY = PipelineInputAssemblyStateCreateInfo(topology=3)
VERTEX_STAGE = PipelineShaderStageCreateInfo(stage=1, module=POSITION)
FRAGMENT_STAGE = PipelineShaderStageCreateInfo(stage=16, module=COLOR)


def graphics_pipeline(**changes: object) -> GraphicsPipelineCreateInfo:
    state: dict[str, object] = {
        "stages": (VERTEX_STAGE, FRAGMENT_STAGE),
        "vertex_input_state": PipelineVertexInputStateCreateInfo(),
        "input_assembly_state": ASSEMBLY,
        "viewport_state": VIEWPORT,
        "rasterization_state": RASTER,
        "multisample_state": SAMPLES,
        "color_blend_state": BLEND,
        "layout": EMPTY_LAYOUT,
        "render_pass": PASS,
    }
    return GraphicsPipelineCreateInfo(**(state | changes))  # type: ignore[arg-type]


def define_all(worker: WorkerProcess, objects: Mapping[Handle, Struct] = OBJECTS) -> None:
    for handle, description in objects.items():
        worker.send(Define(type(handle).__name__, handle.value, description))  # type: ignore[arg-type]


def targets_of(*families: str) -> list[Target]:
    """The targets of these families (beginnings of names), in their order."""
    targets = [target for package in DriverPackages().list() for target in candidate_targets(package)]
    return [t for family in families for t in targets if t.family.startswith(family) and t.method != "device"]


def start(target: Target, *, memory: int = 0) -> WorkerProcess:
    return WorkerProcess(worker_arguments(target.icd, memory=memory), process_environment(target))


def open_worker(form: str, *families: str) -> tuple[WorkerProcess, Opened]:
    """A worker whose device keeps object code in this form; skips the test where no installed package has one."""
    for target in targets_of(*families):
        worker = start(target)
        try:
            answer = worker.ask(Open())
            if isinstance(answer, Opened) and answer.capabilities.object_code_form == form:
                define_all(worker)
                return worker, answer
        except Exception:
            worker.close(kill=True)
            raise
        worker.close()
    pytest.skip(f"no installed driver package (kiln drivers add) has a family {' or '.join(families)} of form {form}")


def compiled(answer: Answer) -> Compiled:
    assert isinstance(answer, Compiled), answer
    return answer


def compile_ok(worker: WorkerProcess, pipeline: PipelineCreateInfo, request: int = 1) -> Compiled:
    return compiled(worker.ask(Compile(request, pipeline)))
