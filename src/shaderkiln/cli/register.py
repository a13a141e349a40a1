"""``kiln register``, ``kiln unregister`` and ``kiln registrations``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shaderkiln.cli.arguments import PATH, require_file
from shaderkiln.cli.output import Output, Table, echo, output_option

if TYPE_CHECKING:
    from shaderkiln.identity import ApplicationIdentity
    from shaderkiln.registration.records import PsdbProperties, RegisteredApplication, Scope

INSTALLER = "kiln"

installer_option = click.option(
    "--installer", default=INSTALLER, show_default=True, help="Name under which the registration is kept."
)
system_option = click.option("--system", is_flag=True, help="For all users of the machine; needs the rights for it.")


@click.command("register")
@click.argument("executable", type=PATH)
@click.option("--component", help='Name of the component; "default" is used by every object that names no other.')
@click.option("--sodb", type=PATH, help="State object database of the component.")
@click.option("--psdb", "psdbs", multiple=True, metavar="FAMILY=PATH", help="PSDB made from it; may be repeated.")
@click.option("--name", help="Title of the application; default: what the state object database says.")
@click.option("--exe-filename", help="File name of the main executable; default as for --name.")
@click.option("--app-version", help="Version of the application, for example 1.0; default as for --name.")
@click.option("--engine", help="Name of the engine; default as for --name.")
@click.option("--engine-version", help="Version of the engine; default as for --name.")
@installer_option
@system_option
@output_option
def register_command(
    executable: Path,
    component: str | None,
    sodb: Path | None,
    psdbs: tuple[str, ...],
    installer: str,
    system: bool,
    out: Output,
    **described: str | None,
) -> None:
    """Register an application by its executable, and a component of it: what a store or launcher does after installing.

    Devices of the application then find the component's PSDBs. A component of the same name is replaced as a whole.

    \b
    Example:
      kiln register /games/testgame/testgame.exe --component DLC1 --sodb dlc1.sodb --psdb amd-navi31=dlc1.psdb
    """
    from shaderkiln.registration.installer import Installer

    if component is None and (sodb is not None or psdbs):
        raise click.UsageError("--sodb and --psdb belong to a component; give --component")
    if component is not None and sodb is None:
        raise click.UsageError("a component needs its state object database; give --sodb")
    if sodb is not None:
        require_file(sodb)
    application = _described(executable, sodb, described)
    files = [_psdb(text, application) for text in psdbs]
    with Installer.open(installer, _scope(system)) as opened:
        opened.register_application(executable, application)
        if component is not None and sodb is not None:
            opened.register_component(executable, component, sodb, files)
        registered = opened.application(executable)
    text = f"{registered.executable}: {registered.application.name}" + (f", component {component}" if component else "")
    out.record(_record(registered), text)


@click.command("unregister")
@click.argument("executable", type=PATH)
@click.option("--component", help="Only this component; default: the application with all of them.")
@installer_option
@system_option
@output_option
def unregister_command(executable: Path, component: str | None, installer: str, system: bool, out: Output) -> None:
    """Forget a registered application, or a component of it; files stay.

    \b
    Example:
      kiln unregister /games/testgame/testgame.exe --component DLC1
    """
    from shaderkiln.registration.installer import Installer

    with Installer.open(installer, _scope(system)) as opened:
        if component is None:
            opened.remove_application(executable)
        else:
            opened.remove_component(executable, component)
    out.record({"type": "unregistered", "executable": str(executable), "component": component})


@click.command("registrations")
@click.argument("executable", type=PATH, required=False)
@output_option
def registrations_command(executable: Path | None, out: Output) -> None:
    """List what is registered, for one executable or for all.

    \b
    Example:
      kiln registrations /games/testgame/testgame.exe
    """
    from shaderkiln.registration.explorer import Explorer

    found = Explorer().applications(executable)
    rows = []
    for application in found:
        out.record(_record(application))
        rows += [[str(application.executable), application.application.name, *line] for line in _lines(application)]
    if found:
        out.people(Table("", ["executable", "application", "component", "family", "database"], rows))
    else:
        out.people("nothing is registered" + ("" if executable is None else f" for {executable}"))


def _lines(application: RegisteredApplication) -> list[tuple[str, str, str]]:
    lines = []
    for component in application.components:
        lines.append((component.name, "", str(component.state_object_database)))
        lines += [(component.name, psdb.adapter_family, str(psdb.path)) for psdb in component.precompiled_shader_databases]
    return lines or [("", "", "")]


def _record(application: RegisteredApplication) -> dict[str, Any]:
    from dataclasses import asdict

    components = [
        {
            "name": component.name,
            "sodb": str(component.state_object_database),
            "psdbs": [
                {"family": psdb.adapter_family, "path": str(psdb.path)} for psdb in component.precompiled_shader_databases
            ],
        }
        for component in application.components
    ]
    return {
        "type": "registration", "executable": str(application.executable), "application": asdict(application.application),
        "installer": application.installer, "scope": application.scope.name.lower(), "components": components,
    }  # fmt: skip


def _scope(system: bool) -> Scope:
    from shaderkiln.registration.records import Scope

    return Scope.SYSTEM if system else Scope.USER


def _described(executable: Path, sodb: Path | None, given: dict[str, str | None]) -> ApplicationIdentity:
    """What the command line says about the application; for the rest what the database says, or an earlier registration."""
    from shaderkiln.direct3d12.application import ApplicationDesc
    from shaderkiln.errors import NotFoundError
    from shaderkiln.identity import ApplicationIdentity

    known = ApplicationIdentity()
    try:
        if sodb is not None:
            from shaderkiln.databases.sodb import StateObjectDatabase

            with StateObjectDatabase.open(sodb) as database:
                known = database.get_application_desc()
        else:
            from shaderkiln.registration.explorer import Explorer

            known = Explorer().application(executable).application
    except NotFoundError:
        pass
    name = given["name"] or known.name
    if not name:
        raise click.UsageError("the application has no name yet; give --name")
    version, engine_version = given["app_version"], given["engine_version"]
    desc = ApplicationDesc(
        name,
        given["exe_filename"] or known.exe_filename or executable.name,
        known.version if version is None else version,
        given["engine"] or known.engine_name or None,
        known.engine_version if engine_version is None else engine_version,
    )
    return desc.identity


def _psdb(text: str, application: ApplicationIdentity) -> PsdbProperties:
    """``FAMILY=PATH``; a PSDB of another family is refused, one of another application is told, for no device would use it."""
    from shaderkiln.databases.psdb_live import read_stored_identity
    from shaderkiln.databases.psdb_records import Expectation
    from shaderkiln.drivers.targets import canonical_family
    from shaderkiln.registration.records import PsdbProperties

    family, separator, path = text.partition("=")
    if not (family and separator and path):
        raise click.BadParameter(f"{text!r} is not FAMILY=PATH", param_hint="--psdb")
    family = canonical_family(family)
    compiler, stored = read_stored_identity(Path(path))
    if compiler.family != family:
        raise click.BadParameter(f"{path} was made for {compiler.family}, not for {family}", param_hint="--psdb")
    for difference in Expectation(application).differences(compiler, stored):
        echo(f"kiln: warning: {path}: {difference}; devices of this application will not use it", err=True)
    return PsdbProperties(family, Path(path))
