"""Root signatures: the serialized form (RTS0) of versions 1.0, 1.1 and 1.2, as frozen data.

Numbers, names and rules are those of Direct3D 12: ``d3d12.h`` and the functional specification, "Root Signatures". The writer
lays the data out as Microsoft's and DXC's serializers do, so that reading and writing again gives the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum, IntFlag
from typing import TypeAlias, TypeVar

from shaderkiln.errors import DamagedInputError, InvalidArgumentError
from shaderkiln.formats import dxbc

UNBOUNDED = 0xFFFFFFFF
"""Count of a descriptor range without end."""
APPEND = 0xFFFFFFFF
"""D3D12_DESCRIPTOR_RANGE_OFFSET_APPEND: the range begins where the one before it ends."""
MAXIMUM_COST = 64
"""DWORDs that the parameters of a root signature may take."""
MAXIMUM_BYTES = 1 << 20
_RESERVED_SPACES = 0xFFFFFFF0


class RootSignatureVersion(IntEnum):
    """D3D_ROOT_SIGNATURE_VERSION"""

    V1_0 = 1
    V1_1 = 2
    V1_2 = 3


class RootParameterType(IntEnum):
    """D3D12_ROOT_PARAMETER_TYPE"""

    DESCRIPTOR_TABLE = 0
    CONSTANTS_32BIT = 1
    CBV = 2
    SRV = 3
    UAV = 4


class DescriptorRangeType(IntEnum):
    """D3D12_DESCRIPTOR_RANGE_TYPE"""

    SRV = 0
    UAV = 1
    CBV = 2
    SAMPLER = 3


class ShaderVisibility(IntEnum):
    """D3D12_SHADER_VISIBILITY"""

    ALL = 0
    VERTEX = 1
    HULL = 2
    DOMAIN = 3
    GEOMETRY = 4
    PIXEL = 5
    AMPLIFICATION = 6
    MESH = 7


class RootSignatureFlag(IntFlag):
    """D3D12_ROOT_SIGNATURE_FLAGS"""

    NONE = 0
    ALLOW_INPUT_ASSEMBLER_INPUT_LAYOUT = 0x1
    DENY_VERTEX_SHADER_ROOT_ACCESS = 0x2
    DENY_HULL_SHADER_ROOT_ACCESS = 0x4
    DENY_DOMAIN_SHADER_ROOT_ACCESS = 0x8
    DENY_GEOMETRY_SHADER_ROOT_ACCESS = 0x10
    DENY_PIXEL_SHADER_ROOT_ACCESS = 0x20
    ALLOW_STREAM_OUTPUT = 0x40
    LOCAL_ROOT_SIGNATURE = 0x80
    DENY_AMPLIFICATION_SHADER_ROOT_ACCESS = 0x100
    DENY_MESH_SHADER_ROOT_ACCESS = 0x200
    CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED = 0x400
    SAMPLER_HEAP_DIRECTLY_INDEXED = 0x800


class DescriptorRangeFlag(IntFlag):
    """D3D12_DESCRIPTOR_RANGE_FLAGS"""

    NONE = 0
    DESCRIPTORS_VOLATILE = 0x1
    DATA_VOLATILE = 0x2
    DATA_STATIC_WHILE_SET_AT_EXECUTE = 0x4
    DATA_STATIC = 0x8
    DESCRIPTORS_STATIC_KEEPING_BUFFER_BOUNDS_CHECKS = 0x10000


class RootDescriptorFlag(IntFlag):
    """D3D12_ROOT_DESCRIPTOR_FLAGS"""

    NONE = 0
    DATA_VOLATILE = 0x2
    DATA_STATIC_WHILE_SET_AT_EXECUTE = 0x4
    DATA_STATIC = 0x8


class SamplerFlag(IntFlag):
    """D3D12_SAMPLER_FLAGS"""

    NONE = 0
    UINT_BORDER_COLOR = 0x1
    NON_NORMALIZED_COORDINATES = 0x2


@dataclass(frozen=True, slots=True)
class DescriptorRange:
    """D3D12_DESCRIPTOR_RANGE1"""

    type: DescriptorRangeType
    count: int
    """Descriptors; UNBOUNDED: all that follow."""
    base_register: int
    space: int = 0
    flags: DescriptorRangeFlag = DescriptorRangeFlag.NONE
    """Always NONE in version 1.0, which has none."""
    offset: int = APPEND
    """Descriptors from the start of the table."""


@dataclass(frozen=True, slots=True)
class DescriptorTable:
    """A root parameter of type DESCRIPTOR_TABLE."""

    ranges: tuple[DescriptorRange, ...]
    visibility: ShaderVisibility = ShaderVisibility.ALL

    def offsets(self) -> tuple[int, ...]:
        """Where each range begins, in descriptors from the start of the table, with APPEND resolved."""
        offsets, at = [], 0
        for part in self.ranges:
            start = at if part.offset == APPEND else part.offset
            offsets.append(start)
            at = UNBOUNDED if part.count == UNBOUNDED else start + part.count
        return tuple(offsets)


@dataclass(frozen=True, slots=True)
class RootConstants:
    """A root parameter of type CONSTANTS_32BIT."""

    register: int
    space: int
    count: int
    """Values of 32 bits."""
    visibility: ShaderVisibility = ShaderVisibility.ALL


@dataclass(frozen=True, slots=True)
class RootDescriptor:
    """A root parameter of type CBV, SRV or UAV."""

    type: RootParameterType
    register: int
    space: int = 0
    flags: RootDescriptorFlag = RootDescriptorFlag.NONE
    """Always NONE in version 1.0, which has none."""
    visibility: ShaderVisibility = ShaderVisibility.ALL


RootParameter: TypeAlias = DescriptorTable | RootConstants | RootDescriptor


@dataclass(frozen=True, slots=True)
class StaticSampler:
    """D3D12_STATIC_SAMPLER_DESC1; ``filter``, modes and colours are the numbers of ``d3d12.h``."""

    register: int
    space: int = 0
    filter: int = 0x55
    """D3D12_FILTER; default ANISOTROPIC."""
    address_u: int = 1
    """D3D12_TEXTURE_ADDRESS_MODE; default WRAP."""
    address_v: int = 1
    address_w: int = 1
    mip_lod_bias: float = 0.0
    max_anisotropy: int = 16
    comparison: int = 4
    """D3D12_COMPARISON_FUNC; default LESS_EQUAL."""
    border_color: int = 2
    """D3D12_STATIC_BORDER_COLOR; default OPAQUE_WHITE."""
    min_lod: float = 0.0
    max_lod: float = 3.4028234663852886e38
    visibility: ShaderVisibility = ShaderVisibility.ALL
    flags: SamplerFlag = SamplerFlag.NONE
    """Always NONE before version 1.2."""


@dataclass(frozen=True, slots=True)
class RootSignature:
    """D3D12_VERSIONED_ROOT_SIGNATURE_DESC"""

    parameters: tuple[RootParameter, ...] = ()
    static_samplers: tuple[StaticSampler, ...] = ()
    flags: RootSignatureFlag = RootSignatureFlag.NONE
    version: RootSignatureVersion = RootSignatureVersion.V1_1

    @property
    def cost(self) -> int:
        """DWORDs: a table takes 1, a root descriptor 2, constants one each."""
        return sum(
            p.count if isinstance(p, RootConstants) else 1 if isinstance(p, DescriptorTable) else 2 for p in self.parameters
        )


_SAMPLER = struct.Struct("<IIIIfIIIffIII")


def parse(data: bytes) -> RootSignature:
    """The root signature in ``data``: RTS0 data, or a DXBC container with such a part.

    Raises DamagedInputError for anything else. The rules between parameters are not checked (``validate``).
    """
    if dxbc.is_container(data):
        part = dxbc.parse(data).root_signature
        if part is None:
            raise DamagedInputError("the DXBC container has no root signature (part RTS0)")
        data = part
    return _Reader(data).read()


_Enum = TypeVar("_Enum", bound=IntEnum)


def _known(cls: type[_Enum], number: int, problem: str) -> _Enum:
    try:
        return cls(number)
    except ValueError:
        raise DamagedInputError(f"root signature: {problem}") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ranges_bytes = 0

    def read(self) -> RootSignature:
        if len(self.data) > MAXIMUM_BYTES:
            raise DamagedInputError(f"root signature: {len(self.data)} bytes are more than one may have")
        number, parameters, parameters_at, samplers, samplers_at, flags = self._unpack("<6I", 0, "header")
        version = _known(RootSignatureVersion, number, f"version {number} is not known")
        self._check(parameters_at, parameters, 12, "parameters")
        sampler_size = 56 if version is RootSignatureVersion.V1_2 else 52
        self._check(samplers_at, samplers, sampler_size, "static samplers")
        return RootSignature(
            tuple(self._parameter(version, parameters_at + 12 * i, i) for i in range(parameters)),
            tuple(self._sampler(version, samplers_at + sampler_size * i, i) for i in range(samplers)),
            RootSignatureFlag(flags),
            version,
        )

    def _unpack(self, layout: str, at: int, what: str) -> tuple[int, ...]:
        if at + struct.calcsize(layout) > len(self.data):
            raise DamagedInputError(f"root signature: {what} outside the data (offset {at})")
        return struct.unpack_from(layout, self.data, at)

    def _check(self, at: int, count: int, size: int, what: str) -> None:
        if at + count * size > len(self.data):
            raise DamagedInputError(f"root signature: {count} {what} at offset {at} do not fit into {len(self.data)} bytes")

    def _parameter(self, version: RootSignatureVersion, at: int, index: int) -> RootParameter:
        what = f"parameter {index}"
        number, visible, payload = self._unpack("<3I", at, what)
        visibility = _known(ShaderVisibility, visible, f"{what} has the visibility {visible}")
        old = version is RootSignatureVersion.V1_0
        if number == RootParameterType.DESCRIPTOR_TABLE:
            count, ranges_at = self._unpack("<2I", payload, what)
            size = 20 if old else 24
            # Ranges are never shared, so all of them together are no longer than the data.
            self.ranges_bytes += count * size
            if self.ranges_bytes > len(self.data):
                raise DamagedInputError(f"root signature: {what} has more ranges than there is data")
            self._check(ranges_at, count, size, "ranges")
            return DescriptorTable(tuple(self._range(old, ranges_at + size * i, what) for i in range(count)), visibility)
        if number == RootParameterType.CONSTANTS_32BIT:
            register, space, count = self._unpack("<3I", payload, what)
            return RootConstants(register, space, count, visibility)
        kind = _known(RootParameterType, number, f"{what} has the type {number}")
        register, space, *flags = self._unpack("<2I" if old else "<3I", payload, what)
        return RootDescriptor(kind, register, space, RootDescriptorFlag(flags[0] if flags else 0), visibility)

    def _range(self, old: bool, at: int, what: str) -> DescriptorRange:
        number, count, register, space, *rest = self._unpack("<5I" if old else "<6I", at, what)
        kind = _known(DescriptorRangeType, number, f"a range of {what} has the type {number}")
        return DescriptorRange(kind, count, register, space, DescriptorRangeFlag(0 if old else rest[0]), rest[-1])

    def _sampler(self, version: RootSignatureVersion, at: int, index: int) -> StaticSampler:
        f, u, v, w, bias, anisotropy, comparison, color, low, high, register, space, visible = _SAMPLER.unpack_from(
            self.data, at
        )
        flags = self._unpack("<I", at + 52, "sampler flags")[0] if version is RootSignatureVersion.V1_2 else 0
        visibility = _known(ShaderVisibility, visible, f"static sampler {index} has the visibility {visible}")
        return StaticSampler(
            register, space, f, u, v, w, bias, anisotropy, comparison, color, low, high, visibility, SamplerFlag(flags)
        )


def serialize(signature: RootSignature) -> bytes:
    """RTS0 data. Raises InvalidArgumentError for numbers that do not fit and for flags that the version does not have."""
    try:
        return _serialized(signature)
    except (struct.error, OverflowError) as error:
        raise InvalidArgumentError(f"root signature: a number does not fit into the serialized form: {error}") from error


def serialize_container(signature: RootSignature) -> bytes:
    """A DXBC container with the one part RTS0, as ``D3D12SerializeVersionedRootSignature`` gives it."""
    return dxbc.write([dxbc.Part("RTS0", serialize(signature))])


def _serialized(signature: RootSignature) -> bytes:
    version = signature.version
    old = version is RootSignatureVersion.V1_0
    parameters_at = 24
    at = parameters_at + 12 * len(signature.parameters)
    heads, payloads = [], []
    for parameter in signature.parameters:
        match parameter:
            case DescriptorTable():
                kind = RootParameterType.DESCRIPTOR_TABLE
                payload = struct.pack("<2I", len(parameter.ranges), at + 8) + b"".join(
                    _serialized_range(r, old) for r in parameter.ranges
                )
            case RootConstants():
                kind = RootParameterType.CONSTANTS_32BIT
                payload = struct.pack("<3I", parameter.register, parameter.space, parameter.count)
            case RootDescriptor():
                kind = parameter.type
                payload = struct.pack("<2I", parameter.register, parameter.space)
                if not old:
                    payload += struct.pack("<I", parameter.flags)
                elif parameter.flags:
                    raise InvalidArgumentError("root signature: version 1.0 has no flags of root descriptors")
        heads.append(struct.pack("<3I", kind, parameter.visibility, at))
        payloads.append(payload)
        at += len(payload)
    samplers = []
    for s in signature.static_samplers:
        data = _SAMPLER.pack(
            s.filter, s.address_u, s.address_v, s.address_w, s.mip_lod_bias, s.max_anisotropy, s.comparison,
            s.border_color, s.min_lod, s.max_lod, s.register, s.space, s.visibility,
        )  # fmt: skip
        if version is RootSignatureVersion.V1_2:
            data += struct.pack("<I", s.flags)
        elif s.flags:
            raise InvalidArgumentError("root signature: static samplers have flags only from version 1.2")
        samplers.append(data)
    header = struct.pack(
        "<6I", version, len(signature.parameters), parameters_at, len(signature.static_samplers), at, signature.flags
    )
    return b"".join([header, *heads, *payloads, *samplers])


def _serialized_range(r: DescriptorRange, old: bool) -> bytes:
    if not old:
        return struct.pack("<6I", r.type, r.count, r.base_register, r.space, r.flags, r.offset)
    if r.flags:
        raise InvalidArgumentError("root signature: version 1.0 has no flags of ranges")
    return struct.pack("<5I", r.type, r.count, r.base_register, r.space, r.offset)


def convert(signature: RootSignature, version: RootSignatureVersion) -> RootSignature:
    """The root signature in another version, with the same meaning where that version can say it.

    Version 1.0 promises nothing about descriptors and data, so its ranges and descriptors become volatile in 1.1; towards 1.0
    the promises are dropped. Raises InvalidArgumentError for samplers with flags, which only version 1.2 has.
    """
    was_old, is_old = signature.version is RootSignatureVersion.V1_0, version is RootSignatureVersion.V1_0
    parameters = signature.parameters
    if was_old != is_old:
        parameters = tuple(_with_flags(p, is_old) for p in parameters)
    if version is not RootSignatureVersion.V1_2 and any(s.flags for s in signature.static_samplers):
        raise InvalidArgumentError("root signature: a static sampler has flags, which only version 1.2 has")
    return replace(signature, parameters=parameters, version=version)


def _with_flags(parameter: RootParameter, none: bool) -> RootParameter:
    if isinstance(parameter, DescriptorTable):
        return replace(parameter, ranges=tuple(replace(r, flags=_range_flags(r, none)) for r in parameter.ranges))
    if isinstance(parameter, RootDescriptor):
        return replace(parameter, flags=RootDescriptorFlag.NONE if none else RootDescriptorFlag.DATA_VOLATILE)
    return parameter


def _range_flags(r: DescriptorRange, none: bool) -> DescriptorRangeFlag:
    if none:
        return DescriptorRangeFlag.NONE
    if r.type is DescriptorRangeType.SAMPLER:
        return DescriptorRangeFlag.DESCRIPTORS_VOLATILE
    return DescriptorRangeFlag.DESCRIPTORS_VOLATILE | DescriptorRangeFlag.DATA_VOLATILE


@dataclass(frozen=True, slots=True)
class _Registers:
    """Registers that one part of a root signature takes."""

    type: DescriptorRangeType
    space: int
    first: int
    last: int
    visibility: ShaderVisibility
    name: str


_TYPE_OF = {
    RootParameterType.CBV: DescriptorRangeType.CBV,
    RootParameterType.SRV: DescriptorRangeType.SRV,
    RootParameterType.UAV: DescriptorRangeType.UAV,
}


def validate(signature: RootSignature) -> None:
    """Raises InvalidArgumentError with the first rule that the root signature breaks, naming the parameter."""
    taken: list[_Registers] = []
    for name, problem in _problems(signature, taken):
        raise InvalidArgumentError(f"root signature: {name} {problem}")
    _check_overlap(taken)


def _problems(signature: RootSignature, taken: list[_Registers]) -> Iterator[tuple[str, str]]:
    known = sum(RootSignatureFlag)
    if signature.flags & ~known:
        yield "the flags", f"have unknown bits: {signature.flags & ~known:#x}"
    is_local = bool(signature.flags & RootSignatureFlag.LOCAL_ROOT_SIGNATURE)
    if is_local and signature.flags & ~RootSignatureFlag.LOCAL_ROOT_SIGNATURE:
        yield "the flags", f"{int(signature.flags):#x} cannot stand beside LOCAL_ROOT_SIGNATURE"
    if not is_local and signature.cost > MAXIMUM_COST:
        yield "the parameters", f"take {signature.cost} DWORDs, and at most {MAXIMUM_COST} are allowed"
    for index, parameter in enumerate(signature.parameters):
        name = f"parameter {index}"
        match parameter:
            case DescriptorTable():
                for problem in _table_problems(parameter, name, taken):
                    yield name, problem
            case RootConstants():
                yield from ((name, p) for p in _register_problems(parameter.register, 1, parameter.space))
                taken.append(_one(DescriptorRangeType.CBV, parameter, name))
            case RootDescriptor():
                if parameter.type not in _TYPE_OF:
                    yield name, f"has the type {parameter.type.name}, which is no root descriptor"
                    return
                yield from ((name, p) for p in _register_problems(parameter.register, 1, parameter.space))
                if parameter.flags.value not in (0, 2, 4, 8):
                    yield name, f"has the flags {parameter.flags.value:#x}, which exclude each other"
                taken.append(_one(_TYPE_OF[parameter.type], parameter, name))
    for index, sampler in enumerate(signature.static_samplers):
        name = f"static sampler {index}"
        for problem in _sampler_problems(sampler):
            yield name, problem
        taken.append(_one(DescriptorRangeType.SAMPLER, sampler, name))


def _one(kind: DescriptorRangeType, part: RootConstants | RootDescriptor | StaticSampler, name: str) -> _Registers:
    return _Registers(kind, part.space, part.register, part.register, part.visibility, name)


def _register_problems(register: int, count: int, space: int) -> Iterator[str]:
    if not 0 <= register <= 0xFFFFFFFF or (count != UNBOUNDED and register + count > 1 << 32):
        yield f"takes {count} registers from {register} on, past the last one"
    if not 0 <= space < _RESERVED_SPACES:
        yield f"uses the register space {space:#x}, which is reserved"


def _table_problems(table: DescriptorTable, name: str, taken: list[_Registers]) -> Iterator[str]:
    kinds = {r.type is DescriptorRangeType.SAMPLER for r in table.ranges}
    if len(kinds) > 1:
        yield "mixes samplers with other descriptors"
    unbounded = False
    for number, (r, offset) in enumerate(zip(table.ranges, table.offsets(), strict=True)):
        if r.count == 0:
            yield f"has no descriptors in range {number}"
        if unbounded and r.offset == APPEND:
            yield f"appends range {number} to one without end"
        if r.count != UNBOUNDED and offset + r.count > 1 << 32:
            yield f"has range {number} past the last descriptor of a table"
        unbounded = r.count == UNBOUNDED
        yield from _register_problems(r.base_register, r.count, r.space)
        if problem := _range_flag_problem(r):
            yield f"has the flags {r.flags.value:#x} in range {number}: {problem}"
        last = 0xFFFFFFFF if unbounded else r.base_register + r.count - 1
        taken.append(_Registers(r.type, r.space, r.base_register, last, table.visibility, f"{name}, range {number}"))


def _range_flag_problem(r: DescriptorRange) -> str:
    flags, flag = r.flags, DescriptorRangeFlag
    if flags & ~sum(flag):
        return "unknown bits"
    data = flags & (flag.DATA_VOLATILE | flag.DATA_STATIC_WHILE_SET_AT_EXECUTE | flag.DATA_STATIC)
    if r.type is DescriptorRangeType.SAMPLER and data:
        return "samplers have no data"
    if data.bit_count() > 1:
        return "more than one says how data changes"
    if flags & flag.DESCRIPTORS_VOLATILE and flags & (flag.DATA_STATIC | flag.DESCRIPTORS_STATIC_KEEPING_BUFFER_BOUNDS_CHECKS):
        return "volatile descriptors cannot be static"
    return ""


def _sampler_problems(sampler: StaticSampler) -> Iterator[str]:
    yield from _register_problems(sampler.register, 1, sampler.space)
    if not -16.0 <= sampler.mip_lod_bias <= 15.99:
        yield f"has the mip LOD bias {sampler.mip_lod_bias}, outside -16 to 15.99"
    if not 0 <= sampler.max_anisotropy <= 16:
        yield f"has the anisotropy {sampler.max_anisotropy}, more than 16"
    for mode in (sampler.address_u, sampler.address_v, sampler.address_w):
        if not 1 <= mode <= 5:
            yield f"has the address mode {mode}"
    if not 0 <= sampler.border_color <= 4:
        yield f"has the border colour {sampler.border_color}"
    if sampler.comparison > 8:
        yield f"has the comparison {sampler.comparison}"
    if sampler.flags & ~sum(SamplerFlag):
        yield f"has unknown flags: {sampler.flags.value:#x}"


def _check_overlap(taken: Iterable[_Registers]) -> None:
    last: dict[tuple[int, int, int], tuple[int, _Registers]] = {}
    # ALL collides with every visibility, so each stage is looked at with those that all stages see.
    parts = sorted(taken, key=lambda r: r.first)
    stages = tuple(v for v in ShaderVisibility if v is not ShaderVisibility.ALL)
    for part in parts:
        for stage in stages if part.visibility is ShaderVisibility.ALL else (part.visibility,):
            key = (part.type, part.space, stage)
            before = last.get(key)
            if before is not None and part.first <= before[0]:
                letter = "tubs"[part.type]
                raise InvalidArgumentError(
                    f"root signature: {part.name} and {before[1].name} both have {letter}{part.first} in space {part.space}"
                )
            last[key] = (part.last, part)
