"""Building a precompiled shader database: kept through kills while it is built, one canonical file when it is finished."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import apsw
import xxhash

from ..closing import Closing, on_error
from ..errors import AccessDeniedError, CacheCorruptError, InvalidArgumentError, NotFoundError, ShaderkilnError
from ..identity import ApplicationIdentity, CompilerIdentity, IdentityMismatchError
from ..keys import Group, ObjectKey, Value, ValueKey, ValueType
from . import psdb_schema as schema
from .psdb_lock import FileLock
from .psdb_reader import Psdb
from .psdb_records import (
    Damage,
    DamagedValueError,
    DatabaseWriteError,
    Expectation,
    GroupDifference,
    Poison,
    ValueDifference,
)
from .sqlite_file import JOURNALS, Translated, beside, connect, put_in_place, remove, signed, unsigned

_BATCH_BYTES = 32 << 20
_BATCH_GROUPS = 200

StoredDifference = ValueDifference | GroupDifference


class PsdbBuilder(Closing):
    """Collects groups and values and writes them as one finished PSDB.

    What is added goes to ``<path>.partial`` and survives a kill once ``commit`` has returned; the next builder of the same path
    picks it up. Groups and values of a finished file of equal identity count as present and are carried over. ``<path>.lock``
    keeps a second builder out and is freed by the system when its process dies. Nothing is created before the first ``add``
    but that lock. In a folder that cannot be written to, a finished file can still be asked.

    Use it in a ``with`` statement: leaving the block without ``finish`` or ``abandon`` keeps the partial file for later.
    """

    def __init__(
        self,
        path: Path | str,
        identity: CompilerIdentity,
        application: ApplicationIdentity,
        *,
        replace: bool = False,
        heal: bool = False,
    ) -> None:
        """Open for building. With ``heal`` every value of the finished file is read, and groups that have damaged ones count as
        not stored, so that they are made again.

        Raises DatabaseBusyError while another builder is at work on ``path``, and CacheCorruptError, which lists the
        differences, where what is there was made for or by somebody else or is damaged; with ``replace`` that is thrown away
        instead (a finished file only when ``finish`` replaces it). DatabaseWriteError where files beside ``path`` cannot be made
        or removed.
        """
        self.path = Path(path)
        self.identity = identity
        self.application = application
        self._owner = schema.owner_seed(identity)
        self.differences: list[StoredDifference] = []
        """Everything that ``add`` reported."""
        self._partial_path = beside(self.path, ".partial")
        self._finishing_path = beside(self.path, ".finishing")
        self._connection: apsw.Connection | None = None
        self._base: Psdb | None = None
        self.damage: tuple[Damage, ...] = ()
        """What ``heal`` found in the finished file."""
        self._damaged: frozenset[bytes] = frozenset()
        self._pending_groups = 0
        self._pending_bytes = 0
        self._closed = False
        self._lock = FileLock(beside(self.path, ".lock"))
        self._writable = self._lock.take()
        try:
            self._base = self._open_base(replace, heal)
            if self._writable:
                self._finishing_path.unlink(missing_ok=True)
                self._resume(replace)
            elif self._base is None:
                raise AccessDeniedError(f"{self.path.parent}: the folder cannot be written to")
        except OSError as error:
            self.close()
            raise DatabaseWriteError(f"{self.path}: cannot be written: {error.filename}: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    def add(self, group: Group, values: Sequence[Value]) -> tuple[StoredDifference, ...]:
        """Add a group with the values that are not stored yet; all of it or, where an error is raised, nothing.

        Returns what differs from bytes or value keys stored before under the same key: those are kept, the new ones dropped.
        Raises InvalidArgumentError for an unfit key, type or size, or if a value key of the group is neither given nor stored;
        DatabaseWriteError where the system refuses, in which case what was not committed may be lost.
        """
        self._check_group(group)
        row = schema.group_row(group)
        for value in values:
            schema.check_key(value.key)
            schema.check_type(value.type)
            if not isinstance(value.data, bytes) or not 0 < len(value.data) <= schema.MAXIMUM_VALUE_SIZE:
                raise InvalidArgumentError(f"value {value.key.hex()}: 1 to {schema.MAXIMUM_VALUE_SIZE} bytes")
        given = {value.key for value in values}
        for key in group.value_keys:
            if key not in given and not self._has_key(key):
                raise InvalidArgumentError(f"group {group.object_key.hex()}: value {key.hex()} is neither given nor stored")
        with _Writing(self._partial_path, self):
            connection = self._begin()
            with connection:
                found = [difference for value in values if (difference := self._add_value(connection, value)) is not None]
                group_difference = self._add_group(connection, group, row)
        reported: tuple[StoredDifference, ...] = (*found, group_difference) if group_difference else tuple(found)
        self.differences += reported
        self._pending_groups += 1
        self._pending_bytes += sum(len(value.data) for value in values)
        if self._pending_groups >= _BATCH_GROUPS or self._pending_bytes >= _BATCH_BYTES:
            self.commit()
        return reported

    def add_poison(self, poison: Poison) -> None:
        """Add a poison entry, or replace the one of the same object key. Raises as ``add`` does."""
        _check_object_key(poison.object_key)
        with _Writing(self._partial_path, self):
            connection = self._begin()
            connection.execute("DELETE FROM poison WHERE object_key = ?", (poison.object_key,))
            _insert(connection, "poison", schema.POISON_COLUMNS, schema.poison_row(poison))

    def remove_poison(self, object_key: ObjectKey) -> bool:
        """Remove the poison entry of an object key; False where there is none. Raises DatabaseWriteError."""
        if self.poisoned(object_key) is None:
            return False
        with _Writing(self._partial_path, self):
            self._begin().execute("DELETE FROM poison WHERE object_key = ?", (object_key,))
        return True

    def poisoned(self, object_key: ObjectKey) -> Poison | None:
        """The poison entry of an object key."""
        if self._connection is None:
            return None if self._base is None else self._base.poisoned(object_key)
        query = f"SELECT {schema.POISON_COLUMNS} FROM poison WHERE object_key = ?"
        row = self._select(query, object_key)
        return None if row is None else schema.poison_from_row(row)

    def has_group(self, object_key: ObjectKey, version: int) -> bool:
        """Whether that group is stored, in the finished file or since."""
        if self._base_group(object_key, version) is not None:
            return True
        query = "SELECT 1 FROM groups WHERE object_key = ? AND version = ?"
        return self._select(query, object_key, signed(version)) is not None

    def has_value(self, key: ValueKey, type: ValueType) -> bool:
        """Whether a value of that type is stored under the key, in the finished file or since."""
        if self._select("SELECT 1 FROM entries WHERE key = ? AND type = ?", key, int(type)) is not None:
            return True
        return self._base is not None and bytes(key) not in self._damaged and type in self._base.types(key)

    def value_keys(self, object_key: ObjectKey, version: int) -> tuple[ValueKey, ...]:
        """The value keys of a stored group in their order; raises NotFoundError where it is not stored."""
        group = self._base_group(object_key, version)
        if group is None:
            query = f"SELECT {schema.GROUP_COLUMNS} FROM groups WHERE object_key = ? AND version = ?"
            row = self._select(query, object_key, signed(version))
            if row is None:
                raise NotFoundError(f"no group for object {object_key.hex()}, version {version}")
            group = schema.group_from_row(row)
        return group.value_keys

    def group_keys(self) -> Iterator[tuple[ObjectKey, int]]:
        """Object key and version of every stored group, each once, in order, without holding them all in memory."""
        streams = []
        if self._base is not None:
            streams.append((group.object_key, group.version) for group in self._base.groups())
        if self._connection is not None:
            query = "SELECT object_key, version FROM groups ORDER BY object_key, version < 0, version"
            rows = self._connection.cursor().execute(query)
            streams.append((ObjectKey(key), unsigned(version)) for key, version in rows)
        with Translated(self._partial_path):
            for item, _ in groupby(heapq.merge(*streams)):
                yield item

    def commit(self) -> None:
        """Make everything added so far survive the end of this process. Raises DatabaseWriteError."""
        if self._connection is not None and self._connection.in_transaction:
            with _Writing(self._partial_path, self):
                self._connection.execute("COMMIT")
        self._pending_groups = self._pending_bytes = 0

    def finish(self) -> None:
        """Write the finished file in canonical order and put it in place of an older one at once; then close the builder.

        Equal content gives equal bytes, in whatever order it was added. With nothing new, a finished file is left as it is.
        Raises DatabaseWriteError, or DamagedValueError for a value to be carried over that is damaged; then the finished file
        is the old one and the partial one is kept.
        """
        self._check_open()
        if not self._writable:
            self.close()
            return
        self.commit()
        if self._base is None or self._has_news():
            try:
                with _Writing(self._finishing_path, self):
                    self._write_finished()
                    put_in_place(self._finishing_path, self.path)
            except BaseException:
                with suppress(OSError):
                    self._finishing_path.unlink(missing_ok=True)
                raise
        self.abandon()

    def abandon(self) -> None:
        """Throw away what was not finished, and close the builder. A finished file stays as it is."""
        self._disconnect()
        if self._writable and not self._closed:
            self._remove_partial()
        self.close()

    def close(self) -> None:
        """Commit, and close the builder; ``<path>.partial`` stays for the next one. May be called again."""
        if self._closed:
            return
        self._closed = True
        try:
            self.commit()
        finally:
            self._disconnect()
            if self._base is not None:
                self._base.close()
            self._lock.release()

    # Opening

    def _open_base(self, replace: bool, heal: bool) -> Psdb | None:
        base = None
        try:
            # No index in memory: what a build needs must not grow with what is stored.
            base = Psdb.open(self.path, index_limit=0)
            self._compare(self.path, base.identity, base.application)
            if heal or replace:
                self.damage = tuple(base.verify())
                values = {bytes(damage.key) for damage in self.damage if damage.subject == "value" and damage.key is not None}
                self._damaged = frozenset(values)
                # Damage of the tables themselves cannot be worked around; what a value's bytes lack, one compile brings back.
                if self.damage and (replace or len(values) < len(self.damage)):
                    raise CacheCorruptError(f"{self.path}: {self.damage[0]}")
        except NotFoundError:
            return None
        except CacheCorruptError:
            if base is not None:
                base.close()
            if not replace:
                raise
            return None
        return base

    def _compare(self, path: Path, identity: CompilerIdentity, application: ApplicationIdentity) -> None:
        found = Expectation(self.application, self.identity).differences(identity, application)
        if found:
            raise IdentityMismatchError(path, found, is_output=True)

    def _resume(self, replace: bool) -> None:
        if not self._partial_path.exists():
            return
        try:
            with Translated(self._partial_path):
                connection = self._connect(create=False)
                # The tables are created in one transaction: killed before that, the file is empty.
                if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]:
                    self._remove_partial()
                    return
                for pragma, expected in (("application_id", schema.APPLICATION_ID), ("user_version", schema.FORMAT_VERSION)):
                    if connection.execute(f"PRAGMA {pragma}").fetchall()[0][0] != expected:
                        raise CacheCorruptError(f"{self._partial_path}: not a PSDB of this format version ({pragma})")
                schema.check_schema(connection.execute("SELECT type, name, sql FROM sqlite_schema LIMIT 100"))
                identity, application, state = schema.read_identity(connection)
                self._compare(self._partial_path, identity, application)
                if state.index_checksum not in (b"", self._base_checksum()):
                    # Begun beside another finished file, whose values it may lean on: these groups are compiled again.
                    connection.execute("DELETE FROM groups")
        except CacheCorruptError:
            self._disconnect()
            if not replace:
                raise
            self._remove_partial()

    def _connect(self, *, create: bool) -> apsw.Connection:
        connection = self._connection = connect(self._partial_path, write=True, create=create)
        connection.set_busy_timeout(0)
        connection.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
        connection.execute("PRAGMA cell_size_check = ON")
        # Exclusive before WAL: no shared memory file. The lock file already keeps others out.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _begin(self) -> apsw.Connection:
        self._check_open()
        if not self._writable:
            raise AccessDeniedError(f"{self.path.parent}: the folder cannot be written to")
        connection = self._connection
        if connection is None:
            connection = self._create_partial()
        if not connection.in_transaction:
            connection.execute("BEGIN IMMEDIATE")
        return connection

    def _create_partial(self) -> apsw.Connection:
        with on_error(self._disconnect):
            connection = self._connect(create=True)
            with connection:
                schema.create(connection, self.identity, self.application)
                schema.write_state(connection, schema.State(index_checksum=self._base_checksum()))
                for poison in self._base.poison() if self._base is not None else ():
                    _insert(connection, "poison", schema.POISON_COLUMNS, schema.poison_row(poison))
        return connection

    def _base_checksum(self) -> bytes:
        return b"" if self._base is None else self._base.index_checksum

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgumentError(f"{self.path}: the builder is closed")

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close(True)
            self._connection = None

    def _remove_partial(self) -> None:
        self._disconnect()
        remove(self._partial_path, (*JOURNALS, ""))

    # Adding

    def _check_group(self, group: Group) -> None:
        _check_object_key(group.object_key)
        for key in group.value_keys:
            schema.check_key(key)

    def _has_key(self, key: ValueKey) -> bool:
        if self._select("SELECT 1 FROM entries WHERE key = ? LIMIT 1", key) is not None:
            return True
        return self._base is not None and bytes(key) not in self._damaged and self._base.exists(key)

    def _base_group(self, object_key: ObjectKey, version: int) -> Group | None:
        """The group in the finished file, unless one of its values is known to be damaged."""
        group = self._base.group_or_none(object_key, version) if self._base is not None else None
        return None if group is None or not self._damaged.isdisjoint(map(bytes, group.value_keys)) else group

    def _select(self, sql: str, *arguments: Any) -> tuple[Any, ...] | None:
        self._check_open()
        if self._connection is None:
            return None
        with Translated(self._partial_path):
            row: tuple[Any, ...] | None = self._connection.execute(sql, arguments).fetchone()
        return row

    def _stored(self, connection: apsw.Connection, key: ValueKey, type: ValueType) -> bytes | None:
        if self._base is not None and bytes(key) not in self._damaged:
            with suppress(NotFoundError):
                return self._base.find(key, type)
        return _read_entry(connection, self._owner, key, type)

    def _add_value(self, connection: apsw.Connection, value: Value) -> ValueDifference | None:
        stored = self._stored(connection, value.key, value.type)
        if stored is None:
            row = (
                value.key,
                int(value.type),
                store_payload(connection, value.data),
                len(value.data),
                schema.value_checksum(self._owner, value.key, value.type, value.data),
            )
            _insert(connection, "entries", "key, type, payload, size, checksum", row)
            return None
        if stored == value.data:
            return None
        return ValueDifference(
            value.key,
            ValueType(value.type),
            len(stored),
            len(value.data),
            xxhash.xxh3_128_digest(stored),
            xxhash.xxh3_128_digest(value.data),
        )

    def _add_group(self, connection: apsw.Connection, group: Group, row: tuple[Any, ...]) -> GroupDifference | None:
        stored = self._base_group(group.object_key, group.version)
        in_base = stored is not None
        if stored is None:
            query = f"SELECT {schema.GROUP_COLUMNS} FROM groups WHERE object_key = ? AND version = ?"
            found = connection.execute(query, (group.object_key, signed(group.version))).fetchone()
            stored = None if found is None else schema.group_from_row(found)
        if stored is None:
            _insert(connection, "groups", schema.GROUP_COLUMNS, row)
            return None
        if stored.value_keys != group.value_keys:
            return GroupDifference(group.object_key, group.version, stored.value_keys, group.value_keys)
        # One object under two names: the smaller name stays, so that the order of adding leaves no trace.
        if not in_base and (group.kind, group.name) < (stored.kind, stored.name):
            connection.execute(
                "DELETE FROM groups WHERE object_key = ? AND version = ?", (group.object_key, signed(group.version))
            )
            _insert(connection, "groups", schema.GROUP_COLUMNS, row)
        return None

    # Finishing

    def _has_news(self) -> bool:
        connection, base = self._connection, self._base
        if connection is None or base is None:
            return connection is not None
        if self._damaged:
            return True
        with Translated(self._partial_path):
            for key, type in connection.execute("SELECT key, type FROM entries"):
                if ValueType(type) not in base.types(key):
                    return True
            for object_key, version in connection.execute("SELECT object_key, version FROM groups"):
                if base.group_or_none(object_key, unsigned(version)) is None:
                    return True
            query = f"SELECT {schema.POISON_COLUMNS} FROM poison ORDER BY object_key"
            return [schema.poison_from_row(row) for row in connection.execute(query)] != list(base.poison())

    def _write_finished(self) -> None:
        self._finishing_path.unlink(missing_ok=True)
        target = connect(self._finishing_path, create=True)
        try:
            # No journal: the file is thrown away unless it is complete.
            for pragma in (
                f"page_size = {schema.PAGE_SIZE}",
                "locking_mode = EXCLUSIVE",
                "journal_mode = OFF",
                "synchronous = OFF",
                "cache_size = -32768",
                # Else pages that were split keep old copies of values, which nobody reads and nobody verifies.
                "secure_delete = ON",
            ):
                target.execute(f"PRAGMA {pragma}")
            with target:
                schema.create(target, self.identity, self.application)
                self._fill(target)
        finally:
            target.close(True)

    def _fill(self, target: apsw.Connection) -> None:
        digest = xxhash.xxh3_128()
        counts = {"entries": 0, "groups": 0, "poison": 0}
        for key, type, size, checksum, data in self._sorted_values():
            payload = store_payload(target, data)
            _insert(target, "entries", "key, type, payload, size, checksum", (key, type, payload, size, checksum))
            digest.update(key + schema.LOCATION.pack(type, size, payload, checksum))
            counts["entries"] += 1
        for group in self._sorted_groups():
            for key in group.value_keys:
                if target.execute("SELECT 1 FROM entries WHERE key = ? LIMIT 1", (key,)).fetchone() is None:
                    raise CacheCorruptError(f"{self.path}: group {group.object_key.hex()} has lost its value {key.hex()}")
            _insert(target, "groups", schema.GROUP_COLUMNS, schema.group_row(group))
            counts["groups"] += 1
        for poison in self._sorted_poison():
            _insert(target, "poison", schema.POISON_COLUMNS, schema.poison_row(poison))
            counts["poison"] += 1
        row: Any = target.execute("SELECT coalesce(sum(size), 0) FROM payloads").fetchone()
        schema.write_state(
            target,
            schema.State(
                maximum_size=self._base.maximum_size if self._base is not None else 0,
                value_count=counts["entries"],
                group_count=counts["groups"],
                poison_count=counts["poison"],
                payload_bytes=row[0],
                index_checksum=digest.digest(),
            ),
        )

    def _sorted_values(self) -> Iterator[tuple[bytes, int, int, bytes, bytes]]:
        """Key, type, size, checksum and verified bytes of every value of both files; the finished one wins."""
        streams: list[Iterator[tuple[bytes, int, bool]]] = []
        base, connection = self._base, self._connection
        if base is not None:
            streams.append((value.key, int(value.type), False) for value in base.values() if value.key not in self._damaged)
        if connection is not None:
            rows = connection.cursor().execute("SELECT key, type FROM entries ORDER BY key, type")
            streams.append((key, type, True) for key, type in rows)
        for (key, type), same in groupby(heapq.merge(*streams), itemgetter(0, 1)):
            _, _, is_new = next(same)
            source = _read_entry(connection, self._owner, key, type) if is_new and connection is not None else None
            if source is None and base is not None:
                source = base.find(ValueKey(key), ValueType(type))
            if source is None:
                raise CacheCorruptError(f"{self._partial_path}: the index of values is damaged")
            yield key, type, len(source), schema.value_checksum(self._owner, key, type, source), source

    def _sorted_groups(self) -> Iterator[Group]:
        streams: list[Iterable[Group]] = []
        if (base := self._base) is not None:
            streams.append(group for group in base.groups() if self._base_group(group.object_key, group.version) is not None)
        if self._connection is not None:
            query = f"SELECT {schema.GROUP_COLUMNS} FROM groups"
            # Versions are unsigned and stored signed: order them as the finished file's readers see them.
            rows = self._connection.cursor().execute(f"{query} ORDER BY object_key, version < 0, version")
            streams.append(map(schema.group_from_row, rows))
        for _, same in groupby(heapq.merge(*streams, key=_identity), _identity):
            yield next(same)

    def _sorted_poison(self) -> Iterator[Poison]:
        if self._connection is None:
            return self._base.poison() if self._base is not None else iter(())
        query = f"SELECT {schema.POISON_COLUMNS} FROM poison ORDER BY object_key"
        return map(schema.poison_from_row, self._connection.cursor().execute(query))


def _identity(group: Group) -> tuple[ObjectKey, int]:
    return group.object_key, group.version


def store_payload(connection: apsw.Connection, data: bytes) -> int:
    """The id of the payload with these bytes, stored now if there is none. Raises apsw errors."""
    checksum = xxhash.xxh3_128_digest(data)
    for identifier, stored in connection.execute("SELECT id, data FROM payloads WHERE checksum = ?", (checksum,)):
        # xxh3 is no cryptographic hash: bytes decide.
        if stored == data:
            return int(identifier)
    _insert(connection, "payloads", "size, checksum, data", (len(data), checksum, data))
    return connection.last_insert_rowid()


class _Writing(Translated):
    """What the system refuses is DatabaseWriteError, with the transaction rolled back."""

    def __init__(self, path: Path, builder: PsdbBuilder) -> None:
        super().__init__(path, writing=True)
        self._builder = builder

    def translated(self, error: BaseException) -> ShaderkilnError:
        """Only what SQLite calls damage is damage of the file: whoever replaces damaged files must not do so for want of memory."""
        connection = self._builder._connection
        if connection is not None and connection.in_transaction:
            with suppress(apsw.Error):
                connection.execute("ROLLBACK")
        if isinstance(error, apsw.CorruptError | apsw.NotADBError | UnicodeDecodeError | apsw.FullError):
            return super().translated(error)
        return DatabaseWriteError(f"{self._path}: cannot be written: {error}")


def _read_entry(connection: apsw.Connection, owner: int, key: bytes, type: int) -> bytes | None:
    """The verified bytes of an entry of the unfinished file, None where there is none."""
    query = "SELECT payload, checksum FROM entries WHERE key = ? AND type = ?"
    entry = connection.execute(query, (key, int(type))).fetchone()
    if entry is None:
        return None
    row: Any = connection.execute("SELECT data FROM payloads WHERE id = ?", (entry[0],)).fetchone()
    if row is None or not isinstance(row[0], bytes) or schema.value_checksum(owner, key, type, row[0]) != entry[1]:
        raise DamagedValueError(ValueKey(key), ValueType(type), "it changed in the unfinished file")
    data: bytes = row[0]
    return data


def _insert(connection: apsw.Connection, table: str, columns: str, row: Sequence[Any]) -> None:
    connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(row))})", row)


def _check_object_key(object_key: bytes) -> None:
    if not isinstance(object_key, bytes) or len(object_key) != 32:
        raise InvalidArgumentError("an object key is 32 bytes long")
