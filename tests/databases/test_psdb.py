"""Building, resuming, finishing and reading precompiled shader databases."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psdb_support import APPLICATION, build, compiler, make, object_key, value_key

from shaderkiln.databases.psdb import (
    DatabaseBusyError,
    DatabaseWriteError,
    GroupDifference,
    Poison,
    Psdb,
    PsdbBuilder,
    ValueDifference,
)
from shaderkiln.endings import Ending
from shaderkiln.errors import AccessDeniedError, CacheCorruptError, InvalidArgumentError, NotFoundError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.keys import Group, ObjectKey, Value, ValueKey, ValueType

POISON = Poison(object_key(7), "compute", "36500a7b241cea31", Ending.CRASHED, 6, "Mesa 25.0.7 build 00ff", "assertion")


def start(path: Path, **changes: object) -> PsdbBuilder:
    return PsdbBuilder(path, compiler(**changes), APPLICATION)


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


@pytest.mark.spec("EP-14")
def test_the_four_value_types_have_their_numbers_and_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.psdb"
    key = ValueKey(b"key")
    contents = {0: b"object code", 1: b"metadata", 2: b"debug", 3: b"performance"}
    with start(path) as builder:
        values = [Value(key, ValueType(number), data) for number, data in contents.items()]
        builder.add(Group(object_key(0), 1, (key,), "compute", "0"), values)
        builder.finish()
    with Psdb.open(path) as database:
        assert [(int(type), type.flag) for type in database.types(key)] == [(0, 1), (1, 2), (2, 4), (3, 8)]
        for type in (ValueType.OBJECT_CODE, ValueType.METADATA, ValueType.DEBUG_PDB, ValueType.PERFORMANCE_DATA):
            assert database.find(key, type) == contents[type.value]
            assert database.size(key, type) == len(contents[type.value])
    stored = sqlite3.connect(path).execute("SELECT type, size FROM entries ORDER BY type").fetchall()
    assert stored == [(number, len(data)) for number, data in contents.items()]


@pytest.mark.spec("EP-15")
@settings(max_examples=30, deadline=None)
@given(keys=st.sets(st.binary(min_size=1, max_size=70), min_size=2, max_size=12))
def test_keys_are_equal_only_if_every_byte_is(tmp_path_factory: pytest.TempPathFactory, keys: set[bytes]) -> None:
    path = tmp_path_factory.mktemp("keys") / "a.psdb"
    ordered = [ValueKey(key) for key in sorted(keys)]
    absent = ordered.pop()
    with start(path) as builder:
        values = [Value(key, ValueType.OBJECT_CODE, b"value of " + key) for key in ordered]
        builder.add(Group(object_key(0), 1, tuple(ordered), "compute", "0"), values)
        builder.finish()
    with Psdb.open(path) as database:
        for key in ordered:
            assert database.find(key) == b"value of " + key
            for other in (ValueKey(key + b"\0"), ValueKey(b"\0" + key)):
                if other not in ordered:
                    assert not database.exists(other)
        with pytest.raises(NotFoundError):
            database.find(absent)
        assert [value.key for value in database.values()] == ordered


@pytest.mark.spec("EP-15")
def test_an_empty_key_is_refused(tmp_path: Path) -> None:
    empty = ValueKey(b"")
    with start(tmp_path / "a.psdb") as builder:
        with pytest.raises(InvalidArgumentError):
            builder.add(Group(object_key(0), 1, (), "compute", "0"), [Value(empty, ValueType.OBJECT_CODE, b"x")])
        with pytest.raises(InvalidArgumentError):
            builder.add(Group(object_key(0), 1, (empty,), "compute", "0"), [])
        builder.finish()
    with Psdb.open(tmp_path / "a.psdb") as database, pytest.raises(InvalidArgumentError):
        database.find(empty)


def test_everything_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "Schränke 影.psdb"
    with start(path) as builder:
        for number in range(20):
            assert builder.add(*make(number)) == ()
        builder.add_poison(POISON)
        builder.finish()
    assert names(tmp_path) == {path.name}
    before = path.read_bytes()
    with Psdb.open(path) as database:
        assert (database.identity, database.application, database.maximum_size) == (compiler(), APPLICATION, 0)
        for number in range(20):
            group, values = make(number)
            assert database.group(group.object_key, 1) == group
            for value in values:
                assert database.find(value.key, value.type) == value.data
        assert [group.object_key for group in database.groups()] == sorted(object_key(number) for number in range(20))
        assert list(database.poison()) == [POISON]
        assert list(database.verify()) == []
        with pytest.raises(NotFoundError):
            database.group(object_key(0), 2)
        with pytest.raises(NotFoundError):
            database.find(value_key(0), ValueType.DEBUG_PDB)
        with pytest.raises(InvalidArgumentError):
            database.find(value_key(0), 4)  # type: ignore[arg-type]
    assert path.read_bytes() == before
    assert names(tmp_path) == {path.name}


def test_identical_payloads_are_stored_once(tmp_path: Path) -> None:
    with Psdb.open(build(tmp_path / "a.psdb", range(20))) as database:
        values = {(value.key, value.type): value.data for number in range(20) for value in make(number)[1]}
        distinct = set(values.values())
        code = [data for (_, type), data in values.items() if type == ValueType.OBJECT_CODE]
        found = database.statistics()
    assert (found.groups, found.values, found.payloads) == (20, len(values), len(distinct))
    assert found.payload_bytes == sum(map(len, distinct))
    assert found.saved_bytes == sum(map(len, values.values())) - found.payload_bytes > 0
    assert found.file_bytes == (tmp_path / "a.psdb").stat().st_size
    assert found.by_type[ValueType.OBJECT_CODE].values == len(code)
    assert found.by_type[ValueType.OBJECT_CODE].bytes == sum(map(len, code))
    assert found.by_type[ValueType.OBJECT_CODE].stored_bytes == sum(map(len, set(code)))


def test_the_file_is_the_same_in_whatever_order_and_steps_it_was_built(tmp_path: Path) -> None:
    expected = build(tmp_path / "a.psdb", range(60)).read_bytes()
    for seed in range(3):
        numbers = list(range(60))
        random.Random(seed).shuffle(numbers)
        path = tmp_path / f"{seed}.psdb"
        for part in (numbers[:13], numbers[13:40]):
            with start(path) as builder:
                for number in part:
                    builder.add(*make(number))
        build(path, numbers[:50])
        assert path.read_bytes() != expected
        assert build(path, numbers).read_bytes() == expected
    assert names(tmp_path) == {"a.psdb", "0.psdb", "1.psdb", "2.psdb"}


def test_an_object_under_two_names_keeps_the_smaller(tmp_path: Path) -> None:
    group, values = make(1)
    other = Group(group.object_key, group.version, group.value_keys, group.kind, "a name")
    groups = sorted((group, other), key=lambda item: item.name)
    for order in (groups, groups[::-1]):
        path = tmp_path / f"{order[0].name}.psdb"
        with start(path) as builder:
            for item in order:
                assert builder.add(item, values) == ()
            builder.finish()
        with Psdb.open(path) as database:
            assert list(database.groups()) == groups[:1]


def test_a_difference_is_reported_and_the_first_value_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.psdb"
    group, values = make(1)
    changed = Value(values[0].key, values[0].type, values[0].data + b"!")
    for finished in (False, True):
        with start(path) as builder:
            if not finished:
                builder.add(group, values)
            (difference,) = builder.add(group, [changed, *values[1:]])
            assert isinstance(difference, ValueDifference)
            assert (difference.key, difference.type) == (changed.key, ValueType.OBJECT_CODE)
            assert (difference.kept_size, difference.other_size) == (len(values[0].data), len(changed.data))
            assert difference.kept_checksum != difference.other_checksum
            fewer = Group(group.object_key, 1, group.value_keys[:1], group.kind, group.name)
            (of_group,) = builder.add(fewer, [])
            assert of_group == GroupDifference(group.object_key, 1, group.value_keys, fewer.value_keys)
            assert builder.differences == [difference, of_group]
            builder.finish()
        with Psdb.open(path) as database:
            assert database.find(changed.key) == values[0].data
            assert list(database.groups()) == [group]


def test_add_takes_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.psdb"
    group, values = make(1)
    key = values[0].key
    unfit: list[tuple[Group, list[Value]]] = [
        (Group(group.object_key, 1, (key, ValueKey(b"missing")), "compute", ""), list(values)),
        (group, [values[0], Value(key, ValueType.METADATA, b"")]),
        (group, [values[0], Value(key, 9, b"x")]),  # type: ignore[arg-type]
        (Group(ObjectKey(b"short"), 1, (key,), "compute", ""), list(values)),
        (Group(group.object_key, 1 << 64, (key,), "compute", ""), list(values)),
        (Group(group.object_key, -1, (key,), "compute", ""), list(values)),
        (Group(group.object_key, 1, (key,), "compute", "\udcff"), list(values)),
    ]
    with start(path) as builder:
        for bad_group, bad_values in unfit:
            with pytest.raises(InvalidArgumentError):
                builder.add(bad_group, bad_values)
        builder.finish()
    with Psdb.open(path) as database:
        assert list(database.values()) == list(database.groups()) == []


def test_poison_is_added_replaced_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.psdb"
    other = Poison(POISON.object_key, "compute", "x", Ending.TIMED_OUT, 0, "build 2")
    with start(path) as builder:
        assert builder.poisoned(POISON.object_key) is None
        builder.add_poison(POISON)
        assert builder.poisoned(POISON.object_key) == POISON
        builder.add_poison(other)
        assert builder.poisoned(POISON.object_key) == other
        builder.finish()
    with start(path) as builder:
        assert builder.poisoned(POISON.object_key) == other
        assert builder.poisoned(object_key(1)) is None
        assert builder.remove_poison(POISON.object_key)
        assert not builder.remove_poison(POISON.object_key)
        builder.finish()
    with Psdb.open(path) as database:
        assert list(database.poison()) == []


def test_nothing_new_leaves_the_file_alone(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", range(5))
    before = path.stat()
    with start(path) as builder:
        assert all(builder.has_group(object_key(number), 1) for number in range(5))
        assert not builder.has_group(object_key(5), 1)
        assert not builder.has_group(object_key(0), 2)
        assert names(tmp_path) == {"a.psdb", "a.psdb.lock"}
        builder.add(*make(3))
        builder.finish()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert names(tmp_path) == {"a.psdb"}


def test_group_keys_of_finished_and_new_groups(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", range(4))
    with start(path) as builder:
        assert list(builder.group_keys()) == sorted((object_key(number), 1) for number in range(4))
        for number in range(2, 8):
            builder.add(*make(number))
        group, values = make(0)
        newer = Group(group.object_key, (1 << 64) - 1, group.value_keys, group.kind, group.name)
        builder.add(newer, values)
        expected = sorted([*((object_key(number), 1) for number in range(8)), (group.object_key, newer.version)])
        assert list(builder.group_keys()) == expected
        builder.finish()
    with Psdb.open(path) as database:
        assert [(item.object_key, item.version) for item in database.groups()] == expected
        assert database.group(group.object_key, newer.version) == newer


def test_what_a_builder_knows_of_values(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", range(2))
    with start(path) as builder:
        builder.add(*make(5))
        for number in (1, 5):
            group, values = make(number)
            assert builder.value_keys(group.object_key, 1) == group.value_keys
            assert builder.has_value(values[1].key, ValueType.METADATA)
            assert not builder.has_value(values[1].key, ValueType.DEBUG_PDB)
        with pytest.raises(NotFoundError):
            builder.value_keys(object_key(7), 1)
        # Another type under a key of the finished file: a group may be given again for it.
        group, _ = make(1)
        more = Value(group.value_keys[0], ValueType.PERFORMANCE_DATA, b"{}")
        assert builder.add(group, [more]) == ()
        assert builder.has_value(more.key, more.type)
        builder.finish()
    with Psdb.open(path) as database:
        assert database.find(more.key, more.type) == b"{}"
        assert database.types(more.key) == (ValueType.OBJECT_CODE, ValueType.METADATA, ValueType.PERFORMANCE_DATA)
        assert database.poisoned(object_key(1)) is None


def test_another_identity_is_refused_with_the_differences_or_replaced(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", range(3))
    before = path.read_bytes()
    with pytest.raises(CacheCorruptError, match=r"family: stored 'amd-navi31', expected 'amd-navi21'; abi_version"):
        start(path, family="amd-navi21", abi_version=5)
    with pytest.raises(CacheCorruptError, match=r"application\.name: stored 'Demo', expected 'Other'"):
        PsdbBuilder(path, compiler(), ApplicationIdentity("Other", *APPLICATION_REST))
    assert path.read_bytes() == before
    assert names(tmp_path) == {"a.psdb"}
    with PsdbBuilder(path, compiler(family="amd-navi21"), APPLICATION, replace=True) as builder:
        assert not builder.has_group(object_key(0), 1)
        builder.add(*make(9))
        assert path.read_bytes() == before
        builder.close()
    # What was begun for one identity is not taken up for another either.
    path.unlink()
    with pytest.raises(CacheCorruptError, match=r"a\.psdb\.partial: made for or by another: family"):
        start(path)
    with PsdbBuilder(path, compiler(), APPLICATION, replace=True) as builder:
        builder.finish()
    with Psdb.open(path) as database:
        assert database.identity == compiler()
        assert list(database.groups()) == []


APPLICATION_REST = (APPLICATION.exe_filename, APPLICATION.version, APPLICATION.engine_name, APPLICATION.engine_version)


def test_a_damaged_file_is_refused_or_replaced(tmp_path: Path) -> None:
    for name in ("a.psdb", "a.psdb.partial"):
        broken = tmp_path / name
        broken.write_bytes(b"no database at all, but long enough to be taken for one" * 100)
        with pytest.raises(CacheCorruptError):
            start(tmp_path / "a.psdb")
        with PsdbBuilder(tmp_path / "a.psdb", compiler(), APPLICATION, replace=True) as builder:
            builder.finish()
        assert names(tmp_path) == {"a.psdb"}
        (tmp_path / "a.psdb").unlink()


def test_a_damaged_value_is_not_carried_over(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", range(5))
    content = bytearray(path.read_bytes())
    content[content.find(make(1)[1][0].data[:32])] ^= 1
    path.write_bytes(content)
    with start(path) as builder:
        builder.add(*make(8))
        with pytest.raises(CacheCorruptError, match=value_key(1).hex()):
            builder.finish()
    assert path.read_bytes() == content
    assert names(tmp_path) == {"a.psdb", "a.psdb.partial"}


def test_groups_that_lean_on_a_file_since_removed_are_compiled_again(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", range(5))
    with start(path) as builder:
        builder.add(*make(5))
        builder.add(Group(object_key(70), 1, (value_key(0),), "compute", "leans"), [])
    path.unlink()
    with start(path) as builder:
        assert not builder.has_group(object_key(70), 1)
        assert not builder.has_group(object_key(5), 1)  # shared a value with number 4
    assert build(path, range(6)).read_bytes() == build(tmp_path / "b.psdb", range(6)).read_bytes()


def test_only_one_builder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.psdb"
    with start(path) as builder:
        with pytest.raises(DatabaseBusyError, match="another process"):
            start(path)
        builder.add(*make(1))
        with start(tmp_path / "b.psdb") as neighbour:
            neighbour.finish()
    start(path).abandon()
    assert names(tmp_path) == {"b.psdb"}


def test_closed_builders_and_databases_say_so(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", range(1))
    builder = start(path)
    builder.close()
    builder.close()
    for call in (lambda: builder.add(*make(1)), builder.finish):
        with pytest.raises(InvalidArgumentError, match="closed"):
            call()
    database = Psdb.open(path)
    database.close()
    database.close()
    with pytest.raises(InvalidArgumentError, match="closed"):
        list(database.groups())


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        Psdb.open(tmp_path / "a.psdb")
    with pytest.raises(CacheCorruptError):
        Psdb.open(tmp_path)
    with pytest.raises(NotFoundError):
        start(tmp_path / "none" / "a.psdb")


def test_several_threads_read_at_once(tmp_path: Path) -> None:
    numbers = range(40)
    failures: list[str] = []
    with Psdb.open(build(tmp_path / "a.psdb", numbers)) as database:

        def read(seed: int) -> None:
            source = random.Random(seed)
            for _ in range(500):
                value = source.choice(make_all)
                if database.find(value.key, value.type) != value.data:
                    failures.append(value.key.hex())

        make_all = [value for number in numbers for value in make(number)[1]]
        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_a_reader_keeps_its_file_while_a_new_one_takes_its_place(tmp_path: Path) -> None:
    path = build(tmp_path / "a.psdb", range(3))
    with Psdb.open(path) as old:
        build(path, range(6))
        assert old.find(value_key(1)) == make(1)[1][0].data
        assert not old.exists(value_key(5))
        with Psdb.open(path) as new:
            assert new.exists(value_key(5))
            assert new.index_checksum != old.index_checksum


CHILD = """
import os, resource, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from psdb_support import APPLICATION, build, compiler, make, object_key
from shaderkiln.databases.psdb import DatabaseWriteError, Psdb, PsdbBuilder
from shaderkiln.errors import AccessDeniedError
path = Path(sys.argv[1])
"""
PATHS = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src")]


def run_child(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CHILD.format(paths=PATHS) + code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = build(folder / "a.psdb", range(2))
    folder.chmod(0o555)
    code = """
if os.getuid() == 0:
    os.setegid(65534); os.seteuid(65534)
with PsdbBuilder(path, compiler(), APPLICATION) as builder:
    assert builder.has_group(object_key(1), 1)
    try:
        builder.add(*make(5))
    except AccessDeniedError as error:
        print("refused:", error)
    builder.finish()
try:
    PsdbBuilder(path.with_name("b.psdb"), compiler(), APPLICATION)
except AccessDeniedError as error:
    print("refused:", error)
"""
    for parent in [tmp_path, *tmp_path.parents]:
        if parent.owner() == Path(tmp_path).owner() and os.getuid() == 0 and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    result = run_child(code, path)
    folder.chmod(0o755)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("cannot be written to") == 2
    assert names(folder) == {"a.psdb"}


def test_a_full_disk_gives_a_clear_error_and_leaves_the_old_file(tmp_path: Path) -> None:
    """A file size limit stands for the full disk: at every size the write breaks off somewhere else."""
    path = build(tmp_path / "a.psdb", range(10))
    before = path.read_bytes()
    code = """
resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["LIMIT"]), -1))
try:
    with PsdbBuilder(path, compiler(), APPLICATION) as builder:
        for number in range(100):
            builder.add(*make(number))
            if number % 10 == 9:
                builder.commit()
        builder.finish()
except DatabaseWriteError as error:
    print("refused:", error)
    with Psdb.open(path) as database:
        assert not list(database.verify())
"""
    refused = 0
    for limit in (1, 5_000, 100_000, 300_000, 450_000, 600_000):
        os.environ["LIMIT"] = str(limit)
        result = run_child(code, path)
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith("refused: "), limit
        refused += "cannot be written" in result.stdout
        assert path.read_bytes() == before
    assert refused == 6
    assert ".finishing" not in "".join(names(tmp_path))
    # With room again, what was kept is taken up.
    assert build(path, range(100)).read_bytes() == build(tmp_path / "b.psdb", range(100)).read_bytes()


def test_a_file_system_without_space(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = os.getuid() == 0 and not subprocess.call(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)], stderr=subprocess.DEVNULL
    )
    if not mounted:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        path = build(folder / "a.psdb", range(10))
        before = path.read_bytes()
        with pytest.raises(DatabaseWriteError, match="no space left"), start(path) as builder:
            for number in range(200):
                builder.add(*make(number))
                builder.commit()
            builder.finish()
        assert path.read_bytes() == before
        builder = start(path)
        builder.abandon()
        assert names(folder) == {"a.psdb"}
    finally:
        subprocess.call(["umount", str(folder)])


def test_want_of_memory_is_no_damage(tmp_path: Path) -> None:
    with start(tmp_path / "a.psdb") as builder:
        builder.add(*make(1))
        builder.commit()
        key = ValueKey(bytes(32))
        group = Group(object_key(2), 1, (key,), "compute", "large")
        apsw.hard_heap_limit(apsw.memory_used() + (1 << 20))
        try:
            with pytest.raises(DatabaseWriteError, match="cannot be written: "):
                builder.add(group, [Value(key, ValueType.OBJECT_CODE, bytes(4 << 20))])
        finally:
            apsw.hard_heap_limit(0)
        builder.add(group, [Value(key, ValueType.OBJECT_CODE, bytes(4 << 20))])
        builder.finish()
    with Psdb.open(tmp_path / "a.psdb") as database:
        assert len(database.find(key)) == 4 << 20
        assert [group.object_key for group in database.groups()] == sorted([object_key(1), object_key(2)])


def test_memory_does_not_grow_with_what_is_stored(tmp_path: Path) -> None:
    code = """
from shaderkiln.keys import Group, Value, ValueKey, ValueType
def fill(builder, numbers):
    for number in numbers:
        key = ValueKey(object_key(number))
        builder.add(Group(object_key(number), 1, (key,), "compute", "n"), [Value(key, ValueType.OBJECT_CODE, key * 8)])
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with PsdbBuilder(path, compiler(), APPLICATION) as builder:
    fill(builder, range(3000))
    builder.finish()
with PsdbBuilder(path, compiler(), APPLICATION) as builder:
    fill(builder, range(4000))
    start = peak()
    fill(builder, range(16000))
    assert sum(1 for _ in builder.group_keys()) == 16000
    print(peak() - start)
"""
    result = run_child(code, tmp_path / "a.psdb")
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 4096  # KiB; keys alone of 12,000 groups in a set would take 1.5 MB, groups and values 20 MB


def test_access_denied_for_an_unreadable_file(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root reads everything")
    path = build(tmp_path / "a.psdb", range(1))
    path.chmod(0)
    with pytest.raises(AccessDeniedError):
        Psdb.open(path)


def test_replace_makes_a_damaged_database_anew(tmp_path: Path) -> None:
    path = build(tmp_path / "game.psdb", range(3))
    group, values = make(1)
    data = bytearray(path.read_bytes())
    data[data.index(values[0].data)] ^= 1
    path.write_bytes(data)
    with start(path) as builder:
        assert builder.has_group(group.object_key, group.version)
    with PsdbBuilder(path, compiler(), APPLICATION, replace=True) as builder:
        assert not builder.has_group(group.object_key, group.version)
        builder.add(group, values)
        builder.finish()
    with Psdb.open(path) as database:
        assert database.find(values[0].key) == values[0].data


@pytest.mark.parametrize("name", ["a.psdb.finishing", "a.psdb.lock"])
def test_a_folder_in_the_place_of_a_file_beside_is_an_output_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(DatabaseWriteError, match=name):
        PsdbBuilder(tmp_path / "a.psdb", compiler(), APPLICATION)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_healing_makes_only_what_is_damaged_again(tmp_path: Path) -> None:
    path = build(tmp_path / "game.psdb", range(12))
    whole = path.read_bytes()
    group, values = make(3)
    data = bytearray(whole)
    data[data.index(values[0].data)] ^= 1
    path.write_bytes(data)
    with PsdbBuilder(path, compiler(), APPLICATION, heal=True) as builder:
        # Values with equal bytes share one payload, and its damage.
        damaged = {value.key for n in range(12) for value in make(n)[1] if value.data == values[0].data}
        assert {damage.key for damage in builder.damage} == damaged
        missing = [n for n in range(12) if not builder.has_group(make(n)[0].object_key, make(n)[0].version)]
        assert missing == [n for n in range(12) if damaged & set(make(n)[0].value_keys)]
        for number in missing:
            builder.add(*make(number))
        assert builder.has_group(group.object_key, group.version)
        builder.finish()
    assert path.read_bytes() == whole


def test_damage_that_nothing_was_compiled_for_is_dropped_not_carried_over(tmp_path: Path) -> None:
    path = build(tmp_path / "game.psdb", range(12))
    _, values = make(3)
    data = bytearray(path.read_bytes())
    data[data.index(values[0].data)] ^= 1
    path.write_bytes(data)
    with PsdbBuilder(path, compiler(), APPLICATION, heal=True) as builder:
        builder.add(*make(40))
        builder.finish()
    with Psdb.open(path) as database:
        assert not list(database.verify())
        assert not database.exists(values[0].key)
        assert database.group_or_none(make(40)[0].object_key, make(40)[0].version) is not None


def test_a_finished_file_holds_the_bytes_of_a_value_once(tmp_path: Path) -> None:
    path = build(tmp_path / "game.psdb", range(40))
    data = path.read_bytes()
    for number in range(40):
        for value in make(number)[1]:
            if 300 < len(value.data) < 2000:
                assert data.count(value.data) == 1
