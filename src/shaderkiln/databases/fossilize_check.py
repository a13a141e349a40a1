"""Whether the entries of a Fossilize archive are what their names say: their hashes, computed again from their bodies."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from shaderkiln.databases.fossilize_read import FossilizeArchive
from shaderkiln.databases.fossilize_scan import MAX_DAMAGE
from shaderkiln.errors import DamagedInputError, InvalidArgumentError, NotFoundError
from shaderkiln.formats.fossilize import VERSION, Tag
from shaderkiln.formats.fossilize_hash import compute_hash
from shaderkiln.formats.fossilize_json import ApplicationInfo, parse_body
from shaderkiln.vulkan_registry.handles import Handle, UnknownStructure


class HashCheck:
    """Compares entries of an archive with their names. What Fossilize does not hash, or what is not known here, is not checked."""

    def __init__(self, archive: FossilizeArchive) -> None:
        """``archive`` is where the render passes of pipelines are looked up; it stays open as long as entries are compared."""
        self._archive = archive
        self._passes: dict[int, Struct | None] = {}
        self.right = 0
        self.wrong: list[str] = []
        """The wrong entries, up to 10,000."""
        self.not_checked: dict[Tag, int] = {}
        self.reasons: dict[Tag, str] = {}
        """Why the first of a kind was not checked."""

    def run(self) -> HashCheck:
        """Compares every entry that can be read; what cannot is damage, which ``verify_all`` tells of."""
        for tag in Tag:
            for hash in self._archive.hashes(tag):
                try:
                    payload = self._archive.read(tag, hash)
                except DamagedInputError:
                    continue
                self.fault(tag, hash, payload)
        return self

    def fault(self, tag: Tag, hash: int, payload: bytes) -> str:
        """What is wrong with an entry; empty where nothing is, or where its hash cannot be computed, which is counted."""
        try:
            if self._archive.version != VERSION:
                raise InvalidArgumentError(f"the archive is of version {self._archive.version}")
            text = self._difference(tag, hash, payload)
        except (InvalidArgumentError, NotFoundError) as error:
            self.not_checked[tag] = self.not_checked.get(tag, 0) + 1
            self.reasons.setdefault(tag, str(error))
            return ""
        if not text:
            self.right += 1
        elif len(self.wrong) < MAX_DAMAGE:
            self.wrong.append(f"{tag.name.lower()} {hash:016x}: {text}")
        return text

    def _difference(self, tag: Tag, hash: int, payload: bytes) -> str:
        try:
            name, structure = parse_body(tag, payload)
        except DamagedInputError as error:
            return f"its content cannot be read: {error}"
        if name and name != hash:
            return f"its content is named {name:016x}"
        computed = compute_hash(structure, self._render_pass)
        if computed == hash:
            return ""
        if _has_unknown(structure):
            raise InvalidArgumentError("it has members that are not known here")
        return f"its content has the hash {computed:016x}"

    def _render_pass(self, handle: Handle) -> Struct:
        """A render pass that a pipeline names. One that is wrong itself says nothing about the pipeline."""
        if handle.value not in self._passes:
            if len(self._passes) >= 64:
                self._passes.clear()
            try:
                _name, structure = parse_body(Tag.RENDER_PASS, self._archive.read(Tag.RENDER_PASS, handle.value))
                is_right = compute_hash(structure, self._render_pass) == handle.value
            except DamagedInputError:
                is_right = False
            self._passes[handle.value] = structure if is_right else None
        found = self._passes[handle.value]
        if found is None:
            raise InvalidArgumentError("its render pass is damaged")
        return found


def _has_unknown(value: Any) -> bool:
    """Whether a structure has anything in it that Fossilize may hash and that is kept here as text."""
    if isinstance(value, UnknownStructure) or (isinstance(value, ApplicationInfo) and value.unknown_members):
        return True
    if isinstance(value, Struct):
        return any(_has_unknown(getattr(value, field)) for field in value.__struct_fields__)
    return isinstance(value, tuple) and any(map(_has_unknown, value))
