"""The generated C definitions against the C compiler and the Vulkan headers of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from shaderkiln.drivers.bindings import ffi
from shaderkiln.vulkan_registry import constants
from shaderkiln.vulkan_registry._device import FEATURES, PROPERTIES
from shaderkiln.vulkan_registry._members import MEMBERS
from shaderkiln.vulkan_registry.structures import HEADER_VERSION

INCLUDE = os.environ.get("SHADERKILN_VULKAN_INCLUDE", "")
"""A folder with vulkan/vulkan_core.h in the place of the system's."""
ALSO_USED = """
VkApplicationInfo VkInstanceCreateInfo VkDeviceCreateInfo VkDeviceQueueCreateInfo VkExtensionProperties VkPhysicalDeviceFeatures
VkPhysicalDeviceFeatures2 VkPhysicalDeviceProperties VkPhysicalDeviceProperties2 VkPhysicalDeviceLimits
VkPhysicalDeviceSparseProperties VkPipelineCacheCreateInfo VkPipelineCreationFeedback VkPipelineCreationFeedbackCreateInfo
VkPipelineBinaryInfoKHR VkPipelineBinaryCreateInfoKHR VkPipelineBinaryKeyKHR VkPipelineBinaryDataKHR
VkPipelineBinaryKeysAndDataKHR VkPipelineBinaryHandlesInfoKHR VkPipelineBinaryDataInfoKHR VkReleaseCapturedPipelineDataInfoKHR
VkDevicePipelineBinaryInternalCacheControlKHR VkPipelineInfoKHR VkPipelineExecutableInfoKHR VkPipelineExecutablePropertiesKHR
VkPipelineExecutableStatisticKHR VkPipelineExecutableInternalRepresentationKHR
"""


@pytest.fixture(scope="module")
def compiler() -> list[str]:
    found = next((name for name in ("gcc", "cc", "clang") if shutil.which(name)), None)
    if found is None:
        pytest.skip("no C compiler")
    command = [found, *([f"-I{INCLUDE}"] if INCLUDE else []), "-x", "c", "-"]
    check = subprocess.run([*command, "-fsyntax-only"], input=b"#include <vulkan/vulkan_core.h>\n", stderr=subprocess.PIPE)
    if check.returncode:
        pytest.skip("no Vulkan headers (libvulkan-dev)")
    return command


@pytest.fixture(scope="module")
def header(compiler: list[str]) -> str:
    """The header as the compiler sees it."""
    source = b"#include <vulkan/vulkan_core.h>\n"
    return subprocess.run([*compiler, "-E", "-P"], input=source, check=True, stdout=subprocess.PIPE).stdout.decode()


def structures_of(header: str) -> dict[str, list[str]]:
    """The members of every structure and union."""
    bodies = re.findall(r"typedef (?:struct|union) (\w+) \{(.*?)\} \w+;", header, re.DOTALL)
    return {
        name: [re.sub(r"(?:\[\w+\])+$", "", m.strip()).split()[-1].lstrip("*") for m in body.split(";") if m.strip()]
        for name, body in bodies
    }


def header_version(compiler: list[str]) -> int:
    source = b"#include <vulkan/vulkan_core.h>\n"
    macros = subprocess.run([*compiler, "-E", "-dM"], input=source, check=True, stdout=subprocess.PIPE).stdout.decode()
    (found,) = re.findall(r"#define VK_HEADER_VERSION (\d+)", macros)
    return int(found)


def numbers(compiler: list[str], expressions: list[str], folder: Path) -> list[int]:
    """What a C program says that these expressions are."""
    program = folder / "program"
    lines = [f'    printf("%lld\\n", (long long)({expression}));' for expression in expressions]
    source = "\n".join(
        ["#include <stddef.h>", "#include <stdio.h>", "#include <vulkan/vulkan_core.h>", "int main(void) {", *lines, "}"]
    )
    subprocess.run([*compiler, "-O0", "-o", str(program)], input=source.encode(), check=True)
    return [int(line) for line in subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout.split()]


def test_structures_have_the_sizes_and_offsets_of_c(compiler: list[str], header: str, tmp_path: Path) -> None:
    names = sorted({c_name for c_name, _, _ in MEMBERS.values()} | set(FEATURES) | set(PROPERTIES) | set(ALSO_USED.split()))
    bodies = structures_of(header)
    compared = [name for name in names if name in bodies]
    if header_version(compiler) < HEADER_VERSION:
        # A few extensions of vendors have got members since.
        compared = [name for name in compared if [m for m, _ in ffi.typeof(name).fields] == bodies[name]]
    assert len(compared) > 300
    assert {"VkGraphicsPipelineCreateInfo", "VkPhysicalDeviceLimits", "VkPipelineShaderStageCreateInfo"} <= set(compared)
    expressions, ours = [], []
    for name in compared:
        expressions.append(f"sizeof({name})")
        ours.append(ffi.sizeof(name))
        for member, field in ffi.typeof(name).fields:
            expressions += [f"offsetof({name}, {member})", f"sizeof((({name} *)0)->{member})"]
            ours += [field.offset, ffi.sizeof(field.type)]
    theirs = numbers(compiler, expressions, tmp_path)
    assert len(theirs) == len(ours)
    different = [(e, o, t) for e, o, t in zip(expressions, ours, theirs, strict=True) if o != t]
    assert different == []


def test_no_member_is_left_out(header: str) -> None:
    bodies = structures_of(header)
    for name, _, fields in MEMBERS.values():
        if name in bodies:
            assert [member for member, _ in ffi.typeof(name).fields] == bodies[name]
            assert {c_name for _, _, c_name, _, _ in fields} <= set(bodies[name])


def test_constants_are_those_of_c(compiler: list[str], header: str, tmp_path: Path) -> None:
    known = set(re.findall(r"\b(VK_\w+) =", header))
    names = sorted(name for name in dir(constants) if name.startswith("VK_") and name in known)
    assert len(names) > 800
    theirs = numbers(compiler, names, tmp_path)
    assert [(n, getattr(constants, n), t) for n, t in zip(names, theirs, strict=True) if getattr(constants, n) != t] == []


def test_structure_types_are_those_of_c(compiler: list[str], header: str, tmp_path: Path) -> None:
    known = set(re.findall(r"\b(VK_STRUCTURE_TYPE_\w+) =", header))
    rows = [(c_name, number) for c_name, number, _ in MEMBERS.values() if number or c_name == "VkApplicationInfo"]
    rows += [(c_name, row[0]) for table in (FEATURES, PROPERTIES) for c_name, row in table.items()]
    by_letters = {name.removeprefix("VK_STRUCTURE_TYPE_").replace("_", ""): name for name in known}
    pairs = [(by_letters[c[2:].upper()], number) for c, number in rows if c[2:].upper() in by_letters]
    assert len(pairs) > 250
    theirs = numbers(compiler, [name for name, _ in pairs], tmp_path)
    assert [(name, ours, t) for (name, ours), t in zip(pairs, theirs, strict=True) if ours != t] == []
