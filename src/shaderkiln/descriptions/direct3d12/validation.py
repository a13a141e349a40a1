"""What must be true of a desc before anything is compiled, with messages that name field and value.

First every field against its own type: a number that an enumeration has, known flags, a range. Then the rules of the runtime that
connect fields. What needs the shaders (signatures, what a pixel shader writes) or a device (formats, sample counts) is not here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from enum import IntEnum, IntFlag
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from shaderkiln.descriptions.direct3d12 import enums
from shaderkiln.descriptions.direct3d12.enums import (
    Blend,
    ComparisonFunc,
    DxgiFormat,
    HitGroupType,
    InputClassification,
    NodeOverridesType,
    PrimitiveTopologyType,
    RaytracingPipelineFlags,
    StateObjectType,
)
from shaderkiln.descriptions.direct3d12.pipeline_state import STAGE_FIELDS, PipelineStateStream
from shaderkiln.descriptions.direct3d12.psdb_subobject import ShaderCacheSessionSubobjectDesc, check_psdb
from shaderkiln.descriptions.direct3d12.state_object import (
    COLLECTIONS,
    DxilLibrary,
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
    SubobjectToExportsAssociation,
    WorkGraph,
)
from shaderkiln.descriptions.direct3d12.states import (
    BlendDesc,
    DepthStencilDesc,
    DepthStencilDesc1,
    DepthStencilDesc2,
    InputLayoutDesc,
    NodeMask,
    RasterizerDesc,
    RasterizerDesc1,
    RasterizerDesc2,
    RenderTargetBlendDesc,
    RenderTargetFormats,
    SampleDesc,
    StreamOutputDesc,
    ViewInstancingDesc,
)
from shaderkiln.errors import InvalidArgumentError

DEPTH_FORMATS: Final = frozenset(
    {DxgiFormat.D32_FLOAT_S8X24_UINT, DxgiFormat.D32_FLOAT, DxgiFormat.D24_UNORM_S8_UINT, DxgiFormat.D16_UNORM}
)
_COLOR_BLENDS: Final = frozenset(
    {
        Blend.SRC_COLOR,
        Blend.INV_SRC_COLOR,
        Blend.DEST_COLOR,
        Blend.INV_DEST_COLOR,
        Blend.SRC1_COLOR,
        Blend.INV_SRC1_COLOR,
    }
)
_MAX_COLLECTION_DEPTH: Final = 16


def validate(desc: PipelineStateStream | StateObjectDesc) -> None:
    """Raises InvalidArgumentError for the first thing that Direct3D 12 does not allow in a desc."""
    if isinstance(desc, PipelineStateStream):
        _fields(desc, "")
        _stream(desc)
    elif isinstance(desc, StateObjectDesc):
        _state_object(desc, "", 0)
    else:
        raise InvalidArgumentError(f"{type(desc).__name__} is neither a PipelineStateStream nor a StateObjectDesc")


def _refuse(where: str, why: str) -> None:
    raise InvalidArgumentError(f"{where}: {why}")


# Every field by its type


_HEADER_NAMES: Final[dict[type, str]] = {
    cls: "DXGI_FORMAT" if cls is DxgiFormat else "D3D12_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
    for name, cls in vars(enums).items()
    if isinstance(cls, type) and issubclass(cls, (IntEnum, IntFlag)) and cls not in (IntEnum, IntFlag)
}
_UINT8: Final = (0, 0xFF)
_UINT32: Final = (0, 0xFFFFFFFF)
_RANGES: Final[dict[tuple[str, str], tuple[int, int]]] = {
    ("RasterizerDesc", "depth_bias"): (-(1 << 31), (1 << 31) - 1),
    **{
        (cls, field): _UINT8
        for cls in ("DepthStencilDesc", "DepthStencilDesc1", "DepthStencilOpDesc1")
        for field in ("stencil_read_mask", "stencil_write_mask")
    },
    **{("StreamOutputDeclarationEntry", field): _UINT8 for field in ("start_component", "component_count", "output_slot")},
}
_FLOAT_MAX: Final = 3.4028234663852886e38

_Check = Callable[[Any, str, bool], None]


def _fields(value: Struct, where: str, zero_allowed: bool = False) -> None:
    """Checks all fields. States that are switched off may hold 0 in place of an enumerant, as zeroed memory does."""
    off = _switched_off(value)
    for name, check in _checks(type(value)):
        check(getattr(value, name), f"{where}.{name}" if where else name, zero_allowed or name in off)


def _switched_off(value: Struct) -> frozenset[str]:
    if isinstance(value, RenderTargetBlendDesc):
        return frozenset() if value.blend_enable else _BLEND_FIELDS
    if isinstance(value, (DepthStencilDesc, DepthStencilDesc1, DepthStencilDesc2)):
        return frozenset() if value.stencil_enable else frozenset({"front_face", "back_face"})
    return frozenset()


_BLEND_FIELDS: Final = frozenset(
    {"src_blend", "dest_blend", "blend_op", "src_blend_alpha", "dest_blend_alpha", "blend_op_alpha"}
)


@cache
def _checks(cls: type[Struct]) -> tuple[tuple[str, _Check], ...]:
    return tuple(
        (field.name, _check_of(field.type, _RANGES.get((cls.__name__, field.name), _UINT32)))
        for field in msgspec.structs.fields(cls)
    )


def _check_of(annotation: Any, limits: tuple[int, int]) -> _Check:
    if get_origin(annotation) in (Union, UnionType):
        members = get_args(annotation)
        others = tuple(member for member in members if member is not NoneType)
        inner = _check_of(others[0], limits) if len(others) == 1 else _struct_check(others)

        def optional(value: Any, where: str, zero: bool) -> None:
            if value is not None or NoneType not in members:
                inner(value, where, zero)

        return optional
    if get_origin(annotation) is tuple:
        arguments = get_args(annotation)
        item = _check_of(arguments[0], limits)
        count = None if arguments[-1] is Ellipsis else len(arguments)

        def items(value: Any, where: str, zero: bool) -> None:
            if not isinstance(value, tuple):
                _refuse(where, f"{type(value).__name__} is no tuple")
            if count is not None and len(value) != count:
                _refuse(where, f"{len(value)} values are not {count}")
            for index, each in enumerate(value):
                item(each, f"{where}[{index}]", zero)

        return items
    if isinstance(annotation, type):
        if issubclass(annotation, IntFlag):
            return _flag_check(annotation)
        if issubclass(annotation, IntEnum):
            return _enum_check(annotation)
        if issubclass(annotation, Struct):
            return _struct_check((annotation,))
        if annotation in _SIMPLE:
            return _int_check(limits) if annotation is int else _SIMPLE[annotation]
    return lambda value, where, zero: None


def _enum_check(cls: type[IntEnum]) -> _Check:
    numbers = frozenset(map(int, cls))

    def check(value: Any, where: str, zero: bool) -> None:
        if not isinstance(value, int) or (value not in numbers and not (zero and value == 0)):
            _refuse(where, f"{_shown(value)} is no {_HEADER_NAMES[cls]}")

    return check


def _flag_check(cls: type[IntFlag]) -> _Check:
    known = 0
    for member in cls:
        known |= int(member)

    def check(value: Any, where: str, zero: bool) -> None:
        if not isinstance(value, int) or value & ~known:
            _refuse(where, f"{hex(value) if isinstance(value, int) else _shown(value)} is no {_HEADER_NAMES[cls]}")

    return check


def _struct_check(classes: tuple[type, ...]) -> _Check:
    def check(value: Any, where: str, zero: bool) -> None:
        if not isinstance(value, classes):
            _refuse(where, f"{type(value).__name__} is no {' or '.join(cls.__name__ for cls in classes)}")
        _fields(value, where, zero)

    return check


def _int_check(limits: tuple[int, int]) -> _Check:
    low, high = limits

    def check(value: Any, where: str, zero: bool) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            _refuse(where, f"{_shown(value)} is not a whole number from {low} to {high}")

    return check


def _check_float(value: Any, where: str, zero: bool) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value) or abs(value) > _FLOAT_MAX:
        _refuse(where, f"{_shown(value)} is no finite number of single precision")


def _check_bool(value: Any, where: str, zero: bool) -> None:
    if value is not True and value is not False:
        _refuse(where, f"{_shown(value)} is neither True nor False")


def _check_str(value: Any, where: str, zero: bool) -> None:
    if not isinstance(value, str) or not value or "\0" in value:
        _refuse(where, f"{_shown(value)} is no name")


def _check_bytes(value: Any, where: str, zero: bool) -> None:
    if not isinstance(value, bytes):
        _refuse(where, f"{type(value).__name__} is no bytes")


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value)) if -(1 << 64) < value < 1 << 64 else f"a number of {value.bit_length()} bits"
    if isinstance(value, (str, bytes, list, tuple, dict, set)) and len(value) > 1000:
        return f"a {type(value).__name__} of length {len(value)}"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_SIMPLE: Final[dict[type, Any]] = {
    int: None,
    float: _check_float,
    bool: _check_bool,
    str: _check_str,
    bytes: _check_bytes,
}


# Pipeline states


_NOT_FOR_MESH: Final = ("vs", "hs", "ds", "gs", "input_layout", "stream_output", "ib_strip_cut_value")


def _stream(desc: PipelineStateStream) -> None:
    shaders = desc.shaders()
    if desc.root_signature and desc.serialized_root_signature:
        _refuse("serialized_root_signature", "root_signature is there too; a stream has one of the two")
    if desc.psdb is not None:
        check_psdb(desc.psdb)
    if not shaders:
        _refuse("vs", "a pipeline state needs shaders, and the stream has none")
    if desc.kind == "compute":
        # Graphics states have no meaning and do no harm: the streams of d3dx12 have them, at their defaults, in every pipeline.
        for field in STAGE_FIELDS:
            if field != "cs" and getattr(desc, field):
                _refuse(field, "a compute pipeline, which has cs, cannot have it")
        return
    if desc.kind == "mesh":
        if "ms" not in shaders:
            _refuse("ms", "an amplification shader needs a mesh shader")
        for field in _NOT_FOR_MESH:
            value = getattr(desc, field)
            if value and value not in (InputLayoutDesc(), StreamOutputDesc()):
                _refuse(field, "a mesh pipeline, which has ms, cannot have it")
    else:
        _vertex_stages(desc, shaders)
    _states(desc, "")


def _vertex_stages(desc: PipelineStateStream, shaders: dict[str, bytes]) -> None:
    if "vs" not in shaders:
        _refuse("vs", f"a graphics pipeline needs a vertex shader; there is only {', '.join(shaders)}")
    if ("hs" in shaders) != ("ds" in shaders):
        missing = "ds" if "hs" in shaders else "hs"
        _refuse(missing, "hull and domain shader come together or not at all")
    topology = desc.primitive_topology
    if topology == PrimitiveTopologyType.UNDEFINED:
        _refuse("primitive_topology", "UNDEFINED (0) is not allowed with a vertex shader")
    if "hs" in shaders and topology != PrimitiveTopologyType.PATCH:
        found = "none is set" if topology is None else f"{PrimitiveTopologyType(topology).name} ({int(topology)})"
        _refuse("primitive_topology", f"a hull shader needs PATCH (4), and {found}")


def _states(desc: PipelineStateStream, where: str) -> None:
    """The rules of fixed-function states, in a stream or in a generic program."""
    for field in ("blend", "depth_stencil", "rasterizer", "input_layout", "stream_output", "render_target_formats"):
        value = getattr(desc, field)
        if value is not None:
            _RULES[type(value)](value, where + field)
    for field in ("sample_desc", "view_instancing"):
        value = getattr(desc, field)
        if value is not None:
            _RULES[type(value)](value, where + field)
    _depth_format(desc.depth_stencil_format, where + "depth_stencil_format")


def _depth_format(value: DxgiFormat | None, where: str) -> None:
    if value and value not in DEPTH_FORMATS:
        _refuse(where, f"{_format_name(value)} is no depth-stencil format")


def _blend(desc: BlendDesc, where: str) -> None:
    if len(desc.render_target) > enums.SIMULTANEOUS_RENDER_TARGET_COUNT:
        _refuse(f"{where}.render_target", f"{len(desc.render_target)} are more than 8")
    used = desc.render_target if desc.independent_blend_enable else desc.render_target[:1]
    for index, target in enumerate(used):
        at = f"{where}.render_target[{index}]"
        if target.blend_enable and target.logic_op_enable:
            _refuse(f"{at}.logic_op_enable", "blend_enable is on too; one of the two can be")
        if target.logic_op_enable and desc.independent_blend_enable:
            _refuse(f"{at}.logic_op_enable", "a logic operation needs independent_blend_enable to be off")
        if target.blend_enable:
            for field in ("src_blend_alpha", "dest_blend_alpha"):
                factor = getattr(target, field)
                if factor in _COLOR_BLENDS:
                    _refuse(
                        f"{at}.{field}",
                        f"{Blend(factor).name} ({int(factor)}) is a colour, and alpha cannot be blended with it",
                    )


def _depth_stencil(desc: DepthStencilDesc | DepthStencilDesc1 | DepthStencilDesc2, where: str) -> None:
    if desc.depth_enable and desc.depth_func == ComparisonFunc.NONE:
        _refuse(f"{where}.depth_func", "NONE (0) is not allowed with depth_enable")
    if desc.stencil_enable:
        for face in ("front_face", "back_face"):
            if getattr(desc, face).stencil_func == ComparisonFunc.NONE:
                _refuse(f"{where}.{face}.stencil_func", "NONE (0) is not allowed with stencil_enable")


def _rasterizer(desc: RasterizerDesc | RasterizerDesc1 | RasterizerDesc2, where: str) -> None:
    if desc.forced_sample_count not in (0, 1, 2, 4, 8, 16):
        _refuse(f"{where}.forced_sample_count", f"{desc.forced_sample_count} is none of 0, 1, 2, 4, 8, 16")


def _sample_desc(desc: SampleDesc, where: str) -> None:
    if desc.count not in (1, 2, 4, 8, 16, 32):
        _refuse(f"{where}.count", f"{desc.count} is none of 1, 2, 4, 8, 16, 32")


def _render_target_formats(desc: RenderTargetFormats, where: str) -> None:
    if len(desc.formats) > enums.SIMULTANEOUS_RENDER_TARGET_COUNT:
        _refuse(f"{where}.formats", f"{len(desc.formats)} render targets are more than 8")
    for index, value in enumerate(desc.formats):
        name = DxgiFormat(value).name
        if value in DEPTH_FORMATS or "TYPELESS" in name or name.startswith("BC"):
            _refuse(f"{where}.formats[{index}]", f"{_format_name(value)} is no format of a render target")


def _view_instancing(desc: ViewInstancingDesc, where: str) -> None:
    if len(desc.view_instance_locations) > enums.MAX_VIEW_INSTANCE_COUNT:
        _refuse(f"{where}.view_instance_locations", f"{len(desc.view_instance_locations)} views are more than 4")
    for index, location in enumerate(desc.view_instance_locations):
        at = f"{where}.view_instance_locations[{index}]"
        if location.viewport_array_index >= 16:
            _refuse(f"{at}.viewport_array_index", f"{location.viewport_array_index} is not below 16")
        if location.render_target_array_index >= 2048:
            _refuse(f"{at}.render_target_array_index", f"{location.render_target_array_index} is not below 2048")


def _input_layout(desc: InputLayoutDesc, where: str) -> None:
    if len(desc.elements) > enums.INPUT_ELEMENT_COUNT:
        _refuse(f"{where}.elements", f"{len(desc.elements)} are more than 32")
    seen: dict[tuple[str, int], int] = {}
    slots: dict[int, tuple[int, int, int]] = {}
    for index, element in enumerate(desc.elements):
        at = f"{where}.elements[{index}]"
        semantic = element.semantic_name.upper(), element.semantic_index
        if seen.setdefault(semantic, index) != index:
            _refuse(
                f"{at}.semantic_name",
                f"{element.semantic_name!r} with index {element.semantic_index} is elements[{seen[semantic]}] already",
            )
        name = DxgiFormat(element.format).name
        if element.format == 0 or element.format in DEPTH_FORMATS or "TYPELESS" in name or name.startswith("BC"):
            _refuse(f"{at}.format", f"{_format_name(element.format)} is no format of a vertex element")
        if element.input_slot >= enums.INPUT_SLOT_COUNT:
            _refuse(f"{at}.input_slot", f"{element.input_slot} is not below 32")
        offset = element.aligned_byte_offset
        if offset != enums.APPEND_ALIGNED_ELEMENT:
            alignment = min(4, format_bytes(element.format) or 1)
            if offset % alignment:
                _refuse(f"{at}.aligned_byte_offset", f"{offset} is no multiple of {alignment}, as {name} needs")
            if offset > enums.MAX_INPUT_ELEMENT_OFFSET:
                _refuse(f"{at}.aligned_byte_offset", f"{offset} is more than 2048")
        step = element.instance_data_step_rate
        if element.input_slot_class == InputClassification.PER_VERTEX_DATA and step:
            _refuse(f"{at}.instance_data_step_rate", f"{step} is not 0, as data per vertex needs")
        first, slot_class, rate = slots.setdefault(element.input_slot, (index, int(element.input_slot_class), step))
        if slot_class != element.input_slot_class:
            found = InputClassification(element.input_slot_class).name
            _refuse(f"{at}.input_slot_class", f"{found} differs from elements[{first}] of the same slot {element.input_slot}")
        if rate != step:
            _refuse(f"{at}.instance_data_step_rate", f"{step} differs from the {rate} of elements[{first}] of the same slot")


@cache
def format_bytes(value: int) -> int:
    """Bytes of one element of an uncompressed format, from the bits in its name; 0 where the name has none."""
    name = DxgiFormat(value).name
    if name.startswith("BC"):
        return 0
    if name == "R9G9B9E5_SHAREDEXP":
        return 4
    return sum(map(int, re.findall(r"[RGBADXS](\d+)", name))) // 8


def _stream_output(desc: StreamOutputDesc, where: str) -> None:
    strides = desc.buffer_strides
    if len(strides) > enums.STREAM_OUTPUT_BUFFER_SLOT_COUNT:
        _refuse(f"{where}.buffer_strides", f"{len(strides)} are more than 4")
    for slot, stride in enumerate(strides):
        if stride > enums.STREAM_OUTPUT_MAX_STRIDE or stride % 4:
            _refuse(f"{where}.buffer_strides[{slot}]", f"{stride} is no multiple of 4 up to 2048")
    if desc.rasterized_stream >= enums.STREAM_OUTPUT_STREAM_COUNT and desc.rasterized_stream != enums.NO_RASTERIZED_STREAM:
        _refuse(f"{where}.rasterized_stream", f"{desc.rasterized_stream} is neither below 4 nor NO_RASTERIZED_STREAM")
    limit = enums.STREAM_OUTPUT_STREAM_COUNT * enums.STREAM_OUTPUT_COMPONENT_COUNT
    if len(desc.declarations) > limit:
        _refuse(f"{where}.declarations", f"{len(desc.declarations)} are more than {limit}")
    ends: dict[int, int] = {}
    streams: dict[int, int] = {}
    for index, entry in enumerate(desc.declarations):
        at = f"{where}.declarations[{index}]"
        if entry.stream >= enums.STREAM_OUTPUT_STREAM_COUNT:
            _refuse(f"{at}.stream", f"{entry.stream} is not below 4")
        if entry.output_slot >= enums.STREAM_OUTPUT_BUFFER_SLOT_COUNT:
            _refuse(f"{at}.output_slot", f"{entry.output_slot} is not below 4")
        if entry.semantic_name is not None and not (
            1 <= entry.component_count <= 4 and entry.start_component + entry.component_count <= 4
        ):
            _refuse(
                f"{at}.component_count",
                f"{entry.component_count} from start_component {entry.start_component} are not 1 to 4 components of a register",
            )
        if streams.setdefault(entry.output_slot, entry.stream) != entry.stream:
            _refuse(
                f"{at}.stream",
                f"{entry.stream} goes to slot {entry.output_slot}, which stream {streams[entry.output_slot]} has",
            )
        ends[entry.output_slot] = end = ends.get(entry.output_slot, 0) + entry.component_count * 4
        if entry.output_slot >= len(strides):
            _refuse(f"{at}.output_slot", f"{entry.output_slot} has no stride in buffer_strides")
        if end > strides[entry.output_slot]:
            _refuse(
                f"{at}.component_count",
                f"{end} bytes are more than buffer_strides[{entry.output_slot}], which is {strides[entry.output_slot]}",
            )


_RULES: Final[dict[type, Callable[[Any, str], None]]] = {
    BlendDesc: _blend,
    DepthStencilDesc: _depth_stencil,
    DepthStencilDesc1: _depth_stencil,
    DepthStencilDesc2: _depth_stencil,
    RasterizerDesc: _rasterizer,
    RasterizerDesc1: _rasterizer,
    RasterizerDesc2: _rasterizer,
    InputLayoutDesc: _input_layout,
    StreamOutputDesc: _stream_output,
    RenderTargetFormats: _render_target_formats,
    SampleDesc: _sample_desc,
    ViewInstancingDesc: _view_instancing,
}


def _format_name(value: int) -> str:
    return f"{DxgiFormat(value).name} ({int(value)})"


# State objects


def _state_object(desc: StateObjectDesc, where: str, depth: int) -> None:
    if depth > _MAX_COLLECTION_DEPTH:
        _refuse(where or "collection", f"collections are nested more than {_MAX_COLLECTION_DEPTH} deep")
    _enum_check(StateObjectType)(desc.type, f"{where}type", False)
    if not isinstance(desc.subobjects, tuple):
        _refuse(f"{where}subobjects", f"{type(desc.subobjects).__name__} is no tuple")
    for index, subobject in enumerate(desc.subobjects):
        at = f"{where}subobjects[{index}]"
        if getattr(type(subobject), "subobject_type", None) is None:
            _refuse(at, f"{type(subobject).__name__} is no subobject of a state object")
        if isinstance(subobject, COLLECTIONS):
            if not isinstance(subobject.collection, StateObjectDesc):
                _refuse(f"{at}.collection", f"{type(subobject.collection).__name__} is no StateObjectDesc")
            if subobject.collection.type != StateObjectType.COLLECTION:
                _refuse(f"{at}.collection.type", f"{_shown(subobject.collection.type)} is not COLLECTION (0)")
            _state_object(subobject.collection, f"{at}.collection.", depth + 1)
            _check_exports_field(subobject, at)
        else:
            _fields(subobject, at)
        _subobject(desc, subobject, at)
    _once(desc, where)
    _names(desc, where)


def _check_exports_field(subobject: Struct, at: str) -> None:
    dict(_checks(type(subobject)))["exports"](getattr(subobject, "exports"), f"{at}.exports", False)  # noqa: B009


def _subobject(desc: StateObjectDesc, subobject: Any, at: str) -> None:
    rule = _RULES.get(type(subobject))
    if rule is not None:
        rule(subobject, at)
    elif isinstance(subobject, ShaderCacheSessionSubobjectDesc):
        check_psdb(subobject, at)
    elif isinstance(
        subobject, (GlobalRootSignature, LocalRootSignature, GlobalSerializedRootSignature, LocalSerializedRootSignature)
    ):
        if not subobject.blob:
            _refuse(f"{at}.blob", "a root signature needs its serialized bytes, and there are none")
    elif isinstance(subobject, DxilLibrary):
        if not subobject.bytecode:
            _refuse(f"{at}.bytecode", "a library needs its bytecode, and there is none")
    elif isinstance(subobject, ExistingCollectionByKey):
        if not subobject.key:
            _refuse(f"{at}.key", "a key has at least one byte")
    elif isinstance(subobject, SubobjectToExportsAssociation):
        _association(desc, subobject, at)
    elif isinstance(subobject, GenericProgram):
        if desc.type != StateObjectType.EXECUTABLE:
            _refuse(at, "a generic program belongs into an EXECUTABLE state object")
        if not subobject.exports:
            _refuse(f"{at}.exports", "a program needs at least one shader")
        _states(desc.states_of(subobject), f"{at}.")
    elif isinstance(subobject, HitGroup):
        _hit_group(subobject, at)
    elif isinstance(subobject, WorkGraph):
        if desc.type != StateObjectType.EXECUTABLE:
            _refuse(at, "a work graph belongs into an EXECUTABLE state object")
        for index, node in enumerate(subobject.explicitly_defined_nodes):
            if node.overrides is not None:
                _overrides(node.overrides, f"{at}.explicitly_defined_nodes[{index}].overrides")
    elif isinstance(subobject, RaytracingShaderConfig):
        size = subobject.max_attribute_size_in_bytes
        if size > enums.RAYTRACING_MAX_ATTRIBUTE_SIZE:
            _refuse(f"{at}.max_attribute_size_in_bytes", f"{size} is more than 32")
    elif isinstance(subobject, (RaytracingPipelineConfig, RaytracingPipelineConfig1)):
        _pipeline_config(subobject, at)


def _association(desc: StateObjectDesc, association: SubobjectToExportsAssociation, at: str) -> None:
    index = association.subobject
    if index >= len(desc.subobjects):
        _refuse(f"{at}.subobject", f"{index} is no index of a subobject; there are {len(desc.subobjects)}")
    if not isinstance(desc.subobjects[index], _ASSOCIABLE):
        _refuse(f"{at}.subobject", f"{index} is a {type(desc.subobjects[index]).__name__}, which belongs to no export")


_ASSOCIABLE: Final = (
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


def _hit_group(group: HitGroup, at: str) -> None:
    if group.type == HitGroupType.TRIANGLES and group.intersection_shader_import is not None:
        _refuse(f"{at}.intersection_shader_import", f"{group.intersection_shader_import!r} is not allowed for TRIANGLES (0)")
    if group.type == HitGroupType.PROCEDURAL_PRIMITIVE and group.intersection_shader_import is None:
        _refuse(f"{at}.intersection_shader_import", "PROCEDURAL_PRIMITIVE (1) needs an intersection shader")


def _pipeline_config(config: RaytracingPipelineConfig | RaytracingPipelineConfig1, at: str) -> None:
    depth = config.max_trace_recursion_depth
    if depth > enums.RAYTRACING_MAX_RECURSION_DEPTH:
        _refuse(f"{at}.max_trace_recursion_depth", f"{depth} is more than 31")
    both = RaytracingPipelineFlags.SKIP_TRIANGLES | RaytracingPipelineFlags.SKIP_PROCEDURAL_PRIMITIVES
    if isinstance(config, RaytracingPipelineConfig1) and config.flags & both == both:
        _refuse(f"{at}.flags", f"{int(config.flags):#x} skips triangles and procedural primitives")


def _overrides(overrides: NodeOverrides, at: str) -> None:
    if overrides.type == NodeOverridesType.NONE:
        _refuse(f"{at}.type", "NONE (0) is a node without overrides; leave them out")
    if overrides.type != NodeOverridesType.BROADCASTING_LAUNCH:
        for field in ("dispatch_grid", "max_dispatch_grid"):
            if getattr(overrides, field) is not None:
                _refuse(f"{at}.{field}", f"only BROADCASTING_LAUNCH (1) has it, and the type is {int(overrides.type)}")


def _once(desc: StateObjectDesc, where: str) -> None:
    for cls in (ShaderCacheSessionSubobjectDesc, StateObjectConfig, NodeMask):
        found = [index for index, subobject in enumerate(desc.subobjects) if isinstance(subobject, cls)]
        first = found and desc.subobjects[found[0]]
        for index in found[1:]:
            if cls is ShaderCacheSessionSubobjectDesc or desc.subobjects[index] != first:
                _refuse(f"{where}subobjects[{index}]", f"the {cls.__name__} in subobjects[{found[0]}] is there already")


def _names(desc: StateObjectDesc, where: str) -> None:
    """Names that a state object gives to the outside are different ones: shaders and hit groups; programs and work graphs."""
    exports: dict[str, str] = {}
    programs: dict[str, str] = {}
    for index, subobject in enumerate(desc.subobjects):
        at = f"{where}subobjects[{index}]"
        if isinstance(subobject, (DxilLibrary, ExistingCollectionByKey, *COLLECTIONS)):
            given: Iterable[tuple[str, str]] = [
                (f"{at}.exports[{place}].name", export.name) for place, export in enumerate(subobject.exports)
            ]
            names = exports
        elif isinstance(subobject, HitGroup):
            given, names = [(f"{at}.hit_group_export", subobject.hit_group_export)], exports
        elif isinstance(subobject, (GenericProgram, WorkGraph)):
            given, names = [(f"{at}.program_name", subobject.program_name)], programs
        else:
            continue
        for place_of_name, name in given:
            if names.setdefault(name, place_of_name) != place_of_name:
                _refuse(place_of_name, f"{name!r} is the name of {names[name]} already")
