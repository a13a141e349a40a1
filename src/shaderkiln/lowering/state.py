"""Fixed-function states of Direct3D 12 in Vulkan's structures. All take a stream ``with_defaults``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from shaderkiln.descriptions.direct3d12.enums import (
    APPEND_ALIGNED_ELEMENT,
    NO_RASTERIZED_STREAM,
    STANDARD_MULTISAMPLE_PATTERN,
    Blend,
    BlendOp,
    ComparisonFunc,
    ConservativeRasterizationMode,
    DepthWriteMask,
    DxgiFormat,
    FillMode,
    IndexBufferStripCutValue,
    InputClassification,
    LogicOp,
    PipelineStateFlags,
    PrimitiveTopologyType,
    ViewInstancingFlags,
)
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.states import (
    BlendDesc,
    DepthStencilDesc2,
    DepthStencilOpDesc1,
    InputLayoutDesc,
    RasterizerDesc2,
    RenderTargetBlendDesc,
    RenderTargetFormats,
    SampleDesc,
    StreamOutputDesc,
    ViewInstancingDesc,
)
from shaderkiln.descriptions.direct3d12.validation import format_bytes
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats.dxbc import SignatureElement
from shaderkiln.formats.spirv import EntryPoint
from shaderkiln.lowering import tables
from shaderkiln.lowering.objects import Reasons
from shaderkiln.vulkan_registry import constants as c
from shaderkiln.vulkan_registry import structures as vk

DUAL_SOURCE: Final = frozenset((Blend.SRC1_COLOR, Blend.INV_SRC1_COLOR, Blend.SRC1_ALPHA, Blend.INV_SRC1_ALPHA))

# VkDynamicState
VIEWPORT_WITH_COUNT, SCISSOR_WITH_COUNT = c.VK_DYNAMIC_STATE_VIEWPORT_WITH_COUNT, c.VK_DYNAMIC_STATE_SCISSOR_WITH_COUNT
PRIMITIVE_TOPOLOGY, PRIMITIVE_RESTART_ENABLE = (
    c.VK_DYNAMIC_STATE_PRIMITIVE_TOPOLOGY,
    c.VK_DYNAMIC_STATE_PRIMITIVE_RESTART_ENABLE,
)
VERTEX_INPUT_BINDING_STRIDE = c.VK_DYNAMIC_STATE_VERTEX_INPUT_BINDING_STRIDE
DEPTH_BIAS, BLEND_CONSTANTS, DEPTH_BOUNDS, STENCIL_REFERENCE = 3, 4, 5, 8

_GENERATED_INPUTS: Final = frozenset((6, 7, 8))
"""D3D_NAME of vertex inputs that come from no buffer: vertex id, primitive id, instance id."""
_OVERESTIMATE = 1
_LINES: Final = frozenset((28, 25, 5269))
"""Execution modes OutputLineStrip, Isolines, OutputLinesEXT."""
_ADJACENCY: Final = {21: 6, 23: 8}
"""Execution modes InputLinesAdjacency and InputTrianglesAdjacency → VkPrimitiveTopology."""
_BRESENHAM, _SMOOTH = 2, 3


def vertex_input(
    desc: InputLayoutDesc, signature: Sequence[SignatureElement] | None, entry: EntryPoint, reasons: Reasons
) -> vk.PipelineVertexInputStateCreateInfo:
    """Vertex bindings and attributes. A location is the register of the signature's element.

    Without a signature (SPIR-V) the elements have the shader's locations in order. Raises InvalidArgumentError for an input of the
    shader that no element provides.
    """
    places: dict[tuple[str, int], int] | None = None
    if signature is not None:
        places = {
            (e.semantic_name.upper(), e.semantic_index): e.register
            for e in signature
            if e.system_value not in _GENERATED_INPUTS
        }
    ends: dict[int, int] = {}
    bindings: dict[int, vk.VertexInputBindingDescription] = {}
    divisors: dict[int, int] = {}
    attributes: dict[int, vk.VertexInputAttributeDescription] = {}
    for index, element in enumerate(desc.elements):
        size = format_bytes(element.format)
        offset = element.aligned_byte_offset
        if offset == APPEND_ALIGNED_ELEMENT:
            alignment = max(1, min(4, size))
            end = ends.get(element.input_slot, 0)
            offset = end + -end % alignment
        ends[element.input_slot] = offset + size
        location = index if places is None else places.get((element.semantic_name.upper(), element.semantic_index))
        if location is None or (places is None and location not in entry.input_locations):
            continue
        number = vulkan_format(element.format, f"input_layout.elements[{index}].format", reasons)
        slot = element.input_slot
        bindings[slot] = vk.VertexInputBindingDescription(slot, 0, tables.INPUT_RATES[element.input_slot_class])
        if element.input_slot_class == InputClassification.PER_INSTANCE_DATA and element.instance_data_step_rate != 1:
            divisors[slot] = element.instance_data_step_rate
        attributes[location] = vk.VertexInputAttributeDescription(location, slot, number, offset)
    for location in sorted(set(entry.input_locations) - attributes.keys()):
        name = next((f"{n}{i}" for (n, i), register in (places or {}).items() if register == location), f"location {location}")
        raise InvalidArgumentError(f"input_layout: no element provides {name}, which the vertex shader reads")
    chain: tuple[vk.PipelineVertexInputDivisorStateCreateInfo, ...] = ()
    if divisors:
        rows = tuple(vk.VertexInputBindingDivisorDescription(slot, rate) for slot, rate in sorted(divisors.items()))
        chain = (vk.PipelineVertexInputDivisorStateCreateInfo(rows),)
    return vk.PipelineVertexInputStateCreateInfo(
        0,
        tuple(bindings[slot] for slot in sorted(bindings)),
        tuple(attributes[location] for location in sorted(attributes)),
        chain,
    )


def vulkan_format(value: int, where: str, reasons: Reasons) -> int:
    """VkFormat; one that has none is a reason."""
    found = tables.FORMATS.get(DxgiFormat(value), "not known")
    if isinstance(found, str):
        reasons.add(where, f"{where}: {DxgiFormat(value).name}: {found}", needed=DxgiFormat(value).name)
        return 0
    return found


def input_assembly(
    full: PipelineStateStream, geometry: EntryPoint | None, reasons: Reasons
) -> vk.PipelineInputAssemblyStateCreateInfo:
    """The topology is dynamic within its class; the restart of strips too, since lists have none in Direct3D."""
    class_ = PrimitiveTopologyType(full.primitive_topology or 0)
    found = tables.TOPOLOGIES[class_]
    if isinstance(found, str):
        reasons.add("primitive_topology", f"primitive_topology: {class_.name}: {found}")
        found = 0
    restart = int(restarts(full))
    if geometry is not None and not restart:
        for mode, topology in _ADJACENCY.items():
            if mode in geometry.execution_modes:
                found = topology
    return vk.PipelineInputAssemblyStateCreateInfo(0, tables.STRIPS[class_] if restart else found, restart)


def restarts(full: PipelineStateStream) -> bool:
    """Whether strips can be cut; lists, points and patches cannot."""
    dynamic = (full.flags or 0) & PipelineStateFlags.DYNAMIC_INDEX_BUFFER_STRIP_CUT
    cut = full.ib_strip_cut_value or IndexBufferStripCutValue.DISABLED
    return full.primitive_topology in tables.STRIPS and bool(dynamic or cut)


def draws_lines(full: PipelineStateStream, entries: Mapping[str, EntryPoint]) -> bool:
    """Whether what is rasterized can be lines."""
    rasterizer = full.rasterizer
    assert isinstance(rasterizer, RasterizerDesc2)
    if rasterizer.fill_mode == FillMode.WIREFRAME:
        return True
    last = next((entries[stage] for stage in ("ms", "gs", "ds") if stage in entries), None)
    if last is not None:
        modes = set(last.execution_modes)
        if "ds" in entries and "gs" not in entries and "hs" in entries:
            modes |= set(entries["hs"].execution_modes)
        return not modes.isdisjoint(_LINES)
    return full.primitive_topology == PrimitiveTopologyType.LINE


def rasterization(full: PipelineStateStream, lines: bool, reasons: Reasons) -> vk.PipelineRasterizationStateCreateInfo:
    """Depth is clamped to the viewport in any case, and clipped where Direct3D clips."""
    desc, output, blend = full.rasterizer, full.stream_output, full.blend
    assert isinstance(desc, RasterizerDesc2) and isinstance(output, StreamOutputDesc) and isinstance(blend, BlendDesc)
    chain: list[
        vk.PipelineRasterizationConservativeStateCreateInfoEXT
        | vk.PipelineRasterizationDepthClipStateCreateInfoEXT
        | vk.PipelineRasterizationLineStateCreateInfo
        | vk.PipelineRasterizationStateStreamCreateInfoEXT
    ] = [vk.PipelineRasterizationDepthClipStateCreateInfoEXT(0, int(desc.depth_clip_enable))]
    if desc.conservative_raster == ConservativeRasterizationMode.ON:
        chain.append(vk.PipelineRasterizationConservativeStateCreateInfoEXT(0, _OVERESTIMATE, 0.0))
    width = 1.0
    if lines:
        mode, width = tables.LINE_MODES[desc.line_rasterization_mode]
        # Vulkan has neither Bresenham's nor smooth lines with alpha to coverage, which then decides the coverage itself.
        if not (blend.alpha_to_coverage_enable and mode in (_BRESENHAM, _SMOOTH)):
            chain.append(vk.PipelineRasterizationLineStateCreateInfo(mode))
    discard = output.rasterized_stream == NO_RASTERIZED_STREAM
    if output.rasterized_stream and not discard:
        chain.append(vk.PipelineRasterizationStateStreamCreateInfoEXT(0, output.rasterized_stream))
    dynamic_bias = bool((full.flags or 0) & PipelineStateFlags.DYNAMIC_DEPTH_BIAS)
    bias = dynamic_bias or desc.depth_bias != 0.0 or desc.slope_scaled_depth_bias != 0.0
    values = (0.0, 0.0, 0.0)
    if bias and not dynamic_bias:
        values = (desc.depth_bias, desc.depth_bias_clamp, desc.slope_scaled_depth_bias)
    return vk.PipelineRasterizationStateCreateInfo(
        0,
        1,
        int(discard),
        tables.POLYGON_MODES[desc.fill_mode],
        tables.CULL_MODES[desc.cull_mode],
        0 if desc.front_counter_clockwise else 1,
        int(bias),
        *values,
        width,
        tuple(chain),
    )


def sample_count(full: PipelineStateStream, reasons: Reasons) -> int:
    """Samples of rasterization. A forced count is Vulkan's only where there are no attachments."""
    desc, rasterizer, targets = full.sample_desc, full.rasterizer, full.render_target_formats
    assert isinstance(desc, SampleDesc) and isinstance(rasterizer, RasterizerDesc2) and isinstance(targets, RenderTargetFormats)
    forced = rasterizer.forced_sample_count
    count = desc.count
    if forced and forced != count:
        if any(targets.formats) or full.depth_stencil_format:
            reasons.add(
                "rasterizer.forced_sample_count",
                f"rasterizer.forced_sample_count: {forced} with render targets of {count}: Vulkan rasterizes attachments with "
                "their own sample count",
                needed=forced,
            )
        else:
            count = forced
    if desc.quality not in (0, STANDARD_MULTISAMPLE_PATTERN):
        reasons.add(
            "sample_desc.quality",
            f"sample_desc.quality: {desc.quality:#x}: Vulkan has no quality levels but the standard pattern",
            needed=desc.quality,
        )
    if count not in (1, 2, 4, 8, 16, 32):
        reasons.add("sample_desc.count", f"sample_desc.count: Vulkan cannot rasterize {count} samples", needed=count)
        return 1
    return count


def multisample(full: PipelineStateStream, samples: int) -> vk.PipelineMultisampleStateCreateInfo:
    """The sample mask has one word for up to 32 samples."""
    blend, mask = full.blend, full.sample_mask
    assert isinstance(blend, BlendDesc) and mask is not None
    return vk.PipelineMultisampleStateCreateInfo(0, samples, 0, 0.0, (mask,), int(blend.alpha_to_coverage_enable), 0)


def depth_stencil(full: PipelineStateStream, reasons: Reasons) -> vk.PipelineDepthStencilStateCreateInfo:
    """Tests that have nothing to test against are off, as they are in Direct3D."""
    desc = full.depth_stencil
    assert isinstance(desc, DepthStencilDesc2)
    depth, stencil = depth_formats(full, reasons)
    tests_depth, tests_stencil = bool(depth) and desc.depth_enable, bool(stencil) and desc.stencil_enable
    return vk.PipelineDepthStencilStateCreateInfo(
        0,
        int(tests_depth),
        int(tests_depth and desc.depth_write_mask == DepthWriteMask.ALL),
        tables.COMPARE_OPS[desc.depth_func] if tests_depth else tables.COMPARE_OPS[ComparisonFunc.ALWAYS],
        int(bool(depth) and desc.depth_bounds_test_enable),
        int(tests_stencil),
        _face(desc.front_face) if tests_stencil else vk.StencilOpState(),
        _face(desc.back_face) if tests_stencil else vk.StencilOpState(),
        0.0,
        1.0,
    )


def depth_formats(full: PipelineStateStream, reasons: Reasons) -> tuple[int, int]:
    """VkFormat of the depth and of the stencil attachment."""
    format_ = DxgiFormat(full.depth_stencil_format or 0)
    found = tables.DEPTH_FORMATS.get(format_)
    if found is None:
        reasons.add("depth_stencil_format", f"depth_stencil_format: {format_.name} is no depth format", needed=format_.name)
        return 0, 0
    return found[0], found[1]


def _face(desc: DepthStencilOpDesc1) -> vk.StencilOpState:
    return vk.StencilOpState(
        tables.STENCIL_OPS[desc.stencil_fail_op],
        tables.STENCIL_OPS[desc.stencil_pass_op],
        tables.STENCIL_OPS[desc.stencil_depth_fail_op],
        tables.COMPARE_OPS[desc.stencil_func],
        desc.stencil_read_mask,
        desc.stencil_write_mask,
        0,
    )


def render_target_blends(full: PipelineStateStream) -> tuple[RenderTargetBlendDesc, ...]:
    """The blend of each render target that there is; without independent blending all have that of the first."""
    blend, targets = full.blend, full.render_target_formats
    assert isinstance(blend, BlendDesc) and isinstance(targets, RenderTargetFormats)
    descs = blend.render_targets()
    count = len(targets.formats)
    return descs[:count] if blend.independent_blend_enable else (descs[0],) * count


def is_dual_source(full: PipelineStateStream) -> bool:
    """Whether the pixel shader's second output is a source of blending."""
    return any(
        desc.blend_enable
        and not {desc.src_blend, desc.dest_blend, desc.src_blend_alpha, desc.dest_blend_alpha}.isdisjoint(DUAL_SOURCE)
        for desc in render_target_blends(full)[:1]
    )


def color_blend(full: PipelineStateStream, reasons: Reasons) -> vk.PipelineColorBlendStateCreateInfo:
    """One attachment for each render target. A logic operation is one of all targets in both interfaces."""
    targets = full.render_target_formats
    assert isinstance(targets, RenderTargetFormats)
    blends = render_target_blends(full)
    logic = {(desc.logic_op_enable, desc.logic_op if desc.logic_op_enable else None) for desc in blends}
    if len(logic) > 1:
        reasons.add(
            "blend.render_target.logic_op", "blend.render_target: Vulkan has one logic operation for all render targets"
        )
    first = blends[0] if blends else RenderTargetBlendDesc()
    return vk.PipelineColorBlendStateCreateInfo(
        0,
        int(first.logic_op_enable),
        tables.LOGIC_OPS[first.logic_op] if first.logic_op_enable else tables.LOGIC_OPS[LogicOp.COPY],
        len(blends),
        tuple(_attachment(desc, DxgiFormat(f)) for desc, f in zip(blends, targets.formats, strict=True)),
    )


_OF_ALPHA_ONE: Final = {Blend.DEST_ALPHA: Blend.ONE, Blend.INV_DEST_ALPHA: Blend.ZERO}


def _attachment(desc: RenderTargetBlendDesc, format_: DxgiFormat) -> vk.PipelineColorBlendAttachmentState:
    mask = int(desc.render_target_write_mask)
    without_alpha = format_ in tables.WITHOUT_ALPHA
    if without_alpha:
        mask &= 7
    if not desc.blend_enable or format_ in tables.INTEGER_FORMATS or format_ == DxgiFormat.UNKNOWN:
        return vk.PipelineColorBlendAttachmentState(0, 1, 0, 0, 1, 0, 0, mask)

    def factors(source: Blend, destination: Blend, op: BlendOp, saturated: Blend) -> tuple[int, int, int]:
        pair = []
        for factor in (source, destination):
            if without_alpha:
                factor = saturated if factor == Blend.SRC_ALPHA_SAT else _OF_ALPHA_ONE.get(factor, factor)
            pair.append(tables.BLEND_FACTORS[factor])
        return pair[0], pair[1], tables.BLEND_OPS[op]

    return vk.PipelineColorBlendAttachmentState(
        1,
        *factors(desc.src_blend, desc.dest_blend, desc.blend_op, Blend.ZERO),
        *factors(desc.src_blend_alpha, desc.dest_blend_alpha, desc.blend_op_alpha, Blend.ONE),
        mask,
    )


def rendering(full: PipelineStateStream, reasons: Reasons) -> vk.PipelineRenderingCreateInfo:
    """Formats of the attachments, and the views."""
    targets = full.render_target_formats
    assert isinstance(targets, RenderTargetFormats)
    colors = tuple(
        vulkan_format(value, f"render_target_formats[{index}]", reasons) for index, value in enumerate(targets.formats)
    )
    return vk.PipelineRenderingCreateInfo(view_mask(full, reasons), colors, *depth_formats(full, reasons))


def view_mask(full: PipelineStateStream, reasons: Reasons) -> int:
    """View instances as multiview, in which view n draws to layer n of the attachments and to the one viewport."""
    desc = full.view_instancing
    assert isinstance(desc, ViewInstancingDesc)
    views = desc.view_instance_locations
    if not views:
        return 0
    if desc.flags & ViewInstancingFlags.ENABLE_VIEW_INSTANCE_MASKING:
        reasons.add(
            "view_instancing.flags",
            "view_instancing.flags: ENABLE_VIEW_INSTANCE_MASKING: Vulkan's views are fixed when a pipeline is made",
        )
    for index, view in enumerate(views):
        if view.viewport_array_index or view.render_target_array_index != index:
            reasons.add(
                f"view_instancing.view_instance_locations[{index}]",
                f"view_instancing.view_instance_locations[{index}]: viewport {view.viewport_array_index} and layer "
                f"{view.render_target_array_index}: Vulkan's view {index} has viewport 0 and layer {index}",
            )
    return (1 << len(views)) - 1


def dynamic_states(full: PipelineStateStream, vertex: vk.PipelineVertexInputStateCreateInfo | None) -> tuple[int, ...]:
    """What Direct3D 12 sets in command lists, sorted."""
    found = [VIEWPORT_WITH_COUNT, SCISSOR_WITH_COUNT]
    if vertex is not None:
        if full.primitive_topology != PrimitiveTopologyType.PATCH:
            found.append(PRIMITIVE_TOPOLOGY)
        if vertex.vertex_binding_descriptions:
            found.append(VERTEX_INPUT_BINDING_STRIDE)
        if restarts(full):
            found.append(PRIMITIVE_RESTART_ENABLE)
    depth = full.depth_stencil
    assert isinstance(depth, DepthStencilDesc2)
    has_depth, has_stencil = depth_formats(full, Reasons())
    if depth.stencil_enable and has_stencil:
        found.append(STENCIL_REFERENCE)
    if depth.depth_bounds_test_enable and has_depth:
        found.append(DEPTH_BOUNDS)
    if (full.flags or 0) & PipelineStateFlags.DYNAMIC_DEPTH_BIAS:
        found.append(DEPTH_BIAS)
    constants = {Blend.BLEND_FACTOR, Blend.INV_BLEND_FACTOR, Blend.ALPHA_FACTOR, Blend.INV_ALPHA_FACTOR}
    for desc in render_target_blends(full):
        factors = {desc.src_blend, desc.dest_blend, desc.src_blend_alpha, desc.dest_blend_alpha}
        if desc.blend_enable and factors & constants:
            found.append(BLEND_CONSTANTS)
            break
    return tuple(sorted(found))
