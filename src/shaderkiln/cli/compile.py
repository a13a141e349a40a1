"""``kiln compile`` and ``kiln replay``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shaderkiln.cli.output import EXIT_INTERRUPTED, EXIT_NOT_ALL_GOOD, PATH, counts_text, echo, json_option, time_text
from shaderkiln.compilers import unchanged

if TYPE_CHECKING:
    from shaderkiln.cli.jobs import VerdictWriter
    from shaderkiln.compilers.job import JobReport
    from shaderkiln.compilers.sodb_source import StateObjectSource
    from shaderkiln.descriptions.capture import Capture

# Nothing that compiles is imported up here: a run that finds everything as the last one left it ends before it needs that.


def parse_size(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    """``4G`` → bytes; powers of 1024."""
    text = value.strip().upper().removesuffix("B").removesuffix("I")
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    number = text.rstrip("KMG")
    if not number.isdigit() or int(number) == 0:
        raise click.BadParameter(f"{value!r} is no size; give for example 512M or 4G")
    return int(number) * factor


def refuse_nan(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    """No number is smaller or larger than that, so that no range keeps it out."""
    if value != value:
        raise click.BadParameter("nan is no number of seconds")
    return value


def parse_abi(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """``25.0.7.0``, as ``kiln families`` shows it, or one number."""
    if value is None:
        return None
    from shaderkiln.errors import InvalidArgumentError
    from shaderkiln.identity import parse_version

    try:
        return parse_version(value)
    except InvalidArgumentError as error:
        raise click.BadParameter(str(error)) from None


def parse_application(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | str | None:
    """An application of a capture: its number, as ``kiln show`` lists them, or its name."""
    return int(value) if value is not None and value.isascii() and value.isdecimal() and len(value) < 10 else value


application_option = click.option(
    "--application", "chosen", callback=parse_application, help="Only this application of a .foz: its number or name."
)


def job_options(function: Any) -> Any:
    """The options of every command that starts workers."""
    for option in reversed(
        [
            click.option("-j", "--jobs", type=click.IntRange(1), help="Worker processes; default: one for each processor."),
            click.option(
                "--time-limit",
                type=click.FloatRange(0.1),
                default=120.0,
                show_default=True,
                callback=refuse_nan,
                help="Seconds for one pipeline.",
            ),
            click.option("--memory-limit", callback=parse_size, default="4G", show_default=True, help="Memory of one worker."),
            click.option("--plugin", help="Compiler plugin; default: the first that has the family."),
            click.option("--driver", "package", help="Driver package; default: the newest that has the family."),
        ]
    ):
        function = option(function)
    return function


def database_options(function: Any) -> Any:
    """The options that choose among the objects of a state object database."""
    for option in reversed(
        [
            click.option("--key", "keys", multiple=True, help="Only the object with this key of a .sodb; may be repeated."),
            click.option("--psos/--no-psos", "pipeline_states", default=True, help="Pipeline states of a .sodb or not."),
            click.option("--sos/--no-sos", "state_objects", default=True, help="State objects of a .sodb or not."),
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
@database_options
@application_option
@click.option("--pdb", is_flag=True, help="Store debug data of shaders too; the drivers of today have none.")
@click.option("--perf", "statistics", is_flag=True, help="Store the driver's statistics too; compiles everything twice.")
@click.option("--retry-poisoned", is_flag=True, help="Try pipelines again that ended the driver's process before.")
@click.option("--strict", is_flag=True, help="Keep from the driver what does more than the device advertises.")
@click.option("--replace", is_flag=True, help="Replace a PSDB that is damaged, or was made for or by somebody else.")
@click.option("--name", help="Application name for the PSDB; default: the capture's.")
@click.option("--exe-filename", help="Executable file name of the application.")
@click.option("--app-version", "--version", "app_version", help="Application version, such as 1.0.")
@click.option("--engine", "--engine-name", "engine_name", help="Engine name.")
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
    keys: tuple[str, ...],
    pipeline_states: bool,
    state_objects: bool,
    chosen: int | str | None,
    pdb: bool,
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

    CAPTURE is a Fossilize archive (.foz) or a state object database of Direct3D 12 (.sodb). What is there already is
    reused; a stopped or killed run goes on where it was. OUTPUT_FILE, in the place that D3D12StateObjectCompiler has it, is the
    same as -o. A capture of several applications whose robustness features differ is compiled for one of them at a time:
    --application.

    \b
    Example:
      kiln compile game.foz --family amd-navi31 --family amd-navi21 -o out/
    """
    if output_file is not None and output is not None:
        raise click.UsageError("give the output once: as the second argument or with -o")
    output = output or output_file
    changes = {
        "name": name, "exe_filename": exe_filename, "version": app_version,
        "engine_name": engine_name, "engine_version": engine_version,
    }  # fmt: skip
    question = [
        str(part)
        for part in (
            capture.absolute(),
            plugin,
            package,
            abi,
            strict,
            statistics,
            *changes.values(),
            pipeline_states,
            state_objects,
            repr(chosen),
        )
    ]
    quick = not (as_json or report or only or keys or retry_poisoned or replace)
    if quick and (code := show_unchanged(question, capture, families, output)) is not None:
        sys.exit(code)

    from shaderkiln import api
    from shaderkiln.cli.jobs import VerdictWriter, application_identity, pipeline_names, run_job, wanted_keys
    from shaderkiln.compilers.job import JobOptions
    from shaderkiln.compilers.pool import Limits

    good, interrupted = True, False
    # What SQLite has not yet moved from its log into a database is no part of the facts about that file.
    wal = Path(f"{capture}-wal").exists()
    inputs = {str(capture.absolute()): unchanged.facts_of(str(capture.absolute()))}
    with api.open_source(
        capture, keys=wanted_keys(keys), pipeline_states=pipeline_states, state_objects=state_objects, application=chosen
    ) as source:
        options = JobOptions(
            workers=jobs, limits=Limits(time_limit, memory_limit), retry_poisoned=retry_poisoned, statistics=statistics,
            strict=strict, replace=replace, only=pipeline_names(source, only),
        )  # fmt: skip
        application = application_identity(source, changes)
        for family in families:
            api.psdb_path(capture, family, output, single=len(families) == 1)
        with VerdictWriter(report, as_json=as_json) as writer:
            for family in families:
                result = run_job(
                    source, family, output, options, writer, plugin=plugin, package=package, abi_version=abi,
                    application=application,
                )  # fmt: skip
                if not (only or keys or wal):
                    keep_unchanged(question, inputs, family, result, writer, source)
                good &= result.tally.good
                interrupted |= result.interrupted
                if interrupted:
                    break
    sys.exit(EXIT_INTERRUPTED if interrupted else 0 if good else EXIT_NOT_ALL_GOOD)


def show_unchanged(question: list[str], capture: Path, families: tuple[str, ...], output: Path | None) -> int | None:
    """Shows what a run would show that finds everything as an earlier one left it, and gives its exit code; else None."""
    from shaderkiln.api import psdb_path

    started = time.monotonic()
    records = []
    for family in families:
        path = psdb_path(capture, family, output, single=len(families) == 1)
        record = unchanged.find_record([*question, family, str(path.absolute())])
        if record is None or not {"lines", "counts", "good"} <= record.keys():
            return None
        records.append((family, path, record))
    for family, path, record in records:
        for line in record["lines"]:
            echo(line)
        echo(f"{family}: {counts_text(record['counts'])} in {time_text(time.monotonic() - started)} → {path}")
    return 0 if all(record["good"] for _, _, record in records) else EXIT_NOT_ALL_GOOD


def keep_unchanged(
    question: list[str],
    inputs: dict[str, list[int] | None],
    family: str,
    report: JobReport,
    writer: VerdictWriter,
    source: Capture | StateObjectSource,
) -> None:
    """Keeps what the next run of the same question would show, if it would try nothing again."""
    from shaderkiln.compilers.verdicts import Outcome
    from shaderkiln.drivers.packages import default_folder

    if report.interrupted or writer.tries_again or report.differences or not report.depends_on:
        return
    counts = {str(outcome): count for outcome, count in report.tally.counts.items() if count}
    reused = counts.pop(str(Outcome.COMPILED), 0) + counts.pop(str(Outcome.REUSED), 0)
    shown = {"lines": writer.next_lines, "counts": {str(Outcome.REUSED): reused, **counts}, "good": report.tally.good}
    code = Path(unchanged.__file__).parents[1]
    files = [
        str(report.path.absolute()), str(default_folder()), *report.depends_on,
        *(str(code / name) for name in ("compilers/job.py", "descriptions/canonical.py", "descriptions/requirements.py",
                                        "drivers/device.py", "drivers/pipelines.py")),
        *source.depends_on,
    ]  # fmt: skip
    unchanged.keep_record([*question, family, str(report.path.absolute())], inputs, files, shown)


@click.command("replay")
@click.argument("capture", type=PATH)
@click.option(
    "-f", "--family", "--adapter-family", "families", multiple=True, required=True, help="Adapter family; may be repeated."
)
@job_options
@click.option("--pipeline", "only", multiple=True, help="Compile only this pipeline; may be repeated.")
@database_options
@application_option
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
    keys: tuple[str, ...],
    pipeline_states: bool,
    state_objects: bool,
    chosen: int | str | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Compile every pipeline of CAPTURE and keep nothing.

    \b
    Example:
      kiln replay game.foz --family amd-navi31
    """
    import tempfile

    from shaderkiln import api
    from shaderkiln.cli.jobs import VerdictWriter, pipeline_names, run_job, wanted_keys
    from shaderkiln.compilers.job import JobOptions
    from shaderkiln.compilers.pool import Limits

    good, interrupted = True, False
    with (
        tempfile.TemporaryDirectory(prefix="kiln-replay-") as folder,
        api.open_source(
            capture, keys=wanted_keys(keys), pipeline_states=pipeline_states, state_objects=state_objects, application=chosen
        ) as source,
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
