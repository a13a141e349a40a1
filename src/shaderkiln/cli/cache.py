"""``kiln cache``: files of VkPipelineCache data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shaderkiln.cli.arguments import (
    PATH,
    SuggestingGroup,
    refuse_existing,
    replace_option,
    require_file,
    require_inputs,
    require_psdb,
)
from shaderkiln.cli.exit_codes import EXIT_NOT_ALL_GOOD
from shaderkiln.cli.output import Output, output_option, size_text
from shaderkiln.errors import UnreadableError

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
@output_option
def show_command(files: tuple[Path, ...], entries: bool, out: Output) -> None:
    """Show whose data FILES are, what is in them, and whether they are whole. Exit code 1 if one is not.

    Which family a cache is for is told where a driver that kiln families has asked has the same vendor, device and cache UUID.

    \b
    Example:
      kiln cache show pipeline_cache.bin --entries
    """
    from shaderkiln.databases.cache_file import State, examine
    from shaderkiln.jobs.cache_values import families_of

    good = True
    for path in files:
        data = _read(path)
        found = examine(data)
        good &= found.state in (State.VALID, State.OPAQUE)
        families = families_of(found.header) if found.header else ()
        out.record(_record(path, found, families), *_lines(path, found, families))
        if entries and found.header:
            _show_entries(data, out)
    sys.exit(0 if good else EXIT_NOT_ALL_GOOD)


@cache_group.command("merge")
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("-o", "--output", required=True, type=PATH, help="The new cache.")
@click.option("--salvage", is_flag=True, help="Leave out other devices' caches, and what is damaged, instead of refusing.")
@replace_option
@output_option
def merge_command(files: tuple[Path, ...], output: Path, salvage: bool, replace: bool, out: Output) -> None:
    """Merge caches of one device into a new one; of equal keys the first counts.

    Exit code 1 if anything but duplicates had to be left out, 5 if the new cache is there already.

    \b
    Example:
      kiln cache merge -o all.bin first.bin second.bin
    """
    from shaderkiln.databases.cache_file import merge

    require_inputs(files, output, replace)
    merged = merge(((str(path), _read(path)) for path in files), salvage=salvage)
    _write(output, merged.data)
    _show_ledger(merged, out)
    _summary(output, merged, out)
    sys.exit(0 if merged.good else EXIT_NOT_ALL_GOOD)


@cache_group.command("diff")
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@output_option
def diff_command(first: Path, second: Path, out: Output) -> None:
    """Show which entries only one of two caches has, and which differ. Exit code 1 if any do.

    \b
    Example:
      kiln cache diff first.bin second.bin
    """
    from shaderkiln.databases.cache_file import compare

    found = compare(_read(first), _read(second))
    kinds = (("only in the first", found.only_first), ("only in the second", found.only_second), ("differs", found.changed))
    record = {name: [key.hex() for key in getattr(found, name)] for name in ("only_first", "only_second", "changed")}
    lines = [f"{words}: {key.hex()}" for words, keys in kinds for key in keys]
    lines.append(f"{found.equal} equal, " + ", ".join(f"{len(keys)} {words}" for words, keys in kinds))
    out.record({"type": "comparison", "equal": found.equal, **record}, *lines)
    sys.exit(EXIT_NOT_ALL_GOOD if any(keys for _, keys in kinds) else 0)


@cache_group.command("from-psdb")
@click.argument("psdb", type=PATH)
@click.option("-o", "--output", required=True, type=PATH, help="The new cache.")
@replace_option
@output_option
def from_psdb_command(psdb: Path, output: Path, replace: bool, out: Output) -> None:
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
    refuse_existing(output, replace)
    with api.open_psdb(psdb) as database:
        exported = export_cache(database)
    _write(output, exported.data)
    out.people(*(f"pipeline {name} has no cache stored: compile it with --cache" for name in exported.missing))
    _summary(output, exported.merged, out, pipelines=exported.pipelines, missing=list(exported.missing))
    sys.exit(EXIT_NOT_ALL_GOOD if exported.missing else 0)


def _read(path: Path) -> bytes:
    require_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from error


def _write(path: Path, data: bytes) -> None:
    from shaderkiln.databases.fossilize_write import NewFile, write_all

    with NewFile(path) as new:
        write_all(path, new.descriptor, data)
        new.commit()


def _record(path: Path, found: Examination, families: tuple[str, ...]) -> dict[str, Any]:
    record = asdict(found) | {"type": "cache", "file": str(path), "families": families}
    if found.header:
        record["header"] = asdict(found.header) | {"uuid": found.header.uuid.hex()}
    return record


def _lines(path: Path, found: Examination, families: tuple[str, ...]) -> Iterator[str]:
    yield f"{path}: {found.state}, {size_text(found.size)}" + (", sealed with a checksum" if found.sealed else "")
    if found.fault:
        yield f"fault    {found.fault} (byte {found.position})"
    if found.header is None:
        return
    header = found.header
    yield f"driver   {found.driver or 'not known'}, layout {found.layout}"
    yield f"family   {', '.join(families) or 'not told: no driver that kiln families has asked has this header'}"
    yield f"device   vendor {header.vendor_id:#06x}, device {header.device_id:#06x}, UUID {header.uuid.hex()}"
    if found.layout == "opaque":
        yield "entries  only its driver understands them"
        return
    text = f"entries  {found.entries}, {size_text(found.entry_bytes)}"
    if found.pipelines:
        text += f", {found.pipelines} of them pipelines"
    if found.incomplete:
        text += f", {found.incomplete} without all their shaders"
    yield text


def _show_entries(data: bytes, out: Output) -> None:
    from shaderkiln.formats import mesa_cache

    for entry in mesa_cache.read(data):
        record = {"type": "entry", "entry_type": entry.type, "key": entry.key.hex(), "bytes": len(entry.data)}
        out.record(record, f"  {entry.key.hex()}  type {entry.type}, {len(entry.data)} bytes")


def _show_ledger(merged: Merged, out: Output) -> None:
    for source in merged.sources:
        lines = [f"{source.name}: {source.entries} entries: {source.kept} kept, {source.duplicates} duplicate"]
        if source.conflicting:
            lines[0] += f", {source.conflicting} conflicting"
        if source.damage:
            lines.append(f"{source.name}: left out: {source.damage}")
        if source.left_out:
            lines = [f"{source.name}: left out: {source.left_out}"]
        out.record({"type": "ledger", **asdict(source)}, *lines)


def _summary(output: Path, merged: Merged, out: Output, **more: Any) -> None:
    size = output.stat().st_size
    pipelines = f"{more['pipelines']} pipelines, " if "pipelines" in more else ""
    record = {"type": "summary", "output": str(output), "entries": merged.entries, "bytes": size, **more}
    out.record(record, f"{output}: {pipelines}{merged.entries} entries, {size_text(size)}")
