"""The proof that a PSDB serves a capture: every pipeline is created on the driver from its values, with compiling forbidden.

Nothing reaches the driver before the identity was compared and the checksum of each value verified.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.compilers.value_keys import driver_values
from shaderkiln.databases.psdb import Damage, DamagedValueError, Poison, Psdb
from shaderkiln.descriptions.pipeline import PipelineDescription, PipelineKind, UnsupportedPipelineError
from shaderkiln.drivers.protocol import Compile, Compiled, Failed, Open, Opened, Recreate, Recreated
from shaderkiln.endings import death_text
from shaderkiln.errors import DriverError, ShaderkilnError
from shaderkiln.identity import IdentityMismatchError, differences
from shaderkiln.jobs.compile import Progress, Source, version_of
from shaderkiln.jobs.verdicts import Outcome, Tally, Verdict, remembered, unsupported
from shaderkiln.keys import ObjectKey
from shaderkiln.workers.pool import Death, Limits, Result, Task, WorkerPool


class VerifyReport(Struct, frozen=True):
    """The end of a verification; it is good if the tally is good, and neither the database nor the source is damaged."""

    path: Path
    tally: Tally
    damage: tuple[Damage, ...]
    interrupted: bool
    seconds: float
    total: int = 0
    """Pipelines of the source; of an interrupted verification not all of them are in the tally."""
    source_damage: tuple[str, ...] = ()
    """Places of the source that are damaged; pipelines that were there are not in the tally."""

    @property
    def good(self) -> bool:
        return self.tally.good and not self.damage and not self.source_damage and not self.interrupted


def require_identity(database: Psdb, compiler: FamilyCompiler) -> None:
    """Refuses a PSDB that was made for or by somebody else.

    Raises IdentityMismatchError, which names each field with the stored and the expected value (EP-43).
    """
    found = differences(database.identity, compiler.identity)
    if found:
        what = f"does not belong to {compiler.identity.family} with this driver"
        raise IdentityMismatchError(database.path, found, what)


class VerifyJob:
    """Verifies a PSDB against the source that it was compiled from."""

    def __init__(
        self,
        source: Source,
        compiler: FamilyCompiler,
        database: Psdb,
        *,
        workers: int | None = None,
        limits: Limits | None = None,
        strict: bool = False,
        on_verdict: Callable[[Verdict], None] | None = None,
        on_tick: Callable[[Progress], None] | None = None,
    ) -> None:
        """``strict`` as in ``JobOptions``: what a strict compile kept from the driver is unsupported, and no miss."""
        self.progress = Progress()
        self._source = source
        self._compiler = compiler
        self._database = database
        self._workers = workers
        self._limits = limits or Limits()
        self._strict = strict
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
        """Start nothing more. Safe to call from a signal handler."""
        self._stopped = True
        if self._pool:
            self._pool.stop()

    def run(self) -> VerifyReport:
        """Checks every value of the database, then every pipeline of the source.

        Raises CacheCorruptError for a database of another identity, DriverError if no worker can be started.
        """
        started = time.monotonic()
        require_identity(self._database, self._compiler)
        damage = tuple(self._database.verify())
        poison = {entry.object_key: entry for entry in self._database.poison()}
        with WorkerPool(
            self._compiler.worker_command(),
            Open(self._compiler.identity.features),
            workers=self._workers,
            limits=self._limits,
            on_open=self._check_driver,
            cost_left=lambda: self.progress.cost_total - self.progress.cost_done,
            on_wait=self._tick,
        ) as pool:
            self._pool = pool
            if self._stopped:
                pool.stop()
            for task, result in pool.run(self._plan(poison)):
                self._report(self._judge(task, result), skipped=False)
                self._tick()
        return VerifyReport(
            self._database.path, self._tally, damage, self._stopped, time.monotonic() - started,
            self.progress.total, self._source.damage,
        )  # fmt: skip

    def _plan(self, poison: Mapping[ObjectKey, Poison]) -> Iterator[Task | None]:
        pipelines = self._source.pipelines()
        self.progress.total = sum(1 for _ in self._source.pipelines())
        self.progress.cost_total = self.progress.total
        for kind, hash in pipelines:
            if self._stopped:
                return
            answer = self._plan_one(kind, hash, poison)
            if isinstance(answer, Verdict):
                self._report(answer)
                self._tick()
                yield None
            else:
                yield answer

    def _plan_one(self, kind: PipelineKind, hash: int, poison: Mapping[ObjectKey, Poison]) -> Task | Verdict:
        name = f"{hash:016x}"
        try:
            description = self._source.load(kind, hash)
            key = self._source.object_key(description)
            group = self._compiler.find(self._database, key, version_of(self._source, name))
            if group is None:
                return self._absent(description, key, poison)
            values = driver_values(self._compiler.identity.object_code_form, group, self._database.find)
        except UnsupportedPipelineError as error:
            return unsupported(name, kind, error.object_key, error.reasons)
        except DamagedValueError as error:
            return Verdict(name, kind, Outcome.DAMAGED, key.hex(), error.code, str(error), values=(error.key.hex(),))
        except ShaderkilnError as error:
            return Verdict(name, kind, Outcome.FAILED, code=error.code, message=str(error))
        pipeline = description.create_info
        if not values:
            # Without shaders of its own it has no object code: that none comes of it again is all there is to prove.
            return Task(description, key, Compile(0, pipeline))
        return Task(description, key, Recreate(0, pipeline, values))

    def _absent(self, description: PipelineDescription, key: ObjectKey, poison: Mapping[ObjectKey, Poison]) -> Verdict:
        unmet = self._compiler.check(description)
        if unmet and (self._strict or not all(need.is_doubt for need in unmet)):
            return unsupported(description.name, description.kind, key, unmet)
        if key in poison:
            return remembered(description.name, description.kind, poison[key])
        text = "the database has no group for it"
        return Verdict(description.name, description.kind, Outcome.MISS, key.hex(), "DXGI_ERROR_NOT_FOUND", text)

    def _judge(self, task: Task, result: Result) -> Verdict:
        name, kind, key = task.description.name, task.description.kind, task.object_key.hex()
        if isinstance(result, Recreated):
            if result.hit:
                return Verdict(name, kind, Outcome.HIT, key, seconds=result.seconds)
            return Verdict(
                name, kind, Outcome.MISS, key, result.result, "the driver would have to compile it", seconds=result.seconds
            )
        if isinstance(result, Compiled):
            if not result.values:
                return Verdict(name, kind, Outcome.HIT, key, message="it has no object code", seconds=result.seconds)
            return Verdict(
                name, kind, Outcome.MISS, key, message="the database has no object code for it", seconds=result.seconds
            )
        if isinstance(result, Failed):
            return Verdict(name, kind, Outcome.FAILED, key, result.code, result.message)
        if isinstance(result, Death):
            build = self._compiler.identity.driver_build
            text = death_text(result.ending, result.signal, build) + " while it loaded the object code"
            return Verdict(name, kind, Outcome(result.ending), key, message=text, signal=result.signal, output=result.output)
        return Verdict(name, kind, Outcome.FAILED, key, "E_FAIL", f"unexpected answer {type(result).__name__}")

    def _check_driver(self, opened: Opened) -> None:
        if opened.global_key != self._database.identity.global_key:
            raise DriverError("the driver's global key is not the one that the database was made with")

    def _report(self, verdict: Verdict, *, skipped: bool = True) -> None:
        self._tally.add(verdict)
        self.progress.done += 1
        self.progress.cost_done += 1
        if skipped:
            self.progress.skipped += 1
            self.progress.cost_skipped += 1
        if self._on_verdict:
            self._on_verdict(verdict)

    def _tick(self) -> None:
        if self._on_tick:
            if self._pool:
                self.progress.in_hand = tuple(f"{d.kind} {d.name}" for d in self._pool.in_hand)
                self.progress.longest_in_hand = self._pool.longest_in_hand
            self._on_tick(self.progress)
