"""What every job does: it walks the pipelines of a source, has workers do what there is to do, and tells how it goes.

What there is to do with one pipeline is the matter of a ``Pass``; a job makes one or several.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.descriptions.pipeline import PipelineKind, UnsupportedPipelineError
from shaderkiln.descriptions.unmet import Unmet
from shaderkiln.drivers.protocol import Failed
from shaderkiln.errors import ShaderkilnError
from shaderkiln.jobs.progress import Progress
from shaderkiln.jobs.verdicts import Outcome, Tally, Verdict, doubt_text, unsupported
from shaderkiln.sources.source import Source
from shaderkiln.workers.pool import Death, Limits, Result, Task, WorkerPool


class Pass(Protocol):
    """Work on the pipelines of a source, one after the other."""

    def plan(self, kind: PipelineKind, hash: int, cost: int) -> Task | Verdict | None:
        """What a worker has to do; what becomes of the pipeline without one; or None if neither is to be told now."""

    def take(self, task: Task, result: Result) -> Iterable[tuple[Verdict, int]]:
        """Keeps a result, and gives the verdict on its pipeline, then on others that waited for it, each with its cost."""


class Report(Struct, frozen=True):
    """The end of a job."""

    path: Path
    """The PSDB."""
    tally: Tally
    interrupted: bool
    seconds: float
    total: int
    """Pipelines that there are; of an interrupted job not all of them are in the tally."""
    source_damage: tuple[str, ...]
    """Places of the source that are damaged; pipelines that were there are not in the tally."""

    @property
    def good(self) -> bool:
        """Whether every verdict is good, the source is whole, and nothing interrupted the job."""
        return self.tally.good and not self.source_damage and not self.interrupted


class Job:
    """One job on one source for one family. ``stop`` ends it early."""

    def __init__(
        self,
        source: Source,
        compiler: FamilyCompiler,
        *,
        workers: int | None,
        limits: Limits | None,
        only: Container[str] | None = None,
        on_verdict: Callable[[Verdict], None] | None,
        on_tick: Callable[[Progress], None] | None,
    ) -> None:
        """``only``: the names of the pipelines to work on; None: all."""
        self.progress = Progress()
        self._source = source
        self._compiler = compiler
        self._workers = workers
        self._limits = limits
        self._only = only
        self._on_verdict = on_verdict
        self._on_tick = on_tick
        self._tally = Tally()
        self._pool: WorkerPool | None = None
        self._stopped = False

    @property
    def family(self) -> str:
        """The adapter family, under the name by which it is known here."""
        return self._compiler.identity.family

    def stop(self) -> None:
        """Start nothing more; finish what is in hand. Safe to call from a signal handler."""
        self._stopped = True
        if self._pool:
            self._pool.stop()

    def _open_pool(self) -> WorkerPool:
        self._pool = WorkerPool(
            self._compiler,
            workers=self._workers,
            limits=self._limits,
            cost_left=lambda: self.progress.cost_total - self.progress.cost_done,
            on_wait=self._tick,
        )
        if self._stopped:
            self._pool.stop()
        return self._pool

    def _pipelines(self) -> Iterator[tuple[PipelineKind, int]]:
        """The pipelines to work on, in the order of the source."""
        for kind, hash in self._source.pipelines():
            if self._only is None or f"{hash:016x}" in self._only:
                yield kind, hash

    def _run(self, pool: WorkerPool, work: Pass, pipelines: Iterable[tuple[PipelineKind, int, int]]) -> None:
        """Does one pass over pipelines, which are given with what each adds to the progress."""
        for task, result in pool.run(self._tasks(work, pipelines)):
            for number, (verdict, cost) in enumerate(work.take(task, result)):
                self._report(verdict, cost, skipped=number > 0)
            self._tick()

    def _tasks(self, work: Pass, pipelines: Iterable[tuple[PipelineKind, int, int]]) -> Iterator[Task | None]:
        for kind, hash, cost in pipelines:
            if self._stopped:
                return
            planned = work.plan(kind, hash, cost)
            if isinstance(planned, Task):
                yield planned
                continue
            if planned is not None:
                self._report(planned, cost, skipped=True)
            self._tick()
            yield None

    def _report(self, verdict: Verdict, cost: int, *, skipped: bool) -> None:
        self._tally.add(verdict)
        self.progress.done += 1
        self.progress.cost_done += cost
        if skipped:
            self.progress.skipped += 1
            self.progress.cost_skipped += cost
        if self._on_verdict:
            self._on_verdict(verdict)

    def _tick(self) -> None:
        if self._on_tick:
            if self._pool:
                self.progress.in_hand = tuple(f"{d.kind} {d.name}" for d in self._pool.in_hand)
                self.progress.longest_in_hand = self._pool.longest_in_hand
            self._on_tick(self.progress)


def refused(pipeline: str, kind: PipelineKind, error: ShaderkilnError) -> Verdict:
    """The verdict on a pipeline that its source cannot give."""
    if isinstance(error, UnsupportedPipelineError):
        return unsupported(pipeline, kind, error.object_key, error.reasons)
    return Verdict(pipeline, kind, Outcome.FAILED, code=error.code, message=str(error))


def failed(task: Task, result: Result, driver_build: str, *, doubts: tuple[Unmet, ...] = (), doing: str = "") -> Verdict:
    """The verdict on a pipeline that got no answer to its request: an error, or the end of the worker while it was ``doing`` it.

    ``doubts`` is what the pipeline does and the device does not advertise.
    """
    name, kind, key = task.description.name, task.description.kind, task.object_key.hex()
    if isinstance(result, Death):
        return Verdict(
            name, kind, Outcome(result.ending), key, message=result.text(driver_build) + doing + doubt_text(doubts),
            reasons=doubts, signal=result.signal, output=result.output, driver_build=driver_build, seconds=result.seconds,
        )  # fmt: skip
    if isinstance(result, Failed):
        return Verdict(name, kind, Outcome.FAILED, key, result.code, result.message + doubt_text(doubts), doubts)
    return Verdict(name, kind, Outcome.FAILED, key, "E_FAIL", f"unexpected answer {type(result).__name__}")
