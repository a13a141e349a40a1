"""Decorations that are given twice."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaderkiln.errors import DamagedInputError
from shaderkiln.shaders.cleanup import without_duplicates

SPIRV = sorted((Path(__file__).parent.parent / "data" / "shaders" / "spirv").glob("*.spv"))
HEADER = (0x07230203, 0x00010300, 0, 50, 0)


def _module(*instructions: tuple[int, ...]) -> bytes:
    words = list(HEADER)
    for opcode, *operands in instructions:
        words += [(len(operands) + 1) << 16 | opcode, *operands]
    return struct.pack(f"<{len(words)}I", *words)


def test_second_ones_go_and_order_stays() -> None:
    stride, patch, other = (71, 5, 6, 16), (71, 7, 15), (71, 5, 6, 32)
    member = (72, 8, 0, 35, 0)
    given_module = _module(
        (17, 1), (17, 1), stride, patch, member, stride, other, patch, member, (21, 9, 32, 0), (21, 9, 32, 0)
    )
    assert without_duplicates(given_module) == _module((17, 1), stride, patch, member, other, (21, 9, 32, 0), (21, 9, 32, 0))


def test_functions_are_left_alone() -> None:
    body = ((54, 1, 2, 0, 3), (71, 5, 6, 16), (71, 5, 6, 16))
    assert without_duplicates(_module(*body)) == _module(*body)


@pytest.mark.parametrize("path", SPIRV, ids=lambda p: p.name)
def test_a_clean_module_stays_as_it_is(path: Path) -> None:
    data = path.read_bytes()
    assert without_duplicates(data) == data


@pytest.mark.parametrize(
    "data",
    [b"", bytes(19), bytes(20), struct.pack("<5I", *HEADER) + bytes(4), struct.pack("<6I", *HEADER, 3 << 16 | 71), bytes(21)],
)
def test_streams_that_do_not_add_up_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedInputError):
        without_duplicates(data)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_anything_is_cleaned_once_or_refused(data: bytes) -> None:
    for module in (data, struct.pack("<5I", *HEADER) + data):
        with contextlib.suppress(DamagedInputError):
            clean = without_duplicates(module)
            assert without_duplicates(clean) == clean
