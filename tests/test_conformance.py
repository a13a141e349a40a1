"""The statements of docs/conformance.md, the code that cites them and the tests that claim them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORIGIN = ROOT.parent / "shared" / "spec" / "conformance.md"
"""The file that the statements were taken from; a clone alone does not have it."""

NOT_YET = {"SP-01", "SP-02", "SP-03", "SP-04"}
"""Statements that no test claims yet."""

STATEMENT = re.compile(r"^- ([A-Z]{2}-\d\d) (.+)$", re.MULTILINE)
NUMBER = re.compile(r"\b((?:EP|VC|PL|XS|AL|SP)-\d\d)\b")


def statements(path: Path) -> list[tuple[str, str]]:
    return STATEMENT.findall(path.read_text())


def claimed() -> dict[str, set[str]]:
    """The numbers in ``mark.spec`` of the tests, with the files."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("*.py"):
        for marker in re.findall(r"mark\.spec\(([^)]*)\)", path.read_text()):
            for number in re.findall(r"[A-Z]{2}-\d\d", marker):
                found.setdefault(number, set()).add(str(path.relative_to(ROOT)))
    return found


LISTED = statements(ROOT / "docs" / "conformance.md")


def test_numbers_are_unique_and_without_gaps() -> None:
    numbers = [number for number, _ in LISTED]
    assert len(numbers) == len(set(numbers))
    for group in {number[:2] for number in numbers}:
        own = [int(number[3:]) for number in numbers if number.startswith(group)]
        assert own == list(range(1, len(own) + 1)), group


def test_every_statement_is_read() -> None:
    """A line that begins with a number and is not written as a statement would be missed by all that follows."""
    text = (ROOT / "docs" / "conformance.md").read_text()
    assert re.findall(r"^[-*\s]*([A-Z]{2}-\d\d)\b", text, re.MULTILINE) == [number for number, _ in LISTED]
    assert len(LISTED) > 90


@pytest.mark.skipif(not ORIGIN.exists(), reason="the origin of the statements is not beside this clone")
def test_the_statements_are_those_of_their_origin() -> None:
    assert statements(ORIGIN) == LISTED


def test_what_the_code_and_the_documents_cite_is_there() -> None:
    numbers = dict(LISTED)
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    cited = {(str(path.relative_to(ROOT)), number) for path in files for number in NUMBER.findall(path.read_text())}
    assert len(cited) > 30
    assert {(name, number) for name, number in cited if number not in numbers} == set()


def test_every_statement_has_a_test_and_every_marker_a_statement() -> None:
    tests = claimed()
    numbers = dict(LISTED)
    assert {number: files for number, files in tests.items() if number not in numbers} == {}
    assert {number for number in numbers if number not in tests} == NOT_YET
