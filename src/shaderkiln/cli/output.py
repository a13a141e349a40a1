"""What commands show: records, each with how people read it. The form that was asked for decides which of them is written.

A further form is a class like ``JsonOutput`` and its name in ``FORMS``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import click


class Table(NamedTuple):
    """A table for people; ``right``: numbers of the columns that are aligned on the right."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    right: tuple[int, ...] = ()


Shown = str | Table


class Output(Protocol):
    """A form of output on stdout."""

    for_people: bool

    def record(self, record: dict[str, Any], *shown: Shown) -> None:
        """One thing that a command found or did, by fields, ``type`` among them; ``shown`` is how people read it."""

    def people(self, *shown: Shown) -> None:
        """What stands in no record of its own: a table of many, a remark."""


class HumanOutput:
    """Lines and tables."""

    for_people = True

    def record(self, record: dict[str, Any], *shown: Shown) -> None:
        self.people(*shown)

    def people(self, *shown: Shown) -> None:
        for each in shown:
            if isinstance(each, str):
                echo(each)
            else:
                print_table(each.title, each.columns, each.rows, right=each.right)


class JsonOutput:
    """Every record as a line of JSON, and nothing else."""

    for_people = False

    def record(self, record: dict[str, Any], *shown: Shown) -> None:
        sys.stdout.write(json_line(record).decode())

    def people(self, *shown: Shown) -> None:
        pass


FORMS: dict[str, tuple[type[Output], str]] = {"json": (JsonOutput, "Write JSON, one object a line.")}
"""The forms other than that for people, by the names of their options, with the help of these."""


def output_option(function: Any) -> Any:
    """The options of every command that shows something; the command gets the form as ``out``."""
    for name, (_, text) in FORMS.items():
        function = click.option(f"--{name}", "out", flag_value=name, default=None, callback=_form, help=text)(function)
    return function


def _form(_context: click.Context, _parameter: click.Parameter, name: str | None) -> Output:
    return FORMS[name][0]() if name else HumanOutput()


def output_of(arguments: Sequence[str]) -> Output:
    """The form that a command line asks for, which need not be right otherwise."""
    return next((form() for name, (form, _) in FORMS.items() if f"--{name}" in arguments), HumanOutput())


def echo(text: str, *, err: bool = False) -> None:
    """Lines for people, without the control characters that a hostile file can have in its names."""
    click.echo(printable(text), err=err)


def printable(text: str) -> str:
    """The text with every control character but line ends and tabs replaced: none reaches a terminal as a command."""
    return text.translate(_CONTROLS)


def json_line(value: Any) -> bytes:
    """One line of JSON. Bytes of file names that are no UTF-8 come out as Python escapes them: \\udc80 to \\udcff."""
    import msgspec

    try:
        return msgspec.json.encode(value, enc_hook=_jsonable) + b"\n"
    except UnicodeEncodeError:
        import json

        return json.dumps(value, default=_jsonable).encode() + b"\n"


def _jsonable(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def size_text(size: float) -> str:
    """Bytes for people: ``12.3 KB``; decimal units."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def time_text(seconds: float) -> str:
    """A duration for people."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


_CONTROLS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def print_table(title: str, columns: list[str], rows: list[list[str]], *, right: tuple[int, ...] = ()) -> None:
    """A table on stdout; plain text, as wide as it must be, where stdout is no terminal.

    Nothing is cut: what a narrow terminal has no room for goes on in the next line, in the columns on the right first.
    """
    from rich.box import SIMPLE
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, emoji=False, highlight=False)
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, cells)) for cells in zip(columns, *shown, strict=True)]
    room = sum(widths) + 3 * len(widths) + 1
    if console.is_terminal:
        widths = column_widths(widths, console.width - 3 * len(widths) - 1)
    else:
        console = Console(markup=False, emoji=False, highlight=False, width=room)
    table = Table(title=title or None, box=SIMPLE, title_justify="left")
    for number, (column, width) in enumerate(zip(columns, widths, strict=True)):
        table.add_column(column, justify="right" if number in right else "left", width=width, overflow="fold")
    for row in shown:
        table.add_row(*row)
    console.print(table)


def column_widths(wanted: list[int], room: int) -> list[int]:
    """The widths of columns that have so much room together: the ones on the right are narrowed first, none to nothing."""
    widths = list(wanted)
    # The first column has the names that one types.
    for least, first in ((16, 1), (6, 1), (2, 0)):
        for number in reversed(range(first, len(widths))):
            excess = sum(widths) - room
            if excess > 0:
                widths[number] = max(widths[number] - excess, min(widths[number], least))
    return widths
