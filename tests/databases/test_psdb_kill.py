"""A building process killed at any instant loses nothing it was told is committed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from psdb_support import APPLICATION, build, compiler, object_key

from shaderkiln.databases.psdb import Psdb, PsdbBuilder

COUNT = 150
BUILD = f"""
import sys
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[2] / "src")]!r}
from pathlib import Path
from psdb_support import APPLICATION, compiler, make, object_key
from shaderkiln.databases.psdb import PsdbBuilder
with PsdbBuilder(Path(sys.argv[1]), compiler(), APPLICATION) as builder:
    print("open", flush=True)
    for number in range({COUNT}):
        if not builder.has_group(object_key(number), 1):
            builder.add(*make(number))
            if number % 4 == 3:
                builder.commit()
                print(number, flush=True)
    builder.finish()
"""


@pytest.mark.spec("AL-03")
def test_killed_at_random_points_and_resumed(tmp_path: Path) -> None:
    expected = build(tmp_path / "whole.psdb", range(COUNT)).read_bytes()
    source = random.Random(5)
    begin = time.monotonic()
    kills = 0
    for round_number in range(8):
        path = tmp_path / f"{round_number}.psdb"
        if round_number % 2:
            build(path, range(0, COUNT, 5))
        committed = -1
        patience = 0.01
        while time.monotonic() - begin < 60:
            process = subprocess.Popen([sys.executable, "-c", BUILD, str(path)], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            # Ever longer, so that the first kills come early and finishing is hit as well.
            time.sleep(source.random() * patience)
            patience += 0.01
            os.kill(process.pid, signal.SIGKILL)
            lines = process.stdout.read().split("\n")
            process.wait()
            acknowledged = [int(line) for line in lines[:-1]]
            committed = max([committed, *acknowledged])
            if process.returncode == 0:
                break
            kills += 1
            with PsdbBuilder(path, compiler(), APPLICATION) as builder:
                for number in range(committed + 1):
                    assert builder.has_group(object_key(number), 1), (number, committed)
        else:
            build(path, range(COUNT))
        assert path.read_bytes() == expected
        with Psdb.open(path) as database:
            assert list(database.verify()) == []
    assert kills >= 4
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [*(f"{number}.psdb" for number in range(8)), "whole.psdb"]
