"""The lines about unsupported pipelines: short, and one for many pipelines that lack the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from shaderkiln.jobs.verdicts import Verdict

GROUPED_FROM = 3
"""So many pipelines that lack the same thing first get one line together."""
COLUMNS = 160


class _Group(Struct):
    count: int
    lines: list[str]
    example: str
    all_lack: int
    """How many things all of them lack, if it is the same number; 0 if it is not."""
    is_named: bool
    """What they lack first is the name of something that a device can have, and no sentence."""


class UnsupportedLines:
    """Collects unsupported verdicts of one family, and says at the end what kept how many pipelines from the driver."""

    def __init__(self, family: str, label: Callable[[str], str]) -> None:
        self._family = family
        self._label = label
        self._groups: dict[str, _Group] = {}

    def add(self, verdict: Verdict) -> None:
        """Counts a verdict; its text is kept only as long as it may be shown."""
        things = verdict.missing()
        is_named = bool(verdict.reasons and verdict.reasons[0].lacks)
        name = f"{verdict.kind} {self._label(verdict.pipeline)}"
        more = f" and {len(things) - 1} more" if len(things) > 1 else ""
        line = shortened(f"{self._family}: unsupported {name}: ", "needs " * is_named + things[0], more)
        group = self._groups.setdefault(things[0], _Group(0, [], name, len(things), is_named))
        group.count += 1
        if group.all_lack != len(things):
            group.all_lack = 0
        if group.count < GROUPED_FROM:
            group.lines.append(line)

    def lines(self) -> Iterator[str]:
        """The lines, in the order in which the reasons came."""
        for thing, group in self._groups.items():
            if group.count < GROUPED_FROM:
                yield from group.lines
                continue
            more = "" if group.all_lack == 1 else f" and {group.all_lack - 1} more" if group.all_lack else " and more"
            start = f"{self._family}: {group.count} pipelines unsupported: "
            yield shortened(start, "need " * group.is_named + thing, f"{more} ({group.example}, …)")


def shortened(start: str, middle: str, end: str, columns: int = COLUMNS) -> str:
    """One line, the middle cut where it would be wider than ``columns``."""
    room = max(columns - len(start) - len(end), 20)
    return start + (middle if len(middle) <= room else middle[: room - 1] + "…") + end
