"""The compile job with a compiler that does what its shaders tell it to, in real worker processes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import toy_compiler
from job_support import Run, groups, log_lines, name, put_frame, put_pipeline, write_capture

from shaderkiln.databases.fossilize import ArchiveWriter
from shaderkiln.databases.psdb import Psdb
from shaderkiln.descriptions.pipeline import PipelineDescription, PipelineKind
from shaderkiln.descriptions.unmet import Unmet
from shaderkiln.errors import CacheCorruptError, DamagedInputError, DriverError
from shaderkiln.formats.fossilize import Tag
from shaderkiln.jobs.compile import CompileJob, JobOptions
from shaderkiln.jobs.progress import Progress
from shaderkiln.jobs.statistics import read_statistics
from shaderkiln.keys import Group, ObjectKey, ValueKey, ValueType
from shaderkiln.sources.capture import Capture
from shaderkiln.workers.hosted import HostedFamily
from shaderkiln.workers.pool import Limits

GOOD = ["code a long text", "code b", "code c"]


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "toy.log"
    monkeypatch.setenv("TOY_LOG", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TOY_TALE", raising=False)
    return path


@pytest.fixture
def psdb(tmp_path: Path) -> Path:
    return tmp_path / "out.psdb"


def capture(tmp_path: Path, *texts: str) -> Path:
    return write_capture(tmp_path / "capture.foz", texts)


@pytest.mark.spec("EP-53")
def test_what_is_compiled_once_is_reused(tmp_path: Path, psdb: Path, log: Path) -> None:
    source = capture(tmp_path, *GOOD)
    first = Run(source, psdb, workers=1)
    assert first.outcomes == dict.fromkeys(map(name, range(3)), "compiled")
    assert first.report.tally.good
    assert not first.report.interrupted
    content = psdb.read_bytes()
    compiled = log_lines(log, "compile")
    assert [text for _, text in compiled] == ["code a long text", "code c", "code b"]
    second = Run(source, psdb, workers=1)
    assert second.outcomes == dict.fromkeys(map(name, range(3)), "reused")
    assert log_lines(log, "compile") == compiled
    assert psdb.read_bytes() == content


@pytest.mark.spec("EP-53", "EP-14")
def test_an_object_becomes_typed_values_under_value_keys_and_a_group(tmp_path: Path, psdb: Path) -> None:
    run = Run(capture(tmp_path, "code a", "code b"), psdb)
    with Psdb.open(psdb) as database:
        found = {group.name: group for group in database.groups()}
        assert {group.kind for group in found.values()} == {"compute"}
        assert {group.object_key.hex() for group in found.values()} == {verdict.object_key for verdict in run.verdicts}
        one, other = found[name(0)].value_keys, found[name(1)].value_keys
        assert [database.find(key, ValueType.OBJECT_CODE) for key in one] == [b"code of code a", b"part of code"]
        assert [database.find(key, ValueType.OBJECT_CODE) for key in other] == [b"code of code b", b"part of code"]
        assert one[1] == other[1]
        assert {database.types(key) for key in one} == {(ValueType.OBJECT_CODE,)}
        assert list(map(bytes.hex, one)) == list(run.verdict(0).values)
    assert run.verdict(0).bytes == len(b"code of code a") + len(b"part of code")


@pytest.mark.parametrize("signal", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_a_crash_is_blamed_on_its_pipeline_and_all_others_compile(tmp_path: Path, psdb: Path, log: Path, signal: str) -> None:
    run = Run(capture(tmp_path, *GOOD, f"crash {signal}"), psdb, workers=2)
    assert run.outcomes == dict.fromkeys(map(name, range(3)), "compiled") | {name(3): "crashed"}
    verdict = run.verdict(3)
    assert verdict.signal == signal
    assert verdict.output == f"toy: told to end with {signal}"
    assert verdict.message == f"ended the driver's process with {signal} in toy 2.1"
    assert not run.report.tally.good
    assert groups(psdb) == set(map(name, range(3)))
    with Psdb.open(psdb) as database:
        (poison,) = database.poison()
        assert (poison.name, poison.kind, poison.outcome, poison.driver_build) == (name(3), "compute", "crashed", "toy 2.1")
        assert poison.signal == {"SIGSEGV": 11, "SIGABRT": 6, "SIGKILL": 9}[signal]


def test_a_worker_that_ends_by_itself_is_a_crash_with_its_exit_status(tmp_path: Path, psdb: Path) -> None:
    verdict = Run(capture(tmp_path, "exit 3"), psdb).verdict(0)
    assert (verdict.outcome, verdict.signal) == ("crashed", "exit status 3")
    assert "with exit status 3" in verdict.message
    again = Run(capture(tmp_path, "exit 3"), psdb).verdict(0)
    assert (again.outcome, again.remembered, again.signal) == ("crashed", True, "")


def test_the_first_pipeline_of_a_worker_is_blamed_without_a_second_try(tmp_path: Path, psdb: Path, log: Path) -> None:
    Run(capture(tmp_path, "crash SIGSEGV longest", "code a"), psdb, workers=1)
    assert [text for _, text in log_lines(log, "compile")] == ["crash SIGSEGV longest", "code a"]


def test_a_later_pipeline_of_a_worker_is_blamed_after_a_second_try_alone(tmp_path: Path, psdb: Path, log: Path) -> None:
    run = Run(capture(tmp_path, "code the longest of all", "crash SIGSEGV", "code a"), psdb, workers=1)
    assert run.verdict(1).outcome == "crashed"
    tries = [pid for pid, text in log_lines(log, "compile") if text == "crash SIGSEGV"]
    assert len(tries) == len(set(tries)) == 2
    second = [text for pid, text in log_lines(log, "compile") if pid == tries[1]]
    assert second == ["crash SIGSEGV"]


def test_nothing_is_blamed_for_what_an_earlier_pipeline_did(tmp_path: Path, psdb: Path, log: Path) -> None:
    run = Run(capture(tmp_path, "code the longest of all", "first or none", "code a"), psdb, workers=1)
    assert run.outcomes == dict.fromkeys(map(name, range(3)), "compiled")
    assert len([text for _, text in log_lines(log, "compile") if text == "first or none"]) == 2
    with Psdb.open(psdb) as database:
        assert not list(database.poison())


def test_the_time_limit_ends_one_pipeline_alone(tmp_path: Path, psdb: Path, log: Path) -> None:
    started = time.monotonic()
    run = Run(capture(tmp_path, *GOOD, "loop"), psdb, workers=2, limits=Limits(seconds=0.6))
    assert time.monotonic() - started < 20
    assert run.outcomes == dict.fromkeys(map(name, range(3)), "compiled") | {name(3): "timed-out"}
    assert 0.6 <= run.verdict(3).seconds < 5
    assert len([text for _, text in log_lines(log, "compile") if text == "loop"]) == 1
    again = Run(capture(tmp_path, *GOOD, "loop"), psdb)
    assert (again.verdict(3).outcome, again.verdict(3).remembered) == ("timed-out", True)


def test_the_time_limit_counts_from_a_pipelines_own_start(tmp_path: Path, psdb: Path) -> None:
    run = Run(capture(tmp_path, *(f"slow 0.35 {number}" for number in range(5))), psdb, workers=1, limits=Limits(seconds=1.2))
    assert set(run.outcomes.values()) == {"compiled"}


def test_the_memory_limit_ends_one_pipeline_alone(tmp_path: Path, psdb: Path) -> None:
    run = Run(capture(tmp_path, *GOOD, "eat"), psdb, workers=2, limits=Limits(memory=400 << 20))
    assert run.outcomes == dict.fromkeys(map(name, range(3)), "compiled") | {name(3): "out-of-memory"}
    assert run.verdict(3).message == "took more memory than its limit in toy 2.1"
    with Psdb.open(psdb) as database:
        assert [poison.outcome for poison in database.poison()] == ["out-of-memory"]


def test_memory_that_earlier_pipelines_kept_is_not_blamed_on_the_last(tmp_path: Path, psdb: Path) -> None:
    texts = ["leak 150 longer than all", "leak 150 longer", "slow 0.7"]
    run = Run(capture(tmp_path, *texts), psdb, workers=1, limits=Limits(memory=260 << 20))
    assert set(run.outcomes.values()) == {"compiled"}


def test_an_error_of_the_compiler_is_a_failure_and_its_worker_goes_on(tmp_path: Path, psdb: Path, log: Path) -> None:
    run = Run(capture(tmp_path, *GOOD, "raise", "nothing", "refuse"), psdb, workers=1)
    assert run.outcomes == dict.fromkeys(map(name, range(3)), "compiled") | dict.fromkeys(map(name, (3, 4, 5)), "failed")
    assert (run.verdict(3).code, run.verdict(3).message) == ("E_FAIL", "ZeroDivisionError: the toy cannot divide")
    assert run.verdict(4).message == "the driver gave no object code for it"
    assert (run.verdict(5).code, run.verdict(5).message) == ("VK_ERROR_FEATURE_NOT_PRESENT", "the toy does not like it")
    assert len(log_lines(log, "start")) == 1
    assert groups(psdb) == set(map(name, range(3)))


def test_poison_is_not_tried_again_unless_asked(tmp_path: Path, psdb: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = capture(tmp_path, *GOOD, "crash SIGSEGV")
    Run(source, psdb, workers=1)
    content, tries = psdb.read_bytes(), len(log_lines(log, "compile"))
    second = Run(source, psdb, workers=1)
    assert second.verdict(3).outcome == "crashed"
    assert second.verdict(3).remembered
    assert second.verdict(3).signal == "SIGSEGV"
    assert second.verdict(3).output == "toy: told to end with SIGSEGV"
    assert not second.report.tally.good
    assert psdb.read_bytes() == content
    assert len(log_lines(log, "compile")) == tries
    third = Run(source, psdb, workers=1, retry_poisoned=True)
    assert (third.verdict(3).outcome, third.verdict(3).remembered) == ("crashed", False)
    assert len(log_lines(log, "compile")) == tries + 1
    monkeypatch.setenv("TOY_TALE", "all good")
    fourth = Run(source, psdb, workers=1, retry_poisoned=True)
    assert fourth.verdict(3).outcome == "compiled"
    with Psdb.open(psdb) as database:
        assert not list(database.poison())
    assert groups(psdb) == set(map(name, range(4)))


def test_poison_is_told_under_each_name_of_the_object(tmp_path: Path, psdb: Path, log: Path) -> None:
    texts = ["crash SIGSEGV", "crash SIGSEGV", "code a"]
    run = Run(capture(tmp_path, *texts), psdb, workers=1)
    assert run.outcomes == {name(0): "crashed", name(1): "crashed", name(2): "compiled"}
    assert len([text for _, text in log_lines(log, "compile") if text == "crash SIGSEGV"]) == 1
    again = Run(capture(tmp_path, *texts), psdb, workers=1)
    assert again.outcomes == {name(0): "crashed", name(1): "crashed", name(2): "reused"}
    before = len(log_lines(log, "compile"))
    retried = Run(capture(tmp_path, *texts), psdb, workers=1, retry_poisoned=True)
    assert retried.outcomes == {name(0): "crashed", name(1): "crashed", name(2): "reused"}
    assert len(log_lines(log, "compile")) == before + 1


def test_one_object_under_two_names_is_compiled_once(tmp_path: Path, psdb: Path, log: Path) -> None:
    run = Run(capture(tmp_path, "slow 0.2 a", "slow 0.2 a", "code b", "slow 0.2 a"), psdb, workers=2)
    assert sorted(run.outcomes.values()) == ["compiled", "compiled", "reused", "reused"]
    assert sorted(text for _, text in log_lines(log, "compile")) == ["code b", "slow 0.2 a"]
    assert len({run.verdict(number).object_key for number in (0, 1, 3)}) == 1
    assert len(groups(psdb)) == 2


def test_a_driver_that_ends_at_its_start_is_given_up_after_three_attempts(
    tmp_path: Path, psdb: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_TALE", "no start")
    with pytest.raises(DriverError, match=r"ends before its device is open \(exit status 7\): toy: there is no toy"):
        Run(capture(tmp_path, *GOOD), psdb, workers=1)
    assert len(log_lines(log, "start")) == 3
    assert not psdb.exists()


@pytest.mark.parametrize("changes", [{"global_key": b"another"}, {"cache_uuid": b"another uuid 16b"}])
def test_a_driver_that_is_not_the_one_of_the_identity_gets_no_pipeline(
    tmp_path: Path, psdb: Path, log: Path, changes: dict[str, object]
) -> None:
    family = HostedFamily(toy_compiler.identity(**changes), "toy_compiler:ToyPipelines")
    with pytest.raises(DriverError, match="not the one that was asked before"):
        Run(capture(tmp_path, *GOOD), psdb, family=family)
    assert not psdb.exists()


def test_stop_finishes_what_is_in_hand_and_the_next_run_does_the_rest(tmp_path: Path, psdb: Path, log: Path) -> None:
    texts = [f"slow 0.05 {number:02}" for number in range(12)]
    source = capture(tmp_path, *texts)
    verdicts = []
    with Capture.open(source) as opened:
        family = HostedFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines")
        job = CompileJob(opened, family, psdb, JobOptions(workers=2), on_verdict=lambda v: (verdicts.append(v), job.stop()))
        report = job.run()
    assert report.interrupted
    done = {verdict.pipeline for verdict in verdicts}
    assert 1 <= len(done) <= 5
    assert len(log_lines(log, "compile")) == len(done)
    assert groups(psdb) == done
    rest = Run(source, psdb, workers=2)
    assert {pipeline for pipeline, outcome in rest.outcomes.items() if outcome == "reused"} == done
    assert groups(psdb) == set(map(name, range(12)))
    assert sorted(text for _, text in log_lines(log, "compile")) == texts
    whole = Run(source, tmp_path / "whole.psdb", workers=1)
    assert whole.report.path.read_bytes() == psdb.read_bytes()


def test_a_job_stopped_before_it_runs_compiles_nothing(tmp_path: Path, psdb: Path, log: Path) -> None:
    with Capture.open(capture(tmp_path, *GOOD)) as opened:
        job = CompileJob(opened, HostedFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines"), psdb)
        job.stop()
        assert job.run().interrupted
    assert not log.exists()


class KeysAlone(Capture):
    """A capture that tells which pipelines are loaded for more than their object key."""

    loaded: list[int]

    def object_key(self, kind: PipelineKind, hash: int) -> ObjectKey:
        with Capture.open(self.path) as capture:
            return capture.object_key(kind, hash)

    def load(self, kind: PipelineKind, hash: int) -> PipelineDescription:
        self.loaded.append(hash)
        return super().load(kind, hash)


@pytest.mark.spec("EP-53")
def test_what_is_stored_is_not_loaded_again(tmp_path: Path, psdb: Path) -> None:
    path = capture(tmp_path, "code a", "code a", "code bb", "crash SIGSEGV")
    job_loaded = []
    for options in (JobOptions(workers=1), JobOptions(workers=1), JobOptions(statistics=True), JobOptions(statistics=True)):
        with KeysAlone.open(path) as source:
            assert isinstance(source, KeysAlone)
            source.loaded = []
            CompileJob(source, HostedFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines"), psdb, options).run()
            job_loaded.append(sorted(number - 0x1000 for number in source.loaded))
    first, second, statistics, nothing = job_loaded
    assert first in ([0, 2, 3], [1, 2, 3])
    assert second == nothing == []
    assert statistics in ([0, 2], [1, 2])


def test_progress_counts_every_pipeline_once_and_tells_who_asked_no_worker(tmp_path: Path, psdb: Path) -> None:
    path = capture(tmp_path, "code a", "code a", "code bb", "crash SIGSEGV", "raise")
    for skipped in (1, 4):
        with Capture.open(path) as source:
            costs = {hash: source.cost(kind, hash) for kind, hash in source.pipelines()}
            ticks: list[Progress] = []
            family = HostedFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines")
            job = CompileJob(source, family, psdb, JobOptions(workers=1, statistics=True), on_tick=ticks.append)
            job.run()
        progress = job.progress
        assert (progress.total, progress.done, progress.skipped) == (5, 5, skipped)
        assert progress.cost_total == progress.cost_done == sum(costs.values())
        asked = (costs[0x1000], costs[0x1002], costs[0x1003], costs[0x1004]) if skipped == 1 else (costs[0x1004],)
        assert progress.cost_done - progress.cost_skipped == sum(asked)
        assert all(tick is progress for tick in ticks)
        assert len(ticks) >= 5


def test_the_number_of_workers_leaves_no_trace(tmp_path: Path) -> None:
    texts = [f"slow 0.01 {number}" for number in range(20)] + ["crash SIGABRT", "raise", "code a", "code a"]
    source = capture(tmp_path, *texts)
    one = Run(source, tmp_path / "one.psdb", workers=1)
    three = Run(source, tmp_path / "three.psdb", workers=3)
    assert (tmp_path / "one.psdb").read_bytes() == (tmp_path / "three.psdb").read_bytes()
    assert one.report.tally.counts == three.report.tally.counts


def test_damaged_entries_fail_alone(tmp_path: Path, psdb: Path) -> None:
    source = tmp_path / "capture.foz"
    with ArchiveWriter.create(source) as writer:
        put_frame(writer)
        for number, text in enumerate(GOOD):
            put_pipeline(writer, number, text)
        writer.put(Tag.COMPUTE_PIPELINE, 0x1007, b"no JSON")
        missing = b'{"version":6,"computePipelines":{"%016x":{"flags":0,"layout":"%016x","basePipelineHandle":"%016x",' % (
            0x1008,
            0xF000,
            0,
        )
        missing += b'"basePipelineIndex":0,"stage":{"flags":0,"stage":32,"module":"00000000deadbeef","name":"main"}}}}'
        writer.put(Tag.COMPUTE_PIPELINE, 0x1008, missing)
    data = bytearray(source.read_bytes())
    at = data.index(b"%024x%016x" % (Tag.SHADER_MODULE, 0x2001)) + 40 + 16 + 30
    data[at] ^= 0xFF
    source.write_bytes(data)
    run = Run(source, psdb, workers=1)
    assert run.outcomes == {
        name(0): "compiled", name(1): "failed", name(2): "compiled", f"{0x1007:016x}": "failed", f"{0x1008:016x}": "failed",
    }  # fmt: skip
    assert "deadbeef" in run.verdict(8).message
    assert "2001" in run.verdict(1).message
    assert groups(psdb) == {name(0), name(2)}


def test_text_that_no_message_can_hold_fails_alone(tmp_path: Path, psdb: Path) -> None:
    source = tmp_path / "capture.foz"
    with ArchiveWriter.create(source) as writer:
        put_frame(writer)
        put_pipeline(writer, 0, "code a")
        put_pipeline(writer, 1, "code b")
        body = b'{"version":6,"computePipelines":{"%016x":{"flags":0,"layout":"%016x","basePipelineHandle":"%016x",' % (
            0x1002,
            0xF000,
            0,
        )
        body += b'"basePipelineIndex":0,"stage":{"flags":0,"stage":32,"module":"%016x","name":"ma\xff\xfein"}}}}' % 0x2000
        writer.put(Tag.COMPUTE_PIPELINE, 0x1002, body)
    outcomes = Run(source, psdb, workers=1).outcomes
    assert outcomes.pop(name(2)) in ("compiled", "failed", "unsupported")
    assert outcomes == {name(0): "compiled", name(1): "compiled"}


def test_output_that_is_not_deterministic_is_reported(tmp_path: Path, psdb: Path) -> None:
    family = HostedFamily(toy_compiler.identity(object_code_form="toy code"), "toy_compiler:ToyPipelines")
    run = Run(capture(tmp_path, "random y", "random y      ", "code a"), psdb, family=family, workers=1)
    assert len(run.report.differences) == 1
    assert f"value {b'key of y'.hex()} (OBJECT_CODE) is not deterministic" in run.report.differences[0]


def test_statistics_are_stored_once_for_each_object(tmp_path: Path, psdb: Path, log: Path) -> None:
    source = capture(tmp_path, "code a", "code a", "code bb")
    Run(source, psdb, workers=1)
    Run(source, psdb, workers=1, statistics=True)
    inspected = sorted(text for _, text in log_lines(log, "inspect"))
    assert inspected == ["code a", "code bb"]
    with Psdb.open(psdb) as database:
        records = {group.name: read_statistics(database, group) for group in database.groups()}
    assert len(records) == 2
    assert [record[0]["statistics"] for record in records.values() if record] == [{"Letters": 6}, {"Letters": 7}] or [
        record[0]["statistics"] for record in records.values() if record
    ] == [{"Letters": 7}, {"Letters": 6}]
    Run(source, psdb, workers=1, statistics=True)
    assert sorted(text for _, text in log_lines(log, "inspect")) == inspected


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"no JSON",
        b'[{"name":"a"}]',
        b"[" * 100_000,
        b'[{"name":"a","description":"","subgroup_size":1,"statistics":[]}]',
    ],
)
def test_statistics_that_are_none_are_refused(data: bytes) -> None:
    class Database:
        def find(self, key: ValueKey, type: ValueType) -> bytes:
            return data

    with pytest.raises(CacheCorruptError, match="holds no statistics"):
        read_statistics(Database(), Group(ObjectKey(bytes(32)), 1, (), "compute", "a"))


class DoubtfulFamily(HostedFamily):
    """Says of some pipelines that the device lacks something, or does not advertise what they do."""

    def check(self, description: PipelineDescription) -> tuple[Unmet, ...]:
        text = toy_compiler.text_of(description)
        doubt = Unmet("instruction", "VkFeatures.toyAtomics", 1, 0, "", "it needs toy atomics")
        lack = Unmet("limit", "VkLimits.toys", 9, 2, "", "it needs 9 toys, the device has 2")
        found = {"doubt": (doubt,), "lack": (lack, doubt)}
        if text.startswith("broken"):
            raise DamagedInputError("it is broken")
        return found.get(text.split()[0], ())


def test_what_the_family_lacks_is_unsupported_and_no_failure(tmp_path: Path, psdb: Path, log: Path) -> None:
    family = DoubtfulFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines")
    run = Run(capture(tmp_path, "code a", "lack b", "doubt c"), psdb, family=family)
    assert run.outcomes == {name(0): "compiled", name(1): "unsupported", name(2): "compiled"}
    assert run.report.tally.good
    assert [(reason.kind, reason.name) for reason in run.verdict(1).reasons] == [
        ("limit", "VkLimits.toys"), ("instruction", "VkFeatures.toyAtomics"),
    ]  # fmt: skip
    assert run.verdict(1).message == "it needs 9 toys, the device has 2; it needs toy atomics"
    assert [reason.name for reason in run.verdict(2).reasons] == ["VkFeatures.toyAtomics"]
    assert groups(psdb) == {name(0), name(2)}
    assert "lack b" not in [text for _, text in log_lines(log, "compile")]


def test_strict_keeps_what_is_not_advertised_from_the_driver(tmp_path: Path, psdb: Path) -> None:
    family = DoubtfulFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines")
    run = Run(capture(tmp_path, "code a", "doubt c"), psdb, family=family, strict=True)
    assert run.outcomes == {name(0): "compiled", name(1): "unsupported"}


def test_a_pipeline_that_cannot_be_checked_fails_alone(tmp_path: Path, psdb: Path) -> None:
    family = DoubtfulFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines")
    run = Run(capture(tmp_path, "code a", "broken b"), psdb, family=family)
    assert run.outcomes == {name(0): "compiled", name(1): "failed"}
    assert run.verdict(1).message == "it is broken"


def test_a_psdb_of_somebody_else_is_refused_before_a_worker_starts(tmp_path: Path, psdb: Path, log: Path) -> None:
    source = capture(tmp_path, *GOOD)
    Run(source, psdb)
    before, started = psdb.read_bytes(), len(log_lines(log, "start"))
    other = HostedFamily(toy_compiler.identity("toy-two", driver_build="toy 3"), "toy_compiler:ToyPipelines")
    with pytest.raises(
        CacheCorruptError, match=r"family: stored 'toy-one', expected 'toy-two'; driver_build: stored 'toy 2.1'"
    ):
        Run(source, psdb, family=other)
    assert psdb.read_bytes() == before
    assert len(log_lines(log, "start")) == started
    Run(source, psdb, family=other, replace=True)
    with Psdb.open(psdb) as database:
        assert database.identity == other.identity


def test_no_worker_is_left_when_a_job_ends(tmp_path: Path, psdb: Path, log: Path) -> None:
    Run(capture(tmp_path, *GOOD, "crash SIGSEGV", "loop"), psdb, workers=2, limits=Limits(seconds=0.5))
    for pid, _ in log_lines(log, "start"):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
