"""Rows of a state object database to descriptions, whoever wrote them and in whatever order the rows are.

Members of a list come in the order in which their associations were inserted, which is all that the schema has of an order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from shaderkiln.descriptions.direct3d12 import enums
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import (
    PROGRAM_STATES,
    DxilLibrary,
    DxilSubobjectToExportsAssociation,
    ExistingCollectionByKey,
    ExportDesc,
    GenericProgram,
    GlobalSerializedRootSignature,
    LocalSerializedRootSignature,
    Node,
    NodeId,
    NodeOutputOverrides,
    NodeOverrides,
    RaytracingPipelineConfig1,
    StateObjectConfig,
    StateObjectDesc,
    SubobjectToExportsAssociation,
    WorkGraph,
)
from shaderkiln.descriptions.direct3d12.states import (
    BlendDesc,
    InputElementDesc,
    InputLayoutDesc,
    NodeMask,
    RenderTargetBlendDesc,
    StreamOutputDeclarationEntry,
    StreamOutputDesc,
    ViewInstanceLocation,
    ViewInstancingDesc,
)
from shaderkiln.errors import DamagedInputError

from . import sodb_schema as schema
from .sodb_columns import (
    ASSOCIATED_TYPES,
    BLOB,
    BOOL,
    MEMBER_TABLES,
    NODE,
    NODE_OVERRIDES,
    ROW_TYPES,
    STAGES,
    STATE_COLUMNS,
    STATE_OBJECT_FLAGS,
    STATE_OBJECT_TYPE,
    STATES,
    STREAM_OUTPUT,
    TEXT,
    UINT,
    VIEW_INSTANCING_FLAGS,
    WORK_GRAPH_FLAGS,
    Fields,
    Reference,
    decode,
    optional,
)

if TYPE_CHECKING:
    import apsw

MAXIMUM_LIST: Final = 1 << 16
"""Members of one list; no description has nearly as many."""
_T = enums.StateSubobjectType
_S = TypeVar("_S", bound=Struct)
_V = TypeVar("_V")
Row = dict[str, Any]


class Reader:
    """Builds the description of one object. Rows that are used several times are read once."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._known: dict[tuple[str, bytes], Any] = {}

    # Pipeline states

    def pipeline_state(self, key: bytes) -> PipelineStateStream:
        """The pipeline state of a row. Raises DamagedInputError for a row that is missing or holds what it may not."""
        row = self._columns("pipeline_states", key)
        root_signature = row["RootSignature"]
        stages = {stage: row[f"ByteCode_{stage.rstrip('_').upper()}"] for stage in STAGES}
        codes: dict[str, Any] = {stage: None if code is None else self._bytecode(code) for stage, code in stages.items()}
        return PipelineStateStream(
            serialized_root_signature=None
            if root_signature is None
            else self._row(GlobalSerializedRootSignature, root_signature).blob,
            **codes,
            **self._fields("pipeline_states", STATES, row, STATE_COLUMNS),
        )

    def _bytecode(self, key: bytes) -> bytes:
        def read(key: bytes) -> bytes:
            code = decode(optional(BLOB), self._columns("shader_bytecode", key)["Bytecode"], "shader_bytecode.Bytecode")
            return b"" if code is None else bytes(code)

        return self._once("shader_bytecode", key, read)

    def _input_layout(self, key: bytes) -> InputLayoutDesc:
        elements = self._members("input_layout_to_input_element_associations", key)
        return InputLayoutDesc(tuple(self._row(InputElementDesc, element) for element in elements))

    def _blend(self, key: bytes) -> BlendDesc:
        table = "blend_descs"
        row = self._columns(table, key)
        targets = [row[f"RenderTarget{index}"] for index in range(8)]
        while targets and targets[-1] is None:
            targets.pop()
        return BlendDesc(
            alpha_to_coverage_enable=decode(BOOL, row["AlphaToCoverageEnable"], f"{table}.AlphaToCoverageEnable"),
            independent_blend_enable=decode(BOOL, row["IndependentBlendEnable"], f"{table}.IndependentBlendEnable"),
            render_target=tuple(
                RenderTargetBlendDesc() if target is None else self._row(RenderTargetBlendDesc, target) for target in targets
            ),
        )

    def _view_instancing(self, key: bytes) -> ViewInstancingDesc:
        table = "view_instancing_descs"
        row = self._columns(table, key)
        count: int = decode(UINT, row["ViewInstanceCount"], f"{table}.ViewInstanceCount")
        if count > 4:
            raise DamagedInputError(f"{table}.ViewInstanceCount: {count} is more than 4")

        def column(name: str) -> int:
            value: int | None = decode(optional(UINT), row[name], f"{table}.{name}")
            return value or 0

        return ViewInstancingDesc(
            tuple(
                ViewInstanceLocation(column(f"ViewportArrayIndex{index}"), column(f"RenderTargetArrayIndex{index}"))
                for index in range(count)
            ),
            decode(VIEW_INSTANCING_FLAGS, row["RenderFlags"], f"{table}.RenderFlags"),
        )

    def _stream_output(self, key: bytes) -> StreamOutputDesc:
        table = "stream_out_descs"
        row = self._columns(table, key)
        declarations = self._members("stream_output_desc_to_stream_output_decl_associations", key)
        return StreamOutputDesc(
            tuple(self._row(StreamOutputDeclarationEntry, declaration) for declaration in declarations),
            **self._fields(table, STREAM_OUTPUT, row, schema.COLUMNS[table]),
        )

    # State objects

    def state_object(self, key: bytes, key_of: Callable[[bytes], bytes]) -> tuple[StateObjectDesc, bytes | None]:
        """The state object of a row, and its parent's key; ``key_of`` gives the key that a state object's row is stored under."""
        row = self._columns("state_objects", key)
        subobjects = _Subobjects()
        mask = decode(optional(UINT), row["NodeMask"], "state_objects.NodeMask")
        config = decode(optional(STATE_OBJECT_FLAGS), row["Flags"], "state_objects.Flags")
        if config is not None:
            subobjects.index(StateObjectConfig(config))
        if mask is not None:
            subobjects.index(NodeMask(mask))
        root_signatures, others = _MEMBERS[:2], _MEMBERS[2:]
        for cls, table in root_signatures:
            for member in self._members(table, key):
                subobjects.index(self._row(cls, member))
        for member, exports in self._with_exports("so_to_dxil_lib_associations", key):
            subobjects.index(DxilLibrary(self._bytecode(member), exports))
        for member, exports in self._with_exports("so_to_existing_so_associations", key):
            subobjects.index(ExistingCollectionByKey(key_of(member), exports))
        for cls, table in others:
            for member in self._members(table, key):
                subobjects.index(self._row(cls, member))
        for member in self._members("so_to_generic_program_associations", key):
            subobjects.index(self._generic_program(member, subobjects))
        for member in self._members("so_to_work_graph_associations", key):
            subobjects.index(self._work_graph(member))
        for member in self._members("so_to_dxil_subobject_to_exports_associations", key):
            table = "dxil_subobject_to_exports_associations"
            name = decode(TEXT, self._columns(table, member)["SubobjectToAssociate"], f"{table}.SubobjectToAssociate")
            subobjects.index(DxilSubobjectToExportsAssociation(name, self._strings(member)))
        for member in self._members("so_to_subobject_to_exports_associations", key):
            target = subobjects.index(self._associated(member))
            subobjects.index(SubobjectToExportsAssociation(target, self._strings(member)))
        kind = decode(STATE_OBJECT_TYPE, row["Type"], "state_objects.Type")
        parent = decode(optional(BLOB), row["AddToStateObjectParent"], "state_objects.AddToStateObjectParent")
        return StateObjectDesc(kind, tuple(subobjects.found)), None if parent is None else key_of(parent)

    def _associated(self, key: bytes) -> Any:
        """The subobject that an association belongs to."""
        table = "subobject_to_exports_associations"
        row = self._columns(table, key)
        number = decode(UINT, row["SubobjectType"], f"{table}.SubobjectType")
        target = decode(BLOB, row["SubobjectKey"], f"{table}.SubobjectKey")
        cls = _ASSOCIATED_CLASSES.get(number)
        if cls is None:
            raise DamagedInputError(f"{table}.SubobjectType: {number} belongs to no export")
        if cls in ROW_TYPES:
            return self._row(cls, target)
        if len(target) != 4:
            raise DamagedInputError(f"{table}.SubobjectKey: {len(target)} bytes where a 32-bit value is expected")
        (value,) = struct.unpack("<I", target)
        return NodeMask(value) if cls is NodeMask else StateObjectConfig(enums.StateObjectFlags(value))

    def _generic_program(self, key: bytes, subobjects: _Subobjects) -> GenericProgram:
        table = "generic_programs"
        row = self._columns(table, key)
        states = self._fields(table, STATES, row, STATE_COLUMNS)
        mask = states.pop("node_mask")
        if mask is not None:
            # Programs cannot name a node mask; it holds for the whole state object.
            subobjects.index(NodeMask(mask))
        indices = []
        for field, value in states.items():
            if value is not None:
                cls, attribute = _STATE_CLASSES[field]
                indices.append(subobjects.index(value if attribute is None else cls(**{attribute: value})))
        name = decode(optional(TEXT), row["ProgramName"], f"{table}.ProgramName")
        return GenericProgram(name or "", self._strings(key), tuple(indices))

    def _work_graph(self, key: bytes) -> WorkGraph:
        row = self._columns("work_graphs", key)
        entries = self._members("work_graph_to_entrypoint_node_id_associations", key)
        nodes = self._members("work_graph_to_work_graph_node_associations", key)
        return WorkGraph(
            decode(TEXT, row["ProgramName"], "work_graphs.ProgramName"),
            decode(WORK_GRAPH_FLAGS, row["Flags"], "work_graphs.Flags"),
            tuple(self._row(NodeId, entry) for entry in entries),
            tuple(self._once("shader_nodes", node, self._node) for node in nodes),
        )

    def _node(self, key: bytes) -> Node:
        table = "shader_nodes"
        row = self._columns(table, key)
        columns = schema.COLUMNS[table]
        outputs = self._members("workgraph_node_to_node_output_overrides_associations", key)
        overrides = NodeOverrides(
            **self._fields(table, NODE_OVERRIDES, row, columns[len(NODE) :]),
            output_overrides=tuple(self._row(NodeOutputOverrides, output) for output in outputs),
        )
        return Node(
            **self._fields(table, NODE, row, columns),
            overrides=None if overrides == NodeOverrides(enums.NodeOverridesType.NONE) else overrides,
        )

    # Rows and lists

    def _row(self, cls: type[_S], key: bytes) -> _S:
        """The struct of a row."""
        makers: dict[type[Any], Callable[[bytes], Any]] = {
            InputLayoutDesc: self._input_layout,
            BlendDesc: self._blend,
            ViewInstancingDesc: self._view_instancing,
            StreamOutputDesc: self._stream_output,
        }

        def read(key: bytes) -> _S:
            table, fields = ROW_TYPES[cls]
            return cls(**self._fields(table, fields, self._columns(table, key), schema.COLUMNS[table]))

        found: _S = self._once(cls.__name__, key, makers.get(cls, read))
        return found

    def _fields(self, table: str, fields: Fields, row: Row, columns: Iterable[str]) -> dict[str, Any]:
        """The values of fields, whose columns come first in ``columns``."""
        values: dict[str, Any] = {}
        names = iter(columns)
        for field, part in fields:
            name, *more = islice(names, part.width)
            where = f"{table}.{name}"
            if isinstance(part, Reference):
                key = decode(part.key, row[name], where)
                values[field] = None if key is None else self._row(part.cls, key)
            else:
                values[field] = decode(part, [row[each] for each in (name, *more)] if more else row[name], where)
        return values

    def _once(self, table: str, key: bytes, read: Callable[[bytes], _V]) -> _V:
        known = (table, key)
        if known not in self._known:
            self._known[known] = read(key)
        # A table's rows are read in one way only.
        value: _V = self._known[known]
        return value

    def _columns(self, table: str, key: object) -> Row:
        """The columns of a row by name."""
        columns = schema.COLUMNS[table]
        if isinstance(key, bytes):
            for row in self._execute(f"SELECT {', '.join(columns)} FROM {table} WHERE Key = ?", (key,)):
                return dict(zip(columns, row, strict=True))
        shown = key.hex()[:80] if isinstance(key, bytes) else repr(key)[:80]
        raise DamagedInputError(f"table {table} has no row {shown}, to which another row refers")

    def _members(self, table: str, owner: bytes) -> list[bytes]:
        """The members that an owner's associations name, in order."""
        columns = schema.COLUMNS[table]
        return [decode(BLOB, row[0], f"{table}.{columns[1]}") for row in self._associations(table, columns[1:], owner)]

    def _strings(self, owner: bytes) -> tuple[str, ...]:
        rows = self._associations("string_associations", ("Value",), owner)
        return tuple(decode(TEXT, row[0], "string_associations.Value") for row in rows)

    def _with_exports(self, table: str, owner: bytes) -> list[tuple[bytes, tuple[ExportDesc, ...]]]:
        """Members with their exports. A row without one stands for a member that exports all, beside those with some."""
        found: dict[tuple[bytes, bool], list[ExportDesc]] = {}
        columns = schema.COLUMNS[table]
        for member, export in self._associations(table, columns[1:], owner):
            exports = found.setdefault((decode(BLOB, member, f"{table}.{columns[1]}"), export is None), [])
            if export is not None:
                exports.append(self._row(ExportDesc, export))
        return [(member, tuple(exports)) for (member, _), exports in found.items()]

    def _associations(self, table: str, columns: tuple[str, ...], owner: bytes) -> list[tuple[Any, ...]]:
        """Asked for in order of insertion: an index would give them by key."""
        sql = f"SELECT {', '.join(columns)} FROM {table} WHERE {schema.COLUMNS[table][0]} = ? ORDER BY rowid LIMIT ?"
        rows = self._execute(sql, (owner, MAXIMUM_LIST + 1)).fetchall()
        if len(rows) > MAXIMUM_LIST:
            raise DamagedInputError(f"{table}: more than {MAXIMUM_LIST} rows for one object")
        return rows


class _Subobjects:
    """Subobjects of a state object, each once, with its index."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self._indices: dict[Any, int] = {}

    def index(self, subobject: Any) -> int:
        if subobject not in self._indices:
            self._indices[subobject] = len(self.found)
            self.found.append(subobject)
        return self._indices[subobject]


_MEMBERS: Final = tuple(MEMBER_TABLES.items())
_ASSOCIATED_CLASSES: Final[dict[int, type[Any]]] = {int(number): cls for cls, number in ASSOCIATED_TYPES.items()} | {
    _T.GLOBAL_ROOT_SIGNATURE: GlobalSerializedRootSignature,
    _T.LOCAL_ROOT_SIGNATURE: LocalSerializedRootSignature,
    _T.RAYTRACING_PIPELINE_CONFIG: RaytracingPipelineConfig1,
}
_STATE_CLASSES: Final[dict[str, tuple[type, str | None]]] = {
    field: (cls, attribute) for cls, (field, attribute) in PROGRAM_STATES.items()
}
