"""Builders in the manner of d3dx12: for streams, and for state objects whose subobjects refer to each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from shaderkiln.descriptions.direct3d12.enums import (
    PipelineStateSubobjectType,
    ShaderCacheSessionSubobjectFlags,
    StateObjectType,
    StateSubobjectType,
)
from shaderkiln.descriptions.direct3d12.pipeline_state import (
    PipelineStateStream,
    checked_subobject,
    field_of,
    subobject_type_of,
)
from shaderkiln.descriptions.direct3d12.psdb_subobject import (
    ShaderCacheSession,
    ShaderCacheSessionSubobjectDesc,
    psdb_subobject,
)
from shaderkiln.descriptions.direct3d12.state_object import (
    DxilLibrary,
    DxilSubobjectToExportsAssociation,
    ExistingCollection,
    ExportDesc,
    GenericProgram,
    StateObjectDesc,
    StateSubobject,
    SubobjectToExportsAssociation,
    with_references,
)
from shaderkiln.errors import InvalidArgumentError

_NONE = ShaderCacheSessionSubobjectFlags.NONE


class PipelineStateStreamBuilder:
    """Collects the subobjects of a stream. Methods return the builder, so that calls can be chained."""

    def __init__(self, stream: PipelineStateStream | None = None) -> None:
        fields = PipelineStateStream.__struct_fields__
        self._values: dict[str, Any] = (
            {} if stream is None else {field: getattr(stream, field) for field in fields if getattr(stream, field) is not None}
        )

    def add(self, type_: PipelineStateSubobjectType, value: Any) -> PipelineStateStreamBuilder:
        """One more subobject. Raises InvalidArgumentError as ``PipelineStateStream.from_subobjects`` does."""
        field, value = checked_subobject(type_, value)
        if field in self._values:
            raise InvalidArgumentError(f"the stream has more than one {field} subobject; each may come once")
        if value is not None:
            self._values[field] = value
        return self

    def psdb(
        self,
        session: ShaderCacheSession | ShaderCacheSessionSubobjectDesc | None,
        flags: ShaderCacheSessionSubobjectFlags = _NONE,
    ) -> PipelineStateStreamBuilder:
        """The PSDB subobject, from a desc or from a session and flags. Raises InvalidArgumentError (EP-12)."""
        return self.add(PipelineStateSubobjectType.PSDB, psdb_subobject(session, flags))

    def remove_subobjects_by_type(self, type_: PipelineStateSubobjectType) -> PipelineStateStreamBuilder:
        """Takes the subobject of that type away, if there is one (EP-13)."""
        field = field_of(type_)
        if field in self._values and subobject_type_of(field, self._values[field]) == type_:
            del self._values[field]
        return self

    def build(self) -> PipelineStateStream:
        """The stream as it is now; ``validation.validate`` checks it."""
        return PipelineStateStream(**self._values)


class SubobjectReference:
    """A subobject of one StateObjectBuilder, for those that refer to it."""

    __slots__ = ("subobject_type",)

    def __init__(self, subobject_type: StateSubobjectType) -> None:
        self.subobject_type = subobject_type

    def __repr__(self) -> str:
        return f"<{self.subobject_type.name} subobject>"


class StateObjectBuilder:
    """Collects the subobjects of a state object and keeps track of which refers to which."""

    def __init__(self, type: StateObjectType) -> None:
        self.type = type
        self._subobjects: dict[SubobjectReference, tuple[StateSubobject, tuple[SubobjectReference, ...]]] = {}

    def add(self, subobject: StateSubobject) -> SubobjectReference:
        """A subobject that refers to no other: states, libraries, hit groups, configs, root signatures, work graphs.

        Raises InvalidArgumentError for anything else; ``associate`` and ``generic_program`` make those that refer to others.
        """
        type_ = getattr(type(subobject), "subobject_type", None)
        if type_ is None or not isinstance(subobject, Struct):
            raise InvalidArgumentError(f"{type(subobject).__name__} is no subobject of a state object")
        if isinstance(subobject, SubobjectToExportsAssociation) or (
            isinstance(subobject, GenericProgram) and subobject.subobjects
        ):
            raise InvalidArgumentError(
                f"{type(subobject).__name__} refers to others by index; use associate or generic_program"
            )
        return self._add(subobject)

    def dxil_library(self, bytecode: bytes, exports: Iterable[str | ExportDesc] = ()) -> SubobjectReference:
        """A library; exports are names or ExportDesc."""
        return self._add(DxilLibrary(bytecode, _exports(exports)))

    def existing_collection(self, collection: Any, exports: Iterable[str | ExportDesc] = ()) -> SubobjectReference:
        """A collection: its StateObjectDesc, or an object whose ``desc`` is one. Raises InvalidArgumentError for others."""
        desc = collection if isinstance(collection, StateObjectDesc) else getattr(collection, "desc", None)
        if not isinstance(desc, StateObjectDesc):
            raise InvalidArgumentError(f"{type(collection).__name__} is no collection")
        return self._add(ExistingCollection(desc, _exports(exports)))

    def associate(self, subobject: SubobjectReference | str, exports: Iterable[str] = ()) -> SubobjectReference:
        """An association of a subobject, or of one in a library by its name, with exports; with none it is the default."""
        if isinstance(subobject, str):
            return self._add(DxilSubobjectToExportsAssociation(subobject, tuple(exports)))
        return self._add(SubobjectToExportsAssociation(0, tuple(exports)), (self._known(subobject),))

    def generic_program(
        self, name: str, exports: Iterable[str], subobjects: Iterable[SubobjectReference] = ()
    ) -> SubobjectReference:
        """A program of shaders by export name, with the states that were added before."""
        targets = tuple(map(self._known, subobjects))
        return self._add(GenericProgram(name, tuple(exports), tuple(range(len(targets)))), targets)

    def psdb(
        self,
        session: ShaderCacheSession | ShaderCacheSessionSubobjectDesc | None,
        flags: ShaderCacheSessionSubobjectFlags = _NONE,
    ) -> SubobjectReference:
        """The PSDB subobject, from a desc or from a session and flags.

        Raises InvalidArgumentError (EP-12), and if there is one already.
        """
        if any(reference.subobject_type == StateSubobjectType.PSDB for reference in self._subobjects):
            raise InvalidArgumentError("the state object has more than one PSDB subobject; it may come once")
        return self._add(psdb_subobject(session, flags))

    def remove_subobjects_by_type(self, type_: StateSubobjectType) -> StateObjectBuilder:
        """Takes the subobjects of a type away, and the associations with them; programs no longer name them (EP-13)."""
        try:
            type_ = StateSubobjectType(type_)
        except ValueError:
            raise InvalidArgumentError(f"subobject type: {type_!r} is no D3D12_STATE_SUBOBJECT_TYPE") from None
        gone = {reference for reference in self._subobjects if reference.subobject_type == type_}
        while gone:
            for reference in gone:
                del self._subobjects[reference]
            found: set[SubobjectReference] = set()
            for reference, (subobject, targets) in self._subobjects.items():
                if not gone.isdisjoint(targets):
                    if isinstance(subobject, SubobjectToExportsAssociation):
                        found.add(reference)
                    kept = tuple(target for target in targets if target not in gone)
                    if isinstance(subobject, GenericProgram):
                        subobject = GenericProgram(subobject.program_name, subobject.exports, tuple(range(len(kept))))
                    self._subobjects[reference] = subobject, kept
            gone = found
        return self

    def build(self) -> StateObjectDesc:
        """The desc as it is now; ``validation.validate`` checks it."""
        places = {reference: index for index, reference in enumerate(self._subobjects)}
        return StateObjectDesc(
            self.type,
            tuple(
                with_references(subobject, {index: places[target] for index, target in enumerate(targets)}.__getitem__)
                if targets
                else subobject
                for subobject, targets in self._subobjects.values()
            ),
        )

    def _add(self, subobject: StateSubobject, targets: tuple[SubobjectReference, ...] = ()) -> SubobjectReference:
        reference = SubobjectReference(subobject.subobject_type)
        self._subobjects[reference] = subobject, targets
        return reference

    def _known(self, reference: SubobjectReference) -> SubobjectReference:
        if reference not in self._subobjects:
            raise InvalidArgumentError(f"{reference!r} is not in this state object, or was removed")
        return reference


def _exports(exports: Iterable[str | ExportDesc]) -> tuple[ExportDesc, ...]:
    return tuple(ExportDesc(export) if isinstance(export, str) else export for export in exports)
