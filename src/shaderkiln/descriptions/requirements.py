"""Whether a device can take a pipeline, decided before any driver is asked, with the exact reasons where it cannot.

``check`` compares a description with capabilities. Nothing unmet means that the driver can be asked; a pipeline with something
unmet is *unsupported* there, which is no failure of the pipeline. The rules come from the Vulkan registry
(``vulkan_registry._requirements``) and, where it is silent, from ``requirements_state`` and ``requirements_spirv``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct

from shaderkiln.capabilities import Capabilities
from shaderkiln.descriptions import requirements_state as rules
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.descriptions.requirements_device import AdvertisedDevice, Findings
from shaderkiln.descriptions.requirements_spirv import EXECUTION_MODELS, STAGE_NAMES, check_entry_point, check_module
from shaderkiln.descriptions.unmet import Unmet
from shaderkiln.errors import DamagedInputError
from shaderkiln.formats.spirv import EntryPoint, ModuleInfo, inspect_module
from shaderkiln.vulkan_registry import constants as c
from shaderkiln.vulkan_registry import structures as vk
from shaderkiln.vulkan_registry.handles import Handle

_KEPT = 4096
_KEPT_MODULES = 128
_MAXIMUM_DEPTH = 8
_LIBRARY_VERTEX_INPUT_ONLY = 1
_MAKES_LINES = frozenset((28, 25, 5269))
"""Execution modes OutputLineStrip, Isolines, OutputLinesEXT."""

_K = TypeVar("_K")
_V = TypeVar("_V")


def check(description: PipelineDescription, capabilities: Capabilities) -> tuple[Unmet, ...]:
    """What the pipeline needs and the device does not have; empty: the driver can be asked.

    Raises ``DamagedInputError`` where a shader module is malformed or has no such entry point: no driver may see it.
    """
    return RequirementChecker(capabilities).check(description)


class RequirementChecker:
    """Checks pipelines of one source against one device, and remembers what it found for the objects that they share.

    One checker serves one source of descriptions: a handle always means the same object.
    """

    def __init__(self, capabilities: Capabilities) -> None:
        self.device = AdvertisedDevice(capabilities)
        self._modules: OrderedDict[Handle | bytes, ModuleInfo] = OrderedDict()
        self._stages: OrderedDict[vk.PipelineShaderStageCreateInfo, tuple[tuple[Unmet, ...], bool]] = OrderedDict()
        self._objects: OrderedDict[Handle, tuple[Unmet, ...]] = OrderedDict()

    def check(self, description: PipelineDescription) -> tuple[Unmet, ...]:
        """As the function ``check``."""
        found = Findings(self.device)
        self._pipeline(found, description.create_info, description.objects, 0)
        return tuple(found.unmet)

    def _pipeline(self, found: Findings, info: Struct, objects: Mapping[Handle, Struct], depth: int) -> None:
        if isinstance(info, vk.GraphicsPipelineCreateInfo):
            self._graphics(found, info, objects, depth)
        elif isinstance(info, vk.ComputePipelineCreateInfo):
            self._compute(found, info, objects)
        elif isinstance(info, vk.RayTracingPipelineCreateInfoKHR):
            self._ray_tracing(found, info, objects, depth)
        else:
            raise DamagedInputError(f"{type(info).__name__} is no pipeline")

    # ------------------------------------------------------------------------------------------------------------- pipelines

    def _graphics(
        self, found: Findings, info: vk.GraphicsPipelineCreateInfo, objects: Mapping[Handle, Struct], depth: int
    ) -> None:
        rules.create_flags(found, info.flags, info.next, "pipeline")
        stages, lines = 0, False
        for stage in info.stages or ():
            stages |= stage.stage
            lines = self._stage(found, stage, objects) or lines
        dynamic: frozenset[int] = frozenset()
        if info.dynamic_state is not None:
            dynamic = frozenset(info.dynamic_state.dynamic_states)
            rules.dynamic_states(found, info.dynamic_state.dynamic_states)
            if info.dynamic_state.next:
                found.chain(info.dynamic_state.next, "dynamic state")
        rules.graphics_state(found, info, dynamic, stages, lines)
        self._layout(found, info.layout, objects)
        view_mask, library, linked = self._render_pass_views(found, info, objects), 0, False
        if info.next:
            found.chain(info.next, "pipeline")
            for structure in info.next:
                match structure:
                    case vk.PipelineRenderingCreateInfo() if info.render_pass is None:
                        view_mask = structure.view_mask
                        rules.views(found, view_mask, "rendering")
                        attachments = structure.color_attachment_formats
                        found.at_most(len(attachments), "maxColorAttachments", "rendering", "color attachments")
                    case vk.GraphicsPipelineLibraryCreateInfoEXT():
                        library = structure.flags
                        name = "VkPhysicalDeviceGraphicsPipelineLibraryFeaturesEXT.graphicsPipelineLibrary"
                        found.feature(name, "pipeline", "a graphics pipeline library")
                    case vk.PipelineLibraryCreateInfoKHR():
                        linked = bool(structure.libraries)
                        self._libraries(found, structure, objects, depth)
                    case vk.PipelineRobustnessCreateInfo():
                        rules.robustness(found, structure, "pipeline")
                    case vk.PipelineFragmentShadingRateStateCreateInfoKHR():
                        self._shading_rate(found, structure, dynamic)
                    case vk.PipelineRepresentativeFragmentTestStateCreateInfoNV(representative_fragment_test_enable=on) if on:
                        name = "VkPhysicalDeviceRepresentativeFragmentTestFeaturesNV.representativeFragmentTest"
                        found.feature(name, "pipeline", "a representative fragment test")
                    case _:
                        pass
        if info.render_pass is None and not linked and library != _LIBRARY_VERTEX_INPUT_ONLY:
            found.feature("VkPhysicalDeviceVulkan13Features.dynamicRendering", "rendering", "a pipeline without render pass")
        if view_mask:
            if stages & 0x06:
                found.feature(
                    "VkPhysicalDeviceVulkan11Features.multiviewTessellationShader", "pipeline", "tessellation of views"
                )
            if stages & 0x08:
                found.feature(
                    "VkPhysicalDeviceVulkan11Features.multiviewGeometryShader", "pipeline", "a geometry shader of views"
                )
            if stages & 0xC0:
                found.feature("VkPhysicalDeviceMeshShaderFeaturesEXT.multiviewMeshShader", "pipeline", "a mesh shader of views")

    def _render_pass_views(self, found: Findings, info: vk.GraphicsPipelineCreateInfo, objects: Mapping[Handle, Struct]) -> int:
        """Checks the render pass; the view mask of the subpass."""
        if info.render_pass is None:
            return 0
        render_pass = objects.get(info.render_pass)
        if not isinstance(render_pass, (vk.RenderPassCreateInfo, vk.RenderPassCreateInfo2)):
            rules.missing(found, info.render_pass, "pipeline")
            return 0
        if info.render_pass not in self._objects:
            inner = Findings(self.device)
            rules.render_pass(inner, render_pass, f"render pass {info.render_pass.value:016x}")
            _keep(self._objects, info.render_pass, tuple(inner.unmet), _KEPT)
        _extend(found, self._objects[info.render_pass])
        if info.subpass >= len(render_pass.subpasses):
            return 0
        if isinstance(render_pass, vk.RenderPassCreateInfo2):
            return render_pass.subpasses[info.subpass].view_mask
        for structure in render_pass.next:
            if isinstance(structure, vk.RenderPassMultiviewCreateInfo) and info.subpass < len(structure.view_masks):
                return structure.view_masks[info.subpass]
        return 0

    @staticmethod
    def _shading_rate(found: Findings, info: vk.PipelineFragmentShadingRateStateCreateInfoKHR, dynamic: frozenset[int]) -> None:
        if c.VK_DYNAMIC_STATE_FRAGMENT_SHADING_RATE_KHR in dynamic:
            return
        rates = "VkPhysicalDeviceFragmentShadingRateFeaturesKHR."
        if info.fragment_size.width != 1 or info.fragment_size.height != 1:
            found.feature(rates + "pipelineFragmentShadingRate", "shading rate", "a fragment size other than 1 by 1")
        if info.combiner_ops[0]:
            found.feature(rates + "primitiveFragmentShadingRate", "shading rate", "combining with the primitive's rate")
        if info.combiner_ops[1]:
            found.feature(rates + "attachmentFragmentShadingRate", "shading rate", "combining with the attachment's rate")

    def _libraries(
        self, found: Findings, info: vk.PipelineLibraryCreateInfoKHR, objects: Mapping[Handle, Struct], depth: int
    ) -> None:
        for handle in info.libraries:
            if handle is None:
                continue
            library = objects.get(handle)
            if library is None:
                rules.missing(found, handle, "pipeline libraries")
            elif depth >= _MAXIMUM_DEPTH:
                text = f"libraries inside each other deeper than {_MAXIMUM_DEPTH}"
                found.add("object", f"Pipeline {handle.value:016x}", _MAXIMUM_DEPTH, depth + 1, "pipeline libraries", text)
            else:
                self._pipeline(found, library, objects, depth + 1)

    def _compute(self, found: Findings, info: vk.ComputePipelineCreateInfo, objects: Mapping[Handle, Struct]) -> None:
        rules.create_flags(found, info.flags, info.next, "pipeline")
        self._stage(found, info.stage, objects)
        self._layout(found, info.layout, objects)
        if info.next:
            found.chain(info.next, "pipeline")
            for structure in info.next:
                if isinstance(structure, vk.PipelineRobustnessCreateInfo):
                    rules.robustness(found, structure, "pipeline")

    def _ray_tracing(
        self, found: Findings, info: vk.RayTracingPipelineCreateInfoKHR, objects: Mapping[Handle, Struct], depth: int
    ) -> None:
        name = "VkPhysicalDeviceRayTracingPipelineFeaturesKHR.rayTracingPipeline"
        found.feature(name, "pipeline", "a ray tracing pipeline")
        limit = "VkPhysicalDeviceRayTracingPipelinePropertiesKHR.maxRayRecursionDepth"
        found.at_most(info.max_pipeline_ray_recursion_depth, limit, "pipeline", "ray recursion depth")
        rules.create_flags(found, info.flags, info.next, "pipeline")
        for stage in info.stages:
            self._stage(found, stage, objects)
        if info.library_info is not None:
            found.chain((info.library_info,), "pipeline libraries")
            self._libraries(found, info.library_info, objects, depth)
        if info.dynamic_state is not None:
            rules.dynamic_states(found, info.dynamic_state.dynamic_states)
        self._layout(found, info.layout, objects)
        if info.next:
            found.chain(info.next, "pipeline")
            for structure in info.next:
                if isinstance(structure, vk.PipelineRobustnessCreateInfo):
                    rules.robustness(found, structure, "pipeline")

    # ---------------------------------------------------------------------------------------------------------------- stages

    def _stage(self, found: Findings, stage: vk.PipelineShaderStageCreateInfo, objects: Mapping[Handle, Struct]) -> bool:
        """Whether the stage makes lines."""
        known = self._stages.get(stage)
        if known is None:
            inner = Findings(self.device)
            lines = self._new_stage(inner, stage, objects)
            known = tuple(inner.unmet), lines
            _keep(self._stages, stage, known, _KEPT)
        if known[0]:
            _extend(found, known[0])
        return known[1]

    def _new_stage(self, found: Findings, stage: vk.PipelineShaderStageCreateInfo, objects: Mapping[Handle, Struct]) -> bool:
        name = STAGE_NAMES.get(stage.stage, f"0x{stage.stage:x}")
        where = f"stage {name}"
        if stage.module is not None:
            where += f", module {stage.module.value:016x}"
        found.flags("VkShaderStageFlagBits", stage.stage, where)
        if feature := rules.STAGE_FEATURES.get(stage.stage):
            others = (rules.NV_STAGE_FEATURES[stage.stage],) if stage.stage in rules.NV_STAGE_FEATURES else ()
            found.feature(feature, where, f"a {name} shader", *others)
        if stage.next:
            found.chain(stage.next, f"pNext of {where}")
        module = self._module(found, stage, objects, where)
        if module is None:
            return False
        check_module(found, module, where)
        entry = next((e for m in EXECUTION_MODELS.get(stage.stage, ()) if (e := module.entry_point(m, stage.name))), None)
        if entry is None:
            raise DamagedInputError(f"{where}: the module has no entry point {stage.name!r} for that stage")
        specialization: dict[int, bytes] = {}
        if stage.specialization_info is not None:
            data = stage.specialization_info.data
            for one in stage.specialization_info.map_entries:
                specialization[one.constant_id] = data[one.offset : one.offset + one.size]
        check_entry_point(found, module, entry, stage.stage, specialization, where)
        self._subgroup_size(found, stage, module, entry, specialization, where)
        for structure in stage.next:
            if isinstance(structure, vk.PipelineRobustnessCreateInfo):
                rules.robustness(found, structure, where)
        return bool(_MAKES_LINES & entry.execution_modes.keys())

    def _module(
        self, found: Findings, stage: vk.PipelineShaderStageCreateInfo, objects: Mapping[Handle, Struct], where: str
    ) -> ModuleInfo | None:
        if stage.module is not None:
            known = self._modules.get(stage.module)
            if known is not None:
                return known
            created = objects.get(stage.module)
            if not isinstance(created, vk.ShaderModuleCreateInfo):
                rules.missing(found, stage.module, where)
                return None
        else:
            created = next((s for s in stage.next if isinstance(s, vk.ShaderModuleCreateInfo)), None)
            if created is None:
                found.add("object", "shader code", "present", "missing", where, "the stage has no shader code")
                return None
        if created.next:
            found.chain(created.next, where)
        try:
            module = inspect_module(created.code)
        except DamagedInputError as error:
            raise DamagedInputError(f"{where}: {error}") from error
        if stage.module is not None:
            _keep(self._modules, stage.module, module, _KEPT_MODULES)
        return module

    def _subgroup_size(
        self,
        found: Findings,
        stage: vk.PipelineShaderStageCreateInfo,
        module: ModuleInfo,
        entry: EntryPoint,
        specialization: Mapping[int, bytes],
        where: str,
    ) -> None:
        """VkPipelineShaderStageRequiredSubgroupSizeCreateInfo and the flags of VkPipelineShaderStageCreateInfo."""
        properties, features = self.device.properties, "VkPhysicalDeviceVulkan13Features."
        limits = "VkPhysicalDeviceVulkan13Properties."
        required = 0
        for structure in stage.next:
            if isinstance(structure, vk.PipelineShaderStageRequiredSubgroupSizeCreateInfo):
                required = structure.required_subgroup_size
        if not required and not stage.flags & 3:
            return
        size = module.workgroup_size(entry, specialization)
        invocations = size[0] * size[1] * size[2] if size else None
        if required:
            found.feature(features + "subgroupSizeControl", where, "a required subgroup size")
            least = properties.get(limits + "minSubgroupSize")
            most = properties.get(limits + "maxSubgroupSize")
            if least is not None and most is not None and not least <= required <= most:
                name, have = f"{limits}minSubgroupSize to maxSubgroupSize", f"{least} to {most}"
                found.add("limit", name, required, have, where, f"required subgroup size {required} is not within {have}")
            stages = properties.get(limits + "requiredSubgroupSizeStages")
            if stages is not None and not int(stages) & stage.stage:
                name = limits + "requiredSubgroupSizeStages"
                text = f"a required subgroup size is not possible in this stage ({name} = {stages})"
                found.add("limit", name, stage.stage, stages, where, text)
            groups = properties.get(limits + "maxComputeWorkgroupSubgroups")
            if groups is not None and invocations is not None and stage.stage & 0xE0 and invocations > required * groups:
                text = f"{invocations} invocations are more than {groups} subgroups of {required}"
                found.add("limit", limits + "maxComputeWorkgroupSubgroups", -(-invocations // required), groups, where, text)
        if stage.flags & 1:
            found.feature(features + "subgroupSizeControl", where, "a varying subgroup size")
        if stage.flags & 2:
            found.feature(features + "computeFullSubgroups", where, "full subgroups")
            multiple: int | float | None = required
            name = "required subgroup size"
            if not required:
                name = limits + "maxSubgroupSize" if stage.flags & 1 else "VkPhysicalDeviceVulkan11Properties.subgroupSize"
                multiple = properties.get(name)
            if size and multiple and size[0] % int(multiple) and module.version < (1, 6):
                text = f"full subgroups need a workgroup width that is a multiple of {name} = {multiple}, not {size[0]}"
                found.add("limit", name, size[0], multiple, where, text)

    # --------------------------------------------------------------------------------------------------------------- layouts

    def _layout(self, found: Findings, handle: vk.PipelineLayoutHandle | None, objects: Mapping[Handle, Struct]) -> None:
        if handle is None:
            return
        known = self._objects.get(handle)
        if known is None:
            inner = Findings(self.device)
            self._new_layout(inner, handle, objects)
            known = tuple(inner.unmet)
            _keep(self._objects, handle, known, _KEPT)
        if known:
            _extend(found, known)

    def _new_layout(self, found: Findings, handle: vk.PipelineLayoutHandle, objects: Mapping[Handle, Struct]) -> None:
        where = f"pipeline layout {handle.value:016x}"
        info = objects.get(handle)
        if not isinstance(info, vk.PipelineLayoutCreateInfo):
            rules.missing(found, handle, "pipeline")
            return
        sets = []
        for set_handle in info.set_layouts:
            if set_handle is None:
                continue
            layout = objects.get(set_handle)
            if not isinstance(layout, vk.DescriptorSetLayoutCreateInfo):
                rules.missing(found, set_handle, where)
                continue
            sets.append(layout)
            rules.set_layout(found, layout, f"set layout {set_handle.value:016x}")
            for sampler in {s for b in layout.bindings for s in b.immutable_samplers or () if s is not None}:
                self._sampler(found, sampler, objects)
        rules.pipeline_layout(found, info, sets, where)

    def _sampler(self, found: Findings, handle: vk.SamplerHandle, objects: Mapping[Handle, Struct]) -> None:
        info = objects.get(handle)
        where = f"sampler {handle.value:016x}"
        if not isinstance(info, vk.SamplerCreateInfo):
            rules.missing(found, handle, where)
            return
        rules.sampler(found, info, where)
        for structure in info.next:
            if isinstance(structure, vk.SamplerYcbcrConversionInfo) and structure.conversion is not None:
                conversion = objects.get(structure.conversion)
                if not isinstance(conversion, vk.SamplerYcbcrConversionCreateInfo):
                    rules.missing(found, structure.conversion, where)
                elif conversion.next:
                    found.chain(conversion.next, where)


def _keep(memory: OrderedDict[_K, _V], key: _K, value: _V, most: int) -> None:
    memory[key] = value
    if len(memory) > most:
        memory.popitem(last=False)


def _extend(found: Findings, unmet: tuple[Unmet, ...]) -> None:
    for one in unmet:
        if one not in found.unmet:
            found.unmet.append(one)
