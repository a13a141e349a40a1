"""Object code of one shader as RADV serializes it: a header, statistics where it keeps them, then the machine code.

The header begins with the kind (0: machine code) and holds the shader's configuration and limits, whose size differs from one
release to the next. It ends, whatever the release, with these little-endian 32-bit numbers: the size of everything, 0, the size of
the code, the part of it that is executed, 0, 0, the size of the statistics, 0.
"""

from __future__ import annotations

import struct

_TAIL = struct.Struct("<8I")


def code_offset(data: bytes) -> int | None:
    """Where the machine code begins, which lasts to the end; None where that cannot be told for certain.

    For certain means that exactly one place in the data can be the end of a header.
    """
    size = len(data)
    if data[:4] != b"\0\0\0\0" or size % 4 or size >= 1 << 32:
        return None
    needle = struct.pack("<II", size, 0)
    found: int | None = None
    at = data.find(needle, 4)
    while at >= 0:
        if at % 4 == 0 and at + _TAIL.size <= size:
            _, _, code, executed, ir, text, statistics, more = _TAIL.unpack_from(data, at)
            fits = at + _TAIL.size + statistics + code == size and 0 < executed <= code and code % 4 == 0
            if fits and not (ir or text or more):
                if found is not None:
                    return None
                found = size - code
        at = data.find(needle, at + 1)
    return found
