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
from shaderkiln.compilers.value_keys import PIPELINE_BINARY, object_code_values
from shaderkiln.descriptions.pipeline import PipelineDescription, UnsupportedPipelineError, has_shaders
from shaderkiln.drivers.protocol import Compile, Compiled, Failed, Recreate, Recreated
from shaderkiln.errors import (
    CacheFullError,
    DriverError,
    NotCurrentlyAvailableError,
    ShaderkilnError,
)
from shaderkiln.keys import OBJECT_VERSION, Group, ObjectKey, Value
from shaderkiln.lowering.state_object import part_key
from shaderkiln.sessions.debug_layer import DebugLayer, Severity
from shaderkiln.sessions.interface import ShaderCacheSession
from shaderkiln.workers.lanes import WorkerLanes
from shaderkiln.workers.pool import Death, Result

from .local_cache import LocalCache
from .statistics import ObjectSource
from .stored_objects import StoredObject, find_object, store_object

_ORDER = tuple(ObjectSource)


class DriverCrashError(DriverError):
    """The driver's process ended, or had to be ended, with this object in hand (``DXGI_ERROR_DRIVER_INTERNAL_ERROR``)."""

    default_code = "DXGI_ERROR_DRIVER_INTERNAL_ERROR"


class Part:
    """One pipeline of an object, under the key that its group has.

    It is described when it is asked for: what is found needs no translated shaders where the driver does not.
    """

    __slots__ = ("_description", "_lower", "key")

    def __init__(self, key: ObjectKey, description: PipelineDescription | Callable[[bool], PipelineDescription]) -> None:
        """``description``, or what gives it with code or without (``VulkanLowering.parts``)."""
        self.key = key
        self._description: PipelineDescription | None = None
        self._lower: Callable[[bool], PipelineDescription]
        if isinstance(description, PipelineDescription):
            ready = self._description = description
            self._lower = lambda with_code: ready
        else:
            self._lower = description

    @property
    def description(self) -> PipelineDescription:
        """With the shaders. Raises as ``Lowering.parts`` says."""
        if self._description is None:
            self._description = self._lower(True)
        return self._description

    def for_loading(self, object_code_form: str) -> PipelineDescription:
        """What the driver needs beside object code: binaries take the place of shaders, a pipeline cache is found by them."""
        if self._description is not None or object_code_form != PIPELINE_BINARY:
            return self.description
        return self._lower(False)


def parts_of(object_key: ObjectKey, lowered: Sequence[Callable[[bool], PipelineDescription]]) -> tuple[Part, ...]:
    """The parts of an object with their keys (``part_key``)."""
    return tuple(Part(part_key(object_key, number), lower) for number, lower in enumerate(lowered))


def combined(sources: Iterable[ObjectSource]) -> ObjectSource:
    """The source of an object by those of its parts; UNKNOWN without any part."""
    found = [source for source in sources if source is not ObjectSource.UNKNOWN]
    return max(found, key=_ORDER.index) if found else ObjectSource.UNKNOWN


class _Answer(Enum):
    HIT = 1
    MISS = 2
    REFUSED = 3
    """Something is stored that does not serve."""


class ObjectCreator:
    """Creates the parts of objects on one driver. May be used by several threads."""

    def __init__(self, compiler: FamilyCompiler, driver: WorkerLanes, local_cache: LocalCache, debug: DebugLayer) -> None:
        self._compiler = compiler
        self._driver = driver
        self._local_cache = local_cache
        self._debug = debug
        self._check_lock = threading.Lock()
        # What ended the driver's process once is not given to it again: parts by key, and stored objects by their digest.
        self._fatal: dict[ObjectKey, str] = {}
        self._fatal_stored: set[bytes] = set()
        self._told_full = False

    @property
    def stores_object_code(self) -> bool:
        """Whether the driver can create pipelines from stored object code at all."""
        return self._compiler.identity.object_code_form != "none"

    def create(self, part: Part, psdb: ShaderCacheSession | None, source: ObjectSource) -> ObjectSource:
        """Create one part; ``psdb`` is where to look first, and ``source`` what that is called.

        Raises UnsupportedPipelineError for what the adapter cannot do, DriverCrashError, DriverError with the driver's own code.
        """
        if not self.stores_object_code:
            self._check(part)
            self._compile(part)
            return ObjectSource.UNKNOWN
        if psdb is not None and self._try(part, psdb) is _Answer.HIT:
            return source
        local = self._local_cache.session()
        answer = _Answer.MISS if local is None else self._try(part, local)
        if answer is _Answer.HIT:
            return ObjectSource.LOCAL_CACHE
        self._check(part)
        values = object_code_values(self._compiler.identity.object_code_form, part.key, self._compile(part).values)
        if local is not None:
            self._keep(part, values, local, replace=answer is _Answer.REFUSED)
        return ObjectSource.COMPILED

    def find(self, part: Part, sessions: Iterable[ShaderCacheSession | None]) -> StoredObject | None:
        """What is stored for a part in the first of the sessions, or in the local cache, that has it."""
        for session in (*sessions, self._local_cache.session()):
            if session is not None and (stored := self._look_up(part, session)[0]) is not None:
                return stored
        return None

    def compile_again(self, part: Part) -> StoredObject:
        """Object code of a part that exists, where it is kept nowhere. Raises as ``create``."""
        answered = self._compile(part).values
        values = object_code_values(self._compiler.identity.object_code_form, part.key, answered)
        keys = tuple(value.key for value in values)
        return StoredObject(Group(part.key, OBJECT_VERSION, keys, part.description.kind, part.description.name), answered)

    def _check(self, part: Part) -> None:
        with self._check_lock:
            unmet = [need for need in self._compiler.check(part.description) if not need.is_doubt]
        if unmet:
            raise UnsupportedPipelineError(unmet, part.key)

    def _look_up(self, part: Part, session: ShaderCacheSession) -> tuple[StoredObject | None, _Answer]:
        try:
            stored = find_object(session, part.key, self._compiler.identity)
        except NotCurrentlyAvailableError:
            return None, _Answer.MISS
        except ShaderkilnError as error:
            self._debug.write(Severity.WARNING, "object-code-refused", f"object {part.key.hex()}: {error}")
            return None, _Answer.REFUSED
        return stored, _Answer.MISS if stored is None else _Answer.HIT

    def _try(self, part: Part, session: ShaderCacheSession) -> _Answer:
        """Create the part from a session, with compiling forbidden."""
        stored, answer = self._look_up(part, session)
        name = type(session).__name__
        if stored is None:
            self._debug.write(Severity.INFO, "object-miss", f"{name}: no object {part.key.hex()}")
            return answer
        return _Answer.HIT if self.load(part, stored, name) else _Answer.REFUSED

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
            why = result.text(self._compiler.identity.driver_build) + " while it was loaded"
        else:
            why = f"{result.code}: {result.message}" if isinstance(result, Failed) else "the driver would have to compile it"
        text = f"{whence}: object code of object {part.key.hex()} is not used: {why}"
        self._debug.write(Severity.WARNING, "object-code-refused", text)
        return False

    def _recreate(self, part: Part, stored: StoredObject) -> Result:
        description = part.for_loading(self._compiler.identity.object_code_form)
        pipeline = description.create_info
        if not stored.values:
            # Without shaders of its own it has no object code: that none comes of it again is all that can be found out.
            if has_shaders(pipeline):
                return Recreated(0, False, "VK_PIPELINE_COMPILE_REQUIRED", 0.0)
            return self._driver.ask(description, part.key, Compile(0, pipeline))
        return self._driver.ask(description, part.key, Recreate(0, pipeline, stored.values))

    def _compile(self, part: Part) -> Compiled:
        if part.key in self._fatal:
            raise DriverCrashError(f"{self._fatal[part.key]}; not tried again by this device")
        pipeline = part.description.create_info
        result = self._driver.ask(part.description, part.key, Compile(0, pipeline))
        if isinstance(result, Death):
            text = result.text(self._compiler.identity.driver_build)
            self._fatal[part.key] = text
            raise DriverCrashError(f"{text}: {result.output}" if result.output else text)
        if isinstance(result, Failed):
            raise DriverError(f"the driver refuses it: {result.message}", code=result.code)
        if not isinstance(result, Compiled):
            raise DriverError(f"unexpected answer {type(result).__name__}", code="E_FAIL")
        return result

    def _keep(self, part: Part, values: tuple[Value, ...], local: ShaderCacheSession, *, replace: bool) -> None:
        keys = tuple(value.key for value in values)
        group = Group(part.key, OBJECT_VERSION, keys, part.description.kind, part.description.name)
        try:
            store_object(local, group, values, self._compiler.identity, replace=replace)
        except CacheFullError as error:
            if not self._told_full:
                self._told_full = True
                self._debug.write(Severity.WARNING, "local-cache-full", str(error))
        except (ShaderkilnError, OSError) as error:
            self._debug.write(Severity.WARNING, "local-cache-not-written", str(error))
