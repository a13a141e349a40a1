"""State object databases as a source of compile jobs."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from sodb_example import example

from shaderkiln import api
from shaderkiln.cli.main import kiln as kiln_group
from shaderkiln.compilers.plugin import open_family
from shaderkiln.databases.psdb import Psdb
from shaderkiln.databases.sodb import ObjectKind, StateObjectDatabase
from shaderkiln.descriptions.direct3d12.canonical import object_key
from shaderkiln.descriptions.direct3d12.enums import StateObjectType
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import StateObjectDesc, WorkGraph
from shaderkiln.descriptions.direct3d12.states import SampleDesc
from shaderkiln.descriptions.pipeline import UnsupportedPipelineError
from shaderkiln.errors import CacheCorruptError, InvalidArgumentError, NotFoundError, ShaderkilnError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.jobs.compile import JobOptions
from shaderkiln.jobs.verdicts import Outcome, Verdict
from shaderkiln.keys import OBJECT_VERSION
from shaderkiln.lowering.pipelines import DEVICE_FEATURES, direct3d12_application
from shaderkiln.lowering.state_object import part_key, with_collections
from shaderkiln.shaders.package import NAME, TranslatorPackages
from shaderkiln.sources.capture import Capture
from shaderkiln.sources.state_objects import StateObjectSource, shown_key

FILL = PipelineStateStream(cs=example.read("spirv/c1_fill.cs.spv"))
REDUCE = PipelineStateStream(cs=example.read("spirv/c2_reduce.cs.spv"))
GRAPH = StateObjectDesc(StateObjectType.EXECUTABLE, (WorkGraph("Graph"),))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's database."""
    path: Path = example.make_sodb(tmp_path_factory.mktemp("sodb") / "game.sodb")
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Two compute pipelines of SPIR-V, one of them twice, and a work graph."""
    path = tmp_path / "small.sodb"
    with StateObjectDatabase.create(path) as database:
        database.set_application_desc(example.APPLICATION)
        database.store_pipeline_state_desc(b"fill", 1, FILL)
        database.store_pipeline_state_desc(b"fill again", 7, FILL)
        database.store_pipeline_state_desc(b"\xff\x00reduce", 3, REDUCE)
        database.store_state_object_desc(b"graph", 2, GRAPH)
    return path


@pytest.fixture
def family() -> str:
    """A family that is here, with a translator."""
    try:
        open_family("amd-navi31", direct3d12_application())
    except ShaderkilnError as error:
        pytest.skip(f"no driver package is installed (kiln drivers add mesa-backports): {error}")
    try:
        if TranslatorPackages().get(NAME).notice:
            pytest.skip("the translator cannot read DXIL")
    except NotFoundError:
        pytest.skip(f"needs the shader translator: kiln drivers add {NAME}")
    return "amd-navi31"


# The source


def test_pipelines_have_the_kinds_versions_and_labels_of_their_objects(small: Path) -> None:
    with StateObjectSource.open(small) as source:
        found = {source.label(f"{hash:016x}"): (kind, hash) for kind, hash in source.pipelines()}
        assert {label: kind for label, (kind, _) in found.items()} == {
            "fill": "compute", "fill again": "compute", "ff00726564756365": "compute", "graph: Graph": "compute",
        }  # fmt: skip
        versions = {label: source.version(kind, hash) for label, (kind, hash) in found.items()}
        assert versions == {"fill": 1, "fill again": 7, "ff00726564756365": 3, "graph: Graph": 2}
        assert len({hash for _, hash in found.values()}) == 4


def test_descriptions_and_keys_are_those_of_the_descs(small: Path) -> None:
    with StateObjectSource.open(small) as source:
        keys = {}
        for kind, hash in source.pipelines():
            if source.label(f"{hash:016x}").startswith("graph"):
                continue
            description = source.load(kind, hash)
            assert description.name == f"{hash:016x}"
            assert source.cost(kind, hash) > 0
            keys[source.label(description.name)] = source.object_key(kind, hash)
    assert keys == {"fill": object_key(FILL), "fill again": object_key(FILL), "ff00726564756365": object_key(REDUCE)}


def test_a_captures_objects_have_the_one_version() -> None:
    samples = Path(example.__file__).resolve().parents[1] / "samples" / "samples.foz"
    with Capture.open(samples) as capture:
        kind, hash = next(capture.pipelines())
        assert capture.version(kind, hash) == OBJECT_VERSION
        assert capture.label(f"{hash:016x}") == f"{hash:016x}"


def test_what_vulkan_cannot_do_has_its_object_key(small: Path) -> None:
    with StateObjectSource.open(small, pipeline_states=False) as source:
        ((kind, hash),) = source.pipelines()
        with pytest.raises(UnsupportedPipelineError) as caught:
            source.load(kind, hash)
    assert caught.value.object_key == object_key(GRAPH)
    assert [reason.name for reason in caught.value.reasons] == ["work_graph"]


def test_objects_are_chosen_by_kind_and_key(small: Path) -> None:
    def labels(**how: object) -> set[str]:
        with StateObjectSource.open(small, **how) as source:  # type: ignore[arg-type]
            return {source.label(f"{hash:016x}") for _, hash in source.pipelines()}

    assert labels(state_objects=False) == {"fill", "fill again", "ff00726564756365"}
    assert labels(pipeline_states=False) == {"graph: Graph"}
    assert labels(keys={b"fill", b"graph"}) == {"fill", "graph: Graph"}
    assert labels(keys={b"fill", b"graph"}, pipeline_states=False) == {"graph: Graph"}
    assert labels(keys=set()) == set()


def test_names_do_not_depend_on_what_else_is_there(small: Path) -> None:
    with StateObjectSource.open(small) as source, StateObjectSource.open(small, keys={b"fill again"}) as other:
        names = {source.label(f"{hash:016x}"): hash for _, hash in source.pipelines()}
        assert [hash for _, hash in other.pipelines()] == [names["fill again"]]


def test_the_application_is_the_databases_with_the_features_of_direct3d(small: Path, tmp_path: Path) -> None:
    with StateObjectSource.open(small) as source:
        assert source.application.identity == example.APPLICATION
        assert source.application.features == DEVICE_FEATURES
    StateObjectDatabase.create(tmp_path / "empty.sodb").close()
    with StateObjectSource.open(tmp_path / "empty.sodb") as source:
        assert source.application.identity == ApplicationIdentity()
        assert list(source.pipelines()) == []


def test_an_unknown_pipeline_is_not_found(small: Path) -> None:
    with StateObjectSource.open(small) as source:
        with pytest.raises(NotFoundError):
            source.load("compute", 1)
        with pytest.raises(NotFoundError):
            source.version("compute", 1)
        _, hash = next(source.pipelines())
        with pytest.raises(NotFoundError):
            source.load("graphics", hash)


def test_an_object_that_direct3d_would_refuse_fails_alone(small: Path) -> None:
    with StateObjectDatabase.open(small, write=True) as database:
        database.store_pipeline_state_desc(b"bad", 1, PipelineStateStream(vs=b"x", sample_desc=SampleDesc(0)))
    with StateObjectSource.open(small) as source:
        (damage,) = source.damaged()
        assert damage.startswith("pipeline-state bad: sample_desc.count")
        names = {source.label(f"{hash:016x}"): (kind, hash) for kind, hash in source.pipelines()}
        with pytest.raises(InvalidArgumentError, match=r"sample_desc\.count"):
            source.load(*names["bad"])
        source.load(*names["fill"])


def test_damaged_rows_fail_alone(small: Path) -> None:
    with sqlite3.connect(small) as connection:
        connection.execute("UPDATE groups SET Version = 'no number' WHERE Key = CAST('fill' AS BLOB)")
    with StateObjectSource.open(small) as source:
        assert len(source.damaged()) == 1
        assert sum(1 for _ in source.pipelines()) == 4


def test_keys_for_people() -> None:
    assert shown_key(b"mesh.opaque") == "mesh.opaque"
    assert shown_key(b"\x01\x02") == "0102"
    assert shown_key("é".encode()) == "c3a9"
    assert shown_key(b" ") == "20"


def test_state_object_keys_count_parents_and_collections(whole: Path) -> None:
    descs = {key: (desc, parent) for key, desc, parent, _ in example.state_objects()}

    def inlined(key: bytes) -> StateObjectDesc:
        return with_collections(descs[key][0], lambda inner: descs[inner][0])

    programs = object_key(inlined(b"executable.programs"))
    addition = object_key(inlined(b"executable.addition"), parent=programs)
    with StateObjectSource.open(whole, keys={b"executable.addition", b"collection.hits"}) as source:
        found = {source.label(f"{hash:016x}"): (kind, source.object_key(kind, hash)) for kind, hash in source.pipelines()}
    assert found.pop("collection.hits") == ("raytracing", object_key(inlined(b"collection.hits")))
    ((_, key),) = found.values()
    assert key == part_key(addition, 0) == addition


# Jobs on real drivers


@pytest.mark.driver
def test_twins_of_other_versions_have_groups_of_their_own(small: Path, tmp_path: Path, family: str) -> None:
    verdicts: list[Verdict] = []
    report = api.compile_capture(small, family, tmp_path / "out.psdb", on_verdict=verdicts.append)
    counts = Counter(v.outcome for v in verdicts)
    # Whether the twin waits for the first or is compiled on its own depends on which is faster.
    assert counts[Outcome.COMPILED] + counts[Outcome.REUSED] == 3
    assert counts[Outcome.UNSUPPORTED] == 1
    (refused,) = [v for v in verdicts if v.outcome is Outcome.UNSUPPORTED]
    assert refused.object_key == object_key(GRAPH).hex()
    assert refused.reasons[0].text == "work graph 'Graph': Vulkan has no work graphs"
    assert report.tally.good
    with Psdb.open(report.path) as database:
        groups = {(group.object_key, group.version): group.value_keys for group in database.groups()}
        assert set(groups) == {(object_key(FILL), 1), (object_key(FILL), 7), (object_key(REDUCE), 3)}
        assert groups[object_key(FILL), 1] == groups[object_key(FILL), 7]
        assert database.application == example.APPLICATION
    verified = api.verify_psdb(report.path, small)
    assert verified.tally.counts == {Outcome.HIT: 3, Outcome.UNSUPPORTED: 1}


@pytest.mark.driver
@pytest.mark.spec("EP-53")
@pytest.mark.parametrize("name", ["amd-navi31", "amd-polaris10"])
def test_the_example_compiles_and_verifies_with_compiling_forbidden(
    whole: Path, tmp_path: Path, family: str, name: str
) -> None:
    try:
        open_family(name, direct3d12_application())
    except ShaderkilnError:
        pytest.skip(f"{name} is not here")
    unsupported: dict[str, str] = {}
    with StateObjectSource.open(whole) as source:
        total = sum(1 for _ in source.pipelines())
        assert sum(1 for _ in source.database.keys(ObjectKind.PIPELINE_STATE)) >= 200

        def note(verdict: Verdict) -> None:
            if verdict.outcome is Outcome.UNSUPPORTED:
                unsupported[source.label(verdict.pipeline)] = verdict.message

        report = api.compile_capture(source, name, tmp_path / "out.psdb", on_verdict=note)
        verified = api.verify_psdb(report.path, source)
    expected = {"c2_reduce.cs.sm6_6.dxil"}
    if name == "amd-polaris10":  # which has no ray tracing
        expected |= {"collection.hits", "rays.scene"}
    assert set(unsupported) == expected
    assert "createHandleFromBinding" in unsupported["c2_reduce.cs.sm6_6.dxil"]
    assert report.tally.counts == {Outcome.COMPILED: total - len(expected), Outcome.UNSUPPORTED: len(expected)}
    assert verified.tally.counts == {Outcome.HIT: total - len(expected), Outcome.UNSUPPORTED: len(expected)}
    assert verified.good
    again = api.compile_capture(whole, name, tmp_path / "out.psdb", options=JobOptions(workers=1))
    assert again.tally.counts[Outcome.REUSED] == total - len(expected)


# The command line


def run(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(kiln_group, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_identity_set_keeps_what_is_not_given(tmp_path: Path) -> None:
    path = tmp_path / "game.sodb"
    StateObjectDatabase.create(path).close()
    run("identity", "set", path, "--name", "TestGame", "--exe-filename", "testgame.exe", "--app-version", "1.0",
        "--engine", "TestEngine", "--engine-version", "1.0")  # fmt: skip
    with StateObjectDatabase.open(path) as database:
        assert database.get_application_desc() == example.APPLICATION
    record = json.loads(run("identity", "set", path, "--app-version", "2.1", "--json"))
    assert (record["name"], record["version"], record["engine_name"]) == ("TestGame", 2 << 48 | 1 << 32, "TestEngine")
    assert "TestGame 2.1.0.0" in run("identity", "show", path)
    assert "nothing to set" in run("identity", "set", path, code=2)


def test_show_lists_objects_and_pipelines(small: Path) -> None:
    *rows, summary = map(json.loads, run("show", small, "--pipelines", "--json").splitlines())
    assert summary["objects"] == {"pipeline-state": 3, "state-object": 1}
    assert summary["application"]["name"] == "TestGame"
    assert summary["damaged"] == []
    assert {(bytes.fromhex(row["key"]), row["version"], row["program"]) for row in rows} == {
        (b"fill", 1, ""), (b"fill again", 7, ""), (b"\xff\x00reduce", 3, ""), (b"graph", 2, "Graph"),
    }  # fmt: skip
    text = run("show", small, "--pipelines")
    assert "3 pipeline states, 1 state objects" in text
    assert "ff00726564756365" in text


def test_a_file_that_only_claims_to_be_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fake.sodb"
    path.write_bytes(b"SQLite format 3\0" + bytes(200))
    with pytest.raises(CacheCorruptError):
        api.open_source(path)
    with pytest.raises(NotFoundError):
        api.open_source(tmp_path / "none.sodb")
    with pytest.raises(InvalidArgumentError, match="no state object database"):
        api.open_source(Path(example.__file__).parents[1] / "samples" / "samples.foz", keys={b"x"})


def test_what_a_database_is_is_seen_from_its_content(small: Path, tmp_path: Path) -> None:
    renamed = small.rename(tmp_path / "renamed.bin")
    with api.open_source(renamed) as source:
        assert isinstance(source, StateObjectSource)
        assert source.path == renamed


@pytest.mark.driver
def test_compile_verify_and_replay_take_a_database(
    small: Path, tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "game.psdb"
    first = run("compile", small, "--family", family, "-o", out, "--pdb")
    assert f"{family}: unsupported compute graph: Graph: work graph 'Graph': Vulkan has no work graphs" in first
    second = run("compile", small, "--family", family, "-o", out, "--pdb")
    assert "3 reused, 1 unsupported" in second
    assert "3 hit" in run("verify", out, small)
    assert "1 compiled" in run("replay", small, "--family", family, "--key", "ff00726564756365")
    assert "1 unsupported" in run("replay", small, "--family", family, "--no-psos")
    assert "unsupported" not in run("replay", small, "--family", family, "--no-sos")
    one = run("compile", small, "--family", family, "-o", tmp_path / "one.psdb", "--key", "fill", "--json").splitlines()
    assert json.loads(one[-1])["pipelines"] == 1
