"""What is unmet, as facts and in words."""

from __future__ import annotations

import msgspec
import pytest

from shaderkiln.descriptions.unmet import UNKNOWN, Unmet, text_of
from shaderkiln.jobs.verdicts import unsupported

FEATURE = Unmet("feature", "VkA.b", ("VkA.b", "VkC.d"), "false", "rasterization", "depthClampEnable")
LIMIT = Unmet("limit", "VkL.most", 9, 8, "layout", "descriptor sets", exceeds=True)
SENTENCE = Unmet("limit", "VkL.mask", 4, 3, "stage compute", "4 is not in 3")
STATE = Unmet(
    "direct3d12", "sample_desc.count", 3, "", "pipeline state", "sample_desc.count: Vulkan cannot rasterize 3 samples"
)


@pytest.mark.parametrize(
    ("unmet", "lacks", "text"),
    [
        (FEATURE, "VkA.b or VkC.d", "rasterization: depthClampEnable needs VkA.b or VkC.d, which the device does not have"),
        (LIMIT, "", "layout: descriptor sets 9 exceeds VkL.most = 8"),
        (SENTENCE, "", "stage compute: 4 is not in 3"),
        (STATE, "", "sample_desc.count: Vulkan cannot rasterize 3 samples"),
    ],
)
def test_the_sentence_says_the_facts(unmet: Unmet, lacks: str, text: str) -> None:
    assert (unmet.lacks, unmet.text) == (lacks, text)


def test_everything_unmet_in_one_line_has_each_thing_once() -> None:
    assert (
        text_of((SENTENCE, LIMIT, SENTENCE)) == "stage compute: 4 is not in 3; layout: descriptor sets 9 exceeds VkL.most = 8"
    )


def test_an_instruction_that_is_known_is_a_doubt_and_one_that_is_not_is_none() -> None:
    assert Unmet("instruction", "VkA.atomics", ("VkA.atomics",), "false", "stage", "an atomic").is_doubt
    assert not Unmet("instruction", "opcode 7", "known", UNKNOWN, "stage", "opcode 7 is not known here").is_doubt
    assert not FEATURE.is_doubt


def test_programs_get_the_facts_and_the_sentence_of_every_reason() -> None:
    verdict = unsupported("0123", "graphics", b"\x01", (FEATURE, LIMIT))
    assert msgspec.json.decode(msgspec.json.encode(verdict.record())) == {
        "pipeline": "0123",
        "kind": "graphics",
        "outcome": "unsupported",
        "object_key": "01",
        "message": f"{FEATURE.text}; {LIMIT.text}",
        "reasons": [
            {
                "kind": "feature", "name": "VkA.b", "needed": ["VkA.b", "VkC.d"], "available": "false",
                "where": "rasterization", "text": FEATURE.text,
            },
            {
                "kind": "limit", "name": "VkL.most", "needed": 9, "available": 8,
                "where": "layout", "text": LIMIT.text,
            },
        ],
    }  # fmt: skip


def test_a_version_of_vulkan_is_named_in_the_short_line_too() -> None:
    needed = ("Vulkan 1.2", "VK_KHR_x")
    verdict = unsupported("0123", "graphics", b"", (Unmet("structure", "VkX", needed, "Vulkan 1.1", "pipeline", "VkX"),))
    assert verdict.missing() == ("Vulkan 1.2 or VK_KHR_x",)
