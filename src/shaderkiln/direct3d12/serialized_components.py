"""Serialized pipeline components (Xbox: SerializeComputePipelineStateX, DeserializeComputePipelineStateX).

Offline, a tool takes a pipeline state apart into pieces. The application keeps them where it likes, each different piece once, and
gives all of a pipeline's pieces back; the driver then creates the pipeline with compiling forbidden. Neither shaders nor a root
signature nor a translator is needed for that: the pipeline's own piece has its description as the driver takes it.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Any

from shaderkiln.compilers.value_keys import PIPELINE_BINARY
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.errors import (
    AdapterNotFoundError,
    DriverError,
    DriverVersionMismatchError,
    InvalidArgumentError,
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
from shaderkiln.keys import ObjectKey
from shaderkiln.vulkan_registry import structures as vk

from .component_descriptions import decode_description, encode_description, without_modules
from .creation import ObjectCreation
from .objects import PipelineState
from .parts import Part
from .statistics import ObjectSource
from .stored_objects import StoredObject, compiler_digest


class SerializeFlags(IntFlag):
    """D3D12XBOX_SERIALIZE_FLAGS."""

    NONE = 0


class DeserializedPipelineState:
    """A pipeline that was created from its pieces.

    It refers to the caller's pieces, which have to stay as they are for as long as it lives, and copies none of them.
    """

    def __init__(
        self,
        creation: ObjectCreation,
        serialized: SerializedPipelineState,
        found: Assembled,
        description: PipelineDescription,
        root_signature: bytes,
    ) -> None:
        """``found`` is what the pieces say. Raises DriverError where the driver refuses."""
        self.creation = creation
        self.serialized = serialized
        self.object_key = ObjectKey(found.record.object_key)
        """The key of the pipeline state that was serialized; a derived one has its base's."""
        self.description = description
        """The pipeline as the driver takes it, without shaders where the driver needs none."""
        self.root_signature = root_signature
        """Of a compute pipeline: the one that it has, b"" where its shader alone decides."""
        self._create(found)
        creation.pipeline_states.add(ObjectSource.SERIALIZED)

    @property
    def kind(self) -> str:
        """``graphics`` or ``compute``."""
        return self.description.kind

    def recreate(self) -> ObjectSource:
        """Create the pipeline once more, as after the end of the driver's process. Raises as ``deserialize``.

        The pieces are compared with their CRC again.
        """
        self._create(assemble(self.serialized))
        return ObjectSource.SERIALIZED

    def _create(self, found: Assembled) -> None:
        record = found.record
        name = self.description.name
        stored = StoredObject.of(self.creation.compiler, self.object_key, found.values, record.kind, name, record.version)
        if not self.creation.load(Part(self.object_key, self.description), stored, "Deserialize"):
            raise DriverError(f"object {self.object_key.hex()}: the driver does not create it from its pieces", code="E_FAIL")


def serialize(
    creation: ObjectCreation, pipeline: PipelineState, kind: str, flags: int = SerializeFlags.NONE
) -> SerializedPipelineState:
    """The pieces of a pipeline state of that kind; equal pipelines give equal bytes.

    Raises InvalidArgumentError for flags, and for what is no pipeline state of that kind and device; UnsupportedError where the
    driver gives no object code. If no cache has the object code any more, it is compiled again, with those errors.
    """
    if not isinstance(flags, int) or flags != SerializeFlags.NONE:
        raise InvalidArgumentError(f"flags is {flags!r}, and must be NONE")
    if not isinstance(pipeline, PipelineState) or pipeline.creation is not creation:
        raise InvalidArgumentError("pipeline: a pipeline state of this device is needed")
    (part,) = pipeline.parts()
    if part.description.kind != kind:
        raise InvalidArgumentError(f"pipeline: it is one of the kind {part.description.kind}, not {kind}")
    if not creation.stores_object_code:
        raise UnsupportedError("the driver gives no object code")
    stored = pipeline.object_code()
    signature = b""
    if kind == "compute":
        from shaderkiln.lowering.shaders import own_root_signature

        signature = pipeline.desc.root_signature_blob or own_root_signature(list(pipeline.desc.shaders().values())) or b""
    return serialize_stored(part.key, part.description, stored, creation.compiler, root_signature=signature)


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


def deserialize(creation: ObjectCreation, serialized: SerializedPipelineState, kind: str) -> DeserializedPipelineState:
    """Create a pipeline of that kind from its pieces, wherever they lie, with compiling forbidden.

    Raises DamagedInputError (``E_INVALIDARG``) for a piece that is missing, altered or in another's place, AdapterNotFoundError or
    DriverVersionMismatchError for pieces of another adapter or driver, and InvalidArgumentError for a pipeline of another kind, all
    before any driver is asked; DriverError where the driver refuses.
    """
    creation.check_open()
    found = assemble(serialized)
    record, compiler = found.record, creation.compiler
    if record.family != compiler.family:
        raise AdapterNotFoundError(f"pipeline: made for {record.family}, this is {compiler.family}")
    if record.compiler != compiler_digest(compiler):
        raise DriverVersionMismatchError("pipeline: made by another driver build")
    if record.kind != kind:
        raise InvalidArgumentError(f"pipeline: it is one of the kind {record.kind}, not {kind}")
    return DeserializedPipelineState(creation, serialized, found, decode_description(found), record.root_signature)


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
