"""The command line as a whole: help, exit codes, errors that say what to do, JSON lines."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from job_support import name, write_capture
from toy_plugin import Kiln

from shaderkiln.cli import main
from shaderkiln.cli.main import COMMANDS
from shaderkiln.cli.main import kiln as kiln_group
from shaderkiln.cli.output import size_text, time_text


def commands() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [()]
    context = click.Context(kiln_group)
    for command in COMMANDS:
        found.append((command,))
        group = kiln_group.get_command(context, command)
        if isinstance(group, click.Group):
            found += [(command, inner) for inner in group.list_commands(context)]
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_help_has_an_example_that_is_a_command_of_its_own(command: tuple[str, ...]) -> None:
    done = CliRunner().invoke(kiln_group, [*command, "--help"], prog_name="kiln")
    assert done.exit_code == 0
    examples = re.findall(r"^ +(kiln .*)$", done.output.split("Example:", 1)[1], re.MULTILINE)
    assert examples
    if command and command != ("list",):
        assert all(example.startswith(" ".join(("kiln", *command))) for example in examples)
    for example in examples:
        inner = CliRunner().invoke(kiln_group, [example.split()[1], "--help"], prog_name="kiln")
        assert inner.exit_code == 0


def test_the_help_names_every_exit_code() -> None:
    output = CliRunner().invoke(kiln_group, ["--help"], prog_name="kiln").output
    assert re.findall(r"^ {4}(\d+) ", output.split("Exit codes:")[1], re.MULTILINE) == ["0", "1", "2", "3", "4", "5", "130"]


def test_no_command_shows_the_help_and_is_no_success(kiln: Kiln) -> None:
    done = kiln()
    assert done.returncode == 2
    assert "Commands:" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_the_version(kiln: Kiln) -> None:
    done = kiln("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"kiln, version \d+\.\d+\S*\n", done.stdout)


def make_inputs(folder: Path) -> None:
    write_capture(folder / "game.foz", ["code a", "code b"])
    (folder / "empty.foz").touch()
    (folder / "empty.psdb").touch()
    (folder / "text.foz").write_text("no archive")
    (folder / "text.psdb").write_text("no database" * 100)
    (folder / "folder.foz").mkdir()
    (folder / "folder.psdb").mkdir()


PROBLEMS = [
    # what is wrong with an input: 3
    (3, "no such file", ("compile", "missing.foz", "-f", "toy-one")),
    (3, "no such file", ("show", "missing.foz")),
    (3, "no such file", ("show", "missing.psdb")),
    (3, "no such file", ("verify", "missing.psdb", "game.foz")),
    (3, "no such file", ("verify", "good.psdb", "missing.foz")),
    (3, "no such file", ("isa", "missing.psdb", "00")),
    (3, "no such file", ("merge", "missing.foz", "game.foz", "-o", "new.foz")),
    (3, "no such file", ("salvage", "missing.foz", "-o", "new.foz")),
    (3, "folder.foz", ("compile", "folder.foz", "-f", "toy-one")),
    (3, "not a regular file", ("show", "folder.foz")),
    (3, "folder.psdb", ("verify", "folder.psdb", "game.foz")),
    (3, "not a regular file", ("merge", "folder.foz", "-o", "new.foz")),
    (3, "empty.foz", ("compile", "empty.foz", "-f", "toy-one")),
    (3, "empty.foz", ("show", "empty.foz")),
    (3, "empty.psdb", ("show", "empty.psdb")),
    (3, "empty.psdb", ("verify", "empty.psdb", "game.foz")),
    (3, "empty.foz", ("salvage", "empty.foz", "-o", "new.foz")),
    (3, "text.foz", ("compile", "text.foz", "-f", "toy-one")),
    (3, "text.psdb", ("verify", "text.psdb", "game.foz")),
    (3, "that is a capture; the order is PSDB CAPTURE", ("verify", "game.foz", "good.psdb")),
    (3, "that is a capture; the order is PSDB PIPELINE", ("isa", "game.foz", "good.psdb")),
    (3, "no compiler plugin 'no' is installed; there are: ", ("compile", "game.foz", "-f", "toy-one", "--plugin", "no")),
    (3, "begins with 'feed'", ("isa", "good.psdb", "feed", "-c", "game.foz")),
    # no such family: 4
    (4, "add one with `kiln drivers add", ("compile", "game.foz", "-f", "amd-navi31")),
    (4, "it has toy-one and toy-two", ("compile", "game.foz", "-f", "toy-six", "--plugin", "toy")),
    (4, "kiln drivers add", ("families", "--family", "nonsense")),
    # the command line: 2
    (2, "nan is no number of seconds", ("compile", "game.foz", "-f", "toy-one", "--time-limit", "nan")),
    (2, "Missing option", ("compile", "game.foz")),
    (2, "No such command", ("bake",)),
    (2, "Did you mean compile?", ("complie", "game.foz")),
    (2, "Did you mean remove?", ("drivers", "remov", "x")),
    (2, "OUTPUT_FILE, the second argument, is one *.psdb file", ("compile", "game.foz", "other.foz", "-f", "toy-one")),
    (2, "A second family? Repeat --family", ("compile", "game.foz", "-f", "toy-one", "toy-two")),
    (2, "is one *.psdb file", ("compile", "game.foz", "folder.psdb", "-f", "toy-one")),
    (2, "has an empty name", ("compile", "game.foz", "-f", "toy-one,")),
    (2, "the output once", ("compile", "game.foz", "a.psdb", "-f", "toy-one", "-o", "b.psdb")),
    (2, "is no version", ("compile", "game.foz", "-f", "toy-one", "--app-version", "one")),
    (2, "is no version", ("compile", "game.foz", "-f", "toy-one", "--abi", "x")),
    (2, "--name must not be empty", ("compile", "game.foz", "-f", "toy-one", "--name", "")),
    (2, "is no size", ("compile", "game.foz", "-f", "toy-one", "--memory-limit", "much")),
    (2, "-j", ("compile", "game.foz", "-f", "toy-one", "-j", "0")),
    (2, "is also an input", ("merge", "game.foz", "-o", "game.foz")),
    (2, "is also an input", ("salvage", "game.foz", "-o", "game.foz")),
    (2, "name it with --capture", ("isa", "alone.psdb", "00")),
    # the output: 5
    (5, "text.foz", ("compile", "game.foz", "-f", "toy-one", "-o", "text.foz/out")),
    (5, "text.foz", ("compile", "game.foz", "-f", "toy-one", "-o", "text.foz")),
    (5, "none/report", ("compile", "game.foz", "-f", "toy-one", "--report", "none/report.jsonl")),
    (5, "none/new.foz", ("merge", "game.foz", "-o", "none/new.foz")),
    (5, "good.psdb is there already", ("merge", "game.foz", "-o", "good.psdb")),
    (5, "folder.foz", ("salvage", "game.foz", "-o", "folder.foz")),
]  # fmt: skip


@pytest.fixture(scope="module")
def shared(toy_site: Path, tmp_path_factory: pytest.TempPathFactory) -> Kiln:
    """A folder with good and bad inputs, which no test changes."""
    folder = tmp_path_factory.mktemp("inputs")
    make_inputs(folder)
    kiln = Kiln(toy_site, folder)
    assert kiln("compile", "game.foz", "-f", "toy-one", "-o", "good.psdb").returncode == 0
    (folder / "alone.psdb").write_bytes((folder / "good.psdb").read_bytes())
    return kiln


@pytest.mark.parametrize(
    ("code", "text", "arguments"), PROBLEMS, ids=lambda value: " ".join(value) if type(value) is tuple else None
)
def test_errors_say_what_is_wrong(shared: Kiln, code: int, text: str, arguments: tuple[str, ...]) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in shared.folder.iterdir() if path.is_file()}
    done = shared(*arguments)
    assert done.returncode == code, done
    assert text in done.stderr, done
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    if code > 2:
        assert re.fullmatch(r"kiln: error: .* \[[A-Z_]+\]\n|no family .*\n", done.stderr)
    assert {path.name: path.stat().st_mtime_ns for path in shared.folder.iterdir() if path.is_file()} == before


def test_errors_are_json_lines_for_programs(shared: Kiln) -> None:
    (record,) = shared.records("show", "missing.foz", code=3)
    assert record == {"type": "error", "code": "DXGI_ERROR_NOT_FOUND", "message": "missing.foz: no such file"}


def test_usage_errors_are_json_lines_for_programs(shared: Kiln) -> None:
    (record,) = shared.records("bake", code=2)
    assert record == {"type": "error", "code": "E_INVALIDARG", "message": "No such command 'bake'."}
    (record,) = shared.records("compile", "game.foz", code=2)
    assert record["message"].startswith("Missing option")


def test_a_data_folder_that_cannot_be_made(shared: Kiln, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {"XDG_DATA_HOME": str(tmp_path / "file")}
    added = shared("drivers", "add", "mesa-backports", environment=environment)
    assert added.returncode == 5, added
    assert "cannot be written to: Not a directory" in added.stderr
    assert shared("families", "-f", "amd-navi31", environment=environment).returncode == 4


JSON_COMMANDS = {
    ("show", "game.foz", "--pipelines"): ["capture"],  # its shaders are no SPIR-V
    ("show", "good.psdb", "--pipelines", "--values"): ["pipeline"] * 2 + ["value"] * 3 + ["psdb"],
    ("verify", "good.psdb", "game.foz"): ["verdict", "verdict", "summary"],
    ("replay", "game.foz", "-f", "toy-one"): ["verdict", "verdict", "summary"],
    ("isa", "good.psdb", name(0), "-c", "game.foz"): ["isa"],
    ("families", "--plugin", "toy"): ["family", "family"],
    ("list", "--plugin", "toy"): ["family", "family"],
    ("drivers", "list"): ["driver"],
    ("merge", "game.foz", "game.foz", "-o", "/dev/shm/never"): ["ledger", "ledger", "summary"],
}


@pytest.mark.parametrize("arguments", list(JSON_COMMANDS), ids=" ".join)
def test_json_output_is_one_typed_object_a_line(shared: Kiln, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    given = [str(tmp_path / "new.foz") if argument.startswith("/dev") else argument for argument in arguments]
    done = shared(*given, "--json")
    assert done.returncode == 0, done
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["type"] for record in records] == JSON_COMMANDS[arguments]
    assert done.stderr == ""


def test_nothing_that_is_not_needed_is_imported_at_the_start(shared: Kiln) -> None:
    done = shared("--version", environment={"PYTHONPROFILEIMPORTTIME": "1"})
    assert done.returncode == 0
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "shaderkiln.cli.main" in imported or "shaderkiln.cli.output" in imported
    assert not imported & {"rich", "apsw", "cffi", "shaderkiln.jobs.compile", "shaderkiln.vulkan_registry.structures"}


def test_figures_for_people() -> None:
    assert [size_text(size) for size in (0, 999, 1000, 12_345, 5_000_000, 7.2e12)] == [
        "0 B", "999 B", "1.0 KB", "12.3 KB", "5.0 MB", "7200.0 GB",
    ]  # fmt: skip
    assert [time_text(seconds) for seconds in (0.004, 9.994, 42.4, 3725)] == ["0.00 s", "9.99 s", "42 s", "62 min 05 s"]


def test_paths_with_odd_names_pass_through(shared: Kiln, tmp_path: Path) -> None:
    odd = tmp_path / "spiel ü 'x' [bold].foz"
    odd.write_bytes((shared.folder / "game.foz").read_bytes())
    assert shared("compile", odd, "-f", "toy-one", "-o", tmp_path).returncode == 0
    psdb = tmp_path / "spiel ü 'x' [bold].toy-one.psdb"
    shown = shared("show", psdb)
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"{psdb}: PSDB, format 1")
    strange = os.fsencode(tmp_path) + b"/\xff\xfe.foz"
    Path(os.fsdecode(strange)).write_bytes(odd.read_bytes())
    for encoding in ("utf-8:surrogateescape", "utf-8:strict", "ascii:strict"):
        for arguments in (("show", os.fsdecode(strange)), ("show", os.fsdecode(strange), "--json")):
            done = shared(*arguments, environment={"PYTHONIOENCODING": encoding})
            assert done.returncode == 0, done
            assert ".foz" in done.stdout
        done = shared("compile", "game.foz", "-f", "toy-one", "-o", tmp_path, environment={"PYTHONIOENCODING": encoding})
        assert done.returncode == 0, done
        report = tmp_path / "report.jsonl"
        arguments = ("compile", os.fsdecode(strange), "-f", "toy-one", "-o", tmp_path, "--report", report)
        assert shared(*arguments, environment={"PYTHONIOENCODING": encoding}).returncode == 0


@pytest.mark.parametrize(("leaving", "code", "said"), [(None, 0, ""), (0, 0, ""), (4, 4, ""), ("why not", 1, "why not\n")])
def test_whoever_leaves_with_a_text_has_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], leaving: int | str | None, code: int, said: str
) -> None:
    def leave(*_: object, **__: object) -> None:
        raise SystemExit(leaving)

    monkeypatch.setattr(main.kiln, "main", leave)
    assert main.run([]) == code
    assert capsys.readouterr().err == said
