"""Switching kinds of cache off and on, and clearing them, in developer mode (EP-46 to EP-48)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from enum import IntFlag
from typing import Protocol
from weakref import WeakSet

from ..errors import InvalidArgumentError, NotCurrentlyAvailableError


class CacheKindFlags(IntFlag):
    """D3D12_SHADER_CACHE_KIND_FLAGS."""

    IMPLICIT_D3D_CACHE_FOR_DRIVER = 1
    IMPLICIT_D3D_CONVERSIONS = 2
    IMPLICIT_DRIVER_MANAGED = 4
    APPLICATION_MANAGED = 8
    """MEMORY, DISK and FILE sessions, a FILE session also where it is an explicit PSDB."""
    PSDB = 0x10
    """The default PSDB and REGISTERED sessions, also those attached to objects."""


class CacheControlFlags(IntFlag):
    """D3D12_SHADER_CACHE_CONTROL_FLAGS."""

    DISABLE = 1
    ENABLE = 2
    CLEAR = 4


_ALL_KINDS = sum(CacheKindFlags)
_ALL_CONTROLS = sum(CacheControlFlags)


class Controlled(Protocol):
    """What a control switches: a session, or a cache of the device."""

    @property
    def cache_kind(self) -> CacheKindFlags: ...

    def set_enabled(self, enabled: bool) -> None: ...

    def clear_by_control(self) -> None: ...


class ShaderCacheControl:
    """Which kinds of cache are enabled, for one process. May be used by several threads."""

    def __init__(self, *, developer_mode: bool = False) -> None:
        self.developer_mode = developer_mode
        """Whether ``control`` may be used; ``process_control`` starts with it if SHADERKILN_DEVELOPER_MODE is ``1``."""
        self._disabled = CacheKindFlags(0)
        self._controlled: WeakSet[Controlled] = WeakSet()
        self._clear_hooks: list[tuple[CacheKindFlags, Callable[[], None]]] = []
        self._lock = threading.RLock()

    def enabled(self, kind: CacheKindFlags) -> bool:
        """Whether caches of that kind may be used."""
        return not self._disabled & kind

    def check_enabled(self, kind: CacheKindFlags) -> None:
        """Raise NotCurrentlyAvailableError where the kind is disabled."""
        if self._disabled & kind:
            raise NotCurrentlyAvailableError(f"caches of kind {kind.name} are disabled in this process")

    def control(self, kinds: CacheKindFlags, control: CacheControlFlags) -> None:
        """Disable, enable or clear kinds of cache.

        CLEAR does nothing to PSDB, and to FILE sessions that are open read-only. With APPLICATION_MANAGED it also deletes the DISK
        caches of the default location that no process has open. Raises InvalidArgumentError for no or unknown
        flags and for DISABLE with ENABLE, NotCurrentlyAvailableError outside developer mode.
        """
        if not kinds or int(kinds) & ~_ALL_KINDS:
            raise InvalidArgumentError(f"kinds is {int(kinds):#x}: one or more of {_ALL_KINDS:#x} are needed")
        if not control or int(control) & ~_ALL_CONTROLS:
            raise InvalidArgumentError(f"control is {int(control):#x}: one or more of {_ALL_CONTROLS:#x} are needed")
        if control & CacheControlFlags.DISABLE and control & CacheControlFlags.ENABLE:
            raise InvalidArgumentError("control has both DISABLE and ENABLE")
        if not self.developer_mode:
            raise NotCurrentlyAvailableError("caches can be controlled in developer mode only")
        kinds = CacheKindFlags(kinds)
        with self._lock:
            if control & CacheControlFlags.DISABLE:
                self._disabled |= kinds
            if control & CacheControlFlags.ENABLE:
                self._disabled &= ~kinds
            concerned = [one for one in self._controlled if one.cache_kind & kinds]
            for one in concerned:
                one.set_enabled(self.enabled(one.cache_kind))
            if control & CacheControlFlags.CLEAR:
                for one in concerned:
                    if not one.cache_kind & CacheKindFlags.PSDB:
                        one.clear_by_control()
                if kinds & CacheKindFlags.APPLICATION_MANAGED:
                    _clear_default_folder()
                for kind, hook in self._clear_hooks:
                    if kind & kinds & ~CacheKindFlags.PSDB:
                        hook()

    def add(self, controlled: Controlled) -> None:
        """Switch this one as well from now on, for as long as somebody holds it. Raises as ``check_enabled``."""
        with self._lock:
            self.check_enabled(controlled.cache_kind)
            self._controlled.add(controlled)

    def add_clear_hook(self, kind: CacheKindFlags, hook: Callable[[], None]) -> None:
        """Call ``hook`` whenever caches of that kind are cleared."""
        with self._lock:
            self._clear_hooks.append((kind, hook))


def _clear_default_folder() -> None:
    from .disk_folder import clear_folder, default_folder

    clear_folder(default_folder())


process_control = ShaderCacheControl(developer_mode=os.environ.get("SHADERKILN_DEVELOPER_MODE") == "1")
"""The control that is used where none is named."""
