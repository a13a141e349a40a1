"""The shaders of Direct3D 12 pipelines as SPIR-V, translated once each and kept for the pipelines that share them."""

from __future__ import annotations

import hashlib
import struct
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import TracebackType

from shaderkiln.descriptions.direct3d12.binding_layout import binding_layout
from shaderkiln.descriptions.requirements_spirv import EXECUTION_MODELS
from shaderkiln.errors import DamagedInputError, InvalidArgumentError, NotFoundError
from shaderkiln.formats import dxbc, root_signature
from shaderkiln.formats.spirv import EntryPoint
from shaderkiln.lowering.layout import RootLayout
from shaderkiln.shaders.messages import StreamOutputElement, TargetOptions
from shaderkiln.shaders.translator import NotTranslatable, Translation, Translator, accept_spirv, prepare

KEPT_BYTES = 32 << 20
"""SPIR-V that is kept."""
STAGES = {"vs": 0x1, "hs": 0x2, "ds": 0x4, "gs": 0x8, "ps": 0x10, "cs": 0x20, "as": 0x40, "ms": 0x80}
"""VkShaderStageFlagBits of the shaders of a pipeline state."""
KINDS = {
    "vs": dxbc.ShaderKind.VERTEX,
    "hs": dxbc.ShaderKind.HULL,
    "ds": dxbc.ShaderKind.DOMAIN,
    "gs": dxbc.ShaderKind.GEOMETRY,
    "ps": dxbc.ShaderKind.PIXEL,
    "cs": dxbc.ShaderKind.COMPUTE,
    "as": dxbc.ShaderKind.AMPLIFICATION,
    "ms": dxbc.ShaderKind.MESH,
}


@dataclass(frozen=True, slots=True)
class StreamOutput:
    """What the last stage before the rasterizer writes to buffers."""

    elements: tuple[StreamOutputElement, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LoweredShader:
    """A shader of a pipeline as SPIR-V."""

    spirv: bytes
    """Empty for one that was not translated because its form decides nothing else of the pipeline."""
    entry: EntryPoint
    was_spirv: bool


class ShaderTranslations:
    """Translates with one translator process, which is started at the first shader that is no SPIR-V.

    A context manager. Everything that it does is decided by its arguments, so it may serve any number of pipelines, and several
    threads.
    """

    def __init__(self, translator: Translator | None = None) -> None:
        self._given = translator
        self._own: Translator | None = None
        self._kept: OrderedDict[bytes, Translation | NotTranslatable] = OrderedDict()
        self._bytes = 0
        self._roots: OrderedDict[bytes, RootLayout] = OrderedDict()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Ends the translator's process if it was started here."""
        with self._lock:
            own, self._own = self._own, None
        if own is not None:
            own.close()

    def __enter__(self) -> ShaderTranslations:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    @property
    def translator(self) -> Translator:
        """Raises NotFoundError where there is no translator package."""
        if self._given is not None:
            return self._given
        with self._lock:
            if self._own is None:
                self._own = Translator()
            return self._own

    def root(self, blob: bytes, *, has_direct3d_shaders: bool, translates: bool = True) -> RootLayout:
        """A root signature with its layout; ``translates``: there are shaders to be translated for it.

        Raises DamagedInputError, InvalidArgumentError for a local root signature.
        """
        arrays = self._has_arrays(translates) if has_direct3d_shaders else True
        key = hashlib.sha256(blob).digest() + bytes((arrays,))
        with self._lock:
            found = self._roots.get(key)
        if found is None:
            signature = root_signature.parse(blob)
            found = RootLayout(signature, binding_layout(signature, arrays=arrays))
            with self._lock:
                self._roots[key] = found
                if len(self._roots) > 256:
                    self._roots.popitem(last=False)
        return found

    def _has_arrays(self, translates: bool) -> bool:
        try:
            return self.translator.has_arrays
        except NotFoundError:
            if translates:
                raise
            return True  # as every translator of today

    def form_of(self, stage: str, code: bytes, entry_point: str | None = None) -> LoweredShader | NotTranslatable:
        """A shader without its code, where all else is known without translating it. Raises as ``shader``."""
        if not dxbc.is_container(code):
            return self.shader(stage, code, None, TargetOptions(), StreamOutput(), entry_point)
        return LoweredShader(b"", _untranslated(EXECUTION_MODELS[STAGES[stage]][0]), False)

    def shader(
        self,
        stage: str,
        code: bytes,
        root: RootLayout | None,
        options: TargetOptions,
        stream_output: StreamOutput,
        entry_point: str | None = None,
    ) -> LoweredShader | NotTranslatable:
        """The shader of one stage; of SPIR-V with several entry points the named one, or the first of the stage.

        Raises DamagedInputError for bytecode that is none or damaged, InvalidArgumentError for that of another stage.
        """
        made = self._translation(stage, code, root, options, stream_output)
        if isinstance(made, NotTranslatable):
            return made
        was_spirv = not dxbc.is_container(code)
        models = EXECUTION_MODELS[STAGES[stage]]
        wanted = (entry_point or "") if was_spirv else made.entry_point
        for entry in made.info.entry_points:
            if entry.execution_model in models and wanted in ("", entry.name):
                return LoweredShader(made.spirv, entry, was_spirv)
        what = f"entry point {wanted!r}" if wanted else "entry point"
        raise InvalidArgumentError(f"{stage}: the shader has no {what} for this stage")

    def _translation(
        self, stage: str, code: bytes, root: RootLayout | None, options: TargetOptions, stream_output: StreamOutput
    ) -> Translation | NotTranslatable:
        if not dxbc.is_container(code):
            key = hashlib.sha256(code).digest()
            if (kept := self._kept_one(key)) is not None:
                return kept
            made = accept_spirv(code)
        else:
            layout = None if root is None else root.bindings
            parts = repr((stage, layout, options, stream_output)).encode()
            key = hashlib.sha256(hashlib.sha256(code).digest() + parts).digest()
            if (kept := self._kept_one(key)) is not None:
                return kept
            program = dxbc.parse(code).program
            if program is not None and program.kind is not KINDS[stage]:
                raise InvalidArgumentError(f"{stage}: the shader is of the kind {program.kind.name}")
            request = prepare(
                code, layout, options, stream_output=stream_output.elements, stream_output_strides=stream_output.strides
            )
            made = request if isinstance(request, NotTranslatable) else self.translator.translate(request)
        self._keep(key, made)
        return made

    def _kept_one(self, key: bytes) -> Translation | NotTranslatable | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
            return kept

    def _keep(self, key: bytes, made: Translation | NotTranslatable) -> None:
        with self._lock:
            if key not in self._kept:  # another thread may have translated it meanwhile
                self._kept[key] = made
                self._bytes += _size(made)
            while self._bytes > KEPT_BYTES and len(self._kept) > 1:
                self._bytes -= _size(self._kept.popitem(last=False)[1])


@cache
def _untranslated(execution_model: int) -> EntryPoint:
    """What is said of an entry point where nothing depends on it."""
    name = TargetOptions().entry_point
    return EntryPoint(execution_model, name, (), {}, (), frozenset(), frozenset(), False, False, (), (), 0, ())


def _size(made: Translation | NotTranslatable) -> int:
    return 4096 + (len(made.spirv) * 8 if isinstance(made, Translation) else len(made.messages))


def own_root_signature(codes: Sequence[bytes]) -> bytes | None:
    """The root signature that a shader brings in its container (part RTS0): that of the first that has one."""
    for code in codes:
        if dxbc.is_container(code) and (part := dxbc.parse(code).root_signature) is not None:
            return part
    return None


_DCL_INPUT_CONTROL_POINT_COUNT = 147
_HULL_INFO = struct.Struct("<II")


def input_control_points(code: bytes) -> int | None:
    """How many control points a hull shader takes; None where it does not say. Raises DamagedInputError."""
    if not dxbc.is_container(code):
        return None
    container = dxbc.parse(code)
    if (tokens := container.part("SHEX", "SHDR")) is not None:
        return _declared_control_points(tokens)
    validation = container.part("PSV0")
    if validation is None or len(validation) < 8:
        return None
    return int(_HULL_INFO.unpack_from(validation)[1])


def _declared_control_points(tokens: bytes) -> int | None:
    """From the declaration dcl_input_control_point_count: opcode in bits 0 to 10, count from bit 11, length in bits 24 to 30."""
    words = struct.unpack(f"<{len(tokens) // 4}I", tokens[: len(tokens) // 4 * 4])
    at = 2
    while at < len(words):
        opcode, length = words[at] & 0x7FF, words[at] >> 24 & 0x7F
        if opcode == _DCL_INPUT_CONTROL_POINT_COUNT:
            return int(words[at] >> 11 & 0x3F)
        if opcode == 53 and at + 1 < len(words):  # custom data has its length in a word of its own
            length = words[at + 1]
        if length == 0:
            raise DamagedInputError("hull shader: an instruction of no length")
        at += length
    return None
