"""Records of runs that left nothing to do: taken only where every file is as it was."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from shaderkiln.cache_files import read_cached, write_cached
from shaderkiln.file_facts import facts_of
from shaderkiln.jobs.unchanged import find_record, keep_record

PACKAGE = "a.py 1 2 3 4 5"
QUESTION = ["game.foz", "amd-navi31"]
SHOWN = {"lines": ["a"], "good": True}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    return path


def records(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache").rglob("*.json"))


def test_what_was_shown_is_found_again(file: Path, environment: dict[str, str]) -> None:
    assert find_record(QUESTION, PACKAGE, environment) is None
    keep_record(QUESTION, PACKAGE, {}, [str(file)], SHOWN, environment)
    assert find_record(QUESTION, PACKAGE, environment) == SHOWN
    assert find_record([*QUESTION, "more"], PACKAGE, environment) is None
    assert find_record(QUESTION[::-1], PACKAGE, environment) is None


def test_a_changed_file_is_noticed_even_with_its_old_size_and_time(file: Path, environment: dict[str, str]) -> None:
    keep_record(QUESTION, PACKAGE, {}, [str(file)], SHOWN, environment)
    before = file.stat()
    with file.open("r+b") as stream:
        stream.write(b"C")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert find_record(QUESTION, PACKAGE, environment) is None


def test_a_replaced_or_missing_file_is_noticed(file: Path, environment: dict[str, str]) -> None:
    keep_record(QUESTION, PACKAGE, {}, [str(file)], SHOWN, environment)
    (file.parent / "other").write_bytes(b"content")
    (file.parent / "other").replace(file)
    assert find_record(QUESTION, PACKAGE, environment) is None
    keep_record(QUESTION, PACKAGE, {}, [str(file)], SHOWN, environment)
    file.unlink()
    assert find_record(QUESTION, PACKAGE, environment) is None


def test_an_input_counts_as_it_was_before_it_was_read(file: Path, environment: dict[str, str]) -> None:
    inputs = {str(file): facts_of(str(file))}
    with file.open("ab") as stream:
        stream.write(b" that grew during the run")
    keep_record(QUESTION, PACKAGE, inputs, [], SHOWN, environment)
    assert find_record(QUESTION, PACKAGE, environment) is None


def test_changed_code_is_noticed_and_unknown_code_is_never_taken(
    file: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    keep_record(QUESTION, PACKAGE, {}, [str(file)], SHOWN, environment)
    assert find_record(QUESTION, PACKAGE + "\nb.py 1 2 3 4 5", environment) is None
    assert find_record(QUESTION, "a.py 1 2 9 4 5", environment) is None
    assert find_record(QUESTION, "", environment) is None
    keep_record(QUESTION, "another", {}, [str(file)], SHOWN, environment)
    assert find_record(QUESTION, PACKAGE, environment) is None
    assert len(records(tmp_path)) == 1
    keep_record([*QUESTION, "more"], "", {}, [str(file)], SHOWN, environment)
    assert len(records(tmp_path)) == 1


def test_nothing_is_kept_about_files_that_are_not_there(file: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    keep_record(QUESTION, PACKAGE, {}, [str(file), str(tmp_path / "missing")], SHOWN, environment)
    keep_record(QUESTION, PACKAGE, {str(tmp_path / "missing"): None}, [str(file)], SHOWN, environment)
    assert not records(tmp_path)


def test_a_record_too_large_is_not_kept(file: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    keep_record(QUESTION, PACKAGE, {}, [str(file)], {"lines": ["x" * 2_000_000]}, environment)
    assert not records(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"no JSON", b"[]", b"{}", b"null", b"[" * 100_000, b'{"question":1,"files":{},"shown":{}}', b"\xff", b"9" * 5_000],
)
def test_a_damaged_record_is_none(file: Path, tmp_path: Path, environment: dict[str, str], content: bytes) -> None:
    keep_record(QUESTION, PACKAGE, {}, [str(file)], SHOWN, environment)
    (record,) = records(tmp_path)
    record.write_bytes(content)
    assert find_record(QUESTION, PACKAGE, environment) is None
    write_cached(record, content)
    assert find_record(QUESTION, PACKAGE, environment) is None


@pytest.mark.parametrize(("field", "value"), [("files", []), ("files", 3), ("shown", []), ("shown", None), ("question", [])])
def test_a_record_of_other_types_is_none(
    file: Path, tmp_path: Path, environment: dict[str, str], field: str, value: object
) -> None:
    keep_record(QUESTION, PACKAGE, {}, [str(file)], SHOWN, environment)
    (record,) = records(tmp_path)
    kept = read_cached(record, 1 << 20)
    assert kept is not None
    write_cached(record, json.dumps(json.loads(kept) | {field: value}).encode())
    assert find_record(QUESTION, PACKAGE, environment) is None


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(file: Path, tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(file)}
    keep_record(QUESTION, PACKAGE, {}, [str(file)], SHOWN, environment)
    assert find_record(QUESTION, PACKAGE, environment) is None


def test_no_temporary_file_is_left(file: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    for _ in range(3):
        keep_record(QUESTION, PACKAGE, {}, [str(file)], SHOWN, environment)
    assert [path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [".json"]


def test_odd_names_are_a_question_like_any_other(file: Path, environment: dict[str, str]) -> None:
    question = [os.fsdecode(b"\xff.foz"), "x"]
    keep_record(question, PACKAGE, {}, [str(file)], SHOWN, environment)
    assert find_record(question, PACKAGE, environment) == SHOWN


def test_another_folder_of_driver_packages_is_another_question(file: Path, environment: dict[str, str]) -> None:
    keep_record(QUESTION, PACKAGE, {}, [str(file)], SHOWN, environment)
    assert find_record(QUESTION, PACKAGE, environment | {"XDG_DATA_HOME": "/elsewhere"}) is None
    assert find_record(QUESTION, PACKAGE, environment | {"HOME": "/elsewhere"}) is None
