"""The pipelines that objects consist of, and what makes them of descs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from shaderkiln.compilers.value_keys import PIPELINE_BINARY
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import StateObjectDesc
from shaderkiln.descriptions.pipeline import Application, PipelineDescription
from shaderkiln.keys import ObjectKey


class Lowering(Protocol):
    """Turns descs into the pipelines that the driver creates. May be used by several threads.

    What it cannot express raises UnsupportedPipelineError with every reason.
    """

    application: Application
    """API version and code-changing features of every pipeline that it makes."""

    def parts(
        self, desc: PipelineStateStream | StateObjectDesc, parents: Sequence[StateObjectDesc] = ()
    ) -> tuple[Callable[[bool], PipelineDescription], ...]:
        """For each pipeline of an object, in the order of ``part_key``, what gives it with shaders (True) or without their code.

        ``parents`` are what an addition grows, nearest first.
        """

    def close(self) -> None: ...


class Part:
    """One pipeline of an object, under the key that its group has.

    It is described when it is asked for: what is found needs no translated shaders where the driver does not.
    """

    __slots__ = ("_description", "_lower", "key")

    def __init__(self, key: ObjectKey, description: PipelineDescription | Callable[[bool], PipelineDescription]) -> None:
        """``description``, or what gives it with code or without (``VulkanLowering.parts``)."""
        self.key = key
        self._description: PipelineDescription | None = None
        self._lower: Callable[[bool], PipelineDescription]
        if isinstance(description, PipelineDescription):
            ready = self._description = description
            self._lower = lambda with_code: ready
        else:
            self._lower = description

    @property
    def description(self) -> PipelineDescription:
        """With the shaders. Raises as ``Lowering.parts`` says."""
        if self._description is None:
            self._description = self._lower(True)
        return self._description

    def for_loading(self, object_code_form: str) -> PipelineDescription:
        """What the driver needs beside object code: binaries take the place of shaders, a pipeline cache is found by them."""
        if self._description is not None or object_code_form != PIPELINE_BINARY:
            return self.description
        return self._lower(False)
