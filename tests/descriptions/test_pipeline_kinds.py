"""The table of kinds of pipelines, and what is keyed by it."""

from __future__ import annotations

from typing import get_args

import pytest

from shaderkiln.descriptions.pipeline import PIPELINE_KINDS, PipelineCreateInfo, PipelineKind, pipeline_kind
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.sources.capture import KIND_TAGS
from shaderkiln.vulkan_registry import structures as vk


def test_every_kind_is_in_every_table() -> None:
    assert tuple(PIPELINE_KINDS) == get_args(PipelineKind)
    assert tuple(PIPELINE_KINDS.values()) == get_args(PipelineCreateInfo)
    assert {kind: int(tag) for kind, tag in KIND_TAGS.items()} == {"graphics": 6, "compute": 7, "raytracing": 9}


def test_the_structure_says_the_kind() -> None:
    stage = vk.PipelineShaderStageCreateInfo(stage=0x20, name="main")
    assert pipeline_kind(vk.ComputePipelineCreateInfo(stage=stage)) == "compute"
    with pytest.raises(InvalidArgumentError, match="PipelineShaderStageCreateInfo describes no pipeline"):
        pipeline_kind(stage)
