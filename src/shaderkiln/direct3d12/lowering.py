"""Descs as pipelines for a device's driver: the lowering of ``descriptions.direct3d12``, shared by threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from shaderkiln.descriptions.direct3d12.lowering import direct3d12_application, lower_pipeline_state
from shaderkiln.descriptions.direct3d12.lowering_shaders import ShaderTranslations
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import StateObjectDesc
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.errors import UnsupportedError


class DescLowering:
    """Translates shaders with one translator process, which is started when the first shader needs it."""

    application = direct3d12_application()

    def __init__(self) -> None:
        self._translations = ShaderTranslations()
        self._lock = threading.Lock()

    def pipeline_state(self, stream: PipelineStateStream) -> PipelineDescription:
        """The pipeline of a stream. Raises as ``lower_pipeline_state``."""
        with self._lock:
            return lower_pipeline_state(stream, self._translations)

    def state_object(self, desc: StateObjectDesc, parents: Sequence[StateObjectDesc] = ()) -> tuple[PipelineDescription, ...]:
        """The pipelines of a state object, or of an addition to ``parents``, the nearest first."""
        raise UnsupportedError("state objects cannot be created yet")

    def close(self) -> None:
        """End the translator's process."""
        with self._lock:
            self._translations.close()
