"""Closing what was opened, at the end of a block or where something fails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, Self

_P = ParamSpec("_P")


@contextmanager
def on_error(undo: Callable[_P, object], *arguments: _P.args, **named: _P.kwargs) -> Iterator[None]:
    """Calls ``undo`` where the block is left by an exception."""
    try:
        yield
    except BaseException:
        undo(*arguments, **named)
        raise


class Closing(ABC):
    """What a ``with`` statement closes."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held; may be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
