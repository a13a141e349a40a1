"""Benches: with the toy compiler, which is fast and does what it is told, and with a real driver."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The shaders of the driver tests.
sys.path.append(str(Path(__file__).parents[1] / "drivers"))

from device_support import Bench, real_family, toy_family


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, toy_family(), toy=True)
    yield bench
    bench.close()


@pytest.fixture(params=["toy", pytest.param("real", marks=pytest.mark.driver)])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Both: what holds for one must hold for the other."""
    found = Bench(tmp_path, toy_family(), toy=True) if request.param == "toy" else Bench(tmp_path, real_family(), toy=False)
    yield found
    found.close()
