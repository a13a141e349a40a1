#!/usr/bin/env python3
"""Make a pipeline of every Direct3D 12 shader of a folder, compile it for adapter families, verify it, and show a table.

usage: direct3d12_table.py [--families A,B,…] [FOLDER]

FOLDER has folders dxil and dxbc51; default: the test shaders of this project. A vertex and a pixel shader of one source make one
pipeline; a vertex shader without its pixel shader makes one alone. Exit code 0 if each is compiled and then created from its object
code with compiling forbidden, or reported as unsupported.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from make_sodb import APPLICATION, SHADERS, fitting_root_signature, graphics_states, input_layout
from msgspec.structs import replace

from shaderkiln import api
from shaderkiln.databases.sodb import StateObjectDatabase
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.jobs.verdicts import Outcome, Verdict
from shaderkiln.sources.state_objects import StateObjectSource


def source_of(path: Path) -> str:
    """The name of the shader's source: the file name up to the stage."""
    return path.name.split(".")[0]


def pipeline_of(path: Path) -> PipelineStateStream:
    """A pipeline with the shader in a file and what belongs to it."""
    code, source = path.read_bytes(), source_of(path)
    stage = path.name.split(".")[1]
    if stage == "cs":
        return PipelineStateStream(cs=code, root_signature=fitting_root_signature(code))
    others = {other: path.with_name(path.name.replace(f".{stage}.", f".{other}.")) for other in ("vs", "ps")}
    shaders = {other: file.read_bytes() for other, file in others.items() if file.exists()}
    # Compilers of shader model 5 leave the root signature out; that of the same source serves.
    twins = sorted(path.parent.parent.glob(f"dxil/{source}.vs.dxil"))
    own = twins[0].read_bytes() if source == "g3_textured" and twins else shaders.get("vs", code)
    root = fitting_root_signature(own, *shaders.values())
    return replace(graphics_states()["opaque"], root_signature=root, input_layout=input_layout(source), **shaders)


def results_of(files: list[Path], family: str, folder: Path) -> dict[str, list[Verdict]]:
    """The verdicts of compiling and of verifying for each file, by its path in the folder of shaders."""
    database = folder / "shaders.sodb"
    if not database.exists():
        with StateObjectDatabase.create(database) as made, made.transaction():
            made.set_application_desc(APPLICATION)
            for path in files:
                made.store_pipeline_state_desc(key_of(path).encode(), 1, pipeline_of(path))
    found: dict[str, list[Verdict]] = {key_of(path): [] for path in files}
    with StateObjectSource.open(database) as source:

        def note(verdict: Verdict) -> None:
            found[source.label(verdict.pipeline)].append(verdict)

        psdb = api.compile_capture(source, family, folder, on_verdict=note).path
        api.verify_psdb(psdb, source, on_verdict=note)
    return found


def key_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def sizes_of(results: dict[str, list[Verdict]]) -> dict[str, int]:
    """Bytes of object code by object: what is reused while it is being compiled for another pipeline is not told again."""
    return {v.object_key: v.bytes for verdicts in results.values() for v in verdicts if v.bytes}


def text_of(verdicts: list[Verdict], sizes: dict[str, int]) -> str:
    """``compiled, hit``, with the size of the object code; one word where both are the same."""
    words = list(dict.fromkeys(str(v.outcome) for v in verdicts))
    size = sizes.get(verdicts[0].object_key, 0)
    return ", ".join(words) + (f", {size} B" if size else "")


def main() -> int:
    ask = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    ask.add_argument("folder", nargs="?", type=Path, default=SHADERS)
    ask.add_argument("--families", default="amd-navi31,amd-polaris10")
    args = ask.parse_args()
    families = args.families.split(",")
    files = sorted(path for form in ("dxil", "dxbc51") for path in (args.folder / form).iterdir())
    with tempfile.TemporaryDirectory() as folder:
        results = {family: results_of(files, family, Path(folder)) for family in families}
    sizes = [sizes_of(results[family]) for family in families]
    print("| shader | form | " + " | ".join(families) + " |")
    print("|---|---|" + "---|" * len(families))
    good, reasons = True, {}
    for path in files:
        verdicts = [results[family][key_of(path)] for family in families]
        for each in verdicts:
            fine = [v.outcome for v in each] in (
                [Outcome.COMPILED, Outcome.HIT],
                [Outcome.REUSED, Outcome.HIT],
                [Outcome.UNSUPPORTED, Outcome.UNSUPPORTED],
            )
            good &= fine
            if each[0].message:
                reasons[path.name] = each[0].message
        print(f"| {path.name} | {path.parent.name} | " + " | ".join(map(text_of, verdicts, sizes)) + " |")
    for name, message in reasons.items():
        print(f"\n{name}: {message}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
