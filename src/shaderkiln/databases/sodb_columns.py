"""How the fields of descriptions look in columns of a state object database."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import IntEnum, IntFlag
from types import NoneType
from typing import Any, Final, NamedTuple, get_args, get_origin

from msgspec import Struct, structs

from shaderkiln.descriptions.direct3d12 import enums
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import (
    ExportDesc,
    GlobalSerializedRootSignature,
    HitGroup,
    LocalSerializedRootSignature,
    MaxNodeInputRecords,
    Node,
    NodeId,
    NodeOutputOverrides,
    NodeOverrides,
    RaytracingPipelineConfig1,
    RaytracingShaderConfig,
    StateObjectConfig,
)
from shaderkiln.descriptions.direct3d12.states import (
    DepthStencilDesc2,
    DepthStencilOpDesc1,
    InputElementDesc,
    NodeMask,
    RasterizerDesc2,
    RenderTargetBlendDesc,
    RenderTargetFormats,
    SampleDesc,
    StreamOutputDeclarationEntry,
)
from shaderkiln.errors import DamagedInputError, InvalidArgumentError

from . import sodb_schema as schema

UINT32_MAXIMUM: Final = 0xFFFFFFFF
MAXIMUM_KEY_SIZE: Final = 1 << 16
Field = str | int | float | bytes | None


class Codec(NamedTuple):
    """A field's value to its column and back. ``encode`` raises ValueError or TypeError, ``decode`` as well."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    width: int = 1
    """Columns; with more than one, ``encode`` gives and ``decode`` takes a sequence."""


def _encode_int(value: Any) -> int:
    number = int(value)
    if isinstance(value, float) or not 0 <= number <= UINT32_MAXIMUM:
        raise ValueError("not an unsigned 32-bit integer")
    return number


def _decode_int(value: Any) -> int:
    if not isinstance(value, int):
        raise ValueError("not an integer")
    # A writer may have bound the 32 bits as a signed integer.
    number = value + (1 << 32) if -(1 << 31) <= value < 0 else value
    return _encode_int(number)


def _decode_bool(value: Any) -> bool:
    if not isinstance(value, int):
        raise ValueError("not an integer")
    return value != 0


def _encode_real(value: Any) -> float:
    number = float(value)
    if math.isnan(number):
        raise ValueError("not a number")
    return number


def _decode_real(value: Any) -> float:
    if not isinstance(value, (int, float)):
        raise ValueError("not a number")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    value.encode()
    if "\0" in value:
        raise ValueError("text with a NUL")
    return value


def _blob(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("not bytes")
    return value


def enumeration(cls: type[IntEnum]) -> Codec:
    """Enumerants, and 0, which a state that is switched off may hold in place of one."""

    def decode(value: Any) -> int:
        number = _decode_int(value)
        return cls(number) if number or 0 in cls._value2member_map_ else 0

    return Codec(lambda value: int(decode(int(value))), decode)


def flags(cls: type[IntFlag]) -> Codec:
    return Codec(_encode_int, lambda value: cls(_decode_int(value)))


def optional(codec: Codec) -> Codec:
    """The same, and NULL for None."""
    return Codec(
        lambda value: None if value is None else codec.encode(value),
        lambda value: None if value is None else codec.decode(value),
    )


UINT: Final = Codec(_encode_int, _decode_int)
BOOL: Final = Codec(lambda value: int(bool(value)), _decode_bool)
REAL: Final = Codec(_encode_real, _decode_real)
TEXT: Final = Codec(_text, _text)
BLOB: Final = Codec(_blob, _blob)
# A gap of stream output has no name; the column allows no NULL.
_GAP: Final = (StreamOutputDeclarationEntry, "semantic_name")
_GAP_NAME: Final = Codec(lambda value: "" if value is None else _text(value), lambda value: _text(value) or None)


def _encode_grid(grid: tuple[int, int, int] | None) -> tuple[Field, ...]:
    if grid is not None and len(grid) != 3:
        raise ValueError("not three dimensions")
    return (None, None, None) if grid is None else tuple(map(_encode_int, grid))


def _decode_grid(columns: Sequence[Any]) -> tuple[int, ...] | None:
    grid = tuple(_decode_int(value) for value in columns if value is not None)
    return grid if len(grid) == 3 else None


_GRID: Final = Codec(_encode_grid, _decode_grid, 3)


def _counted(codec: Codec, most: int) -> Codec:
    """Up to ``most`` values with zeros behind them, and how many there are."""

    def encode(values: Sequence[Any]) -> tuple[Field, ...]:
        if len(values) > most:
            raise ValueError(f"more than {most}")
        return (*map(codec.encode, values), *[0] * (most - len(values)), len(values))

    def decode(columns: Sequence[Any]) -> tuple[Any, ...]:
        count = _decode_int(columns[most])
        if count > most:
            raise ValueError(f"more than {most}")
        return tuple(map(codec.decode, columns[:count]))

    return Codec(encode, decode, most + 1)


class Reference(NamedTuple):
    """A struct in a row of its own, whose key is in the column."""

    cls: type[Struct]
    key: Codec = BLOB
    width: int = 1


Fields = tuple[tuple[str, Codec | Reference], ...]
"""The fields of a struct and what they are in columns, in the order of the columns."""


_PLAIN: Final = {int: UINT, bool: BOOL, float: REAL, str: TEXT, bytes: BLOB}


def _column(annotation: Any) -> Codec | Reference:
    """What a field of that type is in columns. Of several forms of a struct the newest is stored, which a union names last."""
    members = [each for each in get_args(annotation) if each is not NoneType]
    if get_origin(annotation) is tuple:
        return _GRID
    if members:
        part = _column(members[-1])
        if isinstance(part, Reference):
            return Reference(part.cls, optional(BLOB))
        return part if part.width > 1 else optional(part)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if issubclass(annotation, IntEnum):
        return enumeration(annotation)
    if issubclass(annotation, IntFlag):
        return flags(annotation)
    if annotation in (SampleDesc, MaxNodeInputRecords):
        return _spread(annotation)
    return Reference(annotation)


def _spread(cls: type[Struct]) -> Codec:
    """A struct in columns of its owner: all NULL for None, and what is NULL without need has its default."""
    columns = [(field.name, _PLAIN[field.type]) for field in structs.fields(cls)]

    def encode(value: Any) -> tuple[Field, ...]:
        return tuple(None if value is None else codec.encode(getattr(value, field)) for field, codec in columns)

    def decode(values: Sequence[Any]) -> Any:
        found = {field: codec.decode(value) for (field, codec), value in zip(columns, values, strict=True) if value is not None}
        needed = [field.name for field in structs.fields(cls) if field.required]
        return cls(**found) if found and found.keys() >= set(needed) else None

    return Codec(encode, decode, len(columns))


def fields_of(cls: type[Struct], names: Sequence[str] = ()) -> Fields:
    """All fields of a struct, or those named, as they are in columns."""
    types = {field.name: field.type for field in structs.fields(cls)}
    return tuple((name, _GAP_NAME if (cls, name) == _GAP else _column(types[name])) for name in names or types)


class RowType(NamedTuple):
    """A table whose columns are the fields of a struct."""

    table: str
    fields: Fields


_TABLES: Final[dict[type[Struct], str]] = {
    InputElementDesc: "input_element_descs",
    ExportDesc: "exports",
    DepthStencilOpDesc1: "depth_stencil_op_descs",
    DepthStencilDesc2: "depth_stencil_descs",
    RenderTargetBlendDesc: "render_target_blend_descs",
    RasterizerDesc2: "rasterizer_descs",
    StreamOutputDeclarationEntry: "so_declarations",
    HitGroup: "rt_hit_groups",
    RaytracingShaderConfig: "rt_shader_config",
    RaytracingPipelineConfig1: "rt_pipeline_config",
    NodeId: "node_ids",
    NodeOutputOverrides: "node_output_overrides",
    GlobalSerializedRootSignature: "root_signatures",
    LocalSerializedRootSignature: "root_signatures",
}
_FORMATS: Final = _counted(enumeration(enums.DxgiFormat), 8)
ROW_TYPES: Final[dict[type[Struct], RowType]] = {
    RenderTargetFormats: RowType("render_target_formats", (("formats", _FORMATS),)),
    **{cls: RowType(table, fields_of(cls)) for cls, table in _TABLES.items()},
}
"""Fields and columns are in the same order."""
STREAM_OUTPUT: Final[Fields] = (("buffer_strides", _counted(UINT, 4)), ("rasterized_stream", UINT))
"""Table ``stream_out_descs``; declarations have rows of their own."""
NODE: Final = fields_of(Node, ("shader", "node_type"))
"""The first columns of table ``shader_nodes``."""
NODE_OVERRIDES: Final = fields_of(
    NodeOverrides, [name for name in NodeOverrides.__struct_fields__ if name != "output_overrides"]
)
"""The others."""
STATES: Final = fields_of(
    PipelineStateStream,
    [
        "input_layout",
        "depth_stencil",
        "render_target_formats",
        "blend",
        "rasterizer",
        "view_instancing",
        "stream_output",
        "sample_desc",
        "sample_mask",
        "ib_strip_cut_value",
        "primitive_topology",
        "depth_stencil_format",
        "node_mask",
        "flags",
    ],
)
"""What pipeline states and generic programs share, in the order of the columns. NULL is None."""
STATE_COLUMNS: Final = schema.COLUMNS["generic_programs"][1:]
"""The columns of ``STATES``. In ``pipeline_states`` bytecodes stand after the first one."""
STAGES: Final = ("vs", "ps", "hs", "ds", "gs", "as_", "ms", "cs")
"""In the order of the columns ``ByteCode_…``."""
STATE_OBJECT_TYPE: Final = enumeration(enums.StateObjectType)
STATE_OBJECT_FLAGS: Final = flags(enums.StateObjectFlags)
VIEW_INSTANCING_FLAGS: Final = flags(enums.ViewInstancingFlags)
WORK_GRAPH_FLAGS: Final = flags(enums.WorkGraphFlags)
MEMBER_TABLES: Final[dict[type[Struct], str]] = {
    GlobalSerializedRootSignature: "so_to_global_rs_associations",
    LocalSerializedRootSignature: "so_to_local_rs_associations",
    RaytracingShaderConfig: "so_to_rt_shader_config_associations",
    RaytracingPipelineConfig1: "so_to_rt_pipeline_config_associations",
    HitGroup: "so_to_hit_group_associations",
}
"""The subobjects that are one row each, and what joins them to their state objects."""
_TYPE = enums.StateSubobjectType
ASSOCIATED_TYPES: Final[dict[type[Struct], enums.StateSubobjectType]] = {
    StateObjectConfig: _TYPE.STATE_OBJECT_CONFIG,
    NodeMask: _TYPE.NODE_MASK,
    GlobalSerializedRootSignature: _TYPE.GLOBAL_SERIALIZED_ROOT_SIGNATURE,
    LocalSerializedRootSignature: _TYPE.LOCAL_SERIALIZED_ROOT_SIGNATURE,
    RaytracingShaderConfig: _TYPE.RAYTRACING_SHADER_CONFIG,
    RaytracingPipelineConfig1: _TYPE.RAYTRACING_PIPELINE_CONFIG1,
}
"""The subobjects that exports are associated with, and the type under which the database has them."""


def encode(codec: Codec, value: Any, where: str) -> Any:
    """A value for its column. Raises InvalidArgumentError, which names field and value."""
    try:
        return codec.encode(value)
    except (ValueError, TypeError) as error:
        shown = f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)[:100]
        raise InvalidArgumentError(f"{where}: {shown} cannot be stored: {error}") from None


def decode(codec: Codec, value: Any, where: str) -> Any:
    """A value from its column. Raises DamagedInputError, which names table, column and value."""
    try:
        return codec.decode(value)
    except (ValueError, TypeError) as error:
        raise DamagedInputError(f"{where}: {str(value)[:100]!r} is not allowed: {error}") from None


def check_key(key: object, what: str = "key") -> bytes:
    """The key of an object if it is one to 65536 bytes. Raises InvalidArgumentError."""
    if not isinstance(key, bytes) or not 0 < len(key) <= MAXIMUM_KEY_SIZE:
        raise InvalidArgumentError(f"{what}: a key is 1 to {MAXIMUM_KEY_SIZE} bytes")
    return key
