"""Stores behind one interface: those of this package and a foreign one, each against the model of the test kit."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from psdb_support import APPLICATION, compiler

from shaderkiln.databases.psdb import Psdb, PsdbBuilder
from shaderkiln.databases.psdb_live import LivePsdb
from shaderkiln.databases.psdb_records import Expectation
from shaderkiln.databases.store import Store, Usage, WritableStore
from shaderkiln.errors import AlreadyExistsError, NotFoundError
from shaderkiln.keys import Group, ObjectKey, Value, ValueKey, ValueType
from shaderkiln.testing.stores import CONTENTS, StoreHarness, store_machine

FEW = settings(max_examples=20, stateful_step_count=15, deadline=None)
WITHOUT_SHRINKING = settings(
    FEW, max_examples=500, database=None, derandomize=True, report_multiple_bugs=False, phases=[Phase.generate]
)


class InFolder(StoreHarness):
    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "store.psdb"

    def close(self) -> None:
        self.folder.cleanup()


class Finished(InFolder):
    contents = CONTENTS

    def __init__(self) -> None:
        super().__init__()
        with PsdbBuilder(self.path, compiler(), APPLICATION) as builder:
            values = [Value(ValueKey(k), ValueType(t), data) for k, types in CONTENTS.items() for t, data in types.items()]
            keys = tuple(map(ValueKey, CONTENTS))
            builder.add(Group(ObjectKey(bytes(32)), 1, keys, "compute", "all"), values)
            builder.finish()

    def open(self) -> Store:
        return Psdb.open(self.path)


class Live(InFolder):
    def open(self) -> Store:
        return LivePsdb.open(self.path, Expectation(APPLICATION, compiler()))


class DictStore(WritableStore):
    """Somebody else's: a dictionary that outlives it."""

    kept: ClassVar[dict[bytes, dict[int, bytes]]] = {}

    def find(self, key: bytes, type: int = 0) -> bytes:
        try:
            return self.kept[key][type]
        except KeyError:
            raise NotFoundError(key.hex()) from None

    def sizes(self, key: bytes) -> dict[int, int]:
        return {type: len(data) for type, data in sorted(self.kept.get(key, {}).items())}

    def usage(self) -> Usage:
        return Usage(sum(len(data) for values in self.kept.values() for data in values.values()), 0)

    def store(self, key: bytes, values: Mapping[int, bytes], *, overwrite: bool = False, keep: bool = False) -> None:
        has = self.kept.get(key, {})
        if not overwrite and not has.keys().isdisjoint(values):
            raise AlreadyExistsError(key.hex())
        self.kept[key] = has | dict(values)

    def clear(self) -> None:
        self.kept.clear()

    def close(self) -> None:
        pass


class Foreign(StoreHarness):
    kind: type[DictStore] = DictStore

    def __init__(self) -> None:
        DictStore.kept.clear()

    def open(self) -> Store:
        return self.kind()


@pytest.mark.parametrize("harness", [Finished, Live, Foreign])
def test_a_store_does_what_the_model_does(harness: type[StoreHarness]) -> None:
    run_state_machine_as_test(store_machine(harness), settings=FEW)


class LosesOverwrites(DictStore):
    def store(self, key: bytes, values: Mapping[int, bytes], *, overwrite: bool = False, keep: bool = False) -> None:
        if not (overwrite and key in self.kept):
            super().store(key, values)


class ForgetsOtherTypes(DictStore):
    def store(self, key: bytes, values: Mapping[int, bytes], *, overwrite: bool = False, keep: bool = False) -> None:
        super().store(key, values, overwrite=overwrite)
        self.kept[key] = dict(values)


class CutsZeros(DictStore):
    def find(self, key: bytes, type: int = 0) -> bytes:
        return super().find(key.rstrip(b"\0") or key, type)


class NeverClears(DictStore):
    def clear(self) -> None:
        pass


class StoresHalf(DictStore):
    def store(self, key: bytes, values: Mapping[int, bytes], *, overwrite: bool = False, keep: bool = False) -> None:
        for type, data in values.items():
            super().store(key, {type: data}, overwrite=overwrite)


@pytest.mark.parametrize("wrong", [LosesOverwrites, ForgetsOtherTypes, CutsZeros, NeverClears, StoresHalf])
def test_a_wrong_store_is_caught(wrong: type[DictStore]) -> None:
    harness = type("Wrong", (Foreign,), {"kind": wrong})
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            store_machine(harness),
            settings=WITHOUT_SHRINKING,
        )


def test_without_hypothesis_the_kit_says_what_to_install() -> None:
    code = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "hypothesis":
            raise ModuleNotFoundError("No module named 'hypothesis'")
sys.meta_path.insert(0, Without())
import shaderkiln.sessions, shaderkiln.databases.store, shaderkiln.api
try:
    import shaderkiln.testing.stores
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "shaderkiln.testing needs hypothesis: pip install 'shaderkiln[testing]'\n"
