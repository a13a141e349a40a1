"""``kiln isa``."""

from __future__ import annotations

from pathlib import Path

import click

from shaderkiln import api
from shaderkiln.cli.arguments import PATH, require_psdb
from shaderkiln.cli.compile import application_option
from shaderkiln.cli.output import Output, echo, output_option
from shaderkiln.drivers.protocol import Executable, Representation


@click.command("isa")
@click.argument("psdb", type=PATH)
@click.argument("pipeline")
@click.option(
    "-c",
    "--capture",
    type=PATH,
    help="The capture; default: the .foz or .sodb of the PSDB's name beside it, one folder up, here, or in samples/.",
)
@click.option("--statistics-only", is_flag=True, help="Leave the disassembly out.")
@click.option("--asm", "assembly_only", is_flag=True, help="Show the final assembly, nothing else.")
@click.option("--plugin", help="Compiler plugin.")
@click.option("--driver", "package", help="Driver package.")
@application_option
@output_option
def isa_command(
    psdb: Path,
    pipeline: str,
    capture: Path | None,
    statistics_only: bool,
    assembly_only: bool,
    plugin: str | None,
    package: str | None,
    chosen: int | str | None,
    out: Output,
) -> None:
    """Show the driver's own disassembly and statistics of PIPELINE, compiled again with capture on.

    A PSDB carries no shaders, so the capture that it was compiled from is needed too.

    \b
    Example:
      kiln isa out/game.amd-navi31.psdb 36500a7b241cea31 --capture game.foz
    """
    if statistics_only and assembly_only:
        raise click.UsageError("--statistics-only and --asm leave nothing to show; give one of them")
    require_psdb(psdb, "PSDB PIPELINE")
    with api.open_psdb(psdb) as database:
        identity = database.identity
    with api.open_source(capture or _beside(psdb, identity.family), application=chosen) as source:
        result = api.inspect_pipeline(
            source, pipeline, identity.family, plugin=plugin, package=package, abi_version=identity.abi_version
        )
    wanted = [[] if statistics_only else _chosen(each, assembly_only) for each in result.executables]
    if not statistics_only and not any(wanted):
        echo(f"the driver of {identity.family} gives no disassembly", err=True)
    record = {
        "type": "isa", "family": identity.family, "pipeline": result.description.name, "kind": result.description.kind,
        "driver_build": result.driver_build,
        "executables": [
            {
                "name": each.name, "description": each.description, "subgroup_size": each.subgroup_size,
                "statistics": {s.name: s.value for s in each.statistics},
                "representations": {
                    r.name: r.data.decode(errors="replace") if r.is_text else r.data.hex()
                    for r in listed
                },
            }
            for each, listed in zip(result.executables, wanted, strict=True)
        ],
    }  # fmt: skip
    lines = []
    if not assembly_only:
        lines.append(
            f"{result.description.kind} pipeline {result.description.name} for {identity.family}, {result.driver_build}"
        )
    for executable, listed in zip(result.executables, wanted, strict=True):
        if assembly_only:
            lines += [f"== {executable.name}"] if len(result.executables) > 1 else []
            lines += map(_text, listed)
            continue
        lines.append(f"\n== {executable.name}: {executable.description}, subgroup size {executable.subgroup_size}")
        lines += [f"{statistic.name:>36}: {statistic.value}" for statistic in executable.statistics]
        lines += [f"-- {each.name}: {each.description}\n{_text(each)}" for each in listed if each.is_text]
    out.record(record, *lines)


def _chosen(executable: Executable, assembly_only: bool) -> list[Representation]:
    """What to show of an executable; a driver gives its representations in the order of its passes, the assembly last."""
    if not assembly_only:
        return list(executable.representations)
    texts = [each for each in executable.representations if each.is_text]
    named = [each for each in texts if "assembly" in each.name.lower()]
    return (named or texts)[-1:]


def _text(representation: Representation) -> str:
    return representation.data.decode(errors="replace").rstrip("\0\n")


def _beside(psdb: Path, family: str) -> Path:
    stem = psdb.name.removesuffix(".psdb").removesuffix(f".{family}")
    for folder in (psdb.parent, psdb.absolute().parent.parent, Path(), Path("samples")):
        for suffix in ("foz", "sodb"):
            if (found := folder / f"{stem}.{suffix}").is_file():
                return found
    raise click.UsageError(
        f"no capture {stem}.foz or {stem}.sodb was found beside the PSDB, one folder up, here, or in samples/; "
        "name it with --capture"
    )
