"""Where the machine code begins in RADV's form of a shader."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.formats.radv_shader import code_offset


def shader(config: bytes, code: bytes, statistics: bytes = b"", executed: int | None = None, more: int = 0) -> bytes:
    """The form of RADV 25 and 26, with a configuration of any size."""
    size = 4 + len(config) + 32 + len(statistics) + len(code)
    tail = (size, 0, len(code), len(code) if executed is None else executed, 0, 0, len(statistics), more)
    return b"\0\0\0\0" + config + struct.pack("<8I", *tail) + statistics + code


@given(words=st.integers(0, 40), code=st.binary(min_size=4, max_size=64), statistics=st.integers(0, 20))
def test_the_code_is_what_is_left_when_header_and_statistics_are_taken_away(words: int, code: bytes, statistics: int) -> None:
    code = code[: len(code) // 4 * 4]
    data = shader(b"\xff" * 4 * words, code, b"\x01" * 4 * statistics)
    at = code_offset(data)
    assert at is not None and data[at:] == code


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0\0",
        b"\x01\0\0\0" + shader(b"\xff" * 8, b"code")[4:],  # an ELF file, says its kind
        shader(b"\xff" * 8, b"code") + b"more",
        shader(b"\xff" * 8, b"code")[:-4],
        shader(b"\xff" * 8, b"code", executed=8),
        shader(b"\xff" * 8, b"code", executed=0),
        shader(b"\xff" * 8, b""),
        shader(b"\xff" * 8, b"codeco"),
        shader(b"\xff" * 8, b"code", more=4),
    ],
)
def test_what_is_not_certain_stays_whole(data: bytes) -> None:
    assert code_offset(data) is None


def test_two_possible_ends_of_the_header_are_not_certain() -> None:
    # The first tail says: 4 bytes of statistics less than there are, so its code is longer; both add up.
    size = 4 + 32 + 32 + 4
    first = struct.pack("<8I", size, 0, 36, 36, 0, 0, 0, 0)
    second = struct.pack("<8I", size, 0, 4, 4, 0, 0, 0, 0)
    data = bytes(4) + first + second + b"code"
    assert len(data) == size
    assert code_offset(data) is None
    assert code_offset(bytes(4) + bytes(32) + second + b"code") == size - 4
