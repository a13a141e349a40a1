"""Undoing what was begun where something fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

_P = ParamSpec("_P")


@contextmanager
def on_error(undo: Callable[_P, object], *arguments: _P.args, **named: _P.kwargs) -> Iterator[None]:
    """Calls ``undo`` where the block is left by an exception."""
    try:
        yield
    except BaseException:
        undo(*arguments, **named)
        raise
