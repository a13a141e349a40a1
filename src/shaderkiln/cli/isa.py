"""``kiln isa``."""

from __future__ import annotations

from pathlib import Path

import click

from shaderkiln import api
from shaderkiln.cli.compile import application_option
from shaderkiln.cli.output import PATH, echo, json_option, require_psdb, write_json


@click.command("isa")
@click.argument("psdb", type=PATH)
@click.argument("pipeline")
@click.option("-c", "--capture", type=PATH, help="The capture; default: the one of that name nearby.")
@click.option("--statistics-only", is_flag=True, help="Leave the disassembly out.")
@click.option("--plugin", help="Compiler plugin.")
@click.option("--driver", "package", help="Driver package.")
@application_option
@json_option
def isa_command(
    psdb: Path,
    pipeline: str,
    capture: Path | None,
    statistics_only: bool,
    plugin: str | None,
    package: str | None,
    chosen: int | str | None,
    as_json: bool,
) -> None:
    """Show the driver's own disassembly and statistics of PIPELINE, compiled again with capture on.

    A PSDB carries no shaders, so the capture that it was compiled from is needed too.

    \b
    Example:
      kiln isa out/game.amd-navi31.psdb 36500a7b241cea31 --capture game.foz
    """
    require_psdb(psdb, "PSDB PIPELINE")
    with api.open_psdb(psdb) as database:
        identity = database.identity
    with api.open_source(capture or _beside(psdb, identity.family), application=chosen) as source:
        result = api.inspect_pipeline(
            source, pipeline, identity.family, plugin=plugin, package=package, abi_version=identity.abi_version
        )
    if as_json:
        record = {
            "type": "isa", "family": identity.family, "pipeline": result.description.name, "kind": result.description.kind,
            "driver_build": result.driver_build,
            "executables": [
                {
                    "name": each.name, "description": each.description, "subgroup_size": each.subgroup_size,
                    "statistics": {s.name: s.value for s in each.statistics},
                    "representations": {
                        r.name: r.data.decode(errors="replace") if r.is_text else r.data.hex()
                        for r in ([] if statistics_only else each.representations)
                    },
                }
                for each in result.executables
            ],
        }  # fmt: skip
        write_json(record)
        return
    echo(f"{result.description.kind} pipeline {result.description.name} for {identity.family}, {result.driver_build}")
    for executable in result.executables:
        echo(f"\n== {executable.name}: {executable.description}, subgroup size {executable.subgroup_size}")
        for statistic in executable.statistics:
            echo(f"{statistic.name:>36}: {statistic.value}")
        for representation in [] if statistics_only else executable.representations:
            if representation.is_text:
                text = representation.data.decode(errors="replace").rstrip("\0\n")
                echo(f"-- {representation.name}: {representation.description}\n{text}")


def _beside(psdb: Path, family: str) -> Path:
    stem = psdb.name.removesuffix(".psdb").removesuffix(f".{family}")
    for folder in (psdb.parent, psdb.parent.parent, Path()):
        for suffix in ("foz", "sodb"):
            if (found := folder / f"{stem}.{suffix}").is_file():
                return found
    raise click.UsageError(f"no capture {stem}.foz or {stem}.sodb was found; name it with --capture")
