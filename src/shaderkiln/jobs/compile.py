"""The compile job: every pipeline of a capture, compiled for one family into one PSDB.

The way of a pipeline: load → object key → already there? → on the poison list? → can the family take it? → worker → PSDB.
What is done stays done: a job that was stopped or killed goes on where it was.
"""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec
from msgspec import Struct, field

from shaderkiln.compilers.plugin import OBJECT_VERSION, FamilyCompiler
from shaderkiln.compilers.value_keys import PIPELINE_BINARY, object_code_values
from shaderkiln.databases.psdb import DamagedValueError, Poison, PsdbBuilder
from shaderkiln.descriptions.pipeline import (
    Application,
    PipelineDescription,
    PipelineKind,
    UnsupportedPipelineError,
    has_shaders,
)
from shaderkiln.drivers.protocol import Compile, Compiled, Failed, Inspect, Inspected, Open, Opened
from shaderkiln.endings import death_text, signal_number
from shaderkiln.errors import CacheCorruptError, DriverError, InvalidArgumentError, ShaderkilnError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.jobs.statistics import statistics_value
from shaderkiln.jobs.verdicts import (
    Outcome,
    Reason,
    Tally,
    Verdict,
    doubt_text,
    reasons_of,
    remembered,
    unsupported,
)
from shaderkiln.keys import Group, ObjectKey, ValueKey, ValueType
from shaderkiln.workers.pool import Death, Limits, Result, Task, WorkerPool

COMMIT_SECONDS = 0.5
COMMIT_PIPELINES = 64
KINDS: tuple[PipelineKind, ...] = ("graphics", "compute", "raytracing")


class Source(Protocol):
    """Where pipelines come from: ``descriptions.capture.Capture``, ``compilers.sodb_source.StateObjectSource``.

    ``load`` raises UnsupportedPipelineError for what the source itself cannot express as a pipeline.
    """

    @property
    def application(self) -> Application: ...
    @property
    def damage(self) -> tuple[str, ...]: ...
    def pipelines(self) -> Iterator[tuple[PipelineKind, int]]: ...
    def load(self, kind: PipelineKind, hash: int) -> PipelineDescription: ...
    def cost(self, kind: PipelineKind, hash: int) -> int: ...
    def object_key(self, description: PipelineDescription) -> ObjectKey: ...


@runtime_checkable
class VersionedSource(Protocol):
    """A source that gives its objects versions."""

    def version(self, name: str) -> int: ...


def version_of(source: Source, name: str) -> int:
    """The version that a pipeline's group has, by the pipeline's name."""
    return source.version(name) if isinstance(source, VersionedSource) else OBJECT_VERSION


class JobOptions(Struct, frozen=True):
    """How a job works."""

    workers: int | None = None
    """Worker processes; None: one for each processor that this process may use."""
    limits: Limits = field(default_factory=Limits)
    retry_poisoned: bool = False
    """Try pipelines again that crashed the driver, or took too long or too much memory, before."""
    statistics: bool = False
    """Also store the driver's statistics as PERFORMANCE_DATA; each pipeline is compiled a second time for them."""
    pipeline_caches: bool = False
    """Also store what a VkPipelineCache holds of each pipeline, for ``kiln cache from-psdb``; compiled a second time where the
    driver has pipeline binaries."""
    strict: bool = False
    """Keep pipelines from the driver that do what the device does not advertise, even if they declare nothing of it."""
    replace: bool = False
    """Throw away what is there if it is damaged, or was made for or by somebody else."""
    only: Container[str] | None = None
    """Names of the pipelines to work on; None: all."""


class Progress(Struct):
    """What a job is doing, updated in place; read it from the ``on_verdict`` callback or between two results."""

    total: int = 0
    done: int = 0
    cost_total: int = 0
    cost_done: int = 0
    started: float = field(default_factory=time.monotonic)
    in_hand: tuple[str, ...] = ()
    skipped: int = 0
    """Those of ``done`` that no worker was asked for: reused, unsupported, or remembered."""
    cost_skipped: int = 0
    longest_in_hand: float = 0.0
    """Seconds since a worker got the pipeline that is in hand longest."""

    @property
    def seconds_left(self) -> float | None:
        """Estimate from what is done and what is left; None before a worker has done anything.

        A pipeline counts by its cost and, because each takes some time however small it is, as one of many. One that a worker has
        had for long is taken to need as long again.
        """
        if self.done >= self.total:
            return 0.0
        average = max(self.cost_total / self.total, 1.0)
        worked = self.cost_done - self.cost_skipped + average * (self.done - self.skipped)
        if self.done <= self.skipped:
            return None
        left = self.cost_total - self.cost_done + average * (self.total - self.done)
        elapsed = time.monotonic() - self.started
        return max(elapsed * left / worked, self.longest_in_hand)


class JobReport(Struct, frozen=True):
    """The end of a job."""

    path: Path
    tally: Tally
    interrupted: bool
    depends_on: tuple[str, ...]
    """Files whose change may change the outcome: the compiler's own."""
    differences: tuple[str, ...]
    """Values that came out differently from what was stored before: the driver's output is not deterministic."""
    seconds: float
    total: int = 0
    """Pipelines that there are to compile; of an interrupted job not all of them are in the tally."""
    source_damage: tuple[str, ...] = ()
    """Places of the source that are damaged; pipelines that were there are not in the tally."""

    @property
    def good(self) -> bool:
        """Whether every verdict is good, the source is whole, and nothing interrupted the job."""
        return self.tally.good and not self.source_damage and not self.interrupted


class _Planned(Struct):
    name: str
    kind: PipelineKind
    object_key: ObjectKey
    cost: int
    version: int
    has_shaders: bool
    """Without shaders of its own a pipeline may have no object code."""
    doubts: tuple[Reason, ...] = ()


class CompileJob:
    """Compiles a source for one family. ``stop`` ends it early and leaves a valid PSDB with what is done."""

    def __init__(
        self,
        source: Source,
        compiler: FamilyCompiler,
        path: Path,
        options: JobOptions | None = None,
        *,
        application: ApplicationIdentity | None = None,
        on_verdict: Callable[[Verdict], None] | None = None,
        on_tick: Callable[[Progress], None] | None = None,
    ) -> None:
        self.progress = Progress()
        self._source = source
        self._compiler = compiler
        self._path = path
        self._application = application or source.application.identity
        self._options = options or JobOptions()
        self._on_verdict = on_verdict
        self._on_tick = on_tick
        self._tally = Tally()
        self._pool: WorkerPool | None = None
        self._stopped = False
        self._planned: dict[ObjectKey, _Planned] = {}
        self._twins: defaultdict[ObjectKey, list[_Planned]] = defaultdict(list)
        self._died: set[ObjectKey] = set()

    @property
    def family(self) -> str:
        """The adapter family, under the name by which it is known here."""
        return self._compiler.identity.family

    def stop(self) -> None:
        """Start nothing more; finish what is in hand. Safe to call from a signal handler."""
        self._stopped = True
        if self._pool:
            self._pool.stop()

    def run(self) -> JobReport:
        """Compiles everything that is missing and writes the finished PSDB.

        Raises what ``PsdbBuilder`` raises for an output that cannot be used, DriverError if no worker can be started.
        """
        started = time.monotonic()
        identity = self._compiler.identity
        with (
            PsdbBuilder(self._path, identity, self._application, replace=self._options.replace, heal=True) as builder,
            WorkerPool(
                self._compiler.worker_command(),
                Open(identity.features),
                workers=self._options.workers,
                limits=self._options.limits,
                on_open=self._check_driver,
                cost_left=lambda: self.progress.cost_total - self.progress.cost_done,
                on_wait=self._tick,
            ) as pool,
        ):
            self._pool = pool
            if self._stopped:
                pool.stop()
            committed, uncommitted = time.monotonic(), 0
            for task, result in pool.run(self._plan(builder)):
                self._take(builder, task, result)
                uncommitted += 1
                if uncommitted >= COMMIT_PIPELINES or (uncommitted and time.monotonic() - committed > COMMIT_SECONDS):
                    builder.commit()
                    committed, uncommitted = time.monotonic(), 0
                self._tick()
            if self._options.statistics:
                self._add_statistics(builder, pool)
            if self._options.pipeline_caches and identity.object_code_form == PIPELINE_BINARY:
                from shaderkiln.jobs.cache_values import add_caches

                add_caches(
                    self._source, builder, pool,
                    only=self._options.only, is_stopped=lambda: self._stopped, on_result=self._tick,
                )  # fmt: skip
            try:
                builder.finish()
            except DamagedValueError as error:
                # Found only now, because a run that adds nothing does not read the values.
                raise CacheCorruptError(f"{self._path}: {error}; compile with --replace to make the database anew") from error
            differences = tuple(str(difference) for difference in builder.differences)
        return JobReport(
            self._path, self._tally, self._stopped, self._compiler.files, differences, time.monotonic() - started,
            self.progress.total, self._source.damage,
        )  # fmt: skip

    def _add_statistics(self, builder: PsdbBuilder, pool: WorkerPool) -> None:
        """Compiles once more for statistics what has none yet; a pipeline that the driver cannot do it for goes without."""

        def tasks() -> Iterator[Task | None]:
            for kind, hash in self._source.pipelines():
                if self._stopped:
                    return
                if self._options.only is not None and f"{hash:016x}" not in self._options.only:
                    continue
                try:
                    description = self._source.load(kind, hash)
                    key = self._source.object_key(description)
                except ShaderkilnError:
                    continue
                version = version_of(self._source, description.name)
                known = key in groups or builder.has_value(ValueKey(bytes(key)), ValueType.PERFORMANCE_DATA)
                if known or not builder.has_group(key, version):
                    yield None
                    continue
                groups[key] = Group(key, version, builder.value_keys(key, version), kind, description.name)
                yield Task(description, key, Inspect(0, description.create_info, representations=False))

        groups: dict[ObjectKey, Group] = {}
        for task, result in pool.run(tasks()):
            group = groups.pop(task.object_key)
            if isinstance(result, Inspected) and result.executables:
                builder.add(group, (statistics_value(task.object_key, result.executables),))
            self._tick()

    # -- planning: dearest first, so that the last worker does not start on a long one when the others are done

    def _plan(self, builder: PsdbBuilder) -> Iterator[Task | None]:
        for kind, hash, cost in self._ordered():
            if self._stopped:
                return
            if task := self._plan_one(builder, kind, hash, cost):
                yield task
            else:
                self._tick()
                yield None

    def _ordered(self) -> Iterator[tuple[PipelineKind, int, int]]:
        """Every pipeline once, by falling cost; compact, because a capture can hold hundreds of thousands."""
        hashes, kinds, costs = array("Q"), bytearray(), array("Q")
        for kind, hash in self._source.pipelines():
            if self._options.only is None or f"{hash:016x}" in self._options.only:
                hashes.append(hash)
                kinds.append(KINDS.index(kind))
                costs.append(min(self._source.cost(kind, hash), (1 << 32) - 1) << 32 | len(hashes) - 1)
        self.progress.total = len(hashes)
        self.progress.cost_total = sum(cost >> 32 for cost in costs)
        for cost in array("Q", sorted(costs, reverse=True)):
            index = cost & 0xFFFFFFFF
            yield KINDS[kinds[index]], hashes[index], cost >> 32

    def _plan_one(self, builder: PsdbBuilder, kind: PipelineKind, hash: int, cost: int) -> Task | None:
        name = f"{hash:016x}"
        try:
            description = self._source.load(kind, hash)
            key, version = self._source.object_key(description), version_of(self._source, name)
            planned = _Planned(name, kind, key, cost, version, has_shaders(description.create_info))
        except UnsupportedPipelineError as error:
            self._report(unsupported(name, kind, error.object_key, error.reasons), cost)
            return None
        except ShaderkilnError as error:
            self._report(Verdict(name, kind, Outcome.FAILED, code=error.code, message=str(error)), cost)
            return None
        if key in self._planned:
            self._twins[key].append(planned)
            return None
        if builder.has_group(key, version):
            self._report(Verdict(name, kind, Outcome.REUSED, object_key=key.hex()), cost)
            return None
        if (not self._options.retry_poisoned or key in self._died) and (poison := builder.poisoned(key)):
            self._report(remembered(name, kind, poison), cost)
            return None
        try:
            unmet = self._compiler.check(description)
        except Exception as error:
            # A plugin's check is somebody else's code: what it raises is this pipeline's failure.
            code = error.code if isinstance(error, ShaderkilnError) else "E_FAIL"
            self._report(Verdict(name, kind, Outcome.FAILED, key.hex(), code, str(error) or type(error).__name__), cost)
            return None
        if unmet and (self._options.strict or not all(need.is_doubt for need in unmet)):
            self._report(unsupported(name, kind, key, unmet), cost)
            return None
        planned.doubts = reasons_of(unmet)
        self._planned[key] = planned
        pipeline = description.create_info
        return Task(description, key, Compile(0, pipeline), cost)

    # -- results

    def _take(self, builder: PsdbBuilder, task: Task, result: Result) -> None:
        """Stores one result and reports it."""
        planned = self._planned.pop(task.object_key)
        verdict = self._judge(builder, planned, result)
        self._report(verdict, planned.cost, skipped=False)
        for twin in self._twins.pop(planned.object_key, ()):
            if verdict.outcome is Outcome.COMPILED and twin.version != planned.version:
                keys = builder.value_keys(planned.object_key, planned.version)
                builder.add(Group(twin.object_key, twin.version, keys, twin.kind, twin.name), ())
            again = Outcome.REUSED if verdict.outcome is Outcome.COMPILED else verdict.outcome
            self._report(msgspec.structs.replace(verdict, pipeline=twin.name, outcome=again, seconds=0.0), twin.cost)

    def _judge(self, builder: PsdbBuilder, planned: _Planned, result: Result) -> Verdict:
        name, kind, key = planned.name, planned.kind, planned.object_key
        if isinstance(result, Death):
            build = self._compiler.identity.driver_build
            number = signal_number(result.signal)
            builder.add_poison(Poison(key, kind, name, result.ending, number, build, result.output))
            self._died.add(key)
            return Verdict(
                name, kind, Outcome(result.ending), key.hex(), signal=result.signal, output=result.output, driver_build=build,
                message=death_text(result.ending, result.signal, build) + doubt_text(planned.doubts), reasons=planned.doubts,
                seconds=result.seconds,
            )  # fmt: skip
        builder.remove_poison(key)
        if isinstance(result, Failed):
            message = result.message + doubt_text(planned.doubts)
            return Verdict(name, kind, Outcome.FAILED, key.hex(), result.code, message, planned.doubts)
        if not isinstance(result, Compiled):
            return Verdict(name, kind, Outcome.FAILED, key.hex(), "E_FAIL", f"unexpected answer {type(result).__name__}")
        if not result.values and planned.has_shaders:
            return Verdict(name, kind, Outcome.FAILED, key.hex(), "E_FAIL", "the driver gave no object code for it")
        values = object_code_values(self._compiler.identity.object_code_form, key, result.values)
        try:
            builder.add(Group(key, planned.version, tuple(value.key for value in values), kind, name), values)
        except InvalidArgumentError as error:
            return Verdict(name, kind, Outcome.FAILED, key.hex(), error.code, f"unfit object code: {error}")
        return Verdict(
            name, kind, Outcome.COMPILED, key.hex(), values=tuple(value.key.hex() for value in values),
            bytes=sum(len(value.data) for value in values), seconds=result.seconds,
            reasons=planned.doubts, feedback_hit=result.feedback_hit,
        )  # fmt: skip

    def _check_driver(self, opened: Opened) -> None:
        """The driver that workers really hold must be the one that the identity was made from."""
        if opened.global_key != self._compiler.identity.global_key or (
            opened.capabilities.cache_uuid != self._compiler.identity.cache_uuid
        ):
            raise DriverError(
                f"the driver of {self._compiler.identity.family} is not the one that was asked before; "
                "run `kiln families --refresh` and try again"
            )

    def _report(self, verdict: Verdict, cost: int, *, skipped: bool = True) -> None:
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
