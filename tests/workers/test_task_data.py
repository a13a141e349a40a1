"""Tasks are data: what crosses to a worker is all there is of one, so another machine can run it."""

from __future__ import annotations

from pathlib import Path

import toy_compiler
from job_support import write_capture

from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.drivers.frames import frame
from shaderkiln.drivers.protocol import Compile, Compiled, Define, decode_request
from shaderkiln.keys import ObjectKey
from shaderkiln.sources.capture import Capture
from shaderkiln.vulkan_registry import structures
from shaderkiln.workers.definitions import Definitions
from shaderkiln.workers.hosted import HostedFamily
from shaderkiln.workers.pool import Task, WorkerPool


def sent(task: Task) -> list[bytes]:
    """The frames of a task for a worker that knows nothing, from objects that are decoded only when they are needed."""
    messages = (*Definitions(one_source=True).messages(task.description), task.request)
    return [frame(message)[4:] for message in messages]


def received(payloads: list[bytes]) -> Task:
    *definitions, request = map(decode_request, payloads)
    assert isinstance(request, Compile)
    objects = {getattr(structures, d.kind)(d.handle): d.description for d in definitions if isinstance(d, Define)}
    assert len(objects) == len(definitions)
    return Task(PipelineDescription("", "compute", request.pipeline, objects), ObjectKey(bytes(32)), request)


def test_a_task_of_a_capture_runs_from_its_frames_alone(tmp_path: Path) -> None:
    with Capture.open(write_capture(tmp_path / "game.foz", ["code a"])) as capture:
        kind, hash = next(capture.pipelines())
        description = capture.load(kind, hash)
        payloads = sent(Task(description, capture.object_key(kind, hash), Compile(7, description.create_info, keep=True)))
        task = received(payloads)
        assert task.request == Compile(7, description.create_info)
        assert task.description.create_info == description.create_info
        assert dict(task.description.objects) == dict(description.objects)
        assert len(task.description.objects) == 2
    with WorkerPool(HostedFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines"), workers=1) as pool:
        ((_, result),) = pool.run(iter([task]))
    assert isinstance(result, Compiled)
    assert result.values == toy_compiler.object_code("code a")
