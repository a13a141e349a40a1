"""Processes of the tests with several of them: ``python session_workers.py write|overwrite|read PATH [SECONDS]``.

Value ``number`` in ``version``: both types hold the same two numbers, again and again, in a length that depends on them.
"""

from __future__ import annotations

import random
import struct
import sys
import time
from pathlib import Path

from session_support import environment

from shaderkiln.errors import NotFoundError
from shaderkiln.keys import ValueType
from shaderkiln.sessions import (
    FileSessionDesc,
    SessionFileFlags,
    ShaderCacheSession,
    StoreFlags,
    ValueRequest,
    create_shader_cache_session1,
)

HOT = 20
"""Numbers below this are stored again and again."""


def open_file(path: Path, flags: SessionFileFlags = SessionFileFlags.NONE) -> ShaderCacheSession:
    return create_shader_cache_session1(FileSessionDesc(path, flags), environment())


def key(number: int) -> bytes:
    return b"key %d" % number


def value(number: int, version: int, type: ValueType) -> bytes:
    count = 1 + (number * 7919 + version * 104729) % (1200 if type is ValueType.OBJECT_CODE else 40)
    return struct.pack("<QQ", number, version) * count


def store(session: ShaderCacheSession, number: int, version: int) -> None:
    values = [(type, value(number, version, type)) for type in (ValueType.OBJECT_CODE, ValueType.METADATA)]
    session.store_value1(key(number), values, StoreFlags.OVERWRITE if version else StoreFlags.NONE)


def check(session: ShaderCacheSession, number: int) -> int:
    """The version that is stored; raises NotFoundError or AssertionError."""
    requests = [ValueRequest(ValueType.OBJECT_CODE), ValueRequest(ValueType.METADATA)]
    session.find_value1(key(number), requests, lambda size, _: bytearray(size))
    found, version = struct.unpack_from("<QQ", requests[0].buffer)
    assert found == number, f"value {number} is another one"
    for request in requests:
        assert request.buffer == value(number, version, request.type), f"value {number} is torn"
    return int(version)


def write(path: Path) -> None:
    """Store new numbers, from the first that is missing, until killed; each is told when its store has returned."""
    with open_file(path) as session:
        number = 0
        while session.exists(key(number)):
            number += 1
        print(f"open {number}", flush=True)
        while True:
            store(session, number, 0)
            print(number, flush=True)
            number += 1


def overwrite(path: Path, seconds: float) -> None:
    """Store new numbers and new versions of the hot ones. ``<path>.told`` has what was stored."""
    source = random.Random(1)
    told = path.with_suffix(".told").open("r+b", buffering=0)
    stored, version = 0, 0
    end = time.monotonic() + seconds
    with open_file(path) as session:
        while time.monotonic() < end:
            if stored < HOT or source.random() < 0.5:
                store(session, stored, 0)
                stored += 1
            else:
                version += 1
                store(session, source.randrange(HOT), version)
            told.seek(0)
            told.write(struct.pack("<Q", stored))
    print(stored, version)


def read(path: Path, seconds: float, seed: int) -> None:
    """Every number that was told is there and whole, and versions only grow."""
    source = random.Random(seed)
    seen: dict[int, int] = {}
    finds = 0
    flags = SessionFileFlags.READ_ONLY if seed % 2 else SessionFileFlags.NONE
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with open_file(path, flags) as session:
            for _ in range(source.randrange(1, 4000)):
                if time.monotonic() >= end:
                    break
                (stored,) = struct.unpack("<Q", path.with_suffix(".told").read_bytes())
                if not stored:
                    time.sleep(0.01)
                    continue
                number = source.randrange(min(stored, HOT) if source.random() < 0.5 else stored)
                version = check(session, number)
                assert version >= seen.get(number, 0), f"value {number} went back"
                seen[number] = version
                data = session.find_value(key(number))
                assert struct.unpack_from("<QQ", data)[1] >= version
                finds += 1
                try:
                    check(session, stored + 1_000_000)
                    raise AssertionError("found what was never stored")
                except NotFoundError:
                    pass
    print(finds)


if __name__ == "__main__":
    role, name, *rest = sys.argv[1:]
    if role == "write":
        write(Path(name))
    elif role == "overwrite":
        overwrite(Path(name), float(rest[0]))
    else:
        read(Path(name), float(rest[0]), int(rest[1]))
