"""``kiln compile`` and ``kiln replay``."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from shaderkiln import api
from shaderkiln.cli.output import (
    EXIT_INTERRUPTED,
    EXIT_NOT_ALL_GOOD,
    PATH,
    ProgressLine,
    json_line,
    json_option,
    stop_on_interrupt,
    time_text,
    write_json,
)
from shaderkiln.compilers.job import JobOptions, JobReport
from shaderkiln.compilers.pool import Limits
from shaderkiln.compilers.verdicts import Outcome, Tally, Verdict
from shaderkiln.errors import AccessDeniedError, InvalidArgumentError
from shaderkiln.identity import parse_version

if TYPE_CHECKING:
    from shaderkiln.descriptions.capture import Capture
    from shaderkiln.identity import ApplicationIdentity


def parse_size(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    """``4G`` → bytes; powers of 1024."""
    text = value.strip().upper().removesuffix("B").removesuffix("I")
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    number = text.rstrip("KMG")
    if not number.isdigit() or int(number) == 0:
        raise click.BadParameter(f"{value!r} is no size; give for example 512M or 4G")
    return int(number) * factor


def parse_abi(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """``25.0.7.0``, as ``kiln families`` shows it, or one number."""
    try:
        return None if value is None else parse_version(value)
    except InvalidArgumentError as error:
        raise click.BadParameter(str(error)) from None


def job_options(function: Any) -> Any:
    """The options of every command that starts workers."""
    for option in reversed(
        [
            click.option("-j", "--jobs", type=click.IntRange(1), help="Worker processes; default: one for each processor."),
            click.option(
                "--time-limit", type=click.FloatRange(0.1), default=120.0, show_default=True, help="Seconds for one pipeline."
            ),
            click.option("--memory-limit", callback=parse_size, default="4G", show_default=True, help="Memory of one worker."),
            click.option("--plugin", help="Compiler plugin; default: the first that has the family."),
            click.option("--driver", "package", help="Driver package; default: the newest that has the family."),
        ]
    ):
        function = option(function)
    return function


@click.command("compile")
@click.argument("capture", type=PATH)
@click.argument("output_file", type=PATH, required=False)
@click.option(
    "-f", "--family", "--adapter-family", "families", multiple=True, required=True, help="Adapter family; may be repeated."
)
@click.option("-o", "--output", type=PATH, help="Folder for the PSDBs, or one *.psdb file.")
@job_options
@click.option("--abi", callback=parse_abi, help="ABI version of the driver to compile with; default: the largest.")
@click.option("--pipeline", "only", multiple=True, help="Compile only this pipeline; may be repeated.")
@click.option("--perf", "statistics", is_flag=True, help="Store the driver's statistics too; compiles everything twice.")
@click.option("--retry-poisoned", is_flag=True, help="Try pipelines again that ended the driver's process before.")
@click.option("--strict", is_flag=True, help="Keep from the driver what does more than the device advertises.")
@click.option("--replace", is_flag=True, help="Replace a PSDB that was made for or by somebody else.")
@click.option("--name", help="Application name for the PSDB; default: the capture's.")
@click.option("--exe-filename", help="Executable file name of the application.")
@click.option("--app-version", "--version", "app_version", help="Application version, such as 1.0.")
@click.option("--engine-name", help="Engine name.")
@click.option("--engine-version", help="Engine version.")
@click.option("--report", type=PATH, help="Write one JSON line for every pipeline to this file.")
@json_option
def compile_command(
    capture: Path,
    output_file: Path | None,
    families: tuple[str, ...],
    output: Path | None,
    jobs: int | None,
    time_limit: float,
    memory_limit: int,
    plugin: str | None,
    package: str | None,
    abi: int | None,
    only: tuple[str, ...],
    statistics: bool,
    retry_poisoned: bool,
    strict: bool,
    replace: bool,
    name: str | None,
    exe_filename: str | None,
    app_version: str | None,
    engine_name: str | None,
    engine_version: str | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Compile every pipeline of CAPTURE for each family into one PSDB a family.

    What is there already is reused; a stopped or killed run goes on where it was. OUTPUT_FILE, in the place that
    D3D12StateObjectCompiler has it, is the same as -o.

    \b
    Example:
      kiln compile game.foz --family amd-navi31 --family amd-navi21 -o out/
    """
    if output_file is not None and output is not None:
        raise click.UsageError("give the output once: as the second argument or with -o")
    output = output or output_file
    options = JobOptions(
        workers=jobs,
        limits=Limits(time_limit, memory_limit),
        retry_poisoned=retry_poisoned,
        statistics=statistics,
        strict=strict,
        replace=replace,
    )
    changes = {
        "name": name, "exe_filename": exe_filename, "version": app_version,
        "engine_name": engine_name, "engine_version": engine_version,
    }  # fmt: skip
    good, interrupted = True, False
    with api.open_capture(capture) as source:
        application = application_identity(source, changes)
        chosen = dataclasses.replace(options, only=pipeline_names(source, only))
        for family in families:
            api.psdb_path(capture, family, output, single=len(families) == 1)
        with VerdictWriter(report, as_json=as_json) as writer:
            for family in families:
                result = run_job(
                    source,
                    family,
                    output,
                    chosen,
                    writer,
                    plugin=plugin,
                    package=package,
                    abi_version=abi,
                    application=application,
                )
                good &= result.tally.good
                interrupted |= result.interrupted
                if interrupted:
                    break
    sys.exit(EXIT_INTERRUPTED if interrupted else 0 if good else EXIT_NOT_ALL_GOOD)


@click.command("replay")
@click.argument("capture", type=PATH)
@click.option(
    "-f", "--family", "--adapter-family", "families", multiple=True, required=True, help="Adapter family; may be repeated."
)
@job_options
@click.option("--pipeline", "only", multiple=True, help="Compile only this pipeline; may be repeated.")
@click.option("--report", type=PATH, help="Write one JSON line for every pipeline to this file.")
@json_option
def replay_command(
    capture: Path,
    families: tuple[str, ...],
    jobs: int | None,
    time_limit: float,
    memory_limit: int,
    plugin: str | None,
    package: str | None,
    only: tuple[str, ...],
    report: Path | None,
    as_json: bool,
) -> None:
    """Compile every pipeline of CAPTURE and keep nothing.

    \b
    Example:
      kiln replay game.foz --family amd-navi31
    """
    import tempfile

    good, interrupted = True, False
    with (
        tempfile.TemporaryDirectory(prefix="kiln-replay-") as folder,
        api.open_capture(capture) as source,
        VerdictWriter(report, as_json=as_json) as writer,
    ):
        options = JobOptions(workers=jobs, limits=Limits(time_limit, memory_limit), only=pipeline_names(source, only))
        for family in families:
            result = run_job(source, family, Path(folder), options, writer, plugin=plugin, package=package, kept=False)
            good &= result.tally.good
            interrupted |= result.interrupted
            if interrupted:
                break
    sys.exit(EXIT_INTERRUPTED if interrupted else 0 if good else EXIT_NOT_ALL_GOOD)


class VerdictWriter:
    """Shows verdicts as they come: every one as a JSON line where asked for, the bad ones for people."""

    def __init__(self, report: Path | None, *, as_json: bool) -> None:
        self._report = report
        self._file: Any = None
        self.as_json = as_json
        self.family = ""
        self.before_line: ProgressLine | None = None

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
        if not self.as_json and verdict.outcome in SHOWN:
            if self.before_line:
                self.before_line.clear()
            text = verdict.message or verdict.code
            click.echo(f"{self.family}: {verdict.outcome} {verdict.kind} {verdict.pipeline}: {text}")


DIFFERENCES_SHOWN = 3
SHOWN = frozenset(Outcome) - {Outcome.COMPILED, Outcome.REUSED, Outcome.HIT}


def run_job(
    source: Capture,
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
    writer.family, writer.before_line = family, line
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
    click.echo(f"{family}: {tally_text(report.tally)} in {time_text(report.seconds)}{where}{ending}")
    if report.differences:
        click.echo(
            f"{family}: {len(report.differences)} values came out differently when they were compiled again; the first were kept"
        )
    for difference in report.differences[:DIFFERENCES_SHOWN]:
        click.echo(f"{family}: {difference}")


def tally_text(tally: Tally) -> str:
    """Counts of a tally in words."""
    shown = [outcome for outcome in Outcome if tally.counts[outcome]]
    return f"{tally.total} pipelines: " + ", ".join(f"{tally.counts[outcome]} {outcome}" for outcome in shown)


def pipeline_names(source: Capture, wanted: tuple[str, ...]) -> frozenset[str] | None:
    """The whole names of the pipelines that were asked for; None, which stands for all, if none was."""
    from shaderkiln.compilers.inspection import resolve_pipeline

    return frozenset(f"{resolve_pipeline(source, name)[1]:016x}" for name in wanted) if wanted else None


def application_identity(source: Capture, changes: dict[str, str | None]) -> ApplicationIdentity:
    """The capture's application with what the command line says about it."""
    given: dict[str, Any] = {}
    for field, value in changes.items():
        if value is not None:
            given[field] = parse_version(value) if field.endswith("version") else value
    if given.get("name") == "":
        raise InvalidArgumentError("--name must not be empty")
    return dataclasses.replace(source.application.identity, **given)
