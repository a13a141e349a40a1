"""Keys and value types."""

from __future__ import annotations

import pytest

from shaderkiln.keys import ValueType


@pytest.mark.spec("EP-14")
def test_value_types_have_the_numbers_and_flags_of_the_specification() -> None:
    assert {type.name: (int(type), type.flag) for type in ValueType} == {
        "OBJECT_CODE": (0, 1),
        "METADATA": (1, 2),
        "DEBUG_PDB": (2, 4),
        "PERFORMANCE_DATA": (3, 8),
    }


@pytest.mark.spec("EP-14")
def test_other_numbers_are_no_value_types() -> None:
    for number in (-1, 4, 1 << 32):
        with pytest.raises(ValueError, match="is not a valid ValueType"):
            ValueType(number)
