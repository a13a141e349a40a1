"""How the fields of descriptions look in columns of a state object database."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import IntEnum, IntFlag
from typing import Any, Final, NamedTuple

from msgspec import Struct

from shaderkiln.descriptions.direct3d12 import enums
from shaderkiln.descriptions.direct3d12.state_object import (
    ExportDesc,
    GlobalSerializedRootSignature,
    HitGroup,
    LocalSerializedRootSignature,
    MaxNodeInputRecords,
    NodeId,
    NodeOutputOverrides,
    RaytracingPipelineConfig1,
    RaytracingShaderConfig,
    StateObjectConfig,
)
from shaderkiln.descriptions.direct3d12.states import (
    BlendDesc,
    DepthStencilDesc2,
    DepthStencilOpDesc1,
    InputElementDesc,
    InputLayoutDesc,
    NodeMask,
    RasterizerDesc2,
    RenderTargetBlendDesc,
    RenderTargetFormats,
    SampleDesc,
    StreamOutputDeclarationEntry,
    StreamOutputDesc,
    ViewInstancingDesc,
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
_GAP_NAME: Final = Codec(lambda value: "" if value is None else _text(value), lambda value: _text(value) or None)


class Reference(NamedTuple):
    """A struct in a row of its own, whose key is in the column."""

    cls: type[Struct]
    key: Codec = BLOB
    width: int = 1


Fields = tuple[tuple[str, Codec | Reference], ...]
"""The fields of a struct and what they are in columns, in the order of the columns."""


class RowType(NamedTuple):
    """A table whose columns are the fields of a struct."""

    table: str
    fields: Fields


def _row(table: str, **fields: Codec | Reference) -> RowType:
    assert sum(part.width for part in fields.values()) == len(schema.COLUMNS[table])
    return RowType(table, tuple(fields.items()))


def _encode_sample(desc: SampleDesc | None) -> tuple[Field, Field]:
    return (None, None) if desc is None else (_encode_int(desc.count), _encode_int(desc.quality))


def _decode_sample(columns: Sequence[Any]) -> SampleDesc | None:
    if columns[0] is None and columns[1] is None:
        return None
    return SampleDesc(
        *(default if value is None else _decode_int(value) for value, default in zip(columns, (1, 0), strict=True))
    )


def _encode_grid(grid: tuple[int, int, int] | None) -> tuple[Field, ...]:
    if grid is None:
        return (None, None, None)
    if len(grid) != 3:
        raise ValueError("not three dimensions")
    return tuple(map(_encode_int, grid))


def _decode_grid(columns: Sequence[Any]) -> tuple[int, ...] | None:
    grid = tuple(_decode_int(value) for value in columns if value is not None)
    return grid if len(grid) == 3 else None


def _encode_records(records: MaxNodeInputRecords | None) -> tuple[Field, Field]:
    return (
        (None, None)
        if records is None
        else (_encode_int(records.record_count), int(bool(records.count_shared_across_node_array)))
    )


def _decode_records(columns: Sequence[Any]) -> MaxNodeInputRecords | None:
    count, shared = columns
    return None if count is None else MaxNodeInputRecords(_decode_int(count), shared is not None and _decode_bool(shared))


_STENCIL: Final = enumeration(enums.StencilOp)
_BLEND: Final = enumeration(enums.Blend)
_BLEND_OP: Final = enumeration(enums.BlendOp)
_COMPARISON: Final = enumeration(enums.ComparisonFunc)
FORMAT: Final = enumeration(enums.DxgiFormat)

_GRID: Final = Codec(_encode_grid, _decode_grid, 3)
_NODE_ID: Final = Reference(NodeId, optional(BLOB))

ROW_TYPES: Final[dict[type[Struct], RowType]] = {
    InputElementDesc: _row(
        "input_element_descs",
        semantic_name=TEXT,
        semantic_index=UINT,
        format=FORMAT,
        input_slot=UINT,
        aligned_byte_offset=UINT,
        input_slot_class=enumeration(enums.InputClassification),
        instance_data_step_rate=UINT,
    ),
    ExportDesc: _row("exports", name=TEXT, export_to_rename=optional(TEXT), flags=flags(enums.ExportFlags)),
    DepthStencilOpDesc1: _row(
        "depth_stencil_op_descs",
        stencil_fail_op=_STENCIL,
        stencil_depth_fail_op=_STENCIL,
        stencil_pass_op=_STENCIL,
        stencil_func=_COMPARISON,
        stencil_read_mask=UINT,
        stencil_write_mask=UINT,
    ),
    RenderTargetBlendDesc: _row(
        "render_target_blend_descs",
        blend_enable=BOOL,
        logic_op_enable=BOOL,
        src_blend=_BLEND,
        dest_blend=_BLEND,
        blend_op=_BLEND_OP,
        src_blend_alpha=_BLEND,
        dest_blend_alpha=_BLEND,
        blend_op_alpha=_BLEND_OP,
        logic_op=enumeration(enums.LogicOp),
        render_target_write_mask=flags(enums.ColorWriteEnable),
    ),
    RasterizerDesc2: _row(
        "rasterizer_descs",
        fill_mode=enumeration(enums.FillMode),
        cull_mode=enumeration(enums.CullMode),
        front_counter_clockwise=BOOL,
        depth_bias=REAL,
        depth_bias_clamp=REAL,
        slope_scaled_depth_bias=REAL,
        depth_clip_enable=BOOL,
        line_rasterization_mode=enumeration(enums.LineRasterizationMode),
        forced_sample_count=UINT,
        conservative_raster=enumeration(enums.ConservativeRasterizationMode),
    ),
    StreamOutputDeclarationEntry: _row(
        "so_declarations",
        stream=UINT,
        semantic_name=_GAP_NAME,
        semantic_index=UINT,
        start_component=UINT,
        component_count=UINT,
        output_slot=UINT,
    ),
    HitGroup: _row(
        "rt_hit_groups",
        hit_group_export=TEXT,
        type=enumeration(enums.HitGroupType),
        any_hit_shader_import=optional(TEXT),
        closest_hit_shader_import=optional(TEXT),
        intersection_shader_import=optional(TEXT),
    ),
    RaytracingShaderConfig: _row("rt_shader_config", max_payload_size_in_bytes=UINT, max_attribute_size_in_bytes=UINT),
    RaytracingPipelineConfig1: _row(
        "rt_pipeline_config",
        max_trace_recursion_depth=UINT,
        flags=flags(enums.RaytracingPipelineFlags),
    ),
    NodeId: _row("node_ids", name=TEXT, array_index=UINT),
    GlobalSerializedRootSignature: _row("root_signatures", blob=BLOB),
    LocalSerializedRootSignature: _row("root_signatures", blob=BLOB),
    DepthStencilDesc2: _row(
        "depth_stencil_descs",
        depth_enable=BOOL,
        depth_write_mask=enumeration(enums.DepthWriteMask),
        depth_func=_COMPARISON,
        stencil_enable=BOOL,
        front_face=Reference(DepthStencilOpDesc1),
        back_face=Reference(DepthStencilOpDesc1),
        depth_bounds_test_enable=BOOL,
    ),
    NodeOutputOverrides: _row(
        "node_output_overrides",
        output_index=UINT,
        new_name=_NODE_ID,
        allow_sparse_nodes=optional(BOOL),
        max_records=optional(UINT),
        max_records_shared_with_output_index=optional(UINT),
    ),
}
NODE: Final[Fields] = (("shader", TEXT), ("node_type", enumeration(enums.NodeType)))
"""The first columns of table ``shader_nodes``."""
NODE_OVERRIDES: Final[Fields] = (
    ("type", enumeration(enums.NodeOverridesType)),
    ("local_root_arguments_table_index", optional(UINT)),
    ("program_entry", optional(BOOL)),
    ("new_name", _NODE_ID),
    ("share_input_of", _NODE_ID),
    ("dispatch_grid", _GRID),
    ("max_dispatch_grid", _GRID),
    ("max_input_records_per_graph_entry_record", Codec(_encode_records, _decode_records, 2)),
)
"""The others."""
STATES: Final[Fields] = (
    ("input_layout", Reference(InputLayoutDesc, optional(BLOB))),
    ("depth_stencil", Reference(DepthStencilDesc2, optional(BLOB))),
    ("render_target_formats", Reference(RenderTargetFormats, optional(BLOB))),
    ("blend", Reference(BlendDesc, optional(BLOB))),
    ("rasterizer", Reference(RasterizerDesc2, optional(BLOB))),
    ("view_instancing", Reference(ViewInstancingDesc, optional(BLOB))),
    ("stream_output", Reference(StreamOutputDesc, optional(BLOB))),
    ("sample_desc", Codec(_encode_sample, _decode_sample, 2)),
    ("sample_mask", optional(UINT)),
    ("ib_strip_cut_value", optional(enumeration(enums.IndexBufferStripCutValue))),
    ("primitive_topology", optional(enumeration(enums.PrimitiveTopologyType))),
    ("depth_stencil_format", optional(FORMAT)),
    ("node_mask", optional(UINT)),
    ("flags", optional(flags(enums.PipelineStateFlags))),
)
"""What pipeline states and generic programs share, by the fields of a stream. NULL is None."""
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
