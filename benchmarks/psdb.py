"""How fast a PSDB is beside bare SQLite and, where it is installed, lmdb, on the same values.

    python benchmarks/psdb.py [--json] [--values N]

Microseconds per operation are the best of several rounds; ratios are what to compare between machines.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from shaderkiln.databases.psdb import Psdb, PsdbBuilder
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity
from shaderkiln.keys import Group, ObjectKey, Value, ValueKey, ValueType

VALUE_SIZE = 8192
IDENTITY = CompilerIdentity(
    "benchmark", 1, 1, 1, "none", 1, "none", 1, "none", 0, bytes(16), b"", "pipeline-cache", (), 64
)  # fmt: skip


def value_key(number: int) -> ValueKey:
    return ValueKey(hashlib.sha256(b"%d" % number).digest())


def build(path: Path, count: int, size: int) -> float:
    """Seconds to build a file of ``count`` values, one a group, committed every 100."""
    values = [Value(value_key(i), ValueType.OBJECT_CODE, hashlib.shake_128(b"%d" % i).digest(size)) for i in range(count)]
    begin = time.perf_counter()
    with PsdbBuilder(path, IDENTITY, ApplicationIdentity()) as builder:
        for number, value in enumerate(values):
            builder.add(Group(ObjectKey(value.key), 1, (value.key,), "compute", str(number)), [value])
            if number % 100 == 99:
                builder.commit()
        builder.finish()
    return time.perf_counter() - begin


def build_bare(path: Path, count: int, size: int) -> float:
    """The same values into one SQLite table, 100 a transaction."""
    values = [(value_key(i), hashlib.shake_128(b"%d" % i).digest(size)) for i in range(count)]
    begin = time.perf_counter()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE v (id INTEGER PRIMARY KEY, key BLOB UNIQUE, data BLOB)")
    for start in range(0, count, 100):
        with connection:
            connection.executemany("INSERT INTO v (key, data) VALUES (?, ?)", values[start : start + 100])
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return time.perf_counter() - begin


def best(call: Callable[[], object], count: int, rounds: int = 7) -> float:
    """The least microseconds per operation."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times) / count * 1e6


def measure(folder: Path, count: int) -> dict[str, float]:
    results: dict[str, float] = {}
    path, bare = folder / "a.psdb", folder / "bare.sqlite"
    results["build_us"] = build(path, count, VALUE_SIZE) / count * 1e6
    results["build_bare_us"] = build_bare(bare, count, VALUE_SIZE) / count * 1e6
    keys = [value_key(number) for number in range(count)]
    random.Random(0).shuffle(keys)  # so that no file is read in the order it was written

    def reuse() -> None:
        with PsdbBuilder(path, IDENTITY, ApplicationIdentity()) as builder:
            for key in keys[:200]:
                assert builder.has_group(ObjectKey(key), 1)
            builder.finish()

    results["reuse_200_groups_ms"] = best(reuse, 1) / 1000
    with Psdb.open(path) as database:
        find, size, exists = database.find, database.size, database.exists
        exists(keys[0])
        results["find_us"] = best(lambda: [find(key) and None for key in keys], count)
        results["size_us"] = best(lambda: [size(key) and None for key in keys], count)
        results["exists_us"] = best(lambda: [exists(key) and None for key in keys], count)
    connection = apsw.Connection(str(bare), flags=apsw.SQLITE_OPEN_READONLY)
    connection.execute(f"PRAGMA mmap_size = {bare.stat().st_size}")
    rows: dict[bytes, int] = dict(connection.execute("SELECT key, id FROM v"))  # type: ignore[arg-type]
    blob = connection.blob_open("main", "v", "data", 1, False)

    def read(key: bytes) -> bytes:
        blob.reopen(rows[key])
        return blob.read()

    results["find_bare_us"] = best(lambda: [read(key) and None for key in keys], count)
    blob.close()
    connection.close()
    results["find_ratio"] = results["find_us"] / results["find_bare_us"]
    results["build_ratio"] = results["build_us"] / results["build_bare_us"]
    lmdb_find = measure_lmdb(folder / "lmdb", keys)
    if lmdb_find is not None:
        results["find_lmdb_us"] = lmdb_find
        results["find_lmdb_ratio"] = results["find_us"] / lmdb_find

    large = folder / "large.psdb"
    build(large, 24_000, 1024)

    def open_only() -> None:
        Psdb.open(large).close()

    def open_and_find() -> None:
        with Psdb.open(large) as database:
            database.find(keys[0])

    results["open_24000_ms"] = best(open_only, 1) / 1000
    results["open_and_first_find_24000_ms"] = best(open_and_find, 1) / 1000
    return results


def measure_lmdb(folder: Path, keys: list[ValueKey]) -> float | None:
    try:
        import lmdb  # type: ignore[import-not-found]
    except ImportError:
        return None
    with lmdb.open(str(folder), map_size=1 << 31) as environment:
        with environment.begin(write=True) as transaction:
            for number, key in enumerate(keys):
                transaction.put(key, hashlib.shake_128(b"%d" % number).digest(VALUE_SIZE))
        with environment.begin() as transaction:
            return best(lambda: [transaction.get(key) and None for key in keys], len(keys))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--values", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = {name: round(value, 3) for name, value in measure(Path(folder), arguments.values).items()}
    if arguments.json:
        print(json.dumps(results))
    else:
        for name, value in results.items():
            print(f"{name:32} {value:10.3f}")


if __name__ == "__main__":
    main()
