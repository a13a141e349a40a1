"""``kiln drivers``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shaderkiln.cli.arguments import SuggestingGroup
from shaderkiln.cli.output import Output, Table, echo, output_option
from shaderkiln.drivers.packages import DriverPackage, DriverPackages

if TYPE_CHECKING:
    from shaderkiln.shaders.package import TranslatorPackage

TRANSLATOR = "vkd3d-shader"
"""Not a driver, but fetched, kept and removed like one."""


@click.group("drivers", cls=SuggestingGroup)
def drivers_group() -> None:
    """Add, list and remove driver packages.

    A package is one build of a driver in a folder of yours; several live side by side, and the system's drivers stay as they are.

    \b
    Example:
      kiln drivers add mesa-backports
      kiln drivers list
    """


@drivers_group.command("add")
@click.argument("name")
@click.option(
    "--from", "from_folder", type=click.Path(path_type=Path, file_okay=False), help="An unpacked driver build of yours."
)
@click.option("--refresh", is_flag=True, help="Fetch it again if the suite has another version now.")
@click.option("--mirror", help="URI of a Debian mirror; default: the machine's own.")
@output_option
def add_command(name: str, from_folder: Path | None, refresh: bool, mirror: str | None, out: Output) -> None:
    """Fetch a package (mesa-backports, mesa-stable; vkd3d-shader, the translator of Direct3D 12 shaders) with the system's package
    tools, without installing it.

    \b
    Example:
      kiln drivers add mesa-backports
    """
    live = sys.stderr.isatty() and out.for_people
    last = ""

    def progress(step: str, fraction: float | None) -> None:
        nonlocal last
        if live:
            share = f" {fraction:.0%}" if fraction is not None else ""
            sys.stderr.write(f"\r\x1b[K{name}: {step}{share}")
            sys.stderr.flush()
        elif step != last and out.for_people:
            echo(f"{name}: {step}", err=True)
        last = step

    if name == TRANSLATOR:
        from shaderkiln.shaders.package import TranslatorPackages

        translator = TranslatorPackages().add(refresh=refresh, mirror=mirror, progress=progress)
        record, text = _record("translator", translator), f"{name}: {translator.version} in {translator.root}"
        notice = translator.notice
    else:
        package = DriverPackages().add(name, from_folder=from_folder, refresh=refresh, mirror=mirror, progress=progress)
        record, text = _driver_record(package), f"{package.name}: {package.version or 'a build of your own'} in {package.root}"
        notice = ""
    if live:
        sys.stderr.write("\r\x1b[K")
    if notice:
        echo(f"{name}: {notice}", err=True)
    out.record(record, text)


@drivers_group.command("list")
@output_option
def list_command(out: Output) -> None:
    """List the driver packages; ``system`` stands for the drivers that are installed on this machine.

    \b
    Example:
      kiln drivers list
    """
    from shaderkiln.shaders.package import TranslatorPackages

    rows = []
    for package in DriverPackages().list():
        out.record(_driver_record(package))
        rows.append(_row(package, " ".join(_short(icd) for icd in package.icds) or "none"))
    store = TranslatorPackages()
    for translator in map(store.get, store.names()):
        if translator.manifest:
            out.record(_record("translator", translator))
            rows.append(_row(translator, "translator"))
    out.people(Table("", ["package", "version", "suite", "drivers", "folder"], rows))


@drivers_group.command("remove")
@click.argument("name")
@output_option
def remove_command(name: str, out: Output) -> None:
    """Remove a driver package.

    \b
    Example:
      kiln drivers remove mesa-stable
    """
    if name == TRANSLATOR:
        from shaderkiln.shaders.package import TranslatorPackages

        TranslatorPackages().remove()
    else:
        DriverPackages().remove(name)
    out.record({"type": "removed", "name": name}, f"{name}: removed")


def _short(icd: str) -> str:
    return Path(icd).name.removeprefix("lib").removeprefix("vulkan_").removesuffix(".so")


def _row(package: DriverPackage | TranslatorPackage, drivers: str) -> list[str]:
    suite = package.manifest.suite if package.manifest else "-"
    return [package.name, package.version or "-", suite, drivers, str(package.root)]


def _driver_record(package: DriverPackage) -> dict[str, Any]:
    return _record("driver", package) | {"drivers": package.icds, "shims": package.shims}


def _record(kind: str, package: DriverPackage | TranslatorPackage) -> dict[str, Any]:
    suite = package.manifest.suite if package.manifest else ""
    return {"type": kind, "name": package.name, "version": package.version, "folder": str(package.root), "suite": suite}
