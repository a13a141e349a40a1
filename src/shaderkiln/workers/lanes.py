"""The driver of a device: worker processes with threads of their own, which any thread may ask."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from queue import SimpleQueue

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.drivers.protocol import Compile, Inspect, Recreate
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.keys import ObjectKey
from shaderkiln.workers.opening import driver_error
from shaderkiln.workers.pool import Limits, Result, Task, WorkerPool

_Queue = SimpleQueue["tuple[Task, Future[Result]] | None"]


class WorkerLanes:
    """Lanes, each a thread with one worker process, that take requests from one queue.

    Nothing is started before the first request, and another lane only when all are busy. A worker that has ended is replaced by a
    new one at the next request.
    """

    def __init__(self, compiler: FamilyCompiler, *, workers: int, limits: Limits | None = None) -> None:
        self._compiler = compiler
        self._workers = max(1, workers)
        self._limits = limits
        self._lock = threading.Lock()
        self._lanes: list[threading.Thread] = []
        self._outstanding = 0
        self._queue: _Queue = SimpleQueue()
        self._closed = False

    def ask(self, description: PipelineDescription, key: ObjectKey, request: Compile | Recreate | Inspect) -> Result:
        """The driver's answer, or the death of its worker, to one request about one pipeline.

        Raises DriverError where no worker can be started, InvalidArgumentError once it is closed.
        """
        future: Future[Result] = Future()
        with self._lock:
            if self._closed:
                raise InvalidArgumentError("the device is closed")
            self._outstanding += 1
            if len(self._lanes) < min(self._outstanding, self._workers):
                self._start_lane()
            self._queue.put((Task(description, key, request), future))
        try:
            return future.result()
        finally:
            with self._lock:
                self._outstanding -= 1

    def close(self) -> None:
        """End the workers when what was asked for is done; may be called again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for _ in self._lanes:
                self._queue.put(None)
        for lane in self._lanes:
            lane.join()

    def _start_lane(self) -> None:
        # A worker ends with the thread that started it, so it must not be the caller's.
        lane = threading.Thread(target=_serve, args=(self._compiler, self._limits, self._queue), daemon=True)
        lane.start()
        self._lanes.append(lane)
        weakref.finalize(self, self._queue.put, None)


def _serve(compiler: FamilyCompiler, limits: Limits | None, queue: _Queue) -> None:
    in_hand: tuple[Task, Future[Result]] | None = None
    ended = False

    def tasks(first: tuple[Task, Future[Result]]) -> Iterator[Task | None]:
        nonlocal in_hand, ended
        item: tuple[Task, Future[Result]] | None = first
        while item is not None:
            in_hand = item
            yield item[0]
            while in_hand is not None:
                yield None
            item = queue.get()
        ended = True

    while not ended:
        # Nothing is started, and no command of a worker made, before it is needed.
        item = queue.get()
        if item is None:
            return
        try:
            with WorkerPool(compiler, workers=1, limits=limits, one_source=False) as pool:
                for _, result in pool.run(tasks(item)):
                    assert in_hand is not None
                    (_, future), in_hand = in_hand, None
                    future.set_result(result)
        except BaseException as error:
            # Whatever it is, nobody may wait for ever.
            _, future = in_hand or item
            in_hand = None
            if not future.done():
                future.set_exception(driver_error(error))
