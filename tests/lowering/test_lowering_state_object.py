"""State objects in Vulkan: programs, ray tracing, collections, additions, and what is reported of them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sodb_example import example

from shaderkiln.descriptions.direct3d12.builders import StateObjectBuilder
from shaderkiln.descriptions.direct3d12.enums import HitGroupType, RaytracingPipelineFlags, StateObjectType
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import (
    DxilLibrary,
    ExistingCollection,
    ExistingCollectionByKey,
    ExportDesc,
    GlobalRootSignature,
    HitGroup,
    RaytracingPipelineConfig,
    RaytracingPipelineConfig1,
    RaytracingShaderConfig,
    StateObjectDesc,
    WorkGraph,
)
from shaderkiln.descriptions.pipeline import UnsupportedPipelineError
from shaderkiln.errors import DamagedInputError, InvalidArgumentError, NotFoundError
from shaderkiln.formats import dxbc
from shaderkiln.keys import ObjectKey
from shaderkiln.lowering.shaders import ShaderTranslations
from shaderkiln.lowering.state_object import (
    MAXIMUM_COLLECTIONS,
    VulkanLowering,
    exports_of,
    part_key,
    pipeline_state_parts,
    root_signature_for,
    state_object_parts,
    with_collections,
)
from shaderkiln.shaders.package import TranslatorPackages
from shaderkiln.shaders.translator import Translator
from shaderkiln.vulkan_registry import structures as vk

KEY = ObjectKey(b"k" * 32)
UNUSED = 0xFFFFFFFF  # VK_SHADER_UNUSED_KHR
OBJECTS: dict[bytes, StateObjectDesc] = {key: desc for key, desc, _, _ in example.state_objects()}


def inlined(key: bytes) -> StateObjectDesc:
    return with_collections(OBJECTS[key], OBJECTS.__getitem__)


def rays(desc: StateObjectDesc, *parents: StateObjectDesc) -> Any:
    (part,) = state_object_parts(desc, KEY, parents)
    assert part.kind == "raytracing"
    assert part.object_key == KEY
    with ShaderTranslations() as translations:
        return part.lower(translations, "rays").create_info


def spirv_programs() -> StateObjectBuilder:
    builder = StateObjectBuilder(StateObjectType.EXECUTABLE)
    builder.dxil_library(example.read("spirv/c1_fill.cs.spv"), [ExportDesc("Fill", "main")])
    builder.generic_program("Zeta", ["Fill"])
    return builder


def dxil_library() -> bytes:
    """A container that says of itself that it is a library."""
    container = dxbc.parse(example.read("dxil/c2_reduce.cs.dxil"))
    parts = []
    for part in container.parts:
        data = part.data
        if part.name == "DXIL":
            (version,) = struct.unpack_from("<I", data)
            data = struct.pack("<I", version & 0xFFFF | 6 << 16) + data[4:]
        parts.append(dxbc.Part(part.name, data))
    return dxbc.write(parts)


# Parts


def test_the_first_part_has_the_objects_key_and_others_their_own() -> None:
    keys = [part_key(KEY, number) for number in range(4)]
    assert keys[0] == KEY
    assert len(set(keys)) == 4
    assert all(len(key) == 32 for key in keys)
    (part,) = pipeline_state_parts(PipelineStateStream(cs=b"x"), KEY)
    assert (part.kind, part.object_key, part.name) == ("compute", KEY, "")


def test_programs_come_by_name_whatever_the_order_of_subobjects() -> None:
    desc = inlined(b"executable.programs")
    parts = state_object_parts(desc, KEY)
    assert [(part.name, part.kind) for part in parts] == [
        ("Fullscreen", "graphics"), ("Mesh", "graphics"), ("MeshWire", "graphics"), ("ReduceProgram", "compute"),
    ]  # fmt: skip
    assert [part.object_key for part in parts] == [part_key(KEY, number) for number in range(4)]


def test_an_addition_has_parts_of_its_own_programs_and_sees_its_parents_exports() -> None:
    parent = spirv_programs().build()
    addition = StateObjectBuilder(StateObjectType.EXECUTABLE)
    addition.generic_program("Again", ["Fill"])
    with pytest.raises(InvalidArgumentError, match="nothing exports 'Fill'"):
        state_object_parts(addition.build(), KEY)
    (part,) = state_object_parts(addition.build(), KEY, (parent,))
    assert part.name == "Again"
    with ShaderTranslations() as translations:
        info: Any = part.lower(translations, "x").create_info
    assert isinstance(info, vk.ComputePipelineCreateInfo)


def test_spirv_libraries_have_entry_points_by_name() -> None:
    desc = spirv_programs().build()
    (part,) = state_object_parts(desc, KEY)
    with ShaderTranslations() as translations:
        made = part.lower(translations, "fill")
    info: Any = made.create_info
    assert (info.stage.stage, info.stage.name, made.name) == (0x20, "main", "fill")


def test_two_shaders_of_one_stage_are_refused() -> None:
    builder = spirv_programs()
    builder.dxil_library(example.read("spirv/c2_reduce.cs.spv"), [ExportDesc("Reduce", "main")])
    builder.generic_program("Both", ["Fill", "Reduce"])
    with pytest.raises(InvalidArgumentError, match="two shaders for cs"):
        state_object_parts(builder.build(), KEY)


def test_vulkan_has_no_work_graphs() -> None:
    (part,) = state_object_parts(StateObjectDesc(StateObjectType.EXECUTABLE, (WorkGraph("Graph"),)), KEY)
    with ShaderTranslations() as translations, pytest.raises(UnsupportedPipelineError, match=r"'Graph'.*no work graphs"):
        part.lower(translations, "")


def test_a_program_of_a_dxil_library_is_reported_and_not_dropped() -> None:
    builder = spirv_programs()
    builder.dxil_library(dxil_library(), ["Main"])
    builder.generic_program("Alpha", ["Main"])
    first, second = state_object_parts(builder.build(), KEY)
    assert (first.name, second.name) == ("Alpha", "Zeta")
    with ShaderTranslations() as translations:
        with pytest.raises(UnsupportedPipelineError, match="not translatable here: a DXIL library") as caught:
            first.lower(translations, "")
        assert [reason.name for reason in caught.value.reasons] == ["Main"]
        second.lower(translations, "")


# Ray tracing


def test_a_ray_tracing_pipeline_has_the_shaders_and_hit_groups_of_its_collections() -> None:
    info = rays(inlined(b"rays.scene"))
    # Exports by name: Miss, RayGen, rahit, rchit. VkShaderStageFlagBits: miss 0x800, raygen 0x100, any 0x200, closest 0x400.
    assert [(stage.stage, stage.name) for stage in info.stages] == [
        (0x800, "rmiss"), (0x100, "rgen"), (0x200, "rahit"), (0x400, "rchit"),
    ]  # fmt: skip
    general, triangles = 0, 1
    assert [(g.type, g.general_shader, g.closest_hit_shader, g.any_hit_shader, g.intersection_shader) for g in info.groups] == [
        (general, 0, UNUSED, UNUSED, UNUSED),
        (general, 1, UNUSED, UNUSED, UNUSED),
        (triangles, UNUSED, 3, 2, UNUSED),
    ]
    assert info.max_pipeline_ray_recursion_depth == 1
    assert info.flags == 0
    assert info.library_interface is None
    assert info.dynamic_state.dynamic_states == (1000347000,)


def test_a_collection_of_ray_tracing_shaders_is_a_library_and_one_of_others_has_no_part() -> None:
    info = rays(inlined(b"collection.hits"))
    assert info.flags == 0x800  # VK_PIPELINE_CREATE_LIBRARY_BIT_KHR
    assert info.library_interface == vk.RayTracingPipelineInterfaceCreateInfoKHR(16, 8)
    assert len(info.stages) == 2
    assert state_object_parts(inlined(b"collection.shaders"), KEY) == ()


def test_an_addition_to_a_ray_tracing_pipeline_has_everything_of_its_parent() -> None:
    parent = inlined(b"rays.scene")
    extra = StateObjectDesc(
        StateObjectType.RAYTRACING_PIPELINE,
        (DxilLibrary(example.read("rays/r1_scene.rmiss.spv"), (ExportDesc("Sky", "rmiss"),)),),
    )
    info = rays(extra, parent)
    assert len(info.stages) == 5
    assert len(info.groups) == 4


def test_ray_flags_and_procedural_hit_groups() -> None:
    flags = RaytracingPipelineFlags.SKIP_TRIANGLES | RaytracingPipelineFlags.ALLOW_OPACITY_MICROMAPS
    desc = StateObjectDesc(
        StateObjectType.RAYTRACING_PIPELINE,
        (
            DxilLibrary(example.read("rays/r1_scene.rgen.spv")),
            DxilLibrary(example.read("rays/r1_scene.rchit.spv")),
            HitGroup("Boxes", HitGroupType.PROCEDURAL_PRIMITIVE, closest_hit_shader_import="rchit"),
            RaytracingShaderConfig(16, 8),
            RaytracingPipelineConfig1(7, flags),
        ),
    )
    info = rays(desc)
    # VK_PIPELINE_CREATE_RAY_TRACING_SKIP_TRIANGLES_BIT_KHR and …_OPACITY_MICROMAP_BIT_EXT.
    assert info.flags == 0x1000 | 0x01000000
    assert info.max_pipeline_ray_recursion_depth == 7
    assert [group.type for group in info.groups] == [0, 2]


def test_what_a_ray_tracing_pipeline_lacks_is_refused_by_name() -> None:
    library = DxilLibrary(example.read("rays/r1_scene.rgen.spv"))
    kind = StateObjectType.RAYTRACING_PIPELINE
    with pytest.raises(InvalidArgumentError, match="needs a pipeline config"):
        rays(StateObjectDesc(kind, (library,)))
    with pytest.raises(InvalidArgumentError, match="needs a shader of ray tracing"):
        rays(StateObjectDesc(kind, (RaytracingPipelineConfig(1),)))
    with pytest.raises(InvalidArgumentError, match="hit group 'H': nothing exports 'gone'"):
        rays(StateObjectDesc(kind, (library, RaytracingPipelineConfig(1), HitGroup("H", closest_hit_shader_import="gone"))))


@pytest.mark.parametrize("type_", [StateObjectType.RAYTRACING_PIPELINE, StateObjectType.COLLECTION])
def test_dxil_libraries_of_ray_tracing_are_reported(type_: StateObjectType) -> None:
    desc = StateObjectDesc(type_, (DxilLibrary(dxil_library()), RaytracingPipelineConfig(1), RaytracingShaderConfig(4, 8)))
    with pytest.raises(UnsupportedPipelineError, match="not translatable here: a DXIL library"):
        rays(desc)


# Exports, root signatures, collections


def test_exports_are_renamed_and_chosen() -> None:
    library = DxilLibrary(example.read("rays/r1_scene.rgen.spv"), (ExportDesc("Out", "*"),))
    inner = StateObjectDesc(StateObjectType.COLLECTION, (library, DxilLibrary(example.read("rays/r1_scene.rmiss.spv"))))
    assert set(exports_of(inner)) == {"Out", "rmiss"}
    outer = StateObjectDesc(StateObjectType.COLLECTION, (ExistingCollection(inner, (ExportDesc("Renamed", "Out"),)),))
    (export,) = exports_of(outer).values()
    assert (export.name, export.entry_point, export.ray_stage) == ("Renamed", "rgen", 0x100)
    with pytest.raises(InvalidArgumentError, match="no 'gone'"):
        exports_of(StateObjectDesc(StateObjectType.COLLECTION, (ExistingCollection(inner, (ExportDesc("gone"),)),)))


def test_root_signatures_by_association_default_and_alone() -> None:
    builder = StateObjectBuilder(StateObjectType.EXECUTABLE)
    first, second, third = (builder.add(GlobalRootSignature(blob)) for blob in (b"one", b"two", b"three"))
    builder.associate(second, ["B"])
    builder.associate(third)
    family = (builder.build(),)
    assert root_signature_for(family, ["B"]) == b"two"
    assert root_signature_for(family, ["A", "B"]) == b"two"
    assert root_signature_for(family, ["A"]) == b"three"
    assert root_signature_for((StateObjectDesc(StateObjectType.EXECUTABLE, (GlobalRootSignature(b"x"),)),), ["A"]) == b"x"
    several = StateObjectDesc(StateObjectType.EXECUTABLE, (GlobalRootSignature(b"x"), GlobalRootSignature(b"y")))
    assert root_signature_for((several,), ["A"]) is None
    assert root_signature_for((several, *family), ["B"]) == b"two"
    assert first is not second


def test_collections_by_key_are_put_in_and_a_missing_or_endless_one_is_refused() -> None:
    desc = inlined(b"rays.scene")
    (inside,) = desc.of(ExistingCollection)
    assert inside.collection == OBJECTS[b"collection.hits"]
    loop = StateObjectDesc(StateObjectType.COLLECTION, (ExistingCollectionByKey(b"loop"),))
    with pytest.raises(DamagedInputError, match="nested too deep"):
        with_collections(loop, lambda _: loop)
    wide = StateObjectDesc(StateObjectType.COLLECTION, (ExistingCollectionByKey(b"wide", (ExportDesc("x"),)),) * 16)
    calls = 0

    def find(_: bytes) -> StateObjectDesc:
        nonlocal calls
        calls += 1
        return wide

    with pytest.raises(DamagedInputError, match="too many"):
        with_collections(wide, find)
    assert calls <= MAXIMUM_COLLECTIONS

    def missing(_: bytes) -> StateObjectDesc:
        raise NotFoundError("gone")

    with pytest.raises(NotFoundError):
        with_collections(loop, missing)


def test_the_devices_lowering_gives_the_parts_in_order() -> None:
    lowering = VulkanLowering()
    try:
        builder = spirv_programs()
        builder.generic_program("Alpha", ["Fill"])
        one, other = (lower(True) for lower in lowering.parts(builder.build()))
        assert (one.name, other.name) == ("Alpha", "Zeta")
        assert one.create_info == other.create_info
        stream = PipelineStateStream(cs=example.read("spirv/c1_fill.cs.spv"))
        (lower,), (same,) = lowering.parts(stream), lowering.parts(replace(stream, node_mask=1))
        assert lower(True).create_info == one.create_info
        assert same(True) == lower(True)
    finally:
        lowering.close()


def without_modules(info: Any) -> Any:
    if isinstance(info, vk.ComputePipelineCreateInfo):
        return replace(info, stage=replace(info.stage, module=None))
    return replace(info, stages=tuple(replace(stage, module=None) for stage in info.stages))


def is_module(handle: Any) -> bool:
    return isinstance(handle, vk.ShaderModuleHandle)


@pytest.mark.driver
def test_without_code_everything_but_the_shader_modules_is_the_same() -> None:
    try:
        lowering = VulkanLowering(translations=ShaderTranslations(Translator()))
    except NotFoundError as error:
        pytest.skip(f"no translator of shaders here: {error}")
    streams = [stream for _, stream in example.pipeline_states()]
    descs = [with_collections(desc, OBJECTS.__getitem__) for desc in OBJECTS.values()]
    compared = 0
    for desc in (*streams[::5], *descs):
        for lower in lowering.parts(desc):
            try:
                whole = lower(True)
            except UnsupportedPipelineError:
                continue
            bare = lower(False)
            assert bare.create_info == without_modules(whole.create_info)
            assert bare.objects == {h: s for h, s in whole.objects.items() if not is_module(h)}
            assert (bare.name, bare.kind) == (whole.name, whole.kind)
            compared += 1
    lowering.close()
    # Without DXIL, which older translators cannot read, there are fewer.
    assert compared > 20


def test_without_code_no_translator_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    try:
        TranslatorPackages().best()
    except NotFoundError:
        pass
    else:
        pytest.skip("the system has a translator of its own")
    (lower,) = VulkanLowering().parts(next(stream for _, stream in example.pipeline_states()))
    with pytest.raises(NotFoundError, match="translator"):
        lower(True)
    assert lower(False).kind == "graphics"
