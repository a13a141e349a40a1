"""A state machine that compares any shader cache session with a plain model in memory.

machine = session_machine(MyHarness)
TestMySession = machine.TestCase
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ..keys import ValueType
from ..sessions import ShaderCacheSession, StoreFlags, ValueRequest
from .other_process import OtherProcess
from .stores import KEYS, outcome


class SessionHarness(ABC):
    """How the machine gets at one cache. A new one, with an empty cache, is made for each example."""

    contents: Mapping[bytes, Mapping[int, bytes]] = {}
    """What a cache that cannot be written to has in it."""
    maximum_bytes: int = 0
    """Limit of the bytes of all values; 0 for none."""
    maximum_entries: int = 0
    eviction_order: Literal["first-stored", "last-used"] = "first-stored"
    clears_at_the_end: bool = True
    """Whether ``set_delete_on_destroy`` has an effect."""

    @abstractmethod
    def open(self) -> ShaderCacheSession:
        """Another session on the same cache."""

    def other_process(self) -> OtherProcess | None:
        """A process with a session on the same cache, None where that makes no sense."""
        return None

    def close(self) -> None:  # noqa: B027
        """The example is over; every session is closed."""


class SessionModel:
    """What a cache should hold, as plain dictionaries."""

    def __init__(self, harness: SessionHarness) -> None:
        self.harness = harness
        self.values: dict[bytes, dict[int, bytes]] = {key: dict(values) for key, values in harness.contents.items()}
        self.kept: dict[bytes, set[int]] = {}
        self.order: list[bytes] = []
        """Keys, the one that is evicted first at the beginning."""

    def size(self, *without: bytes) -> int:
        return sum(len(data) for key, values in self.values.items() if key not in without for data in values.values())

    def used(self, key: bytes) -> None:
        """``key`` was read."""
        if self.harness.eviction_order == "last-used" and key in self.order:
            self.order.remove(key)
            self.order.append(key)

    def clear(self) -> None:
        self.values.clear()
        self.kept.clear()
        self.order.clear()

    def store(self, key: bytes, values: Mapping[int, bytes], flags: StoreFlags, evicts: bool) -> str | None:
        """The code of the error to expect. What has to be evicted is for ``forget`` to say."""
        present = self.values.get(key, {})
        if not flags & StoreFlags.OVERWRITE and present.keys() & values.keys():
            return "DXGI_ERROR_ALREADY_EXISTS"
        harness = self.harness
        after = sum(map(len, {**present, **values}.values()))
        fixed = [key, *(other for other in self.values if not evicts or other in self.kept)]
        evictable = self.size(*fixed)
        bytes_left = self.size(key) - evictable + after
        entries_left = len(set(fixed))
        if (harness.maximum_bytes and bytes_left > harness.maximum_bytes) or (
            harness.maximum_entries and entries_left > harness.maximum_entries
        ):
            return "DXGI_ERROR_CACHE_FULL"
        self.values[key] = {**present, **values}
        before = self.kept.get(key, set())
        kept = before | values.keys() if flags & StoreFlags.DO_NOT_EVICT else before - values.keys()
        self.kept.pop(key, None)
        if kept:
            self.kept[key] = kept
        is_moved = harness.eviction_order == "last-used" or (before and not kept)
        if key not in self.order or is_moved:
            with suppress(ValueError):
                self.order.remove(key)
            self.order.append(key)
        return None

    def full(self) -> bool:
        harness = self.harness
        return bool(
            (harness.maximum_bytes and self.size() > harness.maximum_bytes)
            or (harness.maximum_entries and len(self.values) > harness.maximum_entries)
        )

    def forget(self, gone: set[bytes], stored: bytes, *, in_order: bool) -> None:
        """These keys were evicted by a store of ``stored``."""
        assert stored not in gone
        assert not gone & self.kept.keys(), "an entry was evicted in spite of DO_NOT_EVICT"
        candidates = [key for key in self.order if key != stored and key not in self.kept]
        if in_order:
            assert set(candidates[: len(gone)]) == gone, "not the oldest entries were evicted"
        if gone:
            assert self.full(), "entries were evicted without need"
        for key in gone:
            del self.values[key]
            self.order.remove(key)
        assert not self.full(), "the cache is larger than its limits"


_SIZES = st.sampled_from([0, 1, 17, 60, 60, 101, 9000])
_STORED = st.tuples(st.sampled_from([0, 0, 0, 1, 1, 2, 7]), _SIZES, st.binary(max_size=2))

_SOUND = st.dictionaries(
    st.sampled_from([0, 1]),
    st.builds(lambda byte, size: byte * size, st.binary(min_size=1, max_size=1), st.integers(1, 110)),
    min_size=1,
)

_BUFFERS = st.sampled_from(["none", "empty", "small", "exact", "large"])
_ASKED = st.lists(
    st.tuples(st.sampled_from([ValueType.OBJECT_CODE, ValueType.METADATA]), _BUFFERS),
    min_size=1,
    max_size=2,
    unique_by=lambda one: one[0],
)
_ASKED_WRONGLY = st.lists(st.tuples(st.sampled_from(ValueType), _BUFFERS), max_size=3)


def session_machine(make: Callable[[], SessionHarness]) -> type[RuleBasedStateMachine]:
    """A state machine for the sessions of the harness that ``make`` makes."""

    class SessionMachine(RuleBasedStateMachine):
        @initialize(alone=st.booleans())
        def begin(self, alone: bool) -> None:
            self.alone = alone
            self.harness = make()
            self.model = SessionModel(self.harness)
            self.sessions = [self.harness.open()]
            self.other: OtherProcess | None = None
            # Who used what last is known exactly only while one session has the cache.
            self.in_order = True

        def teardown(self) -> None:
            for session in getattr(self, "sessions", ()):
                session.close()
            if getattr(self, "other", None) is not None:
                self.other.close()  # type: ignore[union-attr]
            if hasattr(self, "harness"):
                self.harness.close()

        def session(self, number: int) -> ShaderCacheSession:
            return self.sessions[number % len(self.sessions)]

        @rule(key=st.sampled_from(KEYS), number=st.integers(0, 2))
        def find(self, key: bytes, number: int) -> None:
            expected = self.model.values.get(key, {}).get(0)
            code, found = outcome(lambda: self.session(number).find_value(key))
            assert (code, found) == ((None, expected) if expected is not None else ("DXGI_ERROR_NOT_FOUND", None))
            if expected is not None:
                self.model.used(key)

        @rule(
            key=st.sampled_from(KEYS),
            number=st.integers(0, 2),
            asked=st.one_of(_ASKED, _ASKED, _ASKED_WRONGLY),
            callback=st.sampled_from(["none", "gives", "refuses", "refuses-second", "too-small", "uses-the-session"]),
        )
        def find1(self, key: bytes, number: int, asked: list[tuple[ValueType, str]], callback: str) -> None:
            session = self.session(number)
            values = self.model.values.get(key, {})
            requests, buffers = [], []
            for type, kind in asked:
                size = len(values.get(type, b"1234"))
                length = {"none": None, "empty": 0, "small": size // 2, "exact": size, "large": size + 3}[kind]
                buffer = None if length is None else bytearray(b"?" * length)
                buffers.append(buffer)
                requests.append(ValueRequest(type, buffer))
            given: list[bytearray] = []

            def allocate(size: int, context: Any) -> bytearray | None:
                assert context == "context"
                if callback == "refuses" or (callback == "refuses-second" and given):
                    return None
                if callback == "uses-the-session":
                    assert session.exists(key)
                given.append(bytearray(size - (callback == "too-small")))
                return given[-1]

            code, _ = outcome(lambda: session.find_value1(key, requests, allocate if callback != "none" else None, "context"))
            types = [type for type, _ in asked]
            if any(type > 1 for type in types) or len(set(types)) != len(types):
                assert code == "E_INVALIDARG"
                return
            if not types:
                assert code == (None if values else "DXGI_ERROR_NOT_FOUND")
                return
            assert [request.size for request in requests] == [len(values.get(type, b"")) for type in types]
            if not any(type in values for type in types):
                assert code == "DXGI_ERROR_NOT_FOUND"
                return
            if callback != "none" or any(buffer is not None for buffer in buffers):
                self.model.used(key)
            self.check_answers(values, list(zip(requests, buffers, strict=True)), callback, given, code)

        def check_answers(
            self,
            values: dict[int, bytes],
            asked: list[tuple[ValueRequest, bytearray | None]],
            callback: str,
            given: list[bytearray],
            code: str | None,
        ) -> None:
            expected_code = None
            allocations = iter(given)
            for request, buffer in asked:
                data = values.get(request.type)
                if data is None:
                    assert request.buffer is buffer
                    continue
                if callback != "none" and not buffer:
                    allocation = next(allocations, None)
                    if allocation is None or len(allocation) < len(data):
                        # Here it ended; what was given before has its value, what comes after was not asked for.
                        assert code == "E_OUTOFMEMORY"
                        assert request.buffer is (buffer if allocation is None else allocation)
                        assert next(allocations, None) is None
                        return
                    assert request.buffer is allocation and bytes(allocation) == data
                elif buffer is not None:
                    assert request.buffer is buffer
                    if len(buffer) < len(data):
                        expected_code = "DXGI_ERROR_MORE_DATA"
                        assert set(buffer) <= {ord("?")}
                    else:
                        assert buffer[: len(data)] == data and set(buffer[len(data) :]) <= {ord("?")}
            assert next(allocations, None) is None
            assert code == expected_code

        @rule(
            stores=st.lists(st.tuples(st.sampled_from(KEYS), _SOUND, st.sampled_from([0, 1, 1, 2, 3])), min_size=1, max_size=8),
            number=st.integers(0, 2),
        )
        def store_some(self, stores: list[tuple[bytes, dict[int, bytes], int]], number: int) -> None:
            for key, values, flags in stores:
                self.store(key, number, list(values.items()), flags)

        @rule(
            key=st.sampled_from(KEYS),
            number=st.integers(0, 2),
            values=st.lists(_STORED, max_size=3),
            flags=st.sampled_from([0, 0, 0, 1, 1, 1, 2, 3, 4, 9]),
        )
        def store_any(self, key: bytes, number: int, values: list[tuple[int, int, bytes]], flags: int) -> None:
            self.store(key, number, [(type, (text * size + bytes(size))[:size]) for type, size, text in values], flags)

        def store(self, key: bytes, number: int, pairs: list[Any], flags: int) -> None:
            session = self.session(number)
            code, _ = outcome(lambda: session.store_value1(key, pairs, StoreFlags(flags)))
            types = [type for type, _ in pairs]
            if not pairs or flags > 3 or max(types) > 1 or len(set(types)) != len(types) or not all(data for _, data in pairs):
                assert code == "E_INVALIDARG"
            elif session.read_only:
                assert code == "E_ACCESSDENIED"
            else:
                effective = StoreFlags(flags)
                if not session.supports_overwrite:
                    effective &= ~StoreFlags.OVERWRITE
                if not session.supports_do_not_evict:
                    effective &= ~StoreFlags.DO_NOT_EVICT
                assert code == self.model.store(key, dict(pairs), effective, session.evicts)
                if code is None:
                    self.see_evictions(key)

        def see_evictions(self, stored: bytes) -> None:
            gone = {key for key in self.model.values if not self.sessions[0].exists(key)}
            self.model.forget(gone, stored, in_order=self.in_order)

        @rule(key=st.sampled_from([b"", "text", None, 3, bytearray(b"a"), bytes(65537)]), number=st.integers(0, 2))
        def unfit_key(self, key: Any, number: int) -> None:
            session = self.session(number)
            for call in (
                lambda: session.find_value(key),
                lambda: session.find_value1(key),
                lambda: session.exists(key),
                lambda: session.store_value(key, b"value"),
            ):
                assert outcome(call)[0] == "E_INVALIDARG"

        @precondition(lambda self: len(self.sessions) < 3 and not self.alone)
        @rule()
        def open_another(self) -> None:
            self.sessions.append(self.harness.open())
            self.in_order = self.in_order and self.harness.eviction_order == "first-stored"

        @precondition(lambda self: len(self.sessions) > 1)
        @rule(number=st.integers(0, 2))
        def close_one(self, number: int) -> None:
            session = self.sessions.pop(number % len(self.sessions))
            with session.retain() as retained:
                session.close()
                session.close()
                assert not retained.closed
                assert retained.exists(KEYS[0]) == (KEYS[0] in self.model.values)
            assert session.closed
            assert outcome(lambda: session.find_value(KEYS[0]))[0] == "E_INVALIDARG"

        @rule(delete=st.booleans())
        def reopen(self, delete: bool) -> None:
            if self.other is not None:
                self.other.close()
                self.other = None
            if delete:
                self.sessions[-1].set_delete_on_destroy()
            persistent = self.sessions[0].persistent
            for session in self.sessions:
                session.close()
            self.sessions = [self.harness.open()]
            if not persistent or (delete and self.harness.clears_at_the_end and not self.sessions[0].read_only):
                self.model.clear()

        @rule(key=st.sampled_from(KEYS))
        def find_elsewhere(self, key: bytes) -> None:
            other = self.elsewhere()
            if other is not None:
                assert other.find(key) == self.model.values.get(key, {})

        @rule(
            key=st.sampled_from(KEYS),
            values=st.dictionaries(st.sampled_from([0, 1]), st.binary(min_size=1, max_size=80), min_size=1),
            flags=st.sampled_from([0, 1, 2, 3]),
        )
        def store_elsewhere(self, key: bytes, values: dict[int, bytes], flags: int) -> None:
            other = self.elsewhere()
            if other is not None and not self.sessions[0].read_only:
                code, _ = outcome(lambda: other.store(key, values, StoreFlags(flags)))
                assert code == self.model.store(key, values, StoreFlags(flags), self.sessions[0].evicts)
                if code is None:
                    self.see_evictions(key)

        def elsewhere(self) -> OtherProcess | None:
            if self.other is None and not self.alone:
                self.other = self.harness.other_process()
                if self.other is not None:
                    self.in_order = False
            return self.other

        @invariant()
        def holds_what_the_model_holds(self) -> None:
            if not hasattr(self, "sessions"):
                return
            session = self.sessions[-1]
            for key in KEYS:
                values = self.model.values.get(key, {})
                assert session.exists(key) == bool(values)
                requests = [ValueRequest(ValueType.METADATA), ValueRequest(ValueType.OBJECT_CODE)]
                code, _ = outcome(lambda key=key, requests=requests: session.find_value1(key, requests))  # type: ignore[misc]
                assert code == (None if values else "DXGI_ERROR_NOT_FOUND")
                assert [request.size for request in requests] == [len(values.get(1, b"")), len(values.get(0, b""))]
            used = getattr(session, "used_bytes", None)
            assert used is None or session.read_only or used == self.model.size()

    return SessionMachine
