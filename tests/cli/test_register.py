"""``kiln register``, ``unregister`` and ``registrations``: what a store does after installing."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy_compiler
from toy_plugin import Kiln

from shaderkiln.databases.psdb import PsdbBuilder
from shaderkiln.databases.sodb import StateObjectDatabase
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.registration.explorer import Explorer
from shaderkiln.registration.installer import Installer
from shaderkiln.registration.records import Scope

GAME = ApplicationIdentity("TestGame", "testgame.exe", 1 << 48, "TestEngine", 2 << 48)


@pytest.fixture
def installed(kiln: Kiln, tmp_path: Path) -> Path:
    """The registry of the command's user; ``dlc1.sodb`` and ``dlc1.psdb`` lie in its working folder."""
    with StateObjectDatabase.create(tmp_path / "dlc1.sodb") as database:
        database.set_application_desc(GAME)
    with PsdbBuilder(tmp_path / "dlc1.psdb", toy_compiler.identity(), GAME) as builder:
        builder.finish()
    return tmp_path / ".local/share/shaderkiln/registry.sqlite"


def dlc1(*more: str) -> tuple[str, ...]:
    return ("register", "testgame.exe", "--component", "DLC1", "--sodb", "dlc1.sodb", "--psdb", "toy-one=dlc1.psdb", *more)


@pytest.mark.spec("EP-50")
def test_a_component_is_registered_as_the_database_describes_the_application(kiln: Kiln, installed: Path) -> None:
    result = kiln(*dlc1())
    assert (result.returncode, result.stderr) == (0, "")
    (application,) = Explorer([(Scope.USER, installed)]).applications()
    assert application.executable == kiln.folder / "testgame.exe"
    assert application.application == GAME
    assert application.installer == "kiln"
    (component,) = application.components
    assert component.name == "DLC1" and component.state_object_database == kiln.folder / "dlc1.sodb"
    assert component.precompiled_cache_paths("toy-one") == (kiln.folder / "dlc1.psdb",)


@pytest.mark.spec("EP-50")
def test_registrations_are_listed_and_removed(kiln: Kiln, installed: Path) -> None:
    assert "nothing is registered" in kiln("registrations").stdout
    kiln(*dlc1())
    kiln("register", "testgame.exe", "--component", "default", "--sodb", "dlc1.sodb")
    (record,) = kiln.records("registrations", "testgame.exe")
    assert record["application"]["name"] == "TestGame" and record["scope"] == "user"
    assert [(c["name"], len(c["psdbs"])) for c in record["components"]] == [("DLC1", 1), ("default", 0)]
    assert "dlc1.psdb" in kiln("registrations").stdout
    assert kiln("unregister", "testgame.exe", "--component", "DLC1").returncode == 0
    (record,) = kiln.records("registrations")
    assert [c["name"] for c in record["components"]] == ["default"]
    assert kiln("unregister", "testgame.exe").returncode == 0
    assert kiln.records("registrations") == []
    missing = kiln("unregister", "testgame.exe")
    assert missing.returncode == 3 and "DXGI_ERROR_NOT_FOUND" in missing.stderr


def test_the_command_line_describes_the_application_before_the_database(kiln: Kiln, installed: Path) -> None:
    result = kiln(*dlc1("--name", "Other", "--app-version", "2.5", "--exe-filename", "o.exe"))
    assert result.returncode == 0
    # No device of such an application would take the PSDB.
    assert "application.name: stored 'TestGame', expected 'Other'" in result.stderr
    (record,) = kiln.records("registrations")
    expected = {"name": "Other", "exe_filename": "o.exe", "version": 2 << 48 | 5 << 32}
    assert {field: record["application"][field] for field in expected} == expected
    assert record["application"]["engine_name"] == "TestEngine"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("register", "x.exe"), 2, "--name"),
        (("register", "x.exe", "--name", "X", "--psdb", "toy-one=dlc1.psdb"), 2, "--component"),
        (("register", "x.exe", "--name", "X", "--component", "C"), 2, "--sodb"),
        (("register", "x.exe", "--component", "C", "--sodb", "none.sodb"), 3, "no such file"),
        (("register", "x.exe", "--component", "C", "--sodb", "dlc1.sodb", "--psdb", "toy-one"), 2, "FAMILY=PATH"),
        (("register", "x.exe", "--component", "C", "--sodb", "dlc1.sodb", "--psdb", "toy-two=dlc1.psdb"), 2, "toy-one"),
        (("register", "x.exe", "--component", "C", "--sodb", "dlc1.sodb", "--psdb", "toy-one=none.psdb"), 3, "none.psdb"),
        (("register", "x.exe", "--component", "C", "--sodb", "dlc1.sodb", "--psdb", "toy-one=dlc1.sodb"), 3, "dlc1.sodb"),
    ],
)
def test_what_cannot_be_registered_is_refused_and_changes_nothing(
    kiln: Kiln, installed: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = kiln(*arguments)
    assert result.returncode == code and message in result.stderr
    assert not installed.exists()


def test_another_installer_of_the_name_is_told(kiln: Kiln, installed: Path) -> None:
    with Installer.open("kiln", registry=installed):
        result = kiln(*dlc1())
    assert result.returncode == 5 and "running already" in result.stderr
