"""What the system says about processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def usable_processors() -> int:
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0))


def running_program() -> Path:
    """The executable of this process."""
    return Path(os.path.realpath("/proc/self/exe" if os.path.exists("/proc/self/exe") else sys.executable))  # noqa: PTH110


def resident_bytes(pid: int) -> int:
    """Memory that the process has now; 0 where that cannot be known."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0
