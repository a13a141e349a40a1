"""Pipeline state streams: graphics, compute and mesh pipelines as one frozen record of subobjects.

A stream names each kind of subobject at most once and in any order, so a record with one optional field for each is the same
thing. A field that is None is a subobject that the stream does not have; ``with_defaults`` puts what the runtime then assumes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from shaderkiln.descriptions.direct3d12.enums import (
    DEFAULT_SAMPLE_MASK,
    DxgiFormat,
    IndexBufferStripCutValue,
    PipelineStateFlags,
    PipelineStateSubobjectType,
    PrimitiveTopologyType,
    ShaderCacheSessionSubobjectFlags,
)
from shaderkiln.descriptions.direct3d12.psdb_subobject import (
    ShaderCacheSession,
    ShaderCacheSessionSubobjectDesc,
    psdb_subobject,
)
from shaderkiln.descriptions.direct3d12.states import (
    AnyDepthStencilDesc,
    AnyRasterizerDesc,
    BlendDesc,
    DepthStencilDesc,
    DepthStencilDesc1,
    DepthStencilDesc2,
    InputLayoutDesc,
    RasterizerDesc,
    RasterizerDesc1,
    RasterizerDesc2,
    RenderTargetFormats,
    SampleDesc,
    StreamOutputDesc,
    ViewInstancingDesc,
)
from shaderkiln.errors import InvalidArgumentError

PipelineStateKind: TypeAlias = Literal["graphics", "compute", "mesh"]
PipelineStateSubobject: TypeAlias = tuple[PipelineStateSubobjectType, Any]


class PipelineStateStream(Struct, frozen=True, kw_only=True, tag_field="class"):
    """One pipeline state. Shaders and root signatures are the bytes of their containers.

    ``root_signature`` holds the serialized root signature of the object that Direct3D 12 points to here; without it and without
    ``serialized_root_signature`` the shaders bring theirs.
    """

    root_signature: bytes | None = None
    serialized_root_signature: bytes | None = None
    vs: bytes | None = None
    ps: bytes | None = None
    ds: bytes | None = None
    hs: bytes | None = None
    gs: bytes | None = None
    cs: bytes | None = None
    as_: bytes | None = None
    ms: bytes | None = None
    stream_output: StreamOutputDesc | None = None
    blend: BlendDesc | None = None
    sample_mask: int | None = None
    rasterizer: AnyRasterizerDesc | None = None
    depth_stencil: AnyDepthStencilDesc | None = None
    input_layout: InputLayoutDesc | None = None
    ib_strip_cut_value: IndexBufferStripCutValue | None = None
    primitive_topology: PrimitiveTopologyType | None = None
    render_target_formats: RenderTargetFormats | None = None
    depth_stencil_format: DxgiFormat | None = None
    sample_desc: SampleDesc | None = None
    view_instancing: ViewInstancingDesc | None = None
    node_mask: int | None = None
    cached_pso: bytes | None = None
    flags: PipelineStateFlags | None = None
    psdb: ShaderCacheSessionSubobjectDesc | None = None

    @classmethod
    def from_subobjects(cls, subobjects: Iterable[PipelineStateSubobject]) -> PipelineStateStream:
        """A stream from typed subobjects in any order.

        Raises InvalidArgumentError for an unknown type, a type that comes twice (the forms of one state count as one type), and a
        desc of another form than its type says.
        """
        values: dict[str, Any] = {}
        for type_, value in subobjects:
            field, value = checked_subobject(type_, value)
            if field in values:
                raise InvalidArgumentError(f"the stream has more than one {field} subobject; each may come once")
            values[field] = value
        return cls(**values)

    def subobjects(self) -> tuple[PipelineStateSubobject, ...]:
        """The subobjects that the stream has, by the number of their type."""
        found = ((subobject_type_of(field, getattr(self, field)), getattr(self, field)) for field in self.__struct_fields__)
        return tuple(sorted((pair for pair in found if pair[1] is not None), key=lambda pair: pair[0]))

    @property
    def kind(self) -> PipelineStateKind:
        """``compute`` with a compute shader, ``mesh`` with a mesh or amplification shader, else ``graphics``."""
        if self.cs:
            return "compute"
        return "mesh" if self.ms or self.as_ else "graphics"

    @property
    def root_signature_blob(self) -> bytes | None:
        """The root signature that the stream itself names, whichever subobject holds it."""
        return self.root_signature or self.serialized_root_signature or None

    def shaders(self) -> dict[str, bytes]:
        """The shaders that the stream has by stage: ``vs``, ``hs``, ``ds``, ``gs``, ``as``, ``ms``, ``ps``, ``cs``.

        Bytecode of no length is no shader, here and everywhere.
        """
        found = {field.rstrip("_"): getattr(self, field) for field in STAGE_FIELDS}
        return {stage: code for stage, code in found.items() if code}

    def with_psdb(
        self,
        session: ShaderCacheSession | None,
        flags: ShaderCacheSessionSubobjectFlags = ShaderCacheSessionSubobjectFlags.NONE,
    ) -> PipelineStateStream:
        """The same stream with this explicit PSDB session in place of any other. Raises InvalidArgumentError (EP-12)."""
        return msgspec.structs.replace(self, psdb=psdb_subobject(session, flags))

    def with_psdb_desc(self, desc: ShaderCacheSessionSubobjectDesc) -> PipelineStateStream:
        """The same stream with this PSDB subobject in place of any other. Raises InvalidArgumentError (EP-12)."""
        return msgspec.structs.replace(self, psdb=psdb_subobject(desc))

    def remove_subobjects_by_type(self, type_: PipelineStateSubobjectType) -> PipelineStateStream:
        """The same stream without subobjects of that type (EP-13)."""
        field = field_of(type_)
        value = getattr(self, field)
        if value is None or subobject_type_of(field, value) != type_:
            return self
        return msgspec.structs.replace(self, **{field: None})

    def with_defaults(self) -> PipelineStateStream:
        """The same pipeline with every state that the runtime would assume written down, each in its newest form.

        The depth test is on by default only where there is a depth-stencil format, and the topology is triangles, but for mesh
        pipelines. A compute pipeline has only node mask and flags, and loses states of graphics. Root signatures, shaders, the
        cached blob and the PSDB stay.
        """
        common: dict[str, Any] = {"node_mask": self.node_mask or 0, "flags": _or(self.flags, PipelineStateFlags.NONE)}
        if self.kind == "compute":
            return PipelineStateStream(
                root_signature=self.root_signature,
                serialized_root_signature=self.serialized_root_signature,
                cached_pso=self.cached_pso,
                psdb=self.psdb,
                **{stage: getattr(self, stage) for stage in STAGE_FIELDS},
                **common,
            )
        depth_format = _or(self.depth_stencil_format, DxgiFormat.UNKNOWN)
        depth = self.depth_stencil
        if depth is None:
            depth = DepthStencilDesc2(depth_enable=depth_format != DxgiFormat.UNKNOWN)
        mesh = self.kind == "mesh"
        topology = PrimitiveTopologyType.UNDEFINED if mesh else PrimitiveTopologyType.TRIANGLE
        return msgspec.structs.replace(
            self,
            stream_output=self.stream_output or StreamOutputDesc(),
            blend=self.blend or BlendDesc(),
            sample_mask=_or(self.sample_mask, DEFAULT_SAMPLE_MASK),
            rasterizer=(self.rasterizer or RasterizerDesc2()).to_desc2(),
            depth_stencil=depth.to_desc2(),
            input_layout=self.input_layout or InputLayoutDesc(),
            ib_strip_cut_value=_or(self.ib_strip_cut_value, IndexBufferStripCutValue.DISABLED),
            primitive_topology=_or(self.primitive_topology, topology),
            render_target_formats=self.render_target_formats or RenderTargetFormats(),
            depth_stencil_format=depth_format,
            sample_desc=self.sample_desc or SampleDesc(),
            view_instancing=self.view_instancing or ViewInstancingDesc(),
            **common,
        )


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


STAGE_FIELDS: Final = ("vs", "hs", "ds", "gs", "as_", "ms", "ps", "cs")
_T: Final = PipelineStateSubobjectType
_FORMS: Final[dict[PipelineStateSubobjectType, tuple[str, type]]] = {
    _T.DEPTH_STENCIL: ("depth_stencil", DepthStencilDesc),
    _T.DEPTH_STENCIL1: ("depth_stencil", DepthStencilDesc1),
    _T.DEPTH_STENCIL2: ("depth_stencil", DepthStencilDesc2),
    _T.RASTERIZER: ("rasterizer", RasterizerDesc),
    _T.RASTERIZER1: ("rasterizer", RasterizerDesc1),
    _T.RASTERIZER2: ("rasterizer", RasterizerDesc2),
}
_CLASSES: Final[dict[PipelineStateSubobjectType, type | tuple[type, ...]]] = {
    _T.ROOT_SIGNATURE: (bytes, type(None)),
    _T.SERIALIZED_ROOT_SIGNATURE: bytes,
    _T.CACHED_PSO: bytes,
    _T.STREAM_OUTPUT: StreamOutputDesc,
    _T.BLEND: BlendDesc,
    _T.INPUT_LAYOUT: InputLayoutDesc,
    _T.RENDER_TARGET_FORMATS: RenderTargetFormats,
    _T.SAMPLE_DESC: SampleDesc,
    _T.VIEW_INSTANCING: ViewInstancingDesc,
    _T.PSDB: ShaderCacheSessionSubobjectDesc,
    **{_T[stage.rstrip("_").upper()]: bytes for stage in STAGE_FIELDS},
    **{type_: form for type_, (_, form) in _FORMS.items()},
}
_FIELDS: Final[dict[PipelineStateSubobjectType, str]] = {
    type_: _FORMS[type_][0] if type_ in _FORMS else "as_" if type_ is _T.AS else type_.name.lower() for type_ in _T
}
_TYPES: Final = {field: type_ for type_, field in _FIELDS.items() if type_ not in _FORMS}
_TYPES_OF_FORMS: Final = {form: type_ for type_, (_, form) in _FORMS.items()}


def field_of(type_: int) -> str:
    """The field of PipelineStateStream that holds subobjects of a type. Raises InvalidArgumentError for an unknown one."""
    try:
        return _FIELDS[PipelineStateSubobjectType(type_)]
    except ValueError:
        raise InvalidArgumentError(f"subobject type: {type_!r} is no D3D12_PIPELINE_STATE_SUBOBJECT_TYPE") from None


def subobject_type_of(field: str, value: object) -> PipelineStateSubobjectType:
    """The type of the subobject that a field of PipelineStateStream holds."""
    return _TYPES[field] if field in _TYPES else _TYPES_OF_FORMS.get(type(value), _T[field.upper()])


def checked_subobject(type_: int, value: Any) -> tuple[str, Any]:
    """The field for a subobject, and its value. Raises InvalidArgumentError for an unknown type or a value of another class."""
    field = field_of(type_)
    expected = _CLASSES.get(PipelineStateSubobjectType(type_), int)
    if not isinstance(value, expected) or isinstance(value, bool):
        name = PipelineStateSubobjectType(type_).name
        wanted = expected[0].__name__ if isinstance(expected, tuple) else expected.__name__
        raise InvalidArgumentError(f"subobject {name}: {type(value).__name__} is no {wanted}")
    return field, value
