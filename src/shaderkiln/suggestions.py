"""What somebody may have meant who mistyped a name."""

from __future__ import annotations

from collections.abc import Iterable


def close_to(word: str, words: Iterable[str]) -> str:
    """Those of the words that are nearly this one, at most three, the nearest first: ``a, b or c``; empty if none is."""
    from difflib import get_close_matches

    found = get_close_matches(word[:256], list(words), 3, 0.7)
    return " or ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))
