"""What the commands that run jobs share: verdicts as they come, progress and Ctrl-C, the line at the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from shaderkiln import api
from shaderkiln.cli.output import ProgressLine, counts_text, echo, json_line, stop_on_interrupt, time_text, write_json
from shaderkiln.compilers.job import JobOptions, JobReport
from shaderkiln.compilers.verdicts import (
    GOOD,
    NOT_TRIED_AGAIN,
    POISON,
    Outcome,
    Tally,
    Verdict,
    death_text,
    signal_name,
    signal_number,
)
from shaderkiln.errors import AccessDeniedError, InvalidArgumentError
from shaderkiln.identity import parse_version

if TYPE_CHECKING:
    from shaderkiln.compilers.sodb_source import StateObjectSource
    from shaderkiln.descriptions.capture import Capture
    from shaderkiln.identity import ApplicationIdentity


class VerdictWriter:
    """Shows verdicts as they come: every one as a JSON line where asked for, the bad ones for people."""

    def __init__(self, report: Path | None, *, as_json: bool) -> None:
        self._report = report
        self._file: Any = None
        self.as_json = as_json
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
        if self._file or self.as_json:
            record = {"type": "verdict", "family": self.family} | msgspec.to_builtins(verdict)
            if self._file:
                self._file.write(json_line(record))
            if self.as_json:
                write_json(record)
        if verdict.outcome in SHOWN:
            text = verdict.message or verdict.code
            start = f"{self.family}: {verdict.outcome} {verdict.kind} {self.label(verdict.pipeline)}: "
            line = start + text
            self.tries_again |= verdict.outcome not in GOOD | POISON
            known = verdict.outcome not in POISON or verdict.remembered
            self.next_lines.append(line if known else f"{start}{_remembered_text(verdict)}")
            if not self.as_json:
                if self.before_line:
                    self.before_line.clear()
                echo(line)

    def begin(self, family: str, line: ProgressLine) -> None:
        """From now on the verdicts are about this family."""
        self.family, self.before_line = family, line
        self.next_lines, self.tries_again = [], False


def _remembered_text(verdict: Verdict) -> str:
    """What the next run will say of a pipeline that went on the poison list now."""
    return death_text(verdict.outcome, signal_name(signal_number(verdict.signal)), verdict.driver_build) + NOT_TRIED_AGAIN


DIFFERENCES_SHOWN = 3
SHOWN = frozenset(Outcome) - {Outcome.COMPILED, Outcome.REUSED, Outcome.HIT}


def run_job(
    source: Capture | StateObjectSource,
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
    line = ProgressLine(family, enabled=not writer.as_json)
    writer.begin(family, line)
    writer.label = source.label
    with stop_on_interrupt() as started:
        report = api.compile_capture(
            source, family, output, plugin=plugin, package=package, abi_version=abi_version, application=application,
            options=options, on_verdict=writer, on_tick=line, on_start=started,
        )  # fmt: skip
    line.clear()
    show_report(report, family, as_json=writer.as_json, kept=kept)
    return report


def show_report(report: JobReport, family: str, *, as_json: bool, kept: bool) -> None:
    """The last line about a family."""
    counts = {str(outcome): count for outcome, count in report.tally.counts.items()}
    if as_json:
        record = {
            "type": "summary", "family": family, "psdb": str(report.path) if kept else "", "pipelines": report.tally.total,
            "counts": counts, "good": report.tally.good, "interrupted": report.interrupted,
            "driver_seconds": report.tally.seconds, "seconds": report.seconds, "differences": report.differences,
        }  # fmt: skip
        write_json(record)
        return
    where = f" → {report.path}" if kept else ""
    ending = " (interrupted)" if report.interrupted else ""
    echo(f"{family}: {tally_text(report.tally)} in {time_text(report.seconds)}{where}{ending}")
    if report.differences:
        echo(
            f"{family}: {len(report.differences)} values came out differently when they were compiled again; the first were kept"
        )
    for difference in report.differences[:DIFFERENCES_SHOWN]:
        echo(f"{family}: {difference}")


def tally_text(tally: Tally) -> str:
    """Counts of a tally in words."""
    return counts_text({str(outcome): tally.counts[outcome] for outcome in Outcome if tally.counts[outcome]})


def wanted_keys(keys: tuple[str, ...]) -> frozenset[bytes] | None:
    """Keys of a state object database as a command line has them: text, or hexadecimal digits. None, which stands for all."""
    found = {key.encode() for key in keys}
    for key in keys:
        with suppress(ValueError):
            found.add(bytes.fromhex(key))
    return frozenset(found) if keys else None


def pipeline_names(source: Capture | StateObjectSource, wanted: tuple[str, ...]) -> frozenset[str] | None:
    """The whole names of the pipelines that were asked for; None, which stands for all, if none was."""
    from shaderkiln.compilers.inspection import resolve_pipeline

    return frozenset(f"{resolve_pipeline(source, name)[1]:016x}" for name in wanted) if wanted else None


def application_identity(source: Capture | StateObjectSource, changes: dict[str, str | None]) -> ApplicationIdentity:
    """The capture's application with what the command line says about it."""
    given: dict[str, Any] = {}
    for field, value in changes.items():
        if value is not None:
            given[field] = parse_version(value) if field.endswith("version") else value
    if given.get("name") == "":
        raise InvalidArgumentError("--name must not be empty")
    return dataclasses.replace(source.application.identity, **given)
