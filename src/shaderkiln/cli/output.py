"""What every command needs for its output: JSON lines, errors, exit codes, sizes, a progress line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from shaderkiln.errors import (
    AccessDeniedError,
    CacheFullError,
    DamagedInputError,
    DriverError,
    InvalidArgumentError,
    NotFoundError,
    ShaderkilnError,
    UnreadableError,
)

if TYPE_CHECKING:
    from shaderkiln.compilers.job import Progress

EXIT_NOT_ALL_GOOD = 1
EXIT_USAGE = 2
EXIT_INPUT = 3
EXIT_DRIVER = 4
EXIT_OUTPUT = 5
EXIT_INTERRUPTED = 130

PATH = click.Path(path_type=Path, readable=False)
"""The type of an argument that names a file; whether it is there and can be read is found out, and told, when it is opened."""

MAXIMUM_WIDTH = 1 << 16
"""Columns that a table for programs has at most."""

json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON, one object a line.")


_OUTPUT_ERRORS = ("DatabaseWriteError", "DatabaseBusyError", "RegistryBusyError")


def exit_code_of(error: ShaderkilnError) -> int:
    """The exit code that stands for an error."""
    name = type(error).__name__  # these modules are not imported for the comparison
    if isinstance(error, DriverError) or name in ("DriverPackageError", "FetchError", "FamilyNotFoundError", "PluginError"):
        return EXIT_DRIVER
    if isinstance(error, UnreadableError):
        return EXIT_INPUT
    if isinstance(error, AccessDeniedError | CacheFullError) or name in (
        "DatabaseWriteError",
        "DatabaseBusyError",
        "RegistryBusyError",
    ):
        return EXIT_OUTPUT
    if isinstance(error, NotFoundError):
        return EXIT_INPUT
    if type(error) is InvalidArgumentError:
        return EXIT_USAGE
    return EXIT_INPUT


def require_file(path: Path) -> None:
    """Raises NotFoundError, DamagedInputError or UnreadableError unless ``path`` is a file that can be read."""
    import os

    if not path.exists():
        raise NotFoundError(f"{path}: no such file")
    if not path.is_file():
        raise DamagedInputError(f"{path}: not a regular file")
    if not os.access(path, os.R_OK):
        raise UnreadableError(f"{path}: Permission denied")


def show_error(error: ShaderkilnError, *, as_json: bool) -> None:
    """Writes an error for people to stderr, and for programs as the last JSON line to stdout."""
    if as_json:
        write_json({"type": "error", "code": error.code, "message": str(error)})
    echo(f"kiln: error: {error} [{error.code}]", err=True)


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


def counts_text(counts: Mapping[str, int]) -> str:
    """Counts of outcomes in words."""
    return f"{sum(counts.values())} pipelines: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


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
        self._next = time.monotonic() + self.PATIENCE
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
    """A table on stdout; plain text where stdout is no terminal."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, box=SIMPLE, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number in right else "left", no_wrap=number == 0)
    for row in rows:
        table.add_row(*map(printable, row))
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        # As wide as its longest row: whoever searches the text finds cells whole.
        console = Console(markup=False, emoji=False, highlight=False, width=MAXIMUM_WIDTH)
        console.width = max(200, console.measure(table).maximum)
    console.print(table)
