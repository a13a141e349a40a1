"""The driver of a device: one worker process whose threads create pipelines side by side, which any thread may ask."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from concurrent.futures import Future
from select import POLLIN, POLLOUT, poll

from msgspec import structs

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.drivers.protocol import Answer, Failed, NumberedRequest, Opened
from shaderkiln.errors import DriverError
from shaderkiln.workers.definitions import Definitions
from shaderkiln.workers.opening import FamilyWorker, driver_error
from shaderkiln.workers.pool import MEMORY_INTERVAL, Limits


class ProcessEndedError(DriverError):
    """The driver's process ended, or had to be ended, before it answered; ``output`` is the last of what it wrote."""

    def __init__(self, how: str, output: str) -> None:
        super().__init__(f"the driver's process ended ({how})" + (f": {output}" if output else ""))
        self.how = how
        self.output = output


class SharedProcess:
    """One worker process from its start to its end, served by a thread of its own.

    The constructor waits until the device is open. Raises DriverError where no device can be opened.
    """

    def __init__(self, compiler: FamilyCompiler, threads: int, limits: Limits | None = None) -> None:
        self._service = _Service(compiler, threads, limits or Limits())
        self._close = weakref.finalize(self, self._service.stop)
        # The kernel ends a worker with the thread that started it, so that must not be the caller's.
        threading.Thread(target=self._service.run, daemon=True, name="shaderkiln driver").start()
        self._service.opened.result()

    @property
    def ended(self) -> bool:
        return self._service.ended

    @property
    def opened(self) -> Opened:
        """What the driver said about itself."""
        return self._service.opened.result()

    def submit(self, request: NumberedRequest, description: PipelineDescription | None = None) -> Future[Answer]:
        """Send a request, which gets its number here, after the objects of ``description``. The answer may be ``Failed``.

        The future raises ProcessEndedError where the process ends first. Raises InvalidArgumentError for what cannot be sent.
        """
        return self._service.submit(request, description)

    def ask(self, request: NumberedRequest, description: PipelineDescription | None = None) -> Answer:
        """The answer to one request. Raises DriverError for ``Failed``, and as ``submit``."""
        answer = self.submit(request, description).result()
        if isinstance(answer, Failed):
            raise DriverError(answer.message, code=answer.code)
        return answer

    def close(self) -> None:
        """End the process, politely where it has nothing in hand, and wait for that."""
        self._close()
        self._service.finished.wait()


class _Service:
    """The state that the thread and the callers share; the thread does not keep the ``SharedProcess`` alive."""

    def __init__(self, compiler: FamilyCompiler, threads: int, limits: Limits) -> None:
        self._compiler = compiler
        self._threads = threads
        self._limits = limits
        self.opened: Future[Opened] = Future()
        self.finished = threading.Event()
        self.ended = False
        self._lock = threading.Lock()
        """Held for every use of the process and of what stands below."""
        self._process: FamilyWorker | None = None
        self._pending: dict[int, tuple[Future[Answer], float]] = {}
        self._last_request = 0
        self._stopping = False
        self._definitions = Definitions(one_source=False)
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        self._killed = ""

    def submit(self, request: NumberedRequest, description: PipelineDescription | None) -> Future[Answer]:
        future: Future[Answer] = Future()
        with self._lock:
            process = self._process
            if self.ended or self._stopping or process is None:
                future.set_exception(ProcessEndedError("closed", ""))
                return future
            if description is not None:
                for message in self._definitions.messages(description):
                    process.send(message)
            self._last_request += 1
            number = self._last_request
            process.send(structs.replace(request, request=number))
            self._pending[number] = (future, time.monotonic())
        self._wake()
        return future

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
        self._wake()

    def _wake(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):
            if self._wake_writer >= 0:
                os.write(self._wake_writer, b"\0")

    # -- the thread

    def run(self) -> None:
        try:
            self._open()
            self._serve()
        except BaseException as error:
            # Whatever it is, nobody may wait for ever.
            if not self.opened.done():
                self.opened.set_exception(driver_error(error))
        finally:
            self._bury()

    def _open(self) -> None:
        self._process = FamilyWorker(self._compiler, self._threads)
        self.opened.set_result(self._process.wait_until_open())

    def _serve(self) -> None:
        process = self._process
        assert process is not None
        looked = 0.0
        while True:
            waiter = poll()
            waiter.register(self._wake_reader, POLLIN)
            waiter.register(process.fileno(), POLLIN | POLLOUT if process.wants_write else POLLIN)
            events = dict(waiter.poll(MEMORY_INTERVAL * 1000 if self._pending else None))
            if self._wake_reader in events:
                os.read(self._wake_reader, 1 << 12)
            with self._lock:
                process.flush()
                answers = process.receive()
                done = [(self._pending.pop(a.request, None), a) for a in answers if not isinstance(a, Opened)]
                oldest = min((sent for _, sent in self._pending.values()), default=None)
                stopping = self._stopping
            for entry, answer in done:
                if entry is not None:
                    entry[0].set_result(answer)
            if process.ended or stopping:
                return
            now = time.monotonic()
            if oldest is not None and now - oldest > self._limits.seconds:
                self._killed = f"no answer in {self._limits.seconds:g} seconds"
                return
            if oldest is not None and now - looked > MEMORY_INTERVAL:
                looked = now
                if process.resident_bytes > self._limits.memory:
                    self._killed = f"more than {self._limits.memory >> 20} MiB of memory"
                    return

    def _bury(self) -> None:
        process = self._process
        with self._lock:
            self.ended = True
            pending = [future for future, _ in self._pending.values()]
            self._pending.clear()
        how, output = "not started", ""
        if process is not None:
            how = process.close(kill=bool(self._killed or pending))
            output = process.output
        for future in pending:
            future.set_exception(ProcessEndedError(self._killed or how, output))
        with self._lock:
            os.close(self._wake_reader)
            os.close(self._wake_writer)
            self._wake_writer = -1
        self.finished.set()
