"""``kiln show`` for state object databases."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from shaderkiln.cli.output import Output, Shown, Table, size_text
from shaderkiln.databases.sodb import ObjectKind
from shaderkiln.errors import NotFoundError
from shaderkiln.identity import as_dict, format_version
from shaderkiln.sources.state_objects import StateObjectSource, shown_key


def show_sodb(path: Path, *, pipelines: bool, out: Output) -> None:
    """Application, objects by kind, and the pipelines that they have in Vulkan; with ``pipelines`` each of them.

    Nothing is translated. Raises as ``StateObjectDatabase.open`` does.
    """
    with StateObjectSource.open(path) as source:
        try:
            application = source.database.get_application_desc()
        except NotFoundError:
            application = None
        objects = {kind: sum(1 for _ in source.database.keys(kind)) for kind in ObjectKind}
        entries = source.entries()
        kinds = Counter(entry.kind for entry in entries.values())
        damaged = source.damaged()
        if pipelines:
            for name, entry in entries.items():
                record = {
                    "type": "pipeline", "pipeline": f"{name:016x}", "kind": entry.kind, "key": entry.key.hex(),
                    "object": entry.object_kind.value, "version": entry.version, "program": entry.name,
                }  # fmt: skip
                out.record(record)
        summary = {
            "type": "sodb", "file": str(path), "application": None if application is None else as_dict(application),
            "objects": {kind.value: count for kind, count in objects.items()}, "pipelines": dict(kinds),
            "file_bytes": path.stat().st_size, "damaged": damaged,
        }  # fmt: skip
        shown: list[Shown] = []
        shown.append(f"{path}: state object database, {size_text(path.stat().st_size)}")
        if application is None:
            shown.append("application  not set; `kiln identity set` does it")
        else:
            shown.append(
                f"application  {application.name} {format_version(application.version)}, {application.exe_filename or '(no file)'}"
                f", engine {application.engine_name or '(no name)'} {format_version(application.engine_version)}"
            )
        names = {ObjectKind.PIPELINE_STATE: "pipeline states", ObjectKind.STATE_OBJECT: "state objects"}
        shown.append(f"objects      {', '.join(f'{count} {names[kind]}' for kind, count in objects.items())}")
        shown.append(f"pipelines    {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items())) or 'none'}")
        if pipelines:
            rows = [
                [f"{name:016x}", entry.kind, shown_key(entry.key), str(entry.version), entry.name or "-"]
                for name, entry in entries.items()
            ]
            shown.append(Table("", ["pipeline", "kind", "key", "version", "program"], rows))
        for text in damaged:
            shown.append(f"damaged: {text}")
        out.record(summary, *shown)
