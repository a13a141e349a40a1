"""Messages between a process and its parent, and their frames: u32 length, least significant byte first, then msgpack."""

from __future__ import annotations

import socket
from functools import cache
from typing import Any

import msgspec

from shaderkiln.errors import InvalidArgumentError
from shaderkiln.vulkan_registry.handles import Handle

MAXIMUM_FRAME = 1 << 30
"""Bytes; a longer frame is refused on either side."""


def _to_number(value: Any) -> int:
    if isinstance(value, Handle):
        return value.value
    raise NotImplementedError(f"{type(value).__name__} is not part of any message")


def _from_number(cls: type[Any], value: Any) -> Any:
    if issubclass(cls, Handle):
        return cls(value)
    raise NotImplementedError(f"{cls.__name__} is not part of any message")


_encoder = msgspec.msgpack.Encoder(enc_hook=_to_number)


@cache
def _decoder(types: Any) -> msgspec.msgpack.Decoder[Any]:
    # A side needs the one for its own messages; making a decoder reads the annotations of every structure.
    return msgspec.msgpack.Decoder(types, dec_hook=_from_number)


def frame(message: msgspec.Struct) -> bytes:
    """The message as one frame. Raises ``InvalidArgumentError`` if it is longer than ``MAXIMUM_FRAME`` or holds numbers of more
    than 64 bits."""
    try:
        payload = _encoder.encode(message)
    except OverflowError as error:
        raise InvalidArgumentError(f"a number is too large for a message: {error}") from error
    if len(payload) > MAXIMUM_FRAME:
        raise InvalidArgumentError(f"a message of {len(payload)} bytes is too long for a frame")
    return len(payload).to_bytes(4, "little") + payload


def decode(types: Any, payload: bytes | bytearray | memoryview) -> Any:
    """The message, of one of these types, in a frame's payload. Raises ``InvalidArgumentError`` for anything else."""
    try:
        return _decoder(types).decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"not a message: {error}") from error


def receive_payload(connection: socket.socket) -> bytearray | None:
    """The payload of the next frame from the parent; None at the end of the connection."""
    header = _receive(connection, 4)
    if header is None:
        return None
    length = int.from_bytes(header, "little")
    if length > MAXIMUM_FRAME:
        raise InvalidArgumentError(f"a frame of {length} bytes")
    return _receive(connection, length)


def _receive(connection: socket.socket, length: int) -> bytearray | None:
    """Exactly so many bytes, or None at the end of the connection."""
    data = bytearray(length)
    view = memoryview(data)
    done = 0
    while done < length:
        count = connection.recv_into(view[done:])
        if count == 0:
            return None
        done += count
    return data
