"""Exceptions of the whole library; each carries the HRESULT or VkResult name that the specification gives it."""

from __future__ import annotations

from enum import Enum, auto
from typing import ClassVar


class Trouble(Enum):
    """Where the trouble is that an error tells of; a command's exit code says it."""

    USAGE = auto()
    """What was asked for makes no sense."""
    INPUT = auto()
    """An input, or anything else that none of the others is."""
    DRIVER = auto()
    """No driver or compiler, or it cannot be used."""
    OUTPUT = auto()
    """The output cannot be written."""


class ShaderkilnError(Exception):
    """Base of every error raised on purpose.

    ``code`` is the HRESULT or VkResult name (``spec/conformance.md``), for example ``DXGI_ERROR_NOT_FOUND``.
    """

    default_code: ClassVar[str] = "E_FAIL"
    trouble: ClassVar[Trouble] = Trouble.INPUT

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code: str = code or self.default_code


class InvalidArgumentError(ShaderkilnError):
    """An argument is not allowed here (``E_INVALIDARG``)."""

    default_code = "E_INVALIDARG"
    trouble = Trouble.USAGE


class InvalidCallError(ShaderkilnError):
    """A call that comes too early or too late (``DXGI_ERROR_INVALID_CALL``)."""

    default_code = "DXGI_ERROR_INVALID_CALL"


class NotFoundError(ShaderkilnError):
    """Nothing is stored under that key, name or path (``DXGI_ERROR_NOT_FOUND``)."""

    default_code = "DXGI_ERROR_NOT_FOUND"


class AlreadyExistsError(ShaderkilnError):
    """A value of that type is already stored under that key (``DXGI_ERROR_ALREADY_EXISTS``)."""

    default_code = "DXGI_ERROR_ALREADY_EXISTS"
    trouble = Trouble.OUTPUT


class AccessDeniedError(ShaderkilnError):
    """A store into something opened read-only (``E_ACCESSDENIED``)."""

    default_code = "E_ACCESSDENIED"
    trouble = Trouble.OUTPUT


class UnreadableError(AccessDeniedError):
    """An input file may not be read (``E_ACCESSDENIED``)."""

    trouble = Trouble.INPUT


class CacheFullError(ShaderkilnError):
    """The store would exceed the maximum size (``DXGI_ERROR_CACHE_FULL``)."""

    default_code = "DXGI_ERROR_CACHE_FULL"
    trouble = Trouble.OUTPUT


class CacheCorruptError(ShaderkilnError):
    """The database is damaged or belongs to somebody else (``DXGI_ERROR_CACHE_CORRUPT``)."""

    default_code = "DXGI_ERROR_CACHE_CORRUPT"


class MoreDataError(ShaderkilnError):
    """The caller's buffer is too small; the required size has been set (``DXGI_ERROR_MORE_DATA``)."""

    default_code = "DXGI_ERROR_MORE_DATA"


class NotCurrentlyAvailableError(ShaderkilnError):
    """Switched off, or allowed in developer mode only (``DXGI_ERROR_NOT_CURRENTLY_AVAILABLE``)."""

    default_code = "DXGI_ERROR_NOT_CURRENTLY_AVAILABLE"


class AllocationError(ShaderkilnError):
    """The caller's allocation callback gave no buffer (``E_OUTOFMEMORY``)."""

    default_code = "E_OUTOFMEMORY"


class DamagedInputError(ShaderkilnError):
    """Input data is truncated, altered or not of the expected format (``E_INVALIDARG``)."""

    default_code = "E_INVALIDARG"


class UnsupportedError(ShaderkilnError):
    """This adapter, or what stands in for it, cannot do what is asked for (``DXGI_ERROR_UNSUPPORTED``)."""

    default_code = "DXGI_ERROR_UNSUPPORTED"


class AdapterNotFoundError(ShaderkilnError):
    """Object code of other hardware than this adapter (``D3D12_ERROR_ADAPTER_NOT_FOUND``)."""

    default_code = "D3D12_ERROR_ADAPTER_NOT_FOUND"


class DriverVersionMismatchError(ShaderkilnError):
    """Object code of another driver build, or data of another version of its format (``D3D12_ERROR_DRIVER_VERSION_MISMATCH``)."""

    default_code = "D3D12_ERROR_DRIVER_VERSION_MISMATCH"


class DriverError(ShaderkilnError):
    """A driver, or the process that holds it, failed; ``code`` is the VkResult name where there is one."""

    default_code = "VK_ERROR_UNKNOWN"
    trouble = Trouble.DRIVER
