"""A precompiled shader database that several processes read and write at once.

A live file has the tables of a finished one (docs/formats.md) and differs in this: its journal form is WAL, ``state`` changes with
every store, ``index_checksum`` is empty, and every entry has a payload of its own, whose id is never used again.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Self

import apsw
import msgspec
import xxhash

from ..closing import on_error
from ..errors import (
    AccessDeniedError,
    AlreadyExistsError,
    CacheCorruptError,
    CacheFullError,
    InvalidArgumentError,
    NotFoundError,
    ShaderkilnError,
)
from ..identity import ApplicationIdentity, CompilerIdentity, IdentityMismatchError
from ..keys import Group, ObjectKey, ValueKey, ValueType
from ..system.files import sync
from . import psdb_schema as schema
from .psdb_lock import FileLock, forget_live, is_live, note_live
from .psdb_reader import Psdb
from .psdb_records import DamagedValueError, Expectation
from .sqlite_file import JOURNALS, Translated, beside, connect, limit_resources, put_in_place, read_header, remove, signed
from .store import Usage, WritableStore

BUSY_SECONDS = 10.0
"""How long a writer waits for another one before DatabaseBusyError."""
TRIMMED_SHARE = 0.98
"""Eviction goes on until so much of the maximum is used, so that not every store has to evict."""

_KNOWN_LIMIT = 500_000
_TOUCHED_LIMIT = 65_536
_FLUSH_SECONDS = 60.0
_FLUSH_LOOK = 1023
_CHECKPOINT_PAGES = 1000
_RESTART_PAGES = 16_384
_RESERVE_STEP = 16 << 20
_FILLER_CHECKSUM = bytes(16)
_SCAN_STEPS = 20_000
_MMAP_SIZE = 1 << 31

_opening = threading.RLock()

_xxh3_64 = xxhash.xxh3_64_intdigest
_xxh3_128 = xxhash.xxh3_128_digest


def read_stored_identity(path: Path | str) -> tuple[CompilerIdentity, ApplicationIdentity]:
    """Whose database this is, finished or live, without changing it.

    Raises NotFoundError, AccessDeniedError or CacheCorruptError.
    """
    path = Path(path)
    if journal_form(path) == "finished":
        with Psdb.open(path) as database:
            return database.identity, database.application
    connection = _open_checked(path)
    try:
        with Translated(path):
            identity, application, _ = schema.read_identity(connection)
            return identity, application
    finally:
        connection.close(True)


class LivePsdb(WritableStore):
    """A live PSDB. Made by ``LivePsdb.open``; close it, or use it in a ``with`` statement.

    Any number of processes may have one file open, for reading and for writing. A read sees whole stores only and never waits for
    a writer; stores wait for one another up to BUSY_SECONDS. What ``store`` has returned from survives the end of the process
    however it ends (not necessarily a power cut: SQLite's synchronous NORMAL). One object may be used by several threads, which
    take turns, but not on both sides of a fork.
    """

    identity: CompilerIdentity
    _owner: int
    application: ApplicationIdentity

    def __init__(self, path: Path, connection: apsw.Connection, *, read_only: bool, trim: bool, recency: bool) -> None:
        self.path = path
        self.read_only = read_only
        self.trim = trim
        self.evicted = 0
        """Entries that this object has evicted."""
        self._connection = connection
        self._execute = connection.cursor().execute
        self._lock = threading.RLock()
        # Where values were last seen. A payload id is never used again, so what another process replaced or removed is not found.
        self._known: dict[int, dict[bytes, tuple[int, bytes]]] = {int(type): {} for type in ValueType}
        # Keys in use since the last flush, with a number that grows: recency costs no write at a find.
        self._touched: dict[bytes, int] | None = {} if recency and not read_only else None
        self._tick = 0
        self._next_flush = time.monotonic() + _FLUSH_SECONDS
        self._deadline = 0.0
        self._file: tuple[int, int] | None = None
        self._closed = False
        connection.set_progress_handler(self._stop_runaway, _SCAN_STEPS)
        connection.execute(f"PRAGMA mmap_size = {_MMAP_SIZE}")

    @classmethod
    def open(
        cls,
        path: Path | str,
        expected: Expectation,
        *,
        read_only: bool = False,
        create: bool = True,
        reset: bool = False,
        maximum_size: int = 0,
        reserve: bool = False,
        trim: bool = False,
        recency: bool = True,
    ) -> Self:
        """Open for reading and writing.

        A missing file is created if ``create`` says so. A finished PSDB is first replaced by a live copy, so that processes that
        read it are not disturbed. An incompatible file (damaged, no PSDB, of another format version, of another identity) is
        replaced by an empty one if ``reset`` says so, and is else left as it is. ``maximum_size`` in bytes of all values raises
        the stored limit, never lowers it; 0 leaves it. ``reserve`` makes the file that long on disk now. ``trim`` evicts entries
        at the limit, least recently used first; ``recency`` tells them, and those of other processes, what is used through this
        object (written down at its own evictions, once a minute, and when it is closed).

        Raises NotFoundError, AccessDeniedError, CacheCorruptError (IdentityMismatchError for another identity),
        DatabaseBusyError, DatabaseWriteError, and InvalidArgumentError where a database has to be created without an adapter.
        """
        path = Path(path)
        signed_size = signed(maximum_size)
        if signed_size < 0:
            raise InvalidArgumentError(f"{maximum_size} bytes is more than a database can hold")
        # One after the other: no other thread may look at the file's header between our connection and its note in psdb_lock.
        with _opening:
            if not read_only:
                _prepare(path, expected, create=create, reset=reset)
            connection = _open_checked(path)
            with on_error(connection.close, True):
                with Translated(path):
                    identity, application, _ = schema.read_identity(connection)
                found = expected.differences(identity, application)
                if found:
                    raise IdentityMismatchError(path, found)
            if not read_only:
                # Only now: a connection that may write would fold the journal into a file that is none of ours.
                connection.close(True)
                connection = _connect_for_writing(path)
            database = cls(path, connection, read_only=read_only, trim=trim, recency=recency)
            database.identity, database.application = identity, application
            database._owner = schema.owner_seed(identity)
            with on_error(database.close):
                database._file = note_live(path)
                if not read_only:
                    database.raise_limit(maximum_size)
                    if reserve:
                        database._reserve(maximum_size)
            return database

    def close(self) -> None:
        """Write down what was used last and release the file; may be called again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with suppress(Exception):
                self._flush()
            self._connection.close(True)
            if self._file is not None:
                forget_live(self._file)

    # Reading

    def find(self, key: bytes, type: int = 0) -> bytes:
        """The bytes of a value, compared with its checksum.

        Raises NotFoundError where there is none, DamagedValueError where it is not what was stored, CacheCorruptError where the
        file is damaged so that nobody can tell.
        """
        try:
            known = self._known[type].get(key)
            if known is not None:
                with self._lock:
                    # ``get`` ends the statement. One that is not at its end, as after ``fetchone``, keeps every writer from
                    # starting the journal anew until something else is asked here. No value is stored as NULL.
                    data: Any = self._execute("SELECT data FROM payloads WHERE id = ?", (known[0],)).get
                if data is not None and _xxh3_128(data, _xxh3_64(key, self._owner ^ type)) == known[1]:
                    if self._touched is not None:
                        self._tick = tick = self._touched[key] = self._tick + 1
                        if not tick & _FLUSH_LOOK:
                            self._flush_now_and_then()
                    value: bytes = data
                    return value
        except (apsw.Error, TypeError, KeyError):
            pass  # told again, and reported, below
        found = self.find_many(key, (type,))[0]
        if found is None:
            raise NotFoundError(f"no value {key.hex()} ({ValueType(type).name})")
        return found

    def find_many(self, key: bytes, types: Sequence[int]) -> tuple[bytes | None, ...]:
        """The values of several types as they are at one moment; None for each that is not stored. Raises as ``find``."""
        schema.check_key(key)
        for type in types:
            schema.check_type(type)
        with self._lock, Translated(self.path), self._snapshot():
            return tuple(self._read(key, int(type)) for type in types)

    def sizes(self, key: bytes) -> dict[int, int]:
        """The size in bytes of each value that the key has, without reading them; empty for an unknown key."""
        schema.check_key(key)
        query = "SELECT e.type, e.size, p.size FROM entries e LEFT JOIN payloads p ON p.id = e.payload WHERE e.key = ?"
        with self._lock, Translated(self.path):
            rows: list[Any] = self._execute(query, (key,)).fetchall()
        for type, size, stored in rows:
            if size != stored:
                raise DamagedValueError(ValueKey(key), schema.check_type(type), f"holds {stored} bytes, the index says {size}")
        return dict(sorted((type, size) for type, size, _ in rows))

    def exists(self, key: bytes) -> bool:
        """Whether the key has a value of any type."""
        schema.check_key(key)
        with self._lock, Translated(self.path):
            return self._execute("SELECT 1 FROM entries WHERE key = ? LIMIT 1", (key,)).get is not None

    def latest_group(self, object_key: ObjectKey) -> Group | None:
        """The group with the largest version that the finished file had for an object, or None.

        Raises CacheCorruptError for a damaged one.
        """
        with self._lock, Translated(self.path):
            row: Any = self._execute(schema.LATEST_GROUP, (object_key,)).get
        if row is None:
            return None
        group = schema.group_from_row(row)
        if group.object_key != object_key:
            raise CacheCorruptError(f"{self.path}: the index of table groups is damaged")
        return group

    def keys(self) -> Iterator[bytes]:
        """Every key, each once, as they are at one moment."""
        with self._lock, Translated(self.path), self._scan():
            rows: list[Any] = self._execute("SELECT DISTINCT key FROM entries ORDER BY key").fetchall()
        return (row[0] for row in rows)

    def state(self) -> schema.State:
        """Limit and totals as they are now."""
        with self._lock, Translated(self.path):
            return self._read_state()

    def usage(self) -> Usage:
        """As ``Store.usage``, as it is now."""
        state = self.state()
        return Usage(state.payload_bytes, state.maximum_size)

    def change_number(self) -> int:
        """Changes whenever another connection has changed the file; costs a quarter of a find."""
        with self._lock, Translated(self.path):
            number: Any = self._execute("PRAGMA data_version").get
            return int(number)

    def _read(self, key: bytes, type: int) -> bytes | None:
        query = "SELECT payload, size, checksum FROM entries WHERE key = ? AND type = ? LIMIT 1"
        entry: Any = self._execute(query, (key, type)).get
        if entry is None:
            self._known[type].pop(key, None)
            return None
        payload, size, checksum = entry
        data: Any = self._execute("SELECT data FROM payloads WHERE id = ? AND size = ?", (payload, size)).get
        if not isinstance(data, bytes):
            raise DamagedValueError(ValueKey(key), ValueType(type), "its bytes are not there")
        if schema.value_checksum(self._owner, key, type, data) != checksum:
            raise DamagedValueError(ValueKey(key), ValueType(type), "its checksum is not the one in the index")
        known = self._known[type]
        if len(known) >= _KNOWN_LIMIT:
            known.clear()
        known[key] = (payload, checksum)
        if self._touched is not None:
            self._tick = self._touched[key] = self._tick + 1
            if len(self._touched) >= _TOUCHED_LIMIT:
                self._touched.clear()
        return data

    # Writing

    def store(self, key: bytes, values: Mapping[int, bytes], *, overwrite: bool = False, keep: bool = False) -> None:
        """Store the values of one key, all or none; values of other types that the key has stay.

        ``keep`` excludes the entry from eviction. Raises AlreadyExistsError where one of them is there already and ``overwrite`` is
        not given, CacheFullError at the limit, AccessDeniedError for a read-only database, DatabaseBusyError,
        DatabaseWriteError, CacheCorruptError; then nothing has changed.
        """
        schema.check_key(key)
        if not values:
            raise InvalidArgumentError("no value to store")
        for type, data in values.items():
            schema.check_type(type)
            if not isinstance(data, bytes) or not 0 < len(data) <= schema.MAXIMUM_VALUE_SIZE:
                raise InvalidArgumentError(f"a value has 1 to {schema.MAXIMUM_VALUE_SIZE} bytes")
        with self._writing() as state:
            rows: list[Any] = self._execute("SELECT type, payload, size FROM entries WHERE key = ?", (key,)).fetchall()
            replaced = [row for row in rows if row[0] in values]
            if replaced and not overwrite:
                names = ", ".join(schema.check_type(row[0]).name for row in replaced)
                raise AlreadyExistsError(f"value {key.hex()} ({names}) is stored already")
            needed = sum(map(len, values.values()))
            used = state.payload_bytes - sum(row[2] for row in replaced)
            count = state.value_count - len(replaced)
            if state.maximum_size and used + needed > state.maximum_size:
                if self.trim:
                    self._write_touched()
                    state = self._read_state()
                used, count = self._make_room(key, used, count, needed, state.maximum_size)
            for type, payload, _ in replaced:
                self._remove(key, type, payload)
            added: list[tuple[int, int, bytes]] = []
            for type, data in values.items():
                self._execute(
                    "INSERT INTO payloads (size, checksum, data) VALUES (?, ?, ?)", (len(data), _xxh3_128(data), data)
                )
                payload = self._connection.last_insert_rowid()
                checksum = schema.value_checksum(self._owner, key, type, data)
                self._execute(
                    "INSERT INTO entries (key, type, payload, size, checksum, flags, clock) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (key, int(type), payload, len(data), checksum, int(keep), state.clock + 1),
                )
                added.append((int(type), payload, checksum))
            self._write_state(state, clock=state.clock + 1, value_count=count + len(values), payload_bytes=used + needed)
        for type, payload, checksum in added:
            self._known[type][key] = (payload, checksum)
        if self._touched is not None:
            if self._touched:
                # Uses from before this store are still to be written down, with larger numbers: so must be this one's.
                self._tick = self._touched[key] = self._tick + 1
            self._flush_now_and_then()

    def clear(self) -> None:
        """Remove every value and group; identity and limit stay. Raises as ``store``."""
        with self._writing() as state:
            for table in ("entries", "payloads", "groups", "poison"):
                # Row by row where ids must go on from where they were: they do, sqlite_sequence keeps them.
                self._execute(f"DELETE FROM {table}")
            self._write_state(state, value_count=0, group_count=0, poison_count=0, payload_bytes=0)
        for known in self._known.values():
            known.clear()
        if self._touched is not None:
            self._touched.clear()

    def _make_room(self, key: bytes, used: int, count: int, needed: int, maximum: int) -> tuple[int, int]:
        """Used bytes and number of values after eviction; raises CacheFullError where that does not help."""
        full = CacheFullError(f"{self.path}: {needed} bytes do not fit: {used} of {maximum} are used")
        if not self.trim or needed > maximum:
            raise full
        target = max(0, min(int(maximum * TRIMMED_SHARE), maximum) - needed)
        evicted = 0
        with self._scan():
            query = (
                "SELECT key, max(clock), sum(size), count(*) FROM entries WHERE key <> ?"
                " GROUP BY key HAVING max(flags) = 0 ORDER BY 2, min(id)"
            )
            victims = []
            for victim, _, size, values in self._connection.cursor().execute(query, (key,)):
                if used <= target:
                    break
                victims.append(victim)
                used -= size
                count -= values
                evicted += 1
        if used + needed > maximum:
            raise full
        for victim in victims:
            rows: list[Any] = self._execute("SELECT type, payload FROM entries WHERE key = ?", (victim,)).fetchall()
            for type, payload in rows:
                self._remove(victim, type, payload)
        self.evicted += evicted
        return used, count

    def _remove(self, key: bytes, type: int, payload: int) -> None:
        self._execute("DELETE FROM entries WHERE key = ? AND type = ?", (key, type))
        self._execute("DELETE FROM payloads WHERE id = ?", (payload,))
        self._known[type].pop(key, None)

    def _flush_now_and_then(self) -> None:
        if time.monotonic() >= self._next_flush:
            self._flush()

    def _flush(self) -> None:
        """Write down which entries were used, unless another process is writing just now, or nothing is ever evicted."""
        self._next_flush = time.monotonic() + _FLUSH_SECONDS
        with self._lock:
            if not self._touched or self._connection.in_transaction:
                return
            self._connection.set_busy_timeout(0)
            try:
                with suppress(ShaderkilnError), self._transaction():
                    self._write_touched()
            finally:
                self._connection.set_busy_timeout(int(BUSY_SECONDS * 1000))

    def _write_touched(self) -> None:
        """The numbers are larger than all given out before, in the order of use."""
        if not self._touched:
            return
        # At one moment: other threads go on finding.
        used = list(self._touched.items())
        self._touched = {}
        state = self._read_state()
        if not state.maximum_size:
            return
        used.sort(key=lambda item: item[1])
        numbers = range(state.clock + 1, state.clock + 1 + len(used))
        rows = [(number, key) for number, (key, _) in zip(numbers, used, strict=True)]
        self._connection.cursor().executemany("UPDATE entries SET clock = ? WHERE key = ?", rows)
        self._write_state(state, clock=state.clock + len(used))

    def raise_limit(self, maximum_size: int) -> None:
        """Raise the stored limit to that many bytes of all values; one that is larger stays. Raises as ``store``."""
        if maximum_size > self.state().maximum_size:
            with self._writing() as state:
                if maximum_size > state.maximum_size:
                    self._write_state(state, maximum_size=maximum_size)

    def _reserve(self, size: int) -> None:
        """Make the file ``size`` bytes long with pages that SQLite holds as free.

        Written for real: a file that is merely extended is cut back at the next checkpoint. In steps, so that the journal stays
        small; rows that a kill leaves behind are known by their checksum.
        """
        filler = "DELETE FROM payloads WHERE checksum = ?"
        try:
            while True:
                with self._transaction():
                    pages: Any = self._execute("PRAGMA page_count").get
                    missing = size - int(pages) * schema.PAGE_SIZE
                    if missing > 0:
                        step = max(schema.PAGE_SIZE, min(missing, _RESERVE_STEP))
                        self._execute(
                            "INSERT INTO payloads (size, checksum, data) VALUES (?, ?, zeroblob(?))",
                            (step, _FILLER_CHECKSUM, step),
                        )
                with suppress(apsw.BusyError):
                    self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                if missing <= 0:
                    break
        finally:
            with self._transaction():
                self._execute(filler, (_FILLER_CHECKSUM,))
        with Translated(self.path), suppress(apsw.BusyError):
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    # Transactions and state

    def _read_state(self) -> schema.State:
        row: Any = self._execute(_SELECT_STATE).get
        if row is None or schema.seal(*row[:-1]) != row[-1]:
            raise CacheCorruptError(f"{self.path}: the row of table state is damaged (checksum)")
        return schema.State(*row[:-1])

    def _write_state(self, state: schema.State, **changes: int) -> None:
        row = msgspec.structs.astuple(msgspec.structs.replace(state, **changes))
        self._execute(_UPDATE_STATE, (*row, schema.seal(*row)))

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        if self._connection.in_transaction:
            yield
            return
        self._execute("BEGIN")
        try:
            yield
        finally:
            if self._connection.in_transaction:
                self._execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[schema.State]:
        with self._transaction():
            yield self._read_state()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self.read_only:
            raise AccessDeniedError(f"{self.path}: opened read-only")
        with self._lock, Translated(self.path, writing=True):
            self._check_place()
            self._execute("BEGIN IMMEDIATE")
            try:
                yield
                self._execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    with suppress(apsw.Error):
                        self._execute("ROLLBACK")
                raise

    def _check_place(self) -> None:
        """SQLite would go on writing to a file that has been replaced, and all of that would be lost."""
        try:
            status = self.path.stat()
            if (status.st_dev, status.st_ino) == self._file:
                return
        except FileNotFoundError:
            pass
        raise CacheCorruptError(f"{self.path}: another process has replaced it: open it again")

    @contextmanager
    def _scan(self) -> Iterator[None]:
        """A time limit for statements over whole tables, since the trees of a damaged file may have cycles."""
        self._deadline = time.monotonic() + 60
        try:
            yield
        finally:
            self._deadline = 0.0

    def _stop_runaway(self) -> bool:
        return bool(self._deadline) and time.monotonic() > self._deadline


_STATE_COLUMNS = schema.State.__struct_fields__
_SELECT_STATE = f"SELECT {', '.join(_STATE_COLUMNS)}, checksum FROM state WHERE id = 1"
_UPDATE_STATE = f"UPDATE state SET {', '.join(f'{name} = ?' for name in (*_STATE_COLUMNS, 'checksum'))} WHERE id = 1"


def journal_form(path: Path) -> Literal["finished", "live"]:
    """Which kind of PSDB a file is, by its header. Raises as ``sqlite_file.read_header``."""
    if is_live(path):
        return "live"
    header = read_header(path, schema.FORM)
    if header.is_wal == header.is_rollback:
        raise CacheCorruptError(f"{path}: damaged (journal form)")
    return "live" if header.is_wal else "finished"


def _open_checked(path: Path) -> apsw.Connection:
    """A read-only connection to a live file whose schema is ours."""
    if journal_form(path) != "live":
        raise InvalidArgumentError(f"{path}: a finished database: open it with Psdb")
    with Translated(path):
        try:
            return _checked(connect(path), path)
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            # In a folder where no journal can be made. Without one nobody is writing, and the file is whole.
            if beside(path, "-wal").exists() or os.access(path.parent, os.W_OK):
                raise
            return _checked(connect(path, immutable=True), path)


def _checked(connection: apsw.Connection, path: Path) -> apsw.Connection:
    with on_error(connection.close, True):
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
        limit_resources(connection, schema.LARGEST_ROW)
        connection.execute("PRAGMA query_only = ON")
        schema.check_schema(connection.execute("SELECT type, name, sql FROM sqlite_schema LIMIT 100"))
    return connection


def _connect_for_writing(path: Path) -> apsw.Connection:
    with Translated(path, writing=True):
        connection = connect(path, write=True)
        with on_error(connection.close, True):
            connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
            limit_resources(connection, schema.LARGEST_ROW)
            connection.execute("PRAGMA synchronous = NORMAL")
            if connection.execute("PRAGMA journal_mode").get != "wal":
                raise CacheCorruptError(f"{path}: another process is replacing it")
            connection.set_wal_hook(_after_commit)
    return connection


def _after_commit(connection: apsw.Connection, _: str, pages: int) -> int:
    """Fold the journal into the file: without waiting when it is long, waiting for readers when it is very long."""
    if pages >= _CHECKPOINT_PAGES:
        with suppress(apsw.Error):
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if pages >= _RESTART_PAGES:
                connection.set_busy_timeout(100)
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    return apsw.SQLITE_OK


def _prepare(path: Path, expected: Expectation, *, create: bool, reset: bool) -> None:
    """Leave a compatible live file at ``path``, or raise."""
    if _compatible(path, expected, strict=False) == "live":
        return
    lock = FileLock(beside(path, ".lock"))
    if not lock.wait(BUSY_SECONDS):
        if path.exists() or not create:
            _compatible(path, expected, strict=True)
        raise AccessDeniedError(f"{path.parent}: the folder cannot be written to")
    try:
        try:
            form = _compatible(path, expected, strict=True)
            if form == "finished":
                _thaw(path)
        except NotFoundError:
            if not create:
                raise
            _create(path, expected)
        except CacheCorruptError:
            if not reset:
                raise
            _create(path, expected)
    finally:
        lock.release()


def _compatible(path: Path, expected: Expectation, *, strict: bool) -> str | None:
    """The form of a file that may be used; None, or if ``strict`` an error, for any other."""
    try:
        form = journal_form(path)
        identity, application = read_stored_identity(path)
        found = expected.differences(identity, application)
        if found:
            raise IdentityMismatchError(path, found)
    except (NotFoundError, CacheCorruptError):
        if strict:
            raise
        return None
    return form


def _create(path: Path, expected: Expectation) -> None:
    """An empty live file in place of whatever is there."""
    if expected.compiler is None:
        raise InvalidArgumentError(f"{path}: a new database needs the identity of an adapter")
    with Translated(path, writing=True), _temporary(path) as temporary:
        if not path.exists():
            remove(path, JOURNALS)
        with _made_live(temporary, f"page_size = {schema.PAGE_SIZE}") as connection:
            schema.create(connection, expected.compiler, expected.application)
        sync(temporary)
        # The journal belongs to the old file: no new file may ever lie beside it.
        path.unlink(missing_ok=True)
        put_in_place(temporary, path)


def _thaw(path: Path) -> None:
    """A live copy in place of a finished file, whose present readers keep the old one."""
    with Translated(path, writing=True), _temporary(path) as temporary:
        with Psdb.open(path) as base:
            for _ in base.values():
                pass  # raises CacheCorruptError for a damaged index
        shutil.copyfile(path, temporary)
        with _made_live(temporary, "journal_mode = OFF") as connection:
            _, _, state = schema.read_identity(connection)
            query = "SELECT payload, min(id) FROM entries GROUP BY payload HAVING count(*) > 1"
            for payload, first in connection.execute(query).fetchall():
                query = "SELECT id FROM entries WHERE payload = ? AND id <> ?"
                for (entry,) in connection.execute(query, (payload, first)).fetchall():
                    connection.execute(
                        "INSERT INTO payloads (size, checksum, data) SELECT size, checksum, data FROM payloads WHERE id = ?",
                        (payload,),
                    )
                    connection.execute("UPDATE entries SET payload = ? WHERE id = ?", (connection.last_insert_rowid(), entry))
            size: Any = connection.execute("SELECT coalesce(sum(size), 0) FROM payloads").get
            schema.write_state(connection, msgspec.structs.replace(state, payload_bytes=size, index_checksum=b""))
        put_in_place(temporary, path)


@contextmanager
def _made_live(path: Path, pragma: str) -> Iterator[apsw.Connection]:
    """A connection with one transaction that makes a file a live one."""
    connection = connect(path, create=True)
    try:
        connection.execute(f"PRAGMA {pragma}")
        with connection:
            yield connection
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close(True)


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A path beside ``path`` for a file to be made; what is left of it is removed."""
    temporary = beside(path, ".creating")
    remove(temporary)
    try:
        yield temporary
    finally:
        with suppress(OSError):
            remove(temporary)
