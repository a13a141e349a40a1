"""Locks on files, between descriptors that were opened apart: as different processes have them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from shaderkiln.system.locks import free_lock, open_lock, take_lock


def test_one_holder_alone_or_several_together(tmp_path: Path) -> None:
    first, second, third = (open_lock(tmp_path / "lock") for _ in range(3))
    try:
        assert take_lock(first)
        assert not take_lock(second)
        assert not take_lock(second, shared=True)
        assert take_lock(first, shared=True, wait=True)
        assert take_lock(second, shared=True)
        assert not take_lock(third)
        assert not take_lock(first), "another one shares it"
        free_lock(second)
        assert take_lock(third, shared=True)
    finally:
        for descriptor in (first, second, third):
            os.close(descriptor)


def test_a_closed_descriptor_holds_nothing(tmp_path: Path) -> None:
    first, second = open_lock(tmp_path / "lock"), open_lock(tmp_path / "lock")
    assert take_lock(first)
    os.close(first)
    assert take_lock(second)
    os.close(second)


def test_a_private_file_is_this_users_and_no_link(tmp_path: Path) -> None:
    os.close(open_lock(tmp_path / "lock", private=True))
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "lock")
    with pytest.raises(OSError, match="link"):
        open_lock(tmp_path / "link", private=True)
