"""Registering, listing and removing, and who may do it when."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from registry_support import GAME, SOURCE

from shaderkiln.errors import AccessDeniedError, AlreadyExistsError, CacheCorruptError, InvalidArgumentError, NotFoundError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.registration.explorer import Explorer
from shaderkiln.registration.installer import Installer
from shaderkiln.registration.records import PsdbProperties, RegistryBusyError, Scope
from shaderkiln.registration.registry import registry_path


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "data" / "registry.sqlite"


@pytest.mark.spec("EP-50")
def test_what_is_registered_is_listed(tmp_path: Path, registry: Path) -> None:
    game = tmp_path / "game.exe"
    with Installer.open("A Store", registry=registry) as installer:
        assert installer.register_application(game, GAME).components == ()
        psdbs = [PsdbProperties("amd-navi31", tmp_path / "a.psdb"), PsdbProperties("intel-dg2", tmp_path / "b.psdb")]
        component = installer.register_component(game, "DLC1", tmp_path / "dlc1.sodb", psdbs)
        assert component.precompiled_shader_databases == tuple(psdbs)
        installer.register_component(game, "default", tmp_path / "game.sodb")
        (listed,) = installer.applications()
    assert listed.executable == game
    assert listed.application == GAME
    assert (listed.installer, listed.scope) == ("A Store", Scope.USER)
    assert [each.name for each in listed.components] == ["DLC1", "default"]
    assert listed.component("DLC1") == component
    assert component.precompiled_cache_paths("intel-dg2") == (tmp_path / "b.psdb",)
    assert Explorer([(Scope.USER, registry)]).application(game) == listed


@pytest.mark.spec("EP-50")
def test_an_update_keeps_components_and_replaces_those_of_the_same_name(tmp_path: Path, registry: Path) -> None:
    game = tmp_path / "game.exe"
    with Installer.open("Store", registry=registry) as installer:
        installer.register_application(game, GAME)
        installer.register_component(game, "default", tmp_path / "1.sodb", [PsdbProperties("f", tmp_path / "1.psdb")])
        newer = ApplicationIdentity("Game", "game.exe", 2 << 48)
        updated = installer.register_application(game, newer)
        assert updated.application == newer
        assert [each.name for each in updated.components] == ["default"]
        installer.register_component(game, "default", tmp_path / "2.sodb", [PsdbProperties("g", tmp_path / "2.psdb")])
        (component,) = installer.application(game).components
        assert component.state_object_database == tmp_path / "2.sodb"
        assert component.precompiled_shader_databases == (PsdbProperties("g", tmp_path / "2.psdb"),)


@pytest.mark.spec("EP-50")
def test_an_application_is_found_through_links_and_relative_paths(tmp_path: Path, registry: Path) -> None:
    game = tmp_path / "game.exe"
    game.touch()
    (tmp_path / "link").symlink_to(game)
    with Installer.open("Store", registry=registry) as installer:
        installer.register_application(tmp_path / "link", GAME)
        assert installer.application(os.path.relpath(game)).executable == game


@pytest.mark.spec("EP-50")
def test_removing_and_clearing(tmp_path: Path, registry: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    with Installer.open("Store", registry=registry) as installer, Installer.open("Other", registry=registry) as other:
        for path in (first, second):
            installer.register_application(path, GAME)
            installer.register_component(path, "default", "x.sodb")
        other.register_application(tmp_path / "3", GAME)
        installer.remove_component(first, "default")
        with pytest.raises(NotFoundError, match="'default'"):
            installer.remove_component(first, "default")
        installer.remove_application(first)
        for call in (installer.remove_application, installer.application):
            with pytest.raises(NotFoundError):
                call(first)
        with pytest.raises(NotFoundError):
            installer.register_component(first, "default", "x.sodb")
        installer.clear_all_state()
        assert installer.applications() == ()
        assert [each.executable for each in other.applications()] == [tmp_path / "3"]
    connection = apsw.Connection(str(registry))
    assert connection.execute("SELECT count(*) FROM components").fetchall() == [(0,)]
    connection.close()


@pytest.mark.spec("EP-50")
def test_an_executable_belongs_to_one_installer(tmp_path: Path, registry: Path) -> None:
    with Installer.open("Store", registry=registry) as installer, Installer.open("Other", registry=registry) as other:
        installer.register_application(tmp_path / "game", GAME)
        with pytest.raises(AlreadyExistsError, match="'Store'"):
            other.register_application(tmp_path / "game", GAME)
        with pytest.raises(NotFoundError):
            other.register_component(tmp_path / "game", "default", "x.sodb")
        with pytest.raises(NotFoundError):
            other.remove_application(tmp_path / "game")
        assert len(installer.applications()) == 1


@pytest.mark.spec("EP-50")
def test_one_instance_at_a_time_per_name(tmp_path: Path, registry: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {SOURCE!r})\n"
        "from pathlib import Path\nfrom shaderkiln.registration.installer import Installer\n"
        "installer = Installer.open('Store', registry=Path(sys.argv[1]))\nprint('open', flush=True)\nsys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(registry)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    with pytest.raises(RegistryBusyError, match="'Store'") as caught:
        Installer.open("Store", registry=registry)
    assert caught.value.code == "E_ACCESSDENIED"
    Installer.open("Other", registry=registry).close()
    process.kill()
    process.communicate()
    with Installer.open("Store", registry=registry), pytest.raises(RegistryBusyError):
        Installer.open("Store", registry=registry)
    Installer.open("Store", registry=registry).close()


@pytest.mark.spec("EP-50")
def test_a_forked_child_does_not_keep_the_name(registry: Path) -> None:
    code = (
        f"import os, sys, time; sys.path.insert(0, {SOURCE!r})\n"
        "from pathlib import Path\nfrom shaderkiln.errors import InvalidArgumentError\n"
        "from shaderkiln.registration.installer import Installer\n"
        "installer = Installer.open('Store', registry=Path(sys.argv[1]))\n"
        "if not os.fork():\n    try:\n        installer.applications()\n    except InvalidArgumentError:\n"
        "        print('child', flush=True)\n        sys.stdin.read()\n    os._exit(0)\ntime.sleep(100)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(registry)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "child\n"
    with pytest.raises(RegistryBusyError):
        Installer.open("Store", registry=registry)
    process.kill()
    process.wait()
    Installer.open("Store", registry=registry).close()
    process.communicate()


@pytest.mark.spec("EP-50")
@pytest.mark.parametrize(
    "call",
    [
        lambda i: i.register_application("", GAME),
        lambda i: i.register_application("a\0b", GAME),
        lambda i: i.register_application("g", ApplicationIdentity()),
        lambda i: i.register_application("g", ApplicationIdentity("x" * 40_000)),
        lambda i: i.register_application("g", ApplicationIdentity("G", version=1 << 64)),
        lambda i: i.register_application("g", ApplicationIdentity("G", engine_name="\udc80")),
        lambda i: i.register_component("game", "", "x.sodb"),
        lambda i: i.register_component("game", "c", ""),
        lambda i: i.register_component("game", "c", 5),
        lambda i: i.register_component("game", "c", "x", [PsdbProperties("", Path("p"))]),
        lambda i: i.register_component("game", "c", "x", [PsdbProperties("f", Path("p"))] * 1025),
    ],
)
def test_what_cannot_be_stored_changes_nothing(registry: Path, call: object) -> None:
    with Installer.open("Store", registry=registry) as installer:
        before = installer.register_application("game", GAME)
        if call is not None:
            with pytest.raises(InvalidArgumentError):
                call(installer)  # type: ignore[operator]
        assert installer.applications() == (before,)
    with pytest.raises(InvalidArgumentError, match="closed"):
        installer.applications()


@pytest.mark.spec("EP-50")
def test_where_the_registries_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry_path(Scope.USER, {"XDG_DATA_HOME": "/data"}) == Path("/data/shaderkiln/registry.sqlite")
    assert registry_path(Scope.USER, {"HOME": "/home/a"}) == Path("/home/a/.local/share/shaderkiln/registry.sqlite")
    assert registry_path(Scope.SYSTEM, {"HOME": "/home/a"}) == Path("/var/lib/shaderkiln/registry.sqlite")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("SHADERKILN_SYSTEM_DATA", str(tmp_path / "system"))
    previous = os.umask(0o077)
    try:
        with Installer.open("Store") as user, Installer.open("Store", Scope.SYSTEM) as system:
            user.register_application("both", ApplicationIdentity("the user's"))
            system.register_application("both", ApplicationIdentity("the system's"))
            system.register_application("shared", GAME)
    finally:
        os.umask(previous)
    explorer = Explorer()
    assert explorer.application("both").application.name == "the user's"
    assert [each.scope for each in explorer.applications("both")] == [Scope.USER, Scope.SYSTEM]
    assert explorer.application("shared").scope == Scope.SYSTEM
    with pytest.raises(NotFoundError):
        explorer.application("nothing")
    mode = (tmp_path / "system/registry.sqlite").stat().st_mode
    assert stat.S_IMODE(mode) == 0o644
    assert stat.S_IMODE((tmp_path / "system").stat().st_mode) == 0o755


def in_a_child(action: Callable[[], str], user: int | None) -> str:
    """What an action answers in a process of its own, which runs as that user (None: as this one)."""
    # Forked, not started: another user may not be able to read this program's files.
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            answer = action()
        except BaseException as error:
            answer = repr(error)
        finally:
            os.write(writing, answer.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return answer


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.spec("EP-50")
def test_who_may_only_read_the_system_registry_reads_it_and_cannot_write_it() -> None:
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        registry = folder / "system" / "registry.sqlite"

        def use() -> str:
            game = Explorer([(Scope.SYSTEM, registry)]).application("/games/game").application.name
            try:
                Installer.open("Store", Scope.SYSTEM, registry=registry).close()
            except AccessDeniedError as error:
                return f"{game} {error.code}"
            return f"{game} may be changed"

        with Installer.open("Store", Scope.SYSTEM, registry=registry) as installer:
            installer.register_application("/games/game", GAME)
        before = registry.read_bytes()
        # The owner of the registry may change it; this also imports everything.
        assert use() == "Game may be changed"
        if is_root:
            # Only root can become another user.
            assert in_a_child(use, 65534) == "Game E_ACCESSDENIED"
            for path in (registry.parent, *registry.parent.iterdir()):
                os.chown(path, 65534, 65534)
        user = 65534 if is_root else None
        for mode, folder_mode in ((0o444, 0o755), (0o644, 0o555), (0o444, 0o555)):
            # Rights that an owner has taken away are respected, and not given back.
            registry.chmod(mode)
            registry.parent.chmod(folder_mode)
            try:
                assert in_a_child(use, user) == "Game E_ACCESSDENIED"
            finally:
                registry.parent.chmod(0o755)
        assert registry.read_bytes() == before


@pytest.mark.spec("EP-50")
def test_a_registry_that_was_not_finished_is_made_anew(tmp_path: Path) -> None:
    registry = tmp_path / "registry.sqlite"
    registry.touch()
    assert Explorer([(Scope.USER, registry)]).applications() == ()
    with Installer.open("Store", registry=registry) as installer:
        installer.register_application("game", GAME)
    assert len(Explorer([(Scope.USER, registry)]).applications()) == 1


@pytest.mark.spec("EP-50")
def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AccessDeniedError):
        Installer.open("Store", registry=tmp_path / "file" / "registry.sqlite")


@pytest.mark.spec("EP-50", "AL-02")
def test_damaged_and_foreign_registries_are_refused_and_left_alone(tmp_path: Path) -> None:
    sound = tmp_path / "sound.sqlite"
    with Installer.open("Store", registry=sound) as installer:
        for number in range(40):
            installer.register_application(f"/games/{number}", GAME)
            installer.register_component(
                f"/games/{number}", "default", f"/games/{number}.sodb", [PsdbProperties("f", Path("p"))]
            )

    def altered(name: str, *sql: str) -> Path:
        path = tmp_path / name
        path.write_bytes(sound.read_bytes())
        connection = apsw.Connection(str(path))
        for statement in ("PRAGMA writable_schema = ON", "PRAGMA ignore_check_constraints = ON", *sql):
            connection.execute(statement)
        connection.close()
        return path

    def written(name: str, data: bytes) -> Path:
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    data = sound.read_bytes()
    bad = [
        written("text", b"not a database at all" * 100),
        written("short", data[:60]),
        written("half", data[: len(data) // 2]),
        altered("foreign id", "PRAGMA application_id = 1"),
        altered("later", "PRAGMA user_version = 2"),
        altered("trigger", "CREATE TRIGGER t AFTER DELETE ON psdbs BEGIN DELETE FROM installers; END"),
        altered("view", "CREATE VIEW v AS SELECT 1"),
        altered("column", "ALTER TABLE psdbs ADD COLUMN more TEXT"),
        altered("dangling", "DELETE FROM installers"),
        written("directory entry", data[:4096] + bytes(len(data) - 4096)),
    ]
    for seed in range(0, len(data), 4096):
        page = bytearray(data)
        page[seed + 5 : seed + 12] = b"\xff" * 7
        bad.append(written(f"page {seed}", bytes(page)))
    for path in bad:
        before = path.read_bytes()
        for opening in (
            lambda: Installer.open("Store", registry=path),  # noqa: B023
            lambda: Explorer([(Scope.USER, path)]).applications(),  # noqa: B023
        ):
            with pytest.raises(CacheCorruptError, match="registry"):
                opening()
        assert path.read_bytes() == before, path.name
    # Read-only, SQLite does not look at CHECK constraints; nothing that a reader relies on depends on them.
    with pytest.raises(CacheCorruptError, match="CHECK"):
        Installer.open("Store", registry=altered("negative", "UPDATE psdbs SET position = -1"))
    assert len(Explorer([(Scope.USER, tmp_path / "negative")]).applications()) == 40
    with pytest.raises(CacheCorruptError, match="registry"):
        Explorer([(Scope.USER, altered("text", "UPDATE psdbs SET path = CAST(x'8081' AS TEXT)"))]).applications()
    (tmp_path / "folder").mkdir()
    with pytest.raises(CacheCorruptError):
        Explorer([(Scope.USER, tmp_path / "folder")]).applications()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CacheCorruptError):
        Explorer([(Scope.USER, tmp_path / "pipe")]).applications()
