"""The Fossilize archive format (``.foz``), versions 5 and 6, as pure functions on bytes.

An archive is a 16-byte file header and then entries, each a 56-byte header in front of its payload::

    tag, 24 hex digits | hash, 16 hex digits | u32 stored size | u32 flags | u32 crc32 of the stored bytes | u32 raw size

Digits are lowercase, integers little-endian. The format has no index, no footer and no sync marker; the checksum covers
neither key nor sizes.
Source: the Fossilize project's stream archive; layout, hash and integer coding as its captures have them.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from msgspec import Struct

from shaderkiln.errors import DamagedInputError, InvalidArgumentError

MAGIC: Final = b"\x81FOSSILIZEDB\0\0\0"
"""The file's first 15 bytes; the version is the 16th."""
VERSION: Final = 6
"""The version that is written."""
READABLE_VERSIONS: Final = (5, 6)
FILE_HEADER_SIZE: Final = 16
ENTRY_HEADER_SIZE: Final = 56
MAX_RAW_SIZE: Final = 1 << 28
"""Largest payload, in bytes, that is ever inflated or written (256 MiB); a header that claims more is damaged or malicious."""
MAX_INFLATION: Final = 1032
"""No deflate stream inflates by more than this factor (RFC 1951: 258 bytes from 2 bits)."""

STORED: Final = 1
DEFLATED: Final = 2

ENTRY = struct.Struct("<24s16s4I")
"""Tag text, hash text, stored size, flags, crc32, raw size."""


class Tag(IntEnum):
    """What an entry holds."""

    APPLICATION_INFO = 0
    SAMPLER = 1
    DESCRIPTOR_SET_LAYOUT = 2
    PIPELINE_LAYOUT = 3
    SHADER_MODULE = 4
    RENDER_PASS = 5
    GRAPHICS_PIPELINE = 6
    COMPUTE_PIPELINE = 7
    APPLICATION_BLOB_LINK = 8
    RAYTRACING_PIPELINE = 9
    BUCKET_INFO = 10


TAGS: Final[dict[bytes, Tag]] = {b"%024x" % tag: tag for tag in Tag}
"""Every tag by its 24 digits."""
_HEX_DIGITS: Final = b"0123456789abcdef"


class EntryHeader(Struct, frozen=True):
    """The 56 bytes in front of a payload. Sizes are in bytes; ``crc`` is of the stored bytes, 0 where it was not computed."""

    tag: Tag
    hash: int
    stored_size: int
    flags: int
    crc: int
    raw_size: int

    def pack(self) -> bytes:
        """The header as it stands in a file."""
        return ENTRY.pack(b"%024x" % self.tag, b"%016x" % self.hash, self.stored_size, self.flags, self.crc, self.raw_size)

    @classmethod
    def parse(cls, data: bytes | bytearray | memoryview, offset: int = 0) -> EntryHeader:
        """Read the header at ``offset``.

        Raises DamagedInputError with the reason if it is cut off or cannot be true (see ``implausible``).
        """
        if len(data) - offset < ENTRY_HEADER_SIZE:
            raise DamagedInputError("entry header is cut off")
        tag_text, hash_text, stored, flags, crc, raw = ENTRY.unpack_from(data, offset)
        reason = implausible(tag_text, hash_text, stored, flags, raw)
        if reason:
            raise DamagedInputError(reason)
        return cls(TAGS[tag_text], int(hash_text, 16), stored, flags, crc, raw)


def implausible(tag_text: bytes, hash_text: bytes, stored_size: int, flags: int, raw_size: int) -> str:
    """Why an entry header with these fields cannot be true; empty if it can."""
    if tag_text not in TAGS:
        return "unknown tag" if is_hex(tag_text) else "no entry header"
    if not is_hex(hash_text):
        return "hash is not 16 lowercase hex digits"
    return implausible_sizes(stored_size, flags, raw_size)


def implausible_sizes(stored_size: int, flags: int, raw_size: int) -> str:
    """Why the sizes and flags of an entry header contradict each other or exceed the limit; empty if they do not."""
    if flags == DEFLATED:
        if raw_size > MAX_RAW_SIZE:
            return f"raw size {raw_size} is above the limit"
        if raw_size > MAX_INFLATION * stored_size:
            return "raw size is beyond what the stored size can inflate to"
        if stored_size > raw_size + (raw_size >> 3) + 1024:
            return "stored size is beyond what the raw size can deflate to"
    elif flags == STORED:
        if stored_size != raw_size:
            return "stored and raw size of an uncompressed entry differ"
        if raw_size > MAX_RAW_SIZE:
            return f"raw size {raw_size} is above the limit"
    else:
        return f"unknown flags {flags}"
    return ""


def is_hex(text: bytes) -> bool:
    """Whether every byte is a lowercase hexadecimal digit."""
    return not text.translate(None, _HEX_DIGITS)


def file_header(version: int = VERSION) -> bytes:
    """The first 16 bytes of an archive."""
    return MAGIC + bytes((version,))


def parse_file_header(data: bytes) -> int:
    """The version of an archive that starts with ``data``; DamagedInputError if it is not one, or of a version not readable."""
    if len(data) < FILE_HEADER_SIZE or data[: len(MAGIC)] != MAGIC:
        raise DamagedInputError("not a Fossilize archive")
    version = data[len(MAGIC)]
    if version not in READABLE_VERSIONS:
        raise DamagedInputError(f"Fossilize archive version {version} is not readable (5 and 6 are)")
    return version


def pack_entry(tag: Tag, hash: int, payload: bytes, *, compress: bool = True) -> bytes:
    """Header and stored payload of one entry, deflated only where that makes it smaller.

    Raises InvalidArgumentError if the hash has more than 64 bits or the payload is above ``MAX_RAW_SIZE``.
    """
    if not 0 <= hash < 1 << 64:
        raise InvalidArgumentError(f"hash {hash:#x} has more than 64 bits")
    if len(payload) > MAX_RAW_SIZE:
        raise InvalidArgumentError(f"payload of {len(payload)} bytes is above the limit of {MAX_RAW_SIZE}")
    stored, flags = payload, STORED
    if compress:
        deflated = zlib.compress(payload)
        if len(deflated) < len(payload):
            stored, flags = deflated, DEFLATED
    return EntryHeader(Tag(tag), hash, len(stored), flags, zlib.crc32(stored), len(payload)).pack() + stored


def unpack_payload(stored: bytes | memoryview, flags: int, raw_size: int) -> bytes:
    """The payload of an entry from its stored bytes; never more than ``raw_size`` + 1 bytes are inflated.

    Raises DamagedInputError if the stream is damaged, its size is not ``raw_size``, or ``raw_size`` is above ``MAX_RAW_SIZE``.
    """
    if raw_size > MAX_RAW_SIZE:
        raise DamagedInputError(f"raw size {raw_size} is above the limit of {MAX_RAW_SIZE}")
    if flags == STORED:
        if len(stored) != raw_size:
            raise DamagedInputError(f"{len(stored)} bytes stored where {raw_size} are stated")
        return bytes(stored)
    if flags != DEFLATED:
        raise DamagedInputError(f"unknown flags {flags}")
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(stored, raw_size + 1)
    except zlib.error as error:
        raise DamagedInputError(f"damaged zlib stream: {error}") from None
    if len(raw) > raw_size:
        raise DamagedInputError(f"inflates to more than the stated {raw_size} bytes")
    if not stream.eof or len(raw) != raw_size:
        raise DamagedInputError(
            f"inflates to {len(raw)} of the stated {raw_size} bytes" if len(raw) < raw_size else "zlib stream has no end"
        )
    if stream.unused_data:
        raise DamagedInputError("bytes after the end of the zlib stream")
    return raw


def split_shader_module(payload: bytes) -> tuple[bytes, bytes]:
    """The JSON head and the coded SPIR-V words of a shader module's payload, which a zero byte separates.

    The part of the words that belongs to a module is ``varintOffset`` and ``varintSize`` of the head. Raises DamagedInputError
    if there is no zero byte.
    """
    head, separator, coded = payload.partition(b"\0")
    if not separator:
        raise DamagedInputError("shader module has no code behind its description")
    return head, coded


def join_shader_module(head: bytes, coded: bytes) -> bytes:
    """The payload of a shader module: the inverse of ``split_shader_module``."""
    return head + b"\0" + coded


def decode_varint_words(coded: bytes | memoryview, *, max_words: int = MAX_RAW_SIZE // 4) -> array[int]:
    """The 32-bit words of LEB128-coded SPIR-V (7 bits a byte, low bits first).

    Raises DamagedInputError if the last word is cut off, a word has more than 32 bits, or there are more than ``max_words``.
    """
    words: list[int] = []
    append = words.append
    following = iter(coded)
    for byte in following:
        if byte > 127:
            byte &= 127
            shift = 7
            for more in following:
                if more < 128:
                    byte |= more << shift
                    break
                byte |= (more & 127) << shift
                shift += 7
                if shift == 28:
                    # The fifth byte holds the last four bits, so that one more byte is all that can be right.
                    byte |= next(following, 128) << 28
                    break
            else:
                raise DamagedInputError("the last coded word is cut off")
        append(byte)
    if len(words) > max_words:
        raise DamagedInputError(f"{len(words)} coded words where at most {max_words} are expected")
    try:
        return array("I", words)
    except OverflowError:
        raise DamagedInputError("a coded word has more than 32 bits or is cut off") from None


def encode_varint_words(words: Iterable[int]) -> bytes:
    """LEB128 of 32-bit words: the inverse of ``decode_varint_words``. Raises InvalidArgumentError for other integers."""
    return b"".join(map(_CodedWords().__getitem__, words))


class _CodedWords(dict[int, bytes]):
    """Coded words by value: SPIR-V repeats few words many times, so that most look-ups hit."""

    def __missing__(self, word: int) -> bytes:
        if not 0 <= word < 1 << 32:
            raise InvalidArgumentError(f"{word} is no 32-bit word")
        rest, coded = word, bytearray()
        while rest > 127:
            coded.append(rest & 127 | 128)
            rest >>= 7
        coded.append(rest)
        return self.setdefault(word, bytes(coded))


def spirv_from_varint(coded: bytes | memoryview, code_size: int) -> bytes:
    """Little-endian SPIR-V of exactly ``code_size`` bytes from its coded words; DamagedInputError if the size is another."""
    words = decode_varint_words(coded, max_words=code_size // 4)
    if len(words) * 4 != code_size:
        raise DamagedInputError(f"{len(words)} coded words where {code_size} bytes of code are stated")
    if sys.byteorder != "little":
        words.byteswap()
    return words.tobytes()


def spirv_to_varint(code: bytes) -> bytes:
    """Coded words of little-endian SPIR-V. Raises InvalidArgumentError if its size is no multiple of 4."""
    if len(code) % 4:
        raise InvalidArgumentError(f"{len(code)} bytes of SPIR-V are no whole number of words")
    words = array("I", code)
    if sys.byteorder != "little":
        words.byteswap()
    return encode_varint_words(words)


HASH_SEED: Final = 0xCBF29CE484222325
HASH_PRIME: Final = 0x100000001B3
_MASK32: Final = 0xFFFFFFFF
_MASK64: Final = 0xFFFFFFFFFFFFFFFF
_F32: Final = struct.Struct("<f")


class Hasher:
    """Fossilize's 64-bit hash: FNV-1 with one step per value. It resists no attacker, and its low bits are weak."""

    __slots__ = ("state",)

    def __init__(self, state: int = HASH_SEED) -> None:
        self.state = state

    def u32(self, value: int) -> None:
        """One step with the low 32 bits of ``value``."""
        self.state = self.state * HASH_PRIME & _MASK64 ^ value & _MASK32

    s32 = u32
    """A signed word hashes as its two's complement."""

    def u64(self, value: int) -> None:
        """Two steps: the low word, then the high word."""
        self.u32(value)
        self.u32(value >> 32)

    def f32(self, value: float) -> None:
        """One step with the bits of a single-precision number; a value out of its range hashes as infinity."""
        try:
            self.u32(int.from_bytes(_F32.pack(value), "little"))
        except OverflowError:
            self.u32(0xFF800000 if value < 0 else 0x7F800000)

    def words(self, values: Iterable[int]) -> None:
        """One step per 32-bit word."""
        state = self.state
        for value in values:
            state = state * HASH_PRIME & _MASK64 ^ value
        self.state = state

    def data(self, data: bytes | memoryview) -> None:
        """One step per byte."""
        self.words(data)

    def string(self, text: str | bytes) -> None:
        """A step with 0xff, then one per byte of the UTF-8 text, without a terminator."""
        self.u32(0xFF)
        self.data(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))


def hash_shader_module(words: Iterable[int], flags: int = 0) -> int:
    """The hash of a shader module: its words, then its create flags."""
    hasher = Hasher()
    hasher.words(words)
    hasher.u32(flags)
    return hasher.state
