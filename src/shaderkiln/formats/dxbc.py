"""DXBC containers: the parts that hold a Direct3D shader, its signatures, its reflection and its root signature.

Layout, all numbers little-endian: ``DXBC``, a digest of 16 bytes, u16 major 1, u16 minor 0, u32 size, u32 count, u32 offsets of
the parts; a part is a FourCC, u32 size, data. Nothing here trusts an offset or a count that it has not compared with the size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from shaderkiln.errors import DamagedInputError, InvalidArgumentError

MAGIC = b"DXBC"
MAXIMUM_BYTES = 16 << 20
"""Longer containers are refused, so that memory stays bounded."""
MAXIMUM_PARTS = 256
NO_DIGEST = bytes(16)
"""What compilers write that cannot sign."""

_HEADER = struct.Struct("<4s16sHHII")
_PART = struct.Struct("<4sI")


class ShaderKind(IntEnum):
    """Program types of DXBC and DXIL programs (D3D12_SHADER_VERSION_TYPE)."""

    PIXEL = 0
    VERTEX = 1
    GEOMETRY = 2
    HULL = 3
    DOMAIN = 4
    COMPUTE = 5
    LIBRARY = 6
    RAY_GENERATION = 7
    INTERSECTION = 8
    ANY_HIT = 9
    CLOSEST_HIT = 10
    MISS = 11
    CALLABLE = 12
    MESH = 13
    AMPLIFICATION = 14
    NODE = 15


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its FourCC, for example ``DXIL``, and its data."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Program:
    """What a shader part says of itself."""

    kind: ShaderKind
    model: tuple[int, int]
    """Shader model, for example (6, 0)."""
    is_dxil: bool


@dataclass(frozen=True, slots=True)
class SignatureElement:
    """One element of an input, output or patch constant signature (D3D12_SIGNATURE_PARAMETER_DESC)."""

    semantic_name: str
    semantic_index: int
    system_value: int
    """D3D_NAME; 0: none."""
    component_type: int
    """D3D_REGISTER_COMPONENT_TYPE: 1 unsigned, 2 signed, 3 float, and the 16- and 64-bit types from 4."""
    register: int
    """0xFFFFFFFF: no register (for example SV_Depth)."""
    mask: int
    """Components, bit 0 is x."""
    read_write_mask: int
    """Of an input those that are always read; of an output those that are never written."""
    stream: int = 0
    minimum_precision: int = 0


@dataclass(frozen=True, slots=True)
class ResourceBinding:
    """A resource that the PSV0 part names."""

    type: int
    """PSVResourceType: 1 sampler, 2 CBV, 3 to 5 SRV (typed, raw, structured), 6 to 9 UAV (typed, raw, structured, with counter)."""
    space: int
    lower: int
    upper: int
    """Inclusive; 0xFFFFFFFF: unbounded."""
    kind: int = 0
    """PSVResourceKind; 0 where the version of the part has none."""
    flags: int = 0


@dataclass(frozen=True, slots=True)
class PipelineValidation:
    """The PSV0 part: what a runtime checks a pipeline against."""

    kind: ShaderKind | None
    """None where the version of the part does not say it."""
    thread_counts: tuple[int, int, int] | None
    """Threads in a group; None where the version of the part has none, or the shader has no groups."""
    wave_lanes: tuple[int, int]
    """Smallest and largest count of lanes that the shader expects."""
    resources: tuple[ResourceBinding, ...]


@dataclass(frozen=True, slots=True)
class Container:
    """A container: the parts in their order."""

    digest: bytes
    parts: tuple[Part, ...]

    def part(self, *names: str) -> bytes | None:
        """The data of the first part with one of these names."""
        for part in self.parts:
            if part.name in names:
                return part.data
        return None

    @property
    def program(self) -> Program | None:
        """The shader's kind and model; None for a container without shader (a root signature).

        Raises DamagedInputError.
        """
        if (data := self.part("DXIL")) is not None:
            return parse_dxil_program(data)
        if (data := self.part("SHEX", "SHDR")) is not None:
            return parse_tokenized_program(data)
        return None

    @property
    def root_signature(self) -> bytes | None:
        """The serialized root signature (``formats.root_signature``) in it."""
        return self.part("RTS0")

    @property
    def input_signature(self) -> tuple[SignatureElement, ...] | None:
        return self._signature("ISG1", "ISGN")

    @property
    def output_signature(self) -> tuple[SignatureElement, ...] | None:
        return self._signature("OSG1", "OSG5", "OSGN")

    @property
    def patch_constant_signature(self) -> tuple[SignatureElement, ...] | None:
        return self._signature("PSG1", "PCSG")

    @property
    def pipeline_validation(self) -> PipelineValidation | None:
        """What the PSV0 part says; None without one. Raises DamagedInputError."""
        data = self.part("PSV0")
        return parse_pipeline_validation(data) if data is not None else None

    def _signature(self, *names: str) -> tuple[SignatureElement, ...] | None:
        for name in names:
            if (data := self.part(name)) is not None:
                return parse_signature(name, data)
        return None


def is_container(data: bytes) -> bool:
    """Whether the bytes begin as a DXBC container does."""
    return data[:4] == MAGIC


def parse(data: bytes) -> Container:
    """The container in ``data``. The digest is not compared (``has_valid_digest``).

    Raises DamagedInputError where it is cut, where sizes do not agree, or where parts overlap.
    """
    if len(data) < _HEADER.size:
        raise DamagedInputError(f"DXBC: {len(data)} bytes are too few for a container")
    magic, digest, major, minor, size, count = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise DamagedInputError("DXBC: this is no DXBC container")
    if (major, minor) != (1, 0):
        raise DamagedInputError(f"DXBC: container version {major}.{minor} is not known")
    if size != len(data):
        raise DamagedInputError(f"DXBC: the container says {size} bytes, and there are {len(data)}")
    if size > MAXIMUM_BYTES or count > MAXIMUM_PARTS:
        raise DamagedInputError(f"DXBC: {size} bytes in {count} parts are more than a container may have")
    first = _HEADER.size + 4 * count
    if first > size:
        raise DamagedInputError(f"DXBC: {count} parts do not fit into {size} bytes")
    taken: list[tuple[int, int]] = []
    parts = []
    for number, offset in enumerate(struct.unpack_from(f"<{count}I", data, _HEADER.size)):
        if offset < first or offset + _PART.size > size:
            raise DamagedInputError(f"DXBC: part {number} is outside the container (offset {offset})")
        name, length = _PART.unpack_from(data, offset)
        end = offset + _PART.size + length
        if end > size:
            raise DamagedInputError(f"DXBC: part {number} ends outside the container (offset {offset}, {length} bytes)")
        if not all(32 <= c < 127 for c in name):
            raise DamagedInputError(f"DXBC: part {number} has the name {name!r}")
        taken.append((offset, end))
        parts.append(Part(name.decode("ascii"), bytes(data[offset + _PART.size : end])))
    taken.sort()
    for (_, end), (start, _) in pairwise(taken):
        if start < end:
            raise DamagedInputError(f"DXBC: two parts overlap at offset {start}")
    return Container(digest, tuple(parts))


def write(parts: Iterable[Part], *, signed: bool = True) -> bytes:
    """A container with these parts in this order, without gaps, with its digest unless ``signed`` is off (then zeros).

    Raises InvalidArgumentError for names that are no FourCC and for too many parts or bytes.
    """
    parts = tuple(parts)
    offset = _HEADER.size + 4 * len(parts)
    offsets, body = [], []
    for part in parts:
        name = part.name.encode("ascii", "replace")
        if len(part.name) != 4 or not all(32 <= c < 127 for c in name) or not part.name.isascii():
            raise InvalidArgumentError(f"{part.name!r} is no FourCC")
        offsets.append(offset)
        body.append(_PART.pack(name, len(part.data)) + part.data)
        offset += len(body[-1])
    if len(parts) > MAXIMUM_PARTS or offset > MAXIMUM_BYTES:
        raise InvalidArgumentError(f"{offset} bytes in {len(parts)} parts are more than a container may have")
    header = _HEADER.pack(MAGIC, NO_DIGEST, 1, 0, offset, len(parts)) + struct.pack(f"<{len(parts)}I", *offsets)
    data = header + b"".join(body)
    return sign(data) if signed else data


def compute_digest(data: bytes) -> bytes:
    """The digest that belongs into bytes 4 to 20: MD5's rounds over everything behind them, with a tail of its own.

    The last block begins with the length in bits and ends with twice the length in bytes, plus 1 (MD5 has one 64-bit length).
    """
    body = bytes(data[20:])
    length = len(body)
    whole = length - length % 64
    rest = body[whole:]
    bits, marked = struct.pack("<I", length * 8 & 0xFFFFFFFF), struct.pack("<I", (length * 2 | 1) & 0xFFFFFFFF)
    if len(rest) < 56:
        tail = (bits + rest + b"\x80").ljust(60, b"\0") + marked
    else:
        tail = (rest + b"\x80").ljust(64, b"\0") + (bits + bytes(56) + marked)
    return _md5_without_tail(body[:whole] + tail)


def has_valid_digest(data: bytes) -> bool:
    """Whether the digest in the container is the one of its bytes."""
    return len(data) >= 20 and data[4:20] == compute_digest(data)


def sign(data: bytes) -> bytes:
    """The container with its digest filled in. Raises DamagedInputError for something else than a container."""
    if data[:4] != MAGIC or len(data) < _HEADER.size:
        raise DamagedInputError("DXBC: this is no DXBC container")
    return data[:4] + compute_digest(data) + data[20:]


_SHIFTS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_SINES = (
    0xD76AA478, 0xE8C7B756, 0x242070DB, 0xC1BDCEEE, 0xF57C0FAF, 0x4787C62A, 0xA8304613, 0xFD469501,
    0x698098D8, 0x8B44F7AF, 0xFFFF5BB1, 0x895CD7BE, 0x6B901122, 0xFD987193, 0xA679438E, 0x49B40821,
    0xF61E2562, 0xC040B340, 0x265E5A51, 0xE9B6C7AA, 0xD62F105D, 0x02441453, 0xD8A1E681, 0xE7D3FBC8,
    0x21E1CDE6, 0xC33707D6, 0xF4D50D87, 0x455A14ED, 0xA9E3E905, 0xFCEFA3F8, 0x676F02D9, 0x8D2A4C8A,
    0xFFFA3942, 0x8771F681, 0x6D9D6122, 0xFDE5380C, 0xA4BEEA44, 0x4BDECFA9, 0xF6BB4B60, 0xBEBFBC70,
    0x289B7EC6, 0xEAA127FA, 0xD4EF3085, 0x04881D05, 0xD9D4D039, 0xE6DB99E5, 0x1FA27CF8, 0xC4AC5665,
    0xF4292244, 0x432AFF97, 0xAB9423A7, 0xFC93A039, 0x655B59C3, 0x8F0CCC92, 0xFFEFF47D, 0x85845DD1,
    0x6FA87E4F, 0xFE2CE6E0, 0xA3014314, 0x4E0811A1, 0xF7537E82, 0xBD3AF235, 0x2AD7D2BB, 0xEB86D391,
)  # fmt: skip
"""floor(2**32 * abs(sin(i + 1))), RFC 1321."""


def _steps() -> tuple[tuple[int, int, int], ...]:
    """For each of the 64 steps: word of the block, left rotation, constant (RFC 1321, section 3.4)."""
    words = [*range(16)] + [(5 * i + 1) % 16 for i in range(16)]
    words += [(3 * i + 5) % 16 for i in range(16)] + [7 * i % 16 for i in range(16)]
    return tuple((words[i], _SHIFTS[i // 16][i % 4], _SINES[i]) for i in range(64))


_STEPS = _steps()


def _md5_without_tail(data: bytes) -> bytes:
    # hashlib cannot be used: it always appends MD5's own tail.
    a0, b0, c0, d0 = 0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476
    mask = 0xFFFFFFFF
    first, second, third, fourth = _STEPS[:16], _STEPS[16:32], _STEPS[32:48], _STEPS[48:]
    for block in struct.iter_unpack("<16I", data):
        a, b, c, d = a0, b0, c0, d0
        for word, shift, sine in first:
            f = (a + (d ^ (b & (c ^ d))) + sine + block[word]) & mask
            a, d, c, b = d, c, b, (b + (f << shift | f >> (32 - shift))) & mask
        for word, shift, sine in second:
            f = (a + (c ^ (d & (b ^ c))) + sine + block[word]) & mask
            a, d, c, b = d, c, b, (b + (f << shift | f >> (32 - shift))) & mask
        for word, shift, sine in third:
            f = (a + (b ^ c ^ d) + sine + block[word]) & mask
            a, d, c, b = d, c, b, (b + (f << shift | f >> (32 - shift))) & mask
        for word, shift, sine in fourth:
            f = (a + (c ^ (b | (d ^ mask))) + sine + block[word]) & mask
            a, d, c, b = d, c, b, (b + (f << shift | f >> (32 - shift))) & mask
        a0, b0, c0, d0 = (a0 + a) & mask, (b0 + b) & mask, (c0 + c) & mask, (d0 + d) & mask
    return struct.pack("<4I", a0, b0, c0, d0)


_TOKENIZED_KINDS = frozenset(range(6))


def parse_tokenized_program(data: bytes) -> Program:
    """Kind and model from the version token of a SHDR or SHEX part. Raises DamagedInputError."""
    if len(data) < 8:
        raise DamagedInputError("DXBC: the shader part is cut")
    version, words = struct.unpack_from("<II", data)
    if words * 4 > len(data) or words < 2:
        raise DamagedInputError(f"DXBC: the shader part says {words} words, and there are {len(data) // 4}")
    kind = version >> 16
    if kind not in _TOKENIZED_KINDS:
        raise DamagedInputError(f"DXBC: program type {kind} is not known")
    return Program(ShaderKind(kind), (version >> 4 & 15, version & 15), False)


def parse_dxil_program(data: bytes) -> Program:
    """Kind and model from the header of a DXIL part. Raises DamagedInputError."""
    if len(data) < 24:
        raise DamagedInputError("DXBC: the DXIL part is cut")
    version, words, magic, _dxil_version, offset, size = struct.unpack_from("<II4sIII", data)
    if magic != b"DXIL" or words * 4 > len(data):
        raise DamagedInputError("DXBC: the DXIL part has no DXIL header, or is cut")
    if offset < 16 or 8 + offset + size > len(data):
        raise DamagedInputError(f"DXBC: the bitcode (offset {offset}, {size} bytes) is outside the DXIL part")
    kind = version >> 16
    if kind not in ShaderKind._value2member_map_:
        raise DamagedInputError(f"DXBC: program type {kind} is not known")
    return Program(ShaderKind(kind), (version >> 4 & 15, version & 15), True)


_SIGNATURE_SIZES = {"ISGN": 24, "OSGN": 24, "PCSG": 24, "OSG5": 28, "ISG1": 32, "OSG1": 32, "PSG1": 32}
_MAXIMUM_ELEMENTS = 1024
_MAXIMUM_NAME = 256


def parse_signature(name: str, data: bytes) -> tuple[SignatureElement, ...]:
    """The elements of a signature part; ``name`` tells the layout. Raises DamagedInputError."""
    size = _SIGNATURE_SIZES.get(name)
    if size is None:
        raise InvalidArgumentError(f"{name!r} is no name of a signature part")
    if len(data) < 8:
        raise DamagedInputError(f"DXBC: the part {name} is cut")
    count, offset = struct.unpack_from("<II", data)
    if count > _MAXIMUM_ELEMENTS or offset < 8 or offset + count * size > len(data):
        raise DamagedInputError(f"DXBC: {count} elements do not fit into the part {name}")
    elements = []
    for number in range(count):
        at = offset + number * size
        stream = precision = 0
        if size > 24:
            stream = struct.unpack_from("<I", data, at)[0]
            at += 4
        text, index, system_value, kind, register, mask, used = struct.unpack_from("<IIIIIBB", data, at)
        if size == 32:
            precision = struct.unpack_from("<I", data, at + 24)[0]
        end = data.find(b"\0", text, text + _MAXIMUM_NAME) if text < len(data) else -1
        if end < 0:
            raise DamagedInputError(f"DXBC: the name of element {number} of {name} is outside the part")
        try:
            semantic = data[text:end].decode("ascii")
        except UnicodeDecodeError:
            raise DamagedInputError(f"DXBC: the name of element {number} of {name} is not ASCII") from None
        elements.append(SignatureElement(semantic, index, system_value, kind, register, mask, used, stream, precision))
    return tuple(elements)


_MAXIMUM_RESOURCES = 1 << 16


def parse_pipeline_validation(data: bytes) -> PipelineValidation:
    """What a PSV0 part says, of any of its versions. Raises DamagedInputError."""
    if len(data) < 4:
        raise DamagedInputError("DXBC: the part PSV0 is cut")
    size = struct.unpack_from("<I", data)[0]
    if size < 24 or 4 + size + 4 > len(data):
        raise DamagedInputError(f"DXBC: the information of PSV0 ({size} bytes) does not fit into the part")
    lanes = struct.unpack_from("<II", data, 4 + 16)
    kind: ShaderKind | None = None
    if size >= 36:
        number = data[4 + 24]
        if number not in ShaderKind._value2member_map_:
            raise DamagedInputError(f"DXBC: program type {number} in PSV0 is not known")
        kind = ShaderKind(number)
    threads: tuple[int, int, int] | None = None
    if size >= 48:
        x, y, z = struct.unpack_from("<III", data, 4 + 36)
        threads = (x, y, z) if x and y and z else None
    at = 4 + size
    count = struct.unpack_from("<I", data, at)[0]
    at += 4
    resources = []
    if count:
        if at + 4 > len(data):
            raise DamagedInputError("DXBC: the resources of PSV0 are cut")
        stride = struct.unpack_from("<I", data, at)[0]
        at += 4
        if stride < 16 or count > _MAXIMUM_RESOURCES or at + stride * count > len(data):
            raise DamagedInputError(f"DXBC: {count} resources of {stride} bytes do not fit into PSV0")
        for number in range(count):
            values = struct.unpack_from("<IIII", data, at + number * stride)
            more = struct.unpack_from("<II", data, at + number * stride + 16) if stride >= 24 else (0, 0)
            resources.append(ResourceBinding(*values, *more))
    return PipelineValidation(kind, threads, (lanes[0], lanes[1]), tuple(resources))
