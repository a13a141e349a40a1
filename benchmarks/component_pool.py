#!/usr/bin/env python3
"""What a pool of serialized components saves over a capture, and what it costs to use it.

usage: component_pool.py CAPTURE.foz [--family amd-navi31]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from shaderkiln.compilers.plugin import open_family
from shaderkiln.compilers.value_keys import driver_values
from shaderkiln.databases.psdb import Psdb
from shaderkiln.direct3d12.component_pool import ComponentPool, MappedComponentPool
from shaderkiln.direct3d12.serialized_components import serialize_stored
from shaderkiln.direct3d12.stored_objects import StoredObject
from shaderkiln.errors import UnsupportedError
from shaderkiln.formats.pipeline_components import assemble
from shaderkiln.jobs.compile import CompileJob
from shaderkiln.sources.capture import Capture


def fill(pool: ComponentPool, capture: Path, psdb: Path) -> int:
    """Every pipeline of the capture that has a form in pieces; how many have none."""
    left_out = 0
    with Capture.open(capture) as source, Psdb.open(psdb) as database:
        for group in database.groups():
            description = source.load(group.kind, int(group.name, 16))  # type: ignore[arg-type]
            stored = StoredObject(group, driver_values(database.identity.object_code_form, group, database.find))
            try:
                pool.add(group.name, serialize_stored(group.object_key, description, stored, database.identity))
            except UnsupportedError:
                left_out += 1
    return left_out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", type=Path)
    parser.add_argument("--family", default="amd-navi31")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        psdb, path = Path(folder) / "game.psdb", Path(folder) / "components.pool"
        with Capture.open(arguments.capture) as source:
            family = open_family(arguments.family, source.application)
            CompileJob(source, family, psdb, application=source.application.identity).run()
        pool = ComponentPool()
        left_out = fill(pool, arguments.capture, psdb)
        found = pool.statistics()
        size = pool.write(path)
        share = found.bytes_saved / max(1, found.bytes_given)
        print(f"{found.pipelines} pipelines, {left_out} left out")
        print(f"given: {found.pieces_given} pieces, {found.bytes_given} bytes")
        print(f"kept:  {found.pieces_kept} pieces, {found.bytes_kept} bytes; saved {found.bytes_saved} bytes, {share:.0%}")
        own = sum(len(pool.get(name).pipeline) for name in pool.names())
        print(f"the pipelines' own pieces: {own} bytes; file: {size} bytes")
        started = time.perf_counter()
        mapped = MappedComponentPool.open(path)
        opened = time.perf_counter()
        for name in mapped:
            assemble(mapped.get(name))
        seconds = time.perf_counter() - opened
        print(
            f"open {(opened - started) * 1e3:.2f} ms; CRC and assembly {seconds / max(1, len(mapped)) * 1e6:.0f} µs a pipeline"
        )


if __name__ == "__main__":
    main()
