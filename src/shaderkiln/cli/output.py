"""What every command needs for its output: JSON lines, errors, exit codes, sizes, a progress line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from shaderkiln.errors import DamagedInputError, InvalidArgumentError, NotFoundError, ShaderkilnError, UnreadableError
from shaderkiln.suggestions import close_to

if TYPE_CHECKING:
    from shaderkiln.databases.fossilize import HashCheck
    from shaderkiln.identity import Difference
    from shaderkiln.jobs.progress import Progress

PATH = click.Path(path_type=Path, readable=False)
"""The type of an argument that names a file; whether it is there and can be read is found out, and told, when it is opened."""

MAXIMUM_WIDTH = 1 << 16
"""Columns that a table for programs has at most."""

check_hashes_option = click.option(
    "--check-hashes", is_flag=True, help="Compute the hash of every entry of a .foz again and compare it with its name."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON, one object a line.")


def require_file(path: Path) -> None:
    """Raises NotFoundError, DamagedInputError or UnreadableError unless ``path`` is a file that can be read."""
    import os

    if not path.exists():
        raise NotFoundError(f"{path}: no such file")
    if not path.is_file():
        raise DamagedInputError(f"{path}: not a regular file")
    if not os.access(path, os.R_OK):
        raise UnreadableError(f"{path}: Permission denied")


def require_psdb(path: Path, order: str) -> None:
    """Raises DamagedInputError for a source of pipelines in the place of a PSDB; ``order`` is that of the arguments.

    What else it may be is found out, and told, when it is opened.
    """
    from shaderkiln.api import is_state_object_database

    try:
        with path.open("rb") as file:
            is_capture = file.read(12).startswith(b"\x81FOSSILIZE")
    except OSError:
        return
    if is_capture:
        raise DamagedInputError(f"{path}: that is a capture; the order is {order}")
    if is_state_object_database(path):
        raise DamagedInputError(f"{path}: that is a state object database; the order is {order}")


def show_error(error: ShaderkilnError, *, as_json: bool) -> None:
    """Writes an error for people to stderr, and for programs as the last JSON line to stdout."""
    from shaderkiln.identity import IdentityMismatchError

    text = str(error)
    record: dict[str, Any] = {"type": "error", "code": error.code, "message": text}
    if isinstance(error, IdentityMismatchError) and error.differences:
        record["differences"] = [
            {"field": each.field, "stored": each.stored, "expected": each.expected} for each in error.differences
        ]
        text = mismatch_text(error.path, error.differences)
        text += "; use another -o, or --replace" if error.is_output else ""
    if as_json:
        write_json(record)
    echo(f"kiln: error: {text} [{error.code}]", err=True)


def mismatch_text(path: object, differences: Sequence[Difference]) -> str:
    """That a PSDB is somebody else's, in a line: family, driver and application in full, the other fields by name."""
    found = {each.field: each for each in differences}
    parts = []
    for field, name in (("family", "family"), ("driver_build", "driver"), ("application.name", "application")):
        if each := found.pop(field, None):
            parts.append(f"{name} {each.stored or '(none)'}, not {each.expected or '(none)'}")
    if found:
        start = "differs in" if not parts else "also differs in"
        parts.append(f"{start} {', '.join(found)}")
    return f"{path} was made for or by another: {'; '.join(parts)}"


def show_usage_error(error: click.ClickException, *, as_json: bool) -> None:
    """Writes what is wrong with a command line to stderr, and for programs as the last JSON line to stdout."""
    if as_json:
        write_json({"type": "error", "code": InvalidArgumentError.default_code, "message": error.format_message()})
    error.show()


def hashes_record(check: HashCheck) -> dict[str, Any]:
    """What came of checking hashes, for programs."""
    return {
        "wrong_hashes": check.wrong,
        "hashes_not_checked": {
            tag.name.lower(): {"entries": count, "reason": check.reasons[tag]} for tag, count in check.not_checked.items()
        },
    }


def hashes_text(check: HashCheck) -> str:
    """How many hashes are right, and what was not checked and why, for people."""
    text = f"{check.right} right, {len(check.wrong)} wrong"
    for tag, count in check.not_checked.items():
        text += f", {count} {tag.name.lower().replace('_', ' ')} not checked: {check.reasons[tag]}"
    return text


DAMAGE_SHOWN = 3


def warn_of_damage(path: object, damage: Sequence[str]) -> None:
    """Says on stderr that a source of pipelines is damaged: the first places, then how many more there are."""
    for text in damage[:DAMAGE_SHOWN]:
        echo(f"{path}: damaged: {text}", err=True)
    if (more := len(damage) - DAMAGE_SHOWN) > 0:
        echo(f"{path}: damaged: {more} more place{'' if more == 1 else 's'}; `kiln show` lists them", err=True)


def warn_of_nothing(family: str, total: int, unsupported: int) -> None:
    """Says on stderr that all of a job's pipelines are unsupported, which is no success in the eyes of most."""
    if total and total == unsupported:
        which = "the pipeline" if total == 1 else f"any of the {total} pipelines"
        echo(f"kiln: warning: nothing was compiled: {family} cannot take {which}", err=True)


class SuggestingGroup(click.Group):
    """A group that knows what a mistyped command may have been."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            text = f"No such command {args[0]!r}."
            if like := close_to(args[0], self.list_commands(ctx)):
                text += f" Did you mean {like}?"
            raise click.UsageError(text, ctx) from error


def echo(text: str, *, err: bool = False) -> None:
    """Lines for people, without the control characters that a hostile file can have in its names."""
    click.echo(printable(text), err=err)


def printable(text: str) -> str:
    """The text with every control character but line ends and tabs replaced: none reaches a terminal as a command."""
    return text.translate(_CONTROLS)


def write_json(value: Any) -> None:
    """One line of JSON to stdout."""
    sys.stdout.write(json_line(value).decode())


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


class ProgressLine:
    """Shows a job's progress on stderr: a live line on a terminal, a line now and then elsewhere, nothing for short jobs."""

    PATIENCE = 0.7
    PLAIN_INTERVAL = 10.0
    LIVE_INTERVAL = 0.1

    def __init__(self, title: str, *, enabled: bool = True) -> None:
        self._title = title
        self._enabled = enabled
        self._live = sys.stderr.isatty()
        self._next = time.monotonic() + (self.PATIENCE if self._live else self.PLAIN_INTERVAL)
        self._shown = False

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if not self._enabled or now < self._next:
            return
        self._next = now + (self.LIVE_INTERVAL if self._live else self.PLAIN_INTERVAL)
        left = progress.seconds_left
        text = f"{self._title} {progress.done}/{progress.total}"
        if left is not None:
            text += f", about {time_text(left)} left"
        if progress.in_hand:
            text += f": {', '.join(progress.in_hand)}"
        if self._live:
            columns = _columns()
            sys.stderr.write("\r\x1b[K" + printable(text)[: columns - 1])
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Takes a live line away."""
        if self._shown and self._live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns


class Stoppable(Protocol):
    """A job that can be ended early."""

    def stop(self) -> None: ...


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[Stoppable], None]]:
    """Gives a function that takes the job which the first Ctrl-C (or SIGTERM) stops, then or as soon as there is one.

    A stopped job finishes the pipelines in hand; the second Ctrl-C interrupts at once.
    """
    import os
    import signal

    jobs: list[Stoppable] = []
    pressed = 0

    def started(job: Stoppable) -> None:
        jobs.append(job)
        if pressed:
            job.stop()

    def handle(_number: int, _frame: object) -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 1:
            raise KeyboardInterrupt
        # Not through sys.stderr: the signal may have come in the middle of a write to it.
        with suppress(OSError):
            os.write(2, b"\nkiln: finishing the pipelines in hand; press Ctrl-C again to stop at once\n")
        for job in jobs:
            job.stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield started
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
