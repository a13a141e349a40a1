"""Files in the user's cache folder: whole, or not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shaderkiln.cache_files import cache_folder, read_cached, write_cached


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    write_cached(path, b"some bytes")
    assert read_cached(path, 10) == b"some bytes"
    assert read_cached(path, 9) is None
    write_cached(path, b"")
    assert read_cached(path, 10) == b""
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_no_flipped_bit_and_no_truncation_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_cached(path, b"some bytes")
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert read_cached(path, 100) is None, bit
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert read_cached(path, 100) is None, length


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing", Path("/dev/zero"), tmp_path / "nul\0"):
        assert read_cached(path, 100) is None


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    write_cached(tmp_path / "file" / "a", b"x")
    (tmp_path / "folder" / "taken" / "full").mkdir(parents=True)
    write_cached(tmp_path / "folder" / "taken", b"x")
    assert [entry.name for entry in (tmp_path / "folder").iterdir()] == ["taken"]
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/shaderkiln"),
        ({"XDG_CACHE_HOME": "c", "HOME": "/h"}, "/h/.cache/shaderkiln"),
        ({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/shaderkiln"),
        ({"HOME": "h"}, None),
    ],
)
def test_the_folder(environment: dict[str, str], folder: str | None) -> None:
    assert cache_folder(environment) == (folder and Path(folder))


def test_a_user_without_home_has_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does for a user whom nobody knows
    assert cache_folder({}) is None
