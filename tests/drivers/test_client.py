"""The parent's side of a worker, with processes that are no workers, or hold no driver."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from shaderkiln.drivers.client import OUTPUT_KEPT, WorkerProcess, ask_once, worker_arguments
from shaderkiln.drivers.frames import MAXIMUM_FRAME, frame
from shaderkiln.drivers.protocol import Failed, Forget, Open, decode_answer, decode_request
from shaderkiln.errors import DriverError, InvalidArgumentError


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", "import os, signal, sys, time; fd = int(sys.argv[1]); " + program, "{fd}")


def wait_for_end(worker: WorkerProcess) -> None:
    deadline = time.monotonic() + 20
    while not worker.ended and time.monotonic() < deadline:
        worker.receive()
        time.sleep(0.005)
    assert worker.ended


def test_a_crash_is_told_with_its_signal_and_last_words() -> None:
    program = "os.write(2, b'x' * 10000 + b'\\nLLVM ERROR: cannot select\\n'); os.kill(os.getpid(), signal.SIGABRT)"
    worker = WorkerProcess(python(program), dict(os.environ))
    wait_for_end(worker)
    assert worker.close(kill=True) == "SIGABRT"
    assert worker.returncode == -6
    assert worker.output.endswith("x\nLLVM ERROR: cannot select")
    assert len(worker.output) <= OUTPUT_KEPT
    with pytest.raises(DriverError, match=r"(?s)SIGABRT.*LLVM ERROR: cannot select"):
        ask_once(python(program), dict(os.environ), Open())


def test_output_that_nobody_reads_does_not_hold_a_worker_up() -> None:
    worker = WorkerProcess(
        python("\nfor _ in range(2000):\n  try: os.write(2, b'y' * 1000)\n  except BlockingIOError: pass"), dict(os.environ)
    )
    deadline = time.monotonic() + 20
    while Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < deadline:
        time.sleep(0.01)
    wait_for_end(worker)
    assert worker.close() == "exit status 0"


def test_no_answer_in_time() -> None:
    with (
        pytest.raises(DriverError, match=r"no answer .* in 0\.3 seconds") as caught,
        WorkerProcess(python("time.sleep(60)"), dict(os.environ)) as worker,
    ):
        worker.ask(Open(), timeout=0.3)
    assert caught.value.code == "VK_TIMEOUT"
    assert worker.how_it_ended == "SIGKILL"


def test_close_ends_a_worker_that_does_not_want_to() -> None:
    worker = WorkerProcess(python("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"), dict(os.environ))
    started = time.monotonic()
    assert worker.close() == "SIGKILL"
    assert time.monotonic() - started < 10
    assert worker.close() == "SIGKILL"


@pytest.mark.parametrize(
    "sent", [b"\3\0\0\0abc", b"\xff\xff\xff\xff", frame(Forget())], ids=["not msgpack", "huge frame", "a request"]
)
def test_anything_but_answers_is_refused(sent: bytes) -> None:
    program = f"os.write(fd, {sent!r}); time.sleep(0.5)"
    with pytest.raises(DriverError, match=r"something else than an answer|a frame of 4294967295 bytes"):
        ask_once(python(program), dict(os.environ), Open())


def test_an_answer_in_pieces() -> None:
    whole = frame(Failed(7, "E_FAIL", "z" * 100))
    program = f"\nfor byte in {whole!r}:\n  os.write(fd, bytes([byte])); time.sleep(0.001)\ntime.sleep(1)"
    assert ask_once(python(program), dict(os.environ), Open()) == Failed(7, "E_FAIL", "z" * 100)


def test_messages_that_are_cut_or_damaged_are_refused() -> None:
    payload = frame(Open(features=("VkPhysicalDeviceFeatures.robustBufferAccess",)))[4:]
    assert decode_request(payload) == Open(features=("VkPhysicalDeviceFeatures.robustBufferAccess",))
    for length in range(len(payload)):
        with pytest.raises(InvalidArgumentError):
            decode_request(payload[:length])
    with pytest.raises(InvalidArgumentError):
        decode_answer(payload)
    assert MAXIMUM_FRAME < 1 << 32
    with pytest.raises(InvalidArgumentError):
        frame(Open(device_index=1 << 64))


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("/nowhere/libvulkan_none.so", "VK_ERROR_INITIALIZATION_FAILED", "cannot load the driver"),
        ("libc.so.6", "VK_ERROR_INCOMPATIBLE_DRIVER", "is not a Vulkan driver"),
    ],
)
def test_what_is_no_driver_is_told(path: str, code: str, message: str) -> None:
    answer = ask_once(worker_arguments(path), dict(os.environ), Open())
    assert isinstance(answer, Failed)
    assert answer.code == code
    assert message in answer.message


def test_a_worker_ends_when_its_parent_closes(tmp_path: Path) -> None:
    # The working directory is not where a worker looks for modules.
    (tmp_path / "argparse.py").write_text("raise SystemExit('wrong module')")
    before = Path.cwd()
    try:
        os.chdir(tmp_path)
        worker = WorkerProcess(worker_arguments("libc.so.6"), dict(os.environ))
    finally:
        os.chdir(before)
    assert isinstance(worker.ask(Open()), Failed)
    assert worker.close() == "exit status 0"
    assert worker.peak_memory > 1 << 20
    worker.send(Open())
    assert worker.ended


def test_a_command_that_does_not_exist() -> None:
    with pytest.raises(DriverError, match="cannot start a driver worker"):
        WorkerProcess(("/nowhere/python",), {})


LEAVES_A_CHILD = (
    "import subprocess; child = subprocess.Popen(['sleep', '300'], pass_fds=(fd,)); os.write(2, b'%d' % child.pid); "
)


def has_ended(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("ending", ["os._exit(3)", "os.read(fd, 1)", "time.sleep(300)"])
def test_processes_that_a_worker_leaves_behind_end_with_it(ending: str) -> None:
    worker = WorkerProcess(python(LEAVES_A_CHILD + ending), dict(os.environ))
    deadline = time.monotonic() + 20
    while not worker.output and time.monotonic() < deadline:
        time.sleep(0.01)
    child = int(worker.output)
    how = worker.close()
    assert how == {"os._exit(3)": "exit status 3", "os.read(fd, 1)": "exit status 0"}.get(ending, "SIGKILL")
    assert has_ended(child)


def test_a_child_that_holds_the_socket_does_not_outlive_a_killed_worker() -> None:
    """The worker itself has ended, but its end of the socket is still open elsewhere: killing it must show as its end."""
    worker = WorkerProcess(python(LEAVES_A_CHILD + "os._exit(3)"), dict(os.environ))
    deadline = time.monotonic() + 20
    while not worker.output and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    worker.receive()
    assert not worker.ended
    worker.kill()
    wait_for_end(worker)
    assert worker.close(kill=True) == "exit status 3"
