"""DXBC containers: real ones byte for byte, the digest, and damage of every kind."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaderkiln.errors import DamagedInputError, InvalidArgumentError
from shaderkiln.formats import dxbc
from shaderkiln.formats.dxbc import Part, ShaderKind

SHADERS = Path(__file__).parent.parent / "data" / "shaders"
CONTAINERS = sorted([*SHADERS.glob("dxil/*.dxil"), *SHADERS.glob("dxbc51/*.dxbc")])
KINDS = {"cs": ShaderKind.COMPUTE, "vs": ShaderKind.VERTEX, "ps": ShaderKind.PIXEL}


def _read(name: str) -> bytes:
    return (SHADERS / name).read_bytes()


def test_there_are_containers() -> None:
    assert len(CONTAINERS) == 28


@pytest.mark.parametrize("path", CONTAINERS, ids=lambda p: p.name)
def test_real_containers_are_read_and_written_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    container = dxbc.parse(data)
    assert dxbc.has_valid_digest(data)
    assert dxbc.write(container.parts) == data
    assert container.program is not None
    assert container.program.kind is KINDS[path.name.split(".")[1]]
    program = container.program
    assert program is not None
    if path.suffix == ".dxil":
        assert program.is_dxil
        assert program.model == ((6, 6) if "sm6_6" in path.name else (6, 0))
    else:
        assert not program.is_dxil
        assert program.model == (5, 1)


def test_signatures_are_those_of_the_source() -> None:
    # g3_textured.hlsl: V vs(float2 p : POSITION, float2 uv : TEXCOORD, uint m : BLENDINDICES)
    container = dxbc.parse(_read("dxil/g3_textured.vs.dxil"))
    inputs, outputs = container.input_signature, container.output_signature
    assert inputs is not None and outputs is not None
    assert [(e.semantic_name, e.semantic_index, e.register, e.mask, e.component_type) for e in inputs] == [
        ("POSITION", 0, 0, 3, 3),
        ("TEXCOORD", 0, 1, 3, 3),
        ("BLENDINDICES", 0, 2, 1, 1),
    ]
    assert [(e.semantic_name, e.system_value) for e in outputs] == [("SV_Position", 1), ("TEXCOORD", 0), ("MATID", 0)]
    pixel = dxbc.parse(_read("dxbc51/g3_textured.ps.dxbc"))
    assert pixel.output_signature is not None
    assert [(e.semantic_name.lower(), e.register) for e in pixel.output_signature] == [("sv_target", 0)]
    assert pixel.patch_constant_signature is None


def test_pipeline_validation_says_threads_and_resources() -> None:
    # c4_particles.hlsl: numthreads(64,1,1), a constant buffer and two structured UAVs, one with a counter.
    found = dxbc.parse(_read("dxil/c4_particles.cs.dxil")).pipeline_validation
    assert found is not None
    assert found.kind is ShaderKind.COMPUTE
    assert found.thread_counts == (64, 1, 1)
    assert [(r.type, r.space, r.lower, r.upper) for r in found.resources] == [(2, 0, 0, 0), (8, 0, 0, 0), (9, 0, 1, 1)]
    assert dxbc.parse(_read("dxbc51/c1_fill.cs.dxbc")).pipeline_validation is None
    vertex = dxbc.parse(_read("dxil/g1_fullscreen.vs.dxil")).pipeline_validation
    assert vertex is not None and vertex.thread_counts is None


def test_root_signature_part() -> None:
    assert dxbc.parse(_read("dxil/c1_fill.cs.dxil")).root_signature is not None
    assert dxbc.parse(_read("dxil/c2_reduce.cs.dxil")).root_signature is None


def test_osg5_has_the_stream_first_and_isg1_the_precision_last() -> None:
    name = b"SV_Target\0\0\0"
    osg5 = struct.pack("<II", 1, 8) + struct.pack("<IIIIIIBBH", 3, 36, 2, 64, 3, 5, 15, 7, 0) + name
    (element,) = dxbc.parse_signature("OSG5", osg5)
    assert element == dxbc.SignatureElement("SV_Target", 2, 64, 3, 5, 15, 7, 3, 0)
    isg1 = struct.pack("<II", 1, 8) + struct.pack("<IIIIIIBBHI", 1, 40, 0, 0, 3, 0, 3, 1, 0, 4) + name
    (element,) = dxbc.parse_signature("ISG1", isg1)
    assert (element.stream, element.minimum_precision, element.mask, element.read_write_mask) == (1, 4, 3, 1)


def test_digest_covers_everything_behind_it() -> None:
    data = bytearray(_read("dxbc51/g1_fullscreen.ps.dxbc"))
    for at in (4, 19, 20, 30, len(data) - 1):
        data[at] ^= 1
        assert not dxbc.has_valid_digest(bytes(data))
        data[at] ^= 1
    assert dxbc.has_valid_digest(bytes(data))


@pytest.mark.parametrize("length", range(132))
def test_sign_gives_what_check_expects_at_every_length_of_the_last_block(length: int) -> None:
    data = dxbc.write([Part("PRIV", bytes(range(256))[:length])])
    unsigned = dxbc.write([Part("PRIV", bytes(range(256))[:length])], signed=False)
    assert unsigned[4:20] == dxbc.NO_DIGEST
    assert not dxbc.has_valid_digest(unsigned)
    assert dxbc.sign(unsigned) == data
    assert dxbc.has_valid_digest(data)
    assert dxbc.parse(data).part("PRIV") == bytes(range(256))[:length]


def test_the_rounds_are_those_of_md5() -> None:
    # With MD5's own tail the same rounds give MD5 (RFC 1321, A.5).
    tail = (b"abc\x80").ljust(56, b"\0") + struct.pack("<Q", 24)
    assert dxbc._md5_without_tail(tail).hex() == "900150983cd24fb0d6963f7d28e17f72"


@pytest.mark.parametrize("name", ["dxil/c1_fill.cs.dxil", "dxbc51/g1_fullscreen.vs.dxbc"])
def test_every_truncation_is_refused(name: str) -> None:
    data = _read(name)
    for length in range(len(data)):
        with pytest.raises(DamagedInputError):
            dxbc.parse(data[:length])
        cut = data[:length]
        if length >= 28:
            # With a size that agrees, a part must be missed.
            with pytest.raises(DamagedInputError):
                dxbc.parse(cut[:24] + struct.pack("<I", length) + cut[28:])


def _everything(data: bytes) -> None:
    container = dxbc.parse(data)
    for ask in (
        lambda: container.program,
        lambda: container.input_signature,
        lambda: container.output_signature,
        lambda: container.patch_constant_signature,
        lambda: container.pipeline_validation,
    ):
        with contextlib.suppress(DamagedInputError):
            ask()


@settings(max_examples=300, deadline=None)
@given(
    path=st.sampled_from(CONTAINERS),
    changes=st.lists(st.tuples(st.integers(20, 700), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_altered_containers_are_read_or_refused(path: Path, changes: list[tuple[int, int]]) -> None:
    data = bytearray(path.read_bytes())
    for at, value in changes:
        data[at % len(data)] = value
    with contextlib.suppress(DamagedInputError):
        _everything(bytes(data))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_anything_is_read_or_refused(data: bytes) -> None:
    for given_data in (data, b"DXBC" + bytes(16) + struct.pack("<HHI", 1, 0, len(data) + 28) + data):
        with contextlib.suppress(DamagedInputError):
            _everything(given_data)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=4, max_size=4), st.binary(max_size=80)),
        max_size=8,
    )
)
def test_parts_survive_writing_and_reading(parts: list[tuple[str, bytes]]) -> None:
    given_parts = tuple(Part(name, data) for name, data in parts)
    container = dxbc.parse(dxbc.write(given_parts))
    assert container.parts == given_parts


def _container(offsets: list[int], body: bytes, count: int | None = None) -> bytes:
    size = 32 + 4 * len(offsets) + len(body)
    count = len(offsets) if count is None else count
    return struct.pack("<4s16sHHII", b"DXBC", bytes(16), 1, 0, size, count) + struct.pack(f"<{len(offsets)}I", *offsets) + body


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (_container([40, 40], b"PRIV" + struct.pack("<I", 0)), "overlap"),
        (_container([36], b"AB\0D" + struct.pack("<I", 0)), "has the name"),
        (_container([36], b"PRIV" + struct.pack("<I", 0xFFFFFFF0)), "ends outside"),
        (_container([0], b"PRIV" + struct.pack("<I", 0)), "outside"),
        (_container([0xFFFFFFFC], b"PRIV" + struct.pack("<I", 0)), "outside"),
        (_container([36], b"PRIV" + struct.pack("<I", 0), count=0xFFFFFFFF), "parts"),
        (_container([36], b"PRIV" + struct.pack("<I", 0), count=200), "do not fit"),
        (b"DXBC" + bytes(16) + struct.pack("<HHII", 2, 0, 32, 0), r"version 2\.0"),
        (b"MZ" + bytes(60), "no DXBC"),
    ],
)
def test_refused_with_the_reason(data: bytes, words: str) -> None:
    with pytest.raises(DamagedInputError, match=words):
        dxbc.parse(data)


def test_program_headers_are_checked() -> None:
    with pytest.raises(DamagedInputError, match="program type 9"):
        dxbc.parse_tokenized_program(struct.pack("<II", 9 << 16 | 0x50, 2))
    with pytest.raises(DamagedInputError, match="words"):
        dxbc.parse_tokenized_program(struct.pack("<II", 0x50, 3))
    assert dxbc.parse_tokenized_program(struct.pack("<II", 1 << 16 | 0x40, 2)) == dxbc.Program(ShaderKind.VERTEX, (4, 0), False)
    dxil = struct.pack("<II4sIII", 13 << 16 | 0x65, 6, b"DXIL", 0x106, 16, 0)
    assert dxbc.parse_dxil_program(dxil) == dxbc.Program(ShaderKind.MESH, (6, 5), True)
    with pytest.raises(DamagedInputError, match="outside the DXIL part"):
        dxbc.parse_dxil_program(struct.pack("<II4sIII", 13 << 16 | 0x65, 6, b"DXIL", 0x106, 16, 4))


@pytest.mark.parametrize("name", ["ABC", "ABCDE", "AB\u00e9D", "AB\nD", ""])
def test_names_of_parts_are_four_characters(name: str) -> None:
    with pytest.raises(InvalidArgumentError):
        dxbc.write([Part(name, b"")])
