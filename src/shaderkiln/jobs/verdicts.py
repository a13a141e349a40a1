"""What became of each pipeline, in a form that people and programs can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct, field

from shaderkiln.endings import death_text, signal_name

if TYPE_CHECKING:
    from shaderkiln.databases.psdb import Poison
    from shaderkiln.descriptions.requirements import Unmet


class Outcome(StrEnum):
    """What a job did with one pipeline."""

    COMPILED = "compiled"
    REUSED = "reused"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    HIT = "hit"
    MISS = "miss"
    DAMAGED = "damaged"


GOOD = frozenset({Outcome.COMPILED, Outcome.REUSED, Outcome.UNSUPPORTED, Outcome.HIT})
"""Outcomes after which a job still ends with exit code 0."""
POISON = frozenset({Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY})
"""Outcomes that put a pipeline on the poison list."""
NOT_TRIED_AGAIN = "; not tried again (--retry-poisoned tries it)"
"""What is added about a pipeline that was on the poison list already."""


class Reason(Struct, frozen=True):
    """One thing that a pipeline needs and the family lacks."""

    kind: str
    name: str
    text: str
    where: str = ""


class Verdict(Struct, frozen=True, omit_defaults=True):
    """What became of one pipeline."""

    pipeline: str
    """The source's name of the pipeline: 16 hexadecimal digits in a capture."""
    kind: str
    outcome: Outcome
    object_key: str = ""
    code: str = ""
    """VkResult or HRESULT name of a failure."""
    message: str = ""
    reasons: tuple[Reason, ...] = ()
    """For ``unsupported`` everything that is missing; otherwise what the pipeline does and the device does not advertise."""
    signal: str = ""
    """For ``crashed``: the signal that ended the worker, such as SIGABRT, or its exit status."""
    output: str = ""
    """For ``crashed``: the last lines that the driver wrote."""
    remembered: bool = False
    """The outcome comes from the poison list; the pipeline was not tried again."""
    driver_build: str = ""
    values: tuple[str, ...] = ()
    """Value keys of the object, or the damaged ones."""
    bytes: int = 0
    seconds: float = 0.0
    """Time of the driver's creation call."""
    feedback_hit: bool | None = None


class Tally(Struct):
    """Counts of verdicts, with the time that drivers took."""

    counts: Counter[Outcome] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, verdict: Verdict) -> None:
        self.counts[verdict.outcome] += 1
        self.seconds += verdict.seconds

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def __str__(self) -> str:
        """The counts in words: ``3 pipelines: 2 compiled, 1 unsupported``."""
        return counts_text({str(outcome): self.counts[outcome] for outcome in Outcome if self.counts[outcome]})

    @property
    def good(self) -> bool:
        """Whether every verdict is one of ``GOOD``."""
        return all(outcome in GOOD for outcome, count in self.counts.items() if count)


def counts_text(counts: Mapping[str, int]) -> str:
    """Counts of outcomes in words, in their order: ``1 pipeline: 1 compiled``."""
    total = sum(counts.values())
    words = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    return f"{total} pipeline{'' if total == 1 else 's'}{': ' if words else ''}{words}"


def missing(verdict: Verdict) -> tuple[str, ...]:
    """What an unsupported pipeline needs and the family lacks, each thing once and without where in the pipeline it is needed."""
    found = dict.fromkeys(_missing_thing(reason) for reason in verdict.reasons)
    return tuple(found) or (verdict.message or "(no reason given)",)


def _missing_thing(reason: Reason) -> str:
    text = reason.text.removeprefix(f"{reason.where}: ")
    _, needs, thing = text.partition(" needs ")
    return thing.removesuffix(_NOT_THERE) if needs and thing.endswith(_NOT_THERE) else text


_NOT_THERE = ", which the device does not have"


def reasons_of(unmet: Iterable[Unmet]) -> tuple[Reason, ...]:
    """Needs in the form of a verdict."""
    return tuple(Reason(str(need.kind), need.name, need.text, need.where) for need in unmet)


def unsupported(pipeline: str, kind: str, object_key: bytes, unmet: Iterable[Unmet]) -> Verdict:
    """The verdict on a pipeline that the family cannot take, with everything that is missing."""
    reasons = reasons_of(unmet)
    message = "; ".join(dict.fromkeys(reason.text for reason in reasons))
    return Verdict(pipeline, kind, Outcome.UNSUPPORTED, object_key.hex(), message=message, reasons=reasons)


def remembered(pipeline: str, kind: str, poison: Poison) -> Verdict:
    """The verdict on a pipeline that is on the poison list, under this name or another one, and was not tried again."""
    name = signal_name(poison.signal)
    outcome = Outcome(poison.outcome)
    text = death_text(outcome, name, poison.driver_build) + NOT_TRIED_AGAIN
    return Verdict(
        pipeline, kind, outcome, poison.object_key.hex(), message=text, signal=name, output=poison.detail,
        remembered=True, driver_build=poison.driver_build,
    )  # fmt: skip


def doubt_text(doubts: tuple[Reason, ...]) -> str:
    """What a pipeline that went wrong does that the device does not advertise, to be added to a message."""
    return f"; the device does not advertise what it does: {'; '.join(doubt.text for doubt in doubts)}" if doubts else ""
