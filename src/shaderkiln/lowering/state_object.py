"""State objects of Direct3D 12 as Vulkan pipelines, which are their parts.

==================== ==================================================================================
what                 parts
==================== ==================================================================================
ray tracing pipeline one pipeline of all its exports and hit groups, with those of its collections and,
                     for an addition, of what it adds to
collection           the same as a pipeline library, if it has ray tracing shaders; otherwise none: its
                     shaders are compiled with the state objects that use them
generic program      a graphics, compute or mesh pipeline each
work graph           none in Vulkan: reported
==================== ==================================================================================

Parts come in this order, those of one kind by name: the order of subobjects has no meaning. A library is DXIL, of which only
shaders that are no library can be translated, or SPIR-V.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import msgspec

from shaderkiln.descriptions.direct3d12.enums import HitGroupType, StateObjectType
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import (
    CompilerExistingCollection,
    DxilLibrary,
    ExistingCollection,
    ExistingCollectionByKey,
    ExportDesc,
    GenericProgram,
    GlobalRootSignature,
    GlobalSerializedRootSignature,
    HitGroup,
    RaytracingPipelineConfig,
    RaytracingPipelineConfig1,
    RaytracingShaderConfig,
    StateObjectDesc,
    StateSubobject,
    SubobjectToExportsAssociation,
    WorkGraph,
)
from shaderkiln.descriptions.pipeline import Application, PipelineDescription, PipelineKind
from shaderkiln.errors import DamagedInputError, InvalidArgumentError
from shaderkiln.formats import dxbc
from shaderkiln.formats.spirv import EntryPoint, inspect_module
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.keys import ObjectKey
from shaderkiln.lowering.layout import declared_layout, misfit, pipeline_layout
from shaderkiln.lowering.objects import Objects, Reasons
from shaderkiln.lowering.pipelines import direct3d12_application, kind_of, lower_pipeline_state
from shaderkiln.lowering.shaders import KINDS, STAGES, ShaderTranslations
from shaderkiln.vulkan_registry import constants as c
from shaderkiln.vulkan_registry import structures as vk

MAXIMUM_DEPTH = 16
"""Of collections in collections."""
MAXIMUM_COLLECTIONS = 4096
"""In one state object, those in collections included."""
RAY_STAGES = {5313: 0x100, 5315: 0x200, 5316: 0x400, 5317: 0x800, 5314: 0x1000, 5318: 0x2000}
"""SPIR-V execution models of ray tracing → VkShaderStageFlagBits: ray generation, any hit, closest hit, miss, intersection,
callable."""
_GENERAL_STAGES = frozenset((0x100, 0x800, 0x2000))
_ALL_RAY_STAGES = 0x3F00
_UNUSED = 0xFFFFFFFF
_LIBRARY_FLAG = 0x800
_RAY_FLAGS = {0x100: 0x1000, 0x200: 0x2000, 0x400: 0x01000000}
"""D3D12_RAYTRACING_PIPELINE_FLAGS → VkPipelineCreateFlagBits: skip triangles, skip procedural primitives, opacity micromaps."""
_STACK_SIZE = c.VK_DYNAMIC_STATE_RAY_TRACING_PIPELINE_STACK_SIZE_KHR
"""VK_DYNAMIC_STATE_RAY_TRACING_PIPELINE_STACK_SIZE_KHR: SetPipelineStackSize may be called at any time."""
_MODEL_STAGES = {0: "vs", 1: "hs", 2: "ds", 3: "gs", 4: "ps", 5: "cs", 5364: "as", 5365: "ms"}
_STAGE_OF_KIND = {kind: stage for stage, kind in KINDS.items()}
_UNTRANSLATED = "not translatable here: a DXIL library; shaders of libraries cannot be translated, SPIR-V is taken as it is"


class LowerPart(Protocol):
    """Makes the description of a part under a name, ``with_code`` or without it as ``lower_pipeline_state`` says."""

    def __call__(self, made: ShaderTranslations, name: str, with_code: bool = True) -> PipelineDescription: ...


Lower = Callable[[bool], PipelineDescription]
"""The same for a device: with code or without."""


@dataclass(frozen=True, slots=True)
class Part:
    """One Vulkan pipeline of a pipeline state or state object."""

    name: str
    """Of a generic program or work graph; empty for what is the whole object."""
    kind: PipelineKind
    object_key: ObjectKey
    """The key of its group."""
    lower: LowerPart
    """Its description under a name. Raises as ``lower_pipeline_state`` does."""


def part_key(object_key: ObjectKey, number: int) -> ObjectKey:
    """The key of an object's part by its place: the object's own key for the first one."""
    if not number:
        return object_key
    return ObjectKey(hashlib.sha256(b"part\0" + object_key + number.to_bytes(4, "little")).digest())


def pipeline_state_parts(stream: PipelineStateStream, object_key: ObjectKey) -> tuple[Part, ...]:
    """The one part of a pipeline state."""

    def lower(made: ShaderTranslations, name: str, with_code: bool = True) -> PipelineDescription:
        return lower_pipeline_state(stream, made, name, with_code=with_code)

    return (Part("", kind_of(stream), object_key, lower),)


def state_object_parts(
    desc: StateObjectDesc, object_key: ObjectKey, parents: Sequence[StateObjectDesc] = ()
) -> tuple[Part, ...]:
    """The parts of a state object whose collections are in it; ``parents`` are what an addition grows, the nearest first.

    Raises DamagedInputError for libraries that are damaged, InvalidArgumentError for what Direct3D 12 would refuse.
    """
    family = (desc, *parents)
    exports = _merged(exports_of(member) for member in family)
    found: list[tuple[str, PipelineKind, LowerPart]] = []
    if _has_rays(desc, family, exports):
        found.append(("", "raytracing", partial(_lower_rays, family, exports)))
    for program in sorted(desc.of(GenericProgram), key=lambda program: program.program_name):
        found.append(_program(family, exports, program))
    for graph in sorted(desc.of(WorkGraph), key=lambda graph: graph.program_name):
        found.append((graph.program_name, "compute", partial(_refuse_work_graph, graph)))
    return tuple(Part(name, kind, part_key(object_key, i), lower) for i, (name, kind, lower) in enumerate(found))


def with_collections(desc: StateObjectDesc, find: Callable[[bytes], StateObjectDesc]) -> StateObjectDesc:
    """The same desc with collections by key replaced by themselves, which changes no object key.

    Raises what ``find`` raises, and DamagedInputError for collections that are nested too deep or too many.
    """
    left = MAXIMUM_COLLECTIONS

    def inlined(desc: StateObjectDesc, depth: int) -> StateObjectDesc:
        return StateObjectDesc(desc.type, tuple(replaced(subobject, depth) for subobject in desc.subobjects))

    def replaced(subobject: StateSubobject, depth: int) -> StateSubobject:
        nonlocal left
        if not isinstance(subobject, ExistingCollectionByKey | ExistingCollection | CompilerExistingCollection):
            return subobject
        left -= 1
        if depth == MAXIMUM_DEPTH or left < 0:
            raise DamagedInputError("collections are nested too deep, or too many")
        if isinstance(subobject, ExistingCollectionByKey):
            return ExistingCollection(inlined(find(subobject.key), depth + 1), subobject.exports)
        return msgspec.structs.replace(subobject, collection=inlined(subobject.collection, depth + 1))

    return inlined(desc, 0)


class VulkanLowering:
    """Descs to the pipelines that a driver creates, with one translator process. May be used by several threads."""

    def __init__(self, identity: ApplicationIdentity | None = None, translations: ShaderTranslations | None = None) -> None:
        self.application: Application = direct3d12_application(identity)
        self._translations = translations or ShaderTranslations()

    def parts(self, desc: PipelineStateStream | StateObjectDesc, parents: Sequence[StateObjectDesc] = ()) -> tuple[Lower, ...]:
        """What gives the pipelines, in the order of ``part_key``.

        Raises as ``state_object_parts``, and what it gives as ``lower_pipeline_state``.
        """
        key = ObjectKey(bytes(32))
        if isinstance(desc, PipelineStateStream):
            parts = pipeline_state_parts(desc, key)
        else:
            parts = state_object_parts(desc, key, parents)
        return tuple(partial(part.lower, self._translations, part.name) for part in parts)

    def close(self) -> None:
        """Ends the translator's process."""
        self._translations.close()


# Exports


@dataclass(frozen=True, slots=True)
class Export:
    """A shader under its outer name."""

    name: str
    code: bytes
    entry_point: str | None
    """In SPIR-V."""
    stage: str
    """A stage of pipeline states, ``ray`` for those of ray tracing, ``library`` where only a translator could tell."""
    ray_stage: int = 0
    """VkShaderStageFlagBits."""


def exports_of(desc: StateObjectDesc, depth: int = MAXIMUM_DEPTH) -> dict[str, Export]:
    """What a state object exports, by name. Raises DamagedInputError for libraries that are damaged."""
    if not depth:
        raise DamagedInputError("collections are nested too deep")
    found: dict[str, Export] = {}
    for library in desc.of(DxilLibrary):
        found |= _selected(_library_exports(library), library.exports)
    for collection in _collections(desc):
        found |= _selected(exports_of(collection.collection, depth - 1), collection.exports)
    return found


def _collections(desc: StateObjectDesc) -> Iterator[ExistingCollection | CompilerExistingCollection]:
    yield from desc.of(ExistingCollection)
    yield from desc.of(CompilerExistingCollection)


def _library_exports(library: DxilLibrary) -> dict[str, Export]:
    code = library.bytecode
    if not dxbc.is_container(code):
        return {e.name: _spirv_export(code, e) for e in inspect_module(code).entry_points}
    program = dxbc.parse(code).program
    stage = "library" if program is None else _STAGE_OF_KIND.get(program.kind, "library")
    # A container does not say the names of its shaders in a part that is read here, so it is taken to have those asked for.
    names = {export.export_to_rename or export.name for export in library.exports} or {"main" if stage != "library" else "*"}
    return {name: Export(name, code, None, stage) for name in names}


def _spirv_export(code: bytes, entry: EntryPoint) -> Export:
    ray = RAY_STAGES.get(entry.execution_model, 0)
    stage = "ray" if ray else _MODEL_STAGES.get(entry.execution_model, "library")
    return Export(entry.name, code, entry.name, stage, ray)


def _selected(inside: Mapping[str, Export], wanted: Sequence[ExportDesc]) -> dict[str, Export]:
    """What of a library is exported, under the new names."""
    if not wanted:
        return dict(inside)
    found: dict[str, Export] = {}
    for export in wanted:
        name = export.export_to_rename or export.name
        source = next(iter(inside.values())) if name == "*" and len(inside) == 1 else inside.get(name)
        if source is None:
            raise InvalidArgumentError(f"exports: the library has no {name!r}")
        found[export.name] = Export(export.name, source.code, source.entry_point, source.stage, source.ray_stage)
    return found


def _merged(parts: Iterable[Mapping[str, Export]]) -> dict[str, Export]:
    """The nearest of each name."""
    found: dict[str, Export] = {}
    for part in parts:
        found = {**part, **found}
    return found


# Root signatures


def root_signature_for(family: Sequence[StateObjectDesc], names: Sequence[str]) -> bytes | None:
    """The global root signature for exports: the one associated with the first of these names that has one, or the default."""
    for desc in family:
        roots = dict(_roots(desc))
        associations = [a for a in desc.of(SubobjectToExportsAssociation) if a.subobject in roots]
        for name in names:
            for association in associations:
                if name in association.exports:
                    return roots[association.subobject]
        for association in associations:
            if not association.exports:
                return roots[association.subobject]
        free = roots.keys() - {a.subobject for a in associations}
        if len(free) == 1:
            return roots[free.pop()]
    return None


def _roots(desc: StateObjectDesc) -> Iterator[tuple[int, bytes]]:
    for index, subobject in enumerate(desc.subobjects):
        if isinstance(subobject, GlobalRootSignature | GlobalSerializedRootSignature):
            yield index, subobject.blob


def _tree(family: Sequence[StateObjectDesc]) -> Iterator[StateObjectDesc]:
    """The descs and the collections in them, nearest first."""
    for desc in family:
        yield desc
        for collection in _collections(desc):
            yield from _tree((collection.collection,))


# Generic programs


def _program(
    family: Sequence[StateObjectDesc], exports: Mapping[str, Export], program: GenericProgram
) -> tuple[str, PipelineKind, LowerPart]:
    states = family[0].states_of(program)
    shaders: dict[str, bytes] = {}
    entry_points: dict[str, str] = {}
    reasons = Reasons()
    for name in dict.fromkeys(program.exports):
        export = exports.get(name)
        if export is None:
            raise InvalidArgumentError(f"program {program.program_name!r}: nothing exports {name!r}")
        if export.stage not in STAGES:
            text = _UNTRANSLATED if export.stage == "library" else "a shader of ray tracing"
            reasons.add(name, f"program {program.program_name!r}, export {name!r}: {text}", where=f"export {name}")
            continue
        field = "as_" if export.stage == "as" else export.stage
        if field in shaders:
            raise InvalidArgumentError(f"program {program.program_name!r} has two shaders for {export.stage}")
        shaders[field] = export.code
        if export.entry_point is not None:
            entry_points[export.stage] = export.entry_point
    root = root_signature_for(tuple(_tree(family)), (program.program_name, *program.exports))
    stream = msgspec.structs.replace(states, root_signature=root, **shaders)

    def lower(made: ShaderTranslations, name: str, with_code: bool = True) -> PipelineDescription:
        reasons.check()
        return lower_pipeline_state(stream, made, name, entry_points=entry_points, with_code=with_code)

    return program.program_name, kind_of(stream), lower


def _refuse_work_graph(graph: WorkGraph, made: ShaderTranslations, name: str, with_code: bool = True) -> PipelineDescription:
    reasons = Reasons()
    reasons.add("work_graph", f"work graph {graph.program_name!r}: Vulkan has no work graphs")
    reasons.check()
    raise AssertionError


# Ray tracing


def _has_rays(desc: StateObjectDesc, family: Sequence[StateObjectDesc], exports: Mapping[str, Export]) -> bool:
    if desc.type == StateObjectType.RAYTRACING_PIPELINE:
        return True
    if desc.type != StateObjectType.COLLECTION:
        return False
    return bool(desc.of(HitGroup)) or any(export.stage in ("ray", "library") for export in exports.values())


def _lower_rays(
    family: Sequence[StateObjectDesc],
    exports: Mapping[str, Export],
    made: ShaderTranslations,
    name: str,
    with_code: bool = True,
) -> PipelineDescription:
    return _RayTracing(family, exports, made, with_code).description(name)


class _RayTracing:
    """All that a ray tracing pipeline or a collection has, gathered from its collections and from what it adds to."""

    def __init__(
        self,
        family: Sequence[StateObjectDesc],
        exports: Mapping[str, Export],
        translations: ShaderTranslations,
        with_code: bool,
    ) -> None:
        self.with_code = with_code
        self.family = family
        self.exports = exports
        self.translations = translations
        self.all = tuple(_tree(family))
        self.objects = Objects()
        self.reasons = Reasons()

    def description(self, name: str) -> PipelineDescription:
        for export in sorted(self.exports.values(), key=lambda export: export.name):
            if export.stage == "library":
                what = "exports" if export.name == "*" else f"export {export.name!r}"
                self.reasons.add(export.name, f"{what}: {_UNTRANSLATED}", where=f"export {export.name}")
        self.reasons.check()
        rays = [self.exports[key] for key in sorted(self.exports) if self.exports[key].ray_stage]
        if not rays:
            raise InvalidArgumentError("a ray tracing pipeline needs a shader of ray tracing")
        indices = {export.name: index for index, export in enumerate(rays)}
        is_library = self.family[0].type == StateObjectType.COLLECTION
        flags = _LIBRARY_FLAG if is_library else 0
        depth, more = self._config()
        info = vk.RayTracingPipelineCreateInfoKHR(
            flags | more,
            tuple(self._stage(export) for export in rays),
            self._groups(rays, indices),
            depth,
            None,
            self._interface() if is_library else None,
            vk.PipelineDynamicStateCreateInfo(0, (_STACK_SIZE,)),
            self._layout(rays),
            None,
            -1,
        )
        self.reasons.check()
        return PipelineDescription(name, "raytracing", info, self.objects.found)

    def _stage(self, export: Export) -> vk.PipelineShaderStageCreateInfo:
        module = self.objects.add(vk.ShaderModuleHandle, vk.ShaderModuleCreateInfo(0, export.code)) if self.with_code else None
        return vk.PipelineShaderStageCreateInfo(0, export.ray_stage, module, export.entry_point or "main")

    def _groups(self, rays: Sequence[Export], indices: Mapping[str, int]) -> tuple[vk.RayTracingShaderGroupCreateInfoKHR, ...]:
        groups = [
            vk.RayTracingShaderGroupCreateInfoKHR(0, indices[export.name], _UNUSED, _UNUSED, _UNUSED)
            for export in rays
            if export.ray_stage in _GENERAL_STAGES
        ]
        hits = {group.hit_group_export: group for desc in reversed(self.all) for group in desc.of(HitGroup)}
        for group in (hits[key] for key in sorted(hits)):

            def index(name: str | None, group: HitGroup = group) -> int:
                if not name:
                    return _UNUSED
                if name not in indices:
                    raise InvalidArgumentError(f"hit group {group.hit_group_export!r}: nothing exports {name!r}")
                return indices[name]

            groups.append(
                vk.RayTracingShaderGroupCreateInfoKHR(
                    2 if group.type == HitGroupType.PROCEDURAL_PRIMITIVE else 1,
                    _UNUSED,
                    index(group.closest_hit_shader_import),
                    index(group.any_hit_shader_import),
                    index(group.intersection_shader_import),
                )
            )
        return tuple(groups)

    def _config(self) -> tuple[int, int]:
        """Recursion depth and create flags."""
        for desc in self.all:
            for config in desc.of(RaytracingPipelineConfig1):
                flags = sum(vulkan for bit, vulkan in _RAY_FLAGS.items() if config.flags & bit)
                return config.max_trace_recursion_depth, flags
            for old in desc.of(RaytracingPipelineConfig):
                return old.max_trace_recursion_depth, 0
        if self.family[0].type == StateObjectType.COLLECTION:
            return 1, 0
        raise InvalidArgumentError("a ray tracing pipeline needs a pipeline config")

    def _interface(self) -> vk.RayTracingPipelineInterfaceCreateInfoKHR:
        configs = [config for desc in self.all for config in desc.of(RaytracingShaderConfig)]
        return vk.RayTracingPipelineInterfaceCreateInfoKHR(
            max((config.max_payload_size_in_bytes for config in configs), default=0),
            max((config.max_attribute_size_in_bytes for config in configs), default=8),
        )

    def _layout(self, rays: Sequence[Export]) -> vk.PipelineLayoutHandle:
        entries = []
        for export in rays:
            for entry in inspect_module(export.code).entry_points:
                if entry.name == export.entry_point and RAY_STAGES.get(entry.execution_model) == export.ray_stage:
                    entries.append((export.ray_stage, entry))
                    break
        blob = root_signature_for(self.all, [export.name for export in rays])
        if blob is not None:
            root = self.translations.root(blob, has_direct3d_shaders=False)
            if not any(misfit(root, entry, stage) for stage, entry in entries):
                return pipeline_layout(self.objects, root, _ALL_RAY_STAGES, self.reasons)
        return declared_layout(self.objects, entries, self.reasons)
