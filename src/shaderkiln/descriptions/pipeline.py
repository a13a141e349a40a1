"""A pipeline together with everything that it refers to: what a compiler needs, and nothing about where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from shaderkiln.descriptions.unmet import Unmet, text_of
from shaderkiln.errors import InvalidArgumentError, UnsupportedError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.vulkan_registry.handles import Handle
from shaderkiln.vulkan_registry.structures import (
    ComputePipelineCreateInfo,
    GraphicsPipelineCreateInfo,
    RayTracingPipelineCreateInfoKHR,
)

PipelineKind: TypeAlias = Literal["graphics", "compute", "raytracing"]
PipelineCreateInfo: TypeAlias = GraphicsPipelineCreateInfo | ComputePipelineCreateInfo | RayTracingPipelineCreateInfoKHR
PIPELINE_KINDS: Final[Mapping[PipelineKind, type[PipelineCreateInfo]]] = {
    "graphics": GraphicsPipelineCreateInfo,
    "compute": ComputePipelineCreateInfo,
    "raytracing": RayTracingPipelineCreateInfoKHR,
}
"""Every kind of pipeline, with the structure that describes one of it."""
_KIND_OF: Final[Mapping[type, PipelineKind]] = {structure: kind for kind, structure in PIPELINE_KINDS.items()}


def pipeline_kind(create_info: object) -> PipelineKind:
    """The kind of pipeline that a structure describes; InvalidArgumentError if it describes none."""
    kind = _KIND_OF.get(type(create_info))
    if kind is None:
        raise InvalidArgumentError(f"{type(create_info).__name__} describes no pipeline")
    return kind


def has_shaders(pipeline: PipelineCreateInfo) -> bool:
    """Whether the pipeline has shaders of its own.

    Fixed-function parts of a graphics pipeline library have none; a pipeline that is linked from libraries has theirs, which are
    pipelines with object code of their own.
    """
    return not isinstance(pipeline, GraphicsPipelineCreateInfo) or bool(pipeline.stages)


class Application(Struct, frozen=True):
    """Who made the pipelines, for which API version, and the code-changing device features they were made with."""

    identity: ApplicationIdentity = field(default_factory=ApplicationIdentity)
    api_version: int = 0
    features: tuple[str, ...] = ()
    """``VkStructure.member`` of the robustness features that were enabled, sorted."""


class PipelineDescription(Struct, frozen=True):
    """One pipeline and every object that it reaches, dependencies before their users.

    ``objects`` maps each handle in ``create_info``, and in the objects themselves, to its description: samplers, set layouts,
    pipeline layouts, shader modules, render passes, and library or base pipelines.
    """

    name: str
    """The source's own name: for a Fossilize archive the hash as 16 hexadecimal digits."""
    kind: PipelineKind
    create_info: PipelineCreateInfo
    objects: Mapping[Handle, Struct]


class UnsupportedPipelineError(UnsupportedError):
    """A pipeline of a source that has no form in Vulkan here; ``reasons`` has every reason.

    It is kept where it is and reported. ``object_key`` is its key where that is known.
    """

    def __init__(self, reasons: Iterable[Unmet], object_key: bytes = b"") -> None:
        self.reasons = tuple(reasons)
        self.object_key = object_key
        super().__init__(text_of(self.reasons))
