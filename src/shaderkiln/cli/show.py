"""``kiln show``."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from shaderkiln import api
from shaderkiln.cli.arguments import PATH, check_hashes_option, require_file
from shaderkiln.cli.exit_codes import EXIT_NOT_ALL_GOOD
from shaderkiln.cli.output import Output, Shown, Table, output_option, size_text
from shaderkiln.cli.reports import hashes_record, hashes_text
from shaderkiln.errors import ShaderkilnError
from shaderkiln.identity import as_dict, format_version

if TYPE_CHECKING:
    from shaderkiln.databases.psdb import Psdb
    from shaderkiln.descriptions.unmet import Unmet
    from shaderkiln.sources.capture import Capture


@click.command("show")
@click.argument("file", type=PATH)
@click.option("--pipelines", is_flag=True, help="List every pipeline.")
@click.option("--values", is_flag=True, help="List every value of a PSDB.")
@check_hashes_option
@output_option
def show_command(file: Path, pipelines: bool, values: bool, check_hashes: bool, out: Output) -> None:
    """Show what is in FILE: a capture (.foz), a state object database (.sodb) or a PSDB.

    Exit code 1 if a capture is damaged; with --check-hashes also if an entry is not what its name says.

    \b
    Example:
      kiln show game.foz --pipelines
      kiln show game.foz --check-hashes
      kiln show out/game.amd-navi31.psdb
    """
    require_file(file)
    with file.open("rb") as stream:
        is_archive = stream.read(12).startswith(b"\x81FOSSILIZE")
    if is_archive or file.suffix == ".foz":
        with api.open_capture(file) as capture:
            is_whole = show_capture(capture, pipelines=pipelines, check_hashes=check_hashes, out=out)
        if not is_whole:
            sys.exit(EXIT_NOT_ALL_GOOD)
    elif check_hashes:
        raise click.UsageError(f"{file} is no capture: --check-hashes is for .foz")
    elif api.is_state_object_database(file) or file.suffix == ".sodb":
        from shaderkiln.cli.show_sodb import show_sodb

        show_sodb(file, pipelines=pipelines, out=out)
    else:
        with api.open_psdb(file) as database:
            show_psdb(database, pipelines=pipelines, values=values, out=out)


# -- captures


def show_capture(capture: Capture, *, pipelines: bool, check_hashes: bool, out: Output) -> bool:
    """Application, entries, pipelines by kind, shaders, and what the pipelines need beyond Vulkan 1.0.

    Whether every part of the file, and every entry that a pipeline needs, is whole.
    """
    from shaderkiln.capabilities import Capabilities
    from shaderkiln.databases.fossilize import HashCheck
    from shaderkiln.descriptions.requirements import RequirementChecker
    from shaderkiln.formats.fossilize import Tag
    from shaderkiln.sources.capture import feature_names

    archive = capture.archive
    identity = capture.application.identity
    bare = Capabilities(
        1 << 22, 0, 0, "", 0, 0, 0, "", "", bytes(16), frozenset(), frozenset(), {}, "none"
    )  # what a device with nothing beyond Vulkan 1.0 lacks is what a pipeline needs
    checker = RequirementChecker(bare)
    kinds: Counter[str] = Counter()
    needs: Counter[tuple[str, str]] = Counter()
    rows: list[dict[str, Any]] = []
    damaged: list[str] = []
    whole = 0
    for kind, hash in capture.pipelines():
        kinds[kind] += 1
        name = f"{hash:016x}"
        try:
            description = capture.load(kind, hash)
            key = capture.object_key(kind, hash).hex()
            whole += 1
            unmet = checker.check(description)
        except ShaderkilnError as error:
            damaged.append(f"{kind} {name}: {error}")
            continue
        wanted = dict.fromkeys((str(need.kind), _need_name(need)) for need in unmet if str(need.kind) != "limit")
        needs.update(wanted.keys())
        if pipelines:
            row = {"type": "pipeline", "pipeline": name, "kind": kind, "object_key": key, "needs": [text for _, text in wanted]}
            rows.append(row)
    entries = {tag.name.lower().replace("_", " "): count for tag, count in archive.counts().items() if count}
    shaders = archive.counts().get(Tag.SHADER_MODULE, 0)
    shader_bytes = sum(archive.raw_size(Tag.SHADER_MODULE, hash) for hash in archive.hashes(Tag.SHADER_MODULE))
    damage = capture.damage
    hashes = HashCheck(archive).run() if check_hashes else None
    is_whole = not damage and whole == kinds.total() and not (hashes and hashes.wrong)
    for row in rows:
        out.record(row)
    record = {
        "type": "capture", "file": str(capture.archive.path), "application": as_dict(identity),
        "api_version": vulkan_version(capture.application.api_version), "features": capture.application.features,
        "applications": applications_record(capture), "mixed_features": capture.mixes_features,
        "pipelines": dict(kinds), "entries": entries, "file_bytes": capture.archive.path.stat().st_size,
        "shader_bytes": shader_bytes, "needs": {f"{kind} {name}": n for (kind, name), n in needs.items()},
        "damage": damage, "damaged_pipelines": damaged,
    }  # fmt: skip
    if hashes:
        record |= hashes_record(hashes)
    size = size_text(capture.archive.path.stat().st_size)
    shown: list[Shown] = [f"{capture.archive.path}: Fossilize archive, {size}, {len(archive)} entries"]
    several = capture.applications if len(capture.applications) > 1 else ()
    if not several:
        shown.append(f"application  {identity.name or '(no name)'}, engine {identity.engine_name or '(no name)'}")
        shown.append(f"Vulkan       {vulkan_version(capture.application.api_version)}")
        shown.append(f"robustness   {feature_names(capture.application)}")
    for number, each in enumerate(several, 1):
        names = f"{each.identity.name or '(no name)'}, engine {each.identity.engine_name or '(no name)'}"
        version = vulkan_version(each.api_version)
        shown.append(f"application  {number}: {names}; Vulkan {version}; robustness {feature_names(each)}")
    if capture.mixes_features:
        shown.append("             their robustness features differ: compile for one at a time, with --application")
    shown.append(f"pipelines    {', '.join(f'{count} {kind}' for kind, count in kinds.items()) or 'none'}")
    shown.append(f"shaders      {shaders} modules, {size_text(shader_bytes)}")
    shown.append(f"entries      {', '.join(f'{count} {name}' for name, count in entries.items()) or 'none'}")
    if hashes:
        shown.append(f"hashes       {hashes_text(hashes)}")
    if needs:
        table = [
            [kind, name, str(count)] for (kind, name), count in sorted(needs.items(), key=lambda item: (item[0][0], -item[1]))
        ]
        shown.append(Table("needed beyond Vulkan 1.0", ["kind", "name", "pipelines"], table, right=(2,)))
    if pipelines:
        table = [[row["pipeline"], row["kind"], ", ".join(row["needs"]) or "-"] for row in rows]
        shown.append(Table("", ["pipeline", "kind", "needs"], table))
    bad = [*damage, *damaged, *(hashes.wrong if hashes else ())]
    out.record(record, *shown, *(f"damaged: {text}" for text in bad))
    return is_whole


def _need_name(need: Unmet) -> str:
    """What a pipeline needs; of a version also which."""
    return f"{need.name} {need.needed}" if str(need.kind) == "spirv-version" else need.name


def applications_record(capture: Capture) -> list[dict[str, Any]]:
    """The applications of a capture for programs, by the numbers that ``--application`` takes."""
    return [
        {
            "number": number, "application": as_dict(each.identity), "api_version": vulkan_version(each.api_version),
            "features": each.features,
        }
        for number, each in enumerate(capture.applications, 1)
    ]  # fmt: skip


def vulkan_version(version: int) -> str:
    """``1.3.211`` from VK_MAKE_API_VERSION."""
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}" if version else "not told"


# -- databases


def show_psdb(database: Psdb, *, pipelines: bool, values: bool, out: Output) -> None:
    """Identity, groups, values, sizes, de-duplication, the poison list, and the driver's statistics where they are stored."""
    from shaderkiln.endings import signal_name
    from shaderkiln.keys import ValueType

    identity, application = database.identity, database.application
    statistics = database.statistics()
    poison = list(database.poison())
    kinds: Counter[str] = Counter(group.kind for group in database.groups())
    groups = [_group_record(database, group) for group in database.groups()] if pipelines else []
    for group in groups:
        out.record(group)
    if values:
        for value in database.values():
            out.record({"type": "value", "key": value.key.hex(), "value_type": value.type.name, "bytes": value.size})
    record = {
        "type": "psdb", "file": str(database.path), "identity": as_dict(identity),
        "abi_text": format_version(identity.abi_version), "application": as_dict(application),
        "groups": dict(kinds), "statistics": msgspec.to_builtins(statistics, str_keys=True),
        "poison": [
            {"pipeline": p.name, "kind": p.kind, "outcome": str(p.outcome), "signal": signal_name(p.signal)} for p in poison
        ],
    }  # fmt: skip
    shown: list[Shown] = [
        f"{database.path}: PSDB, format 1, {size_text(statistics.file_bytes)}",
        f"family       {identity.family} (vendor {identity.vendor_id:#06x}, device {identity.device_id:#06x})",
        f"driver       {identity.driver_name}, {identity.driver_build}",
        f"ABI          {format_version(identity.abi_version)}, {identity.object_code_form}, {identity.pointer_bits} bits",
        f"cache UUID   {identity.cache_uuid.hex()}",
    ]
    if identity.global_key:
        shown.append(f"global key   {identity.global_key.hex()}")
    shown.append(f"robustness   {', '.join(f.rsplit('.', 1)[-1] for f in identity.features) or 'none'}")
    shown.append(f"application  {application.name or '(no name)'}, engine {application.engine_name or '(no name)'}")
    shown.append(f"groups       {statistics.groups}: {', '.join(f'{count} {kind}' for kind, count in kinds.items()) or 'none'}")
    for value_type, each in statistics.by_type.items():
        shown.append(
            f"values       {each.values} {value_type.name}, {size_text(each.bytes)}, stored {size_text(each.stored_bytes)}"
        )
    saved = size_text(statistics.saved_bytes)
    shown.append(
        f"payloads     {statistics.payloads}, {size_text(statistics.payload_bytes)}; storing equal ones once saves {saved}"
    )
    references = Counter(key for group in database.groups() for key in group.value_keys)
    shown.append(f"sharing      {references.total()} value references by groups, {len(references)} distinct values")
    if pipelines:
        rows = [[each["pipeline"], each["kind"], str(len(each["values"])), size_text(each["bytes"])] for each in groups]
        shown.append(Table("", ["pipeline", "kind", "values", "size"], rows, right=(2, 3)))
        executables = [(group["pipeline"], each) for group in groups for each in group["statistics"] or ()]
        if executables:
            columns, rows = statistics_table(executables)
            numbers = tuple(range(2, len(columns)))
            shown.append(
                Table("shader statistics (kiln compile --perf); all of them with --json", columns, rows, right=numbers)
            )
    elif performance := statistics.by_type.get(ValueType.PERFORMANCE_DATA):
        shown.append(f"statistics   of {performance.values} pipelines; --pipelines shows them")
    if values:
        listed = [[value.key.hex(), ValueType(value.type).name, size_text(value.size)] for value in database.values()]
        shown.append(Table("", ["value key", "type", "size"], listed, right=(2,)))
    for entry in poison:
        ending = signal_name(entry.signal) if entry.outcome == "crashed" else ""
        text = f"{entry.outcome} {entry.kind} {entry.name}{f' with {ending}' if ending else ''}"
        shown.append(f"poison       {text} in {entry.driver_build}")
    out.record(record, *shown)


def _group_record(database: Psdb, group: Any) -> dict[str, Any]:
    from shaderkiln.jobs.statistics import read_statistics

    return {
        "type": "pipeline", "pipeline": group.name, "kind": group.kind, "object_key": group.object_key.hex(),
        "version": group.version, "values": [key.hex() for key in group.value_keys],
        "bytes": sum(database.size(key) for key in group.value_keys),
        "statistics": read_statistics(database, group),
    }  # fmt: skip


STATISTICS = {
    "VGPRs": ("vgprs",),
    "SGPRs": ("sgprs",),
    "registers": ("registers used", "number of gprs", "gprs"),
    "code size": ("code size",),
    "instructions": ("instructions", "instruction count"),
    "spills": ("spills", "spilled vgprs", "spills to memory"),
    "cycles": ("static cycle count", "latency"),
}
"""The columns of the table, and what drivers call these things."""
OTHER_STATISTICS = 6
"""So many columns a table has of a driver that calls none of its statistics so."""


def statistics_table(executables: list[tuple[str, dict[str, Any]]]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the statistics that most people ask for, by pipeline and shader."""
    found = [{name.lower(): value for name, value in each["statistics"].items()} for _, each in executables]
    names = {
        column: names for column, names in STATISTICS.items() if any(name in each for name in names for each in found)
    } or {name: (name.lower(),) for name in list(executables[0][1]["statistics"])[:OTHER_STATISTICS]}
    rows = [
        [pipeline, executable["name"], *(_first(values, wanted) for wanted in names.values())]
        for (pipeline, executable), values in zip(executables, found, strict=True)
    ]
    return ["pipeline", "shader", *names], rows


def _first(values: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((str(values[name]) for name in names if name in values), "")
