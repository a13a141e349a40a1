"""Flags of the process that a developer sets before a device is created (D3D12XBOX_PROCESS_DEBUG_FLAGS)."""

from __future__ import annotations

from enum import IntFlag

from shaderkiln.errors import InvalidArgumentError


class ProcessDebugFlags(IntFlag):
    """What kind of runtime the process has; without any it is the one that players have."""

    NONE = 0
    DEBUG_LAYER_ENABLED = 1
    INSTRUMENTED = 2


_flags = ProcessDebugFlags.NONE


def set_process_debug_flags(flags: ProcessDebugFlags) -> None:
    """Set the flags of this process; a device has those with which it was created. Raises InvalidArgumentError."""
    global _flags
    if not isinstance(flags, int) or int(flags) & ~sum(ProcessDebugFlags):
        raise InvalidArgumentError(f"flags: {flags!r} is no combination of process debug flags")
    _flags = ProcessDebugFlags(flags)


def process_debug_flags() -> ProcessDebugFlags:
    """The flags of this process."""
    return _flags
