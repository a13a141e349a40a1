"""The generated C definitions, for code that a type checker reads: it cannot see the members of C structures."""

from typing import Any

from shaderkiln.vulkan_registry._vulkan import ffi as _ffi

ffi: Any = _ffi
"""cffi's entry to every type of the Vulkan API that the worker needs."""
