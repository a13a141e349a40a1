"""The whole way of a game's pipelines: a state object database, its PSDB, and the game in processes of its own."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from device_support import GAME, Bench, finished_psdb, real_family

from shaderkiln.databases.sodb import StateObjectDatabase
from shaderkiln.direct3d12.statistics import ObjectSource
from shaderkiln.lowering.shaders import ShaderTranslations
from shaderkiln.lowering.state_object import VulkanLowering
from shaderkiln.sessions import FileSessionDesc, SessionFileFlags
from shaderkiln.shaders.package import TranslatorPackages

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "examples"))

PIPELINES = 20
STEP = 13
"""Every 13th pipeline state of the example: all forms of shaders, and most of the states."""


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    import explicit_psdb

    from shaderkiln.errors import NotFoundError

    try:
        if TranslatorPackages().best().notice:
            pytest.skip("the translator cannot read DXIL")
    except NotFoundError as error:
        pytest.skip(f"no translator of shaders here: {error}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    return explicit_psdb


def small_sodb(path: Path) -> Path:
    import make_sodb

    with StateObjectDatabase.create(path) as database, database.transaction():
        database.set_application_desc(make_sodb.APPLICATION)
        for key, stream in islice(make_sodb.pipeline_states(), 0, PIPELINES * STEP, STEP):
            database.store_pipeline_state_desc(key, 3, stream)
        for key, desc, parent, collections in make_sodb.state_objects():
            database.store_state_object_desc(key, 3, desc, parent, collections)
    return path


@pytest.mark.driver
@pytest.mark.spec("EP-01", "EP-02", "EP-03", "EP-04", "EP-09", "EP-51", "EP-53")
@pytest.mark.parametrize("family", ["amd-navi31", "amd-polaris10"])
def test_a_game_finds_everything_in_its_psdb_and_without_one_in_the_local_cache(
    family: str, example: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real_family(family)
    results = example.deliver(family, small_sodb(tmp_path / "game.sodb"), tmp_path)
    assert "failed" not in capsys.readouterr().out
    for name in ("FILE session", "REGISTERED session", "default component"):
        result = results[name]
        assert result["pipelines"] == [PIPELINES, 0, 0], name
        created, psdb_missed, missed, unknown = result["objects"]
        assert created > unknown and psdb_missed == missed == 0, name
        assert result["default"] == (name == "default component")
    first, again = results["nothing registered"], results["the same once more"]
    assert first["pipelines"] == [PIPELINES, PIPELINES, PIPELINES]
    assert again["pipelines"] == [PIPELINES, PIPELINES, 0]
    assert first["objects"][0] == again["objects"][0] == results["FILE session"]["objects"][0]
    assert again["objects"][2] == 0
    assert [result["unsupported"] for result in results.values()] == [results["FILE session"]["unsupported"]] * 5


@pytest.mark.driver
def test_what_is_found_needs_no_translator(example: Any, tmp_path: Path) -> None:
    import make_sodb

    streams = [stream for _, stream in islice(make_sodb.pipeline_states(), 0, 60, 20)]
    bench = Bench(tmp_path, real_family(), toy=False)
    with bench.device(cache="builder") as builder:
        made = [builder.create_pipeline_state(stream) for stream in streams]
        path = finished_psdb(tmp_path / "game.psdb", builder, made, GAME.identity)
    translations = ShaderTranslations()
    device = bench.device(lowering=VulkanLowering(GAME.identity, translations))
    session = device.create_shader_cache_session1(FileSessionDesc(path, SessionFileFlags.READ_ONLY))
    for stream in streams:
        created = device.create_pipeline_state(stream.with_psdb(session))
        assert created.source is created.recreate() is ObjectSource.EXPLICIT_PSDB
    assert translations.translator._process is None
    assert device.create_pipeline_state(streams[0]).source is ObjectSource.COMPILED
    assert translations.translator._process is not None
    bench.close()
