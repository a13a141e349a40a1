"""Objects that an application attaches to objects of a device (ID3D12Object::SetPrivateDataInterface)."""

from __future__ import annotations

import threading
from uuid import UUID

from shaderkiln.errors import InvalidArgumentError, NotFoundError

_lock = threading.Lock()


class PrivateData:
    """What is attached lives at least as long as what it is attached to. May be used by several threads."""

    _attached: dict[UUID, object] | None = None

    def set_private_data_interface(self, guid: UUID | str, interface: object | None) -> None:
        """Keep an object alive with this one, in place of what that GUID stood for; None lets go of it.

        Attach to a pipeline library what owns the memory of its blob, if the buffer itself does not. Raises InvalidArgumentError
        for what is no GUID.
        """
        key = _guid(guid)
        with _lock:
            attached = self._attached
            if attached is None:
                attached = self._attached = {}
            before = attached.pop(key, None)
            if interface is not None:
                attached[key] = interface
        del before  # not under the lock: what ends with it may call in here

    def get_private_data_interface(self, guid: UUID | str) -> object:
        """What is attached under a GUID. Raises NotFoundError for nothing, InvalidArgumentError for what is no GUID."""
        key = _guid(guid)
        with _lock:
            found = (self._attached or {}).get(key)
        if found is None:
            raise NotFoundError(f"nothing is attached under {key}")
        return found


def _guid(value: UUID | str) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"guid: {value!r} is no GUID") from error
