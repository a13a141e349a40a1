"""The import graph: the package's own, and what the script says of trees that are wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))
from import_graph import check  # noqa: E402

TABLE = "| room | belongs in it |\n|---|---|\n| `high/` | a |\n| `low/` | b |\n| `plain.py` | c |\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package whose rooms are as its document says."""
    files = {
        "high/__init__.py": "",
        "high/one.py": "from shaderkiln.low import two\nfrom shaderkiln.plain import word\n",
        "low/__init__.py": "",
        "low/two.py": "import shaderkiln.plain\n",
        "plain.py": "word = 1\n",
    }
    for name, text in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "architecture.md").write_text(TABLE)
    return tmp_path


def faults(tree: Path) -> list[str]:
    return check(tree / "src", tree / "architecture.md")[1]


def test_the_package_is_as_its_document_says() -> None:
    rooms, found = check(ROOT / "src" / "shaderkiln", ROOT / "docs" / "architecture.md")
    assert found == []
    assert rooms["cli", "api"] > 0
    assert ("api", "cli") not in rooms


def test_a_tree_that_is_right_has_no_faults(tree: Path) -> None:
    rooms, found = check(tree / "src", tree / "architecture.md")
    assert found == []
    assert rooms == {("high", "low"): 1, ("high", "plain"): 1, ("low", "plain"): 1}


@pytest.mark.parametrize(
    "line",
    [
        "import shaderkiln.high.one",
        "from shaderkiln.high import one",
        "from ..high.one import word",
        "def later():\n    from shaderkiln.high.one import word",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shaderkiln.high.one import word",
        'NAME = "shaderkiln.high.one"',
        'ENTRY = "shaderkiln.high.one:word"',
    ],
)
def test_an_import_that_goes_up_is_named(tree: Path, line: str) -> None:
    (tree / "src/low/three.py").write_text(line + "\n")
    assert "low.three imports high.one: high is not below low" in faults(tree)
    assert "a circle of rooms: high, low" in faults(tree)


def test_an_exception_with_a_reason_lets_one_import_through(tree: Path) -> None:
    (tree / "src/low/three.py").write_text("from shaderkiln.high.one import word\n")
    document = tree / "architecture.md"
    document.write_text(TABLE + "\n- `low.three` → `high.one`: \n")
    assert "low.three imports high.one: high is not below low" in faults(tree)
    document.write_text(TABLE + "\n- `low.three` → `high.one`: it is told so\n")
    assert faults(tree) == []
    (tree / "src/low/four.py").write_text("from shaderkiln.high.one import word\n")
    assert "low.four imports high.one: high is not below low" in faults(tree)


def test_an_exception_that_is_no_import_is_named(tree: Path) -> None:
    (tree / "architecture.md").write_text(TABLE + "\n- `low.two` → `high.one`: it was once\n")
    assert faults(tree) == ["the document excepts low.two → high.one, which is no import"]


def test_a_circle_of_files_in_a_room_is_named(tree: Path) -> None:
    (tree / "src/low/a.py").write_text("from shaderkiln.low.b import x\n")
    (tree / "src/low/b.py").write_text("from .c import x\n")
    (tree / "src/low/c.py").write_text("def f():\n    from . import a\n")
    assert faults(tree) == ["a circle of files: low.a, low.b, low.c"]


def test_rooms_and_rows_without_each_other_are_named(tree: Path) -> None:
    (tree / "src/new.py").write_text("")
    (tree / "architecture.md").write_text(TABLE + "| `gone/` | d |\n")
    assert faults(tree) == ["new is in no row of the table of rooms", "the table of rooms has gone, which is not there"]
