"""Direct3D shaders to SPIR-V, by a process of its own that may crash, hang or eat memory without harm."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from shaderkiln.descriptions.direct3d12.binding_layout import BindingLayout
from shaderkiln.drivers.client import WorkerProcess
from shaderkiln.errors import DriverError, InvalidArgumentError, ShaderkilnError
from shaderkiln.formats import dxbc
from shaderkiln.formats.spirv import ModuleInfo, inspect_module
from shaderkiln.shaders.cleanup import without_duplicates
from shaderkiln.shaders.interface import STAGES, shader_interface
from shaderkiln.shaders.messages import (
    Answer,
    Done,
    Hello,
    ShaderInterface,
    StreamOutputElement,
    TargetOptions,
    TranslationRequest,
)
from shaderkiln.shaders.package import TranslatorPackage, TranslatorPackages
from shaderkiln.system.limits import TIME_SIGNAL

SECONDS = 30
"""Time limit of one translation."""
MEMORY = 2 << 30
"""Limit of the process's private data, in bytes."""

_START_SECONDS = 60.0
_LONGEST_SHADER = 64 << 20
_SOURCE_DXBC, _SOURCE_DXIL = 1, 4
_ARRAYS_FROM = (1, 3)


@dataclass(frozen=True, slots=True)
class Translation:
    """A shader as SPIR-V that has been inspected."""

    spirv: bytes
    info: ModuleInfo
    entry_point: str
    translator: str
    """What the library calls itself; empty where the shader was SPIR-V already."""
    messages: str = ""
    """Warnings of the translator."""
    seconds: float = 0.0
    """Time in the library."""


@dataclass(frozen=True, slots=True)
class NotTranslatable:
    """This shader cannot be translated here; it stays in its database."""

    reason: str
    """One sentence."""
    messages: str = ""
    """What the translator said, word for word."""


def prepare(
    code: bytes,
    layout: BindingLayout | None = None,
    options: TargetOptions | None = None,
    *,
    stream_output: Sequence[StreamOutputElement] = (),
    stream_output_strides: Sequence[int] = (),
    seconds: int = SECONDS,
) -> TranslationRequest | NotTranslatable:
    """The request for a shader that is a DXBC container, for a root signature's layout (none: it uses no resources).

    A container without digest (all zeros) is signed; one with a wrong digest is refused by the translator, as by Direct3D.
    Raises DamagedInputError for a damaged container.
    """
    container = dxbc.parse(code)
    program = container.program
    if program is None:
        return NotTranslatable("the container has no shader")
    if container.digest == dxbc.NO_DIGEST:
        code = dxbc.sign(code)
    if program.kind not in STAGES:
        return NotTranslatable(f"shaders of the kind {program.kind.name} cannot be translated")
    interface = ShaderInterface()
    if layout is not None:
        interface = shader_interface(layout, program.kind, stream_output, stream_output_strides)
    return TranslationRequest(code, program.is_dxil, interface, options or TargetOptions(), seconds)


class Translator:
    """One translator process, started at the first translation and again after it has ended. May be shared by threads.

    ``package``: the library; default: the one of the user, else the system's. Raises NotFoundError without any.
    """

    def __init__(self, package: TranslatorPackage | None = None, *, seconds: int = SECONDS, memory: int = MEMORY) -> None:
        self.package = package or TranslatorPackages().best()
        self._seconds = seconds
        self._memory = memory
        self._process: _Process | None = None
        self._lock = threading.Lock()
        self._hello: Hello | None = None

    @property
    def name(self) -> str:
        """What the library calls itself, with its version. Starts the process; raises DriverError where it cannot run."""
        return self._greeting().version

    @property
    def version(self) -> tuple[int, ...]:
        """For example (2, 1)."""
        return library_version(self.name)

    @property
    def has_dxil(self) -> bool:
        """Whether shaders of shader model 6 can be translated."""
        return _SOURCE_DXIL in self._greeting().sources

    @property
    def has_arrays(self) -> bool:
        """Whether a binding may have more than one descriptor (``binding_layout(arrays=…)``).

        Starts the process only where the package does not say its version.
        """
        said = re.split("[+~-]", self.package.version)[0] if self._hello is None else self._hello.version
        return (library_version(said) or self.version) >= _ARRAYS_FROM

    def translate_shader(
        self, code: bytes, layout: BindingLayout | None = None, options: TargetOptions | None = None
    ) -> Translation | NotTranslatable:
        """Translate the bytecode of a shader: a DXBC container, or SPIR-V, which is taken as it is after inspection.

        Raises DamagedInputError for bytecode that is neither, or damaged.
        """
        if not dxbc.is_container(code):
            return accept_spirv(code)
        request = prepare(code, layout, options, seconds=self._seconds)
        return request if isinstance(request, NotTranslatable) else self.translate(request)

    def translate(self, request: TranslationRequest) -> Translation | NotTranslatable:
        """The SPIR-V, or why there is none: the library refuses it, crashes on it, or takes too much time or memory.

        Raises DriverError where the process cannot be started.
        """
        if len(request.code) > _LONGEST_SHADER:
            raise InvalidArgumentError(f"a shader of {len(request.code)} bytes is too long")
        with self._lock:
            hello = self._started()
            if request.is_dxil and _SOURCE_DXIL not in hello.sources:
                return NotTranslatable(
                    f"{hello.version} cannot read DXIL (shader model 6); "
                    "`kiln drivers add vkd3d-shader --refresh` fetches a newer one"
                )
            try:
                done = self._ask(request)
            except _ProcessEnded as ended:
                return NotTranslatable(f"the translator {ended.how} on this shader", ended.output)
        return _checked(done, request, hello.version)

    def _ask(self, request: TranslationRequest) -> Done:
        process = self._process
        assert process is not None
        was_new = process.asked == 0
        try:
            return process.translate(request, request.seconds + 2.0)
        except _ProcessEnded as ended:
            self._process = None
            if was_new or not ended.crashed:
                raise
        # A shader before this one may have damaged the process, so this one is tried once more, alone.
        self._started()
        return self._ask(request)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is not None:
                self._process.close()
                self._process = None

    def __enter__(self) -> Translator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _greeting(self) -> Hello:
        if self._hello is None:
            with self._lock:
                self._started()
        assert self._hello is not None
        return self._hello

    def _started(self) -> Hello:
        if self._process is None or self._hello is None:
            self._process = _Process(worker_arguments(self.package, self._memory))
            self._hello = self._process.hello
        return self._hello


def accept_spirv(code: bytes) -> Translation | NotTranslatable:
    """SPIR-V that was handed over as bytecode: taken as it is. Raises DamagedInputError for anything else."""
    info = inspect_module(code)
    if not info.entry_points:
        return NotTranslatable("the SPIR-V module has no entry point")
    return Translation(bytes(code), info, info.entry_points[0].name, "")


def _checked(done: Done, request: TranslationRequest, translator: str) -> Translation | NotTranslatable:
    if done.result != 0 or not done.spirv:
        return NotTranslatable(_reason(done), done.messages)
    try:
        module = without_duplicates(done.spirv)
        info = inspect_module(module)
    except ShaderkilnError as error:
        return NotTranslatable(f"the translator wrote SPIR-V that is not valid: {error}", done.messages)
    name = request.options.entry_point
    if not any(e.name == name for e in info.entry_points):
        return NotTranslatable(f"the translator wrote SPIR-V without the entry point {name!r}", done.messages)
    return Translation(module, info, name, translator, done.messages, done.seconds)


_RESULTS = {
    -1: "fails",
    -2: "has no memory left",
    -3: "finds an argument wrong",
    -4: "finds the shader not valid, or uses something it does not know",
    -5: "does not implement something the shader uses",
    -6: "finds a name twice",
    -7: "finds nothing under a name",
}
"""vkd3d_result"""


_MADE_UP_PLACE = re.compile(r"^<anonymous>[0-9:]*: ")
_ERROR = re.compile(r"E\d+: ")
"""Warnings begin with W."""


def _reason(done: Done) -> str:
    lines = [_MADE_UP_PLACE.sub("", line) for line in done.messages.splitlines()]
    text = next((line for line in lines if _ERROR.match(line)), lines[0] if lines else "")
    return text or f"the translator {_RESULTS.get(done.result, f'gives {done.result}')}"


def library_version(name: str) -> tuple[int, ...]:
    """The numbers in what the library calls itself: (2, 1) of ``vkd3d-shader 2.1 (Debian 2.1+ds-1)``; empty without any."""
    for word in name.split():
        parts = word.split(".")
        if len(parts) >= 2 and all(p.isascii() and p.isdigit() for p in parts):
            return tuple(int(p) for p in parts)
    return ()


def worker_arguments(package: TranslatorPackage, memory: int = MEMORY) -> tuple[str, ...]:
    """The command line of the process; ``{fd}`` stands for the socket.

    A package with a C library of its own is run by its own loader: the library needs a newer one than the system has, and two
    cannot live in one process.
    """
    python = sys.executable
    command = (python, "-P", "-S", "-m", "shaderkiln.shaders.worker", "{fd}", package.library, str(memory))
    if not package.loader:
        return command
    folders = ":".join(package.library_folders)
    return (package.loader, "--argv0", python, "--library-path", folders, *command)


class _ProcessEnded(Exception):
    def __init__(self, how: str, output: str, crashed: bool = False) -> None:
        super().__init__(how)
        self.how = how
        self.output = output
        self.crashed = crashed


class _Process(WorkerProcess[Answer]):
    """The process, asked for one translation at a time."""

    name = "the shader translator"
    answer_types = Answer
    longest_answer = 2 * _LONGEST_SHADER

    def __init__(self, arguments: Sequence[str]) -> None:
        """Starts it and waits for its greeting. Raises DriverError."""
        super().__init__(arguments, _environment())
        self.asked = 0
        try:
            hello = self.next_answer(_START_SECONDS)
        except _ProcessEnded as ended:
            raise DriverError(f"the shader translator does not start: it {ended.how}: {ended.output}") from ended
        if not isinstance(hello, Hello):
            self.close(kill=True)
            raise DriverError("the shader translator does not start: it does not say what it is")
        self.hello = hello

    def translate(self, request: TranslationRequest, seconds: float) -> Done:
        self.asked += 1
        answer = self.ask(request, seconds)
        if not isinstance(answer, Done):
            self.close(kill=True)
            raise _ProcessEnded("answers something else than a translation", "")
        return answer

    def next_answer(self, timeout: float) -> Answer:
        """Raises _ProcessEnded; the process has ended then."""
        try:
            return super().next_answer(timeout)
        except DriverError as error:
            code = self.returncode
            self.close(kill=True)
            if code is None:
                late = error.code == "VK_TIMEOUT"
                how = f"gives no answer in {timeout:.0f} seconds" if late else f"writes something else than an answer ({error})"
            elif code == -TIME_SIGNAL:
                how = "takes too much time"
            else:
                how = f"crashes ({self.how_it_ended})" if code < 0 else f"ends ({self.how_it_ended})"
            raise _ProcessEnded(how, self.output, (code or 0) < 0 and code != -TIME_SIGNAL) from error


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LD_PRELOAD", "LD_AUDIT", "VKD3D_", "PYTHON"))}
    # The library logs what it does not know; its messages say it better.
    return kept | {"VKD3D_SHADER_DEBUG": "none", "VKD3D_DEBUG": "none"}
