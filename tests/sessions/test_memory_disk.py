"""What MEMORY and DISK sessions do beyond finding and storing: identifiers, versions, limits, places."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from session_support import IDENTIFIER, compiler, environment

from shaderkiln.errors import (
    AlreadyExistsError,
    CacheFullError,
    InvalidArgumentError,
    MoreDataError,
    NotFoundError,
)
from shaderkiln.keys import ValueType
from shaderkiln.sessions import (
    DiskSessionDesc,
    FileSessionDesc,
    MemorySessionDesc,
    SessionEnvironment,
    SessionFileFlags,
    ShaderCacheFlags,
    ShaderCacheMode,
    ShaderCacheSession,
    ShaderCacheSessionDesc,
    ShaderCacheSupportFlags,
    StoreFlags,
    ValueRequest,
    create_shader_cache_session,
    create_shader_cache_session1,
)
from shaderkiln.sessions.descs import SESSION_SUPPORT
from shaderkiln.testing.other_process import OtherProcess


def memory(env: SessionEnvironment | None = None, **fields: object) -> ShaderCacheSession:
    desc = MemorySessionDesc(**({"identifier": IDENTIFIER} | fields))  # type: ignore[arg-type]
    return create_shader_cache_session1(desc, env or environment())


def disk(folder: Path | None, env: SessionEnvironment | None = None, **fields: object) -> ShaderCacheSession:
    desc = DiskSessionDesc(**({"identifier": IDENTIFIER, "directory": folder} | fields))  # type: ignore[arg-type]
    return create_shader_cache_session1(desc, env or environment())


@pytest.mark.spec("EP-14")
def test_numbers_of_types() -> None:
    assert [(type.name, int(type), type.flag) for type in ValueType] == [
        ("OBJECT_CODE", 0, 1),
        ("METADATA", 1, 2),
        ("DEBUG_PDB", 2, 4),
        ("PERFORMANCE_DATA", 3, 8),
    ]


@pytest.mark.spec("EP-29")
def test_modes_and_the_older_desc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {mode.name: int(mode) for mode in ShaderCacheMode} == {"MEMORY": 0, "DISK": 1, "REGISTERED": 2, "FILE": 3}
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for mode in (ShaderCacheMode.MEMORY, ShaderCacheMode.DISK):
        desc = ShaderCacheSessionDesc(IDENTIFIER, mode, version=3)
        with create_shader_cache_session(desc, environment()) as session:
            session.store_value(b"key", b"value")
            assert session.find_value(b"key") == b"value"
            assert session.get_desc() is desc
    for mode in (2, 3, 4):
        with pytest.raises(InvalidArgumentError, match="mode is"):
            create_shader_cache_session(ShaderCacheSessionDesc(IDENTIFIER, mode), environment())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError):
        create_shader_cache_session(FileSessionDesc("a.psdb"), environment())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError):
        create_shader_cache_session1(ShaderCacheSessionDesc(IDENTIFIER), environment())  # type: ignore[arg-type]


@pytest.mark.spec("EP-30")
def test_memory_is_shared_by_identifier_and_gone_with_its_last_session() -> None:
    first, second, other = memory(), memory(), memory(identifier=uuid4())
    first.store_value(b"key", b"value")
    assert second.find_value(b"key") == b"value"
    assert not other.exists(b"key")
    with pytest.raises(AlreadyExistsError, match="version 0, not 7"):
        memory(version=7)
    first.close()
    assert second.find_value(b"key") == b"value"
    second.close()
    with memory(version=7) as third:
        assert not third.exists(b"key")
    other.close()


@pytest.mark.spec("EP-30", "EP-28")
def test_default_limits_of_memory() -> None:
    with memory() as session:
        with pytest.raises(CacheFullError):
            session.store_value(b"key", bytes(1025))
        for number in range(129):
            session.store_value(b"%d" % number, b"1234567")
        assert [number for number in range(129) if not session.exists(b"%d" % number)] == [0]
        session.store_value(b"large", bytes(1024))
        assert not session.exists(b"128") and session.exists(b"large")


@pytest.mark.spec("EP-45")
def test_desc_is_the_one_given() -> None:
    desc = MemorySessionDesc(IDENTIFIER, maximum_in_memory_cache_entries=7)
    with create_shader_cache_session1(desc, environment()) as session:
        assert session.get_desc() is desc


def test_dropped_sessions_are_closed() -> None:
    session = memory()
    session.store_value(b"key", b"value")
    reference = session.retain()
    session.close()
    assert reference.session.find_value(b"key") == b"value"
    del reference, session
    with memory() as again:
        assert not again.exists(b"key")


def test_values_are_copied_from_buffers_that_can_change() -> None:
    with memory() as session:
        buffer = bytearray(b"value")
        session.store_value1(b"key", [(ValueType.OBJECT_CODE, buffer)])
        buffer[:] = b"other"
        assert session.find_value(b"key") == b"value"
        with pytest.raises(InvalidArgumentError):
            session.store_value(b"other", "text")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="cannot be written"):
            session.find_value1(b"key", [ValueRequest(ValueType.OBJECT_CODE, b"     ")])


@pytest.mark.spec("EP-18", "EP-19")
def test_what_a_callback_raises_comes_through_and_the_first_buffer_stays() -> None:
    with memory() as session:
        session.store_value1(b"key", [(ValueType.OBJECT_CODE, b"code"), (ValueType.METADATA, b"data")])
        requests = [ValueRequest(ValueType.OBJECT_CODE), ValueRequest(ValueType.METADATA)]

        def allocate(size: int, context: list[int]) -> bytearray:
            context.append(size)
            if len(context) == 2:
                raise MemoryError("no more")
            return bytearray(size)

        sizes: list[int] = []
        with pytest.raises(MemoryError, match="no more"):
            session.find_value1(b"key", requests, allocate, sizes)
        assert sizes == [4, 4]
        assert (requests[0].buffer, requests[1].buffer) == (bytearray(b"code"), None)
        both = [ValueRequest(ValueType.OBJECT_CODE, bytearray(3)), ValueRequest(ValueType.METADATA, memoryview(bytearray(9)))]
        with pytest.raises(MoreDataError, match="OBJECT_CODE needs 4 bytes, the buffer has 3"):
            session.find_value1(b"key", both)
        assert [(request.size, bytes(request.buffer)) for request in both] == [(4, bytes(3)), (4, b"data" + bytes(5))]


@pytest.mark.spec("EP-22")
def test_debug_messages_of_a_miss(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    env = environment()
    written = create_shader_cache_session1(FileSessionDesc(tmp_path / "a.psdb"), env)
    read = create_shader_cache_session1(FileSessionDesc(tmp_path / "a.psdb", SessionFileFlags.READ_ONLY), env)
    for session in (memory(env), disk(tmp_path, env), written, read):
        env.debug.clear()
        with pytest.raises(NotFoundError):
            session.find_value1(b"\x01\x02", [ValueRequest(ValueType.OBJECT_CODE)])
        with pytest.raises(NotFoundError):
            session.find_value1(b"\x01\x02")
        assert env.debug.messages() == ()
        with caplog.at_level("INFO", "shaderkiln.debug"), pytest.raises(NotFoundError):
            session.find_value(b"\x01\x02")
        (message,) = env.debug.messages()
        assert message.topic == "cache-miss" and "0102" in message.text
        assert "cache-miss" in caplog.text
        caplog.clear()
        session.close()


def test_debug_queue_is_bounded() -> None:
    env = environment()
    with memory(env) as session:
        for _ in range(1030):
            with pytest.raises(NotFoundError):
                session.find_value(b"key")
    assert (len(env.debug.messages()), env.debug.dropped) == (1024, 6)
    env.debug.clear()
    assert (env.debug.messages(), env.debug.dropped) == ((), 0)


@pytest.mark.spec("EP-26", "EP-27")
def test_flags_that_are_not_supported_are_ignored() -> None:
    support = SESSION_SUPPORT & ~(ShaderCacheSupportFlags.STORE_OVERWRITE | ShaderCacheSupportFlags.STORE_DO_NOT_EVICT)
    with memory(environment(support=support), maximum_in_memory_cache_entries=2) as session:
        values = [(ValueType.OBJECT_CODE, b"value")]
        session.store_value1(b"1", values, StoreFlags.OVERWRITE | StoreFlags.DO_NOT_EVICT)
        with pytest.raises(AlreadyExistsError):
            session.store_value1(b"1", values, StoreFlags.OVERWRITE)
        session.store_value1(b"2", values, StoreFlags.DO_NOT_EVICT)
        session.store_value1(b"3", values)
        assert not session.exists(b"1")


@pytest.mark.spec("EP-27", "EP-28")
def test_nothing_is_evicted_for_a_store_that_does_not_fit_anyway() -> None:
    with memory(maximum_in_memory_cache_size_bytes=100) as session:
        session.store_value1(b"kept", [(ValueType.OBJECT_CODE, bytes(60))], StoreFlags.DO_NOT_EVICT)
        session.store_value(b"loose", bytes(30))
        with pytest.raises(CacheFullError):
            session.store_value(b"new", bytes(50))
        assert session.exists(b"loose")
        session.store_value(b"new", bytes(40))
        assert session.exists(b"kept") and not session.exists(b"loose")


@pytest.mark.spec("EP-31")
def test_disk_survives_and_another_version_clears_it(tmp_path: Path) -> None:
    with disk(tmp_path) as session:
        session.store_value(b"key", b"value")
    with disk(tmp_path) as session, disk(tmp_path) as second:
        assert session.find_value(b"key") == b"value"
        second.store_value(b"other", b"value")
        assert session.exists(b"other")
        with pytest.raises(AlreadyExistsError, match="version 0, not 1"):
            disk(tmp_path, version=1)
    with disk(tmp_path, version=1) as session:
        assert not session.exists(b"key")
        session.store_value(b"key", b"new")
    with disk(tmp_path, version=1) as session:
        assert session.find_value(b"key") == b"new"
    assert [path.name for path in tmp_path.iterdir()] == [f"{IDENTIFIER}.cache"]


@pytest.mark.spec("EP-31")
def test_another_version_while_another_process_has_the_cache(tmp_path: Path) -> None:
    with OtherProcess() as other:
        other.open(DiskSessionDesc(IDENTIFIER, directory=tmp_path, version=5))
        other.store(b"key", {0: b"value"}, StoreFlags.NONE)
        with pytest.raises(AlreadyExistsError, match="another process"):
            disk(tmp_path, version=6)
        with disk(tmp_path, version=5) as session:
            assert session.find_value(b"key") == b"value"
        other.close()
        with disk(tmp_path, version=6) as session:
            assert not session.exists(b"key")
        with pytest.raises(AlreadyExistsError), disk(tmp_path, version=6):
            other.open(DiskSessionDesc(IDENTIFIER, directory=tmp_path, version=5))


@pytest.mark.spec("EP-31")
def test_front_follows_other_processes(tmp_path: Path) -> None:
    desc = DiskSessionDesc(IDENTIFIER, directory=tmp_path)
    with OtherProcess() as other, disk(tmp_path) as session:
        other.open(desc)
        for number in range(20):
            session.store_value1(b"key", [(ValueType.OBJECT_CODE, b"mine %d" % number)], StoreFlags.OVERWRITE)
            assert session.find_value(b"key") == b"mine %d" % number
            other.store(b"key", {0: b"theirs %d" % number}, StoreFlags.OVERWRITE)
            assert session.find_value(b"key") == b"theirs %d" % number
            assert session.find_value(b"key") == b"theirs %d" % number


@pytest.mark.spec("EP-31", "EP-28")
def test_limits_of_disk(tmp_path: Path) -> None:
    with disk(tmp_path) as session:
        assert session.maximum_size_bytes == 128 << 20  # type: ignore[attr-defined]
    with disk(tmp_path, identifier=uuid4(), maximum_value_file_size_bytes=1000) as session:
        session.store_value(b"1", bytes(900))
        with pytest.raises(CacheFullError):
            session.store_value(b"2", bytes(101))
        session.store_value(b"2", bytes(100))
        assert session.find_value(b"1") == bytes(900)


@pytest.mark.spec("EP-31")
def test_a_damaged_disk_cache_is_cleared(tmp_path: Path) -> None:
    (tmp_path / f"{IDENTIFIER}.cache").write_bytes(b"no database" * 100)
    env = environment()
    with disk(tmp_path, env) as session:
        session.store_value(b"key", b"value")
    assert [message.topic for message in env.debug.messages()] == ["cache-reset"]


@pytest.mark.spec("EP-45")
def test_delete_on_destroy_of_disk(tmp_path: Path) -> None:
    with OtherProcess() as other, disk(tmp_path) as first, disk(tmp_path) as second:
        other.open(DiskSessionDesc(IDENTIFIER, directory=tmp_path))
        first.store_value(b"key", b"value")
        first.set_delete_on_destroy()
        first.close()
        assert second.find_value(b"key") == b"value"
        second.close()
        # Not under another process, which still counts as a user.
        assert other.find(b"key") == {0: b"value"}
        with disk(tmp_path) as third:
            third.set_delete_on_destroy()
            other.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("EP-32")
def test_one_disk_cache_for_each_driver(tmp_path: Path) -> None:
    flags = ShaderCacheFlags.DRIVER_VERSIONED
    old, new = environment(), environment(compiler=compiler(driver_version=0x06401007))
    with disk(tmp_path, old, flags=flags) as first, disk(tmp_path, new, flags=flags) as second, disk(tmp_path, new) as plain:
        first.store_value(b"key", b"of the old driver")
        assert not second.exists(b"key") and not plain.exists(b"key")
    with disk(tmp_path, old, flags=flags) as first:
        assert first.find_value(b"key") == b"of the old driver"
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(InvalidArgumentError, match="DRIVER_VERSIONED"):
        disk(tmp_path, environment(compiler=None), flags=flags)


@pytest.mark.spec("EP-32")
def test_places_of_disk_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    with disk(None) as default, disk(None, flags=ShaderCacheFlags.USE_WORKING_DIR) as here, disk(tmp_path / "given") as given:
        default.store_value(b"key", b"default")
        assert not here.exists(b"key") and not given.exists(b"key")
    assert [path.parent.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*.cache"))] == [
        ".",
        "data/shaderkiln/shader-cache",
        "given",
    ]


@pytest.mark.spec("EP-32")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"flags": 4}, "flags has 0x4"),
        ({"flags": ShaderCacheFlags.USE_WORKING_DIR}, "USE_WORKING_DIR"),
        ({"directory": ""}, "directory is"),
        ({"maximum_value_file_size_bytes": -1}, "maximum_value_file_size_bytes is -1"),
        ({"maximum_in_memory_cache_entries": 1 << 32}, "maximum_in_memory_cache_entries is 4294967296"),
        ({"version": 1 << 64}, "version is"),
        ({"identifier": "text"}, "identifier is 'text'"),
    ],
)
def test_invalid_disk_descs(tmp_path: Path, fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        disk(**({"folder": tmp_path} | fields if "directory" not in fields else {"folder": None} | fields))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("EP-32")
def test_a_directory_needs_the_newer_desc(tmp_path: Path) -> None:
    env = environment(support=SESSION_SUPPORT & ~ShaderCacheSupportFlags.SESSION_DESC1)
    with pytest.raises(InvalidArgumentError, match="SESSION_DESC1"):
        disk(tmp_path, env)


@pytest.mark.spec("EP-30")
def test_threads_see_whole_stores_in_memory() -> None:
    with memory(maximum_in_memory_cache_size_bytes=1 << 20) as session:
        wrong: list[object] = []
        stop = threading.Event()

        def read() -> None:
            while not stop.is_set():
                requests = [ValueRequest(ValueType.OBJECT_CODE), ValueRequest(ValueType.METADATA)]
                try:
                    session.find_value1(b"key", requests, lambda size, _: bytearray(size))
                except NotFoundError:
                    continue
                if requests[0].buffer != requests[1].buffer:
                    wrong.append(requests)

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for number in range(3000):
            data = b"%d" % number * 50
            session.store_value1(b"key", [(ValueType.OBJECT_CODE, data), (ValueType.METADATA, data)], StoreFlags.OVERWRITE)
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []


def test_replaced_desc_keeps_its_mode() -> None:
    assert replace(MemorySessionDesc(IDENTIFIER), version=2).mode is ShaderCacheMode.MEMORY
