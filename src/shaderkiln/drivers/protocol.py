"""Messages between a job and a driver worker.

One worker serves one device of one driver build for one source of descriptions. Requests are answered in order, one answer
each; ``Define`` and ``Forget`` have none. Only the answers to ``Create`` come as they are ready where ``Open.threads`` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from shaderkiln.capabilities import Capabilities
from shaderkiln.descriptions.pipeline import PipelineCreateInfo
from shaderkiln.drivers.frames import decode
from shaderkiln.errors import ShaderkilnError
from shaderkiln.vulkan_registry.structures import (
    DescriptorSetLayoutCreateInfo,
    PipelineLayoutCreateInfo,
    RenderPassCreateInfo,
    RenderPassCreateInfo2,
    SamplerCreateInfo,
    SamplerYcbcrConversionCreateInfo,
    ShaderModuleCreateInfo,
)

AnyObject: TypeAlias = (
    SamplerCreateInfo
    | SamplerYcbcrConversionCreateInfo
    | DescriptorSetLayoutCreateInfo
    | PipelineLayoutCreateInfo
    | ShaderModuleCreateInfo
    | RenderPassCreateInfo
    | RenderPassCreateInfo2
    | PipelineCreateInfo
)


class Open(Struct, frozen=True, tag=True):
    """Open the device with every feature that it has, but of the code-changing ones only ``features``."""

    features: tuple[str, ...] = ()
    """``VkStructure.member`` of each."""
    create_device: bool = True
    """False: report the capabilities only; the worker can be opened again."""
    device_index: int = 0
    """Position in the driver's own list of devices; ``DXGI_ERROR_NOT_FOUND`` past its end."""
    threads: int = 0
    """Threads that carry out ``Create`` side by side; 0: in turn with everything else."""


class Define(Struct, frozen=True, tag=True):
    """From now on this handle (of the class named ``kind``, for example ``ShaderModuleHandle``) means that object."""

    kind: str
    handle: int
    description: AnyObject


class Forget(Struct, frozen=True, tag=True):
    """Destroy and forget every defined object."""


class Compile(Struct, frozen=True, tag=True):
    """Create the pipeline by compiling; answer ``Compiled``."""

    request: int
    pipeline: PipelineCreateInfo
    keep: bool = True
    """False: do not capture object code (a plain compile, for measurements)."""
    as_cache: bool = False
    """Answer with the data of a VkPipelineCache, whatever form the driver's object code has."""


class Recreate(Struct, frozen=True, tag=True):
    """Create the pipeline from these values with compiling forbidden; answer ``Recreated``."""

    request: int
    pipeline: PipelineCreateInfo
    values: tuple[tuple[bytes, bytes], ...]
    """Value keys and object code, in the order of the group; none asks for a pipeline that must not be found."""


class Inspect(Struct, frozen=True, tag=True):
    """Compile once more with statistics and internal representations captured; answer ``Inspected``."""

    request: int
    pipeline: PipelineCreateInfo
    representations: bool = True


class CreateCache(Struct, frozen=True, tag=True):
    """Make a VkPipelineCache; from now on the number ``cache`` (not 0) means it. Answer ``Done``.

    Whose data it is, and that it is whole, must have been checked before: drivers take what they are given.
    """

    request: int
    cache: int
    data: bytes = b""
    flags: int = 0


class DestroyCache(Struct, frozen=True, tag=True):
    """Destroy the cache once nothing uses it; answer ``Done``."""

    request: int
    cache: int


class ReadCache(Struct, frozen=True, tag=True):
    """vkGetPipelineCacheData with a buffer of ``size`` bytes, or with none; answer ``CacheRead``."""

    request: int
    cache: int
    size: int | None = None
    whole: bool = False
    """All data in whatever size it has; ``size`` does not count."""


class MergeCaches(Struct, frozen=True, tag=True):
    """vkMergePipelineCaches; answer ``Done``. Nothing else may use the destination meanwhile."""

    request: int
    destination: int
    sources: tuple[int, ...]


class Create(Struct, frozen=True, tag=True):
    """Create the pipeline through a cache (0: none) and destroy it again; answer ``Created``.

    With a cache, compiling is forbidden in a first call, so that it is known whether there was a hit.
    """

    request: int
    pipeline: PipelineCreateInfo
    cache: int = 0
    compiling_forbidden: bool = False
    """VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT; the description's own flag for that does not count."""


class Opened(Struct, frozen=True, tag=True):
    """The device is open."""

    capabilities: Capabilities
    global_key: bytes
    """Empty where the driver has no pipeline binaries, or when no device was created."""
    seconds: float


class Compiled(Struct, frozen=True, tag=True):
    """The pipeline was created."""

    request: int
    values: tuple[tuple[bytes, bytes], ...]
    """Value keys and object code as the driver names and orders them. In the form ``pipeline-cache`` one value with the key
    b"", which the receiver names; none in the form ``none`` or where nothing was to be kept."""
    seconds: float
    """Time of the creation call alone."""
    feedback_hit: bool | None = None
    """VkPipelineCreationFeedback says that an application cache was hit; None where the driver gives no feedback (VC-14)."""
    feedback_seconds: float | None = None
    known: bool = False
    """The driver names the pipeline like one that this worker compiled before: its object code is given again."""


class Recreated(Struct, frozen=True, tag=True):
    """The answer to ``Recreate``: a hit only if the pipeline was created with compiling forbidden."""

    request: int
    hit: bool
    result: str
    """VkResult name of the creation call, ``VK_PIPELINE_COMPILE_REQUIRED`` on a miss."""
    seconds: float


class Done(Struct, frozen=True, tag=True):
    """The request was carried out."""

    request: int


class CacheRead(Struct, frozen=True, tag=True):
    """What vkGetPipelineCacheData gave."""

    request: int
    size: int
    """The size that the driver reports: of all data where no buffer was given, else of what was written."""
    data: bytes
    complete: bool
    """False: VK_INCOMPLETE."""


class Feedback(Struct, frozen=True):
    """VkPipelineCreationFeedback of a pipeline or a stage."""

    cache_hit: bool
    """VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT."""
    base_pipeline_acceleration: bool
    seconds: float


class Created(Struct, frozen=True, tag=True):
    """The answer to ``Create``: the driver took the call. A pipeline was created only where ``result`` is VK_SUCCESS."""

    request: int
    result: str
    """VkResult name: VK_SUCCESS, or VK_PIPELINE_COMPILE_REQUIRED where compiling was needed and forbidden."""
    seconds: float
    """Time of the creation call alone."""
    hit: bool | None = None
    """Whether it was made without compiling, by a call that forbids it; None where the driver cannot forbid it or there is no
    cache. What the driver's feedback says of hits is not to be relied on."""
    feedback: Feedback | None = None
    """None where the driver gives none or says that it is not valid; so for each of ``stages``, in the description's order."""
    stages: tuple[Feedback | None, ...] = ()


class Statistic(Struct, frozen=True):
    name: str
    description: str
    value: int | float | bool


class Representation(Struct, frozen=True):
    name: str
    description: str
    is_text: bool
    data: bytes


class Executable(Struct, frozen=True):
    """One executable of a pipeline (VK_KHR_pipeline_executable_properties)."""

    name: str
    description: str
    stages: int
    subgroup_size: int
    statistics: tuple[Statistic, ...]
    representations: tuple[Representation, ...]


class Inspected(Struct, frozen=True, tag=True):
    request: int
    executables: tuple[Executable, ...]


class Failed(Struct, frozen=True, tag=True):
    """The request could not be carried out; the worker goes on (except after ``Open``)."""

    request: int
    code: str
    """VkResult name or an error code of ``shaderkiln.errors``."""
    message: str


NumberedRequest: TypeAlias = Compile | Recreate | Inspect | CreateCache | DestroyCache | ReadCache | MergeCaches | Create
Request: TypeAlias = Open | Define | Forget | NumberedRequest
Answer: TypeAlias = Opened | Compiled | Recreated | Inspected | Done | CacheRead | Created | Failed


def decode_request(payload: bytes | bytearray | memoryview) -> Request:
    """The request in a frame's payload. Raises ``InvalidArgumentError`` for anything else."""
    return decode(Request, payload)  # type: ignore[no-any-return]


def decode_answer(payload: bytes | bytearray | memoryview) -> Answer:
    """The answer in a frame's payload. Raises ``InvalidArgumentError`` for anything else."""
    return decode(Answer, payload)  # type: ignore[no-any-return]


def guarded(request: int, work: Callable[[], Answer | None]) -> Answer | None:
    """The answer that ``work`` gives, ``Failed`` for any error."""
    try:
        return work()
    except ShaderkilnError as error:
        return Failed(request, error.code, str(error))
    except MemoryError:
        return Failed(request, "VK_ERROR_OUT_OF_HOST_MEMORY", "the worker has no memory left")
    except Exception as error:
        return Failed(request, "E_FAIL", f"{type(error).__name__}: {error}")
