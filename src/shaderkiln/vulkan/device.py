"""A Vulkan device whose driver runs in a process of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any, TypeAlias

from msgspec import Struct

from shaderkiln.capabilities import Capabilities
from shaderkiln.compilers.plugin import FamilyCompiler, open_family
from shaderkiln.descriptions.pipeline import Application, PipelineCreateInfo, PipelineDescription, PipelineKind, pipeline_kind
from shaderkiln.descriptions.traversal import references
from shaderkiln.descriptions.unmet import text_of
from shaderkiln.drivers.protocol import (
    Answer,
    CacheRead,
    Compile,
    Compiled,
    Create,
    CreateCache,
    Created,
    DestroyCache,
    Failed,
    ReadCache,
    Recreate,
    Recreated,
)
from shaderkiln.errors import AllocationError, DamagedInputError, DriverError, InvalidArgumentError, ShaderkilnError
from shaderkiln.formats.mesa_cache import Layout
from shaderkiln.formats.vendors import MESA_DRIVERS, RADV
from shaderkiln.formats.vk_cache import HEADER_SIZE
from shaderkiln.identity import CompilerIdentity
from shaderkiln.system.processes import usable_processors
from shaderkiln.vulkan.allocation import OUT_OF_HOST_MEMORY, AllocationCallbacks
from shaderkiln.vulkan.connection import Connection
from shaderkiln.vulkan.initial_data import check
from shaderkiln.vulkan.pipeline_cache import EXTERNALLY_SYNCHRONIZED, INTERNALLY_SYNCHRONIZED_MERGE, PipelineCache
from shaderkiln.vulkan.pipelines import Pipeline, PipelineBinary, checksum
from shaderkiln.vulkan_registry import constants
from shaderkiln.vulkan_registry.handles import Handle
from shaderkiln.vulkan_registry.structures import PipelineCreateFlags2CreateInfo
from shaderkiln.workers.pool import Limits
from shaderkiln.workers.shared_process import ProcessEndedError

AnyInfo: TypeAlias = PipelineDescription | PipelineCreateInfo

_FORBIDDEN = constants.VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT
_EARLY_RETURN = constants.VK_PIPELINE_CREATE_EARLY_RETURN_ON_FAILURE_BIT
_NO_FEATURE = "VK_ERROR_FEATURE_NOT_PRESENT"
_FLAGS = {
    EXTERNALLY_SYNCHRONIZED: (
        "VK_PIPELINE_CACHE_CREATE_EXTERNALLY_SYNCHRONIZED_BIT",
        ".pipelineCreationCacheControl",
    ),
    INTERNALLY_SYNCHRONIZED_MERGE: (
        "VK_PIPELINE_CACHE_CREATE_INTERNALLY_SYNCHRONIZED_MERGE_BIT_KHR",
        "VkPhysicalDeviceMaintenance8FeaturesKHR.maintenance8",
    ),
}


def open_device(
    family: str,
    *,
    features: Iterable[str] = (),
    plugin: str | None = None,
    package: str | None = None,
    abi_version: int | None = None,
    threads: int | None = None,
    limits: Limits | None = None,
) -> VulkanDevice:
    """Open a device of an adapter family, with its driver in a process of its own.

    ``features`` are the code-changing features (robustness) to turn on, as ``VkStructure.member``. ``plugin``, ``package`` and
    ``abi_version`` choose among several builds of the driver. Up to ``threads`` pipelines are compiled at once (default: one for
    each CPU); ``limits`` are what one pipeline may take before the process is ended.

    Raises FamilyNotFoundError where no driver here has the family, DriverError where the driver cannot open a device.
    """
    application = Application(features=tuple(sorted(features)))
    compiler = open_family(family, application, plugin=plugin, package=package, abi_version=abi_version)
    return VulkanDevice(compiler, threads=threads, limits=limits)


class VulkanDevice:
    """A device; a context manager. Any thread may use it.

    If the driver's process ends while it creates pipelines, those that it had in hand are tried once more, each alone in a new
    process; ``restarts`` counts the new processes.
    """

    def __init__(self, compiler: FamilyCompiler, *, threads: int | None = None, limits: Limits | None = None) -> None:
        threads = max(1, threads or usable_processors())
        self._compiler = compiler
        self._slots = threading.BoundedSemaphore(threads)
        self._lock = threading.Lock()
        self._caches: set[PipelineCache] = set()
        self._connection = Connection(compiler, threads, limits)
        opened = self._connection.process.opened
        self.capabilities: Capabilities = opened.capabilities
        """What the device can do, and what identifies it."""
        self.cache_layout: Layout = self._find_layout()
        """How the data of this driver's caches is divided."""

    @property
    def identity(self) -> CompilerIdentity:
        """Who object code made by this device belongs to."""
        return self._compiler.identity

    @property
    def family(self) -> str:
        return self.identity.family

    @property
    def restarts(self) -> int:
        """How many processes took the place of one that had ended."""
        return self._connection.restarts

    def close(self) -> None:
        """Destroy every cache and end the driver's process. Closing a closed device does nothing."""
        if not self._connection.close():
            return
        with self._lock:
            caches = tuple(self._caches)
            self._caches.clear()
        for cache in caches:
            cache.release()

    def __enter__(self) -> VulkanDevice:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- pipeline caches

    def create_pipeline_cache(
        self,
        initial_data: Any = b"",
        *,
        initial_data_size: int | None = None,
        flags: int = 0,
        allocator: AllocationCallbacks | None = None,
        require_checksum: bool = False,
    ) -> PipelineCache:
        """vkCreatePipelineCache.

        ``initial_data`` are bytes that ``get_data`` of such a cache, or any program's vkGetPipelineCacheData, gave; their first
        ``initial_data_size`` bytes if that is given, and nothing is looked at if it is 0 (VC-01). Data that is damaged or is not
        for this device gives an empty cache, whose ``rejection`` says why (VC-02): it never reaches the driver. Every change shows
        in data from here, which has a checksum. In data of other programs it shows only where the entries no longer fit together,
        and not at all where the payload is opaque; ``require_checksum`` takes such data as damaged.

        Raises InvalidArgumentError for flags that are no flags, or exclude each other; DriverError
        (VK_ERROR_FEATURE_NOT_PRESENT) for a flag that the driver lacks (VC-03); AllocationError where the callbacks refuse the
        memory (VC-12).
        """
        self._connection.require()
        self._check_flags(flags)
        data, rejection = b"", None
        if initial_data_size != 0:
            try:
                data = bytes(memoryview(initial_data))
            except TypeError as error:
                raise InvalidArgumentError(f"initial data must be bytes: {error}") from None
            if initial_data_size is not None:
                if not 0 <= initial_data_size <= len(data):
                    raise InvalidArgumentError(f"{initial_data_size} bytes of initial data, where {len(data)} are given")
                data = data[:initial_data_size]
            if data:
                data, rejection = check(data, self.capabilities, self.cache_layout, require_checksum)
        cache = PipelineCache(self._connection, self.cache_layout, flags, data, allocator)
        cache.rejection = rejection
        cache.make()
        cache.account()
        with self._lock:
            self._caches.add(cache)
        return cache

    def destroy_pipeline_cache(self, cache: PipelineCache | None, allocator: AllocationCallbacks | None = None) -> None:
        """vkDestroyPipelineCache, when what uses the cache has finished; nothing for None (VC-11).

        Raises InvalidArgumentError for a cache that is destroyed or another device's, and for other allocation callbacks than
        those that it was created with.
        """
        self._connection.require()
        if cache is None:
            return
        self._own(cache)
        if allocator != cache.callbacks:
            raise InvalidArgumentError("the allocation callbacks must be those that the cache was created with, if any")
        with cache.gate.alone():
            self._own(cache)
            with self._lock:
                self._caches.discard(cache)
            cache.destroy()

    def merge_pipeline_caches(self, destination: PipelineCache, sources: Sequence[PipelineCache]) -> None:
        """vkMergePipelineCaches: the destination gains the entries of every source, each once (VC-10).

        Raises InvalidArgumentError where there is no source, where the destination is among them, and for caches that are
        destroyed or another device's; AllocationError where the destination's callbacks refuse the memory, and then it stays as
        it was.
        """
        self._connection.require()
        sources = tuple(dict.fromkeys(sources))
        for cache in (destination, *sources):
            self._own(cache)
        if not sources:
            raise InvalidArgumentError("there is nothing to merge")
        if destination in sources:
            raise InvalidArgumentError("the destination is one of the sources")
        shares = destination.flags & INTERNALLY_SYNCHRONIZED_MERGE and destination.callbacks is None
        with ExitStack() as stack:
            # Always in the same order, so that two merges never wait for each other.
            for cache in sorted((destination, *sources), key=lambda cache: cache.number):
                gate = cache.gate
                stack.enter_context(gate.alone() if cache is destination and not shares else gate.shared())
                self._own(cache)
            destination.merge(sources)

    # -- pipelines

    def create_graphics_pipelines(
        self, cache: PipelineCache | None, infos: Sequence[AnyInfo], *, objects: Mapping[Handle, Struct] | None = None
    ) -> tuple[Pipeline, ...]:
        """vkCreateGraphicsPipelines: one outcome for each create info, in their order.

        A create info that is no ``PipelineDescription`` takes what its handles mean from ``objects``. Several are compiled at
        once, unless one asks to return early. Compiling is forbidden by the description's own flag,
        VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT. What cannot be created is no exception: see ``Pipeline.result``.

        Raises InvalidArgumentError for a cache that is destroyed or another device's, for something else than graphics
        pipelines, and for a handle that ``objects`` does not have; DriverError where the driver cannot be started any more.
        """
        return self._create("graphics", cache, infos, objects)

    def create_compute_pipelines(
        self, cache: PipelineCache | None, infos: Sequence[AnyInfo], *, objects: Mapping[Handle, Struct] | None = None
    ) -> tuple[Pipeline, ...]:
        """vkCreateComputePipelines; as ``create_graphics_pipelines``."""
        return self._create("compute", cache, infos, objects)

    def create_ray_tracing_pipelines(
        self, cache: PipelineCache | None, infos: Sequence[AnyInfo], *, objects: Mapping[Handle, Struct] | None = None
    ) -> tuple[Pipeline, ...]:
        """vkCreateRayTracingPipelinesKHR; as ``create_graphics_pipelines``."""
        return self._create("raytracing", cache, infos, objects)

    def create_pipeline_binaries(
        self, info: AnyInfo, *, objects: Mapping[Handle, Struct] | None = None
    ) -> tuple[PipelineBinary, ...]:
        """Compile the pipeline and capture its binaries, in the driver's order (vkCreatePipelineBinariesKHR; VC-15).

        Raises DriverError: VK_ERROR_FEATURE_NOT_PRESENT where the driver has no VK_KHR_pipeline_binary, or what it answers.
        """
        self._require_binaries()
        description = _description(info, None, objects, 0)
        answer = self._ask_alone(description, Compile(0, description.create_info))
        assert isinstance(answer, Compiled)
        key = self.identity.global_key
        return tuple(PipelineBinary(name, data, checksum(data), key) for name, data in answer.values)

    def create_pipeline_from_binaries(
        self, info: AnyInfo, binaries: Sequence[PipelineBinary], *, objects: Mapping[Handle, Struct] | None = None
    ) -> Pipeline:
        """Create the pipeline from its binaries, with compiling forbidden and without its shaders (VC-15).

        Raises InvalidArgumentError for no binaries and for those of another device or driver, DamagedInputError for those whose
        checksum is another, and DriverError as ``create_pipeline_binaries``.
        """
        self._require_binaries()
        description = _description(info, None, objects, 0)
        if not binaries:
            raise InvalidArgumentError("a pipeline is not created from no binaries")
        for binary in binaries:
            if binary.global_key != self.identity.global_key:
                raise InvalidArgumentError(f"pipeline binary {binary.key.hex()} is another device's or driver's")
            if checksum(binary.data) != binary.checksum:
                raise DamagedInputError(f"pipeline binary {binary.key.hex()} is not what was captured")
        values = tuple((binary.key, binary.data) for binary in binaries)
        answer = self._ask_alone(description, Recreate(0, description.create_info, values))
        assert isinstance(answer, Recreated)
        return Pipeline(description.name, description.kind, answer.result, "", answer.seconds, answer.hit)

    # -- processes

    def _own(self, cache: PipelineCache) -> None:
        if not isinstance(cache, PipelineCache):
            raise InvalidArgumentError(f"{type(cache).__name__} is no pipeline cache")
        if cache.connection is not self._connection:
            raise InvalidArgumentError("the pipeline cache is another device's")
        cache.require()

    def _find_layout(self) -> Layout:
        if self.capabilities.driver_id not in MESA_DRIVERS:
            return Layout.OPAQUE
        process = self._connection.process
        process.ask(CreateCache(0, 1))
        answer = process.ask(ReadCache(0, 1, whole=True))
        assert isinstance(answer, CacheRead)
        process.ask(DestroyCache(0, 1))
        if len(answer.data) == HEADER_SIZE and self.capabilities.driver_id == RADV:
            return Layout.RADV_22
        return Layout.MESA

    def _check_flags(self, flags: int) -> None:
        known = EXTERNALLY_SYNCHRONIZED | INTERNALLY_SYNCHRONIZED_MERGE
        if flags & ~known or flags < 0:
            raise InvalidArgumentError(
                f"pipeline cache flags {flags:#x}: there are only {', '.join(n for n, _ in _FLAGS.values())}"
            )
        if flags == known:
            raise InvalidArgumentError(f"{' and '.join(name for name, _ in _FLAGS.values())} exclude each other")
        for flag, (name, feature) in _FLAGS.items():
            if flags & flag and not any(have.endswith(feature) for have in self.capabilities.features):
                raise DriverError(f"the driver does not have {name}", code=_NO_FEATURE)

    # -- creation

    def _require_binaries(self) -> None:
        self._connection.require()
        if self.capabilities.object_code_form != "pipeline-binary":
            raise DriverError("the driver has no VK_KHR_pipeline_binary", code=_NO_FEATURE)

    def _ask_alone(self, description: PipelineDescription, request: Compile | Recreate) -> Answer:
        """One request about one pipeline; once more, alone, where the process ends."""
        self._require_met(description)
        with self._connection.gate.shared():
            try:
                return self._connection.connected().ask(request, description)
            except ProcessEndedError:
                pass
        with self._connection.gate.alone():
            return self._connection.connected().ask(request, description)

    def _require_met(self, description: PipelineDescription) -> None:
        unmet = self._compiler.check(description)
        if unmet:
            raise DriverError(text_of(unmet), code=_NO_FEATURE)

    def _create(
        self,
        kind: PipelineKind,
        cache: PipelineCache | None,
        infos: Sequence[AnyInfo],
        objects: Mapping[Handle, Struct] | None,
    ) -> tuple[Pipeline, ...]:
        self._connection.require()
        if cache is not None:
            self._own(cache)
        descriptions = [_description(info, kind, objects, index) for index, info in enumerate(infos)]
        in_turn = any(_flags(d) & _EARLY_RETURN for d in descriptions)
        alone = cache is not None and cache.flags & EXTERNALLY_SYNCHRONIZED
        with ExitStack() as stack:
            if cache is not None:
                stack.enter_context(cache.gate.alone() if alone else cache.gate.shared())
                self._own(cache)
            if alone or in_turn:
                made = self._create_in_turn(cache, descriptions)
            else:
                made = self._create_side_by_side(cache, descriptions)
            new = sum(1 for pipeline in made if pipeline and pipeline.hit is not True)
            if cache is not None and new:
                cache.changed(new)
        if cache is not None and new and cache.callbacks is not None:
            try:
                with cache.gate.alone():
                    if not cache.destroyed:
                        cache.account()
            except AllocationError as error:
                made = [
                    Pipeline(p.name, p.kind, OUT_OF_HOST_MEMORY, str(error)) if p and p.hit is not True else p for p in made
                ]
        return tuple(made)

    def _create_in_turn(self, cache: PipelineCache | None, descriptions: Sequence[PipelineDescription]) -> list[Pipeline]:
        made: list[Pipeline] = []
        for number, description in enumerate(descriptions):
            made += self._create_side_by_side(cache, [description])
            if not made[-1] and _flags(description) & _EARLY_RETURN:
                why = f"not tried: {description.name} was not created"
                made += [Pipeline(d.name, d.kind, made[-1].result, why) for d in descriptions[number + 1 :]]
                break
        return made

    def _create_side_by_side(self, cache: PipelineCache | None, descriptions: Sequence[PipelineDescription]) -> list[Pipeline]:
        outcomes: list[Pipeline | None] = []
        with self._connection.gate.shared():
            tried = [self._begin(cache, description) for description in descriptions]
            for description, future in zip(descriptions, tried, strict=True):
                outcomes.append(future if isinstance(future, Pipeline) else _outcome(description, future))
        return [
            outcome if outcome is not None else self._create_alone(cache, description)
            for description, outcome in zip(descriptions, outcomes, strict=True)
        ]

    def _begin(self, cache: PipelineCache | None, description: PipelineDescription) -> Future[Answer] | Pipeline:
        """Send one creation as soon as the driver has a thread free; an outcome where it cannot be sent."""
        try:
            self._require_met(description)
        except DriverError as error:
            return Pipeline(description.name, description.kind, error.code, str(error))
        forbidden = bool(_flags(description) & _FORBIDDEN)
        self._slots.acquire()
        future: Future[Answer] | None = None
        try:
            process = self._connection.connected()
            number = 0 if cache is None else cache.number_in(process)
            future = process.submit(Create(0, description.create_info, number, forbidden), description)
        except ProcessEndedError as error:
            future = Future()
            future.set_exception(error)
        except ShaderkilnError as error:
            return Pipeline(description.name, description.kind, error.code, str(error))
        finally:
            if future is None:
                self._slots.release()
        slots = self._slots  # the callback must not keep the device alive
        future.add_done_callback(lambda _: slots.release())
        return future

    def _create_alone(self, cache: PipelineCache | None, description: PipelineDescription) -> Pipeline:
        """A pipeline that was in hand when a process ended: alone in a new one, and then without the cache, to know whose fault
        it is."""
        with self._connection.gate.alone():
            outcome = self._try(cache, description)
            if isinstance(outcome, Pipeline):
                return outcome
            if cache is not None:
                without = self._try(None, description)
                if isinstance(without, Pipeline):
                    cache.drop_data(f"{outcome} when it used what the cache held")
                    again = self._try(cache, description)
                    return again if isinstance(again, Pipeline) else without
                outcome = without
        return Pipeline(description.name, description.kind, outcome.code, str(outcome))

    def _try(self, cache: PipelineCache | None, description: PipelineDescription) -> Pipeline | ProcessEndedError:
        future = self._begin(cache, description)
        if isinstance(future, Pipeline):
            return future
        made = _outcome(description, future)
        if made is not None:
            return made
        error = future.exception()
        assert isinstance(error, ProcessEndedError)
        return error


def _flags(description: PipelineDescription) -> int:
    info = description.create_info
    for item in info.next:
        if type(item) is PipelineCreateFlags2CreateInfo:
            return item.flags
    return info.flags


def _description(
    info: AnyInfo, kind: PipelineKind | None, objects: Mapping[Handle, Struct] | None, index: int
) -> PipelineDescription:
    if not isinstance(info, PipelineDescription):
        info = PipelineDescription(str(index), pipeline_kind(info), info, objects or {})
        _require_closed(info)
    if kind is not None and info.kind != kind:
        raise InvalidArgumentError(f"pipeline {info.name} is a {info.kind} pipeline")
    return info


def _require_closed(description: PipelineDescription) -> None:
    """Raise InvalidArgumentError where a handle has no meaning: the driver may know one from another description."""
    waiting: list[Struct] = [description.create_info]
    seen: set[Handle] = set()
    while waiting:
        for handle in references(waiting.pop()):
            if handle not in description.objects:
                raise InvalidArgumentError(f"pipeline {description.name}: {handle!r} is not among the objects")
            if handle not in seen:
                seen.add(handle)
                waiting.append(description.objects[handle])


def _outcome(description: PipelineDescription, future: Future[Answer]) -> Pipeline | None:
    """None where the process ended."""
    try:
        answer = future.result()
    except ProcessEndedError:
        return None
    name, kind = description.name, description.kind
    if isinstance(answer, Created):
        return Pipeline(name, kind, answer.result, "", answer.seconds, answer.hit, answer.feedback, answer.stages)
    assert isinstance(answer, Failed)
    return Pipeline(name, kind, answer.code, answer.message)
