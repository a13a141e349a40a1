#!/usr/bin/env python3
"""Deliver a game's pipelines: compile its state object database into a PSDB, and let the game use it in every way there is.

usage: explicit_psdb.py [--family amd-navi31] [--sodb GAME.sodb] [--folder FOLDER]

Without a database the one of make_sodb.py is used. The game is a process of its own each time: it creates every object of the
database through a FILE session, through a REGISTERED one, with the default component, and, when nothing is registered any more,
with the local cache.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import shaderkiln.direct3d12 as d3d12
from shaderkiln.compilers.plugin import open_family
from shaderkiln.databases.sodb import ObjectKind, StateObjectDatabase
from shaderkiln.errors import UnsupportedError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.jobs.compile import CompileJob
from shaderkiln.lowering.state_object import with_collections
from shaderkiln.registration.installer import Installer
from shaderkiln.registration.records import PsdbProperties, Scope
from shaderkiln.sources.state_objects import StateObjectSource

APP_ID = "6f1c0a52-57d3-4c9a-9a57-5b8d3f2c7e10"
GAME = Path(__file__).resolve()
"""The game's executable is this script."""


def compile_psdb(sodb: Path, family: str, psdb: Path) -> dict[str, int]:
    """What ``kiln compile GAME.sodb --family FAMILY -o GAME.psdb`` does; counts by outcome."""
    with StateObjectSource.open(sodb) as source:
        job = CompileJob(source, open_family(family, source.application), psdb, application=source.application.identity)
        return {str(outcome): count for outcome, count in job.run().tally.counts.items()}


def register(folder: Path, application: ApplicationIdentity, sodb: Path, component: str, family: str, psdb: Path) -> None:
    """What a store does after installing: ``kiln register``."""
    with Installer.open("store", registry=folder / "registry.sqlite") as installer:
        installer.register_application(GAME, application)
        installer.register_component(GAME, component, sodb, [PsdbProperties(family, psdb)])


def unregister(folder: Path, component: str) -> None:
    """What a store does when it removes a component."""
    with Installer.open("store", registry=folder / "registry.sqlite") as installer:
        installer.remove_component(GAME, component)


# The game


def play(mode: str, family: str, folder: Path, sodb: Path, psdb: Path, cache: Path) -> dict[str, Any]:
    """Create every object; the statistics of the device, the time, and what cannot be created here."""
    with StateObjectDatabase.open(sodb) as database:
        application = database.get_application_desc()
        d3d12.set_application_identity(
            d3d12.ApplicationDesc(
                application.name,
                application.exe_filename,
                application.version,
                application.engine_name,
                application.engine_version,
            ),
            APP_ID,
        )
        registries = [(Scope.USER, folder / "registry.sqlite")]
        with d3d12.create_device(family, local_cache=cache, registries=registries) as device:
            session: d3d12.ShaderCacheSession | None = None
            if mode == "file":
                session = device.create_shader_cache_session1(d3d12.FileSessionDesc(psdb, d3d12.SessionFileFlags.READ_ONLY))
            elif mode == "registered":
                session = device.create_shader_cache_session1(d3d12.RegisteredSessionDesc("DLC1"))
            started = time.perf_counter()
            unsupported = create_everything(device, database, session)
            seconds = time.perf_counter() - started
            statistics = device.get_state_object_statistics()
    pipelines, objects = statistics.pipeline_state_object_statistics, statistics.state_object_statistics
    return {
        "default": statistics.default_psdb_registered,
        "pipelines": [pipelines.num_created, pipelines.num_psdb_cache_missed, pipelines.num_total_cache_missed],
        "objects": [
            objects.num_created, objects.num_psdb_cache_missed, objects.num_total_cache_missed, objects.num_cache_unknown
        ],
        "unsupported": unsupported,
        "seconds": seconds,
    }  # fmt: skip


def create_everything(
    device: d3d12.Direct3D12Device, database: StateObjectDatabase, session: d3d12.ShaderCacheSession | None
) -> list[str]:
    """The keys of those objects that have no form on this adapter."""
    unsupported = []
    for key in database.keys(ObjectKind.PIPELINE_STATE):
        stream = database.find_pipeline_state_desc(key).desc
        try:
            device.create_pipeline_state(stream.with_psdb(session))
        except UnsupportedError as error:
            unsupported.append(f"{key.decode()}: {error}")
    for key in database.keys(ObjectKind.STATE_OBJECT):
        try:
            create_state_object(device, database, key, session)
        except UnsupportedError as error:
            unsupported.append(f"{key.decode()}: {error}")
    return unsupported


def create_state_object(
    device: d3d12.Direct3D12Device, database: StateObjectDatabase, key: bytes, session: d3d12.ShaderCacheSession | None
) -> d3d12.StateObject:
    """A state object, or what its parent becomes by an addition; each generation names the session itself."""
    stored = database.find_state_object_desc(key)
    desc = with_collections(stored.desc, lambda key: database.find_state_object_desc(key).desc).with_psdb(session)
    if stored.parent_key is None:
        return device.create_state_object(desc)
    return device.add_to_state_object(desc, create_state_object(device, database, stored.parent_key, session))


# The whole way


def run_game(mode: str, family: str, folder: Path, sodb: Path, psdb: Path, cache: str) -> dict[str, Any]:
    """The game in a process of its own."""
    arguments = [mode, family, str(folder), str(sodb), str(psdb), str(folder / cache)]
    output = subprocess.run([sys.executable, str(GAME), "--play", *arguments], check=True, stdout=subprocess.PIPE).stdout
    result: dict[str, Any] = json.loads(output)
    return result


def deliver(family: str, sodb: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """Compile, install, play in every way; the result of each game by what was there."""
    psdb = folder / f"game.{family}.psdb"
    started = time.perf_counter()
    outcomes = compile_psdb(sodb, family, psdb)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    print(f"{psdb.name}: {counts} in {time.perf_counter() - started:.1f} s, {psdb.stat().st_size} bytes", flush=True)
    with StateObjectDatabase.open(sodb) as database:
        application = database.get_application_desc()
    results: dict[str, dict[str, Any]] = {}

    def game(name: str, mode: str, cache: str) -> None:
        results[name] = result = run_game(mode, family, folder, sodb, psdb, cache)
        created, missed, compiled = result["pipelines"]
        objects = result["objects"]
        print(
            f"{name:24} default {'yes' if result['default'] else 'no ':3}  pipeline states: {created} created, {missed} not in a "
            f"PSDB, {compiled} in no cache; state objects: {objects[0]}, {objects[1]}, {objects[2]} ({objects[3]} without code); "
            f"{result['seconds']:.2f} s",
            flush=True,
        )

    game("FILE session", "file", "cache-1")
    register(folder, application, sodb, "DLC1", family, psdb)
    game("REGISTERED session", "registered", "cache-2")
    unregister(folder, "DLC1")
    register(folder, application, sodb, "default", family, psdb)
    game("default component", "default", "cache-3")
    unregister(folder, "default")
    game("nothing registered", "nothing", "cache-4")
    game("the same once more", "nothing", "cache-4")
    for reason in results["FILE session"]["unsupported"]:
        print(f"no form here: {reason}")
    return results


def main() -> int:
    if sys.argv[1:2] == ["--play"]:
        mode, family, *paths = sys.argv[2:]
        print(json.dumps(play(mode, family, *map(Path, paths))))
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
        deliver(arguments.family, sodb, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
