"""The way of a device and its caches to the driver's process, which is replaced where it has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.vulkan.gate import Gate
from shaderkiln.workers.pool import Limits
from shaderkiln.workers.shared_process import ProcessEndedError, SharedProcess

T = TypeVar("T")


class Connection:
    """May be used by several threads. Raises DriverError where no process can be started."""

    def __init__(self, compiler: FamilyCompiler, threads: int, limits: Limits | None) -> None:
        self._compiler = compiler
        self._threads = threads
        self._limits = limits
        self._lock = threading.Lock()
        self._closed = False
        self._last_number = 0
        self.gate = Gate()
        """Alone: a pipeline after whose first try a process ended."""
        self.family = compiler.identity.family
        self.restarts = 0
        """Processes that took the place of one that had ended."""
        self.process = SharedProcess(compiler, threads, limits)
        """The last one that was started."""

    def require(self) -> None:
        """Raises InvalidArgumentError where the device is closed."""
        if self._closed:
            raise InvalidArgumentError("the device is closed")

    def new_number(self) -> int:
        """A number that no cache has had."""
        with self._lock:
            self._last_number += 1
            return self._last_number

    def connected(self) -> SharedProcess:
        """The process, a new one where the last one has ended."""
        with self._lock:
            self.require()
            if self.process.ended:
                self.process = SharedProcess(self._compiler, self._threads, self._limits)
                self.restarts += 1
            return self.process

    def with_process(self, work: Callable[[SharedProcess], T]) -> T:
        """What ``work`` gives, done once more where the process ended meanwhile: that may have been somebody else's fault."""
        try:
            return work(self.connected())
        except ProcessEndedError:
            return work(self.connected())

    def close(self) -> bool:
        """End the process; False where that was done before."""
        with self._lock:
            if self._closed:
                return False
            self._closed = True
            process = self.process
        process.close()
        return True
