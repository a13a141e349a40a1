"""SQLite files: their headers, and the locks that another process sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from shaderkiln.databases.sodb_schema import FORM as SODB
from shaderkiln.databases.sqlite_file import EmptyFileError, FileForm, read_header
from shaderkiln.errors import CacheCorruptError, NotFoundError, UnreadableError

FORM = FileForm("thing", 0x01020304, 7, "; do this")
TAKES_THE_LOCK = """
import sys, apsw
try:
    apsw.Connection(sys.argv[1]).execute("BEGIN IMMEDIATE")
    print("taken")
except apsw.BusyError:
    print("busy")
"""


def made(path: Path, *, application_id: int = 0x01020304, version: int = 7) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA application_id = {application_id}; PRAGMA user_version = {version}; CREATE TABLE t (x)")
    return connection


def test_a_header_says_what_the_file_is(tmp_path: Path) -> None:
    made(tmp_path / "a").close()
    header = read_header(tmp_path / "a", FORM)
    assert (header.size, header.is_wal, header.is_rollback, header.page_size, header.pages) == (8192, False, True, 4096, 2)


def test_reading_a_header_frees_no_lock_of_this_process(tmp_path: Path) -> None:
    path = tmp_path / "a"
    connection = made(path)
    connection.execute("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
    command = [sys.executable, "-c", TAKES_THE_LOCK, str(path)]
    for _ in range(2):
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "busy\n"
        read_header(path, FORM)
    connection.execute("COMMIT")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "taken\n"


@pytest.mark.spec("AL-02")
def test_what_is_no_such_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(NotFoundError):
        read_header(path, FORM)
    path.write_bytes(b"")
    with pytest.raises(EmptyFileError, match="it is empty"):
        read_header(path, FORM)
    path.write_bytes(b"SQLite format 3\0")
    with pytest.raises(CacheCorruptError, match="not a thing; do this"):
        read_header(path, FORM)
    path.unlink()
    made(path, application_id=5).close()
    with pytest.raises(CacheCorruptError, match=r"not a thing \(application id 0x00000005\); do this"):
        read_header(path, FORM)
    made(tmp_path / "b", version=8).close()
    with pytest.raises(CacheCorruptError, match="a thing of format version 8, this program reads 7"):
        read_header(tmp_path / "b", FORM)
    with pytest.raises(CacheCorruptError, match="state object database"):
        read_header(path, SODB)
    with pytest.raises(UnreadableError):
        read_header(path / "below", FORM)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(UnreadableError):
        read_header(tmp_path / "loop", FORM)
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(CacheCorruptError, match="not a file"):
            read_header(other, FORM)
