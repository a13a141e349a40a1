"""``kiln families``."""

from __future__ import annotations

import sys

import click

from shaderkiln.cli.output import EXIT_DRIVER, echo, json_option, print_table, write_json
from shaderkiln.identity import format_version


@click.command("families")
@click.option("-f", "--family", "--adapter-family", "wanted", help="Show only this family.")
@click.option("--plugin", help="Ask only this compiler plugin.")
@click.option("--refresh", is_flag=True, help="Try every driver again instead of trusting earlier answers.")
@json_option
def families_command(wanted: str | None, plugin: str | None, refresh: bool, as_json: bool) -> None:
    """List the adapter families that can be compiled for here, found by trying.

    \b
    Example:
      kiln families --refresh
    """
    from shaderkiln.compilers.plugin import AdapterFamily, PluginError, compiler_names, load_compiler
    from shaderkiln.drivers.targets import canonical_family

    live = sys.stderr.isatty() and not as_json

    def progress(text: str) -> None:
        if live:
            sys.stderr.write(f"\r\x1b[Ktrying {text}")
            sys.stderr.flush()

    found: list[AdapterFamily] = []
    for name in [plugin] if plugin else compiler_names():
        try:
            found += load_compiler(name).adapter_families(refresh=refresh, progress=progress)
        except PluginError as error:
            if plugin:
                raise
            echo(f"kiln: warning: {error}", err=True)
    if live:
        sys.stderr.write("\r\x1b[K")
    if wanted:
        found = [family for family in found if family.name == canonical_family(wanted)]
    if as_json:
        for family in found:
            record = {
                "type": "family", "family": family.name, "plugin": family.compiler, "driver": family.package,
                "abi_versions": family.abi_versions, "compiler_version": family.compiler_version,
                "application_profile_version": family.application_profile_version, "device": family.device_name,
                "object_code_form": family.object_code_form,
            }  # fmt: skip
            write_json(record)
    elif found:
        rows = [
            [
                f.name,
                f.compiler,
                f.package,
                ", ".join(map(format_version, f.abi_versions)),
                f.compiler_version,
                f.object_code_form,
            ]
            for f in found
        ]
        print_table("", ["family", "plugin", "driver", "ABI", "compiler", "object code"], rows)
    if not found:
        echo("no family can be compiled for here; add a driver package with `kiln drivers add mesa-backports`", err=True)
        sys.exit(EXIT_DRIVER)
