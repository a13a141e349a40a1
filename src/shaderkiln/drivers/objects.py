"""The objects that pipelines refer to: kept as descriptions, made when first used, destroyed together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from shaderkiln.drivers import marshal
from shaderkiln.drivers.bindings import ffi
from shaderkiln.drivers.logical_device import LogicalDevice
from shaderkiln.drivers.physical_device import check
from shaderkiln.errors import InvalidArgumentError, NotFoundError
from shaderkiln.vulkan_registry.handles import Handle
from shaderkiln.vulkan_registry.structures import PipelineHandle, RenderPassCreateInfo2

_MADE_HERE = ("Sampler", "SamplerYcbcrConversion", "DescriptorSetLayout", "PipelineLayout", "ShaderModule", "RenderPass")

PipelineMaker = Callable[[Struct, int], int]


class Objects:
    """Vulkan objects by the handles of their descriptions.

    ``make_pipeline`` creates a library or base pipeline from its description with additional create flags.
    """

    def __init__(self, device: LogicalDevice, make_pipeline: PipelineMaker) -> None:
        self._device = device
        self._make_pipeline = make_pipeline
        self._descriptions: dict[tuple[str, int], Struct] = {}
        self._ambiguous: set[tuple[str, int]] = set()
        self._made: dict[tuple[str, int, int], int] = {}
        self._in_hand: set[tuple[str, int]] = set()

    def define(self, kind: str, handle: int, description: Struct) -> None:
        """Remember what the handle means. A second, different meaning makes every use of the handle an error."""
        key = (kind, handle)
        known = self._descriptions.setdefault(key, description)
        if known is not description and known != description:
            self._ambiguous.add(key)

    def forget(self) -> None:
        """Destroy every object, users before what they use, and forget all descriptions."""
        commands, device = self._device.commands, self._device.handle
        while self._made:
            (kind, _, _), value = self._made.popitem()
            getattr(commands, f"vkDestroy{kind.removesuffix('Handle')}")(device, value, ffi.NULL)
        self._descriptions.clear()
        self._ambiguous.clear()

    def description(self, handle: Handle) -> Struct:
        key = (type(handle).__name__, handle.value)
        if key in self._ambiguous:
            raise InvalidArgumentError(f"{handle!r} was defined twice with different descriptions")
        try:
            return self._descriptions[key]
        except KeyError:
            raise NotFoundError(f"{handle!r} is not defined") from None

    def resolve(self, handle: Handle, flags: int = 0) -> int:
        """The Vulkan object; ``flags`` are additional create flags where it is a pipeline.

        Raises ``DriverError`` with the driver's answer, ``NotFoundError`` for an unknown handle, ``InvalidArgumentError`` for
        an object that refers to itself or was defined twice.
        """
        kind = type(handle).__name__
        key = (kind, handle.value, flags)
        value = self._made.get(key)
        if value is not None:
            return value
        description = self.description(handle)
        if key[:2] in self._in_hand:
            raise InvalidArgumentError(f"{handle!r} refers to itself")
        self._in_hand.add(key[:2])
        try:
            value = (
                self._make_pipeline(description, flags) if kind == PipelineHandle.__name__ else self._make(kind, description)
            )
        finally:
            self._in_hand.discard(key[:2])
        self._made[key] = value
        return value

    def _make(self, kind: str, description: Struct) -> int:
        name = kind.removesuffix("Handle")
        if name not in _MADE_HERE:
            raise InvalidArgumentError(f"objects of kind {kind} cannot be made")
        command = f"vkCreate{name}" + ("2" if type(description) is RenderPassCreateInfo2 else "")
        call = marshal.Call(self.resolve)
        info = marshal.structure(description, call)
        created: Any = ffi.new("uint64_t *")
        check(getattr(self._device.commands, command)(self._device.handle, info, ffi.NULL, created), command)
        return int(created[0])
