"""Identities: every field counts; versions as EP-49 writes them."""

from __future__ import annotations

import contextlib
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.errors import InvalidArgumentError
from shaderkiln.identity import (
    ApplicationIdentity,
    CompilerIdentity,
    as_dict,
    differences,
    format_version,
    parse_version,
)

IDENTITY = CompilerIdentity(
    family="amd-navi31", vendor_id=0x1002, device_id=0x744C, driver_id=3, driver_name="radv", driver_version=7,
    driver_build="Mesa 25.0.7 00ff", abi_version=25 << 48 | 7 << 16, compiler_version="radv 25.0.7",
    application_profile_version=1 << 32, cache_uuid=bytes(range(16)), global_key=b"\x01\x02", object_code_form="pipeline-binary",
    features=("VkPhysicalDeviceFeatures.robustBufferAccess",), pointer_bits=64,
)  # fmt: skip


def test_equal_identities_have_no_difference() -> None:
    assert differences(IDENTITY, replace(IDENTITY)) == ()


@pytest.mark.parametrize("field", [field.name for field in fields(CompilerIdentity)])
def test_every_field_is_compared(field: str) -> None:
    value = getattr(IDENTITY, field)
    other = () if field == "features" else value + (1 if isinstance(value, int) else type(value)() or value)
    (found,) = differences(replace(IDENTITY, **{field: other}), IDENTITY)
    assert (found.field, found.stored, found.expected) == (field, other, value)
    shown = other.hex() if isinstance(other, bytes) else repr(other)
    assert str(found).startswith(f"{field}: stored {shown}, expected ")


def test_differences_come_in_the_order_of_the_fields() -> None:
    other = replace(IDENTITY, pointer_bits=32, family="amd-navi21", cache_uuid=bytes(16))
    assert [found.field for found in differences(other, IDENTITY)] == ["family", "cache_uuid", "pointer_bits"]


def test_reports_have_bytes_as_hexadecimal_text() -> None:
    record = as_dict(IDENTITY)
    assert record["cache_uuid"] == "000102030405060708090a0b0c0d0e0f"
    assert record["global_key"] == "0102"
    assert record["vendor_id"] == 0x1002
    assert list(record) == [field.name for field in fields(CompilerIdentity)]
    assert as_dict(ApplicationIdentity("a"))["name"] == "a"


@pytest.mark.spec("EP-49")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.0", 0x0001_0000_0000_0000),
        ("1.2.3.4", 0x0001_0002_0003_0004),
        ("1.2.3", 0x0001_0002_0003_0000),
        ("65535.65535.65535.65535", 2**64 - 1),
        ("1", 1),
        ("0", 0),
        ("65536", 65536),
        ("18446744073709551615", 2**64 - 1),
        (" 4.27 ", 0x0004_001B_0000_0000),
        ("00001.00002", 0x0001_0002_0000_0000),
        ("0x0001000200030004", 0x0001_0002_0003_0004),
        ("0XfF", 255),
    ],
)
def test_versions(text: str, value: int) -> None:
    assert parse_version(text) == value


@pytest.mark.spec("EP-49")
@pytest.mark.parametrize(
    "text",
    ["", " ", ".", "1.", ".1", "1..2", "1.2.3.4.5", "65536.0", "1.65536", "-1", "+1", "1.-1", "18446744073709551616",
     "0x", "0x1.2", "v1",
     "0x10000000000000000",
     "1,0", "1 .0", "１.0", "²", "1e3", "1_0", "9" * 5000, "1." + "9" * 5000],
)  # fmt: skip
def test_other_texts_are_no_versions(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is no version"):
        parse_version(text)


@pytest.mark.spec("EP-49")
@given(st.integers(0, 2**64 - 1))
def test_what_is_shown_is_read_as_the_same_version(version: int) -> None:
    assert parse_version(format_version(version)) == version
    assert parse_version(str(version)) == version


@pytest.mark.spec("EP-49")
@given(st.lists(st.integers(0, 2**16 - 1), min_size=2, max_size=4))
def test_parts_stand_from_the_most_significant_on(parts: list[int]) -> None:
    whole = parts + [0] * (4 - len(parts))
    assert parse_version(".".join(map(str, parts))) == int.from_bytes(
        b"".join(part.to_bytes(2, "big") for part in whole), "big"
    )


@given(st.text(max_size=40))
def test_any_text_is_a_64_bit_version_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidArgumentError):
        assert 0 <= parse_version(text) < 2**64
