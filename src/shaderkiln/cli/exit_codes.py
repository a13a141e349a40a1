"""The exit codes of ``kiln``: what its help lists."""

from __future__ import annotations

from shaderkiln.errors import ShaderkilnError, Trouble

EXIT_NOT_ALL_GOOD = 1
EXIT_USAGE = 2
EXIT_INPUT = 3
EXIT_DRIVER = 4
EXIT_OUTPUT = 5
EXIT_INTERRUPTED = 130

_CODES = {
    Trouble.USAGE: EXIT_USAGE,
    Trouble.INPUT: EXIT_INPUT,
    Trouble.DRIVER: EXIT_DRIVER,
    Trouble.OUTPUT: EXIT_OUTPUT,
}


def exit_code_of(error: ShaderkilnError) -> int:
    """The exit code that stands for an error."""
    return _CODES[error.trouble]
