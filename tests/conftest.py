"""Fixtures that several folders share. Its place makes the helper modules of this folder importable in all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings
from toy_plugin import Kiln, build_wheel, install

# A slow machine fails no test.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def toy_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toy compiler, installed with pip from a wheel made here."""
    folder = tmp_path_factory.mktemp("toy")
    install(build_wheel(folder), folder / "site")
    return folder / "site"


@pytest.fixture
def kiln(toy_site: Path, tmp_path: Path) -> Kiln:
    """``kiln`` with the toy compiler in a folder of its own."""
    return Kiln(toy_site, tmp_path)
