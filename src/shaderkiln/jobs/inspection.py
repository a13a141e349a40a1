"""One pipeline compiled again for its statistics and its disassembly; nothing of it is stored."""

from __future__ import annotations

from msgspec import Struct

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.descriptions.pipeline import PipelineDescription
from shaderkiln.descriptions.unmet import keeps_from_driver, text_of
from shaderkiln.drivers.protocol import Executable, Failed, Inspect, Inspected
from shaderkiln.errors import DriverError
from shaderkiln.keys import ObjectKey
from shaderkiln.workers.pool import Death, Limits, Task, WorkerPool


class Inspection(Struct, frozen=True):
    """What a driver says of one pipeline."""

    description: PipelineDescription
    driver_build: str
    executables: tuple[Executable, ...]


def inspect(compiler: FamilyCompiler, description: PipelineDescription, limits: Limits | None = None) -> Inspection:
    """Compiles the pipeline with statistics and internal representations captured.

    Raises DriverError if the family cannot take it, the driver refuses it, or it ends the driver's process.
    """
    unmet = compiler.check(description)
    if keeps_from_driver(unmet):
        raise DriverError(
            f"{compiler.identity.family} cannot take pipeline {description.name}: " + text_of(unmet),
            code="VK_ERROR_FEATURE_NOT_PRESENT",
        )
    task = Task(description, ObjectKey(b""), Inspect(0, description.create_info), alone=True)
    with WorkerPool(compiler, workers=1, limits=limits) as pool:
        for _, result in pool.run(iter((task,))):
            if isinstance(result, Inspected):
                return Inspection(description, compiler.identity.driver_build, result.executables)
            if isinstance(result, Failed):
                raise DriverError(f"pipeline {description.name}: {result.message}", code=result.code)
            if isinstance(result, Death):
                raise DriverError(f"pipeline {description.name} {result.text(compiler.identity.driver_build)}: {result.output}")
    raise DriverError(f"pipeline {description.name}: the driver's worker gave no answer")
