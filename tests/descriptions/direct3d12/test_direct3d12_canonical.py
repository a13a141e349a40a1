"""Object keys: every field that decides what is compiled changes them, nothing else does."""

from __future__ import annotations

import random
from enum import IntEnum, IntFlag
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest
from builtins_form import from_builtins, to_builtins, without_psdb
from direct3d12_strategies import PLAIN, state_objects, streams, structs
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from shaderkiln.descriptions.direct3d12.canonical import object_key
from shaderkiln.descriptions.direct3d12.enums import DxgiFormat, LineRasterizationMode, RaytracingPipelineFlags, StateObjectType
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import (
    PROGRAM_STATES,
    CompilerExistingCollection,
    DxilLibrary,
    ExistingCollection,
    ExistingCollectionByKey,
    ExportDesc,
    GenericProgram,
    GlobalRootSignature,
    GlobalSerializedRootSignature,
    HitGroup,
    RaytracingPipelineConfig,
    RaytracingPipelineConfig1,
    RaytracingShaderConfig,
    StateObjectConfig,
    StateObjectDesc,
    SubobjectToExportsAssociation,
)
from shaderkiln.descriptions.direct3d12.states import (
    BlendDesc,
    DepthStencilDesc,
    DepthStencilDesc1,
    DepthStencilDesc2,
    InputElementDesc,
    InputLayoutDesc,
    NodeMask,
    RasterizerDesc,
    RasterizerDesc1,
    RasterizerDesc2,
    RenderTargetBlendDesc,
    RenderTargetFormats,
    SampleDesc,
    SampleMask,
    StreamOutputDeclarationEntry,
    StreamOutputDesc,
)
from shaderkiln.errors import DamagedInputError, InvalidArgumentError


class Session:
    def get_desc(self) -> object:
        return None


def changed(value: Any, annotation: Any) -> Any:
    """Another value of the same annotation."""
    if get_origin(annotation) in (Union, UnionType):
        if value is None:
            return blank(next(part for part in get_args(annotation) if part is not NoneType))
        return changed(value, next(part for part in get_args(annotation) if type(value) in (part, get_origin(part))))
    if get_origin(annotation) is tuple:
        arguments = get_args(annotation)
        if value:
            return (changed(value[0], arguments[0]), *value[1:])
        return (blank(arguments[0]),)
    if issubclass(annotation, bool):
        return not value
    if issubclass(annotation, IntFlag):
        return annotation(value ^ next(iter(annotation), 1))
    if issubclass(annotation, IntEnum):
        return next((member for member in annotation if member != value), value)
    if issubclass(annotation, (int, float)):
        return value + 2
    if issubclass(annotation, str):
        return value + "x"
    if issubclass(annotation, bytes):
        return value + b"x"
    field = msgspec.structs.fields(annotation)[0]
    return msgspec.structs.replace(value, **{field.name: changed(getattr(value, field.name), field.type)})


def blank(annotation: Any) -> Any:
    if get_origin(annotation) is tuple:
        return tuple(blank(argument) for argument in get_args(annotation))
    if issubclass(annotation, (IntEnum, IntFlag)):
        return list(annotation)[-1]
    if not issubclass(annotation, Struct):
        return {int: 7, bool: True, float: 7.0, str: "x", bytes: b"x"}[annotation]
    if annotation is RenderTargetBlendDesc:
        return RenderTargetBlendDesc(blend_enable=True)
    names = {field.name: blank(field.type) for field in msgspec.structs.fields(annotation) if field.required}
    return annotation(**names)


def neighbours(value: Struct, leave_out: frozenset[str] = frozenset()) -> list[tuple[str, Struct]]:
    """The struct with one field changed, for each of its fields at any depth."""
    found: list[tuple[str, Struct]] = []
    for field in msgspec.structs.fields(type(value)):
        if field.name in leave_out:
            continue
        now = getattr(value, field.name)
        new = changed(now, field.type)
        if new != now:
            found.append((field.name, msgspec.structs.replace(value, **{field.name: new})))
        if isinstance(now, Struct):
            found += [
                (f"{field.name}.{path}", msgspec.structs.replace(value, **{field.name: inner}))
                for path, inner in neighbours(now)
            ]
        if isinstance(now, tuple):
            for index, item in enumerate(now):
                if isinstance(item, Struct):
                    for path, inner in neighbours(item):
                        items = (*now[:index], inner, *now[index + 1 :])
                        found.append((f"{field.name}[{index}].{path}", msgspec.structs.replace(value, **{field.name: items})))
    return found


@settings(max_examples=30, deadline=None)
@given(streams())
def test_states_of_graphics_beside_a_compute_shader_have_no_meaning(stream: PipelineStateStream) -> None:
    shaders = dict.fromkeys(("vs", "hs", "ds", "gs", "as_", "ms", "ps"))
    stream = msgspec.structs.replace(stream, **shaders, cs=b"cs", root_signature=b"r", serialized_root_signature=None)
    alone = PipelineStateStream(cs=b"cs", root_signature=b"r", node_mask=stream.node_mask, flags=stream.flags)
    assert object_key(stream) == object_key(alone)
    assert object_key(msgspec.structs.replace(stream, cs=b"other")) != object_key(alone)


# What a stream with a compute shader says beside it has no meaning, and two root signatures are one too many.
@settings(max_examples=60, deadline=None)
@given(streams())
def test_every_field_of_a_stream_changes_its_key(stream: PipelineStateStream) -> None:
    stream = msgspec.structs.replace(stream, cs=None, vs=b"v", serialized_root_signature=None, node_mask=3)
    # Explicit states: where one is absent, its default counts, which the next test is about.
    full = msgspec.structs.replace(
        stream.with_defaults(), rasterizer=stream.rasterizer or RasterizerDesc2(), depth_stencil=stream.depth_stencil
    )
    key = object_key(full)
    leave_out = frozenset({"psdb", "cached_pso", "serialized_root_signature", "depth_stencil", "rasterizer"})
    for path, other in neighbours(full, leave_out):
        assert object_key(other) != key, path


@settings(max_examples=30, deadline=None)
@given(st.one_of(*map(structs, (RasterizerDesc2, DepthStencilDesc, DepthStencilDesc1, DepthStencilDesc2))))
def test_every_field_of_rasterizer_and_depth_stencil_changes_the_key(state: Any) -> None:
    field = "rasterizer" if isinstance(state, RasterizerDesc2) else "depth_stencil"
    key = object_key(PipelineStateStream(vs=b"v", **{field: state}))
    for path, other in neighbours(state):
        assert object_key(PipelineStateStream(vs=b"v", **{field: other})) != key, path


@settings(max_examples=100, deadline=None)
@given(streams())
def test_streams_survive_builtins_and_do_not_depend_on_the_order_of_subobjects(stream: PipelineStateStream) -> None:
    plain = to_builtins(stream)
    assert from_builtins(plain, PipelineStateStream) == stream
    assert from_builtins(msgspec.json.decode(msgspec.json.encode(plain)), PipelineStateStream) == stream
    subobjects = list(stream.subobjects())
    random.Random(1).shuffle(subobjects)
    again = PipelineStateStream.from_subobjects(subobjects)
    assert again == stream
    assert object_key(again) == object_key(stream)
    assert object_key(stream.with_psdb(Session())) == object_key(stream)
    assert object_key(msgspec.structs.replace(stream, cached_pso=b"driver")) == object_key(stream)
    assert object_key(stream.with_defaults()) == object_key(stream)


def test_forms_of_one_state_give_one_key() -> None:
    def key(**fields: Any) -> bytes:
        return object_key(PipelineStateStream(vs=b"v", depth_stencil_format=DxgiFormat.D32_FLOAT, **fields))

    assert key() == key(rasterizer=RasterizerDesc()) == key(rasterizer=RasterizerDesc1()) == key(rasterizer=RasterizerDesc2())
    assert key() == key(depth_stencil=DepthStencilDesc()) == key(depth_stencil=DepthStencilDesc2()) == key(blend=BlendDesc())
    assert key() == key(sample_mask=0xFFFFFFFF, sample_desc=SampleDesc(1, 0), node_mask=1) == key(node_mask=0)
    assert key() != key(node_mask=2)
    assert key(root_signature=b"rs") == key(serialized_root_signature=b"rs") != key()
    assert key(blend=BlendDesc(render_target=())) == key()
    wide = RasterizerDesc(multisample_enable=True, antialiased_line_enable=True)
    assert key(rasterizer=wide) == key(
        rasterizer=RasterizerDesc2(line_rasterization_mode=LineRasterizationMode.QUADRILATERAL_WIDE)
    )
    assert key(rasterizer=RasterizerDesc(antialiased_line_enable=True)) == key(
        rasterizer=RasterizerDesc2(line_rasterization_mode=LineRasterizationMode.ALPHA_ANTIALIASED)
    )
    assert key(rasterizer=RasterizerDesc(depth_bias=-3)) == key(rasterizer=RasterizerDesc1(depth_bias=-3.0))
    # 0.1 in single precision is 13421773 / 2**27.
    assert key(rasterizer=RasterizerDesc2(depth_bias=0.1)) == key(rasterizer=RasterizerDesc2(depth_bias=13421773 / (1 << 27)))
    assert key(rasterizer=RasterizerDesc2(depth_bias=-0.0)) == key()


def test_without_a_depth_format_the_depth_test_is_off_by_default() -> None:
    absent = PipelineStateStream(vs=b"v")
    assert object_key(absent) == object_key(PipelineStateStream(vs=b"v", depth_stencil=DepthStencilDesc(depth_enable=False)))
    assert object_key(absent) != object_key(PipelineStateStream(vs=b"v", depth_stencil=DepthStencilDesc(depth_enable=True)))


def test_order_counts_where_it_has_a_meaning() -> None:
    one, two = InputElementDesc("A", format=DxgiFormat.R32_FLOAT), InputElementDesc("B", format=DxgiFormat.R32_FLOAT)
    first, second = StreamOutputDeclarationEntry(semantic_name="A"), StreamOutputDeclarationEntry(semantic_name="B")
    formats = (DxgiFormat.R8_UNORM, DxgiFormat.R16_FLOAT)
    for field, forth, back in (
        ("input_layout", InputLayoutDesc((one, two)), InputLayoutDesc((two, one))),
        ("stream_output", StreamOutputDesc((first, second)), StreamOutputDesc((second, first))),
        ("stream_output", StreamOutputDesc(buffer_strides=(4, 8)), StreamOutputDesc(buffer_strides=(8, 4))),
        ("render_target_formats", RenderTargetFormats(formats), RenderTargetFormats(formats[::-1])),
    ):
        keys = {object_key(PipelineStateStream(vs=b"v", **{field: value})) for value in (forth, back)}
        assert len(keys) == 2, field


# State objects


@settings(max_examples=80, deadline=None)
@given(state_objects(), st.randoms(use_true_random=False))
def test_state_objects_survive_builtins_and_do_not_depend_on_order(desc: StateObjectDesc, rng: random.Random) -> None:
    assert from_builtins(to_builtins(desc), StateObjectDesc) == desc
    places = list(range(len(desc.subobjects)))
    rng.shuffle(places)
    moved = []
    for place in places:
        subobject = desc.subobjects[place]
        if isinstance(subobject, SubobjectToExportsAssociation):
            subobject = SubobjectToExportsAssociation(places.index(subobject.subobject), subobject.exports[::-1])
        if isinstance(subobject, DxilLibrary):
            subobject = DxilLibrary(subobject.bytecode, subobject.exports[::-1])
        moved.append(subobject)
    other = StateObjectDesc(desc.type, tuple(moved))
    assert object_key(other) == object_key(desc)
    assert object_key(desc.with_psdb(Session())) == object_key(desc)
    assert without_psdb(desc.with_psdb(Session())) == desc


@pytest.mark.parametrize("cls", PLAIN, ids=lambda cls: cls.__name__)
def test_every_field_of_a_subobject_changes_the_key(cls: type[Struct]) -> None:
    @settings(max_examples=8, deadline=None, database=None)
    @given(structs(cls))
    def check(subobject: Any) -> None:
        def key(one: Any) -> bytes:
            extra = (GenericProgram("Program", ("VSMain",), (0,)),) if cls in PROGRAM_STATES else ()
            return object_key(StateObjectDesc(StateObjectType.EXECUTABLE, (one, *extra)))

        for path, other in neighbours(subobject):
            if isinstance(subobject, NodeMask) and {subobject.node_mask, other.node_mask} <= {0, 1}:  # type: ignore[attr-defined]
                continue
            assert key(other) != key(subobject), path

    check()


def test_references_count_by_what_they_refer_to() -> None:
    def key(*subobjects: Any) -> bytes:
        return object_key(StateObjectDesc(StateObjectType.EXECUTABLE, subobjects))

    one, two = GlobalRootSignature(b"one"), GlobalRootSignature(b"two")
    forth = key(one, two, SubobjectToExportsAssociation(0, ("A",)))
    assert forth == key(two, one, SubobjectToExportsAssociation(1, ("A",)))
    assert forth != key(one, two, SubobjectToExportsAssociation(1, ("A",)))
    shared = key(SampleMask(5), GenericProgram("P", ("A", "B"), (0,)), GenericProgram("Q", ("C",), (0,)))
    apart = key(SampleMask(5), SampleMask(5), GenericProgram("P", ("B", "A"), (0,)), GenericProgram("Q", ("C",), (1,)))
    assert shared == apart
    assert key(SampleMask(5)) == key()
    assert key(GenericProgram("P", ("A",))) == key(SampleMask(), GenericProgram("P", ("A",), (0,)))
    for wrong in (
        (SubobjectToExportsAssociation(0, ("A",)),),
        (one, SubobjectToExportsAssociation(7)),
        (GenericProgram("P", (), (3,)),),
    ):
        with pytest.raises(InvalidArgumentError):
            key(*wrong)


def test_forms_of_one_subobject_give_one_key() -> None:
    def key(*subobjects: Any) -> bytes:
        return object_key(StateObjectDesc(StateObjectType.RAYTRACING_PIPELINE, subobjects))

    assert key(GlobalRootSignature(b"rs")) == key(GlobalSerializedRootSignature(b"rs")) != key()
    assert key(RaytracingPipelineConfig(3)) == key(RaytracingPipelineConfig1(3))
    assert key(RaytracingPipelineConfig(3)) != key(RaytracingPipelineConfig1(3, RaytracingPipelineFlags.SKIP_TRIANGLES))
    assert key() == key(StateObjectConfig()) == key(NodeMask(1)) == key(NodeMask(0)) != key(NodeMask(2))
    library = DxilLibrary(b"code", (ExportDesc("A"), ExportDesc("B", "C")))
    assert key(library) == key(DxilLibrary(b"code", (ExportDesc("B", "C"), ExportDesc("A"))))


def test_collections_and_parents_count_by_their_own_key() -> None:
    collection = StateObjectDesc(StateObjectType.COLLECTION, (DxilLibrary(b"code"),))
    own = StateObjectDesc(StateObjectType.EXECUTABLE, (ExistingCollection(collection, (ExportDesc("A"),)),))
    compiler = StateObjectDesc(StateObjectType.EXECUTABLE, (CompilerExistingCollection(collection, (ExportDesc("A"),)),))
    by_key = StateObjectDesc(StateObjectType.EXECUTABLE, (ExistingCollectionByKey(b"name", (ExportDesc("A"),)),))
    assert object_key(own) == object_key(compiler) == object_key(by_key, collections={b"name": object_key(collection)})
    assert object_key(own) != object_key(by_key)
    addition = StateObjectDesc(StateObjectType.EXECUTABLE, (HitGroup("Hit"), RaytracingShaderConfig(4, 8)))
    keys = {object_key(addition, parent=parent) for parent in (None, object_key(own), object_key(collection))}
    assert len(keys) == 3


def test_keys_stay_the_same_from_run_to_run() -> None:
    # A key that is stored in a database must be found again; a change here needs another prefix.
    stream = PipelineStateStream(vs=b"VS", ps=b"PS", render_target_formats=RenderTargetFormats((DxgiFormat.R8G8B8A8_UNORM,)))
    assert object_key(stream).hex() == "2d765c5a7e89c5e04c0f069c86150eda2ca22239329dd3c64a0f7a8d77aef70e"
    desc = StateObjectDesc(StateObjectType.RAYTRACING_PIPELINE, (DxilLibrary(b"code"), RaytracingPipelineConfig(1)))
    assert object_key(desc).hex() == "e68d4416e93cd119e22df97f8fcf1e03cbd3c4a595c4a1e92716c65286a3893e"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"class": "PipelineStateStream", "depth_stencil_format": 77777}, "77777.*depth_stencil_format"),
        ({"class": "PipelineStateStream", "vs": 3}, r"bytes.*\$\.vs"),
        ({"class": "PipelineStateStream", "rasterizer": {"class": "Nothing"}}, "Nothing.*rasterizer"),
        ([], "object"),
    ],
)
def test_builtins_that_are_no_desc_are_refused_with_place_and_value(value: Any, message: str) -> None:
    with pytest.raises(DamagedInputError, match=message):
        from_builtins(value, PipelineStateStream)


@pytest.mark.parametrize("value", [1 << 70, object()])
def test_values_that_cannot_be_encoded_give_no_key(value: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        object_key(PipelineStateStream(vs=b"v", sample_mask=value))
    with pytest.raises(InvalidArgumentError):
        object_key(PipelineStateStream(vs=b"v", rasterizer=RasterizerDesc2(depth_bias=object())))  # type: ignore[arg-type]
