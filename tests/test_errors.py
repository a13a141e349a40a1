"""Errors carry the codes that the specification names, and become the documented exit codes."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import shaderkiln
from shaderkiln import errors
from shaderkiln.cli.exit_codes import exit_code_of
from shaderkiln.compilers.plugin import FamilyNotFoundError, PluginError
from shaderkiln.databases.psdb import DamagedValueError, DatabaseBusyError, DatabaseWriteError
from shaderkiln.drivers.debian import FetchError
from shaderkiln.drivers.package_store import DriverPackageError
from shaderkiln.errors import ShaderkilnError
from shaderkiln.keys import ValueKey, ValueType

CASES: list[tuple[ShaderkilnError, str, int]] = [
    (errors.InvalidArgumentError("x"), "E_INVALIDARG", 2),
    (errors.NotFoundError("x"), "DXGI_ERROR_NOT_FOUND", 3),
    (errors.AlreadyExistsError("x"), "DXGI_ERROR_ALREADY_EXISTS", 5),
    (errors.AccessDeniedError("x"), "E_ACCESSDENIED", 5),
    (errors.UnreadableError("x"), "E_ACCESSDENIED", 3),
    (errors.CacheFullError("x"), "DXGI_ERROR_CACHE_FULL", 5),
    (errors.CacheCorruptError("x"), "DXGI_ERROR_CACHE_CORRUPT", 3),
    (errors.DamagedInputError("x"), "E_INVALIDARG", 3),
    (errors.AdapterNotFoundError("x"), "D3D12_ERROR_ADAPTER_NOT_FOUND", 3),
    (errors.DriverVersionMismatchError("x"), "D3D12_ERROR_DRIVER_VERSION_MISMATCH", 3),
    (errors.DriverError("x"), "VK_ERROR_UNKNOWN", 4),
    (errors.DriverError("x", code="VK_ERROR_INITIALIZATION_FAILED"), "VK_ERROR_INITIALIZATION_FAILED", 4),
    (FamilyNotFoundError("x"), "DXGI_ERROR_NOT_FOUND", 4),
    (PluginError("x"), "E_FAIL", 4),
    (FetchError("x"), "E_FAIL", 4),
    (DriverPackageError("x"), "E_FAIL", 4),
    (DamagedValueError(ValueKey(b"k"), ValueType.OBJECT_CODE, "x"), "DXGI_ERROR_CACHE_CORRUPT", 3),
    (DatabaseBusyError("x"), "E_ACCESSDENIED", 5),
    (DatabaseWriteError("x"), "E_FAIL", 5),
]


@pytest.mark.parametrize(("error", "code", "exit_code"), CASES, ids=lambda case: type(case).__name__)
def test_codes_and_exit_codes(error: ShaderkilnError, code: str, exit_code: int) -> None:
    assert error.code == code
    assert exit_code_of(error) == exit_code
    assert isinstance(error, ShaderkilnError)


def test_a_code_of_its_own_replaces_that_of_the_class() -> None:
    error = errors.DriverError("it failed", code="VK_ERROR_DEVICE_LOST")
    assert (error.code, str(error)) == ("VK_ERROR_DEVICE_LOST", "it failed")
    assert errors.DriverError("it failed", code="").code == "VK_ERROR_UNKNOWN"


EXIT_CODES = {
    2: {"InvalidArgumentError"},
    3: {
        "AdapterNotFoundError", "AllocationError", "CacheCorruptError", "CacheRejectedError", "DamagedCacheError",
        "DamagedInputError", "DamagedValueError", "DriverVersionMismatchError", "IdentityMismatchError", "InvalidCallError",
        "EmptyFileError", "MoreDataError", "NotCurrentlyAvailableError", "NotFoundError", "OtherDeviceError", "ShaderkilnError",
        "StateObjectDatabaseBusyError", "UnknownStructureError", "UnreadableError", "UnsupportedError", "UnsupportedPipelineError",
    },
    4: {
        "DriverCrashError", "DriverError", "DriverPackageError", "ExpiredListError", "FamilyNotFoundError", "FetchError",
        "PluginError", "ProcessEndedError", "WrongDriverError", "_NoSuchFeatureError",
    },
    5: {
        "AccessDeniedError", "AlreadyExistsError", "CacheFullError", "DatabaseBusyError", "DatabaseWriteError", "DriverFolderError",
        "RegistryBusyError", "_NeedsRecoveryError",
    },
}  # fmt: skip


def test_every_error_of_the_package_has_the_exit_code_that_is_stated_for_it() -> None:
    for module in pkgutil.walk_packages(shaderkiln.__path__, "shaderkiln."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: dict[int, set[str]] = {}
    left: list[type[ShaderkilnError]] = [ShaderkilnError]
    while left:
        cls = left.pop()
        left += cls.__subclasses__()
        if cls.__module__.startswith("shaderkiln."):
            found.setdefault(exit_code_of(cls.__new__(cls)), set()).add(cls.__name__)
    assert found == EXIT_CODES
