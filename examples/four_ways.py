#!/usr/bin/env python3
"""One compile, four ways to use it: an explicit PSDB, a VkPipelineCache, a pipeline library, and serialized components.

usage: four_ways.py [--family amd-navi31] [--sodb GAME.sodb] [--folder FOLDER]

The pipeline states of the database are compiled once, into one PSDB; the other three forms are made from that. Then four games,
each a process of its own with one of the forms and an empty local cache, create every pipeline on the driver with compiling
forbidden. Without a database the one of make_sodb.py is used.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import shaderkiln.direct3d12 as d3d12
import shaderkiln.vulkan as vk
from shaderkiln.compilers.plugin import open_family
from shaderkiln.databases.psdb import Psdb
from shaderkiln.databases.sodb import ObjectKind, StateObjectDatabase
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.errors import UnsupportedError
from shaderkiln.jobs.cache_values import export_cache
from shaderkiln.jobs.compile import CompileJob, JobOptions
from shaderkiln.sources.state_objects import StateObjectSource
from shaderkiln.vulkan_registry.constants import VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT

APP_ID = "2b7d9c34-7f0e-4d65-9c2f-90c1c6a1f3e8"
WAYS = {
    "explicit PSDB": "explicit-psdb",
    "pipeline cache": "pipeline-cache",
    "pipeline library": "library",
    "components": "serialized",
}
"""Each way, and where a driver that need not compile anything gets all object code."""


class Files:
    """The four forms of one game's pipelines in a folder."""

    def __init__(self, folder: Path, sodb: Path) -> None:
        self.folder = folder
        self.sodb = sodb
        self.psdb = folder / "game.psdb"
        self.cache = folder / "pipeline_cache.bin"
        self.library = folder / "pipelines.library"
        self.components = folder / "components.pool"


# The build


def build(files: Files, family: str) -> dict[str, int]:
    """Compile the pipeline states into the PSDB, and make the other forms from it; what was compiled by outcome."""
    with StateObjectSource.open(files.sodb, state_objects=False) as source:
        compiler = open_family(family, source.application)
        options = JobOptions(pipeline_caches=True)
        job = CompileJob(source, compiler, files.psdb, application=source.application.identity, options=options)
        outcomes = {str(outcome): count for outcome, count in job.run().tally.counts.items()}
    with Psdb.open(files.psdb) as psdb:
        files.cache.write_bytes(export_cache(psdb).data)
    pool = d3d12.ComponentPool()
    with device(files, family, tool=True) as tool, StateObjectDatabase.open(files.sodb) as database:
        library = tool.create_pipeline_library()
        for name, pipeline in from_psdb(files, tool, database):
            if pipeline.source != "explicit-psdb":
                raise SystemExit(f"{name}: {pipeline.source}, not from the PSDB")
            library.store_pipeline(name, pipeline)
            if pipeline.desc.kind == "compute":
                pool.add(name, tool.serialize_compute_pipeline_state(pipeline))
            else:
                pool.add(name, tool.serialize_graphics_pipeline_state(pipeline))
        files.library.write_bytes(library.serialize())
    pool.write(files.components)
    saved = pool.statistics()
    print(f"components: {saved.pieces_given} pieces, {saved.pieces_kept} different ones, {saved.bytes_saved} bytes saved")
    return outcomes


def device(files: Files, family: str, *, tool: bool = False) -> d3d12.Direct3D12Device:
    """A device of the game that finds nothing in its local cache, and nothing installed."""
    with StateObjectDatabase.open(files.sodb) as database:
        game = database.get_application_desc()
    desc = d3d12.ApplicationDesc(game.name, game.exe_filename, game.version, game.engine_name, game.engine_version)
    empty = tempfile.mkdtemp(prefix="local-cache-", dir=files.folder)
    return d3d12.create_device(family, application=d3d12.declare(desc, APP_ID), local_cache=empty, registries=[], tool=tool)


def streams(database: StateObjectDatabase) -> Iterator[tuple[str, d3d12.PipelineStateStream]]:
    for key in database.keys(ObjectKind.PIPELINE_STATE):
        yield key.decode(), database.find_pipeline_state_desc(key).desc


def from_psdb(
    files: Files, device: d3d12.Direct3D12Device, database: StateObjectDatabase
) -> Iterator[tuple[str, d3d12.PipelineState]]:
    """Every pipeline state that has a form on this adapter, created with the PSDB as its explicit one."""
    with device.create_shader_cache_session1(d3d12.FileSessionDesc(files.psdb, d3d12.SessionFileFlags.READ_ONLY)) as session:
        for name, stream in streams(database):
            try:
                yield name, device.create_pipeline_state(stream.with_psdb(session))
            except UnsupportedError:
                continue


# The games


def play(way: str, files: Files, family: str) -> dict[str, int]:
    """Create every pipeline in one way; how many by where the driver got their object code."""
    if way == "pipeline cache":
        return dict(play_cache(files, family))
    with device(files, family) as game, StateObjectDatabase.open(files.sodb) as database:
        if way == "explicit PSDB":
            return dict(Counter(str(pipeline.source) for _, pipeline in from_psdb(files, game, database)))
        if way == "pipeline library":
            library = game.create_pipeline_library(files.library.read_bytes())
            found = [library.load_pipeline(name, stream) for name, stream in streams(database) if name in library]
            return dict(Counter(str(pipeline.source) for pipeline in found))
        # Neither shaders nor descs are needed for these: all that the driver wants is in the pieces.
        pool = d3d12.MappedComponentPool.open(files.components)
        for name in pool:
            pieces = pool.get(name)
            if pieces.shader(d3d12.ShaderSlot.COMPUTE) is not None:
                game.deserialize_compute_pipeline_state(pieces)
            else:
                game.deserialize_graphics_pipeline_state(pieces)
        created = game.get_state_object_statistics().pipeline_state_object_statistics
        assert created.num_total_cache_missed == 0
        return {"serialized": created.num_created}


def play_cache(files: Files, family: str) -> Counter[str]:
    """A Vulkan program with nothing but the cache."""
    found: Counter[str] = Counter()
    with (
        StateObjectSource.open(files.sodb, state_objects=False) as source,
        vk.open_device(family, features=source.application.features) as game,
    ):
        cache = game.create_pipeline_cache(files.cache.read_bytes())
        if cache.rejection is not None:
            raise SystemExit(f"the driver's cache is empty: {cache.rejection}")
        for kind, name in source.pipelines():
            try:
                description = compile_forbidden(source.load(kind, name))
            except UnsupportedError:
                continue
            create = game.create_compute_pipelines if kind == "compute" else game.create_graphics_pipelines
            (pipeline,) = create(cache, [description])
            if pipeline.result != "VK_ERROR_FEATURE_NOT_PRESENT":
                found["pipeline-cache" if pipeline else pipeline.result] += 1
    return found


def compile_forbidden(description: PipelineDescription) -> PipelineDescription:
    info: Any = description.create_info
    flags = info.flags | VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT
    return replace(description, create_info=replace(info, flags=flags))


# The whole way


def run_game(way: str, files: Files, family: str) -> dict[str, int]:
    """The game in a process of its own."""
    arguments = [sys.executable, __file__, "--play", way, str(files.folder), str(files.sodb), family]
    result: dict[str, int] = json.loads(subprocess.run(arguments, check=True, stdout=subprocess.PIPE).stdout)
    return result


def four_ways(files: Files, family: str) -> dict[str, dict[str, int]]:
    """Compile, then play in every way; what the games found."""
    started = time.perf_counter()
    outcomes = build(files, family)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    print(f"{family}: {counts}; all four forms in {time.perf_counter() - started:.1f} s", flush=True)
    results = {"compile job": outcomes}
    for way, path in zip(WAYS, (files.psdb, files.cache, files.library, files.components), strict=True):
        started = time.perf_counter()
        results[way] = run_game(way, files, family)
        found = ", ".join(f"{count} {source}" for source, count in results[way].items())
        print(f"{way:17} {path.stat().st_size:9} bytes: {found} in {time.perf_counter() - started:.1f} s", flush=True)
    return results


def main() -> int:
    if sys.argv[1:2] == ["--play"]:
        way, folder, sodb, family = sys.argv[2:]
        print(json.dumps(play(way, Files(Path(folder), Path(sodb)), family)))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default="amd-navi31")
    parser.add_argument("--sodb", type=Path)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sodb = arguments.sodb
        if sodb is None:
            from make_sodb import make_sodb

            sodb = make_sodb(folder / "game.sodb")
        results = four_ways(Files(folder, sodb), arguments.family)
    return 0 if all(results[way] == {source: results["compile job"]["compiled"]} for way, source in WAYS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
