"""Descs that Direct3D 12 accepts, and those that it does not, with the field and value that the message names."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from direct3d12_strategies import state_objects, streams
from hypothesis import given, settings
from hypothesis import strategies as st

from shaderkiln.descriptions.direct3d12.builders import PipelineStateStreamBuilder, StateObjectBuilder
from shaderkiln.descriptions.direct3d12.enums import (
    Blend,
    ComparisonFunc,
    DxgiFormat,
    HitGroupType,
    InputClassification,
    NodeOverridesType,
    PipelineStateSubobjectType,
    PrimitiveTopologyType,
    RaytracingPipelineFlags,
    StateObjectType,
)
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import (
    DxilLibrary,
    ExistingCollection,
    ExistingCollectionByKey,
    ExportDesc,
    GenericProgram,
    GlobalRootSignature,
    HitGroup,
    LocalRootSignature,
    Node,
    NodeId,
    NodeOverrides,
    RaytracingPipelineConfig,
    RaytracingPipelineConfig1,
    RaytracingShaderConfig,
    StateObjectConfig,
    StateObjectDesc,
    SubobjectToExportsAssociation,
    WorkGraph,
)
from shaderkiln.descriptions.direct3d12.states import (
    BlendDesc,
    DepthStencilDesc,
    DepthStencilDesc2,
    DepthStencilOpDesc,
    InputElementDesc,
    InputLayoutDesc,
    NodeMask,
    RasterizerDesc,
    RasterizerDesc2,
    RenderTargetBlendDesc,
    RenderTargetFormats,
    SampleDesc,
    SampleMask,
    StreamOutputDeclarationEntry,
    StreamOutputDesc,
    ViewInstanceLocation,
    ViewInstancingDesc,
)
from shaderkiln.descriptions.direct3d12.validation import format_bytes, validate
from shaderkiln.errors import InvalidArgumentError

TRIANGLE = PrimitiveTopologyType.TRIANGLE
FLOAT3 = DxgiFormat.R32G32B32_FLOAT


def graphics(**fields: Any) -> PipelineStateStream:
    return PipelineStateStream(**{"vs": b"vs", "ps": b"ps", "primitive_topology": TRIANGLE, **fields})


def layout(*elements: InputElementDesc) -> PipelineStateStream:
    return graphics(input_layout=InputLayoutDesc(elements))


def targets(*blends: RenderTargetBlendDesc, independent: bool = True) -> PipelineStateStream:
    return graphics(blend=BlendDesc(independent_blend_enable=independent, render_target=blends))


def output(*declarations: StreamOutputDeclarationEntry, strides: tuple[int, ...] = (16,), **fields: Any) -> PipelineStateStream:
    return graphics(stream_output=StreamOutputDesc(declarations, strides, **fields))


def refusal(desc: Any) -> str:
    with pytest.raises(InvalidArgumentError) as error:
        validate(desc)
    assert error.value.code == "E_INVALIDARG"
    return str(error.value)


ZEROED = RenderTargetBlendDesc(
    src_blend=0,  # type: ignore[arg-type]
    dest_blend=0,  # type: ignore[arg-type]
    blend_op=0,  # type: ignore[arg-type]
    src_blend_alpha=0,  # type: ignore[arg-type]
    dest_blend_alpha=0,  # type: ignore[arg-type]
    blend_op_alpha=0,  # type: ignore[arg-type]
)


@pytest.mark.parametrize(
    "stream",
    [
        graphics(),
        graphics(primitive_topology=None),
        graphics(ps=None, depth_stencil_format=DxgiFormat.D16_UNORM),
        graphics(render_target_formats=RenderTargetFormats((DxgiFormat.R8G8B8A8_UNORM, DxgiFormat.UNKNOWN))),
        graphics(hs=b"hs", ds=b"ds", primitive_topology=PrimitiveTopologyType.PATCH),
        graphics(sample_desc=SampleDesc(8, 0xFFFFFFFF), sample_mask=0),
        graphics(rasterizer=RasterizerDesc(depth_bias=-(1 << 31), forced_sample_count=4)),
        layout(
            InputElementDesc("POSITION", 0, FLOAT3), InputElementDesc("TEXCOORD", 0, DxgiFormat.R16G16_FLOAT, 0, 0xFFFFFFFF)
        ),
        layout(InputElementDesc("A", 0, DxgiFormat.R8_UNORM, 0, 3), InputElementDesc("A", 1, DxgiFormat.R16_UINT, 0, 2)),
        targets(ZEROED),
        targets(*[RenderTargetBlendDesc(blend_enable=True, src_blend=Blend.SRC_COLOR)] * 8),
        output(StreamOutputDeclarationEntry(0, "POSITION", 0, 0, 3), StreamOutputDeclarationEntry(component_count=1)),
        output(rasterized_stream=0xFFFFFFFF),
        PipelineStateStream(cs=b"cs", root_signature=b"rs", node_mask=1),
        PipelineStateStream(ms=b"ms", as_=b"as", ps=b"ps"),
        PipelineStateStream(ms=b"ms", vs=b"", input_layout=InputLayoutDesc()),
    ],
)
def test_accepted_streams(stream: PipelineStateStream) -> None:
    validate(stream)
    assert stream.kind == ("compute" if stream.cs else "mesh" if stream.ms else "graphics")


ALPHA = RenderTargetBlendDesc(blend_enable=True, src_blend_alpha=Blend.SRC_COLOR)
BOTH = RenderTargetBlendDesc(blend_enable=True, logic_op_enable=True)
LOGIC = RenderTargetBlendDesc(logic_op_enable=True)
STEPPED = InputElementDesc("B", 0, FLOAT3, 0, 12, InputClassification.PER_INSTANCE_DATA, 1)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (PipelineStateStream(), "vs: a pipeline state needs shaders"),
        (PipelineStateStream(ps=b"ps"), "vs: a graphics pipeline needs a vertex shader; there is only ps"),
        (PipelineStateStream(as_=b"as"), "ms: an amplification shader needs a mesh shader"),
        (PipelineStateStream(ms=b"ms", vs=b"vs"), "vs: a mesh pipeline"),
        (
            PipelineStateStream(ms=b"ms", input_layout=InputLayoutDesc((InputElementDesc("A", format=FLOAT3),))),
            "input_layout: a mesh",
        ),
        (PipelineStateStream(cs=b"cs", ps=b"ps"), "ps: a compute pipeline"),
        (PipelineStateStream(cs=b"cs", vs=b"vs", blend=BlendDesc()), "vs: a compute pipeline"),
        (
            graphics(root_signature=b"a", serialized_root_signature=b"b"),
            "serialized_root_signature: root_signature is there too",
        ),
        (graphics(hs=b"hs"), "ds: hull and domain shader come together"),
        (graphics(ds=b"ds"), "hs: hull and domain shader come together"),
        (graphics(hs=b"hs", ds=b"ds"), "primitive_topology: a hull shader needs PATCH (4), and TRIANGLE (3)"),
        (
            graphics(hs=b"hs", ds=b"ds", primitive_topology=None),
            "primitive_topology: a hull shader needs PATCH (4), and none is set",
        ),
        (graphics(primitive_topology=0), "primitive_topology: UNDEFINED (0)"),
        (graphics(primitive_topology=9), "primitive_topology: 9 is no D3D12_PRIMITIVE_TOPOLOGY_TYPE"),
        (graphics(vs="text"), "vs: str is no bytes"),
        (graphics(sample_mask=1 << 32), "sample_mask: 4294967296 is not a whole number from 0 to 4294967295"),
        (graphics(sample_mask=True), "sample_mask: True is not a whole number"),
        (graphics(sample_mask=1 << 20000), "sample_mask: a number of 20001 bits"),
        (graphics(sample_desc=SampleDesc(3)), "sample_desc.count: 3 is none of 1, 2, 4, 8, 16, 32"),
        (graphics(sample_desc=SampleDesc(0)), "sample_desc.count: 0"),
        (graphics(flags=2), "flags: 0x2 is no D3D12_PIPELINE_STATE_FLAGS"),
        (
            graphics(depth_stencil_format=DxgiFormat.R8G8B8A8_UNORM),
            "depth_stencil_format: R8G8B8A8_UNORM (28) is no depth-stencil",
        ),
        (graphics(depth_stencil_format=120), "depth_stencil_format: 120 is no DXGI_FORMAT"),
        (graphics(rasterizer=DepthStencilDesc()), "rasterizer: DepthStencilDesc is no RasterizerDesc or"),
        (graphics(rasterizer=RasterizerDesc(fill_mode=0)), "rasterizer.fill_mode: 0 is no D3D12_FILL_MODE"),  # type: ignore[arg-type]
        (graphics(rasterizer=RasterizerDesc(forced_sample_count=3)), "rasterizer.forced_sample_count: 3"),
        (graphics(rasterizer=RasterizerDesc(depth_bias=1 << 31)), "rasterizer.depth_bias: 2147483648 is not a whole number"),
        (graphics(rasterizer=RasterizerDesc2(depth_bias=float("nan"))), "rasterizer.depth_bias: nan is no finite number"),
        (graphics(rasterizer=RasterizerDesc2(depth_bias_clamp=1e39)), "rasterizer.depth_bias_clamp: 1e+39 is no finite number"),
        (graphics(rasterizer=RasterizerDesc2(depth_clip_enable=1)), "rasterizer.depth_clip_enable: 1 is neither"),  # type: ignore[arg-type]
        (graphics(depth_stencil=DepthStencilDesc(depth_func=ComparisonFunc.NONE)), "depth_stencil.depth_func: NONE (0)"),
        (graphics(depth_stencil=DepthStencilDesc(stencil_read_mask=256)), "depth_stencil.stencil_read_mask: 256"),
        (
            graphics(depth_stencil=DepthStencilDesc(stencil_enable=True, back_face=DepthStencilOpDesc(0))),  # type: ignore[arg-type]
            "depth_stencil.back_face.stencil_fail_op: 0 is no D3D12_STENCIL_OP",
        ),
        (
            graphics(
                depth_stencil=DepthStencilDesc(
                    stencil_enable=True, front_face=DepthStencilOpDesc(stencil_func=ComparisonFunc.NONE)
                )
            ),
            "depth_stencil.front_face.stencil_func: NONE (0)",
        ),
        (
            targets(RenderTargetBlendDesc(), RenderTargetBlendDesc(), RenderTargetBlendDesc(src_blend=77)),  # type: ignore[arg-type]
            "blend.render_target[2].src_blend: 77 is no D3D12_BLEND",
        ),
        (targets(msgspec.structs.replace(ZEROED, blend_enable=True)), "blend.render_target[0].src_blend: 0 is no D3D12_BLEND"),
        (targets(RenderTargetBlendDesc(), ALPHA), "blend.render_target[1].src_blend_alpha: SRC_COLOR (3) is a colour"),
        (targets(BOTH), "blend.render_target[0].logic_op_enable: blend_enable is on too"),
        (targets(LOGIC), "blend.render_target[0].logic_op_enable: a logic operation needs independent_blend_enable"),
        (targets(*[RenderTargetBlendDesc()] * 9), "blend.render_target: 9 are more than 8"),
        (graphics(render_target_formats=RenderTargetFormats((FLOAT3,) * 9)), "render_target_formats.formats: 9"),
        (
            graphics(render_target_formats=RenderTargetFormats((FLOAT3, DxgiFormat.D32_FLOAT))),
            "render_target_formats.formats[1]: D32_FLOAT (40)",
        ),
        (graphics(render_target_formats=RenderTargetFormats((DxgiFormat.R8_TYPELESS,))), "formats[0]: R8_TYPELESS (60)"),
        (graphics(render_target_formats=RenderTargetFormats([FLOAT3])), "render_target_formats.formats: list is no tuple"),  # type: ignore[arg-type]
        (layout(InputElementDesc("A")), "input_layout.elements[0].format: UNKNOWN (0)"),
        (layout(InputElementDesc("")), "input_layout.elements[0].semantic_name: '' is no name"),
        (layout(InputElementDesc("A", 0, FLOAT3, 32)), "input_layout.elements[0].input_slot: 32 is not below 32"),
        (layout(InputElementDesc("A", 0, FLOAT3, 0, 6)), "elements[0].aligned_byte_offset: 6 is no multiple of 4"),
        (layout(InputElementDesc("A", 0, DxgiFormat.R16_UINT, 0, 3)), "elements[0].aligned_byte_offset: 3 is no multiple of 2"),
        (layout(InputElementDesc("A", 0, FLOAT3, 0, 2052)), "elements[0].aligned_byte_offset: 2052 is more than 2048"),
        (
            layout(InputElementDesc("Normal", 1, FLOAT3), InputElementDesc("NORMAL", 1, FLOAT3, 1)),
            "elements[1].semantic_name: 'NORMAL' with index 1 is elements[0] already",
        ),
        (
            layout(InputElementDesc("A", 0, FLOAT3, instance_data_step_rate=1)),
            "elements[0].instance_data_step_rate: 1 is not 0",
        ),
        (layout(InputElementDesc("A", 0, FLOAT3), STEPPED), "elements[1].input_slot_class: PER_INSTANCE_DATA differs"),
        (
            layout(STEPPED, msgspec.structs.replace(STEPPED, semantic_index=1, instance_data_step_rate=2)),
            "elements[1].instance_data_step_rate: 2 differs from the 1",
        ),
        (layout(*[InputElementDesc("A", index, FLOAT3) for index in range(33)]), "input_layout.elements: 33 are more than 32"),
        (output(StreamOutputDeclarationEntry(4, "A", 0, 0, 1)), "stream_output.declarations[0].stream: 4 is not below 4"),
        (output(StreamOutputDeclarationEntry(0, "A", 0, 0, 1, 4)), "declarations[0].output_slot: 4 is not below 4"),
        (output(StreamOutputDeclarationEntry(0, "A", 0, 0, 1, 1)), "declarations[0].output_slot: 1 has no stride"),
        (output(StreamOutputDeclarationEntry(0, "A", 0, 2, 3)), "declarations[0].component_count: 3 from start_component 2"),
        (
            output(StreamOutputDeclarationEntry(0, "A", 0, 0, 4), StreamOutputDeclarationEntry(0, "B", 0, 0, 1)),
            "declarations[1].component_count: 20 bytes are more than buffer_strides[0], which is 16",
        ),
        (
            output(StreamOutputDeclarationEntry(0, "A", 0, 0, 1), StreamOutputDeclarationEntry(1, "A", 0, 0, 1)),
            "declarations[1].stream: 1 goes to slot 0, which stream 0 has",
        ),
        (output(strides=(2052,)), "stream_output.buffer_strides[0]: 2052"),
        (output(strides=(6,)), "stream_output.buffer_strides[0]: 6"),
        (output(strides=(4,) * 5), "stream_output.buffer_strides: 5 are more than 4"),
        (output(rasterized_stream=4), "stream_output.rasterized_stream: 4"),
        (graphics(view_instancing=ViewInstancingDesc((ViewInstanceLocation(),) * 5)), "view_instance_locations: 5 views"),
        (
            graphics(view_instancing=ViewInstancingDesc((ViewInstanceLocation(16),))),
            "[0].viewport_array_index: 16 is not below 16",
        ),
    ],
)
def test_refused_streams(stream: PipelineStateStream, message: str) -> None:
    assert message in refusal(stream)


def test_from_subobjects_refuses_duplicates_and_wrong_classes() -> None:
    t = PipelineStateSubobjectType
    for subobjects, message in (
        ([(t.VS, b"a"), (t.VS, b"b")], "more than one vs"),
        ([(t.RASTERIZER, RasterizerDesc()), (t.RASTERIZER2, RasterizerDesc2())], "more than one rasterizer"),
        ([(t.DEPTH_STENCIL, DepthStencilDesc2())], "subobject DEPTH_STENCIL: DepthStencilDesc2 is no DepthStencilDesc"),
        ([(t.SAMPLE_MASK, "x")], "subobject SAMPLE_MASK: str is no int"),
        ([(23, b"")], "23 is no D3D12_PIPELINE_STATE_SUBOBJECT_TYPE"),
    ):
        with pytest.raises(InvalidArgumentError, match=re.escape(message)):
            PipelineStateStream.from_subobjects(subobjects)  # type: ignore[arg-type]
        builder = PipelineStateStreamBuilder()
        with pytest.raises(InvalidArgumentError, match=re.escape(message)):
            for type_, value in subobjects:
                builder.add(type_, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("format_", "size"),
    [
        (DxgiFormat.R32G32B32A32_FLOAT, 16),
        (DxgiFormat.R32G32B32_UINT, 12),
        (DxgiFormat.R10G10B10A2_UNORM, 4),
        (DxgiFormat.R11G11B10_FLOAT, 4),
        (DxgiFormat.R9G9B9E5_SHAREDEXP, 4),
        (DxgiFormat.B8G8R8X8_UNORM, 4),
        (DxgiFormat.R8G8_SNORM, 2),
        (DxgiFormat.A8_UNORM, 1),
        (DxgiFormat.B5G5R5A1_UNORM, 2),
        (DxgiFormat.R10G10B10_XR_BIAS_A2_UNORM, 4),
        (DxgiFormat.BC6H_SF16, 0),
    ],
)
def test_bytes_of_formats(format_: DxgiFormat, size: int) -> None:
    assert format_bytes(format_) == size


# State objects


def executable(*subobjects: Any) -> StateObjectDesc:
    return StateObjectDesc(StateObjectType.EXECUTABLE, subobjects)


def raytracing(*subobjects: Any) -> StateObjectDesc:
    return StateObjectDesc(StateObjectType.RAYTRACING_PIPELINE, subobjects)


def test_state_objects_of_three_kinds_are_accepted() -> None:
    builder = StateObjectBuilder(StateObjectType.COLLECTION)
    builder.dxil_library(b"code", ["RayGen", ExportDesc("Miss", "main")])
    collection = builder.build()
    builder = StateObjectBuilder(StateObjectType.RAYTRACING_PIPELINE)
    builder.existing_collection(collection, ["RayGen", "Miss"])
    builder.dxil_library(b"hit", ["ClosestHit"])
    group = builder.add(HitGroup("HitGroup", closest_hit_shader_import="ClosestHit"))
    config = builder.add(RaytracingShaderConfig(16, 8))
    builder.associate(config, ["RayGen", "HitGroup"])
    builder.associate("LocalInLibrary", ["HitGroup"])
    builder.add(RaytracingPipelineConfig1(1))
    builder.add(GlobalRootSignature(b"root"))
    builder.add(NodeMask(1))
    pipeline = builder.build()
    builder = StateObjectBuilder(StateObjectType.EXECUTABLE)
    mask = builder.add(SampleMask(3))
    builder.dxil_library(b"vs", [ExportDesc("VSMain", "*")])
    builder.generic_program("Program", ["VSMain"], [mask])
    grid = NodeOverrides(NodeOverridesType.BROADCASTING_LAUNCH, dispatch_grid=(1, 2, 3), new_name=NodeId("New"))
    builder.add(WorkGraph("Graph", entrypoints=(NodeId("A"),), explicitly_defined_nodes=(Node("A", grid), Node("B"))))
    for desc in (collection, pipeline, builder.build()):
        validate(desc)
    assert repr(group) == "<HIT_GROUP subobject>"


@pytest.mark.parametrize(
    ("desc", "message"),
    [
        (StateObjectDesc(2), "type: 2 is no D3D12_STATE_OBJECT_TYPE"),  # type: ignore[arg-type]
        (executable(RasterizerDesc()), "subobjects[0]: RasterizerDesc is no subobject"),
        (executable(DxilLibrary(b"")), "subobjects[0].bytecode: a library needs"),
        (
            executable(DxilLibrary(b"x", (ExportDesc("A"), ExportDesc("A")))),
            "subobjects[0].exports[1].name: 'A' is the name of",
        ),
        (executable(DxilLibrary(b"x", (ExportDesc("A", "", 1),))), "exports[0].export_to_rename: '' is no name"),  # type: ignore[arg-type]
        (executable(DxilLibrary(b"x", (ExportDesc("A", None, 1),))), "exports[0].flags: 0x1 is no D3D12_EXPORT_FLAGS"),  # type: ignore[arg-type]
        (executable(GlobalRootSignature(b"")), "subobjects[0].blob: a root signature needs"),
        (executable(ExistingCollectionByKey(b"")), "subobjects[0].key: a key has at least one byte"),
        (executable(ExistingCollection(executable())), "subobjects[0].collection.type: 4 is not COLLECTION (0)"),
        (
            executable(ExistingCollection(StateObjectDesc(StateObjectType.COLLECTION, (DxilLibrary(b""),)))),
            "subobjects[0].collection.subobjects[0].bytecode",
        ),
        (
            executable(SubobjectToExportsAssociation(5, ("A",))),
            "subobjects[0].subobject: 5 is no index of a subobject; there are 1",
        ),
        (executable(SampleMask(), SubobjectToExportsAssociation(0)), "subobjects[1].subobject: 0 is a SampleMask"),
        (executable(GenericProgram("P", ("A",), (7,))), "program 'P': subobjects[7] is not there"),
        (executable(LocalRootSignature(b"x"), GenericProgram("P", ("A",), (0,))), "subobjects[0] is a LocalRootSignature"),
        (executable(SampleMask(), SampleMask(), GenericProgram("P", ("A",), (0, 1))), "more than one sample_mask"),
        (executable(GenericProgram("P")), "subobjects[0].exports: a program needs at least one shader"),
        (
            executable(GenericProgram("P", ("A",)), GenericProgram("P", ("B",))),
            "subobjects[1].program_name: 'P' is the name of",
        ),
        (raytracing(GenericProgram("P", ("A",))), "subobjects[0]: a generic program belongs into an EXECUTABLE"),
        (raytracing(WorkGraph("G")), "subobjects[0]: a work graph belongs into an EXECUTABLE"),
        (raytracing(RaytracingShaderConfig(8, 33)), "subobjects[0].max_attribute_size_in_bytes: 33 is more than 32"),
        (raytracing(RaytracingPipelineConfig(32)), "subobjects[0].max_trace_recursion_depth: 32 is more than 31"),
        (raytracing(RaytracingPipelineConfig1(1, RaytracingPipelineFlags(0x300))), "subobjects[0].flags: 0x300 skips"),
        (
            raytracing(RaytracingPipelineConfig1(1, RaytracingPipelineFlags(1))),
            "flags: 0x1 is no D3D12_RAYTRACING_PIPELINE_FLAGS",
        ),
        (
            raytracing(HitGroup("H", intersection_shader_import="I")),
            "subobjects[0].intersection_shader_import: 'I' is not allowed",
        ),
        (raytracing(HitGroup("H", HitGroupType.PROCEDURAL_PRIMITIVE)), "PROCEDURAL_PRIMITIVE (1) needs an intersection shader"),
        (
            raytracing(DxilLibrary(b"x", (ExportDesc("H"),)), HitGroup("H")),
            "subobjects[1].hit_group_export: 'H' is the name of",
        ),
        (executable(NodeMask(1), NodeMask(2)), "subobjects[1]: the NodeMask in subobjects[0] is there already"),
        (executable(StateObjectConfig(8)), "subobjects[0].flags: 0x8 is no D3D12_STATE_OBJECT_FLAGS"),  # type: ignore[arg-type]
        (
            executable(WorkGraph("G", explicitly_defined_nodes=(Node("A", NodeOverrides(NodeOverridesType.NONE)),))),
            "explicitly_defined_nodes[0].overrides.type: NONE (0)",
        ),
        (
            executable(
                WorkGraph(
                    "G",
                    explicitly_defined_nodes=(
                        Node("A", NodeOverrides(NodeOverridesType.THREAD_LAUNCH, dispatch_grid=(1, 1, 1))),
                    ),
                )
            ),
            "overrides.dispatch_grid: only BROADCASTING_LAUNCH (1) has it, and the type is 3",
        ),
        ("nothing", "str is neither"),
    ],
)
def test_refused_state_objects(desc: Any, message: str) -> None:
    assert message in refusal(desc)


def test_collections_in_collections_have_an_end() -> None:
    desc = StateObjectDesc(StateObjectType.COLLECTION)
    for _ in range(40):
        desc = StateObjectDesc(StateObjectType.COLLECTION, (ExistingCollection(desc),))
    assert "nested more than 16 deep" in refusal(desc)


# Whatever a desc holds, the answer is an answer.


@settings(max_examples=60, deadline=None)
@given(st.one_of(streams(), state_objects()), st.data())
def test_any_desc_is_accepted_or_refused_with_a_field(desc: Any, data: st.DataObject) -> None:
    odd = data.draw(st.sampled_from([None, -1, 1 << 80, 2.5, "x", b"x", (), [], object()]))
    if isinstance(desc, PipelineStateStream):
        desc = msgspec.structs.replace(desc, **{data.draw(st.sampled_from(desc.__struct_fields__[:-1])): odd})
    else:
        place = data.draw(st.integers(0, len(desc.subobjects)))
        desc = msgspec.structs.replace(desc, subobjects=(*desc.subobjects[:place], odd, *desc.subobjects[place + 1 :]))
    try:
        validate(desc)
    except InvalidArgumentError as error:
        assert re.match(r"[a-z_]+(\[\d+\])?|program ", str(error))
