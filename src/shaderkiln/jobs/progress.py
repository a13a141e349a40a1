"""How far a job is."""

from __future__ import annotations

import time

from msgspec import Struct, field


class Progress(Struct):
    """What a job is doing, updated in place; read it from the ``on_verdict`` callback or between two results."""

    total: int = 0
    done: int = 0
    cost_total: int = 0
    cost_done: int = 0
    started: float = field(default_factory=time.monotonic)
    in_hand: tuple[str, ...] = ()
    skipped: int = 0
    """Those of ``done`` that no worker was asked for: reused, unsupported, or remembered."""
    cost_skipped: int = 0
    longest_in_hand: float = 0.0
    """Seconds since a worker got the pipeline that is in hand longest."""

    @property
    def seconds_left(self) -> float | None:
        """Estimate from what is done and what is left; None before a worker has done anything.

        A pipeline counts by its cost and, because each takes some time however small it is, as one of many. One that a worker has
        had for long is taken to need as long again.
        """
        if self.done >= self.total:
            return 0.0
        average = max(self.cost_total / self.total, 1.0)
        worked = self.cost_done - self.cost_skipped + average * (self.done - self.skipped)
        if self.done <= self.skipped:
            return None
        left = self.cost_total - self.cost_done + average * (self.total - self.done)
        elapsed = time.monotonic() - self.started
        return max(elapsed * left / worked, self.longest_in_hand)
