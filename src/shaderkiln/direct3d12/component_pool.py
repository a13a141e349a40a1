"""Pools of serialized components: of equal pieces, one is kept for a whole collection of pipelines (XS-05)."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

import xxhash

from shaderkiln.errors import AccessDeniedError, DamagedInputError, InvalidArgumentError, NotFoundError, UnreadableError
from shaderkiln.formats.component_pool import PiecePair, PooledPipeline, PoolLayout, check_name, encode, parse
from shaderkiln.formats.pipeline_components import Buffer, SerializedPipelineState, SerializedShader
from shaderkiln.system.files import open_to_read, sync


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """What a pool was given and what it keeps; the pieces alone, without tables."""

    pipelines: int = 0
    pieces_given: int = 0
    bytes_given: int = 0
    pieces_kept: int = 0
    bytes_kept: int = 0

    @property
    def bytes_saved(self) -> int:
        """Bytes that are not kept a second time."""
        return self.bytes_given - self.bytes_kept


class ComponentPool:
    """Collects the pieces of pipelines. Not for use by several threads at once.

    Pieces are found by a hash and then compared byte by byte: only equal ones are one.
    """

    def __init__(self, digest: Callable[[Buffer], bytes] = xxhash.xxh3_128_digest) -> None:
        self._digest = digest
        self._pieces: list[bytes] = []
        self._by_digest: dict[bytes, list[int]] = {}
        self._pipelines: dict[str, PooledPipeline] = {}
        self._given = self._bytes_given = self._bytes_kept = 0

    def add(self, name: str, serialized: SerializedPipelineState) -> None:
        """Keep a pipeline under a name. Raises InvalidArgumentError for a name that is empty, no text or in use."""
        if check_name(name) in self._pipelines:
            raise InvalidArgumentError(f"name: {name!r} is in use")
        self._pipelines[name] = PooledPipeline(
            name,
            self._number(serialized.pipeline),
            tuple(None if one is None else self._pair(one) for one in serialized.shaders),
            tuple(map(self._pair, serialized.shared)),
        )

    def get(self, name: str) -> SerializedPipelineState:
        """The pieces of a pipeline; equal pieces are one object. Raises NotFoundError."""
        return _serialized(self._pipelines, name, lambda number: self._pieces[number])

    def names(self) -> tuple[str, ...]:
        """The names, in the order in which they were added."""
        return tuple(self._pipelines)

    def statistics(self) -> PoolStatistics:
        """What was given so far, and what is kept of it."""
        return PoolStatistics(len(self._pipelines), self._given, self._bytes_given, len(self._pieces), self._bytes_kept)

    def write(self, path: Path | str) -> int:
        """Write the pool into a file, whole or not at all; its size in bytes. What was there is replaced.

        Equal pools give equal files. Raises AccessDeniedError where the folder cannot be written to.
        """
        path = Path(path)
        new = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            try:
                with new.open("xb") as file:
                    for part in encode(self._pieces, tuple(self._pipelines.values())):
                        file.write(part)
                    file.flush()
                    os.fsync(file.fileno())
                    size = file.tell()
                new.replace(path)
            except BaseException:
                with suppress(OSError):
                    new.unlink()
                raise
            sync(path.parent)
        except OSError as error:
            raise AccessDeniedError(f"{path}: {error.strerror}") from error
        return size

    def _pair(self, shader: SerializedShader) -> PiecePair:
        return self._number(shader.gpu_instructions), None if shader.metadata is None else self._number(shader.metadata)

    def _number(self, piece: Buffer) -> int:
        data = bytes(piece)
        self._given += 1
        self._bytes_given += len(data)
        same = self._by_digest.setdefault(self._digest(data), [])
        for number in same:
            if self._pieces[number] == data:
                return number
        same.append(len(self._pieces))
        self._pieces.append(data)
        self._bytes_kept += len(data)
        return same[-1]


class MappedComponentPool:
    """A pool's file in memory, as ``ComponentPool.write`` wrote it: pieces are slices of the mapping, and nothing is copied.

    The mapping lives as long as anything that was taken from it. Whoever wants to change the file replaces it by rename.
    """

    def __init__(self, memory: Buffer) -> None:
        """A pool that lies in any buffer. Raises DamagedInputError for what is none or damaged."""
        self._memory = memoryview(memory).cast("B").toreadonly()
        self._layout: PoolLayout = parse(self._memory)

    @classmethod
    def open(cls, path: Path | str) -> MappedComponentPool:
        """Raises NotFoundError, UnreadableError, and DamagedInputError for what is no pool or a damaged one."""
        try:
            descriptor = open_to_read(path)
        except FileNotFoundError:
            raise NotFoundError(f"{path}: there is no such file") from None
        except (OSError, ValueError) as error:
            raise UnreadableError(f"{path}: {error}") from error
        try:
            if not S_ISREG(os.fstat(descriptor).st_mode):
                raise DamagedInputError(f"{path}: not a file")
            memory = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise DamagedInputError(f"{path}: {error}") from error
        finally:
            os.close(descriptor)
        try:
            return cls(memory)
        except DamagedInputError as error:
            raise DamagedInputError(f"{path}: {error}") from None

    def names(self) -> tuple[str, ...]:
        """The names, in the order of the file."""
        return tuple(self._layout.pipelines)

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.pipelines)

    def __len__(self) -> int:
        return len(self._layout.pipelines)

    def get(self, name: str) -> SerializedPipelineState:
        """The pieces of a pipeline, where they lie. Raises NotFoundError."""
        return _serialized(self._layout.pipelines, name, self._piece)

    def _piece(self, number: int) -> memoryview:
        at, size = self._layout.places[number]
        return self._memory[at : at + size]


def _serialized(pipelines: Mapping[str, PooledPipeline], name: str, piece: Callable[[int], Buffer]) -> SerializedPipelineState:
    found = pipelines.get(name)
    if found is None:
        raise NotFoundError(f"the pool has no pipeline {name!r}")

    def shader(pair: PiecePair) -> SerializedShader:
        return SerializedShader(piece(pair[0]), None if pair[1] is None else piece(pair[1]))

    return SerializedPipelineState(
        piece(found.pipeline),
        tuple(None if pair is None else shader(pair) for pair in found.shaders),
        tuple(map(shader, found.shared)),
    )
