"""Every kind of session, and PSDB files in every form, against the model of the test kit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from session_support import APPLICATION, IDENTIFIER, Components, build, compiler, environment

from shaderkiln.sessions import (
    CacheFileDesc,
    DiskSessionDesc,
    FileSessionDesc,
    MemorySessionDesc,
    RegisteredSessionDesc,
    SessionDesc1,
    SessionFileFlags,
    ShaderCacheSession,
    create_shader_cache_session1,
)
from shaderkiln.testing.other_process import OtherProcess
from shaderkiln.testing.sessions import KEYS, SessionHarness, session_machine

pytestmark = pytest.mark.spec("EP-15", "EP-16", "EP-17", "EP-18", "EP-19", "EP-20", "EP-21", "EP-23", "EP-24", "EP-25", "EP-26")
STORED = {KEYS[0]: {0: b"object code", 1: b"metadata"}, KEYS[1]: {1: b"metadata"}, KEYS[3]: {0: bytes(5000), 2: b"debug"}}
VISIBLE = {key: {type: data for type, data in values.items() if type < 2} for key, values in STORED.items()}

_process: list[OtherProcess] = []


@pytest.fixture(autouse=True, scope="module")
def _other_process() -> Iterator[None]:
    yield
    while _process:
        _process.pop().end()


class Harness(SessionHarness):
    desc: SessionDesc1

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "a.psdb"
        self.environment = environment()
        self.prepare()

    def prepare(self) -> None:
        pass

    def open(self) -> ShaderCacheSession:
        return create_shader_cache_session1(self.desc, self.environment)

    def other_process(self) -> OtherProcess | None:
        if isinstance(self.desc, MemorySessionDesc | RegisteredSessionDesc):
            return None
        if not _process:
            _process.append(OtherProcess())
        _process[0].open(self.desc, APPLICATION, compiler())
        return _process[0]

    def close(self) -> None:
        self.folder.cleanup()


class Memory(Harness):
    maximum_bytes, maximum_entries = 250, 4

    def prepare(self) -> None:
        self.desc = MemorySessionDesc(IDENTIFIER, maximum_in_memory_cache_size_bytes=250, maximum_in_memory_cache_entries=4)


class Disk(Harness):
    maximum_bytes = 400

    def prepare(self) -> None:
        self.desc = DiskSessionDesc(
            IDENTIFIER,
            directory=self.folder.name,
            maximum_in_memory_cache_size_bytes=150,
            maximum_in_memory_cache_entries=3,
            maximum_value_file_size_bytes=400,
        )


class File(Harness):
    def prepare(self) -> None:
        self.desc = FileSessionDesc(self.path)


class FullFile(Harness):
    maximum_bytes = 300

    def prepare(self) -> None:
        self.desc = FileSessionDesc(CacheFileDesc(self.path, 300))


class TrimmedFile(Harness):
    maximum_bytes, eviction_order = 300, "last-used"

    def prepare(self) -> None:
        self.desc = FileSessionDesc(CacheFileDesc(self.path, 300), SessionFileFlags.TRIM_WHEN_FULL)


class WritableDeliveredFile(Harness):
    contents = VISIBLE

    def prepare(self) -> None:
        build(self.path, VISIBLE)
        self.desc = FileSessionDesc(self.path)


class ReadOnlyFile(Harness):
    contents, clears_at_the_end = VISIBLE, False

    def prepare(self) -> None:
        build(self.path, STORED)
        self.before = self.path.read_bytes()
        self.desc = FileSessionDesc(self.path, SessionFileFlags.READ_ONLY)

    def close(self) -> None:
        assert self.path.read_bytes() == self.before
        super().close()


class ReadOnlyLiveFile(ReadOnlyFile):
    def prepare(self) -> None:
        build(self.path, VISIBLE)
        create_shader_cache_session1(FileSessionDesc(self.path), self.environment).close()
        self.before = self.path.read_bytes()
        self.desc = FileSessionDesc(self.path, SessionFileFlags.READ_ONLY)


class Registered(ReadOnlyFile):
    def prepare(self) -> None:
        super().prepare()
        self.desc = RegisteredSessionDesc("DLC1")
        self.environment = environment(resolver=Components(DLC1=self.path))


def _case(harness: type[Harness], examples: int) -> type:
    case = session_machine(harness).TestCase
    case.settings = settings(max_examples=examples, stateful_step_count=30, deadline=None)
    return case


TestMemory = pytest.mark.spec("EP-27", "EP-28", "EP-30", "EP-45")(_case(Memory, 80))
TestDisk = pytest.mark.spec("EP-28", "EP-31", "EP-45")(_case(Disk, 40))
TestFile = pytest.mark.spec("EP-33", "EP-45")(_case(File, 30))
TestFullFile = pytest.mark.spec("EP-28")(_case(FullFile, 30))
TestTrimmedFile = pytest.mark.spec("EP-27", "EP-36")(_case(TrimmedFile, 60))
TestWritableDeliveredFile = _case(WritableDeliveredFile, 20)
TestReadOnlyFile = pytest.mark.spec("EP-34")(_case(ReadOnlyFile, 20))
TestReadOnlyLiveFile = pytest.mark.spec("EP-34")(_case(ReadOnlyLiveFile, 20))
TestRegistered = pytest.mark.spec("EP-44")(_case(Registered, 20))
