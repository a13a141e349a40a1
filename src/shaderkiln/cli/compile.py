"""``kiln compile`` and ``kiln replay``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shaderkiln.cli.arguments import PATH
from shaderkiln.cli.exit_codes import EXIT_NOT_ALL_GOOD
from shaderkiln.cli.output import Output, echo, output_option, time_text
from shaderkiln.cli.reports import warn_of_damage, warn_of_nothing
from shaderkiln.file_facts import facts_of, package_facts
from shaderkiln.jobs import unchanged

if TYPE_CHECKING:
    from shaderkiln.cli.jobs import VerdictWriter
    from shaderkiln.jobs.compile import JobReport
    from shaderkiln.sources.source import Source

# Nothing that compiles is imported up here: a run that finds everything as the last one left it ends before it needs that.


def parse_size(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    """``4G`` → bytes; powers of 1024."""
    text = value.strip().upper().removesuffix("B").removesuffix("I")
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    number = text.rstrip("KMG")
    if not (number.isascii() and number.isdecimal() and int(number)):
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


def all_of(*options: Any) -> Callable[[Any], Any]:
    """Several options as one decorator, in the order in which the help shows them."""
    return lambda function: reduce(lambda inner, option: option(inner), reversed(options), function)


job_options = all_of(
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
)
"""The options of every command that starts workers."""


verdict_options = all_of(
    click.option("--report", type=PATH, help="Write one JSON line for every pipeline to this file."),
    click.option("--verbose", is_flag=True, help="Show everything that each unsupported pipeline lacks."),
    click.option("--fail-on-unsupported", is_flag=True, help="Exit code 1 if a pipeline is unsupported."),
)
"""The options of every command that shows verdicts."""


def split_families(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """The families of all options, each once; commas may stand between several."""
    names = [name.strip() for given in value for name in given.split(",")]
    if not all(names):
        raise click.BadParameter(f"{','.join(value)!r} has an empty name")
    return tuple(dict.fromkeys(names))


def known_names(families: tuple[str, ...]) -> tuple[str, ...]:
    """The names under which families are known here, each once; a name that no table has stays as it is."""
    from shaderkiln.drivers.targets import KNOWN_FAMILIES, canonical_family

    names = ((family, canonical_family(family)) for family in families)
    return tuple(dict.fromkeys(name if name in KNOWN_FAMILIES else family for family, name in names))


family_option = click.option(
    "-f", "--family", "--adapter-family", "families", multiple=True, required=True, callback=split_families,
    help="Adapter family; may be repeated, or have several with commas between them.",
)  # fmt: skip
"""The option that names the families to compile for."""
database_options = all_of(
    click.option("--key", "keys", multiple=True, help="Only the object with this key of a .sodb; may be repeated."),
    click.option("--psos/--no-psos", "pipeline_states", default=True, help="Pipeline states of a .sodb or not."),
    click.option("--sos/--no-sos", "state_objects", default=True, help="State objects of a .sodb or not."),
)
"""The options that choose among the objects of a state object database."""


@click.command("compile")
@click.argument("capture", type=PATH)
@click.argument("output_file", type=PATH, required=False)
@family_option
@click.option("-o", "--output", type=PATH, help="Folder for the PSDBs, or one *.psdb file.")
@job_options
@click.option("--abi", callback=parse_abi, help="ABI version of the driver to compile with; default: the largest.")
@click.option("--pipeline", "only", multiple=True, help="Compile only this pipeline; may be repeated.")
@database_options
@application_option
@click.option("--pdb", is_flag=True, help="Store debug data of shaders too; the drivers of today have none.")
@click.option("--perf", "statistics", is_flag=True, help="Store the driver's statistics too; compiles everything twice.")
@click.option("--cache", "caches", is_flag=True, help="Store what kiln cache from-psdb needs too; compiles everything twice.")
@click.option("--retry-poisoned", is_flag=True, help="Try pipelines again that ended the driver's process before.")
@click.option("--strict", is_flag=True, help="Keep from the driver what does more than the device advertises.")
@click.option("--replace", is_flag=True, help="Replace a PSDB that is damaged, or was made for or by somebody else.")
@click.option("--name", help="Application name for the PSDB; default: the capture's.")
@click.option("--exe-filename", help="Executable file name of the application.")
@click.option("--app-version", "--version", "app_version", help="Application version, such as 1.0.")
@click.option("--engine", "--engine-name", "engine_name", help="Engine name.")
@click.option("--engine-version", help="Engine version.")
@verdict_options
@output_option
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
    caches: bool,
    retry_poisoned: bool,
    strict: bool,
    replace: bool,
    name: str | None,
    exe_filename: str | None,
    app_version: str | None,
    engine_name: str | None,
    engine_version: str | None,
    report: Path | None,
    verbose: bool,
    fail_on_unsupported: bool,
    out: Output,
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
    if output_file is not None and (output_file.suffix != ".psdb" or output_file.is_dir()):
        raise click.UsageError(
            f"{output_file}: OUTPUT_FILE, the second argument, is one *.psdb file; a folder is given with -o. A second capture? "
            "compile takes one: run it once for each, or merge them. A second family? Repeat --family for it"
        )
    output = output or output_file
    # From before anything is read: what changes while this runs is no part of its outcome.
    started, package_code = time.time_ns(), package_facts()
    changes = {
        "name": name, "exe_filename": exe_filename, "version": app_version,
        "engine_name": engine_name, "engine_version": engine_version,
    }  # fmt: skip
    question = [
        *map(str, (capture.absolute(), plugin, package, abi, strict, statistics, caches, verbose, *changes.values())),
        *map(str, (pipeline_states, state_objects, repr(chosen))),
    ]
    quick = out.for_people and not (report or only or keys or retry_poisoned or replace)
    if quick and (code := show_unchanged(question, package_code, capture, families, output, fail_on_unsupported)) is not None:
        sys.exit(code)
    families = known_names(families)

    from shaderkiln import api
    from shaderkiln.cli.jobs import VerdictWriter, application_identity, pipeline_names, run_job, run_jobs, wanted_keys
    from shaderkiln.jobs.compile import JobOptions
    from shaderkiln.workers.pool import Limits

    # What SQLite has not yet moved from its log into a database is no part of the facts about that file.
    wal = Path(f"{capture}-wal").exists()
    inputs = {str(capture.absolute()): facts_of(str(capture.absolute()))}
    with api.open_source(
        capture, keys=wanted_keys(keys), pipeline_states=pipeline_states, state_objects=state_objects, application=chosen
    ) as source:
        options = JobOptions(
            workers=jobs, limits=Limits(time_limit, memory_limit), retry_poisoned=retry_poisoned, statistics=statistics,
            pipeline_caches=caches,
            strict=strict, replace=replace, only=pipeline_names(source, only),
        )  # fmt: skip
        application = application_identity(source, changes)
        for family in families:
            api.psdb_path(capture, family, output, single=len(families) == 1)
        with VerdictWriter(report, out, verbose=verbose) as writer:

            def run(family: str) -> JobReport:
                result = run_job(
                    source, family, output, options, writer, plugin=plugin, package=package, abi_version=abi,
                    application=application,
                )  # fmt: skip
                if not (only or keys or wal):
                    keep_unchanged(question, package_code, inputs, started, family, result, writer, source)
                return result

            code = run_jobs(families, run, source, out, fail_on_unsupported=fail_on_unsupported)
    sys.exit(code)


def show_unchanged(
    question: list[str],
    package_code: str,
    capture: Path,
    families: tuple[str, ...],
    output: Path | None,
    fail_on_unsupported: bool,
) -> int | None:
    """Shows what a run would show that finds everything as an earlier one left it, and gives its exit code; else None."""
    from shaderkiln.api import psdb_path

    started = time.monotonic()
    records = []
    for family in families:
        path = psdb_path(capture, family, output, single=len(families) == 1)
        record = unchanged.find_record([*question, family, str(path.absolute())], package_code)
        if record is None or not {"lines", "words", "total", "unsupported", "good", "damage"} <= record.keys():
            return None
        records.append((family, path, record))
    warn_of_damage(capture, records[0][2]["damage"])
    good = True
    for family, path, record in records:
        for line in record["lines"]:
            echo(line)
        warn_of_nothing(family, record["total"], record["unsupported"])
        echo(f"{family}: {record['words']} in {time_text(time.monotonic() - started)} → {path}")
        good &= record["good"] and not (fail_on_unsupported and record["unsupported"])
    return 0 if good else EXIT_NOT_ALL_GOOD


def keep_unchanged(
    question: list[str],
    package_code: str,
    inputs: dict[str, list[int] | None],
    started: int,
    family: str,
    report: JobReport,
    writer: VerdictWriter,
    source: Source,
) -> None:
    """Keeps what the next run of the same question would show, if it would try nothing again.

    ``started``: when this run began, in nanoseconds since the epoch.
    """
    from shaderkiln.drivers.packages import default_folder
    from shaderkiln.jobs.verdicts import Outcome, Tally

    if report.interrupted or writer.tries_again or report.differences or not report.depends_on:
        return
    next_tally = Tally(report.tally.counts.copy())
    next_tally.counts[Outcome.REUSED] += next_tally.counts.pop(Outcome.COMPILED, 0)
    shown = {
        "lines": writer.next_lines, "words": str(next_tally), "total": report.total, "good": report.good,
        "unsupported": report.tally.counts[Outcome.UNSUPPORTED], "damage": report.source_damage,
    }  # fmt: skip
    path, drivers = str(report.path.absolute()), default_folder()
    depends_on = {file: facts_of(file) for file in (str(drivers), *report.depends_on, *source.depends_on)}
    settled = all(facts is not None and facts[2] < started for facts in depends_on.values())
    if settled:
        # Which package is chosen may depend on any; Mesa reads the user's and the system's drirc; SQLite keeps news beside a file.
        others = [*map(str, drivers.glob("*/manifest.json")), str(Path.home() / ".drirc"), "/etc/drirc", f"{source.path}-wal"]
        asked = [*question, family, path]
        unchanged.keep_record(asked, package_code, inputs | depends_on, [path], shown, may_be_missing=others)


@click.command("replay")
@click.argument("capture", type=PATH)
@family_option
@job_options
@click.option("--pipeline", "only", multiple=True, help="Compile only this pipeline; may be repeated.")
@database_options
@application_option
@verdict_options
@output_option
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
    verbose: bool,
    fail_on_unsupported: bool,
    out: Output,
) -> None:
    """Compile every pipeline of CAPTURE and keep nothing.

    \b
    Example:
      kiln replay game.foz --family amd-navi31
    """
    import tempfile

    from shaderkiln import api
    from shaderkiln.cli.jobs import VerdictWriter, pipeline_names, run_job, run_jobs, wanted_keys
    from shaderkiln.jobs.compile import JobOptions
    from shaderkiln.workers.pool import Limits

    families = known_names(families)

    with (
        tempfile.TemporaryDirectory(prefix="kiln-replay-") as folder,
        api.open_source(
            capture, keys=wanted_keys(keys), pipeline_states=pipeline_states, state_objects=state_objects, application=chosen
        ) as source,
        VerdictWriter(report, out, verbose=verbose) as writer,
    ):
        options = JobOptions(workers=jobs, limits=Limits(time_limit, memory_limit), only=pipeline_names(source, only))

        def run(family: str) -> JobReport:
            return run_job(source, family, Path(folder), options, writer, plugin=plugin, package=package, kept=False)

        code = run_jobs(families, run, source, out, fail_on_unsupported=fail_on_unsupported)
    sys.exit(code)
