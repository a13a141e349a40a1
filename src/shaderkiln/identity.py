"""What a value was made for and by, and the comparison that stands before every driver."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from shaderkiln.errors import CacheCorruptError, InvalidArgumentError


@dataclass(frozen=True, slots=True)
class ApplicationIdentity:
    """Whose pipelines these are. Versions are 64-bit values of four 16-bit parts (EP-49)."""

    name: str = ""
    exe_filename: str = ""
    version: int = 0
    engine_name: str = ""
    engine_version: int = 0


@dataclass(frozen=True, slots=True)
class CompilerIdentity:
    """The adapter family and the driver build that object code belongs to.

    Object code is handed to a driver only if every field is equal to what that driver reports: the Vulkan cache header alone is
    no safe identity (several families share one cache UUID, and some drivers accept the binaries of another family).
    """

    family: str
    """Adapter family, for example ``amd-navi31``."""
    vendor_id: int
    device_id: int
    driver_id: int
    """VkDriverId."""
    driver_name: str
    driver_version: int
    """VkPhysicalDeviceProperties::driverVersion."""
    driver_build: str
    """The exact build: version text and ELF build ID of the driver's shared object."""
    abi_version: int
    """Four 16-bit parts, never 0 or 2**64 - 1 (EP-53)."""
    compiler_version: str
    application_profile_version: int
    cache_uuid: bytes
    """VkPhysicalDeviceProperties::pipelineCacheUUID, 16 bytes."""
    global_key: bytes
    """vkGetPipelineKeyKHR without create info; empty where the driver has no VK_KHR_pipeline_binary."""
    object_code_form: str
    """``pipeline-binary`` or ``pipeline-cache``."""
    features: tuple[str, ...]
    """The code-changing features (robustness) that the device was created with, sorted."""
    pointer_bits: int


@dataclass(frozen=True, slots=True)
class Difference:
    """One field in which a stored identity is not the expected one."""

    field: str
    stored: Any
    expected: Any

    def __str__(self) -> str:
        return f"{self.field}: stored {shown_value(self.stored)}, expected {shown_value(self.expected)}"


class IdentityMismatchError(CacheCorruptError):
    """A database was made for or by somebody else; ``differences`` has every field. ``is_output``: it was to be written to."""

    def __init__(
        self, path: object, found: Iterable[Difference], what: str = "made for or by another", *, is_output: bool = False
    ) -> None:
        self.differences = tuple(found)
        super().__init__(f"{path}: {what}: " + "; ".join(map(str, self.differences)))
        self.path = path
        self.is_output = is_output


def differences(stored: CompilerIdentity, expected: CompilerIdentity) -> tuple[Difference, ...]:
    """Every field that differs, in the order of the dataclass; empty means the object code may be used."""
    return tuple(
        Difference(field.name, getattr(stored, field.name), getattr(expected, field.name))
        for field in fields(CompilerIdentity)
        if getattr(stored, field.name) != getattr(expected, field.name)
    )


def as_dict(identity: CompilerIdentity | ApplicationIdentity) -> dict[str, Any]:
    """The fields by name, bytes as hexadecimal text, for reports and JSON."""
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in asdict(identity).items()}


def parse_version(text: str) -> int:
    """A version as a 64-bit value of four 16-bit parts: ``1.0`` is 1.0.0.0; a number without a dot, decimal or hexadecimal
    (``0x1000000000000``), is the value itself (EP-49).

    Raises InvalidArgumentError for anything else.
    """
    if re.fullmatch("0[xX][0-9a-fA-F]{1,16}", text.strip()):
        return int(text, 16)
    parts = text.strip().split(".")
    if all(part.isascii() and part.isdigit() and len(part) <= 20 for part in parts):
        numbers = [int(part) for part in parts]
        if len(numbers) == 1 and numbers[0] < 1 << 64:
            return numbers[0]
        if 2 <= len(numbers) <= 4 and max(numbers) < 1 << 16:
            numbers += [0] * (4 - len(numbers))
            return numbers[0] << 48 | numbers[1] << 32 | numbers[2] << 16 | numbers[3]
    raise InvalidArgumentError(
        f"{text!r} is no version: give up to four parts below 65536 with dots between them, or one 64-bit number"
    )


def format_version(version: int) -> str:
    """The four parts with dots between them, for example ``25.0.7.0``."""
    return ".".join(str(version >> shift & 0xFFFF) for shift in (48, 32, 16, 0))


def shown_value(value: Any) -> str:
    """A field of an identity for people."""
    return value.hex() if isinstance(value, bytes) else repr(value)
