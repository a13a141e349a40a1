"""What the commands that run jobs share: verdicts as they come, progress and Ctrl-C, the line at the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shaderkiln import api
from shaderkiln.cli.exit_codes import EXIT_INTERRUPTED, EXIT_NOT_ALL_GOOD
from shaderkiln.cli.output import Output, json_line, time_text
from shaderkiln.cli.progress_line import ProgressLine, stop_on_interrupt
from shaderkiln.cli.reports import warn_of_damage, warn_of_nothing
from shaderkiln.cli.unsupported import UnsupportedLines
from shaderkiln.endings import death_text, signal_name, signal_number
from shaderkiln.errors import AccessDeniedError, InvalidArgumentError
from shaderkiln.identity import parse_version
from shaderkiln.jobs.compile import CompileJob, JobOptions, JobReport
from shaderkiln.jobs.verdicts import (
    GOOD,
    NOT_TRIED_AGAIN,
    POISON,
    Outcome,
    Verdict,
)

if TYPE_CHECKING:
    from shaderkiln.identity import ApplicationIdentity
    from shaderkiln.jobs.shell import Report
    from shaderkiln.jobs.verify import VerifyJob
    from shaderkiln.sources.source import Source


class VerdictWriter:
    """Shows verdicts as they come: every one as a JSON line where asked for, the bad ones for people."""

    def __init__(self, report: Path | None, out: Output, *, verbose: bool = False) -> None:
        """``verbose``: everything that an unsupported pipeline lacks, in a line of its own."""
        self._report = report
        self._verbose = verbose
        self._unsupported = UnsupportedLines("", str)
        self._file: Any = None
        self.out = out
        self.family = ""
        self.before_line: ProgressLine | None = None
        self.label: Callable[[str], str] = str
        """What a pipeline is called in lines for people, by its name."""
        self.next_lines: list[str] = []
        """What the next run of the same family would show, as long as nothing is tried again."""
        self.tries_again = False

    def __enter__(self) -> VerdictWriter:
        if self._report:
            try:
                self._file = self._report.open("wb")
            except OSError as error:
                raise AccessDeniedError(f"{self._report}: {error.strerror}") from error
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file:
            self._file.close()

    def __call__(self, verdict: Verdict) -> None:
        if self._file or not self.out.for_people:
            record = {"type": "verdict", "family": self.family} | verdict.record()
            if self._file:
                self._file.write(json_line(record))
            self.out.record(record)
        if verdict.outcome is Outcome.UNSUPPORTED and not self._verbose:
            self._unsupported.add(verdict)
        elif verdict.outcome in SHOWN:
            text = verdict.message or verdict.code
            start = f"{self.family}: {verdict.outcome} {verdict.kind} {self.label(verdict.pipeline)}: "
            line = start + text
            self.tries_again |= verdict.outcome not in GOOD | POISON
            known = verdict.outcome not in POISON or verdict.remembered
            self.next_lines.append(line if known else f"{start}{_remembered_text(verdict)}")
            self._show(line)

    def begin(self, family: str, line: ProgressLine, label: Callable[[str], str]) -> None:
        """From now on the verdicts are about this family."""
        self.family, self.before_line, self.label = family, line, label
        self.next_lines, self.tries_again = [], False
        self._unsupported = UnsupportedLines(family, label)

    def end(self) -> None:
        """All verdicts about the family have come."""
        for line in self._unsupported.lines():
            self.next_lines.append(line)
            self._show(line)

    def _show(self, line: str) -> None:
        if self.before_line and self.out.for_people:
            self.before_line.clear()
        self.out.people(line)


def _remembered_text(verdict: Verdict) -> str:
    """What the next run will say of a pipeline that went on the poison list now."""
    return death_text(verdict.outcome, signal_name(signal_number(verdict.signal)), verdict.driver_build) + NOT_TRIED_AGAIN


DIFFERENCES_SHOWN = 3
SHOWN = frozenset(Outcome) - {Outcome.COMPILED, Outcome.REUSED, Outcome.HIT}


@contextmanager
def followed(writer: VerdictWriter, name: str, source: Source) -> Iterator[dict[str, Any]]:
    """What a job needs to be followed: verdicts as they come, progress under a name, Ctrl-C; by the names of ``api``."""
    line = ProgressLine(name, enabled=writer.out.for_people)
    with stop_on_interrupt() as stoppable:

        def started(job: CompileJob | VerifyJob) -> None:
            writer.begin(job.family, line, source.label)
            stoppable(job)

        yield {"on_verdict": writer, "on_tick": line, "on_start": started}
    line.clear()
    writer.end()


def run_job(
    source: Source,
    family: str,
    output: Path | None,
    options: JobOptions,
    writer: VerdictWriter,
    *,
    plugin: str | None,
    package: str | None,
    abi_version: int | None = None,
    application: ApplicationIdentity | None = None,
    kept: bool = True,
) -> JobReport:
    """Runs one compile job with progress and Ctrl-C, and shows its end."""
    with followed(writer, family, source) as follow:
        report = api.compile_capture(
            source, family, output, plugin=plugin, package=package, abi_version=abi_version, application=application,
            options=options, **follow,
        )  # fmt: skip
    show_report(report, writer.family, writer.out, kept=kept)
    return report


def run_jobs(
    families: tuple[str, ...],
    run: Callable[[str], JobReport],
    source: Source,
    out: Output,
    *,
    fail_on_unsupported: bool,
) -> int:
    """Runs one job after the other until one is interrupted; the exit code. Says what is damaged and what was not begun."""
    warn_of_damage(source.path, source.damage)
    good = True
    for number, family in enumerate(families):
        report = run(family)
        good &= report.good and not (fail_on_unsupported and report.tally.counts[Outcome.UNSUPPORTED])
        if report.interrupted:
            for other in families[number + 1 :]:
                out.record({"type": "not-begun", "family": other}, f"{other}: not begun (interrupted)")
            return EXIT_INTERRUPTED
    return 0 if good else EXIT_NOT_ALL_GOOD


def show_report(report: JobReport, family: str, out: Output, *, kept: bool) -> None:
    """The last line about a family."""
    warn_of_nothing(family, report.total, report.tally.counts[Outcome.UNSUPPORTED])
    record = summary_record(report, family, str(report.path) if kept else "") | {"differences": report.differences}
    where = f" → {report.path}" if kept else ""
    lines = [f"{family}: {end_text(report)} in {time_text(report.seconds)}{where}"]
    if number := len(report.differences):
        lines.append(f"{family}: {number} values came out differently when they were compiled again; the first were kept")
    out.record(record, *lines, *(f"{family}: {difference}" for difference in report.differences[:DIFFERENCES_SHOWN]))


def summary_record(report: Report, family: str, psdb: str) -> dict[str, Any]:
    """What every job ends with, for programs."""
    return {
        "type": "summary", "family": family, "psdb": psdb, "pipelines": report.tally.total,
        "counts": {str(outcome): count for outcome, count in report.tally.counts.items()}, "good": report.good,
        "interrupted": report.interrupted, "not_reached": report.total - report.tally.total, "damage": report.source_damage,
        "driver_seconds": report.tally.seconds, "seconds": report.seconds,
    }  # fmt: skip


def end_text(report: Report) -> str:
    """What a job did, in words; of an interrupted one also how much it did not do."""
    if not report.interrupted:
        return str(report.tally)
    counts = {str(outcome): report.tally.counts[outcome] for outcome in Outcome if report.tally.counts[outcome]}
    counts["not reached"] = report.total - report.tally.total
    words = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    return f"interrupted: {words} of {report.total} pipelines"


def wanted_keys(keys: tuple[str, ...]) -> frozenset[bytes] | None:
    """Keys of a state object database as a command line has them: text, or hexadecimal digits. None, which stands for all."""
    found = {key.encode() for key in keys}
    for key in keys:
        with suppress(ValueError):
            found.add(bytes.fromhex(key))
    return frozenset(found) if keys else None


def pipeline_names(source: Source, wanted: tuple[str, ...]) -> frozenset[str] | None:
    """The whole names of the pipelines that were asked for; None, which stands for all, if none was."""
    from shaderkiln.sources.source import resolve_pipeline

    return frozenset(f"{resolve_pipeline(source, name)[1]:016x}" for name in wanted) if wanted else None


def application_identity(source: Source, changes: dict[str, str | None]) -> ApplicationIdentity:
    """The capture's application with what the command line says about it."""
    given: dict[str, Any] = {}
    for field, value in changes.items():
        if value is not None:
            given[field] = parse_version(value) if field.endswith("version") else value
    if given.get("name") == "":
        raise InvalidArgumentError("--name must not be empty")
    return dataclasses.replace(source.application.identity, **given)
