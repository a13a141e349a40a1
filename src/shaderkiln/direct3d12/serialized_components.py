"""Serialized pipeline components (Xbox: SerializeComputePipelineStateX, DeserializeComputePipelineStateX).

Offline, a tool takes a pipeline state apart into pieces. The application keeps them where it likes, each different piece once, and
gives all of a pipeline's pieces back; the driver then creates the pipeline with compiling forbidden. Neither shaders nor a root
signature nor a translator is needed for that: the pipeline's own piece has its description as the driver takes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from shaderkiln.compilers.value_keys import PIPELINE_BINARY, object_code_values
from shaderkiln.descriptions.pipeline import PipelineCreateInfo, PipelineDescription, pipeline_kind
from shaderkiln.drivers.protocol import AnyObject
from shaderkiln.errors import (
    AdapterNotFoundError,
    DamagedInputError,
    DriverError,
    DriverVersionMismatchError,
    InvalidArgumentError,
    NotCurrentlyAvailableError,
    UnsupportedError,
)
from shaderkiln.formats.pipeline_components import (
    Assembled,
    Code,
    PipelineRecord,
    SerializedPipelineState,
    ShaderSlot,
    assemble,
)
from shaderkiln.formats.pipeline_components import serialize as serialize_pieces
from shaderkiln.formats.radv_shader import code_offset
from shaderkiln.formats.vendors import NO_VULKAN_DRIVER, RADV
from shaderkiln.identity import CompilerIdentity
from shaderkiln.keys import Group, ObjectKey
from shaderkiln.vulkan_registry import structures as vk
from shaderkiln.vulkan_registry.handles import Handle

from .creation import Part
from .objects import PipelineState
from .statistics import ObjectSource
from .stored_objects import StoredObject, compiler_digest

if TYPE_CHECKING:
    from .device import Direct3D12Device

_COMPUTE_STAGE = 0x20
_DYNAMIC_BUFFERS = (8, 9)
"""VkDescriptorType of uniform and storage buffers with dynamic offsets."""


class SerializeFlags(IntFlag):
    """D3D12XBOX_SERIALIZE_FLAGS."""

    NONE = 0


class ComputeVariation(msgspec.Struct, frozen=True):
    """What a derived compute pipeline has in place of its base's; None: the same."""

    root_signature: bytes | None = None
    """A serialized root signature."""


class DeserializedPipelineState:
    """A pipeline that was created from its pieces.

    It refers to the caller's pieces, which have to stay as they are for as long as it lives, and copies none of them.
    """

    def __init__(
        self,
        device: Direct3D12Device,
        serialized: SerializedPipelineState,
        object_key: ObjectKey,
        description: PipelineDescription,
        root_signature: bytes,
    ) -> None:
        self.device = device
        self.serialized = serialized
        self.object_key = object_key
        """The key of the pipeline state that was serialized; a derived one has its base's."""
        self.description = description
        """The pipeline as the driver takes it, without shaders where the driver needs none."""
        self.root_signature = root_signature
        """Of a compute pipeline: the one that it has, b"" where its shader alone decides."""

    @property
    def kind(self) -> str:
        """``graphics`` or ``compute``."""
        return self.description.kind

    def recreate(self) -> ObjectSource:
        """Create the pipeline once more, as after the end of the driver's process. Raises as ``deserialize``.

        The pieces are compared with their CRC again.
        """
        _create(self.device, assemble(self.serialized), self.description)
        return ObjectSource.SERIALIZED


def serialize(
    device: Direct3D12Device, pipeline: PipelineState, kind: str, flags: int = SerializeFlags.NONE
) -> SerializedPipelineState:
    """The pieces of a pipeline state of that kind; equal pipelines give equal bytes.

    Raises NotCurrentlyAvailableError on a device that is no tool's, in a process without debug flags; InvalidArgumentError for
    flags, and for what is no pipeline state of that kind and device; UnsupportedError where the driver gives no object code. If no
    cache has the object code any more, it is compiled again, with those errors.
    """
    if not device.serializes:
        raise NotCurrentlyAvailableError("pipelines are serialized offline: by a tool, or in a process with debug flags")
    if not isinstance(flags, int) or flags != SerializeFlags.NONE:
        raise InvalidArgumentError(f"flags is {flags!r}, and must be NONE")
    if not isinstance(pipeline, PipelineState) or pipeline.device is not device:
        raise InvalidArgumentError("pipeline: a pipeline state of this device is needed")
    (part,) = pipeline._parts()
    if part.description.kind != kind:
        raise InvalidArgumentError(f"pipeline: it is one of the kind {part.description.kind}, not {kind}")
    if device.compiler.object_code_form == "none":
        raise UnsupportedError("the driver gives no object code")
    stored = pipeline._object_code()
    signature = b""
    if kind == "compute":
        from shaderkiln.lowering.shaders import own_root_signature

        signature = pipeline.desc.root_signature_blob or own_root_signature(list(pipeline.desc.shaders().values())) or b""
    return serialize_stored(part.key, part.description, stored, device.compiler, root_signature=signature)


def serialize_stored(
    object_key: ObjectKey,
    description: PipelineDescription,
    stored: StoredObject,
    compiler: CompilerIdentity,
    *,
    root_signature: bytes = b"",
) -> SerializedPipelineState:
    """The pieces of what a database has of a graphics or compute pipeline; ``root_signature`` is for variations of it.

    Raises UnsupportedError for one of another kind, and for one that is made from other pipelines.
    """
    info = description.create_info
    if description.kind == "raytracing" or any(isinstance(handle, vk.PipelineHandle) for handle in description.objects):
        raise UnsupportedError(f"{description.name}: a {description.kind} pipeline made from other ones has no form in pieces")
    if not stored.values:
        raise UnsupportedError(f"{description.name}: it has no object code")
    if compiler.object_code_form == PIPELINE_BINARY and compiler.driver_id < NO_VULKAN_DRIVER:
        # With binaries a driver needs no shader.
        info = without_modules(info)
    encoded, modules = encode_description(info, description.objects)
    record = PipelineRecord(
        compiler.family,
        compiler_digest(compiler),
        description.kind,
        bytes(object_key),
        stored.group.version,
        (),
        encoded,
        root_signature,
    )
    slots = _slots(compiler, _active(description.create_info), len(stored.values))
    is_radv = compiler.driver_id == RADV and compiler.object_code_form == PIPELINE_BINARY
    codes = [
        Code(slot, key, data, code_offset(data) if is_radv else None)
        for slot, (key, data) in zip(slots, stored.values, strict=True)
    ]
    return serialize_pieces(record, codes, modules)


def deserialize(device: Direct3D12Device, serialized: SerializedPipelineState, kind: str) -> DeserializedPipelineState:
    """Create a pipeline of that kind from its pieces, wherever they lie, with compiling forbidden.

    Raises DamagedInputError (``E_INVALIDARG``) for a piece that is missing, altered or in another's place, AdapterNotFoundError or
    DriverVersionMismatchError for pieces of another adapter or driver, and InvalidArgumentError for a pipeline of another kind, all
    before any driver is asked; DriverError where the driver refuses.
    """
    device._check_open()
    found = assemble(serialized)
    record, compiler = found.record, device.compiler
    if record.family != compiler.family:
        raise AdapterNotFoundError(f"pipeline: made for {record.family}, this is {compiler.family}")
    if record.compiler != compiler_digest(compiler):
        raise DriverVersionMismatchError("pipeline: made by another driver build")
    if record.kind != kind:
        raise InvalidArgumentError(f"pipeline: it is one of the kind {record.kind}, not {kind}")
    description = decode_description(found)
    _create(device, found, description)
    device._pipeline_states.add(ObjectSource.SERIALIZED)
    return DeserializedPipelineState(device, serialized, ObjectKey(record.object_key), description, record.root_signature)


def derive(device: Direct3D12Device, base: DeserializedPipelineState, variation: ComputeVariation) -> DeserializedPipelineState:
    """A variation of a compute pipeline with its object code, created with compiling forbidden.

    A root signature may be another one where everything that the base's has keeps its register and its place, and the object code
    stays as it is. With any driver that is one with the same Vulkan layout: other flags, another version. With RADV it may also add
    to it, as long as the descriptor sets that the base has stay as they are (``keeps_object_code``). Raises InvalidArgumentError
    for another one, and for a base that is no compute pipeline of this device; DamagedInputError for a damaged root signature and
    as ``deserialize``.
    """
    device._check_open()
    if not isinstance(base, DeserializedPipelineState) or base.device is not device or base.kind != "compute":
        raise InvalidArgumentError("base: a deserialized compute pipeline of this device is needed")
    if not isinstance(variation, ComputeVariation):
        raise InvalidArgumentError(f"variation: {type(variation).__name__} is no ComputeVariation")
    found = assemble(base.serialized)
    description, root_signature = base.description, base.root_signature
    if variation.root_signature is not None:
        root_signature = bytes(variation.root_signature)
        description = _with_layout(device.compiler, base, root_signature)
    _create(device, found, description)
    device._pipeline_states.add(ObjectSource.SERIALIZED)
    return DeserializedPipelineState(device, base.serialized, base.object_key, description, root_signature)


def keeps_object_code(compiler: CompilerIdentity, before: _Layout, after: _Layout) -> bool:
    """Whether a shader compiled with one layout has the same object code with another.

    RADV compiles into a shader where in its set a descriptor lies, and which of the sets that it uses comes first; so every set
    that is not empty has to stay, and others may be added. A descriptor that is added to a set moves others. Sets with dynamic
    offsets move what lies behind the push constants.
    """
    old, new = before.content(), after.content()
    if old == new:
        return True
    if compiler.driver_id != RADV or compiler.object_code_form != PIPELINE_BINARY:
        return False
    if old.rest != new.rest or old.has_dynamic_offsets or new.has_dynamic_offsets or len(new.sets) < len(old.sets):
        return False
    if any(one != other and one[0].bindings for one, other in zip(old.sets, new.sets, strict=False)):
        return False
    return all(
        any(r.stage_flags == o.stage_flags and r.offset == o.offset and r.size >= o.size for r in new.ranges)
        for o in old.ranges
    )


def _create(device: Direct3D12Device, found: Assembled, description: PipelineDescription) -> None:
    record, values = found.record, found.values
    key = ObjectKey(record.object_key)
    keys = tuple(value.key for value in object_code_values(device.compiler.object_code_form, key, values))
    stored = StoredObject(Group(key, record.version, keys, record.kind, description.name), values)
    if not device._creator.load(Part(key, description), stored, "Deserialize"):
        raise DriverError(f"object {key.hex()}: the driver does not create it from its pieces", code="E_FAIL")


def _with_layout(compiler: CompilerIdentity, base: DeserializedPipelineState, blob: bytes) -> PipelineDescription:
    """The base's description with the layout of another root signature."""
    from shaderkiln.descriptions.direct3d12.binding_layout import BindingLayout, binding_layout
    from shaderkiln.formats import root_signature
    from shaderkiln.lowering.layout import RootLayout, pipeline_layout
    from shaderkiln.lowering.objects import Objects, Reasons

    def lowered(signature: root_signature.RootSignature, bindings: BindingLayout) -> _Layout:
        objects, reasons = Objects(), Reasons()
        handle = pipeline_layout(objects, RootLayout(signature, bindings), _COMPUTE_STAGE, reasons)
        reasons.check()
        return _Layout(handle, objects.found)

    def places(bindings: BindingLayout) -> set[tuple[int | bool, ...]]:
        """Which register lies where, as far as a compute shader sees it."""
        sees = _COMPUTE_STAGE
        return {
            (b.set, b.binding, b.register_type, b.register, b.space, b.count, b.is_counter, bool(b.stages & sees))
            for b in bindings.bindings
        } | {(c.offset, c.size, c.register, c.space, bool(c.stages & sees)) for c in bindings.push_constants}

    description = base.description
    assert isinstance(description.create_info, vk.ComputePipelineCreateInfo)
    new = root_signature.parse(blob)
    if base.root_signature and description.create_info.layout is not None:
        before = _Layout(description.create_info.layout, description.objects)
        old = root_signature.parse(base.root_signature)
        # In which of the two schemes the base was made is for its translator to know: its layout tells.
        for arrays in (False, True):
            old_bindings, new_bindings = (binding_layout(one, arrays=arrays) for one in (old, new))
            after = lowered(new, new_bindings)
            if (
                places(old_bindings) <= places(new_bindings)
                and lowered(old, old_bindings).content() == before.content()
                and keeps_object_code(compiler, before, after)
            ):
                info = replace(description.create_info, layout=after.handle)
                objects: dict[Handle, Any] = {**description.objects, **after.objects}
                return PipelineDescription(description.name, description.kind, info, objects)
    raise InvalidArgumentError("root_signature: with it the shader would have to be compiled again")


@dataclass(frozen=True, slots=True)
class _Content:
    """What a pipeline layout says, whatever its objects are called."""

    sets: tuple[tuple[vk.DescriptorSetLayoutCreateInfo, tuple[Any, ...]], ...]
    """Each with its immutable samplers."""
    ranges: tuple[vk.PushConstantRange, ...]
    rest: tuple[Any, ...]

    @property
    def has_dynamic_offsets(self) -> bool:
        return any(b.descriptor_type in _DYNAMIC_BUFFERS for one, _ in self.sets for b in one.bindings)


@dataclass(frozen=True, slots=True)
class _Layout:
    """A pipeline layout and the objects that it refers to."""

    handle: vk.PipelineLayoutHandle
    objects: Mapping[Handle, Any]

    def content(self) -> _Content:
        made = self.objects[self.handle]
        sets = []
        for handle in made.set_layouts:
            one = vk.DescriptorSetLayoutCreateInfo() if handle is None else self.objects[handle]
            sets.append(
                (one, tuple(self.objects[s] for b in one.bindings for s in b.immutable_samplers or () if s is not None))
            )
        return _Content(tuple(sets), made.push_constant_ranges, (made.flags, made.next))


# Which shader a binary is of


def _active(info: Any) -> list[ShaderSlot]:
    stages = [info.stage] if isinstance(info, vk.ComputePipelineCreateInfo) else info.stages or ()
    bits = sorted(stage.stage.bit_length() - 1 for stage in stages)
    return [ShaderSlot(bit) for bit in bits if bit < len(ShaderSlot)]


def _slots(compiler: CompilerIdentity, active: list[ShaderSlot], count: int) -> list[ShaderSlot | None]:
    """The slot of each binary; None where it belongs to no single shader, or that cannot be told.

    Drivers give binaries in the order of the stages. RADV compiles a vertex shader into the hull shader, and a vertex or domain
    shader into the geometry shader, from GFX9 on; and a legacy geometry shader has a vertex shader of the driver's behind all.
    """
    geometry = ShaderSlot.GEOMETRY in active
    if compiler.driver_id == RADV and (geometry or ShaderSlot.HULL in active):
        inner = {ShaderSlot.VERTEX} | ({ShaderSlot.DOMAIN} if geometry else set())
        hosts: list[ShaderSlot | None] = [slot for slot in active if slot not in inner]
        alone: list[ShaderSlot | None] = list(active)
        for slots in (hosts, [*hosts, None], [*alone, None]) if geometry else (hosts, alone):
            if len(slots) == count:
                return slots
    elif len(active) == count:
        return list(active)
    return [None] * count


# Descriptions


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


_decoders: list[msgspec.msgpack.Decoder[_Described]] = []


def _decoder() -> msgspec.msgpack.Decoder[_Described]:
    if not _decoders:
        _decoders.append(msgspec.msgpack.Decoder(_Described, dec_hook=_from_number))
    return _decoders[0]
