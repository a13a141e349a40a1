"""Assembles small SPIR-V modules word by word, for tests; numbers are those of the SPIR-V specification."""

from __future__ import annotations

import struct
from collections.abc import Iterable


def text(value: str) -> tuple[int, ...]:
    """A literal string in words."""
    data = value.encode() + b"\0"
    data += b"\0" * (-len(data) % 4)
    return struct.unpack(f"<{len(data) // 4}I", data)


def op(opcode: int, *words: int) -> tuple[int, ...]:
    """One instruction."""
    return ((len(words) + 1) << 16 | opcode, *words)


def module(instructions: Iterable[tuple[int, ...]], *, bound: int = 100, version: int = 0x00010300) -> bytes:
    """A module of these instructions."""
    words = [0x07230203, version, 0, bound, 0]
    for instruction in instructions:
        words += instruction
    return struct.pack(f"<{len(words)}I", *words)


def compute(
    *,
    capabilities: Iterable[int] = (1,),
    extensions: Iterable[str] = (),
    local_size: tuple[int, ...] = (8, 4, 2),
    modes: Iterable[tuple[int, ...]] = (),
    decorations: Iterable[tuple[int, ...]] = (),
    declarations: Iterable[tuple[int, ...]] = (),
    body: Iterable[tuple[int, ...]] = (),
    name: str = "main",
    model: int = 5,
    version: int = 0x00010300,
    interface: tuple[int, ...] = (),
) -> bytes:
    """A shader whose function is id 1; ids 2 to 4 are void, its function type and the first label; 5 is uint, 6 float."""
    mode = [op(16, 1, 17, *local_size)] if local_size else []
    return module(
        [
            *(op(17, c) for c in capabilities),
            *(op(10, *text(e)) for e in extensions),
            op(14, 0, 1),
            op(15, model, 1, *text(name), *interface),
            *mode,
            *modes,
            *decorations,
            op(19, 2),
            op(33, 3, 2),
            op(21, 5, 32, 0),
            op(22, 6, 32),
            *declarations,
            op(54, 2, 1, 0, 3),
            op(248, 4),
            *body,
            op(253),
            op(56),
        ],
        version=version,
    )
