"""One pipeline compiled again for its statistics and its disassembly; nothing of it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.descriptions.pipeline import PipelineDescription, PipelineKind
from shaderkiln.drivers.protocol import Executable, Failed, Inspect, Inspected, Open
from shaderkiln.endings import death_text
from shaderkiln.errors import DriverError, InvalidArgumentError, NotFoundError
from shaderkiln.keys import ObjectKey
from shaderkiln.workers.pool import Death, Limits, Task, WorkerPool

if TYPE_CHECKING:
    from shaderkiln.jobs.compile import Source


class Inspection(Struct, frozen=True):
    """What a driver says of one pipeline."""

    description: PipelineDescription
    driver_build: str
    executables: tuple[Executable, ...]


def find_pipeline(source: Source, name: str) -> PipelineDescription:
    """The pipeline with that name, or the only one whose name begins so. Raises as ``resolve_pipeline`` and ``Source.load`` do."""
    return source.load(*resolve_pipeline(source, name))


def resolve_pipeline(source: Source, name: str) -> tuple[PipelineKind, int]:
    """Kind and hash of the pipeline with that name, or of the only one whose name begins so.

    Raises NotFoundError if there is none, InvalidArgumentError if several fit.
    """
    wanted = name.lower()
    found = [(kind, hash) for kind, hash in source.pipelines() if f"{hash:016x}".startswith(wanted)]
    if not found or not wanted:
        raise NotFoundError(f"no pipeline's name begins with {name!r}; `kiln show --pipelines CAPTURE` lists them")
    if len(found) > 1:
        some = ", ".join(f"{hash:016x}" for _, hash in found[:5])
        raise InvalidArgumentError(f"{len(found)} pipelines have names that begin with {name!r}: {some} …")
    return found[0]


def inspect(compiler: FamilyCompiler, description: PipelineDescription, limits: Limits | None = None) -> Inspection:
    """Compiles the pipeline with statistics and internal representations captured.

    Raises DriverError if the family cannot take it, the driver refuses it, or it ends the driver's process.
    """
    unmet = compiler.check(description)
    if not all(need.is_doubt for need in unmet):
        raise DriverError(
            f"{compiler.identity.family} cannot take pipeline {description.name}: " + "; ".join(need.text for need in unmet),
            code="VK_ERROR_FEATURE_NOT_PRESENT",
        )
    pipeline = description.create_info

    def tasks() -> Iterator[Task]:
        yield Task(description, ObjectKey(b""), Inspect(0, pipeline), alone=True)

    open_message = Open(compiler.identity.features)
    with WorkerPool(compiler.worker_command(), open_message, workers=1, limits=limits) as pool:
        for _, result in pool.run(tasks()):
            if isinstance(result, Inspected):
                return Inspection(description, compiler.identity.driver_build, result.executables)
            if isinstance(result, Failed):
                raise DriverError(f"pipeline {description.name}: {result.message}", code=result.code)
            if isinstance(result, Death):
                text = death_text(result.ending, result.signal, compiler.identity.driver_build)
                raise DriverError(f"pipeline {description.name} {text}: {result.output}")
    raise DriverError(f"pipeline {description.name}: the driver's worker gave no answer")
