"""The Direct3D 12 device on a driver of this machine: without a GPU, it finds or makes the object code of pipelines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, overload
from weakref import WeakKeyDictionary

import msgspec

from shaderkiln.compilers.plugin import FamilyCompiler, open_family
from shaderkiln.descriptions.direct3d12.canonical import object_key
from shaderkiln.descriptions.direct3d12.enums import ShaderCacheSessionSubobjectFlags, StateObjectFlags
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.psdb_subobject import ShaderCacheSessionSubobjectDesc, check_psdb
from shaderkiln.descriptions.direct3d12.state_object import (
    CompilerExistingCollection,
    ExistingCollection,
    ExistingCollectionByKey,
    StateObjectDesc,
)
from shaderkiln.descriptions.direct3d12.validation import validate
from shaderkiln.descriptions.pipeline import Application, PipelineDescription
from shaderkiln.errors import InvalidArgumentError, NotFoundError, ShaderkilnError, UnsupportedError
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity
from shaderkiln.keys import ObjectKey, Value, ValueType
from shaderkiln.registration.explorer import Explorer
from shaderkiln.registration.records import Scope
from shaderkiln.sessions.control import CacheControlFlags, CacheKindFlags, ShaderCacheControl, process_control
from shaderkiln.sessions.debug_layer import DebugLayer, Severity, process_debug_layer
from shaderkiln.sessions.descs import SESSION_SUPPORT, SessionDesc1, ShaderCacheSessionDesc, ShaderCacheSupportFlags
from shaderkiln.sessions.factory import SessionEnvironment, create_shader_cache_session, create_shader_cache_session1
from shaderkiln.sessions.interface import SessionReference, ShaderCacheSession
from shaderkiln.system.processes import usable_processors
from shaderkiln.workers.lanes import WorkerLanes
from shaderkiln.workers.pool import Limits

from .application import DeclaredIdentity, identity_for_device, process_executable
from .components import Components, DefaultPsdb, properties
from .creation import ObjectCreator, Part, combined, parts_of
from .features import (
    DEVICE_SUPPORT,
    Feature,
    FeatureData,
    FeatureDataExplicitPsdbs,
    FeatureDataShaderCache,
    FeatureDataShaderCacheAbiSupport,
)
from .local_cache import LocalCache
from .objects import PipelineState, StateObject
from .process_debug import process_debug_flags
from .statistics import CreationCounter, ObjectSource, StateObjectStatistics
from .stored_objects import StoredObject, store_object

if TYPE_CHECKING:
    from shaderkiln.formats.pipeline_components import SerializedPipelineState
    from shaderkiln.formats.pipeline_library import Buffer

    from .pipeline_library import PipelineLibrary
    from .serialized_components import ComputeVariation, DeserializedPipelineState

WORKERS = min(4, usable_processors())


class Lowering(Protocol):
    """Turns descs into the pipelines that the driver creates. May be used by several threads.

    What it cannot express raises UnsupportedPipelineError with every reason.
    """

    application: Application
    """API version and code-changing features of every pipeline that it makes."""

    def parts(
        self, desc: PipelineStateStream | StateObjectDesc, parents: Sequence[StateObjectDesc] = ()
    ) -> tuple[Callable[[bool], PipelineDescription], ...]:
        """For each pipeline of an object, in the order of ``part_key``, what gives it with shaders (True) or without their code.

        ``parents`` are what an addition grows, nearest first.
        """

    def close(self) -> None: ...


class Direct3D12Device:
    """A device of one adapter family. Made by ``create_device``; close it, or use it in a ``with`` statement.

    The driver lives in processes of its own, which are started when the first object is created and replaced after they have ended:
    an object that takes the driver down fails alone, and is not tried again by this device. Every method may be called by several
    threads at once. Not for both sides of a fork.

    Nothing that a device cannot read or write (a damaged PSDB, a full cache) keeps an object from being created; ``debug`` says so.
    """

    def __init__(
        self,
        compiler: FamilyCompiler,
        lowering: Lowering,
        *,
        application: ApplicationIdentity | None,
        executable: Path,
        explorer: Explorer,
        local_cache: Path | str | None,
        workers: int,
        limits: Limits | None,
        control: ShaderCacheControl,
        debug: DebugLayer,
        tool: bool = False,
    ) -> None:
        self.compiler = compiler.identity
        """The adapter and its driver build."""
        self.application = application
        """The identity that was declared before the device was created, or None."""
        self.executable = executable
        """The program by which the application is registered."""
        self.debug = debug
        self.serializes = tool or bool(process_debug_flags())
        """Whether pipelines may be serialized: not on the devices that players have (XS-07)."""
        self._control = control
        self._lowering = lowering
        self._local_cache = LocalCache(compiler.identity, local_cache, control, debug)
        self._driver = WorkerLanes(compiler, workers=workers, limits=limits)
        self._creator = ObjectCreator(compiler, self._driver, self._local_cache, debug)
        self._pipeline_states = CreationCounter()
        self._state_objects = CreationCounter()
        self._closed = False
        supported = self._creator.stores_object_code
        self._support = DEVICE_SUPPORT if supported else ShaderCacheSupportFlags.NONE
        components = Components(executable, compiler.identity, application, explorer)
        self._default = DefaultPsdb(components, self._support, control, debug) if supported else None
        self._environment = SessionEnvironment(
            application=application,
            compiler=compiler.identity,
            resolver=components,
            support=self._support | SESSION_SUPPORT,
            explicit_psdbs=supported,
            control=control,
            debug=debug,
        )

    # Support

    @overload
    def check_feature_support(self, feature: Literal[Feature.EXPLICIT_PSDBS]) -> FeatureDataExplicitPsdbs: ...
    @overload
    def check_feature_support(self, feature: Literal[Feature.SHADER_CACHE]) -> FeatureDataShaderCache: ...
    @overload
    def check_feature_support(self, feature: Literal[Feature.SHADER_CACHE_ABI_SUPPORT]) -> FeatureDataShaderCacheAbiSupport: ...
    def check_feature_support(self, feature: Feature) -> FeatureData:
        """What the device can do (EP-06, EP-08).

        Raises InvalidArgumentError for another feature, and ShaderkilnError (``E_FAIL``) for SHADER_CACHE_ABI_SUPPORT where the
        driver takes no stored object code.
        """
        supported = self._creator.stores_object_code
        if feature == Feature.EXPLICIT_PSDBS:
            return FeatureDataExplicitPsdbs(supported)
        if feature == Feature.SHADER_CACHE:
            return FeatureDataShaderCache(self._environment.support)
        if feature != Feature.SHADER_CACHE_ABI_SUPPORT:
            raise InvalidArgumentError(f"feature: {feature!r} is none that this device knows")
        if not supported:
            raise ShaderkilnError("the driver takes no stored object code, so it has no ABI versions")
        driver = properties(self.compiler)
        return FeatureDataShaderCacheAbiSupport(
            driver.adapter_family,
            driver.minimum_abi_version,
            driver.maximum_abi_version,
            driver.compiler_version,
            driver.application_profile_version,
        )

    def get_state_object_statistics(self) -> StateObjectStatistics:
        """How the objects of this device were created so far (EP-51)."""
        return StateObjectStatistics(
            self._default is not None and self._default.registered,
            self._pipeline_states.snapshot(),
            self._state_objects.snapshot(),
        )

    # Sessions

    def create_shader_cache_session(self, desc: ShaderCacheSessionDesc) -> ShaderCacheSession:
        """A MEMORY or DISK session by the old desc. Raises as ``sessions.create_shader_cache_session``."""
        self._check_open()
        return self._known(create_shader_cache_session(desc, self._environment))

    def create_shader_cache_session1(self, desc: SessionDesc1) -> ShaderCacheSession:
        """A session of any mode. Raises as ``sessions.create_shader_cache_session1``.

        FILE and REGISTERED need an application identity that was set before the device was created (EP-42).
        """
        self._check_open()
        return self._known(create_shader_cache_session1(desc, self._environment))

    def shader_cache_control(self, kinds: CacheKindFlags, control: CacheControlFlags) -> None:
        """Disable, enable or clear kinds of cache of the process. Raises as ``ShaderCacheControl.control``."""
        self._control.control(kinds, control)

    # Objects

    def create_pipeline_state(self, stream: PipelineStateStream) -> PipelineState:
        """Create a pipeline state; see ``creation`` for where its object code is looked for.

        A cached blob in the stream comes before everything else; where it was made with other states, or the driver refuses it, the
        pipeline state is created as without it.

        Raises InvalidArgumentError for a stream that is not valid, for a PSDB session that is closed or was made by a device of
        another adapter; for a cached blob of other shaders or another root signature, and as ``blobs.open_block`` for what is none
        of this device; UnsupportedPipelineError, with the reasons, for what the adapter or the translation of shaders cannot do;
        DriverCrashError and DriverError.
        """
        self._check_open()
        validate(stream)
        key = object_key(stream)
        if not stream.cached_pso:
            return self._create_pipeline_state(stream, key)
        cached = self._open_cached_blob(stream, key)
        if cached is None:
            self.debug.write(Severity.INFO, "cached-pso-not-used", f"object {key.hex()}: the blob was made with other states")
            return self._create_pipeline_state(stream, key)
        return self._create_pipeline_state(
            stream, key, cached, ObjectSource.CACHED_PSO, lambda: self._open_cached_blob(stream, key)
        )

    def validate_pipeline_library(self, blob: Buffer) -> Literal["S_FALSE"]:
        """What CreatePipelineLibrary does without an output: ``S_FALSE`` if a library would have been made.

        Raises as ``create_pipeline_library``.
        """
        self.create_pipeline_library(blob)
        return "S_FALSE"

    def create_pipeline_library(self, blob: Buffer = b"") -> PipelineLibrary:
        """An empty library of pipeline states, or the one that ``PipelineLibrary.serialize`` gave.

        The blob is used where it lies, and must not change as long as the library lives. Raises UnsupportedError where the driver
        takes no stored object code, DamagedInputError for a blob that is damaged or not recognised, AdapterNotFoundError for one of
        other hardware, DriverVersionMismatchError for one of another driver build or another version of the format.
        """
        from .pipeline_library import PipelineLibrary

        self._check_open()
        if not self._creator.stores_object_code:
            raise UnsupportedError("the driver takes no stored object code, so there are no pipeline libraries")
        return PipelineLibrary(self, blob)

    # Serialized components

    def serialize_compute_pipeline_state(self, pipeline: PipelineState, flags: int = 0) -> SerializedPipelineState:
        """The component pieces of a compute pipeline state (XS-01). Offline only; raises as ``serialized_components.serialize``."""
        from .serialized_components import serialize

        return serialize(self, pipeline, "compute", flags)

    def serialize_graphics_pipeline_state(self, pipeline: PipelineState, flags: int = 0) -> SerializedPipelineState:
        """The component pieces of a graphics or mesh pipeline state. Offline only; raises as for compute."""
        from .serialized_components import serialize

        return serialize(self, pipeline, "graphics", flags)

    def deserialize_compute_pipeline_state(self, serialized: SerializedPipelineState) -> DeserializedPipelineState:
        """A compute pipeline of its pieces, without compiling (XS-03). Raises as ``serialized_components.deserialize``."""
        from .serialized_components import deserialize

        return deserialize(self, serialized, "compute")

    def deserialize_graphics_pipeline_state(self, serialized: SerializedPipelineState) -> DeserializedPipelineState:
        """A graphics pipeline of its pieces, without compiling. Raises as ``serialized_components.deserialize``."""
        from .serialized_components import deserialize

        return deserialize(self, serialized, "graphics")

    def create_derived_compute_pipeline_state(
        self, base: DeserializedPipelineState, variation: ComputeVariation
    ) -> DeserializedPipelineState:
        """A variation of a deserialized compute pipeline, without compiling (XS-06). Raises as ``serialized_components.derive``."""
        from .serialized_components import derive

        return derive(self, base, variation)

    def create_state_object(self, desc: StateObjectDesc) -> StateObject:
        """Create a state object. Raises as ``create_pipeline_state``."""
        return self._create_state_object(desc, None)

    def add_to_state_object(self, addition: StateObjectDesc, base: StateObject) -> StateObject:
        """Create the state object that ``base`` and an addition make together.

        The addition names its own PSDB session, or none: that of the base is not inherited (EP-10). Raises as
        ``create_pipeline_state``, and InvalidArgumentError where one of the two does not allow additions, the types differ, or the
        base is of another device.
        """
        if not isinstance(base, StateObject) or base.device is not self:
            raise InvalidArgumentError("base: a state object of this device is needed")
        for name, desc in (("addition", addition), ("base", base.desc)):
            if not isinstance(desc, StateObjectDesc) or not desc.flags & StateObjectFlags.ALLOW_STATE_OBJECT_ADDITIONS:
                raise InvalidArgumentError(f"{name}: its config needs ALLOW_STATE_OBJECT_ADDITIONS")
        if addition.type != base.desc.type:
            raise InvalidArgumentError(f"addition: its type is {addition.type!r}, that of the base {base.desc.type!r}")
        return self._create_state_object(addition, base)

    def _create_state_object(self, desc: StateObjectDesc, base: StateObject | None) -> StateObject:
        self._check_open()
        validate(desc)
        _refuse_collections_by_key(desc)
        key = object_key(desc, parent=None if base is None else base.object_key)
        with _Attached(self, desc.psdb) as attached:
            source = self._create_parts(self._state_object_parts(desc, key, base), attached.session)
            created = StateObject(self, desc, key, source, attached.kept(), base)
        self._state_objects.add(source)
        return created

    # Life

    def close(self) -> None:
        """End the driver's processes and release the caches; sessions and objects stay as they are. May be called again."""
        self._closed = True
        self._driver.close()
        self._lowering.close()
        self._local_cache.close()
        if self._default is not None:
            self._default.close()

    def __enter__(self) -> Direct3D12Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # For objects

    def _pipeline_state_parts(self, stream: PipelineStateStream, key: ObjectKey) -> tuple[Part, ...]:
        return parts_of(key, self._lowering.parts(stream))

    def _state_object_parts(self, desc: StateObjectDesc, key: ObjectKey, base: StateObject | None) -> tuple[Part, ...]:
        parents = []
        while base is not None:
            parents.append(base.desc)
            base = base.base
        return parts_of(key, self._lowering.parts(desc, tuple(parents)))

    def _create_parts(self, parts: tuple[Part, ...], session: ShaderCacheSession | None) -> ObjectSource:
        source = ObjectSource.DEFAULT_PSDB if session is None else ObjectSource.EXPLICIT_PSDB
        psdb = self._default_session() if session is None else session
        return combined([self._creator.create(part, psdb, source) for part in parts])

    def _create_pipeline_state(
        self,
        stream: PipelineStateStream,
        key: ObjectKey,
        stored: StoredObject | None = None,
        source: ObjectSource = ObjectSource.LIBRARY,
        origin: Callable[[], StoredObject | None] | None = None,
    ) -> PipelineState:
        """``stored`` is what the application has of it, ``source`` what that is called, and ``origin`` gives it again."""
        with _Attached(self, stream.psdb) as attached:
            parts = self._pipeline_state_parts(stream, key)
            if stored is None or not self._creator.load(parts[0], stored, source):
                source, origin = self._create_parts(parts, attached.session), None
            created = PipelineState(self, stream, key, source, attached.kept())
            created._origin = origin
        self._pipeline_states.add(source)
        return created

    def _open_cached_blob(self, stream: PipelineStateStream, key: ObjectKey) -> StoredObject | None:
        from .blobs import open_cached_blob

        return open_cached_blob(stream.cached_pso or b"", stream, key, self.compiler)

    def _cached_blob(self, pipeline: PipelineState) -> bytes:
        from .blobs import cached_blob

        application = self.application or ApplicationIdentity()
        return cached_blob(pipeline.desc, pipeline.object_key, pipeline._object_code(), self.compiler, application)

    def _compile_again(self, part: Part) -> StoredObject:
        return self._creator.compile_again(part)

    def _find_parts(self, parts: tuple[Part, ...], session: ShaderCacheSession | None) -> tuple[StoredObject, ...]:
        found = []
        for part in parts:
            stored = self._creator.find(part, (session, self._default_session()))
            if stored is None:
                raise NotFoundError(f"no cache has the object code of object {part.key.hex()}")
            found.append(stored)
        return tuple(found)

    def _store(self, objects: tuple[StoredObject, ...], target: ShaderCacheSession) -> None:
        self._check_session(target)
        for stored in objects:
            pairs = zip(stored.group.value_keys, stored.values, strict=True)
            values = tuple(Value(key, ValueType.OBJECT_CODE, data) for key, (_, data) in pairs)
            store_object(target, stored.group, values, self.compiler)

    def _default_session(self) -> ShaderCacheSession | None:
        return None if self._default is None else self._default.session()

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgumentError("the device is closed")

    def _known(self, session: ShaderCacheSession) -> ShaderCacheSession:
        _adapters[session] = self.compiler
        return session

    def _check_session(self, session: object) -> None:
        if not isinstance(session, ShaderCacheSession):
            raise InvalidArgumentError(f"psdb.session: {type(session).__name__} is no shader cache session")
        adapter = _adapters.get(session)
        if adapter != self.compiler:
            whose = "no device" if adapter is None else f"a device of {adapter.family} or another driver build"
            raise InvalidArgumentError(f"psdb.session: made by {whose}, not by one of {self.compiler.family}")


def _refuse_collections_by_key(desc: StateObjectDesc) -> None:
    if desc.of(ExistingCollectionByKey):
        raise InvalidArgumentError("subobjects: a collection by key is for databases; a device needs ExistingCollection")
    for subobject in desc.subobjects:
        if isinstance(subobject, ExistingCollection | CompilerExistingCollection):
            _refuse_collections_by_key(subobject.collection)


_adapters: WeakKeyDictionary[ShaderCacheSession, CompilerIdentity] = WeakKeyDictionary()
"""By which adapter's devices the sessions were made: their object code is for no other one."""


class _Attached:
    """The explicit PSDB of an object that is being created, which is kept open until its creation ends."""

    def __init__(self, device: Direct3D12Device, desc: ShaderCacheSessionSubobjectDesc | None) -> None:
        self.session: ShaderCacheSession | None = None
        self._reference: SessionReference | None = None
        self._keep = False
        if desc is None:
            return
        check_psdb(desc)
        if desc.session is None:
            return
        device._check_session(desc.session)
        assert isinstance(desc.session, ShaderCacheSession)
        self.session = desc.session
        self._reference = desc.session.retain()
        self._keep = not desc.flags & ShaderCacheSessionSubobjectFlags.CREATE_ONLY

    def kept(self) -> SessionReference | None:
        """The reference that the created object gets: none with CREATE_ONLY."""
        if not self._keep:
            return None
        reference, self._reference = self._reference, None
        return reference

    def __enter__(self) -> _Attached:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reference is not None:
            self._reference.release()


def create_device(
    family: str | FamilyCompiler,
    *,
    application: DeclaredIdentity | None = None,
    executable: Path | str | None = None,
    plugin: str | None = None,
    package: str | None = None,
    abi_version: int | None = None,
    local_cache: Path | str | None = None,
    registries: Sequence[tuple[Scope, Path]] | None = None,
    workers: int = WORKERS,
    limits: Limits | None = None,
    control: ShaderCacheControl = process_control,
    debug: DebugLayer = process_debug_layer,
    lowering: Lowering | None = None,
    tool: bool = False,
) -> Direct3D12Device:
    """A device of an adapter family, for example ``amd-navi31``.

    ``application`` is an identity of this device's own (``declare``) in place of the process's. ``executable`` is the program by
    which the application is registered; default: the one that runs. ``plugin``, ``package`` and ``abi_version`` choose among
    several drivers of a family. ``local_cache`` is the folder of the local driver cache, ``registries`` are others than the user's
    and the system's. ``workers`` is the largest number of driver processes, of which one thread keeps one busy. ``tool`` is for
    offline tools, which may serialize pipelines.

    The identity of the process cannot be set afterwards. Raises FamilyNotFoundError where nothing here compiles for the family.
    """
    declared = identity_for_device(application)
    identity = None if declared is None else declared.application
    if lowering is None:
        from shaderkiln.lowering.state_object import VulkanLowering

        lowering = VulkanLowering(identity)
    made_for = msgspec.structs.replace(lowering.application, identity=identity or ApplicationIdentity())
    if isinstance(family, FamilyCompiler):
        compiler = family
    else:
        compiler = open_family(family, made_for, plugin=plugin, package=package, abi_version=abi_version)
    return Direct3D12Device(
        compiler,
        lowering,
        application=identity,
        executable=process_executable() if executable is None else Path(executable),
        explorer=Explorer(registries),
        local_cache=local_cache,
        workers=workers,
        limits=limits,
        control=control,
        debug=debug,
        tool=tool,
    )
