"""One FILE database and several processes, and processes that are killed."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import session_workers as workers
from session_support import APPLICATION, compiler, environment

from shaderkiln.databases.psdb_live import LivePsdb
from shaderkiln.databases.psdb_records import Expectation
from shaderkiln.sessions import CacheFileDesc, FileSessionDesc, SessionFileFlags, create_shader_cache_session1
from shaderkiln.testing.other_process import OtherProcess

SCRIPT = str(Path(workers.__file__))


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, SCRIPT, *map(str, arguments)]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )


def is_sound(path: Path) -> bool:
    with LivePsdb.open(path, Expectation(APPLICATION, compiler())) as database:
        lines = database._connection.execute("PRAGMA integrity_check").fetchall()
        counted = database._connection.execute("SELECT count(*), sum(size) FROM payloads").fetchall()
        state = database.state()
        return lines == [("ok",)] and counted == [(state.value_count, state.payload_bytes)]


def readers_and_a_writer(path: Path, seconds: float) -> None:
    workers.open_file(path).close()
    path.with_suffix(".told").write_bytes(bytes(8))
    processes = [start("overwrite", path, seconds), *(start("read", path, seconds, seed) for seed in range(8))]
    outputs = [process.communicate(timeout=seconds + 120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 9, [error for _, error in outputs if error]
    stored, version = map(int, outputs[0][0].split())
    finds = [int(output) for output, _ in outputs[1:]]
    print(f"{stored} values stored, {version} times replaced, {sum(finds)} finds")
    assert stored > 50 and version > 50 and min(finds) > 50
    with workers.open_file(path) as session:
        for number in range(stored):
            workers.check(session, number)
    assert is_sound(path)
    assert {entry.name for entry in path.parent.iterdir()} == {"a.psdb", "a.told"}


@pytest.mark.spec("EP-33", "EP-34")
def test_eight_readers_and_a_writer(tmp_path: Path) -> None:
    readers_and_a_writer(tmp_path / "a.psdb", 3)


@pytest.mark.soak
def test_eight_readers_and_a_writer_for_a_minute(tmp_path: Path) -> None:
    readers_and_a_writer(tmp_path / "a.psdb", 60)


def kill_a_writer(path: Path, times: int) -> None:
    source = random.Random(9)
    told = -1
    for _ in range(times):
        process = start("write", path)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("open "), process.stderr.read() if process.stderr else ""
        first = int(line.split()[1])
        # It goes on from the first missing one: at least what was told, and at most one store that was not.
        assert told + 1 <= first <= told + 2
        time.sleep(source.random() * 0.15)
        os.kill(process.pid, signal.SIGKILL)
        output = process.stdout.read()
        process.wait()
        numbers = [int(line) for line in output.split("\n")[:-1]]
        told = max([told, first - 1, *numbers])
        with workers.open_file(path) as session:
            for number in range(told + 1):
                assert workers.check(session, number) == 0
        assert is_sound(path)
    assert told > times


@pytest.mark.spec("EP-33")
def test_a_writer_killed_at_random_points(tmp_path: Path) -> None:
    kill_a_writer(tmp_path / "a.psdb", 10)


@pytest.mark.soak
def test_a_writer_killed_a_hundred_times(tmp_path: Path) -> None:
    kill_a_writer(tmp_path / "a.psdb", 100)


def test_processes_that_create_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.psdb"
    path.with_suffix(".told").write_bytes(struct.pack("<Q", 0))
    processes = [start("read", path, 1, 2 * seed) for seed in range(6)]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, [error for _, error in outputs if error]
    assert {entry.name for entry in tmp_path.iterdir()} == {"a.psdb", "a.told"}


def test_killed_while_creating_or_reserving(tmp_path: Path) -> None:
    script = (
        "import sys; from session_support import *; from shaderkiln.sessions import *\n"
        "desc = FileSessionDesc(CacheFileDesc(sys.argv[1], 64 << 20), SessionFileFlags.RESERVE_MAXIMUM_SIZE)\n"
        "print('go', flush=True); create_shader_cache_session1(desc, environment())\n"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *(entry for entry in sys.path if entry)])
    source = random.Random(3)
    database = tmp_path / "a.psdb"
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(database)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(source.random() * 0.2)
        process.kill()
        process.communicate()
    with workers.open_file(database) as session:
        workers.store(session, 1, 0)
        assert workers.check(session, 1) == 0
    desc = FileSessionDesc(CacheFileDesc(database, 64 << 20), SessionFileFlags.RESERVE_MAXIMUM_SIZE)
    create_shader_cache_session1(desc, environment()).close()
    assert is_sound(database)
    assert 64 << 20 <= database.stat().st_size < 70 << 20
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.psdb"]


def test_threads_share_a_file_session(tmp_path: Path) -> None:
    with workers.open_file(tmp_path / "a.psdb") as session:
        faults: list[BaseException] = []
        stop = threading.Event()
        for number in range(workers.HOT):
            workers.store(session, number, 0)

        def read(seed: int) -> None:
            source = random.Random(seed)
            try:
                while not stop.is_set():
                    number = source.randrange(workers.HOT)
                    version = workers.check(session, number)
                    assert struct.unpack_from("<QQ", session.find_value(workers.key(number)))[1] >= version
            except BaseException as error:
                faults.append(error)

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for version in range(1, 400):
            workers.store(session, version % workers.HOT, version)
        stop.set()
        for thread in threads:
            thread.join()
        assert faults == []


@pytest.mark.spec("EP-36")
def test_what_another_process_uses_is_kept(tmp_path: Path) -> None:
    desc = FileSessionDesc(CacheFileDesc(tmp_path / "a.psdb", 50), SessionFileFlags.TRIM_WHEN_FULL)
    with OtherProcess() as other, create_shader_cache_session1(desc, environment()) as session:
        for number in range(5):
            session.store_value(b"%d" % number, bytes(10))
        other.open(desc, APPLICATION, compiler())
        assert other.find(b"0")
        other.close()  # one of the moments at which it writes down what it used
        session.store_value(b"new", bytes(10))
        assert [number for number in range(5) if session.exists(b"%d" % number)] == [0, 3, 4]
