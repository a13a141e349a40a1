"""Where object code of several shaders can be taken apart, so that what pipelines share is equal bytes.

A value of the form ``pipeline-binary`` is one shader's already. One of the form ``pipeline-cache`` is VkPipelineCache data with all
shaders of a pipeline; where its layout is known (``mesa_cache``) each shader's code is a part.
"""

from __future__ import annotations

import struct
from typing import Final

from shaderkiln.formats import mesa_cache
from shaderkiln.formats.vk_cache import CacheRejectedError

SMALLEST_PART: Final = 256
"""Bytes. What is smaller stays with what is before it: to hold it apart would cost more than it saves."""
_STAGES: Final = 14
_RADV_FIXED: Final = 180
"""Bytes of an entry of ``radv-22`` behind its key and before its binaries."""


def divided(form: str, data: bytes) -> tuple[bytes | memoryview, ...]:
    """The parts of a value, which joined give it again. Data that is not understood is one part."""
    if form != "pipeline-cache":
        return (data,)
    try:
        cache = mesa_cache.read(data)
    except CacheRejectedError:
        return (data,)
    if cache.fault is not None:
        return (data,)
    view, parts, begin = memoryview(data), [], 0
    for first, last in _code(cache):
        if last - first < SMALLEST_PART or first < begin:
            continue
        if first > begin:
            parts.append(view[begin:first])
        parts.append(view[first:last])
        begin = last
    if begin < len(data):
        parts.append(view[begin:])
    return tuple(parts)


def _code(cache: mesa_cache.CacheData) -> list[tuple[int, int]]:
    """Where code begins and ends."""
    found = []
    for entry, end in zip(cache, cache.ends(), strict=True):
        begin = end - len(entry.data)
        if cache.layout is mesa_cache.Layout.MESA:
            found.append((begin, end))
            continue
        sizes = struct.unpack_from(f"<{_STAGES}I", entry.data)
        begin += _RADV_FIXED
        for size in sizes:
            found.append((begin, begin + size))
            begin += size
    return found
