"""What a live database does beneath the sessions (their tests, in ``tests/sessions``, have the rest)."""

from __future__ import annotations

from pathlib import Path

import pytest
from psdb_support import APPLICATION, build, compiler, make

from shaderkiln.databases.psdb import Psdb
from shaderkiln.databases.psdb_live import LivePsdb, read_stored_identity
from shaderkiln.databases.psdb_records import Expectation

EXPECTED = Expectation(APPLICATION, compiler())


def test_a_second_find_asks_for_the_bytes_only(tmp_path: Path) -> None:
    with LivePsdb.open(tmp_path / "a.psdb", EXPECTED) as database:
        database.store(b"key", {0: b"value", 1: b"metadata"})
        statements: list[str] = []

        def trace(_: object, statement: str, __: object) -> bool:
            statements.append(statement)
            return True

        database._connection.exec_trace = trace
        assert (database.find(b"key", 0), database.find(b"key", 1)) == (b"value", b"metadata")
        assert statements == ["SELECT data FROM payloads WHERE id = ?"] * 2


def test_a_finished_file_made_live_has_all_its_values_and_groups(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb")
    finished = path.read_bytes()
    with Psdb.open(path) as reader, LivePsdb.open(path, EXPECTED) as database:
        values = [(value.key, int(value.type)) for value in reader.values()]
        assert set(database.keys()) == {key for key, _ in values}
        for key, type in values:
            assert database.find(key, type) == reader.find(key, type)  # type: ignore[arg-type]
        payload_bytes = sum(len(database.find(key, type)) for key, type in values)
        assert (database.state().value_count, database.state().payload_bytes) == (len(values), payload_bytes)
        for number in range(20):
            group = make(number)[0]
            assert database.latest_group(group.object_key) == group
        for key in list(database.keys())[::2]:
            database.store(key, {0: b"new"}, overwrite=True)
        for key, type in values:
            expected = b"new" if type == 0 and database.find(key, 0) == b"new" else reader.find(key, type)  # type: ignore[arg-type]
            assert database.find(key, type) == expected
    assert read_stored_identity(path) == (compiler(), APPLICATION)
    assert path.read_bytes() != finished


@pytest.mark.spec("EP-27")
def test_a_use_before_a_store_is_older_than_that_store(tmp_path: Path) -> None:
    with LivePsdb.open(tmp_path / "a.psdb", EXPECTED, maximum_size=300, trim=True) as database:
        database.store(b"used", {0: bytes(20)})
        assert database.find(b"used", 0)
        database.store(b"stored later", {0: bytes(90)})
        database.store(b"needs the room", {0: bytes(200)})
        assert set(database.keys()) == {b"stored later", b"needs the room"}
