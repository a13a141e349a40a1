"""Which PSDB a driver gets (EP-05), and what a machine's drivers can use."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry_support import GAME, psdb

from shaderkiln.compilers.plugin import AdapterFamily, Compiler, FamilyCompiler
from shaderkiln.descriptions.pipeline import Application
from shaderkiln.errors import CacheCorruptError, NotFoundError
from shaderkiln.registration.explorer import Explorer, RegistryResolver
from shaderkiln.registration.installer import Installer
from shaderkiln.registration.records import CompilerProperties, PsdbProperties, Scope
from shaderkiln.registration.selection import by_preference, is_compatible
from shaderkiln.registration.targets import precompile_targets
from shaderkiln.sessions.descs import RegisteredSessionDesc
from shaderkiln.sessions.factory import SessionEnvironment, create_shader_cache_session1
from shaderkiln.sessions.file import ComponentResolver


class Made:
    """What the choice looks at."""

    def __init__(self, family: str, abi_version: int, application_profile_version: int) -> None:
        self.family = family
        self.abi_version = abi_version
        self.application_profile_version = application_profile_version


DRIVER = CompilerProperties("amd-navi31", 10, 20, "1", 7 << 32 | 5)


@pytest.mark.spec("EP-05")
@pytest.mark.parametrize(
    ("made", "fits"),
    [
        (("amd-navi31", 10, 7 << 32), True),
        (("amd-navi31", 20, 7 << 32 | 0xFFFFFFFF), True),
        (("amd-navi31", 9, 7 << 32), False),
        (("amd-navi31", 21, 7 << 32), False),
        (("amd-navi31", 15, 8 << 32), False),
        (("amd-navi31", 15, 5), False),
        (("amd-navi21", 15, 7 << 32), False),
        (("AMD-NAVI31", 15, 7 << 32), False),
    ],
)
def test_compatible(made: tuple[str, int, int], fits: bool) -> None:
    assert is_compatible(Made(*made), DRIVER) is fits


@pytest.mark.spec("EP-05")
@given(st.lists(st.tuples(st.sampled_from(["amd-navi31", "x"]), st.integers(8, 22), st.integers(0, 3), st.integers(5, 8))))
def test_the_larger_abi_wins_then_the_larger_profile(raw: list[tuple[str, int, int, int]]) -> None:
    made = [Made(family, abi, top << 32 | low) for family, abi, low, top in raw]
    order = by_preference([(each, number) for number, each in enumerate(made)], DRIVER)
    assert sorted(order) == [
        number for number, (f, a, _, t) in enumerate(raw) if f == "amd-navi31" and 10 <= a <= 20 and t == 7
    ]
    ranks = [(made[number].abi_version, made[number].application_profile_version, -number) for number in order]
    assert ranks == sorted(ranks, reverse=True)


@pytest.mark.spec("EP-05", "EP-01")
def test_a_registered_psdb_is_chosen_from_all_scopes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    game = tmp_path / "game"
    driver = CompilerProperties("amd-navi31", 3 << 48, 6 << 48, "", 1 << 32)
    registries = [(Scope.USER, tmp_path / "user.sqlite"), (Scope.SYSTEM, tmp_path / "system.sqlite")]
    explorer = Explorer(registries)
    assert explorer.resolve(game, "default", driver) is None
    with pytest.raises(NotFoundError):
        explorer.application(game)

    def register(scope: Scope, component: str, *paths: Path, family: str = "amd-navi31") -> None:
        with Installer.open("Store", scope, registry=dict(registries)[scope]) as installer:
            installer.register_application(game, GAME)
            installer.register_component(game, component, "g.sodb", [PsdbProperties(family, path) for path in paths])

    old = psdb(tmp_path / "old.psdb", abi=4 << 48)
    new = psdb(tmp_path / "new.psdb", abi=5 << 48)
    profile = psdb(tmp_path / "profile.psdb", abi=5 << 48, profile=1 << 32 | 9)
    too_new = psdb(tmp_path / "too new.psdb", abi=7 << 48)
    other = psdb(tmp_path / "other.psdb", family="amd-navi21")
    register(Scope.USER, "default", old, too_new, other, tmp_path / "missing.psdb")
    with caplog.at_level(logging.WARNING):
        assert explorer.candidates(game, "default", driver) == (old,)
    assert "missing.psdb" in caplog.text
    register(Scope.SYSTEM, "default", new)
    assert explorer.candidates(game, "default", driver) == (new, old)
    register(Scope.SYSTEM, "default", new, profile)
    assert explorer.resolve(game, "default", driver) == profile
    register(Scope.SYSTEM, "DLC1", new)
    resolver: ComponentResolver = RegistryResolver(game, driver, explorer)
    assert [resolver.resolve(name) for name in ("default", "DLC1", "DLC2")] == [profile, new, None]
    assert RegistryResolver(tmp_path / "another", driver, explorer).resolve("default") is None
    (tmp_path / "profile.psdb").write_bytes(b"damaged")
    assert resolver.resolve("default") == new
    register(Scope.SYSTEM, "default", new, family="amd-navi21")
    assert resolver.resolve("default") == old
    (tmp_path / "system.sqlite").write_bytes(b"damaged")
    with caplog.at_level(logging.WARNING):
        assert resolver.resolve("default") == old
    assert "system.sqlite" in caplog.text
    with pytest.raises(CacheCorruptError):
        explorer.applications(game)


@pytest.mark.spec("EP-44", "EP-05")
def test_a_registered_session_gets_its_file_from_the_registry(tmp_path: Path) -> None:
    game = tmp_path / "game"
    registry = tmp_path / "registry.sqlite"
    driver = CompilerProperties("amd-navi31", 5 << 48, 5 << 48, "", 1 << 32)
    resolver = RegistryResolver(game, driver, Explorer([(Scope.USER, registry)]))
    environment = SessionEnvironment(application=GAME, resolver=resolver)
    with Installer.open("Store", registry=registry) as installer:
        installer.register_application(game, GAME)
        with pytest.raises(NotFoundError):
            create_shader_cache_session1(RegisteredSessionDesc("DLC1"), environment)
        path = psdb(tmp_path / "dlc1.psdb")
        installer.register_component(game, "DLC1", "dlc1.sodb", [PsdbProperties("amd-navi31", path)])
        session = create_shader_cache_session1(RegisteredSessionDesc("DLC1"), environment)
        assert session.get_desc() == RegisteredSessionDesc("DLC1")
        installer.remove_component(game, "DLC1")
        with pytest.raises(NotFoundError):
            create_shader_cache_session1(RegisteredSessionDesc("DLC1"), environment)


class Plugin(Compiler):
    name = "made-here"

    def adapter_families(
        self, *, refresh: bool = False, progress: Callable[[str], None] | None = None
    ) -> tuple[AdapterFamily, ...]:
        return (
            AdapterFamily("z", self.name, "p", (9, 5), "2.0", 3 << 32 | 1),
            AdapterFamily("a", self.name, "old", (4,), "1.0", 1 << 32),
            AdapterFamily("a", self.name, "new", (6, 5), "1.1", 1 << 32),
        )

    def open(
        self, family: str, application: Application, *, package: str | None = None, abi_version: int | None = None
    ) -> FamilyCompiler:
        raise NotFoundError(family)


@pytest.mark.spec("EP-50")
def test_precompile_targets() -> None:
    targets = precompile_targets(compilers=[Plugin()])
    assert [(t.adapter_family, t.minimum_abi_version, t.maximum_abi_version, t.compiler_version) for t in targets] == [
        ("a", 5, 6, "1.1"),
        ("a", 4, 4, "1.0"),
        ("z", 5, 9, "2.0"),
    ]
    assert {target.application_profile_version for target in targets} == {0}
    named = precompile_targets(GAME, compilers=[Plugin()])
    assert named[-1] == CompilerProperties("z", 5, 9, "2.0", 3 << 32 | 1, "made-here", "p")
