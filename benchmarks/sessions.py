"""How fast cache sessions are beside the bare stores under them and, where they are installed, lmdb and diskcache.

    python benchmarks/sessions.py [--json] [--values N]

Microseconds per find of a present 8 KiB value, each copied once (``into`` rows: into a buffer of the caller), best of several
rounds; ratios are what to compare between machines.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from shaderkiln.databases.psdb import PsdbBuilder
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity
from shaderkiln.keys import Group, ObjectKey, Value, ValueKey, ValueType
from shaderkiln.sessions import (
    CacheFileDesc,
    DiskSessionDesc,
    FileSessionDesc,
    MemorySessionDesc,
    SessionEnvironment,
    SessionFileFlags,
    ShaderCacheSession,
    StoreFlags,
    ValueRequest,
    create_shader_cache_session1,
)

VALUE_SIZE = 8192
ROUNDS = 9
IDENTITY = CompilerIdentity("benchmark", 1, 1, 1, "none", 1, "none", 1, "none", 0, bytes(16), b"", "pipeline-cache", (), 64)
ENVIRONMENT = SessionEnvironment(ApplicationIdentity("benchmark"), IDENTITY)

Find = Callable[[bytes], object]


def key(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def value(number: int) -> bytes:
    return hashlib.shake_128(b"%d" % number).digest(VALUE_SIZE)


def once(find: Find, keys: list[bytes]) -> float:
    begin = time.perf_counter()
    for one in keys:
        find(one)
    return (time.perf_counter() - begin) / len(keys) * 1e6


def best(finds: dict[str, Find], keys: list[bytes]) -> dict[str, float]:
    """The least time of each, in rounds that take turns, so that a busy machine is busy for all of them."""
    times = {name: [once(find, keys)] for name, find in finds.items()}
    for _ in range(ROUNDS):
        for name, find in finds.items():
            times[name].append(once(find, keys))
    return {name: min(one) for name, one in times.items()}


def into_buffer(session: ShaderCacheSession) -> Find:
    buffer = bytearray(VALUE_SIZE)

    def find(one: bytes) -> None:
        session.find_value1(one, (ValueRequest(ValueType.OBJECT_CODE, buffer),))

    return find


def bare(path: Path, values: dict[bytes, bytes]) -> tuple[apsw.Connection, Find, Find]:
    """A table of keys and values in WAL mode: by SELECT, and by key → rowid in memory and one kept blob handle."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA mmap_size = 2147483648")
    connection.execute("CREATE TABLE v (id INTEGER PRIMARY KEY, key BLOB UNIQUE, data BLOB)")
    with connection:
        connection.executemany("INSERT INTO v (key, data) VALUES (?, ?)", values.items())
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    execute = connection.cursor().execute

    def select(one: bytes) -> Any:
        return execute("SELECT data FROM v WHERE key = ?", (one,)).fetchone()[0]  # type: ignore[index]

    rows: dict[Any, Any] = dict(connection.execute("SELECT key, id FROM v"))  # type: ignore[arg-type]
    blob = connection.blob_open("main", "v", "data", 1, False)

    def reopen(one: bytes) -> bytes:
        blob.reopen(rows[one])
        return blob.read()

    return connection, select, reopen


def finished(path: Path, values: dict[bytes, bytes]) -> None:
    with PsdbBuilder(path, IDENTITY, ENVIRONMENT.application or ApplicationIdentity()) as builder:
        for one, data in values.items():
            group = Group(ObjectKey(one), 1, (ValueKey(one),), "compute", "")
            builder.add(group, [Value(ValueKey(one), ValueType.OBJECT_CODE, data)])
        builder.finish()


def fill(session: ShaderCacheSession, values: dict[bytes, bytes]) -> float:
    begin = time.perf_counter()
    for one, data in values.items():
        session.store_value(one, data)
    return (time.perf_counter() - begin) / len(values) * 1e6


def measure(folder: Path, count: int) -> dict[str, float]:
    values = {key(number): value(number) for number in range(count)}
    keys = list(values)
    random.Random(0).shuffle(keys)
    size, identifier = 2 * count * VALUE_SIZE, uuid.uuid4()
    finished(folder / "finished.psdb", values)
    live = FileSessionDesc(CacheFileDesc(folder / "live.psdb"))
    sessions = {
        "memory": MemorySessionDesc(identifier, maximum_in_memory_cache_size_bytes=size, maximum_in_memory_cache_entries=count),
        "disk": DiskSessionDesc(identifier, directory=folder / "disk", maximum_value_file_size_bytes=size),
        "file": live,
        "file_read_only": FileSessionDesc(folder / "finished.psdb", SessionFileFlags.READ_ONLY),
    }
    opened = {name: create_shader_cache_session1(desc, ENVIRONMENT) for name, desc in sessions.items()}
    results = {f"store_{name}_us": fill(session, values) for name, session in opened.items() if not session.read_only}
    with create_shader_cache_session1(FileSessionDesc(folder / "full.psdb"), ENVIRONMENT) as session:
        fill(session, values)
    limit = FileSessionDesc(CacheFileDesc(folder / "full.psdb", count * VALUE_SIZE), SessionFileFlags.TRIM_WHEN_FULL)
    with create_shader_cache_session1(limit, ENVIRONMENT) as session:
        begin = time.perf_counter()
        for number in range(count // 2):
            session.store_value1(key(number), [(ValueType.METADATA, value(number))], StoreFlags.NONE)
        results["store_with_eviction_us"] = (time.perf_counter() - begin) / (count // 2) * 1e6
    connection, select, reopen = bare(folder / "bare.sqlite", values)
    buffer = bytearray(VALUE_SIZE)

    def from_dict(one: bytes) -> None:
        buffer[:] = values[one]

    finds: dict[str, Find] = {
        "dict": values.__getitem__,
        "dict_into": from_dict,
        "bare_select": select,
        "bare_blob": reopen,
        **{name: session.find_value for name, session in opened.items()},
        **{f"{name}_into": into_buffer(session) for name, session in opened.items()},
    }
    closers: list[Callable[[], object]] = []
    add_others(folder, values, finds, closers)
    results |= {f"find_{name}_us": figure for name, figure in best(finds, keys).items()}

    def ratio(one: str, other: str) -> None:
        results[f"{one} / {other}"] = results[f"find_{one}_us"] / results[f"find_{other}_us"]

    for name, other in (
        ("file", "bare_select"),
        ("file", "bare_blob"),
        ("file_read_only", "bare_blob"),
        ("memory", "dict"),
        ("memory_into", "dict_into"),
    ):
        ratio(name, other)
    connection.close(True)
    for session in opened.values():
        session.close()
    for close in closers:
        close()
    return results


def add_others(folder: Path, values: dict[bytes, bytes], finds: dict[str, Find], closers: list[Callable[[], object]]) -> None:
    try:
        import lmdb  # type: ignore[import-not-found]

        environment = lmdb.open(str(folder / "lmdb"), map_size=1 << 31)
        with environment.begin(write=True) as transaction:
            for one, data in values.items():
                transaction.put(one, data)
        reading = environment.begin()
        finds["lmdb"] = reading.get
        closers.append(environment.close)
    except ImportError:
        pass
    try:
        import diskcache  # type: ignore[import-not-found]

        cache = diskcache.Cache(str(folder / "diskcache"), size_limit=1 << 32)
        with cache.transact():
            for one, data in values.items():
                cache[one] = data
        finds["diskcache"] = cache.get
        closers.append(cache.close)
    except ImportError:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--values", type=int, default=4000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = {name: round(figure, 3) for name, figure in measure(Path(folder), arguments.values).items()}
    if arguments.json:
        print(json.dumps(results))
    else:
        for name, figure in results.items():
            print(f"{name:32} {figure:10.3f}")


if __name__ == "__main__":
    main()
