#!/usr/bin/env python3
"""What a Vulkan registry has that the package does not know: what its generated files lack, and what tables written by hand lack.

usage: unknown.py [--registry vk.xml] [--grammar spirv.core.grammar.json]

Without arguments it reads ``inputs/``, and lists what the tables written by hand leave out of the committed version.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import generate

from shaderkiln.descriptions import requirements_spirv, requirements_state
from shaderkiln.drivers import marshal
from shaderkiln.formats import fossilize_hash, fossilize_json, vendors
from shaderkiln.vulkan_registry import _device, _members, _requirements, constants


def unknown(registry: generate.Registry, grammar: dict[str, Any]) -> dict[str, list[str]]:
    """The place that lacks them, and the names that it lacks, sorted."""
    reached = generate.closure(registry, list(generate.DESCRIBED), chains=True)
    described = generate.structures_module(registry, reached)[2]
    found = {"tools/registry/generate.py: types whose members it cannot express": sorted(set(reached) - set(described))}
    return found | _not_generated(registry, grammar, described) | _not_by_hand(registry, grammar, described)


def _not_generated(registry: generate.Registry, grammar: dict[str, Any], described: list[str]) -> dict[str, list[str]]:
    known = {name for name, _, _ in _members.MEMBERS.values()}
    found = {"vulkan_registry: structures of descriptions": sorted(set(described) - known)}
    for title, base, table in (
        ("features", "VkPhysicalDeviceFeatures2", _device.FEATURES),
        ("properties", "VkPhysicalDeviceProperties2", _device.PROPERTIES),
    ):
        found[f"vulkan_registry: structures of {title}"] = sorted(set(registry.extending(base)) - set(table))
    for group, names in constants.NAMES.items():
        found[f"vulkan_registry: {group}"] = sorted(n for n, value in registry.enums[group].items() if value not in names)
    found["vulkan_registry: SPIR-V capabilities"] = sorted(
        name for name, value in _enumerants(grammar, "Capability").items() if value not in _requirements.CAPABILITY_NAMES
    )
    return {f"{place} (run generate.py)": names for place, names in found.items()}


def _not_by_hand(registry: generate.Registry, grammar: dict[str, Any], described: list[str]) -> dict[str, list[str]]:
    fields = [field for name in described for field in generate.fields_of(registry, registry.structures[name]) or ()]
    linked = {cls.__name__ for cls in fossilize_hash._LINKS}
    stages = registry.enums["VkShaderStageFlagBits"]
    one_stage = {n: v for n, v in stages.items() if v & v - 1 == 0}
    flags = registry.enums["VkPipelineCreateFlagBits2"]
    types = registry.enums["VkDescriptorType"]
    counted = {kind for _, kinds in requirements_state._COUNTED for kind in kinds}
    models = {model for models in requirements_spirv.EXECUTION_MODELS.values() for model in models}
    wide = {
        f.c_type
        for f in fields
        if f.kind in ("value", "values") and generate.scalar_kind(registry, f.c_type) in ("Q", "q", "N")
    }
    return {
        "formats/fossilize_hash: structures in chains that have no hash": sorted(
            name
            for name in described
            if registry.structures[name].extends and name not in generate.DESCRIBED and generate.class_name(name) not in linked
        ),
        "formats/fossilize_json: members of 64 bits": sorted(wide - fossilize_json._WIDE),
        "drivers/marshal: kinds of members": sorted({f.kind for f in fields} - set(marshal._FILLS)),
        "formats/vendors: VkVendorId": _without(registry.enums["VkVendorId"], vendors.VENDORS),
        "descriptions/requirements_state: dynamic states of extensions without a feature": _without(
            {n: v for n, v in registry.enums["VkDynamicState"].items() if _of_extension(registry, "VkDynamicState", n)},
            requirements_state.DYNAMIC_FEATURES,
        ),
        "descriptions/requirements_state: create flags of pipelines without a feature": _without(
            {n: v for n, v in flags.items() if _of_extension(registry, "VkPipelineCreateFlagBits2", n)},
            requirements_state._CREATE_FLAG_FEATURES,
        ),
        "descriptions/requirements_state: descriptor types without a feature for update after bind": _without(
            types, requirements_state._UPDATE_AFTER_BIND
        ),
        "descriptions/requirements_state: descriptor types without a limit for each stage": _without(types, counted),
        "descriptions/requirements_state: flags of bindings": _without(
            registry.enums["VkDescriptorBindingFlagBits"], {1, *requirements_state._BINDING_FLAGS}
        ),
        "descriptions/requirements_spirv: stages": _without(one_stage, requirements_spirv.EXECUTION_MODELS),
        "descriptions/requirements_spirv: execution models": _without(_enumerants(grammar, "ExecutionModel"), models),
    }


def _enumerants(grammar: dict[str, Any], kind: str) -> dict[str, int]:
    return {e["enumerant"]: e["value"] for k in grammar["operand_kinds"] if k["kind"] == kind for e in k["enumerants"]}


def _of_extension(registry: generate.Registry, group: str, name: str) -> bool:
    origin = registry.enum_origin[group].get(name)
    return origin is not None and bool(origin.extensions) and not origin.versions


def _without(values: dict[str, int], known: Iterable[int]) -> list[str]:
    numbers = set(known)
    return sorted(name for name, value in values.items() if value not in numbers)


def main() -> None:
    ask = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    generate.add_inputs(ask)
    args = ask.parse_args()
    for place, names in unknown(*generate.read_inputs(args.registry, args.grammar)).items():
        if names:
            print(f"{place}\n  " + "\n  ".join(names))


if __name__ == "__main__":
    main()
