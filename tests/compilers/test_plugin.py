"""Compiler plugins: what they promise, how they are found, and one installed from outside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from job_support import log_lines, name, write_capture
from toy_plugin import Kiln, build_wheel, install

from shaderkiln.compilers.mesa import MesaCompiler
from shaderkiln.compilers.native import NativeCompiler
from shaderkiln.compilers.plugin import AdapterFamily, compiler_names, load_compiler, open_family
from shaderkiln.databases.psdb import Psdb
from shaderkiln.descriptions.pipeline import Application
from shaderkiln.errors import InvalidArgumentError, NotFoundError
from shaderkiln.identity import format_version
from shaderkiln.sources.capture import Capture

LARGEST = 2**64 - 1


def family(*abi_versions: int) -> AdapterFamily:
    return AdapterFamily("f", "c", "p", abi_versions, "1", 1)


@pytest.mark.spec("EP-53")
def test_abi_versions_stand_largest_first() -> None:
    assert family(LARGEST - 1, 5, 1).abi_versions == (LARGEST - 1, 5, 1)


@pytest.mark.spec("EP-53")
@pytest.mark.parametrize(
    "versions", [(), (0,), (LARGEST,), (5, 0), (LARGEST, 5), (1, 5), (5, 5), (-1,), (2**64,), (2**64 + 5, 5)]
)
def test_other_abi_versions_are_refused(versions: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match="largest first"):
        family(*versions)


def test_the_shipped_plugins_come_first() -> None:
    assert list(compiler_names())[:2] == ["mesa", "native"]
    assert isinstance(load_compiler("mesa"), MesaCompiler)
    assert isinstance(load_compiler("native"), NativeCompiler)


def test_an_unknown_plugin_is_named_with_those_that_there_are() -> None:
    with pytest.raises(NotFoundError, match=r"no compiler plugin 'nonsense' is installed; there are: .*mesa"):
        load_compiler("nonsense")


@pytest.mark.spec("EP-53")
def test_a_plugin_from_outside_lists_its_families(kiln: Kiln) -> None:
    found = {record["family"]: record for record in kiln.records("families", "--plugin", "toy")}
    assert set(found) == {"toy-one", "toy-two"}
    assert found["toy-one"] == {
        "type": "family", "family": "toy-one", "plugin": "toy", "driver": "toy-build",
        "abi_versions": [2 << 48 | 1 << 32, 1 << 48], "abi_texts": ["2.1.0.0", "1.0.0.0"],
        "compiler_version": "toy 2.1", "application_profile_version": 3 << 32,
        "device": "Toy Device", "object_code_form": "pipeline-binary",
    }  # fmt: skip
    assert {record["family"] for record in kiln.records("families")} >= set(found)
    shown = kiln("families", "--family", "toy-two").stdout
    assert "toy-two" in shown
    assert "2.1.0.0, 1.0.0.0" in shown
    assert "toy-one" not in shown
    assert {record["family"] for record in kiln.records("families", "--family", "toy")} == {"toy-one", "toy-two"}


def test_a_family_that_is_not_there_is_an_error_that_says_why(kiln: Kiln) -> None:
    (record,) = kiln.records("families", "--family", "toy-six", code=4)
    assert (record["type"], record["code"]) == ("error", "DXGI_ERROR_NOT_FOUND")
    assert "it has toy-one and toy-two" in record["message"]
    assert "did you mean" not in record["message"]


@pytest.mark.parametrize("command", [("families",), ("compile", "game.foz"), ("replay", "game.foz")])
def test_a_mistyped_family_is_answered_with_the_one_that_it_is_like(
    kiln: Kiln, tmp_path: Path, command: tuple[str, ...]
) -> None:
    write_capture(tmp_path / "game.foz", ["code a"])
    done = kiln(*command, "-f", "amd-nvai31")
    assert done.returncode == 4
    assert re.search(r"nothing here compiles for 'amd-nvai31'; did you mean (.*, )?amd-navi31", done.stderr), done.stderr
    assert "kiln drivers add" not in done.stderr
    known = kiln(*command, "-f", "amd-navi31")
    assert known.returncode == 4
    assert "kiln drivers add" in known.stderr
    assert "did you mean" not in known.stderr


def test_a_list_is_no_family() -> None:
    with pytest.raises(InvalidArgumentError, match=r"a family is one name, such as 'amd-navi31', and not \['amd-navi31'\]"):
        open_family(["amd-navi31"], Application())  # type: ignore[arg-type]


@pytest.mark.spec("EP-53")
def test_a_plugin_from_outside_compiles_finds_and_verifies(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["code a", "code b"])
    *verdicts, summary = kiln.records("compile", capture, "--family", "toy-one", "-o", "out")
    assert {verdict["pipeline"]: verdict["outcome"] for verdict in verdicts} == {name(0): "compiled", name(1): "compiled"}
    psdb = tmp_path / "out" / "game.toy-one.psdb"
    assert (tmp_path / summary["psdb"]).samefile(psdb)
    assert len(log_lines(kiln.log, "compile")) == 2
    *verdicts, _ = kiln.records("compile", capture, "--family", "toy-one", "-o", "out")
    assert {verdict["outcome"] for verdict in verdicts} == {"reused"}
    assert len(log_lines(kiln.log, "compile")) == 2
    *verdicts, summary = kiln.records("verify", psdb, capture)
    assert {verdict["outcome"] for verdict in verdicts} == {"hit"}
    assert summary["good"]
    with Psdb.open(psdb) as database, Capture.open(capture) as source:
        assert database.identity.family == "toy-one"
        assert database.identity.abi_version == 2 << 48 | 1 << 32
        assert database.identity.application_profile_version == 3 << 32
        for number in range(2):
            key = source.object_key("compute", 0x1000 + number)
            group = database.group(key, 1)
            assert group.name == name(number)
            assert b"".join(map(database.find, group.value_keys)) == b"code of code %cpart of code" % b"ab"[number]


@pytest.mark.spec("EP-53")
def test_an_older_abi_version_can_be_chosen_and_is_another_psdb(kiln: Kiln, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "game.foz", ["code a"])
    kiln.records("compile", capture, "-f", "toy-one", "--abi", "1.0", "-o", "old.psdb")
    with Psdb.open(tmp_path / "old.psdb") as database:
        assert format_version(database.identity.abi_version) == "1.0.0.0"
    assert kiln("verify", "old.psdb", capture).returncode == 0
    refused = kiln("compile", capture, "-f", "toy-one", "-o", "old.psdb")
    assert refused.returncode == 3
    assert "old.psdb was made for or by another: differs in abi_version; use another -o, or --replace" in refused.stderr
    (record,) = kiln.records("compile", capture, "-f", "toy-one", "-o", "old.psdb", code=3)
    assert record["differences"] == [{"field": "abi_version", "stored": 1 << 48, "expected": 2 << 48 | 1 << 32}]
    unknown = kiln("compile", capture, "-f", "toy-one", "--abi", "9.0", "-o", "new.psdb")
    assert (unknown.returncode, (tmp_path / "new.psdb").exists()) == (4, False)


BROKEN = {
    "raises": ("raise ImportError('its library is missing')\n", "raises_compiler:X", "ImportError: its library is missing"),
    "lacks": ("", "lacks_compiler:Missing", "AttributeError"),
    "other": ("class X: pass\n", "other_compiler:X", "is not a shaderkiln.compilers.plugin.Compiler"),
}


@pytest.mark.parametrize("kind", list(BROKEN))
def test_a_broken_plugin_is_named_and_keeps_nobody_from_the_others(kiln: Kiln, tmp_path: Path, kind: str) -> None:
    module, target, message = BROKEN[kind]
    install(build_wheel(tmp_path, name=kind, target=target, module=module), tmp_path / "broken")
    kiln.environment["PYTHONPATH"] += f":{tmp_path / 'broken'}"
    listed = kiln("families")
    assert listed.returncode == 0
    assert "toy-one" in listed.stdout
    assert f"kiln: warning: compiler plugin {kind!r} ({target})" in listed.stderr
    assert message in listed.stderr
    asked = kiln("families", "--plugin", kind)
    assert asked.returncode == 4
    assert message in asked.stderr
    assert "Traceback" not in asked.stderr
    capture = write_capture(tmp_path / "game.foz", ["code a"])
    assert kiln("compile", capture, "-f", "toy-one", "-o", "out").returncode == 0


MISBEHAVING = """
import sys
from shaderkiln.compilers.plugin import Compiler
class X(Compiler):
    name = "odd"
    def __init__(self): START
    def adapter_families(self, **options): LIST
    def open(self, family, application, **options): OPEN
"""


@pytest.mark.parametrize(
    ("start", "listing", "opening", "message"),
    [
        ("1 / 0", "return ()", "pass", "cannot be started: ZeroDivisionError: division by zero"),
        ("pass", "return ()", "raise KeyError('odd')", "cannot open 'odd-one': KeyError: 'odd'"),
        ("pass", "return ()", "return None", "cannot open 'odd-one': TypeError: NoneType is no FamilyCompiler"),
        ("pass", "return ()", "sys.exit(0)", "cannot open 'odd-one': SystemExit: 0"),
        ("pass", "return None", "return None", "cannot list its families: TypeError"),
        ("pass", "raise ValueError", "return None", "cannot list its families: ValueError"),
    ],
)
def test_whatever_a_plugin_raises_is_an_error_with_its_name(
    kiln: Kiln, tmp_path: Path, start: str, listing: str, opening: str, message: str
) -> None:
    module = MISBEHAVING.replace("START", start).replace("LIST", listing).replace("OPEN", opening)
    install(build_wheel(tmp_path, name="odd", target="odd_compiler:X", module=module), tmp_path / "broken")
    kiln.environment["PYTHONPATH"] += f":{tmp_path / 'broken'}"
    capture = write_capture(tmp_path / "game.foz", ["code a"])
    listed = kiln("families")
    opened = kiln("compile", capture, "-f", "odd-one", "-o", "out")
    assert (listed.returncode, opened.returncode) == (0, 4)
    assert "toy-one" in listed.stdout
    assert message in (listed if "list" in message else opened).stderr
    assert "Traceback" not in listed.stderr + opened.stderr
    assert kiln("compile", capture, "-f", "toy-one", "-o", "out").returncode == 0
