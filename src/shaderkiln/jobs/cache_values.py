"""One VkPipelineCache of all pipelines of a PSDB.

Where the driver's object code has the form ``pipeline-cache``, that is the caches of the single pipelines, merged. Where it has
the form ``pipeline-binary``, the binaries do not suffice: the driver looks for entries that are no binary (RADV: which shaders a
pipeline has; NVK and Honeykrisp: the shaders as they were before linking). ``kiln compile --cache`` therefore creates each
pipeline once more through a cache of its own and stores what is in it: each entry as an OBJECT_CODE value whose key is made like
a binary's, so that an entry that is a binary is stored once, and under the object key with ``pipeline-cache`` behind it a
METADATA value that lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from shaderkiln.compilers.value_keys import DIGEST_BYTES, PIPELINE_BINARY, object_code_values
from shaderkiln.databases.cache_file import Merged, merge
from shaderkiln.databases.psdb import Psdb
from shaderkiln.errors import CacheCorruptError, DamagedInputError, NotFoundError, UnsupportedError
from shaderkiln.formats import mesa_cache
from shaderkiln.formats.mesa_cache import Entry, Layout
from shaderkiln.formats.vendors import MESA, VENDORS
from shaderkiln.formats.vk_cache import CacheHeader
from shaderkiln.identity import CompilerIdentity
from shaderkiln.keys import Group, ObjectKey, Value, ValueKey, ValueType

_FORM = 1
_SUFFIX = b"pipeline-cache"


class _Record(msgspec.Struct, array_like=True):
    form: int
    layout: str
    entries: list[tuple[int, bytes]]
    """Type and value key of each, in the driver's order."""


@dataclass(frozen=True, slots=True)
class Export:
    """One cache, and which pipelines are in it."""

    data: bytes
    pipelines: int
    missing: tuple[str, ...]
    """Names of the pipelines whose cache was not stored (``kiln compile --cache`` does that)."""
    merged: Merged
    """What became of the entries of each pipeline."""


def cache_value_key(object_key: ObjectKey) -> ValueKey:
    """Under which the list of a pipeline's cache entries is stored."""
    return ValueKey(bytes(object_key) + _SUFFIX)


def cache_values(object_key: ObjectKey, data: bytes) -> tuple[Value, ...]:
    """The typed values that hold the cache of one pipeline. Raises DamagedInputError if it is none, or not whole."""
    cache = mesa_cache.read(data)
    if cache.fault is not None:
        raise DamagedInputError(f"the driver's pipeline cache makes no sense: {cache.fault.reason}")
    entries = list(cache) if cache.layout is not Layout.OPAQUE else [Entry(0, bytes(object_key), cache.data)]
    values = object_code_values(PIPELINE_BINARY, object_key, tuple((entry.key, entry.data) for entry in entries))
    record = _Record(
        _FORM, cache.layout, [(entry.type, bytes(value.key)) for entry, value in zip(entries, values, strict=True)]
    )
    return (*values, Value(cache_value_key(object_key), ValueType.METADATA, msgspec.msgpack.encode(record)))


def header_of(identity: CompilerIdentity) -> CacheHeader:
    """The header that the driver's own caches have."""
    return CacheHeader(identity.vendor_id, identity.device_id, identity.cache_uuid)


def export_cache(database: Psdb) -> Export:
    """One cache of all pipelines of a PSDB, sealed where that is possible; a driver that loads it compiles none of them.

    Every value is compared with its checksum. Raises CacheCorruptError for a damaged database, NotFoundError if it holds pipelines
    and no caches of them, UnsupportedError if only the driver could merge them.
    """
    identity = database.identity
    whole = identity.object_code_form != PIPELINE_BINARY
    missing: list[str] = []
    count = 0

    def sources() -> Iterator[tuple[str, bytes]]:
        nonlocal count
        yield "header", bytes(header_of(identity)) + (bytes(4) if not whole else b"")
        for group in database.groups():
            try:
                caches = [database.find(key) for key in group.value_keys] if whole else _stored_cache(database, group)
            except NotFoundError:
                if group.value_keys:
                    missing.append(group.name)
                continue
            count += 1
            for data in caches:
                yield group.name, data

    try:
        merged = merge(sources())
    except UnsupportedError as error:
        raise UnsupportedError(f"{database.path}: {error}") from error
    except DamagedInputError as error:
        raise CacheCorruptError(f"{database.path}: {error}") from error
    if missing and not count:
        raise NotFoundError(
            f"{database.path}: it holds pipeline binaries and no pipeline caches; compile it once more with --cache"
        )
    opaque = mesa_cache.read(merged.data).layout is Layout.OPAQUE
    return Export(merged.data if opaque else mesa_cache.seal(merged.data), count, tuple(missing), merged)


def _stored_cache(database: Psdb, group: Group) -> list[bytes]:
    """The cache of one pipeline. Raises NotFoundError if it was not stored, CacheCorruptError if it makes no sense."""
    data = database.find(cache_value_key(group.object_key), ValueType.METADATA)
    try:
        record = msgspec.msgpack.decode(data, type=_Record)
        if record.form != _FORM:
            raise ValueError(f"form {record.form}")
        layout = Layout(record.layout)
        entries = []
        for type, key in record.entries:
            if len(key) <= DIGEST_BYTES:
                raise ValueError(f"key {key.hex()}")
            entries.append(Entry(type, key[:-DIGEST_BYTES], _found(database, group, ValueKey(key))))
    except (msgspec.DecodeError, ValueError) as error:
        raise CacheCorruptError(f"pipeline {group.name}: its list of cache entries makes no sense: {error}") from error
    if layout is Layout.OPAQUE:
        return [entry.data for entry in entries]
    return [mesa_cache.write(header_of(database.identity), entries, layout)]


def _found(database: Psdb, group: Group, key: ValueKey) -> bytes:
    try:
        return database.find(key)
    except NotFoundError as error:
        raise CacheCorruptError(f"pipeline {group.name}: cache entry {key.hex()} is not stored") from error


def families_of(header: CacheHeader) -> tuple[str, ...]:
    """The families of installed driver packages whose caches have this header, in the order of their names.

    Several can: the header alone is no identity. No driver is started: what ``kiln families`` asked before counts.
    """
    from shaderkiln.compilers.vulkan_driver import family_name
    from shaderkiln.drivers.packages import DriverPackages
    from shaderkiln.drivers.probe import remembered
    from shaderkiln.drivers.targets import candidate_targets

    vendor = VENDORS.get(header.vendor_id)
    found: set[str] = set()
    for package in DriverPackages().list():
        for target in candidate_targets(package):
            if vendor is not None and header.vendor_id != MESA and vendor.name != target.vendor:
                continue
            answer = remembered(target)
            capabilities = answer.capabilities if answer else None
            if capabilities is not None and header == CacheHeader(
                capabilities.vendor_id, capabilities.device_id, capabilities.cache_uuid
            ):
                found.add(family_name(target, capabilities))
    return tuple(sorted(found))
