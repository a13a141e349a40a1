"""The estimate of the time that a job still needs."""

from __future__ import annotations

import time

import pytest

from shaderkiln.jobs.progress import Progress


def progress(seconds: float = 10.0, **fields: object) -> Progress:
    return Progress(started=time.monotonic() - seconds, **fields)  # type: ignore[arg-type]


def test_equal_pipelines_take_equal_times() -> None:
    assert progress(total=100, done=25, cost_total=1000, cost_done=250).seconds_left == pytest.approx(30, rel=0.01)


def test_small_pipelines_take_some_time_too() -> None:
    # One that is half of all the cost is done, in 10 s, and 99 small ones are left: by cost alone 10 s more.
    left = progress(total=100, done=1, cost_total=1000, cost_done=500).seconds_left
    assert left is not None and left > 25


def test_one_that_takes_long_is_not_taken_to_be_nearly_done() -> None:
    fields = {"total": 100, "done": 99, "cost_total": 1000, "cost_done": 999}
    short, long = progress(**fields).seconds_left, progress(**fields, longest_in_hand=8.0).seconds_left
    assert short is not None and short < 0.2
    assert long == 8.0


def test_what_was_there_already_tells_nothing_about_the_rest() -> None:
    reused = {"skipped": 90, "cost_skipped": 900}
    assert progress(total=100, done=90, cost_total=1000, cost_done=900, **reused).seconds_left is None
    left = progress(total=100, done=95, cost_total=1000, cost_done=950, **reused).seconds_left
    assert left == pytest.approx(10, rel=0.01)


@pytest.mark.parametrize("cost", [0, 1000])
def test_the_end_and_the_beginning(cost: int) -> None:
    assert progress(total=100, done=100, cost_total=cost, cost_done=cost).seconds_left == 0
    assert progress(total=0).seconds_left == 0
    assert progress(total=100, cost_total=cost).seconds_left is None
