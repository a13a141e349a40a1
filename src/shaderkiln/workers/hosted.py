"""For plugins whose compiler is a Python class: a worker process that holds it, with the isolation of every other worker.

A plugin opens a ``HostedFamily``; the class that it names lives only in worker processes:
``python -m shaderkiln.workers.hosted FD MODULE:CLASS FAMILY``.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module

from msgspec import Struct

from shaderkiln.capabilities import Capabilities
from shaderkiln.compilers.plugin import FamilyCompiler, WorkerCommand
from shaderkiln.descriptions.pipeline import PipelineCreateInfo, PipelineDescription, pipeline_kind
from shaderkiln.drivers.protocol import (
    Answer,
    Compile,
    Compiled,
    Define,
    Executable,
    Forget,
    Inspect,
    Inspected,
    Open,
    Opened,
    Recreate,
    Recreated,
    Request,
    guarded,
)
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.identity import CompilerIdentity
from shaderkiln.vulkan_registry import structures
from shaderkiln.vulkan_registry.handles import Handle


class PipelineCompiler(ABC):
    """What a plugin's author writes: one object in one worker process, asked for one pipeline at a time.

    It may take any time and memory and may even crash: the job's limits and its poison list take care of that. An error that it
    raises is the pipeline's failure; a ShaderkilnError's code is reported.
    """

    def __init__(self, family: str, features: tuple[str, ...]) -> None:
        self.family = family
        self.features = features

    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What the family can do."""

    @abstractmethod
    def compile(self, description: PipelineDescription) -> Sequence[tuple[bytes, bytes]]:
        """Value keys and object code; an empty key leaves the naming to the job."""

    @abstractmethod
    def recreate(self, description: PipelineDescription, values: Sequence[tuple[bytes, bytes]]) -> bool:
        """Whether the pipeline could be made from these values alone, without compiling."""

    def inspect(self, description: PipelineDescription) -> Sequence[Executable]:
        """Statistics and disassembly; none by default."""
        return ()

    def global_key(self) -> bytes:
        """A key of everything that all object code depends on; compared before any value is used."""
        return b""


class HostedFamily(FamilyCompiler):
    """A family whose worker holds a ``PipelineCompiler``, named by ``module:class``.

    ``identity`` must agree with what that object says, or it gets no pipeline (WrongDriverError): with its ``global_key()``, and
    its capabilities' vendor, device and driver IDs, the driver's name and version, and the cache UUID. ``environment`` is the
    worker's whole environment; default: this process's.
    """

    def __init__(self, identity: CompilerIdentity, compiler: str, environment: Mapping[str, str] | None = None) -> None:
        self.identity = identity
        self._compiler = compiler
        self._environment = environment

    def worker_command(self) -> WorkerCommand:
        import os

        # -P: a module in the working directory must not take the place of one that the worker imports.
        arguments = (sys.executable, "-P", "-m", "shaderkiln.workers.hosted", "{fd}", self._compiler, self.identity.family)
        return WorkerCommand(arguments, dict(os.environ if self._environment is None else self._environment))


class HostSession:
    """Answers a job's requests with a ``PipelineCompiler``."""

    def __init__(self, compiler: type[PipelineCompiler], family: str) -> None:
        self._class = compiler
        self._family = family
        self._compiler: PipelineCompiler | None = None
        self._objects: dict[Handle, Struct] = {}

    def handle(self, request: Request) -> Answer | None:
        """The answer; ``Failed`` for any error of the compiler."""
        return guarded(getattr(request, "request", 0), lambda: self._handle(request))

    def _handle(self, request: Request) -> Answer | None:
        started = time.perf_counter()
        match request:
            case Open():
                self._compiler = self._class(self._family, request.features)
                capabilities, global_key = self._compiler.capabilities(), self._compiler.global_key()
                return Opened(capabilities, global_key, time.perf_counter() - started)
            case Define():
                self._objects[getattr(structures, request.kind)(request.handle)] = request.description
                return None
            case Forget():
                self._objects.clear()
                return None
        if self._compiler is None:
            raise InvalidArgumentError("nothing is open")
        if not isinstance(request, Compile | Recreate | Inspect):
            raise InvalidArgumentError(f"this compiler has no {type(request).__name__}")
        description = self._description(request.pipeline)
        match request:
            case Compile():
                values = tuple(self._compiler.compile(description))
                return Compiled(request.request, values if request.keep else (), time.perf_counter() - started)
            case Recreate():
                hit = self._compiler.recreate(description, request.values)
                result = "VK_SUCCESS" if hit else "VK_PIPELINE_COMPILE_REQUIRED"
                return Recreated(request.request, hit, result, time.perf_counter() - started)
            case Inspect():
                return Inspected(request.request, tuple(self._compiler.inspect(description)))

    def _description(self, create_info: PipelineCreateInfo) -> PipelineDescription:
        return PipelineDescription("", pipeline_kind(create_info), create_info, self._objects)

    def close(self) -> None:
        """Let the compiler go."""
        self._compiler = None


def load_pipeline_compiler(name: str) -> type[PipelineCompiler]:
    """The class that ``module:class`` names. Raises InvalidArgumentError if it is none."""
    module, _, attribute = name.partition(":")
    found = getattr(import_module(module), attribute, None)
    if not (isinstance(found, type) and issubclass(found, PipelineCompiler)):
        raise InvalidArgumentError(f"{name} is not a subclass of shaderkiln.workers.hosted.PipelineCompiler")
    return found


def main(arguments: Sequence[str]) -> int:
    """``FD MODULE:CLASS FAMILY``"""
    import socket

    from shaderkiln.drivers.worker import isolate, serve

    if len(arguments) != 3:
        sys.stderr.write("usage: python -m shaderkiln.workers.hosted FD MODULE:CLASS FAMILY\n")
        return 2
    isolate()
    session = HostSession(load_pipeline_compiler(arguments[1]), arguments[2])
    with socket.socket(fileno=int(arguments[0])) as connection, suppress(ConnectionError):
        serve(connection, session)
    session.close()
    return 0


if __name__ == "__main__":
    # A plugin's class derives from the one in the imported module; this script would have another of the same name.
    from shaderkiln.workers.hosted import main as imported_main

    sys.exit(imported_main(sys.argv[1:]))
