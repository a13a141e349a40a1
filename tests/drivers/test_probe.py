"""Answers of drivers are kept as long as the driver and its environment are the same, whatever other packages come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

from shaderkiln.drivers.probe import probe
from shaderkiln.drivers.targets import DRM_SHIM, Target


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def target(icd: Path, **environment: str) -> Target:
    return Target("amd-navi31", "mine", str(icd), environment, "amd", DRM_SHIM)


def test_a_refresh_forgets_one_target_with_whatever_features(tmp_path: Path, environment: dict[str, str]) -> None:
    icd = tmp_path / "libvulkan_none.so"
    icd.write_bytes(b"no driver")
    asked: list[str] = []

    def ask(name: str, *features: str, refresh: bool = False, **variables: str) -> None:
        probe(target(icd, **variables), features, environment=environment, refresh=refresh, on_ask=lambda: asked.append(name))

    ask("plain")
    ask("robust", "robustBufferAccess")
    ask("another target", AMDGPU_GPU_ID="navi31")
    ask("refreshed", refresh=True)
    ask("kept")
    ask("kept", AMDGPU_GPU_ID="navi31")
    ask("robust again", "robustBufferAccess")
    assert asked == ["plain", "robust", "another target", "refreshed", "robust again"]


def test_a_driver_is_asked_once_and_again_when_it_changed(tmp_path: Path, environment: dict[str, str]) -> None:
    icd = tmp_path / "libvulkan_none.so"
    icd.write_bytes(b"no driver")
    asked: list[str] = []

    def ask(name: str, *, refresh: bool = False, **variables: str) -> None:
        answer = probe(target(icd, **variables), environment=environment, refresh=refresh, on_ask=lambda: asked.append(name))
        assert answer.error

    ask("first")
    ask("kept")
    # What another package brings or takes away.
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "libvulkan_other.so").write_bytes(b"another driver")
    ask("kept")
    assert asked == ["first"]
    ask("refreshed", refresh=True)
    ask("in another environment", AMDGPU_GPU_ID="navi31")
    icd.write_bytes(b"a driver that is new")
    ask("changed")
    assert asked == ["first", "refreshed", "in another environment", "changed"]
