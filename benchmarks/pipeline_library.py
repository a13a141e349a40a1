"""How fast a pipeline library is beside the same content in MessagePack and a dictionary.

    python benchmarks/pipeline_library.py [--json] [--pipelines N]

Times are the best of several rounds; ratios are what to compare between machines. Pipelines are synthetic: state permutations over
200 shaders, two shaders each, of ten thousand pipelines every combination another one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import mmap
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec
import xxhash

from shaderkiln.formats.pipeline_library import Block, BlockWriter, LibraryPipeline, PiecePool
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity

SHADERS = 200
IDENTITY = CompilerIdentity(
    "benchmark", 1, 1, 1, "none", 1, "none", 1, "none", 0, bytes(16), b"", "pipeline-binary", (), 64
)  # fmt: skip


def shader(number: int) -> tuple[bytes, bytes]:
    """A driver's key, and object code of two to ten kilobytes."""
    code = hashlib.shake_128(b"%d" % number).digest(2_000 + 40 * number)
    return hashlib.sha256(code).digest(), code


def used_by(number: int) -> tuple[int, int]:
    return number // 100 % 100, 100 + number % 100


def name(number: int) -> bytes:
    return b"pso-%08d" % number


def key(number: int) -> bytes:
    return hashlib.sha256(b"desc %d" % number).digest()[:20]


def library(count: int) -> BlockWriter:
    pool = PiecePool()
    shaders = [(driver_key, pool.piece(code)) for driver_key, code in map(shader, range(SHADERS))]
    pipelines = []
    for number in range(count):
        combination = pool.combination(
            (driver_key, (piece,)) for driver_key, piece in map(shaders.__getitem__, used_by(number))
        )
        pipelines.append((name(number), LibraryPipeline("graphics", key(number), combination)))
    return BlockWriter(pipelines, IDENTITY, ApplicationIdentity())


def packed(count: int) -> bytes:
    """The same in MessagePack, with the shaders once, too."""
    pipelines = {name(number).decode(): ["graphics", key(number), used_by(number)] for number in range(count)}
    return msgspec.msgpack.encode({"pipelines": pipelines, "shaders": [shader(number) for number in range(SHADERS)]})


def best(call: Callable[[], object], rounds: int = 15) -> float:
    """The least microseconds."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e6


def mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def memory(call: Callable[[], object]) -> float:
    """Kilobytes that are held by what is returned."""
    tracemalloc.start()
    kept = call()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return held / 1024


def measure(folder: Path, count: int) -> dict[str, float]:
    results: dict[str, float] = {}
    writer = library(count)
    results["write_ms"] = best(lambda: library(count).to_bytes(), 3) / 1000
    path, other = folder / "library", folder / "msgpack"
    path.write_bytes(writer.to_bytes())
    other.write_bytes(packed(count))
    shaders = sum(len(shader(number)[1]) for number in range(SHADERS))
    results["block_bytes"] = path.stat().st_size
    results["msgpack_bytes"] = other.stat().st_size
    results["bytes_a_pipeline_beside_1.05_of_pieces"] = (path.stat().st_size - 1.05 * shaders) / count

    results["open_us"] = best(lambda: Block(mapped(path)))
    results["checksum_us"] = best(lambda: xxhash.xxh3_128_digest(memoryview(mapped(path))[24:]))
    results["open_without_checksum_us"] = results["open_us"] - results["checksum_us"]
    results["parse_msgpack_us"] = best(lambda: msgspec.msgpack.decode(mapped(other)))
    results["open_ratio"] = results["open_us"] / results["parse_msgpack_us"]
    results["open_held_kib"] = memory(lambda: Block(mapped(path)))
    results["msgpack_held_kib"] = memory(lambda: msgspec.msgpack.decode(mapped(other)))

    block = Block(mapped(path))
    parsed = msgspec.msgpack.decode(mapped(other))
    names = [name(number) for number in range(count)]
    random.Random(0).shuffle(names)
    names = names[:1000]
    texts = [one.decode() for one in names]

    def load() -> None:
        for one in names:
            place = block.find(one)
            assert place is not None
            block.pipeline(place).values()

    def look_up() -> None:
        for one in texts:
            _, _, used = parsed["pipelines"][one]
            for number in used:
                parsed["shaders"][number]

    results["find_us"] = best(lambda: [block.find(one) and None for one in names]) / len(names)
    results["find_dict_us"] = best(lambda: [parsed["pipelines"].get(one) and None for one in texts]) / len(names)
    results["load_us"] = best(load) / len(names)
    results["load_dict_us"] = best(look_up) / len(names)
    results["find_ratio"] = results["find_us"] / results["find_dict_us"]
    results["load_ratio"] = results["load_us"] / results["load_dict_us"]
    # Until the first hundred pipelines are there, from a closed file.
    results["open_and_load_100_us"] = best(lambda: [_load(opened, names[:100]) for opened in [Block(mapped(path))]])
    results["parse_and_load_100_us"] = results["parse_msgpack_us"] + 100 * results["load_dict_us"]
    results["open_and_load_100_ratio"] = results["open_and_load_100_us"] / results["parse_and_load_100_us"]
    return results


def _load(block: Block, names: list[bytes]) -> None:
    for one in names:
        place = block.find(one)
        assert place is not None
        block.pipeline(place).values()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pipelines", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = {name: round(value, 3) for name, value in measure(Path(folder), arguments.pipelines).items()}
    if arguments.json:
        print(json.dumps(results))
    else:
        for name, value in results.items():
            print(f"{name:40} {value:14.3f}")


if __name__ == "__main__":
    main()
