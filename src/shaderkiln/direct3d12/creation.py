"""Creating objects: where object code is looked for, in which order, and what becomes of what was not found (EP-01 to EP-04).

For each part of an object: the explicit PSDB, or else the default PSDB, never both; then the local cache; then the driver compiles
it and the local cache gets the result. Found means that the driver has created the pipeline from the stored values with compiling
forbidden; what it refuses counts as not found.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import StateObjectDesc
from shaderkiln.descriptions.pipeline import UnsupportedPipelineError, has_shaders
from shaderkiln.drivers.protocol import Compile, Compiled, Failed, Recreate, Recreated
from shaderkiln.errors import (
    CacheFullError,
    DriverError,
    InvalidArgumentError,
    NotCurrentlyAvailableError,
    NotFoundError,
    ShaderkilnError,
)
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.keys import ObjectKey
from shaderkiln.lowering.state_object import part_key
from shaderkiln.sessions.debug_layer import DebugLayer, Severity
from shaderkiln.sessions.interface import ShaderCacheSession
from shaderkiln.workers.lanes import WorkerLanes
from shaderkiln.workers.pool import Death, Result

from .components import DefaultPsdb
from .local_cache import LocalCache
from .parts import Lowering, Part
from .statistics import CreationCounter, ObjectSource
from .stored_objects import StoredObject, find_object, store_object

_ORDER = tuple(ObjectSource)


class DriverCrashError(DriverError):
    """The driver's process ended, or had to be ended, with this object in hand (``DXGI_ERROR_DRIVER_INTERNAL_ERROR``)."""

    default_code = "DXGI_ERROR_DRIVER_INTERNAL_ERROR"


class _Answer(Enum):
    HIT = 1
    MISS = 2
    REFUSED = 3
    """Something is stored that does not serve."""


class ObjectCreation:
    """What the objects of one device are created with, on its driver. May be used by several threads."""

    def __init__(
        self,
        compiler: FamilyCompiler,
        lowering: Lowering,
        driver: WorkerLanes,
        local_cache: LocalCache,
        default_psdb: DefaultPsdb,
        application: ApplicationIdentity | None,
        debug: DebugLayer,
    ) -> None:
        self.compiler = compiler.identity
        self.application = application
        """What the application has declared."""
        self.debug = debug
        self.default_psdb = default_psdb
        self.pipeline_states = CreationCounter()
        self.state_objects = CreationCounter()
        self._check_compiler = compiler.check
        self._lowering = lowering
        self._driver = driver
        self._local_cache = local_cache
        self._closed = False
        self._check_lock = threading.Lock()
        # What ended the driver's process once is not given to it again: parts by key, and stored objects by their digest.
        self._fatal: dict[ObjectKey, str] = {}
        self._fatal_stored: set[bytes] = set()
        self._told_full = False

    @property
    def stores_object_code(self) -> bool:
        """Whether the driver can create pipelines from stored object code at all."""
        return self.compiler.object_code_form != "none"

    def check_open(self) -> None:
        """Raises InvalidArgumentError once it is closed."""
        if self._closed:
            raise InvalidArgumentError("the device is closed")

    def close(self) -> None:
        """End the driver's processes and release the caches. May be called again."""
        self._closed = True
        self._driver.close()
        self._lowering.close()
        self._local_cache.close()
        self.default_psdb.close()

    def parts(
        self, desc: PipelineStateStream | StateObjectDesc, key: ObjectKey, parents: Sequence[StateObjectDesc] = ()
    ) -> tuple[Part, ...]:
        """The parts of an object with their keys (``part_key``). Raises as ``Lowering.parts``, also when they are described."""
        lowered = self._lowering.parts(desc, parents)
        return tuple(Part(part_key(key, number), lower) for number, lower in enumerate(lowered))

    def create(self, parts: Iterable[Part], session: ShaderCacheSession | None) -> ObjectSource:
        """Create the parts of an object, and say where it was found; ``session`` is its explicit PSDB.

        Raises UnsupportedPipelineError for what the adapter cannot do, DriverCrashError, DriverError with the driver's own code.
        """
        source = ObjectSource.DEFAULT_PSDB if session is None else ObjectSource.EXPLICIT_PSDB
        psdb = self.default_psdb.session() if session is None else session
        sources = {self._create(part, psdb, source) for part in parts} - {ObjectSource.UNKNOWN}
        return max(sources, key=_ORDER.index, default=ObjectSource.UNKNOWN)

    def find(self, parts: Iterable[Part], session: ShaderCacheSession | None) -> tuple[StoredObject, ...]:
        """What is stored for each part, in its explicit PSDB, the default PSDB or the local cache. Raises NotFoundError."""
        places: tuple[Callable[[], ShaderCacheSession | None], ...]
        places = (lambda: session, self.default_psdb.session, self._local_cache.session)
        found = []
        for part in parts:
            for place in places:
                opened = place()
                if opened is not None and (stored := self._look_up(part, opened)[0]) is not None:
                    found.append(stored)
                    break
            else:
                raise NotFoundError(f"no cache has the object code of object {part.key.hex()}")
        return tuple(found)

    def compile(self, part: Part) -> StoredObject:
        """Object code of a part, wherever it may be stored. Raises as ``create``."""
        if part.key in self._fatal:
            raise DriverCrashError(f"{self._fatal[part.key]}; not tried again by this device")
        description = part.description
        result = self._driver.ask(description, part.key, Compile(0, description.create_info))
        if isinstance(result, Death):
            text = result.text(self.compiler.driver_build)
            self._fatal[part.key] = text
            raise DriverCrashError(f"{text}: {result.output}" if result.output else text)
        if isinstance(result, Failed):
            raise DriverError(f"the driver refuses it: {result.message}", code=result.code)
        if not isinstance(result, Compiled):
            raise DriverError(f"unexpected answer {type(result).__name__}", code="E_FAIL")
        return StoredObject.of(self.compiler, part.key, result.values, description.kind, description.name)

    def load(self, part: Part, stored: StoredObject, whence: str) -> bool:
        """Create the part from what is stored, with compiling forbidden; False, with a debug message, where that does not do."""
        digest = hashlib.sha256(repr((bytes(part.key), stored.group.value_keys)).encode()).digest()
        if digest in self._fatal_stored:
            return False
        result = self._recreate(part, stored)
        if (isinstance(result, Recreated) and result.hit) or (isinstance(result, Compiled) and not result.values):
            return True
        if isinstance(result, Death):
            self._fatal_stored.add(digest)
            why = result.text(self.compiler.driver_build) + " while it was loaded"
        else:
            why = f"{result.code}: {result.message}" if isinstance(result, Failed) else "the driver would have to compile it"
        text = f"{whence}: object code of object {part.key.hex()} is not used: {why}"
        self.debug.write(Severity.WARNING, "object-code-refused", text)
        return False

    def _create(self, part: Part, psdb: ShaderCacheSession | None, source: ObjectSource) -> ObjectSource:
        """``psdb`` is where to look first, and ``source`` what that is called."""
        if not self.stores_object_code:
            self._check(part)
            self.compile(part)
            return ObjectSource.UNKNOWN
        if psdb is not None and self._try(part, psdb) is _Answer.HIT:
            return source
        local = self._local_cache.session()
        answer = _Answer.MISS if local is None else self._try(part, local)
        if answer is _Answer.HIT:
            return ObjectSource.LOCAL_CACHE
        self._check(part)
        compiled = self.compile(part)
        if local is not None:
            self._keep(compiled, local, replace=answer is _Answer.REFUSED)
        return ObjectSource.COMPILED

    def _check(self, part: Part) -> None:
        with self._check_lock:
            unmet = [need for need in self._check_compiler(part.description) if not need.is_doubt]
        if unmet:
            raise UnsupportedPipelineError(unmet, part.key)

    def _look_up(self, part: Part, session: ShaderCacheSession) -> tuple[StoredObject | None, _Answer]:
        try:
            stored = find_object(session, part.key, self.compiler)
        except NotCurrentlyAvailableError:
            return None, _Answer.MISS
        except ShaderkilnError as error:
            self.debug.write(Severity.WARNING, "object-code-refused", f"object {part.key.hex()}: {error}")
            return None, _Answer.REFUSED
        return stored, _Answer.MISS if stored is None else _Answer.HIT

    def _try(self, part: Part, session: ShaderCacheSession) -> _Answer:
        """Create the part from a session, with compiling forbidden."""
        stored, answer = self._look_up(part, session)
        name = type(session).__name__
        if stored is None:
            self.debug.write(Severity.INFO, "object-miss", f"{name}: no object {part.key.hex()}")
            return answer
        return _Answer.HIT if self.load(part, stored, name) else _Answer.REFUSED

    def _recreate(self, part: Part, stored: StoredObject) -> Result:
        description = part.for_loading(self.compiler.object_code_form)
        pipeline = description.create_info
        if not stored.values:
            # Without shaders of its own it has no object code: that none comes of it again is all that can be found out.
            if has_shaders(pipeline):
                return Recreated(0, False, "VK_PIPELINE_COMPILE_REQUIRED", 0.0)
            return self._driver.ask(description, part.key, Compile(0, pipeline))
        return self._driver.ask(description, part.key, Recreate(0, pipeline, stored.values))

    def _keep(self, stored: StoredObject, local: ShaderCacheSession, *, replace: bool) -> None:
        try:
            store_object(local, stored, self.compiler, replace=replace)
        except CacheFullError as error:
            if not self._told_full:
                self._told_full = True
                self.debug.write(Severity.WARNING, "local-cache-full", str(error))
        except (ShaderkilnError, OSError) as error:
            self.debug.write(Severity.WARNING, "local-cache-not-written", str(error))
