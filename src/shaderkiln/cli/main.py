"""Entry point of ``kiln``: which command is where, and what an error becomes."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from io import TextIOWrapper

import click

import shaderkiln
from shaderkiln.cli.arguments import SuggestingGroup
from shaderkiln.cli.exit_codes import EXIT_INPUT, EXIT_INTERRUPTED, EXIT_OUTPUT, exit_code_of
from shaderkiln.cli.output import output_of
from shaderkiln.cli.reports import show_error, show_usage_error
from shaderkiln.errors import ShaderkilnError

COMMANDS = {
    "compile": (
        "shaderkiln.cli.compile",
        "compile_command",
        "Compile a capture's or database's pipelines for GPU families into PSDBs.",
    ),
    "verify": ("shaderkiln.cli.verify", "verify_command", "Prove that a PSDB serves a capture, with compiling forbidden."),
    "show": ("shaderkiln.cli.show", "show_command", "Show what is in a capture or a PSDB."),
    "isa": ("shaderkiln.cli.isa", "isa_command", "Show the driver's disassembly and statistics of a pipeline."),
    "families": ("shaderkiln.cli.families", "families_command", "List the adapter families that can be compiled for here."),
    "list": ("shaderkiln.cli.families", "families_command", "The same as families."),
    "drivers": ("shaderkiln.cli.drivers", "drivers_group", "Add, list and remove driver packages."),
    "replay": (
        "shaderkiln.cli.compile",
        "replay_command",
        "Compile a capture's pipelines and keep nothing: does it all compile?",
    ),
    "register": ("shaderkiln.cli.register", "register_command", "Register an application's component with its PSDBs."),
    "unregister": ("shaderkiln.cli.register", "unregister_command", "Forget a registered application or component."),
    "registrations": ("shaderkiln.cli.register", "registrations_command", "List registered applications and components."),
    "identity": ("shaderkiln.cli.identity", "identity_group", "Set or show whose pipelines a state object database holds."),
    "cache": ("shaderkiln.cli.cache", "cache_group", "Show, merge, compare and export Vulkan pipeline caches."),
    "merge": ("shaderkiln.cli.archives", "merge_command", "Merge captures, with every checksum verified."),
    "salvage": ("shaderkiln.cli.archives", "salvage_command", "Write what is good in a damaged capture to a new one."),
}


class LazyGroup(SuggestingGroup):
    """A group that imports a command's module only when that command is used: start-up time counts."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(shaderkiln.__version__, prog_name="kiln")
def kiln() -> None:
    """Shaders compiled before people play.

    \b
    Example:
      kiln drivers add mesa-backports
      kiln compile game.foz --family amd-navi31 -o out/
      kiln verify out/game.amd-navi31.psdb game.foz

    \b
    Exit codes:
      0    everything is compiled, reused or unsupported; everything verified
      1    some pipelines failed, crashed, ran into a limit, or are no hits, or a capture is damaged
      2    the command line is wrong
      3    an input, a database or a plugin is missing, damaged, or belongs to somebody else
      4    no driver for the family, or the driver cannot be started
      5    the output cannot be written, or is there already and not to be replaced
      130  interrupted; what was done is kept
    """


def main() -> None:
    """Runs ``kiln`` and ends the process with its exit code."""
    # Nothing here makes garbage in cycles worth looking for after every 700 objects.
    gc.set_threshold(50_000, 20, 20)
    arguments = sys.argv[1:]
    open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its number; it is no reason to fail.
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    code = run(arguments)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 1
    # Everything is written and closed; taking the interpreter apart object by object would only take time.
    os._exit(code)


def open_standard_streams() -> None:
    """Whoever starts us may have closed them: then sockets and databases would get their numbers, and lose them in a worker."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def run(arguments: list[str]) -> int:
    """Runs a command line; the exit code."""
    try:
        kiln.main(arguments, prog_name="kiln", standalone_mode=False)
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            click.echo(leaving.code, err=True)
            return 1
        return leaving.code or 0
    except click.ClickException as error:
        show_usage_error(error, output_of(arguments))
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("kiln: interrupted", err=True)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return 1
    except ShaderkilnError as error:
        show_error(error, output_of(arguments))
        return exit_code_of(error)
    except OSError as error:
        show_error(ShaderkilnError(str(error)), output_of(arguments))
        return EXIT_OUTPUT if error.errno in _WRITE_ERRORS else EXIT_INPUT
    return 0


def _write_errors() -> frozenset[int]:
    import errno

    return frozenset({errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, errno.EDQUOT, errno.EFBIG})


_WRITE_ERRORS = _write_errors()

if __name__ == "__main__":
    main()
