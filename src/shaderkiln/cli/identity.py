"""``kiln identity``: whose pipelines a state object database holds."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from shaderkiln.cli.arguments import PATH, SuggestingGroup
from shaderkiln.cli.output import Output, output_option


@click.group("identity", cls=SuggestingGroup)
def identity_group() -> None:
    """Set or show whose pipelines a state object database holds.

    \b
    Example:
      kiln identity show game.sodb
    """


@identity_group.command("set")
@click.argument("database", type=PATH)
@click.option("--name", help="Application name.")
@click.option("--exe-filename", help="Executable file name, such as game.exe.")
@click.option("--app-version", "--version", "version", help="Application version, such as 1.0.")
@click.option("--engine", "--engine-name", "engine_name", help="Engine name.")
@click.option("--engine-version", help="Engine version.")
@output_option
def set_command(database: Path, out: Output, **given: str | None) -> None:
    """Store whose pipelines DATABASE (.sodb) holds; what is not given stays as it is.

    \b
    Example:
      kiln identity set game.sodb --name TestGame --exe-filename testgame.exe --app-version 1.0
    """
    from shaderkiln.databases.sodb import StateObjectDatabase
    from shaderkiln.errors import InvalidArgumentError, NotFoundError
    from shaderkiln.identity import ApplicationIdentity, parse_version

    changes: dict[str, Any] = {
        field: parse_version(value) if field.endswith("version") else value
        for field, value in given.items()
        if value is not None
    }
    if not changes:
        raise click.UsageError("nothing to set; give --name, --exe-filename, --app-version, --engine or --engine-version")
    with StateObjectDatabase.open(database, write=True) as opened:
        try:
            before = opened.get_application_desc()
        except NotFoundError:
            before = ApplicationIdentity()
        identity = dataclasses.replace(before, **changes)
        if not identity.name:
            raise InvalidArgumentError("--name must not be empty")
        opened.set_application_desc(identity)
    _show(database, identity, out)


@identity_group.command("show")
@click.argument("database", type=PATH)
@output_option
def show_command(database: Path, out: Output) -> None:
    """Show whose pipelines DATABASE (.sodb) holds.

    \b
    Example:
      kiln identity show game.sodb
    """
    from shaderkiln.databases.sodb import StateObjectDatabase

    with StateObjectDatabase.open(database) as opened:
        _show(database, opened.get_application_desc(), out)


def _show(database: Path, identity: Any, out: Output) -> None:
    from shaderkiln.identity import as_dict, format_version

    out.record(
        {"type": "identity", "file": str(database)} | as_dict(identity),
        f"application  {identity.name} {format_version(identity.version)}",
        f"executable   {identity.exe_filename or '(no name)'}",
        f"engine       {identity.engine_name or '(no name)'} {format_version(identity.engine_version)}",
    )
