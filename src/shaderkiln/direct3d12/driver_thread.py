"""The driver of a device: worker processes with a thread of their own, which any thread may ask."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.compilers.pool import Limits, Result, Task, WorkerPool
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.drivers.protocol import Compile, Inspect, Open, Opened, Recreate
from shaderkiln.errors import DriverError, InvalidArgumentError
from shaderkiln.keys import ObjectKey

_Queue = SimpleQueue["tuple[Task, Future[Result]] | None"]


class DriverThread:
    """Starts nothing before the first request. A worker that has ended is replaced by a new one at the next request."""

    def __init__(self, compiler: FamilyCompiler, *, workers: int, limits: Limits | None = None) -> None:
        self._compiler = compiler
        self._workers = workers
        self._limits = limits
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._queue: _Queue = SimpleQueue()
        self._closed = False

    def ask(
        self, description: PipelineDescription, key: ObjectKey, request: Callable[[int], Compile | Recreate | Inspect]
    ) -> Result:
        """The driver's answer, or the death of its worker, to one request about one pipeline.

        Raises DriverError where no worker can be started, InvalidArgumentError once it is closed.
        """
        future: Future[Result] = Future()
        with self._lock:
            if self._closed:
                raise InvalidArgumentError("the device is closed")
            if self._thread is None:
                # A worker ends with the thread that started it, so it must not be the caller's.
                self._thread = threading.Thread(
                    target=_serve, args=(self._compiler, self._workers, self._limits, self._queue), daemon=True
                )
                self._thread.start()
                weakref.finalize(self, self._queue.put, None)
            self._queue.put((Task(description, key, request), future))
        return future.result()

    def close(self) -> None:
        """End the workers when what was asked for is done; may be called again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
            self._queue.put(None)
        if thread is not None:
            thread.join()


def _serve(compiler: FamilyCompiler, workers: int, limits: Limits | None, queue: _Queue) -> None:
    # By the request's own function, which a second try of the pool keeps.
    waiting: dict[int, tuple[Task, Future[Result]]] = {}
    ended = False

    def tasks(first: tuple[Task, Future[Result]]) -> Iterator[Task | None]:
        nonlocal ended
        waiting[id(first[0].request)] = first
        yield first[0]
        while True:
            try:
                item = queue.get(block=not waiting)
            except Empty:
                yield None
                continue
            if item is None:
                ended = True
                return
            waiting[id(item[0].request)] = item
            yield item[0]

    while not ended:
        # Nothing is started, and no command of a worker made, before it is needed.
        item = queue.get()
        if item is None:
            return
        try:
            with WorkerPool(
                compiler.worker_command(),
                Open(compiler.identity.features),
                workers=workers,
                limits=limits,
                on_open=lambda opened: _check(compiler, opened),
            ) as pool:
                for task, result in pool.run(tasks(item)):
                    waiting.pop(id(task.request))[1].set_result(result)
        except BaseException as error:
            # Whatever it is, nobody may wait for ever.
            code = error.code if isinstance(error, DriverError) else None
            for _, future in waiting.values():
                future.set_exception(DriverError(str(error) or type(error).__name__, code=code))
            waiting.clear()


def _check(compiler: FamilyCompiler, opened: Opened) -> None:
    """The driver that the workers hold must be the one whose identity was compared with that of the object code."""
    expected = compiler.identity
    if opened.global_key != expected.global_key or opened.capabilities.cache_uuid != expected.cache_uuid:
        raise DriverError(f"the driver of {expected.family} is not the one that was asked before; create the device again")
