"""Values of the Vulkan registry's extensions stand in the code by their generated names."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

import pytest

import shaderkiln
from shaderkiln.formats.fossilize_json import FEATURE_MEMBERS
from shaderkiln.vulkan_registry._device import FEATURES
from shaderkiln.vulkan_registry.constants import NAMES

PACKAGE = Path(shaderkiln.__file__).parent
FIRST, LAST = 1_000_000_000, 1_000_999_999
"""Values that extensions add lie here (Vulkan, "Assigning Extension Token Values")."""


def literals(source: str) -> list[tuple[int, int]]:
    """Line and value of every number of an extension."""
    return [
        (token.start[0], int(token.string, 0))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.NUMBER and token.string.replace("_", "").isdigit() and FIRST <= int(token.string, 0) <= LAST
    ]


def test_numbers_of_extensions_are_found() -> None:
    number = next(value for value in NAMES["VkDynamicState"] if value > FIRST)
    assert literals(f"a = 1\nb = {number}, 1.5, 0x10  # {number}\n") == [(2, number)]


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p.parent.name != "vulkan_registry")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_module_writes_them_as_numbers(path: Path) -> None:
    assert literals(path.read_text(encoding="utf-8")) == []


def test_feature_structures_of_captures_have_the_type_that_the_registry_gives_them() -> None:
    for s_type, (name, members) in FEATURE_MEMBERS.items():
        assert (s_type, members) == (FEATURES[name][0], FEATURES[name][3])
    # A capture of an application with this extension has its features under this type.
    assert FEATURE_MEMBERS[1000326001][0] == "VkPhysicalDeviceFragmentShadingRateEnumsFeaturesNV"
