"""State object databases that others wrote: other keys, other row order, damage, malice, and writers that die."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from shaderkiln.databases.sodb import ObjectKind, StateObjectDatabase, StoredStateObject
from shaderkiln.databases.sodb_schema import INDEXES, TABLES
from shaderkiln.descriptions.direct3d12 import enums, states
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import (
    DxilLibrary,
    ExistingCollectionByKey,
    ExportDesc,
    GenericProgram,
    HitGroup,
    LocalSerializedRootSignature,
    Node,
    NodeId,
    NodeOutputOverrides,
    NodeOverrides,
    RaytracingPipelineConfig1,
    RaytracingShaderConfig,
    StateObjectConfig,
    StateObjectDesc,
    StateObjectType,
    SubobjectToExportsAssociation,
    WorkGraph,
)
from shaderkiln.errors import CacheCorruptError, DamagedInputError, NotFoundError, ShaderkilnError
from shaderkiln.identity import ApplicationIdentity

SOURCE = str(Path(__file__).parents[2] / "src")

# Rows as another writer could have them: keys are counted, 32-bit values signed, the rows of a state object not its key.
ROWS: list[tuple[str, tuple[object, ...]]] = [
    ("groups", (b"pso", 3, b"\x01", None)),
    ("groups", (b"child", 1, None, b"\x11")),
    ("groups", (b"parent", 2, None, b"\x10")),
    ("groups", (b"coll", 1, None, b"\x12")),
    ("pipeline_states", (b"\x01", b"\x02", b"\x03", b"\x04", *[None] * 7, b"\x05", b"\x06", b"\x07", b"\x08", b"\x09", b"\x0a",
        4, 0, -1, 0, 3, 45, 0, 0)),
    ("root_signatures", (b"\x02", b"root signature")),
    ("shader_bytecode", (b"\x04", "whatever", b"vertex shader")),
    ("shader_bytecode", (b"\x40", None, b"library")),
    ("input_layout_to_input_element_associations", (b"\x03", b"\xf1")),
    ("input_layout_to_input_element_associations", (b"\x03", b"\xf0")),
    ("input_element_descs", (b"\xf0", "POSITION", 0, 6, 0, 0, 0, 0)),
    ("input_element_descs", (b"\xf1", "COLOR", 0, 2, 0, -1, 0, 0)),
    ("depth_stencil_descs", (b"\x05", 1, 0, 4, 0, b"\x50", b"\x51", 1)),
    ("depth_stencil_op_descs", (b"\x50", 1, 1, 1, 8, 255, 255)),
    ("depth_stencil_op_descs", (b"\x51", 2, 1, 1, 8, 1, 2)),
    ("render_target_formats", (b"\x06", 28, 10, 0, 0, 0, 0, 0, 0, 2)),
    ("blend_descs", (b"\x07", 0, 1, b"\x70", None, b"\x70", None, None, None, None, None)),
    ("render_target_blend_descs", (b"\x70", 1, 0, 5, 6, 1, 2, 1, 1, 4, 7)),
    ("rasterizer_descs", (b"\x08", 3, 1, 0, 0.5, 0, 1.5, 1, 0, 0, 0)),
    ("view_instancing_descs", (b"\x09", 2, 1, 0, 1, None, 3, None, None, None, None)),
    ("stream_out_descs", (b"\x0a", 16, 0, 0, 0, 1, 0)),
    ("stream_output_desc_to_stream_output_decl_associations", (b"\x0a", b"\xa1")),
    ("stream_output_desc_to_stream_output_decl_associations", (b"\x0a", b"\xa0")),
    ("so_declarations", (b"\xa0", 0, "TEXCOORD", 1, 0, 4, 0)),
    ("so_declarations", (b"\xa1", 0, "", 0, 0, 2, 0)),
    ("state_objects", (b"\x11", 4, None, 4, b"\x10")),
    ("state_objects", (b"\x10", 4, 1, None, None)),
    ("state_objects", (b"\x12", 0, None, None, None)),
    ("so_to_existing_so_associations", (b"\x11", b"\x12", b"\xe0")),
    ("so_to_existing_so_associations", (b"\x11", b"\x12", b"\xe1")),
    ("exports", (b"\xe0", "zz", None, 0)),
    ("exports", (b"\xe1", "aa", "bb", 0)),
    ("so_to_dxil_lib_associations", (b"\x12", b"\x40", None)),
    ("so_to_local_rs_associations", (b"\x10", b"\x02")),
    ("so_to_subobject_to_exports_associations", (b"\x10", b"\x60")),
    ("subobject_to_exports_associations", (b"\x60", 2, b"\x02")),
    ("string_associations", (b"\x60", "hit")),
    ("so_to_rt_shader_config_associations", (b"\x10", b"\x61")),
    ("rt_shader_config", (b"\x61", 16, 8)),
    ("so_to_rt_pipeline_config_associations", (b"\x10", b"\x62")),
    ("rt_pipeline_config", (b"\x62", 1, 0x100)),
    ("so_to_hit_group_associations", (b"\x10", b"\x63")),
    ("rt_hit_groups", (b"\x63", "hit", 0, None, "closest", None)),
    ("so_to_generic_program_associations", (b"\x11", b"\x64")),
    ("generic_programs", (b"\x64", "program", *[None] * 8, None, -1, None, 3, None, None, None)),
    ("string_associations", (b"\x64", "vs")),
    ("string_associations", (b"\x64", "ps")),
    ("so_to_work_graph_associations", (b"\x11", b"\x65")),
    ("work_graphs", (b"\x65", "graph", 1)),
    ("work_graph_to_entrypoint_node_id_associations", (b"\x65", b"\x66")),
    ("node_ids", (b"\x66", "entry", 2)),
    ("work_graph_to_work_graph_node_associations", (b"\x65", b"\x67")),
    ("shader_nodes", (b"\x67", "shader", 0, 1, None, 1, b"\x66", None, 4, 5, 6, None, None, None, None, None)),
    ("workgraph_node_to_node_output_overrides_associations", (b"\x67", b"\x68")),
    ("node_output_overrides", (b"\x68", 0, b"\x66", 1, 7, None)),
    ("app_id", (5, "game.exe", "Game", None, -1, 0)),
]  # fmt: skip

PSO = PipelineStateStream(
    serialized_root_signature=b"root signature",
    vs=b"vertex shader",
    input_layout=states.InputLayoutDesc(
        (
            states.InputElementDesc("COLOR", 0, enums.DxgiFormat.R32G32B32A32_FLOAT, 0, enums.APPEND_ALIGNED_ELEMENT),
            states.InputElementDesc("POSITION", 0, enums.DxgiFormat.R32G32B32_FLOAT),
        )
    ),
    depth_stencil=states.DepthStencilDesc2(
        depth_write_mask=enums.DepthWriteMask.ZERO,
        depth_func=enums.ComparisonFunc.LESS_EQUAL,
        back_face=states.DepthStencilOpDesc1(stencil_fail_op=enums.StencilOp.ZERO, stencil_read_mask=1, stencil_write_mask=2),
        depth_bounds_test_enable=True,
    ),
    render_target_formats=states.RenderTargetFormats((enums.DxgiFormat.R8G8B8A8_UNORM, enums.DxgiFormat.R16G16B16A16_FLOAT)),
    blend=states.BlendDesc(
        independent_blend_enable=True,
        render_target=tuple(
            states.RenderTargetBlendDesc(
                True,
                src_blend=enums.Blend.SRC_ALPHA,
                dest_blend=enums.Blend.INV_SRC_ALPHA,
                render_target_write_mask=enums.ColorWriteEnable(7),
            )
            if index != 1
            else states.RenderTargetBlendDesc()
            for index in range(3)
        ),
    ),
    rasterizer=states.RasterizerDesc2(cull_mode=enums.CullMode.NONE, depth_bias=0.5, slope_scaled_depth_bias=1.5),
    view_instancing=states.ViewInstancingDesc(
        (states.ViewInstanceLocation(0, 1), states.ViewInstanceLocation(0, 3)),
        enums.ViewInstancingFlags.ENABLE_VIEW_INSTANCE_MASKING,
    ),
    stream_output=states.StreamOutputDesc(
        (
            states.StreamOutputDeclarationEntry(component_count=2),
            states.StreamOutputDeclarationEntry(0, "TEXCOORD", 1, 0, 4, 0),
        ),
        (16,),
    ),
    sample_desc=states.SampleDesc(4, 0),
    sample_mask=0xFFFFFFFF,
    ib_strip_cut_value=enums.IndexBufferStripCutValue.DISABLED,
    primitive_topology=enums.PrimitiveTopologyType.TRIANGLE,
    depth_stencil_format=enums.DxgiFormat.D24_UNORM_S8_UINT,
    node_mask=0,
    flags=enums.PipelineStateFlags.NONE,
)
PARENT = {
    states.NodeMask(1),
    LocalSerializedRootSignature(b"root signature"),
    RaytracingShaderConfig(16, 8),
    RaytracingPipelineConfig1(1, enums.RaytracingPipelineFlags.SKIP_TRIANGLES),
    HitGroup("hit", closest_hit_shader_import="closest"),
}
CHILD = {
    StateObjectConfig(enums.StateObjectFlags.ALLOW_STATE_OBJECT_ADDITIONS),
    ExistingCollectionByKey(b"coll", (ExportDesc("zz"), ExportDesc("aa", "bb"))),
    states.SampleMask(0xFFFFFFFF),
    states.PrimitiveTopologyDesc(enums.PrimitiveTopologyType.TRIANGLE),
    WorkGraph(
        "graph",
        enums.WorkGraphFlags.INCLUDE_ALL_AVAILABLE_NODES,
        (NodeId("entry", 2),),
        (
            Node(
                "shader",
                NodeOverrides(
                    enums.NodeOverridesType.BROADCASTING_LAUNCH,
                    program_entry=True,
                    new_name=NodeId("entry", 2),
                    dispatch_grid=(4, 5, 6),
                    output_overrides=(NodeOutputOverrides(0, NodeId("entry", 2), True, 7),),
                ),
            ),
        ),
    ),
}


def write(path: Path, rows: list[tuple[str, tuple[object, ...]]]) -> Path:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 2; PRAGMA application_id = 0xD3D50DB; BEGIN")
    for sql in (*TABLES.values(), *INDEXES.values()):
        # Other white space, as another writer may have it.
        connection.execute(sql.replace(" ,", ",\n  "))
    for table, row in rows:
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # type: ignore[arg-type]
    connection.execute("COMMIT")
    connection.close()
    return path


def shuffled(seed: int) -> list[tuple[str, tuple[object, ...]]]:
    """The rows in another order; those of one association table keep theirs, which is the order of its lists."""
    source = random.Random(seed)
    places = {table: iter([each for each in ROWS if each[0] == table]) for table, _ in ROWS}
    mixed = [table for table, _ in ROWS]
    source.shuffle(mixed)
    return [next(places[table]) for table in mixed]


@pytest.mark.spec("EP-52")
@pytest.mark.parametrize("seed", range(4))
def test_a_file_of_another_writer(tmp_path: Path, seed: int) -> None:
    path = write(tmp_path / "a.sodb", shuffled(seed))
    before = path.read_bytes()
    with StateObjectDatabase.open(path) as database:
        assert database.verify() == []
        assert database.get_application_desc() == ApplicationIdentity("Game", "game.exe", (1 << 64) - 1)
        assert set(database.keys()) == {b"pso", b"child", b"parent", b"coll"}
        assert database.find_pipeline_state_desc(b"pso") == (3, PSO)
        version, parent, parent_key = database.find_state_object_desc(b"parent")
        assert (version, parent.type, parent_key) == (2, StateObjectType.EXECUTABLE, None)
        association = SubobjectToExportsAssociation(
            parent.subobjects.index(LocalSerializedRootSignature(b"root signature")), ("hit",)
        )
        assert set(parent.subobjects) == PARENT | {association}
        _, child, parent_key = database.find_state_object_desc(b"child")
        assert parent_key == b"parent"
        (program,) = child.of(GenericProgram)
        assert {child.subobjects[index] for index in program.subobjects} == {
            states.SampleMask(0xFFFFFFFF),
            states.PrimitiveTopologyDesc(enums.PrimitiveTopologyType.TRIANGLE),
        }
        assert (program.program_name, program.exports) == ("program", ("vs", "ps"))
        assert set(child.subobjects) == CHILD | {program}
        assert database.find_state_object_desc(b"coll") == (
            1,
            StateObjectDesc(StateObjectType.COLLECTION, (DxilLibrary(b"library"),)),
            None,
        )
    assert path.read_bytes() == before


@pytest.mark.spec("EP-52")
def test_a_file_of_another_writer_is_extended(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sodb", ROWS)
    new = StateObjectDesc(StateObjectType.COLLECTION, (DxilLibrary(b"new"),))
    with StateObjectDatabase.open(path, write=True) as database:
        # A key that is the name of a row of the other writer's.
        database.store_state_object_desc(b"\x10", 1, new, b"parent")
        database.store_state_object_desc(b"coll", 2, new)
        database.store_pipeline_state_desc(b"pso", 3, PSO)
        database.store_pipeline_state_desc(b"pso", 4, PipelineStateStream(cs=b"c"))
        assert database.verify() == []
        assert database.find_state_object_desc(b"\x10") == (1, new, b"parent")
        assert database.find_state_object_desc(b"coll") == (2, new, None)
        child = database.find_state_object_desc(b"child")
        assert child.parent_key == b"parent"
        assert child.desc.of(ExistingCollectionByKey)[0].key == b"coll"
        assert database.find_state_object_desc(b"parent").version == 2


@pytest.mark.spec("EP-52")
def test_a_file_in_wal_mode_is_read_without_side_files(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sodb", ROWS)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL; UPDATE app_id SET exe = 'x'")
    connection.close()
    before = path.read_bytes()
    tmp_path.chmod(0o555)
    try:
        with StateObjectDatabase.open(path) as database:
            assert database.find_pipeline_state_desc(b"pso") == (3, PSO)
            assert [each.name for each in tmp_path.iterdir()] == ["a.sodb"]
    finally:
        tmp_path.chmod(0o755)
    assert path.read_bytes() == before


def altered(path: Path, *sql: str) -> Path:
    write(path, ROWS)
    connection = apsw.Connection(str(path))
    for statement in ("PRAGMA writable_schema = ON", *sql):
        connection.execute(statement)
    connection.close()
    return path


@pytest.mark.spec("EP-52", "AL-02")
@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("PRAGMA application_id = 1", "not a state object database"),
        ("PRAGMA user_version = 1", "version 1"),
        ("PRAGMA user_version = 3", "version 3"),
        ("DROP TABLE app_id", "missing table app_id"),
        ("DROP INDEX string_associations_partial_index", "missing index"),
        ("CREATE TABLE more (a)", "foreign table more"),
        ("CREATE VIEW v AS SELECT 1", "foreign view v"),
        ("CREATE TRIGGER t AFTER DELETE ON groups BEGIN DELETE FROM exports; END", "foreign trigger t"),
        ("ALTER TABLE groups ADD COLUMN more", "foreign table groups"),
        ("UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'exports'", "exports"),
        ("CREATE VIRTUAL TABLE f USING fts5(a)", "foreign table f"),
    ],
)
def test_other_schemas_are_refused(tmp_path: Path, sql: str, reason: str) -> None:
    path = altered(tmp_path / "a.sodb", sql)
    before = path.read_bytes()
    for writing in (False, True):
        with pytest.raises(CacheCorruptError, match=reason) as caught:
            StateObjectDatabase.open(path, write=writing)
        assert "a.sodb" in str(caught.value)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.sodb"]


@pytest.mark.spec("EP-52", "AL-02")
@pytest.mark.parametrize(
    ("key", "sql"),
    [
        (b"pso", "UPDATE groups SET PSOKey = NULL"),
        (b"pso", "UPDATE groups SET SOKey = x'11'"),
        (b"pso", "UPDATE groups SET Version = 'one'"),
        (b"pso", "UPDATE groups SET Version = 4294967296"),
        (b"pso", "DELETE FROM pipeline_states"),
        (b"pso", "UPDATE pipeline_states SET SampleMask = 'x'"),
        (b"pso", "UPDATE pipeline_states SET InputLayout = 5"),
        (b"pso", "UPDATE pipeline_states SET DSVFormat = 120"),
        (b"pso", "UPDATE pipeline_states SET PrimitiveTopology = 1.5"),
        (b"pso", "DELETE FROM input_element_descs"),
        (b"pso", "UPDATE input_element_descs SET SemanticName = CAST(x'c328' AS TEXT)"),
        (b"pso", "UPDATE input_element_descs SET SemanticName = x'41'"),
        (b"pso", "UPDATE input_element_descs SET InputSlotClass = 2"),
        (b"pso", "DELETE FROM depth_stencil_op_descs WHERE Key = x'51'"),
        (b"pso", "UPDATE depth_stencil_descs SET DepthFunc = 9"),
        (b"pso", "UPDATE render_target_formats SET NumRenderTargets = 9"),
        (b"pso", "UPDATE rasterizer_descs SET DepthBias = 'much'"),
        (b"pso", "UPDATE view_instancing_descs SET ViewInstanceCount = 5"),
        (b"pso", "UPDATE stream_out_descs SET NumStrides = 5"),
        (b"pso", "UPDATE shader_bytecode SET Bytecode = 'text'"),
        (b"pso", "UPDATE root_signatures SET value = 'text'"),
        (b"child", "DELETE FROM groups WHERE Key = x'706172656e74'"),
        (b"child", "DELETE FROM groups WHERE Key = x'636f6c6c'"),
        (b"child", "UPDATE state_objects SET Type = 2"),
        (b"child", "UPDATE state_objects SET AddToStateObjectParent = 'parent'"),
        (b"child", "DELETE FROM node_ids"),
        (b"child", "UPDATE shader_nodes SET OverridesType = 9"),
        (b"child", "UPDATE node_output_overrides SET MaxRecords = x'00'"),
        (b"child", "UPDATE string_associations SET Value = x'00' WHERE Value = 'vs'"),
        (b"parent", "UPDATE subobject_to_exports_associations SET SubobjectType = 11"),
        (b"parent", "UPDATE subobject_to_exports_associations SET SubobjectType = 3"),
        (b"parent", "UPDATE rt_hit_groups SET HitGroupExport = x'00'"),
    ],
)
def test_damaged_rows_are_named(tmp_path: Path, key: bytes, sql: str) -> None:
    path = altered(tmp_path / "a.sodb", sql)
    before = path.read_bytes()
    with StateObjectDatabase.open(path) as database:
        with pytest.raises(DamagedInputError):
            if key == b"pso":
                database.find_pipeline_state_desc(key)
            else:
                database.find_state_object_desc(key)
        faults = database.verify()
        assert any(repr(key.decode()) in fault for fault in faults), faults
    assert path.read_bytes() == before


@pytest.mark.spec("EP-52", "AL-02")
def test_a_state_object_that_contains_itself_is_only_named(tmp_path: Path) -> None:
    path = altered(tmp_path / "a.sodb", "UPDATE state_objects SET AddToStateObjectParent = Key")
    with StateObjectDatabase.open(path) as database:
        found = database.find_state_object_desc(b"coll")
    assert found == StoredStateObject(1, found.desc, b"coll")


def read_all(path: Path) -> int:
    """Reads everything that can be read; the number of objects."""
    count = 0
    with StateObjectDatabase.open(path) as database:
        for key in list(database.keys()):
            try:
                if database.find_object_kind(key) is ObjectKind.PIPELINE_STATE:
                    database.find_pipeline_state_desc(key)
                else:
                    database.find_state_object_desc(key)
                count += 1
            except (CacheCorruptError, DamagedInputError, NotFoundError):
                continue
    return count


@pytest.mark.spec("EP-52", "AL-02")
def test_altered_truncated_and_random_files(tmp_path: Path) -> None:
    sound = write(tmp_path / "sound.sodb", ROWS)
    data = sound.read_bytes()
    source = random.Random(11)
    changes: list[Callable[[], bytes]] = [
        lambda: data[: source.randrange(len(data))],
        lambda: source.randbytes(source.randrange(5000)),
        lambda: data[:100] + source.randbytes(len(data) - 100),
    ]

    def flipped(count: int) -> Callable[[], bytes]:
        def make() -> bytes:
            copy = bytearray(data)
            for _ in range(count):
                copy[source.randrange(len(copy))] = source.randrange(256)
            return bytes(copy)

        return make

    changes += [flipped(count) for count in (1, 1, 10, 10, 300)]
    refused = 0
    for number, make in enumerate(itertools.islice(itertools.cycle(changes), 320)):
        path = tmp_path / f"{number}.sodb"
        path.write_bytes(make())
        before = path.read_bytes()
        begin = time.perf_counter()
        try:
            read_all(path)
        except ShaderkilnError as error:
            assert isinstance(error, CacheCorruptError | DamagedInputError), error
            refused += 1
        assert time.perf_counter() - begin < 60
        assert path.read_bytes() == before
        path.unlink()
    assert refused > 100
    assert [each.name for each in tmp_path.iterdir()] == ["sound.sodb"]


@pytest.mark.spec("EP-52", "AL-02")
def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        StateObjectDatabase.open(tmp_path / "missing.sodb")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    for name in ("folder", "pipe", "empty"):
        with pytest.raises(CacheCorruptError, match=name):
            StateObjectDatabase.open(tmp_path / name)
    with pytest.raises(ShaderkilnError):
        StateObjectDatabase.open("a\0b")


@pytest.mark.spec("EP-52", "AL-02")
def test_shared_rows_do_not_multiply(tmp_path: Path) -> None:
    """Graphs that share nodes which share overrides: three million objects if each were read for itself."""
    size = 150
    rows = [each for each in ROWS if "graph" not in each[0] and each[0] not in ("shader_nodes", "node_output_overrides")]
    names = [b"%d" % number for number in range(size)]
    for name in names:
        rows += [
            ("work_graphs", (b"g" + name, name.decode(), 0)),
            ("so_to_work_graph_associations", (b"\x11", b"g" + name)),
            ("shader_nodes", (b"n" + name, name.decode(), 0, 1, *[None] * 12)),
            ("node_output_overrides", (b"o" + name, int(name), None, None, None, None)),
        ]
        rows += [("work_graph_to_work_graph_node_associations", (b"g" + name, b"n" + other)) for other in names]
        rows += [("workgraph_node_to_node_output_overrides_associations", (b"n" + name, b"o" + other)) for other in names]
    path = write(tmp_path / "a.sodb", rows)
    begin = time.perf_counter()
    with StateObjectDatabase.open(path) as database:
        graphs = database.find_state_object_desc(b"child").desc.of(WorkGraph)
    assert len(graphs) == size
    assert time.perf_counter() - begin < 60


WRITER = f"""
import sys
sys.path.insert(0, {SOURCE!r})
from pathlib import Path
from shaderkiln.databases.sodb import StateObjectDatabase
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import DxilLibrary, StateObjectDesc, StateObjectType
path, begin, name = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
with StateObjectDatabase.open(path, write=True) as database:
    print("open", flush=True)
    for number in range(begin, begin + int(sys.argv[4])):
        key = name + b"%d" % number
        if number % 3:
            database.store_pipeline_state_desc(key, 1, PipelineStateStream(vs=b"%d" % number * 500, ps=b"%d" % (number % 7)))
        else:
            desc = StateObjectDesc(StateObjectType.COLLECTION, (DxilLibrary(b"%d" % number * 500),))
            parent = name + b"%d" % (number - 3) if number > begin + 3 else None
            database.store_state_object_desc(key, 1, desc, parent)
        print(number, flush=True)
"""


@pytest.mark.spec("EP-52", "AL-03")
def test_killed_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.sodb"
    StateObjectDatabase.create(path).close()
    source = random.Random(4)
    told: set[bytes] = set()
    for round_number in range(10):
        command = [sys.executable, "-c", WRITER, str(path), str(round_number * 99_000), "k", "98000"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        time.sleep(source.random() * 0.25)
        os.kill(process.pid, signal.SIGKILL)
        told |= {b"k" + line.encode() for line in process.stdout.read().split("\n")[:-1]}
        process.wait()
        with StateObjectDatabase.open(path, write=True) as database:
            assert told <= set(database.keys())
            assert database.verify() == []
    assert told


@pytest.mark.spec("EP-52", "AL-03")
def test_two_writers_and_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.sodb"
    StateObjectDatabase.create(path).close()
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), "0", name, "60"], stdout=subprocess.DEVNULL) for name in "ab"
    ]
    with StateObjectDatabase.open(path) as database:
        while any(process.poll() is None for process in processes):
            for key in list(database.keys()):
                database.find_object_version(key)
            time.sleep(0.01)
        assert [process.returncode for process in processes] == [0, 0]
        assert len(database) == 120
        assert database.verify() == []
