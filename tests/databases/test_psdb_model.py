"""The builder and reader against a dictionary, in any order of operations."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from psdb_support import APPLICATION, build, compiler, make, object_key

from shaderkiln.databases.psdb import Poison, Psdb, PsdbBuilder
from shaderkiln.endings import Ending
from shaderkiln.errors import NotFoundError
from shaderkiln.keys import ValueType

NUMBERS = st.integers(0, 11)


class Builder(RuleBasedStateMachine):
    """Groups: ``present`` in the builder, ``committed`` and so proof against a kill, ``finished`` in the finished file."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "a.psdb"
        self.builder: PsdbBuilder | None = None
        self.finished: set[int] | None = None
        self.finished_poison: dict[int, Poison] = {}
        self.committed: set[int] = set()
        self.committed_poison: dict[int, Poison] = {}
        self.present: set[int] = set()
        self.poison: dict[int, Poison] = {}

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            if self.builder is not None:
                self.builder.close()
            self.folder.cleanup()

    def open(self) -> PsdbBuilder:
        if self.builder is None:
            self.builder = PsdbBuilder(self.path, compiler(), APPLICATION)
            self.present = set(self.committed)
            self.poison = dict(self.committed_poison)
            self.builder_knows()
        return self.builder

    @rule(number=NUMBERS)
    def add(self, number: int) -> None:
        builder = self.open()
        assert builder.add(*make(number)) == ()
        self.present.add(number)

    @rule(number=NUMBERS, signal=st.integers(0, 31), outcome=st.sampled_from(Ending))
    def add_poison(self, number: int, signal: int, outcome: Ending) -> None:
        builder = self.open()
        self.poison[number] = Poison(object_key(number), "compute", str(number), outcome, signal, "build", "détail")
        builder.add_poison(self.poison[number])

    @rule(number=NUMBERS)
    def remove_poison(self, number: int) -> None:
        builder = self.open()
        assert builder.remove_poison(object_key(number)) == (number in self.poison)
        self.poison.pop(number, None)

    @rule()
    def commit(self) -> None:
        self.open().commit()
        self.committed, self.committed_poison = set(self.present), dict(self.poison)

    @rule()
    def close(self) -> None:
        self.commit()
        self.builder.close()
        self.builder = None

    @rule()
    def kill(self) -> None:
        """What the system does with a dead process: nothing is committed, the lock is freed."""
        builder = self.open()
        if builder._connection is not None and builder._connection.in_transaction:
            builder._connection.execute("ROLLBACK")
        builder._disconnect()
        builder._closed = True
        builder._lock.release()
        self.builder = None

    @rule()
    def abandon(self) -> None:
        self.open().abandon()
        self.builder = None
        self.committed, self.committed_poison = set(self.finished or ()), dict(self.finished_poison)

    @rule()
    def finish(self) -> None:
        self.open().finish()
        self.builder = None
        self.finished, self.finished_poison = set(self.present), dict(self.poison)
        self.committed, self.committed_poison = set(self.present), dict(self.poison)
        assert [entry.name for entry in self.path.parent.iterdir()] == ["a.psdb"]
        if not self.poison:
            other = build(self.path.with_name("b.psdb"), self.present)
            assert other.read_bytes() == self.path.read_bytes()
            other.unlink()

    @invariant()
    def builder_knows(self) -> None:
        if getattr(self, "builder", None) is None:
            return
        for number in range(12):
            assert self.builder.has_group(object_key(number), 1) == (number in self.present)
            assert self.builder.poisoned(object_key(number)) == self.poison.get(number)
        assert [key for key, _ in self.builder.group_keys()] == sorted(object_key(number) for number in self.present)

    @rule()
    def read(self) -> None:
        if self.finished is None:
            try:
                Psdb.open(self.path)
                raise AssertionError("there is no finished file yet")
            except NotFoundError:
                return
        with Psdb.open(self.path) as database:
            groups = sorted((make(number)[0] for number in self.finished), key=lambda group: group.object_key)
            assert list(database.groups()) == groups
            values = {(value.key, value.type): value.data for number in self.finished for value in make(number)[1]}
            assert {(value.key, value.type): value.size for value in database.values()} == {
                name: len(data) for name, data in values.items()
            }
            for (key, type), data in values.items():
                assert database.find(key, type) == data
                assert type in database.types(key)
            for number in set(range(12)) - self.finished:
                assert ValueType.METADATA not in database.types(make(number)[0].value_keys[0])
            poison = sorted(self.finished_poison.values(), key=lambda entry: entry.object_key)
            assert list(database.poison()) == poison
            assert list(database.verify()) == []


TestBuilder = Builder.TestCase
TestBuilder.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
