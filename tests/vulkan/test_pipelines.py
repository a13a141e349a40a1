"""Creating pipelines through caches and from binaries, on real drivers."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from driver_support import BUFFER_LAYOUT, MULTIPLY, SET
from vulkan_support import CAPTURES, FORBIDDEN, HERE, OBJECTS, compute_pipeline, create_all, graphics_pipeline, opened

import shaderkiln.vulkan as vk
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.errors import DamagedInputError, DriverError, InvalidArgumentError
from shaderkiln.formats.mesa_cache import read, seal
from shaderkiln.sources.capture import Capture
from shaderkiln.vulkan import Pipeline, PipelineCache, VulkanDevice
from shaderkiln.vulkan_registry import constants
from shaderkiln.vulkan_registry.structures import ShaderModuleCreateInfo, ShaderModuleHandle
from shaderkiln.workers.pool import Limits

pytestmark = pytest.mark.driver

EARLY_RETURN = constants.VK_PIPELINE_CREATE_EARLY_RETURN_ON_FAILURE_BIT


def captured(name: str) -> list[PipelineDescription]:
    path = CAPTURES / f"{name}.foz"
    if not path.exists():
        pytest.skip(f"the capture {path.name} is not here")
    with Capture.open(path) as capture:
        found = [capture.load(kind, hash) for kind, hash in capture.pipelines()]
        for description in found:
            for handle in description.objects:
                _ = description.objects[handle]  # decoded now, not while something is measured
        return found


def create(device: VulkanDevice, cache: PipelineCache | None, description: PipelineDescription) -> Pipeline:
    make = device.create_compute_pipelines if description.kind == "compute" else device.create_graphics_pipelines
    return make(cache, [description])[0]


def create_with_threads(
    device: VulkanDevice, cache: PipelineCache | None, descriptions: list[PipelineDescription], threads: int
) -> tuple[list[Pipeline], float]:
    """All outcomes and the seconds that it took."""
    waiting = iter(descriptions)
    lock = threading.Lock()
    made: list[Pipeline] = []

    def work() -> None:
        while True:
            with lock:
                description = next(waiting, None)
            if description is None:
                return
            made.append(create(device, cache, description))

    running = [threading.Thread(target=work) for _ in range(threads)]
    started = time.perf_counter()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return made, time.perf_counter() - started


# --------------------------------------------------------------------------------------------------------- using caches


@pytest.mark.spec("VC-04", "VC-14")
def test_a_cache_is_asked_and_gains_what_is_new(device: VulkanDevice) -> None:
    cache = device.create_pipeline_cache()
    first = create_all(device, cache)
    assert [pipeline.result for pipeline in first] == ["VK_SUCCESS"] * 3
    assert [pipeline.hit for pipeline in first] == [False] * 3
    entries = cache.entries()
    assert entries
    again = create_all(device, cache)
    assert [pipeline.hit for pipeline in again] == [True] * 3
    assert cache.entries() == entries
    assert all(pipeline.seconds > 0 for pipeline in first + again)


@pytest.mark.spec("VC-04")
def test_without_a_cache_nothing_is_kept(device: VulkanDevice) -> None:
    for _ in range(2):
        pipelines = create_all(device, None)
        assert all(pipelines)
        assert [pipeline.hit for pipeline in pipelines] == [None] * 3


@pytest.mark.spec("VC-14")
def test_feedback_of_the_pipeline_and_of_every_stage(device: VulkanDevice) -> None:
    cache = device.create_pipeline_cache()
    compute, _, graphics = create_all(device, cache)
    for pipeline, stages in ((compute, 1), (graphics, 2)):
        assert pipeline.feedback is not None
        assert not pipeline.feedback.cache_hit
        assert 0 < pipeline.feedback.seconds <= pipeline.seconds
        assert len(pipeline.stage_feedback) == stages
        for stage in pipeline.stage_feedback:
            assert stage is not None
            assert not stage.cache_hit
            assert stage.seconds <= pipeline.feedback.seconds
    compute, _, graphics = create_all(device, cache)
    assert compute.feedback is not None
    assert compute.feedback.cache_hit
    assert len(graphics.stage_feedback) == 2


@pytest.mark.spec("VC-14")
def test_compiling_forbidden_on_a_miss(device: VulkanDevice) -> None:
    cache = device.create_pipeline_cache()
    missed = create_all(device, cache, forbidden=True)
    assert [pipeline.result for pipeline in missed] == ["VK_PIPELINE_COMPILE_REQUIRED"] * 3
    assert not any(missed)
    assert cache.entries() == ()
    assert all(create_all(device, cache))
    assert [pipeline.result for pipeline in create_all(device, cache, forbidden=True)] == ["VK_SUCCESS"] * 3


@pytest.mark.spec("VC-14")
def test_an_early_return_leaves_the_rest(device: VulkanDevice) -> None:
    cache = device.create_pipeline_cache()
    known, new, other = compute_pipeline(21), compute_pipeline(22, flags=FORBIDDEN | EARLY_RETURN), compute_pipeline(23)
    made = device.create_compute_pipelines(cache, [known, new, other], objects=OBJECTS)
    assert [bool(pipeline) for pipeline in made] == [True, False, False]
    assert made[1].result == "VK_PIPELINE_COMPILE_REQUIRED"
    assert "not tried" in made[2].error
    without = compute_pipeline(22, flags=FORBIDDEN)
    made = device.create_compute_pipelines(cache, [known, without, other], objects=OBJECTS)
    assert [bool(pipeline) for pipeline in made] == [True, False, True]


def test_what_is_no_pipeline_of_that_kind(device: VulkanDevice) -> None:
    for infos in ([graphics_pipeline()], [OBJECTS], ["x"]):
        with pytest.raises(InvalidArgumentError):
            device.create_compute_pipelines(None, infos, objects=OBJECTS)  # type: ignore[arg-type]
    assert all(device.create_compute_pipelines(None, [compute_pipeline()], objects=OBJECTS))
    for missing in OBJECTS:
        objects = {handle: meaning for handle, meaning in OBJECTS.items() if handle != missing}
        if missing in (MULTIPLY, BUFFER_LAYOUT, SET):
            with pytest.raises(InvalidArgumentError):
                device.create_compute_pipelines(None, [compute_pipeline()], objects=objects)
        else:
            assert all(device.create_compute_pipelines(None, [compute_pipeline()], objects=objects))


def test_a_handle_that_means_something_else_in_another_description(device: VulkanDevice) -> None:
    """Two captures may use one number for two shaders."""
    cache = device.create_pipeline_cache()
    module = next(handle for handle in OBJECTS if isinstance(handle, ShaderModuleHandle))
    other = dict(OBJECTS)
    neighbours = OBJECTS[ShaderModuleHandle(8)]
    assert isinstance(neighbours, ShaderModuleCreateInfo)
    other[module] = neighbours
    for objects in (OBJECTS, other, OBJECTS, other):
        assert all(device.create_compute_pipelines(cache, [compute_pipeline(31)], objects=objects))
    one = device.create_pipeline_cache()
    assert all(device.create_compute_pipelines(one, [compute_pipeline(31)], objects=OBJECTS))
    assert {entry.key for entry in one.entries()} < {entry.key for entry in cache.entries()}


@pytest.mark.spec("VC-04")
def test_ten_threads_lose_nothing(device: VulkanDevice) -> None:
    descriptions = captured("pygfx")
    alone = device.create_pipeline_cache()
    made, _ = create_with_threads(device, alone, descriptions, 1)
    assert all(made)
    shared = device.create_pipeline_cache()
    made, _ = create_with_threads(device, shared, descriptions, 10)
    assert all(made)
    assert len(made) == len(descriptions)
    assert {entry.key for entry in shared.entries()} == {entry.key for entry in alone.entries()}
    hits, _ = create_with_threads(device, shared, descriptions, 10)
    assert all(pipeline.hit for pipeline in hits)


@pytest.mark.spec("VC-04")
def test_compiling_happens_outside_of_the_lock(device: VulkanDevice) -> None:
    """Were the cache locked while a pipeline is compiled, whoever asks it meanwhile would wait: one hit for each compile."""
    descriptions = captured("pygfx")
    cache = device.create_pipeline_cache()
    assert create(device, cache, descriptions[0])
    finished = threading.Event()
    hits = 0

    def ask() -> None:
        nonlocal hits
        while not finished.is_set():
            assert create(device, cache, descriptions[0]).hit
            hits += 1

    asking = threading.Thread(target=ask)
    asking.start()
    made = [create(device, cache, description) for description in descriptions[1:]]
    finished.set()
    asking.join()
    compiled = sum(1 for pipeline in made if not pipeline.hit)
    assert compiled > 20
    assert hits > 3 * compiled


@pytest.mark.spec("VC-06", "VC-13")
@pytest.mark.parametrize("name", ["vkcube", "mpv", *(pytest.param(n, marks=pytest.mark.soak) for n in ("pygfx", "wgpu"))])
def test_every_part_of_a_captures_cache_is_initial_data(device: VulkanDevice, name: str) -> None:
    """At every size at which an entry more fits, and just below it."""
    cache = device.create_pipeline_cache()
    for description in captured(name):
        assert create(device, cache, description)
    everything = cache.read()
    checksum = len(seal(b""))
    sizes = {end + checksum + change for end in read(everything, device.cache_layout).ends() for change in (-1, 0)}
    counts = []
    for size in sorted(sizes):
        data, complete = cache.get_data(size)
        assert complete == (size == len(everything))
        assert len(data) <= size
        taken = device.create_pipeline_cache(data)
        assert taken.rejection is None
        assert taken.entries() == cache.entries()[: len(taken.entries())]
        counts.append(len(taken.entries()))
        device.destroy_pipeline_cache(taken)
    assert counts == sorted(counts)
    assert set(counts) >= set(range(1, len(cache.entries()) + 1))


@pytest.mark.spec("VC-04")
def test_several_of_one_call_are_compiled_at_once_and_stay_in_order(device: VulkanDevice) -> None:
    descriptions = [description for description in captured("wgpu") if description.kind == "compute"]
    cache = device.create_pipeline_cache()
    made = device.create_compute_pipelines(cache, descriptions)
    assert [pipeline.name for pipeline in made] == [description.name for description in descriptions]
    assert all(made)


# ---------------------------------------------------------------------------------------------------- processes that end


def kill(device: VulkanDevice) -> None:
    process = device._connection.process._service._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)


def test_a_cache_outlives_its_process(device: VulkanDevice) -> None:
    cache = device.create_pipeline_cache()
    assert all(create_all(device, cache))
    data = cache.read()
    starts = device.restarts
    kill(device)
    assert cache.read() == data
    assert all(pipeline.hit for pipeline in create_all(device, cache))
    assert device.restarts == starts + 1
    assert cache.rejection is None


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_device_that_nobody_holds_any_more_ends_its_process() -> None:
    with opened(*HERE[0]) as device:
        files = open_files()
    device = vk.open_device(HERE[0][0], package=HERE[0][1])
    assert all(create_all(device, device.create_pipeline_cache()))
    service = device._connection.process._service
    del device
    gc.collect()
    assert service.finished.wait(10)
    assert open_files() < files


def test_pipelines_in_hand_are_made_again(device: VulkanDevice) -> None:
    descriptions = captured("pygfx")
    cache = device.create_pipeline_cache()
    timer = threading.Timer(0.1, kill, (device,))
    timer.start()
    made, _ = create_with_threads(device, cache, descriptions, 4)
    timer.join()
    assert all(made)
    assert cache.rejection is None


def test_a_pipeline_that_takes_too_long_is_an_error_and_the_device_goes_on() -> None:
    with opened(*HERE[0], limits=Limits(seconds=0.02)) as device:
        cache = device.create_pipeline_cache()
        process = device._connection.process._service._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        # Stopped once; the next process answers in time.
        assert any(create_all(device, cache))
        assert device.restarts >= 1


# -------------------------------------------------------------------------------------------------------------- binaries


@pytest.mark.spec("VC-15")
def test_binaries_make_the_pipeline_again_without_compiling(device: VulkanDevice) -> None:
    if device.capabilities.object_code_form != "pipeline-binary":
        with pytest.raises(DriverError) as error:
            device.create_pipeline_binaries(compute_pipeline(), objects=OBJECTS)
        assert error.value.code == "VK_ERROR_FEATURE_NOT_PRESENT"
        return
    for info in (compute_pipeline(41), graphics_pipeline()):
        binaries = device.create_pipeline_binaries(info, objects=OBJECTS)
        assert binaries
        assert len({binary.key for binary in binaries}) == len(binaries)
        assert all(binary.key and binary.data for binary in binaries)
        pipeline = device.create_pipeline_from_binaries(info, binaries, objects=OBJECTS)
        assert (pipeline.result, pipeline.hit) == ("VK_SUCCESS", True)
        assert device.create_pipeline_binaries(info, objects=OBJECTS) == binaries


@pytest.mark.spec("VC-15")
def test_binaries_that_are_refused(device: VulkanDevice) -> None:
    if device.capabilities.object_code_form != "pipeline-binary":
        pytest.skip(f"{device.family} has no VK_KHR_pipeline_binary")
    info = compute_pipeline(42)
    binaries = device.create_pipeline_binaries(info, objects=OBJECTS)
    damaged = [replace(binary, data=binary.data[:-1] + bytes([binary.data[-1] ^ 1])) for binary in binaries]
    foreign = [replace(binary, global_key=b"x" * len(binary.global_key)) for binary in binaries]
    for wrong, kind in (([], InvalidArgumentError), (foreign, InvalidArgumentError), (damaged, DamagedInputError)):
        with pytest.raises(kind):
            device.create_pipeline_from_binaries(info, wrong, objects=OBJECTS)
