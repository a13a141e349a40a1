"""The header of pipeline cache data, and the reasons for which it is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.formats.vk_cache import CacheHeader, CacheRejectedError, fits, read_header

UUID = bytes(range(16))


@pytest.mark.spec("VC-09")
def test_a_header_is_thirty_two_bytes_least_significant_first() -> None:
    header = CacheHeader(vendor_id=0x1002, device_id=0x744C, uuid=UUID)
    assert bytes(header) == bytes.fromhex("20000000 01000000 02100000 4c740000") + UUID


@pytest.mark.spec("VC-09")
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.binary(min_size=16, max_size=16), st.binary(max_size=40))
def test_what_is_written_is_read(vendor: int, device: int, uuid: bytes, more: bytes) -> None:
    assert read_header(bytes(CacheHeader(vendor, device, uuid)) + more) == CacheHeader(vendor, device, uuid)


@pytest.mark.spec("VC-02")
@pytest.mark.parametrize(
    ("data", "position", "words"),
    [
        (b"", 0, "0 bytes"),
        (bytes(CacheHeader(1, 2, UUID))[:31], 31, "31 bytes"),
        (struct.pack("<IIII", 31, 1, 1, 2) + UUID, 0, "a header of 31 bytes, not 32"),
        (struct.pack("<IIII", 32, 0, 1, 2) + UUID, 4, "header version 0, not 1"),
        (struct.pack("<IIII", 32, 2, 1, 2) + UUID, 4, "header version 2, not 1"),
        (struct.pack(">IIII", 32, 1, 1, 2) + UUID, 0, "a header of 536870912 bytes"),
    ],
)
def test_the_reason_and_the_place_of_a_refusal(data: bytes, position: int, words: str) -> None:
    with pytest.raises(CacheRejectedError, match=words) as caught:
        read_header(data)
    assert caught.value.position == position


@pytest.mark.spec("VC-02")
def test_each_field_of_the_device_is_compared() -> None:
    header = CacheHeader(0x1002, 0x744C, UUID)
    assert fits(header, 0x1002, 0x744C, UUID) is None
    assert fits(header, 0x10DE, 0x744C, UUID) == "made for vendor 0x1002, not 0x10de"
    assert fits(header, 0x1002, 0x73BF, UUID) == "made for device 0x744c, not 0x73bf"
    assert "another driver build" in str(fits(header, 0x1002, 0x744C, bytes(16)))
