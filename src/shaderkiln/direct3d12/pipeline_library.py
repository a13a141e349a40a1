"""Pipeline libraries: pipeline states by name, with their object code, as one block of bytes (ID3D12PipelineLibrary1).

The block that a library is opened from is used where it lies, and referred to as long as the library lives. What is stored
afterwards is held beside it, each piece of object code once, whichever of the two has it (PL-10).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import ref

from shaderkiln.descriptions.direct3d12.canonical import object_key
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.validation import validate
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.formats.pipeline_library import (
    KEY_BYTES,
    MAXIMUM_NAME_BYTES,
    Block,
    BlockWriter,
    Buffer,
    LibraryPipeline,
    PiecePool,
)
from shaderkiln.identity import ApplicationIdentity

from .blobs import is_empty, library_pipeline, open_block, stored_object
from .creation import ObjectCreation
from .objects import Given, PipelineState
from .private_data import PrivateData
from .statistics import ObjectSource
from .stored_objects import StoredObject


class PipelineLibrary(PrivateData):
    """Made by ``Direct3D12Device.create_pipeline_library``. May be used by several threads, also to load one pipeline."""

    def __init__(self, creation: ObjectCreation, blob: Buffer = b"") -> None:
        """Raises as ``blobs.open_block``; an empty blob gives an empty library."""
        self._creation = creation
        self._block: Block | None = None if is_empty(blob) else open_block(blob, creation.compiler)
        self._lock = threading.Lock()
        self._pool = PiecePool(self._block)
        self._stored: dict[str, LibraryPipeline] = {}
        self._loaded: dict[str, PipelineState] = {}
        self._loading: dict[str, tuple[threading.Lock, int]] = {}
        self._size: int | None = None

    def store_pipeline(self, name: str, pipeline: PipelineState) -> None:
        """Keep a pipeline state under a name. What no cache has the object code of any more is compiled again.

        Raises InvalidArgumentError for a name that is in use, empty, no text or too long, and for a pipeline of another device;
        and as creation does.
        """
        encoded = _encoded(name)
        if not isinstance(pipeline, PipelineState) or pipeline.creation is not self._creation:
            raise InvalidArgumentError("pipeline: a pipeline state of this library's device is needed")
        with self._lock:
            self._refuse_used(name, encoded)
        stored = pipeline.object_code()
        with self._lock:
            self._refuse_used(name, encoded)
            self._stored[name] = library_pipeline(
                pipeline.desc, pipeline.object_key, stored, self._creation.compiler, self._pool
            )
            self._size = None

    def load_pipeline(self, name: str, stream: PipelineStateStream) -> PipelineState:
        """The pipeline state of that name, created from its object code without compiling: the same object each time.

        Raises InvalidArgumentError where there is none, or where it was stored for another desc; DamagedInputError where its part
        of the blob is damaged; and as ``create_pipeline_state``, which creates it where the driver refuses what the library has.
        """
        self._creation.check_open()
        validate(stream)
        key = object_key(stream)
        pipeline = self._find(name)
        if pipeline.kind != stream.kind:
            raise InvalidArgumentError(f"stream: pipeline {name!r} is a {pipeline.kind} pipeline, this one is {stream.kind}")
        if pipeline.key != key[:KEY_BYTES]:
            raise InvalidArgumentError(f"stream: pipeline {name!r} was stored for another desc")
        with self._one_at_a_time(name):
            loaded = self._loaded.get(name)
            if loaded is None:
                stored = stored_object(pipeline, key, self._creation.compiler, name)
                given = Given(stored, ObjectSource.LIBRARY, _Origin(self, name, stored))
                loaded = self._loaded[name] = PipelineState(self._creation, stream, key, given)
        return loaded

    def load_graphics_pipeline(self, name: str, stream: PipelineStateStream) -> PipelineState:
        """As ``load_pipeline``, for graphics pipelines only: InvalidArgumentError for others."""
        return self._load_kind("graphics", name, stream)

    def load_compute_pipeline(self, name: str, stream: PipelineStateStream) -> PipelineState:
        """As ``load_pipeline``, for compute pipelines only: InvalidArgumentError for others."""
        return self._load_kind("compute", name, stream)

    def get_serialized_size(self) -> int:
        """The length of what ``serialize`` gives now, in bytes."""
        with self._lock:
            if self._size is None:
                opened = self._as_opened()
                self._size = self._writer().size if opened is None else len(opened)
            return self._size

    def serialize(self, buffer: bytearray | memoryview | None = None) -> bytes | None:
        """Everything as one block for ``create_pipeline_library``; equal content gives equal bytes.

        It is written to the beginning of ``buffer``, or returned where there is none. Raises InvalidArgumentError for a buffer that
        is too small or cannot be written to; it is left as it was.
        """
        with self._lock:
            opened = self._as_opened()
            chunks = self._writer().chunks() if opened is None else [opened]
        size = sum(map(len, chunks))
        if buffer is None:
            return b"".join(chunks)
        try:
            view = memoryview(buffer).cast("B")
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"buffer: {type(buffer).__name__} is no buffer of bytes") from error
        if view.readonly or len(view) < size:
            raise InvalidArgumentError(f"buffer: {size} bytes that can be written to are needed, it has {len(view)}")
        offset = 0
        for chunk in chunks:
            view[offset : offset + len(chunk)] = chunk
            offset += len(chunk)
        return None

    def __len__(self) -> int:
        with self._lock:
            return len(self._stored) + (len(self._block) if self._block is not None else 0)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        try:
            self._find(name)
        except InvalidArgumentError:
            return False
        return True

    def names(self) -> Iterator[str]:
        """The names of all pipelines, those that were stored last at the end. Raises DamagedInputError."""
        if self._block is not None:
            for place in range(len(self._block)):
                yield self._block.name(place).decode(errors="replace")
        with self._lock:
            stored = tuple(self._stored)
        yield from stored

    def _find(self, name: str) -> LibraryPipeline:
        encoded = _encoded(name)
        with self._lock:
            found = self._stored.get(name)
        if found is None and self._block is not None and (place := self._block.find(encoded)) is not None:
            found = self._block.pipeline(place)
        if found is None:
            raise InvalidArgumentError(f"name: the library has no pipeline {name!r}")
        return found

    def _load_kind(self, kind: str, name: str, stream: PipelineStateStream) -> PipelineState:
        if isinstance(stream, PipelineStateStream) and stream.kind != kind:
            raise InvalidArgumentError(f"stream: of a {stream.kind} pipeline, not of a {kind} pipeline")
        return self.load_pipeline(name, stream)

    def _refuse_used(self, name: str, encoded: bytes) -> None:
        if name in self._stored or (self._block is not None and self._block.find(encoded) is not None):
            raise InvalidArgumentError(f"name: {name!r} is in use")

    def _as_opened(self) -> memoryview | None:
        """The block as it was opened, if nothing was stored since."""
        return None if self._block is None or self._stored else self._block.data

    def _writer(self) -> BlockWriter:
        pipelines = list(self._block.pipelines()) if self._block is not None else []
        pipelines += ((name.encode(), pipeline) for name, pipeline in self._stored.items())
        return BlockWriter(pipelines, self._creation.compiler, self._creation.application or ApplicationIdentity())

    @contextmanager
    def _one_at_a_time(self, name: str) -> Iterator[None]:
        """Several threads may load one pipeline: one of them creates it, while others are loaded beside it."""
        with self._lock:
            lock, waiting = self._loading.get(name) or (threading.Lock(), 0)
            self._loading[name] = lock, waiting + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, waiting = self._loading.pop(name)
                if waiting > 1:
                    self._loading[name] = lock, waiting - 1


class _Origin:
    """Where a loaded pipeline's object code is as long as the library lives, of which it is no owner."""

    def __init__(self, library: PipelineLibrary, name: str, stored: StoredObject) -> None:
        self._library = ref(library)
        self._name = name
        self._group = stored.group

    def __call__(self) -> StoredObject | None:
        library = self._library()
        if library is None:
            return None
        pipeline = library._find(self._name)
        return StoredObject(self._group, pipeline.values())


def _encoded(name: str) -> bytes:
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"name: {name!r} is no text, or empty")
    try:
        encoded = name.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"name: {error}") from error
    if len(encoded) > MAXIMUM_NAME_BYTES:
        raise InvalidArgumentError(f"name: of {len(encoded)} bytes; at most {MAXIMUM_NAME_BYTES} are allowed")
    return encoded
