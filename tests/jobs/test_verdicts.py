"""Verdicts and their words."""

from __future__ import annotations

import signal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.databases.psdb import Poison
from shaderkiln.descriptions.unmet import Unmet
from shaderkiln.endings import Ending, death_text, signal_name, signal_number
from shaderkiln.jobs.verdicts import (
    GOOD,
    Outcome,
    Tally,
    Verdict,
    remembered,
)
from shaderkiln.keys import ObjectKey


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGILL])
def test_signals_have_their_names(number: signal.Signals) -> None:
    assert signal_name(int(number)) == number.name
    assert signal_number(number.name) == int(number)


@given(st.integers(0, 2**31))
def test_every_number_of_a_signal_has_a_name_and_comes_back(number: int) -> None:
    # A poison entry of a damaged or made-up PSDB can hold any number.
    name = signal_name(number)
    assert (name == "") == (number == 0)
    assert signal_number(name) == number


@pytest.mark.parametrize("text", ["", "exit status 3", "signal ", "signal x", "signal ²", "SIGNONE", "running"])
def test_other_ends_have_no_number(text: str) -> None:
    assert signal_number(text) == 0


def test_deaths_in_words() -> None:
    assert death_text(Outcome.CRASHED, "SIGABRT", "Mesa 25") == "ended the driver's process with SIGABRT in Mesa 25"
    assert death_text(Outcome.CRASHED, "", "Mesa 25") == "ended the driver's process in Mesa 25"
    assert death_text(Outcome.TIMED_OUT, "SIGKILL", "Mesa 25") == "took longer than its time limit in Mesa 25"
    assert death_text(Outcome.OUT_OF_MEMORY, "SIGKILL", "Mesa 25") == "took more memory than its limit in Mesa 25"


def test_a_remembered_verdict_carries_the_name_that_was_asked_about() -> None:
    poison = Poison(ObjectKey(bytes(32)), "compute", "first", Ending.CRASHED, 6, "Mesa 25", "assertion failed")
    verdict = remembered("second", "compute", poison)
    assert (verdict.pipeline, verdict.outcome, verdict.signal, verdict.output) == (
        "second",
        "crashed",
        "SIGABRT",
        "assertion failed",
    )
    assert verdict.remembered
    assert "--retry-poisoned" in verdict.message


def test_a_tally_is_good_if_nothing_went_wrong() -> None:
    for outcome in Outcome:
        tally = Tally()
        tally.add(Verdict("a", "compute", Outcome.COMPILED, seconds=0.5))
        tally.add(Verdict("b", "compute", outcome, seconds=0.25))
        assert tally.total == 2
        assert tally.seconds == 0.75
        assert tally.good == (outcome in GOOD)
    assert {str(outcome) for outcome in GOOD} == {"compiled", "reused", "unsupported", "hit"}
    assert Tally().good


def test_a_tally_in_words_has_the_counts_in_the_order_of_outcomes() -> None:
    tally = Tally()
    assert str(tally) == "0 pipelines"
    tally.add(Verdict("a", "compute", Outcome.UNSUPPORTED))
    assert str(tally) == "1 pipeline: 1 unsupported"
    tally.add(Verdict("b", "compute", Outcome.COMPILED))
    tally.add(Verdict("c", "compute", Outcome.UNSUPPORTED))
    assert str(tally) == "3 pipelines: 1 compiled, 2 unsupported"


def test_what_is_missing_is_named_once_wherever_it_is_needed() -> None:
    reasons = (
        Unmet("stage", "a", ("A.b",), "none", "stage miss, module 1", "RayTracingKHR"),
        Unmet("stage", "a", ("A.b",), "none", "stage miss, module 2", "RayTracingKHR"),
        Unmet("extension", "x", ("VK_x", "VK_y"), "none", "pipeline", "VkX"),
        Unmet("limit", "l", 9, 8, "layout", "9 sets are more than 8"),
        Unmet("direct3d12", "w", "", "", "", "a work graph has no form here"),
    )
    verdict = Verdict("0", "raytracing", Outcome.UNSUPPORTED, message="all of it", reasons=reasons)
    assert verdict.missing() == ("A.b", "VK_x or VK_y", "9 sets are more than 8", "a work graph has no form here")
    assert Verdict("0", "compute", Outcome.UNSUPPORTED, message="all of it").missing() == ("all of it",)


def test_programs_read_verdicts_as_json() -> None:
    verdict = Verdict("0123", "compute", Outcome.TIMED_OUT, seconds=1.5)
    assert msgspec.json.decode(msgspec.json.encode(verdict)) == {
        "pipeline": "0123", "kind": "compute", "outcome": "timed-out", "seconds": 1.5,
    }  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=Verdict) == verdict
