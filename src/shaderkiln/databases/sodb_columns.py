"""How the fields of descriptions look in columns of a state object database."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum, IntFlag
from typing import Any, Final, NamedTuple

from msgspec import Struct

from shaderkiln.descriptions.direct3d12 import enums
from shaderkiln.descriptions.direct3d12.state_object import (
    ExportDesc,
    HitGroup,
    NodeId,
    RaytracingPipelineConfig1,
    RaytracingShaderConfig,
)
from shaderkiln.descriptions.direct3d12.states import (
    DepthStencilOpDesc1,
    InputElementDesc,
    RasterizerDesc2,
    RenderTargetBlendDesc,
    StreamOutputDeclarationEntry,
)
from shaderkiln.errors import DamagedInputError, InvalidArgumentError

from . import sodb_schema as schema

UINT32_MAXIMUM: Final = 0xFFFFFFFF
MAXIMUM_KEY_SIZE: Final = 1 << 16
Field = str | int | float | bytes | None


class Codec(NamedTuple):
    """A field's value to its column and back. ``encode`` raises ValueError or TypeError, ``decode`` as well."""

    encode: Callable[[Any], Field]
    decode: Callable[[Any], Any]


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


class RowType(NamedTuple):
    """A table whose columns are the fields of a struct, one by one."""

    table: str
    cls: type[Struct]
    fields: tuple[tuple[str, Codec], ...]
    """In the order of the columns."""


def _row(table: str, cls: type[Struct], **codecs: Codec) -> RowType:
    assert len(codecs) == len(schema.COLUMNS[table])
    return RowType(table, cls, tuple(codecs.items()))


_STENCIL: Final = enumeration(enums.StencilOp)
_BLEND: Final = enumeration(enums.Blend)
_BLEND_OP: Final = enumeration(enums.BlendOp)
COMPARISON: Final = enumeration(enums.ComparisonFunc)
FORMAT: Final = enumeration(enums.DxgiFormat)

ROW_TYPES: Final[dict[type[Struct], RowType]] = {
    row.cls: row
    for row in (
        _row(
            "input_element_descs",
            InputElementDesc,
            semantic_name=TEXT,
            semantic_index=UINT,
            format=FORMAT,
            input_slot=UINT,
            aligned_byte_offset=UINT,
            input_slot_class=enumeration(enums.InputClassification),
            instance_data_step_rate=UINT,
        ),
        _row("exports", ExportDesc, name=TEXT, export_to_rename=optional(TEXT), flags=flags(enums.ExportFlags)),
        _row(
            "depth_stencil_op_descs",
            DepthStencilOpDesc1,
            stencil_fail_op=_STENCIL,
            stencil_depth_fail_op=_STENCIL,
            stencil_pass_op=_STENCIL,
            stencil_func=COMPARISON,
            stencil_read_mask=UINT,
            stencil_write_mask=UINT,
        ),
        _row(
            "render_target_blend_descs",
            RenderTargetBlendDesc,
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
        _row(
            "rasterizer_descs",
            RasterizerDesc2,
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
        _row(
            "so_declarations",
            StreamOutputDeclarationEntry,
            stream=UINT,
            semantic_name=_GAP_NAME,
            semantic_index=UINT,
            start_component=UINT,
            component_count=UINT,
            output_slot=UINT,
        ),
        _row(
            "rt_hit_groups",
            HitGroup,
            hit_group_export=TEXT,
            type=enumeration(enums.HitGroupType),
            any_hit_shader_import=optional(TEXT),
            closest_hit_shader_import=optional(TEXT),
            intersection_shader_import=optional(TEXT),
        ),
        _row("rt_shader_config", RaytracingShaderConfig, max_payload_size_in_bytes=UINT, max_attribute_size_in_bytes=UINT),
        _row(
            "rt_pipeline_config",
            RaytracingPipelineConfig1,
            max_trace_recursion_depth=UINT,
            flags=flags(enums.RaytracingPipelineFlags),
        ),
        _row("node_ids", NodeId, name=TEXT, array_index=UINT),
    )
}
STATE_COLUMNS: Final[tuple[tuple[str, str, Codec], ...]] = (
    ("SampleMask", "sample_mask", UINT),
    ("IBStripCutValue", "ib_strip_cut_value", enumeration(enums.IndexBufferStripCutValue)),
    ("PrimitiveTopology", "primitive_topology", enumeration(enums.PrimitiveTopologyType)),
    ("DSVFormat", "depth_stencil_format", FORMAT),
    ("NodeMask", "node_mask", UINT),
    ("Flags", "flags", flags(enums.PipelineStateFlags)),
)
"""Single values of pipelines: column, field of a stream, codec. NULL is None."""
STAGES: Final = ("vs", "ps", "hs", "ds", "gs", "as_", "ms", "cs")
"""In the order of the columns ``ByteCode_…``."""


def encode(codec: Codec, value: Any, where: str) -> Field:
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
