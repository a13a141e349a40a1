"""Direct3D 12 names for a Python programmer: ``import shaderkiln.direct3d12 as d3d12``.

The names of this package are imported when they are first used.
"""

from __future__ import annotations

from typing import Any

_NAMES = {
    "shaderkiln.direct3d12.application": "ApplicationDesc DeclaredIdentity application_identity declare set_application_identity",
    "shaderkiln.direct3d12.creation": "DriverCrashError",
    "shaderkiln.direct3d12.device": "Direct3D12Device create_device",
    "shaderkiln.direct3d12.features": (
        "Feature FeatureDataExplicitPsdbs FeatureDataShaderCache FeatureDataShaderCacheAbiSupport"
    ),
    "shaderkiln.direct3d12.objects": "PipelineState StateObject",
    "shaderkiln.direct3d12.pipeline_library": "PipelineLibrary",
    "shaderkiln.direct3d12.component_pool": "ComponentPool MappedComponentPool PoolStatistics",
    "shaderkiln.direct3d12.process_debug": "ProcessDebugFlags process_debug_flags set_process_debug_flags",
    "shaderkiln.direct3d12.derived_pipelines": "ComputeVariation",
    "shaderkiln.direct3d12.serialized_components": "DeserializedPipelineState SerializeFlags",
    "shaderkiln.formats.pipeline_components": "SerializedPipelineState SerializedShader ShaderSlot",
    "shaderkiln.direct3d12.statistics": "CreateStateObjectStatistics ObjectSource StateObjectStatistics",
    "shaderkiln.keys": "ValueType",
    "shaderkiln.sessions": (
        "CacheControlFlags CacheFileDesc CacheKindFlags CacheValueTypeFlags DebugLayer DebugMessage DiskSessionDesc "
        "FileSessionDesc MemorySessionDesc RegisteredSessionDesc SessionFileFlags SessionRegisteredFlags Severity "
        "ShaderCacheControl ShaderCacheFlags ShaderCacheMode ShaderCacheSession ShaderCacheSessionDesc "
        "ShaderCacheSupportFlags StoreFlags ValueRequest process_control process_debug_layer"
    ),
    "shaderkiln.descriptions.direct3d12.builders": "PipelineStateStreamBuilder StateObjectBuilder",
    "shaderkiln.descriptions.direct3d12.pipeline_state": "PipelineStateStream",
    "shaderkiln.descriptions.direct3d12.psdb_subobject": "ShaderCacheSessionSubobjectDesc",
    "shaderkiln.descriptions.direct3d12.canonical": "object_key",
    "shaderkiln.descriptions.direct3d12.validation": "validate",
    "shaderkiln.descriptions.direct3d12.enums": (
        "Blend BlendOp ColorWriteEnable ComparisonFunc ConservativeRasterizationMode CullMode DepthWriteMask DxgiFormat "
        "ExportFlags FillMode HitGroupType IndexBufferStripCutValue InputClassification LineRasterizationMode LogicOp "
        "NodeOverridesType NodeType PipelineStateFlags PipelineStateSubobjectType PrimitiveTopologyType "
        "RaytracingPipelineFlags ShaderCacheSessionSubobjectFlags StateObjectFlags StateObjectType StateSubobjectType "
        "StencilOp ViewInstancingFlags WorkGraphFlags"
    ),
    "shaderkiln.descriptions.direct3d12.states": (
        "BlendDesc DepthStencilDesc DepthStencilDesc1 DepthStencilDesc2 DepthStencilFormat DepthStencilOpDesc "
        "DepthStencilOpDesc1 IbStripCutValue InputElementDesc InputLayoutDesc NodeMask PipelineFlags "
        "PrimitiveTopologyDesc RasterizerDesc RasterizerDesc1 RasterizerDesc2 RenderTargetBlendDesc RenderTargetFormats "
        "SampleDesc SampleMask StreamOutputDeclarationEntry StreamOutputDesc ViewInstanceLocation ViewInstancingDesc"
    ),
    "shaderkiln.descriptions.direct3d12.state_object": (
        "CompilerExistingCollection DxilLibrary DxilSubobjectToExportsAssociation ExistingCollection "
        "ExistingCollectionByKey ExportDesc GenericProgram GlobalRootSignature GlobalSerializedRootSignature HitGroup "
        "LocalRootSignature LocalSerializedRootSignature MaxNodeInputRecords Node NodeId NodeOutputOverrides "
        "NodeOverrides RaytracingPipelineConfig RaytracingPipelineConfig1 RaytracingShaderConfig StateObjectConfig "
        "StateObjectDesc SubobjectToExportsAssociation WorkGraph"
    ),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
