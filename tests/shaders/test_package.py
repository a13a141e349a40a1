"""The translator's package: manifests, damage, the executable-stack mark, and what is taken where the suite cannot be had."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import shader_files

from shaderkiln.drivers.debian import FetchError
from shaderkiln.drivers.package_store import DriverPackageError
from shaderkiln.errors import NotFoundError
from shaderkiln.shaders import package as packages
from shaderkiln.shaders.package import NAME, TranslatorPackage, TranslatorPackages, clear_executable_stack
from shaderkiln.shaders.translator import NotTranslatable, Translation, Translator, worker_arguments


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder of packages with one that has all its files (empty ones)."""
    folder = tmp_path / "translators" / NAME
    libraries = folder / "root" / "lib"
    libraries.mkdir(parents=True)
    (libraries / "libvkd3d-shader.so.1").touch()
    (libraries / "ld.so").touch()
    manifest = {
        "name": NAME,
        "suite": "forky",
        "architecture": "amd64",
        "debs": [{"name": "libvkd3d-shader1", "version": "2.1+ds-1", "architecture": "amd64", "sha256": "0" * 64, "size": 1}],
        "library": "lib/libvkd3d-shader.so.1",
        "loader": "lib/ld.so",
        "library_folders": ["lib"],
        "notice": "",
        "created": "2026-01-01T00:00:00+00:00",
        "format": 1,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return tmp_path / "translators"


def _change(folder: Path, **changes: object) -> None:
    path = folder / NAME / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_package_is_opened_without_any_network(made: Path) -> None:
    store = TranslatorPackages(made)
    package = store.get()
    assert package.version == "2.1+ds-1"
    assert package.library == str(made / NAME / "root/lib/libvkd3d-shader.so.1")
    assert package.loader == str(made / NAME / "root/lib/ld.so")
    assert store.add() == package
    assert store.best() == package
    assert NAME in store.names()


def test_none_is_there(tmp_path: Path) -> None:
    store = TranslatorPackages(tmp_path / "none")
    with pytest.raises(NotFoundError, match="kiln drivers add vkd3d-shader"):
        store.get()
    with pytest.raises(NotFoundError):
        store.remove()
    with pytest.raises(NotFoundError, match="known names"):
        store.get("other")
    assert not (tmp_path / "none").exists()


def test_removal(made: Path) -> None:
    store = TranslatorPackages(made)
    store.remove()
    assert not (made / NAME).exists()
    with pytest.raises(NotFoundError):
        store.get()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"library": "/etc/passwd"}, "outside"),
        ({"library": "../../x"}, "outside"),
        ({"library_folders": ["a\0b"]}, "outside"),
        ({"loader": "lib/nothing"}, "missing"),
        ({"format": 2}, "another format"),
        ({"name": "other"}, "another format"),
        ({"debs": 5}, "damaged"),
    ],
)
def test_damaged_manifests(made: Path, changes: dict[str, object], words: str) -> None:
    _change(made, **changes)
    with pytest.raises(DriverPackageError, match=words):
        TranslatorPackages(made).get()


def test_a_manifest_that_is_cut(made: Path) -> None:
    path = made / NAME / "manifest.json"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DriverPackageError, match="damaged"):
        TranslatorPackages(made).get()


def test_the_loader_of_the_package_runs_the_process() -> None:
    own = TranslatorPackage(NAME, "/p/lib/libvkd3d-shader.so.1", "/p/lib/ld.so", ("/p/lib",))
    assert worker_arguments(own, 7)[:5] == ("/p/lib/ld.so", "--argv0", sys.executable, "--library-path", "/p/lib")
    assert worker_arguments(own, 7)[-3:] == ("{fd}", "/p/lib/libvkd3d-shader.so.1", "7")
    system = TranslatorPackage("system", "/usr/lib/libvkd3d-shader.so.1")
    assert worker_arguments(system, 7)[0] == sys.executable


def test_which_versions_read_dxil() -> None:
    for version, answer in {
        "1.2-15": False,
        "1.15-1": False,
        "1.16-1": True,
        "2.1+ds-1": True,
        "1:1.2": False,
        "x": False,
    }.items():
        assert packages._reads_dxil(version) is answer


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf (binutils)")
def test_the_executable_stack_mark_is_cleared(tmp_path: Path) -> None:
    def stack_flags(path: Path) -> str:
        text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
        return next(line.split()[-2] for line in text.splitlines() if "GNU_STACK" in line)

    library = tmp_path / "library.so"
    shutil.copy(Path(sys.executable).resolve(), library)
    library.chmod(0o644)
    before = library.read_bytes()
    assert not clear_executable_stack(library)
    assert library.read_bytes() == before
    offset, count = struct.unpack_from("<Q", before, 32)[0], struct.unpack_from("<H", before, 56)[0]
    at = next(a for a in range(offset, offset + 56 * count, 56) if struct.unpack_from("<I", before, a)[0] == 0x6474E551)
    library.write_bytes(before[: at + 4] + struct.pack("<I", 7) + before[at + 8 :])
    assert stack_flags(library) == "RWE"
    assert clear_executable_stack(library)
    assert stack_flags(library) == "RW"


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x01\x01" + bytes(60), b"#!/bin/sh\n" + bytes(60)])
def test_files_that_are_no_library(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "library.so"
    path.write_bytes(data)
    with pytest.raises(DriverPackageError):
        clear_executable_stack(path)
    assert path.read_bytes() == data


@pytest.mark.driver
def test_without_the_suite_the_machines_own_library_translates_dxbc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "SUITE", "no-such-suite")
    store = TranslatorPackages(tmp_path / "translators", tmp_path / "cache")
    try:
        package = store.add()
    except FetchError as error:
        pytest.skip(f"needs a Debian machine with a mirror: {error}")
    assert package.manifest is not None
    assert package.loader == "" and package.manifest.suite != "no-such-suite"
    assert "no-such-suite" in package.notice and "DXIL" in package.notice
    assert not list((tmp_path / "translators").glob(".*.partial"))
    with Translator(package) as translator:
        if translator.has_dxil:
            pytest.skip("the library of this machine's suite reads DXIL")
        assert translator.version < (1, 16)
        results = {path: result for path, result, _ in shader_files.translate_all(translator)}
    assert all(isinstance(results[path], Translation) for path in shader_files.DXBC)
    assert all(isinstance(results[path], NotTranslatable) for path in shader_files.DXIL)
