"""Processes that this one starts, each with a socket to it; the end of one and of all that it started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple


class Used(NamedTuple):
    """What a process used until it ended."""

    peak_memory: int
    """Largest resident size in bytes."""
    cpu_seconds: float
    """User and system time."""


def start(
    arguments: Sequence[str], environment: Mapping[str, str], errors: int | IO[bytes]
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a process and hold one end of a socket to it; in its arguments ``{fd}`` is replaced by the number of the other end.

    It sees this process's search path of Python modules, has no standard input and output, writes its errors where ``errors``
    says, and is the first of a group that gets no Ctrl-C. Raises OSError.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            number = theirs.fileno()
            process = subprocess.Popen(
                [argument.replace("{fd}", str(number)) for argument in arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**environment, "PYTHONPATH": os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)},
                pass_fds=(number,),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
    return process, ours


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """End a process that ``start`` made, and all that it started, at once."""
    if process.returncode is None:
        # Its number is not given to another process or group before it was waited for.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def collect(process: subprocess.Popen[bytes]) -> Used | None:
    """What a process that ``start`` made used, once it has ended, with its ``returncode`` set; None while it runs.

    Processes that it started and left behind are ended.
    """
    try:
        if not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return None
        kill_all(process)
        _, status, usage = os.wait4(process.pid, 0)
    except ChildProcessError:  # somebody else waited for it
        process.returncode = -signal.SIGKILL
        return Used(0, 0.0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Used(usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)
