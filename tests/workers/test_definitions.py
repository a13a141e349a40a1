"""What a worker is told about objects."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec import Struct

from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.drivers.protocol import Define, Forget
from shaderkiln.vulkan_registry.handles import Handle
from shaderkiln.vulkan_registry.structures import (
    ComputePipelineCreateInfo,
    SamplerCreateInfo,
    SamplerHandle,
    ShaderModuleCreateInfo,
    ShaderModuleHandle,
)
from shaderkiln.workers.definitions import Definitions

SAMPLER, MODULE = SamplerHandle(1), ShaderModuleHandle(2)


def told(definitions: Definitions, objects: Mapping[Handle, Struct]) -> list[str | int]:
    """The handles that are defined, and "forget"."""
    description = PipelineDescription("", "compute", ComputePipelineCreateInfo(), objects)
    return ["forget" if isinstance(m, Forget) else m.handle for m in definitions.messages(description)]


@pytest.mark.parametrize("one_source", [True, False])
def test_each_object_is_told_once(one_source: bool) -> None:
    definitions = Definitions(one_source=one_source)
    assert told(definitions, {SAMPLER: SamplerCreateInfo()}) == [1]
    assert told(definitions, {SAMPLER: SamplerCreateInfo(), MODULE: ShaderModuleCreateInfo(code=b"code")}) == [2]
    assert told(definitions, {MODULE: ShaderModuleCreateInfo(code=b"code")}) == []


@pytest.mark.parametrize("bias", [-1.0, 2.0])
def test_a_handle_that_means_something_else_is_told_anew_with_all_others(bias: float) -> None:
    definitions = Definitions(one_source=False)
    module = ShaderModuleCreateInfo(code=b"code")
    assert told(definitions, {MODULE: module, SAMPLER: SamplerCreateInfo(mip_lod_bias=-2.0)}) == [2, 1]
    assert told(definitions, {MODULE: module, SAMPLER: SamplerCreateInfo(mip_lod_bias=bias)}) == ["forget", 2, 1]
    assert told(definitions, {MODULE: ShaderModuleCreateInfo(code=b"edoc")}) == ["forget", 2]


def test_in_one_source_a_known_object_is_not_looked_at() -> None:
    class Unread(dict[Handle, Struct]):
        def __getitem__(self, handle: Handle) -> Struct:
            raise AssertionError(f"{handle} was decoded")

    definitions = Definitions(one_source=True)
    objects: dict[Handle, Struct] = {MODULE: ShaderModuleCreateInfo(code=b"code")}
    assert told(definitions, objects) == [2]
    assert told(definitions, Unread(objects)) == []


def test_past_the_limit_all_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shaderkiln.workers.definitions.DEFINED_BYTES", 1000)
    definitions = Definitions(one_source=True)
    assert told(definitions, {MODULE: ShaderModuleCreateInfo(code=bytes(1000))}) == [2]
    assert told(definitions, {SAMPLER: SamplerCreateInfo()}) == [1]
    assert told(definitions, {SAMPLER: SamplerCreateInfo()}) == ["forget", 1]


def test_what_could_not_be_sent_is_not_known() -> None:
    definitions = Definitions(one_source=True)
    objects: dict[Handle, Struct] = {SAMPLER: SamplerCreateInfo(), MODULE: ShaderModuleCreateInfo()}
    messages = definitions.messages(PipelineDescription("", "compute", ComputePipelineCreateInfo(), objects))
    first = next(messages)
    assert isinstance(first, Define)
    messages.close()
    assert told(definitions, objects) == [1, 2]
