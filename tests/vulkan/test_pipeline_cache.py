"""Pipeline caches on real drivers, statement by statement."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from vulkan_support import FORBIDDEN, OBJECTS, compute_pipeline, create_all, device_of, opened

import shaderkiln.vulkan as vk
from shaderkiln.errors import AllocationError, DriverError, InvalidArgumentError
from shaderkiln.formats.mesa_cache import Entry, Layout, read, seal, write
from shaderkiln.formats.vk_cache import CacheHeader, read_header
from shaderkiln.vulkan import AllocationCallbacks, PipelineCache, Reason, VulkanDevice
from shaderkiln.vulkan_registry.structures import ComputePipelineCreateInfo

pytestmark = pytest.mark.driver


def keys(cache: PipelineCache) -> set[tuple[int, bytes]]:
    return {(entry.type, entry.key) for entry in cache.entries()}


@pytest.fixture
def cache(device: VulkanDevice) -> Iterator[PipelineCache]:
    """A cache with the three small pipelines."""
    cache = device.create_pipeline_cache()
    assert all(create_all(device, cache))
    yield cache
    if not cache.destroyed:
        device.destroy_pipeline_cache(cache)


# ------------------------------------------------------------------------------------------------------------ creation


@pytest.mark.spec("VC-01")
def test_without_initial_data_a_cache_is_empty(device: VulkanDevice) -> None:
    cache = device.create_pipeline_cache()
    assert cache.rejection is None
    assert cache.entries() == ()


@pytest.mark.spec("VC-01")
def test_initial_data_of_size_0_is_not_looked_at(device: VulkanDevice) -> None:
    cache = device.create_pipeline_cache(object(), initial_data_size=0)
    assert (cache.rejection, cache.entries()) == (None, ())


@pytest.mark.spec("VC-02", "VC-13")
def test_a_drivers_data_is_taken_by_that_driver_again(device: VulkanDevice, blob: bytes) -> None:
    cache = device.create_pipeline_cache(blob)
    assert cache.rejection is None
    assert [p.result for p in create_all(device, cache, forbidden=True)] == ["VK_SUCCESS"] * 3
    assert cache.read() == blob


@pytest.mark.spec("VC-13")
def test_data_as_the_driver_wrote_it_is_taken_without_a_checksum(device: VulkanDevice, blob: bytes) -> None:
    data = read(blob).data
    cache = device.create_pipeline_cache(data)
    assert all(create_all(device, cache, forbidden=True))
    strict = device.create_pipeline_cache(data, require_checksum=True)
    assert strict.entries() == ()
    assert strict.rejection is not None
    assert strict.rejection.reason is Reason.UNSEALED


@pytest.mark.spec("VC-01")
def test_a_size_of_initial_data_counts(device: VulkanDevice, blob: bytes) -> None:
    assert device.create_pipeline_cache(blob + b"more", initial_data_size=len(blob)).read() == blob
    for size in (-1, len(blob) + 1):
        with pytest.raises(InvalidArgumentError):
            device.create_pipeline_cache(blob, initial_data_size=size)


@pytest.mark.spec("VC-02")
@pytest.mark.parametrize(("position", "reason"), [(0, Reason.HEADER), (4, Reason.HEADER), (8, Reason.DEVICE), (12, Reason.DEVICE),
                                                  (16, Reason.DEVICE), (31, Reason.DEVICE), (40, Reason.DAMAGED)])  # fmt: skip
def test_data_that_does_not_fit_gives_an_empty_cache_and_the_reason(
    device: VulkanDevice, blob: bytes, position: int, reason: Reason
) -> None:
    damaged = bytearray(blob)
    damaged[position] ^= 1
    cache = device.create_pipeline_cache(bytes(damaged))
    assert cache.entries() == ()
    assert cache.rejection is not None
    assert cache.rejection.reason is reason
    assert str(cache.rejection)
    assert all(create_all(device, cache))  # it is a cache like any other


@pytest.mark.spec("VC-02")
def test_damage_reaches_no_driver(device: VulkanDevice, blob: bytes) -> None:
    """Sampled; the whole of it is a soak."""
    dice = random.Random(1)
    starts = device.restarts
    for position in dice.sample(range(len(blob)), 60):
        damaged = bytearray(blob)
        damaged[position] ^= dice.randrange(1, 256)
        _is_empty(device, bytes(damaged))
    for length in dice.sample(range(33, len(blob) - 33), 60):
        _is_whole_entries(device, blob[:length], blob)
    assert device.restarts == starts


@pytest.mark.soak
@pytest.mark.spec("VC-02")
def test_no_damage_reaches_a_driver(device: VulkanDevice, blob: bytes) -> None:
    """Every byte changed, every truncation, 10,000 random mutations."""
    starts = device.restarts
    for position in range(len(blob)):
        damaged = bytearray(blob)
        damaged[position] ^= 1 << position % 8
        _is_empty(device, bytes(damaged))
    for length in range(len(blob)):
        _is_whole_entries(device, blob[:length], blob)
    dice = random.Random(2)
    for _ in range(10_000):
        damaged = bytearray(blob)
        for _ in range(dice.choice((1, 3, 20))):
            damaged[dice.randrange(len(damaged))] ^= dice.randrange(1, 256)
        _is_empty(device, bytes(damaged))
    assert device.restarts == starts
    assert _resident(device) < 512 << 20


def _resident(device: VulkanDevice) -> int:
    process = device._connection.process._service._process
    assert process is not None
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


def _is_empty(device: VulkanDevice, data: bytes) -> None:
    cache = device.create_pipeline_cache(data)
    assert cache.rejection is not None
    assert cache.entries() == ()
    device.destroy_pipeline_cache(cache)


def _is_whole_entries(device: VulkanDevice, data: bytes, blob: bytes) -> None:
    cache = device.create_pipeline_cache(data)
    entries = cache.entries()
    assert set(entries) <= set(read(blob, device.cache_layout))
    if entries or not data:
        assert cache.rejection is None
    device.destroy_pipeline_cache(cache)


@pytest.mark.spec("VC-02")
def test_data_without_a_checksum_that_ends_the_driver_is_dropped() -> None:
    """RADV 25 divides by a number in a shader's entry."""
    with opened("amd-navi31", "mesa-backports") as device:
        if not device.identity.compiler_version.startswith("radv Mesa 25."):
            pytest.skip("this driver does not end with that data")
        cache = device.create_pipeline_cache()
        create_all(device, cache)
        data = read(cache.read(), Layout.MESA)
        wrong = [Entry(t, k, b[:8] + b"\xff\xff\xff\xff" + b[12:] if len(k) == 32 else b) for t, k, b in data]
        damaged = device.create_pipeline_cache(write(data.header, wrong))
        assert damaged.rejection is None
        assert all(create_all(device, damaged))
        assert damaged.rejection is not None
        assert damaged.rejection.reason is Reason.DRIVER
        assert device.restarts
        assert damaged.read() == cache.read()
        assert all(create_all(device, cache, forbidden=True))  # the other caches live on


@pytest.mark.spec("VC-02")
def test_a_pipeline_that_claims_more_shaders_than_it_has_reaches_no_driver(device: VulkanDevice, blob: bytes) -> None:
    """It would take gigabytes of memory, or read what is not there."""
    data = read(blob, device.cache_layout)
    if not any(len(entry.key) == 20 for entry in data) or device.cache_layout is not Layout.MESA:
        pytest.skip("pipelines cannot be told from shaders in this driver's data")
    for count in (b"\xff\xff\xff\x7f", b"\0\0\0\1", b"\2\0\0\0"):
        wrong = [Entry(t, k, count + b[4:] if len(k) == 20 else b) for t, k, b in data]
        _is_empty(device, write(data.header, wrong))


@pytest.mark.spec("VC-03")
def test_flags(device: VulkanDevice) -> None:
    def make(flags: int) -> PipelineCache:
        return device.create_pipeline_cache(flags=flags)

    external = make(vk.EXTERNALLY_SYNCHRONIZED)
    assert all(create_all(device, external))
    if any(name.endswith(".maintenance8") for name in device.capabilities.features):
        internal = make(vk.INTERNALLY_SYNCHRONIZED_MERGE)
        device.merge_pipeline_caches(internal, [external])
        assert keys(internal) == keys(external)
    else:
        with pytest.raises(DriverError) as error:
            make(vk.INTERNALLY_SYNCHRONIZED_MERGE)
        assert error.value.code == "VK_ERROR_FEATURE_NOT_PRESENT"
    for flags in (vk.EXTERNALLY_SYNCHRONIZED | vk.INTERNALLY_SYNCHRONIZED_MERGE, 2, 4, 0x10, 1 << 31, -1):
        with pytest.raises(InvalidArgumentError):
            make(flags)


# ---------------------------------------------------------------------------------------------------------------- data


@pytest.mark.spec("VC-05", "VC-08", "VC-09")
def test_the_size_and_all_data(device: VulkanDevice, cache: PipelineCache) -> None:
    size = cache.get_data()
    data, complete = cache.get_data(size)
    assert (len(data), complete) == (size, True)
    assert cache.get_data(size) == (data, True)
    assert cache.get_data(size + 1000) == (data, True)
    capabilities = device.capabilities
    assert data[:8] == bytes.fromhex("2000000001000000")
    header = CacheHeader(capabilities.vendor_id, capabilities.device_id, capabilities.cache_uuid)
    assert read_header(data) == header
    divided = read(data, device.cache_layout)
    assert divided.sealed
    assert divided.fault is None
    with pytest.raises(InvalidArgumentError):
        cache.get_data(-1)


@pytest.mark.spec("VC-08")
def test_a_hit_does_not_change_the_data(device: VulkanDevice, cache: PipelineCache) -> None:
    before = cache.read()
    assert all(pipeline.hit for pipeline in create_all(device, cache))
    assert cache.read() == before


@pytest.mark.spec("VC-06", "VC-07")
def test_every_size_from_0_to_all(device: VulkanDevice, cache: PipelineCache) -> None:
    size = cache.get_data()
    everything = set(cache.entries())
    counts = set()
    seen: dict[bytes, bool] = {}
    for room in range(size + 1):
        data, complete = cache.get_data(room)
        assert len(data) <= room
        assert complete == (room == size)
        if room < 32:
            assert data == b""
        seen[data] = complete
    for data in seen:
        if not data:
            continue
        divided = read(data, device.cache_layout)
        assert divided.fault is None
        assert set(divided) <= everything
        counts.add(len(divided))
        taken = device.create_pipeline_cache(data)
        assert taken.rejection is None
        assert set(taken.entries()) == set(divided)
        device.destroy_pipeline_cache(taken)
    assert counts == set(range(len(everything) + 1))


# --------------------------------------------------------------------------------------------------------------- merge


@pytest.mark.spec("VC-10")
def test_merging_gives_the_union_and_again_changes_nothing(device: VulkanDevice) -> None:
    caches = [device.create_pipeline_cache() for _ in range(3)]
    infos = _many(4)
    device.create_compute_pipelines(caches[0], infos[:2], objects=OBJECTS)
    device.create_compute_pipelines(caches[1], infos[1:3], objects=OBJECTS)
    device.create_compute_pipelines(caches[2], infos[3:], objects=OBJECTS)
    kept = keys(caches[0])
    union = set().union(*map(keys, caches))
    device.merge_pipeline_caches(caches[0], caches[1:])
    assert kept < keys(caches[0]) == union
    assert len(caches[0].entries()) == len(union)
    merged = caches[0].read()
    device.merge_pipeline_caches(caches[0], caches[1:])
    assert caches[0].read() == merged
    forbidden = _many(4, forbidden=True)
    assert all(device.create_compute_pipelines(caches[0], forbidden, objects=OBJECTS))


@pytest.mark.spec("VC-10")
def test_merging_fifty_caches(device: VulkanDevice) -> None:
    infos = _many(25)
    caches = []
    for number in range(50):
        cache = device.create_pipeline_cache()
        device.create_compute_pipelines(cache, [infos[number // 2], infos[(number * 7) % 25]], objects=OBJECTS)
        caches.append(cache)
    union = set().union(*map(keys, caches))
    destination = device.create_pipeline_cache()
    device.merge_pipeline_caches(destination, caches)
    assert keys(destination) == union
    assert len(destination.entries()) == len(union)
    for cache in (*caches, destination):
        device.destroy_pipeline_cache(cache)


@pytest.mark.spec("VC-10")
def test_merges_that_are_refused(device: VulkanDevice, cache: PipelineCache) -> None:
    other = device.create_pipeline_cache()
    before = cache.read()
    for sources in ([], [cache], [other, cache]):
        with pytest.raises(InvalidArgumentError):
            device.merge_pipeline_caches(cache, sources)
    with opened(*device_of(device)) as second:
        foreign = second.create_pipeline_cache()
        with pytest.raises(InvalidArgumentError):
            device.merge_pipeline_caches(cache, [foreign])
        with pytest.raises(InvalidArgumentError):
            device.merge_pipeline_caches(foreign, [cache])
        with pytest.raises(InvalidArgumentError):
            device.destroy_pipeline_cache(foreign)
        with pytest.raises(InvalidArgumentError):
            create_all(device, foreign)
    assert cache.read() == before


# --------------------------------------------------------------------------------------------------------- destruction


@pytest.mark.spec("VC-11")
def test_a_destroyed_cache_refuses_every_use(device: VulkanDevice) -> None:
    device.destroy_pipeline_cache(None)
    cache, other = device.create_pipeline_cache(), device.create_pipeline_cache()
    device.destroy_pipeline_cache(cache)
    assert cache.destroyed
    uses = (
        lambda: cache.get_data(),
        lambda: cache.get_data(100),
        lambda: cache.read(),
        lambda: cache.entries(),
        lambda: create_all(device, cache),
        lambda: device.merge_pipeline_caches(cache, [other]),
        lambda: device.merge_pipeline_caches(other, [cache]),
        lambda: device.destroy_pipeline_cache(cache),
    )
    for use in uses:
        with pytest.raises(InvalidArgumentError):
            use()


@pytest.mark.spec("VC-11")
def test_the_allocation_callbacks_of_creation_must_come_again(device: VulkanDevice) -> None:
    mine, others = AllocationCallbacks(lambda size: size, lambda piece: None), AllocationCallbacks(int, print)
    with_callbacks = device.create_pipeline_cache(allocator=mine)
    for wrong in (None, others):
        with pytest.raises(InvalidArgumentError):
            device.destroy_pipeline_cache(with_callbacks, wrong)
    device.destroy_pipeline_cache(with_callbacks, mine)
    without = device.create_pipeline_cache()
    with pytest.raises(InvalidArgumentError):
        device.destroy_pipeline_cache(without, mine)
    device.destroy_pipeline_cache(without)


@pytest.mark.spec("VC-11")
def test_a_closed_device_refuses_every_use() -> None:
    with opened("amd-navi31", "mesa-backports") as device:
        cache = device.create_pipeline_cache()
    device.close()
    for use in (cache.read, device.create_pipeline_cache, lambda: create_all(device, None)):
        with pytest.raises(InvalidArgumentError):
            use()


# -------------------------------------------------------------------------------------------------------------- memory


class Memory:
    """Allocation callbacks that count, and refuse what would go past ``limit``."""

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit = limit
        self.live: dict[int, int] = {}
        self._number = 0
        self.callbacks = AllocationCallbacks(self.allocate, self.free)

    @property
    def size(self) -> int:
        return sum(self.live.values())

    def allocate(self, size: int) -> int | None:
        assert size > 0
        if self.size + size > self.limit:
            return None
        self._number += 1
        self.live[self._number] = size
        return self._number

    def free(self, piece: int) -> None:
        del self.live[piece]


@pytest.mark.spec("VC-12")
def test_callbacks_see_the_memory_of_the_data(device: VulkanDevice, blob: bytes) -> None:
    memory = Memory()
    cache = device.create_pipeline_cache(allocator=memory.callbacks)
    checksum = len(seal(b""))
    assert memory.size == cache.get_data() - checksum
    assert all(create_all(device, cache))
    assert memory.size == cache.get_data() - checksum == len(blob) - checksum
    create_all(device, cache)
    assert memory.size == len(blob) - checksum
    device.destroy_pipeline_cache(cache, memory.callbacks)
    assert memory.live == {}
    with_data = device.create_pipeline_cache(blob, allocator=memory.callbacks)
    assert memory.size == len(blob) - checksum
    device.destroy_pipeline_cache(with_data, memory.callbacks)
    assert memory.live == {}


@pytest.mark.spec("VC-12")
def test_callbacks_that_give_nothing(device: VulkanDevice, blob: bytes) -> None:
    none = Memory(0)
    with pytest.raises(AllocationError) as error:
        device.create_pipeline_cache(blob, allocator=none.callbacks)
    assert error.value.code == "VK_ERROR_OUT_OF_HOST_MEMORY"

    little = Memory(100)
    cache = device.create_pipeline_cache(allocator=little.callbacks)
    before = cache.read()
    assert [pipeline.result for pipeline in create_all(device, cache)] == ["VK_ERROR_OUT_OF_HOST_MEMORY"] * 3
    assert cache.read() == before
    full = device.create_pipeline_cache(blob)
    with pytest.raises(AllocationError) as error:
        device.merge_pipeline_caches(cache, [full])
    assert error.value.code == "VK_ERROR_OUT_OF_HOST_MEMORY"
    assert cache.read() == before
    little.limit = 1 << 20
    assert all(create_all(device, cache))
    assert cache.read() == blob
    device.destroy_pipeline_cache(cache, little.callbacks)
    assert little.live == {}


@pytest.mark.spec("VC-12")
def test_a_callback_that_raises_memory_error_gives_nothing(device: VulkanDevice) -> None:
    def allocate(size: int) -> None:
        raise MemoryError

    with pytest.raises(AllocationError):
        device.create_pipeline_cache(allocator=AllocationCallbacks(allocate, print))


@pytest.mark.spec("VC-13")
def test_data_is_taken_by_a_device_in_another_process(device: VulkanDevice, blob: bytes, tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(blob)
    family, package = device_of(device)
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from vulkan_support import create_all, vk\n"
        f"with vk.open_device({family!r}, package={package!r}) as device:\n"
        f"    cache = device.create_pipeline_cache(open({str(tmp_path / 'blob')!r}, 'rb').read())\n"
        "    print(cache.rejection, all(create_all(device, cache, forbidden=True)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "None True\n"


def _many(count: int, *, forbidden: bool = False) -> list[ComputePipelineCreateInfo]:
    return [compute_pipeline(100 + number, flags=FORBIDDEN if forbidden else 0) for number in range(count)]
