"""Debug messages: through ``logging`` (logger ``shaderkiln.debug``) and in a bounded queue that can be read."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from enum import IntEnum

_logger = logging.getLogger("shaderkiln.debug")


class Severity(IntEnum):
    """D3D12_MESSAGE_SEVERITY, with its numbers."""

    CORRUPTION = 0
    ERROR = 1
    WARNING = 2
    INFO = 3
    MESSAGE = 4


_LEVELS = {
    Severity.CORRUPTION: logging.CRITICAL,
    Severity.ERROR: logging.ERROR,
    Severity.WARNING: logging.WARNING,
    Severity.INFO: logging.INFO,
    Severity.MESSAGE: logging.DEBUG,
}


@dataclass(frozen=True, slots=True)
class DebugMessage:
    """One message; ``topic`` is a fixed name, for example ``cache-miss``, and ``text`` is for people."""

    severity: Severity
    topic: str
    text: str


class DebugLayer:
    """Takes messages. The oldest are dropped when more than ``limit`` are waiting. May be used by several threads."""

    def __init__(self, limit: int = 1024) -> None:
        self._messages: deque[DebugMessage] = deque(maxlen=limit)
        self._lock = threading.Lock()
        self._dropped = 0

    def write(self, severity: Severity, topic: str, text: str) -> None:
        """Add a message to the queue and to the log."""
        message = DebugMessage(severity, topic, text)
        with self._lock:
            self._dropped += len(self._messages) == self._messages.maxlen
            self._messages.append(message)
        _logger.log(_LEVELS[severity], "%s: %s", topic, text)

    def messages(self) -> tuple[DebugMessage, ...]:
        """What is waiting, oldest first; it stays there."""
        with self._lock:
            return tuple(self._messages)

    def clear(self) -> None:
        """Empty the queue and set ``dropped`` to 0."""
        with self._lock:
            self._messages.clear()
            self._dropped = 0

    @property
    def dropped(self) -> int:
        """Messages dropped since the last ``clear``."""
        return self._dropped


process_debug_layer = DebugLayer()
"""The layer that is used where none is named."""
