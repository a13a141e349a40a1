"""The process that holds a driver: ``python -m shaderkiln.drivers.worker FD DRIVER [--memory BYTES]``.

It reads requests from the socket FD and answers them in order until the other end closes; then it destroys everything and exits
with status 0. It may be killed at any time. It leaves no core dump, ignores SIGINT (its parent decides), and dies with the
thread that started it.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from shaderkiln.drivers.caches import PipelineCaches
from shaderkiln.drivers.frames import frame, receive_payload
from shaderkiln.drivers.icd import Driver
from shaderkiln.drivers.logical_device import LogicalDevice
from shaderkiln.drivers.physical_device import PhysicalDevice
from shaderkiln.drivers.pipelines import Pipelines
from shaderkiln.drivers.protocol import (
    Answer,
    Compile,
    Create,
    CreateCache,
    Define,
    DestroyCache,
    Done,
    Forget,
    Inspect,
    MergeCaches,
    Open,
    Opened,
    ReadCache,
    Recreate,
    Request,
    decode_request,
    guarded,
)
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.system.limits import end_with_parent, leave_no_core_dump, limit_memory

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class Session:
    """One device and the requests to it, without the transport.

    ``send`` takes the answers of requests that are carried out by threads (``Open.threads``); without it there are none.
    """

    def __init__(self, driver_path: str, send: Callable[[Answer], None] | None = None) -> None:
        self._driver_path = driver_path
        self._send = send
        self._threads: ThreadPoolExecutor | None = None
        self._in_flight: Counter[int] = Counter()
        """Requests that threads have, by the number of their cache."""
        self._changed = threading.Condition()
        self._caches: PipelineCaches | None = None
        self._physical: PhysicalDevice | None = None
        self._device: LogicalDevice | None = None
        self._pipelines: Pipelines | None = None

    def handle(self, request: Request) -> Answer | None:
        """The answer, ``Failed`` for any error."""
        return guarded(getattr(request, "request", 0), lambda: self._handle(request))

    def _handle(self, request: Request) -> Answer | None:
        if isinstance(request, Open):
            return self._open(request)
        pipelines, caches = self._pipelines, self._caches
        if pipelines is None or caches is None:
            if isinstance(request, (Define, Forget)):
                return None
            raise InvalidArgumentError("no device is open")
        match request:
            case Compile():
                return pipelines.compile(request.request, request.pipeline, request.keep, request.as_cache)
            case Recreate():
                return pipelines.recreate(request.request, request.pipeline, request.values)
            case Inspect():
                return pipelines.inspect(request.request, request.pipeline, request.representations)
            case Define():
                pipelines.objects.define(request.kind, request.handle, request.description)
                return None
            case Forget():
                self._wait()
                pipelines.forget()
                return None
            case Create():
                cache = caches.handle(request.cache)
                create = partial(pipelines.create, request.request, request.pipeline, cache, request.compiling_forbidden)
                if self._threads is None:
                    return create()
                with self._changed:
                    self._in_flight[request.cache] += 1
                self._threads.submit(self._in_thread, request, create)
                return None
            case CreateCache():
                caches.create(request.cache, request.data, request.flags)
            case DestroyCache():
                self._wait(request.cache)
                caches.destroy(request.cache)
            case MergeCaches():
                self._wait(request.destination)
                caches.merge(request.destination, request.sources)
            case ReadCache():
                return caches.read(request)
        return Done(request=request.request)

    def _in_thread(self, request: Create, create: Callable[[], Answer]) -> None:
        answer = guarded(request.request, create)
        with self._changed:
            self._in_flight[request.cache] -= 1
            self._changed.notify_all()
        if self._send is not None and answer is not None:
            self._send(answer)

    def _wait(self, cache: int | None = None) -> None:
        """Until no thread uses that cache, or none has anything to do."""
        with self._changed:
            self._changed.wait_for(lambda: not (any(self._in_flight.values()) if cache is None else self._in_flight[cache]))

    def _open(self, request: Open) -> Opened:
        if self._device is not None:
            raise InvalidArgumentError("a device is already open")
        started = perf_counter()
        if self._physical is not None:
            self._physical.destroy()
            self._physical = None
        physical = self._physical = PhysicalDevice(Driver(self._driver_path), request.device_index)
        capabilities = physical.capabilities()
        if not request.create_device:
            return Opened(capabilities=capabilities, global_key=b"", seconds=perf_counter() - started)
        device = self._device = LogicalDevice(physical, request.features)
        pipelines = self._pipelines = Pipelines(device)
        self._caches = PipelineCaches(device)
        if request.threads > 0 and self._send is not None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(request.threads)
        return Opened(
            capabilities=device.restrict(capabilities, pipelines.object_code_form),
            global_key=device.global_key(),
            seconds=perf_counter() - started,
        )

    def close(self) -> None:
        """Destroy everything that was created."""
        if self._threads is not None:
            self._threads.shutdown()
        if self._caches is not None:
            self._caches.destroy_all()
        if self._pipelines is not None:
            self._pipelines.forget()
        if self._device is not None:
            self._device.destroy()
        if self._physical is not None:
            self._physical.destroy()
        self._pipelines = self._caches = self._device = self._physical = None


class Handler(Protocol):
    """What answers requests."""

    def handle(self, request: Request) -> Answer | None:
        """The answer; None for a request that has none."""


class Sender:
    """Sends answers as frames, from any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def __call__(self, answer: Answer) -> None:
        data = frame(answer)
        with self._lock:
            self._connection.sendall(data)


def serve(connection: socket.socket, session: Handler, send: Callable[[Answer], None] | None = None) -> None:
    """Answer frames until the connection ends; ``send`` takes the answers instead of the connection."""
    send = send or Sender(connection)
    while (payload := receive_payload(connection)) is not None:
        answer = session.handle(decode_request(payload))
        if answer is not None:
            send(answer)


def isolate(memory: int = 0) -> None:
    """Leave no core dump, ignore SIGINT, die with the parent's thread; ``memory`` limits private data in bytes, 0: no limit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    leave_no_core_dump()
    if memory:
        limit_memory(memory)
    end_with_parent()


def main(arguments: Sequence[str] | None = None) -> int:
    gc.set_threshold(50_000, 20, 20)  # messages hold no cycles
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) not in (2, 4) or not given[0].isdigit() or given[2:3] not in ([], ["--memory"]):
        sys.stderr.write("usage: python -m shaderkiln.drivers.worker SOCKET DRIVER [--memory BYTES]\n")
        return 2
    isolate(int(given[3]) if len(given) == 4 else 0)
    with socket.socket(fileno=int(given[0])) as connection:
        send = Sender(connection)
        session = Session(given[1], send)
        try:
            serve(connection, session, send)
        except (ConnectionError, BrokenPipeError):
            pass  # the parent is gone; nobody waits for an answer
        finally:
            session.close()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # Everything of the driver's is destroyed; taking the interpreter apart object by object would only take time.
    os._exit(code)
