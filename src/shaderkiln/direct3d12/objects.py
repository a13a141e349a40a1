"""Pipeline states and state objects as a device creates them (ID3D12PipelineState, ID3D12StateObject)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import StateObjectDesc
from shaderkiln.errors import NotFoundError
from shaderkiln.keys import ObjectKey
from shaderkiln.sessions.interface import SessionReference, ShaderCacheSession

from .private_data import PrivateData
from .statistics import ObjectSource

if TYPE_CHECKING:
    from .creation import Part
    from .device import Direct3D12Device
    from .stored_objects import StoredObject

_Desc = TypeVar("_Desc", PipelineStateStream, StateObjectDesc)


class DeviceObject(PrivateData, ABC, Generic[_Desc]):
    """What both kinds share.

    With the flag NONE an object keeps its explicit PSDB session open, as long as the object lives; with CREATE_ONLY it lets go of
    it when its creation ends. That decides where ``recreate`` looks (EP-11).
    """

    def __init__(
        self,
        device: Direct3D12Device,
        desc: _Desc,
        object_key: ObjectKey,
        source: ObjectSource,
        reference: SessionReference | None,
    ) -> None:
        self.device = device
        self.desc: _Desc = desc
        self.object_key = object_key
        """Digest of everything that decides what is compiled; the PSDB subobject takes no part."""
        self.source = source
        """Where its object code was found when it was created."""
        self._reference = reference

    @property
    def session(self) -> ShaderCacheSession | None:
        """The explicit PSDB session that the object keeps, or None."""
        return None if self._reference is None else self._reference.session

    def recreate(self) -> ObjectSource:
        """Create the object once more, as after the end of the driver's process, and say where it was found.

        A later lookup: the session that the object has kept is asked, or the default PSDB if there is one and it has kept none;
        then the local cache, then the compiler. It does not count in the statistics. Raises as creation does.
        """
        return self.device._create_parts(self._parts(), self.session)

    def store_into(self, session: ShaderCacheSession) -> None:
        """Store the object code into a session, so that the session can serve as this object's explicit PSDB.

        What the session has of it already stays. Raises NotFoundError where no cache has the object code any more (or the driver
        gives none), and as ``store_value1``.
        """
        self.device._store(self._stored(), session)

    def _stored(self) -> tuple[StoredObject, ...]:
        return self.device._find_parts(self._parts(), self.session)

    @abstractmethod
    def _parts(self) -> tuple[Part, ...]:
        """The pipelines for the driver, made again: shaders as SPIR-V would be most of what an object holds."""


class PipelineState(DeviceObject[PipelineStateStream]):
    """A graphics, compute or mesh pipeline state."""

    _origin: Callable[[], StoredObject | None] | None = None
    """Gives the object code that it was created from, where no cache has it: that of a library or of a cached blob."""

    def get_cached_blob(self) -> bytes:
        """The object code of this pipeline state alone, for ``PipelineStateStream.cached_pso`` (PL-13).

        What no cache has any more is compiled again. Raises as creation does.
        """
        return self.device._cached_blob(self)

    def _stored(self) -> tuple[StoredObject, ...]:
        kept = None if self._origin is None else self._origin()
        return super()._stored() if kept is None else (kept,)

    def _object_code(self) -> StoredObject:
        try:
            return self._stored()[0]
        except NotFoundError:
            return self.device._compile_again(self._parts()[0])

    def _parts(self) -> tuple[Part, ...]:
        return self.device._pipeline_state_parts(self.desc, self.object_key)


class StateObject(DeviceObject[StateObjectDesc]):
    """A collection, ray tracing pipeline or executable, or one that has grown by an addition."""

    def __init__(
        self,
        device: Direct3D12Device,
        desc: StateObjectDesc,
        object_key: ObjectKey,
        source: ObjectSource,
        reference: SessionReference | None,
        base: StateObject | None = None,
    ) -> None:
        super().__init__(device, desc, object_key, source, reference)
        self.base = base
        """What ``add_to_state_object`` has grown it from, or None."""

    def _parts(self) -> tuple[Part, ...]:
        return self.device._state_object_parts(self.desc, self.object_key, self.base)
