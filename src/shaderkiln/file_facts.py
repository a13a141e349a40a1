"""What the system says of files, by which it is told whether one has changed without reading it.

Of each file: size, time of its content, time of its status, inode and device. A program that edits a file in place can set the time
of the content back, not that of the status, so equal facts mean equal files. Only the standard library's small modules are used
here.
"""

from __future__ import annotations

import os
from functools import cache


def facts_of(path: str) -> list[int] | None:
    """What tells two states of a file or folder apart; None where there is none."""
    try:
        return _facts(os.stat(path))  # noqa: PTH116  records have many files, and a Path takes longer than the call
    except OSError:
        return None


@cache
def package_facts() -> str:
    """The facts of every file of this package when it was first asked for, a line for each; empty where they cannot be told.

    Any of its modules may decide what comes of a run. Compiled modules (``__pycache__``) do not count: they follow from the others.
    """
    lines = []
    folders = [os.path.dirname(__file__)]  # noqa: PTH120  as above
    try:
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if not entry.is_dir():
                        lines.append(" ".join(map(str, (entry.path, *_facts(entry.stat())))))
                    elif entry.name != "__pycache__":
                        folders.append(entry.path)
    except OSError:
        return ""
    return "\n".join(sorted(lines))


def _facts(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]
