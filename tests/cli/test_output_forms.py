"""Forms of output: what people read, what programs read, and that a further form needs a class and a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from shaderkiln.cli import output
from shaderkiln.cli.output import HumanOutput, JsonOutput, Output, Shown, Table, output_of

RECORD = {"type": "thing", "name": "a", "path": Path("b")}
TABLE = Table("", ["name", "size"], [["a", "1"]], right=(1,))


def show(out: Output) -> None:
    out.record(RECORD, "a thing\x1b", "and more of it")
    out.people("a remark", TABLE)


def test_people_read_lines_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    show(HumanOutput())
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == ["a thing\ufffd", "and more of it", "a remark"]
    assert "name   size" in lines
    assert "a         1" in lines


def test_programs_read_records_only(capsys: pytest.CaptureFixture[str]) -> None:
    show(JsonOutput())
    assert capsys.readouterr().out == '{"type":"thing","name":"a","path":"b"}\n'


class Names:
    """Shows nothing but the names of records."""

    for_people = False

    def record(self, record: dict[str, Any], *shown: Shown) -> None:
        click.echo(record["name"])

    def people(self, *shown: Shown) -> None:
        pass


def test_a_further_form_is_a_class_and_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(output.FORMS, "names", (Names, "Write names."))

    @click.command()
    @output.output_option
    def command(out: Output) -> None:
        show(out)

    def shown(*arguments: str) -> str:
        result = CliRunner().invoke(command, arguments)
        assert result.exit_code == 0, result.output
        return result.output

    assert shown("--names") == "a\n"
    assert shown("--json").startswith('{"type":"thing"')
    assert shown().startswith("a thing")
    assert "--names  Write names." in shown("--help")
    assert isinstance(output_of(["show", "x.foz", "--names"]), Names)
    assert isinstance(output_of(["show", "x.foz"]), HumanOutput)
