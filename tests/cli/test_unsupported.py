"""Lines about unsupported pipelines, the warning where all are, and ``--fail-on-unsupported``."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_support import write_capture
from toy_plugin import Kiln

from shaderkiln.cli.unsupported import UnsupportedLines
from shaderkiln.descriptions.unmet import Unmet
from shaderkiln.jobs.verdicts import Outcome, Verdict


def verdict(name: str, *things: str) -> Verdict:
    reasons = tuple(Unmet("feature", t, (t,), "false", "stage", "it") for t in things)
    return Verdict(name, "compute", Outcome.UNSUPPORTED, reasons=reasons)


def lines(*verdicts: Verdict) -> list[str]:
    collected = UnsupportedLines("toy", str)
    for each in verdicts:
        collected.add(each)
    return list(collected.lines())


def test_one_line_for_each_pipeline_with_its_first_reason() -> None:
    assert lines(verdict("a", "X.y"), verdict("b", "X.y", "VK_z"), verdict("c", "VK_z")) == [
        "toy: unsupported compute a: needs X.y",
        "toy: unsupported compute b: needs X.y and 1 more",
        "toy: unsupported compute c: needs VK_z",
    ]


def test_what_has_a_name_is_needed_and_what_is_a_sentence_is_told() -> None:
    version = Unmet("structure", "VkX", ("Vulkan 1.2", "VK_x"), "Vulkan 1.1", "pipeline", "VkX")
    limit = Unmet("limit", "VkL.sets", 9, 8, "layout", "descriptor sets", exceeds=True)
    verdicts = [Verdict("a", "compute", Outcome.UNSUPPORTED, reasons=(each,)) for each in (version, limit)]
    assert lines(*verdicts) == [
        "toy: unsupported compute a: needs Vulkan 1.2 or VK_x",
        "toy: unsupported compute a: descriptor sets 9 exceeds VkL.sets = 8",
    ]


def test_three_that_lack_the_same_get_one_line_together() -> None:
    alike = [verdict(name, "X.y", "VK_z") for name in "abc"]
    assert lines(*alike) == ["toy: 3 pipelines unsupported: need X.y and 1 more (compute a, …)"]
    assert lines(*alike, verdict("d", "X.y")) == ["toy: 4 pipelines unsupported: need X.y and more (compute a, …)"]
    assert lines(*(verdict(name, "X.y") for name in "abc")) == ["toy: 3 pipelines unsupported: need X.y (compute a, …)"]


@pytest.mark.parametrize("count", [1, 3])
def test_no_line_is_wider_than_160_columns(count: int) -> None:
    for line in lines(*(verdict(f"{number:016x}", "X" * 500, "Y") for number in range(count))):
        assert len(line) == 160
        assert "X…" in line


@pytest.fixture
def choosy(kiln: Kiln, tmp_path: Path) -> Kiln:
    """The toy compiler with a family that can take nothing whose text begins with "choosy"."""
    write_capture(tmp_path / "game.foz", ["choosy a", "code b", "choosy cc", "choosy ddd"])
    write_capture(tmp_path / "all.foz", ["choosy a", "choosy bb"])
    kiln.environment["TOY_TALE"] = "choosy"
    return kiln


def test_unsupported_is_no_failure_unless_it_is_asked_for(choosy: Kiln) -> None:
    compile_game = ("compile", "game.foz", "-f", "toy-one", "-o", "out")
    for words in ("1 compiled", "1 reused", "1 reused"):
        done = choosy(*compile_game)
        assert done.returncode == 0, done
        first, last = done.stdout.splitlines()
        assert first == "toy-one: 3 pipelines unsupported: need Toy.patience and 1 more (compute 0000000000001003, …)"
        assert last.startswith(f"toy-one: 4 pipelines: {words}, 3 unsupported in ")
        assert done.stderr == ""
        assert choosy(*compile_game, "--fail-on-unsupported").returncode == 1
    assert choosy("replay", "game.foz", "-f", "toy-one", "--fail-on-unsupported").returncode == 1
    assert choosy("verify", "out/game.toy-one.psdb", "game.foz").returncode == 0
    assert choosy("verify", "out/game.toy-one.psdb", "game.foz", "--fail-on-unsupported").returncode == 1


def test_everything_that_is_missing_is_told_where_asked(choosy: Kiln) -> None:
    done = choosy("compile", "game.foz", "-f", "toy-one", "-o", "out", "--verbose")
    assert len(done.stdout.splitlines()) == 4
    assert done.stdout.count("pipeline: a choosy one needs Toy.patience, which the device does not have; pipeline: it ") == 3
    *verdicts, summary = choosy.records("compile", "game.foz", "-f", "toy-one", "-o", "out")
    assert [len(each["reasons"]) for each in verdicts if each["outcome"] == "unsupported"] == [2, 2, 2]
    assert summary["good"]


def test_a_job_that_compiles_nothing_at_all_says_so(choosy: Kiln) -> None:
    for arguments in (("compile", "all.foz", "-f", "toy-one", "-o", "out"),) * 2, (("replay", "all.foz", "-f", "toy-one"),):
        for each in arguments:
            done = choosy(*each)
            assert done.returncode == 0
            assert done.stderr == "kiln: warning: nothing was compiled: toy-one cannot take any of the 2 pipelines\n"
