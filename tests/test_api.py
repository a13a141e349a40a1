"""The product from Python, with the toy compiler."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_support import name, write_capture

import shaderkiln
from shaderkiln import api
from shaderkiln.compilers.plugin import FamilyNotFoundError
from shaderkiln.errors import (
    AccessDeniedError,
    CacheCorruptError,
    DamagedInputError,
    DriverError,
    InvalidArgumentError,
    NotFoundError,
)
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.jobs.compile import JobOptions


@pytest.fixture
def capture(tmp_path: Path, toy_site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A capture of two pipelines; the toy compiler is installed."""
    monkeypatch.syspath_prepend(toy_site)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TOY_TALE", raising=False)
    return write_capture(tmp_path / "game.foz", ["code a", "code b"])


def test_a_capture_is_compiled_verified_and_inspected_in_a_few_lines(capture: Path, tmp_path: Path) -> None:
    report = api.compile_capture(capture, "toy-one", tmp_path / "out")
    assert report.path == tmp_path / "out" / "game.toy-one.psdb"
    assert report.tally.good
    assert api.verify_psdb(report.path, capture).good
    inspection = api.inspect_pipeline(capture, name(1), "toy-one")
    assert inspection.description.name == name(1)
    assert inspection.executables[0].representations[0].data == b"code b\0"
    with api.open_psdb(report.path) as database, api.open_capture(capture) as source:
        assert {group.name for group in database.groups()} == {f"{hash:016x}" for _, hash in source.pipelines()}
        assert api.verify_psdb(database, source).good


def test_verdicts_ticks_and_the_job_itself_are_handed_out(capture: Path, tmp_path: Path) -> None:
    verdicts, ticks, jobs = [], [], []
    api.compile_capture(
        capture, "toy-one", tmp_path / "out.psdb", on_verdict=verdicts.append, on_start=jobs.append,
        on_tick=lambda progress: ticks.append((progress.done, progress.total)),
    )  # fmt: skip
    assert {verdict.pipeline for verdict in verdicts} == {name(0), name(1)}
    assert ticks[-1] == (2, 2)
    assert jobs[0].progress.seconds_left == 0


def test_the_application_can_be_named(capture: Path, tmp_path: Path) -> None:
    application = ApplicationIdentity("Another", "a.exe", 1 << 48)
    api.compile_capture(capture, "toy-one", tmp_path / "out.psdb", application=application)
    with api.open_psdb(tmp_path / "out.psdb") as database:
        assert database.application == application
    with pytest.raises(CacheCorruptError, match=r"application\.name: stored 'Another', expected 'Toy Town'"):
        api.compile_capture(capture, "toy-one", tmp_path / "out.psdb")
    api.compile_capture(capture, "toy-one", tmp_path / "out.psdb", options=JobOptions(replace=True))
    with api.open_psdb(tmp_path / "out.psdb") as database:
        assert database.application.name == "Toy Town"


def test_where_a_psdb_goes(tmp_path: Path) -> None:
    def path(output: object, *, single: bool = True) -> Path:
        return api.psdb_path("in/game.foz", "amd-navi31", output, single=single)  # type: ignore[arg-type]

    assert path(None) == Path("game.amd-navi31.psdb")
    assert path("out") == Path("out/game.amd-navi31.psdb")
    assert path("out", single=False) == Path("out/game.amd-navi31.psdb")
    assert path("out/x.psdb") == Path("out/x.psdb")
    (tmp_path / "folder.psdb").mkdir()
    assert path(tmp_path / "folder.psdb", single=False) == tmp_path / "folder.psdb" / "game.amd-navi31.psdb"
    with pytest.raises(InvalidArgumentError, match="names one file"):
        path("out/x.psdb", single=False)


def test_the_package_names_what_it_offers() -> None:
    assert {"compile_capture", "inspect_pipeline", "open_capture", "open_psdb", "verify_psdb"} <= set(dir(shaderkiln))


def test_errors(capture: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        api.compile_capture(tmp_path / "missing.foz", "toy-one")
    with pytest.raises(NotFoundError, match="no such file"):
        api.verify_psdb(tmp_path / "missing.psdb", capture)
    with pytest.raises(CacheCorruptError):
        api.open_psdb(capture)
    with pytest.raises(DamagedInputError):
        api.open_capture(Path(__file__))
    with pytest.raises(FamilyNotFoundError, match="it has toy-one and toy-two"):
        api.compile_capture(capture, "toy-six")
    with pytest.raises(FamilyNotFoundError):
        api.compile_capture(capture, "toy-one", abi_version=5)
    with pytest.raises(AccessDeniedError, match="cannot be made a folder"):
        api.compile_capture(capture, "toy-one", capture / "out")
    with pytest.raises(NotFoundError, match="no pipeline's name begins with 'feed'"):
        api.inspect_pipeline(capture, "feed", "toy-one")
    with pytest.raises(InvalidArgumentError, match="2 pipelines have names that begin with '0000'"):
        api.inspect_pipeline(capture, "0000", "toy-one")
    assert not list(tmp_path.rglob("*.psdb"))


def test_an_inspection_that_fails_tells_why(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = write_capture(tmp_path / "bad.foz", ["blind a", "brittle b"])
    with pytest.raises(DriverError, match=f"pipeline {name(0)}: ZeroDivisionError: it is blind"):
        api.inspect_pipeline(bad, name(0), "toy-one")
    with pytest.raises(DriverError, match=f"pipeline {name(1)} ended the driver's process with SIGABRT in toy 2.1"):
        api.inspect_pipeline(bad, name(1), "toy-one")
