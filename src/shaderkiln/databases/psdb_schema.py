"""PSDB format 1: tables, checksums and the conversions between rows and plain types (docs/formats.md has it in words)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from typing import TYPE_CHECKING, Any

import msgspec
import xxhash

from ..endings import Ending
from ..errors import CacheCorruptError, InvalidArgumentError
from ..identity import ApplicationIdentity, CompilerIdentity
from ..keys import Group, ObjectKey, ValueKey, ValueType
from .psdb_records import Poison
from .sqlite_file import FileForm, application_from_row, application_row, foreign_and_missing, signed, unsigned

if TYPE_CHECKING:
    import apsw

APPLICATION_ID = 0x534B5053
"""``SKPS``, in the application_id field of the SQLite header."""
FORMAT_VERSION = 1
"""In the user_version field of the SQLite header."""
PAGE_SIZE = 4096
MAXIMUM_VALUE_SIZE = 1 << 29
"""Largest value in bytes (SQLite rows end at 10**9)."""
MAXIMUM_KEY_SIZE = 1 << 16
LARGEST_ROW = MAXIMUM_VALUE_SIZE + MAXIMUM_KEY_SIZE
FORM = FileForm("precompiled shader database", APPLICATION_ID, FORMAT_VERSION)
FLAG_DO_NOT_EVICT = 1
"""Bit of ``entries.flags``: automatic eviction passes the entry over (EP-27)."""

LOCATION = struct.Struct("<BIq16s")
"""What the index says of a value: type, size, payload id, checksum."""

_CHECKSUM = "checksum BLOB NOT NULL CHECK (length(checksum) = 16)"

TABLES: dict[str, str] = {
    "compiler": f"""CREATE TABLE compiler (
 id INTEGER PRIMARY KEY CHECK (id = 1),
 family TEXT NOT NULL, vendor_id INTEGER NOT NULL, device_id INTEGER NOT NULL,
 driver_id INTEGER NOT NULL, driver_name TEXT NOT NULL, driver_version INTEGER NOT NULL, driver_build TEXT NOT NULL,
 abi_version INTEGER NOT NULL, compiler_version TEXT NOT NULL, application_profile_version INTEGER NOT NULL,
 cache_uuid BLOB NOT NULL, global_key BLOB NOT NULL, object_code_form TEXT NOT NULL, features TEXT NOT NULL,
 pointer_bits INTEGER NOT NULL, {_CHECKSUM}
) STRICT""",
    "application": f"""CREATE TABLE application (
 id INTEGER PRIMARY KEY CHECK (id = 1),
 name TEXT NOT NULL, exe_filename TEXT NOT NULL, version INTEGER NOT NULL,
 engine_name TEXT NOT NULL, engine_version INTEGER NOT NULL, {_CHECKSUM}
) STRICT""",
    "state": f"""CREATE TABLE state (
 id INTEGER PRIMARY KEY CHECK (id = 1),
 maximum_size INTEGER NOT NULL CHECK (maximum_size >= 0),
 clock INTEGER NOT NULL CHECK (clock >= 0),
 value_count INTEGER NOT NULL CHECK (value_count >= 0),
 group_count INTEGER NOT NULL CHECK (group_count >= 0),
 poison_count INTEGER NOT NULL CHECK (poison_count >= 0),
 payload_bytes INTEGER NOT NULL CHECK (payload_bytes >= 0),
 index_checksum BLOB NOT NULL CHECK (length(index_checksum) IN (0, 16)), {_CHECKSUM}
) STRICT""",
    "payloads": f"""CREATE TABLE payloads (
 id INTEGER PRIMARY KEY AUTOINCREMENT,
 size INTEGER NOT NULL CHECK (size > 0 AND size = length(data)), {_CHECKSUM},
 data BLOB NOT NULL
) STRICT""",
    "entries": f"""CREATE TABLE entries (
 id INTEGER PRIMARY KEY AUTOINCREMENT,
 key BLOB NOT NULL CHECK (length(key) > 0),
 type INTEGER NOT NULL CHECK (type BETWEEN 0 AND 3),
 payload INTEGER NOT NULL REFERENCES payloads (id),
 size INTEGER NOT NULL CHECK (size > 0), {_CHECKSUM},
 flags INTEGER NOT NULL DEFAULT 0 CHECK (flags BETWEEN 0 AND 1),
 clock INTEGER NOT NULL DEFAULT 0 CHECK (clock >= 0),
 UNIQUE (key, type)
) STRICT""",
    "groups": f"""CREATE TABLE groups (
 id INTEGER PRIMARY KEY AUTOINCREMENT,
 object_key BLOB NOT NULL CHECK (length(object_key) = 32),
 version INTEGER NOT NULL,
 kind TEXT NOT NULL, name TEXT NOT NULL, value_keys BLOB NOT NULL, {_CHECKSUM},
 UNIQUE (object_key, version)
) STRICT""",
    "poison": f"""CREATE TABLE poison (
 id INTEGER PRIMARY KEY AUTOINCREMENT,
 object_key BLOB NOT NULL UNIQUE CHECK (length(object_key) = 32),
 kind TEXT NOT NULL, name TEXT NOT NULL,
 outcome TEXT NOT NULL CHECK (outcome IN ('crashed', 'timed-out', 'out-of-memory')),
 signal INTEGER NOT NULL, driver_build TEXT NOT NULL, detail TEXT NOT NULL, {_CHECKSUM}
) STRICT""",
}
INDEXES: dict[str, str] = {
    "payloads_by_checksum": "CREATE INDEX payloads_by_checksum ON payloads (checksum)",
}
_EXPECTED_SCHEMA = frozenset(
    [("table", name, sql) for name, sql in TABLES.items()]
    + [("index", name, sql) for name, sql in INDEXES.items()]
    + [("table", "sqlite_sequence", "CREATE TABLE sqlite_sequence(name,seq)")]
    + [("index", f"sqlite_autoindex_{name}_1", None) for name in ("entries", "groups", "poison")]
)
_COMPILER_COLUMNS = tuple(field.name for field in fields(CompilerIdentity))
_APPLICATION_COLUMNS = tuple(field.name for field in fields(ApplicationIdentity))
_TYPES: dict[str, type] = {"i": int, "s": str, "b": bytes}
_COLUMN_TYPES = {"compiler": "siiisisisibbssi", "application": "ssisi", "state": "iiiiiib"}
GROUP_COLUMNS = "object_key, version, kind, name, value_keys, checksum"
# Versions are unsigned numbers, so the negative ones are the greatest.
LATEST_GROUP = f"SELECT {GROUP_COLUMNS} FROM groups WHERE object_key = ? ORDER BY version < 0 DESC, version DESC LIMIT 1"
POISON_COLUMNS = "object_key, kind, name, outcome, signal, driver_build, detail, checksum"


class State(msgspec.Struct, frozen=True):
    """The row of table ``state``."""

    maximum_size: int = 0
    """Limit of ``payload_bytes``; 0 means none (EP-40)."""
    clock: int = 0
    """The last access number given to an entry."""
    value_count: int = 0
    group_count: int = 0
    poison_count: int = 0
    payload_bytes: int = 0
    """Sum of ``payloads.size``."""
    index_checksum: bytes = b""
    """xxh3_128 over key and LOCATION of every entry in order of id.

    In an unfinished file that of the finished file beside it; empty where there was none.
    """


def seal(*columns: int | str | bytes) -> bytes:
    """xxh3_128 of a row: each column as a tag byte (``i``, ``s``, ``b``), its length (u32 LE), its bytes (integers: i64 LE).

    Raises InvalidArgumentError for text that is no Unicode and integers that do not fit.
    """
    parts: list[bytes] = []
    for column in columns:
        if isinstance(column, int):
            try:
                tag, data = b"i", struct.pack("<q", column)
            except struct.error as error:
                raise InvalidArgumentError(f"{column} is no 64-bit integer") from error
        elif isinstance(column, str):
            try:
                tag, data = b"s", column.encode()
            except UnicodeError as error:
                raise InvalidArgumentError(f"text that cannot be stored: {error}") from error
        else:
            tag, data = b"b", column
        parts += (tag, len(data).to_bytes(4, "little"), data)
    return xxhash.xxh3_128_digest(b"".join(parts))


def owner_seed(identity: CompilerIdentity) -> int:
    """What ties the checksums of values to a compiler: the first 8 bytes (little-endian) of the checksum of its row."""
    return int.from_bytes(seal(*_compiler_row(identity))[:8], "little")


def value_checksum(owner: int, key: bytes, type: int, data: bytes) -> bytes:
    """The checksum of an entry: xxh3_128 of the bytes, seeded with xxh3_64 of the key, seeded with ``owner`` xor the type.

    It belongs to this key and type and to ``owner_seed`` of the database's compiler only, so that an altered reference to another
    payload is found, and a database whose identity was replaced by that of another device has no value left that can be read.
    """
    return xxhash.xxh3_128_digest(data, xxhash.xxh3_64_intdigest(key, owner ^ type))


def create(connection: apsw.Connection, identity: CompilerIdentity, application: ApplicationIdentity) -> None:
    """Create all tables and the identity rows, inside the caller's transaction. Page size is the caller's business."""
    FORM.create(connection, (*TABLES.values(), *INDEXES.values()))
    _insert_sealed(connection, "compiler", _COMPILER_COLUMNS, _compiler_row(identity))
    _insert_sealed(connection, "application", _APPLICATION_COLUMNS, application_row(application))
    write_state(connection, State())


def write_state(connection: apsw.Connection, state: State) -> None:
    """Replace the row of table ``state``."""
    connection.execute("DELETE FROM state")
    _insert_sealed(connection, "state", State.__struct_fields__, msgspec.structs.astuple(state))


def check_schema(rows: Iterable[tuple[Any, ...]]) -> None:
    """Refuse anything but exactly our tables and indexes: ``rows`` are (type, name, sql) of sqlite_schema.

    Raises CacheCorruptError. Views, triggers and virtual tables of a malicious file end here, before any of them is used.
    """
    found = set(rows)
    if found != _EXPECTED_SCHEMA:
        raise CacheCorruptError(f"unexpected schema: {foreign_and_missing(found, _EXPECTED_SCHEMA)}")


def read_identity(connection: apsw.Connection) -> tuple[CompilerIdentity, ApplicationIdentity, State]:
    """The identity and state rows, checksums compared. Raises CacheCorruptError."""
    row = _select_sealed(connection, "compiler", _COMPILER_COLUMNS)
    values = dict(zip(_COMPILER_COLUMNS, row, strict=True))
    try:
        values["features"] = msgspec.json.decode(values["features"], type=tuple[str, ...])
    except msgspec.MsgspecError as error:
        raise CacheCorruptError(f"the feature list of table compiler cannot be read: {error}") from error
    for name in ("abi_version", "application_profile_version"):
        values[name] = unsigned(values[name])
    application = application_from_row(_select_sealed(connection, "application", _APPLICATION_COLUMNS))
    return CompilerIdentity(**values), application, State(*_select_sealed(connection, "state", State.__struct_fields__))


def encode_keys(keys: Sequence[ValueKey]) -> bytes:
    """Value keys as one blob: each as its length (u32 LE) and its bytes."""
    return b"".join(part for key in keys for part in (len(key).to_bytes(4, "little"), key))


def decode_keys(data: bytes) -> tuple[ValueKey, ...]:
    """The inverse of ``encode_keys``; raises CacheCorruptError."""
    keys: list[ValueKey] = []
    position = 0
    while position < len(data):
        start = position + 4
        position = start + int.from_bytes(data[position:start], "little")
        if position > len(data) or position == start:
            raise CacheCorruptError("the value keys of a group are damaged")
        keys.append(ValueKey(data[start:position]))
    return tuple(keys)


def group_row(group: Group) -> tuple[Any, ...]:
    """A group as GROUP_COLUMNS."""
    row = (group.object_key, signed(group.version), group.kind, group.name, encode_keys(group.value_keys))
    return (*row, seal(*row))


def group_from_row(row: tuple[Any, ...]) -> Group:
    """GROUP_COLUMNS as a group; raises CacheCorruptError where the checksum is not the row's."""
    _check_seal(row, "bissb", "group")
    object_key, version, kind, name, keys, _ = row
    return Group(ObjectKey(object_key), unsigned(version), decode_keys(keys), kind, name)


def poison_row(poison: Poison) -> tuple[Any, ...]:
    """A poison entry as POISON_COLUMNS."""
    row = msgspec.structs.astuple(msgspec.structs.replace(poison, outcome=str(poison.outcome)))
    return (*row, seal(*row))


def poison_from_row(row: tuple[Any, ...]) -> Poison:
    """POISON_COLUMNS as a poison entry; raises CacheCorruptError where the checksum is not the row's."""
    _check_seal(row, "bsssiss", "poison entry")
    object_key, kind, name, outcome, signal, driver_build, detail, _ = row
    try:
        return Poison(ObjectKey(object_key), kind, name, Ending(outcome), signal, driver_build, detail)
    except ValueError as error:
        raise CacheCorruptError(f"poison entry with an unknown outcome: {error}") from error


def check_key(key: bytes) -> None:
    """Raise InvalidArgumentError unless ``key`` is a non-empty byte string of at most MAXIMUM_KEY_SIZE bytes (EP-15)."""
    if not isinstance(key, bytes) or not 0 < len(key) <= MAXIMUM_KEY_SIZE:
        raise InvalidArgumentError(f"a value key is 1 to {MAXIMUM_KEY_SIZE} bytes long")


def check_type(type: int) -> ValueType:
    """The value type of that number; raises InvalidArgumentError."""
    try:
        return ValueType(type)
    except ValueError as error:
        raise InvalidArgumentError(f"{type!r} is no value type") from error


def _compiler_row(identity: CompilerIdentity) -> tuple[Any, ...]:
    values = dict(zip(_COMPILER_COLUMNS, astuple(identity), strict=True))
    values["features"] = msgspec.json.encode(identity.features).decode()
    for name in ("abi_version", "application_profile_version"):
        values[name] = signed(values[name])
    return tuple(values.values())


def _insert_sealed(connection: apsw.Connection, table: str, columns: Sequence[str], row: Sequence[Any]) -> None:
    marks = ", ".join("?" * (len(row) + 1))
    connection.execute(f"INSERT INTO {table} (id, {', '.join(columns)}, checksum) VALUES (1, {marks})", (*row, seal(*row)))


def _select_sealed(connection: apsw.Connection, table: str, columns: Sequence[str]) -> tuple[Any, ...]:
    rows = connection.execute(f"SELECT {', '.join(columns)}, checksum FROM {table} LIMIT 2").fetchall()
    if len(rows) != 1:
        raise CacheCorruptError(f"table {table} does not hold exactly one row")
    _check_seal(rows[0], _COLUMN_TYPES[table], f"row of table {table}")
    return tuple(rows[0][:-1])


def _check_seal(row: tuple[Any, ...], types: str, what: str) -> None:
    """``types`` has one letter a column, as in ``seal``; compared too, since a crafted file may carry any type anywhere."""
    columns = row[:-1]
    try:
        sound = all(isinstance(column, _TYPES[letter]) for column, letter in zip(columns, types, strict=True))
        sound = sound and seal(*columns) == row[-1]
    except TypeError:
        sound = False
    if not sound:
        raise CacheCorruptError(f"a {what} is damaged (checksum)")
