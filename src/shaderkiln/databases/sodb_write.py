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
    LocalRootSignature,
    LocalSerializedRootSignature,
    NodeOverrides,
    RaytracingPipelineConfig,
    RaytracingPipelineConfig1,
    StateObjectConfig,
    StateObjectDesc,
    SubobjectToExportsAssociation,
    WorkGraph,
)
from shaderkiln.descriptions.direct3d12.states import (
    AnyDepthStencilDesc,
    AnyRasterizerDesc,
    BlendDesc,
    InputLayoutDesc,
    NodeMask,
    StreamOutputDesc,
    ViewInstancingDesc,
)
from shaderkiln.errors import InvalidArgumentError

from . import sodb_schema as schema
from .sodb_columns import (
    ASSOCIATED_TYPES,
    BLOB,
    MEMBER_TABLES,
    NODE,
    NODE_OVERRIDES,
    ROW_TYPES,
    STAGES,
    STATE_OBJECT_FLAGS,
    STATE_OBJECT_TYPE,
    STATES,
    STREAM_OUTPUT,
    TEXT,
    UINT,
    VIEW_INSTANCING_FLAGS,
    WORK_GRAPH_FLAGS,
    Field,
    Fields,
    Reference,
    check_key,
    encode,
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


class Writer:
    """Inserts the rows of descriptions. The transaction is the caller's; what fails leaves rows for it to roll back."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    # Pipeline states

    def pipeline_state(self, stream: PipelineStateStream) -> bytes:
        """The key of the row for a pipeline state. The cached blob and the PSDB subobject are not part of it."""
        root_signature = stream.root_signature_blob
        input_layout, *states = self._fields(stream, STATES)
        return self._insert(
            "pipeline_states",
            None if root_signature is None else self._row(GlobalSerializedRootSignature(root_signature), "root_signature"),
            input_layout,
            *(self._bytecode(stage.rstrip("_").upper(), getattr(stream, stage), stage) for stage in STAGES),
            *states,
        )

    def _bytecode(self, kind: str, code: bytes | None, where: str) -> bytes | None:
        return None if code is None else self._insert("shader_bytecode", kind, encode(BLOB, code, where))

    def _input_layout(self, desc: InputLayoutDesc) -> bytes:
        elements = self._list(desc.elements, "input_layout.elements")
        key = _digest("input_layout", *elements)
        self._associate("input_layout_to_input_element_associations", key, elements)
        return key

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
            encode(VIEW_INSTANCING_FLAGS, desc.flags, "view_instancing.flags"),
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
        key = self._insert("stream_out_descs", *self._fields(desc, STREAM_OUTPUT, "stream_output"), extra=declarations)
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
            encode(STATE_OBJECT_TYPE, desc.type, "type"),
            encode(optional(UINT), _only(desc, NodeMask, "node_mask"), "node_mask"),
            encode(optional(STATE_OBJECT_FLAGS), _only(desc, StateObjectConfig, "flags"), "flags"),
            parent,
        )
        self._execute(
            "INSERT INTO state_objects (Key, Type, NodeMask, Flags, AddToStateObjectParent) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (Key) DO UPDATE SET Type = excluded.Type, NodeMask = excluded.NodeMask, Flags = excluded.Flags,"
            " AddToStateObjectParent = excluded.AddToStateObjectParent",
            (key, *columns),
        )
        keys_left = list(collections)
        for index, subobject in enumerate(map(_newest, desc.subobjects)):
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
                self._associate("so_to_subobject_to_exports_associations", key, [self._association(desc, subobject, where)])
            elif isinstance(subobject, DxilSubobjectToExportsAssociation):
                exports = _texts(subobject.exports, f"{where}.exports")
                name = encode(TEXT, subobject.subobject, f"{where}.subobject")
                row = self._insert("dxil_subobject_to_exports_associations", name, extra=exports)
                self._associate("string_associations", row, exports)
                self._associate("so_to_dxil_subobject_to_exports_associations", key, [row])
            elif isinstance(subobject, GenericProgram):
                self._associate("so_to_generic_program_associations", key, [self._generic_program(desc, subobject, where)])
            elif isinstance(subobject, WorkGraph):
                self._associate("so_to_work_graph_associations", key, [self._work_graph(subobject, where)])
            elif type(subobject) in MEMBER_TABLES:
                self._associate(MEMBER_TABLES[type(subobject)], key, [self._row(subobject, where)])
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

    def _association(self, desc: StateObjectDesc, association: SubobjectToExportsAssociation, where: str) -> bytes:
        index = association.subobject
        target: Any = _newest(desc.subobjects[index]) if 0 <= index < len(desc.subobjects) else None
        number = ASSOCIATED_TYPES.get(type(target))
        if number is None:
            found = "not there" if target is None else f"a {type(target).__name__}"
            raise InvalidArgumentError(f"{where}.subobject: subobjects[{index}] is {found}, which belongs to no export")
        if isinstance(target, NodeMask | StateObjectConfig):
            value = target.node_mask if isinstance(target, NodeMask) else target.flags
            row = struct.pack("<I", encode(UINT, value, f"subobjects[{index}]"))
        else:
            row = self._row(target, f"subobjects[{index}]")
        exports = _texts(association.exports, f"{where}.exports")
        key = self._insert("subobject_to_exports_associations", int(number), row, extra=exports)
        self._associate("string_associations", key, exports)
        return key

    def _generic_program(self, desc: StateObjectDesc, program: GenericProgram, where: str) -> bytes:
        states = desc.states_of(program)
        exports = _texts(program.exports, f"{where}.exports")
        key = self._insert(
            "generic_programs",
            encode(TEXT, program.program_name, f"{where}.program_name"),
            *self._fields(states, STATES),
            extra=exports,
        )
        self._associate("string_associations", key, exports)
        return key

    def _work_graph(self, graph: WorkGraph, where: str) -> bytes:
        entries = self._list(graph.entrypoints, f"{where}.entrypoints")
        nodes = []
        for index, node in enumerate(graph.explicitly_defined_nodes):
            at = f"{where}.explicitly_defined_nodes[{index}]"
            overrides = node.overrides or NodeOverrides(enums.NodeOverridesType.NONE)
            output_keys = self._list(overrides.output_overrides, f"{at}.overrides.output_overrides")
            columns = [*self._fields(node, NODE, at), *self._fields(overrides, NODE_OVERRIDES, f"{at}.overrides")]
            nodes.append((columns, output_keys))
        node_keys = self._distinct("shader_nodes", nodes)
        for node_key, (_, output_keys) in zip(node_keys, nodes, strict=True):
            self._associate("workgraph_node_to_node_output_overrides_associations", node_key, output_keys)
        key = self._insert(
            "work_graphs",
            encode(TEXT, graph.program_name, f"{where}.program_name"),
            encode(WORK_GRAPH_FLAGS, graph.flags, f"{where}.flags"),
            extra=(b"entrypoints", *entries, b"nodes", *node_keys),
        )
        self._associate("work_graph_to_entrypoint_node_id_associations", key, entries)
        self._associate("work_graph_to_work_graph_node_associations", key, node_keys)
        return key

    # Rows and lists

    def _row(self, value: Any, where: str) -> bytes:
        """The key of the row for a struct."""
        makers: dict[type, Callable[[Any], bytes]] = {
            InputLayoutDesc: self._input_layout,
            BlendDesc: self._blend,
            ViewInstancingDesc: self._view_instancing,
            StreamOutputDesc: self._stream_output,
        }
        if isinstance(value, AnyDepthStencilDesc | AnyRasterizerDesc):
            value = value.to_desc2()
        make = makers.get(type(value))
        if make is not None:
            return make(value)
        columns = self._columns(value, where)
        return self._insert(ROW_TYPES[type(value)].table, *columns)

    def _columns(self, value: Struct, where: str) -> list[Field]:
        row = ROW_TYPES.get(type(value))
        if row is None:
            raise InvalidArgumentError(f"{where}: a {type(value).__name__} does not belong here")
        return self._fields(value, row.fields, where)

    def _fields(self, value: Struct, fields: Fields, where: str = "") -> list[Field]:
        """The columns of fields."""
        columns: list[Field] = []
        for field, part in fields:
            item, at = getattr(value, field), f"{where}.{field}".lstrip(".")
            if not isinstance(part, Reference):
                column = encode(part, item, at)
                columns += (column,) if part.width == 1 else column
            elif item is None and part.key is not BLOB:
                columns.append(None)
            else:
                columns.append(self._row(item, at))
        return columns

    def _list(self, values: Sequence[Struct], where: str) -> list[bytes]:
        """The keys of rows for structs of one class, all different, in order."""
        if not values:
            return []
        rows = [(self._columns(value, f"{where}[{index}]"), ()) for index, value in enumerate(values)]
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

    def _associate(self, table: str, owner: bytes, members: Iterable[Field]) -> None:
        for member in members:
            self._execute(_INSERTS[table], (owner, member))

    def _with_exports(self, table: str, key: bytes, member: bytes, exports: Sequence[ExportDesc], where: str) -> None:
        rows: list[bytes | None] = [self._row(export, f"{where}.exports[{index}]") for index, export in enumerate(exports)]
        for row in rows or [None]:
            self._execute(_INSERTS[table], (key, member, row))


_NOT_MEMBERS: Final = (StateObjectConfig, NodeMask, ShaderCacheSessionSubobjectDesc, *PROGRAM_STATES)
"""In columns of the state object or of its programs, or not stored: a PSDB, and states that no program names."""


def _newest(subobject: Any) -> Any:
    """The form in which a subobject is stored."""
    if isinstance(subobject, GlobalRootSignature):
        return GlobalSerializedRootSignature(subobject.blob)
    if isinstance(subobject, LocalRootSignature):
        return LocalSerializedRootSignature(subobject.blob)
    if isinstance(subobject, RaytracingPipelineConfig):
        return RaytracingPipelineConfig1(subobject.max_trace_recursion_depth)
    return subobject


def _only(desc: StateObjectDesc, cls: type[NodeMask] | type[StateObjectConfig], field: str) -> int | None:
    """The value of the one subobject of a class, for a column of the state object."""
    values = {int(getattr(subobject, field)) for subobject in desc.of(cls)}
    if len(values) > 1:
        raise InvalidArgumentError(f"subobjects: more than one {cls.__name__}, with {field} {sorted(values)}")
    return values.pop() if values else None


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
