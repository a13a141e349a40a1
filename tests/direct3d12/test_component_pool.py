"""Component pools: what is kept once, what that saves, and the file."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.compilers.plugin import FamilyNotFoundError, open_family
from shaderkiln.compilers.value_keys import driver_values
from shaderkiln.databases.psdb import Psdb
from shaderkiln.descriptions.pipeline import PipelineKind
from shaderkiln.direct3d12.component_pool import ComponentPool, MappedComponentPool, PoolStatistics
from shaderkiln.direct3d12.serialized_components import serialize_stored
from shaderkiln.direct3d12.stored_objects import StoredObject
from shaderkiln.errors import DamagedInputError, InvalidArgumentError, NotFoundError, ShaderkilnError
from shaderkiln.formats.component_pool import parse
from shaderkiln.formats.pipeline_components import (
    Code,
    PipelineRecord,
    SerializedPipelineState,
    ShaderSlot,
    assemble,
    serialize,
)
from shaderkiln.jobs.compile import CompileJob
from shaderkiln.sources.capture import Capture

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = {
    "samples": ROOT / "samples" / "samples.foz",
    "pygfx": ROOT.parent / "shared" / "data" / "captures" / "pygfx.foz",
    "wgpu": ROOT.parent / "shared" / "data" / "captures" / "wgpu.foz",
}


def pieces(*codes: tuple[bytes, bytes], number: int = 0) -> SerializedPipelineState:
    """A pipeline with shaders of metadata and instructions."""
    record = PipelineRecord("family", b"compiler", "graphics", bytes(32), number, (), b"")
    found = [Code(ShaderSlot(n), b"", head + code, len(head)) for n, (head, code) in enumerate(codes)]
    return serialize(record, found)


@pytest.mark.spec("XS-05")
def test_equal_pieces_are_one_and_what_that_saves_is_told() -> None:
    pool = ComponentPool()
    assert pool.statistics() == PoolStatistics()
    pipelines = {
        "one": pieces((b"limits 1", b"instructions"), (b"limits", b"more instructions")),
        "two": pieces((b"limits 2", b"instructions"), number=1),
        "three": pieces((b"limits 1", b"instructions"), number=2),
    }
    for name, serialized in pipelines.items():
        pool.add(name, serialized)
    assert pool.names() == ("one", "two", "three")
    own = sum(len(serialized.pipeline) for serialized in pipelines.values())
    statistics = pool.statistics()
    assert (statistics.pipelines, statistics.pieces_given, statistics.pieces_kept) == (3, 3 + 2 * 4, 3 + 5)
    assert statistics.bytes_given == own + 3 * (8 + 12) + 6 + 17
    # Not kept: the instructions twice, the limits of "one" once.
    assert statistics.bytes_saved == 2 * 12 + 8
    shaders = {name: pool.get(name).shader(ShaderSlot.VERTEX) for name in pipelines}
    assert len({id(shader.gpu_instructions) for shader in shaders.values() if shader is not None}) == 1
    assert all(pool.get(name) == serialized for name, serialized in pipelines.items())


@pytest.mark.spec("XS-05")
@given(st.lists(st.tuples(st.binary(max_size=3), st.binary(min_size=1, max_size=3)), max_size=12))
def test_pieces_with_one_hash_are_told_apart_by_their_bytes(shaders: list[tuple[bytes, bytes]]) -> None:
    worst, usual = ComponentPool(lambda piece: b"always the same"), ComponentPool()
    for number, shader in enumerate(shaders):
        for pool in (worst, usual):
            pool.add(str(number), pieces(shader, number=number))
    assert worst.statistics() == usual.statistics()
    assert len({piece for n in worst.names() for _, piece in worst.get(n).pieces()}) == worst.statistics().pieces_kept
    for number, shader in enumerate(shaders):
        assert worst.get(str(number)) == pieces(shader, number=number)


def test_names_are_used_once() -> None:
    pool = ComponentPool()
    pool.add("one", pieces((b"", b"code")))
    for name in ("one", "", None):
        with pytest.raises(InvalidArgumentError):
            pool.add(name, pieces((b"", b"code")))  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        pool.get("two")


# The file


@pytest.mark.spec("XS-03", "XS-05")
def test_a_pool_is_used_where_its_file_is_mapped(tmp_path: Path) -> None:
    pool = ComponentPool()
    for number in range(20):
        pool.add(f"pipeline {number}", pieces((b"h" * (number % 3), b"c" * (1 + number % 5)), number=number))
    path = tmp_path / "components.pool"
    size = pool.write(path)
    assert path.stat().st_size == size and stat.S_IMODE(path.stat().st_mode) & 0o400
    assert [file.name for file in tmp_path.iterdir()] == ["components.pool"]
    written = path.read_bytes()
    mapped = MappedComponentPool.open(path)
    assert tuple(mapped) == mapped.names() == pool.names() and len(mapped) == 20
    for name in mapped:
        found = mapped.get(name)
        assert assemble(found) == assemble(pool.get(name))
        for _, piece in found.pieces():
            assert isinstance(piece, memoryview) and piece.readonly
    with pytest.raises(NotFoundError):
        mapped.get("pipeline 20")
    pool.write(path)
    assert path.read_bytes() == written
    # What was mapped before the file was replaced stays as it was.
    ComponentPool().write(path)
    assert assemble(mapped.get("pipeline 1")) == assemble(pool.get("pipeline 1"))
    assert len(MappedComponentPool.open(path)) == 0


@pytest.mark.spec("AL-02", "XS-04")
def test_no_damage_of_a_pool_goes_unseen(tmp_path: Path) -> None:
    pool = ComponentPool()
    for number in range(3):
        pool.add(str(number), pieces((b"header", b"code %d" % number), number=number))
    path = tmp_path / "pool"
    pool.write(path)
    data = path.read_bytes()
    good = {name: assemble(pool.get(name)) for name in pool.names()}
    used = {at for start, size in parse(memoryview(data)).places for at in range(start, start + size)}
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        refused = 0
        try:
            found = MappedComponentPool(damaged)
        except DamagedInputError:
            assert at not in used
            continue
        for name in found:
            try:
                assert assemble(found.get(name)) == good[name]
            except DamagedInputError:
                refused += 1
        # Bytes between pieces mean nothing.
        assert bool(refused) is (at in used)
    for end in range(len(data)):
        with pytest.raises(DamagedInputError):
            MappedComponentPool(data[:end])
    assert path.read_bytes() == data


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        MappedComponentPool.open(tmp_path / "nothing")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    for name in ("empty", "pipe", "."):
        with pytest.raises(ShaderkilnError):
            MappedComponentPool.open(tmp_path / name)
    with pytest.raises(ShaderkilnError) as refused:
        ComponentPool().write(tmp_path / "no folder" / "pool")
    assert refused.value.code == "E_ACCESSDENIED"


# A real capture


def serialized_capture(capture: Path, psdb: Path) -> Iterator[tuple[str, SerializedPipelineState]]:
    """Every graphics and compute pipeline of a capture with object code of its own, from its PSDB."""
    with Capture.open(capture) as source, Psdb.open(psdb) as database:
        for group in database.groups():
            if group.kind == "raytracing" or not group.value_keys:
                continue
            kind: PipelineKind = "compute" if group.kind == "compute" else "graphics"
            description = source.load(kind, int(group.name, 16))
            values = driver_values(database.identity.object_code_form, group, database.find)
            stored = StoredObject(group, values)
            try:
                yield group.name, serialize_stored(group.object_key, description, stored, database.identity)
            except ShaderkilnError as error:
                assert error.code == "DXGI_ERROR_UNSUPPORTED", error


def machine_code(data: bytes) -> tuple[bytes, bytes]:
    """Header and code by what RADV 25 and 26 write: counted from the end of a header whose size is always a multiple of 8."""
    for at in range(0, len(data) - 31, 8):
        size, zero, code, _, _, _, statistics, _ = struct.unpack_from("<8I", data, at)
        if size == len(data) and zero == 0 and at + 32 + statistics + code == size:
            return data[: len(data) - code], data[len(data) - code :]
    raise AssertionError("no header")


@pytest.mark.driver
@pytest.mark.spec("XS-01", "XS-03", "XS-05")
@pytest.mark.parametrize("capture", CAPTURES)
def test_a_pool_over_a_capture_saves_what_an_independent_count_says(capture: str, tmp_path: Path) -> None:
    path = CAPTURES[capture]
    if not path.exists():
        pytest.skip(f"{path} is not here")
    with Capture.open(path) as source:
        try:
            family = open_family("amd-navi31", source.application)
        except FamilyNotFoundError as error:
            pytest.skip(f"no driver here: {error}")
        CompileJob(source, family, tmp_path / "game.psdb", application=source.application.identity).run()
    pool = ComponentPool()
    given, distinct = 0, set()
    with Psdb.open(tmp_path / "game.psdb") as database:
        groups = {group.name: group for group in database.groups()}
        for name, serialized in serialized_capture(path, tmp_path / "game.psdb"):
            pool.add(name, serialized)
            # Counted from the PSDB alone: headers and machine code of every binary, and the pipeline's own piece.
            found = [bytes(serialized.pipeline)]
            for key in groups[name].value_keys:
                found += machine_code(database.find(key))
            given += sum(map(len, found))
            distinct.update(found)
    statistics = pool.statistics()
    assert statistics.pipelines > 40
    assert statistics.bytes_given == given
    assert statistics.bytes_kept == sum(map(len, distinct)) and statistics.pieces_kept == len(distinct)
    assert statistics.bytes_saved == given - sum(map(len, distinct)) > 0
    pool.write(tmp_path / "pool")
    mapped = MappedComponentPool.open(tmp_path / "pool")
    offsets: dict[bytes, int] = {}
    for at, size in mapped._layout.places:
        # Byte-equal pieces are one.
        assert offsets.setdefault(bytes(mapped._memory[at : at + size]), at) == at
