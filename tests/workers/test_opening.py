"""A worker whose driver is not the one of the identity: refused by everybody who starts workers, before anything reaches it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import toy_compiler
from device_support import Bench, toy_family
from job_support import Run, log_lines, write_capture

from shaderkiln.databases.psdb import Psdb
from shaderkiln.drivers.protocol import Compile, Compiled
from shaderkiln.errors import DriverError
from shaderkiln.jobs.inspection import inspect
from shaderkiln.jobs.verify import VerifyJob
from shaderkiln.sources.capture import Capture
from shaderkiln.vulkan.device import VulkanDevice
from shaderkiln.workers.definitions import Definitions
from shaderkiln.workers.opening import FamilyWorker, WrongDriverError


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "toy.log"
    monkeypatch.setenv("TOY_LOG", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TOY_TALE", raising=False)
    monkeypatch.delenv("TOY_OTHER", raising=False)
    return path


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return write_capture(tmp_path / "capture.foz", ["code a", "code b"])


@pytest.fixture
def psdb(tmp_path: Path, capture: Path, log: Path) -> Path:
    """What the right driver made of the capture, in front of an empty log."""
    path = Run(capture, tmp_path / "right.psdb").psdb
    log.unlink()
    return path


def compile_it(folder: Path) -> None:
    Run(folder / "capture.foz", folder / "out.psdb", workers=2)


def verify_it(folder: Path) -> None:
    with Psdb.open(folder / "right.psdb") as database, Capture.open(folder / "capture.foz") as source:
        VerifyJob(source, toy_family(), database, workers=2).run()


def inspect_it(folder: Path) -> None:
    with Capture.open(folder / "capture.foz") as source:
        inspect(toy_family(), source.load(*next(source.pipelines())))


def create_in_direct3d12(folder: Path) -> None:
    bench = Bench(folder, toy_family(), toy=True)
    try:
        bench.device().create_pipeline_state(bench.stream(1))
    finally:
        bench.close()


def open_in_vulkan(folder: Path) -> None:
    VulkanDevice(toy_family(), threads=2)


USERS = [compile_it, verify_it, inspect_it, create_in_direct3d12, open_in_vulkan]
FIELDS = [*toy_compiler.OTHER, "global_key"]


def cases() -> Iterator[tuple[Callable[[Path], None], str]]:
    for user in USERS:
        yield from ((user, field) for field in ("cache_uuid", "device_id", "global_key"))
    yield from ((verify_it, field) for field in FIELDS if field not in ("cache_uuid", "device_id", "global_key"))


@pytest.mark.parametrize(("user", "field"), list(cases()))
def test_another_driver_is_refused_before_anything_reaches_it(
    tmp_path: Path, psdb: Path, log: Path, monkeypatch: pytest.MonkeyPatch, user: Callable[[Path], None], field: str
) -> None:
    monkeypatch.setenv("TOY_OTHER", field)
    with pytest.raises(WrongDriverError, match="toy-one is not the one that was asked before") as caught:
        user(tmp_path)
    assert f"({field}: expected " in str(caught.value)
    assert "run `kiln families --refresh` and try again" in str(caught.value)
    asked = [verb for verb in ("compile", "recreate", "inspect") if log_lines(log, verb)]
    assert len(log_lines(log, "start")) in (1, 2)
    assert asked == []
    assert not (tmp_path / "out.psdb").exists()


@pytest.mark.parametrize("user", USERS)
def test_the_right_driver_is_taken(tmp_path: Path, psdb: Path, user: Callable[[Path], None]) -> None:
    user(tmp_path)


def test_every_difference_is_named_with_both_values() -> None:
    changes = {"device_id": 5, "cache_uuid": bytes(16), "global_key": b"\x0a\x0b"}
    with FamilyWorker(toy_family(**changes)) as worker, pytest.raises(WrongDriverError) as caught:
        worker.wait_until_open()
    text = str(caught.value)
    assert "device_id: expected 5, found 1;" in text
    assert f"cache_uuid: expected {'00' * 16}, found {b'toy-cache-uuid-1'.hex()};" in text
    assert f"global_key: expected 0a0b, found {b'toy global key'.hex()})" in text
    assert "vendor_id" not in text


def test_what_is_sent_early_is_held_until_the_device_is_open(capture: Path, log: Path) -> None:
    with Capture.open(capture) as source, FamilyWorker(toy_family()) as worker:
        description = source.load(*next(source.pipelines()))
        for message in Definitions(one_source=True).messages(description):
            worker.send(message)
        assert worker.opened is None
        answer = worker.ask(Compile(1, description.create_info))
        assert isinstance(answer, Compiled)
        assert worker.opened is not None


def test_a_worker_that_cannot_be_opened_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_OTHER", "a field that there is not")
    with FamilyWorker(toy_family()) as worker, pytest.raises(DriverError, match="the driver cannot open a device"):
        worker.wait_until_open()
