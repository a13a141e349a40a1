"""The samples: the committed capture is what its sources make, whole, valid, and as varied as it claims to be."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from fossilize_coverage import Coverage, walk

from shaderkiln.databases.fossilize import FossilizeArchive
from shaderkiln.formats.fossilize import Tag
from shaderkiln.formats.fossilize_hash import compute_hash
from shaderkiln.formats.fossilize_json import parse_body, write_body
from shaderkiln.formats.spirv import inspect_module
from shaderkiln.sources.capture import Capture
from shaderkiln.vulkan_registry.handles import Handle
from shaderkiln.vulkan_registry.structures import (
    ComputePipelineCreateInfo,
    GraphicsPipelineCreateInfo,
    PipelineLayoutHandle,
    PipelineRenderingCreateInfo,
    PipelineShaderStageCreateInfo,
    RayTracingPipelineCreateInfoKHR,
    RenderPassCreateInfo,
    RenderPassCreateInfo2,
    ShaderModuleCreateInfo,
)

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
ARCHIVE = SAMPLES / "samples.foz"
PIPELINE_TAGS = (Tag.GRAPHICS_PIPELINE, Tag.COMPUTE_PIPELINE, Tag.RAYTRACING_PIPELINE)
UNIFORM_TEXEL_BUFFER = 4


@pytest.fixture(scope="module")
def archive() -> Iterator[FossilizeArchive]:
    with FossilizeArchive.open(ARCHIVE, index=False, verify=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def bodies(archive: FossilizeArchive) -> dict[tuple[Tag, int], object]:
    return {
        (tag, hash): parse_body(tag, archive.read(tag, hash))[1] for tag in archive.counts() for hash in archive.hashes(tag)
    }


@pytest.fixture(scope="module")
def capture() -> Iterator[Capture]:
    with Capture.open(ARCHIVE) as opened:
        yield opened


def test_committed_archive_is_made_from_the_committed_sources() -> None:
    recorded = (SAMPLES / "glslang-version.txt").read_text().strip()
    if shutil.which("glslangValidator") is None:
        pytest.skip("glslangValidator is not installed")
    version = subprocess.run(["glslangValidator", "--version"], capture_output=True, text=True, check=True).stdout
    if f"Glslang Version: {recorded}\n" not in version:
        pytest.skip(f"the samples were made with glslang {recorded}, which gives other SPIR-V than {version.splitlines()[0]}")
    done = subprocess.run([sys.executable, SAMPLES / "make_samples.py", "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "up to date\n"), done.stderr


def test_enough_pipelines_in_a_small_file(archive: FossilizeArchive) -> None:
    counts = archive.counts()
    assert counts[Tag.GRAPHICS_PIPELINE] >= 80
    assert counts[Tag.COMPUTE_PIPELINE] >= 40
    assert counts[Tag.RAYTRACING_PIPELINE] >= 4
    assert ARCHIVE.stat().st_size < 1_500_000
    assert archive.damage == ()
    assert archive.verify_all() == ()


def test_contents_name_every_pipeline_once(archive: FossilizeArchive) -> None:
    lines = [line.split("\t") for line in (SAMPLES / "contents.tsv").read_text().splitlines()]
    kinds = dict(zip(PIPELINE_TAGS, ("graphics", "compute", "raytracing"), strict=True))
    expected = {(f"{hash:016x}", kinds[tag]) for tag in PIPELINE_TAGS for hash in archive.hashes(tag)}
    assert {(hash, kind) for hash, kind, _ in lines} == expected
    assert len({name for _, _, name in lines}) == len(lines) == len(expected)


def test_every_body_is_understood_and_written_back_as_it_is(archive: FossilizeArchive) -> None:
    coverage = Coverage()
    for tag in archive.counts():
        for hash in archive.hashes(tag):
            payload = archive.read(tag, hash)
            name, body = parse_body(tag, payload)
            coverage.add(body)
            assert write_body(tag, name, body) == payload
    assert coverage.complete


def test_every_hash_is_that_of_its_object(bodies: dict[tuple[Tag, int], object]) -> None:
    by_handle = {hash: body for (tag, hash), body in bodies.items() if tag is Tag.RENDER_PASS}
    assert bodies
    for (tag, hash), body in bodies.items():
        assert compute_hash(body, lambda handle: by_handle[handle.value]) == hash, (tag, f"{hash:016x}")  # type: ignore[arg-type]


def test_every_reference_resolves(capture: Capture) -> None:
    count = 0
    for kind, hash in capture.pipelines():
        description = capture.load(kind, hash)
        for structure in (description.create_info, *(description.objects[handle] for handle in description.objects)):
            for part in walk(structure):
                for name in part.__struct_fields__:
                    value = getattr(part, name)
                    for handle in value if isinstance(value, tuple) else (value,):
                        assert not isinstance(handle, Handle) or handle in description.objects
        count += 1
    assert count == sum(1 for _ in (SAMPLES / "contents.tsv").open())


def test_the_application_is_named(capture: Capture) -> None:
    for kind, hash in capture.pipelines():
        application = capture.application_of(kind, hash)
        assert application.identity.name == "Shaderkiln samples"
        assert application.identity.engine_name == "shaderkiln"
        assert application.api_version == 0x403000
        assert application.features == ()


def test_layouts_cover_what_shaders_use(capture: Capture) -> None:
    """Every descriptor and push constant of every stage is in the pipeline's layout, for that stage and with that type."""
    checked = 0
    for kind, hash in capture.pipelines():
        description = capture.load(kind, hash)
        info = description.create_info
        stages: tuple[PipelineShaderStageCreateInfo, ...]
        stages = (info.stage,) if isinstance(info, ComputePipelineCreateInfo) else info.stages or ()
        for stage in stages:
            assert isinstance(info.layout, PipelineLayoutHandle)
            layout = description.objects[info.layout]
            bindings = {
                (number, binding.binding): binding
                for number, handle in enumerate(layout.set_layouts)  # type: ignore[attr-defined]
                for binding in description.objects[handle].bindings  # type: ignore[attr-defined]
            }
            module = description.objects[stage.module]  # type: ignore[index]
            assert isinstance(module, ShaderModuleCreateInfo)
            (entry,) = inspect_module(module.code).entry_points
            assert entry.name == stage.name
            for used in entry.bindings:
                binding = bindings[used.set, used.binding]
                assert binding.descriptor_type in (*used.descriptor_types, UNIFORM_TEXEL_BUFFER)
                assert binding.descriptor_count >= (used.count or 1)
                assert binding.stage_flags & stage.stage == stage.stage
                checked += 1
            ranges = layout.push_constant_ranges  # type: ignore[attr-defined]
            pushed = sum(r.size for r in ranges if r.stage_flags & stage.stage)
            assert pushed >= entry.push_constant_bytes
    assert checked > 500


def test_stages_fit_together(capture: Capture) -> None:
    """What a stage reads, the stage before it writes; what a vertex shader reads, the vertex input gives."""
    order = (0x1, 0x2, 0x4, 0x8, 0x40, 0x80, 0x10)
    checked = 0
    for kind, hash in capture.pipelines():
        description = capture.load(kind, hash)
        info = description.create_info
        if not isinstance(info, GraphicsPipelineCreateInfo) or not info.stages:
            continue
        entries = [
            (stage.stage, inspect_module(description.objects[stage.module].code).entry_points[0])  # type: ignore[index, attr-defined]
            for stage in sorted(info.stages, key=lambda stage: order.index(stage.stage))
        ]
        if info.vertex_input_state is not None:
            given = {a.location for a in info.vertex_input_state.vertex_attribute_descriptions}
            assert entries[0][0] == 0x1 and set(entries[0][1].input_locations) <= given
        for (_, earlier), (_, later) in itertools.pairwise(entries):
            assert set(later.input_locations) <= set(earlier.output_locations), f"{hash:016x}"
            checked += 1
    assert checked > 100


def test_the_state_is_varied(bodies: dict[tuple[Tag, int], object]) -> None:
    """Features of the format that a capture of one program rarely has together all occur."""
    seen: Counter[str] = Counter()
    for body in bodies.values():
        seen.update({type(part).__name__ for part in walk(body)})  # type: ignore[arg-type]
    for name in (
        "GraphicsPipelineLibraryCreateInfoEXT",
        "PipelineLibraryCreateInfoKHR",
        "PipelineRenderingCreateInfo",
        "PipelineShaderStageRequiredSubgroupSizeCreateInfo",
        "PipelineTessellationStateCreateInfo",
        "PipelineVertexInputDivisorStateCreateInfo",
        "PipelineRasterizationConservativeStateCreateInfoEXT",
        "PipelineFragmentShadingRateStateCreateInfoKHR",
        "RenderPassMultiviewCreateInfo",
        "RenderPassInputAttachmentAspectCreateInfo",
        "RenderPassCreateInfo",
        "RenderPassCreateInfo2",
        "SubpassDescriptionDepthStencilResolve",
        "DescriptorSetLayoutBindingFlagsCreateInfo",
        "SpecializationInfo",
        "RayTracingShaderGroupCreateInfoKHR",
    ):
        assert seen[name], name
    graphics = [b for b in bodies.values() if isinstance(b, GraphicsPipelineCreateInfo)]
    assert len({b.input_assembly_state.topology for b in graphics if b.input_assembly_state}) >= 6
    assert len({b.color_blend_state for b in graphics if b.color_blend_state}) >= 10
    assert len({b.depth_stencil_state for b in graphics if b.depth_stencil_state}) >= 8
    assert len({b.dynamic_state for b in graphics}) >= 8
    assert {b.multisample_state.rasterization_samples for b in graphics if b.multisample_state} >= {1, 4, 8}
    assert any(b.base_pipeline_handle for b in graphics)
    rendering = [b for b in graphics if any(isinstance(link, PipelineRenderingCreateInfo) for link in b.next)]
    passes = [b for b in bodies.values() if isinstance(b, RenderPassCreateInfo | RenderPassCreateInfo2)]
    assert len(rendering) >= 30 and len(passes) >= 7


def test_modules_are_shared_by_pipelines(bodies: dict[tuple[Tag, int], object]) -> None:
    """Fewer modules than stages, and equal stages (module and specialization) in several pipelines: something to share."""
    stages: Counter[PipelineShaderStageCreateInfo] = Counter()
    for body in bodies.values():
        if isinstance(body, ComputePipelineCreateInfo):
            stages[body.stage] += 1
        elif isinstance(body, GraphicsPipelineCreateInfo | RayTracingPipelineCreateInfoKHR):
            stages.update(body.stages or ())
    modules = {stage.module for stage in stages}
    assert len(modules) == sum(tag is Tag.SHADER_MODULE for tag, _ in bodies)
    assert len(modules) < len(stages) < stages.total()
    assert sum(count > 1 for count in stages.values()) >= 20


@pytest.mark.skipif(shutil.which("spirv-val") is None, reason="spirv-val is not installed")
def test_modules_are_valid_spirv(bodies: dict[tuple[Tag, int], object], tmp_path: Path) -> None:
    for (_, hash), body in bodies.items():
        if isinstance(body, ShaderModuleCreateInfo):
            file = tmp_path / f"{hash:016x}.spv"
            file.write_bytes(body.code)
            version = "vulkan1.1" if body.code[4:8] == b"\0\3\1\0" else "vulkan1.2"
            done = subprocess.run(["spirv-val", "--target-env", version, file], capture_output=True, text=True)
            assert done.returncode == 0, f"{hash:016x}: {done.stderr}"
