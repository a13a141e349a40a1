"""Verification with the toy compiler: nothing reaches it that was not compared first."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy_compiler
from job_support import Run, log_lines, name, write_capture

from shaderkiln.databases.psdb import Psdb
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.descriptions.unmet import Unmet
from shaderkiln.errors import CacheCorruptError
from shaderkiln.jobs.verdicts import Verdict
from shaderkiln.jobs.verify import VerifyJob, VerifyReport
from shaderkiln.sources.capture import Capture
from shaderkiln.workers.hosted import HostedFamily
from shaderkiln.workers.pool import Limits

TEXTS = ["code a", "code b", "crash SIGSEGV", "nothing"]


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "toy.log"
    monkeypatch.setenv("TOY_LOG", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TOY_TALE", raising=False)
    return path


def family(**changes: object) -> HostedFamily:
    return HostedFamily(toy_compiler.identity(**changes), "toy_compiler:ToyPipelines")  # type: ignore[arg-type]


def verify(psdb: Path, capture: Path, compiler: HostedFamily | None = None) -> tuple[VerifyReport, dict[str, Verdict]]:
    verdicts: list[Verdict] = []
    with Psdb.open(psdb) as database, Capture.open(capture) as source:
        job = VerifyJob(
            source, compiler or family(), database, workers=1, limits=Limits(seconds=20), on_verdict=verdicts.append
        )
        return job.run(), {verdict.pipeline: verdict for verdict in verdicts}


def outcomes(verdicts: dict[str, Verdict]) -> dict[str, str]:
    return {pipeline: str(verdict.outcome) for pipeline, verdict in verdicts.items()}


def test_every_pipeline_is_hit_and_nothing_is_compiled(tmp_path: Path, log: Path) -> None:
    capture = write_capture(tmp_path / "capture.foz", ["code a", "code b", "code b"])
    run = Run(capture, tmp_path / "out.psdb")
    compiled = log_lines(log, "compile")
    report, verdicts = verify(run.psdb, capture)
    assert outcomes(verdicts) == dict.fromkeys(map(name, range(3)), "hit")
    assert report.good
    assert log_lines(log, "compile") == compiled
    assert sorted(text for _, text in log_lines(log, "recreate")) == ["code a", "code b", "code b"]


@pytest.mark.parametrize("form", ["pipeline-binary", "pipeline-cache", "toy code"])
def test_values_that_the_job_named_reach_the_compiler_without_a_key(tmp_path: Path, form: str) -> None:
    compiler = HostedFamily(toy_compiler.identity(object_code_form=form), "toy_compiler:NamelessPipelines")
    capture = write_capture(tmp_path / "capture.foz", ["code a", "code b"])
    run = Run(capture, tmp_path / "out.psdb", family=compiler)
    assert set(run.outcomes.values()) == {"compiled"}
    report, verdicts = verify(run.psdb, capture, compiler)
    assert set(outcomes(verdicts).values()) == {"hit"}
    assert report.good


def test_what_the_compiler_does_not_take_is_a_miss(tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "capture.foz", ["code a", "forgetful"])
    run = Run(capture, tmp_path / "out.psdb")
    report, verdicts = verify(run.psdb, capture)
    assert outcomes(verdicts) == {name(0): "hit", name(1): "miss"}
    assert verdicts[name(1)].code == "VK_PIPELINE_COMPILE_REQUIRED"
    assert not report.good


@pytest.mark.spec("EP-53")
def test_what_the_database_does_not_have_is_a_miss_and_no_error(tmp_path: Path, log: Path) -> None:
    part = write_capture(tmp_path / "part.foz", ["code a"])
    whole = write_capture(tmp_path / "whole.foz", ["code a", "code b"])
    run = Run(part, tmp_path / "out.psdb")
    report, verdicts = verify(run.psdb, whole)
    assert outcomes(verdicts) == {name(0): "hit", name(1): "miss"}
    assert verdicts[name(1)].code == "DXGI_ERROR_NOT_FOUND"
    assert not report.good
    with Psdb.open(run.psdb) as database, Capture.open(whole) as source:
        found = family().find(database, source.object_key("compute", 0x1000))
        assert found is not None
        assert found.name == name(0)
        assert family().find(database, source.object_key("compute", 0x1001)) is None


def test_poison_is_remembered_and_failures_stay_misses(tmp_path: Path, log: Path) -> None:
    capture = write_capture(tmp_path / "capture.foz", TEXTS)
    run = Run(capture, tmp_path / "out.psdb")
    report, verdicts = verify(run.psdb, capture)
    assert outcomes(verdicts) == {name(0): "hit", name(1): "hit", name(2): "crashed", name(3): "miss"}
    assert verdicts[name(2)].remembered
    assert not report.good
    assert {text for _, text in log_lines(log, "recreate")} == {"code a", "code b"}


def test_a_damaged_value_is_named_and_never_handed_over(tmp_path: Path, log: Path) -> None:
    capture = write_capture(tmp_path / "capture.foz", ["code a", "other b"])
    run = Run(capture, tmp_path / "out.psdb")
    data = bytearray(run.psdb.read_bytes())
    data[data.index(b"code of code a") + 3] ^= 1
    run.psdb.write_bytes(data)
    key = run.verdict(0).values[0]
    report, verdicts = verify(run.psdb, capture)
    assert outcomes(verdicts) == {name(0): "damaged", name(1): "hit"}
    assert verdicts[name(0)].values == (key,)
    assert key in verdicts[name(0)].message
    assert [damage.key.hex() for damage in report.damage if damage.key] == [key]
    assert not report.good
    assert [text for _, text in log_lines(log, "recreate")] == ["other b"]


def test_damage_is_told_even_if_no_pipeline_needs_the_value(tmp_path: Path) -> None:
    run = Run(write_capture(tmp_path / "whole.foz", ["code a", "other b"]), tmp_path / "out.psdb")
    part = write_capture(tmp_path / "part.foz", ["code a"])
    data = bytearray(run.psdb.read_bytes())
    data[data.index(b"code of other b")] ^= 1
    run.psdb.write_bytes(data)
    report, verdicts = verify(run.psdb, part)
    assert outcomes(verdicts) == {name(0): "hit"}
    assert len(report.damage) == 1
    assert not report.good


@pytest.mark.parametrize(
    "changes",
    [
        {"family": "toy-two"}, {"vendor_id": 1}, {"device_id": 2}, {"driver_id": 3}, {"driver_name": "t"}, {"driver_version": 1},
        {"driver_build": "toy 2.2"}, {"abi_version": 1 << 48}, {"compiler_version": "x"}, {"application_profile_version": 1},
        {"cache_uuid": bytes(16)}, {"global_key": b"x"}, {"object_code_form": "x"}, {"features": ("robust",)}, {"pointer_bits": 32},
    ],
    ids=lambda changes: next(iter(changes)),
)  # fmt: skip
def test_another_identity_is_refused_before_a_worker_starts(tmp_path: Path, log: Path, changes: dict[str, object]) -> None:
    capture = write_capture(tmp_path / "capture.foz", ["code a"])
    run = Run(capture, tmp_path / "out.psdb")
    started = log_lines(log, "start")
    with pytest.raises(CacheCorruptError, match=f"does not belong to .*{next(iter(changes))}: stored "):
        verify(run.psdb, capture, family(**changes))
    assert log_lines(log, "start") == started


class DoubtfulFamily(HostedFamily):
    """Does not advertise what any pipeline does, though nobody declares it."""

    def check(self, description: PipelineDescription) -> tuple[Unmet, ...]:
        text = "a float atomic add is not advertised"
        return (Unmet("instruction", "atomic add", "true", "false", "stage", text),)


@pytest.mark.parametrize(("strict", "outcome"), [(True, "unsupported"), (False, "miss")])
def test_what_a_strict_compile_kept_out_is_no_miss_to_a_strict_verification(tmp_path: Path, strict: bool, outcome: str) -> None:
    capture = write_capture(tmp_path / "capture.foz", ["code a"])
    doubtful = DoubtfulFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines")
    run = Run(capture, tmp_path / "out.psdb", family=doubtful, strict=True)
    assert set(run.outcomes.values()) == {"unsupported"}
    verdicts: list[Verdict] = []
    with Psdb.open(run.psdb) as database, Capture.open(capture) as source:
        report = VerifyJob(source, doubtful, database, strict=strict, on_verdict=verdicts.append).run()
    assert [str(verdict.outcome) for verdict in verdicts] == [outcome]
    assert report.good == strict


def test_a_crash_while_loading_object_code_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = write_capture(tmp_path / "capture.foz", ["code a", "brittle b"])
    run = Run(capture, tmp_path / "out.psdb")
    report, verdicts = verify(run.psdb, capture)
    assert outcomes(verdicts) == {name(0): "hit", name(1): "crashed"}
    assert verdicts[name(1)].signal == "SIGABRT"
    assert "while it loaded the object code" in verdicts[name(1)].message
    assert not report.good
