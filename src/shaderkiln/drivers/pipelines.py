"""Creates pipelines: by compiling, from object code with compiling forbidden, or once more to look inside."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from shaderkiln.descriptions.pipeline import PipelineCreateInfo
from shaderkiln.drivers import marshal
from shaderkiln.drivers.bindings import ffi
from shaderkiln.drivers.caches import create_cache, destroy_cache, read_whole_cache
from shaderkiln.drivers.logical_device import LogicalDevice
from shaderkiln.drivers.objects import Objects
from shaderkiln.drivers.physical_device import BINARY_FORM, CACHE_FORM, NO_FORM, check, enumerate_all, result_name
from shaderkiln.drivers.protocol import (
    Compiled,
    Created,
    Executable,
    Feedback,
    Inspected,
    Recreated,
    Representation,
    Statistic,
)
from shaderkiln.errors import DriverError, InvalidArgumentError, ShaderkilnError
from shaderkiln.vulkan_registry import constants as vk
from shaderkiln.vulkan_registry.handles import Handle
from shaderkiln.vulkan_registry.structures import (
    ComputePipelineCreateInfo,
    GraphicsPipelineCreateInfo,
    GraphicsPipelineLibraryCreateInfoEXT,
    PipelineCreateFlags2CreateInfo,
    PipelineHandle,
    PipelineLayoutCreateInfo,
    PipelineLayoutHandle,
    PipelineLibraryCreateInfoKHR,
    PipelineShaderStageCreateInfo,
    RayTracingPipelineCreateInfoKHR,
    ShaderModuleCreateInfo,
    ShaderModuleHandle,
)

_CAPTURE_DATA = vk.VK_PIPELINE_CREATE_2_CAPTURE_DATA_BIT_KHR
_COMPILE_FORBIDDEN = vk.VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT
_STATISTICS = vk.VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR
_REPRESENTATIONS = vk.VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR
_DERIVATIVE = vk.VK_PIPELINE_CREATE_DERIVATIVE_BIT
_ALLOW_DERIVATIVES = vk.VK_PIPELINE_CREATE_ALLOW_DERIVATIVES_BIT
_LIBRARY = vk.VK_PIPELINE_CREATE_LIBRARY_BIT_KHR
_OF_ONE_CALL = (
    _CAPTURE_DATA | _COMPILE_FORBIDDEN | vk.VK_PIPELINE_CREATE_EARLY_RETURN_ON_FAILURE_BIT | _STATISTICS | _REPRESENTATIONS
)
"""Flags that say how to answer one call and nothing about the pipeline; what the application had of them is dropped."""

_MAXIMUM_TEXT = 1 << 28

_COMMANDS = {
    GraphicsPipelineCreateInfo: "vkCreateGraphicsPipelines",
    ComputePipelineCreateInfo: "vkCreateComputePipelines",
    RayTracingPipelineCreateInfoKHR: "vkCreateRayTracingPipelinesKHR",
}

# An empty compute shader, SPIR-V 1.0: void main() with a local size of 1.
_EMPTY_SHADER = (
    0x07230203, 0x00010000, 0, 5, 0,
    0x00020011, 1,  # OpCapability Shader
    0x0003000E, 0, 1,  # OpMemoryModel Logical GLSL450
    0x0005000F, 5, 3, 0x6E69616D, 0,  # OpEntryPoint GLCompute %3 "main"
    0x00060010, 3, 17, 1, 1, 1,  # OpExecutionMode %3 LocalSize 1 1 1
    0x00020013, 1,  # %1 = OpTypeVoid
    0x00030021, 2, 1,  # %2 = OpTypeFunction %1
    0x00050036, 1, 3, 0, 2,  # %3 = OpFunction %1 None %2
    0x000200F8, 4,  # %4 = OpLabel
    0x000100FD,  # OpReturn
    0x00010038,  # OpFunctionEnd
)  # fmt: skip

_KNOWN_BYTES = 32 << 20
"""Object code that is kept for pipelines which differ only in what the driver does not compile in."""


def create_flags(pipeline: PipelineCreateInfo) -> int:
    """The create flags in force: those of a VkPipelineCreateFlags2CreateInfo take the place of the structure's own."""
    for item in pipeline.next:
        if type(item) is PipelineCreateFlags2CreateInfo:
            return item.flags
    return pipeline.flags


def _is_named_well(pipeline: PipelineCreateInfo) -> bool:
    """Whether a driver's name for the pipeline can be asked for and trusted.

    RADV gives binaries of different ray tracing pipelines one key, and crashes when asked about a pipeline linked from libraries.
    """
    libraries = (PipelineLibraryCreateInfoKHR, GraphicsPipelineLibraryCreateInfoEXT)
    return type(pipeline) is not RayTracingPipelineCreateInfoKHR and not any(type(item) in libraries for item in pipeline.next)


@dataclass(frozen=True, slots=True)
class _Creation:
    """The outcome of one creation call; ``pipeline`` is 0 where ``result`` is not VK_SUCCESS."""

    result: int
    pipeline: int
    seconds: float
    feedback_flags: int
    feedback_nanoseconds: int
    stages: tuple[tuple[int, int], ...] = ()
    """Flags and nanoseconds of each stage, where they were asked for."""


class Pipelines:
    """Creates pipelines on one device. Every method raises ``ShaderkilnError``; none leaves anything behind in the driver.

    Several threads may be in ``create`` at once; the other methods are one thread's.
    """

    def __init__(self, device: LogicalDevice) -> None:
        self._device = device
        self.objects = Objects(device, self._make_dependency)
        self._known: dict[bytes, tuple[tuple[bytes, bytes], ...]] = {}
        self._known_bytes = 0
        self._preparing = threading.RLock()
        self.object_code_form = BINARY_FORM if device.binaries else CACHE_FORM
        if not device.binaries and not self._cache_holds_anything():
            self.object_code_form = NO_FORM

    # ------------------------------------------------------------------------------------------------------------ requests

    def compile(self, request: int, pipeline: PipelineCreateInfo, keep: bool = True, as_cache: bool = False) -> Compiled:
        """Compile, and give the object code as (key, data). A pipeline cache has no key of the driver's: b""."""
        device, commands = self._device, self._device.commands
        capture = keep and self.object_code_form == BINARY_FORM and not as_cache
        cached = keep and (self.object_code_form == CACHE_FORM or as_cache)
        started = perf_counter()
        info, call = self._prepare(pipeline, _CAPTURE_DATA if capture else 0)
        name = self._pipeline_key(info) if capture and _is_named_well(pipeline) else b""
        if name and (known := self._known.get(name)) is not None:
            return Compiled(request=request, values=known, seconds=perf_counter() - started, known=True)
        cache = create_cache(self._device, b"") if cached else 0
        try:
            made = self._call(type(pipeline), info, call, cache)
            self._check(pipeline, made)
            try:
                values: tuple[tuple[bytes, bytes], ...] = ()
                if capture:
                    values = self._captured(made.pipeline)
                    if name:
                        self._remember(name, values)
                elif cached:
                    values = ((b"", read_whole_cache(self._device, cache)),)
            finally:
                commands.vkDestroyPipeline(device.handle, made.pipeline, ffi.NULL)
        finally:
            destroy_cache(self._device, cache)
        valid = made.feedback_flags & vk.VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT
        hit = made.feedback_flags & vk.VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT
        return Compiled(
            request=request,
            values=values,
            seconds=made.seconds,
            feedback_hit=bool(hit) if valid else None,
            feedback_seconds=made.feedback_nanoseconds / 1e9 if valid else None,
        )

    def recreate(self, request: int, pipeline: PipelineCreateInfo, values: tuple[tuple[bytes, bytes], ...]) -> Recreated:
        """Create from object code with compiling forbidden. Whose object code it is must have been checked before (identity,
        value keys, checksums): drivers take what they are given."""
        device = self._device
        if not device.creation_control:
            raise DriverError("the driver cannot forbid compiling", code="VK_ERROR_FEATURE_NOT_PRESENT")
        cache = 0
        binaries: list[int] = []
        extra: list[Any] = []
        try:
            if self.object_code_form == BINARY_FORM:
                if values:
                    binaries = self._create_binaries(values)
                    array = ffi.new("VkPipelineBinaryKHR[]", binaries)
                    info = ffi.new(
                        "VkPipelineBinaryInfoKHR *",
                        {
                            "sType": vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_INFO_KHR,
                            "binaryCount": len(binaries),
                            "pPipelineBinaries": array,
                        },
                    )
                    extra = [info, array]
                    pipeline = _without_modules(pipeline)
            else:
                if len(values) > 1:
                    raise InvalidArgumentError("a pipeline cache is one value")
                cache = create_cache(self._device, values[0][1] if values else b"")
            made = self._create(pipeline, _COMPILE_FORBIDDEN, cache=cache, extra=extra)
        finally:
            for binary in binaries:
                device.commands.vkDestroyPipelineBinaryKHR(device.handle, binary, ffi.NULL)
            destroy_cache(self._device, cache)
        if made.pipeline:
            device.commands.vkDestroyPipeline(device.handle, made.pipeline, ffi.NULL)
        if made.result < 0:
            self._check(pipeline, made)
        return Recreated(
            request=request,
            hit=made.result == vk.VK_SUCCESS,
            result=result_name(made.result),
            seconds=made.seconds,
        )

    def create(self, request: int, pipeline: PipelineCreateInfo, cache: int, compiling_forbidden: bool) -> Created:
        """Create through the driver's cache (0: none), with feedback of every stage."""
        can_forbid = self._device.creation_control
        if compiling_forbidden and not can_forbid:
            raise DriverError("the driver cannot forbid compiling", code="VK_ERROR_FEATURE_NOT_PRESENT")
        hit = None
        if compiling_forbidden or (cache and can_forbid):
            made = self._create_with_stages(pipeline, _COMPILE_FORBIDDEN, cache)
            if made.result >= 0:
                hit = made.result == vk.VK_SUCCESS
            if hit is not True and not compiling_forbidden:
                made = self._create_with_stages(pipeline, 0, cache)
        else:
            made = self._create_with_stages(pipeline, 0, cache)
        if made.pipeline:
            self._device.commands.vkDestroyPipeline(self._device.handle, made.pipeline, ffi.NULL)
        if made.result < 0:
            self._check(pipeline, made)
        return Created(
            request=request,
            result=result_name(made.result),
            seconds=made.seconds,
            hit=hit,
            feedback=_feedback(made.feedback_flags, made.feedback_nanoseconds),
            stages=tuple(_feedback(flags, nanoseconds) for flags, nanoseconds in made.stages),
        )

    def _create_with_stages(self, pipeline: PipelineCreateInfo, more: int, cache: int) -> _Creation:
        info, call = self._prepare(pipeline, more)
        stages = 1 if isinstance(pipeline, ComputePipelineCreateInfo) else len(pipeline.stages or ())
        return self._call(type(pipeline), info, call, cache, stages)

    def inspect(self, request: int, pipeline: PipelineCreateInfo, representations: bool = True) -> Inspected:
        """Compile with statistics, and where asked internal representations, captured, and read them."""
        device, commands = self._device, self._device.commands
        if not device.executable_info:
            raise DriverError("the driver has no pipeline executable properties", code="VK_ERROR_FEATURE_NOT_PRESENT")
        made = self._create(pipeline, _STATISTICS | (_REPRESENTATIONS if representations else 0))
        self._check(pipeline, made)
        try:
            return Inspected(request=request, executables=self._executables(made.pipeline, representations))
        finally:
            commands.vkDestroyPipeline(device.handle, made.pipeline, ffi.NULL)

    def forget(self) -> None:
        self.objects.forget()
        self._known.clear()
        self._known_bytes = 0

    def _pipeline_key(self, info: Any) -> bytes:
        """The driver's name of the pipeline: two with one name have the same object code (VK_KHR_pipeline_binary)."""
        create = ffi.new("VkPipelineCreateInfoKHR *", {"sType": vk.VK_STRUCTURE_TYPE_PIPELINE_CREATE_INFO_KHR, "pNext": info})
        key = ffi.new("VkPipelineBinaryKeyKHR *", {"sType": vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_KEY_KHR})
        result = self._device.commands.vkGetPipelineKeyKHR(self._device.handle, create, key)
        return bytes(ffi.buffer(key.key, key.keySize)) if result == vk.VK_SUCCESS else b""

    def _remember(self, name: bytes, values: tuple[tuple[bytes, bytes], ...]) -> None:
        size = sum(len(data) for _, data in values)
        if self._known_bytes + size > _KNOWN_BYTES:
            self._known.clear()
            self._known_bytes = 0
        self._known[name] = values
        self._known_bytes += size

    # ------------------------------------------------------------------------------------------------------------ creation

    def _make_dependency(self, description: Struct, flags: int) -> int:
        """A library or base pipeline; what is asked of its user beyond the description is in ``flags``."""
        if not isinstance(description, PipelineCreateInfo):
            raise InvalidArgumentError(f"a pipeline handle means a {type(description).__name__}")
        made = self._create(description, flags)
        self._check(description, made)
        return made.pipeline

    def _create(self, pipeline: PipelineCreateInfo, more: int, *, cache: int = 0, extra: list[Any] | None = None) -> _Creation:
        """One creation call; ``extra[0]`` goes in pNext."""
        info, call = self._prepare(pipeline, more)
        if extra:
            extra[0].pNext = info.pNext
            info.pNext = extra[0]
        return self._call(type(pipeline), info, call, cache)

    def _prepare(self, pipeline: PipelineCreateInfo, more: int) -> tuple[Any, marshal.Call]:
        """The create info in C, with the description's flags, less ``_OF_ONE_CALL``, plus ``more``; and what keeps it alive."""
        with self._preparing:
            return self._prepare_alone(pipeline, more)

    def _prepare_alone(self, pipeline: PipelineCreateInfo, more: int) -> tuple[Any, marshal.Call]:
        device = self._device
        described = create_flags(pipeline)
        flags = described & ~_OF_ONE_CALL
        base = pipeline.base_pipeline_handle if flags & _DERIVATIVE else None
        if base is None:
            # A base given by index stood in the same call of the application, which is not made again here.
            flags &= ~_DERIVATIVE
        flags |= more
        chain: tuple[Any, ...] = pipeline.next
        if flags >> 31 or any(type(item) is PipelineCreateFlags2CreateInfo for item in chain):
            if not device.flags_2:
                raise DriverError("the driver has no 64-bit create flags", code="VK_ERROR_FEATURE_NOT_PRESENT")
            chain = (
                *(item for item in chain if type(item) is not PipelineCreateFlags2CreateInfo),
                PipelineCreateFlags2CreateInfo(flags=flags),
            )
        changed = replace(
            pipeline,
            flags=flags & 0x7FFFFFFF,
            base_pipeline_handle=base,
            base_pipeline_index=-1,
            next=chain,
        )
        call = marshal.Call(self._resolver(changed, more & ~_COMPILE_FORBIDDEN))
        return marshal.structure(changed, call), call

    def _call(self, kind: type[PipelineCreateInfo], info: Any, call: marshal.Call, cache: int, stages: int = 0) -> _Creation:
        """The creation call for a create info whose memory ``call`` keeps, with feedback of so many stages (0, or all)."""
        device = self._device
        feedback = None
        of_stages = ffi.NULL
        if device.feedback:
            feedback = ffi.new("VkPipelineCreationFeedback *")
            feedback_info = ffi.new("VkPipelineCreationFeedbackCreateInfo *")
            feedback_info.sType = vk.VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO
            feedback_info.pNext = info.pNext
            feedback_info.pPipelineCreationFeedback = feedback
            if stages:
                of_stages = ffi.new("VkPipelineCreationFeedback[]", stages)
                feedback_info.pipelineStageCreationFeedbackCount = stages
                feedback_info.pPipelineStageCreationFeedbacks = of_stages
            info.pNext = feedback_info
        made = ffi.new("VkPipeline *")
        create = getattr(device.commands, _COMMANDS[kind])
        if kind is RayTracingPipelineCreateInfoKHR:
            started = perf_counter()
            result = create(device.handle, 0, cache, 1, info, ffi.NULL, made)
        else:
            started = perf_counter()
            result = create(device.handle, cache, 1, info, ffi.NULL, made)
        seconds = perf_counter() - started
        del call
        if result != vk.VK_SUCCESS and made[0]:
            # Some successes are not complete ones; only VK_SUCCESS counts here.
            device.commands.vkDestroyPipeline(device.handle, made[0], ffi.NULL)
            made[0] = 0
        return _Creation(
            result=result,
            pipeline=made[0],
            seconds=seconds,
            feedback_flags=feedback.flags if feedback is not None else 0,
            feedback_nanoseconds=feedback.duration if feedback is not None else 0,
            stages=tuple((item.flags, item.duration) for item in of_stages) if of_stages else (),
        )

    def _resolver(self, pipeline: PipelineCreateInfo, more: int) -> Callable[[Handle], int]:
        """Libraries are made with the same capture flags as their user, bases so that one can derive from them."""
        resolve = self.objects.resolve
        libraries: set[PipelineHandle | None] = set()
        for item in pipeline.next:
            if type(item) is PipelineLibraryCreateInfoKHR:
                libraries.update(item.libraries)
        if isinstance(pipeline, RayTracingPipelineCreateInfoKHR) and pipeline.library_info is not None:
            libraries.update(pipeline.library_info.libraries)
        if not libraries and pipeline.base_pipeline_handle is None:
            return resolve

        def with_flags(handle: Handle) -> int:
            if type(handle) is not PipelineHandle:
                return resolve(handle)
            if handle in libraries:
                return resolve(handle, _LIBRARY | more)
            return resolve(handle, _ALLOW_DERIVATIVES if handle == pipeline.base_pipeline_handle else 0)

        return with_flags

    def _check(self, pipeline: PipelineCreateInfo, made: _Creation) -> None:
        check(made.result, _COMMANDS[type(pipeline)])

    # --------------------------------------------------------------------------------------------------------- object code

    def _captured(self, pipeline: int) -> tuple[tuple[bytes, bytes], ...]:
        device, commands = self._device, self._device.commands
        create = ffi.new(
            "VkPipelineBinaryCreateInfoKHR *",
            {"sType": vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_CREATE_INFO_KHR, "pipeline": pipeline},
        )
        binaries = self._binaries(create)
        try:
            release = ffi.new(
                "VkReleaseCapturedPipelineDataInfoKHR *",
                {"sType": vk.VK_STRUCTURE_TYPE_RELEASE_CAPTURED_PIPELINE_DATA_INFO_KHR, "pipeline": pipeline},
            )
            check(
                commands.vkReleaseCapturedPipelineDataKHR(device.handle, release, ffi.NULL), "vkReleaseCapturedPipelineDataKHR"
            )
            return tuple(self._binary_data(binary) for binary in binaries)
        finally:
            for binary in binaries:
                commands.vkDestroyPipelineBinaryKHR(device.handle, binary, ffi.NULL)

    def _binaries(self, create: Any) -> list[int]:
        device, command = self._device, self._device.commands.vkCreatePipelineBinariesKHR
        handles = ffi.new("VkPipelineBinaryHandlesInfoKHR *", {"sType": vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_HANDLES_INFO_KHR})
        if create.pKeysAndDataInfo:
            count = create.pKeysAndDataInfo.binaryCount
        else:
            check(command(device.handle, create, ffi.NULL, handles), "vkCreatePipelineBinariesKHR")
            count = handles.pipelineBinaryCount
        array = ffi.new("VkPipelineBinaryKHR[]", count)
        handles.pipelineBinaryCount = count
        handles.pPipelineBinaries = array
        result = command(device.handle, create, ffi.NULL, handles)
        made = [int(binary) for binary in array]
        if result != vk.VK_SUCCESS:
            for binary in filter(None, made):
                device.commands.vkDestroyPipelineBinaryKHR(device.handle, binary, ffi.NULL)
            check(result, "vkCreatePipelineBinariesKHR")
        return made

    def _binary_data(self, binary: int) -> tuple[bytes, bytes]:
        device, command = self._device, self._device.commands.vkGetPipelineBinaryDataKHR
        info = ffi.new(
            "VkPipelineBinaryDataInfoKHR *",
            {"sType": vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_DATA_INFO_KHR, "pipelineBinary": binary},
        )
        key = ffi.new("VkPipelineBinaryKeyKHR *", {"sType": vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_KEY_KHR})
        size = ffi.new("size_t *")
        check(command(device.handle, info, key, size, ffi.NULL), "vkGetPipelineBinaryDataKHR")
        data = bytearray(size[0])
        check(command(device.handle, info, key, size, ffi.from_buffer(data)), "vkGetPipelineBinaryDataKHR")
        return bytes(ffi.buffer(key.key, key.keySize)), bytes(data[: size[0]])

    def _create_binaries(self, values: tuple[tuple[bytes, bytes], ...]) -> list[int]:
        keys = ffi.new("VkPipelineBinaryKeyKHR[]", len(values))
        datas = ffi.new("VkPipelineBinaryDataKHR[]", len(values))
        keep: list[Any] = []
        for index, (key, data) in enumerate(values):
            if len(key) > _MAXIMUM_KEY or not data:
                raise InvalidArgumentError("not a pipeline binary: its key is too long or its data is empty")
            keys[index].sType = vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_KEY_KHR
            keys[index].keySize = len(key)
            ffi.memmove(keys[index].key, key, len(key))
            # A copy of its own: the driver's structures in there are aligned.
            memory = ffi.new("uint8_t[]", data)
            keep.append(memory)
            datas[index].dataSize = len(data)
            datas[index].pData = memory
        pairs = ffi.new(
            "VkPipelineBinaryKeysAndDataKHR *",
            {"binaryCount": len(values), "pPipelineBinaryKeys": keys, "pPipelineBinaryData": datas},
        )
        create = ffi.new(
            "VkPipelineBinaryCreateInfoKHR *",
            {"sType": vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_CREATE_INFO_KHR, "pKeysAndDataInfo": pairs},
        )
        return self._binaries(create)

    def _cache_holds_anything(self) -> bool:
        """Whether a cache grows by a pipeline: some drivers have caches in name only."""
        code = b"".join(word.to_bytes(4, "little") for word in _EMPTY_SHADER)
        module, layout = ShaderModuleHandle(1), PipelineLayoutHandle(1)
        self.objects.define("ShaderModuleHandle", 1, ShaderModuleCreateInfo(code=code))
        self.objects.define("PipelineLayoutHandle", 1, PipelineLayoutCreateInfo())
        stage = PipelineShaderStageCreateInfo(stage=vk.VK_SHADER_STAGE_COMPUTE_BIT, module=module)
        pipeline = ComputePipelineCreateInfo(stage=stage, layout=layout)
        cache = 0
        try:
            cache = create_cache(self._device, b"")
            empty = read_whole_cache(self._device, cache)
            made = self._create(pipeline, 0, cache=cache)
            self._check(pipeline, made)
            self._device.commands.vkDestroyPipeline(self._device.handle, made.pipeline, ffi.NULL)
            return len(read_whole_cache(self._device, cache)) > len(empty)
        except ShaderkilnError:
            return True
        finally:
            destroy_cache(self._device, cache)
            self.objects.forget()

    # ---------------------------------------------------------------------------------------------------------- inspection

    def _executables(self, pipeline: int, representations: bool) -> tuple[Executable, ...]:
        device, commands = self._device, self._device.commands
        info = ffi.new("VkPipelineInfoKHR *", {"sType": vk.VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, "pipeline": pipeline})
        found = enumerate_all(
            "vkGetPipelineExecutablePropertiesKHR",
            "VkPipelineExecutablePropertiesKHR",
            lambda count, items: commands.vkGetPipelineExecutablePropertiesKHR(device.handle, info, count, items),
            lambda item: (_text(item.name), _text(item.description), int(item.stages), int(item.subgroupSize)),
            vk.VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR,
        )
        executables = []
        for index, (name, description, stages, subgroup_size) in enumerate(found):
            which = ffi.new(
                "VkPipelineExecutableInfoKHR *",
                {
                    "sType": vk.VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
                    "pipeline": pipeline,
                    "executableIndex": index,
                },
            )
            executables.append(
                Executable(
                    name=name,
                    description=description,
                    stages=stages,
                    subgroup_size=subgroup_size,
                    statistics=self._statistics(which),
                    representations=self._representations(which) if representations else (),
                )
            )
        return tuple(executables)

    def _statistics(self, which: Any) -> tuple[Statistic, ...]:
        device, commands = self._device, self._device.commands
        found = enumerate_all(
            "vkGetPipelineExecutableStatisticsKHR",
            "VkPipelineExecutableStatisticKHR",
            lambda count, items: commands.vkGetPipelineExecutableStatisticsKHR(device.handle, which, count, items),
            lambda item: Statistic(name=_text(item.name), description=_text(item.description), value=_statistic_value(item)),
            vk.VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR,
        )
        return tuple(found)

    def _representations(self, which: Any) -> tuple[Representation, ...]:
        device, command = self._device, self._device.commands.vkGetPipelineExecutableInternalRepresentationsKHR
        name = "vkGetPipelineExecutableInternalRepresentationsKHR"
        count = ffi.new("uint32_t *")
        while True:
            check(command(device.handle, which, count, ffi.NULL), name)
            items = ffi.new("VkPipelineExecutableInternalRepresentationKHR[]", count[0])
            for item in items:  # references into the array, which lives until the end of this round
                item.sType = vk.VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR
            # Without memory a driver only says how long each text is.
            sized = command(device.handle, which, count, items)
            if sized < 0:
                check(sized, name)
            if sum(item.dataSize for item in items) > _MAXIMUM_TEXT:
                raise DriverError("the driver's internal representations are too long", code="VK_ERROR_OUT_OF_HOST_MEMORY")
            keep = [ffi.new("char[]", item.dataSize) if item.dataSize else ffi.NULL for item in items]
            for item, memory in zip(items, keep, strict=True):
                item.pData = memory
            result = command(device.handle, which, count, items)
            if result == vk.VK_INCOMPLETE:
                continue
            check(result, name)
            return tuple(
                Representation(
                    name=_text(item.name),
                    description=_text(item.description),
                    is_text=bool(item.isText),
                    data=_representation_data(item),
                )
                for item in items[0 : count[0]]
            )


def _feedback(flags: int, nanoseconds: int) -> Feedback | None:
    if not flags & vk.VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT:
        return None
    return Feedback(
        cache_hit=bool(flags & vk.VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT),
        base_pipeline_acceleration=bool(flags & vk.VK_PIPELINE_CREATION_FEEDBACK_BASE_PIPELINE_ACCELERATION_BIT),
        seconds=nanoseconds / 1e9,
    )


_MAXIMUM_KEY: int = dict(ffi.typeof("VkPipelineBinaryKeyKHR").fields)["key"].type.length


def _text(characters: Any) -> str:
    data: bytes = ffi.string(characters)
    return data.decode("utf-8", "replace")


def _representation_data(item: Any) -> bytes:
    if not item.pData or not item.dataSize:
        return b""
    data = bytes(ffi.buffer(item.pData, item.dataSize))
    return data.rstrip(b"\0") if item.isText else data


def _statistic_value(item: Any) -> int | float | bool:
    match item.format:
        case vk.VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
            return bool(item.value.b32)
        case vk.VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
            return int(item.value.i64)
        case vk.VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
            return float(item.value.f64)
    return int(item.value.u64)


def _without_modules(pipeline: PipelineCreateInfo) -> PipelineCreateInfo:
    """With binaries a stage needs no shader: a null module proves that nothing can have been compiled."""

    def stage(stage: PipelineShaderStageCreateInfo) -> PipelineShaderStageCreateInfo:
        return replace(stage, module=None, next=tuple(item for item in stage.next if type(item) is not ShaderModuleCreateInfo))

    if isinstance(pipeline, ComputePipelineCreateInfo):
        return replace(pipeline, stage=stage(pipeline.stage))
    if pipeline.stages is None:
        return pipeline
    return replace(pipeline, stages=tuple(stage(item) for item in pipeline.stages))
