"""The objects of one lowered pipeline under handles that are made from their content, and the reasons why there is none."""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from shaderkiln.descriptions.pipeline import UnsupportedPipelineError
from shaderkiln.descriptions.unmet import Unmet
from shaderkiln.vulkan_registry.handles import Handle

_H = TypeVar("_H", bound=Handle)


def _of_handle(value: Any) -> int:
    if isinstance(value, Handle):
        return value.value
    raise TypeError(type(value).__name__)


_encode = msgspec.msgpack.Encoder(enc_hook=_of_handle).encode


class Objects:
    """Collects objects; equal content has one handle, here and in every other pipeline."""

    def __init__(self) -> None:
        self.found: dict[Handle, Struct] = {}

    def add(self, kind: type[_H], structure: Struct) -> _H:
        """The handle of a structure whose own handles are here already."""
        digest = hashlib.sha256(_encode(structure)).digest()
        value = int.from_bytes(digest[:8], "little") or 1
        while (other := self.found.get(handle := kind(value))) is not None and other != structure:
            value = (value + 1) % (1 << 64) or 1
        self.found[handle] = structure
        return handle


class Reasons:
    """Everything that stands against a pipeline, so that one report names it all."""

    def __init__(self) -> None:
        self.found: list[Unmet] = []

    def add(self, name: str, text: str, *, needed: str | int | float = "", where: str = "pipeline state") -> None:
        """``name`` is the field or stage; ``text`` says all of it in one line."""
        self.found.append(Unmet("direct3d12", name, needed, "", where, text))

    def check(self) -> None:
        """Raises UnsupportedPipelineError if there is any."""
        if self.found:
            raise UnsupportedPipelineError(self.found)
