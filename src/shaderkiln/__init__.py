"""Shaderkiln: shaders compiled before people play."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shaderkiln.api import compile_capture, inspect_pipeline, open_capture, open_psdb, verify_psdb

__version__ = "0.1.0"

__all__ = ["compile_capture", "inspect_pipeline", "open_capture", "open_psdb", "verify_psdb"]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def __getattr__(name: str) -> Any:
    # Importing the package stays cheap: every process of a job does it.
    if name in __all__:
        from shaderkiln import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
