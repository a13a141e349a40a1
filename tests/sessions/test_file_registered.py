"""FILE and REGISTERED sessions: opening, refusing, resetting, limits, reserving, trimming."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from session_support import APPLICATION, Components, build, compiler, environment

from shaderkiln.databases.psdb import DatabaseWriteError, Psdb
from shaderkiln.errors import (
    AccessDeniedError,
    CacheCorruptError,
    CacheFullError,
    InvalidArgumentError,
    NotFoundError,
    ShaderkilnError,
)
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.keys import ObjectKey, ValueType
from shaderkiln.sessions import (
    CacheFileDesc,
    CacheValueTypeFlags,
    FileSessionDesc,
    RegisteredSessionDesc,
    SessionEnvironment,
    SessionFileFlags,
    SessionRegisteredFlags,
    ShaderCacheSupportFlags,
    StoreFlags,
    ValueRequest,
    create_shader_cache_session1,
)
from shaderkiln.sessions.descs import SESSION_SUPPORT
from shaderkiln.sessions.file import FileSession, RegisteredSession
from shaderkiln.testing.other_process import OtherProcess

STORED = {b"key": {0: b"object code", 1: b"metadata"}, b"other": {0: bytes(20_000)}}


def file(path: Path, flags: int = 0, maximum: int = 0, env: SessionEnvironment | None = None, **fields: object) -> FileSession:
    desc = FileSessionDesc(CacheFileDesc(path, maximum, **fields), SessionFileFlags(flags))  # type: ignore[arg-type]
    session = create_shader_cache_session1(desc, env or environment())
    assert isinstance(session, FileSession)
    return session


def registered(name: str, env: SessionEnvironment) -> RegisteredSession:
    session = create_shader_cache_session1(RegisteredSessionDesc(name), env)
    assert isinstance(session, RegisteredSession)
    return session


def overwrite(session: FileSession, key: bytes, data: bytes) -> None:
    session.store_value1(key, [(ValueType.OBJECT_CODE, data)], StoreFlags.OVERWRITE)


# Opening


@pytest.mark.spec("EP-13", "EP-33")
def test_created_from_a_path_alone(tmp_path: Path) -> None:
    desc = FileSessionDesc(str(tmp_path / "a.psdb"))
    with create_shader_cache_session1(desc, environment()) as session:
        session.store_value(b"key", b"value")
        assert session.get_desc() is desc
    with create_shader_cache_session1(FileSessionDesc(tmp_path / "a.psdb"), environment()) as session:
        assert session.find_value(b"key") == b"value"
    assert [path.name for path in tmp_path.iterdir()] == ["a.psdb"]


@pytest.mark.spec("EP-34")
def test_read_only(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        file(tmp_path / "missing.psdb", SessionFileFlags.READ_ONLY)
    finished = build(tmp_path / "a.psdb", STORED)
    live = tmp_path / "b.psdb"
    shutil.copy(finished, live)
    file(live).close()
    for path in (finished, live):
        before = path.read_bytes()
        with file(path, SessionFileFlags.READ_ONLY) as session:
            assert session.find_value(b"other") == bytes(20_000)
            with pytest.raises(AccessDeniedError):
                session.store_value(b"new", b"value")
            session.set_delete_on_destroy()
            with pytest.raises(NotFoundError):
                session.find_value(b"new")
        assert path.read_bytes() == before


@pytest.mark.spec("EP-35")
def test_open_existing_only(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        file(tmp_path / "a.psdb", SessionFileFlags.OPEN_EXISTING_ONLY)
    assert list(tmp_path.iterdir()) == []
    file(tmp_path / "a.psdb").close()
    with file(tmp_path / "a.psdb", SessionFileFlags.OPEN_EXISTING_ONLY) as session:
        session.store_value(b"key", b"value")


@pytest.mark.spec("EP-33", "EP-34")
def test_a_delivered_file_opened_for_writing_does_not_disturb_its_readers(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", {**STORED, b"equal": {0: b"object code"}})
    with file(path, SessionFileFlags.READ_ONLY) as reader, file(path) as writer:
        overwrite(writer, b"key", b"new")
        assert reader.find_value(b"key") == b"object code"
        assert writer.find_value(b"equal") == b"object code"
        with file(path, SessionFileFlags.READ_ONLY) as late:
            assert late.find_value(b"key") == b"new"
            overwrite(writer, b"key", b"newer")
            assert late.find_value(b"key") == b"newer"
        with pytest.raises(CacheCorruptError, match="this process has it open"):
            Psdb.open(path)


@pytest.mark.spec("EP-39", "EP-37", "EP-41", "EP-36")
@pytest.mark.parametrize(
    ("flags", "maximum", "fields", "message"),
    [
        (SessionFileFlags.READ_ONLY | SessionFileFlags.TRIM_WHEN_FULL, 0, {}, "excludes TRIM_WHEN_FULL"),
        (SessionFileFlags.READ_ONLY | SessionFileFlags.RESERVE_MAXIMUM_SIZE, 9, {}, "excludes RESERVE_MAXIMUM_SIZE"),
        (SessionFileFlags.READ_ONLY | SessionFileFlags.ALLOW_CACHE_RESET, 0, {}, "excludes ALLOW_CACHE_RESET"),
        (0x20, 0, {}, "flags has 0x20"),
        (SessionFileFlags.RESERVE_MAXIMUM_SIZE, 0, {}, "maximum_size_bytes is 0"),
        (0, 1 << 63, {}, "maximum_size_bytes is"),
        (0, 0, {"types": CacheValueTypeFlags.OBJECT_CODE}, "types is"),
        (0, 0, {"types": CacheValueTypeFlags.NONE}, "types is"),
        (0, 0, {"types": CacheValueTypeFlags(7)}, "types is"),
    ],
)
def test_invalid_descs(tmp_path: Path, flags: int, maximum: int, fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        file(tmp_path / "a.psdb", flags, maximum, **fields)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("EP-41")
def test_exactly_one_file(tmp_path: Path) -> None:
    one = CacheFileDesc(tmp_path / "a.psdb")
    for files in ((), (one, one)):
        with pytest.raises(InvalidArgumentError, match="exactly one"):
            create_shader_cache_session1(FileSessionDesc(files), environment())
    create_shader_cache_session1(FileSessionDesc((one,)), environment()).close()
    for path in ("", "a\0b", 3):
        with pytest.raises(InvalidArgumentError, match="path is"):
            create_shader_cache_session1(FileSessionDesc(CacheFileDesc(path)), environment())  # type: ignore[arg-type]


@pytest.mark.spec("EP-36", "EP-37")
def test_flags_need_their_support(tmp_path: Path) -> None:
    for name in ("TRIM_WHEN_FULL", "RESERVE_MAXIMUM_SIZE"):
        env = environment(support=SESSION_SUPPORT & ~ShaderCacheSupportFlags[name])
        with pytest.raises(InvalidArgumentError, match=name):
            file(tmp_path / "a.psdb", SessionFileFlags[name], 1 << 20, env)


@pytest.mark.spec("EP-42", "EP-07")
def test_what_file_and_registered_need(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", STORED)
    for env, message in (
        (environment(application=None), "need an application identity"),
        (environment(explicit_psdbs=False), "EXPLICIT_PSDBS"),
    ):
        for desc in (FileSessionDesc(path), RegisteredSessionDesc("DLC1")):
            with pytest.raises(InvalidArgumentError, match=message):
                create_shader_cache_session1(desc, env)
    nobody = environment(compiler=None)
    with file(path, SessionFileFlags.READ_ONLY, env=nobody) as session:
        assert session.exists(b"key")
    with pytest.raises(InvalidArgumentError, match="needs the identity of an adapter"):
        file(tmp_path / "new.psdb", env=nobody)
    assert [path.name for path in tmp_path.iterdir()] == ["a.psdb"]


# Identity, damage, reset


def _incompatible(path: Path, kind: str) -> SessionEnvironment:
    """Make a file that does not fit the environment returned."""
    build(path, STORED)
    if kind.startswith("live"):
        file(path).close()
    if kind == "no database":
        path.write_bytes(b"text " * 2000)
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "truncated":
        path.write_bytes(path.read_bytes()[:8192])
    elif kind == "damaged":
        data = bytearray(path.read_bytes())
        data[4096:40960] = bytes(36864)
        path.write_bytes(data)
    elif kind in ("format version", "live, foreign table"):
        connection = apsw.Connection(str(path))
        connection.execute("PRAGMA user_version = 2" if kind == "format version" else "CREATE TABLE foreign_one (x)")
        connection.close()
    changes: dict[str, dict[str, object]] = {
        "application": {"application": ApplicationIdentity("Other", "testgame.exe", 1 << 48, "TestEngine", 2 << 48)},
        "live, family": {"compiler": compiler(family="amd-navi32")},
        "abi": {"compiler": compiler(abi_version=24 << 48), "abi_range": (24 << 48, (25 << 48) - 1)},
    }
    return environment(**changes.get(kind, {}))


@pytest.mark.spec("EP-38")
@pytest.mark.parametrize(
    "kind",
    [
        "no database",
        "empty",
        "truncated",
        "damaged",
        "format version",
        "application",
        "abi",
        "live, family",
        "live, foreign table",
    ],
)
def test_incompatible_files(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.psdb"
    env = _incompatible(path, kind)
    before = path.read_bytes()
    for flags in (SessionFileFlags.NONE, SessionFileFlags.READ_ONLY, SessionFileFlags.OPEN_EXISTING_ONLY):
        with pytest.raises(CacheCorruptError) as caught:
            file(path, flags, env=env)
        assert caught.value.code == "DXGI_ERROR_CACHE_CORRUPT"
        assert env.debug.messages()
        env.debug.clear()
        assert path.read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir() if entry.suffix in (".psdb", ".lock", ".creating")] == ["a.psdb"]
    with file(path, SessionFileFlags.ALLOW_CACHE_RESET, env=env) as session:
        assert not session.exists(b"key")
        session.store_value(b"key", b"new")
    with file(path, env=env) as session:
        assert session.find_value(b"key") == b"new"


@pytest.mark.spec("EP-38")
def test_reset_leaves_a_compatible_file_alone(tmp_path: Path) -> None:
    with file(build(tmp_path / "a.psdb", STORED), SessionFileFlags.ALLOW_CACHE_RESET) as session:
        assert session.find_value(b"key") == b"object code"


@pytest.mark.spec("EP-43")
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"application": ApplicationIdentity("TestGame", "x.exe", 1 << 48, "TestEngine", 2 << 48)},
         "application.exe_filename: stored 'testgame.exe', expected 'x.exe'"),
        ({"compiler": compiler(family="intel-dg2")}, "family: stored 'amd-navi31', expected 'intel-dg2'"),
        ({"compiler": compiler(driver_build="y")}, "driver_build: stored 'Mesa 25.0.7 build 00ff', expected 'y'"),
    ],
)  # fmt: skip
def test_mismatches_are_named(tmp_path: Path, changes: dict[str, object], text: str) -> None:
    path = build(tmp_path / "a.psdb", STORED)
    env = environment(**changes, resolver=Components(DLC1=path))
    for open_it in (lambda: file(path, env=env), lambda: registered("DLC1", env)):
        env.debug.clear()
        with pytest.raises(CacheCorruptError) as caught:
            open_it()
        assert text in str(caught.value)
        assert [(message.topic, message.text) for message in env.debug.messages()] == [("identity-mismatch", text)]


@pytest.mark.spec("EP-38")
def test_abi_within_the_range_of_the_driver(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", STORED)
    env = environment(compiler=compiler(abi_version=26 << 48), abi_range=(25 << 48, 26 << 48))
    with file(path, env=env) as session:
        assert session.exists(b"key")


def test_sessions_of_an_old_file_after_a_reset_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "a.psdb"
    other_adapter = compiler(family="intel-dg2")
    with OtherProcess() as other:
        with file(path) as session:
            session.store_value(b"key", b"mine")
            other.open(FileSessionDesc(path, SessionFileFlags.ALLOW_CACHE_RESET), APPLICATION, other_adapter)
            other.store(b"key", {0: b"of the other adapter"}, StoreFlags.NONE)
            assert session.find_value(b"key") == b"mine"
            with pytest.raises(CacheCorruptError, match="replaced"):
                session.store_value(b"new", b"value")
        # The old session has not taken the journal of the new file with it.
        assert other.find(b"key") == {0: b"of the other adapter"}
        with file(path, SessionFileFlags.READ_ONLY, env=environment(compiler=other_adapter)) as session:
            assert session.find_value(b"key") == b"of the other adapter"


@pytest.mark.parametrize("flags", [SessionFileFlags.NONE, SessionFileFlags.READ_ONLY])
def test_an_idle_reader_does_not_keep_the_journal_from_starting_anew(tmp_path: Path, flags: SessionFileFlags) -> None:
    path = tmp_path / "a.psdb"
    with file(path) as writer:
        writer.store_value1(b"key", [(ValueType.OBJECT_CODE, b"code"), (ValueType.METADATA, b"data")])
        with file(path, flags) as reader:
            for ask in (
                lambda: reader.find_value(b"key"),
                lambda: reader.find_value(b"key"),  # where it is, is known by now
                lambda: reader.find_value1(b"key", [ValueRequest(ValueType.OBJECT_CODE), ValueRequest(ValueType.METADATA)]),
                lambda: reader.exists(b"key"),
                lambda: reader.find_group(ObjectKey(bytes(32))),
                lambda: reader.maximum_size_bytes,
            ):
                ask()
                overwrite(writer, b"other", os.urandom(5000))
                journal = apsw.Connection(str(path))
                assert journal.execute("SELECT count(*) FROM entries").get == 3
                # Raises BusyError where anybody is still reading.
                assert journal.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE) == (0, 0)
                journal.close()


def test_a_damaged_value_is_not_handed_out(tmp_path: Path) -> None:
    path = tmp_path / "a.psdb"
    with file(path) as session:
        session.store_value(b"key", b"needle" * 1000)
        session.store_value(b"sound", b"value")
        session.find_value(b"key")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"needleneedle", b"needlEneedle", 1))
    for flags in (SessionFileFlags.NONE, SessionFileFlags.READ_ONLY):
        with file(path, flags) as session:
            with pytest.raises(CacheCorruptError, match="damaged"):
                session.find_value(b"key")
            assert session.find_value(b"sound") == b"value"
    with file(path) as session:
        overwrite(session, b"key", b"repaired")
        assert session.find_value(b"key") == b"repaired"


# Limits


@pytest.mark.spec("EP-40", "EP-28")
def test_persisted_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.psdb"
    for asked, effective in ((0, 0), (5000, 5000), (0, 5000), (1000, 5000), (6000, 6000)):
        with file(path, maximum=asked) as session:
            assert session.maximum_size_bytes == effective
    with file(path) as session:
        session.store_value(b"1", bytes(6000))
        with pytest.raises(CacheFullError):
            session.store_value(b"2", b"x")
        overwrite(session, b"1", bytes(5999))
        session.store_value(b"2", b"x")
        assert session.used_bytes == 6000
    with file(path, SessionFileFlags.TRIM_WHEN_FULL) as session:
        session.store_value(b"3", bytes(10))
        assert not session.exists(b"1") and session.find_value(b"2") == b"x"


@pytest.mark.spec("EP-36", "EP-27")
def test_trimming_drops_what_was_used_longest_ago_in_batches(tmp_path: Path) -> None:
    with file(tmp_path / "a.psdb", SessionFileFlags.TRIM_WHEN_FULL, 100_000) as session:
        keys = [b"%d" % number for number in range(100)]
        for key in keys:
            flags = StoreFlags.DO_NOT_EVICT if key == b"1" else StoreFlags.NONE
            session.store_value1(key, [(ValueType.OBJECT_CODE, bytes(1000))], flags)
        session.find_value(b"0")
        session.find_value(b"3")
        session.store_value(b"new", bytes(1000))
        # Down to 98 %, the new one included; 0 and 3 were used since, 1 stays by its flag.
        assert [key for key in keys if not session.exists(key)] == [b"2", b"4", b"5"]
        assert session.used_bytes == 98_000
        with pytest.raises(CacheFullError):
            session.store_value(b"larger", bytes(99_001))
        assert session.used_bytes == 98_000


@pytest.mark.spec("EP-36")
def test_recency_survives_closing(tmp_path: Path) -> None:
    path = tmp_path / "a.psdb"
    with file(path, SessionFileFlags.TRIM_WHEN_FULL, 30) as session:
        for key in (b"1", b"2", b"3"):
            session.store_value(key, bytes(10))
        session.find_value(b"1")
    with file(path, SessionFileFlags.TRIM_WHEN_FULL) as session:
        session.store_value(b"4", bytes(10))
        assert [key for key in (b"1", b"2", b"3", b"4") if session.exists(key)] == [b"1", b"4"]


@pytest.mark.spec("EP-37")
def test_reserving_takes_the_space_now_and_keeps_it(tmp_path: Path) -> None:
    path, size = tmp_path / "a.psdb", 40 << 20
    with file(path, SessionFileFlags.RESERVE_MAXIMUM_SIZE, size) as session:
        assert path.stat().st_size >= size and path.stat().st_blocks * 512 >= size
        assert session.used_bytes == 0
        for number in range(50):
            session.store_value(b"%d" % number, os.urandom(100_000))
    length = path.stat().st_size
    assert size <= length < size + (1 << 20) and path.stat().st_blocks * 512 >= size
    with file(path) as session:  # without the flag: what is reserved stays
        overwrite(session, b"1", os.urandom(5_000_000))
    assert path.stat().st_size == length
    with file(path, SessionFileFlags.READ_ONLY) as session:
        assert len(session.find_value(b"1")) == 5_000_000
    delivered = build(tmp_path / "b.psdb", STORED)
    with file(delivered, SessionFileFlags.RESERVE_MAXIMUM_SIZE, 1 << 20) as session:
        assert delivered.stat().st_blocks * 512 >= 1 << 20
        assert session.find_value(b"key") == b"object code"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.getuid() or subprocess.call(command, stderr=subprocess.DEVNULL):
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        yield folder
    finally:
        subprocess.call(["umount", str(folder)])


@pytest.mark.spec("EP-37")
def test_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "a.psdb"
    stored = 0
    with file(path) as session:
        with pytest.raises(DatabaseWriteError, match="no space left"):
            for number in range(200):
                session.store_value(b"%d" % number, os.urandom(50_000))
                stored += 1
        assert stored >= 5
        for number in range(stored):
            assert len(session.find_value(b"%d" % number)) == 50_000
        assert not session.exists(b"%d" % stored)
    with file(path) as session:
        for number in range(stored):
            assert len(session.find_value(b"%d" % number)) == 50_000
    path.unlink()
    with pytest.raises(DatabaseWriteError, match="no space left"):
        file(path, SessionFileFlags.RESERVE_MAXIMUM_SIZE, 64 << 20)
    with file(path) as session:
        assert session.used_bytes == 0


def test_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    build(folder / "finished.psdb", STORED)
    build(folder / "live.psdb", STORED)
    file(folder / "live.psdb").close()
    if os.getuid() or subprocess.call(["mount", "--bind", str(folder), str(folder)], stderr=subprocess.DEVNULL):
        pytest.skip("needs the right to mount a folder read-only")
    try:
        subprocess.check_call(["mount", "-o", "remount,ro,bind", str(folder)])
        for name in ("finished.psdb", "live.psdb"):
            with file(folder / name, SessionFileFlags.READ_ONLY) as session:
                assert session.find_value(b"key") == b"object code"
                assert not session.exists(b"unknown")
        for name in ("finished.psdb", "live.psdb", "new.psdb"):
            with pytest.raises(AccessDeniedError):
                file(folder / name)
    finally:
        subprocess.call(["umount", str(folder)])
    assert sorted(path.name for path in folder.iterdir()) == ["finished.psdb", "live.psdb"]


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ShaderkilnError) as caught:
        file(tmp_path / "missing" / "a.psdb")
    assert caught.value.code == "DXGI_ERROR_NOT_FOUND"


@pytest.mark.spec("EP-45")
def test_delete_on_destroy_waits_for_the_last_session(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", STORED)
    first, second = file(path), file(path, SessionFileFlags.OPEN_EXISTING_ONLY)
    reader = file(path, SessionFileFlags.READ_ONLY)
    first.set_delete_on_destroy()
    first.close()
    second.close()
    assert reader.find_value(b"key") == b"object code"
    reader.close()
    with file(path) as session:
        assert not session.exists(b"key") and session.used_bytes == 0


# Registered


@pytest.mark.spec("EP-44")
def test_registered(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", STORED)
    env = environment(resolver=Components(DLC1=path))
    with registered("DLC1", env) as session:
        assert session.find_value(b"key") == b"object code"
        with pytest.raises(AccessDeniedError):
            session.store_value(b"new", b"value")
    with pytest.raises(NotFoundError):
        registered("DLC2", env)
    with pytest.raises(NotFoundError):
        registered("DLC1", environment())
    for desc, message in (
        (RegisteredSessionDesc("default"), '"default"'),
        (RegisteredSessionDesc(""), "component_name is ''"),
        (RegisteredSessionDesc("DLC1", SessionRegisteredFlags(1)), "flags is"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            create_shader_cache_session1(desc, env)
    assert APPLICATION.name == "TestGame"
