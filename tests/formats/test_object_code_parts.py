"""Object code taken apart: joined it is the same again, and shared shaders are equal parts."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.formats.object_code_parts import divided

HEADER = struct.pack("<4I16s", 32, 1, 0x1002, 0x744C, b"cache-uuid-of-16")
"""VkPipelineCacheHeaderVersionOne."""


def mesa(*entries: tuple[bytes, bytes]) -> bytes:
    """The payload of Mesa's common code, written by hand."""
    out = bytearray(HEADER + struct.pack("<I", len(entries)))
    for key, data in entries:
        out += bytes(-len(out) % 4) + struct.pack("<iII", -1, len(key), len(data)) + key
        out += bytes(-len(out) % 8) + data
    return bytes(out)


def radv_22(key: bytes, binaries: list[bytes]) -> bytes:
    """One pipeline of RADV before Mesa 23.1."""
    sizes = [len(binary) for binary in binaries] + [0] * (14 - len(binaries))
    entry = key + struct.pack("<15I", *sizes, 0) + bytes(120) + b"".join(binaries)
    return HEADER + entry + bytes(-len(entry) % 8)


@given(st.sampled_from(("pipeline-binary", "pipeline-cache", "other")), st.binary(max_size=300))
def test_what_is_not_understood_is_one_part(form: str, data: bytes) -> None:
    assert b"".join(divided(form, data)) == data
    assert len(divided(form, HEADER[:20] + data)) == 1
    assert divided("pipeline-binary", mesa((b"key", bytes(1000)))) == (mesa((b"key", bytes(1000))),)


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 900)), max_size=5), st.binary(max_size=40))
def test_parts_joined_are_the_same_again(entries: list[tuple[bytes, int]], more: bytes) -> None:
    data = mesa(*((key, bytes([number]) * size) for number, (key, size) in enumerate(entries)))
    for one in (data, data + more, data[:-1]):
        assert b"".join(divided("pipeline-cache", one)) == one


def test_a_shared_shader_is_an_equal_part() -> None:
    vertex, pixels = b"v" * 700, (b"p" * 600, b"q" * 800)
    for make in (
        lambda pixel: mesa((b"key of vertex", vertex), (b"key of " + pixel[:5], pixel), (b"small", b"s")),
        lambda pixel: radv_22(pixel[:20], [vertex, b"", b"tiny", b"", pixel]),
    ):
        first, second = (set(map(bytes, divided("pipeline-cache", make(pixel)))) for pixel in pixels)
        assert vertex in first & second
        assert pixels[0] in first
        assert pixels[1] in second


def test_a_cache_of_many_entries_is_divided_at_each() -> None:
    shaders = [bytes([number]) * (256 + number) for number in range(50)]
    parts = divided("pipeline-cache", mesa(*((b"key %d" % number, shader) for number, shader in enumerate(shaders))))
    assert [bytes(part) for part in parts if len(part) >= 256] == shaders
