"""What became of each pipeline, in a form that people and programs can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, to_builtins

from shaderkiln.descriptions.unmet import Unmet, text_of
from shaderkiln.endings import death_text, signal_name

if TYPE_CHECKING:
    from shaderkiln.databases.psdb import Poison


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
    reasons: tuple[Unmet, ...] = ()
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

    def record(self) -> dict[str, Any]:
        """The verdict for programs: what differs from its default; of each reason the facts, and as ``text`` the sentence."""
        record: dict[str, Any] = to_builtins(self)
        if self.reasons:
            names = ("kind", "name", "text", "where", "needed", "available")
            record["reasons"] = [{name: getattr(reason, name) for name in names} for reason in self.reasons]
        return record

    def missing(self) -> tuple[str, ...]:
        """What an unsupported pipeline needs and the family lacks, each thing once and without where in it it is needed."""
        found = dict.fromkeys(reason.lacks or reason.sentence for reason in self.reasons)
        return tuple(found) or (self.message or "(no reason given)",)


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


def unsupported(pipeline: str, kind: str, object_key: bytes, unmet: Iterable[Unmet]) -> Verdict:
    """The verdict on a pipeline that the family cannot take, with everything that is missing."""
    reasons = tuple(unmet)
    return Verdict(pipeline, kind, Outcome.UNSUPPORTED, object_key.hex(), message=text_of(reasons), reasons=reasons)


def remembered(pipeline: str, kind: str, poison: Poison) -> Verdict:
    """The verdict on a pipeline that is on the poison list, under this name or another one, and was not tried again."""
    name = signal_name(poison.signal)
    outcome = Outcome(poison.outcome)
    text = death_text(outcome, name, poison.driver_build) + NOT_TRIED_AGAIN
    return Verdict(
        pipeline, kind, outcome, poison.object_key.hex(), message=text, signal=name, output=poison.detail,
        remembered=True, driver_build=poison.driver_build,
    )  # fmt: skip


def doubt_text(doubts: tuple[Unmet, ...]) -> str:
    """What a pipeline that went wrong does that the device does not advertise, to be added to a message."""
    return f"; the device does not advertise what it does: {text_of(doubts)}" if doubts else ""
