"""What a worker does to itself when it starts: limits, and when it ends by itself."""

from __future__ import annotations

import resource
import signal
from typing import Any

_PR_SET_PDEATHSIG = 1


def leave_no_core_dump() -> None:
    """A crash of this process writes no memory dump."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_memory(size: int) -> None:
    """Limit this process's private data, in bytes: allocations beyond fail."""
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def end_with_parent() -> None:
    """End this process when the thread that started it ends."""
    import _cffi_backend as c  # what cffi's own modules use; ctypes would take a while to import

    whole, word = c.new_primitive_type("int"), c.new_primitive_type("unsigned long")
    kind = c.new_function_type((whole, word, word, word, word), whole, False, c.FFI_DEFAULT_ABI)
    prctl: Any = c.load_library(None).load_function(kind, "prctl")  # type: ignore[no-untyped-call]
    # Without an effect for a parent that has ended already, which shows as the end of the connection.
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def end_after(seconds: int) -> None:
    """End this process by ``TIME_SIGNAL`` after so many seconds, wherever it is then; 0 takes that back."""
    signal.alarm(seconds)


TIME_SIGNAL = signal.SIGALRM
"""The signal of ``end_after``, whose default action must be in force."""
