"""The published SQLite schema of a state object database, version 2 (Microsoft's State Object Database specification).

The tables are written here in a short form, from which the published statements are made, to the letter: ``name:type``, the types
i, r, t, b being INTEGER, REAL, TEXT and BLOB, with ``?`` where NULL is allowed and ``>table`` where the column refers to a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shaderkiln.errors import CacheCorruptError

from .sqlite_file import FileForm, foreign_and_missing

if TYPE_CHECKING:
    pass

APPLICATION_ID: Final = 0xD3D50DB
USER_VERSION: Final = 2
FORM: Final = FileForm("state object database", APPLICATION_ID, USER_VERSION)

_STATES: Final = (
    "DepthStencilDesc:b?>depth_stencil_descs RenderTargetFormats:b?>render_target_formats BlendDesc:b?>blend_descs"
    " RasterizerDesc:b?>rasterizer_descs ViewInstancingDesc:b?>view_instancing_descs StreamOutDesc:b?>stream_out_descs"
    " SampleDesc_Count:i? SampleDesc_Quality:i? SampleMask:i? IBStripCutValue:i? PrimitiveTopology:i? DSVFormat:i? NodeMask:i?"
    " Flags:i?"
)
_ROWS: Final = {
    "root_signatures": "value:b",
    "input_element_descs": (
        "SemanticName:t SemanticIndex:i Format:i InputSlot:i AlignedByteOffset:i InputSlotClass:i InstanceDataStepRate:i"
    ),
    "state_objects": "Type:i? NodeMask:i? Flags:i? AddToStateObjectParent:b?>state_objects",
    "shader_bytecode": "Type:t? Bytecode:b?",
    "exports": "Name:t ExportToRename:t? Flags:i",
    "depth_stencil_op_descs": (
        "StencilFailOp:i StencilDepthFailOp:i StencilPassOp:i StencilFunc:i StencilReadMask:i StencilWriteMask:i"
    ),
    "depth_stencil_descs": (
        "DepthEnable:i DepthWriteMask:i DepthFunc:i StencilEnable:i FrontFace:b>depth_stencil_op_descs"
        " BackFace:b>depth_stencil_op_descs DepthBoundsTestEnable:i"
    ),
    "render_target_formats": " ".join(f"RTFormat{index}:i" for index in range(8)) + " NumRenderTargets:i",
    "render_target_blend_descs": (
        "BlendEnable:i LogicOpEnable:i SrcBlend:i DestBlend:i BlendOp:i SrcBlendAlpha:i DestBlendAlpha:i BlendOpAlpha:i"
        " LogicOp:i RenderTargetWriteMask:i"
    ),
    "blend_descs": "AlphaToCoverageEnable:i IndependentBlendEnable:i "
    + " ".join(f"RenderTarget{index}:b?>render_target_blend_descs" for index in range(8)),
    "rasterizer_descs": (
        "FillMode:i CullMode:i FrontCounterClockwise:i DepthBias:r DepthBiasClamp:r SlopeScaledDepthBias:r DepthClipEnable:i"
        " LineRasterizationMode:i ForcedSampleCount:i ConservativeRaster:i"
    ),
    "view_instancing_descs": "ViewInstanceCount:i RenderFlags:i "
    + " ".join(f"ViewportArrayIndex{index}:i? RenderTargetArrayIndex{index}:i?" for index in range(4)),
    "so_declarations": "Stream:i SemanticName:t SemanticIndex:i StartComponent:i ComponentCount:i OutputSlot:i",
    "stream_out_descs": " ".join(f"BufferStride{index}:i" for index in range(4)) + " NumStrides:i RasterizedStream:i",
    "rt_hit_groups": ("HitGroupExport:t Type:i AnyHitShaderImport:t? ClosestHitShaderImport:t? IntersectionShaderImport:t?"),
    "rt_shader_config": "MaxPayloadSizeInBytes:i MaxAttributeSizeInBytes:i",
    "rt_pipeline_config": "MaxTraceRecursionDepth:i Flags:i",
    "dxil_subobject_to_exports_associations": "SubobjectToAssociate:t",
    "subobject_to_exports_associations": "SubobjectType:i SubobjectKey:b",
    "generic_programs": f"ProgramName:t? InputLayout:b? {_STATES}",
    "pipeline_states": (
        "RootSignature:b?>root_signatures InputLayout:b? "
        + " ".join(f"ByteCode_{stage}:b?>shader_bytecode" for stage in ("VS", "PS", "HS", "DS", "GS", "AS", "MS", "CS"))
        + f" {_STATES}"
    ),
    "work_graphs": "ProgramName:t Flags:i",
    "node_ids": "Name:t ArrayIndex:i",
    "node_output_overrides": (
        "OutputIndex:i NewName:b?>node_ids AllowSparseNodes:i? MaxRecords:i? MaxRecordsSharedWithOutputIndex:i?"
    ),
    "shader_nodes": (
        "ShaderOrProgram:t NodeType:i OverridesType:i LocalRootArgumentsTableIndex:i? ProgramEntry:i? NewName:b?>node_ids"
        " ShareInputOf:b?>node_ids DispatchGridX:i? DispatchGridY:i? DispatchGridZ:i? MaxDispatchGridX:i? MaxDispatchGridY:i?"
        " MaxDispatchGridZ:i? MaxInputRecordsPerGraphEntryRecord_RecordCount:i?"
        " MaxInputRecordsPerGraphEntryRecord_bCountSharedAcrossNodeArray:i?"
    ),
}
"""Tables of rows under a key."""
_ASSOCIATIONS: Final = {
    "input_layout_to_input_element_associations": "InputLayoutKey:b InputElementKey:b>input_element_descs",
    "stream_output_desc_to_stream_output_decl_associations": (
        "StreamOutDescKey:b>stream_out_descs StreamOutDeclKey:b>so_declarations"
    ),
    "so_to_global_rs_associations": "StateObjectKey:b>state_objects RootSignatureKey:b>root_signatures",
    "so_to_local_rs_associations": "StateObjectKey:b>state_objects RootSignatureKey:b>root_signatures",
    "so_to_dxil_lib_associations": "StateObjectKey:b>state_objects DxilLibKey:b>shader_bytecode ExportKey:b?>exports",
    "so_to_existing_so_associations": (
        "StateObjectKey:b>state_objects ExistingStateObjectKey:b>state_objects ExportKey:b?>exports"
    ),
    "so_to_hit_group_associations": "StateObjectKey:b>state_objects HitGroupKey:b>rt_hit_groups",
    "so_to_rt_shader_config_associations": "StateObjectKey:b>state_objects ShaderConfigKey:b>rt_shader_config",
    "so_to_rt_pipeline_config_associations": "StateObjectKey:b>state_objects PipelineConfigKey:b>rt_pipeline_config",
    "so_to_dxil_subobject_to_exports_associations": (
        "StateObjectKey:b>state_objects DxilSubobjectToExportsAssociationKey:b>dxil_subobject_to_exports_associations"
    ),
    "so_to_subobject_to_exports_associations": (
        "StateObjectKey:b>state_objects SubobjectToExportsAssociationKey:b>subobject_to_exports_associations"
    ),
    "so_to_generic_program_associations": "StateObjectKey:b>state_objects GenericProgramKey:b>generic_programs",
    "so_to_work_graph_associations": "StateObjectKey:b>state_objects WorkGraphKey:b>work_graphs",
    "work_graph_to_entrypoint_node_id_associations": "WorkGraphKey:b>work_graphs NodeIDKey:b>node_ids",
    "workgraph_node_to_node_output_overrides_associations": (
        "WorkGraphNodeKey:b>shader_nodes NodeOutputOverridesKey:b>node_output_overrides"
    ),
    "work_graph_to_work_graph_node_associations": "WorkGraphKey:b>work_graphs WorkGraphNodeKey:b>shader_nodes",
    "string_associations": "OwningTableKey:b? Value:t",
}
"""Tables that join an owner to its members; all columns together are unique."""
_LAST: Final = {
    "groups": "Version:i PSOKey:b?>pipeline_states SOKey:b?>state_objects",
    "app_id": "exe:t app_name:t engine_name:t? app_version:i engine_version:i",
}
_TYPES: Final = {"i": "INTEGER", "r": "REAL", "t": "TEXT", "b": "BLOB"}

STATE_OBJECT_ASSOCIATIONS: Final = tuple(table for table in _ASSOCIATIONS if table.startswith("so_to_"))
"""Where the subobjects of a state object are, by its key."""


def _parsed(spec: str) -> list[tuple[str, str, bool, str]]:
    """(column, type, NULL allowed, table that it refers to) of each column."""
    found = []
    for word in spec.split():
        name, _, rest = word.partition(":")
        kind, _, target = rest.partition(">")
        found.append((name, _TYPES[kind[0]], kind.endswith("?"), target))
    return found


COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    table: tuple(column[0] for column in _parsed(spec)) for table, spec in (_ROWS | _ASSOCIATIONS | _LAST).items()
}
"""The columns of every table, without ``Key`` and ``id``."""


def _statement(table: str, spec: str) -> str:
    parsed = _parsed(spec)
    parts = [f"{name} {kind} {'' if nullable else 'NOT NULL'} " for name, kind, nullable, _ in parsed]
    parts += [f"FOREIGN KEY({name}) REFERENCES {target}(Key)" for name, _, _, target in parsed if target]
    if table in _ASSOCIATIONS:
        head, parts = "", [*parts, f"UNIQUE({', '.join(name for name, *_ in parsed)})"]
    else:
        head = "id INTEGER NOT NULL PRIMARY KEY , " if table == "app_id" else "Key BLOB NOT NULL PRIMARY KEY , "
    return f"CREATE TABLE {table} ({head}{','.join(parts)})"


def _partial_index(table: str, columns: str, null: str) -> str:
    return f"CREATE UNIQUE INDEX {table}_partial_index ON {table}({columns}) WHERE {null} IS NULL"


TABLES: Final[dict[str, str]] = {table: _statement(table, spec) for table, spec in (_ROWS | _ASSOCIATIONS | _LAST).items()}
INDEXES: Final[dict[str, str]] = {
    f"{table}_partial_index": _partial_index(table, columns, null)
    for table, columns, null in (
        ("so_to_dxil_lib_associations", "StateObjectKey,DxilLibKey", "ExportKey"),
        ("so_to_existing_so_associations", "StateObjectKey,ExistingStateObjectKey", "ExportKey"),
        ("string_associations", "Value", "OwningTableKey"),
    )
}


def check_schema(path: Path, rows: Iterable[tuple[Any, ...]]) -> None:
    """Refuse anything but the published tables and indexes: ``rows`` are (type, name, sql) of sqlite_schema.

    White space, letter case and quotes do not count, and the tables that ANALYZE makes may be there. Raises CacheCorruptError;
    views, triggers and virtual tables of a malicious file end here, before any of them is used.
    """
    expected = {("table", name, _normal(sql)) for name, sql in TABLES.items()}
    expected |= {("index", name, _normal(sql)) for name, sql in INDEXES.items()}
    found = {
        (str(kind), str(name), _normal(str(sql)))
        for kind, name, sql in rows
        if not (kind == "index" and sql is None) and not (kind == "table" and name in ("sqlite_stat1", "sqlite_stat4"))
    }
    if found != expected:
        raise CacheCorruptError(f"{path}: unexpected schema: {foreign_and_missing(found, expected)}")


def _normal(sql: str) -> str:
    return re.sub(r'[\s"`\[\];]+', "", sql).lower()
