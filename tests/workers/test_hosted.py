"""The worker process of compilers written in Python."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import toy_compiler

from shaderkiln.drivers.client import WorkerProcess
from shaderkiln.drivers.protocol import (
    Compile,
    Compiled,
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
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.vulkan_registry.structures import (
    ComputePipelineCreateInfo,
    GraphicsPipelineCreateInfo,
    PipelineShaderStageCreateInfo,
    ShaderModuleCreateInfo,
    ShaderModuleHandle,
)
from shaderkiln.workers.hosted import HostedFamily, HostSession, load_pipeline_compiler, main

MODULE = ShaderModuleHandle(5)
STAGE = PipelineShaderStageCreateInfo(stage=0x20, module=MODULE)
PIPELINE = ComputePipelineCreateInfo(stage=STAGE)
DEFINE = Define("ShaderModuleHandle", 5, ShaderModuleCreateInfo(code=b"code abc"))


@pytest.fixture
def session() -> Iterator[HostSession]:
    session = HostSession(toy_compiler.ToyPipelines, "toy-one")
    yield session
    session.close()


def test_a_pipeline_is_compiled_recreated_and_inspected(session: HostSession) -> None:
    opened = session.handle(Open(("f",)))
    assert isinstance(opened, Opened)
    assert opened.global_key == b"toy global key"
    assert opened.capabilities.device_name == "Toy Device"
    assert session.handle(DEFINE) is None
    compiled = session.handle(Compile(1, PIPELINE))
    assert isinstance(compiled, Compiled)
    assert (compiled.request, compiled.values) == (1, toy_compiler.object_code("code abc"))
    assert session.handle(Compile(2, PIPELINE, keep=False)).values == ()  # type: ignore[union-attr]
    hit = session.handle(Recreate(3, PIPELINE, compiled.values))
    assert isinstance(hit, Recreated)
    assert (hit.request, hit.hit, hit.result) == (3, True, "VK_SUCCESS")
    miss = session.handle(Recreate(4, PIPELINE, ()))
    assert isinstance(miss, Recreated)
    assert (miss.hit, miss.result) == (False, "VK_PIPELINE_COMPILE_REQUIRED")
    inspected = session.handle(Inspect(5, PIPELINE))
    assert isinstance(inspected, Inspected)
    assert inspected.executables[0].statistics[0].value == 8


def test_graphics_pipelines_come_as_such(session: HostSession) -> None:
    session.handle(Open())
    session.handle(DEFINE)
    assert isinstance(session.handle(Compile(1, GraphicsPipelineCreateInfo(stages=(STAGE,)))), Compiled)


def test_requests_in_the_wrong_order_fail_and_the_session_goes_on(session: HostSession) -> None:
    early = session.handle(Compile(1, PIPELINE))
    assert isinstance(early, Failed)
    assert (early.request, early.code) == (1, "E_INVALIDARG")
    session.handle(Open())
    unknown = session.handle(Compile(2, PIPELINE))
    assert isinstance(unknown, Failed)
    session.handle(DEFINE)
    assert isinstance(session.handle(Compile(3, PIPELINE)), Compiled)
    session.handle(Forget())
    assert isinstance(session.handle(Compile(4, PIPELINE)), Failed)


@pytest.mark.parametrize("name", ["toy_compiler:ToyCompiler", "toy_compiler:Missing", "toy_compiler", "shaderkiln.errors:Any"])
def test_other_names_are_no_compilers(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is not a subclass of"):
        load_pipeline_compiler(name)


def test_a_compiler_is_found_by_its_name() -> None:
    assert load_pipeline_compiler("toy_compiler:ToyPipelines") is toy_compiler.ToyPipelines


def test_the_command_needs_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "FD MODULE:CLASS FAMILY" in capsys.readouterr().err


def test_a_worker_ends_with_its_connection_and_ignores_ctrl_c() -> None:
    import os
    import signal

    command = HostedFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines").worker_command()
    with WorkerProcess(command.arguments, command.environment) as worker:
        assert isinstance(worker.ask(Open()), Opened)
        os.kill(worker.pid, signal.SIGINT)
        worker.send(DEFINE)
        assert isinstance(worker.ask(Compile(1, PIPELINE)), Compiled)
    assert worker.how_it_ended == "exit status 0"


def test_the_working_directory_is_not_searched_for_modules(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "msgspec.py").write_text("raise SystemExit('the wrong msgspec')")
    command = HostedFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines").worker_command()
    arguments = [argument.replace("{fd}", "nothing") for argument in command.arguments]
    path = ":".join(entry for entry in sys.path if entry)
    done = subprocess.run(
        arguments, cwd=folder, env={**command.environment, "PYTHONPATH": path}, capture_output=True, text=True, timeout=30
    )
    assert "the wrong msgspec" not in done.stderr
    assert "invalid literal for int" in done.stderr
