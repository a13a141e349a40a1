"""Disabling, enabling and clearing kinds of cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from session_support import IDENTIFIER, Components, build, environment

from shaderkiln.errors import InvalidArgumentError, NotCurrentlyAvailableError, NotFoundError
from shaderkiln.sessions import (
    CacheControlFlags,
    CacheKindFlags,
    DiskSessionDesc,
    FileSessionDesc,
    MemorySessionDesc,
    RegisteredSessionDesc,
    SessionEnvironment,
    SessionFileFlags,
    ShaderCacheControl,
    ShaderCacheSession,
    create_shader_cache_session1,
)

APPLICATION_MANAGED, PSDB = CacheKindFlags.APPLICATION_MANAGED, CacheKindFlags.PSDB
DISABLE, ENABLE, CLEAR = CacheControlFlags.DISABLE, CacheControlFlags.ENABLE, CacheControlFlags.CLEAR
STORED = {b"key": {0: b"value"}}


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionEnvironment:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return environment(resolver=Components(DLC1=build(tmp_path / "registered.psdb", STORED)))


@pytest.fixture
def sessions(tmp_path: Path, env: SessionEnvironment) -> dict[str, Callable[[], ShaderCacheSession]]:
    descs = {
        "memory": MemorySessionDesc(IDENTIFIER),
        "disk": DiskSessionDesc(IDENTIFIER, directory=tmp_path / "disk"),
        "file": FileSessionDesc(tmp_path / "a.psdb"),
        "read-only": FileSessionDesc(build(tmp_path / "b.psdb", STORED), SessionFileFlags.READ_ONLY),
        "registered": RegisteredSessionDesc("DLC1"),
    }
    return {name: lambda desc=desc: create_shader_cache_session1(desc, env) for name, desc in descs.items()}  # type: ignore[misc]


@pytest.mark.spec("EP-46")
def test_numbers() -> None:
    assert {kind.name: int(kind) for kind in CacheKindFlags} == {
        "IMPLICIT_D3D_CACHE_FOR_DRIVER": 1,
        "IMPLICIT_D3D_CONVERSIONS": 2,
        "IMPLICIT_DRIVER_MANAGED": 4,
        "APPLICATION_MANAGED": 8,
        "PSDB": 0x10,
    }
    assert {control.name: int(control) for control in CacheControlFlags} == {"DISABLE": 1, "ENABLE": 2, "CLEAR": 4}


@pytest.mark.spec("EP-46")
@pytest.mark.parametrize(("kinds", "control"), [(8, 0), (8, 3), (8, 7), (8, 8), (0, 1), (0x20, 1)])
def test_invalid_control(kinds: int, control: int) -> None:
    with pytest.raises(InvalidArgumentError):
        ShaderCacheControl(developer_mode=True).control(CacheKindFlags(kinds), CacheControlFlags(control))


@pytest.mark.spec("EP-46")
def test_developer_mode_only() -> None:
    control = ShaderCacheControl()
    for flags in (DISABLE, ENABLE, CLEAR):
        with pytest.raises(NotCurrentlyAvailableError, match="developer mode"):
            control.control(APPLICATION_MANAGED, flags)
    assert control.enabled(APPLICATION_MANAGED)
    control.developer_mode = True
    control.control(APPLICATION_MANAGED, DISABLE)
    assert not control.enabled(APPLICATION_MANAGED)


@pytest.mark.spec("EP-47", "EP-48")
@pytest.mark.parametrize("kind", [APPLICATION_MANAGED, PSDB])
def test_what_each_kind_controls(
    env: SessionEnvironment, sessions: dict[str, Callable[[], ShaderCacheSession]], kind: CacheKindFlags
) -> None:
    controlled = {"registered"} if kind is PSDB else {"memory", "disk", "file", "read-only"}
    for name, create in sessions.items():
        session = create()
        if not session.read_only:
            session.store_value(b"key", b"value")
        env.control.control(kind, DISABLE)
        uses = [
            create,
            lambda session=session: session.find_value(b"key"),
            lambda session=session: session.find_value1(b"key"),
            lambda session=session: session.exists(b"key"),
            lambda session=session: session.store_value(b"new", b"value"),
        ]
        if name in controlled:
            for use in uses:
                with pytest.raises(NotCurrentlyAvailableError):
                    use()  # type: ignore[no-untyped-call]
        else:
            assert session.find_value(b"key") == b"value"
            create().close()
        env.control.control(kind, ENABLE)
        assert session.find_value(b"key") == b"value"
        session.close()


@pytest.mark.spec("EP-47", "EP-46")
def test_clear(env: SessionEnvironment, sessions: dict[str, Callable[[], ShaderCacheSession]]) -> None:
    with create_shader_cache_session1(DiskSessionDesc(uuid4()), env) as closed:
        closed.store_value(b"key", b"value")
        path = closed.path  # type: ignore[attr-defined]
    opened = {name: create() for name, create in sessions.items()}
    for name in ("memory", "disk", "file"):
        opened[name].store_value(b"key", b"value")
    env.control.control(PSDB, CLEAR)
    assert all(session.find_value(b"key") == b"value" for session in opened.values()) and path.exists()
    env.control.control(APPLICATION_MANAGED | PSDB, CLEAR | DISABLE)
    env.control.control(APPLICATION_MANAGED | PSDB, ENABLE)
    assert {name for name, session in opened.items() if session.exists(b"key")} == {"read-only", "registered"}
    assert not path.exists()
    with pytest.raises(NotFoundError):
        opened["memory"].find_value(b"key")
    for session in opened.values():
        session.store_value(b"key", b"again") if not session.read_only else None
        session.close()


def test_hooks_of_other_caches() -> None:
    control = ShaderCacheControl(developer_mode=True)
    calls: list[str] = []
    control.add_clear_hook(CacheKindFlags.IMPLICIT_DRIVER_MANAGED, lambda: calls.append("cleared"))
    control.control(CacheKindFlags.IMPLICIT_D3D_CONVERSIONS, CLEAR)
    assert calls == []
    control.control(CacheKindFlags.IMPLICIT_DRIVER_MANAGED, CLEAR)
    assert calls == ["cleared"]
