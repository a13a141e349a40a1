"""Pipeline states and state objects as a device creates them (ID3D12PipelineState, ID3D12StateObject)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from shaderkiln.descriptions.direct3d12.canonical import object_key
from shaderkiln.descriptions.direct3d12.enums import StateObjectFlags
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import (
    CompilerExistingCollection,
    ExistingCollection,
    ExistingCollectionByKey,
    StateObjectDesc,
)
from shaderkiln.descriptions.direct3d12.validation import validate
from shaderkiln.errors import InvalidArgumentError, NotFoundError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.keys import ObjectKey
from shaderkiln.sessions.debug_layer import Severity
from shaderkiln.sessions.interface import ShaderCacheSession

from .creation import ObjectCreation
from .explicit_psdb import ExplicitPsdb, check_session
from .parts import Part
from .private_data import PrivateData
from .statistics import ObjectSource
from .stored_objects import StoredObject, store_object

_Desc = TypeVar("_Desc", PipelineStateStream, StateObjectDesc)


@dataclass(frozen=True, slots=True)
class Given:
    """What an application has of a pipeline state: in a library, or in a cached blob."""

    stored: StoredObject
    source: ObjectSource
    again: Callable[[], StoredObject | None]
    """Gives the object code once more, as long as it is there."""


class DeviceObject(PrivateData, ABC, Generic[_Desc]):
    """What both kinds share. An object creates itself when it is made.

    With the flag NONE an object keeps its explicit PSDB session open, as long as the object lives; with CREATE_ONLY it lets go of
    it when its creation ends. That decides where ``recreate`` looks (EP-11).
    """

    def __init__(self, creation: ObjectCreation, desc: _Desc, object_key: ObjectKey, given: Given | None = None) -> None:
        self.creation = creation
        """What the objects of its device share."""
        self.desc: _Desc = desc
        self.object_key = object_key
        """Digest of everything that decides what is compiled; the PSDB subobject takes no part."""
        self._given = None
        with ExplicitPsdb(desc.psdb, creation.compiler) as psdb:
            parts = self.parts()
            if given is not None and creation.load(parts[0], given.stored, given.source):
                self._given = given
                source = given.source
            else:
                source = creation.create(parts, psdb.session)
            self._reference = psdb.kept()
        self.source = source
        """Where its object code was found when it was created."""

    @property
    def session(self) -> ShaderCacheSession | None:
        """The explicit PSDB session that the object keeps, or None."""
        return None if self._reference is None else self._reference.session

    def recreate(self) -> ObjectSource:
        """Create the object once more, as after the end of the driver's process, and say where it was found.

        A later lookup: the session that the object has kept is asked, or the default PSDB if there is one and it has kept none;
        then the local cache, then the compiler. It does not count in the statistics. Raises as creation does.
        """
        return self.creation.create(self.parts(), self.session)

    def store_into(self, session: ShaderCacheSession) -> None:
        """Store the object code into a session, so that the session can serve as this object's explicit PSDB.

        What the session has of it already stays. Raises NotFoundError where no cache has the object code any more (or the driver
        gives none), and as ``store_value1``.
        """
        found = self.stored()
        check_session(session, self.creation.compiler)
        for stored in found:
            store_object(session, stored, self.creation.compiler)

    def stored(self) -> tuple[StoredObject, ...]:
        """The object code of each part, where it is kept. Raises NotFoundError."""
        kept = None if self._given is None else self._given.again()
        return self.creation.find(self.parts(), self.session) if kept is None else (kept,)

    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The pipelines for the driver, made again: shaders as SPIR-V would be most of what an object holds."""


class PipelineState(DeviceObject[PipelineStateStream]):
    """A graphics, compute or mesh pipeline state."""

    def __init__(
        self, creation: ObjectCreation, desc: PipelineStateStream, object_key: ObjectKey, given: Given | None = None
    ) -> None:
        super().__init__(creation, desc, object_key, given)
        creation.pipeline_states.add(self.source)

    def get_cached_blob(self) -> bytes:
        """The object code of this pipeline state alone, for ``PipelineStateStream.cached_pso`` (PL-13).

        What no cache has any more is compiled again. Raises as creation does.
        """
        from .blobs import cached_blob

        application = self.creation.application or ApplicationIdentity()
        return cached_blob(self.desc, self.object_key, self.object_code(), self.creation.compiler, application)

    def object_code(self) -> StoredObject:
        """Its object code. What no cache has any more is compiled again. Raises as creation does."""
        try:
            return self.stored()[0]
        except NotFoundError:
            return self.creation.compile(self.parts()[0])

    def parts(self) -> tuple[Part, ...]:
        return self.creation.parts(self.desc, self.object_key)


class StateObject(DeviceObject[StateObjectDesc]):
    """A collection, ray tracing pipeline or executable, or one that has grown by an addition."""

    def __init__(
        self, creation: ObjectCreation, desc: StateObjectDesc, object_key: ObjectKey, base: StateObject | None = None
    ) -> None:
        self.base = base
        """What ``add_to_state_object`` has grown it from, or None."""
        super().__init__(creation, desc, object_key)
        creation.state_objects.add(self.source)

    def parts(self) -> tuple[Part, ...]:
        parents = []
        base = self.base
        while base is not None:
            parents.append(base.desc)
            base = base.base
        return self.creation.parts(self.desc, self.object_key, tuple(parents))


def create_pipeline_state(creation: ObjectCreation, stream: PipelineStateStream) -> PipelineState:
    """A pipeline state of its cached blob, or else of what the caches have. Raises as the device's method."""
    creation.check_open()
    validate(stream)
    key = object_key(stream)
    return PipelineState(creation, stream, key, _cached(creation, stream, key))


def create_state_object(creation: ObjectCreation, desc: StateObjectDesc, base: StateObject | None = None) -> StateObject:
    """A state object, or what it makes as an addition to ``base``. Raises as the device's method."""
    creation.check_open()
    validate(desc)
    _refuse_collections_by_key(desc)
    return StateObject(creation, desc, object_key(desc, parent=None if base is None else base.object_key), base)


def add_to_state_object(creation: ObjectCreation, addition: StateObjectDesc, base: StateObject) -> StateObject:
    """What ``base`` and an addition make together. Raises as the device's method."""
    if not isinstance(base, StateObject) or base.creation is not creation:
        raise InvalidArgumentError("base: a state object of this device is needed")
    for name, desc in (("addition", addition), ("base", base.desc)):
        if not isinstance(desc, StateObjectDesc) or not desc.flags & StateObjectFlags.ALLOW_STATE_OBJECT_ADDITIONS:
            raise InvalidArgumentError(f"{name}: its config needs ALLOW_STATE_OBJECT_ADDITIONS")
    if addition.type != base.desc.type:
        raise InvalidArgumentError(f"addition: its type is {addition.type!r}, that of the base {base.desc.type!r}")
    return create_state_object(creation, addition, base)


def _cached(creation: ObjectCreation, stream: PipelineStateStream, key: ObjectKey) -> Given | None:
    blob = stream.cached_pso
    if not blob:
        return None
    from .blobs import open_cached_blob

    def open_blob() -> StoredObject | None:
        return open_cached_blob(blob, stream, key, creation.compiler)

    stored = open_blob()
    if stored is not None:
        return Given(stored, ObjectSource.CACHED_PSO, open_blob)
    creation.debug.write(Severity.INFO, "cached-pso-not-used", f"object {key.hex()}: the blob was made with other states")
    return None


def _refuse_collections_by_key(desc: StateObjectDesc) -> None:
    if desc.of(ExistingCollectionByKey):
        raise InvalidArgumentError("subobjects: a collection by key is for databases; a device needs ExistingCollection")
    for subobject in desc.subobjects:
        if isinstance(subobject, ExistingCollection | CompilerExistingCollection):
            _refuse_collections_by_key(subobject.collection)
