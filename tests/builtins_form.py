"""Descriptions as plain builtins and back, with nothing lost.

Plain means dictionaries, lists, numbers, text, bytes and None. A PSDB subobject names a session of this process, so it is left out.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from shaderkiln.descriptions.direct3d12.enums import StateSubobjectType
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import COLLECTIONS, StateObjectDesc
from shaderkiln.errors import DamagedInputError

_Desc = TypeVar("_Desc")
_Described = TypeVar("_Described", PipelineStateStream, StateObjectDesc)


def to_builtins(desc: _Described) -> dict[str, Any]:
    """A desc as builtins, without its PSDB subobject."""
    return msgspec.to_builtins(without_psdb(desc), builtin_types=(bytes,))  # type: ignore[no-any-return]


def without_psdb(desc: _Described) -> _Described:
    """The same desc without its PSDB subobject, and without those of the collections in it."""
    if isinstance(desc, PipelineStateStream):
        return desc if desc.psdb is None else msgspec.structs.replace(desc, psdb=None)
    desc = desc.remove_subobjects_by_type(StateSubobjectType.PSDB)
    if not any(isinstance(subobject, COLLECTIONS) for subobject in desc.subobjects):
        return desc
    return msgspec.structs.replace(
        desc,
        subobjects=tuple(
            msgspec.structs.replace(subobject, collection=without_psdb(subobject.collection))
            if isinstance(subobject, COLLECTIONS)
            else subobject
            for subobject in desc.subobjects
        ),
    )


def from_builtins(value: Any, cls: type[_Desc]) -> _Desc:
    """A desc, or any part of one, from builtins.

    Raises DamagedInputError, naming field and value, for anything that is none. Values that the types allow and Direct3D 12 does
    not are found by ``validation.validate``.
    """
    try:
        return msgspec.convert(value, cls)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DamagedInputError(f"no {cls.__name__}: {error}") from None
