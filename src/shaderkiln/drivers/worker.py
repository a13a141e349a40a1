"""The process that holds a driver: ``python -m shaderkiln.drivers.worker FD DRIVER [--memory BYTES]``.

It reads requests from the socket FD and answers them in order until the other end closes; then it destroys everything and exits
with status 0. It may be killed at any time. It leaves no core dump, ignores SIGINT (its parent decides), and dies with the
thread that started it.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Protocol

from shaderkiln.drivers.bindings import ffi
from shaderkiln.drivers.device import Device
from shaderkiln.drivers.icd import Driver
from shaderkiln.drivers.physical_device import PhysicalDevice
from shaderkiln.drivers.pipelines import Pipelines
from shaderkiln.drivers.protocol import (
    MAXIMUM_FRAME,
    Answer,
    Compile,
    Define,
    Failed,
    Forget,
    Inspect,
    Open,
    Opened,
    Recreate,
    Request,
    decode_request,
    frame,
)
from shaderkiln.errors import InvalidArgumentError, ShaderkilnError

_PR_SET_PDEATHSIG = 1


class Session:
    """One device and the requests to it, without the transport."""

    def __init__(self, driver_path: str) -> None:
        self._driver_path = driver_path
        self._physical: PhysicalDevice | None = None
        self._device: Device | None = None
        self._pipelines: Pipelines | None = None

    def handle(self, request: Request) -> Answer | None:
        """The answer, ``Failed`` for any error."""
        number = getattr(request, "request", 0)
        try:
            return self._handle(request)
        except ShaderkilnError as error:
            return Failed(request=number, code=error.code, message=str(error))
        except MemoryError:
            return Failed(request=number, code="VK_ERROR_OUT_OF_HOST_MEMORY", message="the worker has no memory left")
        except Exception as error:
            return Failed(request=number, code="E_FAIL", message=f"{type(error).__name__}: {error}")

    def _handle(self, request: Request) -> Answer | None:
        if isinstance(request, Open):
            return self._open(request)
        pipelines = self._pipelines
        if pipelines is None:
            if isinstance(request, (Define, Forget)):
                return None
            raise InvalidArgumentError("no device is open")
        match request:
            case Compile():
                return pipelines.compile(request.request, request.pipeline, request.keep)
            case Recreate():
                return pipelines.recreate(request.request, request.pipeline, request.values)
            case Inspect():
                return pipelines.inspect(request.request, request.pipeline, request.representations)
            case Define():
                pipelines.objects.define(request.kind, request.handle, request.description)
                return None
            case Forget():
                pipelines.forget()
                return None

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
        device = self._device = Device(physical, request.features)
        pipelines = self._pipelines = Pipelines(device)
        return Opened(
            capabilities=device.restrict(capabilities, pipelines.object_code_form),
            global_key=device.global_key(),
            seconds=perf_counter() - started,
        )

    def close(self) -> None:
        """Destroy everything that was created."""
        if self._pipelines is not None:
            self._pipelines.forget()
        if self._device is not None:
            self._device.destroy()
        if self._physical is not None:
            self._physical.destroy()
        self._pipelines = self._device = self._physical = None


class Handler(Protocol):
    """What answers requests."""

    def handle(self, request: Request) -> Answer | None:
        """The answer; None for a request that has none."""


def serve(connection: socket.socket, session: Handler) -> None:
    """Answer frames until the connection ends."""
    while (payload := _receive_frame(connection)) is not None:
        answer = session.handle(decode_request(payload))
        if answer is not None:
            connection.sendall(frame(answer))


def _receive_frame(connection: socket.socket) -> bytearray | None:
    header = _receive(connection, 4)
    if header is None:
        return None
    length = int.from_bytes(header, "little")
    if length > MAXIMUM_FRAME:
        raise InvalidArgumentError(f"a frame of {length} bytes")
    return _receive(connection, length)


def _receive(connection: socket.socket, length: int) -> bytearray | None:
    """Exactly so many bytes, or None at the end of the connection."""
    data = bytearray(length)
    view = memoryview(data)
    done = 0
    while done < length:
        count = connection.recv_into(view[done:])
        if count == 0:
            return None
        done += count
    return data


def isolate(memory: int = 0) -> None:
    """Leave no core dump, ignore SIGINT, die with the parent's thread; ``memory`` limits private data in bytes, 0: no limit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    # A parent that died before this call shows as the end of the connection.
    library: Any = ffi.dlopen(None)
    library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def main(arguments: Sequence[str] | None = None) -> int:
    gc.set_threshold(50_000, 20, 20)  # messages hold no cycles
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) not in (2, 4) or not given[0].isdigit() or given[2:3] not in ([], ["--memory"]):
        sys.stderr.write("usage: python -m shaderkiln.drivers.worker SOCKET DRIVER [--memory BYTES]\n")
        return 2
    isolate(int(given[3]) if len(given) == 4 else 0)
    session = Session(given[1])
    with socket.socket(fileno=int(given[0])) as connection:
        try:
            serve(connection, session)
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
