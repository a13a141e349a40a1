"""Vulkan pipeline caches and pipeline binaries for Python programs, on real drivers and without a GPU.

import shaderkiln.vulkan as vk

with vk.open_device("amd-navi31") as device:
    cache = device.create_pipeline_cache(initial_data=blob)
    pipelines = device.create_graphics_pipelines(cache, descriptions)
    data, complete = cache.get_data(cache.get_data())
"""

from shaderkiln.drivers.protocol import Feedback
from shaderkiln.vulkan.allocation import AllocationCallbacks
from shaderkiln.vulkan.device import VulkanDevice, open_device
from shaderkiln.vulkan.initial_data import Reason, Rejection
from shaderkiln.vulkan.pipeline_cache import EXTERNALLY_SYNCHRONIZED, INTERNALLY_SYNCHRONIZED_MERGE, PipelineCache
from shaderkiln.vulkan.pipelines import COMPILE_REQUIRED, SUCCESS, Pipeline, PipelineBinary
from shaderkiln.workers.shared_process import ProcessEndedError

__all__ = [
    "COMPILE_REQUIRED",
    "EXTERNALLY_SYNCHRONIZED",
    "INTERNALLY_SYNCHRONIZED_MERGE",
    "SUCCESS",
    "AllocationCallbacks",
    "Feedback",
    "Pipeline",
    "PipelineBinary",
    "PipelineCache",
    "ProcessEndedError",
    "Reason",
    "Rejection",
    "VulkanDevice",
    "open_device",
]
