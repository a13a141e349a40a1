"""What a command shows while it works, and how Ctrl-C ends it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from shaderkiln.cli.output import printable, time_text

if TYPE_CHECKING:
    from shaderkiln.jobs.progress import Progress


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
