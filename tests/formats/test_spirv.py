"""SPIR-V modules assembled here word by word, real ones against spirv-dis, and hostile ones."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spirv_assembly import compute, module, op, text

from shaderkiln.errors import DamagedInputError
from shaderkiln.formats.spirv import Atomic, Binding, inspect_module
from shaderkiln.vulkan_registry._requirements import CAPABILITY_NAMES

SHADERS = Path(__file__).resolve().parents[3] / "shared/data/shaders/spirv"
REAL = sorted(SHADERS.glob("*.spv"))
STORAGE_BUFFER, WORKGROUP = 12, 4


def test_a_minimal_module() -> None:
    info = inspect_module(compute(capabilities=(1, 10), extensions=("SPV_KHR_16bit_storage",), name="rechne_ä"))
    assert info.version == (1, 3)
    assert info.capabilities == {1, 10}
    assert info.extensions == ("SPV_KHR_16bit_storage",)
    assert (info.addressing_model, info.memory_model) == (0, 1)
    (entry,) = info.entry_points
    assert (entry.execution_model, entry.name) == (5, "rechne_ä")
    assert info.entry_point(5, "rechne_ä") is entry
    assert info.entry_point(4, "rechne_ä") is None
    assert info.workgroup_size(entry, {}) == (8, 4, 2)
    assert info.workgroup_bytes(entry, {}) == 0


def test_workgroup_size_from_specialization_constants() -> None:
    code = compute(
        decorations=[op(71, 20, 1, 7), op(71, 22, 11, 25)],
        declarations=[
            op(50, 5, 20, 64),
            op(43, 5, 21, 2),
            op(23, 23, 5, 3),
            op(51, 23, 22, 20, 21, 21),
        ],
    )
    info = inspect_module(code)
    (entry,) = info.entry_points
    assert info.specialization_constants == {7: 4}
    # The decorated object wins over LocalSize 8 4 2.
    assert info.workgroup_size(entry, {}) == (64, 2, 2)
    assert info.workgroup_size(entry, {7: struct.pack("<I", 256)}) == (256, 2, 2)


def test_local_size_id_and_specialization_operations() -> None:
    # x = spec * 3 + 1, y and z = 1
    code = compute(
        local_size=(),
        modes=[op(331, 1, 38, 24, 22, 22)],
        decorations=[op(71, 20, 1, 0)],
        declarations=[
            op(50, 5, 20, 5),
            op(43, 5, 21, 3),
            op(43, 5, 22, 1),
            op(52, 5, 23, 132, 20, 21),
            op(52, 5, 24, 128, 23, 22),
        ],
        version=0x00010600,
    )
    info = inspect_module(code)
    (entry,) = info.entry_points
    assert info.workgroup_size(entry, {}) == (16, 1, 1)
    assert info.workgroup_size(entry, {0: b"\x0a\0\0\0"}) == (31, 1, 1)


def test_workgroup_memory_follows_std430_in_declaration_order() -> None:
    code = compute(
        decorations=[op(71, 22, 1, 3)],
        declarations=[
            op(23, 20, 6, 3),  # vec3
            op(32, 21, WORKGROUP, 6),
            op(50, 5, 22, 10),  # array length, SpecId 3
            op(28, 23, 20, 22),  # vec3[10]: stride 16
            op(32, 24, WORKGROUP, 23),
            op(59, 21, 25, WORKGROUP),  # float at 0
            op(59, 24, 26, WORKGROUP),  # array at 16
            op(59, 24, 27, WORKGROUP),  # not used
        ],
        body=[op(61, 6, 30, 25), op(61, 23, 31, 26)],
    )
    info = inspect_module(code)
    (entry,) = info.entry_points
    assert info.workgroup_bytes(entry, {}) == 16 + 160
    assert info.workgroup_bytes(entry, {3: b"\x02\0\0\0"}) == 16 + 32


def buffer(*, not_written: bool = False) -> dict[str, list[tuple[int, ...]]]:
    """A storage buffer of floats at set 2, binding 9, variable 23; pointer to float 24."""
    return {
        "decorations": [
            op(71, 20, 6, 4),
            op(71, 21, 2),
            op(72, 21, 0, 35, 0),
            op(71, 23, 34, 2),
            op(71, 23, 33, 9),
            *([op(72, 21, 0, 24)] if not_written else []),
        ],
        "declarations": [
            op(29, 20, 6),
            op(30, 21, 20),
            op(32, 22, STORAGE_BUFFER, 21),
            op(59, 22, 23, STORAGE_BUFFER),
            op(32, 24, STORAGE_BUFFER, 6),
            op(43, 5, 25, 0),
            op(43, 5, 26, 1),
            op(43, 6, 27, 0x3F800000),
        ],
    }


@pytest.mark.parametrize("not_written", [False, True])
def test_bindings(not_written: bool) -> None:
    info = inspect_module(compute(**buffer(not_written=not_written), body=[op(65, 24, 30, 23, 25, 25)]))
    assert info.entry_points[0].bindings == (Binding(2, 9, (7, 9), 1, not not_written),)


def test_only_what_an_entry_point_reaches_counts() -> None:
    assert inspect_module(compute(**buffer())).entry_points[0].bindings == ()


def test_float_atomics_name_their_storage_class() -> None:
    body = [op(65, 24, 30, 23, 25, 25), op(6035, 6, 31, 30, 26, 25, 27)]
    info = inspect_module(compute(**buffer(), body=body))
    assert info.entry_points[0].atomics == {Atomic("add", True, 32, 1, STORAGE_BUFFER)}


def test_atomics_on_32_bit_integers_are_nothing_special() -> None:
    declarations = [op(32, 20, WORKGROUP, 5), op(59, 20, 21, WORKGROUP), op(43, 5, 22, 1)]
    info = inspect_module(compute(declarations=declarations, body=[op(234, 5, 30, 21, 22, 22, 22)]))
    assert info.entry_points[0].atomics == frozenset()


def test_subgroup_operations_are_seen() -> None:
    body = [op(349, 6, 30, 22, 0, 23)]
    declarations = [op(43, 5, 22, 3), op(43, 6, 23, 0)]
    (entry,) = inspect_module(compute(declarations=declarations, body=body)).entry_points
    assert entry.subgroup_operations
    assert entry.subgroup_types == {(True, 32)}
    assert not entry.quad_operations


GOOD = compute()


def damaged() -> dict[str, bytes]:
    words = list(struct.unpack(f"<{len(GOOD) // 4}I", GOOD))

    def packed(changed: list[int]) -> bytes:
        return struct.pack(f"<{len(changed)}I", *changed)

    return {
        "empty": b"",
        "header only": GOOD[:20],
        "cut inside a word": GOOD[:-1],
        "no function end": GOOD[:-4],
        "no return": packed([*words[:-2], words[-1]]),
        "last word random": packed([*words[:-1], 0x9ABCDEF0]),
        "last word 0": packed([*words[:-1], 0]),
        "big-endian": struct.pack(f">{len(words)}I", *words),
        "version 2": packed([words[0], 0x00020000, *words[2:]]),
        "bound 0": packed([*words[:3], 0, *words[4:]]),
        "bound huge": packed([*words[:3], 0xFFFFFFFF, *words[4:]]),
        "bound too small": packed([*words[:3], 6, *words[4:]]),
        "reserved word": packed([*words[:4], 1, *words[5:]]),
        "no memory model": module([op(17, 1), op(15, 5, 1, *text("a")), op(19, 2), op(33, 3, 2), *function()]),
        "no entry point": module([op(17, 1), op(14, 0, 1), op(19, 2), op(33, 3, 2), *function()]),
        "entry point is no function": module([op(14, 0, 1), op(15, 5, 2, *text("a")), op(19, 2), op(33, 3, 2), *function()]),
        "name not terminated": module([op(14, 0, 1), op(15, 5, 1, 0x61616161), op(19, 2), op(33, 3, 2), *function()]),
        "undefined type": compute(declarations=[op(23, 20, 77, 3)]),
        "undefined operand": compute(body=[op(128, 5, 20, 21, 21)]),
        "defined twice": compute(declarations=[op(19, 2)]),
        "id 0": compute(declarations=[op(22, 0, 64)]),
        "too short": compute(declarations=[op(21, 20)]),
        "function in function": compute(body=[op(54, 2, 30, 0, 3)]),
        "label in block": compute(body=[op(248, 30)]),
        "two ends of a block": compute(body=[op(253)]),
        "instruction after the end": compute() + struct.pack("<4I", *op(61, 6, 50, 2)),
    }


def function() -> list[tuple[int, ...]]:
    return [op(54, 2, 1, 0, 3), op(248, 4), op(253), op(56)]


@pytest.mark.spec("AL-02")
@pytest.mark.parametrize("name", damaged())
def test_damaged_modules_are_refused(name: str) -> None:
    inspect_module(GOOD)
    with pytest.raises(DamagedInputError):
        inspect_module(damaged()[name])


@pytest.mark.spec("AL-02")
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changed_words_give_a_description_or_the_documented_error(data: st.DataObject) -> None:
    code = bytearray(compute(**buffer(), body=[op(65, 24, 30, 23, 25, 25), op(6035, 6, 31, 30, 26, 25, 27)]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(code) // 4 - 1)) * 4
        code[at : at + 4] = struct.pack("<I", data.draw(st.integers(0, 80) | st.integers(0, 2**32 - 1)))
    try:
        info = inspect_module(bytes(code))
    except DamagedInputError:
        return
    for entry in info.entry_points:
        info.workgroup_size(entry, {})
        info.workgroup_bytes(entry, {})


@pytest.mark.spec("AL-02")
@given(st.binary(max_size=200))
def test_any_bytes_behind_a_header(tail: bytes) -> None:
    with pytest.raises(DamagedInputError):
        inspect_module(GOOD[:20] + tail)


@pytest.mark.spec("AL-02")
def test_types_nested_beyond_reason_end_quickly() -> None:
    deep = [op(43, 5, 8, 65535), op(28, 10, 6, 8)]
    deep += [op(28, 11 + i, 10 + i, 8) for i in range(3000)]
    deep += [op(32, 9, WORKGROUP, 3010), op(59, 9, 7, WORKGROUP)]
    code = bytearray(compute(declarations=deep, body=[op(61, 3010, 3500, 7)]))
    code[12:16] = struct.pack("<I", 4000)
    start = time.monotonic()
    info = inspect_module(bytes(code))
    assert info.workgroup_bytes(info.entry_points[0], {}) is None
    assert time.monotonic() - start < 1


@pytest.mark.spec("AL-02")
def test_constants_that_multiply_their_evaluations_end_quickly() -> None:
    # each is the sum of the one before with itself: 2**60 sums if none were remembered
    chain = [op(50, 5, 10, 1), *(op(52, 5, 11 + i, 128, 10 + i, 10 + i) for i in range(60))]
    code = compute(local_size=(), modes=[op(331, 1, 38, 70, 10, 10)], declarations=chain)
    start = time.monotonic()
    info = inspect_module(code)
    assert info.workgroup_size(info.entry_points[0], {}) == (2**60 & 0xFFFFFFFF, 1, 1)
    assert time.monotonic() - start < 1


@pytest.mark.spec("AL-02")
@pytest.mark.parametrize("declaration", [op(21, 20, 0xFFFFFFFF, 0), op(22, 20, 0xFFFFFFFF), op(23, 20, 6, 0)])
def test_types_with_absurd_widths_have_no_size(declaration: tuple[int, ...]) -> None:
    declarations = [declaration, op(28, 21, 20, 24), op(43, 5, 24, 4), op(32, 22, WORKGROUP, 21), op(59, 22, 23, WORKGROUP)]
    info = inspect_module(compute(declarations=declarations, body=[op(61, 21, 30, 23)]))
    assert info.workgroup_bytes(info.entry_points[0], {}) is None


@pytest.mark.skipif(not REAL, reason="the shared SPIR-V modules are not here")
@pytest.mark.skipif(shutil.which("spirv-dis") is None, reason="spirv-dis (spirv-tools) is not installed")
@pytest.mark.parametrize("path", REAL, ids=lambda p: p.name)
def test_real_modules_agree_with_spirv_dis(path: Path) -> None:
    listing = subprocess.run(["spirv-dis", "--raw-id", str(path)], capture_output=True, text=True, check=True).stdout
    info = inspect_module(path.read_bytes())
    assert {CAPABILITY_NAMES[c] for c in info.capabilities} == set(re.findall(r"OpCapability (\w+)", listing))
    assert list(info.extensions) == re.findall(r'OpExtension "(.*)"', listing)
    assert list(info.extended_instruction_sets) == re.findall(r'OpExtInstImport "(.*)"', listing)
    assert [e.name for e in info.entry_points] == re.findall(r'OpEntryPoint \w+ %\d+ "(.*?)"', listing)
    sets = dict(re.findall(r"OpDecorate %(\d+) DescriptorSet (\d+)", listing))
    bindings = dict(re.findall(r"OpDecorate %(\d+) Binding (\d+)", listing))
    body = listing[listing.index("OpFunction ") :]
    used = {i for i in sets if re.search(rf"%{i}\b", body)}
    expected = sorted((int(sets[i]), int(bindings[i])) for i in used)
    assert [(b.set, b.binding) for b in info.entry_points[0].bindings] == expected
    if size := re.search(r"LocalSize (\d+) (\d+) (\d+)", listing):
        assert info.workgroup_size(info.entry_points[0], {}) == tuple(map(int, size.groups()))


@pytest.mark.skipif(not REAL, reason="the shared SPIR-V modules are not here")
@pytest.mark.parametrize("path", REAL, ids=lambda p: p.name)
def test_a_real_module_with_its_last_word_replaced_is_refused(path: Path) -> None:
    code = path.read_bytes()
    with pytest.raises(DamagedInputError):
        inspect_module(code[:-4] + struct.pack("<I", 0x80000001))
