"""Creates pipelines: by compiling, from object code with compiling forbidden, or once more to look inside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from shaderkiln.descriptions.pipeline import PipelineCreateInfo
from shaderkiln.drivers import marshal
from shaderkiln.drivers.bindings import ffi, new, text
from shaderkiln.drivers.caches import read_whole_cache, temporary_cache
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
    feedback: Feedback | None
    stages: tuple[Feedback | None, ...]
    """Of each stage, where it was asked for."""


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
        capture = keep and self.object_code_form == BINARY_FORM and not as_cache
        cached = keep and (self.object_code_form == CACHE_FORM or as_cache)
        started = perf_counter()
        info, call = self._prepare(pipeline, _CAPTURE_DATA if capture else 0)
        name = self._pipeline_key(info) if capture and _is_named_well(pipeline) else b""
        if name and (known := self._known.get(name)) is not None:
            return Compiled(request=request, values=known, seconds=perf_counter() - started, known=True)
        values: tuple[tuple[bytes, bytes], ...] = ()
        with (
            temporary_cache(self._device, b"" if cached else None) as cache,
            self._created(pipeline, self._call(type(pipeline), info, call, cache)) as made,
        ):
            if capture:
                values = self._captured(made.pipeline)
                if name:
                    self._remember(name, values)
            elif cached:
                values = ((b"", read_whole_cache(self._device, cache)),)
        hit, seconds = (made.feedback.cache_hit, made.feedback.seconds) if made.feedback else (None, None)
        return Compiled(request=request, values=values, seconds=made.seconds, feedback_hit=hit, feedback_seconds=seconds)

    def recreate(self, request: int, pipeline: PipelineCreateInfo, values: tuple[tuple[bytes, bytes], ...]) -> Recreated:
        """Create from object code with compiling forbidden. Whose object code it is must have been checked before (identity,
        value keys, checksums): drivers take what they are given."""
        if not self._device.creation_control:
            raise DriverError("the driver cannot forbid compiling", code="VK_ERROR_FEATURE_NOT_PRESENT")
        if self.object_code_form == BINARY_FORM:
            made = self._create_from(values, pipeline) if values else self._create(pipeline, _COMPILE_FORBIDDEN)
        else:
            if len(values) > 1:
                raise InvalidArgumentError("a pipeline cache is one value")
            with temporary_cache(self._device, values[0][1] if values else b"") as cache:
                made = self._create(pipeline, _COMPILE_FORBIDDEN, cache=cache)
        self._let_go(pipeline, made)
        return Recreated(request, made.result == vk.VK_SUCCESS, result_name(made.result), made.seconds)

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
        self._let_go(pipeline, made)
        return Created(request, result_name(made.result), made.seconds, hit, made.feedback, made.stages)

    def _create_with_stages(self, pipeline: PipelineCreateInfo, more: int, cache: int) -> _Creation:
        info, call = self._prepare(pipeline, more)
        stages = 1 if isinstance(pipeline, ComputePipelineCreateInfo) else len(pipeline.stages or ())
        return self._call(type(pipeline), info, call, cache, stages)

    def inspect(self, request: int, pipeline: PipelineCreateInfo, representations: bool = True) -> Inspected:
        """Compile with statistics, and where asked internal representations, captured, and read them."""
        if not self._device.executable_info:
            raise DriverError("the driver has no pipeline executable properties", code="VK_ERROR_FEATURE_NOT_PRESENT")
        flags = _STATISTICS | (_REPRESENTATIONS if representations else 0)
        with self._created(pipeline, self._create(pipeline, flags)) as made:
            return Inspected(request=request, executables=self._executables(made.pipeline, representations))

    def forget(self) -> None:
        self.objects.forget()
        self._known.clear()
        self._known_bytes = 0

    def _pipeline_key(self, info: Any) -> bytes:
        """The driver's name of the pipeline: two with one name have the same object code (VK_KHR_pipeline_binary)."""
        create = new("VkPipelineCreateInfoKHR", vk.VK_STRUCTURE_TYPE_PIPELINE_CREATE_INFO_KHR, pNext=info)
        key = new("VkPipelineBinaryKeyKHR", vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_KEY_KHR)
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

    @contextmanager
    def _created(self, pipeline: PipelineCreateInfo, made: _Creation) -> Iterator[_Creation]:
        """A pipeline that was created, destroyed at the end of the block. Raises where it was not."""
        self._check(pipeline, made)
        try:
            yield made
        finally:
            self._destroy(made.pipeline)

    def _let_go(self, pipeline: PipelineCreateInfo, made: _Creation) -> None:
        """Destroys what was created, if anything was. Raises for an error of the driver."""
        if made.pipeline:
            self._destroy(made.pipeline)
        if made.result < 0:
            self._check(pipeline, made)

    def _destroy(self, pipeline: int) -> None:
        self._device.commands.vkDestroyPipeline(self._device.handle, pipeline, ffi.NULL)

    def _create(self, pipeline: PipelineCreateInfo, more: int, *, cache: int = 0, extra: Any = None) -> _Creation:
        """One creation call; ``extra`` goes in pNext."""
        info, call = self._prepare(pipeline, more)
        if extra is not None:
            extra.pNext = info.pNext
            info.pNext = extra
        return self._call(type(pipeline), info, call, cache)

    def _create_from(self, values: tuple[tuple[bytes, bytes], ...], pipeline: PipelineCreateInfo) -> _Creation:
        with self._binaries_of(values) as binaries:
            array = ffi.new("VkPipelineBinaryKHR[]", binaries)
            structure_type = vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_INFO_KHR
            extra = new("VkPipelineBinaryInfoKHR", structure_type, binaryCount=len(binaries), pPipelineBinaries=array)
            return self._create(_without_modules(pipeline), _COMPILE_FORBIDDEN, extra=extra)

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
        feedback = feedback_info = None
        of_stages = ffi.NULL
        if device.feedback:
            feedback = ffi.new("VkPipelineCreationFeedback *")
            if stages:
                of_stages = ffi.new("VkPipelineCreationFeedback[]", stages)
            feedback_info = info.pNext = new(
                "VkPipelineCreationFeedbackCreateInfo",
                vk.VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO,
                pNext=info.pNext,
                pPipelineCreationFeedback=feedback,
                pipelineStageCreationFeedbackCount=stages,
                pPipelineStageCreationFeedbacks=of_stages,
            )
        made = ffi.new("VkPipeline *")
        create = getattr(device.commands, _COMMANDS[kind])
        # Ray tracing pipelines may be made by a deferred operation, which is none here.
        before = (device.handle, 0, cache) if kind is RayTracingPipelineCreateInfoKHR else (device.handle, cache)
        started = perf_counter()
        result = create(*before, 1, info, ffi.NULL, made)
        seconds = perf_counter() - started
        del call, feedback_info
        if result != vk.VK_SUCCESS and made[0]:
            # Some successes are not complete ones; only VK_SUCCESS counts here.
            self._destroy(made[0])
            made[0] = 0
        return _Creation(result, made[0], seconds, _feedback(feedback), tuple(map(_feedback, of_stages)) if of_stages else ())

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
        device, command = self._device, "vkReleaseCapturedPipelineDataKHR"
        with self._binaries(pipeline=pipeline) as binaries:
            structure_type = vk.VK_STRUCTURE_TYPE_RELEASE_CAPTURED_PIPELINE_DATA_INFO_KHR
            release = new("VkReleaseCapturedPipelineDataInfoKHR", structure_type, pipeline=pipeline)
            check(getattr(device.commands, command)(device.handle, release, ffi.NULL), command)
            return tuple(self._binary_data(binary) for binary in binaries)

    @contextmanager
    def _binaries(self, **source: Any) -> Iterator[list[int]]:
        """The binaries of a pipeline, or made from data, destroyed at the end of the block."""
        device, command = self._device, self._device.commands.vkCreatePipelineBinariesKHR
        create = new("VkPipelineBinaryCreateInfoKHR", vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_CREATE_INFO_KHR, **source)
        handles = new("VkPipelineBinaryHandlesInfoKHR", vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_HANDLES_INFO_KHR)
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
        try:
            check(result, "vkCreatePipelineBinariesKHR")
            yield made
        finally:
            for binary in filter(None, made):
                device.commands.vkDestroyPipelineBinaryKHR(device.handle, binary, ffi.NULL)

    def _binary_data(self, binary: int) -> tuple[bytes, bytes]:
        device, command = self._device, self._device.commands.vkGetPipelineBinaryDataKHR
        info = new("VkPipelineBinaryDataInfoKHR", vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_DATA_INFO_KHR, pipelineBinary=binary)
        key = new("VkPipelineBinaryKeyKHR", vk.VK_STRUCTURE_TYPE_PIPELINE_BINARY_KEY_KHR)
        size = ffi.new("size_t *")
        check(command(device.handle, info, key, size, ffi.NULL), "vkGetPipelineBinaryDataKHR")
        data = bytearray(size[0])
        check(command(device.handle, info, key, size, ffi.from_buffer(data)), "vkGetPipelineBinaryDataKHR")
        return bytes(ffi.buffer(key.key, key.keySize)), bytes(data[: size[0]])

    @contextmanager
    def _binaries_of(self, values: tuple[tuple[bytes, bytes], ...]) -> Iterator[list[int]]:
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
        with self._binaries(pKeysAndDataInfo=pairs) as binaries:
            yield binaries

    def _cache_holds_anything(self) -> bool:
        """Whether a cache grows by a pipeline: some drivers have caches in name only."""
        code = b"".join(word.to_bytes(4, "little") for word in _EMPTY_SHADER)
        module, layout = ShaderModuleHandle(1), PipelineLayoutHandle(1)
        self.objects.define("ShaderModuleHandle", 1, ShaderModuleCreateInfo(code=code))
        self.objects.define("PipelineLayoutHandle", 1, PipelineLayoutCreateInfo())
        stage = PipelineShaderStageCreateInfo(stage=vk.VK_SHADER_STAGE_COMPUTE_BIT, module=module)
        pipeline = ComputePipelineCreateInfo(stage=stage, layout=layout)
        try:
            with temporary_cache(self._device, b"") as cache:
                empty = read_whole_cache(self._device, cache)
                with self._created(pipeline, self._create(pipeline, 0, cache=cache)):
                    return len(read_whole_cache(self._device, cache)) > len(empty)
        except ShaderkilnError:
            return True
        finally:
            self.objects.forget()

    # ---------------------------------------------------------------------------------------------------------- inspection

    def _executables(self, pipeline: int, representations: bool) -> tuple[Executable, ...]:
        device = self._device
        info = new("VkPipelineInfoKHR", vk.VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, pipeline=pipeline)
        found = enumerate_all(
            device.commands,
            "vkGetPipelineExecutablePropertiesKHR",
            (device.handle, info),
            "VkPipelineExecutablePropertiesKHR",
            lambda item: (text(item.name), text(item.description), int(item.stages), int(item.subgroupSize)),
            vk.VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR,
        )
        executables = []
        for index, properties in enumerate(found):
            structure_type = vk.VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR
            which = new("VkPipelineExecutableInfoKHR", structure_type, pipeline=pipeline, executableIndex=index)
            statistics = enumerate_all(
                device.commands,
                "vkGetPipelineExecutableStatisticsKHR",
                (device.handle, which),
                "VkPipelineExecutableStatisticKHR",
                lambda item: Statistic(text(item.name), text(item.description), _statistic_value(item)),
                vk.VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR,
            )
            inside = self._representations(which) if representations else ()
            executables.append(Executable(*properties, tuple(statistics), inside))
        return tuple(executables)

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
                Representation(text(item.name), text(item.description), bool(item.isText), _representation_data(item))
                for item in items[0 : count[0]]
            )


def _feedback(given: Any) -> Feedback | None:
    flags = given.flags if given is not None else 0
    if not flags & vk.VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT:
        return None
    return Feedback(
        cache_hit=bool(flags & vk.VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT),
        base_pipeline_acceleration=bool(flags & vk.VK_PIPELINE_CREATION_FEEDBACK_BASE_PIPELINE_ACCELERATION_BIT),
        seconds=given.duration / 1e9,
    )


_MAXIMUM_KEY: int = dict(ffi.typeof("VkPipelineBinaryKeyKHR").fields)["key"].type.length


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
