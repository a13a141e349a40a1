"""What of initial data reaches a driver (VC-02), with data written here and no driver."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.capabilities import Capabilities
from shaderkiln.formats.mesa_cache import Entry, Layout, seal, write
from shaderkiln.formats.vk_cache import CacheHeader
from shaderkiln.vulkan.initial_data import Reason, check

pytestmark = pytest.mark.spec("VC-02")

UUID = bytes(range(16))
DEVICE = Capabilities(
    api_version=0,
    vendor_id=0x1002,
    device_id=0x744C,
    device_name="",
    device_type=0,
    driver_version=0,
    driver_id=3,
    driver_name="",
    driver_info="",
    cache_uuid=UUID,
    extensions=frozenset(),
    features=frozenset(),
    properties={},
    object_code_form="pipeline-cache",
)
HEADER = CacheHeader(0x1002, 0x744C, UUID)
ENTRIES = (
    Entry(-1, b"k" * 32, b"first entry"),
    Entry(-1, b"l" * 32, b"a second, longer entry"),
    Entry(2, b"m" * 33, b"x" * 70),
)
DATA = write(HEADER, ENTRIES)
OPAQUE = bytes(HEADER) + b"whatever the driver keeps in there" * 5


def altered(data: bytes, position: int, value: bytes) -> bytes:
    return data[:position] + value + data[position + len(value) :]


@pytest.mark.parametrize("data", [DATA, seal(DATA)], ids=["from another program", "with its checksum"])
def test_whole_data_is_passed_on_without_the_checksum(data: bytes) -> None:
    assert check(data, DEVICE, Layout.MESA) == (DATA, None)


@pytest.mark.spec("VC-09")
@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [
        (0, struct.pack("<I", 16), Reason.HEADER),
        (4, struct.pack("<I", 2), Reason.HEADER),
        (8, struct.pack("<I", 0x10DE), Reason.DEVICE),
        (12, struct.pack("<I", 0x73BF), Reason.DEVICE),
        (16, bytes(16), Reason.DEVICE),
    ],
)
@pytest.mark.parametrize("layout", [Layout.MESA, Layout.OPAQUE])
def test_a_header_that_does_not_fit_the_device(position: int, value: bytes, reason: Reason, layout: Layout) -> None:
    for data in (DATA, seal(altered(DATA, position, value))):
        got, rejection = check(altered(data, position, value), DEVICE, layout)
        assert got == b""
        assert rejection is not None
        assert rejection.reason is reason


def test_every_changed_byte_is_noticed_where_there_is_a_checksum() -> None:
    for whole, layout in ((seal(DATA), Layout.MESA), (seal(OPAQUE), Layout.OPAQUE)):
        for position in range(len(whole)):
            for change in (1, 0x80, 0xFF):
                got, rejection = check(altered(whole, position, bytes([whole[position] ^ change])), DEVICE, layout)
                assert (got, rejection is None) == (b"", False), position


def test_truncated_anywhere_it_is_whole_entries_or_nothing() -> None:
    whole = seal(DATA)
    for length in range(len(whole)):
        got, rejection = check(whole[:length], DEVICE, Layout.MESA)
        if (
            length == 32 or len(DATA) <= length < len(DATA) + -len(DATA) % 4 + 12
        ):  # a header alone; everything but a whole checksum
            assert (got, rejection) == (DATA[:length], None)
        else:
            assert got == b""
            assert rejection is not None
            assert rejection.reason is (Reason.HEADER if length < 32 else Reason.DAMAGED)


def test_a_checksum_that_is_partly_there_is_damage_of_opaque_data() -> None:
    whole = seal(OPAQUE)
    for length in range(len(OPAQUE) + 3, len(whole)):
        assert check(whole[:length], DEVICE, Layout.OPAQUE)[0] == b"", length


def test_random_damage_of_sealed_data_reaches_no_driver() -> None:
    dice = random.Random(4)
    whole = seal(DATA)
    for _ in range(10_000):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 2, 8))):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        got, rejection = check(bytes(damaged), DEVICE, Layout.MESA)
        assert got in (b"", DATA)
        assert (rejection is None) == (got == DATA)


@given(st.binary(max_size=300))
def test_anything_behind_the_right_header_gives_an_answer(payload: bytes) -> None:
    for layout in Layout:
        got, rejection = check(bytes(HEADER) + payload, DEVICE, layout)
        assert (rejection is None) == bool(got)


def test_counts_and_sizes_that_the_data_does_not_have() -> None:
    for position in (32, 40, 44):  # number of entries, size of the first key, size of the first data
        got, rejection = check(altered(DATA, position, b"\xff\xff\xff\xff"), DEVICE, Layout.MESA)
        assert got == b""
        assert rejection is not None
        assert rejection.reason is Reason.DAMAGED


@pytest.mark.spec("VC-06")
@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"\xff\xff\xff\xff",
        struct.pack("<iI", -1, 32),
        struct.pack("<iII", -1, 32, 9),
        struct.pack("<iII32s", -1, 32, 9, b"k" * 32),
        struct.pack("<iII33s", -1, 33, 9, b"k" * 33),
    ],
    ids=len,
)
def test_what_mesa_leaves_of_an_entry_that_had_no_room(begun: bytes) -> None:
    padding = bytes(-len(DATA) % 4)
    assert check(DATA + padding + begun, DEVICE, Layout.MESA) == (DATA, None)


def test_more_than_a_begun_entry_behind_the_last_one_is_damage() -> None:
    fewer = altered(DATA, 32, struct.pack("<I", 2))
    got, rejection = check(fewer, DEVICE, Layout.MESA)
    assert got == b""
    assert rejection is not None
    assert rejection.reason is Reason.DAMAGED


def test_a_required_checksum() -> None:
    got, rejection = check(DATA, DEVICE, Layout.MESA, require_checksum=True)
    assert got == b""
    assert rejection is not None
    assert rejection.reason is Reason.UNSEALED
    assert check(seal(DATA), DEVICE, Layout.MESA, require_checksum=True) == (DATA, None)
