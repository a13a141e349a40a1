"""A state machine that compares any store (``databases.store``) with a dictionary in memory.

machine = store_machine(MyHarness)
TestMyStore = machine.TestCase
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ..databases.store import Store, WritableStore
from ..errors import ShaderkilnError
from ..keys import ValueType

KEYS = (b"a", b"b", b"a\0", bytes(32), b"\xff" * 40, b"long" * 500)
CONTENTS: Mapping[bytes, Mapping[int, bytes]] = {
    b"a": {0: b"code", 1: b"metadata"},
    bytes(32): {0: b"\0"},
    b"long" * 500: {0: bytes(range(256)) * 40, 2: b"code"},
}
"""What a store that cannot be written to has in it, unless its harness says otherwise."""

_keys = st.sampled_from(KEYS)
_types = st.sampled_from([int(type) for type in ValueType])
_values = st.dictionaries(_types, st.binary(min_size=1, max_size=300), min_size=1)


class StoreHarness(ABC):
    """How the machine gets at one store. A new one is made for each example."""

    contents: Mapping[bytes, Mapping[int, bytes]] = {}
    """What the store has in it at the beginning."""

    @abstractmethod
    def open(self) -> Store:
        """The store, opened again on what was stored before; the one before is closed."""

    def close(self) -> None:  # noqa: B027
        """The example is over; the store is closed."""


def store_machine(make: Callable[[], StoreHarness]) -> type[RuleBasedStateMachine]:
    """The machine for what ``make`` gives. Limits and eviction are the session's to test (``testing.sessions``)."""

    class StoreMachine(RuleBasedStateMachine):
        store: Store
        harness: StoreHarness
        model: dict[bytes, dict[int, bytes]]

        @initialize()
        def begin(self) -> None:
            self.harness = make()
            self.model = {key: dict(values) for key, values in self.harness.contents.items()}
            self.store = self.harness.open()

        def writable(self) -> bool:
            return isinstance(self.store, WritableStore)

        @rule(key=_keys, type=_types)
        def find(self, key: bytes, type: int) -> None:
            expected = self.model.get(key, {}).get(type)
            assert outcome(lambda: self.store.find(key, type)) == (
                ("DXGI_ERROR_NOT_FOUND", None) if expected is None else (None, expected)
            )

        @rule(key=_keys, types=st.lists(_types, min_size=1, unique=True))
        def find_many(self, key: bytes, types: list[int]) -> None:
            has = self.model.get(key, {})
            assert tuple(self.store.find_many(key, types)) == tuple(has.get(type) for type in types)

        @precondition(writable)
        @rule(key=_keys, values=_values, overwrite=st.booleans(), keep=st.booleans())
        def put(self, key: bytes, values: dict[int, bytes], overwrite: bool, keep: bool) -> None:
            assert isinstance(self.store, WritableStore)
            store, has = self.store, self.model.get(key, {})
            refused = not overwrite and not has.keys().isdisjoint(values)
            code, _ = outcome(lambda: store.store(key, values, overwrite=overwrite, keep=keep))
            assert code == ("DXGI_ERROR_ALREADY_EXISTS" if refused else None)
            if not refused:
                self.model[key] = has | values

        @precondition(writable)
        @rule()
        def clear(self) -> None:
            assert isinstance(self.store, WritableStore)
            self.store.clear()
            self.model.clear()

        @rule()
        def open_again(self) -> None:
            self.store.close()
            self.store.close()
            self.store = self.harness.open()

        @invariant()
        def everything_is_there(self) -> None:
            if hasattr(self, "model"):
                for key in KEYS:
                    expected = sorted((type, len(data)) for type, data in self.model.get(key, {}).items())
                    assert list(self.store.sizes(key).items()) == expected
                    assert self.store.exists(key) is (key in self.model)

        def teardown(self) -> None:
            if hasattr(self, "store"):
                self.store.close()
                self.harness.close()

    return StoreMachine


def outcome(call: Callable[[], Any]) -> tuple[str | None, Any]:
    """The code of an error, and what was returned."""
    try:
        return None, call()
    except ShaderkilnError as error:
        return error.code, None
