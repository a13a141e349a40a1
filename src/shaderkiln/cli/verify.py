"""``kiln verify``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from shaderkiln import api
from shaderkiln.cli.compile import application_option, job_options
from shaderkiln.cli.jobs import VerdictWriter, tally_text
from shaderkiln.cli.output import (
    EXIT_INTERRUPTED,
    EXIT_NOT_ALL_GOOD,
    PATH,
    ProgressLine,
    echo,
    json_option,
    stop_on_interrupt,
    time_text,
    write_json,
)
from shaderkiln.compilers.pool import Limits


@click.command("verify")
@click.argument("psdb", type=PATH)
@click.argument("capture", type=PATH)
@click.option("-f", "--family", help="Verify for this family; default: the one that the PSDB was made for.")
@job_options
@application_option
@click.option("--report", type=PATH, help="Write one JSON line for every pipeline to this file.")
@json_option
def verify_command(
    psdb: Path,
    capture: Path,
    family: str | None,
    jobs: int | None,
    time_limit: float,
    memory_limit: int,
    plugin: str | None,
    package: str | None,
    chosen: int | str | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Create every pipeline of CAPTURE (.foz or .sodb) on the driver from PSDB, with compiling forbidden.

    Every value's checksum is verified first; a damaged value is named and never reaches the driver.

    \b
    Example:
      kiln verify out/game.amd-navi31.psdb game.foz
    """
    with (
        api.open_psdb(psdb) as database,
        api.open_source(capture, application=chosen) as source,
        VerdictWriter(report, as_json=as_json) as writer,
    ):
        writer.family = family or database.identity.family
        line = ProgressLine(f"{writer.family} verify", enabled=not as_json)
        writer.before_line = line
        with stop_on_interrupt() as started:
            writer.label = source.label
            result = api.verify_psdb(
                database, source, family=family, plugin=plugin, package=package, workers=jobs,
                limits=Limits(time_limit, memory_limit), on_verdict=writer, on_tick=line, on_start=started,
            )  # fmt: skip
        line.clear()
        if as_json:
            for damage in result.damage:
                write_json({"type": "damage", "family": writer.family, "text": str(damage)})
            record = {
                "type": "summary", "family": writer.family, "psdb": str(psdb), "pipelines": result.tally.total,
                "counts": {str(o): n for o, n in result.tally.counts.items()}, "good": result.good,
                "interrupted": result.interrupted, "driver_seconds": result.tally.seconds, "seconds": result.seconds,
            }  # fmt: skip
            write_json(record)
        else:
            for damage in result.damage:
                echo(f"{writer.family}: damaged: {damage}")
            ending = " (interrupted)" if result.interrupted else ""
            echo(f"{writer.family}: {tally_text(result.tally)} in {time_text(result.seconds)}{ending}")
    sys.exit(EXIT_INTERRUPTED if result.interrupted else 0 if result.good else EXIT_NOT_ALL_GOOD)
