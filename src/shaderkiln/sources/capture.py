"""A Fossilize archive as a source of pipelines."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from shaderkiln.databases.fossilize_read import FossilizeArchive
from shaderkiln.descriptions.canonical import Digester, canonical_varint, module_digest, resolver
from shaderkiln.descriptions.pipeline import PIPELINE_KINDS, Application, PipelineCreateInfo, PipelineDescription, PipelineKind
from shaderkiln.descriptions.traversal import references
from shaderkiln.errors import DamagedInputError, InvalidArgumentError, NotFoundError, ShaderkilnError
from shaderkiln.formats.fossilize import Hasher, Tag, spirv_to_varint
from shaderkiln.formats.fossilize_json import (
    FEATURE_MEMBERS,
    GROUPS,
    ApplicationInfo,
    FeatureStructure,
    ModuleHead,
    parse_body,
    parse_module_head,
)
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.keys import OBJECT_VERSION, ObjectKey
from shaderkiln.sources.source import Source
from shaderkiln.vulkan_registry import structures
from shaderkiln.vulkan_registry.handles import Handle

KIND_TAGS: Final[dict[PipelineKind, Tag]] = {
    kind: next(tag for tag, groups in GROUPS.items() if groups[0][1] is structure) for kind, structure in PIPELINE_KINDS.items()
}
MAX_PIPELINE_DEPTH: Final = 64
"""Longest chain of pipelines that refer to base pipelines or libraries."""
CACHE_SIZE: Final = 8 << 20
"""Bytes of payloads whose objects are kept for the next pipelines."""
KNOWN_DIGESTS: Final = 1 << 13
"""Digests of objects that are kept."""
LISTED_APPLICATIONS: Final = 8
"""Applications that a message names."""

_HANDLE_TAGS: Final[dict[type[Handle], Tag]] = {
    structures.SamplerHandle: Tag.SAMPLER,
    structures.DescriptorSetLayoutHandle: Tag.DESCRIPTOR_SET_LAYOUT,
    structures.PipelineLayoutHandle: Tag.PIPELINE_LAYOUT,
    structures.ShaderModuleHandle: Tag.SHADER_MODULE,
    structures.RenderPassHandle: Tag.RENDER_PASS,
}
_ROBUSTNESS: Final = ("VkPhysicalDeviceRobustness2FeaturesEXT", "VkPhysicalDeviceImageRobustnessFeatures")
_MODULE_REFERENCE: Final = re.compile(rb'"module":"([0-9a-f]{16})"')


class CapturedObjects(Mapping[Handle, Struct]):
    """The objects of one pipeline, dependencies before their users. Shader modules are decoded when they are asked for."""

    __slots__ = ("_decoded", "_items")

    def __init__(self, items: dict[Handle, Struct]) -> None:
        self._items = items
        self._decoded: dict[Handle, Struct] = {}

    def __getitem__(self, handle: Handle) -> Struct:
        item = self._items[handle]
        if isinstance(item, ModuleHead):
            if (decoded := self._decoded.get(handle)) is None:
                decoded = self._decoded[handle] = item.structure()
            return decoded
        return item

    def __iter__(self) -> Iterator[Handle]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, handle: object) -> bool:
        return handle in self._items

    def modules(self) -> Iterator[tuple[Handle, ModuleHead]]:
        """The shader modules, not decoded."""
        for handle, item in self._items.items():
            if isinstance(item, ModuleHead):
                yield handle, item


class _Loaded(Struct, frozen=True):
    """An object of the archive with what it refers to."""

    structure: Struct
    references: tuple[Handle, ...]
    conversion: structures.SamplerYcbcrConversionCreateInfo | None
    size: int


class Capture(Source):
    """A Fossilize archive, open as a source of pipelines; a context manager. Not for use by several threads at once.

    Memory does not grow with the number of pipelines. A damaged entry is an error of the pipelines that need it, of no others.
    """

    def __init__(self, archive: FossilizeArchive, chosen: int | None = None) -> None:
        """``chosen``: index of the application whose pipelines these are alone; None: those of all. See ``select``."""
        self.archive = archive
        self._chosen = chosen
        self._application = next(islice(self._read_applications(), chosen or 0, None), (0, Application()))[1]
        self._cache: OrderedDict[tuple[Tag, int], _Loaded] = OrderedDict()
        self._cached_size = 0
        self._objects: Mapping[Handle, Struct] = {}
        """Those of the pipeline whose key is made."""
        self._digesters = {kind: Digester(lambda handle: resolver(self._objects)(handle)) for kind in KIND_TAGS}
        self._latest: PipelineDescription | None = None
        """The pipeline that was loaded last: a job asks for its object key and then for itself."""
        self._named_applications: tuple[tuple[int, Application], ...] | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Capture:
        """Open an archive. Raises as ``FossilizeArchive.open`` does."""
        return cls(FossilizeArchive.open(path))

    def close(self) -> None:
        self.archive.close()

    @property
    def path(self) -> Path:
        return self.archive.path

    @property
    def damage(self) -> tuple[str, ...]:
        return tuple(map(str, self.archive.damage))

    # Applications

    @property
    def application(self) -> Application:
        """The chosen application, else the one whose information stands first in the archive; an empty one if there is none
        that can be read."""
        return self._application

    def application_of(self, kind: PipelineKind, hash: int) -> Application:
        """The chosen application; without a choice the first that has a link to the pipeline, ``application`` if none has."""
        if self._chosen is None:
            return next((application for application in self._linked(kind, hash) if application), self.application)
        return self.application

    @property
    def applications(self) -> tuple[Application, ...]:
        """Every application whose information can be read, in the order of the archive."""
        return tuple(application for _, application in self._all_applications())

    def select(self, application: int | str) -> Capture:
        """The same archive with the pipelines of one application alone, and its features.

        ``application`` is its number, from 1, as ``kiln show`` lists them, or its name. The pipelines are those with a link to
        it; those without a link to any application are the first one's. Closing either capture closes the archive of both.
        Raises NotFoundError if there is no such application, InvalidArgumentError if several have the name.
        """
        applications = self.applications
        if isinstance(application, int):
            if not 1 <= application <= len(applications):
                raise NotFoundError(f"{self.path}: there is no application {application}; {self._listed()}")
            return Capture(self.archive, application - 1)
        found = [number for number, each in enumerate(applications) if each.identity.name == application]
        if not found:
            raise NotFoundError(f"{self.path}: no application is called {application!r}; {self._listed()}")
        if len(found) > 1:
            raise InvalidArgumentError(f"{self.path}: {len(found)} applications are called {application!r}; {self._listed()}")
        return Capture(self.archive, found[0])

    @property
    def mixes_features(self) -> bool:
        """Whether no application was chosen and they differ in the features that change object code."""
        return self._chosen is None and len({application.features for application in self.applications}) > 1

    def require_one_set_of_features(self) -> None:
        """Raises InvalidArgumentError if the pipelines cannot all be compiled for one device; see ``mixes_features``."""
        if self.mixes_features:
            raise InvalidArgumentError(
                f"{self.path}: its applications had different features that change the object code, so one of them has to be"
                f" chosen (--application, Capture.select); {self._listed()}"
            )

    def _listed(self) -> str:
        """The applications in words, for messages."""
        texts = [
            f"{number} {application.identity.name!r} ({feature_names(application)})"
            for number, application in enumerate(self.applications[:LISTED_APPLICATIONS], 1)
        ]
        more = len(self.applications) - len(texts)
        return f"applications: {', '.join(texts) or 'none'}" + (f" and {more} more" if more else "")

    def _all_applications(self) -> tuple[tuple[int, Application], ...]:
        if self._named_applications is None:
            self._named_applications = tuple(self._read_applications())
        return self._named_applications

    def _linked(self, kind: PipelineKind, hash: int) -> Iterator[Application | None]:
        """Every application, in order; None in the place of one that has no link to the pipeline."""
        applications = self._all_applications()
        for name, application in applications if len(applications) > 1 else ():
            is_linked = self.archive.contains(Tag.APPLICATION_BLOB_LINK, link_hash(name, KIND_TAGS[kind], hash))
            yield application if is_linked else None

    def _is_chosen(self, kind: PipelineKind, hash: int) -> bool:
        """Whether a pipeline is the chosen application's."""
        applications = self._all_applications()
        if self._chosen is None or len(applications) < 2:
            return True
        name = applications[self._chosen][0]
        if self.archive.contains(Tag.APPLICATION_BLOB_LINK, link_hash(name, KIND_TAGS[kind], hash)):
            return True
        return self._chosen == 0 and not any(self._linked(kind, hash))

    def _read_applications(self) -> Iterator[tuple[int, Application]]:
        """Every application whose information can be read, under the name of its entry."""
        for name in self.archive.hashes(Tag.APPLICATION_INFO):
            try:
                _, info = parse_body(Tag.APPLICATION_INFO, self.archive.read(Tag.APPLICATION_INFO, name))
            except ShaderkilnError:
                continue
            if isinstance(info, ApplicationInfo):
                yield name, application_of(info)

    # Pipelines

    def pipelines(self) -> Iterator[tuple[PipelineKind, int]]:
        """Kind and name of every pipeline, by kind and then in the order of the archive; see ``select``."""
        for kind, tag in KIND_TAGS.items():
            for hash in self.archive.hashes(tag):
                if self._chosen is None or self._is_chosen(kind, hash):
                    yield kind, hash

    def load(self, kind: PipelineKind, hash: int) -> PipelineDescription:
        """A pipeline with every object that it reaches.

        Raises NotFoundError if there is no such pipeline, and DamagedInputError that names the entry that is damaged or missing
        and the entries that lead to it.
        """
        if self._latest is not None and (self._latest.kind, self._latest.name) == (kind, f"{hash:016x}"):
            return self._latest
        tag = self._tag_of(kind, hash)
        loaded = self._load(tag, hash, keep=False)
        objects: dict[Handle, Struct] = {}
        try:
            self._gather(loaded, tag, objects, [(tag, hash)])
        except RecursionError:
            raise DamagedInputError(f"{_entry(tag, hash)}: references are nested too deeply") from None
        create_info = loaded.structure
        assert isinstance(create_info, PipelineCreateInfo)
        self._latest = PipelineDescription(f"{hash:016x}", kind, create_info, CapturedObjects(objects))
        return self._latest

    def cost(self, kind: PipelineKind, hash: int) -> int:
        """Bytes of the pipeline's own shader modules as they are coded in the archive: an estimate of the time to compile it.

        A module that is missing counts nothing; 0 for a pipeline that cannot be read.
        """
        try:
            body = self.archive.read(KIND_TAGS[kind], hash)
        except ShaderkilnError:
            return 0
        total = 0
        for module in _MODULE_REFERENCE.findall(body):
            try:
                total += self.archive.raw_size(Tag.SHADER_MODULE, int(module, 16))
            except ShaderkilnError:
                continue
        return total

    def version(self, kind: PipelineKind, hash: int) -> int:
        """A capture has no versions: the same of every pipeline. Raises NotFoundError if there is no such pipeline."""
        self._tag_of(kind, hash)
        return OBJECT_VERSION

    def object_key(self, kind: PipelineKind, hash: int) -> ObjectKey:
        """The key that ``canonical.object_key`` gives of the description, by what is known already. Raises as ``load``."""
        description = self.load(kind, hash)
        digester = self._digesters[kind]
        known = digester.known
        if len(known) > KNOWN_DIGESTS:
            known.clear()
        assert isinstance(description.objects, CapturedObjects)
        for handle, head in description.objects.modules():
            if handle not in known and not head.unknown_members:
                coded = spirv_to_varint(head.code) if head.coded is None else head.coded
                known[handle] = module_digest(head.flags, head.code_size, coded)
        self._objects = description.objects
        return ObjectKey(digester.digest(description.create_info))

    def _tag_of(self, kind: PipelineKind, hash: int) -> Tag:
        tag = KIND_TAGS[kind]
        if not self.archive.contains(tag, hash):
            raise NotFoundError(f"{self.archive.path}: no {kind} pipeline {hash:016x}")
        return tag

    def _gather(self, user: _Loaded, pipeline_tag: Tag, objects: dict[Handle, Struct], path: list[tuple[Tag, int]]) -> None:
        """Add what an object refers to, dependencies first. ``path`` leads to the object."""
        for handle in user.references:
            if handle in objects:
                continue
            tag = _HANDLE_TAGS.get(type(handle))
            if tag is None:
                if type(handle) is structures.SamplerYcbcrConversionHandle:
                    if user.conversion is not None:
                        objects[handle] = user.conversion
                    continue
                tag = pipeline_tag
            entry = (tag, handle.value)
            if entry in path:
                raise DamagedInputError(f"{_route(path)}: refers back to {_entry(*entry)}")
            if len(path) > MAX_PIPELINE_DEPTH:
                raise DamagedInputError(f"{_route(path)}: references are nested too deeply")
            try:
                loaded = self._load(tag, handle.value)
            except NotFoundError:
                raise DamagedInputError(f"{_route(path)}: refers to {_entry(*entry)}, which is missing") from None
            except DamagedInputError as error:
                raise DamagedInputError(f"{_route(path)}: refers to damaged {error}") from None
            path.append(entry)
            self._gather(loaded, pipeline_tag, objects, path)
            path.pop()
            objects[handle] = loaded.structure

    def _load(self, tag: Tag, hash: int, *, keep: bool = True) -> _Loaded:
        """An object from the cache or the archive."""
        entry = (tag, hash)
        loaded = self._cache.get(entry)
        if loaded is not None:
            self._cache.move_to_end(entry)
            return loaded
        payload = self.archive.read(tag, hash)
        try:
            loaded = _parse(tag, hash, payload)
        except DamagedInputError as error:
            raise DamagedInputError(f"{self.archive.path}: {_entry(tag, hash)}: {error}") from None
        if keep and loaded.size <= CACHE_SIZE:
            self._cache[entry] = loaded
            self._cached_size += loaded.size
            while self._cached_size > CACHE_SIZE:
                self._cached_size -= self._cache.popitem(last=False)[1].size
        return loaded


def _parse(tag: Tag, hash: int, payload: bytes) -> _Loaded:
    """An object and its references from a payload. Raises DamagedInputError."""
    conversion: structures.SamplerYcbcrConversionCreateInfo | None = None
    structure: Struct
    found: tuple[Handle, ...] = ()
    if tag is Tag.SHADER_MODULE:
        head = parse_module_head(payload)
        name = head.handle
        if head.coded is not None:
            head = msgspec.structs.replace(head, coded=canonical_varint(head.coded, head.code_size))
        structure, size = head, len(payload) + 512
    else:
        name, structure = parse_body(tag, payload)
        if isinstance(structure, structures.SamplerCreateInfo):
            structure, conversion = _with_conversion(structure, hash)
        _require_modules(structure)
        found, size = references(structure), 8 * len(payload) + 512
    if name != hash:
        raise DamagedInputError(f"the body is of {name:016x}")
    return _Loaded(structure, found, conversion, size)


def _with_conversion(
    sampler: structures.SamplerCreateInfo, hash: int
) -> tuple[structures.SamplerCreateInfo, structures.SamplerYcbcrConversionCreateInfo | None]:
    """A sampler that refers to its conversion, under the sampler's own name, where Fossilize has it inside."""
    chain: list[Struct] = []
    conversion = None
    for link in sampler.next:
        if isinstance(link, structures.SamplerYcbcrConversionCreateInfo) and conversion is None:
            conversion = link
            chain.append(structures.SamplerYcbcrConversionInfo(structures.SamplerYcbcrConversionHandle(hash)))
        else:
            chain.append(link)
    if conversion is None:
        return sampler, None
    return msgspec.structs.replace(sampler, next=tuple(chain)), conversion


def _require_modules(structure: Struct) -> None:
    """A stage without a shader module cannot be compiled."""
    stages: tuple[structures.PipelineShaderStageCreateInfo, ...] = ()
    if isinstance(structure, structures.ComputePipelineCreateInfo):
        stages = (structure.stage,)
    elif isinstance(structure, (structures.GraphicsPipelineCreateInfo, structures.RayTracingPipelineCreateInfoKHR)):
        stages = structure.stages or ()
    for number, stage in enumerate(stages):
        if stage.module is None:
            raise DamagedInputError(f"stage {number} has no shader module")


def _entry(tag: Tag, hash: int) -> str:
    return f"{tag.name.lower()} {hash:016x}"


def _route(path: list[tuple[Tag, int]]) -> str:
    shown = [_entry(tag, hash) for tag, hash in path]
    return " -> ".join(shown if len(shown) <= 8 else [*shown[:4], "...", *shown[-3:]])


def link_hash(application: int, tag: int, hash: int) -> int:
    """The name of the entry that links an application's information to an object."""
    hasher = Hasher()
    hasher.u64(application)
    hasher.u32(tag)
    hasher.u64(hash)
    return hasher.state


def feature_names(application: Application) -> str:
    """The features that change object code, for people."""
    return ", ".join(feature.rsplit(".", 1)[-1] for feature in application.features) or "none"


def application_of(info: ApplicationInfo) -> Application:
    """What recorded application information says. Bytes of names that are no UTF-8 become U+FFFD."""
    features = []
    if info.robust_buffer_access:
        features.append("VkPhysicalDeviceFeatures.robustBufferAccess")
    for structure in info.features:
        if isinstance(structure, FeatureStructure):
            name, members = FEATURE_MEMBERS[structure.s_type]
            if name in _ROBUSTNESS:
                enabled = zip(members, structure.values, strict=True)
                features.extend(f"{name}.{member}" for member, value in enabled if value)
    identity = ApplicationIdentity(
        name=_clean(info.application_name),
        version=info.application_version,
        engine_name=_clean(info.engine_name),
        engine_version=info.engine_version,
    )
    return Application(identity, info.api_version or 0, tuple(sorted(features)))


def _clean(name: str | None) -> str:
    return (name or "").encode("utf-8", "surrogateescape").decode("utf-8", "replace")
