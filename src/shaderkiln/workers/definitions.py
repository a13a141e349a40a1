"""What a worker has been told about objects: each is sent once, and all are forgotten before they take too much memory."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.drivers.protocol import Define, Forget
from shaderkiln.vulkan_registry.handles import Handle
from shaderkiln.vulkan_registry.structures import ShaderModuleCreateInfo

DEFINED_BYTES = 128 << 20
"""Bytes of shader modules that a worker is asked to keep; past that it forgets all of them."""
_OTHER_BYTES = 512
"""What an object counts that is no shader module."""


class Definitions:
    """The objects that one worker knows."""

    def __init__(self, *, one_source: bool) -> None:
        """``one_source``: every description is of one source, where a handle has one meaning; known ones are not looked at again,
        because a capture would have to decode them."""
        self._one_source = one_source
        self._known: dict[Handle, Struct | None] = {}
        self._bytes = 0

    def messages(self, description: PipelineDescription) -> Iterator[Define | Forget]:
        """What to send before a request about the pipeline, so that its handles mean what the description says.

        An object counts as known when the message after it is asked for: one that could not be sent is not.
        """
        objects = description.objects
        if self._bytes > DEFINED_BYTES or (not self._one_source and any(map(self._means_something_else, objects.items()))):
            # The worker finishes what is in hand with the old ones first.
            yield Forget()
            self._known.clear()
            self._bytes = 0
        for handle in objects:
            if handle not in self._known:
                meaning = objects[handle]
                yield Define(type(handle).__name__, handle.value, meaning)  # type: ignore[arg-type]
                self._known[handle] = None if self._one_source else meaning
                self._bytes += len(meaning.code) if isinstance(meaning, ShaderModuleCreateInfo) else _OTHER_BYTES

    def _means_something_else(self, item: tuple[Handle, Struct]) -> bool:
        handle, meaning = item
        known = self._known.get(handle)
        return known is not None and known is not meaning and known != meaning
