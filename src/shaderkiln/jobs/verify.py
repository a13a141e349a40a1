"""The proof that a PSDB serves a capture: every pipeline is created on the driver from its values, with compiling forbidden.

Nothing reaches the driver before the identity was compared and the checksum of each value verified.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.compilers.value_keys import driver_values
from shaderkiln.databases.psdb import Damage, DamagedValueError, Psdb
from shaderkiln.descriptions.pipeline import PipelineDescription, PipelineKind
from shaderkiln.descriptions.unmet import keeps_from_driver
from shaderkiln.drivers.protocol import Compile, Compiled, Recreate, Recreated
from shaderkiln.errors import ShaderkilnError
from shaderkiln.identity import IdentityMismatchError, differences
from shaderkiln.jobs.progress import Progress
from shaderkiln.jobs.shell import Job, Report, failed, refused
from shaderkiln.jobs.verdicts import Outcome, Verdict, remembered, unsupported
from shaderkiln.keys import ObjectKey
from shaderkiln.sources.source import Source
from shaderkiln.workers.pool import Limits, Result, Task


class VerifyReport(Report, frozen=True):
    """The end of a verification."""

    damage: tuple[Damage, ...]
    """Of the database."""

    @property
    def good(self) -> bool:
        """Whether, besides, the database is whole."""
        return not self.damage and super().good


def require_identity(database: Psdb, compiler: FamilyCompiler) -> None:
    """Refuses a PSDB that was made for or by somebody else.

    Raises IdentityMismatchError, which names each field with the stored and the expected value (EP-43).
    """
    found = differences(database.identity, compiler.identity)
    if found:
        what = f"does not belong to {compiler.identity.family} with this driver"
        raise IdentityMismatchError(database.path, found, what)


class VerifyJob(Job):
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
        super().__init__(source, compiler, workers=workers, limits=limits, on_verdict=on_verdict, on_tick=on_tick)
        self._database = database
        self._strict = strict

    def run(self) -> VerifyReport:
        """Checks every value of the database, then every pipeline of the source.

        Raises CacheCorruptError for a database of another identity, DriverError if no worker can be started.
        """
        started = time.monotonic()
        require_identity(self._database, self._compiler)
        damage = tuple(self._database.verify())
        self.progress.total = self.progress.cost_total = sum(1 for _ in self._pipelines())
        with self._open_pool() as pool:
            work = _Recreation(self._source, self._compiler, self._database, strict=self._strict)
            self._run(pool, work, ((*pipeline, 1) for pipeline in self._pipelines()))
        return VerifyReport(
            self._database.path, self._tally, self._stopped, time.monotonic() - started, self.progress.total,
            self._source.damage, damage,
        )  # fmt: skip


class _Recreation:
    """Creates each pipeline from what the database has of it."""

    def __init__(self, source: Source, compiler: FamilyCompiler, database: Psdb, *, strict: bool) -> None:
        self._source = source
        self._compiler = compiler
        self._database = database
        self._strict = strict
        self._poison = {entry.object_key: entry for entry in database.poison()}

    def plan(self, kind: PipelineKind, hash: int, cost: int) -> Task | Verdict:
        """A verdict on what the database does not have, or has damaged."""
        name = f"{hash:016x}"
        try:
            key = self._source.object_key(kind, hash)
            description = self._source.load(kind, hash)
            group = self._compiler.find(self._database, key, self._source.version(kind, hash))
            if group is None:
                return self._absent(description, key)
            values = driver_values(self._compiler.identity.object_code_form, group, self._database.find)
        except DamagedValueError as error:
            return Verdict(name, kind, Outcome.DAMAGED, key.hex(), error.code, str(error), values=(error.key.hex(),))
        except ShaderkilnError as error:
            return refused(name, kind, error)
        pipeline = description.create_info
        # Without shaders of its own it has no object code: that none comes of it again is all there is to prove.
        return Task(description, key, Recreate(0, pipeline, values) if values else Compile(0, pipeline), cost)

    def _absent(self, description: PipelineDescription, key: ObjectKey) -> Verdict:
        unmet = self._compiler.check(description)
        if keeps_from_driver(unmet, strict=self._strict):
            return unsupported(description.name, description.kind, key, unmet)
        if key in self._poison:
            return remembered(description.name, description.kind, self._poison[key])
        text = "the database has no group for it"
        return Verdict(description.name, description.kind, Outcome.MISS, key.hex(), "DXGI_ERROR_NOT_FOUND", text)

    def take(self, task: Task, result: Result) -> Iterator[tuple[Verdict, int]]:
        """One verdict: a hit where the driver had nothing to compile."""
        yield self._judge(task, result), task.cost

    def _judge(self, task: Task, result: Result) -> Verdict:
        if isinstance(result, Recreated):
            is_hit, code, message = result.hit, result.result, "" if result.hit else "the driver would have to compile it"
        elif isinstance(result, Compiled):
            is_hit, code = not result.values, ""
            message = "it has no object code" if is_hit else "the database has no object code for it"
        else:
            return failed(task, result, self._compiler.identity.driver_build, doing=" while it loaded the object code")
        return Verdict(
            task.description.name, task.description.kind, Outcome.HIT if is_hit else Outcome.MISS, task.object_key.hex(),
            "" if is_hit else code, message, seconds=result.seconds,
        )  # fmt: skip
