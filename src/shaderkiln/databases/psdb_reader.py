"""Reading a finished precompiled shader database."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, Self

import apsw
import xxhash

from ..closing import on_error
from ..errors import CacheCorruptError, InvalidArgumentError, NotFoundError
from ..identity import ApplicationIdentity, CompilerIdentity
from ..keys import Group, ObjectKey, ValueKey, ValueType
from . import psdb_schema as schema
from .psdb_lock import is_live
from .psdb_records import Damage, DamagedValueError, Poison, PsdbStatistics, StoredValue, TypeStatistics
from .sqlite_file import StepBudget, Translated, connect, limit_resources, read_header, signed
from .store import Store, Usage

INDEX_LIMIT = 1_000_000
"""Up to that many values the index is loaded into memory at the first find (about 220 bytes a value)."""

# The names that find uses, without look-ups through modules: a tenth of its time.
_unpack = schema.LOCATION.unpack
_xxh3_64 = xxhash.xxh3_64_intdigest
_xxh3_128 = xxhash.xxh3_128_digest
_SMALLEST_ROW = 16
_GROUPS = f"SELECT {schema.GROUP_COLUMNS} FROM groups ORDER BY id LIMIT ?"
_POISON = f"SELECT {schema.POISON_COLUMNS} FROM poison ORDER BY id LIMIT ?"


class Psdb(Store):
    """A finished PSDB, open for reading. Made by ``Psdb.open``; close it, or use it in a ``with`` statement.

    The file is taken as immutable: a newer one replaces it by rename and is seen by the next ``open``. One object may be used
    by several threads, but not on both sides of a fork.
    """

    identity: CompilerIdentity
    application: ApplicationIdentity
    maximum_size: int
    """Limit of the payload bytes; 0 means none."""
    _state: schema.State
    _owner: int

    def __init__(self, path: Path, connection: apsw.Connection, file_size: int, index_limit: int) -> None:
        self.path = path
        self._connection = connection
        self._file_size = file_size
        self._index_limit = index_limit
        self._lock = threading.RLock()
        self._blob: apsw.Blob | None = None
        self._index: dict[int, dict[bytes, bytes]] | None = None
        self._index_fault: str | None = None
        self._groups_fault: str | None = None
        self._groups_checked = False
        self._budget = StepBudget(connection)
        self._translated = Translated(path)

    @classmethod
    def open(cls, path: Path | str, *, index_limit: int = INDEX_LIMIT) -> Self:
        """Open a finished PSDB read-only and check everything but the values, which are checked when they are read.

        With more values than ``index_limit`` each look-up asks the file, with little memory and twice the time; there a value
        that a damaged index hides counts as not stored (``values`` and ``verify`` find such damage).
        Raises NotFoundError for a missing file, AccessDeniedError for an unreadable one, and CacheCorruptError, with the
        reason, for anything that is not a sound PSDB of this format version.
        """
        path = Path(path)
        if is_live(path):
            raise CacheCorruptError(f"{path}: not finished: this process has it open as a live one")
        header = read_header(path, schema.FORM)
        size = header.size
        if not header.is_rollback:
            raise CacheCorruptError(f"{path}: not finished (its journal form is not that of a finished one)")
        if header.page_size != schema.PAGE_SIZE or header.pages * header.page_size != size:
            pages = f"{header.pages} pages of {header.page_size}"
            raise CacheCorruptError(f"{path}: truncated or damaged ({size} bytes, {pages})")
        connection = connect(path, immutable=True)
        database = cls(path, connection, size, index_limit)
        with on_error(database.close):
            with database._reading():
                limit_resources(connection, schema.LARGEST_ROW)
                schema.check_schema(connection.execute("SELECT type, name, sql FROM sqlite_schema LIMIT 100"))
                database.identity, database.application, database._state = schema.read_identity(connection)
            database._owner = schema.owner_seed(database.identity)
            state = database._state
            if max(state.value_count, state.group_count, state.poison_count) > size // _SMALLEST_ROW:
                raise CacheCorruptError(f"{path}: claims more rows than the file can hold")
            database.maximum_size = state.maximum_size
        return database

    def close(self) -> None:
        """Release the file; may be called again."""
        with self._lock:
            self._drop_blob()
            self._connection.close()

    def find(self, key: bytes, type: int = ValueType.OBJECT_CODE) -> bytes:
        """The bytes of a value, compared with its checksum.

        Raises NotFoundError where there is none, DamagedValueError where it is not what was stored, and CacheCorruptError where
        the index is damaged, so that nobody can tell.
        """
        index = self._index
        location = index[type].get(key) if index is not None and type in index else self._locate(key, type)
        if location is None:
            self._miss(key, type)
        _, size, payload, checksum = _unpack(location)
        with self._lock:
            try:
                blob = self._blob
                if blob is None:
                    blob = self._at(payload)
                else:
                    blob.reopen(payload)
                # Compared before reading, so that no claimed length makes us allocate more than the entry has.
                data = blob.read() if blob.length() == size <= self._file_size else None
            except (apsw.Error, OverflowError) as error:
                self._drop_blob()
                raise DamagedValueError(ValueKey(key), ValueType(type), str(error)) from error
        if data is None:
            raise DamagedValueError(ValueKey(key), ValueType(type), "its size is not the one in the index")
        if _xxh3_128(data, _xxh3_64(key, self._owner ^ type)) != checksum:
            raise DamagedValueError(ValueKey(key), ValueType(type), "its checksum is not the one in the index")
        return data

    def size(self, key: ValueKey, type: ValueType = ValueType.OBJECT_CODE) -> int:
        """The size of a value in bytes without reading it. Raises as ``find`` does."""
        location = self._locate(key, type)
        if location is None:
            self._miss(key, type)
        size: int
        _, size, payload, _ = schema.LOCATION.unpack(location)
        with self._lock:
            try:
                length = self._at(payload).length()
            except (apsw.Error, OverflowError) as error:
                self._drop_blob()
                raise DamagedValueError(key, type, str(error)) from error
        if length != size:
            raise DamagedValueError(key, type, f"holds {length} bytes, the index says {size}")
        return size

    def sizes(self, key: bytes) -> dict[int, int]:
        """As ``Store.sizes``."""
        return {int(type): self.size(ValueKey(key), type) for type in self.types(key)}

    def exists(self, key: bytes) -> bool:
        """Whether the key has a value of any type (EP-20). Raises CacheCorruptError where a damaged index leaves that open."""
        index = self._index
        if index is not None:
            for table in index.values():
                if key in table:
                    return True
        return bool(self.types(key))

    def types(self, key: bytes) -> tuple[ValueType, ...]:
        """The types of value that the key has, in order of their numbers; empty for an unknown key."""
        found = tuple(type for type in ValueType if self._locate(key, type) is not None)
        if not found and self._index_fault:
            raise CacheCorruptError(f"{self.path}: {self._index_fault}")
        return found

    def group(self, object_key: ObjectKey, version: int) -> Group:
        """The group of that object key and version.

        Raises NotFoundError where there is none, CacheCorruptError where it, or the table it would be in, is damaged.
        """
        group = self.group_or_none(object_key, version)
        if group is None:
            raise NotFoundError(f"no group for object {object_key.hex()}, version {version}")
        return group

    def group_or_none(self, object_key: ObjectKey, version: int) -> Group | None:
        """As ``group``, but None where there is none."""
        where = "object_key = ? AND version = ? LIMIT 1"
        return self._group(f"SELECT {schema.GROUP_COLUMNS} FROM groups WHERE {where}", object_key, version)

    def latest_group(self, object_key: ObjectKey) -> Group | None:
        """The group of that object with the largest version; None without any. Raises as ``group``."""
        return self._group(schema.LATEST_GROUP, object_key)

    def _group(self, query: str, object_key: ObjectKey, *versions: int) -> Group | None:
        with self._lock, self._reading():
            row = self._connection.execute(query, (object_key, *map(signed, versions))).fetchone()
        if row is None:
            self._check_groups()
            return None
        group = schema.group_from_row(row)
        if group.object_key != object_key or group.version not in (versions or (group.version,)):
            raise CacheCorruptError(f"{self.path}: the index of table groups is damaged")
        return group

    def groups(self) -> Iterator[Group]:
        """Every group in order of object key and version. Raises CacheCorruptError at a damaged one or for a missing one."""
        return map(schema.group_from_row, self._counted("groups", _GROUPS, self._state.group_count))

    def values(self) -> Iterator[StoredValue]:
        """Every value without its bytes, in order of key and type. Raises CacheCorruptError where the index is damaged."""
        limit = self._state.value_count
        digest = xxhash.xxh3_128()
        count = 0
        sql = "SELECT key, type, size, payload, checksum FROM entries ORDER BY id LIMIT ?"
        for key, type, size, payload, checksum in self._rows(sql, (limit + 1,)):
            try:
                digest.update(key + schema.LOCATION.pack(type, size, payload, checksum))
                value = StoredValue(ValueKey(key), ValueType(type), size, payload)
            except (TypeError, ValueError, struct.error) as error:
                raise CacheCorruptError(f"{self.path}: the index of values is damaged: {error}") from error
            count += 1
            yield value
        if count != limit or (self._state.index_checksum and digest.digest() != self._state.index_checksum):
            raise CacheCorruptError(f"{self.path}: the index of values is damaged")

    def poison(self) -> Iterator[Poison]:
        """Every poison entry in order of object key. Raises CacheCorruptError at a damaged one, or where one is missing."""
        return map(schema.poison_from_row, self._counted("poison entries", _POISON, self._state.poison_count))

    def _counted(self, what: str, query: str, expected: int) -> Iterator[tuple[Any, ...]]:
        count = 0
        for row in self._rows(query, (expected + 1,)):
            count += 1
            yield row
        if count != expected:
            raise CacheCorruptError(f"{self.path}: {expected} {what} were stored, {count} can be read")

    def poisoned(self, object_key: ObjectKey) -> Poison | None:
        """The poison entry of an object key, if there is one; raises CacheCorruptError for a damaged one."""
        query = f"SELECT {schema.POISON_COLUMNS} FROM poison WHERE object_key = ?"
        with self._lock, self._reading():
            row = self._connection.execute(query, (object_key,)).fetchone()
        return None if row is None else schema.poison_from_row(row)

    def statistics(self) -> PsdbStatistics:
        """Counts and sizes, read from the index without touching a payload."""
        by_type: dict[ValueType, TypeStatistics] = {}
        with self._lock, self._reading():
            query = "SELECT type, count(*), sum(size) FROM entries GROUP BY type LIMIT 5"
            plain = {schema.check_type(type): (count, size) for type, count, size in self._connection.execute(query)}
            query = "SELECT type, sum(size) FROM (SELECT DISTINCT type, payload, size FROM entries) GROUP BY type LIMIT 5"
            once = {schema.check_type(type): size for type, size in self._connection.execute(query)}
            query = "SELECT count(*), coalesce(sum(size), 0) FROM (SELECT DISTINCT payload, size FROM entries)"
            row: Any = self._connection.execute(query).fetchone()
        payloads, payload_bytes = row
        for type, (count, size) in sorted(plain.items()):
            by_type[type] = TypeStatistics(count, size, once[type])
        total = sum(entry.bytes for entry in by_type.values())
        state = self._state
        return PsdbStatistics(
            groups=state.group_count,
            values=sum(entry.values for entry in by_type.values()),
            poisoned=state.poison_count,
            payloads=payloads,
            payload_bytes=payload_bytes,
            saved_bytes=total - payload_bytes,
            file_bytes=self._file_size,
            by_type=by_type,
        )

    def usage(self) -> Usage:
        """As ``Store.usage``: equal bytes count once."""
        return Usage(self.statistics().payload_bytes, self.maximum_size)

    def verify(self) -> Iterator[Damage]:
        """Read everything and name whatever is damaged: each such value by its key; nothing is yielded for a sound database."""
        try:
            for value in self.values():
                try:
                    self.find(value.key, value.type)
                except DamagedValueError as error:
                    yield Damage("value", value.key, value.type, error.reason)
                except (CacheCorruptError, NotFoundError, InvalidArgumentError) as error:
                    yield Damage("value", value.key, value.type, str(error))
        except CacheCorruptError as error:
            yield Damage("index", None, None, str(error))
        state = self._state
        yield from self._verify_rows("group", _GROUPS, state.group_count, self._verify_group)
        yield from self._verify_rows("poison", _POISON, state.poison_count, schema.poison_from_row)
        for line in self._integrity(""):
            yield Damage("index", None, None, line)

    def _verify_rows(
        self, subject: str, query: str, expected: int, check: Callable[[tuple[Any, ...]], object]
    ) -> Iterator[Damage]:
        count = 0
        try:
            for row in self._rows(query, (expected + 1,)):
                count += 1
                try:
                    check(row)
                except CacheCorruptError as error:
                    yield Damage(subject, row[0] if isinstance(row[0], bytes) else None, None, str(error))
            if count != expected:
                yield Damage(subject, None, None, f"{expected} were stored, {count} can be read")
        except CacheCorruptError as error:
            yield Damage(subject, None, None, str(error))

    def _verify_group(self, row: tuple[Any, ...]) -> None:
        for key in schema.group_from_row(row).value_keys:
            if not self.exists(key):
                raise CacheCorruptError(f"value {key.hex()} is missing")

    @property
    def index_checksum(self) -> bytes:
        """Changes whenever any value does: what tells two finished files apart."""
        return self._state.index_checksum

    def _locate(self, key: bytes, type: int) -> bytes | None:
        """Type, size, payload id and checksum of an entry as LOCATION (a third of the memory of a tuple)."""
        index = self._index
        if index is None:
            if self._state.value_count > self._index_limit:
                return self._locate_in_file(key, type)
            index = self._load_index()
        found = index.get(type)
        return None if found is None else found.get(key)

    def _locate_in_file(self, key: bytes, type: int) -> bytes | None:
        with self._lock, self._reading():
            query = "SELECT payload, size, checksum FROM entries WHERE key = ? AND type = ?"
            row = self._connection.execute(query, (key, int(type))).fetchone()
        if row is None:
            return None
        try:
            payload, size, checksum = row
            return schema.LOCATION.pack(int(type), size, payload, checksum)
        except struct.error as error:
            raise DamagedValueError(ValueKey(key), ValueType(type), "its entry is damaged") from error

    def _load_index(self) -> dict[int, dict[bytes, bytes]]:
        with self._lock:
            if self._index is not None:
                return self._index
            index: dict[int, dict[bytes, bytes]] = {int(type): {} for type in ValueType}
            digest = xxhash.xxh3_128()
            update, pack = digest.update, schema.LOCATION.pack
            state = self._state
            try:
                with self._reading():
                    self._connection.execute(f"PRAGMA mmap_size = {self._file_size}")
                    sql = "SELECT key, type, payload, size, checksum FROM entries ORDER BY id LIMIT ?"
                    for key, type, payload, size, checksum in self._connection.execute(sql, (state.value_count + 1,)):
                        try:
                            location = pack(type, size, payload, checksum)
                            update(key + location)
                            index[type][key] = location
                        except (KeyError, TypeError, struct.error):
                            self._index_fault = "the index of values is damaged"
                if sum(map(len, index.values())) != state.value_count:
                    self._index_fault = "the index of values is damaged: some cannot be found"
                elif state.index_checksum and digest.digest() != state.index_checksum:
                    self._index_fault = "the index of values is damaged"
                # Values have their own checksums; checking every page of them again would double the time of a find.
                self._connection.execute("PRAGMA cell_size_check = OFF")
            except CacheCorruptError as error:
                self._index_fault = f"the index of values is damaged: {error}"
            self._index = index
            return index

    def _miss(self, key: bytes, type: int) -> NoReturn:
        schema.check_key(key)
        type = schema.check_type(type)
        if self._index_fault:
            raise CacheCorruptError(f"{self.path}: {self._index_fault}")
        raise NotFoundError(f"no value {key.hex()} ({type.name})")

    def _at(self, payload: int) -> apsw.Blob:
        blob = self._blob
        if blob is None:
            blob = self._blob = self._connection.blob_open("main", "payloads", "data", payload, False)
        else:
            blob.reopen(payload)
        return blob

    def _drop_blob(self) -> None:
        if self._blob is not None:
            self._blob.close(True)
            self._blob = None

    def _check_groups(self) -> None:
        """A look-up that finds nothing is believed only if table and index agree; looked at once."""
        if not self._groups_checked:
            with self._lock:
                faults = list(self._integrity("('groups')"))
                if not faults:
                    with self._reading():
                        count = self._connection.execute("SELECT count(*) FROM groups").fetchall()[0][0]
                    if count != self._state.group_count:
                        faults = ["some groups are missing"]
                self._groups_fault = faults[0] if faults else None
                self._groups_checked = True
        if self._groups_fault:
            raise CacheCorruptError(f"{self.path}: table groups is damaged: {self._groups_fault}")

    def _integrity(self, table: str) -> Iterator[str]:
        """What SQLite itself finds wrong."""
        try:
            with self._lock, self._reading():
                lines = [str(row[0]) for row in self._connection.execute(f"PRAGMA integrity_check{table}")]
        except CacheCorruptError as error:
            lines = [str(error)]
        return (line for line in lines if line != "ok")

    def _rows(self, sql: str, arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        with self._reading():
            cursor = self._connection.cursor()
            cursor.execute(sql, arguments)
        while True:
            with self._lock, self._reading():
                rows = [row for _, row in zip(range(256), cursor, strict=False)]
            yield from rows
            if len(rows) < 256:
                return

    def _reading(self) -> Translated:
        """The context of every use of the connection, with a budget of steps in proportion to the size of the file."""
        self._budget.renew(self._file_size)
        return self._translated
