"""The key of a Direct3D 12 pipeline state or state object: a digest of everything that decides what is compiled.

Left out are the PSDB subobject, the cached blob of an earlier driver, and states that nothing in a state object refers to. Put in
one form are: absent subobjects and their defaults; the older and newer forms of rasterizer, depth-stencil and ray tracing
pipeline config; root signatures as objects and as serialized blobs; node masks 0 and 1, which both mean the first node; floating
point numbers, which count in single precision. The order of subobjects and of exports has no meaning and does not matter; that of
input elements, stream output declarations and strides, views, entry points and nodes has one and does.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from shaderkiln.descriptions.direct3d12.pipeline_state import STAGE_FIELDS, PipelineStateStream
from shaderkiln.descriptions.direct3d12.psdb_subobject import ShaderCacheSessionSubobjectDesc
from shaderkiln.descriptions.direct3d12.state_object import (
    COLLECTIONS,
    PROGRAM_STATES,
    DxilLibrary,
    DxilSubobjectToExportsAssociation,
    ExistingCollectionByKey,
    GenericProgram,
    GlobalRootSignature,
    GlobalSerializedRootSignature,
    LocalRootSignature,
    LocalSerializedRootSignature,
    RaytracingPipelineConfig,
    RaytracingPipelineConfig1,
    StateObjectConfig,
    StateObjectDesc,
    StateSubobject,
    SubobjectToExportsAssociation,
)
from shaderkiln.descriptions.direct3d12.states import BlendDesc, DepthStencilDesc, DepthStencilDesc1, NodeMask
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.keys import ObjectKey

PREFIX: Final = b"shaderkiln direct3d12 object 1\0"


def object_key(
    desc: PipelineStateStream | StateObjectDesc,
    *,
    parent: bytes | None = None,
    collections: Mapping[bytes, bytes] | None = None,
) -> ObjectKey:
    """SHA-256 of the canonical form of a desc.

    ``parent`` is the object key of the state object that an addition grows (AddToStateObject). ``collections`` maps database keys
    to object keys, so that a collection by key counts like the collection itself; one that is not in it counts by its key.
    Raises InvalidArgumentError for a desc that refers to no subobject, or that holds what cannot be encoded.
    """
    try:
        if isinstance(desc, PipelineStateStream):
            content: list[Any] = ["pipeline state", *_stream(desc)]
        else:
            content = ["state object", parent, *_state_object(desc, collections or {})]
        return ObjectKey(_digest(content))
    except RecursionError:
        raise InvalidArgumentError("collections are nested too deep") from None


def _digest(content: Any) -> bytes:
    try:
        return hashlib.sha256(PREFIX + msgspec.msgpack.encode(content)).digest()
    except (OverflowError, TypeError, UnicodeEncodeError) as error:
        raise InvalidArgumentError(f"the desc holds what cannot be encoded: {error}") from None


def _stream(desc: PipelineStateStream) -> list[Any]:
    full = desc.with_defaults()
    return _fields(
        msgspec.structs.replace(
            full,
            root_signature=full.root_signature_blob,
            serialized_root_signature=None,
            node_mask=_folded(full.node_mask or 0),
            blend=full.blend and _blend(full.blend),
            cached_pso=None,
            psdb=None,
            **{stage: getattr(full, stage) or None for stage in STAGE_FIELDS},
        )
    )


def _state_object(desc: StateObjectDesc, collections: Mapping[bytes, bytes]) -> list[Any]:
    def digest(subobject: StateSubobject) -> bytes:
        if isinstance(subobject, GenericProgram):
            states = _stream(desc.states_of(subobject))
            return _digest([int(subobject.subobject_type), subobject.program_name, sorted(set(subobject.exports)), states])
        if isinstance(subobject, SubobjectToExportsAssociation):
            index = subobject.subobject
            if not 0 <= index < len(desc.subobjects):
                raise InvalidArgumentError(f"subobjects[{index}] is referred to and not there")
            target = desc.subobjects[index]
            if isinstance(target, SubobjectToExportsAssociation):
                raise InvalidArgumentError(f"subobjects[{index}] is an association, which nothing can be associated with")
            return _digest([int(subobject.subobject_type), digest(target), sorted(set(subobject.exports))])
        return _digest(_subobject(subobject, collections))

    counting = filter(_counts, desc.subobjects)
    return [int(desc.type), sorted(set(map(digest, counting)))]


def _counts(subobject: StateSubobject) -> bool:
    if isinstance(subobject, NodeMask):
        return _folded(subobject.node_mask) != 0
    if isinstance(subobject, StateObjectConfig):
        return bool(subobject.flags)
    return not isinstance(subobject, (ShaderCacheSessionSubobjectDesc, *PROGRAM_STATES))


def _subobject(subobject: Any, collections: Mapping[bytes, bytes]) -> list[Any]:
    if isinstance(subobject, (GlobalSerializedRootSignature, LocalSerializedRootSignature)):
        is_global = isinstance(subobject, GlobalSerializedRootSignature)
        subobject = GlobalRootSignature(subobject.blob) if is_global else LocalRootSignature(subobject.blob)
    elif isinstance(subobject, RaytracingPipelineConfig):
        subobject = RaytracingPipelineConfig1(subobject.max_trace_recursion_depth)
    elif isinstance(subobject, (DepthStencilDesc, DepthStencilDesc1)):
        subobject = subobject.to_desc2()
    elif isinstance(subobject, BlendDesc):
        subobject = _blend(subobject)
    elif isinstance(subobject, NodeMask):
        subobject = NodeMask(_folded(subobject.node_mask))
    head = int(subobject.subobject_type)
    if isinstance(subobject, DxilLibrary):
        return [head, _plain(subobject.bytecode), _sorted(subobject.exports)]
    if isinstance(subobject, COLLECTIONS):
        key = object_key(subobject.collection, collections=collections)
        return ["collection", bytes(key), _sorted(subobject.exports)]
    if isinstance(subobject, ExistingCollectionByKey):
        found = collections.get(subobject.key)
        if found is not None:
            return ["collection", bytes(found), _sorted(subobject.exports)]
        return [head, subobject.key, _sorted(subobject.exports)]
    if isinstance(subobject, DxilSubobjectToExportsAssociation):
        return [head, subobject.subobject, sorted(set(subobject.exports))]
    return [head, *_fields(subobject)]


def _blend(desc: BlendDesc) -> BlendDesc:
    return msgspec.structs.replace(desc, render_target=desc.render_targets())


def _folded(node_mask: int) -> int:
    return 0 if node_mask == 1 else node_mask


def _sorted(exports: tuple[Struct, ...]) -> list[Any]:
    return sorted({msgspec.msgpack.encode(_plain(export)) for export in exports})


def _fields(value: Struct) -> list[Any]:
    found: list[Any] = []
    for name, kind in _kinds(type(value)):
        field = getattr(value, name)
        if field is None:
            found.append(None)
        elif kind is float:
            found.append(_single(field))
        elif kind is bool:
            found.append(bool(field))
        else:
            found.append(_plain(field))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return _fields(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return hashlib.sha256(value).digest()
    if isinstance(value, int):
        return int(value)
    return value


@cache
def _kinds(cls: type[Struct]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, _kind(field.type)) for field in msgspec.structs.fields(cls))


def _kind(annotation: Any) -> Any:
    return next((kind for kind in (bool, float) if annotation is kind or annotation == kind | None), None)


def _single(value: float) -> float:
    """The value in single precision; both zeros are one."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0]) + 0.0
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except struct.error as error:
        raise InvalidArgumentError(f"{value!r} is no number: {error}") from None
