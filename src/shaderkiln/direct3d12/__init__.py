"""Direct3D 12 names for a Python programmer: ``import shaderkiln.direct3d12 as d3d12``.

The names of this package are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shaderkiln.direct3d12.application import ApplicationDesc, application_identity, set_application_identity

_HOMES = {
    "ApplicationDesc": "shaderkiln.direct3d12.application",
    "application_identity": "shaderkiln.direct3d12.application",
    "set_application_identity": "shaderkiln.direct3d12.application",
}

__all__ = ["ApplicationDesc", "application_identity", "set_application_identity"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
