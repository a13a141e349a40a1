"""What comes of creating pipelines."""

from __future__ import annotations

from dataclasses import dataclass

from shaderkiln.descriptions.pipeline import PipelineKind
from shaderkiln.drivers.protocol import Feedback

SUCCESS = "VK_SUCCESS"
COMPILE_REQUIRED = "VK_PIPELINE_COMPILE_REQUIRED"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The outcome for one create info. True in a condition if the pipeline was created.

    The driver's own pipeline is destroyed at once: there is nothing to run it on. What stays is what it added to the cache.
    """

    name: str
    kind: PipelineKind
    result: str
    """VkResult name. VK_PIPELINE_COMPILE_REQUIRED: not in the cache, and compiling was forbidden (VC-14)."""
    error: str = ""
    """What the driver or its process said, where ``result`` is an error."""
    seconds: float = 0.0
    """Time of the driver's creation call alone."""
    hit: bool | None = None
    """Whether it was created without compiling, proved by a call with compiling forbidden; None where the driver cannot forbid
    it, and without a cache."""
    feedback: Feedback | None = None
    """The driver's VkPipelineCreationFeedback; None where it gave none that it calls valid."""
    stage_feedback: tuple[Feedback | None, ...] = ()
    """The same for each stage, in the order of the create info."""

    def __bool__(self) -> bool:
        return self.result == SUCCESS


@dataclass(frozen=True, slots=True)
class PipelineBinary:
    """A VkPipelineBinaryKHR as data (VC-15)."""

    key: bytes
    """The driver's key: equal keys, equal data."""
    data: bytes
    checksum: bytes
    """xxh3_128 of the data: what is damaged is not given to a driver."""
    global_key: bytes
    """vkGetPipelineKeyKHR without create info of the device that made it; drivers do not check that themselves."""


def checksum(data: bytes) -> bytes:
    """The checksum of a pipeline binary's data: xxh3_128, 16 bytes."""
    from xxhash import xxh3_128_digest

    return xxh3_128_digest(data)
