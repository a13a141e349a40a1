"""The driver worker, whole: real processes that hold real drivers, asked through the client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from driver_support import (
    ASSEMBLY,
    BLEND,
    BUFFER_LAYOUT,
    COLOR,
    EMPTY_LAYOUT,
    FRAGMENT_STAGE,
    MULTIPLY,
    NEIGHBOURS,
    PASS,
    R8G8B8A8_UNORM,
    RASTER,
    SAMPLES,
    VERTEX_STAGE,
    VIEWPORT,
    compile_ok,
    compute_pipeline,
    define_all,
    graphics_pipeline,
    open_worker,
    start,
    targets_of,
)

from shaderkiln.descriptions.pipeline import PipelineCreateInfo
from shaderkiln.drivers.client import WorkerProcess, worker_arguments
from shaderkiln.drivers.protocol import (
    Compile,
    Define,
    Failed,
    Forget,
    Inspect,
    Inspected,
    Open,
    Opened,
    Recreate,
    Recreated,
)
from shaderkiln.errors import DriverError
from shaderkiln.vulkan_registry import constants as vk
from shaderkiln.vulkan_registry.handles import UnknownStructure
from shaderkiln.vulkan_registry.structures import (
    AttachmentDescription2,
    AttachmentReference2,
    ComputePipelineCreateInfo,
    GraphicsPipelineCreateInfo,
    GraphicsPipelineLibraryCreateInfoEXT,
    PipelineCreateFlags2CreateInfo,
    PipelineHandle,
    PipelineLibraryCreateInfoKHR,
    PipelineRenderingCreateInfo,
    PipelineShaderStageCreateInfo,
    PipelineVertexInputStateCreateInfo,
    RenderPassCreateInfo2,
    RenderPassHandle,
    ShaderModuleCreateInfo,
    ShaderModuleHandle,
    SubpassDescription2,
)

pytestmark = pytest.mark.driver

BINARY_FAMILIES = ("amd-navi21", "nvidia-nvk-172", "apple-g13g")
FAIL_ON_COMPILE = vk.VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT


@pytest.fixture(scope="module", params=BINARY_FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def opened(family: str) -> Iterator[tuple[WorkerProcess, Opened]]:
    worker, answer = open_worker("pipeline-binary", family)
    with worker:
        yield worker, answer


@pytest.fixture
def worker(opened: tuple[WorkerProcess, Opened]) -> WorkerProcess:
    opened[0].send(Forget())
    define_all(opened[0])
    return opened[0]


def recreate(worker: WorkerProcess, pipeline: PipelineCreateInfo, values: tuple[tuple[bytes, bytes], ...]) -> Recreated:
    answer = worker.ask(Recreate(2, pipeline, values))
    assert isinstance(answer, Recreated), answer
    return answer


def assert_hits(worker: WorkerProcess, pipeline: PipelineCreateInfo) -> None:
    """It compiles, its object code alone creates it again, and without object code it cannot be created."""
    values = compile_ok(worker, pipeline).values
    assert values
    assert all(data for _, data in values)
    assert recreate(worker, pipeline, values).result == "VK_SUCCESS"
    miss = recreate(worker, pipeline, ())
    assert (miss.hit, miss.result) == (False, "VK_PIPELINE_COMPILE_REQUIRED")


def test_capabilities_are_those_of_the_device(opened: tuple[WorkerProcess, Opened]) -> None:
    capabilities = opened[1].capabilities
    assert capabilities.api_version >= 1 << 22 | 3 << 12
    assert "VK_KHR_pipeline_binary" in capabilities.extensions
    assert "VkPhysicalDevicePipelineBinaryFeaturesKHR.pipelineBinaries" in capabilities.features
    assert "VkPhysicalDeviceFeatures.geometryShader" in capabilities.features
    assert capabilities.properties["VkPhysicalDeviceLimits.maxPushConstantsSize"] >= 128
    assert capabilities.properties["VkPhysicalDeviceSubgroupSizeControlProperties.maxSubgroupSize"] >= 32
    assert len(capabilities.cache_uuid) == 16
    assert len(opened[1].global_key) >= 16


@pytest.mark.spec("VC-14", "VC-15")
@pytest.mark.parametrize("pipeline", [compute_pipeline(), graphics_pipeline()], ids=["compute", "graphics"])
def test_object_code_alone_creates_the_pipeline(worker: WorkerProcess, pipeline: PipelineCreateInfo) -> None:
    assert_hits(worker, pipeline)


@pytest.mark.spec("VC-15")
def test_binaries_have_keys_of_the_driver_and_are_the_same_each_time(worker: WorkerProcess) -> None:
    first, again = compile_ok(worker, graphics_pipeline()), compile_ok(worker, graphics_pipeline())
    assert first.values == again.values
    assert len({key for key, _ in first.values}) == len(first.values)
    assert all(16 <= len(key) <= 32 for key, _ in first.values)


@pytest.mark.spec("VC-14")
def test_feedback_and_times_are_reported(worker: WorkerProcess) -> None:
    answer = compile_ok(worker, compute_pipeline(5))
    assert answer.feedback_hit is False
    assert answer.feedback_seconds is not None
    assert 0 < answer.feedback_seconds <= answer.seconds < 60


def test_specialization_reaches_the_driver(worker: WorkerProcess) -> None:
    assert compile_ok(worker, compute_pipeline(3)).values != compile_ok(worker, compute_pipeline(1025)).values


def test_nothing_is_kept_where_nothing_is_asked_for(worker: WorkerProcess) -> None:
    answer = worker.ask(Compile(9, compute_pipeline(), keep=False))
    assert not isinstance(answer, Failed)
    assert (answer.request, answer.values) == (9, ())


def test_dynamic_rendering(worker: WorkerProcess) -> None:
    rendering = PipelineRenderingCreateInfo(color_attachment_formats=(R8G8B8A8_UNORM,))
    assert_hits(worker, graphics_pipeline(render_pass=None, next=(rendering,)))


def test_render_pass_2(worker: WorkerProcess) -> None:
    handle = RenderPassHandle(70)
    attachment = AttachmentDescription2(format=R8G8B8A8_UNORM, samples=1, load_op=1, final_layout=2)
    subpass = SubpassDescription2(color_attachments=(AttachmentReference2(attachment=0, layout=2, aspect_mask=1),))
    worker.send(Define("RenderPassHandle", 70, RenderPassCreateInfo2(attachments=(attachment,), subpasses=(subpass,))))
    assert_hits(worker, graphics_pipeline(render_pass=handle))


@pytest.mark.parametrize(
    "dropped",
    [
        FAIL_ON_COMPILE,
        FAIL_ON_COMPILE | vk.VK_PIPELINE_CREATE_EARLY_RETURN_ON_FAILURE_BIT,
        vk.VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR | vk.VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR,
    ],
)
def test_flags_of_one_call_do_not_matter(worker: WorkerProcess, dropped: int) -> None:
    plain = compile_ok(worker, compute_pipeline())
    assert compile_ok(worker, compute_pipeline(flags=dropped)).values == plain.values
    flags_2 = PipelineCreateFlags2CreateInfo(flags=dropped)
    assert compile_ok(worker, compute_pipeline(next=(flags_2,))).values == plain.values


def test_flags_of_64_bits_take_the_place_of_those_of_32(worker: WorkerProcess) -> None:
    optimized = compile_ok(worker, graphics_pipeline())
    disabled = vk.VK_PIPELINE_CREATE_DISABLE_OPTIMIZATION_BIT
    chained = graphics_pipeline(flags=disabled, next=(PipelineCreateFlags2CreateInfo(flags=0),))
    assert compile_ok(worker, chained).values == optimized.values


def test_a_derivative_gets_its_base(worker: WorkerProcess) -> None:
    base = PipelineHandle(80)
    worker.send(Define("PipelineHandle", 80, graphics_pipeline()))
    derived = graphics_pipeline(
        flags=vk.VK_PIPELINE_CREATE_DERIVATIVE_BIT, base_pipeline_handle=base, base_pipeline_index=-1, color_blend_state=BLEND
    )
    assert_hits(worker, derived)
    unknown = graphics_pipeline(flags=vk.VK_PIPELINE_CREATE_DERIVATIVE_BIT, base_pipeline_handle=PipelineHandle(81))
    answer = worker.ask(Compile(1, unknown))
    assert isinstance(answer, Failed)
    assert "PipelineHandle(0x0000000000000051) is not defined" in answer.message
    by_index = graphics_pipeline(flags=vk.VK_PIPELINE_CREATE_DERIVATIVE_BIT, base_pipeline_index=4)
    assert compile_ok(worker, by_index).values


@pytest.mark.parametrize("optimized", [False, True])
def test_pipeline_libraries(worker: WorkerProcess, opened: tuple[WorkerProcess, Opened], family: str, optimized: bool) -> None:
    feature = "VkPhysicalDeviceGraphicsPipelineLibraryFeaturesEXT.graphicsPipelineLibrary"
    if feature not in opened[1].capabilities.features:
        pytest.skip("the driver has no graphics pipeline libraries")
    retain = 0x800000 if optimized else 0
    rendering = PipelineRenderingCreateInfo(color_attachment_formats=(R8G8B8A8_UNORM,))

    def part(kind: int, **state: object) -> GraphicsPipelineCreateInfo:
        chain = (GraphicsPipelineLibraryCreateInfoEXT(flags=kind), *((rendering,) if kind != 1 else ()))
        return GraphicsPipelineCreateInfo(flags=0x800 | retain, next=chain, **state)  # type: ignore[arg-type]

    parts = [
        part(1, vertex_input_state=PipelineVertexInputStateCreateInfo(), input_assembly_state=ASSEMBLY),
        part(2, stages=(VERTEX_STAGE,), viewport_state=VIEWPORT, rasterization_state=RASTER, layout=EMPTY_LAYOUT),
        part(4, stages=(FRAGMENT_STAGE,), multisample_state=SAMPLES, layout=EMPTY_LAYOUT),
        part(8, color_blend_state=BLEND, multisample_state=SAMPLES),
    ]
    handles = tuple(PipelineHandle(90 + n) for n in range(len(parts)))
    for handle, description in zip(handles, parts, strict=True):
        worker.send(Define("PipelineHandle", handle.value, description))
    linked = GraphicsPipelineCreateInfo(
        flags=0x400 if optimized else 0, layout=EMPTY_LAYOUT, next=(PipelineLibraryCreateInfoKHR(libraries=handles),)
    )
    if not optimized:
        # Linking is not compiling: it takes its libraries' code as it is, whether object code is given or not.
        assert recreate(worker, linked, compile_ok(worker, linked).values).hit
        return
    if not family.startswith("amd-"):
        # The other drivers of Mesa compile it and give no object code for it.
        assert compile_ok(worker, linked).values == ()
        assert not recreate(worker, linked, ()).hit
        return
    assert_hits(worker, linked)
    whole = graphics_pipeline(render_pass=None, next=(rendering,))
    assert len(compile_ok(worker, linked).values) == len(compile_ok(worker, whole).values)


def test_inspection_gives_statistics_and_disassembly(worker: WorkerProcess, family: str) -> None:
    answer = worker.ask(Inspect(4, graphics_pipeline()))
    assert isinstance(answer, Inspected), answer
    assert len(answer.executables) >= 2
    for executable in answer.executables:
        assert executable.name
        assert executable.stages in (1, 16)
        assert executable.statistics
        assert len({s.name for s in executable.statistics}) == len(executable.statistics)
        assert all(r.data and r.is_text for r in executable.representations)
    assert len({e.name for e in answer.executables}) == len(answer.executables)
    # Honeykrisp has none.
    assert all(e.representations for e in answer.executables) == (family != "apple-g13g")
    plain = worker.ask(Inspect(5, compute_pipeline(), representations=False))
    assert isinstance(plain, Inspected), plain
    assert [(e.stages, e.representations) for e in plain.executables] == [(32, ())]


def test_robustness_follows_the_application_alone(
    opened: tuple[WorkerProcess, Opened], worker: WorkerProcess, family: str
) -> None:
    stage = PipelineShaderStageCreateInfo(stage=0x20, module=NEIGHBOURS)
    pipeline = ComputePipelineCreateInfo(stage=stage, layout=BUFFER_LAYOUT)
    plain = compile_ok(worker, pipeline)
    target = next(t for t in targets_of(family) if worker_arguments(t.icd) == opened[0].arguments)
    with start(target) as robust:
        answer = robust.ask(Open(("VkPhysicalDeviceRobustness2FeaturesEXT.robustBufferAccess2",)))
        assert isinstance(answer, Opened), answer
        define_all(robust)
        assert compile_ok(robust, pipeline).values != plain.values
    with start(target) as other:
        answer = other.ask(Open(("VkPhysicalDeviceFeatures.robustBufferAccess", "VkPhysicalDeviceFeatures.geometryShader")))
        assert isinstance(answer, Opened), answer


def test_errors_leave_the_worker_usable(worker: WorkerProcess) -> None:
    cases: list[tuple[PipelineCreateInfo, str, str]] = [
        (graphics_pipeline(layout=None, render_pass=RenderPassHandle(999)), "DXGI_ERROR_NOT_FOUND", "is not defined"),
        (graphics_pipeline(subpass=1 << 32), "E_INVALIDARG", "does not fit"),
        (graphics_pipeline(subpass=-1), "E_INVALIDARG", "does not fit"),
        (
            compute_pipeline(next=(UnknownStructure(s_type=77, text="{}"),)),
            "VK_ERROR_EXTENSION_NOT_PRESENT",
            "structure with sType 77 is not known here",
        ),
    ]
    for number, (pipeline, code, message) in enumerate(cases):
        answer = worker.ask(Compile(number, pipeline))
        assert isinstance(answer, Failed), answer
        assert (answer.request, answer.code) == (number, code)
        assert message in answer.message
    assert compile_ok(worker, compute_pipeline()).values


def test_a_handle_with_two_meanings_is_an_error(worker: WorkerProcess) -> None:
    worker.send(Define("ShaderModuleHandle", MULTIPLY.value, ShaderModuleCreateInfo(code=b"\0" * 20)))
    answer = worker.ask(Compile(1, compute_pipeline()))
    assert isinstance(answer, Failed)
    assert "defined twice" in answer.message
    worker.send(Forget())
    define_all(worker)
    assert compile_ok(worker, compute_pipeline()).values


def test_a_pipeline_that_refers_to_itself_is_an_error(worker: WorkerProcess) -> None:
    handle = PipelineHandle(100)
    derived = graphics_pipeline(flags=vk.VK_PIPELINE_CREATE_DERIVATIVE_BIT, base_pipeline_handle=handle)
    worker.send(Define("PipelineHandle", 100, derived))
    answer = worker.ask(Compile(1, derived))
    assert isinstance(answer, Failed)
    assert "refers to itself" in answer.message


def test_malformed_object_code_is_refused(worker: WorkerProcess) -> None:
    for values in (((b"k" * 33, b"data"),), ((b"key", b""),)):
        answer = worker.ask(Recreate(1, compute_pipeline(), values))
        assert isinstance(answer, Failed)
        assert answer.code == "E_INVALIDARG"


def test_answers_come_in_order_and_large_ones_whole(worker: WorkerProcess) -> None:
    # Far more than a socket holds, sent before the first answer is read.
    filler = ShaderModuleCreateInfo(code=b"\3\2\x23\7" * (1 << 18))
    worker.send(Define("ShaderModuleHandle", 500, filler))
    for number in range(300):
        worker.send(Compile(number, compute_pipeline()))
    answers = []
    deadline = time.monotonic() + 60
    while len(answers) < 300 and time.monotonic() < deadline:
        worker.flush()
        answers += worker.receive()
        time.sleep(0.001)
    assert [answer.request for answer in answers if not isinstance(answer, Opened)] == list(range(300))


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_stays_flat(worker: WorkerProcess) -> None:
    def compile_many(count: int) -> None:
        for number in range(count):
            values = compile_ok(worker, compute_pipeline(number + 1)).values
            assert recreate(worker, compute_pipeline(number + 1), values).hit
            if number % 100 == 0:
                worker.send(Forget())
                define_all(worker)

    compile_many(300)
    before = resident(worker.pid)
    compile_many(2000)
    assert resident(worker.pid) - before < 2 << 20


@pytest.mark.spec("VC-14")
def test_pipeline_caches_where_there_are_no_binaries() -> None:
    worker, _ = open_worker("pipeline-cache", "qualcomm-a740", "qualcomm-", "amd-navi21")
    with worker:
        for pipeline, other in ((compute_pipeline(3), compute_pipeline(1025)), (graphics_pipeline(), compute_pipeline(7))):
            ((key, data),) = compile_ok(worker, pipeline).values
            assert key == b""
            assert len(data) > 32
            assert recreate(worker, pipeline, ((b"", data),)).hit
            assert recreate(worker, pipeline, ()).result == "VK_PIPELINE_COMPILE_REQUIRED"
            others = compile_ok(worker, other).values
            assert recreate(worker, pipeline, others).result == "VK_PIPELINE_COMPILE_REQUIRED"
            damaged = data[:16] + bytes(byte ^ 0xFF for byte in data[16:32]) + data[32:]
            assert recreate(worker, pipeline, ((b"", damaged),)).result == "VK_PIPELINE_COMPILE_REQUIRED"


def test_a_driver_that_keeps_nothing_says_so() -> None:
    worker, answer = open_worker("none", "software-lavapipe")
    with worker:
        assert answer.global_key == b""
        assert compile_ok(worker, compute_pipeline()).values == ()
        assert not recreate(worker, compute_pipeline(), ()).hit


def test_a_device_is_not_needed_for_capabilities(opened: tuple[WorkerProcess, Opened], family: str) -> None:
    target = next(t for t in targets_of(family) if worker_arguments(t.icd) == opened[0].arguments)
    with start(target) as worker:
        answer = worker.ask(Open(create_device=False))
        assert isinstance(answer, Opened), answer
        assert answer.global_key == b""
        refused = worker.ask(Compile(1, compute_pipeline()))
        assert isinstance(refused, Failed)
        assert refused.message == "no device is open"
        assert isinstance(worker.ask(Open()), Opened)
        again = worker.ask(Open())
        assert isinstance(again, Failed)
        none = worker.ask(Open(device_index=5))
        assert isinstance(none, Failed)
        assert worker.close() == "exit status 0"
        assert worker.peak_memory > 1 << 20
        assert 0 < worker.cpu_seconds < 30


def test_a_worker_without_memory_fails_alone() -> None:
    targets = targets_of(*BINARY_FAMILIES)
    if not targets:
        pytest.skip("no driver package (kiln drivers add)")
    with start(targets[0], memory=96 << 20) as worker:
        # More than the limit, in one object.
        code = b"\3\2\x23\7" * (40 << 20 >> 2)
        assert isinstance(worker.ask(Open()), Opened)
        for number in range(4):
            worker.send(Define("ShaderModuleHandle", 600 + number, ShaderModuleCreateInfo(code=code)))
        try:
            answer = worker.ask(Compile(1, compute_pipeline()))
        except DriverError:
            assert worker.how_it_ended != "exit status 0"
        else:
            assert isinstance(answer, Failed)


def test_a_killed_parent_leaves_no_worker() -> None:
    targets = targets_of(*BINARY_FAMILIES)
    if not targets:
        pytest.skip("no driver package (kiln drivers add)")
    target = targets[0]
    program = (
        "import sys, time\n"
        "from shaderkiln.drivers.client import WorkerProcess, worker_arguments\n"
        "from shaderkiln.drivers.protocol import Open\n"
        "import os\n"
        f"w = WorkerProcess(worker_arguments({target.icd!r}), {{**os.environ, **{target.environment!r}}})\n"
        "w.ask(Open()); print(w.pid, flush=True); time.sleep(60)\n"
    )
    search_path = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=os.environ | search_path)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _alive(pid):
        time.sleep(0.01)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_a_worker_ignores_interrupts_and_can_be_killed() -> None:
    targets = targets_of(*BINARY_FAMILIES)
    if not targets:
        pytest.skip("no driver package (kiln drivers add)")
    with start(targets[0]) as worker:
        assert isinstance(worker.ask(Open()), Opened)
        os.kill(worker.pid, signal.SIGINT)
        define_all(worker)
        assert compile_ok(worker, compute_pipeline()).values
        worker.kill()
        with pytest.raises(DriverError, match="SIGKILL"):
            worker.ask(Compile(1, compute_pipeline()))
        assert worker.close() == "SIGKILL"


assert COLOR != PASS  # handles of different kinds with one number are different objects
assert ShaderModuleHandle(7) != PASS
