"""Arguments and options that several commands have, and what is checked of them first."""

from __future__ import annotations

from pathlib import Path

import click

from shaderkiln.errors import AlreadyExistsError, DamagedInputError, InvalidArgumentError, NotFoundError, UnreadableError
from shaderkiln.suggestions import close_to
from shaderkiln.system.files import read_start

PATH = click.Path(path_type=Path, readable=False)
"""The type of an argument that names a file; whether it is there and can be read is found out, and told, when it is opened."""

check_hashes_option = click.option(
    "--check-hashes", is_flag=True, help="Compute the hash of every entry of a .foz again and compare it with its name."
)
replace_option = click.option("--replace", is_flag=True, help="Replace a file that is there already.")


def require_file(path: Path) -> None:
    """Raises NotFoundError, DamagedInputError or UnreadableError unless ``path`` is a file that can be read."""
    import os

    if not path.exists():
        raise NotFoundError(f"{path}: no such file")
    if not path.is_file():
        raise DamagedInputError(f"{path}: not a regular file")
    if not os.access(path, os.R_OK):
        raise UnreadableError(f"{path}: Permission denied")


def require_psdb(path: Path, order: str) -> None:
    """Raises DamagedInputError for a source of pipelines in the place of a PSDB; ``order`` is that of the arguments.

    What else it may be is found out, and told, when it is opened.
    """
    from shaderkiln.api import is_state_object_database

    try:
        is_capture = read_start(path, 12).startswith(b"\x81FOSSILIZE")
    except OSError:
        return
    if is_capture:
        raise DamagedInputError(f"{path}: that is a capture; the order is {order}")
    if is_state_object_database(path):
        raise DamagedInputError(f"{path}: that is a state object database; the order is {order}")


def require_inputs(inputs: tuple[Path, ...], output: Path, replace: bool) -> None:
    """Raises as ``require_file`` and ``refuse_existing`` do, and InvalidArgumentError where the output is an input too."""
    for path in inputs:
        require_file(path)
        if output.exists() and path.samefile(output):
            raise InvalidArgumentError(f"{output} is also an input; give another name")
    refuse_existing(output, replace)


def refuse_existing(output: Path, replace: bool) -> None:
    """Raises AlreadyExistsError where the output is there and is not to be replaced."""
    if output.exists() and not replace:
        raise AlreadyExistsError(f"{output} is there already; give another name, or --replace")


class SuggestingGroup(click.Group):
    """A group that knows what a mistyped command may have been."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            text = f"No such command {args[0]!r}."
            if like := close_to(args[0], self.list_commands(ctx)):
                text += f" Did you mean {like}?"
            raise click.UsageError(text, ctx) from error
