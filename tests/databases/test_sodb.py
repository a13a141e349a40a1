"""What is stored in a state object database is found again, in the published form."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import apsw
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sodb_support import STREAMS, pruned, state_objects

from shaderkiln.databases.sodb import ObjectKind, StateObjectDatabase
from shaderkiln.databases.sodb_columns import ROW_TYPES, STATE_COLUMNS, STATES
from shaderkiln.databases.sodb_schema import COLUMNS
from shaderkiln.descriptions.direct3d12 import enums, states
from shaderkiln.descriptions.direct3d12.canonical import object_key
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import (
    DxilLibrary,
    ExistingCollection,
    ExistingCollectionByKey,
    ExportDesc,
    GenericProgram,
    GlobalRootSignature,
    GlobalSerializedRootSignature,
    LocalRootSignature,
    NodeId,
    StateObjectDesc,
    StateObjectType,
    SubobjectToExportsAssociation,
    WorkGraph,
)
from shaderkiln.errors import AccessDeniedError, AlreadyExistsError, InvalidArgumentError, NotFoundError
from shaderkiln.identity import ApplicationIdentity

GAME = ApplicationIdentity("Game", "game.exe", 0x0001_0000_0000_0000, "Engine", (1 << 64) - 1)
LIBRARY = StateObjectDesc(StateObjectType.COLLECTION, (DxilLibrary(b"library"),))
PUBLISHED = "e0f1affe115b904161fc83c82b93583aa6cfa82a563b213110f31a41c7708f6b"
"""SHA-256 of the statements of the published schema, without semicolons, sorted, with line feeds between them."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "game.sodb"


def check(path: Path) -> None:
    with StateObjectDatabase.open(path) as database:
        assert database.verify() == []


@pytest.mark.spec("EP-52")
def test_the_published_schema_to_the_letter(path: Path) -> None:
    StateObjectDatabase.create(path).close()
    connection = apsw.Connection(str(path))
    statements = [row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
    assert hashlib.sha256("\n".join(sorted(map(str, statements))).encode()).hexdigest() == PUBLISHED
    assert connection.execute("PRAGMA user_version").fetchall() == [(2,)]
    assert connection.execute("PRAGMA application_id").fetchall() == [(0xD3D50DB,)]
    columns = connection.execute("SELECT name, type, \"notnull\" FROM pragma_table_info('stream_out_descs')").fetchall()
    assert columns[0] == ("Key", "BLOB", 1)
    assert columns[-1] == ("RasterizedStream", "INTEGER", 1)
    connection.close()


@pytest.mark.spec("EP-52")
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 command is not installed")
def test_the_sqlite3_command_opens_it(path: Path) -> None:
    with StateObjectDatabase.create(path) as database:
        database.store_state_object_desc(b"collection", 1, LIBRARY)
        database.store_pipeline_state_desc(b"pso", 1, PipelineStateStream(vs=b"code", root_signature=b"rs"))
    query = "PRAGMA integrity_check; PRAGMA foreign_key_check; SELECT hex(Bytecode) FROM shader_bytecode ORDER BY Type;"
    result = subprocess.run(["sqlite3", str(path), query], check=True, capture_output=True, text=True)
    assert result.stdout.split() == ["ok", b"library".hex().upper(), b"code".hex().upper()]


@pytest.mark.spec("EP-52")
def test_application_desc(path: Path) -> None:
    with StateObjectDatabase.create(path) as database:
        with pytest.raises(NotFoundError):
            database.get_application_desc()
        database.set_application_desc(ApplicationIdentity("First"))
        assert database.get_application_desc() == ApplicationIdentity("First")
        database.set_application_desc(GAME)
        for bad in (ApplicationIdentity(), ApplicationIdentity("\ud800"), ApplicationIdentity("a", version=1 << 64)):
            with pytest.raises(InvalidArgumentError):
                database.set_application_desc(bad)
    with StateObjectDatabase.open(path) as database:
        assert database.get_application_desc() == GAME
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT exe, app_name, engine_name, app_version, engine_version FROM app_id").fetchall() == [
        ("game.exe", "Game", "Engine", 0x0001_0000_0000_0000, -1)
    ]
    connection.close()


@pytest.mark.spec("EP-52", "AL-03")
def test_pipeline_states_are_found_equal(path: Path) -> None:
    stored: dict[bytes, tuple[int, PipelineStateStream]] = {}

    def check_found(database: StateObjectDatabase, key: bytes) -> None:
        version, stream = stored[key]
        found = database.find_pipeline_state_desc(key)
        assert found.version == version == database.find_object_version(key)
        # Every field is the same; only the forms of three of them are the newest ones.
        assert found.desc == msgspec.structs.replace(
            stream,
            root_signature=None,
            serialized_root_signature=stream.root_signature_blob,
            rasterizer=stream.rasterizer and stream.rasterizer.to_desc2(),
            depth_stencil=stream.depth_stencil and stream.depth_stencil.to_desc2(),
        )
        if stream.kind != "compute":
            assert object_key(found.desc) == object_key(stream)

    with StateObjectDatabase.create(path) as database, database.transaction():

        @settings(max_examples=150, deadline=None)
        @given(STREAMS, st.integers(0, 0xFFFFFFFF))
        def store(stream: PipelineStateStream, version: int) -> None:
            key = b"%d" % len(stored)
            stored[key] = (version, stream)
            database.store_pipeline_state_desc(key, version, stream)
            check_found(database, key)

        store()
    with StateObjectDatabase.open(path) as database:
        assert list(database.keys()) == list(stored)
        for key in stored:
            check_found(database, key)
        assert database.verify() == []


@pytest.mark.spec("EP-52", "AL-03")
def test_state_objects_are_found_with_the_same_meaning(path: Path) -> None:
    stored: dict[bytes, tuple[StateObjectDesc, bytes | None]] = {b"c": (LIBRARY, None)}

    def check_found(database: StateObjectDatabase, key: bytes) -> StateObjectDesc:
        desc, parent = stored[key]
        version, found, found_parent = database.find_state_object_desc(key)
        assert (version, found_parent) == (7, parent)
        assert object_key(found) == object_key(pruned(desc))
        assert len(set(found.subobjects)) == len(found.subobjects)
        return found

    with StateObjectDatabase.create(path) as database, database.transaction():
        database.store_state_object_desc(b"c", 7, LIBRARY)

        @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(state_objects(collections=(b"c",)), st.booleans())
        def store(desc: StateObjectDesc, grown: bool) -> None:
            key, parent = b"%d" % len(stored), list(stored)[-1] if grown else None
            stored[key] = (desc, parent)
            database.store_state_object_desc(key, 7, desc, parent)
            found = check_found(database, key)
            # What was found is stored and found as it is.
            database.store_state_object_desc(key + b" again", 7, found, parent)
            assert database.find_state_object_desc(key + b" again").desc == found

        store()
    with StateObjectDatabase.open(path) as database:
        for key in stored:
            check_found(database, key)
        assert database.verify() == []


@pytest.mark.spec("EP-52")
def test_order_and_repeats_are_kept_where_they_matter(path: Path) -> None:
    elements = tuple(states.InputElementDesc(name) for name in ("Z", "A", "M", "B"))
    gap = states.StreamOutputDeclarationEntry(component_count=2)
    declarations = (
        states.StreamOutputDeclarationEntry(semantic_name="Z"),
        gap,
        gap,
        states.StreamOutputDeclarationEntry(semantic_name="A"),
    )
    orders = (elements, elements[::-1], (elements[1], elements[0], elements[0]))
    graph = WorkGraph("g", entrypoints=(NodeId("z"), NodeId("a"), NodeId("m")))
    with StateObjectDatabase.create(path) as database:
        for number, order in enumerate(orders):
            stream = PipelineStateStream(
                input_layout=states.InputLayoutDesc(order),
                stream_output=states.StreamOutputDesc(declarations if number else declarations[::-1], (16, 4)),
            )
            database.store_pipeline_state_desc(b"%d" % number, 1, stream)
        database.store_state_object_desc(b"g", 1, StateObjectDesc(StateObjectType.EXECUTABLE, (graph,)))
    connection = apsw.Connection(str(path))
    connection.execute("ANALYZE; VACUUM")
    connection.close()
    with StateObjectDatabase.open(path) as database:
        for number, order in enumerate(orders):
            found = database.find_pipeline_state_desc(b"%d" % number).desc
            assert found.input_layout == states.InputLayoutDesc(order)
            assert found.stream_output is not None
            assert found.stream_output.declarations == (declarations if number else declarations[::-1])
        assert database.find_state_object_desc(b"g").desc.subobjects == (graph,)


@pytest.mark.spec("EP-52")
def test_equal_content_is_one_row(path: Path) -> None:
    stream = PipelineStateStream(
        vs=b"v" * 1000, root_signature=b"rs", blend=states.BlendDesc(), rasterizer=states.RasterizerDesc2()
    )
    with StateObjectDatabase.create(path) as database, database.transaction():
        for number in range(50):
            database.store_pipeline_state_desc(b"%d" % number, 1, msgspec.structs.replace(stream, sample_mask=number % 5))
    connection = apsw.Connection(str(path))
    for table, count in (
        ("groups", 50),
        ("pipeline_states", 5),
        ("shader_bytecode", 1),
        ("root_signatures", 1),
        ("blend_descs", 1),
        ("render_target_blend_descs", 1),
    ):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(count,)], table
    connection.close()


@pytest.mark.spec("EP-52")
def test_values_are_in_the_published_columns(path: Path) -> None:
    stream = PipelineStateStream(
        ps=b"\1",
        depth_stencil=states.DepthStencilDesc(stencil_read_mask=3, stencil_enable=True),
        sample_mask=0xFFFFFFFF,
        render_target_formats=states.RenderTargetFormats((enums.DxgiFormat.R8G8B8A8_UNORM,)),
        sample_desc=states.SampleDesc(4, 1),
        rasterizer=states.RasterizerDesc(depth_bias=-3),
    )
    with StateObjectDatabase.create(path) as database:
        database.store_pipeline_state_desc(b"p", 9, stream)
    connection = apsw.Connection(str(path))
    assert connection.execute(
        "SELECT g.Version, p.SampleMask, p.SampleDesc_Count, p.SampleDesc_Quality, p.NodeMask, s.Type, s.Bytecode, d.StencilEnable,"
        " f.StencilReadMask, f.StencilFunc, t.RTFormat0, t.RTFormat1, t.NumRenderTargets, r.DepthBias,"
        " typeof(r.DepthBias), r.CullMode"
        " FROM groups g JOIN pipeline_states p ON p.Key = g.PSOKey JOIN shader_bytecode s ON s.Key = p.ByteCode_PS"
        " JOIN depth_stencil_descs d ON d.Key = p.DepthStencilDesc JOIN depth_stencil_op_descs f ON f.Key = d.BackFace"
        " JOIN render_target_formats t ON t.Key = p.RenderTargetFormats JOIN rasterizer_descs r ON r.Key = p.RasterizerDesc"
    ).fetchall() == [(9, 0xFFFFFFFF, 4, 1, None, "PS", b"\1", 1, 3, 8, 28, 0, 1, -3.0, "real", 3)]
    connection.close()


@pytest.mark.spec("EP-52")
def test_unknown_keys_and_wrong_kinds(path: Path) -> None:
    with StateObjectDatabase.create(path) as database:
        database.store_pipeline_state_desc(b"p", 1, PipelineStateStream())
        database.store_state_object_desc(b"s", 1, LIBRARY)
        for find in (database.find_pipeline_state_desc, database.find_state_object_desc, database.find_object_version):
            with pytest.raises(NotFoundError) as caught:
                find(b"nothing")
            assert caught.value.code == "DXGI_ERROR_NOT_FOUND"
        with pytest.raises(NotFoundError, match="pipeline state"):
            database.find_state_object_desc(b"p")
        with pytest.raises(NotFoundError, match="state object"):
            database.find_pipeline_state_desc(b"s")
        assert list(database.keys()) == [b"p", b"s"]
        assert list(database.keys(ObjectKind.STATE_OBJECT)) == [b"s"]
        assert len(database) == 2
        assert b"p" in database
        assert b"x" not in database
        for key in (b"", "text", b"k" * 65_537, None):
            with pytest.raises(InvalidArgumentError):
                database.find_object_version(key)  # type: ignore[arg-type]


@pytest.mark.spec("EP-52")
def test_parents_and_collections_must_be_there(path: Path) -> None:
    uses = StateObjectDesc(StateObjectType.EXECUTABLE, (ExistingCollectionByKey(b"c", (ExportDesc("e"),)),))
    holds = StateObjectDesc(StateObjectType.EXECUTABLE, (ExistingCollection(LIBRARY, (ExportDesc("e"),)),))
    with StateObjectDatabase.create(path) as database:
        database.store_pipeline_state_desc(b"p", 1, PipelineStateStream())
        for parent in (b"c", b"p", b"self"):
            with pytest.raises(InvalidArgumentError, match="parent_key"):
                database.store_state_object_desc(b"self", 1, LIBRARY, parent)
        with pytest.raises(InvalidArgumentError, match="collection"):
            database.store_state_object_desc(b"x", 1, uses)
        with pytest.raises(InvalidArgumentError, match="collections has none"):
            database.store_state_object_desc(b"x", 1, holds)
        assert list(database.keys()) == [b"p"]
        database.store_state_object_desc(b"c", 1, LIBRARY)
        database.store_state_object_desc(b"x", 1, uses)
        database.store_state_object_desc(b"y", 1, holds, parent_key=b"x", collections=[b"c"])
        with pytest.raises(InvalidArgumentError, match="more than"):
            database.store_state_object_desc(b"z", 1, holds, collections=[b"c", b"c"])
        assert database.find_state_object_desc(b"y") == (1, uses, b"x")
        with pytest.raises(InvalidArgumentError, match="contain itself"):
            database.store_state_object_desc(b"c", 2, LIBRARY, parent_key=b"y")
        with pytest.raises(InvalidArgumentError, match="refer"):
            database.store_pipeline_state_desc(b"c", 2, PipelineStateStream())
        assert database.find_state_object_desc(b"c") == (1, LIBRARY, None)
        assert database.verify() == []


@pytest.mark.spec("EP-52")
def test_one_version_per_key(path: Path) -> None:
    one, two = PipelineStateStream(vs=b"1"), PipelineStateStream(vs=b"2")
    other = StateObjectDesc(StateObjectType.COLLECTION, (DxilLibrary(b"other"), GlobalRootSignature(b"rs")))
    with StateObjectDatabase.create(path) as database:
        database.store_pipeline_state_desc(b"k", 1, one)
        database.store_pipeline_state_desc(b"k", 1, one)
        with pytest.raises(AlreadyExistsError, match="version 1"):
            database.store_pipeline_state_desc(b"k", 1, two)
        with pytest.raises(AlreadyExistsError):
            database.store_state_object_desc(b"k", 1, LIBRARY)
        assert database.find_pipeline_state_desc(b"k") == (1, one)
        database.store_pipeline_state_desc(b"k", 2, two)
        assert database.find_pipeline_state_desc(b"k") == (2, two)
        database.store_state_object_desc(b"k", 3, LIBRARY)
        database.store_state_object_desc(b"k", 3, LIBRARY)
        with pytest.raises(AlreadyExistsError):
            database.store_state_object_desc(b"k", 3, other)
        assert database.find_state_object_desc(b"k") == (3, LIBRARY, None)
        database.store_state_object_desc(b"child", 1, LIBRARY, b"k")
        database.store_state_object_desc(b"k", 4, other)
        assert set(database.find_state_object_desc(b"k").desc.subobjects) == {
            DxilLibrary(b"other"),
            GlobalSerializedRootSignature(b"rs"),
        }
        assert database.find_state_object_desc(b"child").parent_key == b"k"
        database.store_state_object_desc(b"child", 2, LIBRARY)
        database.store_pipeline_state_desc(b"child", 3, one)
        assert len(database) == 2
    check(path)


@pytest.mark.spec("EP-52")
@pytest.mark.parametrize(
    ("field", "desc"),
    [
        ("sample_mask", PipelineStateStream(sample_mask=1 << 32)),
        ("node_mask", PipelineStateStream(node_mask=-1)),
        ("vs", PipelineStateStream(vs="text")),  # type: ignore[arg-type]
        ("primitive_topology", PipelineStateStream(primitive_topology=9)),  # type: ignore[arg-type]
        ("render_target_formats", PipelineStateStream(render_target_formats=states.RenderTargetFormats((28,) * 9))),  # type: ignore[arg-type]
        ("semantic_name", PipelineStateStream(input_layout=states.InputLayoutDesc((states.InputElementDesc("a\0"),)))),
        (
            "semantic_name",
            PipelineStateStream(
                stream_output=states.StreamOutputDesc((states.StreamOutputDeclarationEntry(semantic_name=""),))
            ),
        ),
        ("depth_bias", PipelineStateStream(rasterizer=states.RasterizerDesc2(depth_bias=float("nan")))),
        ("program", StateObjectDesc(StateObjectType.EXECUTABLE, (GenericProgram("p", (), (3,)),))),
        ("NodeMask", StateObjectDesc(StateObjectType.EXECUTABLE, (states.NodeMask(1), states.NodeMask(2)))),
        (
            "belongs to no export",
            StateObjectDesc(StateObjectType.COLLECTION, (DxilLibrary(b""), SubobjectToExportsAssociation(0, ("e",)))),
        ),
        ("belongs to no export", StateObjectDesc(StateObjectType.COLLECTION, (SubobjectToExportsAssociation(1),))),
    ],
)
def test_what_cannot_be_stored_is_named_and_leaves_nothing(path: Path, field: str, desc: object) -> None:
    with StateObjectDatabase.create(path) as database:
        with pytest.raises(InvalidArgumentError, match=field):
            if isinstance(desc, PipelineStateStream):
                database.store_pipeline_state_desc(b"k", 1, desc)
            else:
                database.store_state_object_desc(b"k", 1, desc)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="version"):
            database.store_pipeline_state_desc(b"k", 1 << 32, PipelineStateStream())
        assert len(database) == 0
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM shader_bytecode").fetchall() == [(0,)]
    connection.close()


@pytest.mark.spec("EP-52")
def test_transactions(path: Path) -> None:
    with StateObjectDatabase.create(path) as database:
        with pytest.raises(ZeroDivisionError), database.transaction():
            database.store_pipeline_state_desc(b"a", 1, PipelineStateStream())
            raise ZeroDivisionError
        assert len(database) == 0
        with database.transaction():
            database.store_pipeline_state_desc(b"b", 1, PipelineStateStream())
            with pytest.raises(InvalidArgumentError):
                database.store_pipeline_state_desc(b"c", 1, PipelineStateStream(vs=b"left over", sample_mask=-1))
            assert database.find_object_version(b"b") == 1
        assert list(database.keys()) == [b"b"]
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM shader_bytecode").fetchall() == [(0,)]
    connection.close()
    before = path.read_bytes()
    with StateObjectDatabase.open(path) as database:
        with pytest.raises(AccessDeniedError):
            database.store_pipeline_state_desc(b"d", 1, PipelineStateStream())
        with pytest.raises(AccessDeniedError):
            database.set_application_desc(GAME)
    assert path.read_bytes() == before
    for there in (path, path.parent / "text"):
        if there != path:
            there.write_text("something else")
        with pytest.raises(AlreadyExistsError):
            StateObjectDatabase.create(there)
    (path.parent / "empty").touch()
    StateObjectDatabase.create(path.parent / "empty").close()
    with pytest.raises(AccessDeniedError):
        StateObjectDatabase.create(path.parent / "no folder" / "a")
    with StateObjectDatabase.open(path, write=True) as database:
        database.store_pipeline_state_desc(b"d", 1, PipelineStateStream())
    with pytest.raises(InvalidArgumentError, match="closed"):
        database.find_object_version(b"d")
    check(path)


@pytest.mark.spec("EP-52")
def test_equal_root_signatures_of_different_kinds_stay_apart(path: Path) -> None:
    desc = StateObjectDesc(
        StateObjectType.RAYTRACING_PIPELINE,
        (
            SubobjectToExportsAssociation(2, ("hit",)),
            GlobalRootSignature(b"rs"),
            LocalRootSignature(b"rs"),
            SubobjectToExportsAssociation(1),
        ),
    )
    with StateObjectDatabase.create(path) as database:
        database.store_state_object_desc(b"s", 1, desc)
        found = database.find_state_object_desc(b"s").desc
    assert object_key(found) == object_key(desc)
    assert sorted(type(part).__name__ for part in found.subobjects) == [
        "GlobalSerializedRootSignature",
        "LocalSerializedRootSignature",
        "SubobjectToExportsAssociation",
        "SubobjectToExportsAssociation",
    ]


@pytest.mark.spec("EP-52")
def test_exports_of_one_library_are_found_together(path: Path) -> None:
    a, b, c = (ExportDesc(name) for name in "bca")
    desc = StateObjectDesc(
        StateObjectType.COLLECTION, (DxilLibrary(b"l", (a, b)), DxilLibrary(b"m"), DxilLibrary(b"l"), DxilLibrary(b"l", (b, c)))
    )
    with StateObjectDatabase.create(path) as database:
        database.store_state_object_desc(b"s", 1, desc)
        assert set(database.find_state_object_desc(b"s").desc.subobjects) == {
            DxilLibrary(b"l", (a, b, c)),
            DxilLibrary(b"l"),
            DxilLibrary(b"m"),
        }


def test_fields_stand_in_the_order_of_the_columns_named_like_them() -> None:
    for row in ROW_TYPES.values():
        columns = iter(COLUMNS[row.table])
        for field, part in row.fields:
            names = [next(columns) for _ in range(part.width)]
            if row.table not in ("root_signatures", "render_target_formats"):
                assert [name.lower() for name in names] == [field.replace("_", "")]
        assert not list(columns)
    names = [field for field, _ in STATES]
    assert sum(part.width for _, part in STATES) == len(STATE_COLUMNS)
    assert [name.split("_")[0].lower() for name in STATE_COLUMNS] == [
        "inputlayout", "depthstencildesc", "rendertargetformats", "blenddesc", "rasterizerdesc", "viewinstancingdesc",
        "streamoutdesc", "sampledesc", "sampledesc", "samplemask", "ibstripcutvalue", "primitivetopology", "dsvformat", "nodemask",
        "flags",
    ]  # fmt: skip
    assert names == [
        "input_layout", "depth_stencil", "render_target_formats", "blend", "rasterizer", "view_instancing", "stream_output",
        "sample_desc", "sample_mask", "ib_strip_cut_value", "primitive_topology", "depth_stencil_format", "node_mask", "flags",
    ]  # fmt: skip
