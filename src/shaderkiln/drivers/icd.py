"""Loads a driver's shared object directly, as the Vulkan loader would, and finds its commands by name.

There is no loader in between: no layers, no other drivers, nothing but the file that was asked for. The interface is the one
that the loader's own documentation gives drivers (LoaderDriverInterface), whose two functions every Linux driver exports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shaderkiln.drivers.bindings import ffi
from shaderkiln.errors import DriverError

LOADER_INTERFACE_VERSION = 5
"""The first version that lets an application ask for any API version; newer ones only concern window systems."""


class Commands:
    """The commands of an instance or a device, as attributes: found by name once, then called like functions.

    Where a command is not there under its own name, the name with ``KHR`` is tried. A command that the driver lacks raises
    ``DriverError`` with code ``VK_ERROR_EXTENSION_NOT_PRESENT``.
    """

    def __init__(self, find: Callable[[bytes], Any]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> Any:
        address = self._find(name.encode())
        if not address:
            address = self._find(name.encode() + b"KHR")
        if not address:
            raise DriverError(f"the driver has no command {name}", code="VK_ERROR_EXTENSION_NOT_PRESENT")
        function = ffi.cast(f"PFN_{name}", address)
        setattr(self, name, function)
        return function


_loaded: list[Any] = []


class Driver:
    """A driver in this process, before any instance exists. It stays loaded until the process ends."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ffi.dlopen(path, ffi.RTLD_NOW | ffi.RTLD_LOCAL)
        except OSError as error:
            raise DriverError(f"cannot load the driver {path}: {error}", code="VK_ERROR_INITIALIZATION_FAILED") from error
        try:
            negotiate = self._library.vk_icdNegotiateLoaderICDInterfaceVersion
            self._get = self._library.vk_icdGetInstanceProcAddr
        except (AttributeError, ffi.error) as error:
            raise DriverError(f"{path} is not a Vulkan driver: {error}", code="VK_ERROR_INCOMPATIBLE_DRIVER") from error
        _loaded.append(self._library)
        version = ffi.new("uint32_t *", LOADER_INTERFACE_VERSION)
        if (result := negotiate(version)) != 0:
            raise DriverError(f"{path} refuses the loader interface (VkResult {result})", code="VK_ERROR_INCOMPATIBLE_DRIVER")

    def commands(self, instance: Any = ffi.NULL) -> Commands:
        """The commands of ``instance``, or the few that need none."""
        get = self._get
        return Commands(lambda name: get(instance, name))
