"""Hypothesis strategies for every field of Direct3D 12 descriptions, made from the types themselves."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.psdb_subobject import ShaderCacheSessionSubobjectDesc
from shaderkiln.descriptions.direct3d12.state_object import (
    PROGRAM_STATES,
    DxilLibrary,
    DxilSubobjectToExportsAssociation,
    ExistingCollectionByKey,
    GenericProgram,
    GlobalRootSignature,
    GlobalSerializedRootSignature,
    HitGroup,
    LocalRootSignature,
    LocalSerializedRootSignature,
    NodeOverrides,
    RaytracingPipelineConfig,
    RaytracingPipelineConfig1,
    RaytracingShaderConfig,
    StateObjectConfig,
    StateObjectDesc,
    StateObjectType,
    SubobjectToExportsAssociation,
    WorkGraph,
)
from shaderkiln.descriptions.direct3d12.states import NodeMask, StreamOutputDeclarationEntry

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5) | st.sampled_from("abc")
UINTS = st.integers(0, 3) | st.integers(0, 0xFFFFFFFF)
KEYS = st.binary(min_size=1, max_size=6)
LENGTHS = {"render_target": 8, "formats": 8, "buffer_strides": 4, "view_instance_locations": 4}
NOT_STORED = {"psdb", "cached_pso"}


def of(annotation: Any, field: str = "") -> st.SearchStrategy[Any]:
    """Values of a field's type that a database can hold."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return st.one_of([of(each, field) for each in arguments])
    if origin is tuple:
        if Ellipsis in arguments:
            return st.lists(of(arguments[0]), max_size=LENGTHS.get(field, 4)).map(tuple)
        return st.tuples(*map(of, arguments))
    if annotation is NoneType:
        return st.none()
    if annotation is bool:
        return st.booleans()
    if annotation is float:
        return st.floats(width=32, allow_nan=False)
    if annotation is str:
        return NAMES
    if annotation is bytes:
        return st.binary(max_size=8)
    if annotation is int:
        return UINTS
    if issubclass(annotation, IntEnum):
        return st.sampled_from(list(annotation))
    if issubclass(annotation, IntFlag):
        return st.sampled_from([annotation(0), *annotation, annotation(sum({int(each) for each in annotation}) & 0xFFFFFFFF)])
    return struct(annotation)


def struct(cls: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    fields = {each.name: of(each.type, each.name) for each in msgspec.structs.fields(cls) if each.name not in NOT_STORED}
    if cls is StreamOutputDeclarationEntry:
        fields["semantic_name"] = st.none() | NAMES
    return st.builds(cls, **fields)


STREAMS = struct(PipelineStateStream)
_MEMBERS = [
    struct(cls)
    for cls in (
        GlobalRootSignature,
        LocalRootSignature,
        GlobalSerializedRootSignature,
        LocalSerializedRootSignature,
        DxilLibrary,
        DxilSubobjectToExportsAssociation,
        RaytracingShaderConfig,
        RaytracingPipelineConfig,
        RaytracingPipelineConfig1,
        HitGroup,
        *PROGRAM_STATES,
    )
]
_ASSOCIABLE = (
    StateObjectConfig,
    NodeMask,
    GlobalRootSignature,
    LocalRootSignature,
    GlobalSerializedRootSignature,
    LocalSerializedRootSignature,
    RaytracingShaderConfig,
    RaytracingPipelineConfig,
    RaytracingPipelineConfig1,
)


@st.composite
def state_objects(draw: st.DrawFn, collections: tuple[bytes, ...] = ()) -> StateObjectDesc:
    """State objects with any subobjects, programs and associations in any order."""
    parts: list[Any] = draw(st.lists(st.one_of(_MEMBERS), max_size=8))
    parts += draw(st.lists(struct(StateObjectConfig), max_size=1)) + draw(st.lists(struct(NodeMask), max_size=1))
    if collections:
        keys = draw(st.lists(st.sampled_from(collections), max_size=2))
        exports = struct(DxilLibrary).map(lambda library: library.exports)
        parts += [ExistingCollectionByKey(key, draw(exports)) for key in keys]
    # Two lists of exports of one library are found as one: a database keeps (library, export) pairs.
    libraries = {getattr(part, "bytecode", None) or getattr(part, "key", index): part for index, part in enumerate(parts)}
    parts = draw(st.permutations(list(libraries.values())))
    strings = st.lists(NAMES, max_size=3).map(tuple)
    for _ in range(draw(st.integers(0, 2))):
        states: dict[str, int] = {}
        for index, part in enumerate(parts):
            if type(part) in PROGRAM_STATES and draw(st.booleans()):
                states.setdefault(PROGRAM_STATES[type(part)][0], index)
        parts.append(GenericProgram(draw(NAMES), draw(strings), tuple(draw(st.permutations(list(states.values()))))))
    for index, part in enumerate(list(parts)):
        if isinstance(part, _ASSOCIABLE) and draw(st.booleans()):
            parts.append(SubobjectToExportsAssociation(index, draw(strings)))
    parts += draw(st.lists(struct(WorkGraph), max_size=1))
    return StateObjectDesc(draw(st.sampled_from(StateObjectType)), tuple(parts))


def pruned(desc: StateObjectDesc) -> StateObjectDesc:
    """Without what means the same as nothing: node overrides that override nothing."""

    def nodes(graph: WorkGraph) -> WorkGraph:
        return msgspec.structs.replace(
            graph,
            explicitly_defined_nodes=tuple(
                msgspec.structs.replace(node, overrides=None) if node.overrides == NodeOverrides(0) else node  # type: ignore[arg-type]
                for node in graph.explicitly_defined_nodes
            ),
        )

    return StateObjectDesc(desc.type, tuple(nodes(part) if isinstance(part, WorkGraph) else part for part in desc.subobjects))


__all__ = ["KEYS", "STREAMS", "ShaderCacheSessionSubobjectDesc", "pruned", "state_objects", "struct"]
