"""What no test runs whole still fits the package: every benchmark, example and tool can at least be loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "examples", "tools", "samples")
SCRIPTS = sorted(path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
LOADS = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2], run_name='loaded')"


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_it_can_be_loaded(script: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADS, str((ROOT / script).parent), str(ROOT / script)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
