"""Speed and memory of Fossilize archives: first scan, open with an index, read all of one tag, merge.

Beside each stands a peer of the same run, a plain scan of a memory map into a dict, and what Fossilize's own tools took for the
same work when they were measured (197,583 entries, 221.5 MB; they verify nothing). Times are the minimum of some repeats, with
the files in the page cache.

    python benchmarks/fossilize_archive.py [--archive A.foz [--second B.foz]] [--repeat 5] [--json]

Without ``--archive``, archives of 200,000 entries are made by ``../shared/tools/make-big-archive`` in the temporary folder.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from shaderkiln.databases.fossilize import FossilizeArchive, merge
from shaderkiln.formats.fossilize import Tag

RECORDED_MERGE = 167.0
"""MB of stored bytes a second that Fossilize's merge wrote."""
MAKER = Path(__file__).resolve().parents[2] / "shared" / "tools" / "make-big-archive"


def peer_scan(path: Path) -> dict[tuple[int, int], tuple[int, ...]]:
    """What one writes without a library: no check of anything, everything in a dict."""
    found = {}
    unpack = struct.Struct("<4I").unpack_from
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        at, size = 16, len(data)
        while at + 56 <= size:
            stored, flags, crc, raw = unpack(data, at + 40)
            found[int(data[at : at + 24], 16), int(data[at + 24 : at + 40], 16)] = (at, stored, flags, crc, raw)
            at += 56 + stored
    return found


def peer_merge(paths: list[Path], output: Path) -> None:
    """A plain merge of memory maps, without any check."""
    seen: set[tuple[int, int]] = set()
    with output.open("wb") as out:
        out.write(b"\x81FOSSILIZEDB\0\0\0\6")
        for path in paths:
            entries = peer_scan(path)
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
                for key, (at, stored, *_) in entries.items():
                    if key not in seen:
                        seen.add(key)
                        out.write(data[at : at + 56 + stored])
        out.flush()
        os.fsync(out.fileno())


def least(repeat: int, work: Callable[[], object]) -> float:
    """The shortest time of several runs, in seconds."""
    times = []
    for _ in range(repeat):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def resident() -> int:
    """Memory of this process in KiB, now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def measure(archive: Path, second: Path, folder: Path, repeat: int) -> list[dict[str, object]]:
    os.environ["XDG_CACHE_HOME"] = str(folder)
    size, both = archive.stat().st_size, archive.stat().st_size + second.stat().st_size
    merged = folder / "merged.foz"
    before = resident()
    with FossilizeArchive.open(archive) as opened:
        memory = resident() - before
        count = len(opened)
    with FossilizeArchive.open(second) as opened:
        count_of_both = count + len(opened)

    def first_scan() -> None:
        for index in (folder / "shaderkiln" / "fossilize").glob("*.index"):
            index.unlink()
        FossilizeArchive.open(archive).close()

    def with_index() -> None:
        with FossilizeArchive.open(archive) as opened:
            assert opened.indexed or count < 1024

    def read_modules() -> None:
        with FossilizeArchive.open(archive) as opened:
            for digest in opened.hashes(Tag.SHADER_MODULE):
                opened.read(Tag.SHADER_MODULE, digest)

    def peer_modules() -> None:
        with archive.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            for at, stored, flags, _crc, _raw in (item for (tag, _), item in places.items() if tag == Tag.SHADER_MODULE):
                body = data[at + 56 : at + 56 + stored]
                if flags == 2:
                    zlib.decompress(body)

    scan = least(repeat, first_scan)
    indexed = least(repeat, with_index)
    read = least(repeat, read_modules)
    merging = least(repeat, lambda: merge([archive, second], merged))
    plain_merging = least(repeat, lambda: peer_merge([archive, second], merged))
    merged.unlink()
    plain = least(repeat, lambda: peer_scan(archive))
    places = peer_scan(archive)
    modules = sum(tag == Tag.SHADER_MODULE for tag, _ in places)
    plain_read = least(repeat, peer_modules)
    rows = []
    for name, entries, stored, ours, peer, recorded in (
        ("first scan", count, size, scan, plain, 1.07),
        ("open with index", count, size, indexed, plain, 1.07),
        ("read all modules", modules, 0, read, plain_read, None),
        ("merge two, checksums verified", count_of_both, both, merging, plain_merging, 7.0),
    ):
        rows.append(
            {
                "operation": name,
                "entries": entries,
                "us_per_entry": ours / max(entries, 1) * 1e6,
                "mb_per_s": stored / ours / 1e6 if stored else None,
                "peer_us_per_entry": peer / max(entries, 1) * 1e6,
                "times_as_fast_as_peer": peer / ours,
                "fossilize_recorded_us_per_entry": recorded,
                "times_as_fast_as_fossilize": recorded / (ours / max(entries, 1) * 1e6) if recorded else None,
            }
        )
    rows[-1]["times_fossilize_mb_per_s"] = both / merging / 1e6 / RECORDED_MERGE
    rows[0]["memory_kib_after_open"] = memory
    return rows


def main() -> None:
    ask = argparse.ArgumentParser(
        description="Speed and memory of Fossilize archives beside plain Python and Fossilize's tools."
    )
    ask.add_argument("--archive", type=Path)
    ask.add_argument("--second", type=Path, help="another archive to merge with; without it the first is merged with itself")
    ask.add_argument("--repeat", type=int, default=5)
    ask.add_argument("--json", action="store_true")
    args = ask.parse_args()
    if not args.archive and not MAKER.exists():
        ask.error("--archive is needed: the tool that makes one is not beside the project")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive, second = args.archive, args.second or args.archive
        if not archive:
            archive, second = folder / "one.foz", folder / "two.foz"
            for seed, path in enumerate((archive, second), 1):
                subprocess.run([sys.executable, MAKER, path, "--seed", str(seed)], check=True, stdout=subprocess.DEVNULL)
        rows = measure(archive, second, folder, args.repeat)
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    print(
        f"{'operation':30} {'entries':>8} {'µs/entry':>9} {'MB/s':>8} {'peer µs':>8} {'× peer':>7} {'Fossilize µs':>12} {'×':>5}"
    )
    for row in rows:
        cells = [row["operation"], row["entries"], row["us_per_entry"], row["mb_per_s"], row["peer_us_per_entry"]]
        cells += [row["times_as_fast_as_peer"], row["fossilize_recorded_us_per_entry"], row["times_as_fast_as_fossilize"]]
        texts = [f"{cell:.3f}" if isinstance(cell, float) else "-" if cell is None else str(cell) for cell in cells]
        print("{:30} {:>8} {:>9} {:>8} {:>8} {:>7} {:>12} {:>5}".format(*texts))
    print(f"merge: {rows[-1]['times_fossilize_mb_per_s']:.2f} times Fossilize's recorded {RECORDED_MERGE:.0f} MB/s")
    print(f"memory kept by an open archive: {rows[0]['memory_kib_after_open']} KiB")


if __name__ == "__main__":
    main()
