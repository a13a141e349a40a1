"""Pipeline caches: the driver's VkPipelineCache with what drivers leave undone (VC-01 to VC-12)."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from typing import overload

from shaderkiln.drivers.protocol import CacheRead, CreateCache, DestroyCache, MergeCaches, ReadCache
from shaderkiln.errors import AllocationError, DriverError, InvalidArgumentError, UnsupportedError
from shaderkiln.formats import mesa_cache
from shaderkiln.formats.mesa_cache import Entry, Layout
from shaderkiln.formats.vk_cache import HEADER_SIZE, CacheHeader, CacheRejectedError, read_header
from shaderkiln.vulkan.allocation import AllocationCallbacks, HostMemory
from shaderkiln.vulkan.connection import Connection
from shaderkiln.vulkan.gate import Gate
from shaderkiln.vulkan.initial_data import Reason, Rejection
from shaderkiln.workers.shared_process import ProcessEndedError, SharedProcess

EXTERNALLY_SYNCHRONIZED = 0x1
"""VK_PIPELINE_CACHE_CREATE_EXTERNALLY_SYNCHRONIZED_BIT: the caller never lets two threads use the cache at once."""
INTERNALLY_SYNCHRONIZED_MERGE = 0x8
"""VK_PIPELINE_CACHE_CREATE_INTERNALLY_SYNCHRONIZED_MERGE_BIT_KHR: others may use the destination of a merge meanwhile."""

SEAL_SIZE = len(mesa_cache.seal(b""))
SAVED_AT_LEAST = 8
"""New pipelines after which the data is fetched, should the driver's process end; and a quarter of those that were fetched."""


class PipelineCache:
    """A cache of a device, made by ``VulkanDevice.create_pipeline_cache``. Any thread may use it.

    The entries are the driver's, in its own VkPipelineCache. Data that is got from it is the driver's, with entries in the order
    of their keys, and with a checksum behind it (``mesa_cache.seal``), so that what is altered is noticed when it comes back. If
    the driver's process ends, the cache lives on in a new one with the entries that were fetched last.
    """

    def __init__(
        self, connection: Connection, layout: Layout, flags: int, data: bytes, callbacks: AllocationCallbacks | None
    ) -> None:
        self.connection = connection
        self.flags = flags
        self.rejection: Rejection | None = None
        """Why initial data was not taken, or was dropped later; None if it was not."""
        self.destroyed = False
        self.number = connection.new_number()
        """What the driver's process calls it."""
        self.gate = Gate()
        self._layout = layout
        self._memory = HostMemory(callbacks)
        self._lock = threading.Lock()
        """Held for what stands below."""
        self._process: SharedProcess | None = None
        self._saved = data
        self._unsaved = 0
        self._pipelines_saved = 0
        self._version = 0
        self._known: tuple[int, bytes, list[int] | None] | None = None

    @property
    def callbacks(self) -> AllocationCallbacks | None:
        """The allocation callbacks that it was created with."""
        return self._memory.callbacks

    @overload
    def get_data(self, size: None = None) -> int: ...

    @overload
    def get_data(self, size: int) -> tuple[bytes, bool]: ...

    def get_data(self, size: int | None = None) -> int | tuple[bytes, bool]:
        """vkGetPipelineCacheData. Without a size: the most that there is to get, in bytes (VC-05).

        With a size: at most so many bytes, and whether that is everything; False is VK_INCOMPLETE. They are whole entries and are
        initial data by themselves, or nothing where there is no room for the header and the checksum (VC-06, VC-07). Two calls
        give the same bytes unless something was added in between (VC-08).

        Raises InvalidArgumentError for a destroyed cache and a size below 0, DriverError where the driver fails.
        """
        if size is not None and size < 0:
            raise InvalidArgumentError(f"a buffer of {size} bytes")
        with self.gate.shared():
            self.require()
            data, ends = self._arranged()
            if size is None:
                return len(data) + SEAL_SIZE
            room = size - SEAL_SIZE
            if room < HEADER_SIZE:
                return b"", False
            if room >= len(data):
                return mesa_cache.seal(data), True
            if ends is None:
                data, complete = self._driver_read(room)
                return (mesa_cache.seal(data), complete) if _has_header(data) else (b"", False)
        divided = mesa_cache.read(data, self._layout)
        count = bisect_right(ends, room)
        if not count and room < HEADER_SIZE + _empty_size(self._layout):
            return b"", False
        part = mesa_cache.write(divided.header, (divided[index] for index in range(count)), self._layout)
        return mesa_cache.seal(part), False

    def read(self) -> bytes:
        """All data, with its checksum: ``get_data`` with a buffer that is large enough. Raises as ``get_data``."""
        with self.gate.shared():
            self.require()
            return mesa_cache.seal(self._arranged()[0])

    def entries(self) -> tuple[Entry, ...]:
        """The entries, in the order of their keys.

        Raises UnsupportedError where the driver's data is opaque, and as ``get_data``.
        """
        with self.gate.shared():
            self.require()
            data, ends = self._arranged()
        if ends is None:
            raise UnsupportedError("what this driver keeps in its caches is not known")
        return tuple(mesa_cache.read(data, self._layout))

    def __repr__(self) -> str:
        state = "destroyed" if self.destroyed else f"of {self.connection.family}"
        return f"<PipelineCache {self.number} {state}>"

    # -- for the device

    def make(self) -> None:
        """Make the cache in the driver; empty where the driver refuses its initial data, or ends twice when it gets them."""
        connection = self.connection
        with connection.gate.shared():
            try:
                self.number_in(connection.connected())
                return
            except ProcessEndedError:
                pass
            except DriverError as error:
                if not self._saved:
                    raise
                self.drop_data(str(error))
                self.number_in(connection.connected())
                return
        with connection.gate.alone():
            try:
                self.number_in(connection.connected())
            except DriverError as error:
                self.drop_data(f"{error}, when it was given the initial data")
                self.number_in(connection.connected())

    def merge(self, sources: Sequence[PipelineCache]) -> None:
        """Gain the entries of others. Raises AllocationError as ``account``. Whoever calls it has the gates of all."""

        def merge(process: SharedProcess) -> None:
            numbers = tuple(source.number_in(process) for source in sources)
            process.ask(MergeCaches(0, self.number_in(process), numbers))

        self.connection.with_process(merge)
        self.changed()
        self.account()

    def destroy(self) -> None:
        """Destroy the driver's cache; if its process has ended, so has that. Only while nothing else uses the cache."""
        self.destroyed = True
        process = self._process
        if process is not None and process is self.connection.process:
            with suppress(ProcessEndedError):
                process.ask(DestroyCache(0, self.number))
        self.release()

    def release(self) -> None:
        """The cache is no more, and neither is the memory of its callbacks."""
        self.destroyed = True
        self._memory.release()

    def require(self) -> None:
        """Raises InvalidArgumentError where the cache is destroyed or its device closed."""
        if self.destroyed:
            raise InvalidArgumentError("the pipeline cache is destroyed")
        self.connection.require()

    def number_in(self, process: SharedProcess) -> int:
        """The number of the cache in that process, in which it is made first if it comes from another one."""
        with self._lock:
            if self._process is not process:
                process.ask(CreateCache(0, self.number, self._saved, self.flags))
                self._process = process
                self._version += 1
            return self.number

    def drop_data(self, why: str) -> None:
        """Begin empty: what it held ended the driver's process."""
        number = self.connection.new_number()
        with self._lock:
            self.number = number
            self._saved = b""
            self._pipelines_saved = 0
            self._version += 1
            self._process = None
            self.rejection = Rejection(Reason.DRIVER, why)

    def changed(self, pipelines: int = 0) -> None:
        """So many pipelines may have been added (0: entries of other caches)."""
        with self._lock:
            self._version += 1
            self._unsaved += pipelines
            save = not pipelines or self._unsaved > SAVED_AT_LEAST + self._pipelines_saved // 4
        if save and self.callbacks is None:
            with suppress(DriverError):  # nothing was asked for
                self._driver_read(None)

    def account(self) -> None:
        """Ask the callbacks for what has been added. Raises AllocationError after what they refuse has been taken out again.

        Only while nothing else uses the cache.
        """
        if self.callbacks is None:
            return
        data = self._arranged()[0]
        try:
            self._memory.grow_to(len(data))
        except AllocationError:
            self._ask(DestroyCache(0, self.number))
            with self._lock:
                self._process = None
                self._version += 1
            raise
        with self._lock:
            self._saved = data

    def _driver_read(self, size: int | None) -> tuple[bytes, bool]:
        """The driver's data, all of it or what it writes into so many bytes."""
        with self._lock:
            unsaved = self._unsaved
        data, complete = self._read(size)
        if complete and self.callbacks is None:
            with self._lock:
                self._saved = data
                self._pipelines_saved += unsaved
                self._unsaved -= unsaved
        return data, complete

    def _read(self, size: int | None) -> tuple[bytes, bool]:
        answer = self._ask(ReadCache(0, self.number, size, whole=size is None))
        assert isinstance(answer, CacheRead)
        return answer.data, answer.complete

    def _ask(self, request: CreateCache | DestroyCache | ReadCache) -> object:
        def ask(process: SharedProcess) -> object:
            self.number_in(process)
            return process.ask(request)

        return self.connection.with_process(ask)

    def _arranged(self) -> tuple[bytes, list[int] | None]:
        """All data with its entries in the order of their keys, and where each ends; None: an opaque payload."""
        with self._lock:
            version, known = self._version, self._known
        if known is not None and known[0] == version and self._process is not None and not self._process.ended:
            return known[1], known[2]
        data, _ = self._driver_read(None)
        layout = self._layout
        ends: list[int] | None = None
        if layout is not Layout.OPAQUE:
            divided = mesa_cache.read(data, layout)
            if divided.fault is None:
                entries = sorted(divided, key=lambda entry: (entry.key, entry.type))
                data = mesa_cache.write(divided.header, entries, layout)
                ends = list(mesa_cache.read(data, layout).ends())
        with self._lock:
            self._known = (version, data, ends)
        return data, ends


def _has_header(data: bytes) -> bool:
    try:
        read_header(data)
    except CacheRejectedError:
        return False
    return True


def _empty_size(layout: Layout) -> int:
    return len(mesa_cache.write(CacheHeader(0, 0, bytes(16)), (), layout)) - HEADER_SIZE
