"""The shaders under tests/data/shaders, root signatures that fit them, and a table of what becomes of them.

``python tests/shaders/shader_files.py`` prints the table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from shaderkiln.descriptions.direct3d12.binding_layout import binding_layout
from shaderkiln.formats import dxbc
from shaderkiln.formats import root_signature as rs
from shaderkiln.formats.root_signature import DescriptorRange, DescriptorRangeType, DescriptorTable, RootSignature
from shaderkiln.shaders.translator import NotTranslatable, Translation, Translator

FOLDER = Path(__file__).parent.parent / "data" / "shaders"
DXIL = sorted(FOLDER.glob("dxil/*.dxil"))
DXBC = sorted(FOLDER.glob("dxbc51/*.dxbc"))

_TYPES = {1: 3, 2: 2, 3: 0, 4: 0, 5: 0, 6: 1, 7: 1, 8: 1, 9: 1}
"""PSVResourceType → descriptor range type."""


def fitting_root_signature(code: bytes) -> RootSignature:
    """The shader's own, else one with a table of what its PSV0 part names, else four registers of each type in two spaces."""
    container = dxbc.parse(code)
    if container.root_signature is not None:
        return rs.parse(container.root_signature)
    ranges: list[DescriptorRange] = []
    if validation := container.pipeline_validation:
        ranges = [
            DescriptorRange(DescriptorRangeType(_TYPES[r.type]), r.upper - r.lower + 1, r.lower, r.space)
            for r in validation.resources
        ]
    else:
        ranges = [DescriptorRange(t, 4, 0, space) for t in DescriptorRangeType for space in (0, 1)]
    samplers = tuple(r for r in ranges if r.type is DescriptorRangeType.SAMPLER)
    others = tuple(r for r in ranges if r.type is not DescriptorRangeType.SAMPLER)
    return RootSignature(tuple(DescriptorTable(part) for part in (others, samplers) if part))


def translate_all(translator: Translator) -> Iterator[tuple[Path, Translation | NotTranslatable, float]]:
    """Each shader, what became of it, and the seconds that it took with signing, sending, and inspection."""
    for path in (*DXIL, *DXBC):
        code = path.read_bytes()
        layout = binding_layout(fitting_root_signature(code), arrays=translator.has_arrays)
        started = time.perf_counter()
        result = translator.translate_shader(code, layout)
        yield path, result, time.perf_counter() - started


def table(translator: Translator) -> Iterator[str]:
    """The lines of the table, in Markdown."""
    yield f"Translated by {translator.name}"
    yield "| shader | bytes | SPIR-V bytes | library ms | all ms | result |"
    yield "|---|---|---|---|---|---|"
    for path, result, seconds in translate_all(translator):
        head = f"| {path.name} | {path.stat().st_size} |"
        if isinstance(result, Translation):
            yield f"{head} {len(result.spirv)} | {result.seconds * 1e3:.2f} | {seconds * 1e3:.1f} | translated, valid |"
        else:
            yield f"{head} – | – | {seconds * 1e3:.1f} | {result.reason} |"


if __name__ == "__main__":
    with Translator() as this:
        for line in table(this):
            sys.stdout.write(line + "\n")
