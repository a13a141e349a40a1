"""VkPipelineCache objects of the driver, under numbers that the other side of the socket chooses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shaderkiln.drivers.bindings import ffi, new
from shaderkiln.drivers.logical_device import LogicalDevice
from shaderkiln.drivers.physical_device import check
from shaderkiln.drivers.protocol import CacheRead, ReadCache
from shaderkiln.errors import InvalidArgumentError, NotFoundError
from shaderkiln.vulkan_registry import constants as vk


def create_cache(device: LogicalDevice, data: bytes, flags: int = 0) -> int:
    """vkCreatePipelineCache. Raises ``DriverError`` with the driver's answer."""
    memory = ffi.new("uint8_t[]", data) if data else ffi.NULL
    structure_type = vk.VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO
    create = new("VkPipelineCacheCreateInfo", structure_type, flags=flags, initialDataSize=len(data), pInitialData=memory)
    made = ffi.new("VkPipelineCache *")
    check(device.commands.vkCreatePipelineCache(device.handle, create, ffi.NULL, made), "vkCreatePipelineCache")
    return int(made[0])


def destroy_cache(device: LogicalDevice, cache: int) -> None:
    """vkDestroyPipelineCache; nothing for 0."""
    if cache:
        device.commands.vkDestroyPipelineCache(device.handle, cache, ffi.NULL)


@contextmanager
def temporary_cache(device: LogicalDevice, data: bytes | None) -> Iterator[int]:
    """A cache with that data, destroyed at the end of the block; 0 for None."""
    cache = 0 if data is None else create_cache(device, data)
    try:
        yield cache
    finally:
        destroy_cache(device, cache)


def cache_size(device: LogicalDevice, cache: int) -> int:
    """vkGetPipelineCacheData without a buffer."""
    size = ffi.new("size_t *")
    check(device.commands.vkGetPipelineCacheData(device.handle, cache, size, ffi.NULL), "vkGetPipelineCacheData")
    return int(size[0])


def read_cache(device: LogicalDevice, cache: int, size: int) -> tuple[bytes, bool]:
    """What vkGetPipelineCacheData writes into a buffer of so many bytes, and whether that is all."""
    # NVIDIA's driver writes past the end of a buffer that is too small for its next entry, so the memory has room for everything,
    # whatever the driver is told. And no more than that, whatever is asked.
    room = cache_size(device, cache) + (1 << 20)
    size = min(size, room)
    written = ffi.new("size_t *", size)
    data = bytearray(room)
    result = device.commands.vkGetPipelineCacheData(device.handle, cache, written, ffi.from_buffer(data))
    if result != vk.VK_INCOMPLETE:
        check(result, "vkGetPipelineCacheData")
    return bytes(data[: min(written[0], size)]), result == vk.VK_SUCCESS


def read_whole_cache(device: LogicalDevice, cache: int) -> bytes:
    """All data, however much it has become in the meantime."""
    while True:
        data, complete = read_cache(device, cache, cache_size(device, cache))
        if complete:
            return data


class PipelineCaches:
    """The caches of one device by their numbers. Methods raise ``ShaderkilnError``."""

    def __init__(self, device: LogicalDevice) -> None:
        self._device = device
        self._caches: dict[int, int] = {}

    def create(self, number: int, data: bytes, flags: int) -> None:
        if number <= 0 or number in self._caches:
            raise InvalidArgumentError(f"{number} is no number for a new cache")
        self._caches[number] = create_cache(self._device, data, flags)

    def handle(self, number: int) -> int:
        """The VkPipelineCache; 0 for 0."""
        if not number:
            return 0
        try:
            return self._caches[number]
        except KeyError:
            raise NotFoundError(f"there is no cache {number}") from None

    def destroy(self, number: int) -> None:
        destroy_cache(self._device, self.handle(number))
        del self._caches[number]

    def read(self, request: ReadCache) -> CacheRead:
        cache = self._existing(request.cache)
        if request.whole:
            data, complete = read_whole_cache(self._device, cache), True
        elif request.size is None:
            return CacheRead(request.request, cache_size(self._device, cache), b"", complete=True)
        else:
            data, complete = read_cache(self._device, cache, request.size)
        return CacheRead(request.request, len(data), data, complete)

    def merge(self, destination: int, sources: tuple[int, ...]) -> None:
        if not sources or destination in sources:
            raise InvalidArgumentError("a merge needs sources, and its destination is none of them")
        array: Any = ffi.new("VkPipelineCache[]", [self._existing(number) for number in sources])
        device = self._device
        result = device.commands.vkMergePipelineCaches(device.handle, self._existing(destination), len(sources), array)
        check(result, "vkMergePipelineCaches")

    def destroy_all(self) -> None:
        while self._caches:
            destroy_cache(self._device, self._caches.popitem()[1])

    def _existing(self, number: int) -> int:
        if not number:
            raise NotFoundError("there is no cache 0")
        return self.handle(number)
