"""Worker processes side by side: each request has a time and a memory limit, and a process that dies takes one pipeline with it."""

from __future__ import annotations

import selectors
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct, field, structs

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.drivers.protocol import Answer, Compile, Failed, Inspect, Opened, Recreate
from shaderkiln.endings import Ending, death_text
from shaderkiln.errors import DriverError, InvalidArgumentError
from shaderkiln.keys import ObjectKey
from shaderkiln.system.processes import usable_processors
from shaderkiln.workers.definitions import Definitions
from shaderkiln.workers.opening import START_SECONDS, FamilyWorker

PREFETCH = 2
"""Requests sent to a worker at once, so that it never waits for the parent."""
MEMORY_INTERVAL = 0.2
"""Seconds between two looks at the workers' memory."""
STANDSTILL_SECONDS = 2.0
"""A pool that did not run for longer than that was stopped, perhaps with its workers; that time counts against no pipeline."""
FROM_OUTSIDE = frozenset({"SIGKILL", "SIGTERM", "SIGHUP"})
"""Signals that somebody else sends: the system that runs out of memory, or a person."""
START_ATTEMPTS = 3
WORTH_SECONDS = 0.8
"""Another worker is started only if the work that is left would keep those that there are busy for longer: starting costs CPU."""
UNKNOWN_SECONDS = 0.3
"""Nothing is known before the first result; after so long without one, more workers are started anyway."""


class Limits(Struct, frozen=True):
    """What one pipeline may take before its worker is killed."""

    seconds: float = 120.0
    memory: int = 4 << 30
    """Bytes of resident memory of the worker."""


class Task(Struct, frozen=True):
    """One request about one pipeline."""

    description: PipelineDescription
    object_key: ObjectKey
    request: Compile | Recreate | Inspect
    """The message; the pool gives it its number."""
    cost: int = 1
    """Expected effort, in the unit of the pool's ``cost_left``."""
    alone: bool = False
    """Run it as the first and only request of a new worker."""


class Death(Struct, frozen=True):
    """The worker died, or had to be killed, with this task in hand."""

    ending: Ending
    signal: str
    output: str
    seconds: float

    def text(self, driver_build: str) -> str:
        """How the pipeline ended the worker, in words."""
        return death_text(self.ending, self.signal, driver_build)


Result: TypeAlias = Answer | Death


class _Slot(Struct):
    process: FamilyWorker
    started: float
    definitions: Definitions
    completed: int = 0
    queue: deque[tuple[int, Task]] = field(default_factory=deque)
    """Requests sent and not answered; the first one is in hand."""
    in_hand_since: float = 0.0
    killed_for: Ending | None = None


class WorkerPool:
    """Runs tasks on up to ``workers`` processes, which are started when there is work and not before.

    A pipeline that kills a worker, or is in hand when the worker has taken too much memory, is tried once more, alone in a new
    process, if the worker had other pipelines before, or got a signal from outside: nothing is blamed for what an earlier pipeline
    or somebody else did.
    """

    def __init__(
        self,
        compiler: FamilyCompiler,
        *,
        workers: int | None = None,
        limits: Limits | None = None,
        cost_left: Callable[[], int] | None = None,
        on_wait: Callable[[], None] | None = None,
        one_source: bool = True,
    ) -> None:
        """``on_wait`` is called now and then while workers are busy, whether or not a result comes. ``one_source`` as in
        ``Definitions``."""
        self._compiler = compiler
        self._one_source = one_source
        self._size = max(1, workers or usable_processors())
        self._limits = limits or Limits()
        self._cost_left = cost_left
        self._on_wait = on_wait
        self._cost_done = 0
        self._busy_seconds = 0.0
        self._slots: list[_Slot] = []
        self._selector = selectors.DefaultSelector()
        self._next_request = 0
        self._start_failures = 0
        self._stopping = False
        self._memory_checked = 0.0
        self._looked = 0.0

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def stop(self) -> None:
        """No new task is started; what is in hand is finished. Safe to call from a signal handler."""
        self._stopping = True

    @property
    def in_hand(self) -> tuple[PipelineDescription, ...]:
        """The pipelines that workers are busy with now."""
        return tuple(slot.queue[0][1].description for slot in self._slots if slot.queue)

    @property
    def longest_in_hand(self) -> float:
        """Seconds since a worker got the pipeline that is in hand longest; 0 if none is."""
        now = time.monotonic()
        return max((now - slot.in_hand_since for slot in self._slots if slot.queue and slot.process.opened), default=0.0)

    def run(self, tasks: Iterator[Task | None]) -> Iterator[tuple[Task, Result]]:
        """Yields each task with its result, in the order in which they come.

        ``tasks`` is read as workers get free; a None in it lets the pool look after its workers. Raises DriverError if no worker
        can be started.
        """
        again: deque[Task] = deque()
        exhausted = False
        self._looked = time.monotonic()
        while True:
            while not self._stopping and (slot := self._free_slot(again)):
                task = again.popleft() if again else None if exhausted else next(tasks, _END)
                if task is _END:
                    exhausted = True
                    continue
                if not isinstance(task, Task):
                    break
                try:
                    self._submit(slot(task), task)
                except InvalidArgumentError as error:
                    yield task, Failed(0, error.code, f"cannot be sent to a worker: {error}")
            # Once it is to stop, nobody waits for a worker that has not begun.
            busy = [slot for slot in self._slots if slot.queue and (slot.process.opened or not self._stopping)]
            if not busy and (self._stopping or (exhausted and not again)):
                return
            yield from self._wait(0.0 if not busy else self._pause(), again)
            if busy and self._on_wait:
                self._on_wait()

    def close(self) -> None:
        """Ends every worker: politely where it is idle, by force where it is busy."""
        for slot in self._slots:
            self._selector.unregister(slot.process.fileno())
            slot.process.close(kill=bool(slot.queue) or not slot.process.opened)
        self._slots.clear()
        self._selector.close()

    # -- choosing and feeding workers

    def _free_slot(self, again: deque[Task]) -> Callable[[Task], _Slot] | None:
        """How to get a worker for one more task, or None if all have enough to do."""
        if again and again[0].alone:
            return self._new_slot_for_alone() if len(self._slots) < self._size or self._idle() else None
        idle = self._idle()
        if idle:
            return lambda _task: idle
        if len(self._slots) < self._size and self._another_is_worth_it():
            return lambda _task: self._start()
        fed = [
            slot for slot in self._slots if len(slot.queue) < PREFETCH and not slot.queue[0][1].alone and slot.process.opened
        ]
        if fed:
            slot = min(fed, key=lambda s: len(s.queue))
            return lambda _task: slot
        return None

    def _another_is_worth_it(self) -> bool:
        if not self._slots or self._cost_left is None:
            return True
        if not self._cost_done:
            opened = [slot for slot in self._slots if slot.process.opened]
            return bool(opened) and time.monotonic() - opened[0].in_hand_since > UNKNOWN_SECONDS
        expected = self._busy_seconds / self._cost_done * self._cost_left() / len(self._slots)
        return expected > WORTH_SECONDS

    def _idle(self) -> _Slot | None:
        return next((slot for slot in self._slots if not slot.queue), None)

    def _new_slot_for_alone(self) -> Callable[[Task], _Slot]:
        def make(_task: Task) -> _Slot:
            if len(self._slots) >= self._size and (idle := self._idle()):
                self._end(idle)
            return self._start()

        return make

    def _start(self) -> _Slot:
        process = FamilyWorker(self._compiler)
        slot = _Slot(process, time.monotonic(), Definitions(one_source=self._one_source))
        self._slots.append(slot)
        self._selector.register(process.fileno(), selectors.EVENT_READ, slot)
        return slot

    def _end(self, slot: _Slot) -> None:
        self._slots.remove(slot)
        self._selector.unregister(slot.process.fileno())
        slot.process.close()

    def _submit(self, slot: _Slot, task: Task) -> None:
        for message in slot.definitions.messages(task.description):
            slot.process.send(message)
        self._next_request += 1
        slot.process.send(structs.replace(task.request, request=self._next_request))
        if not slot.queue:
            slot.in_hand_since = time.monotonic()
        slot.queue.append((self._next_request, task))

    # -- looking after workers

    def _pause(self) -> float:
        now = time.monotonic()
        deadlines = [self._deadline(slot) - now for slot in self._slots if slot.queue]
        if len(self._slots) < self._size and not self._cost_done:
            deadlines.append(UNKNOWN_SECONDS / 4)
        return max(0.0, min([MEMORY_INTERVAL, *deadlines]))

    def _deadline(self, slot: _Slot) -> float:
        if not slot.process.opened:
            return slot.started + START_SECONDS
        return slot.in_hand_since + self._limits.seconds

    def _wait(self, timeout: float, again: deque[Task]) -> Iterator[tuple[Task, Result]]:
        for slot in self._slots:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if slot.process.wants_write else 0)
            if self._selector.get_key(slot.process.fileno()).events != wanted:
                self._selector.modify(slot.process.fileno(), wanted, slot)
        for key, events in self._selector.select(timeout):
            slot = key.data
            if events & selectors.EVENT_WRITE:
                slot.process.flush()
            if events & selectors.EVENT_READ:
                yield from self._receive(slot, again)
        self._enforce_limits()

    def _receive(self, slot: _Slot, again: deque[Task]) -> Iterator[tuple[Task, Result]]:
        was_open = slot.process.opened
        answers = slot.process.receive()
        if slot.process.opened is not was_open:
            slot.in_hand_since = time.monotonic()
            self._start_failures = 0
        for answer in answers:
            assert not isinstance(answer, Opened)
            if isinstance(answer, Failed) and not answer.request:
                continue  # an object that could not be defined: the pipelines that need it fail and say so
            if not slot.queue or answer.request != slot.queue[0][0]:
                in_hand = slot.queue[0][0] if slot.queue else "none"
                raise DriverError(f"the worker answered request {answer.request} while {in_hand} was in hand")
            _, task = slot.queue.popleft()
            slot.completed += 1
            now = time.monotonic()
            self._busy_seconds += now - slot.in_hand_since
            self._cost_done += task.cost
            slot.in_hand_since = now
            yield task, answer
        if slot.process.ended:
            yield from self._bury(slot, again)

    def _bury(self, slot: _Slot, again: deque[Task]) -> Iterator[tuple[Task, Result]]:
        self._slots.remove(slot)
        self._selector.unregister(slot.process.fileno())
        signal = slot.process.close(kill=True)
        output = slot.process.output
        waiting = [task for _, task in slot.queue]
        if not slot.process.opened:
            self._start_failures += 1
            if slot.killed_for or self._start_failures >= START_ATTEMPTS:
                last = f"it did not open one in {START_SECONDS:g} seconds. " if slot.killed_for else ""
                raise DriverError(
                    f"the driver's worker ends before its device is open ({signal}): {last}{output or 'it wrote nothing'}"
                )
            again.extendleft(reversed(waiting))
            return
        if not waiting:
            return
        blamed, others = waiting[0], waiting[1:]
        again.extendleft(reversed(others))
        ending = slot.killed_for or Ending.CRASHED
        doubtful = slot.completed or (slot.killed_for is None and signal in FROM_OUTSIDE)
        if ending is not Ending.TIMED_OUT and doubtful and not blamed.alone:
            again.appendleft(structs.replace(blamed, alone=True))
            return
        yield blamed, Death(ending, signal, output, time.monotonic() - slot.in_hand_since)

    def _enforce_limits(self) -> None:
        now = time.monotonic()
        passed = now - self._looked
        self._looked = now
        if passed > STANDSTILL_SECONDS:
            for slot in self._slots:
                slot.started += passed
                slot.in_hand_since = min(slot.in_hand_since + passed, now)
        for slot in self._slots:
            if slot.queue and slot.killed_for is None and now >= self._deadline(slot):
                slot.killed_for = Ending.TIMED_OUT
                slot.process.kill()
        if now - self._memory_checked < MEMORY_INTERVAL:
            return
        self._memory_checked = now
        for slot in self._slots:
            if slot.queue and slot.killed_for is None and slot.process.resident_bytes > self._limits.memory:
                slot.killed_for = Ending.OUT_OF_MEMORY
                slot.process.kill()


_END = object()
