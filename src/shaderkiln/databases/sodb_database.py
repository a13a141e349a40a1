"""The state object database: descriptions of pipelines by key, in one SQLite file of the published form (EP-52)."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Self

from shaderkiln.closing import Closing, on_error
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import StateObjectDesc
from shaderkiln.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    CacheCorruptError,
    DamagedInputError,
    InvalidArgumentError,
    NotFoundError,
    ShaderkilnError,
    UnreadableError,
)
from shaderkiln.identity import ApplicationIdentity

from . import sodb_schema as schema
from .sodb_columns import TEXT, UINT, check_key, decode, encode, optional
from .sodb_read import Reader
from .sodb_write import Writer
from .sqlite_file import StepBudget, Translated, beside, connect, limit_resources, read_header, signed, unsigned

if TYPE_CHECKING:
    import apsw

MAXIMUM_ROW_SIZE: Final = 1 << 29
BUSY_MILLISECONDS: Final = 10_000


class ObjectKind(Enum):
    """What is stored under a key."""

    PIPELINE_STATE = "pipeline-state"
    STATE_OBJECT = "state-object"


class StoredPipelineState(NamedTuple):
    """A pipeline state as it was found."""

    version: int
    desc: PipelineStateStream


class StoredStateObject(NamedTuple):
    """A state object as it was found; collections are named by key in the desc."""

    version: int
    desc: StateObjectDesc
    parent_key: bytes | None
    """The state object that this one adds to, or None."""


class StateObjectDatabaseBusyError(ShaderkilnError):
    """Another process has been writing the database for too long (``E_ACCESSDENIED``)."""

    default_code = "E_ACCESSDENIED"


class StateObjectDatabase(Closing):
    """An open state object database. Made by ``open`` or ``create``; close it, or use it in a ``with`` statement.

    A desc is found again with the same meaning, which is to say with the same object key. The form may be another: root signatures
    come as serialized ones, depth-stencil and ray tracing configs in their newest form, equal subobjects once, subobjects sorted by
    kind. Left out are the cached blob, PSDB subobjects, and states that no program of a state object names. Lists whose order has
    a meaning keep it. Nothing is checked against what Direct3D 12 allows, except that every value must fit its column.

    Each change is a transaction; ``transaction`` makes one of several. Several processes may write; several threads may share one
    object, but not both sides of a fork.
    """

    def __init__(self, path: Path, connection: apsw.Connection, *, write: bool) -> None:
        self.path = path
        self._connection = connection
        self._write = write
        self._lock = threading.RLock()
        self._writer = Writer(connection)
        self._depth = 0
        self._budget = StepBudget(connection)
        self._translated = Translated(
            path, writing=write, busy=StateObjectDatabaseBusyError, refused=AccessDeniedError if write else _interrupted
        )

    @classmethod
    def open(cls, path: Path | str, *, write: bool = False) -> Self:
        """Open an existing database, for reading unless ``write``.

        Raises NotFoundError for a missing file, UnreadableError or AccessDeniedError for one that may not be read or written, and
        CacheCorruptError, with the reason, for anything that is not a state object database of version 2. A file that is refused
        stays as it is.
        """
        path = Path(path)
        header = read_header(path, schema.FORM)
        if write and not os.access(path, os.W_OK):
            raise AccessDeniedError(f"{path}: may not be written")
        database = cls(path, _connect(path, write=write, size=header.size, wal=header.is_wal), write=write)
        with on_error(database.close):
            with database._using():
                rows = database._connection.execute("SELECT type, name, sql FROM sqlite_schema LIMIT 300").fetchall()
            schema.check_schema(path, rows)
        return database

    @classmethod
    def create(cls, path: Path | str) -> Self:
        """Make a new, empty database and open it for writing. Raises AlreadyExistsError for a file that is there and not empty."""
        path = Path(path)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        except ValueError as error:
            raise InvalidArgumentError(f"{path!r}: {error}") from error
        except OSError as error:
            raise AccessDeniedError(f"{path}: cannot be created: {error.strerror}") from error
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if status.st_size or not stat.S_ISREG(status.st_mode):
            raise AlreadyExistsError(f"{path}: is there already")
        database = cls(path, _connect(path, write=True, size=0, wal=False), write=True)
        with on_error(database.close), database.transaction():
            if database._connection.execute("SELECT 1 FROM sqlite_schema").fetchall():
                raise AlreadyExistsError(f"{path}: another process has just made it")
            schema.FORM.create(database._connection, (*schema.TABLES.values(), *schema.INDEXES.values()))
        return database

    def close(self) -> None:
        """Release the file; may be called again."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Changes inside happen all together, or, where an exception leaves it, not at all. May be nested."""
        if not self._write:
            raise AccessDeniedError(f"{self.path}: open for reading only")
        with self._using():
            execute = self._connection.execute
            begin, commit, rollback = (
                ("SAVEPOINT inner", "RELEASE inner", "ROLLBACK TO inner; RELEASE inner")
                if self._depth
                else ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
            )
            execute(begin)
            self._depth += 1
            try:
                yield
                execute(commit)
            except BaseException:
                if self._connection.in_transaction:
                    execute(rollback)
                raise
            finally:
                self._depth -= 1

    # The application

    def set_application_desc(self, application: ApplicationIdentity) -> None:
        """Store whose pipelines these are, in place of what is there. Raises InvalidArgumentError without a name."""
        if not application.name:
            raise InvalidArgumentError("name: an application must have a name")
        row = (
            encode(TEXT, application.exe_filename, "exe_filename"),
            encode(TEXT, application.name, "name"),
            encode(TEXT, application.engine_name, "engine_name") or None,
            signed(application.version, "version"),
            signed(application.engine_version, "engine_version"),
        )
        with self.transaction():
            self._connection.execute("DELETE FROM app_id")
            self._connection.execute(
                "INSERT INTO app_id (id, exe, app_name, engine_name, app_version, engine_version) VALUES (1, ?, ?, ?, ?, ?)",
                row,
            )

    def get_application_desc(self) -> ApplicationIdentity:
        """Whose pipelines these are. Raises NotFoundError where nobody has said so."""
        with self._using():
            rows: list[tuple[Any, ...]] = self._connection.execute(
                "SELECT exe, app_name, engine_name, app_version, engine_version FROM app_id ORDER BY id LIMIT 1"
            ).fetchall()
        if not rows:
            raise NotFoundError(f"{self.path}: no application desc is stored")
        exe, name, engine, version, engine_version = rows[0]
        return ApplicationIdentity(
            name=decode(TEXT, name, "app_id.app_name"),
            exe_filename=decode(TEXT, exe, "app_id.exe"),
            version=_stored_version(version, "app_id.app_version"),
            engine_name=decode(optional(TEXT), engine, "app_id.engine_name") or "",
            engine_version=_stored_version(engine_version, "app_id.engine_version"),
        )

    # Objects

    def store_pipeline_state_desc(self, key: bytes, version: int, desc: PipelineStateStream) -> None:
        """Store a pipeline state under a key. The same again changes nothing; another version takes the place of the old one.

        Raises AlreadyExistsError for another desc under a key and version that are there, and InvalidArgumentError, which names
        the field, for what cannot be stored.
        """
        check_key(key)
        number = encode(UINT, version, "version")
        if not isinstance(desc, PipelineStateStream):
            raise InvalidArgumentError(f"desc: {type(desc).__name__} is no PipelineStateStream")
        with self.transaction():
            row = self._writer.pipeline_state(desc)
            old = self._group(key)
            if old is not None and old.version == number:
                if old.pipeline_state is not None and self._same_pipeline_state(old.pipeline_state, row):
                    return
                _refuse_same_version(key, version)
            if old is not None and old.state_object is not None:
                self._forget_state_object(key, old.state_object)
            self._put_group(key, number, row, None)

    def find_pipeline_state_desc(self, key: bytes) -> StoredPipelineState:
        """The pipeline state of a key. Raises NotFoundError, and DamagedInputError where its rows are not sound."""
        with self._using(read=True):
            group = self._found(key)
            if group.pipeline_state is None:
                raise NotFoundError(f"key {_shown(key)} is a state object, not a pipeline state")
            return StoredPipelineState(group.version, Reader(self._connection).pipeline_state(group.pipeline_state))

    def store_state_object_desc(
        self,
        key: bytes,
        version: int,
        desc: StateObjectDesc,
        parent_key: bytes | None = None,
        collections: Sequence[bytes] = (),
    ) -> None:
        """Store a state object, or with ``parent_key`` an addition to another one, under a key.

        ``collections`` has one key for each collection that the desc holds itself, in order; collections by key have theirs. Parent
        and collections must be stored already. Raises as ``store_pipeline_state_desc`` does, and InvalidArgumentError for a parent
        or a collection that is not there or would come to contain the object itself.
        """
        check_key(key)
        number = encode(UINT, version, "version")
        if not isinstance(desc, StateObjectDesc):
            raise InvalidArgumentError(f"desc: {type(desc).__name__} is no StateObjectDesc")
        with self.transaction():
            old = self._group(key)
            parent = None if parent_key is None else self._referred(check_key(parent_key, "parent_key"), "parent_key")
            before = None if old is None or old.state_object is None else self._read_state_object(old.state_object)
            row = old.state_object if old is not None and old.state_object is not None else self._free_row(key)
            self._writer.state_object(row, desc, parent, collections, self._referred)
            if old is not None and old.version == number:
                if before is not None and self._read_state_object(row) == before:
                    return
                _refuse_same_version(key, version)
            self._refuse_cycle(row)
            self._put_group(key, number, None, row)

    def find_state_object_desc(self, key: bytes) -> StoredStateObject:
        """The state object of a key. Raises NotFoundError, and DamagedInputError where its rows are not sound."""
        with self._using(read=True):
            group = self._found(key)
            if group.state_object is None:
                raise NotFoundError(f"key {_shown(key)} is a pipeline state, not a state object")
            return StoredStateObject(group.version, *self._read_state_object(group.state_object))

    def find_object_version(self, key: bytes) -> int:
        """The version of the object under a key. Raises NotFoundError."""
        with self._using(read=True):
            return self._found(key).version

    def find_object_kind(self, key: bytes) -> ObjectKind:
        """What is stored under a key. Raises NotFoundError."""
        with self._using(read=True):
            group = self._found(key)
            return ObjectKind.STATE_OBJECT if group.pipeline_state is None else ObjectKind.PIPELINE_STATE

    def keys(self, kind: ObjectKind | None = None) -> Iterator[bytes]:
        """The keys of all objects, or of those of one kind, in the order in which they were stored first."""
        where = {
            None: "",
            ObjectKind.PIPELINE_STATE: "AND PSOKey IS NOT NULL",
            ObjectKind.STATE_OBJECT: "AND PSOKey IS NULL",
        }[kind]
        last = -(1 << 63)
        while True:
            with self._using(read=True):
                rows: list[tuple[Any, ...]] = self._connection.execute(
                    f"SELECT rowid, Key FROM groups WHERE rowid > ? {where} ORDER BY rowid LIMIT 256", (last,)
                ).fetchall()
            yield from [decode_key(key) for _, key in rows]
            if not rows:
                return
            last = rows[-1][0]

    def __len__(self) -> int:
        with self._using(read=True):
            return int(self._connection.execute("SELECT count(*) FROM groups").fetchall()[0][0])  # type: ignore[arg-type]

    def __contains__(self, key: bytes) -> bool:
        with self._using(read=True):
            return self._group(check_key(key)) is not None

    def verify(self) -> list[str]:
        """What is wrong with the file, empty if nothing is: SQLite's own checks, references, and every object read once."""
        faults: list[str] = []
        try:
            with self._using(read=True):
                execute = self._connection.execute
                faults += [str(row[0]) for row in execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
                broken = execute('SELECT "table", parent FROM pragma_foreign_key_check LIMIT 20')
                faults += [f"{table}: a row refers to a missing one in {parent}" for table, parent in broken]
            for key in self.keys():
                try:
                    if self.find_object_kind(key) is ObjectKind.PIPELINE_STATE:
                        self.find_pipeline_state_desc(key)
                    else:
                        self.find_state_object_desc(key)
                except (DamagedInputError, CacheCorruptError) as error:
                    faults.append(f"key {_shown(key)}: {error}")
        except (DamagedInputError, CacheCorruptError) as error:
            faults.append(str(error))
        return faults

    # Groups

    def _group(self, key: bytes) -> _Group | None:
        rows: list[tuple[Any, ...]] = self._connection.execute(
            "SELECT Version, PSOKey, SOKey FROM groups WHERE Key = ?", (key,)
        ).fetchall()
        if not rows:
            return None
        version, pipeline_state, state_object = rows[0]
        sound = (pipeline_state is None) != (state_object is None) and isinstance(pipeline_state or state_object, bytes)
        if not sound:
            raise DamagedInputError(f"groups: key {_shown(key)} does not name exactly one object")
        return _Group(decode(UINT, version, "groups.Version"), pipeline_state, state_object)

    def _found(self, key: bytes) -> _Group:
        group = self._group(check_key(key))
        if group is None:
            raise NotFoundError(f"nothing is stored under key {_shown(key)}")
        return group

    def _put_group(self, key: bytes, version: Any, pipeline_state: bytes | None, state_object: bytes | None) -> None:
        self._connection.execute(
            "INSERT INTO groups (Key, Version, PSOKey, SOKey) VALUES (?, ?, ?, ?) ON CONFLICT (Key)"
            " DO UPDATE SET Version = excluded.Version, PSOKey = excluded.PSOKey, SOKey = excluded.SOKey",
            (key, version, pipeline_state, state_object),
        )

    def _referred(self, key: bytes, what: str) -> bytes:
        """The row of a state object that another one refers to."""
        group = self._group(key)
        if group is None or group.state_object is None:
            raise InvalidArgumentError(f"{what}: no state object is stored under key {_shown(key)}")
        return group.state_object

    def _free_row(self, key: bytes) -> bytes:
        """The row key of a new state object: its own key, which parents and collections are then named by."""
        if not self._connection.execute("SELECT 1 FROM state_objects WHERE Key = ?", (key,)).fetchall():
            return key
        return os.urandom(32)  # a file of another writer, who names rows in another way

    def _key_of(self, row: bytes) -> bytes:
        """The key that a state object's row is stored under."""
        keys: list[tuple[Any, ...]] = self._connection.execute(
            "SELECT Key FROM groups WHERE SOKey = ?1 ORDER BY Key <> ?1, rowid LIMIT 1", (row,)
        ).fetchall()
        if not keys:
            raise DamagedInputError(f"groups: state object {_shown(row)} is referred to and has no key")
        return decode_key(keys[0][0])

    def _read_state_object(self, row: bytes) -> tuple[StateObjectDesc, bytes | None]:
        return Reader(self._connection).state_object(row, self._key_of)

    def _same_pipeline_state(self, one: bytes, other: bytes) -> bool:
        # Another writer names rows in another way.
        return one == other or Reader(self._connection).pipeline_state(one) == Reader(self._connection).pipeline_state(other)

    def _forget_state_object(self, key: bytes, row: bytes) -> None:
        """Delete a state object whose key becomes a pipeline state."""
        execute = self._connection.execute
        execute("UPDATE groups SET SOKey = NULL WHERE Key = ?", (key,))
        used = execute(
            "SELECT EXISTS (SELECT 1 FROM state_objects WHERE AddToStateObjectParent = ?1)"
            " + EXISTS (SELECT 1 FROM so_to_existing_so_associations WHERE ExistingStateObjectKey = ?1)",
            (row,),
        ).fetchall()[0][0]
        if used:
            raise InvalidArgumentError(f"key {_shown(key)}: other state objects refer to the state object that is stored here")
        if not execute("SELECT 1 FROM groups WHERE SOKey = ?", (row,)).fetchall():
            self._writer.erase_state_object(row)

    def _refuse_cycle(self, row: bytes) -> None:
        """Raise InvalidArgumentError where a state object now contains itself, through its parents and collections."""
        rows = self._connection.execute(
            "WITH RECURSIVE below(Key) AS ("
            " SELECT AddToStateObjectParent FROM state_objects WHERE Key = ?1"
            " UNION SELECT ExistingStateObjectKey FROM so_to_existing_so_associations WHERE StateObjectKey = ?1"
            " UNION SELECT s.AddToStateObjectParent FROM state_objects s JOIN below ON s.Key = below.Key"
            " UNION SELECT a.ExistingStateObjectKey FROM so_to_existing_so_associations a"
            " JOIN below ON a.StateObjectKey = below.Key"
            ") SELECT 1 FROM below WHERE Key = ?1",
            (row,),
        ).fetchall()
        if rows:
            raise InvalidArgumentError("parent_key, collections: the state object would contain itself")

    # Plumbing

    @contextmanager
    def _using(self, *, read: bool = False) -> Iterator[None]:
        """Maps SQLite's errors to ours, gives each use a budget of steps, and makes several reads one view of the file."""
        import apsw

        with self._lock:
            outermost = self._depth == 0
            if outermost:
                # The file grows while we write; whoever writes has chosen to trust it.
                self._budget.renew_for(self.path, at_least=1 << 56 if self._write else 0)
            begun = False
            try:
                if read and outermost and not self._connection.in_transaction:
                    self._connection.execute("BEGIN")
                    begun = True
                yield
            except apsw.TooBigError as error:
                if self._write:
                    raise InvalidArgumentError(f"{self.path}: a value is larger than {MAXIMUM_ROW_SIZE} bytes") from error
                raise CacheCorruptError(f"{self.path}: damaged: a row claims to be larger than the file") from error
            except UnicodeDecodeError as error:
                raise DamagedInputError(f"{self.path}: text that is no UTF-8: {error}") from error
            except (apsw.Error, MemoryError) as error:
                raise self._translated.translated(error) from error
            finally:
                if begun and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")


class _Group(NamedTuple):
    """A row of table ``groups``: exactly one of the two keys is there."""

    version: int
    pipeline_state: bytes | None
    state_object: bytes | None


def decode_key(value: Any) -> bytes:
    """A key from its column. Raises DamagedInputError."""
    if not isinstance(value, bytes) or not value:
        raise DamagedInputError(f"groups.Key: {str(value)[:80]!r} is no key")
    return value


def _connect(path: Path, *, write: bool, size: int, wal: bool) -> apsw.Connection:
    # Without a journal SQLite would put files beside it, or fail where it cannot.
    immutable = wal and not write and not beside(path, "-wal").exists()
    with Translated(path, busy=StateObjectDatabaseBusyError, refused=AccessDeniedError if write else _interrupted):
        connection = connect(path, write=write, immutable=immutable, foreign_keys=True)
        limit_resources(connection, MAXIMUM_ROW_SIZE if write else min(MAXIMUM_ROW_SIZE, max(size, 1 << 16)))
        connection.set_busy_timeout(BUSY_MILLISECONDS)
    return connection


def _interrupted(text: str) -> UnreadableError:
    return UnreadableError(f"{text}; a change was interrupted, or the file may not be written: open it for writing")


def _stored_version(value: Any, what: str) -> int:
    if not isinstance(value, int):
        raise DamagedInputError(f"{what}: {str(value)[:80]!r} is no integer")
    return unsigned(value)


def _refuse_same_version(key: bytes, version: int) -> NoReturn:
    raise AlreadyExistsError(f"key {_shown(key)}: version {version} is there already with another desc; count the version up")


def _shown(key: bytes) -> str:
    """A key for people: as text if it is one."""
    text = key.rstrip(b"\0").decode("ascii", "replace")
    return repr(text[:80]) if text.isprintable() and text.isascii() else key.hex()[:80]
