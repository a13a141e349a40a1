"""The Direct3D 12 device on a driver of this machine: without a GPU, it finds or makes the object code of pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import msgspec

from shaderkiln.compilers.plugin import FamilyCompiler, open_family
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import StateObjectDesc
from shaderkiln.errors import NotCurrentlyAvailableError, UnsupportedError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.registration.explorer import Explorer
from shaderkiln.registration.records import Scope
from shaderkiln.sessions.control import CacheControlFlags, CacheKindFlags, ShaderCacheControl, process_control
from shaderkiln.sessions.debug_layer import DebugLayer, process_debug_layer
from shaderkiln.sessions.descs import SESSION_SUPPORT, SessionDesc1, ShaderCacheSessionDesc, ShaderCacheSupportFlags
from shaderkiln.sessions.factory import SessionEnvironment, create_shader_cache_session, create_shader_cache_session1
from shaderkiln.sessions.interface import ShaderCacheSession
from shaderkiln.system.processes import usable_processors
from shaderkiln.workers.lanes import WorkerLanes
from shaderkiln.workers.pool import Limits

from .application import DeclaredIdentity, identity_for_device, process_executable
from .components import Components, DefaultPsdb
from .creation import ObjectCreation
from .explicit_psdb import made_by
from .features import (
    DEVICE_SUPPORT,
    Feature,
    FeatureData,
    FeatureDataExplicitPsdbs,
    FeatureDataShaderCache,
    FeatureDataShaderCacheAbiSupport,
    feature_data,
)
from .local_cache import LocalCache
from .objects import PipelineState, StateObject, add_to_state_object, create_pipeline_state, create_state_object
from .parts import Lowering
from .process_debug import process_debug_flags
from .statistics import StateObjectStatistics

if TYPE_CHECKING:
    from shaderkiln.formats.pipeline_components import SerializedPipelineState
    from shaderkiln.formats.pipeline_library import Buffer

    from .derived_pipelines import ComputeVariation
    from .pipeline_library import PipelineLibrary
    from .serialized_components import DeserializedPipelineState

WORKERS = min(4, usable_processors())


class Direct3D12Device:
    """A device of one adapter family. Made by ``create_device``; close it, or use it in a ``with`` statement.

    The driver lives in processes of its own, which are started when the first object is created and replaced after they have ended:
    an object that takes the driver down fails alone, and is not tried again by this device. Every method may be called by several
    threads at once. Not for both sides of a fork.

    Nothing that a device cannot read or write (a damaged PSDB, a full cache) keeps an object from being created; ``debug`` says so.
    """

    def __init__(
        self, creation: ObjectCreation, environment: SessionEnvironment, *, executable: Path, serializes: bool
    ) -> None:
        self.compiler = creation.compiler
        """The adapter and its driver build."""
        self.application = creation.application
        """The identity that was declared before the device was created, or None."""
        self.executable = executable
        """The program by which the application is registered."""
        self.debug = creation.debug
        self.serializes = serializes
        """Whether pipelines may be serialized: not on the devices that players have (XS-07)."""
        self._creation = creation
        self._environment = environment

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
        return feature_data(feature, self._environment)

    def get_state_object_statistics(self) -> StateObjectStatistics:
        """How the objects of this device were created so far (EP-51)."""
        return StateObjectStatistics(
            self._creation.default_psdb.registered,
            self._creation.pipeline_states.snapshot(),
            self._creation.state_objects.snapshot(),
        )

    # Sessions

    def create_shader_cache_session(self, desc: ShaderCacheSessionDesc) -> ShaderCacheSession:
        """A MEMORY or DISK session by the old desc. Raises as ``sessions.create_shader_cache_session``."""
        self._creation.check_open()
        return made_by(self.compiler, create_shader_cache_session(desc, self._environment))

    def create_shader_cache_session1(self, desc: SessionDesc1) -> ShaderCacheSession:
        """A session of any mode. Raises as ``sessions.create_shader_cache_session1``.

        FILE and REGISTERED need an application identity that was set before the device was created (EP-42).
        """
        self._creation.check_open()
        return made_by(self.compiler, create_shader_cache_session1(desc, self._environment))

    def shader_cache_control(self, kinds: CacheKindFlags, control: CacheControlFlags) -> None:
        """Disable, enable or clear kinds of cache of the process. Raises as ``ShaderCacheControl.control``."""
        self._environment.control.control(kinds, control)

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
        return create_pipeline_state(self._creation, stream)

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

        self._creation.check_open()
        if not self._creation.stores_object_code:
            raise UnsupportedError("the driver takes no stored object code, so there are no pipeline libraries")
        return PipelineLibrary(self._creation, blob)

    # Serialized components

    def serialize_compute_pipeline_state(self, pipeline: PipelineState, flags: int = 0) -> SerializedPipelineState:
        """The component pieces of a compute pipeline state (XS-01). Offline only.

        Raises NotCurrentlyAvailableError on a device that is no tool's, in a process without debug flags; and as
        ``serialized_components.serialize``.
        """
        return self._serialize(pipeline, "compute", flags)

    def serialize_graphics_pipeline_state(self, pipeline: PipelineState, flags: int = 0) -> SerializedPipelineState:
        """The component pieces of a graphics or mesh pipeline state. Offline only; raises as for compute."""
        return self._serialize(pipeline, "graphics", flags)

    def deserialize_compute_pipeline_state(self, serialized: SerializedPipelineState) -> DeserializedPipelineState:
        """A compute pipeline of its pieces, without compiling (XS-03). Raises as ``serialized_components.deserialize``."""
        from .serialized_components import deserialize

        return deserialize(self._creation, serialized, "compute")

    def deserialize_graphics_pipeline_state(self, serialized: SerializedPipelineState) -> DeserializedPipelineState:
        """A graphics pipeline of its pieces, without compiling. Raises as ``serialized_components.deserialize``."""
        from .serialized_components import deserialize

        return deserialize(self._creation, serialized, "graphics")

    def create_derived_compute_pipeline_state(
        self, base: DeserializedPipelineState, variation: ComputeVariation
    ) -> DeserializedPipelineState:
        """A variation of a deserialized compute pipeline, without compiling (XS-06). Raises as ``derived_pipelines.derive``."""
        from .derived_pipelines import derive

        return derive(self._creation, base, variation)

    def create_state_object(self, desc: StateObjectDesc) -> StateObject:
        """Create a state object. Raises as ``create_pipeline_state``."""
        return create_state_object(self._creation, desc)

    def add_to_state_object(self, addition: StateObjectDesc, base: StateObject) -> StateObject:
        """Create the state object that ``base`` and an addition make together.

        The addition names its own PSDB session, or none: that of the base is not inherited (EP-10). Raises as
        ``create_pipeline_state``, and InvalidArgumentError where one of the two does not allow additions, the types differ, or the
        base is of another device.
        """
        return add_to_state_object(self._creation, addition, base)

    # Life

    def close(self) -> None:
        """End the driver's processes and release the caches; sessions and objects stay as they are. May be called again."""
        self._creation.close()

    def __enter__(self) -> Direct3D12Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serialize(self, pipeline: PipelineState, kind: str, flags: int) -> SerializedPipelineState:
        from .serialized_components import serialize

        if not self.serializes:
            raise NotCurrentlyAvailableError("pipelines are serialized offline: by a tool, or in a process with debug flags")
        return serialize(self._creation, pipeline, kind, flags)


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
    program = process_executable() if executable is None else Path(executable)
    components = Components(program, compiler.identity, identity, Explorer(registries))
    cache = LocalCache(compiler.identity, local_cache, control, debug)
    supported = compiler.identity.object_code_form != "none"
    support = DEVICE_SUPPORT if supported else ShaderCacheSupportFlags.NONE
    default = DefaultPsdb(components, support, control, debug)
    driver = WorkerLanes(compiler, workers=workers, limits=limits)
    environment = SessionEnvironment(
        application=identity,
        compiler=compiler.identity,
        resolver=components,
        support=support | SESSION_SUPPORT,
        explicit_psdbs=supported,
        control=control,
        debug=debug,
    )
    creation = ObjectCreation(compiler, lowering, driver, cache, default, identity, debug)
    return Direct3D12Device(creation, environment, executable=program, serializes=tool or bool(process_debug_flags()))
