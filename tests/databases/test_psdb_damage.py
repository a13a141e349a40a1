"""Damaged, truncated and malicious PSDB files: the documented errors, never a wrong value."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from psdb_support import APPLICATION, build, compiler, make, object_key

from shaderkiln.databases import psdb_schema
from shaderkiln.databases.psdb import DamagedValueError, Poison, Psdb, PsdbBuilder
from shaderkiln.endings import Ending
from shaderkiln.errors import CacheCorruptError, NotFoundError
from shaderkiln.keys import Group, ValueKey, ValueType

SMALL = 3
POISON = Poison(object_key(999), "compute", "bad", Ending.CRASHED, 11, "build", "detail")


def everything(database: Psdb, numbers: range) -> int:
    """Ask for all that was stored; each answer is right or a documented error. Returns how many errors there were."""
    errors = 0
    for number in numbers:
        group, values = make(number)
        for value in values:
            try:
                assert database.find(value.key, value.type) == value.data
                assert database.size(value.key, value.type) == len(value.data)
            except CacheCorruptError:
                errors += 1
        try:
            assert database.group(group.object_key, 1) == group
        except CacheCorruptError:
            errors += 1
    known = {(value.key, value.type): len(value.data) for number in numbers for value in make(number)[1]}
    try:
        assert {(value.key, value.type): value.size for value in database.values()} == known
        assert sorted(database.groups(), key=lambda group: group.name) == [make(number)[0] for number in numbers]
        assert list(database.poison()) == [POISON]
    except CacheCorruptError:
        errors += 1
    return errors


def small(path: Path, numbers: range = range(SMALL)) -> Path:
    with PsdbBuilder(path, compiler(), APPLICATION) as builder:
        for number in numbers:
            builder.add(*make(number))
        builder.add_poison(POISON)
        builder.finish()
    return path


def check_flips(path: Path, offsets: Iterable[int], numbers: range, source: random.Random) -> tuple[int, int]:
    """How many of the flips were refused at opening, and how many found later; all others changed no answer."""
    content = path.read_bytes()
    refused = found = 0
    with path.open("r+b", buffering=0) as file:
        for offset in offsets:
            os.pwrite(file.fileno(), bytes([content[offset] ^ 1 << source.randrange(8)]), offset)
            try:
                with Psdb.open(path) as database:
                    assert database.identity == compiler()
                    assert database.application == APPLICATION
                    damage = everything(database, numbers)
                    found += damage > 0
                    assert not damage or any(database.verify())
            except CacheCorruptError:
                refused += 1
            os.pwrite(file.fileno(), content[offset : offset + 1], offset)
    assert path.read_bytes() == content
    return refused, found


@pytest.mark.spec("AL-02")
def test_one_flipped_bit_is_never_a_wrong_answer(tmp_path: Path) -> None:
    """Every byte in use, and a sample of the zeros between."""
    path = small(tmp_path / "a.psdb")
    with Psdb.open(path) as database:
        assert everything(database, range(SMALL)) == 0
    content = path.read_bytes()
    source = random.Random(1)
    offsets = [
        at for at, byte in enumerate(content) if (byte and source.random() < 0.3) or at % 4096 < 40 or source.random() < 0.02
    ]
    refused, found = check_flips(path, offsets, range(SMALL), source)
    assert refused > 100
    assert found > 1000


@pytest.mark.soak
@pytest.mark.spec("AL-02")
def test_one_flipped_bit_in_every_single_byte(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if "soak" not in request.config.getoption("-m"):
        pytest.skip("takes a minute; run with -m soak")
    path = small(tmp_path / "a.psdb")
    check_flips(path, range(path.stat().st_size), range(SMALL), random.Random(3))


@pytest.mark.spec("AL-02")
def test_flipped_bits_in_a_larger_file(tmp_path: Path) -> None:
    numbers = range(150)
    path = small(tmp_path / "a.psdb", numbers)
    source = random.Random(2)
    _, found = check_flips(path, source.sample(range(path.stat().st_size), 150), numbers, source)
    assert found > 50


@pytest.mark.spec("AL-02")
def test_every_byte_of_a_payload_is_guarded_and_its_values_are_named(tmp_path: Path) -> None:
    path = small(tmp_path / "a.psdb", range(7))
    content = path.read_bytes()
    # Numbers 0, 3 and 6 share a payload, so its damage has to be named three times.
    for number, names in ((0, {0, 3, 6}), (1, {1})):
        data = make(number)[1][0].data
        # The payload lies in pieces on several pages, and parts of it in unused space too: alter all copies of a byte.
        pieces = [data[start : start + 32] for start in range(0, len(data) - 31, 32)]
        places = [[found.start() for found in re.finditer(re.escape(piece), content)] for piece in pieces]
        sample = [[copy + at for copy in copies] for copies in places if copies for at in range(32)]
        assert len(sample) > len(data) * 0.9 - 64
        for copies in sample[:: max(1, len(sample) // 40)]:
            altered = bytearray(content)
            for place in copies:
                altered[place] ^= 0xFF
            path.write_bytes(altered)
            with Psdb.open(path) as database:
                for name in names:
                    with pytest.raises(DamagedValueError) as caught:
                        database.find(make(name)[0].value_keys[0])
                    assert caught.value.key == make(name)[0].value_keys[0]
                    assert caught.value.type == ValueType.OBJECT_CODE
                named = {damage.key for damage in database.verify() if damage.subject == "value"}
                assert {make(name)[0].value_keys[0] for name in names} <= named
                sound = make(2)[1][0]
                assert database.find(sound.key) == sound.data
            assert path.read_bytes() == altered


@pytest.mark.spec("AL-02")
def test_truncated_at_any_length(tmp_path: Path) -> None:
    path = small(tmp_path / "a.psdb")
    content = path.read_bytes()
    for length in [*range(200), *range(200, len(content), 997), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(CacheCorruptError):
            Psdb.open(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(CacheCorruptError, match="truncated or damaged"):
        Psdb.open(path)


@pytest.mark.spec("AL-02")
@pytest.mark.parametrize("seed", range(30))
def test_pages_swapped_copied_or_filled_with_noise(tmp_path: Path, seed: int) -> None:
    numbers = range(60)
    path = small(tmp_path / "a.psdb", numbers)
    source = random.Random(seed)
    content = bytearray(path.read_bytes())
    pages = len(content) // 4096
    for _ in range(source.randrange(1, 4)):
        one, other = source.randrange(1, pages) * 4096, source.randrange(1, pages) * 4096
        noise = source.randbytes(4096) if seed % 2 else content[one : one + 4096]
        content[other : other + 4096] = noise
    path.write_bytes(content)
    start = time.monotonic()
    try:
        with Psdb.open(path) as database:
            everything(database, numbers)
            list(database.verify())
            database.statistics()
    except CacheCorruptError:
        pass
    assert time.monotonic() - start < 10


@pytest.mark.spec("AL-02")
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW extra AS SELECT * FROM entries",
        "CREATE TRIGGER extra AFTER INSERT ON entries BEGIN DELETE FROM payloads; END",
        "CREATE VIRTUAL TABLE extra USING fts5(x)",
        "CREATE TABLE extra (x)",
        "DROP INDEX payloads_by_checksum",
        "ALTER TABLE groups ADD COLUMN extra TEXT",
        "ALTER TABLE entries RENAME TO other",
        "ALTER TABLE entries RENAME TO other; CREATE VIEW entries AS SELECT * FROM other",
    ],
)
def test_a_foreign_schema_is_refused(tmp_path: Path, statement: str) -> None:
    path = small(tmp_path / "a.psdb")
    connection = sqlite3.connect(path)
    connection.executescript(statement)
    connection.close()
    with pytest.raises(CacheCorruptError, match="unexpected schema"):
        Psdb.open(path)


@pytest.mark.spec("AL-02")
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("PRAGMA application_id = 7", "not a precompiled shader database"),
        ("PRAGMA user_version = 2", "format version 2, this program reads 1"),
        ("UPDATE compiler SET family = 'amd-navi21'", "compiler is damaged"),
        ("UPDATE application SET name = 'Other'", "application is damaged"),
        ("UPDATE state SET value_count = 1000000000", "state is damaged"),
        ("DELETE FROM compiler", "exactly one row"),
        ("PRAGMA journal_mode = WAL", "not finished"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path: Path, statement: str, message: str) -> None:
    path = small(tmp_path / "a.psdb")
    connection = sqlite3.connect(path)
    connection.executescript(statement)
    connection.close()
    with pytest.raises(CacheCorruptError, match=message):
        Psdb.open(path)


@pytest.mark.spec("AL-02")
@pytest.mark.parametrize(
    "content", [b"", b"\0", b"#!/bin/sh\n" * 100, b"SQLite format 3\0", b"SQLite format 3\0" + b"\xff" * 9000]
)
def test_files_that_are_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.psdb"
    path.write_bytes(content)
    with pytest.raises(CacheCorruptError):
        Psdb.open(path)
    assert path.read_bytes() == content


@pytest.mark.spec("AL-02")
def test_a_pipe_does_not_keep_us_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.psdb")
    with pytest.raises(CacheCorruptError, match="not a file"):
        Psdb.open(tmp_path / "a.psdb")


@pytest.mark.spec("AL-02")
def test_rows_altered_by_another_program(tmp_path: Path) -> None:
    """Whoever knows the format can write any row, but not make a value answer to another key without its checksum."""
    original = small(tmp_path / "a.psdb")
    group, values = make(1)

    def altered(statement: str) -> Psdb:
        path = tmp_path / "b.psdb"
        shutil.copy(original, path)
        connection = sqlite3.connect(path)
        connection.executescript("PRAGMA ignore_check_constraints = ON;" + statement)
        connection.close()
        return Psdb.open(path)

    with altered("UPDATE entries SET payload = payload % 3 + 1") as database, pytest.raises(CacheCorruptError):
        database.find(values[0].key)
    with altered("UPDATE entries SET payload = -payload") as database, pytest.raises(DamagedValueError):
        database.find(values[0].key)
    with altered("UPDATE entries SET payload = 1000000") as database, pytest.raises(DamagedValueError):
        database.find(values[0].key)
    with altered("UPDATE entries SET size = -1") as database, pytest.raises(CacheCorruptError):
        database.size(values[0].key)
    with altered("UPDATE payloads SET data = zeroblob(20000000), size = 20000000") as database:
        with pytest.raises(DamagedValueError):
            database.find(values[0].key)
        with pytest.raises(DamagedValueError):
            database.size(values[0].key)
    with altered(f"DELETE FROM entries WHERE key = x'{values[0].key.hex()}'") as database:
        with pytest.raises(CacheCorruptError):
            database.find(values[0].key)
        with pytest.raises(CacheCorruptError):
            database.exists(values[0].key)
        assert any(damage.subject == "index" for damage in database.verify())
    with altered("UPDATE groups SET name = 'other'") as database, pytest.raises(CacheCorruptError):
        database.group(group.object_key, 1)
    with altered("DELETE FROM groups WHERE id = 1") as database:
        with pytest.raises(CacheCorruptError):
            [database.group(make(number)[0].object_key, 1) for number in range(SMALL)]
        with pytest.raises(CacheCorruptError):
            list(database.groups())
    two = ", ".join(f"x'{object_key(number).hex()}'" for number in (0, 2))
    with altered(f"UPDATE groups SET kind = 'graphics' WHERE object_key IN ({two})") as database:
        named = [(damage.subject, damage.key) for damage in database.verify()]
        assert named == sorted([("group", object_key(0)), ("group", object_key(2))])
    with altered("DELETE FROM poison") as database, pytest.raises(CacheCorruptError):
        list(database.poison())


@pytest.mark.spec("AL-02")
def test_a_cyclic_table_does_not_keep_us_for_ever(tmp_path: Path) -> None:
    """A table whose inner pages point to each other has practically endless rows."""
    path = tmp_path / "a.psdb"
    build(path, range(400))
    connection = sqlite3.connect(path)
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'entries'").fetchone()[0]
    connection.close()
    content = bytearray(path.read_bytes())
    start = (root - 1) * 4096
    assert content[start] == 5  # an inner page of a table
    cells = int.from_bytes(content[start + 3 : start + 5], "big")
    for cell in range(cells):
        at = int.from_bytes(content[start + 12 + 2 * cell : start + 14 + 2 * cell], "big")
        content[start + at : start + at + 4] = root.to_bytes(4, "big")
    path.write_bytes(content)
    begin = time.monotonic()
    with Psdb.open(path) as database:
        with pytest.raises(CacheCorruptError):
            database.find(make(0)[1][0].key)
        with pytest.raises(CacheCorruptError):
            list(database.values())
        assert any(database.verify())
    assert time.monotonic() - begin < 10


@pytest.mark.spec("AL-02")
def test_look_ups_without_the_memory_index_answer_the_same(tmp_path: Path) -> None:
    path = small(tmp_path / "a.psdb")
    with Psdb.open(path, index_limit=0) as database:
        assert everything(database, range(SMALL)) == 0
        with pytest.raises(NotFoundError):
            database.find(ValueKey(b"unknown"))
    connection = sqlite3.connect(path)
    connection.executescript("UPDATE entries SET payload = payload % 3 + 1")
    connection.close()
    with Psdb.open(path, index_limit=0) as database:
        assert everything(database, range(SMALL)) > 0


@pytest.mark.spec("AL-02")
def test_a_damaged_unfinished_file_never_becomes_a_wrong_finished_one(tmp_path: Path) -> None:
    expected = build(tmp_path / "whole.psdb", range(6)).read_bytes()
    path = tmp_path / "a.psdb"
    partial = tmp_path / "a.psdb.partial"
    with PsdbBuilder(path, compiler(), APPLICATION) as builder:
        for number in range(6):
            builder.add(*make(number))
    content = partial.read_bytes()
    source = random.Random(4)
    refused = 0
    for offset in source.sample([at for at, byte in enumerate(content) if byte], 250):
        altered = bytearray(content)
        altered[offset] ^= 1 << source.randrange(8)
        partial.write_bytes(altered)
        try:
            with PsdbBuilder(path, compiler(), APPLICATION) as builder:
                for number in range(6):
                    if not builder.has_group(object_key(number), 1):
                        builder.add(*make(number))
                builder.finish()
        except CacheCorruptError:
            refused += 1
            assert not path.exists()
        else:
            if path.read_bytes() != expected:
                with Psdb.open(path) as database:
                    assert list(database.verify()) == []
                    assert [database.group(make(number)[0].object_key, 1).value_keys for number in range(6)] == [
                        make(number)[0].value_keys for number in range(6)
                    ]
                    for number in range(6):
                        for value in make(number)[1]:
                            assert database.find(value.key, value.type) == value.data
            path.unlink()
        for left in tmp_path.glob("a.psdb*"):
            left.unlink()
    assert refused > 100


def test_the_checksums_are_the_documented_ones() -> None:
    """Recomputed from docs/formats.md alone."""
    import xxhash

    seed = xxhash.xxh3_64(b"key", seed=0xF00 ^ 1).intdigest()
    assert psdb_schema.value_checksum(0xF00, b"key", 1, b"data") == xxhash.xxh3_128(b"data", seed=seed).digest()
    row = b"s\x02\0\0\0abi\x08\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xffb\x01\0\0\0z"
    assert psdb_schema.seal("ab", -2, b"z") == xxhash.xxh3_128(row).digest()
    group = Group(object_key(1), 1, (ValueKey(b"a"), ValueKey(b"bcd")), "compute", "n")
    assert psdb_schema.group_row(group)[4] == b"\x01\0\0\0a\x03\0\0\0bcd"


def test_the_identity_of_another_device_takes_every_value_with_it(tmp_path: Path) -> None:
    """A sound row of table compiler, copied from another device's database, must not bring this one's values to that device."""
    build(tmp_path / "theirs.psdb", range(3), identity=compiler(family="amd-navi21", device_id=0x73BF))
    ours = build(tmp_path / "ours.psdb", range(3))
    with sqlite3.connect(ours) as connection:
        checksum = connection.execute("SELECT checksum FROM compiler").fetchone()[0]
        rows = connection.execute(
            "SELECT key, type, data, entries.checksum FROM entries JOIN payloads ON payload = payloads.id"
        )
        owner = int.from_bytes(checksum[:8], "little")
        for key, type, data, stored in rows.fetchall():
            assert psdb_schema.value_checksum(owner, key, type, data) == stored
        connection.execute("ATTACH ? AS other", (str(tmp_path / "theirs.psdb"),))
        connection.execute("DELETE FROM compiler")
        connection.execute("INSERT INTO compiler SELECT * FROM other.compiler")
    connection.close()
    with Psdb.open(ours) as database:
        assert database.identity.family == "amd-navi21"
        for number in range(3):
            for value in make(number)[1]:
                with pytest.raises(DamagedValueError):
                    database.find(value.key, value.type)
        assert len([damage for damage in database.verify() if damage.subject == "value"]) == sum(1 for _ in database.values())
