#!/usr/bin/env python3
"""Make a state object database of this project's test shaders: more than 200 pipeline states and state objects of every kind.

usage: make_sodb.py OUTPUT.sodb
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from msgspec.structs import replace

from shaderkiln.databases.sodb import StateObjectDatabase
from shaderkiln.descriptions.direct3d12.builders import StateObjectBuilder
from shaderkiln.descriptions.direct3d12.enums import (
    APPEND_ALIGNED_ELEMENT,
    Blend,
    ComparisonFunc,
    CullMode,
    DepthWriteMask,
    DxgiFormat,
    FillMode,
    IndexBufferStripCutValue,
    InputClassification,
    PrimitiveTopologyType,
    StateObjectFlags,
    StateObjectType,
    StencilOp,
)
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import (
    ExistingCollectionByKey,
    ExportDesc,
    GlobalRootSignature,
    HitGroup,
    RaytracingPipelineConfig,
    RaytracingShaderConfig,
    StateObjectConfig,
    StateObjectDesc,
)
from shaderkiln.descriptions.direct3d12.states import (
    BlendDesc,
    DepthStencilDesc,
    DepthStencilDesc1,
    DepthStencilFormat,
    DepthStencilOpDesc,
    InputElementDesc,
    InputLayoutDesc,
    PrimitiveTopologyDesc,
    RasterizerDesc,
    RasterizerDesc2,
    RenderTargetBlendDesc,
    RenderTargetFormats,
    SampleDesc,
    ViewInstanceLocation,
    ViewInstancingDesc,
)
from shaderkiln.formats import dxbc, root_signature
from shaderkiln.formats.root_signature import (
    DescriptorRange,
    DescriptorRangeType,
    DescriptorTable,
    RootSignature,
    RootSignatureFlag,
)
from shaderkiln.identity import ApplicationIdentity, parse_version

SHADERS = Path(__file__).resolve().parents[1] / "tests" / "data" / "shaders"
APPLICATION = ApplicationIdentity("TestGame", "testgame.exe", parse_version("1.0"), "TestEngine", parse_version("1.0"))
VERSION = 1

_RANGES = {1: 3, 2: 2, 3: 0, 4: 0, 5: 0, 6: 1, 7: 1, 8: 1, 9: 1}
"""PSVResourceType → descriptor range type."""
_F = DxgiFormat
_LAYOUTS = {
    "g1_fullscreen": (),
    "g2_mesh": (
        ("POSITION", _F.R32G32B32_FLOAT, 0),
        ("NORMAL", _F.R32G32B32_FLOAT, 0),
        ("TEXCOORD", _F.R16G16_FLOAT, 0),
        ("COLOR", _F.R8G8B8A8_UNORM, 1),
    ),
    "g3_textured": (
        ("POSITION", _F.R32G32B32_FLOAT, 0),
        ("TEXCOORD", _F.R16G16_UNORM, 0),
        ("BLENDINDICES", _F.R32_UINT, 1),
    ),
    "g4_shadow": (
        ("POSITION", _F.R32G32B32_FLOAT, 0),
        ("NORMAL", _F.R16G16B16A16_SNORM, 0),
        ("TANGENT", _F.R16G16B16A16_SNORM, 0),
        ("TEXCOORD", _F.R32G32_FLOAT, 0),
    ),
}
_LAYOUTS["b4_shadow"] = _LAYOUTS["g4_shadow"]
GRAPHICS = (
    ("dxil", "dxil", ("g1_fullscreen", "g2_mesh", "g3_textured", "g4_shadow")),
    ("dxbc51", "dxbc", ("g1_fullscreen", "g2_mesh", "g3_textured", "b4_shadow")),
    ("spirv", "spv", ("g1_fullscreen", "g2_mesh", "g3_textured", "g4_shadow")),
)
"""Folder, extension, and the sources that have a vertex and a pixel shader there."""


def read(name: str) -> bytes:
    """A shader by its path under tests/data/shaders."""
    return (SHADERS / name).read_bytes()


def fitting_root_signature(*codes: bytes) -> bytes:
    """The first shader's own root signature, or one that has what the shaders name in their PSV0 parts.

    A container without that part (shader model 5) gets a few registers of every type.
    """
    types, spaces, count = DescriptorRangeType, (0, 1), 4
    ranges: dict[tuple[DescriptorRangeType, int, int], DescriptorRange] = {}
    for code in codes:
        if not dxbc.is_container(code):
            continue
        container = dxbc.parse(code)
        if container.root_signature is not None:
            return container.root_signature
        if validation := container.pipeline_validation:
            found = [
                DescriptorRange(types(_RANGES[r.type]), r.upper - r.lower + 1, r.lower, r.space) for r in validation.resources
            ]
        else:
            found = [DescriptorRange(type_, count, 0, space) for type_ in types for space in spaces]
        ranges |= {(r.type, r.base_register, r.space): r for r in found}
    samplers = tuple(r for r in ranges.values() if r.type is types.SAMPLER)
    others = tuple(r for r in ranges.values() if r.type is not types.SAMPLER)
    tables = tuple(DescriptorTable(part) for part in (others, samplers) if part)
    return root_signature.serialize(RootSignature(tables, flags=RootSignatureFlag.ALLOW_INPUT_ASSEMBLER_INPUT_LAYOUT))


def input_layout(source: str) -> InputLayoutDesc:
    """The vertices of a source: slot 1 is one for each instance."""
    return InputLayoutDesc(
        tuple(
            InputElementDesc(
                name,
                0,
                format_,
                slot,
                APPEND_ALIGNED_ELEMENT,
                InputClassification.PER_INSTANCE_DATA if slot else InputClassification.PER_VERTEX_DATA,
                2 if slot else 0,
            )
            for name, format_, slot in _LAYOUTS[source]
        )
    )


def graphics_states() -> dict[str, PipelineStateStream]:
    """Fixed-function states by name, without shaders."""
    base = PipelineStateStream(
        render_target_formats=RenderTargetFormats((_F.R8G8B8A8_UNORM,)),
        depth_stencil_format=_F.D32_FLOAT,
        primitive_topology=PrimitiveTopologyType.TRIANGLE,
    )
    alpha = RenderTargetBlendDesc(True, src_blend=Blend.SRC_ALPHA, dest_blend=Blend.INV_SRC_ALPHA)
    added = RenderTargetBlendDesc(True, dest_blend=Blend.ONE, src_blend=Blend.BLEND_FACTOR)
    op = DepthStencilOpDesc(stencil_pass_op=StencilOp.INCR_SAT, stencil_func=ComparisonFunc.NOT_EQUAL)
    hdr = RenderTargetFormats((_F.R16G16B16A16_FLOAT, _F.R11G11B10_FLOAT))
    read_only = DepthStencilDesc(depth_write_mask=DepthWriteMask.ZERO, depth_func=ComparisonFunc.EQUAL)
    views = tuple(ViewInstanceLocation(0, layer) for layer in range(2))
    return {
        "opaque": base,
        "alpha": replace(base, blend=BlendDesc(render_target=(alpha,))),
        "added": replace(base, blend=BlendDesc(render_target=(added,)), depth_stencil=read_only),
        "two-sided": replace(base, rasterizer=RasterizerDesc(cull_mode=CullMode.NONE)),
        "inside": replace(base, rasterizer=RasterizerDesc(cull_mode=CullMode.FRONT, front_counter_clockwise=True)),
        "wire": replace(base, rasterizer=RasterizerDesc(FillMode.WIREFRAME)),
        "bias": replace(base, rasterizer=RasterizerDesc2(depth_bias=16.0, slope_scaled_depth_bias=1.5, depth_bias_clamp=0.01)),
        "unclipped": replace(base, rasterizer=RasterizerDesc(depth_clip_enable=False)),
        "no-depth": replace(base, depth_stencil_format=None),
        "reverse": replace(base, depth_stencil=DepthStencilDesc(depth_func=ComparisonFunc.GREATER_EQUAL)),
        "stencil": replace(
            base,
            depth_stencil=DepthStencilDesc(stencil_enable=True, front_face=op, back_face=op, stencil_read_mask=0x0F),
            depth_stencil_format=_F.D32_FLOAT_S8X24_UINT,
        ),
        "bounds": replace(base, depth_stencil=DepthStencilDesc1(depth_bounds_test_enable=True)),
        "samples": replace(base, sample_desc=SampleDesc(4), sample_mask=0x7),
        "coverage": replace(base, sample_desc=SampleDesc(8), blend=BlendDesc(alpha_to_coverage_enable=True)),
        "hdr": replace(base, render_target_formats=hdr, blend=BlendDesc(False, True, (alpha, RenderTargetBlendDesc()))),
        "srgb": replace(base, render_target_formats=RenderTargetFormats((_F.B8G8R8A8_UNORM_SRGB,))),
        "strips": replace(base, ib_strip_cut_value=IndexBufferStripCutValue.VALUE_0xFFFF),
        "lines": replace(base, primitive_topology=PrimitiveTopologyType.LINE),
        "points": replace(base, primitive_topology=PrimitiveTopologyType.POINT),
        "views": replace(base, view_instancing=ViewInstancingDesc(views)),
    }


def pipeline_states() -> Iterator[tuple[bytes, PipelineStateStream]]:
    """Keys and pipeline states: every pair of shaders with every state, and every compute shader."""
    states = graphics_states()
    for folder, extension, sources in GRAPHICS:
        for source, (name, state) in product(sources, states.items()):
            vs, ps = read(f"{folder}/{source}.vs.{extension}"), read(f"{folder}/{source}.ps.{extension}")
            # The same source has one root signature, which its DXBC form does not carry.
            own = read(f"dxil/{source}.vs.dxil") if source == "g3_textured" else vs
            blob = None if extension == "spv" else fitting_root_signature(own, ps)
            yield (
                f"{source}.{extension}.{name}".encode(),
                replace(state, root_signature=blob, vs=vs, ps=ps, input_layout=input_layout(source)),
            )
    shadow = read("dxbc51/g4_shadow.vs.dxbc")
    yield (
        b"g4_shadow.dxbc.depth-only",
        PipelineStateStream(
            root_signature=fitting_root_signature(shadow), vs=shadow, input_layout=input_layout("g4_shadow"),
            depth_stencil_format=_F.D16_UNORM, primitive_topology=PrimitiveTopologyType.TRIANGLE,
        ),
    )  # fmt: skip
    for path in sorted(p for f in ("dxil", "dxbc51", "spirv") for p in (SHADERS / f).glob("*.cs.*")):
        code = path.read_bytes()
        yield path.name.encode(), PipelineStateStream(cs=code, root_signature=compute_root_signature(path, code))


def compute_root_signature(path: Path, code: bytes) -> bytes | None:
    """As ``fitting_root_signature``; SPIR-V says itself where its resources lie."""
    return None if path.suffix == ".spv" else fitting_root_signature(code)


def state_objects() -> Iterator[tuple[bytes, StateObjectDesc, bytes | None, tuple[bytes, ...]]]:
    """Key, desc, parent's key, and the keys of the collections in it."""
    collection = StateObjectBuilder(StateObjectType.COLLECTION)
    collection.dxil_library(read("dxil/g1_fullscreen.vs.dxil"), [ExportDesc("FullscreenVS", "main")])
    collection.dxil_library(read("dxil/g1_fullscreen.ps.dxil"), [ExportDesc("FullscreenPS", "main")])
    yield b"collection.shaders", collection.build(), None, ()

    config = StateObjectConfig(StateObjectFlags.ALLOW_STATE_OBJECT_ADDITIONS)
    programs = StateObjectBuilder(StateObjectType.EXECUTABLE)
    programs.add(config)
    mesh = [read(f"dxil/g2_mesh.{stage}.dxil") for stage in ("vs", "ps")]
    for stage, code in zip(("VS", "PS"), mesh, strict=True):
        programs.dxil_library(code, [ExportDesc(f"Mesh{stage}", "*")])
    programs.dxil_library(read("dxil/c2_reduce.cs.dxil"), [ExportDesc("Reduce", "*")])
    programs.add(ExistingCollectionByKey(b"collection.shaders"))
    mesh_root = programs.add(GlobalRootSignature(fitting_root_signature(*mesh)))
    reduce_root = programs.add(GlobalRootSignature(fitting_root_signature(read("dxil/c2_reduce.cs.dxil"))))
    programs.associate(mesh_root, ["Mesh", "MeshWire", "Fullscreen"])
    programs.associate(reduce_root, ["ReduceProgram"])
    layout = programs.add(input_layout("g2_mesh"))
    topology = programs.add(PrimitiveTopologyDesc(PrimitiveTopologyType.TRIANGLE))
    targets = programs.add(RenderTargetFormats((_F.R8G8B8A8_UNORM,)))
    depth = programs.add(DepthStencilFormat(_F.D32_FLOAT))
    wire = programs.add(RasterizerDesc2(FillMode.WIREFRAME))
    programs.generic_program("Mesh", ["MeshVS", "MeshPS"], [layout, topology, targets, depth])
    programs.generic_program("MeshWire", ["MeshVS", "MeshPS"], [layout, topology, targets, depth, wire])
    programs.generic_program("Fullscreen", ["FullscreenVS", "FullscreenPS"], [topology, targets])
    programs.generic_program("ReduceProgram", ["Reduce"])
    yield b"executable.programs", programs.build(), None, ()

    addition = StateObjectBuilder(StateObjectType.EXECUTABLE)
    addition.add(config)
    addition.dxil_library(read("dxil/c3_blur.cs.dxil"), [ExportDesc("Blur", "*")])
    root = addition.add(GlobalRootSignature(fitting_root_signature(read("dxil/c3_blur.cs.dxil"))))
    addition.associate(root, ["BlurProgram"])
    addition.generic_program("BlurProgram", ["Blur"])
    yield b"executable.addition", addition.build(), b"executable.programs", ()

    hits = StateObjectBuilder(StateObjectType.COLLECTION)
    hits.dxil_library(read("rays/r1_scene.rchit.spv"), ["rchit"])
    hits.dxil_library(read("rays/r1_scene.rahit.spv"), ["rahit"])
    hits.add(HitGroup("Triangles", any_hit_shader_import="rahit", closest_hit_shader_import="rchit"))
    hits.add(RaytracingShaderConfig(16, 8))
    hits.add(RaytracingPipelineConfig(1))
    yield b"collection.hits", hits.build(), None, ()

    rays = StateObjectBuilder(StateObjectType.RAYTRACING_PIPELINE)
    rays.dxil_library(read("rays/r1_scene.rgen.spv"), [ExportDesc("RayGen", "rgen")])
    rays.dxil_library(read("rays/r1_scene.rmiss.spv"), [ExportDesc("Miss", "rmiss")])
    rays.add(ExistingCollectionByKey(b"collection.hits"))
    rays.add(RaytracingShaderConfig(16, 8))
    rays.add(RaytracingPipelineConfig(1))
    rays.add(config)
    yield b"rays.scene", rays.build(), None, ()


def make_sodb(path: Path) -> Path:
    """Write the database to a path where nothing is yet. Raises as ``StateObjectDatabase.create``."""
    with StateObjectDatabase.create(path) as database, database.transaction():
        database.set_application_desc(APPLICATION)
        for key, stream in pipeline_states():
            database.store_pipeline_state_desc(key, VERSION, stream)
        for key, desc, parent, collections in state_objects():
            database.store_state_object_desc(key, VERSION, desc, parent, collections)
    return path


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write(__doc__ or "")
        return 2
    path = make_sodb(Path(arguments[0]))
    with StateObjectDatabase.open(path) as database:
        sys.stdout.write(f"{path}: {len(database)} objects\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
