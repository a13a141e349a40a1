#!/usr/bin/env python3
"""A whole ``kiln compile`` against the same pipelines created in one plain loop, and against itself when all is done.

usage: compile_job.py [--capture FILE] [--family NAME] [--rounds N] [--big ARCHIVE] [--json]

Measures, each in processes of its own and alternating, the least of the rounds:
- CPU time of all processes of a whole compile, divided by that of ``worker_loop.py`` (one process that holds the driver and
  creates each pipeline, nothing stored);
- wall time of a second compile that reuses everything, divided by that of the first;
- with ``--big``, the largest resident memory of the parent on that archive beside that on the capture. Its modules need not be
  fit for a driver: those that are not are told apart before one sees them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KILN = [sys.executable, "-m", "shaderkiln.cli.main"]


def run(command: list[str]) -> tuple[float, float, str]:
    """Wall and CPU seconds of a command with everything that it started, and its output."""
    before, started = os.times(), time.perf_counter()
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    after = os.times()
    wall = time.perf_counter() - started
    if result.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stderr}")
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return wall, cpu, result.stdout


def anonymous_memory(pid: int) -> int:
    """Bytes of anonymous memory in use now; pages of files do not count, the system takes them back as it likes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def parent_memory(capture: Path, family: str, folder: Path) -> tuple[int, int, float]:
    """Largest anonymous memory of the parent of a compile, pipelines seen, and seconds."""
    started = time.perf_counter()
    with subprocess.Popen(
        [*KILN, "compile", str(capture), "--family", family, "-o", str(folder), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        peak = 0

        def watch() -> None:
            nonlocal peak
            while process.poll() is None:
                try:
                    peak = max(peak, anonymous_memory(process.pid))
                except OSError:
                    return
                time.sleep(0.02)

        watcher = threading.Thread(target=watch)
        watcher.start()
        assert process.stdout is not None
        pipelines = sum('"type":"verdict"' in line for line in process.stdout)
        process.wait()
        watcher.join()
    return peak, pipelines, time.perf_counter() - started


def main() -> None:
    ask = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    captures = ROOT.parent / "shared" / "data" / "captures" / "pygfx.foz"
    ask.add_argument("--capture", type=Path, default=captures if captures.exists() else ROOT / "samples" / "samples.foz")
    ask.add_argument("--family", default="amd-navi21")
    ask.add_argument("--rounds", type=int, default=5)
    ask.add_argument("--big", type=Path)
    ask.add_argument("--json", action="store_true")
    args = ask.parse_args()
    loop = [
        sys.executable,
        str(ROOT / "benchmarks" / "worker_loop.py"),
        str(args.capture),
        args.family,
        "--repeat",
        "1",
        "--no-keep",
    ]
    plain: list[float] = []
    whole: list[float] = []
    first: list[float] = []
    second: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(args.rounds):
            folder = Path(scratch) / str(number)
            command = [*KILN, "compile", str(args.capture), "--family", args.family, "-o", str(folder)]
            plain.append(json.loads(run(loop)[2])["cpu_seconds"])
            wall, cpu, _ = run(command)
            first.append(wall)
            whole.append(cpu)
            second.append(run(command)[0])
        record = {
            "capture": args.capture.name, "family": args.family, "plain_loop_cpu_s": min(plain), "compile_cpu_s": min(whole),
            "compile_to_plain_loop": min(whole) / min(plain), "first_wall_s": min(first), "second_wall_s": min(second),
            "second_to_first": min(second) / min(first),
        }  # fmt: skip
        if args.big:
            small_peak, small_count, _ = parent_memory(args.capture, args.family, Path(scratch) / "small")
            big_peak, big_count, seconds = parent_memory(args.big, args.family, Path(scratch) / "big")
            record |= {
                "small_pipelines": small_count, "small_parent_MB": small_peak / 1e6,
                "big_pipelines": big_count, "big_parent_MB": big_peak / 1e6, "big_seconds": seconds,
            }  # fmt: skip
    if args.json:
        print(json.dumps(record, indent=2))
        return
    for name, value in record.items():
        print(f"{name:>24}  {value:.3f}" if isinstance(value, float) else f"{name:>24}  {value}")


if __name__ == "__main__":
    main()
