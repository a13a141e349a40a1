#!/usr/bin/env python3
"""Compile captures for several adapter families, verify every pipeline, and show a table.

usage: families_table.py [--output FOLDER] [--families A,B,…] [CAPTURE…]

Without captures: the samples of this project. Without families: those of a fixed list that can be compiled for here.
Exit code 0 if everything is compiled or unsupported, everything compiled is a hit, and no capture is damaged; otherwise as kiln's.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import shaderkiln
from shaderkiln.cli.exit_codes import exit_code_of
from shaderkiln.cli.output import HumanOutput
from shaderkiln.cli.progress_line import ProgressLine
from shaderkiln.cli.reports import show_error, warn_of_damage
from shaderkiln.compilers.plugin import open_family
from shaderkiln.descriptions.pipeline import Application
from shaderkiln.errors import NotFoundError, ShaderkilnError
from shaderkiln.jobs.verdicts import Outcome, Verdict

PREFERRED = (
    "amd-navi31",
    "amd-navi21",
    "amd-polaris10",
    "nvidia-nvk-172",
    "qualcomm-a740",
    "apple-g13g",
    "intel-dg2",
)
SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "samples.foz"
COLUMNS = (
    "capture", "family", "pipelines", "compiled", "reused", "unsupported", "failed", "crashed",
    "compile s", "verify s", "hits",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    cells: tuple[str, ...]
    good: bool


def compile_and_verify(capture: Path, family: str, output: Path) -> Row:
    """One line of the table."""
    notes: list[Verdict] = []
    line = ProgressLine(f"{capture.name}: {family} compile")
    compiled = shaderkiln.compile_capture(capture, family, output, on_verdict=notes.append, on_tick=line)
    line.clear()
    line = ProgressLine(f"{capture.name}: {family} verify")
    verified = shaderkiln.verify_psdb(compiled.path, capture, on_verdict=notes.append, on_tick=line)
    line.clear()
    for verdict in notes:
        if verdict.outcome not in (Outcome.COMPILED, Outcome.REUSED, Outcome.HIT, Outcome.UNSUPPORTED):
            print(f"{capture.name} {family}: {verdict.outcome} {verdict.kind} {verdict.pipeline}: {verdict.message[:200]}")
    counts = compiled.tally.counts
    crashed = counts[Outcome.CRASHED] + counts[Outcome.TIMED_OUT] + counts[Outcome.OUT_OF_MEMORY]
    hits = verified.tally.counts[Outcome.HIT]
    cells = (
        capture.stem, family, compiled.tally.total, counts[Outcome.COMPILED], counts[Outcome.REUSED],
        counts[Outcome.UNSUPPORTED], counts[Outcome.FAILED], crashed,
        f"{compiled.seconds:.2f}", f"{verified.seconds:.2f}", hits,
    )  # fmt: skip
    in_database = counts[Outcome.COMPILED] + counts[Outcome.REUSED]
    good = compiled.good and hits == in_database and not verified.damage
    warn_of_damage(capture.name, compiled.source_damage)
    return Row(tuple(map(str, cells)), good)


def available_families() -> list[str]:
    """Those of the fixed list that an installed plugin can compile for; asking for all families (`kiln families`) takes longer."""
    found = []
    for name in PREFERRED:
        with suppress(NotFoundError):
            open_family(name, Application())
            found.append(name)
    return found


def print_table(rows: list[Row]) -> None:
    """Columns as wide as they need to be; numbers to the right."""
    lines = [COLUMNS, *(row.cells for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    for line in lines:
        cells = [cell.ljust(widths[i]) if i < 2 else cell.rjust(widths[i]) for i, cell in enumerate(line)]
        print("  ".join(cells).rstrip())


def main() -> int:
    ask = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    ask.add_argument("captures", nargs="*", type=Path, metavar="CAPTURE")
    ask.add_argument("--output", type=Path, default=Path("out"))
    ask.add_argument("--families", default="", help="comma-separated adapter families")
    args = ask.parse_args()
    families = [name for name in args.families.split(",") if name] or available_families()
    if not families:
        print(
            "no family can be compiled for here: add a driver package with `kiln drivers add mesa-backports`", file=sys.stderr
        )
        return 4
    captures = args.captures or [SAMPLES]
    for capture in captures:
        with shaderkiln.open_capture(capture):
            pass  # one that cannot be read is told before anything is compiled
    rows = []
    for capture in captures:
        for family in families:
            print(f"{capture.name}: {family} …", file=sys.stderr)
            rows.append(compile_and_verify(capture, family, args.output))
    print()
    print_table(rows)
    print(f"\nThe PSDBs are in {args.output}{os.sep}")
    return 0 if all(row.good for row in rows) else 1


if __name__ == "__main__":
    try:
        code = main()
    except ShaderkilnError as error:
        show_error(error, HumanOutput())
        code = exit_code_of(error)
    except OSError as error:
        show_error(ShaderkilnError(str(error)), HumanOutput())
        code = 3
    except KeyboardInterrupt:
        print("interrupted; what was done is kept", file=sys.stderr)
        code = 130
    sys.exit(code)
