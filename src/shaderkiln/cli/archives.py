"""``kiln merge`` and ``kiln salvage``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shaderkiln.cli.arguments import (
    PATH,
    check_hashes_option,
    replace_option,
    require_inputs,
)
from shaderkiln.cli.exit_codes import EXIT_NOT_ALL_GOOD
from shaderkiln.cli.output import Output, echo, output_option, size_text

if TYPE_CHECKING:
    from shaderkiln.databases.fossilize import Ledger


@click.command("merge")
@click.argument("captures", nargs=-1, required=True, type=PATH)
@click.option("-o", "--output", required=True, type=PATH, help="The new capture.")
@replace_option
@check_hashes_option
@output_option
def merge_command(captures: tuple[Path, ...], output: Path, replace: bool, check_hashes: bool, out: Output) -> None:
    """Merge captures into a new one. Every checksum is verified; damaged entries are left out and named.

    --check-hashes also leaves out entries that are not what their names say.

    Exit code 1 if anything had to be left out, 5 if the new capture is there already. Captures of applications whose robustness
    features differ can be merged, with a warning: the result is compiled for one application at a time.

    \b
    Example:
      kiln merge -o all.foz first.foz second.foz
      kiln merge -o all.foz first.foz second.foz --check-hashes
    """
    from shaderkiln.databases.fossilize import merge

    require_inputs(captures, output, replace)
    _show(merge(captures, output, check_hashes=check_hashes), output, out, check_hashes)


@click.command("salvage")
@click.argument("capture", type=PATH)
@click.option("-o", "--output", required=True, type=PATH, help="The new capture.")
@replace_option
@check_hashes_option
@output_option
def salvage_command(capture: Path, output: Path, replace: bool, check_hashes: bool, out: Output) -> None:
    """Write every good entry of a damaged capture to a new one and list the rest.

    --check-hashes also leaves out entries that are not what their names say.

    Exit code 1 if anything had to be left out, 5 if the new capture is there already.

    \b
    Example:
      kiln salvage broken.foz -o good.foz
      kiln salvage broken.foz -o good.foz --check-hashes
    """
    from shaderkiln.databases.fossilize import salvage

    require_inputs((capture,), output, replace)
    _show(salvage(capture, output, check_hashes=check_hashes), output, out, check_hashes)


def _show(ledger: Ledger, output: Path, out: Output, check_hashes: bool) -> None:
    from shaderkiln import api
    from shaderkiln.cli.show import applications_record

    for item in ledger.inputs:
        record = {
            "type": "ledger", "input": str(item.path), "entries": item.entries, "kept": item.kept,
            "duplicates": item.duplicates, "conflicting": item.conflicting, "dropped": item.dropped,
            "damage": [str(damage) for damage in item.damage],
            "conflicts": [f"{conflict.tag.name} {conflict.hash:016x}" for conflict in item.conflicts],
        }  # fmt: skip
        if check_hashes:
            record["hashes_not_checked"] = item.not_checked
        text = f"{item.path}: {item.entries} entries: {item.kept} kept, {item.duplicates} duplicate"
        if item.conflicting:
            text += f", {item.conflicting} conflicting"
        if item.dropped:
            text += f", {item.dropped} dropped"
        if item.not_checked:
            text += f", {item.not_checked} with a hash that cannot be checked"
        lines = [f"{item.path}: dropped: {damage}" for damage in item.damage] + [
            f"{item.path}: left out {conflict.tag.name.lower()} {conflict.hash:016x}: differs from that of {conflict.kept_from}"
            for conflict in item.conflicts
        ]
        out.record(record, text, *lines)
    with api.open_capture(output) as capture:
        is_mixed, applications = capture.mixes_features, applications_record(capture)
    record = {
        "type": "summary", "output": str(output), "entries": ledger.kept, "bytes": ledger.bytes_written,
        "applications": applications, "mixed_features": is_mixed,
    }  # fmt: skip
    out.record(record, f"{output}: {ledger.kept} entries, {size_text(ledger.bytes_written)}")
    if is_mixed:
        echo(
            f"kiln: warning: {output}: its applications had different robustness features, which change object code: compile each"
            " input by itself, or choose with kiln compile --application; pipelines without a link belong to the first",
            err=True,
        )
    if ledger.dropped or ledger.conflicting:
        sys.exit(EXIT_NOT_ALL_GOOD)
