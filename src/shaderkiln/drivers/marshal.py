"""Turns descriptions into the C structures that a driver reads, guided by the generated member tables alone.

A description becomes a list of initial values in the order of the C members, which cffi then writes in one call. Each class's
way to its list is worked out once, when the first object of the class arrives.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from msgspec import Struct

from shaderkiln.drivers.bindings import ffi
from shaderkiln.errors import InvalidArgumentError, ShaderkilnError
from shaderkiln.vulkan_registry._members import MEMBERS
from shaderkiln.vulkan_registry.handles import Handle, UnknownStructure

CData: TypeAlias = Any
Row: TypeAlias = list[Any]

_NULL: CData = ffi.NULL
_ALL_SAMPLES = 0xFFFFFFFF


class UnknownStructureError(ShaderkilnError):
    """A pNext chain holds a structure that is not known here, so no driver can be given the pipeline as it was described."""

    default_code = "VK_ERROR_EXTENSION_NOT_PRESENT"


class Call:
    """What one call into a driver needs: how handles become Vulkan objects, and the memory that must outlive the call."""

    __slots__ = ("keep", "resolve")

    def __init__(self, resolve: Callable[[Handle], int]) -> None:
        self.resolve = resolve
        self.keep: list[CData] = []


def structure(description: Struct, call: Call) -> CData:
    """A pointer to the C structure of ``description`` with everything that it points to, valid while ``call`` lives.

    Raises ``InvalidArgumentError`` where a value does not fit its C type or arrays that share a count differ in length, and
    ``UnknownStructureError`` for a chain that holds an ``UnknownStructure``.
    """
    plan = _plan(type(description))
    return _new(plan.pointer, plan.row(description, call), call, plan.c_name)


def _new(c_type: CData, initial: Any, call: Call, name: str) -> CData:
    try:
        memory = ffi.new(c_type, initial)
    except (OverflowError, TypeError, IndexError, ValueError) as error:
        raise InvalidArgumentError(f"{name}: a value does not fit its C type ({error})") from error
    call.keep.append(memory)
    return memory


_Fill: TypeAlias = Callable[[Any, Call], Any]


class _Plan:
    """How objects of one class become rows: the attributes in C order, and the positions where more than copying is needed."""

    __slots__ = ("array", "c_name", "fills", "get", "only", "pointer")

    def __init__(self, name: str) -> None:
        self.c_name, structure_type, fields = MEMBERS[name]
        c_type = ffi.typeof(self.c_name)
        self.pointer = ffi.typeof(f"{self.c_name} *")
        self.array = ffi.typeof(f"{self.c_name}[]")
        by_member = {c_name: (attribute, kind, c_type, count) for attribute, kind, c_name, c_type, count in fields}
        arrays: dict[str, list[str]] = defaultdict(list)
        for attribute, kind, _, _, count in fields:
            if count and kind in ("structs", "values", "handles", "bytes"):
                arrays[count].append(attribute)
        attributes: list[str] = []
        self.fills: list[tuple[int, _Fill]] = []
        stand_in = fields[0][0] if fields else "next"
        for position, (member, _) in enumerate(c_type.fields):
            known = by_member.get(member)
            attributes.append(known[0] if known else stand_in)
            if member == "sType":
                self.fills.append((position, _constant(structure_type)))
            elif member == "pNext":
                self.fills.append((position, _chain))
            elif member in arrays:
                self.fills.append((position, _count(self.c_name, member, arrays[member], known[0] if known else None)))
            elif known is None:
                self.fills.append((position, _constant(_zero(c_type.fields[position][1].type))))
            elif (fill := _FILLS[known[1]](known[0], known[2])) is not None:
                if member == "pSampleMask":
                    fill = _sample_mask
                self.fills.append((position, fill))
        # attrgetter of one name gives the value itself, not a tuple of one.
        self.only = len(attributes) == 1
        self.get = operator.attrgetter(*attributes)

    def row(self, description: Any, call: Call) -> Row:
        row = [self.get(description)] if self.only else list(self.get(description))
        for position, fill in self.fills:
            row[position] = fill(description, call)
        return row


_plans: dict[type[Struct], _Plan] = {}


def _plan(cls: type[Struct]) -> _Plan:
    plan = _plans.get(cls)
    if plan is None:
        if cls is UnknownStructure:
            raise UnknownStructureError("a structure that is not known here cannot be given to a driver")
        plan = _plans[cls] = _Plan(cls.__name__)
    return plan


def _zero(c_type: CData) -> Any:
    return _NULL if c_type.kind in ("pointer", "function") else 0


def _constant(value: Any) -> _Fill:
    return lambda description, call: value


def _chain(description: Any, call: Call) -> CData:
    return chain(description.next, call) if description.next else _NULL


def chain(structures: Iterable[Struct], call: Call) -> CData:
    """The structures linked by pNext in their order; a pointer to the first."""
    following = _NULL
    for item in reversed(tuple(structures)):
        if type(item) is UnknownStructure:
            raise UnknownStructureError(f"structure with sType {item.s_type} is not known here")
        plan = _plan(type(item))
        memory = _new(plan.pointer, plan.row(item, call), call, plan.c_name)
        if memory.pNext != _NULL:
            raise InvalidArgumentError(f"{plan.c_name}: a structure of a chain has a chain of its own")
        memory.pNext = following
        following = memory
    return following


def _count(c_name: str, member: str, arrays: list[str], own: str | None) -> _Fill:
    """A count that follows its arrays; ``own`` names the field that counts where all of them are null."""

    def count(description: Any, call: Call) -> Any:
        lengths = {len(array) for name in arrays if (array := getattr(description, name)) is not None}
        if len(lengths) > 1:
            raise InvalidArgumentError(f"{c_name}: arrays of {member} differ in length")
        if lengths:
            return lengths.pop()
        return getattr(description, own) if own else 0

    if len(arrays) > 1:
        return count
    get = operator.attrgetter(arrays[0])
    if own is None:
        return lambda description, call: len(get(description) or ())
    get_own = operator.attrgetter(own)
    return lambda description, call: get_own(description) if (array := get(description)) is None else len(array)


# ----------------------------------------------------------------------------------------------- one function per kind of field


def _struct(attribute: str, c_type: str) -> _Fill:
    get = operator.attrgetter(attribute)

    def fill(description: Any, call: Call) -> Row:
        value = get(description)
        return _plan(type(value)).row(value, call)

    return fill


def _pointer(attribute: str, c_type: str) -> _Fill:
    get = operator.attrgetter(attribute)

    def fill(description: Any, call: Call) -> CData:
        value = get(description)
        return _NULL if value is None else structure(value, call)

    return fill


def _structs(attribute: str, c_type: str) -> _Fill:
    get = operator.attrgetter(attribute)

    def fill(description: Any, call: Call) -> CData:
        values = get(description)
        if not values:
            return _NULL
        plan = _plan(type(values[0]))
        row = plan.row
        return _new(plan.array, [row(value, call) for value in values], call, plan.c_name)

    return fill


def _values(attribute: str, c_type: str) -> _Fill:
    get = operator.attrgetter(attribute)
    array = ffi.typeof(f"{c_type}[]")

    def fill(description: Any, call: Call) -> CData:
        values = get(description)
        return _new(array, values, call, attribute) if values else _NULL

    return fill


def _sample_mask(description: Any, call: Call) -> CData:
    """A driver reads one word per 32 samples, however long the array is."""
    mask = description.sample_mask
    if mask is None:
        return _NULL
    words = max(1, -(-description.rasterization_samples // 32))
    if words > 2:
        raise InvalidArgumentError(f"VkPipelineMultisampleStateCreateInfo: {description.rasterization_samples} samples")
    return _new(ffi.typeof("VkSampleMask[]"), [*mask, *[_ALL_SAMPLES] * (words - len(mask))], call, "pSampleMask")


def _handle(attribute: str, c_type: str) -> _Fill:
    get = operator.attrgetter(attribute)

    def fill(description: Any, call: Call) -> int:
        handle = get(description)
        return 0 if handle is None else call.resolve(handle)

    return fill


def _handles(attribute: str, c_type: str) -> _Fill:
    get = operator.attrgetter(attribute)
    array = ffi.typeof(f"{c_type}[]")

    def fill(description: Any, call: Call) -> CData:
        handles = get(description)
        if not handles:
            return _NULL
        return _new(array, [0 if handle is None else call.resolve(handle) for handle in handles], call, attribute)

    return fill


def _string(attribute: str, c_type: str) -> _Fill:
    get = operator.attrgetter(attribute)

    def fill(description: Any, call: Call) -> CData:
        value = get(description)
        if value is None:
            return _NULL
        try:
            encoded = value.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(f"{attribute}: not a name that can be encoded ({error})") from error
        if b"\0" in encoded:
            raise InvalidArgumentError(f"{attribute}: a name with a zero character")
        return _new(_CHARACTERS, encoded, call, attribute)

    return fill


def _bytes(attribute: str, c_type: str) -> _Fill:
    get = operator.attrgetter(attribute)
    words = c_type == "uint32_t"

    def fill(description: Any, call: Call) -> CData:
        value = get(description)
        if not value:
            return _NULL
        if words and len(value) % 4:
            raise InvalidArgumentError(f"{attribute}: {len(value)} bytes are not a whole number of 32-bit words")
        memory = _new(_BYTES, value, call, attribute)
        return ffi.cast("uint32_t *", memory) if words else memory

    return fill


def _color(attribute: str, c_type: str) -> _Fill:
    get = operator.attrgetter(attribute)
    # The union's four words are kept as their bits, whatever the format makes of them.
    return lambda description, call: {"uint32": get(description)}


def _copied(attribute: str, c_type: str) -> None:
    return None


_CHARACTERS = ffi.typeof("char[]")
_BYTES = ffi.typeof("uint8_t[]")
_FILLS: dict[str, Callable[[str, str], _Fill | None]] = {
    "value": _copied,
    "fixed": _copied,
    "struct": _struct,
    "pointer": _pointer,
    "structs": _structs,
    "values": _values,
    "handle": _handle,
    "handles": _handles,
    "string": _string,
    "bytes": _bytes,
    "color": _color,
}
