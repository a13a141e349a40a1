"""One compile serves all four surfaces."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from device_support import real_family

from shaderkiln.databases.sodb import StateObjectDatabase
from shaderkiln.errors import NotFoundError
from shaderkiln.shaders.package import TranslatorPackages

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "examples"))

PIPELINES, STEP = 20, 13


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    import four_ways

    try:
        if TranslatorPackages().best().notice:
            pytest.skip("the translator cannot read DXIL")
    except NotFoundError as error:
        pytest.skip(f"no translator of shaders here: {error}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    return four_ways


def some_pipeline_states(path: Path) -> Path:
    import make_sodb

    with StateObjectDatabase.create(path) as database, database.transaction():
        database.set_application_desc(make_sodb.APPLICATION)
        for key, stream in islice(make_sodb.pipeline_states(), 0, PIPELINES * STEP, STEP):
            database.store_pipeline_state_desc(key, 3, stream)
    return path


@pytest.mark.driver
@pytest.mark.spec("AL-01", "XS-01", "XS-03")
@pytest.mark.parametrize("family", ["amd-navi31", "amd-polaris10"])
def test_one_psdb_serves_sessions_a_vulkan_cache_a_library_and_components(family: str, example: Any, tmp_path: Path) -> None:
    real_family(family)
    files = example.Files(tmp_path, some_pipeline_states(tmp_path / "game.sodb"))
    results = example.four_ways(files, family)
    compiled = results["compile job"]["compiled"]
    assert compiled > PIPELINES * 3 // 4
    # Each game is a process of its own that has one of the forms, and finds every pipeline in it.
    assert results["explicit PSDB"] == {"explicit-psdb": compiled}
    assert results["pipeline cache"] == {"pipeline-cache": compiled}
    assert results["pipeline library"] == {"library": compiled}
    assert results["components"] == {"serialized": compiled}


@pytest.mark.driver
@pytest.mark.spec("AL-01")
def test_a_game_without_its_files_finds_nothing(example: Any, tmp_path: Path) -> None:
    """So that the hits above come from the files and from nowhere else."""
    real_family()
    files = example.Files(tmp_path, some_pipeline_states(tmp_path / "game.sodb"))
    compiled = example.build(files, "amd-navi31")["compiled"]
    from shaderkiln.databases.psdb import Psdb, PsdbBuilder
    from shaderkiln.jobs.cache_values import header_of

    with Psdb.open(files.psdb) as psdb:
        identity, application = psdb.identity, psdb.application
    files.psdb.unlink()
    with PsdbBuilder(files.psdb, identity, application) as builder:
        builder.finish()
    files.cache.write_bytes(bytes(header_of(identity)))
    assert example.play("explicit PSDB", files, "amd-navi31") == {"compiled": compiled}
    assert example.play("pipeline cache", files, "amd-navi31") == {"VK_PIPELINE_COMPILE_REQUIRED": compiled}
