"""A state object database as a source of pipelines: the parts of every pipeline state and state object in it."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator
from pathlib import Path

from msgspec import Struct

from shaderkiln.databases.sodb import ObjectKind, StateObjectDatabase
from shaderkiln.descriptions.direct3d12.canonical import object_key
from shaderkiln.descriptions.direct3d12.state_object import DxilLibrary, StateObjectDesc
from shaderkiln.descriptions.direct3d12.validation import validate
from shaderkiln.descriptions.pipeline import Application, PipelineDescription, PipelineKind, UnsupportedPipelineError
from shaderkiln.errors import DamagedInputError, InvalidArgumentError, NotFoundError, ShaderkilnError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.keys import OBJECT_VERSION, ObjectKey
from shaderkiln.lowering.pipelines import direct3d12_application
from shaderkiln.lowering.shaders import ShaderTranslations
from shaderkiln.lowering.state_object import (
    Part,
    pipeline_state_parts,
    state_object_parts,
    with_collections,
)
from shaderkiln.shaders.package import NAME, default_folder
from shaderkiln.sources.source import Source

MAXIMUM_PARENTS = 64
"""Additions that grow one state object."""


class Entry(Struct, frozen=True):
    """One pipeline of the database."""

    key: bytes
    """The object's key in the database."""
    object_kind: ObjectKind
    part: int
    """Index among the parts of the object."""
    name: str
    """The part's own name: that of a generic program, else empty."""
    kind: PipelineKind
    cost: int
    version: int
    damage: str = ""
    """Why it cannot be loaded."""


class _Object(Struct, frozen=True):
    """A pipeline state or state object as it is in the database."""

    key: bytes
    parts: tuple[Part, ...]
    cost: int


class StateObjectSource(Source):
    """A state object database, open as a source of pipelines; a context manager. Not for use by several threads at once.

    The name of a pipeline is the beginning of a digest of the object's key in the database and the number of its part. A damaged
    object, or one that Direct3D 12 would refuse, has one pipeline that cannot be loaded.
    """

    def __init__(
        self,
        database: StateObjectDatabase,
        *,
        pipeline_states: bool = True,
        state_objects: bool = True,
        keys: Container[bytes] | None = None,
        translations: ShaderTranslations | None = None,
    ) -> None:
        """``keys``: only the objects with these keys in the database; None: all."""
        self.database = database
        self._wanted = tuple(
            kind
            for kind, is_wanted in ((ObjectKind.PIPELINE_STATE, pipeline_states), (ObjectKind.STATE_OBJECT, state_objects))
            if is_wanted
        )
        self._keys = keys
        self._translations = translations or ShaderTranslations()
        self._entries: dict[int, Entry] | None = None
        self._latest: _Object | None = None
        """The object that was read last: a job asks for its object key and then for its pipeline."""
        self._application: Application | None = None

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        pipeline_states: bool = True,
        state_objects: bool = True,
        keys: Container[bytes] | None = None,
    ) -> StateObjectSource:
        """Raises as ``StateObjectDatabase.open``."""
        database = StateObjectDatabase.open(path)
        return cls(database, pipeline_states=pipeline_states, state_objects=state_objects, keys=keys)

    @property
    def path(self) -> Path:
        return self.database.path

    def close(self) -> None:
        """Closes the database and ends the translator's process."""
        self._translations.close()
        self.database.close()

    @property
    def application(self) -> Application:
        """Whose pipelines these are; without a stored desc nobody's."""
        if self._application is None:
            try:
                identity = self.database.get_application_desc()
            except NotFoundError:
                identity = ApplicationIdentity()
            self._application = direct3d12_application(identity)
        return self._application

    # Pipelines

    def entries(self) -> dict[int, Entry]:
        """Every pipeline by its name as a number, in the order of the database."""
        if self._entries is None:
            found: dict[int, Entry] = {}
            for kind in self._wanted:
                for key in self.database.keys(kind):
                    if self._keys is None or key in self._keys:
                        for entry in self._entries_of(key, kind):
                            name = _name(entry.key, entry.part)
                            while name in found:
                                name = (name + 1) % (1 << 64)
                            found[name] = entry
            self._entries = found
        return self._entries

    def damaged(self) -> list[str]:
        """What cannot be loaded, and why."""
        return [entry.damage for entry in self.entries().values() if entry.damage]

    def pipelines(self) -> Iterator[tuple[PipelineKind, int]]:
        """Kind and name of every pipeline, in the order of the database."""
        for name, entry in self.entries().items():
            yield entry.kind, name

    def load(self, kind: PipelineKind, hash: int) -> PipelineDescription:
        """A pipeline with every object that it reaches, its shaders translated.

        Raises NotFoundError if there is no such pipeline, UnsupportedPipelineError with its object key if it has no form in Vulkan
        here, DamagedInputError and InvalidArgumentError that name what is damaged or wrong in it.
        """
        part = self._part(kind, hash)
        try:
            return part.lower(self._translations, f"{hash:016x}")
        except UnsupportedPipelineError as error:
            raise UnsupportedPipelineError(error.reasons, part.object_key) from None

    def cost(self, kind: PipelineKind, hash: int) -> int:
        """Bytes of the object's shaders: an estimate of the time to compile it."""
        entry = self.entries().get(hash)
        return 0 if entry is None else entry.cost

    def object_key(self, kind: PipelineKind, hash: int) -> ObjectKey:
        """The key of the object that the pipeline is a part of, or of its part. Raises as ``Source.object_key``."""
        return self._part(kind, hash).object_key

    def version(self, kind: PipelineKind, hash: int) -> int:
        """The version that the database gives the object of a pipeline. Raises NotFoundError if there is no such pipeline."""
        return self._entry(kind, hash).version

    def label(self, name: str) -> str:
        """What to call a pipeline before people: the object's key, and the name of its part where it has one."""
        entry = self.entries().get(int(name, 16))
        return name if entry is None else ": ".join(filter(None, (shown_key(entry.key), entry.name)))

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Other files whose change may change the pipelines: what translates shaders."""
        folder = default_folder()
        package = folder / NAME
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent  # a translator that is added later changes it
        return (str(folder), *(str(path) for path in (package, *package.rglob("*")) if not path.is_symlink() and path.exists()))

    # Objects

    def _entry(self, kind: PipelineKind, hash: int) -> Entry:
        entry = self.entries().get(hash)
        if entry is None or entry.kind != kind:
            raise NotFoundError(f"{self.database.path}: no {kind} pipeline {hash:016x}")
        return entry

    def _part(self, kind: PipelineKind, hash: int) -> Part:
        entry = self._entry(kind, hash)
        parts = self._object(entry.key, entry.object_kind).parts
        if entry.part >= len(parts):
            raise DamagedInputError(f"{self.database.path}: pipeline {hash:016x} is not there any more")
        return parts[entry.part]

    def _entries_of(self, key: bytes, kind: ObjectKind) -> Iterator[Entry]:
        try:
            version = self.database.find_object_version(key)
            found = self._object(key, kind)
        except ShaderkilnError as error:
            yield Entry(key, kind, 0, "", "graphics", 0, OBJECT_VERSION, str(error))
            return
        for index, part in enumerate(found.parts):
            yield Entry(key, kind, index, part.name, part.kind, found.cost, version)

    def _object(self, key: bytes, kind: ObjectKind) -> _Object:
        if self._latest is not None and self._latest.key == key:
            return self._latest
        try:
            if kind is ObjectKind.PIPELINE_STATE:
                stream = self.database.find_pipeline_state_desc(key).desc
                validate(stream)
                parts = pipeline_state_parts(stream, object_key(stream))
                cost = sum(map(len, stream.shaders().values()))
            else:
                family = self._family(key)
                for desc in family:
                    validate(desc)
                key_of: ObjectKey | None = None
                for desc in reversed(family):
                    key_of = object_key(desc, parent=key_of)
                assert key_of is not None
                parts = state_object_parts(family[0], key_of, family[1:])
                cost = sum(len(library.bytecode) for desc in family for library in desc.of(DxilLibrary))
        except (DamagedInputError, InvalidArgumentError, NotFoundError) as error:
            raise type(error)(f"{kind.value} {shown_key(key)}: {error}") from None
        self._latest = _Object(key, parts, cost)
        return self._latest

    def _family(self, key: bytes) -> tuple[StateObjectDesc, ...]:
        """A state object and what it grows, the nearest first, with their collections in them."""
        found: list[StateObjectDesc] = []
        at: bytes | None = key
        while at is not None:
            if len(found) == MAXIMUM_PARENTS:
                raise DamagedInputError(f"it is an addition to more than {MAXIMUM_PARENTS} state objects")
            stored = self.database.find_state_object_desc(at)
            found.append(with_collections(stored.desc, lambda key: self.database.find_state_object_desc(key).desc))
            at = stored.parent_key
        return tuple(found)


def shown_key(key: bytes) -> str:
    """A key for people and command lines: as text where it is printable ASCII, else in hexadecimal digits."""
    text = key.decode("ascii", "replace")
    return text if text.isascii() and text.isprintable() and not text.isspace() else key.hex()


def _name(key: bytes, part: int) -> int:
    digest = hashlib.sha256(part.to_bytes(4, "little") + key).digest()
    return int.from_bytes(digest[:8], "big")
