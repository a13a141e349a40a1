"""Object keys: what they depend on, and what not."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from structure_strategies import described, variants

from shaderkiln.descriptions.canonical import (
    MODULE_PREFIX,
    OBJECT_PREFIX,
    Digester,
    canonical_varint,
    module_digest,
    object_key,
    resolver,
    sorted_chains,
)
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.descriptions.traversal import references
from shaderkiln.errors import DamagedInputError
from shaderkiln.formats.fossilize import encode_varint_words, spirv_to_varint
from shaderkiln.vulkan_registry import structures as s
from shaderkiln.vulkan_registry.handles import Handle, UnknownStructure

MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
PIPELINES = (s.GraphicsPipelineCreateInfo, s.ComputePipelineCreateInfo, s.RayTracingPipelineCreateInfoKHR)


def key(create_info: Any, objects: dict[Handle, Struct]) -> bytes:
    return object_key(PipelineDescription("", "graphics", create_info, objects))


def example() -> tuple[s.GraphicsPipelineCreateInfo, dict[Handle, Struct]]:
    """A pipeline with an object of every kind."""
    objects: dict[Handle, Struct] = {
        s.SamplerYcbcrConversionHandle(1): s.SamplerYcbcrConversionCreateInfo(format=3),
        s.SamplerHandle(1): s.SamplerCreateInfo(next=(s.SamplerYcbcrConversionInfo(s.SamplerYcbcrConversionHandle(1)),)),
        s.DescriptorSetLayoutHandle(1): s.DescriptorSetLayoutCreateInfo(
            bindings=(s.DescriptorSetLayoutBinding(0, 1, 1, 16, (s.SamplerHandle(1),)),),
            next=(s.DescriptorSetLayoutBindingFlagsCreateInfo((1,)),),
        ),
        s.PipelineLayoutHandle(1): s.PipelineLayoutCreateInfo(
            0, (s.DescriptorSetLayoutHandle(1), None), (s.PushConstantRange(1, 0, 4),)
        ),
        s.ShaderModuleHandle(1): s.ShaderModuleCreateInfo(0, b"\3\2\x23\7\1\0\0\0"),
        s.ShaderModuleHandle(2): s.ShaderModuleCreateInfo(0, b"\3\2\x23\7\2\0\0\0"),
        s.RenderPassHandle(1): s.RenderPassCreateInfo(subpasses=(s.SubpassDescription(),)),
        s.PipelineHandle(1): s.GraphicsPipelineCreateInfo(
            stages=(s.PipelineShaderStageCreateInfo(0, 1, s.ShaderModuleHandle(2)),), layout=s.PipelineLayoutHandle(1)
        ),
    }
    pipeline = s.GraphicsPipelineCreateInfo(
        flags=4,
        stages=(
            s.PipelineShaderStageCreateInfo(
                0, 16, s.ShaderModuleHandle(1), "main", s.SpecializationInfo((s.SpecializationMapEntry(0, 0, 1),), b"\1")
            ),
        ),
        viewport_state=s.PipelineViewportStateCreateInfo(viewports=(s.Viewport(),)),
        layout=s.PipelineLayoutHandle(1),
        render_pass=s.RenderPassHandle(1),
        base_pipeline_handle=s.PipelineHandle(1),
        next=(s.PipelineCreateFlags2CreateInfo(4), UnknownStructure(1999000000, '{"sType":1999000000,"a":1}')),
    )
    return pipeline, objects


def test_every_field_of_every_object_takes_part() -> None:
    pipeline, objects = example()
    keys = [key(pipeline, objects)]
    keys.extend(key(changed, objects) for changed in variants(pipeline))
    for handle, item in objects.items():
        keys.extend(key(pipeline, objects | {handle: changed}) for changed in variants(item))
    assert len(keys) > 80
    assert len(set(keys)) == len(keys)


def test_references_take_part() -> None:
    pipeline, objects = example()
    other = msgspec.structs.replace(pipeline, base_pipeline_handle=None)
    assert key(pipeline, objects) != key(other, objects)
    swapped = objects | {
        s.ShaderModuleHandle(1): objects[s.ShaderModuleHandle(2)],
        s.ShaderModuleHandle(2): objects[s.ShaderModuleHandle(1)],
    }
    assert key(pipeline, objects) != key(pipeline, swapped)


def renamed(value: Any) -> Any:
    """The same with other names of objects."""
    if isinstance(value, Handle):
        return type(value)(value.value ^ 0xFF00)
    if isinstance(value, tuple):
        return tuple(map(renamed, value))
    if isinstance(value, Struct):
        return msgspec.structs.replace(value, **{field: renamed(getattr(value, field)) for field in value.__struct_fields__})
    return value


def test_names_order_and_objects_that_are_not_reached_take_no_part() -> None:
    pipeline, objects = example()
    expected = key(pipeline, objects)
    assert key(renamed(pipeline), {renamed(handle): renamed(item) for handle, item in objects.items()}) == expected
    assert key(pipeline, dict(reversed(objects.items()))) == expected
    assert key(pipeline, objects | {s.SamplerHandle(77): s.SamplerCreateInfo()}) == expected
    assert key(msgspec.structs.replace(pipeline, next=pipeline.next[::-1]), objects) == expected


def test_two_names_of_equal_objects_are_the_same() -> None:
    pipeline, objects = example()
    same = objects | {s.ShaderModuleHandle(2): objects[s.ShaderModuleHandle(1)]}
    base = same[s.PipelineHandle(1)]
    assert isinstance(base, s.GraphicsPipelineCreateInfo)
    other = msgspec.structs.replace(base, stages=(s.PipelineShaderStageCreateInfo(0, 1, s.ShaderModuleHandle(1)),))
    assert key(pipeline, same) == key(pipeline, same | {s.PipelineHandle(1): other})


def test_the_text_of_unknown_structures_is_compared_by_what_it_says() -> None:
    def of(text: str) -> bytes:
        return key(s.ComputePipelineCreateInfo(next=(UnknownStructure(5, text),)), {})

    assert of('{"sType":5,"a":[1, 2]}') == of('{ "a":[1,2],"sType":5}') != of('{"sType":5,"a":[2,1]}')


def test_the_encoding_is_fixed() -> None:
    sampler = s.SamplerCreateInfo()
    encoded = bytes([0xDC, 0, 18, 31, *[0] * 7]) + (b"\xcb" + bytes(8)) + b"\0" + (b"\xcb" + bytes(8)) + b"\0\0"
    encoded += (b"\xcb" + bytes(8)) * 2 + b"\0\0\x90"
    expected = hashlib.sha256(OBJECT_PREFIX + encoded).digest()
    assert Digester(resolver({})).digest(sampler) == expected
    module = s.ShaderModuleCreateInfo(0, b"\x2c\1\0\0\5\0\0\0")
    assert Digester(resolver({})).digest(module) == hashlib.sha256(MODULE_PREFIX + b"0 8\0" + b"\xac\2\5").digest()


def bits(value: Any) -> Any:
    """Something comparable in which 0.0 and -0.0 differ, and chains have no order."""
    if isinstance(value, UnknownStructure):
        return ("unknown", value.s_type, value.text)
    if isinstance(value, Struct):
        parts = {field: bits(getattr(value, field)) for field in value.__struct_fields__}
        if "next" in parts:
            parts["next"] = sorted(parts["next"], key=repr)
        return [type(value).__name__, parts]
    if isinstance(value, tuple):
        return list(map(bits, value))
    return value.hex() if isinstance(value, float) else value


@MANY
@given(data=st.data())
def test_keys_differ_where_pipelines_differ_and_only_there(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(PIPELINES))
    one = data.draw(described(cls, 1))
    other = data.draw(st.sampled_from([one, *variants(one)]) | described(cls, 1))
    # A different object for each handle, so that references differ where handles do.
    handles = (*references(one), *references(other))
    objects: dict[Handle, Struct] = {
        handle: s.ShaderModuleCreateInfo(0, handle.value.to_bytes(8, "little") + type(handle).__name__.encode().ljust(40))
        for handle in handles
    }
    assert (key(one, objects) == key(other, objects)) == (bits(one) == bits(other))


@MANY
@given(data=st.data())
def test_sorting_chains_changes_their_order_only(data: st.DataObject) -> None:
    pipeline = data.draw(described(s.GraphicsPipelineCreateInfo, 2))
    ordered = sorted_chains(pipeline)
    assert bits(ordered) == bits(pipeline)
    assert sorted_chains(ordered) is ordered


def test_references_are_found_everywhere() -> None:
    pipeline, objects = example()
    assert set(references(pipeline)) == {
        s.ShaderModuleHandle(1),
        s.PipelineLayoutHandle(1),
        s.RenderPassHandle(1),
        s.PipelineHandle(1),
    }
    assert references(objects[s.DescriptorSetLayoutHandle(1)]) == (s.SamplerHandle(1),)
    assert references(objects[s.SamplerHandle(1)]) == (s.SamplerYcbcrConversionHandle(1),)
    library = s.GraphicsPipelineCreateInfo(next=(s.PipelineLibraryCreateInfoKHR((s.PipelineHandle(3), None)),))
    assert references(library) == (s.PipelineHandle(3),)


def all_handles(value: Any) -> set[Handle]:
    if isinstance(value, Handle):
        return {value}
    parts = value if isinstance(value, tuple) else ()
    if isinstance(value, Struct):
        parts = tuple(getattr(value, field) for field in value.__struct_fields__)
    return set().union(*map(all_handles, parts))


@MANY
@given(data=st.data())
def test_references_are_all_handles(data: st.DataObject) -> None:
    structure = data.draw(described(data.draw(st.sampled_from((*PIPELINES, s.DescriptorSetLayoutCreateInfo))), 2))
    assert set(references(structure)) == all_handles(structure)


def test_missing_and_circular_references_are_named() -> None:
    pipeline = s.ComputePipelineCreateInfo(layout=s.PipelineLayoutHandle(0xABC))
    with pytest.raises(DamagedInputError, match=r"PipelineLayoutHandle.*abc.*missing"):
        key(pipeline, {})
    circular = s.ComputePipelineCreateInfo(base_pipeline_handle=s.PipelineHandle(1))
    with pytest.raises(DamagedInputError, match="refers to itself"):
        key(circular, {s.PipelineHandle(1): circular})


@given(st.lists(st.integers(0, 2**32 - 1), max_size=40))
def test_a_module_has_one_key_however_its_words_are_coded(words: list[int]) -> None:
    code = b"".join(word.to_bytes(4, "little") for word in words)
    coded = encode_varint_words(words)
    assert canonical_varint(coded, len(code)) == coded
    digest = Digester(resolver({})).digest(s.ShaderModuleCreateInfo(3, code))
    assert digest == module_digest(3, len(code), spirv_to_varint(code))
    # Each word in one byte more than it needs, where there is room for it.
    longer = b"".join(
        one[:-1] + bytes((one[-1] | 0x80, 0)) if len(one) < 5 else one for one in (encode_varint_words([w]) for w in words)
    )
    assert canonical_varint(longer, len(code)) == coded


@pytest.mark.parametrize("coded", [b"\x80", b"\x80\x80\x80\x80\x10", b"\xff\xff\xff\xff\xff\x01", b"\1\1", b""])
def test_words_that_are_not_the_stated_code_are_damaged(coded: bytes) -> None:
    with pytest.raises(DamagedInputError):
        canonical_varint(coded, 4)
