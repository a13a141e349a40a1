"""``kiln families``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from shaderkiln.cli.output import Output, Table, echo, output_option
from shaderkiln.identity import format_version

if TYPE_CHECKING:
    from shaderkiln.compilers.plugin import AdapterFamily


@click.command("families")
@click.option(
    "-f", "--family", "--adapter-family", "wanted", help="Show only this family, or those whose names begin so: amd, amd-navi2."
)
@click.option("--plugin", help="Ask only this compiler plugin.")
@click.option("--refresh", is_flag=True, help="Try every driver again instead of trusting earlier answers.")
@output_option
def families_command(wanted: str | None, plugin: str | None, refresh: bool, out: Output) -> None:
    """List the adapter families that can be compiled for here, found by trying.

    Each driver package that has a family stands with its ABI versions, the one that is used by default first. With --json, one
    object for each family and driver package.

    \b
    Example:
      kiln families --family amd
    """
    from shaderkiln.compilers.plugin import PluginError, compiler_names, guarded, load_compiler

    live = sys.stderr.isatty() and out.for_people

    def progress(text: str) -> None:
        if live:
            sys.stderr.write(f"\r\x1b[Ktrying {text}")
            sys.stderr.flush()

    found: list[AdapterFamily] = []
    for name in [plugin] if plugin else compiler_names():
        try:
            compiler = load_compiler(name)
            with guarded(f"{name!r} cannot list its families"):
                found += compiler.adapter_families(family=wanted, refresh=refresh, progress=progress)
        except PluginError as error:
            if plugin:
                raise
            echo(f"kiln: warning: {error}", err=True)
    if live:
        sys.stderr.write("\r\x1b[K")
    if wanted:
        found = _fitting(found, wanted)
    if not found:
        _raise_not_found(wanted, plugin)
    by_name: dict[str, list[AdapterFamily]] = {}
    for family in found:
        record = {
            "type": "family", "family": family.name, "plugin": family.compiler, "driver": family.package,
            "abi_versions": family.abi_versions, "abi_texts": [*map(format_version, family.abi_versions)],
            "compiler_version": family.compiler_version,
            "application_profile_version": family.application_profile_version, "device": family.device_name,
            "object_code_form": family.object_code_form,
        }  # fmt: skip
        out.record(record)
        by_name.setdefault(family.name, []).append(family)
    rows = [[name, _drivers(each), _device(each), _plugins(each)] for name, each in by_name.items()]
    out.people(Table("", ["family", "drivers with ABI versions, the default first", "device", "plugin"], rows))


def _fitting(found: list[AdapterFamily], wanted: str) -> list[AdapterFamily]:
    """Those of that name, or, if none is called so, those whose names begin so."""
    from shaderkiln.drivers.targets import canonical_family

    names = (wanted, canonical_family(wanted))
    return [each for each in found if each.name in names] or [each for each in found if each.name.startswith(names)]


def _raise_not_found(wanted: str | None, plugin: str | None) -> None:
    """Raises FamilyNotFoundError with what to do."""
    from shaderkiln.compilers.plugin import FamilyNotFoundError, open_family
    from shaderkiln.descriptions.pipeline import Application

    if wanted:
        open_family(wanted, Application(), plugin=plugin)  # raises, and knows why
        raise FamilyNotFoundError(f"family {wanted!r} cannot be compiled for here")
    raise FamilyNotFoundError("no family can be compiled for here; add a driver package with `kiln drivers add mesa-backports`")


def _device(families: list[AdapterFamily]) -> str:
    """What the hardware is called: the chip where the family has only a number, else what the newest driver says."""
    from shaderkiln.drivers.targets import NVIDIA_CHIPS

    name = families[0].name
    if chip := NVIDIA_CHIPS.get(name.removeprefix("nvidia-nvk-")):
        return f"NVK {chip.upper()}"
    newest = max(families, key=lambda f: f.abi_versions[0])
    name = newest.device_name.strip()
    return name.removeprefix("Null hardware ").strip("()") if name.startswith("Null hardware (") else name


def _plugins(families: list[AdapterFamily]) -> str:
    return ", ".join(dict.fromkeys(family.compiler for family in families))


def _drivers(families: list[AdapterFamily]) -> str:
    """Driver packages with their ABI versions, in the order in which they would be taken: by plugin, then newest first."""
    plugins = list(dict.fromkeys(family.compiler for family in families))
    ordered = sorted(families, key=lambda f: (plugins.index(f.compiler), -f.abi_versions[0]))
    return "; ".join(f"{f.package} {', '.join(map(format_version, f.abi_versions))}" for f in ordered)
