#!/usr/bin/env python3
"""Pipeline caches and pipeline binaries of a driver: cold creation against creation from what was kept.

usage: vulkan_caches.py CAPTURE FAMILY [--threads N] [--json]

For every pipeline of the capture that the family takes: created cold through a cache; the cache's data given to a new device, where
each pipeline is created with compiling forbidden; two halves merged by the driver and used the same way; and, where the driver has
VK_KHR_pipeline_binary, captured as binaries and created from them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import shaderkiln.vulkan as vk
from shaderkiln.compilers.plugin import open_family
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.sources.capture import Capture

FAIL_ON_COMPILE_REQUIRED = 0x100


def create(
    device: vk.VulkanDevice, cache: vk.PipelineCache | None, descriptions: Sequence[PipelineDescription]
) -> list[vk.Pipeline]:
    pipelines: list[vk.Pipeline] = []
    calls = {"graphics": device.create_graphics_pipelines, "compute": device.create_compute_pipelines}
    for kind, call in calls.items():
        if chosen := [description for description in descriptions if description.kind == kind]:
            pipelines += call(cache, chosen)
    return pipelines


def forbidden(description: PipelineDescription) -> PipelineDescription:
    """The same pipeline with compiling forbidden."""
    info = description.create_info
    changed = msgspec.structs.replace(info, flags=info.flags | FAIL_ON_COMPILE_REQUIRED)
    return msgspec.structs.replace(description, create_info=changed)


def seconds(pipelines: Sequence[vk.Pipeline]) -> float:
    return sum(pipeline.seconds for pipeline in pipelines)


def main() -> None:
    ask = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    ask.add_argument("capture", type=Path)
    ask.add_argument("family")
    ask.add_argument("--threads", type=int)
    ask.add_argument("--json", action="store_true")
    args = ask.parse_args()
    with Capture.open(args.capture) as capture:
        compiler = open_family(args.family, capture.application)
        loaded = [capture.load(kind, name) for kind, name in capture.pipelines() if kind != "raytracing"]
        features = capture.application.features
        descriptions = [
            description for description in loaded if description.create_info.next == () and not compiler.check(description)
        ]
        doubtful = sum(1 for description in loaded if any(need.is_doubt for need in compiler.check(description)))
        record: dict[str, object] = {"capture": args.capture.name, "family": args.family, "pipelines": len(descriptions)}
        record["left_out"] = len(loaded) - len(descriptions) - doubtful
        strict = [forbidden(description) for description in descriptions]
        half = len(descriptions) // 2
        started = time.perf_counter()
        with vk.open_device(args.family, features=features, threads=args.threads) as device:
            record["driver"] = device.identity.driver_build
            record["cache_layout"] = str(device.cache_layout)
            cold_cache = device.create_pipeline_cache()
            cold = create(device, cold_cache, descriptions)
            record |= {"cold_created": sum(map(bool, cold)), "cold_s": seconds(cold)}
            record["cold_feedback_hits"] = sum(bool(p.feedback and p.feedback.cache_hit) for p in cold)
            data = cold_cache.read()
            record["cache_bytes"] = len(data)
            record["same_bytes_twice"] = data == cold_cache.read()
            first, second = device.create_pipeline_cache(), device.create_pipeline_cache()
            create(device, first, descriptions[:half])
            create(device, second, descriptions[half:])
            halves = first.read(), second.read()
            empty = device.create_pipeline_cache()
            record["misses_with_an_empty_cache"] = sum(p.result == vk.COMPILE_REQUIRED for p in create(device, empty, strict))
        with vk.open_device(args.family, features=features, threads=args.threads) as device:
            warm_cache = device.create_pipeline_cache(data)
            warm = create(device, warm_cache, strict)
            record |= {
                "warm_rejection": str(warm_cache.rejection or ""),
                "warm_hits": sum(map(bool, warm)),
                "warm_s": seconds(warm),
            }
            merged = device.create_pipeline_cache(halves[0])
            device.merge_pipeline_caches(merged, [device.create_pipeline_cache(halves[1])])
            record["hits_after_merge"] = sum(map(bool, create(device, merged, strict)))
            damaged = bytearray(data)
            damaged[20] ^= 1  # the cache UUID
            refused = device.create_pipeline_cache(bytes(damaged))
            record["foreign_rejection"] = str(refused.rejection)
            if device.identity.object_code_form == "pipeline-binary":
                made = [(description, device.create_pipeline_binaries(description)) for description in descriptions]
                kept = [(description, binaries) for description, binaries in made if binaries]
                again = [device.create_pipeline_from_binaries(description, binaries) for description, binaries in kept]
                record |= {
                    "binaries": sum(len(binaries) for _, binaries in kept),
                    "binary_bytes": sum(len(binary.data) for _, binaries in kept for binary in binaries),
                    "binary_hits": sum(bool(pipeline.hit) for pipeline in again),
                    "binary_s": seconds(again),
                }
        record["cold_to_warm"] = float(record["cold_s"]) / max(float(record["warm_s"]), 1e-9)  # type: ignore[arg-type]
        record["wall_s"] = time.perf_counter() - started
    if args.json:
        print(json.dumps(record))
        return
    for name, value in record.items():
        print(f"{name:>26}  {value:.4f}" if isinstance(value, float) else f"{name:>26}  {value}")


if __name__ == "__main__":
    main()
