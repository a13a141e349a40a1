"""The description of a pipeline in its own piece: bytes in which handles are made from content (XS-02)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from shaderkiln.descriptions.pipeline import PipelineCreateInfo, PipelineDescription, pipeline_kind
from shaderkiln.drivers.protocol import AnyObject
from shaderkiln.errors import DamagedInputError
from shaderkiln.formats.pipeline_components import Assembled
from shaderkiln.vulkan_registry import structures as vk
from shaderkiln.vulkan_registry.handles import Handle


class _Object(msgspec.Struct, frozen=True, array_like=True):
    kind: str
    """Name of the handle's class."""
    description: AnyObject


_KINDS: dict[str, tuple[Any, ...]] = {
    cls.__name__: (cls, *described)
    for cls, *described in (
        (vk.SamplerHandle, vk.SamplerCreateInfo),
        (vk.SamplerYcbcrConversionHandle, vk.SamplerYcbcrConversionCreateInfo),
        (vk.DescriptorSetLayoutHandle, vk.DescriptorSetLayoutCreateInfo),
        (vk.PipelineLayoutHandle, vk.PipelineLayoutCreateInfo),
        (vk.ShaderModuleHandle, vk.ShaderModuleCreateInfo),
        (vk.RenderPassHandle, vk.RenderPassCreateInfo, vk.RenderPassCreateInfo2),
    )
}
"""The handle's class by its name, and what describes such an object."""


class _Described(msgspec.Struct, frozen=True, array_like=True):
    create_info: PipelineCreateInfo
    objects: tuple[_Object, ...]
    """Each after those to which it refers; its handle is made from its content. Shader modules come without their code."""


def without_modules(info: PipelineCreateInfo) -> PipelineCreateInfo:
    """The same without shader modules, as a driver takes it that gets pipeline binaries."""

    def bare(stage: vk.PipelineShaderStageCreateInfo) -> vk.PipelineShaderStageCreateInfo:
        return replace(stage, module=None, next=tuple(i for i in stage.next if not isinstance(i, vk.ShaderModuleCreateInfo)))

    if isinstance(info, vk.ComputePipelineCreateInfo):
        return replace(info, stage=bare(info.stage))
    return replace(info, stages=None if info.stages is None else tuple(map(bare, info.stages)))


def encode_description(info: PipelineCreateInfo, objects: Mapping[Handle, Any]) -> tuple[bytes, tuple[bytes, ...]]:
    """What ``info`` reaches, under handles that are made from content: the source's own names take no part.

    The code of its shader modules is not in it, and comes behind.
    """
    from shaderkiln.descriptions.traversal import references

    renamed: dict[Handle, int] = {}
    found: dict[tuple[str, int], bytes] = {}
    modules: list[bytes] = []

    def number(handle: Any) -> int:
        return renamed[handle]

    encoder = msgspec.msgpack.Encoder(enc_hook=number)

    def visit(structure: Any) -> None:
        for handle in references(structure):
            if handle not in renamed:
                one = objects[handle]
                visit(one)
                encoded = encoder.encode(one)
                kind, renamed[handle] = type(handle).__name__, content_handle(encoded)
                if (kind, renamed[handle]) not in found:
                    if isinstance(one, vk.ShaderModuleCreateInfo):
                        modules.append(one.code)
                        encoded = encoder.encode(replace(one, code=b""))
                    found[kind, renamed[handle]] = msgspec.msgpack.encode([kind, msgspec.Raw(encoded)])

    visit(info)
    encoded = msgspec.msgpack.encode([msgspec.Raw(encoder.encode(info)), list(map(msgspec.Raw, found.values()))])
    return encoded, tuple(modules)


def content_handle(encoded: bytes) -> int:
    """The number of an object from its encoding (as lowering does it)."""
    return int.from_bytes(hashlib.sha256(encoded).digest()[:8], "little") or 1


def _to_number(value: Any) -> int:
    if isinstance(value, Handle):
        return value.value
    raise NotImplementedError(type(value).__name__)


def _from_number(cls: type[Any], value: Any) -> Any:
    if issubclass(cls, Handle):
        return cls(value)
    raise NotImplementedError(cls.__name__)


def decode_description(assembled: Assembled) -> PipelineDescription:
    """What ``encode_description`` has encoded. Raises DamagedInputError."""
    record = assembled.record
    try:
        found = _decoder().decode(record.description)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DamagedInputError(f"pipeline: its description cannot be read: {error}") from None
    kind = pipeline_kind(found.create_info)
    objects = dict(_objects(found, assembled.modules))
    if kind != record.kind or len(record.object_key) != 32 or not 0 <= record.version < 1 << 64:
        raise DamagedInputError("pipeline: its description is one of another kind of pipeline")
    _check_references(found, objects)
    return PipelineDescription(record.object_key.hex()[:16], kind, found.create_info, objects)


def _objects(found: _Described, modules: tuple[bytes, ...]) -> Iterator[tuple[Handle, Any]]:
    if sum(isinstance(one.description, vk.ShaderModuleCreateInfo) for one in found.objects) != len(modules):
        raise DamagedInputError("pipeline: its description has another number of shaders than there are")
    code = iter(modules)
    encode = msgspec.msgpack.Encoder(enc_hook=_to_number).encode
    for one in found.objects:
        cls, *described = _KINDS.get(one.kind, (None,))
        if cls is None or type(one.description) not in described:
            raise DamagedInputError(f"pipeline: {type(one.description).__name__} does not describe a {one.kind!r}")
        described_by = one.description
        if isinstance(described_by, vk.ShaderModuleCreateInfo):
            described_by = replace(described_by, code=next(code))
        # Workers remember what a handle means, so equal handles must mean equal objects whoever made the piece.
        yield cls(content_handle(encode(described_by))), described_by


def _check_references(found: _Described, objects: Mapping[Handle, Any]) -> None:
    from shaderkiln.descriptions.traversal import references

    for structure in (found.create_info, *objects.values()):
        for handle in references(structure):
            if handle not in objects:
                raise DamagedInputError(f"pipeline: {handle!r} is missing from its description")


@cache
def _decoder() -> msgspec.msgpack.Decoder[_Described]:
    return msgspec.msgpack.Decoder(_Described, dec_hook=_from_number)
