"""The generated C definitions, for code that a type checker reads: it cannot see the members of C structures."""

from __future__ import annotations

from typing import Any

from shaderkiln.vulkan_registry._vulkan import ffi as _ffi

ffi: Any = _ffi
"""cffi's entry to every type of the Vulkan API that the worker needs."""


def new(c_name: str, structure_type: int, **members: Any) -> Any:
    """A structure of that name with its sType and these members; what they point to must be kept alive besides."""
    return ffi.new(f"{c_name} *", {"sType": structure_type, **members})


def text(characters: Any) -> str:
    """A C string as text, whatever bytes it has."""
    data: bytes = ffi.string(characters)
    return data.decode("utf-8", "replace")
