"""The key of a pipeline: a digest of everything that it says and refers to, whatever it came from.

Every object has a digest, SHA-256 over a prefix and the msgpack encoding of its structure, in which each handle is replaced by
the digest of what it refers to and each pNext chain is sorted by structure type. A pipeline's digest is its object key. So the
key does not depend on the source's names of objects, on the order of chains or on how a file is formatted, and it changes with
every field of every object that can be reached. Entry point names, specialization data, all create flags (also those that only
ask for statistics), base pipelines and structures that are not known here are part of it; what the device was created with is
not: that belongs to the identity of the compiler.

A shader module's digest is taken over its words coded as LEB128, which is what Fossilize archives hold, so that a module need
not be decoded to be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.descriptions.traversal import fields_leading_to
from shaderkiln.errors import DamagedInputError, InvalidArgumentError
from shaderkiln.formats.fossilize import decode_varint_words, encode_varint_words, spirv_to_varint
from shaderkiln.keys import ObjectKey
from shaderkiln.vulkan_registry.handles import Handle, UnknownStructure
from shaderkiln.vulkan_registry.structures import ShaderModuleCreateInfo

OBJECT_PREFIX: Final = b"shaderkiln object 1\0"
MODULE_PREFIX: Final = b"shaderkiln module 1\0"


class Digester:
    """Digests of the objects of one source. Not for use by several threads at once.

    ``resolve`` gives the object that a handle refers to; ``known`` holds digests already taken and gets the new ones.
    """

    def __init__(self, resolve: Callable[[Handle], Struct], known: dict[Handle, bytes] | None = None) -> None:
        self.known: dict[Handle, bytes] = {} if known is None else known
        self._resolve = resolve
        self._open: set[Handle] = set()
        self._encode = msgspec.msgpack.Encoder(enc_hook=self._of_handle).encode

    def digest(self, structure: Struct) -> bytes:
        """SHA-256 of a structure and all that it refers to.

        Raises DamagedInputError for a reference that leads back to itself, and what ``resolve`` raises.
        """
        if isinstance(structure, ShaderModuleCreateInfo) and not structure.next:
            return module_digest(structure.flags, len(structure.code), spirv_to_varint(structure.code))
        return hashlib.sha256(OBJECT_PREFIX + self._encode(sorted_chains(structure))).digest()

    def of(self, handle: Handle) -> bytes:
        """The digest of what a handle refers to."""
        found = self.known.get(handle)
        if found is None:
            if handle in self._open:
                raise DamagedInputError(f"{handle!r} refers to itself")
            self._open.add(handle)
            try:
                found = self.known[handle] = self.digest(self._resolve(handle))
            finally:
                self._open.discard(handle)
        return found

    def _of_handle(self, value: Any) -> bytes:
        if isinstance(value, Handle):
            return self.of(value)
        raise InvalidArgumentError(f"a description cannot hold {type(value).__name__}")


def object_key(description: PipelineDescription) -> ObjectKey:
    """The key of a pipeline, from its description alone. Sources have faster ways for the objects that they know."""
    return ObjectKey(Digester(resolver(description.objects)).digest(description.create_info))


def resolver(objects: Mapping[Handle, Struct]) -> Callable[[Handle], Struct]:
    """Look up in a mapping; DamagedInputError names a handle that is not in it."""

    def resolve(handle: Handle) -> Struct:
        try:
            return objects[handle]
        except KeyError:
            raise DamagedInputError(f"{handle!r} is missing") from None

    return resolve


def module_digest(flags: int, code_size: int, coded: bytes) -> bytes:
    """The digest of a shader module from its words in LEB128, each in its shortest form."""
    return hashlib.sha256(b"%b%d %d\0" % (MODULE_PREFIX, flags, code_size) + coded).digest()


_CLASSES: Final = bytes(ord("z" if byte == 0 else "a" if byte < 16 else "b" if byte < 128 else "c") for byte in range(256))


def canonical_varint(coded: bytes, code_size: int) -> bytes:
    """The same words in their shortest form. Raises DamagedInputError if they are not ``code_size`` bytes of 32-bit words."""
    classes = coded.translate(_CLASSES)
    if b"cz" in classes or (b"cccc" in classes and (b"ccccb" in classes or b"ccccc" in classes)) or classes.endswith(b"c"):
        coded = encode_varint_words(decode_varint_words(coded, max_words=code_size // 4))
        classes = coded.translate(_CLASSES)
    if (len(coded) - classes.count(b"c")) * 4 != code_size:
        raise DamagedInputError(f"coded words are not {code_size} bytes of code")
    return coded


# Chains


def sorted_chains(structure: Any) -> Any:
    """The same structure with every pNext chain in it sorted by structure type, and unknown structures' text normalised."""
    cls = type(structure)
    plan = _PLANS.get(cls)
    if plan is None:
        plan = _PLANS[cls] = () if cls is UnknownStructure else fields_leading_to(cls, lambda field, _: field == "next")
    for field in plan:
        value = getattr(structure, field)
        if value:
            changed = _sorted_value(value, field == "next")
            if changed is not value:
                structure = msgspec.structs.replace(structure, **{field: changed})
    return structure


def _sorted_value(value: Any, chain: bool) -> Any:
    if type(value) is not tuple:
        return sorted_chains(value)
    changed = tuple(map(_normalised, value)) if chain else tuple(map(sorted_chains, value))
    if chain and len(changed) > 1:
        changed = tuple(sorted(changed, key=_order))
    return value if all(map(_same, changed, value)) else changed


def _same(one: Any, other: Any) -> bool:
    return one is other


def _normalised(link: Any) -> Any:
    if type(link) is not UnknownStructure:
        return sorted_chains(link)
    try:
        text = msgspec.json.encode(msgspec.json.decode(link.text), order="sorted").decode()
    except (msgspec.DecodeError, RecursionError):
        return link
    return link if text == link.text else UnknownStructure(link.s_type, text)


def _order(link: Any) -> tuple[int, str]:
    if type(link) is UnknownStructure:
        return link.s_type, link.text
    return type(link).__struct_config__.tag, ""


_PLANS: dict[type, tuple[str, ...]] = {}
"""The fields of a class that can hold a chain, at any depth."""
