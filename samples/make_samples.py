"""Make ``samples.foz``, a Fossilize capture, from the shaders and the catalogue beside this file.

    python samples/make_samples.py [--check] [--output FILE]

Needs ``glslangValidator`` of the version in ``VERSION_FILE``: another version gives other SPIR-V, and with it other hashes.
``--check`` writes nothing and says whether the committed files are what the sources make.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from assemble import ASSEMBLE, Assembler  # noqa: E402
from catalogue import COMPUTE, GRAPHICS, RAY_TRACING, Compute, Graphics, RayTracing  # noqa: E402
from msgspec import Struct  # noqa: E402

from shaderkiln.databases.fossilize import ArchiveWriter  # noqa: E402
from shaderkiln.formats.fossilize import Tag  # noqa: E402
from shaderkiln.formats.fossilize_hash import compute_hash  # noqa: E402
from shaderkiln.formats.fossilize_json import ApplicationInfo, ApplicationLink, FeatureStructure, write_body  # noqa: E402
from shaderkiln.vulkan_registry import constants as vk  # noqa: E402
from shaderkiln.vulkan_registry import structures  # noqa: E402
from shaderkiln.vulkan_registry.handles import Handle  # noqa: E402

SHADERS = HERE / "shaders"
ARCHIVE = HERE / "samples.foz"
CONTENTS = HERE / "contents.tsv"
VERSION_FILE = HERE / "glslang-version.txt"
API_VERSION = 0x403000  # 1.3
LANGUAGE_STAGES = {"post_lens.hlsl": "frag"}
"""Stages of HLSL files, which their names do not tell; the others are compute shaders."""

FRAGMENT_SHADING_RATE = FeatureStructure(vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FRAGMENT_SHADING_RATE_FEATURES_KHR, (1, 0, 0))
MESH_SHADER = FeatureStructure(vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MESH_SHADER_FEATURES_EXT, (1, 1, 0, 0, 0))
APPLICATION = ApplicationInfo(
    "Shaderkiln samples", "shaderkiln", 1, 1, API_VERSION, robust_buffer_access=0, features=(FRAGMENT_SHADING_RATE, MESH_SHADER)
)
TAGS: dict[type[Struct], Tag] = {
    structures.SamplerCreateInfo: Tag.SAMPLER,
    structures.DescriptorSetLayoutCreateInfo: Tag.DESCRIPTOR_SET_LAYOUT,
    structures.PipelineLayoutCreateInfo: Tag.PIPELINE_LAYOUT,
    structures.ShaderModuleCreateInfo: Tag.SHADER_MODULE,
    structures.RenderPassCreateInfo: Tag.RENDER_PASS,
    structures.RenderPassCreateInfo2: Tag.RENDER_PASS,
    structures.GraphicsPipelineCreateInfo: Tag.GRAPHICS_PIPELINE,
    structures.ComputePipelineCreateInfo: Tag.COMPUTE_PIPELINE,
    structures.RayTracingPipelineCreateInfoKHR: Tag.RAYTRACING_PIPELINE,
}

H = TypeVar("H", bound=Handle)


def glslang_version() -> str | None:
    """What ``glslangValidator --version`` says first, or None where there is none."""
    try:
        done = subprocess.run(["glslangValidator", "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"Glslang Version: (\S+)", done.stdout)
    return found[1] if found else None


def compile_shader(name: str, output: Path) -> bytes:
    """SPIR-V of one shader file. HLSL is compiled for SPIR-V 1.3, the last version with the form of storage buffer it uses."""
    if name.endswith(".hlsl"):
        options = ["-D", "-V", "-S", LANGUAGE_STAGES.get(name, "comp"), "-e", "main", "--target-env", "vulkan1.1"]
    else:
        options = ["-V", "--target-env", "vulkan1.2"]
    command = ["glslangValidator", *options, "-o", str(output), name]
    done = subprocess.run(command, cwd=SHADERS, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} does not compile:\n{done.stdout}")
    return output.read_bytes()


def compile_shaders() -> dict[str, bytes]:
    """Every shader that the catalogue uses, by file name."""
    names = {pipeline.stage.shader for pipeline in COMPUTE}
    names |= {stage.shader for graphics in GRAPHICS for stage in graphics.stages}
    names |= {stage.shader for rays in RAY_TRACING for stage in rays.stages}
    with tempfile.TemporaryDirectory() as folder:
        return {name: compile_shader(name, Path(folder) / "module.spv") for name in sorted(names)}


def write_archive(shaders: dict[str, bytes], path: Path) -> str:
    """Write the archive, and give the text of the table of contents.

    As in captures of programs, an entry that links the application to an object stands in front of the object.
    """
    handles: dict[Struct, Handle] = {}
    objects: dict[Handle, Struct] = {}
    with ArchiveWriter.create(path) as writer:

        def put(tag: Tag, description: Struct) -> int:
            value = compute_hash(description, objects.__getitem__)
            if not writer.put(tag, value, write_body(tag, value, description)):
                raise SystemExit(f"two descriptions have the hash {value:016x}: one is {description}")
            return value

        application = put(Tag.APPLICATION_INFO, APPLICATION)

        def record(kind: type[H], description: Struct) -> H:
            known = handles.get(description)
            if isinstance(known, kind):
                return known
            tag = TAGS[type(description)]
            put(Tag.APPLICATION_BLOB_LINK, ApplicationLink(application, tag, compute_hash(description, objects.__getitem__)))
            handle = kind(put(tag, description))
            handles[description], objects[handle] = handle, description
            return handle

        assembler = Assembler(shaders, record)
        names: dict[Handle, str] = {}
        lines = []
        catalogue: list[Graphics | Compute | RayTracing] = [*GRAPHICS, *COMPUTE, *RAY_TRACING]
        for pipeline in catalogue:
            handle = ASSEMBLE[type(pipeline)](assembler, pipeline)
            if handle in names:
                raise SystemExit(f"{pipeline.name} is the same as {names[handle]}")
            names[handle] = pipeline.name
            kind = "raytracing" if isinstance(pipeline, RayTracing) else type(pipeline).__name__.lower()
            lines.append(f"{handle.value:016x}\t{kind}\t{pipeline.name}\n")
    return "".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; say whether the committed files are up to date")
    parser.add_argument("--output", type=Path, default=ARCHIVE, help="the archive to write")
    arguments = parser.parse_args()
    version = glslang_version()
    if version is None:
        raise SystemExit("glslangValidator is not there (Debian package glslang-tools)")
    shaders = compile_shaders()
    if arguments.check:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "samples.foz"
            contents = write_archive(shaders, made)
            same = made.read_bytes() == ARCHIVE.read_bytes() and contents == CONTENTS.read_text()
        print("up to date" if same else f"not what glslang {version} makes of the sources")
        return 0 if same else 1
    contents = write_archive(shaders, arguments.output)
    if arguments.output == ARCHIVE:
        CONTENTS.write_text(contents)
        VERSION_FILE.write_text(f"{version}\n")
    print(
        f"{arguments.output}: {contents.count(chr(10))} pipelines, {len(shaders)} shaders, {arguments.output.stat().st_size} bytes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
