"""The whole way on real drivers: captures of real applications compiled for AMD families, verified, damaged, refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from toy_plugin import KILN, search_path

from shaderkiln.databases.fossilize import ArchiveWriter, FossilizeArchive
from shaderkiln.databases.psdb import Psdb
from shaderkiln.drivers.packages import DriverPackages
from shaderkiln.formats.fossilize import Tag

pytestmark = pytest.mark.driver

CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "data" / "captures"
CRASHING = "36500a7b241cea31"
"""A compute pipeline of taichi.foz that aborts RADV's compiler for this family."""
NAVI21, NAVI31 = "amd-navi21", "amd-navi31"


def capture(name: str) -> Path:
    path = CAPTURES / f"{name}.foz"
    if not path.exists():
        pytest.skip(f"the capture {name}.foz is not here")
    return path


def packages() -> list[str]:
    return [package.name for package in DriverPackages().list()]


def newest() -> str:
    for name in ("mesa-backports", "mesa-stable"):
        if name in packages():
            return name
    pytest.skip("no driver package is installed (kiln drivers add mesa-backports)")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(search_path())}


def kiln(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [*KILN, *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL
    )


def records(*arguments: object, folder: Path, code: int = 0) -> list[dict[str, Any]]:
    done = kiln(*arguments, "--json", folder=folder)
    assert done.returncode == code, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def compiled(name: str, family: str, folder: Path, code: int = 0) -> list[dict[str, Any]]:
    return records("compile", capture(name), "-f", family, "--driver", newest(), "-o", folder, folder=folder, code=code)


@pytest.fixture(scope="module")
def taichi(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """taichi.foz for navi21: the folder with its PSDB, and what was reported."""
    folder = tmp_path_factory.mktemp("taichi")
    return folder, compiled("taichi", NAVI21, folder, code=1)


@pytest.fixture(scope="module")
def navi31(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("navi31")
    return folder, compiled("taichi", NAVI31, folder)


def test_a_pipeline_that_aborts_the_compiler_is_named_and_the_others_compile(taichi: tuple[Path, list[dict[str, Any]]]) -> None:
    *verdicts, summary = taichi[1]
    assert summary["counts"] == {"compiled": 7, "crashed": 1}
    assert not summary["good"]
    (crash,) = (verdict for verdict in verdicts if verdict["outcome"] == "crashed")
    assert (crash["pipeline"], crash["kind"], crash["signal"]) == (CRASHING, "compute", "SIGABRT")
    assert "Mesa" in crash["driver_build"]


def test_a_second_run_reuses_everything_and_does_not_try_the_crash_again(taichi: tuple[Path, list[dict[str, Any]]]) -> None:
    folder = taichi[0]
    before = (folder / f"taichi.{NAVI21}.psdb").read_bytes()
    *verdicts, summary = compiled("taichi", NAVI21, folder, code=1)
    assert summary["counts"] == {"reused": 7, "crashed": 1}
    assert [verdict["remembered"] for verdict in verdicts if verdict["pipeline"] == CRASHING] == [True]
    assert summary["driver_seconds"] == 0
    assert (folder / f"taichi.{NAVI21}.psdb").read_bytes() == before


def test_a_poisoned_pipeline_is_tried_again_where_asked(taichi: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    psdb = tmp_path / "taichi.psdb"
    psdb.write_bytes((taichi[0] / f"taichi.{NAVI21}.psdb").read_bytes())
    arguments = ("compile", capture("taichi"), "-f", NAVI21, "--driver", newest(), "-o", psdb, "--retry-poisoned")
    *verdicts, _ = records(*arguments, folder=tmp_path, code=1)
    (crash,) = (verdict for verdict in verdicts if verdict["outcome"] == "crashed")
    assert crash["pipeline"] == CRASHING
    assert "remembered" not in crash


def test_it_verifies_as_hits_but_for_the_poison(taichi: tuple[Path, list[dict[str, Any]]]) -> None:
    *verdicts, summary = records("verify", taichi[0] / f"taichi.{NAVI21}.psdb", capture("taichi"), folder=taichi[0], code=1)
    assert summary["counts"] == {"hit": 7, "crashed": 1}
    assert {verdict["pipeline"] for verdict in verdicts if verdict["outcome"] == "crashed"} == {CRASHING}


def test_on_another_family_all_of_it_compiles_and_hits(navi31: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, (*_, summary) = navi31
    assert summary["counts"] == {"compiled": 8}
    *_, summary = records("verify", folder / f"taichi.{NAVI31}.psdb", capture("taichi"), folder=folder)
    assert summary["counts"] == {"hit": 8}
    assert summary["good"]


def test_graphics_compile_and_every_one_is_a_hit(tmp_path: Path) -> None:
    *verdicts, summary = compiled("pygfx", NAVI21, tmp_path)
    good = {"compiled", "reused", "unsupported"}
    assert {verdict["outcome"] for verdict in verdicts} <= good
    assert summary["pipelines"] == len(verdicts) > 20
    compiled_or_reused = sum(summary["counts"].get(outcome, 0) for outcome in ("compiled", "reused"))
    assert compiled_or_reused > 20
    *_, verified = records("verify", tmp_path / f"pygfx.{NAVI21}.psdb", capture("pygfx"), folder=tmp_path)
    assert verified["counts"].get("hit") == compiled_or_reused
    assert verified["good"]
    *_, again = compiled("pygfx", NAVI21, tmp_path)
    assert again["counts"].get("compiled", 0) == 0
    arguments = ("compile", capture("pygfx"), "-f", NAVI21, "--driver", newest(), "-o", tmp_path / "one.psdb", "-j", 1)
    records(*arguments, folder=tmp_path)
    assert (tmp_path / "one.psdb").read_bytes() == (tmp_path / f"pygfx.{NAVI21}.psdb").read_bytes()


@pytest.mark.parametrize("place", [0.0, 0.5, 0.9])
def test_one_changed_byte_of_a_value_is_named_and_never_reaches_the_driver(
    navi31: tuple[Path, list[dict[str, Any]]], tmp_path: Path, place: float
) -> None:
    data = bytearray((navi31[0] / f"taichi.{NAVI31}.psdb").read_bytes())
    with Psdb.open(navi31[0] / f"taichi.{NAVI31}.psdb") as database:
        key, value, offset = next(
            (key, value, offset)
            for group in database.groups()
            for key in group.value_keys
            for value in [database.find(key)]
            for offset in range(int(len(value) * place), len(value) - 24)
            if data.count(value[offset : offset + 24]) == 1  # bytes that stand nowhere else in the file
        )
        users = {each.name for each in database.groups() if key in each.value_keys}
    data[data.index(value[offset : offset + 24])] ^= 0x40
    psdb = tmp_path / "damaged.psdb"
    psdb.write_bytes(data)
    lines = records("verify", psdb, capture("taichi"), folder=tmp_path, code=1)
    verdicts = [line for line in lines if line["type"] == "verdict"]
    assert {verdict["pipeline"] for verdict in verdicts if verdict["outcome"] == "damaged"} == users
    assert all(verdict["values"] == [key.hex()] for verdict in verdicts if verdict["outcome"] == "damaged")
    assert {verdict["outcome"] for verdict in verdicts if verdict["pipeline"] not in users} == {"hit"}
    assert [line["text"] for line in lines if line["type"] == "damage" and key.hex() in line["text"]]
    shown = kiln("verify", psdb, capture("taichi"), folder=tmp_path)
    assert key.hex() in shown.stdout
    assert psdb.read_bytes() == data


COUNT_PROCESSES = """
import sys
started = []
sys.addaudithook(lambda event, _: started.append(event) if event in ("subprocess.Popen", "os.fork", "os.posix_spawn") else None)
from shaderkiln import api
from shaderkiln.errors import CacheCorruptError
try:
    api.verify_psdb(sys.argv[1], sys.argv[2], family=sys.argv[3])
except CacheCorruptError as error:
    print(len(started), error)
"""


def test_another_familys_psdb_is_refused_before_a_worker_starts(
    navi31: tuple[Path, list[dict[str, Any]]], taichi: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    psdb = navi31[0] / f"taichi.{NAVI31}.psdb"
    done = kiln("verify", psdb, capture("taichi"), "--family", NAVI21, "--driver", newest(), folder=tmp_path)
    assert done.returncode == 3
    assert done.stdout == ""
    assert f"was made for or by another: family {NAVI31}, not {NAVI21}; also differs in " in done.stderr
    command = [sys.executable, "-c", COUNT_PROCESSES, str(psdb), str(capture("taichi")), NAVI21]
    counted = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment())
    assert counted.stdout.startswith("0 "), counted


def test_another_driver_builds_psdb_is_refused(navi31: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    others = [name for name in packages() if name.startswith("mesa") and name != newest()]
    if not others:
        pytest.skip("a second driver package is not installed (kiln drivers add mesa-stable)")
    psdb = navi31[0] / f"taichi.{NAVI31}.psdb"
    done = kiln("verify", psdb, capture("taichi"), "--driver", others[0], folder=tmp_path)
    assert done.returncode in (3, 4)
    assert "made for or by another: driver Mesa " in done.stderr or f"in driver package {others[0]!r}" in done.stderr
    compiled_again = kiln("compile", capture("taichi"), "-f", NAVI31, "--driver", others[0], "-o", psdb, folder=tmp_path)
    assert compiled_again.returncode in (3, 4)


def test_the_driver_shows_its_disassembly_and_statistics(navi31: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    psdb = navi31[0] / f"taichi.{NAVI31}.psdb"
    done = kiln("isa", psdb, CRASHING, "--capture", capture("taichi"), folder=tmp_path)
    assert done.returncode == 0, done
    assert f"compute pipeline {CRASHING} for {NAVI31}" in done.stdout
    assert "s_endpgm" in done.stdout
    (record,) = records("isa", psdb, CRASHING[:6], "-c", capture("taichi"), "--statistics-only", folder=tmp_path)
    assert record["executables"][0]["statistics"]["SGPRs"] > 0
    assert record["executables"][0]["representations"] == {}


def test_statistics_are_stored_where_asked_and_shown(navi31: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    psdb = tmp_path / "taichi.psdb"
    psdb.write_bytes((navi31[0] / f"taichi.{NAVI31}.psdb").read_bytes())
    arguments = ("compile", capture("taichi"), "-f", NAVI31, "--driver", newest(), "-o", psdb, "--perf")
    *_, summary = records(*arguments, folder=tmp_path)
    assert summary["counts"] == {"reused": 8}
    shown = kiln("show", psdb, "--pipelines", folder=tmp_path).stdout
    assert "shader statistics" in shown
    assert "VGPRs" in shown
    *rows, _ = records("show", psdb, "--pipelines", folder=tmp_path)
    assert all(row["statistics"][0]["statistics"]["Code size"] > 0 for row in rows)
    assert len(rows) == 8
    *_, verified = records("verify", psdb, capture("taichi"), folder=tmp_path)
    assert verified["good"]


def test_a_run_that_finds_all_unchanged_shows_what_a_whole_run_would(tmp_path: Path) -> None:
    source = tmp_path / "game.foz"
    source.write_bytes(capture("taichi").read_bytes())
    arguments = ("compile", source, "-f", NAVI21, "--driver", newest(), "-o", tmp_path)

    def lines(code: int) -> list[str]:
        done = kiln(*arguments, folder=tmp_path)
        assert done.returncode == code, done
        return [re.split(r" in \d", line)[0] for line in done.stdout.splitlines()]

    def whole_run(code: int) -> list[str]:
        done = kiln(*arguments, "--report", tmp_path / "report.jsonl", folder=tmp_path)
        assert done.returncode == code, done
        return [re.split(r" in \d", line)[0] for line in done.stdout.splitlines()]

    first = lines(1)
    assert f"crashed compute {CRASHING}" in first[0]
    assert first[-1] == f"{NAVI21}: 8 pipelines: 7 compiled, 1 crashed"
    unchanged = lines(1)
    assert unchanged == lines(1) == whole_run(1)
    assert unchanged[-1] == f"{NAVI21}: 8 pipelines: 7 reused, 1 crashed"
    with ArchiveWriter.append(source) as writer, FossilizeArchive.open(capture("vkcube")) as other:
        for tag in Tag:
            for hash in other.hashes(tag):
                writer.put(tag, hash, other.read(tag, hash))
    grown = lines(1)
    assert "compiled, 7 reused, 1 crashed" in grown[-1]
    psdb = tmp_path / f"game.{NAVI21}.psdb"
    psdb.unlink()
    assert "compiled" in lines(1)[-1]
    assert psdb.exists()
