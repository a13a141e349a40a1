"""The compile job: every pipeline of a source, compiled for one family into one PSDB.

The way of a pipeline: object key → already there? → on the poison list? → load → can the family take it? → worker → PSDB.
What is done stays done: a job that was stopped or killed goes on where it was.
"""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Container, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, field

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.compilers.value_keys import PIPELINE_BINARY, object_code_values
from shaderkiln.databases.psdb import DamagedValueError, Poison, PsdbBuilder
from shaderkiln.descriptions.pipeline import PIPELINE_KINDS, PipelineKind, has_shaders
from shaderkiln.descriptions.unmet import Unmet, keeps_from_driver
from shaderkiln.drivers.protocol import Compile, Compiled
from shaderkiln.endings import signal_number
from shaderkiln.errors import CacheCorruptError, InvalidArgumentError, ShaderkilnError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.jobs.progress import Progress
from shaderkiln.jobs.shell import Job, Report, failed, refused
from shaderkiln.jobs.verdicts import Outcome, Verdict, remembered, unsupported
from shaderkiln.keys import Group, ObjectKey
from shaderkiln.sources.source import Source
from shaderkiln.workers.pool import Death, Limits, Result, Task

COMMIT_SECONDS = 0.5
COMMIT_PIPELINES = 64
_KINDS = tuple(PIPELINE_KINDS)


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


class JobReport(Report, frozen=True):
    """The end of a compile job."""

    depends_on: tuple[str, ...]
    """Files whose change may change the outcome: the compiler's own."""
    differences: tuple[str, ...]
    """Values that came out differently from what was stored before: the driver's output is not deterministic."""


class CompileJob(Job):
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
        self._options = options or JobOptions()
        super().__init__(
            source, compiler, workers=self._options.workers, limits=self._options.limits, only=self._options.only,
            on_verdict=on_verdict, on_tick=on_tick,
        )  # fmt: skip
        self._path = path
        self._application = application or source.application.identity

    def run(self) -> JobReport:
        """Compiles everything that is missing and writes the finished PSDB.

        Raises what ``PsdbBuilder`` raises for an output that cannot be used, DriverError if no worker can be started.
        """
        started = time.monotonic()
        identity = self._compiler.identity
        with (
            PsdbBuilder(self._path, identity, self._application, replace=self._options.replace, heal=True) as builder,
            self._open_pool() as pool,
        ):
            self._run(pool, _FirstCompile(self._source, self._compiler, builder, self._options), self._dearest_first())
            caches = self._options.pipeline_caches and identity.object_code_form == PIPELINE_BINARY
            if self._options.statistics or caches:
                from shaderkiln.jobs.second_compile import PipelineCaches, Statistics

                for wanted, again in ((self._options.statistics, Statistics), (caches, PipelineCaches)):
                    if wanted:
                        self._run(pool, again(self._source, builder), ((*pipeline, 0) for pipeline in self._pipelines()))
            try:
                builder.finish()
            except DamagedValueError as error:
                # Found only now, because a run that adds nothing does not read the values.
                raise CacheCorruptError(f"{self._path}: {error}; compile with --replace to make the database anew") from error
            differences = tuple(str(difference) for difference in builder.differences)
        return JobReport(
            self._path, self._tally, self._stopped, time.monotonic() - started, self.progress.total, self._source.damage,
            self._compiler.files, differences,
        )  # fmt: skip

    def _dearest_first(self) -> Iterator[tuple[PipelineKind, int, int]]:
        """Every pipeline once, by falling cost, so that the last worker does not start on a long one when the others are done;
        compact, because a capture can hold hundreds of thousands."""
        hashes, kinds, costs = array("Q"), bytearray(), array("Q")
        for kind, hash in self._pipelines():
            hashes.append(hash)
            kinds.append(_KINDS.index(kind))
            costs.append(min(self._source.cost(kind, hash), (1 << 32) - 1) << 32 | len(hashes) - 1)
        self.progress.total = len(hashes)
        self.progress.cost_total = sum(cost >> 32 for cost in costs)
        for cost in array("Q", sorted(costs, reverse=True)):
            index = cost & 0xFFFFFFFF
            yield _KINDS[kinds[index]], hashes[index], cost >> 32


class _Twin(Struct):
    """A pipeline whose object is in hand under another name."""

    name: str
    kind: PipelineKind
    cost: int
    version: int


class _FirstCompile:
    """Compiles what the PSDB does not have, each object once, and commits what came of it now and then."""

    def __init__(self, source: Source, compiler: FamilyCompiler, builder: PsdbBuilder, options: JobOptions) -> None:
        self._source = source
        self._compiler = compiler
        self._builder = builder
        self._options = options
        self._in_hand: dict[ObjectKey, tuple[int, tuple[Unmet, ...]]] = {}
        """Version and doubts."""
        self._twins: defaultdict[ObjectKey, list[_Twin]] = defaultdict(list)
        self._died: set[ObjectKey] = set()
        self._committed = time.monotonic()
        self._uncommitted = 0

    def plan(self, kind: PipelineKind, hash: int, cost: int) -> Task | Verdict | None:
        """None for a pipeline that waits for its twin."""
        name = f"{hash:016x}"
        try:
            key, version = self._source.object_key(kind, hash), self._source.version(kind, hash)
        except ShaderkilnError as error:
            return refused(name, kind, error)
        if key in self._in_hand:
            self._twins[key].append(_Twin(name, kind, cost, version))
            return None
        if self._builder.has_group(key, version):
            return Verdict(name, kind, Outcome.REUSED, key.hex())
        if (not self._options.retry_poisoned or key in self._died) and (poison := self._builder.poisoned(key)):
            return remembered(name, kind, poison)
        try:
            description = self._source.load(kind, hash)
        except ShaderkilnError as error:
            return refused(name, kind, error)
        try:
            unmet = self._compiler.check(description)
        except Exception as error:
            # A plugin's check is somebody else's code: what it raises is this pipeline's failure.
            code = error.code if isinstance(error, ShaderkilnError) else "E_FAIL"
            return Verdict(name, kind, Outcome.FAILED, key.hex(), code, str(error) or type(error).__name__)
        if keeps_from_driver(unmet, strict=self._options.strict):
            return unsupported(name, kind, key, unmet)
        self._in_hand[key] = version, unmet
        return Task(description, key, Compile(0, description.create_info), cost)

    def take(self, task: Task, result: Result) -> Iterator[tuple[Verdict, int]]:
        """Stores one result."""
        key = task.object_key
        version, doubts = self._in_hand.pop(key)
        verdict = self._judge(task, version, doubts, result)
        is_compiled = verdict.outcome is Outcome.COMPILED
        yield verdict, task.cost
        for twin in self._twins.pop(key, ()):
            if is_compiled and twin.version != version:
                self._builder.add(Group(key, twin.version, self._builder.value_keys(key, version), twin.kind, twin.name), ())
            again = Outcome.REUSED if is_compiled else verdict.outcome
            yield msgspec.structs.replace(verdict, pipeline=twin.name, outcome=again, seconds=0.0), twin.cost
        self._uncommitted += 1
        if self._uncommitted >= COMMIT_PIPELINES or time.monotonic() - self._committed > COMMIT_SECONDS:
            self._builder.commit()
            self._committed, self._uncommitted = time.monotonic(), 0

    def _judge(self, task: Task, version: int, doubts: tuple[Unmet, ...], result: Result) -> Verdict:
        name, kind, key = task.description.name, task.description.kind, task.object_key
        identity = self._compiler.identity
        if isinstance(result, Death):
            number = signal_number(result.signal)
            self._builder.add_poison(Poison(key, kind, name, result.ending, number, identity.driver_build, result.output))
            self._died.add(key)
        else:
            self._builder.remove_poison(key)
        if not isinstance(result, Compiled):
            return failed(task, result, identity.driver_build, doubts=doubts)
        if not result.values and has_shaders(task.description.create_info):
            return Verdict(name, kind, Outcome.FAILED, key.hex(), "E_FAIL", "the driver gave no object code for it")
        values = object_code_values(identity.object_code_form, key, result.values)
        try:
            self._builder.add(Group(key, version, tuple(value.key for value in values), kind, name), values)
        except InvalidArgumentError as error:
            return Verdict(name, kind, Outcome.FAILED, key.hex(), error.code, f"unfit object code: {error}")
        return Verdict(
            name, kind, Outcome.COMPILED, key.hex(), values=tuple(value.key.hex() for value in values),
            bytes=sum(len(value.data) for value in values), seconds=result.seconds,
            reasons=doubts, feedback_hit=result.feedback_hit,
        )  # fmt: skip
