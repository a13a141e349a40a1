"""Processes with a socket, their end, and what a worker sets for itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from shaderkiln.system.children import Used, collect, kill_all, start
from shaderkiln.system.processes import resident_bytes, running_program, usable_processors


def child(code: str) -> tuple[subprocess.Popen[bytes], str]:
    """A process that has said something on its socket, with that."""
    process, ours = start([sys.executable, "-c", f"import socket, sys\nfd = int(sys.argv[1])\n{code}", "{fd}"], os.environ, 2)
    with ours:
        ours.settimeout(20)
        return process, ours.recv(100).decode()


def end_of(process: subprocess.Popen[bytes]) -> Used:
    deadline = time.monotonic() + 20
    while (used := collect(process)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return used


def test_a_child_sees_the_modules_and_answers_on_its_socket() -> None:
    process, said = child("import shaderkiln\nsocket.socket(fileno=fd).send(shaderkiln.__name__.encode())")
    assert said == "shaderkiln"
    used = end_of(process)
    assert process.returncode == 0
    assert used.peak_memory > 1 << 20 and used.cpu_seconds > 0


def test_the_end_of_a_child_is_the_end_of_what_it_started() -> None:
    process, said = child(
        "import subprocess\nsleeper = subprocess.Popen(['sleep', '600'])\nsocket.socket(fileno=fd).send(str(sleeper.pid).encode())"
    )
    end_of(process)
    assert process.returncode == 0
    deadline = time.monotonic() + 20
    while resident_bytes(int(said)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert resident_bytes(int(said)) == 0


def test_a_killed_child_says_so() -> None:
    process, _ = child("import time\nsocket.socket(fileno=fd).send(b'!')\ntime.sleep(600)")
    assert collect(process) is None
    kill_all(process)
    end_of(process)
    assert process.returncode == -signal.SIGKILL
    kill_all(process)


def test_a_worker_dies_with_its_parent() -> None:
    worker = (
        "import time; from shaderkiln.system.limits import end_with_parent\n"
        "end_with_parent(); print(1, flush=True); time.sleep(600)"
    )
    process, said = child(
        "import subprocess\n"
        f"worker = subprocess.Popen([sys.executable, '-c', {worker!r}], stdout=subprocess.PIPE, start_new_session=True)\n"
        "worker.stdout.readline()\nsocket.socket(fileno=fd).send(str(worker.pid).encode())"
    )
    end_of(process)
    deadline = time.monotonic() + 20
    while resident_bytes(int(said)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert resident_bytes(int(said)) == 0


def test_limits_of_a_worker() -> None:
    code = (
        "import resource, signal, time\n"
        "from shaderkiln.system.limits import TIME_SIGNAL, end_after, leave_no_core_dump, limit_memory\n"
        "leave_no_core_dump(); limit_memory(1 << 28)\n"
        "assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)\n"
        "try:\n    bytearray(1 << 29)\nexcept MemoryError:\n    end_after(1); time.sleep(20)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=30)
    assert done.returncode == -signal.SIGALRM


def test_what_the_system_says_of_this_process() -> None:
    assert 1 <= usable_processors() <= (os.cpu_count() or 1)
    assert resident_bytes(os.getpid()) > 1 << 20
    assert running_program().samefile(sys.executable)
