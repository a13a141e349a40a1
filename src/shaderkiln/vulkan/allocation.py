"""Allocation callbacks of a pipeline cache (VkAllocationCallbacks; VC-11, VC-12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shaderkiln.errors import AllocationError

OUT_OF_HOST_MEMORY = "VK_ERROR_OUT_OF_HOST_MEMORY"


@dataclass(frozen=True, slots=True)
class AllocationCallbacks:
    """``allocate`` takes a number of bytes and gives whatever stands for the memory, or None to refuse; ``free`` gets that back.

    They are called for the data of a cache, in the thread whose call makes it grow: all of it at creation, what has been added at
    each growth, and everything back at destruction. The sum of what was allocated and not freed is the size of the data.
    """

    allocate: Callable[[int], Any]
    free: Callable[[Any], None]


class HostMemory:
    """What a cache has got from its callbacks; without callbacks nothing is counted and nothing refused."""

    def __init__(self, callbacks: AllocationCallbacks | None) -> None:
        self.callbacks = callbacks
        self.size = 0
        self._pieces: list[Any] = []

    def grow_to(self, size: int) -> None:
        """Ask for what is missing. Raises AllocationError (VK_ERROR_OUT_OF_HOST_MEMORY) where that is refused."""
        if self.callbacks is None or size <= self.size:
            return
        try:
            piece = self.callbacks.allocate(size - self.size)
        except MemoryError:
            piece = None
        if piece is None:
            raise AllocationError(f"no memory for {size - self.size} bytes of a pipeline cache", code=OUT_OF_HOST_MEMORY)
        self._pieces.append(piece)
        self.size = size

    def release(self) -> None:
        """Give everything back, the newest first."""
        self.size = 0
        while self._pieces and self.callbacks is not None:
            self.callbacks.free(self._pieces.pop())
