"""``kiln verify``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shaderkiln import api
from shaderkiln.cli.arguments import PATH, check_hashes_option, require_psdb
from shaderkiln.cli.compile import application_option, job_options, verdict_options
from shaderkiln.cli.exit_codes import EXIT_INTERRUPTED, EXIT_NOT_ALL_GOOD
from shaderkiln.cli.jobs import VerdictWriter, end_text, followed, summary_record
from shaderkiln.cli.output import Output, output_option, time_text
from shaderkiln.cli.reports import hashes_record, hashes_text, warn_of_damage
from shaderkiln.jobs.verdicts import Outcome
from shaderkiln.workers.pool import Limits

if TYPE_CHECKING:
    from shaderkiln.databases.fossilize import HashCheck
    from shaderkiln.sources.source import Source


@click.command("verify")
@click.argument("psdb", type=PATH)
@click.argument("capture", type=PATH)
@click.option("-f", "--family", help="Verify for this family; default: the one that the PSDB was made for.")
@job_options
@application_option
@click.option("--strict", is_flag=True, help="The PSDB was compiled with --strict: what that kept out is no miss.")
@check_hashes_option
@verdict_options
@output_option
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
    strict: bool,
    check_hashes: bool,
    report: Path | None,
    verbose: bool,
    fail_on_unsupported: bool,
    out: Output,
) -> None:
    """Create every pipeline of CAPTURE (.foz or .sodb) on the driver from PSDB, with compiling forbidden.

    Every value's checksum is verified first; a damaged value is named and never reaches the driver. Exit code 1 with
    --check-hashes if an entry of CAPTURE is not what its name says.

    \b
    Example:
      kiln verify out/game.amd-navi31.psdb game.foz
      kiln verify out/game.amd-navi31.psdb game.foz --check-hashes
    """
    require_psdb(psdb, "PSDB CAPTURE")
    with (
        api.open_psdb(psdb) as database,
        api.open_source(capture, application=chosen) as source,
        VerdictWriter(report, out, verbose=verbose) as writer,
    ):
        warn_of_damage(capture, source.damage)
        hashes = _check_hashes(source) if check_hashes else None
        with followed(writer, f"{family or database.identity.family} verify", source) as follow:
            result = api.verify_psdb(
                database, source, family=family, plugin=plugin, package=package, workers=jobs,
                limits=Limits(time_limit, memory_limit), strict=strict, **follow,
            )  # fmt: skip
        is_good = result.good and not (hashes and hashes.wrong)
        for damage in result.damage:
            out.record({"type": "damage", "family": writer.family, "text": str(damage)}, f"{writer.family}: damaged: {damage}")
        record = summary_record(result, writer.family, str(psdb)) | {"good": is_good}
        lines = []
        if hashes:
            record |= hashes_record(hashes)
            lines = [*(f"{capture}: damaged: {wrong}" for wrong in hashes.wrong), f"{capture}: hashes: {hashes_text(hashes)}"]
        out.record(record, *lines, f"{writer.family}: {end_text(result)} in {time_text(result.seconds)}")
    good = is_good and not (fail_on_unsupported and result.tally.counts[Outcome.UNSUPPORTED])
    sys.exit(EXIT_INTERRUPTED if result.interrupted else 0 if good else EXIT_NOT_ALL_GOOD)


def _check_hashes(source: Source) -> HashCheck:
    from shaderkiln.databases.fossilize import HashCheck
    from shaderkiln.sources.capture import Capture

    if not isinstance(source, Capture):
        raise click.UsageError(f"{source.path} is no capture: --check-hashes is for .foz")
    return HashCheck(source.archive).run()
