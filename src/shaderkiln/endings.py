"""How a pipeline took its compiler down: what a worker reports, a poison list keeps and a verdict says."""

from __future__ import annotations

import signal as signals
from enum import StrEnum


class Ending(StrEnum):
    """How a pipeline took its compiler down."""

    CRASHED = "crashed"
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11; "" for 0, which stands for no signal."""
    try:
        return signals.Signals(number).name if number else ""
    except ValueError:
        return f"signal {number}"


def signal_number(name: str) -> int:
    """The inverse of ``signal_name``; 0 for other ways to end."""
    if name in signals.Signals.__members__:
        return signals.Signals[name].value
    number = name.removeprefix("signal ")
    return int(number) if number != name and number.isdecimal() else 0


def death_text(ending: str, how: str, driver_build: str) -> str:
    """How a pipeline ended its worker, in words; ``how`` is the signal or exit status, where it is known."""
    if ending == Ending.TIMED_OUT:
        return f"took longer than its time limit in {driver_build}"
    if ending == Ending.OUT_OF_MEMORY:
        return f"took more memory than its limit in {driver_build}"
    return f"ended the driver's process{f' with {how}' if how else ''} in {driver_build}"
