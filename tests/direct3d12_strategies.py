"""Descs for property tests: every field of every class, with values that Direct3D 12 could be given."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st
from msgspec import Struct

from shaderkiln.descriptions.direct3d12.enums import StateObjectType
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.psdb_subobject import ShaderCacheSessionSubobjectDesc
from shaderkiln.descriptions.direct3d12.state_object import (
    SUBOBJECT_CLASSES,
    CompilerExistingCollection,
    ExistingCollection,
    GenericProgram,
    StateObjectDesc,
    SubobjectToExportsAssociation,
)

_NAMES = st.text("abcXYZ019_", min_size=1, max_size=5)


def values(annotation: Any, name: str = "") -> st.SearchStrategy[Any]:
    """Values of one annotation."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [st.none() if part is NoneType else values(part, name) for part in get_args(annotation)]
        return st.one_of(*parts)
    if get_origin(annotation) is tuple:
        arguments = get_args(annotation)
        if arguments[-1] is not Ellipsis:
            return st.tuples(*(values(argument, name) for argument in arguments))
        items = st.lists(values(arguments[0], name), max_size=8 if name == "render_target" else 3)
        return items.map(tuple)
    if issubclass(annotation, IntFlag):
        known = 0
        for member in annotation:
            known |= member
        return st.integers(0, known).map(lambda bits: annotation(bits & known))
    if issubclass(annotation, IntEnum):
        return st.sampled_from(annotation)
    if issubclass(annotation, Struct):
        return structs(annotation)
    if annotation is int:
        return st.integers(0, 255)
    if annotation is float:
        return st.floats(-1000, 1000, width=32)
    return {bool: st.booleans(), str: _NAMES, bytes: st.binary(min_size=1, max_size=6)}[annotation]


def structs(cls: type[Struct], leave_out: frozenset[str] = frozenset()) -> st.SearchStrategy[Any]:
    fields = {
        field.name: values(field.type, field.name) for field in msgspec.structs.fields(cls) if field.name not in leave_out
    }
    return st.builds(cls, **fields)


def streams() -> st.SearchStrategy[PipelineStateStream]:
    return structs(PipelineStateStream, frozenset({"psdb"}))


_HELD = (ExistingCollection, CompilerExistingCollection)
_LEFT_OUT = (*_HELD, ShaderCacheSessionSubobjectDesc, GenericProgram, SubobjectToExportsAssociation)
PLAIN = tuple(cls for cls in SUBOBJECT_CLASSES.values() if cls not in _LEFT_OUT)


@st.composite
def state_objects(draw: st.DrawFn, nested: bool = True) -> StateObjectDesc:
    plain = draw(st.lists(st.one_of(*map(structs, PLAIN)), max_size=5))
    if nested and draw(st.booleans()):
        plain.append(draw(st.sampled_from(_HELD))(draw(state_objects(nested=False))))
    if plain and draw(st.booleans()):
        plain.append(SubobjectToExportsAssociation(draw(st.integers(0, len(plain) - 1)), draw(values(tuple[str, ...]))))
    return StateObjectDesc(draw(st.sampled_from(StateObjectType)), tuple(plain))
