#!/usr/bin/env python3
"""CPU time of creating every pipeline of a capture in one plain loop inside one process: no job, no database, no messages.

usage: worker_loop.py CAPTURE FAMILY [--package NAME] [--skip NAME]... [--repeat N] [--no-keep]

It is what a whole ``kiln compile`` is measured against: the process that holds the driver reads the capture itself and creates
each pipeline as a driver worker does, with its object code captured (``--no-keep``: without). Each repetition is a process of its
own; the one that took the least CPU time counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def inside(icd: str, capture_path: str, skip: set[str], keep: bool) -> dict[str, object]:
    from shaderkiln.drivers.protocol import Compile, Define, Failed, Open
    from shaderkiln.drivers.worker import Session
    from shaderkiln.sources.capture import Capture

    session = Session(icd)
    outcomes: Counter[str] = Counter()
    held = 0
    with Capture.open(capture_path) as capture:
        opened = session.handle(Open(features=capture.application.features))
        if isinstance(opened, Failed):
            raise SystemExit(f"the driver cannot be opened: {opened.message}")
        ready = cpu_seconds()
        known = set()
        for kind, hash in capture.pipelines():
            description = capture.load(kind, hash)
            if description.name in skip:
                continue
            for handle, item in description.objects.items():
                if handle not in known:
                    known.add(handle)
                    session.handle(Define(type(handle).__name__, handle.value, item))
            answer = session.handle(Compile(1, description.create_info, keep))
            outcomes[type(answer).__name__] += 1
            if not isinstance(answer, Failed):
                held += sum(len(data) for _, data in answer.values)
        loop = cpu_seconds() - ready
    session.close()
    pipelines = sum(outcomes.values())
    return {
        "device": opened.capabilities.device_name,
        "pipelines": pipelines,
        "outcomes": dict(outcomes),
        "object_code_bytes": held,
        "cpu_seconds": cpu_seconds(),
        "cpu_seconds_before_the_loop": ready,
        "cpu_ms_per_pipeline_in_the_loop": 1e3 * loop / max(1, pipelines),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main() -> None:
    ask = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    ask.add_argument("capture")
    ask.add_argument("family")
    ask.add_argument("--package", help="driver package; the first that has the family")
    ask.add_argument("--skip", action="append", default=[], metavar="NAME", help="leave this pipeline out")
    ask.add_argument("--repeat", type=int, default=3)
    ask.add_argument("--no-keep", dest="keep", action="store_false", help="do not capture object code")
    ask.add_argument("--inside", metavar="DRIVER", help=argparse.SUPPRESS)
    args = ask.parse_args()
    if args.inside:
        print(json.dumps(inside(args.inside, args.capture, set(args.skip), args.keep)))
        return

    from shaderkiln.drivers.packages import DriverPackages
    from shaderkiln.drivers.targets import candidate_targets, canonical_family, process_environment

    family = canonical_family(args.family)
    packages = DriverPackages().list()
    targets = [t for p in packages if args.package in (None, p.name) for t in candidate_targets(p) if t.family == family]
    if not targets:
        raise SystemExit(f"no driver package has {family}")
    environment = process_environment(targets[0], os.environ)
    command = [sys.executable, __file__, args.capture, family, "--inside", targets[0].icd, *(f"--skip={n}" for n in args.skip)]
    if not args.keep:
        command.append("--no-keep")
    runs = []
    for _ in range(args.repeat):
        output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        runs.append(json.loads(output))
    best = min(runs, key=lambda run: run["cpu_seconds"])
    print(json.dumps({"capture": Path(args.capture).name, "family": family, "package": targets[0].package, **best}, indent=2))


if __name__ == "__main__":
    main()
