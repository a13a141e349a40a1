"""Component pieces: their CRC, and what becomes of sets that are not what was serialized."""

from __future__ import annotations

import mmap
import zlib
from array import array
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.errors import DamagedInputError, InvalidArgumentError
from shaderkiln.formats.pipeline_components import (
    Code,
    PipelineRecord,
    SerializedPipelineState,
    SerializedShader,
    ShaderSlot,
    assemble,
    serialize,
)

RECORD = PipelineRecord("family", b"c" * 16, "graphics", b"k" * 32, 1, (), b"description")
VERTEX, PIXEL, COPY = b"vertex header/vertex code", b"pixel header/pixel code", b"copy shader"
CODES = (
    Code(ShaderSlot.VERTEX, b"key v", VERTEX, 14),
    Code(ShaderSlot.PIXEL, b"key p", PIXEL),
    Code(None, b"key c", COPY, 5),
)
VALUES = ((b"key v", VERTEX), (b"key p", PIXEL), (b"key c", COPY))


def example() -> SerializedPipelineState:
    return serialize(RECORD, CODES, (b"spirv",) * 2)


def with_piece(serialized: SerializedPipelineState, name: str, piece: object) -> SerializedPipelineState:
    """The same with another piece of that name; None removes it."""
    if name == "pipeline":
        return replace(serialized, pipeline=piece)
    place, _, part = name.partition(".")

    def changed(found: str, shader: SerializedShader | None) -> SerializedShader | None:
        if found != place or shader is None:
            return shader
        if part == "gpu_instructions" and piece is None:
            return None
        return replace(shader, **{part: piece})

    places = [changed(found, shader) for found, shader in serialized.named_shaders()]
    return SerializedPipelineState(serialized.pipeline, tuple(places[:8]), tuple(one for one in places[8:] if one is not None))


@pytest.mark.spec("XS-01", "XS-02")
def test_a_pipeline_is_cut_where_its_code_begins_and_what_is_inactive_is_null() -> None:
    found = example()
    assert found.shader(ShaderSlot.VERTEX) == SerializedShader(b"vertex code", b"vertex header/")
    # Object code in one piece: instructions and no metadata.
    assert found.shader(ShaderSlot.PIXEL) == SerializedShader(PIXEL, None)
    # Shaders for drivers that want to see them lie behind the object code.
    assert found.shared == (SerializedShader(b"shader", b"copy "), *(SerializedShader(b"spirv"),) * 2)
    assert [slot for slot in ShaderSlot if found.shader(slot) is not None] == [ShaderSlot.VERTEX, ShaderSlot.PIXEL]
    assert [name for name, _ in found.pieces()] == [
        "pipeline",
        "vertex.gpu_instructions",
        "vertex.metadata",
        "pixel.gpu_instructions",
        "shared[0].gpu_instructions",
        "shared[0].metadata",
        "shared[1].gpu_instructions",
        "shared[2].gpu_instructions",
    ]


@pytest.mark.spec("XS-04")
def test_the_crc_covers_all_pieces_as_it_is_documented() -> None:
    found = example()
    framed = b""
    pieces: list[bytes | None] = [found.pipeline[12:]]
    for shader in (*found.shaders, *found.shared):
        pieces += [None, None] if shader is None else [shader.gpu_instructions, shader.metadata]
    for piece in pieces:
        framed += (0 if piece is None else len(piece) + 1).to_bytes(8, "little") + (piece or b"")
    assert found.pipeline[:8] == b"SKPC\x01\0\0\0"
    assert found.pipeline[8:12] == zlib.crc32(framed).to_bytes(4, "little")


@pytest.mark.spec("XS-03")
def test_every_piece_back_gives_the_binaries_in_the_drivers_order_wherever_the_pieces_lie(tmp_path: Path) -> None:
    found = example()
    everything = b"".join(bytes(piece) for _, piece in found.pieces())
    (tmp_path / "pieces").write_bytes(b"!" * 3 + everything)
    with (tmp_path / "pieces").open("rb") as file:
        memory = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    placed, at = found, 3
    for name, piece in found.pieces():
        placed = with_piece(placed, name, memory[at : at + len(piece)])
        at += len(piece)
    others = with_piece(found, "pixel.gpu_instructions", bytearray(PIXEL))
    others = with_piece(others, "vertex.gpu_instructions", array("B", b"vertex code"))
    for one in (found, placed, others):
        assembled = assemble(one)
        record = assembled.record
        assert assembled.values == VALUES and assembled.modules == (b"spirv",) * 2
        assert (record.family, record.kind, record.description) == ("family", "graphics", b"description")


@pytest.mark.spec("XS-04")
def test_every_changed_byte_and_every_cut_is_refused() -> None:
    found = example()
    for name, piece in found.pieces():
        for at in range(len(piece)):
            damaged = bytearray(piece)
            for bit in range(8):
                damaged[at] = piece[at] ^ 1 << bit
                with pytest.raises(DamagedInputError) as refused:
                    assemble(with_piece(found, name, bytes(damaged)))
                assert refused.value.code == "E_INVALIDARG"
            with pytest.raises(DamagedInputError):
                assemble(with_piece(found, name, piece[:at]))
            with pytest.raises(DamagedInputError):
                assemble(with_piece(found, name, piece[at + 1 :]))
        with pytest.raises(DamagedInputError):
            assemble(with_piece(found, name, bytes(piece) + b"\0"))


@pytest.mark.spec("XS-03", "XS-04")
def test_missing_added_and_swapped_pieces_are_refused() -> None:
    found = example()
    names = [name for name, _ in found.pieces()]
    pieces = dict(found.pieces())
    for name in names[1:]:
        with pytest.raises(DamagedInputError):
            assemble(with_piece(found, name, None))
        with pytest.raises(DamagedInputError):
            assemble(with_piece(found, name, b""))
    for one in names:
        for other in names:
            if pieces[one] != pieces[other]:
                with pytest.raises(DamagedInputError):
                    assemble(with_piece(with_piece(found, one, pieces[other]), other, pieces[one]))
    shaders = list(found.shaders)
    for slot in ShaderSlot:
        moved = list(shaders)
        moved[ShaderSlot.VERTEX], moved[slot] = moved[slot], moved[ShaderSlot.VERTEX]
        if slot is not ShaderSlot.VERTEX:
            with pytest.raises(DamagedInputError):
                assemble(replace(found, shaders=tuple(moved)))
    pixel = with_piece(found, "pixel.metadata", b"")
    for changed in (pixel, replace(found, shared=found.shared * 2), replace(found, shared=())):
        with pytest.raises(DamagedInputError):
            assemble(changed)
    with pytest.raises(DamagedInputError):
        assemble(replace(serialize(msgspec.structs.replace(RECORD, version=2), CODES), shaders=found.shaders, pipeline=b""))


@pytest.mark.spec("XS-04")
def test_the_piece_of_another_pipeline_is_refused() -> None:
    found = example()
    other = serialize(RECORD, (replace(CODES[0], data=VERTEX[:-1] + b"!"), *CODES[1:]), (b"spirv", b"more"))
    for (name, piece), (_, others) in zip(found.pieces(), other.pieces(), strict=True):
        if piece != others:
            with pytest.raises(DamagedInputError):
                assemble(with_piece(found, name, others))


@given(st.lists(st.sampled_from([*ShaderSlot, None]), unique=False, max_size=12), st.data())
def test_any_set_of_binaries_comes_back(slots: list[ShaderSlot | None], data: st.DataObject) -> None:
    codes = []
    for number, slot in enumerate(slots):
        code = data.draw(st.binary(max_size=40))
        cut = data.draw(st.none() | st.integers(0, len(code)))
        codes.append(Code(slot, b"%d" % number, code, cut))
    used = [slot for slot in slots if slot is not None]
    if not slots or len(set(used)) < len(used):
        with pytest.raises(InvalidArgumentError):
            serialize(RECORD, codes)
        return
    assert assemble(serialize(RECORD, codes)).values == tuple((code.driver_key, code.data) for code in codes)


def test_what_is_no_piece_is_an_invalid_argument() -> None:
    found = example()
    wrong: tuple[object, ...] = (
        None,
        [],
        replace(found, pipeline=None),
        replace(found, pipeline="text"),
        replace(found, shaders=found.shaders[:7]),
        replace(found, shared=found.shared * 65),
        replace(found, shaders=(b"bytes", *found.shaders[1:])),
        with_piece(found, "vertex.metadata", 7),
        with_piece(found, "vertex.gpu_instructions", memoryview(b"every other byte")[::2]),
    )
    for one in wrong:
        with pytest.raises(InvalidArgumentError):
            assemble(one)  # type: ignore[arg-type]


@given(st.recursive(st.none() | st.booleans() | st.integers(-9, 2**64 - 1) | st.text() | st.binary(), st.lists, max_leaves=12))
def test_a_record_that_is_none_is_refused_whatever_its_crc(content: object) -> None:
    body = msgspec.msgpack.encode(content)
    crc = zlib.crc32((len(body) + 1).to_bytes(8, "little") + body + bytes(16 * 8))
    head = b"SKPC\x01\0\0\0" + crc.to_bytes(4, "little")
    with pytest.raises(DamagedInputError):
        assemble(SerializedPipelineState(head + body, (None,) * 8))


@pytest.mark.parametrize(
    "places, modules",
    [
        ([], 0),
        ([[0, b"", False]], 0),
        ([[8, b"", True]], 0),
        ([[9, b"", False]], 0),
        ([[-1, b"", False]], 0),
        ([[8, b"", False]] * 2, 0),
        ([[8, b"", False]], 1),
        ([[8, b"", False]], -1),
        ([[8, b"", False]], 2),
        ([], 1),
    ],
)
def test_a_record_that_does_not_fit_its_pieces_is_refused(places: list[object], modules: int) -> None:
    body = msgspec.msgpack.encode(["f", b"", "compute", b"", 1, places, b"", b"", modules])
    framed = (len(body) + 1).to_bytes(8, "little") + body + bytes(16 * 8) + (5).to_bytes(8, "little") + b"code" + bytes(8)
    head = b"SKPC\x01\0\0\0" + zlib.crc32(framed).to_bytes(4, "little")
    with pytest.raises(DamagedInputError, match="does not fit"):
        assemble(SerializedPipelineState(head + body, (None,) * 8, (SerializedShader(b"code"),)))
