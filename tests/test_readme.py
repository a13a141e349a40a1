"""The README is true: its commands run as they are printed, its Python too, and what it points at is there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from shaderkiln.drivers.packages import DriverPackages

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory with the samples in it."""
    if "mesa-backports" not in DriverPackages().names():
        pytest.skip("no driver package: kiln drivers add mesa-backports")
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    return tmp_path


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


@pytest.mark.driver
def test_the_commands_of_the_first_section_run_as_printed(folder: Path) -> None:
    commands = re.findall(r"^    (kiln .*)$", section("A capture into a database"), re.MULTILINE)
    assert [shlex.split(command, comments=True)[1] for command in commands] == [
        "drivers", "families", "show", "compile", "verify", "show", "isa",
    ]  # fmt: skip
    for command in commands:
        words = shlex.split(command, comments=True)
        if words[1] == "families":
            words += ["--family", "amd-navi31"]  # asking for all of them takes minutes on a slow machine
        result = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{command}: {result.stdout[-500:]} {result.stderr[-500:]}"
        assert result.stdout
    assert (folder / "out" / "samples.amd-navi21.psdb").is_file()


@pytest.mark.driver
def test_the_python_of_the_readme_runs(folder: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-1000:]
    assert "256 pipelines" in result.stdout


def test_every_path_of_the_readme_is_there() -> None:
    linked = re.findall(r"\]\(([^)#]+)\)", README)
    named = re.findall(r"(?:script|examples|benchmarks|tools|samples|docs)/[\w./]+\w", README)
    assert linked and named
    for path in {*linked, *named}:
        assert (ROOT / path).exists(), path
