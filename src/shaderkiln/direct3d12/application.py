"""The identity that an application declares before its devices are created (D3D12_APPLICATION_DESC, ID3D12ApplicationIdentity)."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from shaderkiln.errors import AlreadyExistsError, InvalidArgumentError, InvalidCallError
from shaderkiln.identity import ApplicationIdentity, parse_version
from shaderkiln.system.processes import running_program

MAXIMUM_TEXT_LENGTH = 32_767
"""Characters in a name; the longest path of the system that the interface comes from."""


@dataclass(frozen=True, slots=True, init=False)
class ApplicationDesc:
    """Who an application is (EP-49). Versions are 64-bit values of four 16-bit parts."""

    name: str
    """The title, never empty."""
    exe_filename: str | None
    """File name of the main executable; None stands for the program that runs (see ``process_executable``)."""
    version: int
    engine_name: str | None
    engine_version: int

    def __init__(
        self,
        name: str,
        exe_filename: str | None = None,
        version: int | str = 0,
        engine_name: str | None = None,
        engine_version: int | str = 0,
    ) -> None:
        """``"1.0"`` is version 1.0.0.0, text without a dot and numbers are the 64-bit value itself.

        Raises InvalidArgumentError, which names the field, for a missing name, text that cannot be stored, a version out of range,
        and an engine version without an engine.
        """
        if not name:
            raise InvalidArgumentError("name: an application must have a name")
        _set(self, "name", _text("name", name))
        _set(self, "exe_filename", None if exe_filename is None else _file_name(exe_filename))
        _set(self, "version", _version("version", version))
        _set(self, "engine_name", _text("engine_name", engine_name) if engine_name else None)
        _set(self, "engine_version", _version("engine_version", engine_version))
        if self.engine_version and self.engine_name is None:
            raise InvalidArgumentError("engine_version: must be 0 where there is no engine_name")

    @property
    def identity(self) -> ApplicationIdentity:
        """The plain type that databases and drivers take; the executable's name is filled in."""
        return ApplicationIdentity(
            name=self.name,
            exe_filename=process_executable().name if self.exe_filename is None else self.exe_filename,
            version=self.version,
            engine_name=self.engine_name or "",
            engine_version=self.engine_version,
        )


@dataclass(frozen=True, slots=True)
class DeclaredIdentity:
    """An identity as it was declared, with the application's own identifier."""

    application: ApplicationIdentity
    app_id: UUID
    """Version 4."""


class IdentityScope:
    """Holds an identity that can be set once, and only until the first device has asked for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._identity: DeclaredIdentity | None = None
        self._sealed = False

    @property
    def identity(self) -> DeclaredIdentity | None:
        """What was declared, or None."""
        return self._identity

    def set(self, desc: ApplicationDesc, app_id: UUID | str) -> None:
        """Declare the identity; see ``set_application_identity``."""
        declared = declare(desc, app_id)
        with self._lock:
            if self._sealed:
                raise InvalidCallError("the application identity must be set before a device is created")
            if self._identity is not None:
                raise AlreadyExistsError(f"the application identity is set already, to {self._identity.application.name!r}")
            self._identity = declared

    def seal(self) -> DeclaredIdentity | None:
        """Called where a device is created: nothing can be set from now on. The identity, or None where none was set."""
        with self._lock:
            self._sealed = True
            return self._identity


def declare(desc: ApplicationDesc, app_id: UUID | str) -> DeclaredIdentity:
    """The identity of a desc. Raises InvalidArgumentError unless ``app_id`` is a version 4 UUID."""
    if not isinstance(desc, ApplicationDesc):
        raise InvalidArgumentError(f"desc: an ApplicationDesc is needed, not {type(desc).__name__}")
    try:
        identifier = app_id if isinstance(app_id, UUID) else UUID(app_id)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidArgumentError(f"app_id: {app_id!r} is no UUID") from error
    if identifier.version != 4:
        raise InvalidArgumentError(f"app_id: {identifier} is not a version 4 UUID")
    return DeclaredIdentity(desc.identity, identifier)


def set_application_identity(desc: ApplicationDesc, app_id: UUID | str) -> None:
    """Declare the identity of this process for all devices that do not bring their own.

    ``app_id`` is a version 4 UUID that the application's authors made once. Raises InvalidArgumentError for another kind of
    identifier, AlreadyExistsError the second time, and InvalidCallError (``DXGI_ERROR_INVALID_CALL``) once a device exists.
    """
    _process.set(desc, app_id)


def application_identity() -> DeclaredIdentity | None:
    """The identity that this process has declared, or None."""
    return _process.identity


def identity_for_device(own: DeclaredIdentity | None = None) -> DeclaredIdentity | None:
    """What a device that is being created gets: ``own``, else the process's, else None.

    The process's identity cannot be set afterwards.
    """
    declared = _process.seal()
    return declared if own is None else own


def process_executable() -> Path:
    """The program that runs, by which it is registered: the main script under an interpreter, else the process's executable."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script and not getattr(sys, "frozen", False):
        return Path(os.path.realpath(script))
    return running_program()


def _version(field: str, value: int | str) -> int:
    if isinstance(value, str):
        try:
            return parse_version(value)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{field}: {error}") from error
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
        raise InvalidArgumentError(f"{field}: {value!r} is no unsigned 64-bit integer and no text")
    return value


def _file_name(value: str) -> str:
    value = _text("exe_filename", value)
    if not value or "/" in value or "\\" in value:
        raise InvalidArgumentError(f"exe_filename: {value!r} must be a file name without folders")
    return value


def _text(field: str, value: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{field}: {value!r} is no text")
    if "\0" in value or len(value) > MAXIMUM_TEXT_LENGTH:
        raise InvalidArgumentError(f"{field}: text of at most {MAXIMUM_TEXT_LENGTH} characters without NUL is needed")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{field}: {value!r} is no Unicode text") from error
    return value


_set = object.__setattr__
_process = IdentityScope()
