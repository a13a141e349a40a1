"""Devices whose drivers misbehave, state objects, sessions that do not belong, and stored objects that lie."""

from __future__ import annotations

import dataclasses
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from uuid import UUID, uuid4

import msgspec
import pytest
import toy_compiler
from device_support import (
    GAME,
    Bench,
    counts,
    finished_psdb,
    real_family,
    shader_stream,
    text_state_object,
    text_stream,
    toy_family,
)
from job_support import log_lines

import shaderkiln.direct3d12 as d3d12
from shaderkiln.compilers.value_keys import object_code_values
from shaderkiln.databases.psdb import PsdbBuilder
from shaderkiln.direct3d12.statistics import ObjectSource
from shaderkiln.direct3d12.stored_objects import GroupRecord, compiler_digest
from shaderkiln.errors import DriverError, InvalidArgumentError, NotFoundError, ShaderkilnError
from shaderkiln.keys import Group, ValueType
from shaderkiln.lowering.state_object import part_key
from shaderkiln.registration.installer import Installer
from shaderkiln.registration.records import PsdbProperties
from shaderkiln.sessions import FileSessionDesc, MemorySessionDesc, RegisteredSessionDesc, SessionFileFlags, StoreFlags
from shaderkiln.workers.hosted import HostedFamily
from shaderkiln.workers.pool import Limits

READ_ONLY = SessionFileFlags.READ_ONLY
CREATE_ONLY = d3d12.ShaderCacheSessionSubobjectFlags.CREATE_ONLY
MEMORY = MemorySessionDesc(
    UUID("5f0f44f0-3b7d-4f64-9d5c-0a2b6f1f8d11"),
    maximum_in_memory_cache_size_bytes=1 << 20,
    maximum_in_memory_cache_entries=1000,
)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toy compiler's log."""
    path = tmp_path / "toy.log"
    monkeypatch.setenv("TOY_LOG", str(path))
    return path


# EP-07: an adapter that cannot create pipelines from stored object code


def no_object_code(toy: Bench) -> Bench:
    toy.family = HostedFamily(toy_compiler.identity(object_code_form="none"), "toy_compiler:ToyPipelines")
    return toy


@pytest.mark.spec("EP-06", "EP-07")
def test_without_stored_object_code_there_are_no_explicit_psdbs(toy: Bench) -> None:
    path = toy.psdb("game.psdb", [1])
    toy.register(default=path, DLC1=path)
    device = no_object_code(toy).device()
    assert not device.check_feature_support(d3d12.Feature.EXPLICIT_PSDBS).explicit_psdbs_supported
    for desc in (FileSessionDesc(path, READ_ONLY), FileSessionDesc(toy.folder / "new"), RegisteredSessionDesc("DLC1")):
        with pytest.raises(InvalidArgumentError) as caught:
            device.create_shader_cache_session1(desc)
        assert caught.value.code == "E_INVALIDARG"
    with pytest.raises(ShaderkilnError) as failed:
        device.check_feature_support(d3d12.Feature.SHADER_CACHE_ABI_SUPPORT)
    assert failed.value.code == "E_FAIL"
    device.create_shader_cache_session1(MEMORY).close()


@pytest.mark.spec("EP-07", "EP-51")
def test_without_stored_object_code_creations_count_as_unknown(toy: Bench) -> None:
    toy.register(default=toy.psdb("game.psdb", [1]))
    device = no_object_code(toy).device()
    for _ in range(2):
        assert device.create_pipeline_state(toy.stream(1)).source is ObjectSource.UNKNOWN
    assert counts(device) == (2, 0, 0, 2)
    assert not device.get_state_object_statistics().default_psdb_registered


@pytest.mark.driver
@pytest.mark.spec("EP-07")
def test_a_real_driver_that_is_said_to_take_no_object_code_still_creates_pipelines(tmp_path: Path) -> None:
    family = real_family()
    family.identity = dataclasses.replace(family.identity, object_code_form="none")
    bench = Bench(tmp_path, family, toy=False)
    device = bench.device()
    with pytest.raises(InvalidArgumentError):
        device.create_shader_cache_session1(FileSessionDesc(tmp_path / "new.psdb"))
    assert device.create_pipeline_state(shader_stream(3)).source is ObjectSource.UNKNOWN
    assert counts(device) == (1, 0, 0, 1)
    bench.close()


# State objects


@pytest.mark.spec("EP-09", "EP-02", "EP-11")
def test_a_state_object_has_an_explicit_psdb_as_well(toy: Bench) -> None:
    desc = text_state_object("hit", "miss", "generate")
    with toy.device(cache="builder") as builder:
        path = finished_psdb(toy.folder / "so.psdb", builder, [builder.create_state_object(desc)], GAME.identity)
    device = toy.device()
    session = device.create_shader_cache_session1(FileSessionDesc(path, READ_ONLY))
    kept = device.create_state_object(desc.with_psdb(session))
    free = device.create_state_object(desc.with_psdb(session, CREATE_ONLY))
    session.close()
    assert kept.source is free.source is ObjectSource.EXPLICIT_PSDB
    assert kept.session is session and free.session is None
    assert kept.recreate() is ObjectSource.EXPLICIT_PSDB
    assert free.recreate() is ObjectSource.COMPILED
    statistics = device.get_state_object_statistics()
    assert statistics.state_object_statistics == d3d12.CreateStateObjectStatistics(2, 0, 0, 0)
    assert statistics.pipeline_state_object_statistics.num_created == 0


@pytest.mark.spec("EP-10")
def test_an_addition_does_not_inherit_the_psdb_of_its_base(toy: Bench) -> None:
    first, second = text_state_object("base", additions=True), text_state_object("more", additions=True)
    with toy.device(cache="builder") as builder:
        base = builder.create_state_object(first)
        grown = builder.add_to_state_object(second, base)
        path = finished_psdb(toy.folder / "so.psdb", builder, [base, grown], GAME.identity)
    device = toy.device()
    session = device.create_shader_cache_session1(FileSessionDesc(path, READ_ONLY))
    base = device.create_state_object(first.with_psdb(session))
    without = device.add_to_state_object(second, base)
    named = device.add_to_state_object(second.with_psdb(session), base)
    assert base.source is ObjectSource.EXPLICIT_PSDB
    assert without.source is ObjectSource.COMPILED and without.session is None
    assert named.source is ObjectSource.EXPLICIT_PSDB and named.session is session
    assert without.object_key == named.object_key != base.object_key
    # A third generation names none, whatever the second did.
    third = device.add_to_state_object(text_state_object("last", additions=True), named)
    assert third.source is ObjectSource.COMPILED and third.session is None
    assert third.base is named and named.base is base


@pytest.mark.spec("EP-51")
def test_a_state_object_that_is_only_partly_in_the_psdb_is_a_miss(toy: Bench) -> None:
    desc = text_state_object("one", "two")
    with toy.device(cache="builder") as builder:
        whole = builder.create_state_object(desc)
        path = finished_psdb(toy.folder / "so.psdb", builder, [whole], GAME.identity, parts=1)
    device = toy.device()
    session = device.create_shader_cache_session1(FileSessionDesc(path, READ_ONLY))
    assert device.create_state_object(desc.with_psdb(session)).source is ObjectSource.COMPILED
    assert device.create_state_object(desc.with_psdb(session)).source is ObjectSource.LOCAL_CACHE
    # Nothing to compile: nobody can tell.
    assert device.create_state_object(text_state_object()).source is ObjectSource.UNKNOWN
    assert device.get_state_object_statistics().state_object_statistics == d3d12.CreateStateObjectStatistics(3, 2, 1, 1)


def test_additions_must_be_allowed_by_both(toy: Bench) -> None:
    device, other = toy.device(), toy.device()
    closed, open_ = text_state_object("base"), text_state_object("base", additions=True)
    base = device.create_state_object(open_)
    for addition, on in (
        (closed, base),
        (open_, device.create_state_object(closed)),
        (open_, other.create_state_object(open_)),
    ):
        with pytest.raises(InvalidArgumentError):
            device.add_to_state_object(addition, on)


def test_the_parts_of_an_object_have_keys_of_their_own(toy: Bench) -> None:
    created = toy.device().create_state_object(text_state_object("one", "two", "three"))
    keys = [part.key for part in created.parts()]
    assert keys[0] == created.object_key and len(set(keys)) == 3
    assert keys[2] == part_key(created.object_key, 2)


def test_collections_by_key_are_for_databases(toy: Bench) -> None:
    by_key = d3d12.ExistingCollectionByKey(b"key")
    inner = d3d12.StateObjectDesc(d3d12.StateObjectType.COLLECTION, (by_key,))
    outer = d3d12.StateObjectDesc(d3d12.StateObjectType.COLLECTION, (d3d12.ExistingCollection(inner),))
    for desc in (inner, outer):
        with pytest.raises(InvalidArgumentError, match="by key"):
            toy.device().create_state_object(desc)


def compute_programs(name: str, factor: int) -> d3d12.StateObjectDesc:
    """An executable with one compute program, to which more can be added."""
    code = shader_stream(factor).cs
    assert code is not None
    builder = d3d12.StateObjectBuilder(d3d12.StateObjectType.EXECUTABLE)
    builder.add(d3d12.StateObjectConfig(d3d12.StateObjectFlags.ALLOW_STATE_OBJECT_ADDITIONS))
    builder.dxil_library(code, [d3d12.ExportDesc(f"{name}CS", "main")])
    builder.generic_program(name, [f"{name}CS"])
    return builder.build()


@pytest.mark.driver
@pytest.mark.spec("EP-09", "EP-10", "EP-11")
def test_state_objects_of_a_real_driver_have_explicit_psdbs_of_their_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path, real_family(), toy=False)
    first, second = compute_programs("First", 3), compute_programs("Second", 5)
    with bench.device(cache="builder") as builder:
        base = builder.create_state_object(first)
        grown = builder.add_to_state_object(second, base)
        path = finished_psdb(tmp_path / "so.psdb", builder, [base, grown], GAME.identity)
    device = bench.device()
    session = device.create_shader_cache_session1(FileSessionDesc(path, READ_ONLY))
    base = device.create_state_object(first.with_psdb(session))
    assert base.source is ObjectSource.EXPLICIT_PSDB and base.session is session
    assert device.add_to_state_object(second, base).source is ObjectSource.COMPILED
    assert device.add_to_state_object(second.with_psdb(session, CREATE_ONLY), base).source is ObjectSource.EXPLICIT_PSDB
    assert device.get_state_object_statistics().state_object_statistics == d3d12.CreateStateObjectStatistics(3, 1, 1, 0)
    bench.close()


# Drivers that misbehave


def test_a_crash_takes_one_object_with_it_and_is_not_repeated(toy: Bench, log: Path) -> None:
    device = toy.device()
    device.create_pipeline_state(text_stream("good"))
    for _ in range(2):
        with pytest.raises(d3d12.DriverCrashError, match="SIGSEGV") as caught:
            device.create_pipeline_state(text_stream("crash SIGSEGV"))
        assert caught.value.code == "DXGI_ERROR_DRIVER_INTERNAL_ERROR"
    # Tried in the worker that had compiled another one, and once more alone; the second call tried nothing.
    assert len(log_lines(log, "compile")) == 3
    assert device.create_pipeline_state(text_stream("good too")).source is ObjectSource.COMPILED
    assert counts(device) == (2, 2, 2, 0)


def test_a_worker_that_is_killed_is_replaced(toy: Bench, log: Path) -> None:
    device = toy.device()
    created = device.create_pipeline_state(text_stream("one"))
    os.kill(log_lines(log, "start")[0][0], signal.SIGKILL)
    assert created.recreate() is ObjectSource.LOCAL_CACHE
    assert device.create_pipeline_state(text_stream("two")).source is ObjectSource.COMPILED
    assert len(log_lines(log, "start")) == 2


def test_a_long_compile_holds_up_no_other_thread(toy: Bench) -> None:
    device = toy.device(workers=2)
    for number in range(20):
        device.create_pipeline_state(toy.stream(number))
    slow = threading.Thread(target=device.create_pipeline_state, args=(text_stream("slow 3"),))
    slow.start()
    time.sleep(0.5)
    started = time.monotonic()
    for number in range(20):
        device.create_pipeline_state(toy.stream(number))
    assert time.monotonic() - started < 1.5
    assert slow.is_alive()
    slow.join()


def test_a_refusal_and_a_time_limit_are_errors_of_the_object(toy: Bench) -> None:
    device = toy.device(limits=Limits(seconds=0.5))
    with pytest.raises(DriverError) as refused:
        device.create_pipeline_state(text_stream("refuse"))
    assert refused.value.code == "VK_ERROR_FEATURE_NOT_PRESENT"
    with pytest.raises(d3d12.DriverCrashError, match="time limit"):
        device.create_pipeline_state(text_stream("loop"))
    assert counts(device) == (0, 0, 0, 0)


def test_a_driver_that_does_not_start_is_an_error_each_time(toy: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_TALE", "no start")
    device = toy.device()
    for _ in range(2):
        with pytest.raises(DriverError, match="there is no toy"):
            device.create_pipeline_state(text_stream("one"))
    monkeypatch.delenv("TOY_TALE")
    assert device.create_pipeline_state(text_stream("one")).source is ObjectSource.COMPILED


@pytest.mark.spec("EP-03")
@pytest.mark.parametrize("text", ["forgetful one", "brittle one"])
def test_object_code_that_the_driver_refuses_is_a_miss(toy: Bench, log: Path, text: str) -> None:
    with toy.device(cache="builder") as builder:
        path = finished_psdb(
            toy.folder / "game.psdb", builder, [builder.create_pipeline_state(text_stream(text))], GAME.identity
        )
    device = toy.device()
    session = device.create_shader_cache_session1(FileSessionDesc(path, READ_ONLY))
    stream = text_stream(text).with_psdb(session)
    assert device.create_pipeline_state(stream).source is ObjectSource.COMPILED
    messages = toy.messages("object-code-refused")
    assert len(messages) == 1 and device.create_pipeline_state(text_stream("x")).source is ObjectSource.COMPILED
    # The same driver refuses what it has made itself as well, so the local cache does not help, and nothing breaks.
    assert device.create_pipeline_state(stream).source is ObjectSource.COMPILED
    if text.startswith("brittle"):
        # What killed the driver is not given to it again.
        loads = [process for process, what in log_lines(log, "recreate") if what == text]
        assert len(loads) <= 2


# Stored objects that lie


@pytest.mark.parametrize(
    "metadata",
    [
        b"\xc1",
        b"\x00",
        msgspec.msgpack.encode([1, b"", 1, "compute", "x", "not a list"]),
        msgspec.msgpack.encode([2, b"", 1, "compute", "x", []]),
        b"\x91" * 5000,
        b"x" * 100_000,
    ],
)
def test_metadata_that_is_no_group_is_a_miss(toy: Bench, metadata: bytes) -> None:
    device = toy.device()
    session = device.create_shader_cache_session1(MEMORY)
    stream = text_stream("one")
    session.store_value1(d3d12.object_key(stream), ((ValueType.METADATA, metadata),))
    assert device.create_pipeline_state(stream.with_psdb(session)).source is ObjectSource.COMPILED


def test_a_group_of_another_compiler_is_a_miss(toy: Bench, log: Path) -> None:
    device = toy.device()
    session = device.create_shader_cache_session1(MEMORY)
    stream = text_stream("one")
    device.create_pipeline_state(stream).store_into(session)
    assert device.create_pipeline_state(stream.with_psdb(session)).source is ObjectSource.EXPLICIT_PSDB
    key = d3d12.object_key(stream)
    request = d3d12.ValueRequest(ValueType.METADATA)
    session.find_value1(key, [request], lambda size, _: bytearray(size))
    record = msgspec.msgpack.decode(bytes(request.buffer), type=GroupRecord)
    assert record.compiler == compiler_digest(device.compiler)
    other = compiler_digest(toy_compiler.identity(driver_build="toy 2.2"))
    forged = msgspec.msgpack.encode(msgspec.structs.replace(record, compiler=other))
    session.store_value1(key, ((ValueType.METADATA, forged),), StoreFlags.OVERWRITE)
    loads = len(log_lines(log, "recreate"))
    assert device.create_pipeline_state(stream.with_psdb(session)).source is ObjectSource.LOCAL_CACHE
    assert len(log_lines(log, "recreate")) == loads + 1


def test_a_group_that_names_a_large_value_again_and_again_is_a_miss(toy: Bench) -> None:
    device = toy.device()
    desc = d3d12.MemorySessionDesc(uuid4(), maximum_in_memory_cache_size_bytes=64 << 20)
    session = device.create_shader_cache_session1(desc)
    stream = text_stream("one")
    session.store_value(b"a large value", bytes(32 << 20))
    record = GroupRecord(1, compiler_digest(device.compiler), 1, "compute", "one", (b"a large value",) * 17)
    session.store_value1(d3d12.object_key(stream), ((ValueType.METADATA, msgspec.msgpack.encode(record)),))
    assert device.create_pipeline_state(stream.with_psdb(session)).source is ObjectSource.COMPILED
    assert "more than" in toy.messages("object-code-refused")[0]


def test_a_damaged_psdb_value_is_a_miss(toy: Bench) -> None:
    path = toy.psdb("game.psdb", [1, 2])
    data = path.read_bytes()
    assert data.count(b"code of pipeline 1") == 1
    path.write_bytes(data.replace(b"code of pipeline 1", b"code of pipeline 7"))
    device = toy.device()
    session = device.create_shader_cache_session1(FileSessionDesc(path, READ_ONLY))
    assert device.create_pipeline_state(toy.stream(1).with_psdb(session)).source is ObjectSource.COMPILED
    assert device.create_pipeline_state(toy.stream(2).with_psdb(session)).source is ObjectSource.EXPLICIT_PSDB
    assert len(toy.messages("object-code-refused")) == 1


def test_a_damaged_local_cache_is_made_anew(toy: Bench) -> None:
    with toy.device() as device:
        device.create_pipeline_state(toy.stream(1))
    (cache,) = (toy.folder / "cache").glob("*.cache")
    cache.write_bytes(b"no database" * 1000)
    device = toy.device()
    assert device.create_pipeline_state(toy.stream(1)).source is ObjectSource.COMPILED
    assert device.create_pipeline_state(toy.stream(1)).source is ObjectSource.LOCAL_CACHE


def test_without_a_usable_local_cache_objects_are_still_created(toy: Bench) -> None:
    (toy.folder / "cache").write_text("a file in place of the folder")
    device = toy.device()
    for _ in range(2):
        assert device.create_pipeline_state(toy.stream(1)).source is ObjectSource.COMPILED
    assert len(toy.messages("no-local-cache")) == 1


# Sessions that do not belong


@pytest.mark.spec("EP-12")
def test_sessions_of_others_and_closed_ones_are_refused(toy: Bench, tmp_path: Path) -> None:
    device = toy.device()
    path = toy.psdb("game.psdb", [1])
    session = device.create_shader_cache_session1(FileSessionDesc(path, READ_ONLY))
    toy.family = toy_family(family="toy-two")
    other = toy.device(cache="other")
    # An equal device may use it, one of another adapter must not.
    with pytest.raises(InvalidArgumentError, match="toy-one"):
        other.create_pipeline_state(toy.stream(1).with_psdb(session))
    session.close()
    with pytest.raises(InvalidArgumentError, match="closed"):
        device.create_pipeline_state(toy.stream(1).with_psdb(session))
    deviceless = d3d12.ShaderCacheSessionSubobjectDesc(object())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError):
        device.create_pipeline_state(toy.stream(1).with_psdb_desc(deviceless))
    assert counts(device) == counts(other) == (0, 0, 0, 0)


@pytest.mark.spec("EP-11")
def test_a_creation_that_fails_keeps_no_reference(toy: Bench) -> None:
    device = toy.device()
    session = device.create_shader_cache_session1(MEMORY)
    with pytest.raises(DriverError):
        device.create_pipeline_state(text_stream("refuse").with_psdb(session))
    gc.collect()
    session.close()
    assert session.closed


# The registered PSDB


@pytest.mark.spec("EP-05", "EP-01")
def test_among_registered_psdbs_one_of_this_driver_build_is_used(toy: Bench) -> None:
    mine = toy.psdb("mine.psdb", [1])
    toy.family, own = toy_family(driver_build="toy 2.0"), toy.family
    older = toy.psdb("older.psdb", [1])
    toy.family = own
    with Installer.open("test", registry=toy.registry) as installer:
        installer.register_application(toy.executable, GAME.identity)
        files = [PsdbProperties(toy.compiler.family, path) for path in (older, mine)]
        installer.register_component(toy.executable, "default", toy.folder / "x.sodb", files)
        installer.register_component(toy.executable, "DLC1", toy.folder / "x.sodb", files)
        installer.register_component(toy.executable, "old", toy.folder / "x.sodb", files[:1])
    device = toy.device()
    assert device.create_pipeline_state(toy.stream(1)).source is ObjectSource.DEFAULT_PSDB
    session = device.create_shader_cache_session1(RegisteredSessionDesc("DLC1"))
    assert device.create_pipeline_state(toy.stream(1).with_psdb(session)).source is ObjectSource.EXPLICIT_PSDB
    with pytest.raises(NotFoundError):
        device.create_shader_cache_session1(RegisteredSessionDesc("none"))
    with pytest.raises(ShaderkilnError) as refused:
        device.create_shader_cache_session1(RegisteredSessionDesc("old"))
    assert refused.value.code == "DXGI_ERROR_CACHE_CORRUPT"
    assert any("toy 2.0" in text for text in toy.messages("identity-mismatch"))


@pytest.mark.spec("EP-01")
def test_a_damaged_registry_or_default_psdb_does_not_keep_a_device_from_working(toy: Bench) -> None:
    path = toy.psdb("game.psdb", [1])
    toy.register(default=path)
    path.write_bytes(b"gone" * 5000)
    assert toy.device().create_pipeline_state(toy.stream(1)).source is ObjectSource.COMPILED
    toy.registry.write_bytes(b"gone too" * 5000)
    assert toy.device().create_pipeline_state(toy.stream(1)).source is ObjectSource.LOCAL_CACHE


# Names


def test_every_public_name_is_there_and_nothing_is_imported_before_it_is_used() -> None:
    for name in d3d12.__all__:
        assert getattr(d3d12, name) is not None
    assert set(d3d12.__all__) <= set(dir(d3d12))
    with pytest.raises(AttributeError):
        d3d12.no_such_name  # noqa: B018
    code = "import sys, shaderkiln.direct3d12; sys.exit(sum(m.startswith('shaderkiln') for m in sys.modules) > 3)"
    assert (
        subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}).returncode == 0
    )


@pytest.mark.spec("EP-53")
def test_the_version_of_a_group_does_not_matter_to_a_device(toy: Bench) -> None:
    with toy.device(cache="builder") as builder:
        created = builder.create_pipeline_state(toy.stream(1))
        (stored,) = created.stored()
        path = toy.folder / "versions.psdb"
        with PsdbBuilder(path, builder.compiler, GAME.identity) as writer:
            values = object_code_values("pipeline-binary", created.object_key, stored.values)
            for version in (7, (1 << 64) - 1):
                keys = stored.group.value_keys if version > 7 else ()
                writer.add(Group(created.object_key, version, keys, "compute", "x"), values if keys else ())
            writer.finish()
    device = toy.device()
    for flags in (READ_ONLY, SessionFileFlags.NONE):
        with device.create_shader_cache_session1(FileSessionDesc(path, flags)) as session:
            assert device.create_pipeline_state(toy.stream(1).with_psdb(session)).source is ObjectSource.EXPLICIT_PSDB
