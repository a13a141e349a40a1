"""The interface of every shader cache session, and the rules that all of them share (EP-15 to EP-28, EP-45)."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from ..errors import (
    AccessDeniedError,
    AllocationError,
    InvalidArgumentError,
    MoreDataError,
    NotCurrentlyAvailableError,
    NotFoundError,
)
from ..keys import Group, ObjectKey, ValueType
from .control import CacheKindFlags, ShaderCacheControl, process_control
from .debug_layer import DebugLayer, Severity, process_debug_layer
from .descs import SESSION_SUPPORT, SessionDesc1, ShaderCacheSessionDesc, ShaderCacheSupportFlags

if TYPE_CHECKING:
    from ..databases.store import Store

MAXIMUM_KEY_SIZE = 1 << 16
MAXIMUM_VALUE_SIZE = 1 << 29

Buffer = bytearray | memoryview
"""A writable buffer of bytes; any other object with one (an array, a ctypes array, shared memory) will do as well."""
Allocate = Callable[[int, Any], Any]
"""Called with a size in bytes and the caller's context; returns a writable buffer of at least that size, or None."""


class StoreFlags(IntFlag):
    """D3D12_SHADER_CACHE_STORE_FLAGS."""

    NONE = 0
    OVERWRITE = 1
    """Replace values of the supplied types; ignored where ``supports_overwrite`` is false."""
    DO_NOT_EVICT = 2
    """Keep the entry out of automatic eviction; ignored where ``supports_do_not_evict`` is false."""


@dataclass(slots=True)
class ValueRequest:
    """What ``find_value1`` is asked for, and its answer: D3D12_CACHE_TYPED_VALUE.

    Without ``buffer`` only the size is asked for, or the allocation callback is called. After the call ``size`` is the size of the
    value in bytes, 0 where the key has none of that type, and ``buffer`` is what the callback returned.
    """

    type: ValueType
    buffer: Any = None
    size: int = 0


class SessionReference:
    """Keeps a session open until ``release``, or until it is dropped; the session's ``close`` may come earlier."""

    __slots__ = ("_released", "session")

    def __init__(self, session: ShaderCacheSession) -> None:
        self.session = session
        self._released = False

    def release(self) -> None:
        """Give the reference up; may be called again."""
        if not self._released:
            self._released = True
            self.session._drop_reference()

    def __enter__(self) -> ShaderCacheSession:
        return self.session

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()


class ShaderCacheSession(ABC):
    """An open cache that finds and stores values by key: ID3D12ShaderCacheSession1.

    A key is any non-empty byte string of at most 64 KiB; two keys are equal if every byte is. DXGI_ERROR_CACHE_HASH_COLLISION never
    occurs: every session keeps two keys whose hashes are equal.

    **Lifetime.** A session is open until ``close`` (or the end of its ``with`` block) and until every reference that ``retain``
    gave has been released. After that every call raises InvalidArgumentError.

    **Threads.** Every method may be called by several threads at once. A find of a MEMORY session takes no lock; the others take
    turns at the file. A session must not be used on both sides of a fork.

    **Races.** A store of one call is seen whole or not at all, by other threads, other sessions, and, where
    ``shared_between_processes`` says so, other processes: ``find_value1`` answers all its requests from one moment. Between two
    calls anything may happen: a size that was asked for may be outdated when the buffer comes (``find_value1`` then raises
    MoreDataError, ask again), ``exists`` says nothing about the find that follows, and an eviction or another's OVERWRITE may come
    between. Of two stores of one key without OVERWRITE exactly one succeeds. Use the allocation callback, or ``find_value``, to
    get size and bytes in one step. The callback runs without any lock and may use the session.
    """

    cache_kind: ClassVar[CacheKindFlags]
    """Which control of the process switches the session."""
    persistent: ClassVar[bool] = True
    """Whether values survive the last session."""
    shared_between_processes: ClassVar[bool] = True
    evicts: bool = False
    """Whether entries may be removed to make room for others."""
    read_only: bool = False
    _usable = False

    def __init__(
        self,
        desc: SessionDesc1 | ShaderCacheSessionDesc,
        *,
        support: ShaderCacheSupportFlags = SESSION_SUPPORT,
        control: ShaderCacheControl = process_control,
        debug: DebugLayer = process_debug_layer,
    ) -> None:
        self._desc = desc
        self._debug = debug
        self.supports_overwrite = bool(support & ShaderCacheSupportFlags.STORE_OVERWRITE)
        self.supports_do_not_evict = bool(support & ShaderCacheSupportFlags.STORE_DO_NOT_EVICT)
        self._references = 0
        self._reference_lock = threading.Lock()
        self._closed_by_owner = False
        control.add(self)
        # Not before: an object that was refused has nothing to give back when it is dropped.
        self._references = 1
        self.set_enabled(control.enabled(self.cache_kind))

    def _begin(
        self, *, control: ShaderCacheControl = process_control, debug: DebugLayer = process_debug_layer, **_: object
    ) -> DebugLayer:
        """Before anything is opened: an error from here on leaves an object that can be dropped. Raises as ``check_enabled``."""
        self._references = 0
        control.check_enabled(self.cache_kind)
        return debug

    # What a kind of session provides. Keys and types have been checked; nothing here is called on a closed session.

    @abstractmethod
    def _find(self, key: bytes, type: int) -> bytes:
        """The bytes of one value; raises NotFoundError."""

    @abstractmethod
    def _find_many(self, key: bytes, types: Sequence[int]) -> Sequence[bytes | None]:
        """The values of several types at one moment, None for each that is not there."""

    @abstractmethod
    def _sizes(self, key: bytes) -> Mapping[int, int]:
        """The sizes of all values of a key at one moment."""

    @abstractmethod
    def _exists(self, key: bytes) -> bool: ...

    @abstractmethod
    def _store(self, key: bytes, values: Mapping[int, bytes], overwrite: bool, keep: bool) -> None:
        """Store all or nothing; raises AlreadyExistsError and CacheFullError."""

    @abstractmethod
    def _clear(self) -> None: ...

    @abstractmethod
    def _close(self) -> None:
        """The last reference is gone."""

    @abstractmethod
    def set_delete_on_destroy(self) -> None:
        """Clear the cache when the last session on it in this process goes. Nothing happens to one that is read-only."""

    # What everybody calls

    def find_value(self, key: bytes) -> bytes:
        """The object code stored under ``key``: ``find_value1`` for OBJECT_CODE (EP-16).

        Raises NotFoundError, with a debug message (EP-22); InvalidArgumentError for an unfit key or a closed session;
        NotCurrentlyAvailableError while this kind of cache is disabled; CacheCorruptError for a damaged value or file.
        """
        if not self._usable:
            self._refuse()
        try:
            return self._find(key, 0)
        except NotFoundError:
            self._report_miss(key)
            raise

    def find_value1(
        self, key: bytes, requests: Sequence[ValueRequest] = (), allocate: Allocate | None = None, context: Any = None
    ) -> None:
        """Find values of several types, or their sizes, at one moment.

        - No requests: whether the key exists (EP-20).
        - A request without buffer, and no callback: its ``size`` is set (EP-17).
        - With a buffer: the value is copied to its beginning; where it is too small nothing is copied into it, ``size`` is set, and
          MoreDataError is raised after all requests have been answered (EP-18).
        - Without a buffer (or with an empty one) and with a callback: ``allocate(size, context)`` gives the buffer (EP-19).

        A type that the key does not have gets size 0; its buffer is left alone and the callback is not called for it.

        Raises NotFoundError where the key is unknown or has none of these types, without a debug message; InvalidArgumentError for
        types other than OBJECT_CODE and METADATA, for the same type twice, and for a buffer that cannot be written to;
        AllocationError where the callback returns None or too small a buffer: what it returned before stays in the requests; and
        as ``find_value``. What the callback raises comes through.
        """
        if not self._usable:
            self._refuse()
        check_key(key)
        types = [_check_type(request.type) for request in requests]
        _check_distinct(types)
        if not types:
            if not self._exists(key):
                raise NotFoundError(f"no value {key.hex()}")
            return
        if allocate is None and all(request.buffer is None for request in requests):
            sizes = self._sizes(key)
            values: Sequence[bytes | None] = [None] * len(types)
            found = [sizes.get(type, 0) for type in types]
        else:
            views = [None if request.buffer is None else _writable(request.buffer) for request in requests]
            values = self._find_many(key, types)
            found = [0 if value is None else len(value) for value in values]
        for request, size in zip(requests, found, strict=True):
            request.size = size
        if not any(found):
            raise NotFoundError(f"no value {key.hex()} of these types")
        too_small = []
        for index, (request, value) in enumerate(zip(requests, values, strict=True)):
            if value is None:
                continue
            view = views[index]
            if allocate is not None and not view:
                request.buffer = _allocated(allocate, len(value), context)
                view = _writable(request.buffer)
                if len(view) < len(value):
                    raise AllocationError(f"the allocation callback gave {len(view)} bytes, {len(value)} are needed")
            if view is None:
                continue
            if len(view) < len(value):
                too_small.append(f"{ValueType(request.type).name} needs {len(value)} bytes, the buffer has {len(view)}")
            else:
                view[: len(value)] = value
        if too_small:
            raise MoreDataError("; ".join(too_small))

    def exists(self, key: bytes) -> bool:
        """Whether the key has a value of any type. Raises as ``find_value`` does, but for NotFoundError."""
        if not self._usable:
            self._refuse()
        check_key(key)
        return self._exists(key)

    def find_group(self, object_key: ObjectKey) -> Group | None:
        """The group that a PSDB has for an object, of several versions the largest; None without one, and in other sessions.

        Raises as ``find_value`` does, but for NotFoundError.
        """
        if not self._usable:
            self._refuse()
        return None

    def store_value(self, key: bytes, value: bytes) -> None:
        """Store object code: ``store_value1`` for OBJECT_CODE without flags."""
        self.store_value1(key, ((ValueType.OBJECT_CODE, value),))

    def store_value1(
        self,
        key: bytes,
        values: Sequence[tuple[ValueType, bytes | bytearray | memoryview]],
        flags: StoreFlags = StoreFlags.NONE,
    ) -> None:
        """Store values of one key, all or none; those of other types that it has stay.

        Raises InvalidArgumentError for no value, an empty one, an unsupported or repeated type, or unknown flags;
        AlreadyExistsError where one of the types is stored already and OVERWRITE is not given; CacheFullError at the maximum size;
        AccessDeniedError for a read-only session; DatabaseBusyError and DatabaseWriteError where the system refuses; and as
        ``find_value``. Then nothing has changed.
        """
        if not self._usable:
            self._refuse()
        check_key(key)
        if int(flags) & ~3:
            raise InvalidArgumentError(f"flags has {int(flags) & ~3:#x}, which is none of StoreFlags")
        if not values:
            raise InvalidArgumentError("values is empty: at least one value is needed")
        types = [_check_type(type) for type, _ in values]
        _check_distinct(types)
        data = {type: _as_bytes(value) for type, (_, value) in zip(types, values, strict=True)}
        if self.read_only:
            raise AccessDeniedError("the session is read-only")
        overwrite = bool(flags & StoreFlags.OVERWRITE) and self.supports_overwrite
        self._store(key, data, overwrite, bool(flags & StoreFlags.DO_NOT_EVICT) and self.supports_do_not_evict)

    def get_desc(self) -> SessionDesc1 | ShaderCacheSessionDesc:
        """The desc that made the session (EP-45)."""
        return self._desc

    def retain(self) -> SessionReference:
        """A reference that keeps the session open after ``close``; for objects created with it (EP-11)."""
        with self._reference_lock:
            if not self._references:
                raise InvalidArgumentError("the session is closed")
            self._references += 1
        return SessionReference(self)

    def close(self) -> None:
        """Give up the reference that creation gave; may be called again."""
        with self._reference_lock:
            if self._closed_by_owner:
                return
            self._closed_by_owner = True
        self._drop_reference()

    @property
    def closed(self) -> bool:
        """Whether the last reference is gone."""
        return not self._references

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_references", 0):
            self._references = 1
            self._drop_reference()

    # For the control

    def set_enabled(self, enabled: bool) -> None:
        """Called by the control of the process."""
        self._usable = enabled and not self.closed

    def clear_by_control(self) -> None:
        """Called by the control of the process."""
        if not self.closed and not self.read_only:
            self._clear()

    # For the kinds of session

    def _drop_reference(self) -> None:
        with self._reference_lock:
            self._references -= 1
            if self._references:
                return
            self._usable = False
        self.set_enabled(False)
        self._close()

    def _refuse(self) -> NoReturn:
        if self.closed:
            raise InvalidArgumentError("the session is closed")
        raise NotCurrentlyAvailableError(f"caches of kind {self.cache_kind.name} are disabled in this process")

    def _report_miss(self, key: bytes) -> None:
        self._debug.write(Severity.INFO, "cache-miss", f"{type(self).__name__}: no value under key {key.hex()}")


def check_key(key: bytes) -> None:
    if not isinstance(key, bytes) or not 0 < len(key) <= MAXIMUM_KEY_SIZE:
        raise InvalidArgumentError(f"a key is a byte string of 1 to {MAXIMUM_KEY_SIZE} bytes")


class StoreSession(ShaderCacheSession):
    """A session on a store of ``databases``."""

    _database: Store
    _look_up: Any
    """``_find`` for keys and types that have been checked."""

    @property
    def maximum_size_bytes(self) -> int:
        """The effective limit of the bytes of all values; 0 for none."""
        return self._database.usage().maximum

    @property
    def used_bytes(self) -> int:
        """Bytes of all values."""
        return self._database.usage().used

    def _find_many(self, key: bytes, types: Sequence[int]) -> Sequence[bytes | None]:
        if len(types) > 1:
            return self._database.find_many(key, types)
        try:
            return (self._look_up(key, types[0]),)
        except NotFoundError:
            return (None,)

    def _sizes(self, key: bytes) -> Mapping[int, int]:
        return {type: size for type, size in self._database.sizes(key).items() if type < 2}

    def _exists(self, key: bytes) -> bool:
        return self._database.exists(key)


def _check_type(type: int) -> int:
    if type not in (0, 1):
        raise InvalidArgumentError(f"type is {type!r}: sessions hold OBJECT_CODE and METADATA only")
    return int(type)


def _check_distinct(types: Sequence[int]) -> None:
    if len(set(types)) != len(types):
        raise InvalidArgumentError(f"a type is named twice: {', '.join(ValueType(type).name for type in types)}")


def _as_bytes(value: object) -> bytes:
    try:
        data = value if isinstance(value, bytes) else bytes(memoryview(value))  # type: ignore[arg-type]
    except (TypeError, BufferError) as error:
        raise InvalidArgumentError(f"a value is bytes, not {type(value).__name__}") from error
    if not 0 < len(data) <= MAXIMUM_VALUE_SIZE:
        raise InvalidArgumentError(f"a value has {len(data)} bytes: 1 to {MAXIMUM_VALUE_SIZE} are allowed")
    return data


def _writable(buffer: Any) -> memoryview:
    try:
        view = memoryview(buffer).cast("B")
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{type(buffer).__name__} is no buffer of bytes: {error}") from error
    if view.readonly:
        raise InvalidArgumentError("the buffer cannot be written to")
    return view


def _allocated(allocate: Allocate, size: int, context: Any) -> Any:
    buffer = allocate(size, context)
    if buffer is None:
        raise AllocationError(f"the allocation callback gave no buffer for {size} bytes")
    return buffer
