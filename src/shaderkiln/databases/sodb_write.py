"""Descriptions to rows of a state object database.

A row's key is the SHA-256 of its table and columns, so that equal content is one row; the key of a row that owns a list covers the
list too. Where a list holds equal members, the second and later ones are rows of their own, because an association cannot name a
member twice. The published schema has no column for the order of a list: it is the order in which the associations were inserted.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from shaderkiln.descriptions.direct3d12 import enums
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.psdb_subobject import ShaderCacheSessionSubobjectDesc
from shaderkiln.descriptions.direct3d12.state_object import (
    COLLECTIONS,
    PROGRAM_STATES,
    DxilLibrary,
    DxilSubobjectToExportsAssociation,
    ExistingCollectionByKey,
    ExportDesc,
    GenericProgram,
    GlobalRootSignature,
    GlobalSerializedRootSignature,
    HitGroup,
    LocalRootSignature,
    LocalSerializedRootSignature,
    NodeId,
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
    AnyDepthStencilDesc,
    BlendDesc,
    InputLayoutDesc,
    NodeMask,
    RenderTargetFormats,
    StreamOutputDesc,
    ViewInstancingDesc,
)
from shaderkiln.errors import InvalidArgumentError

from . import sodb_schema as schema
from .sodb_columns import (
    BLOB,
    BOOL,
    COMPARISON,
    FORMAT,
    ROW_TYPES,
    STAGES,
    STATE_COLUMNS,
    TEXT,
    UINT,
    Field,
    check_key,
    encode,
    enumeration,
    flags,
    optional,
)

if TYPE_CHECKING:
    import apsw

_INSERTS: Final = {
    table: f"INSERT OR IGNORE INTO {table} "
    + (
        f"(Key, {', '.join(columns)}) VALUES ({', '.join('?' * (len(columns) + 1))})"
        if table in schema.TABLES and "Key BLOB NOT NULL PRIMARY KEY" in schema.TABLES[table]
        else f"({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    )
    for table, columns in schema.COLUMNS.items()
}
_TYPE = enums.StateSubobjectType
_STATE_OBJECT_TYPE: Final = enumeration(enums.StateObjectType)
_STATE_OBJECT_FLAGS: Final = flags(enums.StateObjectFlags)
_NODE_TYPE: Final = enumeration(enums.NodeType)
_OVERRIDES_TYPE: Final = enumeration(enums.NodeOverridesType)


class Writer:
    """Inserts the rows of descriptions. The transaction is the caller's; what fails leaves rows for it to roll back."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    # Pipeline states

    def pipeline_state(self, stream: PipelineStateStream) -> bytes:
        """The key of the row for a pipeline state. The cached blob and the PSDB subobject are not part of it."""
        root_signature = stream.root_signature_blob
        return self._insert(
            "pipeline_states",
            None if root_signature is None else self._root_signature(root_signature, "root_signature"),
            self._input_layout(stream.input_layout),
            *(self._bytecode(stage.rstrip("_").upper(), getattr(stream, stage), stage) for stage in STAGES),
            *self._states(stream),
        )

    def _states(self, stream: PipelineStateStream) -> list[Field]:
        """The columns from DepthStencilDesc on, which pipeline states and generic programs share."""
        sample = stream.sample_desc
        return [
            None if stream.depth_stencil is None else self._depth_stencil(stream.depth_stencil),
            None if stream.render_target_formats is None else self._render_target_formats(stream.render_target_formats),
            None if stream.blend is None else self._blend(stream.blend),
            None if stream.rasterizer is None else self._row(stream.rasterizer.to_desc2(), "rasterizer"),
            None if stream.view_instancing is None else self._view_instancing(stream.view_instancing),
            None if stream.stream_output is None else self._stream_output(stream.stream_output),
            *(
                (None, None)
                if sample is None
                else (
                    encode(UINT, sample.count, "sample_desc.count"),
                    encode(UINT, sample.quality, "sample_desc.quality"),
                )
            ),
            *(encode(optional(codec), getattr(stream, field), field) for _, field, codec in STATE_COLUMNS),
        ]

    def _root_signature(self, blob: bytes, where: str) -> bytes:
        return self._insert("root_signatures", encode(BLOB, blob, where))

    def _bytecode(self, kind: str, code: bytes | None, where: str) -> bytes | None:
        return None if code is None else self._insert("shader_bytecode", kind, encode(BLOB, code, where))

    def _input_layout(self, desc: InputLayoutDesc | None) -> bytes | None:
        if desc is None:
            return None
        elements = self._list(desc.elements, "input_layout.elements")
        key = _digest("input_layout", *elements)
        self._associate("input_layout_to_input_element_associations", key, elements)
        return key

    def _depth_stencil(self, any_desc: AnyDepthStencilDesc) -> bytes:
        desc = any_desc.to_desc2()
        return self._insert(
            "depth_stencil_descs",
            int(bool(desc.depth_enable)),
            encode(enumeration(enums.DepthWriteMask), desc.depth_write_mask, "depth_stencil.depth_write_mask"),
            encode(COMPARISON, desc.depth_func, "depth_stencil.depth_func"),
            int(bool(desc.stencil_enable)),
            self._row(desc.front_face, "depth_stencil.front_face"),
            self._row(desc.back_face, "depth_stencil.back_face"),
            int(bool(desc.depth_bounds_test_enable)),
        )

    def _render_target_formats(self, desc: RenderTargetFormats) -> bytes:
        formats = [encode(FORMAT, value, f"render_target_formats[{index}]") for index, value in enumerate(desc.formats)]
        _at_most(8, formats, "render_target_formats")
        return self._insert("render_target_formats", *formats, *[0] * (8 - len(formats)), len(formats))

    def _blend(self, desc: BlendDesc) -> bytes:
        targets = [self._row(target, f"blend.render_target[{index}]") for index, target in enumerate(desc.render_target)]
        _at_most(8, targets, "blend.render_target")
        return self._insert(
            "blend_descs",
            int(bool(desc.alpha_to_coverage_enable)),
            int(bool(desc.independent_blend_enable)),
            *targets,
            *[None] * (8 - len(targets)),
        )

    def _view_instancing(self, desc: ViewInstancingDesc) -> bytes:
        _at_most(4, desc.view_instance_locations, "view_instancing.view_instance_locations")
        columns: list[Field] = []
        for index, location in enumerate(desc.view_instance_locations):
            where = f"view_instancing.view_instance_locations[{index}]"
            columns.append(encode(UINT, location.viewport_array_index, where))
            columns.append(encode(UINT, location.render_target_array_index, where))
        return self._insert(
            "view_instancing_descs",
            len(desc.view_instance_locations),
            encode(flags(enums.ViewInstancingFlags), desc.flags, "view_instancing.flags"),
            *columns,
            *[None] * (8 - len(columns)),
        )

    def _stream_output(self, desc: StreamOutputDesc) -> bytes:
        for index, entry in enumerate(desc.declarations):
            if entry.semantic_name == "":
                raise InvalidArgumentError(
                    f"stream_output.declarations[{index}].semantic_name: '' cannot be stored; a gap has no name at all (None)"
                )
        declarations = self._list(desc.declarations, "stream_output.declarations")
        strides = [encode(UINT, stride, "stream_output.buffer_strides") for stride in desc.buffer_strides]
        _at_most(4, strides, "stream_output.buffer_strides")
        key = self._insert(
            "stream_out_descs",
            *strides,
            *[0] * (4 - len(strides)),
            len(strides),
            encode(UINT, desc.rasterized_stream, "stream_output.rasterized_stream"),
            extra=declarations,
        )
        self._associate("stream_output_desc_to_stream_output_decl_associations", key, declarations)
        return key

    # State objects

    def state_object(
        self,
        key: bytes,
        desc: StateObjectDesc,
        parent: bytes | None,
        collections: Sequence[bytes],
        row_of: Callable[[bytes, str], bytes],
    ) -> None:
        """Write a state object's row and associations under ``key``, in place of what is there.

        ``parent`` is the parent's row; ``row_of`` gives the row of a state object by the key it was stored under.
        """
        self._erase_members(key)
        columns = (
            encode(_STATE_OBJECT_TYPE, desc.type, "type"),
            encode(optional(UINT), _only(desc, NodeMask, "node_mask"), "node_mask"),
            encode(optional(_STATE_OBJECT_FLAGS), _only(desc, StateObjectConfig, "flags"), "flags"),
            parent,
        )
        self._execute(
            "INSERT INTO state_objects (Key, Type, NodeMask, Flags, AddToStateObjectParent) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (Key) DO UPDATE SET Type = excluded.Type, NodeMask = excluded.NodeMask, Flags = excluded.Flags,"
            " AddToStateObjectParent = excluded.AddToStateObjectParent",
            (key, *columns),
        )
        keys_left = list(collections)
        for index, subobject in enumerate(desc.subobjects):
            where = f"subobjects[{index}]"
            if isinstance(subobject, DxilLibrary):
                library = self._insert("shader_bytecode", "LIB", encode(BLOB, subobject.bytecode, f"{where}.bytecode"))
                self._with_exports("so_to_dxil_lib_associations", key, library, subobject.exports, where)
            elif isinstance(subobject, (ExistingCollectionByKey, *COLLECTIONS)):
                if isinstance(subobject, ExistingCollectionByKey):
                    collection = subobject.key
                elif keys_left:
                    collection = keys_left.pop(0)
                else:
                    raise InvalidArgumentError(f"{where}: a collection is stored by its key, and collections has none for it")
                row = row_of(check_key(collection, f"{where}.key"), f"{where}: collection")
                self._with_exports("so_to_existing_so_associations", key, row, subobject.exports, where)
            elif isinstance(subobject, SubobjectToExportsAssociation):
                self._member(key, "so_to_subobject_to_exports_associations", self._association(desc, subobject, where))
            elif isinstance(subobject, DxilSubobjectToExportsAssociation):
                exports = _texts(subobject.exports, f"{where}.exports")
                row = self._insert(
                    "dxil_subobject_to_exports_associations",
                    encode(TEXT, subobject.subobject, f"{where}.subobject"),
                    extra=exports,
                )
                self._strings(row, exports)
                self._member(key, "so_to_dxil_subobject_to_exports_associations", row)
            elif isinstance(subobject, GenericProgram):
                self._member(key, "so_to_generic_program_associations", self._generic_program(desc, subobject, where))
            elif isinstance(subobject, WorkGraph):
                self._member(key, "so_to_work_graph_associations", self._work_graph(subobject, where))
            elif type(subobject) in _MEMBER_TABLES:
                self._member(key, _MEMBER_TABLES[type(subobject)], self._simple(subobject, where))
            elif not isinstance(subobject, _NOT_MEMBERS):
                raise InvalidArgumentError(f"{where}: the database has no place for a {type(subobject).__name__}")
        if keys_left:
            raise InvalidArgumentError(f"collections: {len(keys_left)} more than the desc has collections")

    def erase_state_object(self, key: bytes) -> None:
        """Delete a state object's row and associations; SQLite refuses it while other rows refer to it."""
        self._erase_members(key)
        self._execute("DELETE FROM state_objects WHERE Key = ?", (key,))

    def _erase_members(self, key: bytes) -> None:
        for table in schema.STATE_OBJECT_ASSOCIATIONS:
            self._execute(f"DELETE FROM {table} WHERE StateObjectKey = ?", (key,))

    def _simple(self, subobject: Any, where: str) -> bytes:
        """The row of a root signature, a ray tracing config or a hit group."""
        if isinstance(subobject, _ROOT_SIGNATURES):
            return self._root_signature(subobject.blob, f"{where}.blob")
        if isinstance(subobject, RaytracingPipelineConfig):
            subobject = RaytracingPipelineConfig1(subobject.max_trace_recursion_depth)
        return self._row(subobject, where)

    def _association(self, desc: StateObjectDesc, association: SubobjectToExportsAssociation, where: str) -> bytes:
        index = association.subobject
        target: Any = desc.subobjects[index] if 0 <= index < len(desc.subobjects) else None
        number = ASSOCIATED_TYPES.get(type(target))
        if number is None:
            found = "not there" if target is None else f"a {type(target).__name__}"
            raise InvalidArgumentError(f"{where}.subobject: subobjects[{index}] is {found}, which belongs to no export")
        if isinstance(target, NodeMask):
            row = struct.pack("<I", encode(UINT, target.node_mask, f"subobjects[{index}]"))
        elif isinstance(target, StateObjectConfig):
            row = struct.pack("<I", encode(UINT, target.flags, f"subobjects[{index}]"))
        else:
            row = self._simple(target, f"subobjects[{index}]")
        exports = _texts(association.exports, f"{where}.exports")
        key = self._insert("subobject_to_exports_associations", int(number), row, extra=exports)
        self._strings(key, exports)
        return key

    def _generic_program(self, desc: StateObjectDesc, program: GenericProgram, where: str) -> bytes:
        states = desc.states_of(program)
        exports = _texts(program.exports, f"{where}.exports")
        key = self._insert(
            "generic_programs",
            encode(TEXT, program.program_name, f"{where}.program_name"),
            self._input_layout(states.input_layout),
            *self._states(states),
            extra=exports,
        )
        self._strings(key, exports)
        return key

    def _work_graph(self, graph: WorkGraph, where: str) -> bytes:
        entries = self._list(graph.entrypoints, f"{where}.entrypoints")
        nodes = []
        for index, node in enumerate(graph.explicitly_defined_nodes):
            at = f"{where}.explicitly_defined_nodes[{index}]"
            overrides = node.overrides or NodeOverrides(enums.NodeOverridesType.NONE)
            outputs = []
            for place, output in enumerate(overrides.output_overrides):
                spot = f"{at}.overrides.output_overrides[{place}]"
                outputs.append(
                    (
                        encode(UINT, output.output_index, spot),
                        self._node_id(output.new_name, spot),
                        encode(optional(BOOL), output.allow_sparse_nodes, spot),
                        encode(optional(UINT), output.max_records, spot),
                        encode(optional(UINT), output.max_records_shared_with_output_index, spot),
                    )
                )
            output_keys = self._distinct("node_output_overrides", [(output, ()) for output in outputs])
            most = overrides.max_input_records_per_graph_entry_record
            columns = (
                encode(TEXT, node.shader, f"{at}.shader"),
                encode(_NODE_TYPE, node.node_type, f"{at}.node_type"),
                encode(_OVERRIDES_TYPE, overrides.type, f"{at}.overrides.type"),
                encode(optional(UINT), overrides.local_root_arguments_table_index, f"{at}.overrides"),
                encode(optional(BOOL), overrides.program_entry, f"{at}.overrides"),
                self._node_id(overrides.new_name, f"{at}.overrides.new_name"),
                self._node_id(overrides.share_input_of, f"{at}.overrides.share_input_of"),
                *_grid(overrides.dispatch_grid, f"{at}.overrides.dispatch_grid"),
                *_grid(overrides.max_dispatch_grid, f"{at}.overrides.max_dispatch_grid"),
                None if most is None else encode(UINT, most.record_count, f"{at}.overrides"),
                None if most is None else int(bool(most.count_shared_across_node_array)),
            )
            nodes.append((columns, tuple(output_keys)))
        node_keys = self._distinct("shader_nodes", nodes)
        for node_key, (_, output_keys_) in zip(node_keys, nodes, strict=True):
            self._associate("workgraph_node_to_node_output_overrides_associations", node_key, output_keys_)
        key = self._insert(
            "work_graphs",
            encode(TEXT, graph.program_name, f"{where}.program_name"),
            encode(flags(enums.WorkGraphFlags), graph.flags, f"{where}.flags"),
            extra=(b"entrypoints", *entries, b"nodes", *node_keys),
        )
        self._associate("work_graph_to_entrypoint_node_id_associations", key, entries)
        self._associate("work_graph_to_work_graph_node_associations", key, node_keys)
        return key

    def _node_id(self, node: NodeId | None, where: str) -> bytes | None:
        return None if node is None else self._row(node, where)

    # Rows and lists

    def _row(self, value: Struct, where: str) -> bytes:
        """The key of the row for a struct whose fields are columns."""
        columns = _columns(value, where)
        return self._insert(ROW_TYPES[type(value)].table, *columns)

    def _list(self, values: Sequence[Struct], where: str) -> list[bytes]:
        """The keys of rows for structs of one class, all different, in order."""
        if not values:
            return []
        rows = [(_columns(value, f"{where}[{index}]"), ()) for index, value in enumerate(values)]
        return self._distinct(ROW_TYPES[type(values[0])].table, rows)

    def _distinct(self, table: str, rows: Sequence[tuple[Sequence[Field], Sequence[bytes]]]) -> list[bytes]:
        seen: dict[Any, int] = {}
        keys = []
        for columns, members in rows:
            identity = (tuple(columns), tuple(members))
            again = seen[identity] = seen.get(identity, -1) + 1
            keys.append(self._insert(table, *columns, extra=(*members, again) if again else members))
        return keys

    def _insert(self, table: str, *columns: Field, extra: Iterable[Field] = ()) -> bytes:
        """The key of a row, which is added unless it is there; ``extra`` is what else the row stands for."""
        key = _digest(table, *columns, *extra)
        self._execute(_INSERTS[table], (key, *columns))
        return key

    def _associate(self, table: str, owner: bytes, members: Iterable[bytes]) -> None:
        for member in members:
            self._execute(_INSERTS[table], (owner, member))

    def _member(self, state_object: bytes, table: str, row: bytes) -> None:
        self._execute(_INSERTS[table], (state_object, row))

    def _with_exports(self, table: str, key: bytes, member: bytes, exports: Sequence[ExportDesc], where: str) -> None:
        if not exports:
            self._execute(_INSERTS[table], (key, member, None))
        for index, export in enumerate(exports):
            self._execute(_INSERTS[table], (key, member, self._row(export, f"{where}.exports[{index}]")))

    def _strings(self, owner: bytes, values: Iterable[str]) -> None:
        for value in values:
            self._execute(_INSERTS["string_associations"], (owner, value))


_ROOT_SIGNATURES: Final = (
    GlobalRootSignature,
    LocalRootSignature,
    GlobalSerializedRootSignature,
    LocalSerializedRootSignature,
)
_MEMBER_TABLES: Final[dict[type, str]] = {
    GlobalRootSignature: "so_to_global_rs_associations",
    GlobalSerializedRootSignature: "so_to_global_rs_associations",
    LocalRootSignature: "so_to_local_rs_associations",
    LocalSerializedRootSignature: "so_to_local_rs_associations",
    HitGroup: "so_to_hit_group_associations",
    RaytracingShaderConfig: "so_to_rt_shader_config_associations",
    RaytracingPipelineConfig: "so_to_rt_pipeline_config_associations",
    RaytracingPipelineConfig1: "so_to_rt_pipeline_config_associations",
}
_NOT_MEMBERS: Final = (StateObjectConfig, NodeMask, ShaderCacheSessionSubobjectDesc, *PROGRAM_STATES)
"""In columns of the state object or of its programs, or not stored: a PSDB, and states that no program names."""
ASSOCIATED_TYPES: Final[dict[type, enums.StateSubobjectType]] = {
    StateObjectConfig: _TYPE.STATE_OBJECT_CONFIG,
    NodeMask: _TYPE.NODE_MASK,
    GlobalRootSignature: _TYPE.GLOBAL_SERIALIZED_ROOT_SIGNATURE,
    GlobalSerializedRootSignature: _TYPE.GLOBAL_SERIALIZED_ROOT_SIGNATURE,
    LocalRootSignature: _TYPE.LOCAL_SERIALIZED_ROOT_SIGNATURE,
    LocalSerializedRootSignature: _TYPE.LOCAL_SERIALIZED_ROOT_SIGNATURE,
    RaytracingShaderConfig: _TYPE.RAYTRACING_SHADER_CONFIG,
    RaytracingPipelineConfig: _TYPE.RAYTRACING_PIPELINE_CONFIG1,
    RaytracingPipelineConfig1: _TYPE.RAYTRACING_PIPELINE_CONFIG1,
}
"""The subobjects that exports are associated with, and the type under which the database has them."""


def _columns(value: Struct, where: str) -> tuple[Field, ...]:
    row = ROW_TYPES.get(type(value))
    if row is None:
        raise InvalidArgumentError(f"{where}: a {type(value).__name__} does not belong here")
    return tuple(encode(codec, getattr(value, field), f"{where}.{field}") for field, codec in row.fields)


def _only(desc: StateObjectDesc, cls: type[NodeMask] | type[StateObjectConfig], field: str) -> int | None:
    """The value of the one subobject of a class, for a column of the state object."""
    values = {int(getattr(subobject, field)) for subobject in desc.of(cls)}
    if len(values) > 1:
        raise InvalidArgumentError(f"subobjects: more than one {cls.__name__}, with {field} {sorted(values)}")
    return values.pop() if values else None


def _grid(grid: tuple[int, int, int] | None, where: str) -> tuple[Field, ...]:
    if grid is None:
        return (None, None, None)
    if len(grid) != 3:
        raise InvalidArgumentError(f"{where}: {grid} has not three dimensions")
    return tuple(encode(UINT, value, where) for value in grid)


def _texts(values: Sequence[str], where: str) -> list[str]:
    """The strings without repeats, which have no meaning and cannot be stored."""
    return list(dict.fromkeys(str(encode(TEXT, value, where)) for value in values))


def _at_most(limit: int, values: Sequence[object], where: str) -> None:
    if len(values) > limit:
        raise InvalidArgumentError(f"{where}: {len(values)} are more than {limit}")


def _digest(*values: Field) -> bytes:
    """SHA-256 over each value as a tag byte, its length (u64 LE) and its bytes."""
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, str):
            tag, data = b"t", value.encode()
        elif isinstance(value, bytes):
            tag, data = b"b", value
        elif isinstance(value, float):
            tag, data = b"r", struct.pack("<d", value + 0.0)
        elif value is None:
            tag, data = b"n", b""
        else:
            tag, data = b"i", struct.pack("<q", value)
        digest.update(tag + len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()
