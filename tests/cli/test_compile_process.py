"""``kiln compile`` as a process: Ctrl-C, kill -9, outputs that cannot be written, what it prints and how it ends."""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from job_support import groups, log_lines, name, write_capture
from toy_plugin import KILN, Kiln

from shaderkiln import api
from shaderkiln.databases.psdb import Psdb

PR_CAPBSET_DROP = 24


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        return process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


SLOW = [f"slow 0.1 {number:02}" for number in range(20)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_finishes_what_is_in_hand_and_leaves_a_valid_psdb(kiln: Kiln, tmp_path: Path, number: signal.Signals) -> None:
    capture = write_capture(tmp_path / "game.foz", SLOW)
    process = kiln.start("compile", capture, "-f", "toy-one", "-o", "out", "-j", 2, "--json")
    wait_for(lambda: len(log_lines(kiln.log, "compile")) >= 3)
    process.send_signal(number)
    out, err = finish(process)
    assert process.returncode == 130
    assert "finishing the pipelines in hand; press Ctrl-C again" in err
    *verdicts, summary = map(json.loads, out.splitlines())
    assert summary["interrupted"]
    assert not summary["good"]
    assert summary["not_reached"] == 20 - len(verdicts)
    done = {verdict["pipeline"] for verdict in verdicts}
    assert 1 <= len(done) < 20
    assert groups(tmp_path / "out" / "game.toy-one.psdb") == done
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["game.toy-one.psdb"]
    *verdicts, _ = kiln.records("compile", capture, "-f", "toy-one", "-o", "out")
    assert {verdict["pipeline"] for verdict in verdicts if verdict["outcome"] == "reused"} == done
    assert len(log_lines(kiln.log, "compile")) == 20


def test_the_second_ctrl_c_ends_at_once_and_what_was_done_is_kept(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["code the longest of all", "loop"])
    process = kiln.start("compile", capture, "-f", "toy-one", "-o", "out", "-j", 1)
    wait_for(lambda: len(log_lines(kiln.log, "compile")) >= 2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = finish(process)
    assert time.monotonic() - started < 3
    assert process.returncode == 130
    assert "Traceback" not in err
    assert not any(alive(pid) for pid, _ in log_lines(kiln.log, "start"))
    kiln("compile", capture, "-f", "toy-one", "-o", "out", "-j", 1, environment={"TOY_TALE": "all good"})
    assert groups(tmp_path / "out" / "game.toy-one.psdb") == {name(0), name(1)}
    assert [text for _, text in log_lines(kiln.log, "compile")] == ["code the longest of all", "loop", "loop"]


def test_an_interrupted_job_says_what_it_did_not_do(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", SLOW)
    process = kiln.start("compile", capture, "-f", "toy-one,toy-two", "-o", "out", "-j", 1)
    wait_for(lambda: len(log_lines(kiln.log, "compile")) >= 3)
    process.send_signal(signal.SIGINT)
    out, _ = finish(process)
    assert process.returncode == 130
    line, other = out.splitlines()
    found = re.fullmatch(r"toy-one: interrupted: (\d+) compiled, (\d+) not reached of 20 pipelines in .*", line)
    assert found and int(found[1]) + int(found[2]) == 20
    assert other == "toy-two: not begun (interrupted)"
    (*_, last) = kiln.records("compile", capture, "-f", "toy-one,toy-two", "-o", "out")
    assert (last["family"], last["good"]) == ("toy-two", True)


def test_a_family_that_is_named_twice_is_compiled_once(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["code a"])
    done = kiln("compile", capture, "-f", "toy-one", "-f", "toy-two, toy-one", "-o", "out.psdb", "-f", "toy-one")
    assert done.returncode == 2
    done = kiln("compile", capture, "-f", "toy-one", "-f", "toy-two, toy-one", "-o", "out")
    assert [line.split(" in ")[0] for line in done.stdout.splitlines()] == [
        "toy-one: 1 pipeline: 1 compiled", "toy-two: 1 pipeline: 1 compiled",
    ]  # fmt: skip
    assert kiln("compile", capture, "-f", "toy-one,toy-one", "-o", "one.psdb").returncode == 0


def test_nothing_is_said_about_the_progress_of_a_short_job_to_a_file(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", [f"slow 0.3 {number}" for number in range(4)])
    done = kiln("compile", capture, "-f", "toy-one", "-o", "out", "-j", 1)
    assert (done.returncode, done.stderr) == (0, "")


def test_progress_goes_on_while_one_pipeline_takes_long(
    toy_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(toy_site)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    capture = write_capture(tmp_path / "game.foz", ["slow 1.5"])
    seen: list[float] = []
    api.compile_capture(
        capture, "toy-one", tmp_path / "out.psdb", on_tick=lambda progress: seen.append(progress.longest_in_hand)
    )
    assert len(seen) > 4
    assert 1.0 < max(seen) < 10


def test_ctrl_c_ends_a_verification_early_and_it_is_no_proof(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", SLOW)
    kiln("compile", capture, "-f", "toy-one", "-o", "out.psdb", environment={"TOY_TALE": "all good"})
    process = kiln.start("verify", "out.psdb", capture, "-j", 1, "--json")
    wait_for(lambda: log_lines(kiln.log, "recreate"))
    process.send_signal(signal.SIGINT)
    out, _ = finish(process)
    assert process.returncode == 130
    *verdicts, summary = map(json.loads, out.splitlines())
    assert 1 <= len(verdicts) < 20
    assert {verdict["outcome"] for verdict in verdicts} == {"hit"}
    assert summary["interrupted"]
    assert not summary["good"]


@pytest.mark.spec("AL-03")
def test_kill_9_leaves_no_worker_and_the_rerun_equals_an_uninterrupted_run(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", [*SLOW, "crash SIGSEGV", "code a", "code a"])
    process = kiln.start("compile", capture, "-f", "toy-one", "-o", "out", "-j", 2)
    wait_for(lambda: len(log_lines(kiln.log, "compile")) >= 14)
    process.kill()
    finish(process)
    pids = {pid for pid, _ in log_lines(kiln.log, "start")}
    wait_for(lambda: not any(map(alive, pids)), 5)
    assert not (tmp_path / "out" / "game.toy-one.psdb").exists()
    before = log_lines(kiln.log, "compile")
    *verdicts, summary = kiln.records("compile", capture, "-f", "toy-one", "-o", "out", "-j", 2, code=1)
    reused = [verdict for verdict in verdicts if verdict["outcome"] == "reused"]
    assert len(reused) >= 3
    assert len(log_lines(kiln.log, "compile")) < len(before) + 20
    assert summary["counts"]["crashed"] == 1
    kiln.records("compile", capture, "-f", "toy-one", "-o", "whole", "-j", 1, code=1)
    assert (tmp_path / "out" / "game.toy-one.psdb").read_bytes() == (tmp_path / "whole" / "game.toy-one.psdb").read_bytes()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["game.toy-one.psdb"]


@pytest.mark.spec("AL-03")
def test_a_worker_in_an_endless_compile_ends_with_its_parent(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["loop"])
    process = kiln.start("compile", capture, "-f", "toy-one", "-o", "out")
    wait_for(lambda: log_lines(kiln.log, "compile"))
    ((worker, _),) = log_lines(kiln.log, "start")
    assert alive(worker)
    process.kill()
    finish(process)
    wait_for(lambda: not alive(worker), 5)


def test_a_full_disk_is_told_and_the_rerun_goes_on(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", [f"code {'x' * 20_000}{number}" for number in range(12)])

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = kiln("compile", capture, "-f", "toy-one", "-o", "out", preexec_fn=limit)
    assert done.returncode == 5, done
    assert "kiln: error: " in done.stderr
    assert "game.toy-one.psdb" in done.stderr
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "game.toy-one.psdb").exists()
    assert kiln("compile", capture, "-f", "toy-one", "-o", "out").returncode == 0
    assert groups(tmp_path / "out" / "game.toy-one.psdb") == set(map(name, range(12)))


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A folder that its owner may not write to."""
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    return folder


def bound_by_permissions() -> None:
    """In a new process of root: permissions of files count for it as for everybody (no CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH)."""
    if os.geteuid() == 0:
        for capability in (1, 2):
            if ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl")


def test_an_output_folder_that_may_not_be_written_to(kiln: Kiln, tmp_path: Path, closed: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["code a"])
    for target in (closed, closed / "new", closed / "x.psdb"):
        done = kiln("compile", capture, "-f", "toy-one", "-o", target, preexec_fn=bound_by_permissions)
        assert done.returncode == 5, done
        assert str(closed) in done.stderr
        assert "Traceback" not in done.stderr
    assert not list(closed.iterdir())


def test_inputs_that_may_not_be_read(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["code a"])
    kiln("compile", capture, "-f", "toy-one", "-o", "out")
    psdb = tmp_path / "out" / "game.toy-one.psdb"
    for path in (capture, psdb):
        path.chmod(0)
    for arguments in (
        ("compile", capture, "-f", "toy-one", "-o", tmp_path / "x"), ("show", capture), ("show", psdb), ("verify", psdb, capture),
        ("salvage", capture, "-o", "new.foz"), ("isa", psdb, name(0)),
    ):  # fmt: skip
        done = kiln(*arguments, preexec_fn=bound_by_permissions)
        assert done.returncode == 3, (arguments, done)
        assert "ermission" in done.stderr or "cannot be read" in done.stderr, done
        assert "Traceback" not in done.stderr


def test_two_kilns_at_one_output_do_not_mix(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["slow 1.5"])
    process = kiln.start("compile", capture, "-f", "toy-one", "-o", "out")
    wait_for(lambda: log_lines(kiln.log, "compile"))
    second = kiln("compile", capture, "-f", "toy-one", "-o", "out")
    assert second.returncode == 5
    assert "another process is building this database" in second.stderr
    finish(process)
    assert process.returncode == 0
    assert groups(tmp_path / "out" / "game.toy-one.psdb") == {name(0)}


def test_a_reader_that_goes_away_ends_it_quietly(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", [f"code {number}" for number in range(3000)])
    process = kiln.start("show", capture, "--pipelines")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.wait(20)
    assert process.returncode != 0


def test_a_driver_that_does_not_start_ends_with_4(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["code a"])
    done = kiln("compile", capture, "-f", "toy-one", "-o", "out", environment={"TOY_TALE": "no start"})
    assert done.returncode == 4
    assert "toy: there is no toy" in done.stderr
    assert len(log_lines(kiln.log, "start")) == 3


def test_several_families_get_a_psdb_each(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["code a", "crash SIGABRT"])
    done = kiln("compile", capture, "-f", "toy-one", "-f", "toy-two", "-o", "out", "--report", "report.jsonl")
    assert done.returncode == 1
    assert "toy-one: crashed compute 0000000000001001: ended the driver's process with SIGABRT in toy 2.1" in done.stdout
    assert "toy-two: 2 pipelines: 1 compiled, 1 crashed in " in done.stdout
    for family in ("toy-one", "toy-two"):
        with Psdb.open(tmp_path / "out" / f"game.{family}.psdb") as database:
            assert database.identity.family == family
            assert database.application.name == "Toy Town"
    report = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    assert {(line["family"], line["pipeline"], line["outcome"]) for line in report} == {
        (family, pipeline, outcome)
        for family in ("toy-one", "toy-two")
        for pipeline, outcome in ((name(0), "compiled"), (name(1), "crashed"))
    }
    one_file = kiln("compile", capture, "-f", "toy-one", "-f", "toy-two", "-o", "all.psdb")
    assert one_file.returncode == 2
    assert "give a folder" in one_file.stderr


def test_microsofts_spelling(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["code a"])
    done = kiln(
        "compile", "--plugin", "toy", "--adapter-family", "toy-two", "--name", "My Game", "--exe-filename", "game.exe",
        "--version", "1.0", "--engine-name", "Engine", "--engine-version", "4.27.2", capture, "out.psdb",
    )  # fmt: skip
    assert done.returncode == 0, done
    with Psdb.open(tmp_path / "out.psdb") as database:
        application = database.application
        assert (application.name, application.exe_filename, application.engine_name) == ("My Game", "game.exe", "Engine")
        assert application.version == 1 << 48
        assert application.engine_version == 4 << 48 | 27 << 32 | 2 << 16
        assert database.identity.family == "toy-two"


def test_only_the_pipelines_that_are_asked_for(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["code a", "code b", "code c"])
    done = kiln("compile", capture, "-f", "toy-one", "-o", "out", "--pipeline", name(1).upper())
    assert done.returncode == 0
    assert groups(tmp_path / "out" / "game.toy-one.psdb") == {name(1)}
    unknown = kiln("compile", capture, "-f", "toy-one", "-o", "out", "--pipeline", "feed")
    assert unknown.returncode == 3
    assert "no pipeline's name begins with 'feed'" in unknown.stderr
    many = kiln("replay", capture, "-f", "toy-one", "--pipeline", "0000")
    assert many.returncode == 2
    assert "3 pipelines have names that begin with '0000'" in many.stderr


def test_replay_keeps_nothing(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["code a", "raise"])
    done = kiln("replay", capture, "-f", "toy-one")
    assert done.returncode == 1
    assert "toy-one: failed compute 0000000000001001: ZeroDivisionError: the toy cannot divide" in done.stdout
    assert not list(tmp_path.rglob("*.psdb*"))


def test_limits_are_those_of_the_command_line(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["loop", "eat", "code a"])
    done = kiln("compile", capture, "-f", "toy-one", "-o", "out", "--time-limit", 2, "--memory-limit", "300M", "-j", 2)
    assert done.returncode == 1
    assert "1 compiled, 1 timed-out, 1 out-of-memory" in done.stdout
    for value in ("0", "x", "4T", "-1G", "", "G"):
        assert kiln("compile", capture, "-f", "toy-one", "--memory-limit", value).returncode == 2


@pytest.mark.parametrize("closed", [(0, 1, 2), (0,), (1, 2), (2,)])
def test_standard_streams_that_are_closed_are_nobody_elses(kiln: Kiln, closed: tuple[int, ...]) -> None:
    """A socket or a database that gets the number of a standard stream would lose it in the worker, or get what is printed."""
    write_capture(kiln.folder / "game.foz", ["code a", "code b"])
    command = " ".join([*KILN, "compile game.foz -f toy-one -o out.psdb", *(f"{number}>&-" for number in closed)])
    done = subprocess.run(["sh", "-c", command], cwd=kiln.folder, env=kiln.environment, timeout=60)
    assert done.returncode == 0
    assert len(groups(kiln.folder / "out.psdb")) == 2
