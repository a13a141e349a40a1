"""Hypothesis strategies for every described structure, from the registry's members."""

from __future__ import annotations

import re
import struct
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import Struct

from shaderkiln.vulkan_registry import structures
from shaderkiln.vulkan_registry._members import MEMBERS
from shaderkiln.vulkan_registry.handles import UnknownStructure

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
HANDLE_VALUES = st.integers(1, 4) | st.integers(1, 2**64 - 1)
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
UNKNOWN = st.builds(
    lambda s_type, value: UnknownStructure(s_type, f'{{"sType":{s_type},"value":{value}}}'),
    st.integers(1_999_000_000, 1_999_000_003),
    st.integers(0, 9),
)
WIDE = {"size_t", "VkPipelineStageFlags2", "VkAccessFlags2", "VkAccessFlags3KHR", "VkPipelineCreateFlags2"}
NEVER_CHAINED_IN_FOSSILIZE = {"SamplerYcbcrConversionInfo"}
"""A recorded sampler holds the conversion itself."""


def scalars(c_type: str) -> st.SearchStrategy[Any]:
    """Values of a C type."""
    if c_type == "float":
        return FLOATS
    if c_type == "int32_t":
        return st.integers(-(2**31), 2**31 - 1)
    bits = 16 if c_type == "uint16_t" else 64 if c_type in WIDE else 32
    return st.integers(0, 3) | st.integers(0, 2**bits - 1)


@cache
def described(cls: type[Struct], depth: int = 3) -> st.SearchStrategy[Any]:
    """Structures of a class, valid as C: arrays that share a count have it. ``depth`` limits chains within chains."""
    fields = {field: _member(cls, *rest, depth) for field, *rest in MEMBERS[cls.__name__][2]}
    if "next" in cls.__struct_fields__:
        fields["next"] = _chains(cls, depth)
    return st.fixed_dictionaries(fields).map(lambda values: _valid(cls, values))


def _member(cls: type[Struct], kind: str, _c_member: str, c_type: str, _count: str, depth: int) -> st.SearchStrategy[Any]:
    name = c_type.removeprefix("Vk")
    if kind == "string":
        return NAMES
    if kind == "bytes":
        words = cls is structures.ShaderModuleCreateInfo
        return st.lists(st.binary(min_size=4, max_size=4), max_size=3).map(b"".join) if words else st.binary(max_size=6)
    if kind == "color":
        return st.tuples(*[scalars("uint32_t")] * 4)
    if kind == "fixed":
        return st.tuples(*[scalars(c_type)] * (4 if cls is structures.PipelineColorBlendStateCreateInfo else 2))
    if kind in ("handle", "handles"):
        handles = st.none() | HANDLE_VALUES.map(getattr(structures, f"{name}Handle"))
        return handles if kind == "handle" else st.lists(handles, max_size=3).map(tuple)
    if kind in ("value", "values"):
        return scalars(c_type) if kind == "value" else st.lists(scalars(c_type), max_size=3).map(tuple)
    nested = described(getattr(structures, name), depth)
    if kind == "pointer":
        return st.none() | nested
    return nested if kind == "struct" else st.lists(nested, max_size=2).map(tuple)


def _chains(cls: type[Struct], depth: int) -> st.SearchStrategy[Any]:
    names = (set(re.findall(r"[A-Z]\w+", cls.__annotations__["next"])) & set(MEMBERS)) - NEVER_CHAINED_IN_FOSSILIZE
    if depth == 0:
        return st.just(())
    links = st.one_of(UNKNOWN, *(described(getattr(structures, name), depth - 1) for name in sorted(names)))
    return st.lists(links, max_size=2).map(tuple)


def _valid(cls: type[Struct], values: dict[str, Any]) -> Struct:
    """A structure whose counts and optional arrays agree."""
    defaults = cls()
    for field, annotation in cls.__annotations__.items():
        if annotation.startswith("tuple") and annotation.endswith("| None") and field in values and not values[field]:
            values[field] = None
    for count, array in COUNTS.get(cls.__name__, ()):
        if values[array] is not None:
            values[count] = getattr(defaults, count)
    if cls is structures.DescriptorSetLayoutBinding and values["immutable_samplers"] is not None:
        values["descriptor_count"] = len(values["immutable_samplers"])
    if cls in (structures.SubpassDescription, structures.SubpassDescription2) and values["resolve_attachments"] is not None:
        size = min(len(values["resolve_attachments"]), len(values["color_attachments"]))
        values["resolve_attachments"] = values["resolve_attachments"][:size]
        values["color_attachments"] = values["color_attachments"][:size]
    if cls is structures.PipelineMultisampleStateCreateInfo and values["sample_mask"] is not None:
        values["rasterization_samples"] = 32 * len(values["sample_mask"])
    return cls(**values)


COUNTS = {
    "PipelineViewportStateCreateInfo": (("viewport_count", "viewports"), ("scissor_count", "scissors")),
    "PipelineViewportWScalingStateCreateInfoNV": (("viewport_count", "viewport_w_scalings"),),
    "PipelineCoverageModulationStateCreateInfoNV": (("coverage_modulation_table_count", "coverage_modulation_table"),),
    "PipelineColorBlendStateCreateInfo": (("attachment_count", "attachments"),),
    "RenderingInputAttachmentIndexInfo": (("color_attachment_count", "color_attachment_input_indices"),),
    "GraphicsPipelineCreateInfo": (("stage_count", "stages"),),
}


def variants(value: Any) -> list[Any]:
    """Values that differ from a structure in exactly one place each; handles are left alone."""
    if isinstance(value, Struct):
        return [
            msgspec.structs.replace(value, **{field: changed})
            for field in value.__struct_fields__
            for changed in variants(getattr(value, field))
        ]
    if isinstance(value, tuple):
        changed = [(*value[:index], item, *value[index + 1 :]) for index, old in enumerate(value) for item in variants(old)]
        return changed + ([value[:-1]] if value else [])
    if isinstance(value, float):
        return [struct.unpack("<f", (struct.unpack("<I", struct.pack("<f", value))[0] ^ 1).to_bytes(4, "little"))[0]]
    if isinstance(value, int):
        return [value ^ 1]
    if isinstance(value, str):
        return [value + "x"]
    if isinstance(value, bytes):
        return [value[:-1] + bytes((value[-1] ^ 1,))] if value else [b"\1\2\3\4"]
    return []
