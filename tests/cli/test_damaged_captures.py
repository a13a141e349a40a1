"""Captures that are cut off or damaged: pipelines that are gone are no success."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_support import write_capture
from toy_plugin import Kiln

from shaderkiln import api


@pytest.fixture
def cut(kiln: Kiln, tmp_path: Path) -> Path:
    """A capture whose last pipeline was not written to its end."""
    path = write_capture(tmp_path / "game.foz", ["code a", "code b", "code c"])
    path.write_bytes(path.read_bytes()[:-10])
    return path


TEXT = "payload reaches beyond the end of the file"


@pytest.mark.parametrize("command", ["compile", "replay"])
def test_a_job_names_the_damage_each_time(kiln: Kiln, cut: Path, command: str) -> None:
    arguments = (command, "game.foz", "-f", "toy-one,toy-two", *(("-o", "out") if command == "compile" else ()))
    for _ in range(3):
        done = kiln(*arguments)
        assert done.returncode == 1, done
        (line,) = done.stderr.splitlines()
        assert line.startswith("game.foz: damaged: ") and TEXT in line
        assert done.stdout.count("2 pipelines: 2 ") == 2
    summaries = [record for record in kiln.records(*arguments, code=1) if record["type"] == "summary"]
    assert [(summary["good"], len(summary["damage"])) for summary in summaries] == [(False, 1)] * 2


def test_a_verification_and_show_name_the_damage(kiln: Kiln, cut: Path) -> None:
    kiln("compile", "game.foz", "-f", "toy-one", "-o", "out.psdb")
    done = kiln("verify", "out.psdb", "game.foz")
    assert done.returncode == 1
    assert TEXT in done.stderr
    *_, summary = kiln.records("verify", "out.psdb", "game.foz", code=1)
    assert (summary["counts"], summary["good"], len(summary["damage"])) == ({"hit": 2}, False, 1)
    shown = kiln("show", "game.foz")
    assert shown.returncode == 1
    assert TEXT in shown.stdout


def test_python_is_told_too(kiln: Kiln, cut: Path, toy_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(toy_site)
    report = api.compile_capture(cut, "toy-one", tmp_path / "out.psdb")
    assert report.tally.good
    assert not report.good
    assert TEXT in report.source_damage[0]
    assert not api.verify_psdb(report.path, cut).good


def test_very_much_damage_is_counted(kiln: Kiln, tmp_path: Path) -> None:
    path = write_capture(tmp_path / "game.foz", [f"code {number}" for number in range(20)])
    data = bytearray(path.read_bytes())
    # A kind of entry that there is none of, in every second module.
    for number in range(0, 20, 2):
        at = data.index(b"%016x" % (0x2000 + number)) - 24
        data[at : at + 24] = b"f" * 24
    path.write_bytes(data)
    done = kiln("compile", "game.foz", "-f", "toy-one", "-o", "out")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 4
    assert lines[3] == "game.foz: damaged: 7 more places; `kiln show` lists them"
