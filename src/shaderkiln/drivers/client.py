"""The parent's side of a driver worker: one process and its socket, never blocking, made for a ``selectors`` loop."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from select import POLLIN, POLLOUT, poll
from typing import Any, ClassVar, Generic, Self, TypeVar

from msgspec import Struct

from shaderkiln.drivers.frames import MAXIMUM_FRAME, decode, frame
from shaderkiln.drivers.protocol import Answer, Request
from shaderkiln.endings import signal_name
from shaderkiln.errors import DriverError, InvalidArgumentError
from shaderkiln.system.children import collect, kill_all, start
from shaderkiln.system.processes import resident_bytes

OUTPUT_KEPT = 4096
"""Bytes of the process's standard error, from its end, that are kept."""
_RECEIVED_AT_ONCE = 1 << 18
_POLITE_SECONDS = 2.0

Received = TypeVar("Received")


def worker_arguments(icd: str, *, memory: int = 0) -> tuple[str, ...]:
    """The command line of a worker for the driver at ``icd``; ``{fd}`` stands for the socket.

    ``memory`` limits the process's private data, in bytes; 0: no limit.
    """
    # -P: a module in the working directory must not take the place of one that the worker imports. -S: the search path is given
    # to the process anyway, and working it out once more takes a tenth of its start.
    command = (sys.executable, "-P", "-S", "-m", "shaderkiln.drivers.worker", "{fd}", icd)
    return (*command, "--memory", str(memory)) if memory else command


class WorkerProcess(Generic[Received]):
    """A worker that was started with ``arguments``, in which ``{fd}`` is replaced by the number of its socket.

    ``environment`` is the whole environment of the process. The search path of Python modules is added to it, so that the
    worker finds this package. The process has no standard input and output, and a session of its own, so that Ctrl-C reaches
    only the parent. Start it from a thread that lives as long as the worker may: the kernel ends it with its parent's thread.

    Raises ``DriverError`` if the process cannot be started.
    """

    name: ClassVar[str] = "a driver worker"
    """What messages call it."""
    answer_types: ClassVar[Any] = Answer
    """The union of its answers' types."""
    longest_answer: ClassVar[int] = MAXIMUM_FRAME
    """Bytes; a longer one is refused."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.arguments = tuple(arguments)
        output, output_of_worker = os.pipe()
        try:
            # Whoever reads too late loses output; a worker that waits for a reader would lose time.
            os.set_blocking(output_of_worker, False)
            self._process, self._socket = start(arguments, environment, output_of_worker)
        except OSError as error:
            os.close(output)
            raise DriverError(f"cannot start {self.name}: {error}", code="VK_ERROR_INITIALIZATION_FAILED") from error
        finally:
            os.close(output_of_worker)
        self._socket.setblocking(False)
        os.set_blocking(output, False)
        self._output_file = output
        self._output = bytearray()
        self._to_send = bytearray()
        self._received = bytearray()
        self._closed = False
        self.ended = False
        """The worker's end of the socket is closed: it has ended or is about to; no more answers come."""
        self.peak_memory = 0
        """Largest resident size in bytes, known after ``close``."""
        self.cpu_seconds = 0.0
        """User and system time of the process, known after ``close``."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def resident_bytes(self) -> int:
        """What the process has in memory now; 0 where that cannot be told."""
        return resident_bytes(self.pid)

    def fileno(self) -> int:
        """The socket: readable when answers wait or the worker has ended, to be written to where ``wants_write``."""
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        """Messages wait for room in the socket; call ``flush`` when it can be written."""
        return bool(self._to_send)

    def send(self, message: Struct) -> None:
        """Queue the message and send as much as there is room for. Messages to a worker that has ended are dropped."""
        self.send_frames(frame(message))

    def send_frames(self, frames: bytes | bytearray) -> None:
        """As ``send``, for messages that are frames already."""
        if not self.ended:
            self._to_send += frames
            self.flush()

    def flush(self) -> None:
        """Send what waits, as far as the socket takes it."""
        try:
            while self._to_send:
                with memoryview(self._to_send) as waiting:
                    count = self._socket.send(waiting)
                del self._to_send[:count]
        except BlockingIOError:
            pass
        except OSError:
            # Its answers may still wait to be read, so this does not count as the end.
            self._to_send.clear()

    def receive(self) -> list[Received]:
        """The answers that have arrived; sets ``ended`` at the end of the worker. Never waits.

        Raises ``DriverError`` for anything but answers.
        """
        self._drain_output()
        while not self.ended:
            try:
                data = self._socket.recv(_RECEIVED_AT_ONCE)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            self._received += data
            self.ended = not data
            if len(data) < _RECEIVED_AT_ONCE:
                break
        return self._answers()

    def _answers(self) -> list[Received]:
        answers: list[Received] = []
        received, start = self._received, 0
        with memoryview(received) as view:
            while len(received) - start >= 4:
                length = int.from_bytes(view[start : start + 4], "little")
                if length > self.longest_answer:
                    raise DriverError(f"the worker sent a frame of {length} bytes")
                if len(received) - start - 4 < length:
                    break
                try:
                    answers.append(decode(self.answer_types, view[start + 4 : start + 4 + length]))
                except InvalidArgumentError as error:
                    raise DriverError(f"the worker sent something else than an answer: {error}") from error
                start += 4 + length
        del received[:start]
        return answers

    def ask(self, message: Struct, timeout: float = 120.0) -> Received:
        """Send one request and wait for its answer, ``Failed`` included. For simple callers, one request at a time. Raises as
        ``next_answer``."""
        self.send(message)
        return self.next_answer(timeout)

    def next_answer(self, timeout: float) -> Received:
        """Wait for the one answer that is to come.

        Raises ``DriverError``: the worker ended (with its signal and last words), or gave no answer within ``timeout`` seconds.
        """
        answers: list[Received] = []

        def arrived() -> bool:
            answers.extend(self.receive())
            return bool(answers)

        self.wait_until(arrived, timeout)
        return answers[0]

    def wait_until(self, arrived: Callable[[], bool], timeout: float) -> None:
        """Wait until ``arrived``, which calls ``receive``, is true. Raises as ``next_answer``."""
        deadline = time.monotonic() + timeout
        waiter = poll()
        while not arrived():
            if self.ended:
                how = self.close(kill=True)
                raise DriverError(f"the driver's worker ended ({how}): {self.output or 'it wrote nothing'}")
            left = deadline - time.monotonic()
            if left <= 0:
                raise DriverError(f"no answer from the driver's worker in {timeout:g} seconds", code="VK_TIMEOUT")
            waiter.register(self.fileno(), POLLIN | POLLOUT if self.wants_write else POLLIN)
            waiter.poll(left * 1000)
            self.flush()

    def _drain_output(self) -> None:
        with contextlib.suppress(OSError):
            while not self._closed and (data := os.read(self._output_file, 1 << 16)):
                self._output += data
                del self._output[:-OUTPUT_KEPT]

    @property
    def output(self) -> str:
        """The end of what the process has written to standard error, at most ``OUTPUT_KEPT`` bytes."""
        self._drain_output()
        return self._output.decode("utf-8", "replace").strip()

    def kill(self) -> None:
        """End the process and every one that it started, at once. The end shows as ``ended`` in a later ``receive``."""
        kill_all(self._process)

    def close(self, kill: bool = False) -> str:
        """End the process, politely unless ``kill``, and release everything. How it ended: ``SIGABRT``, or ``exit status 0``.

        A worker that has ended by itself keeps its own way to end. A polite end lets the driver finish what it writes. Processes
        that it started and left behind are ended with it.
        """
        if self._closed:
            return self.how_it_ended
        if kill and not self.ended:
            self.kill()
        self._to_send.clear()
        # Sees the end of requests; answers that nobody will read must not keep it from ending.
        self._socket.close()
        deadline = time.monotonic() + _POLITE_SECONDS
        pause = 0.0005
        while (used := collect(self._process)) is None:
            if time.monotonic() > deadline:
                self.kill()
            self._drain_output()
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        self.peak_memory, self.cpu_seconds = used
        self._drain_output()
        self._closed = True
        self.ended = True
        os.close(self._output_file)
        return self.how_it_ended

    @property
    def returncode(self) -> int | None:
        """Exit status, or the negative number of the signal; None before ``close``."""
        return self._process.returncode

    @property
    def how_it_ended(self) -> str:
        code = self._process.returncode
        if code is None:
            return "running"
        return f"exit status {code}" if code >= 0 else signal_name(-code)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close(kill=exception[0] is not None)

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close(kill=True)


def ask_once(arguments: Sequence[str], environment: Mapping[str, str], message: Request, seconds: float = 120.0) -> Answer:
    """The answer of a new worker to one request, ``Failed`` included. Raises ``DriverError`` as ``WorkerProcess.ask`` does."""
    with WorkerProcess[Answer](arguments, environment) as worker:
        return worker.ask(message, seconds)
