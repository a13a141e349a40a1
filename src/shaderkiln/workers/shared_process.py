"""The driver of a device: one worker process whose threads create pipelines side by side, which any thread may ask."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from concurrent.futures import Future
from select import POLLIN, POLLOUT, poll

from msgspec import Struct, structs

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.drivers.client import WorkerProcess
from shaderkiln.drivers.protocol import Answer, Define, Failed, Forget, NumberedRequest, Open, Opened
from shaderkiln.errors import DriverError, ShaderkilnError
from shaderkiln.system.processes import resident_bytes
from shaderkiln.vulkan_registry.handles import Handle
from shaderkiln.vulkan_registry.structures import ShaderModuleCreateInfo
from shaderkiln.workers.pool import DEFINED_BYTES, MEMORY_INTERVAL, START_SECONDS, Limits


class ProcessEndedError(DriverError):
    """The driver's process ended, or had to be ended, before it answered; ``output`` is the last of what it wrote."""

    def __init__(self, how: str, output: str) -> None:
        super().__init__(f"the driver's process ended ({how})" + (f": {output}" if output else ""))
        self.how = how
        self.output = output


class DriverProcess:
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
    """The state that the thread and the callers share; the thread does not keep the ``DriverProcess`` alive."""

    def __init__(self, compiler: FamilyCompiler, threads: int, limits: Limits) -> None:
        self._compiler = compiler
        self._threads = threads
        self._limits = limits
        self.opened: Future[Opened] = Future()
        self.finished = threading.Event()
        self.ended = False
        self._lock = threading.Lock()
        """Held for every use of the process and of what stands below."""
        self._process: WorkerProcess | None = None
        self._pending: dict[int, tuple[Future[Answer], float]] = {}
        self._last_request = 0
        self._stopping = False
        self._known: dict[Handle, Struct] = {}
        self._known_bytes = 0
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
                self._define(process, description)
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

    def _define(self, process: WorkerProcess, description: PipelineDescription) -> None:
        """Tell the worker what the description's handles mean, after it forgot them all where one meant something else."""
        objects = description.objects
        known = self._known
        new: dict[Handle, Struct] | None = {}
        for handle in objects:
            meaning = objects[handle]
            before = known.get(handle)
            if before is None and new is not None:
                new[handle] = meaning
            elif before is not meaning and before != meaning:
                new = None
                break
        if new is None or self._known_bytes > DEFINED_BYTES:
            # The worker finishes what is in hand with the old ones first.
            process.send(Forget())
            known.clear()
            self._known_bytes = 0
            new = {handle: objects[handle] for handle in objects}
        for handle, meaning in new.items():
            process.send(Define(type(handle).__name__, handle.value, meaning))  # type: ignore[arg-type]
            known[handle] = meaning
            self._known_bytes += len(meaning.code) if isinstance(meaning, ShaderModuleCreateInfo) else 512

    # -- the thread

    def run(self) -> None:
        try:
            self._open()
            self._serve()
        except BaseException as error:
            # Whatever it is, nobody may wait for ever.
            if not self.opened.done():
                code = error.code if isinstance(error, ShaderkilnError) else None
                self.opened.set_exception(DriverError(str(error) or type(error).__name__, code=code))
        finally:
            self._bury()

    def _open(self) -> None:
        command = self._compiler.worker_command()
        process = WorkerProcess(command.arguments, command.environment)
        self._process = process
        expected = self._compiler.identity
        answer = process.ask(Open(expected.features, threads=self._threads), START_SECONDS)
        if isinstance(answer, Failed):
            raise DriverError(f"the driver cannot open a device: {answer.message}", code=answer.code)
        assert isinstance(answer, Opened)
        if answer.global_key != expected.global_key or answer.capabilities.cache_uuid != expected.cache_uuid:
            raise DriverError(f"the driver of {expected.family} is not the one that was asked before; open the device again")
        self.opened.set_result(answer)

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
                if resident_bytes(process.pid) > self._limits.memory:
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
