"""Small captures of shaders that are texts for the toy compiler, and what is asked of its log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import toy_compiler

from shaderkiln.databases.fossilize import ArchiveWriter
from shaderkiln.databases.psdb import Psdb
from shaderkiln.formats.fossilize import Tag
from shaderkiln.formats.fossilize_json import ApplicationInfo, write_body
from shaderkiln.jobs.compile import CompileJob, JobOptions, JobReport
from shaderkiln.jobs.verdicts import Verdict
from shaderkiln.sources.capture import Capture
from shaderkiln.vulkan_registry.structures import (
    ComputePipelineCreateInfo,
    PipelineLayoutCreateInfo,
    PipelineLayoutHandle,
    PipelineShaderStageCreateInfo,
    ShaderModuleCreateInfo,
    ShaderModuleHandle,
)
from shaderkiln.workers.hosted import HostedFamily

LAYOUT = 0xF000


def name(number: int) -> str:
    """The name of pipeline ``number`` of a capture."""
    return f"{0x1000 + number:016x}"


def put_pipeline(writer: ArchiveWriter, number: int, text: str) -> None:
    """A compute pipeline with a shader module of its own."""
    code = text.encode() + b" " * (-len(text.encode()) % 4)
    module = 0x2000 + number
    writer.put(Tag.SHADER_MODULE, module, write_body(Tag.SHADER_MODULE, module, ShaderModuleCreateInfo(code=code)))
    stage = PipelineShaderStageCreateInfo(stage=0x20, module=ShaderModuleHandle(module))
    pipeline = ComputePipelineCreateInfo(stage=stage, layout=PipelineLayoutHandle(LAYOUT))
    writer.put(Tag.COMPUTE_PIPELINE, 0x1000 + number, write_body(Tag.COMPUTE_PIPELINE, 0x1000 + number, pipeline))


def put_frame(writer: ArchiveWriter, application: str = "Toy Town") -> None:
    """The application and the layout that every pipeline has."""
    info = ApplicationInfo(application_name=application, engine_name="Toy Engine", api_version=1 << 22)
    writer.put(Tag.APPLICATION_INFO, 1, write_body(Tag.APPLICATION_INFO, 1, info))
    writer.put(Tag.PIPELINE_LAYOUT, LAYOUT, write_body(Tag.PIPELINE_LAYOUT, LAYOUT, PipelineLayoutCreateInfo()))


def write_capture(path: Path, texts: Sequence[str], *, application: str = "Toy Town") -> Path:
    """A capture of compute pipelines, one for each text. The job takes longer texts first, and later ones of equal length."""
    with ArchiveWriter.create(path) as writer:
        put_frame(writer, application)
        for number, text in enumerate(texts):
            put_pipeline(writer, number, text)
    return path


class Run:
    """A compile job with the toy compiler, and everything that came of it."""

    def __init__(self, capture: Path, psdb: Path, *, family: HostedFamily | None = None, **options: object) -> None:
        self.verdicts: list[Verdict] = []
        self.psdb = psdb
        with Capture.open(capture) as source:
            job = CompileJob(
                source,
                family or HostedFamily(toy_compiler.identity(), "toy_compiler:ToyPipelines"),
                psdb,
                JobOptions(**options),  # type: ignore[arg-type]
                on_verdict=self.verdicts.append,
            )
            self.report: JobReport = job.run()

    @property
    def outcomes(self) -> dict[str, str]:
        """Outcome by name of pipeline; each pipeline has one verdict."""
        found = {verdict.pipeline: str(verdict.outcome) for verdict in self.verdicts}
        assert len(found) == len(self.verdicts)
        return found

    def verdict(self, number: int) -> Verdict:
        return next(verdict for verdict in self.verdicts if verdict.pipeline == name(number))


def groups(psdb: Path) -> set[str]:
    """Names of the groups of a PSDB, which must be sound."""
    with Psdb.open(psdb) as database:
        assert list(database.verify()) == []
        return {group.name for group in database.groups()}


def log_lines(log: Path, verb: str) -> list[tuple[int, str]]:
    """Process and text of every request of that kind."""
    lines = [line.split(" ", 2) for line in log.read_text().splitlines()] if log.exists() else []
    return [(int(pid), text) for pid, what, text in lines if what == verb]
