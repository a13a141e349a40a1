"""SPIR-V without decorations that are given twice, which translators write at times and validators refuse."""

from __future__ import annotations

import struct

from shaderkiln.errors import DamagedInputError

_MAGIC = 0x07230203
_HEADER_WORDS = 5
_FUNCTION = 54
_DECORATIONS = frozenset((71, 72, 332, 5632, 5633))
"""OpDecorate, OpMemberDecorate, OpDecorateId, OpDecorateString, OpMemberDecorateString"""
_MODES = frozenset((16, 331))
"""OpExecutionMode, OpExecutionModeId"""
_ONCE = _DECORATIONS | _MODES | {17, 10}
"""Also OpCapability and OpExtension."""


def without_duplicates(module: bytes) -> bytes:
    """The module with each decoration, execution mode, capability and extension once, in the order of their first places.

    Raises DamagedInputError where the stream of instructions does not add up.
    """
    if len(module) % 4 or len(module) < 4 * _HEADER_WORDS:
        raise DamagedInputError(f"SPIR-V: {len(module)} bytes are no module")
    words = struct.unpack(f"<{len(module) // 4}I", module)
    if words[0] != _MAGIC:
        raise DamagedInputError("SPIR-V: the magic number is missing")
    seen: set[tuple[int, ...]] = set()
    cuts: list[tuple[int, int]] = []
    at = _HEADER_WORDS
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if length == 0 or at + length > len(words):
            raise DamagedInputError(f"SPIR-V: the instruction at word {at} does not fit into the module")
        if opcode == _FUNCTION:
            break  # Nothing of the kind stands in or behind functions.
        if opcode in _ONCE:
            instruction = words[at : at + length]
            if instruction in seen:
                cuts.append((at, at + length))
            seen.add(instruction)
        at += length
    if not cuts:
        return module
    pieces, start = [], 0
    for first, end in cuts:
        pieces.append(module[4 * start : 4 * first])
        start = end
    pieces.append(module[4 * start :])
    return b"".join(pieces)
