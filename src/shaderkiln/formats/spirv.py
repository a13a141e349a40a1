"""SPIR-V modules: whether the instruction stream is well formed, and what a module needs from a device.

``inspect_module`` walks a module once. It refuses what no driver should ever be given (a stream that does not add up, ids that
are never defined, functions without an end), and reports what the requirement check reads. It is no validator: types and
control flow are not proved. Layout of the stream: SPIR-V specification 1.6, sections 2.3 to 2.4.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from shaderkiln.errors import DamagedInputError
from shaderkiln.vulkan_registry import constants as c
from shaderkiln.vulkan_registry._spirv import INSTRUCTIONS

MAGIC = 0x07230203
MAXIMUM_BYTES = 16 << 20
"""Longer modules are refused, so that memory stays bounded."""
MAXIMUM_BOUND = 0x3FFFFF
"""The universal limit on result ids (SPIR-V specification, section 2.17)."""

# Opcodes
_EXTENSION, _EXT_INST_IMPORT, _MEMORY_MODEL, _ENTRY_POINT, _EXECUTION_MODE, _CAPABILITY = 10, 11, 14, 15, 16, 17
_EXECUTION_MODE_ID = 331
_TYPE_INT, _TYPE_FLOAT, _TYPE_VECTOR, _TYPE_MATRIX, _TYPE_IMAGE = 21, 22, 23, 24, 25
_TYPE_SAMPLER, _TYPE_SAMPLED_IMAGE, _TYPE_ARRAY, _TYPE_RUNTIME_ARRAY, _TYPE_STRUCT, _TYPE_POINTER = 26, 27, 28, 29, 30, 32
_TYPE_BOOL, _TYPE_ACCELERATION_STRUCTURE = 20, 5341
_FUNCTION, _FUNCTION_PARAMETER, _FUNCTION_END, _LABEL, _VARIABLE = 54, 55, 56, 248, 59
_CONSTANTS = frozenset((41, 42, 43, 44, 46, 48, 49, 50, 51, 52))
_SPECIALIZABLE = frozenset((48, 49, 50))
_TERMINATORS = frozenset((249, 250, 251, 252, 253, 254, 255, 4416, 4448, 4449, 5294, 5335, 5336))
_OUTSIDE_BLOCKS = frozenset((8, 317, 12, 4433))
"""OpLine, OpNoLine, OpExtInst and OpExtInstWithForwardRefsKHR (non-semantic) may stand between blocks."""
_ATOMIC_STORE = 228
_ATOMICS = frozenset((*range(227, 243), 5614, 5615, 6035))
_ATOMIC_OPERATIONS = {227: "exchange", 228: "exchange", 229: "exchange", 5614: "minmax", 5615: "minmax", 6035: "add"}
_SUBGROUP = frozenset((*range(333, 367), 4431, 5110, 5111, 5296))
_QUAD = frozenset((365, 366, 5110, 5111))
_NOTED = _ATOMICS | _SUBGROUP
_STRUCTURAL = _TERMINATORS | {_FUNCTION, _FUNCTION_PARAMETER, _FUNCTION_END, _LABEL} | _NOTED
_FIRST_IN_FUNCTIONS_ONLY = frozenset((*_TERMINATORS, _FUNCTION_PARAMETER, _FUNCTION_END, _LABEL))

# Decorations
_SPEC_ID, _BLOCK, _BUFFER_BLOCK, _ARRAY_STRIDE, _MATRIX_STRIDE, _BUILT_IN = 1, 2, 3, 6, 7, 11
_NON_WRITABLE, _LOCATION, _BINDING, _DESCRIPTOR_SET, _OFFSET = 24, 30, 33, 34, 35
_KEPT = frozenset(
    (_SPEC_ID, _BLOCK, _BUFFER_BLOCK, _ARRAY_STRIDE, _BUILT_IN, _NON_WRITABLE, _LOCATION, _BINDING, _DESCRIPTOR_SET)
)
_KEPT_OF_MEMBERS = frozenset((_BUILT_IN, _NON_WRITABLE, _OFFSET, _MATRIX_STRIDE))
_WORKGROUP_SIZE = 25

# Storage classes
UNIFORM_CONSTANT, INPUT, UNIFORM, OUTPUT, WORKGROUP = 0, 1, 2, 3, 4
PUSH_CONSTANT, IMAGE, STORAGE_BUFFER = 9, 11, 12

LOCAL_SIZE, LOCAL_SIZE_ID = 17, 38

_MAXIMUM_SIZE = 1 << 62
_MAXIMUM_DEPTH = 64
"""Of types inside types and of constants made from constants; deeper ones are not computed."""


class Binding(Struct, frozen=True):
    """A descriptor that an entry point uses statically."""

    set: int
    binding: int
    descriptor_types: tuple[int, ...]
    """VkDescriptorType values, any of which fits the declaration."""
    count: int | None
    """Array elements; None: sized by the descriptor set, or by a specialization constant."""
    written: bool
    """A storage buffer, image or texel buffer that is not declared NonWritable."""


class Atomic(Struct, frozen=True):
    """A kind of atomic instruction on a number that is not a 32-bit integer."""

    operation: str
    """``exchange`` (load, store, exchange), ``add``, ``minmax``, or ``integer``."""
    is_float: bool
    width: int
    """Bits."""
    components: int
    storage_class: int


class EntryPoint(Struct, frozen=True):
    """One entry point with what its call tree uses statically."""

    execution_model: int
    name: str
    interface: tuple[int, ...]
    execution_modes: Mapping[int, tuple[tuple[int, ...], ...]]
    """Mode → its operands, once for each time that it is given; operands of LocalSizeId are ids."""
    bindings: tuple[Binding, ...]
    atomics: frozenset[Atomic]
    subgroup_types: frozenset[tuple[bool, int]]
    """(is float, bits) of the values that subgroup operations give; (False, 32) for other results."""
    subgroup_operations: bool
    quad_operations: bool
    input_locations: tuple[int, ...]
    output_locations: tuple[int, ...]
    push_constant_bytes: int
    workgroup_variables: tuple[int, ...]
    """Type ids, in the order of declaration."""


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """What a module declares and uses."""

    version: tuple[int, int]
    bound: int
    capabilities: frozenset[int]
    extensions: tuple[str, ...]
    extended_instruction_sets: tuple[str, ...]
    addressing_model: int
    memory_model: int
    entry_points: tuple[EntryPoint, ...]
    specialization_constants: Mapping[int, int]
    """SpecId → size in bytes (4 for booleans, as VkBool32)."""
    unknown_instructions: tuple[int, ...]
    """Opcodes that this version does not know; where there are any, undefined ids are not looked for."""
    _constants: Mapping[int, tuple[int, int, Sequence[int]]] = field(repr=False)
    _types: Mapping[int, tuple[int, Sequence[int]]] = field(repr=False)
    _spec_ids: Mapping[int, int] = field(repr=False)
    _workgroup_size: int = field(repr=False)
    _blocks: frozenset[int] = field(repr=False)

    def entry_point(self, execution_model: int, name: str) -> EntryPoint | None:
        """The entry point of that execution model and name."""
        for entry in self.entry_points:
            if entry.execution_model == execution_model and entry.name == name:
                return entry
        return None

    def workgroup_size(self, entry: EntryPoint, specialization: Mapping[int, bytes]) -> tuple[int, int, int] | None:
        """Invocations in x, y and z; ``specialization`` maps SpecId to the value's bytes. None where it cannot be computed.

        The object decorated WorkgroupSize takes precedence over the execution mode (Vulkan, "WorkgroupSize").
        """
        ids: Sequence[int] = ()
        if self._workgroup_size and (constant := self._constants.get(self._workgroup_size)) and constant[0] in (44, 51):
            ids = constant[2]
        elif modes := entry.execution_modes.get(LOCAL_SIZE_ID):
            ids = modes[-1]
        if ids:
            values = [self.evaluate(i, specialization) for i in ids]
            if len(values) != 3 or any(v is None for v in values):
                return None
            return values[0] or 0, values[1] or 0, values[2] or 0
        if modes := entry.execution_modes.get(LOCAL_SIZE):
            operands = modes[-1]
            return (operands[0], operands[1], operands[2]) if len(operands) == 3 else None
        return None

    def workgroup_bytes(self, entry: EntryPoint, specialization: Mapping[int, bytes]) -> int | None:
        """Bytes of workgroup memory with std430 rules in declaration order (Vulkan, "Workgroup" storage); None: not computable.

        Variables with an explicit layout (Block) share memory: the largest counts.
        """
        at = largest_block = 0
        sizes = _Sizes(self, specialization)
        for type_id in entry.workgroup_variables:
            found = sizes.of(type_id)
            if found is None:
                return None
            size, alignment = found
            if type_id in self._blocks:
                largest_block = max(largest_block, size)
            else:
                at = -(-at // alignment) * alignment + size
        return max(at, largest_block)

    def evaluate(self, constant: int, specialization: Mapping[int, bytes]) -> int | None:
        """The integer value of a scalar constant, specialization applied; None where it is not an integer computed here."""
        return self._evaluate(constant, specialization, {}, 0)

    def _evaluate(
        self, constant: int, specialization: Mapping[int, bytes], known: dict[int, int | None], depth: int
    ) -> int | None:
        if constant not in known:
            known[constant] = None if depth > _MAXIMUM_DEPTH else self._new_value(constant, specialization, known, depth)
        return known[constant]

    def _new_value(
        self, constant: int, specialization: Mapping[int, bytes], known: dict[int, int | None], depth: int
    ) -> int | None:
        found = self._constants.get(constant)
        if found is None:
            return None
        opcode, type_id, operands = found
        if opcode in (41, 48):
            value: int | None = 1
        elif opcode in (42, 49, 46):
            value = 0
        elif opcode in (43, 50):
            value = operands[0] | operands[1] << 32 if len(operands) > 1 else operands[0]
        elif opcode == 52 and 2 <= len(operands) <= 4:
            values = [self._evaluate(i, specialization, known, depth + 1) for i in operands[1:]]
            return self._operation(type_id, operands[0], values)
        else:
            return None
        if opcode in _SPECIALIZABLE and (data := specialization.get(self._spec_ids.get(constant, -1))):
            value = int.from_bytes(data[:8], "little")
            if opcode in (48, 49):
                value = int(value != 0)
        return self._wrapped(type_id, value)

    def _wrapped(self, type_id: int, value: int | None) -> int | None:
        opcode, operands = self._types.get(type_id, (0, ()))
        if value is None or opcode == _TYPE_BOOL:
            return value
        if opcode != _TYPE_INT or len(operands) < 2:
            return None
        width = operands[0]
        if not 0 < width <= 64:
            return None
        value &= (1 << width) - 1
        return value - (1 << width) if operands[1] and value >> (width - 1) else value

    def _operation(self, type_id: int, opcode: int, values: list[int | None]) -> int | None:
        if any(v is None for v in values):
            return None
        a, b, c = ([v or 0 for v in values] + [0, 0, 0])[:3]
        if opcode == 169:  # OpSelect
            return self._wrapped(type_id, b if a else c)
        if opcode in (134, 135, 137, 138, 139) and b == 0:
            return None
        if opcode in (194, 195, 196) and not 0 <= b < 64:
            return None
        known = _FOLDED.get(opcode)
        return self._wrapped(type_id, known(a, b)) if known else None


def _unsigned(a: int) -> int:
    return a & 0xFFFFFFFF if a < 0 else a


_FOLDED: dict[int, Callable[[int, int], int]] = {
    113: lambda a, b: a,
    114: lambda a, b: a,
    126: lambda a, b: -a,
    128: lambda a, b: a + b,
    130: lambda a, b: a - b,
    132: lambda a, b: a * b,
    134: lambda a, b: _unsigned(a) // _unsigned(b),
    135: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    137: lambda a, b: _unsigned(a) % _unsigned(b),
    138: lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    139: lambda a, b: a % b,
    164: lambda a, b: int(a == b),
    165: lambda a, b: int(a != b),
    166: lambda a, b: int(bool(a or b)),
    167: lambda a, b: int(bool(a and b)),
    168: lambda a, b: int(not a),
    170: lambda a, b: int(a == b),
    171: lambda a, b: int(a != b),
    172: lambda a, b: int(_unsigned(a) > _unsigned(b)),
    173: lambda a, b: int(a > b),
    174: lambda a, b: int(_unsigned(a) >= _unsigned(b)),
    175: lambda a, b: int(a >= b),
    176: lambda a, b: int(_unsigned(a) < _unsigned(b)),
    177: lambda a, b: int(a < b),
    178: lambda a, b: int(_unsigned(a) <= _unsigned(b)),
    179: lambda a, b: int(a <= b),
    194: lambda a, b: _unsigned(a) >> b,
    195: lambda a, b: a >> b,
    196: lambda a, b: a << b,
    197: lambda a, b: a | b,
    198: lambda a, b: a ^ b,
    199: lambda a, b: a & b,
    200: lambda a, b: ~a,
}
"""Operations of OpSpecConstantOp on integers and booleans; 32-bit where the sign matters."""


class _Sizes:
    """std430 sizes and alignments of types, each computed once."""

    def __init__(self, module: ModuleInfo, specialization: Mapping[int, bytes]) -> None:
        self.module = module
        self.specialization = specialization
        self.known: dict[int, tuple[int, int] | None] = {}
        self.depth = 0

    def of(self, type_id: int) -> tuple[int, int] | None:
        if type_id not in self.known:
            self.known[type_id] = None  # a type inside itself has no size
            if self.depth < _MAXIMUM_DEPTH:
                self.depth += 1
                self.known[type_id] = self._compute(type_id)
                self.depth -= 1
        return self.known[type_id]

    def _compute(self, type_id: int) -> tuple[int, int] | None:
        opcode, operands = self.module._types.get(type_id, (0, ()))
        if opcode == _TYPE_BOOL:
            return 4, 4
        if opcode in (_TYPE_INT, _TYPE_FLOAT) and operands:
            size = operands[0] // 8
            return (size, size) if size in (1, 2, 4, 8) else None
        if opcode == _TYPE_POINTER:
            return 8, 8
        if opcode in (_TYPE_VECTOR, _TYPE_MATRIX) and len(operands) == 2:
            inner = self.of(operands[0])
            if inner is None or not 1 <= operands[1] <= 16:
                return None
            if opcode == _TYPE_MATRIX:
                stride = -(-inner[0] // inner[1]) * inner[1]
                return stride * operands[1], inner[1]
            return inner[0] * operands[1], inner[0] * (4 if operands[1] == 3 else operands[1])
        if opcode == _TYPE_ARRAY and len(operands) == 2:
            inner = self.of(operands[0])
            length = self.module.evaluate(operands[1], self.specialization)
            if inner is None or length is None or length < 0:
                return None
            return min(-(-inner[0] // inner[1]) * inner[1] * length, _MAXIMUM_SIZE), inner[1]
        if opcode == _TYPE_STRUCT:
            at, alignment = 0, 1
            for member in operands:
                inner = self.of(member)
                if inner is None:
                    return None
                at = -(-at // inner[1]) * inner[1] + inner[0]
                alignment = max(alignment, inner[1])
            return min(-(-at // alignment) * alignment, _MAXIMUM_SIZE), alignment
        return None


def _string(words: list[int], at: int, end: int) -> tuple[str, int]:
    """The nul-terminated UTF-8 string from word ``at``, and the word after it."""
    part = array("I", words[at:end])
    data = part.tobytes() if sys.byteorder == "little" else _swapped(part).tobytes()
    length = data.find(0)
    if length < 0:
        raise DamagedInputError("SPIR-V: a string is not terminated inside its instruction")
    return data[:length].decode("utf-8", "replace"), at + length // 4 + 1


def _swapped(words: array[int]) -> array[int]:
    words.byteswap()
    return words


def _damaged(what: str, at: int) -> DamagedInputError:
    return DamagedInputError(f"SPIR-V: {what} (at word {at})")


class _Function(Struct):
    result: int
    uses: set[int]
    noted: list[tuple[int, int]]


def inspect_module(code: bytes) -> ModuleInfo:
    """Check the instruction stream and describe the module.

    Raises ``DamagedInputError`` where the stream is not well formed: size, magic number, version, bound, word counts, strings,
    ids that are 0, out of bounds, defined twice or never defined, no memory model, no entry point, an entry point that is not a
    function, functions and blocks that do not end or hold what they cannot.
    """
    if len(code) < 20 or len(code) % 4:
        raise DamagedInputError(f"SPIR-V: {len(code)} bytes are no whole module")
    if len(code) > MAXIMUM_BYTES:
        raise DamagedInputError(f"SPIR-V: {len(code)} bytes are more than the {MAXIMUM_BYTES} that are read")
    words = array("I", code)
    if sys.byteorder != "little":
        words.byteswap()
    if words[0] != MAGIC:
        raise DamagedInputError("SPIR-V: no magic number")
    version, bound = words[1], words[3]
    if version & 0xFF0000FF or version >> 16 != 1:
        raise DamagedInputError(f"SPIR-V: version word 0x{version:08x}")
    if not 0 < bound <= MAXIMUM_BOUND:
        raise DamagedInputError(f"SPIR-V: id bound {bound}")
    if words[4]:
        raise DamagedInputError("SPIR-V: the reserved word of the header is not 0")
    walk = _Walk(words.tolist(), bound)  # a list gives its elements without making them anew
    start = walk.declarations()
    walk.functions(start)
    return walk.finish((version >> 16, version >> 8 & 0xFF))


class _Walk:
    def __init__(self, words: list[int], bound: int) -> None:
        self.words = words
        self.bound = bound
        self.capabilities: set[int] = set()
        self.extensions: list[str] = []
        self.sets: list[str] = []
        self.model: tuple[int, int] | None = None
        self.entries: list[tuple[int, int, str, tuple[int, ...]]] = []
        self.modes: dict[int, dict[int, list[tuple[int, ...]]]] = {}
        self.types: dict[int, tuple[int, Sequence[int]]] = {}
        self.constants: dict[int, tuple[int, int, Sequence[int]]] = {}
        self.variables: dict[int, tuple[int, int]] = {}
        self.decorations: dict[int, dict[int, int]] = {}
        self.members: dict[int, dict[int, dict[int, int]]] = {}
        self.defined: set[int] = set()
        self.used: set[int] = set()
        self.named: set[int] = set()
        self.unknown: dict[int, None] = {}
        self.functions_found: list[_Function] = []
        self.functions_start = 0

    def declarations(self) -> int:
        """Everything before the first function; returns the word at which that stands."""
        words, end_of_code = self.words, len(self.words)
        defined, used = self.defined, self.used
        at = 5
        while at < end_of_code:
            head = words[at]
            opcode, count = head & 0xFFFF, head >> 16
            end = at + count
            if not count or end > end_of_code:
                raise _damaged(f"an instruction of {count} words reaches beyond the end" if count else "word count 0", at)
            if opcode == _FUNCTION:
                break
            row = INSTRUCTIONS.get(opcode)
            if row is None:
                self.unknown[opcode] = None
                at = end
                continue
            least, _, result_at, lead, skip, tail = row
            if count < least:
                raise _damaged(f"opcode {opcode} needs {least} words and has {count}", at)
            if result_at:
                result = words[at + result_at]
                if result in defined or not result:
                    raise _damaged(f"id {result} is defined twice" if result else "id 0 is defined", at)
                defined.add(result)
                if 19 <= opcode <= 38 or opcode in (_TYPE_ACCELERATION_STRUCTURE, 4456, 4472, 5358, 5288):
                    self.types[result] = (opcode, words[at + 2 : end])
                elif opcode in _CONSTANTS:
                    self.constants[result] = (opcode, words[at + 1], words[at + 3 : end])
                elif opcode == _VARIABLE:
                    self.variables[result] = (words[at + 1], words[at + 3])
                elif opcode == _EXT_INST_IMPORT:
                    self.sets.append(_string(words, at + 2, end)[0])
                elif opcode == 7:
                    _string(words, at + 2, end)
                if lead:
                    used.update(words[at + 1 : at + 1 + lead])
                if tail:
                    used.update(words[at + 1 + lead + skip : end])
            elif opcode == 71:  # OpDecorate
                target, decoration = words[at + 1], words[at + 2]
                self.named.add(target)
                if decoration in _KEPT:
                    if decoration not in (_BLOCK, _BUFFER_BLOCK, _NON_WRITABLE) and count < 4:
                        raise _damaged(f"decoration {decoration} without its literal", at)
                    self.decorations.setdefault(target, {})[decoration] = words[at + 3] if count > 3 else 1
            elif opcode == 72:  # OpMemberDecorate
                if words[at + 3] in _KEPT_OF_MEMBERS:
                    decorated = self.members.setdefault(words[at + 1], {}).setdefault(words[at + 2], {})
                    decorated[words[at + 3]] = words[at + 4] if count > 4 else 1
                self.named.add(words[at + 1])
            elif opcode in (5, 6):  # OpName, OpMemberName
                self.named.add(words[at + 1])
                if words[end - 1] >> 24:  # the last byte of a terminated string is 0
                    raise _damaged("a name is not terminated", at)
            elif opcode == _CAPABILITY:
                self.capabilities.add(words[at + 1])
            elif opcode == _ENTRY_POINT:
                name, after = _string(words, at + 3, end)
                interface = tuple(words[after:end])
                self.entries.append((words[at + 1], words[at + 2], name, interface))
                used.add(words[at + 2])
                used.update(interface)
            elif opcode in (_EXECUTION_MODE, _EXECUTION_MODE_ID):
                operands = tuple(words[at + 3 : end])
                self.modes.setdefault(words[at + 1], {}).setdefault(words[at + 2], []).append(operands)
                used.add(words[at + 1])
                if opcode == _EXECUTION_MODE_ID:
                    used.update(operands)
            elif opcode == _MEMORY_MODEL:
                if self.model is not None:
                    raise _damaged("a second memory model", at)
                self.model = (words[at + 1], words[at + 2])
            elif opcode == _EXTENSION:
                self.extensions.append(_string(words, at + 1, end)[0])
            elif opcode in _FIRST_IN_FUNCTIONS_ONLY:
                raise _damaged(f"opcode {opcode} outside a function", at)
            at = end
        return at

    def functions(self, at: int) -> None:
        words, end_of_code = self.words, len(self.words)
        self.functions_start = at
        table, structural = INSTRUCTIONS, _STRUCTURAL
        defined = self.defined
        define = defined.add
        function: _Function | None = None
        uses: set[int] = set()
        use = uses.update
        in_block = False
        blocks = 0
        results = 0
        defined_before = len(defined)
        while at < end_of_code:
            head = words[at]
            opcode, end = head & 0xFFFF, at + (head >> 16)
            if end > end_of_code or end == at:
                raise _damaged("an instruction reaches beyond the end" if end > at else "word count 0", at)
            row = table.get(opcode)
            if row is None:
                self.unknown[opcode] = None
                at = end
                continue
            least, _, result_at, lead, skip, tail = row
            if end - at < least:
                raise _damaged(f"opcode {opcode} needs {least} words and has {end - at}", at)
            if result_at:
                define(words[at + result_at])
                results += 1
            if opcode in structural:
                if opcode in _NOTED:
                    if function is None or not in_block:
                        raise _damaged("an instruction outside a block", at)
                    function.noted.append((opcode, at))
                elif opcode == _LABEL:
                    if function is None or in_block:
                        raise _damaged("a label inside a block or outside a function", at)
                    in_block = True
                    blocks += 1
                elif opcode == _FUNCTION:
                    if function is not None:
                        raise _damaged("a function inside a function", at)
                    uses = set()
                    use = uses.update
                    function = _Function(words[at + 2], uses, [])
                    blocks = 0
                elif opcode == _FUNCTION_END:
                    if function is None or in_block:
                        raise _damaged("the end of a function inside a block or without a function", at)
                    self.functions_found.append(function)
                    function = None
                elif opcode == _FUNCTION_PARAMETER:
                    if function is None or blocks:
                        raise _damaged("a function parameter that is not at the start of a function", at)
                else:
                    if not in_block:
                        raise _damaged("the end of a block outside a block", at)
                    in_block = False
            elif not in_block and (opcode not in _OUTSIDE_BLOCKS):
                raise _damaged(f"opcode {opcode} outside a block", at)
            if tail:
                use(words[at + 1 : end] if not skip else words[at + 1 : at + 1 + lead] + words[at + 1 + lead + skip : end])
            elif lead:
                use(words[at + 1 : at + 1 + lead])
            at = end
        if function is not None or in_block:
            raise DamagedInputError("SPIR-V: the last function does not end")
        if 0 in defined or len(defined) != defined_before + results:
            raise DamagedInputError("SPIR-V: an id is 0 or defined twice")

    def finish(self, version: tuple[int, int]) -> ModuleInfo:
        if self.model is None:
            raise DamagedInputError("SPIR-V: no memory model")
        if not self.entries:
            raise DamagedInputError("SPIR-V: no entry point")
        functions = {f.result: f for f in self.functions_found}
        for _, function, name, _ in self.entries:
            if function not in functions:
                raise DamagedInputError(f"SPIR-V: entry point {name!r} is no function of the module")
        defined = self.defined
        if defined and max(defined) >= self.bound:
            raise DamagedInputError(f"SPIR-V: id {max(defined)} is out of bound {self.bound}")
        if self.named and max(self.named) >= self.bound:
            raise DamagedInputError(f"SPIR-V: id {max(self.named)} is out of bound {self.bound}")
        if not self.unknown:
            for used in (self.used, *(f.uses for f in self.functions_found)):
                if not used <= defined:
                    raise DamagedInputError(f"SPIR-V: id {min(used - defined)} is used and never defined")
        spec_ids: dict[int, int] = {}
        workgroup_size = 0
        sizes: dict[int, int] = {}
        for target, kept in self.decorations.items():
            if _SPEC_ID in kept and target in self.constants:
                spec_ids[target] = kept[_SPEC_ID]
                sizes[kept[_SPEC_ID]] = self._constant_bytes(target)
            if kept.get(_BUILT_IN) == _WORKGROUP_SIZE:
                workgroup_size = target
        return ModuleInfo(
            version,
            self.bound,
            frozenset(self.capabilities),
            tuple(self.extensions),
            tuple(self.sets),
            *self.model,
            self._entry_points(functions),
            sizes,
            tuple(self.unknown),
            self.constants,
            self.types,
            spec_ids,
            workgroup_size,
            frozenset(target for target, kept in self.decorations.items() if _BLOCK in kept),
        )

    def _constant_bytes(self, constant: int) -> int:
        opcode, operands = self.types.get(self.constants[constant][1], (0, ()))
        return max(operands[0] // 8, 1) if opcode in (_TYPE_INT, _TYPE_FLOAT) and operands else 4

    def _entry_points(self, functions: Mapping[int, _Function]) -> tuple[EntryPoint, ...]:
        known = functions.keys()
        global_uses = {name: f.uses & self.variables.keys() for name, f in functions.items()}
        calls = {name: f.uses & known for name, f in functions.items()}
        found = []
        for model, root, name, interface in self.entries:
            reached, open_ends = {root}, [root]
            while open_ends:
                for callee in calls[open_ends.pop()] - reached:
                    reached.add(callee)
                    open_ends.append(callee)
            variables = sorted(set().union(*(global_uses[f] for f in reached)))
            noted = [n for f in reached for n in functions[f].noted]
            found.append(self._entry_point(model, root, name, interface, variables, noted))
        return tuple(found)

    def _entry_point(
        self,
        model: int,
        root: int,
        name: str,
        interface: tuple[int, ...],
        variables: Iterable[int],
        noted: list[tuple[int, int]],
    ) -> EntryPoint:
        bindings: list[Binding] = []
        workgroup: list[int] = []
        push = 0
        for variable in variables:
            pointer, storage = self.variables[variable]
            pointed = self._pointee(pointer)
            if storage in (UNIFORM_CONSTANT, UNIFORM, STORAGE_BUFFER):
                kept = self.decorations.get(variable, {})
                if _BINDING in kept and _DESCRIPTOR_SET in kept:
                    bindings.append(self._binding(variable, kept, storage, pointed))
            elif storage == WORKGROUP:
                workgroup.append(pointed)
            elif storage == PUSH_CONSTANT:
                push = max(push, self._last_offset(pointed))
        bindings.sort(key=lambda b: (b.set, b.binding))
        subgroup = [(op, at) for op, at in noted if op in _SUBGROUP]
        return EntryPoint(
            model,
            name,
            interface,
            {mode: tuple(v) for mode, v in self.modes.get(root, {}).items()},
            tuple(bindings),
            self._atomics([(op, at) for op, at in noted if op in _ATOMICS]),
            frozenset(self._number(self.words[at + 1])[:2] for _, at in subgroup),
            bool(subgroup),
            any(op in _QUAD for op, _ in subgroup),
            self._locations(interface, INPUT),
            self._locations(interface, OUTPUT),
            push,
            tuple(workgroup),
        )

    def _pointee(self, pointer: int) -> int:
        opcode, operands = self.types.get(pointer, (0, ()))
        return operands[1] if opcode == _TYPE_POINTER and len(operands) > 1 else 0

    def _binding(self, variable: int, kept: Mapping[int, int], storage: int, pointed: int) -> Binding:
        count: int | None = 1
        opcode, operands = self.types.get(pointed, (0, ()))
        for _ in range(8):
            if opcode == _TYPE_ARRAY and len(operands) > 1:
                length = self.constants.get(operands[1])
                count = count * length[2][0] if count is not None and length and length[0] == 43 else None
            elif opcode == _TYPE_RUNTIME_ARRAY and operands:
                count = None
            else:
                break
            pointed = operands[0]
            opcode, operands = self.types.get(pointed, (0, ()))
        types, writable = self._descriptor_types(storage, pointed, opcode, operands)
        written = writable and _NON_WRITABLE not in kept
        if written and opcode == _TYPE_STRUCT and len(operands):
            members = self.members.get(pointed, {})
            written = not all(_NON_WRITABLE in members.get(i, ()) for i in range(len(operands)))
        return Binding(kept[_DESCRIPTOR_SET], kept[_BINDING], types, count, written)

    def _descriptor_types(
        self, storage: int, pointed: int, opcode: int, operands: Sequence[int]
    ) -> tuple[tuple[int, ...], bool]:
        """VkDescriptorType values and whether stores go there (Vulkan, "Shader Resource Interface")."""
        if opcode == _TYPE_SAMPLER:
            return (0, 1), False
        if opcode == _TYPE_SAMPLED_IMAGE:
            image, parts = self.types.get(operands[0], (0, ())) if operands else (0, ())
            return ((4,) if image == _TYPE_IMAGE and len(parts) > 1 and parts[1] == 5 else (1,)), False
        if opcode == _TYPE_IMAGE and len(operands) > 5:
            dimension, sampled = operands[1], operands[5]
            if dimension == 6:
                return (10,), False
            if dimension == 5:
                return ((4,), False) if sampled == 1 else ((5,), True)
            return ((2, 1), False) if sampled == 1 else ((3,), True)
        if opcode == _TYPE_ACCELERATION_STRUCTURE:
            return (c.VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR, c.VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_NV), False
        if opcode == _TYPE_STRUCT:
            if storage == STORAGE_BUFFER or _BUFFER_BLOCK in self.decorations.get(pointed, {}):
                return (7, 9), True
            if storage == UNIFORM:
                return (6, 8, c.VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK), False
        return (), False

    def _last_offset(self, struct: int) -> int:
        """Bytes up to the start of the last member, at least 4 more: a lower bound of the block's size."""
        return max((m.get(_OFFSET, 0) + 4 for m in self.members.get(struct, {}).values()), default=0)

    def _locations(self, interface: Iterable[int], storage: int) -> tuple[int, ...]:
        return tuple(
            sorted(
                kept[_LOCATION]
                for i in interface
                if (v := self.variables.get(i)) and v[1] == storage and _LOCATION in (kept := self.decorations.get(i, {}))
            )
        )

    def _number(self, type_id: int) -> tuple[bool, int, int]:
        """(is float, bits, components) of a number or vector; (False, 32, 1) for anything else."""
        components = 1
        opcode, operands = self.types.get(type_id, (0, ()))
        if opcode == _TYPE_VECTOR and len(operands) > 1:
            components = operands[1]
            opcode, operands = self.types.get(operands[0], (0, ()))
        if opcode in (_TYPE_INT, _TYPE_FLOAT) and operands:
            return opcode == _TYPE_FLOAT, operands[0], components
        return False, 32, 1

    def _atomics(self, noted: list[tuple[int, int]]) -> frozenset[Atomic]:
        """The atomic instructions that go beyond 32-bit integers. Only for those are the types of pointers looked up."""
        words = self.words
        plain = (False, 32, 1)
        wanted: list[tuple[int, int, tuple[bool, int, int] | int]] = []
        for opcode, at in noted:
            if opcode == _ATOMIC_STORE:
                wanted.append((opcode, words[at + 1], words[at + 4]))
            elif (number := self._number(words[at + 1])) != plain:
                wanted.append((opcode, words[at + 3], number))
        if not wanted:
            return frozenset()
        type_of = self._result_types({p for _, p, _ in wanted} | {n for _, _, n in wanted if isinstance(n, int)})
        found = set()
        for opcode, pointer, value in wanted:
            number = self._number(type_of.get(value, 0)) if isinstance(value, int) else value
            if number == plain:
                continue
            kind, operands = self.types.get(type_of.get(pointer, 0), (0, ()))
            storage = operands[0] if kind == _TYPE_POINTER and operands else -1
            operation = _ATOMIC_OPERATIONS.get(opcode, "integer") if number[0] else "integer"
            found.add(Atomic(operation, *number, storage))
        return frozenset(found)

    def _result_types(self, ids: set[int]) -> dict[int, int]:
        found = {i: self.variables[i][0] for i in ids & self.variables.keys()}
        found |= {i: self.constants[i][1] for i in ids & self.constants.keys()}
        words, at = self.words, self.functions_start
        while at < len(words):
            row = INSTRUCTIONS.get(words[at] & 0xFFFF)
            if row is not None and row[1] and words[at + 2] in ids:
                found[words[at + 2]] = words[at + 1]
            at += words[at] >> 16
        return found
