"""The pool of workers with workers that break the rules of the messages themselves."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import toy_compiler
from job_support import log_lines

from shaderkiln.compilers.plugin import FamilyCompiler, WorkerCommand
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.drivers.protocol import Compile, Compiled, Failed
from shaderkiln.errors import DriverError
from shaderkiln.keys import ObjectKey
from shaderkiln.vulkan_registry.handles import Handle
from shaderkiln.vulkan_registry.structures import (
    ComputePipelineCreateInfo,
    PipelineShaderStageCreateInfo,
    ShaderModuleCreateInfo,
    ShaderModuleHandle,
)
from shaderkiln.workers.hosted import HostedFamily
from shaderkiln.workers.pool import Death, Limits, Result, Task, WorkerPool


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "toy.log"
    monkeypatch.setenv("TOY_LOG", str(path))
    monkeypatch.delenv("TOY_TALE", raising=False)
    return path


def task(number: int, text: str, *, alone: bool = False, objects: Mapping[Handle, object] | None = None) -> Task:
    code = text.encode() + b" " * (-len(text) % 4)
    module = ShaderModuleHandle(number)
    pipeline = ComputePipelineCreateInfo(stage=PipelineShaderStageCreateInfo(stage=0x20, module=module))
    known = {module: ShaderModuleCreateInfo(code=code)} if objects is None else objects
    description = PipelineDescription(f"{number:016x}", "compute", pipeline, known)  # type: ignore[arg-type]
    return Task(description, ObjectKey(bytes(32)), Compile(0, pipeline), alone=alone)


def toys(**options: object) -> WorkerPool:
    family = HostedFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines")
    return WorkerPool(family, **options)  # type: ignore[arg-type]


class ScriptFamily(FamilyCompiler):
    """A family of that command, whose driver has no global key."""

    def __init__(self, command: WorkerCommand) -> None:
        self.identity = toy_compiler.identity(global_key=b"")
        self._command = command

    def worker_command(self) -> WorkerCommand:
        return self._command


def script(text: str, **options: object) -> WorkerPool:
    """A pool whose workers are a few lines of Python; ``say`` sends a frame, ``hear`` reads one."""
    head = (
        "import socket, sys, time\n"
        "s = socket.socket(fileno=int(sys.argv[1]))\n"
        "f = s.makefile('rb')\n"
        "say = lambda data: s.sendall(len(data).to_bytes(4, 'little') + data)\n"
        "hear = lambda: f.read(int.from_bytes(f.read(4), 'little'))\n"
        "from shaderkiln.drivers.frames import *\n"
        "from shaderkiln.drivers.protocol import *\n"
        "import toy_compiler\n"
        "def opened(): hear(); s.sendall(frame(Opened(toy_compiler.ToyPipelines('', ()).capabilities(), b'', 0.0)))\n"
    )
    command = WorkerCommand((sys.executable, "-c", head + text, "{fd}"), dict(os.environ))
    return WorkerPool(ScriptFamily(command), **options)  # type: ignore[arg-type]


def run(pool: WorkerPool, *tasks: Task | None) -> dict[str, Result]:
    with pool:
        return {task.description.name[-1]: result for task, result in pool.run(iter(tasks))}


def test_results_come_as_they_are_done(log: Path) -> None:
    with toys(workers=2) as pool:
        order = [t.description.name[-1] for t, _ in pool.run(iter([task(1, "slow 1.0"), task(2, "code a")]))]
    assert order == ["2", "1"]
    assert len(log_lines(log, "start")) == 2


def test_no_worker_is_started_without_work(log: Path) -> None:
    assert run(toys(workers=4)) == {}
    assert run(toys(workers=4), None, None) == {}
    assert not log.exists()


def test_a_task_alone_gets_a_process_of_its_own(log: Path) -> None:
    results = run(toys(workers=1), task(1, "code a"), task(2, "code b", alone=True), task(3, "code c"))
    assert all(isinstance(result, Compiled) for result in results.values())
    pids = {text: pid for pid, text in log_lines(log, "compile")}
    assert len(pids) == 3


def test_what_is_in_hand_has_a_name() -> None:
    seen: set[str] = set()

    def tasks() -> Iterator[Task | None]:
        yield task(1, "slow 0.4")
        yield task(2, "slow 0.1")

    with toys(workers=1) as pool:
        for _ in pool.run(tasks()):
            seen.update(description.name[-1] for description in pool.in_hand)
    assert seen == {"2"}


def test_a_request_that_no_message_can_hold_fails_alone() -> None:
    module = ShaderModuleHandle(9)
    bad = task(2, "", objects={module: ShaderModuleCreateInfo(flags=1 << 70, code=b"1234")})
    results = run(toys(workers=1), task(1, "code a"), bad, task(3, "code c"))
    assert isinstance(results["2"], Failed)
    assert "cannot be sent to a worker" in results["2"].message
    assert isinstance(results["1"], Compiled)
    assert isinstance(results["3"], Compiled)


def test_an_object_that_a_worker_cannot_take_fails_its_pipeline_alone() -> None:
    results = run(toys(workers=1), task(1, "code a"), task(2, "", objects={}), task(3, "code c"))
    assert isinstance(results["2"], Failed)
    assert isinstance(results["3"], Compiled)


OPENED = "frame(Opened(toy_compiler.ToyPipelines('', ()).capabilities(), b'', 0.0))"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"opened(); s.sendall({OPENED}); time.sleep(9)", "twice|before"),
        (f"s.sendall({OPENED} + frame(Failed(1, 'E', 'x'))); time.sleep(9)", "before anything was asked"),
    ],
)
def test_what_comes_before_it_was_asked_for_is_refused(text: str, message: str) -> None:
    with pytest.raises(DriverError, match=message):
        run(script(text, workers=1), task(1, "code a"))


def test_large_requests_do_not_block_the_pool() -> None:
    """Neither side waits for the other to read: ten megabytes of shaders to one worker, sent ahead."""
    texts = [f"code {number} " + "x" * 1_000_000 for number in range(10)]
    results = run(toys(workers=1, limits=Limits(seconds=30)), *(task(number, text) for number, text in enumerate(texts, 1)))
    assert len(results) == 10
    assert all(isinstance(result, Compiled) for result in results.values())


def test_a_worker_forgets_what_would_take_too_much_memory(monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    monkeypatch.setattr("shaderkiln.workers.definitions.DEFINED_BYTES", 3000)
    results = run(toys(workers=1), *(task(number, f"code {number} " + "x" * 1000) for number in range(1, 10)))
    assert all(isinstance(result, Compiled) for result in results.values())
    assert len(log_lines(log, "start")) == 1


def test_deaths_tell_the_signal_and_the_last_words() -> None:
    result = run(toys(workers=1), task(1, "crash SIGILL"))["1"]
    assert isinstance(result, Death)
    assert (result.ending, result.signal, result.output) == ("crashed", "SIGILL", "toy: told to end with SIGILL")


def test_closing_a_busy_pool_ends_its_workers(log: Path) -> None:
    with toys(workers=1) as pool:
        for _ in pool.run(iter([task(1, "code a"), task(2, "loop")])):
            break
    ((pid, _),) = log_lines(log, "start")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_time_in_which_everything_stood_still_counts_against_no_pipeline(log: Path) -> None:
    """As when a container is frozen, or a terminal stops the program: pool and worker stop, and go on together."""
    pool = toys(workers=1, limits=Limits(seconds=3.0))

    def tasks() -> Iterator[Task | None]:
        yield task(1, "slow 2.0")
        while not log_lines(log, "compile"):
            yield None
        worker = int(log_lines(log, "compile")[0][0])
        os.kill(worker, signal.SIGSTOP)
        time.sleep(4.0)
        os.kill(worker, signal.SIGCONT)

    assert isinstance(dict(_named(pool, tasks()))["1"], Compiled)


def test_a_worker_that_was_killed_from_outside_is_no_proof(log: Path) -> None:
    def tasks() -> Iterator[Task | None]:
        yield task(1, "slow 1.0")
        while not log_lines(log, "compile"):
            yield None
        os.kill(int(log_lines(log, "compile")[0][0]), signal.SIGKILL)

    assert isinstance(dict(_named(toys(workers=1), tasks()))["1"], Compiled)
    assert len(log_lines(log, "compile")) == 2


def test_who_is_killed_twice_is_blamed(log: Path) -> None:
    results = run(toys(workers=1), task(1, "crash SIGKILL"))
    assert isinstance(results["1"], Death)
    assert results["1"].signal == "SIGKILL"
    assert len(log_lines(log, "compile")) == 2


def _named(pool: WorkerPool, tasks: Iterator[Task | None]) -> Iterator[tuple[str, Result]]:
    with pool:
        for task, result in pool.run(tasks):
            yield task.description.name[-1], result
