"""State objects: collections, ray tracing pipelines and executables, with every subobject of the headers.

A StateObjectDesc holds its subobjects in a tuple, and a subobject that refers to another names its index there. The fixed-function
states of ``states`` are subobjects as they are. ``StateObjectBuilder`` keeps the indices for you.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar, Union

import msgspec
from msgspec import Struct

from shaderkiln.descriptions.direct3d12.enums import (
    ExportFlags,
    HitGroupType,
    NodeOverridesType,
    NodeType,
    RaytracingPipelineFlags,
    ShaderCacheSessionSubobjectFlags,
    StateObjectFlags,
    StateObjectType,
    StateSubobjectType,
    WorkGraphFlags,
)
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.psdb_subobject import (
    ShaderCacheSession,
    ShaderCacheSessionSubobjectDesc,
    psdb_subobject,
)
from shaderkiln.descriptions.direct3d12.states import (
    BlendDesc,
    DepthStencilDesc,
    DepthStencilDesc1,
    DepthStencilDesc2,
    DepthStencilFormat,
    IbStripCutValue,
    InputLayoutDesc,
    NodeMask,
    PipelineFlags,
    PrimitiveTopologyDesc,
    RasterizerDesc2,
    RenderTargetFormats,
    SampleDesc,
    SampleMask,
    StreamOutputDesc,
    Subobject,
    ViewInstancingDesc,
)
from shaderkiln.errors import InvalidArgumentError


class StateObjectConfig(Subobject, frozen=True):
    """D3D12_STATE_OBJECT_CONFIG."""

    flags: StateObjectFlags = StateObjectFlags.NONE


# Root signatures, all as serialized bytes


class GlobalRootSignature(Subobject, frozen=True):
    """D3D12_GLOBAL_ROOT_SIGNATURE: the serialized form of the object that Direct3D 12 points to."""

    blob: bytes


class LocalRootSignature(Subobject, frozen=True):
    """D3D12_LOCAL_ROOT_SIGNATURE: the serialized form of the object that Direct3D 12 points to."""

    blob: bytes


class GlobalSerializedRootSignature(Subobject, frozen=True):
    """D3D12_GLOBAL_SERIALIZED_ROOT_SIGNATURE."""

    blob: bytes


class LocalSerializedRootSignature(Subobject, frozen=True):
    """D3D12_LOCAL_SERIALIZED_ROOT_SIGNATURE."""

    blob: bytes


# Code


class ExportDesc(Struct, frozen=True):
    """D3D12_EXPORT_DESC: a name for outside, and the name inside if that is another (``*`` is the only export of a library)."""

    name: str
    export_to_rename: str | None = None
    flags: ExportFlags = ExportFlags.NONE


class DxilLibrary(Subobject, frozen=True):
    """D3D12_DXIL_LIBRARY_DESC. Without exports everything in the library is exported."""

    bytecode: bytes
    exports: tuple[ExportDesc, ...] = ()


class ExistingCollection(Subobject, frozen=True):
    """D3D12_EXISTING_COLLECTION_DESC: the description of the collection that Direct3D 12 points to."""

    collection: StateObjectDesc
    exports: tuple[ExportDesc, ...] = ()


class CompilerExistingCollection(Subobject, frozen=True):
    """D3D12_COMPILER_EXISTING_COLLECTION_DESC: as ExistingCollection, of a collection that a compiler plugin made."""

    collection: StateObjectDesc
    exports: tuple[ExportDesc, ...] = ()


class ExistingCollectionByKey(Subobject, frozen=True):
    """D3D12_EXISTING_COLLECTION_BY_KEY_DESC: a collection of the same state object database."""

    key: bytes
    exports: tuple[ExportDesc, ...] = ()


# Associations


class SubobjectToExportsAssociation(Subobject, frozen=True):
    """D3D12_SUBOBJECT_TO_EXPORTS_ASSOCIATION. Without exports it makes the subobject the default for those without one."""

    subobject: int
    """Index in ``StateObjectDesc.subobjects``."""
    exports: tuple[str, ...] = ()


class DxilSubobjectToExportsAssociation(Subobject, frozen=True):
    """D3D12_DXIL_SUBOBJECT_TO_EXPORTS_ASSOCIATION: of a subobject that is defined in a library, by its name there."""

    subobject: str
    exports: tuple[str, ...] = ()


# Ray tracing


class HitGroup(Subobject, frozen=True):
    """D3D12_HIT_GROUP_DESC."""

    hit_group_export: str
    type: HitGroupType = HitGroupType.TRIANGLES
    any_hit_shader_import: str | None = None
    closest_hit_shader_import: str | None = None
    intersection_shader_import: str | None = None


class RaytracingShaderConfig(Subobject, frozen=True):
    """D3D12_RAYTRACING_SHADER_CONFIG, in bytes."""

    max_payload_size_in_bytes: int
    max_attribute_size_in_bytes: int


class RaytracingPipelineConfig(Subobject, frozen=True):
    """D3D12_RAYTRACING_PIPELINE_CONFIG."""

    max_trace_recursion_depth: int


class RaytracingPipelineConfig1(Subobject, frozen=True):
    """D3D12_RAYTRACING_PIPELINE_CONFIG1."""

    max_trace_recursion_depth: int
    flags: RaytracingPipelineFlags = RaytracingPipelineFlags.NONE


# Work graphs


class NodeId(Struct, frozen=True):
    """D3D12_NODE_ID."""

    name: str
    array_index: int = 0


class NodeOutputOverrides(Struct, frozen=True):
    """D3D12_NODE_OUTPUT_OVERRIDES; None keeps what the shader says."""

    output_index: int
    new_name: NodeId | None = None
    allow_sparse_nodes: bool | None = None
    max_records: int | None = None
    max_records_shared_with_output_index: int | None = None


class MaxNodeInputRecords(Struct, frozen=True):
    """The maximum of input records per graph entry record, which databases store and the released headers do not have."""

    record_count: int
    count_shared_across_node_array: bool = False


class NodeOverrides(Struct, frozen=True):
    """The launch overrides of a node; None keeps what the shader says.

    Direct3D 12 has a structure for each type of launch. Only BROADCASTING_LAUNCH has the two grids.
    """

    type: NodeOverridesType
    local_root_arguments_table_index: int | None = None
    program_entry: bool | None = None
    new_name: NodeId | None = None
    share_input_of: NodeId | None = None
    dispatch_grid: tuple[int, int, int] | None = None
    max_dispatch_grid: tuple[int, int, int] | None = None
    output_overrides: tuple[NodeOutputOverrides, ...] = ()
    max_input_records_per_graph_entry_record: MaxNodeInputRecords | None = None


class Node(Struct, frozen=True):
    """D3D12_NODE with its D3D12_SHADER_NODE: a node that the work graph names itself."""

    shader: str
    overrides: NodeOverrides | None = None
    node_type: NodeType = NodeType.SHADER


class WorkGraph(Subobject, frozen=True):
    """D3D12_WORK_GRAPH_DESC; the order of entry points and nodes gives their indices."""

    program_name: str
    flags: WorkGraphFlags = WorkGraphFlags.NONE
    entrypoints: tuple[NodeId, ...] = ()
    explicitly_defined_nodes: tuple[Node, ...] = ()


class GenericProgram(Subobject, frozen=True):
    """D3D12_GENERIC_PROGRAM_DESC: shaders by export name, and the states that belong to them."""

    program_name: str
    exports: tuple[str, ...] = ()
    subobjects: tuple[int, ...] = ()
    """Indices in ``StateObjectDesc.subobjects``."""


StateSubobject: TypeAlias = Union[  # noqa: UP007 - a forward reference to StateObjectDesc is inside
    StateObjectConfig,
    GlobalRootSignature,
    LocalRootSignature,
    NodeMask,
    DxilLibrary,
    ExistingCollection,
    SubobjectToExportsAssociation,
    DxilSubobjectToExportsAssociation,
    RaytracingShaderConfig,
    RaytracingPipelineConfig,
    HitGroup,
    RaytracingPipelineConfig1,
    WorkGraph,
    StreamOutputDesc,
    BlendDesc,
    SampleMask,
    RasterizerDesc2,
    DepthStencilDesc,
    InputLayoutDesc,
    IbStripCutValue,
    PrimitiveTopologyDesc,
    RenderTargetFormats,
    DepthStencilFormat,
    SampleDesc,
    PipelineFlags,
    DepthStencilDesc1,
    ViewInstancingDesc,
    GenericProgram,
    DepthStencilDesc2,
    GlobalSerializedRootSignature,
    LocalSerializedRootSignature,
    CompilerExistingCollection,
    ExistingCollectionByKey,
    ShaderCacheSessionSubobjectDesc,
]

_Subobject = TypeVar("_Subobject")
_ClassOf: TypeAlias = type[_Subobject]


class StateObjectDesc(Struct, frozen=True, tag_field="class"):
    """D3D12_STATE_OBJECT_DESC."""

    type: StateObjectType
    subobjects: tuple[StateSubobject, ...] = ()

    def of(self, cls: _ClassOf[_Subobject]) -> tuple[_Subobject, ...]:
        """The subobjects of one class, in order."""
        return tuple(subobject for subobject in self.subobjects if isinstance(subobject, cls))

    @property
    def psdb(self) -> ShaderCacheSessionSubobjectDesc | None:
        """The PSDB subobject, if there is one."""
        return next(iter(self.of(ShaderCacheSessionSubobjectDesc)), None)

    @property
    def flags(self) -> StateObjectFlags:
        """The flags of all state object configs together."""
        flags = StateObjectFlags.NONE
        for config in self.of(StateObjectConfig):
            flags |= config.flags
        return flags

    @property
    def node_mask(self) -> int:
        """The node mask; 0 without one."""
        return next((mask.node_mask for mask in self.of(NodeMask)), 0)

    def states_of(self, program: GenericProgram) -> PipelineStateStream:
        """The states that a generic program names, as a stream without shaders.

        Raises InvalidArgumentError for an index without a subobject, for a subobject that programs cannot name, and for a state
        that is named twice.
        """
        states: dict[str, Any] = {}
        for index in program.subobjects:
            subobject = self.subobjects[index] if 0 <= index < len(self.subobjects) else None
            field, attribute = PROGRAM_STATES.get(type(subobject), ("", None))
            if subobject is None or not field:
                found = "not there" if subobject is None else f"a {type(subobject).__name__}"
                raise InvalidArgumentError(
                    f"program {program.program_name!r}: subobjects[{index}] is {found} and no pipeline state"
                )
            if field in states:
                raise InvalidArgumentError(f"program {program.program_name!r} has more than one {field} subobject")
            states[field] = subobject if attribute is None else getattr(subobject, attribute)
        return PipelineStateStream(**states)

    def with_psdb(
        self,
        session: ShaderCacheSession | None,
        flags: ShaderCacheSessionSubobjectFlags = ShaderCacheSessionSubobjectFlags.NONE,
    ) -> StateObjectDesc:
        """The same desc with this explicit PSDB session in place of any other. Raises InvalidArgumentError (EP-12)."""
        return self.with_psdb_desc(psdb_subobject(session, flags))

    def with_psdb_desc(self, desc: ShaderCacheSessionSubobjectDesc) -> StateObjectDesc:
        """The same desc with this PSDB subobject in place of any other. Raises InvalidArgumentError (EP-12)."""
        psdb_subobject(desc)
        rest = self.remove_subobjects_by_type(StateSubobjectType.PSDB)
        return msgspec.structs.replace(rest, subobjects=(*rest.subobjects, desc))

    def remove_subobjects_by_type(self, type_: StateSubobjectType) -> StateObjectDesc:
        """The same desc without the subobjects of a type, and without what refers to them (EP-13).

        An association with a removed subobject goes as a whole; a generic program stays and only names it no longer.
        """
        try:
            type_ = StateSubobjectType(type_)
        except ValueError:
            raise InvalidArgumentError(f"subobject type: {type_!r} is no D3D12_STATE_SUBOBJECT_TYPE") from None
        gone = {index for index, subobject in enumerate(self.subobjects) if subobject.subobject_type == type_}
        return self if not gone else without_subobjects(self, gone)


def without_subobjects(desc: StateObjectDesc, gone: set[int]) -> StateObjectDesc:
    """The same desc without the subobjects at some indices and the associations with them; other indices follow."""
    gone = set(gone)
    while True:
        more = {
            index
            for index, subobject in enumerate(desc.subobjects)
            if index not in gone and isinstance(subobject, SubobjectToExportsAssociation) and subobject.subobject in gone
        }
        if not more:
            break
        gone |= more
    kept = [index for index in range(len(desc.subobjects)) if index not in gone]
    new = {old: position for position, old in enumerate(kept)}
    return StateObjectDesc(
        desc.type,
        tuple(
            with_references(desc.subobjects[index], lambda old: None if old in gone else new.get(old, old)) for index in kept
        ),
    )


def with_references(subobject: StateSubobject, changed: Callable[[int], int | None]) -> StateSubobject:
    """The same subobject with other indices; a generic program loses those for which ``changed`` gives None."""
    if isinstance(subobject, SubobjectToExportsAssociation):
        index = changed(subobject.subobject)
        if index is None:
            raise InvalidArgumentError("an association needs its subobject")
        return msgspec.structs.replace(subobject, subobject=index)
    if isinstance(subobject, GenericProgram):
        indices = (changed(index) for index in subobject.subobjects)
        return msgspec.structs.replace(subobject, subobjects=tuple(index for index in indices if index is not None))
    return subobject


COLLECTIONS: Final = (ExistingCollection, CompilerExistingCollection)
"""The subobjects that hold another state object's description."""
SUBOBJECT_CLASSES: Final[dict[StateSubobjectType, type[Struct]]] = {
    cls.subobject_type: cls
    for cls in StateSubobject.__args__  # type: ignore[attr-defined]
}
"""The class of each type of subobject."""

PROGRAM_STATES: Final[dict[type, tuple[str, str | None]]] = {
    StreamOutputDesc: ("stream_output", None),
    BlendDesc: ("blend", None),
    SampleMask: ("sample_mask", "sample_mask"),
    RasterizerDesc2: ("rasterizer", None),
    DepthStencilDesc: ("depth_stencil", None),
    DepthStencilDesc1: ("depth_stencil", None),
    DepthStencilDesc2: ("depth_stencil", None),
    InputLayoutDesc: ("input_layout", None),
    IbStripCutValue: ("ib_strip_cut_value", "value"),
    PrimitiveTopologyDesc: ("primitive_topology", "primitive_topology"),
    RenderTargetFormats: ("render_target_formats", None),
    DepthStencilFormat: ("depth_stencil_format", "format"),
    SampleDesc: ("sample_desc", None),
    PipelineFlags: ("flags", "flags"),
    ViewInstancingDesc: ("view_instancing", None),
}
"""The subobjects that a generic program can name: each one's field in a stream, and where its value is, if it is not the value."""
