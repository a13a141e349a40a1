"""``kiln cache``: files of VkPipelineCache data."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shaderkiln.cli.archives import replace_option
from shaderkiln.cli.exit_codes import EXIT_NOT_ALL_GOOD
from shaderkiln.cli.output import PATH, SuggestingGroup, echo, json_option, require_file, require_psdb, size_text, write_json
from shaderkiln.errors import AlreadyExistsError, InvalidArgumentError, UnreadableError

if TYPE_CHECKING:
    from shaderkiln.databases.cache_file import Examination, Merged


@click.group("cache", cls=SuggestingGroup)
def cache_group() -> None:
    """Show, merge, compare and export Vulkan pipeline caches.

    \b
    Example:
      kiln cache show pipeline_cache.bin
      kiln cache merge -o all.bin first.bin second.bin
      kiln cache from-psdb out/game.amd-navi31.psdb -o pipeline_cache.bin
    """


@cache_group.command("show")
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("--entries", is_flag=True, help="List every entry.")
@json_option
def show_command(files: tuple[Path, ...], entries: bool, as_json: bool) -> None:
    """Show whose data FILES are, what is in them, and whether they are whole. Exit code 1 if one is not.

    Which family a cache is for is told where a driver that kiln families has asked has the same vendor, device and cache UUID.

    \b
    Example:
      kiln cache show pipeline_cache.bin --entries
    """
    from shaderkiln.databases.cache_file import State, examine

    good = True
    for path in files:
        data = _read(path)
        found = examine(data)
        good &= found.state in (State.VALID, State.OPAQUE)
        families = _families(found) if found.header else ()
        if as_json:
            write_json(_record(path, found, families))
        else:
            _show(path, found, families)
        if entries and found.header:
            _show_entries(data, as_json)
    sys.exit(0 if good else EXIT_NOT_ALL_GOOD)


@cache_group.command("merge")
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("-o", "--output", required=True, type=PATH, help="The new cache.")
@click.option("--salvage", is_flag=True, help="Leave out other devices' caches, and what is damaged, instead of refusing.")
@replace_option
@json_option
def merge_command(files: tuple[Path, ...], output: Path, salvage: bool, replace: bool, as_json: bool) -> None:
    """Merge caches of one device into a new one; of equal keys the first counts.

    Exit code 1 if anything but duplicates had to be left out, 5 if the new cache is there already.

    \b
    Example:
      kiln cache merge -o all.bin first.bin second.bin
    """
    from shaderkiln.databases.cache_file import merge

    for path in files:
        require_file(path)
        if output.exists() and path.samefile(output):
            raise InvalidArgumentError(f"{output} is also an input; give another name")
    _refuse_existing(output, replace)
    merged = merge(((str(path), _read(path)) for path in files), salvage=salvage)
    _write(output, merged.data)
    _show_ledger(merged, as_json)
    _summary(output, merged, as_json)
    sys.exit(0 if merged.good else EXIT_NOT_ALL_GOOD)


@cache_group.command("diff")
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@json_option
def diff_command(first: Path, second: Path, as_json: bool) -> None:
    """Show which entries only one of two caches has, and which differ. Exit code 1 if any do.

    \b
    Example:
      kiln cache diff first.bin second.bin
    """
    from shaderkiln.databases.cache_file import compare

    found = compare(_read(first), _read(second))
    kinds = (("only in the first", found.only_first), ("only in the second", found.only_second), ("differs", found.changed))
    if as_json:
        record = {name: [key.hex() for key in getattr(found, name)] for name in ("only_first", "only_second", "changed")}
        write_json({"type": "comparison", "equal": found.equal, **record})
    else:
        for words, keys in kinds:
            for key in keys:
                echo(f"{words}: {key.hex()}")
        echo(f"{found.equal} equal, " + ", ".join(f"{len(keys)} {words}" for words, keys in kinds))
    sys.exit(EXIT_NOT_ALL_GOOD if any(keys for _, keys in kinds) else 0)


@cache_group.command("from-psdb")
@click.argument("psdb", type=PATH)
@click.option("-o", "--output", required=True, type=PATH, help="The new cache.")
@replace_option
@json_option
def from_psdb_command(psdb: Path, output: Path, replace: bool, as_json: bool) -> None:
    """Write one cache with every pipeline of a PSDB, for programs that load pipeline_cache.bin.

    Where the driver has pipeline binaries, compile with --cache first (kiln compile --cache). Exit code 1 if a pipeline's cache
    is not stored.

    \b
    Example:
      kiln cache from-psdb out/game.amd-navi31.psdb -o pipeline_cache.bin
    """
    from shaderkiln import api
    from shaderkiln.jobs.cache_values import export_cache

    require_file(psdb)
    require_psdb(psdb, "PSDB -o CACHE")
    _refuse_existing(output, replace)
    with api.open_psdb(psdb) as database:
        exported = export_cache(database)
    _write(output, exported.data)
    for name in exported.missing:
        if not as_json:
            echo(f"pipeline {name} has no cache stored: compile it with --cache")
    _summary(output, exported.merged, as_json, pipelines=exported.pipelines, missing=list(exported.missing))
    sys.exit(EXIT_NOT_ALL_GOOD if exported.missing else 0)


def _read(path: Path) -> bytes:
    require_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from error


def _refuse_existing(output: Path, replace: bool) -> None:
    if output.exists() and not replace:
        raise AlreadyExistsError(f"{output} is there already; give another name, or --replace")


def _write(path: Path, data: bytes) -> None:
    from shaderkiln.databases.fossilize_write import NewFile, write_all

    with NewFile(path) as new:
        write_all(path, new.descriptor, data)
        new.commit()


def _families(found: Examination) -> tuple[str, ...]:
    """Families of installed drivers, asked before, that have just this header."""
    from shaderkiln.jobs.cache_values import families_of

    assert found.header is not None
    return families_of(found.header)


def _record(path: Path, found: Examination, families: tuple[str, ...]) -> dict[str, Any]:
    record = asdict(found) | {"type": "cache", "file": str(path), "families": families}
    if found.header:
        record["header"] = asdict(found.header) | {"uuid": found.header.uuid.hex()}
    return record


def _show(path: Path, found: Examination, families: tuple[str, ...]) -> None:
    echo(f"{path}: {found.state}, {size_text(found.size)}" + (", sealed with a checksum" if found.sealed else ""))
    if found.fault:
        echo(f"fault    {found.fault} (byte {found.position})")
    if found.header is None:
        return
    header = found.header
    echo(f"driver   {found.driver or 'not known'}, layout {found.layout}")
    echo(f"family   {', '.join(families) or 'not told: no driver that kiln families has asked has this header'}")
    echo(f"device   vendor {header.vendor_id:#06x}, device {header.device_id:#06x}, UUID {header.uuid.hex()}")
    if found.layout == "opaque":
        echo("entries  only its driver understands them")
        return
    text = f"entries  {found.entries}, {size_text(found.entry_bytes)}"
    if found.pipelines:
        text += f", {found.pipelines} of them pipelines"
    if found.incomplete:
        text += f", {found.incomplete} without all their shaders"
    echo(text)


def _show_entries(data: bytes, as_json: bool) -> None:
    from shaderkiln.formats import mesa_cache

    for entry in mesa_cache.read(data):
        if as_json:
            write_json({"type": "entry", "entry_type": entry.type, "key": entry.key.hex(), "bytes": len(entry.data)})
        else:
            echo(f"  {entry.key.hex()}  type {entry.type}, {len(entry.data)} bytes")


def _show_ledger(merged: Merged, as_json: bool) -> None:
    for source in merged.sources:
        if as_json:
            write_json({"type": "ledger", **asdict(source)})
            continue
        if source.left_out:
            echo(f"{source.name}: left out: {source.left_out}")
            continue
        text = f"{source.name}: {source.entries} entries: {source.kept} kept, {source.duplicates} duplicate"
        if source.conflicting:
            text += f", {source.conflicting} conflicting"
        echo(text)
        if source.damage:
            echo(f"{source.name}: left out: {source.damage}")


def _summary(output: Path, merged: Merged, as_json: bool, **more: Any) -> None:
    size = output.stat().st_size
    if as_json:
        write_json({"type": "summary", "output": str(output), "entries": merged.entries, "bytes": size, **more})
        return
    pipelines = f"{more['pipelines']} pipelines, " if "pipelines" in more else ""
    echo(f"{output}: {pipelines}{merged.entries} entries, {size_text(size)}")
