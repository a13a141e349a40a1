from __future__ import annotations

import pytest

from shaderkiln.closing import Closing, on_error


def test_what_was_begun_is_undone_only_where_the_block_fails() -> None:
    undone: list[object] = []
    with on_error(undone.append, "kept"):
        pass
    assert undone == []
    with pytest.raises(KeyboardInterrupt), on_error(undone.append, "dropped"):
        raise KeyboardInterrupt
    assert undone == ["dropped"]


@pytest.mark.parametrize("fails", [False, True])
def test_the_end_of_a_block_closes(fails: bool) -> None:
    class Door(Closing):
        is_open = True

        def close(self) -> None:
            self.is_open = False

    door = Door()
    try:
        with door as same:
            assert same is door and door.is_open
            if fails:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert not door.is_open
