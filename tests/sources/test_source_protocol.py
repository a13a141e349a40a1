"""What every source of pipelines keeps to, whatever file is below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from job_support import write_capture
from sodb_example import example

from shaderkiln import api
from shaderkiln.databases.sodb import StateObjectDatabase
from shaderkiln.descriptions.direct3d12.canonical import object_key
from shaderkiln.descriptions.direct3d12.enums import StateObjectType
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import StateObjectDesc, WorkGraph
from shaderkiln.descriptions.pipeline import PipelineKind, UnsupportedPipelineError
from shaderkiln.errors import InvalidArgumentError, NotFoundError, ShaderkilnError
from shaderkiln.formats.fossilize import Tag
from shaderkiln.keys import ObjectKey
from shaderkiln.lowering.shaders import ShaderTranslations
from shaderkiln.sources.capture import Capture
from shaderkiln.sources.source import Source, resolve_pipeline
from shaderkiln.sources.state_objects import StateObjectSource

Pipeline = tuple[PipelineKind, int]
UNKNOWN = 0x123456789ABCDEF0


def write_database(path: Path) -> Path:
    """Two pipeline states of SPIR-V, one that Direct3D 12 would refuse, and a work graph, which Vulkan cannot express."""
    with StateObjectDatabase.create(path) as database:
        database.set_application_desc(example.APPLICATION)
        database.store_pipeline_state_desc(b"fill", 1, PipelineStateStream(cs=example.read("spirv/c1_fill.cs.spv")))
        database.store_pipeline_state_desc(b"reduce", 3, PipelineStateStream(cs=example.read("spirv/c2_reduce.cs.spv")))
        database.store_pipeline_state_desc(b"bad", 1, PipelineStateStream(cs=b""))
        database.store_state_object_desc(b"graph", 2, StateObjectDesc(StateObjectType.EXECUTABLE, (WorkGraph("Graph"),)))
    return path


def write_archive(path: Path) -> Path:
    """Three pipelines, of which one has lost its shader."""
    write_capture(path, ["one", "another one", "the last"])
    data = bytearray(path.read_bytes())
    at = data.index(b"%024x%016x" % (Tag.SHADER_MODULE, 0x2001)) + 40 + 16 + 30
    data[at] ^= 0xFF
    path.write_bytes(data)
    return path


@pytest.fixture(params=["capture.foz", "game.sodb"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Source]:
    """Opens the same file anew, as a source that nothing was asked of yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write = write_archive if request.param == "capture.foz" else write_database
    path = write(tmp_path / request.param)
    return lambda: api.open_source(path)


def answer(ask: Callable[[], object]) -> object:
    """What a question gives, or the error that it raises with its text."""
    try:
        return ask()
    except ShaderkilnError as error:
        return type(error), str(error)


def facts(source: Source, pipeline: Pipeline) -> list[Callable[[], object]]:
    """Every question about one pipeline."""

    def load() -> object:
        description = source.load(*pipeline)
        return description.name, description.kind, description.create_info, dict(description.objects)

    return [
        lambda: source.object_key(*pipeline),
        load,
        lambda: source.version(*pipeline),
        lambda: source.cost(*pipeline),
        lambda: source.label(f"{pipeline[1]:016x}"),
        lambda: source.application_of(*pipeline),
    ]


def test_the_file_says_what_it_is(opened: Callable[[], Source]) -> None:
    with opened() as source:
        assert source.path.exists()
        assert source.application.identity.name in ("Toy Town", "TestGame")
        assert isinstance(source.damage, tuple)
        assert all(Path(name).is_absolute() for name in source.depends_on)
        source.require_one_set_of_features()
        pipelines = list(source.pipelines())
        assert len(pipelines) == len(set(pipelines)) >= 3
        assert list(source.pipelines()) == pipelines
        assert all(source.label(f"{hash:016x}") for _, hash in pipelines)
        assert {source.application_of(*pipeline) for pipeline in pipelines} == {source.application}


def test_an_object_key_needs_no_load_and_a_load_does_not_change_it(opened: Callable[[], Source]) -> None:
    with opened() as source:
        pipelines = list(source.pipelines())
        before = [answer(lambda p=pipeline: source.object_key(*p)) for pipeline in pipelines]  # type: ignore[misc]
    keys = [key for key in before if isinstance(key, bytes)]
    assert len(keys) == len(set(keys)) >= 2
    assert {len(key) for key in keys} == {32}
    with opened() as source:
        for pipeline in pipelines:
            answer(lambda p=pipeline: source.load(*p))  # type: ignore[misc]
        assert [answer(lambda p=pipeline: source.object_key(*p)) for pipeline in pipelines] == before  # type: ignore[misc]


@pytest.mark.parametrize("turn", range(6))
def test_answers_do_not_depend_on_what_was_asked_before(opened: Callable[[], Source], turn: int) -> None:
    with opened() as source:
        pipelines = list(source.pipelines())
    alone = {}
    for pipeline in pipelines:
        for number in range(6):
            with opened() as source:
                alone[pipeline, number] = answer(facts(source, pipeline)[number])
    with opened() as source:
        # Questions about several pipelines in turn, beginning with another one each time, and then all of them backwards.
        order = [(pipeline, (number + turn) % 6) for number in range(6) for pipeline in pipelines]
        for pipeline, number in order + order[::-1]:
            assert answer(facts(source, pipeline)[number]) == alone[pipeline, number]


def test_an_unknown_pipeline_is_not_found(opened: Callable[[], Source]) -> None:
    with opened() as source:
        for ask in (source.object_key, source.version, source.load):
            for known in (False, True):
                hash = next(hash for kind, hash in source.pipelines() if kind == "compute") if known else UNKNOWN
                kind: PipelineKind = "raytracing" if known else "compute"
                with pytest.raises(NotFoundError, match=f"{kind} pipeline {hash:016x}"):
                    ask(kind, hash)
        assert source.cost("compute", UNKNOWN) == 0
        assert source.label(f"{UNKNOWN:016x}") == f"{UNKNOWN:016x}"


def test_what_cannot_be_loaded_fails_alone_and_names_its_fault(opened: Callable[[], Source]) -> None:
    with opened() as source:
        faults = []
        for pipeline in source.pipelines():
            try:
                source.load(*pipeline)
            except UnsupportedPipelineError as error:
                assert error.object_key == source.object_key(*pipeline)
            except ShaderkilnError as error:
                faults.append(str(error))
                with pytest.raises(type(error)):
                    source.object_key(*pipeline)
        assert len(faults) == 1
        assert "2001" in faults[0] or "bad" in faults[0]


def test_a_pipeline_is_found_by_the_beginning_of_its_name(opened: Callable[[], Source]) -> None:
    with opened() as source:
        for kind, hash in source.pipelines():
            assert resolve_pipeline(source, f"{hash:016x}") == (kind, hash)
            assert resolve_pipeline(source, f"{hash:016X}") == (kind, hash)
        for name in ("", "x", f"{UNKNOWN:016x}"):
            with pytest.raises(NotFoundError):
                resolve_pipeline(source, name)
        if isinstance(source, Capture):
            with pytest.raises(InvalidArgumentError, match="3 pipelines have names that begin with '0000'"):
                resolve_pipeline(source, "0000")


class NoTranslator:
    """In the place of a translator that must not be asked."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"the translator was asked for its {name}")


def test_no_shader_is_translated_for_an_object_key(tmp_path: Path) -> None:
    code = example.read("dxil/c1_fill.cs.dxil")
    stream = PipelineStateStream(cs=code, root_signature=example.fitting_root_signature(code))
    with StateObjectDatabase.create(tmp_path / "game.sodb") as database:
        database.store_pipeline_state_desc(b"fill", 1, stream)
    database = StateObjectDatabase.open(tmp_path / "game.sodb")
    translations = ShaderTranslations(NoTranslator())  # type: ignore[arg-type]
    with StateObjectSource(database, translations=translations) as source:
        ((kind, hash),) = source.pipelines()
        key: ObjectKey = source.object_key(kind, hash)
        assert key == object_key(stream)
        with pytest.raises(AssertionError, match="the translator was asked"):
            source.load(kind, hash)
