"""VkPipelineCache data as files hold it, without any driver: examine, shorten, merge, compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from shaderkiln.errors import CacheCorruptError, InvalidArgumentError, ShaderkilnError, UnsupportedError
from shaderkiln.formats import mesa_cache, vendors
from shaderkiln.formats.mesa_cache import CacheData, Entry, Fault, Layout
from shaderkiln.formats.vk_cache import HEADER_SIZE, CacheHeader, CacheRejectedError, fits


class State(StrEnum):
    """What a file is."""

    VALID = "valid"
    OPAQUE = "opaque"
    """A sound header; whether the rest is whole, only its driver can tell."""
    TRUNCATED = "truncated"
    DAMAGED = "damaged"
    FOREIGN = "foreign"
    """No VkPipelineCache data of header version one."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What can be told of VkPipelineCache data by itself."""

    state: State
    size: int
    header: CacheHeader | None = None
    layout: Layout | None = None
    driver: str = ""
    """Whose data it seems to be; empty where nothing tells."""
    entries: int = 0
    """Whole entries; 0 where the payload is opaque."""
    entry_bytes: int = 0
    """Bytes of their keys and data."""
    pipelines: int = 0
    """Entries that stand for pipelines and list their shaders (RADV)."""
    incomplete: int = 0
    """Such pipelines of which a shader is missing: the driver has to compile them."""
    sealed: bool = False
    fault: str = ""
    position: int = 0
    """Byte at which the fault shows."""


class DamagedCacheError(CacheCorruptError):
    """VkPipelineCache data that is truncated or altered; ``fault`` says where."""

    def __init__(self, name: str, fault: Fault) -> None:
        what = "truncated" if fault.truncated else "damaged"
        super().__init__(f"{name}: {what}: {fault.reason} (byte {fault.position})")
        self.fault = fault


class OtherDeviceError(CacheCorruptError):
    """Caches of different devices or driver builds cannot become one (VC-10)."""


def examine(data: bytes) -> Examination:
    """Whose data it is, what is in it, and whether it is whole. Never raises."""
    try:
        cache = mesa_cache.read(data)
    except CacheRejectedError as error:
        state = State.TRUNCATED if error.position == len(data) and _begins_like_a_header(data) else State.FOREIGN
        return Examination(state, len(data), fault=error.reason, position=error.position)
    keys: set[bytes] = set()
    references: list[tuple[bytes, ...]] = []
    size = 0
    radv = cache.layout is Layout.MESA and cache.header.vendor_id == vendors.AMD
    for entry in cache:
        size += len(entry.key) + len(entry.data)
        if radv:
            keys.add(entry.key)
            if (shaders := mesa_cache.radv_shader_keys(entry)) is not None:
                references.append(shaders)
    fault = cache.fault
    state = State.OPAQUE if cache.layout is Layout.OPAQUE else State.VALID
    if fault is not None and not fault.remainder:
        state = State.TRUNCATED if fault.truncated else State.DAMAGED
    return Examination(
        state=state,
        size=len(data),
        header=cache.header,
        layout=cache.layout,
        driver=driver_of(cache),
        entries=len(cache),
        entry_bytes=size,
        pipelines=len(cache) if cache.layout is Layout.RADV_22 else len(references),
        incomplete=sum(not keys.issuperset(shaders) for shaders in references),
        sealed=cache.sealed,
        fault=fault.reason if fault else "",
        position=fault.position if fault else 0,
    )


def driver_of(cache: CacheData) -> str:
    """The driver that writes such data for such a vendor, as far as vendor and layout tell; empty if they do not."""
    if cache.layout is Layout.OPAQUE:
        return "NVIDIA" if cache.header.vendor_id == vendors.NVIDIA else ""
    if cache.layout is Layout.RADV_22:
        return "RADV up to Mesa 23.0"
    vendor = vendors.VENDORS.get(cache.header.vendor_id)
    return vendor.mesa_driver if vendor else "Mesa"


def whole(name: str, data: bytes) -> CacheData:
    """The data, divided. Raises CacheRejectedError if it is no cache data, DamagedCacheError if it is not whole."""
    try:
        cache = mesa_cache.read(data)
    except CacheRejectedError as error:
        raise CacheRejectedError(f"{name}: {error.reason}", error.position) from error
    if cache.fault is not None and not cache.fault.remainder:
        raise DamagedCacheError(name, cache.fault)
    return cache


def trim(data: bytes, size: int) -> bytes:
    """At most ``size`` bytes of whole cache data that are valid initial data by themselves: the header and the first entries
    that fit (VC-06); nothing where the header does not fit (VC-07). An opaque payload is kept whole or not at all.

    Raises as ``whole`` does, InvalidArgumentError for a negative size.
    """
    if size < 0:
        raise InvalidArgumentError(f"a buffer of {size} bytes")
    cache = whole("cache", data)
    if cache.layout is Layout.OPAQUE:
        return cache.data if size >= len(cache.data) else bytes(cache.header) if size >= HEADER_SIZE else b""
    if size >= cache.end:
        return cache.data[: cache.end]
    if size < HEADER_SIZE:
        return b""
    kept = 0
    for end in cache.ends():
        if end > size:
            break
        kept += 1
    if not kept:
        return bytes(cache.header)
    return mesa_cache.write(cache.header, (cache[number] for number in range(kept)), cache.layout)


@dataclass(slots=True)
class SourceLedger:
    """What became of one source: ``entries == kept + duplicates + conflicting``, unless it was left out."""

    name: str
    entries: int = 0
    kept: int = 0
    duplicates: int = 0
    conflicting: int = 0
    """Entries left out because an earlier one has their key and other data."""
    left_out: str = ""
    """Why the whole source was left out; empty if it was not."""
    damage: str = ""
    """What follows the entries that were taken from a damaged source."""

    @property
    def balanced(self) -> bool:
        return self.entries == self.kept + self.duplicates + self.conflicting


@dataclass(frozen=True, slots=True)
class Merged:
    """One cache of several, and what became of every entry of every source, in their order."""

    data: bytes
    sources: tuple[SourceLedger, ...]

    @property
    def entries(self) -> int:
        return sum(source.kept for source in self.sources)

    @property
    def good(self) -> bool:
        """Nothing was left out but duplicates."""
        return not any(source.conflicting or source.left_out or source.damage for source in self.sources)


def merge(sources: Iterable[tuple[str, bytes]], *, salvage: bool = False) -> Merged:
    """The entries of every source, named for the ledger, in their order; of equal keys the first counts (VC-10).

    The data is not sealed. The first source that can be used says for which device. With ``salvage``, sources of other devices
    and such that are no cache data are left out, and of damaged ones the whole entries before the damage are taken. Opaque data
    only goes with its like: all sources must be equal, because only the driver can merge what it alone understands.

    Raises InvalidArgumentError without sources, OtherDeviceError, DamagedCacheError, CacheRejectedError, UnsupportedError for
    opaque data that differs.
    """
    ledgers: list[SourceLedger] = []
    first: CacheData | None = None
    filled: CacheData | None = None  # the first with a payload: an empty cache can be of any layout
    entries: dict[bytes, Entry] = {}
    for name, data in sources:
        ledger = SourceLedger(name)
        ledgers.append(ledger)
        try:
            cache = mesa_cache.read(data) if salvage else whole(name, data)
            _check_fit(name, cache, first, filled)
        except ShaderkilnError as error:
            if not salvage:
                raise
            ledger.left_out = str(error).removeprefix(f"{name}: ")
            continue
        if cache.fault is not None and not cache.fault.remainder:
            ledger.damage = str(DamagedCacheError(name, cache.fault)).removeprefix(f"{name}: ")
        first = first or cache
        if cache.layout is Layout.OPAQUE:
            ledger.entries, ledger.kept, ledger.duplicates = 1, int(filled is None), int(filled is not None)
        if filled is None and not _is_empty(cache):
            filled = cache
        for entry in cache:
            earlier = entries.setdefault(entry.key, entry)
            ledger.entries += 1
            if earlier is entry:
                ledger.kept += 1
            elif earlier == entry:
                ledger.duplicates += 1
            else:
                ledger.conflicting += 1
    if not ledgers:
        raise InvalidArgumentError("nothing to merge")
    if first is None:
        raise InvalidArgumentError(f"nothing can be used: {ledgers[0].left_out}")
    if filled is None:
        return Merged(first.data, tuple(ledgers))
    if filled.layout is Layout.OPAQUE:
        return Merged(filled.data, tuple(ledgers))
    return Merged(mesa_cache.write(filled.header, entries.values(), filled.layout), tuple(ledgers))


def _is_empty(cache: CacheData) -> bool:
    return not len(cache) and cache.layout is not Layout.OPAQUE


def _check_fit(name: str, cache: CacheData, first: CacheData | None, filled: CacheData | None) -> None:
    """Raises OtherDeviceError or UnsupportedError where the cache cannot go with those before."""
    if first is not None and cache.header != first.header:
        raise OtherDeviceError(
            f"{name}: {difference(cache.header, first.header)}: caches of different devices cannot be merged"
        )
    if filled is None or _is_empty(cache):
        return
    if Layout.OPAQUE in (cache.layout, filled.layout) and cache.data != filled.data:
        raise UnsupportedError(f"{name}: only its driver understands what is in it, and can merge it")
    if cache.layout is not filled.layout:
        raise OtherDeviceError(f"{name}: its entries have the layout {cache.layout}, those before {filled.layout}")


def difference(header: CacheHeader, expected: CacheHeader) -> str:
    """What differs between two headers, in words."""
    return fits(header, expected.vendor_id, expected.device_id, expected.uuid) or "the same device"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two caches differ, by the keys of their entries."""

    only_first: tuple[bytes, ...]
    only_second: tuple[bytes, ...]
    changed: tuple[bytes, ...]
    equal: int


def compare(first: bytes, second: bytes) -> Comparison:
    """The entries that only one of two whole caches of one device has, and those that differ.

    Raises as ``merge`` does.
    """
    one, other = whole("first", first), whole("second", second)
    if one.header != other.header:
        raise OtherDeviceError(f"second: {difference(other.header, one.header)}")
    if Layout.OPAQUE in (one.layout, other.layout) and one.data != other.data:
        raise UnsupportedError("only its driver understands what is in it")
    ours, theirs = _by_key(one), _by_key(other)
    both = [key for key in ours if key in theirs]
    changed = tuple(key for key in both if ours[key] != theirs[key])
    return Comparison(
        tuple(key for key in ours if key not in theirs),
        tuple(key for key in theirs if key not in ours),
        changed,
        len(both) - len(changed),
    )


def _by_key(cache: CacheData) -> dict[bytes, Entry]:
    entries: dict[bytes, Entry] = {}
    for entry in cache:
        entries.setdefault(entry.key, entry)
    return entries


def _begins_like_a_header(data: bytes) -> bool:
    start = (HEADER_SIZE).to_bytes(4, "little") + (1).to_bytes(4, "little")
    return 0 < len(data) < HEADER_SIZE and start.startswith(data[:8])
