"""Errors, damage and warnings as every command tells of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from shaderkiln.cli.output import Output, echo
from shaderkiln.errors import InvalidArgumentError, ShaderkilnError

if TYPE_CHECKING:
    from shaderkiln.databases.fossilize import HashCheck
    from shaderkiln.identity import Difference


def show_error(error: ShaderkilnError, out: Output) -> None:
    """Writes an error for people to stderr, and for programs as the last JSON line to stdout."""
    from shaderkiln.identity import IdentityMismatchError

    text = str(error)
    record: dict[str, Any] = {"type": "error", "code": error.code, "message": text}
    if isinstance(error, IdentityMismatchError) and error.differences:
        record["differences"] = [
            {"field": each.field, "stored": each.stored, "expected": each.expected} for each in error.differences
        ]
        text = mismatch_text(error.path, error.differences)
        text += "; use another -o, or --replace" if error.is_output else ""
    out.record(record)
    echo(f"kiln: error: {text} [{error.code}]", err=True)


def mismatch_text(path: object, differences: Sequence[Difference]) -> str:
    """That a PSDB is somebody else's, in a line: family, driver and application in full, the other fields by name."""
    found = {each.field: each for each in differences}
    parts = []
    for field, name in (("family", "family"), ("driver_build", "driver"), ("application.name", "application")):
        if each := found.pop(field, None):
            parts.append(f"{name} {each.stored or '(none)'}, not {each.expected or '(none)'}")
    if found:
        start = "differs in" if not parts else "also differs in"
        parts.append(f"{start} {', '.join(found)}")
    return f"{path} was made for or by another: {'; '.join(parts)}"


def show_usage_error(error: click.ClickException, out: Output) -> None:
    """Writes what is wrong with a command line to stderr, and for programs as the last JSON line to stdout."""
    out.record({"type": "error", "code": InvalidArgumentError.default_code, "message": error.format_message()})
    error.show()


def hashes_record(check: HashCheck) -> dict[str, Any]:
    """What came of checking hashes, for programs."""
    return {
        "wrong_hashes": check.wrong,
        "hashes_not_checked": {
            tag.name.lower(): {"entries": count, "reason": check.reasons[tag]} for tag, count in check.not_checked.items()
        },
    }


def hashes_text(check: HashCheck) -> str:
    """How many hashes are right, and what was not checked and why, for people."""
    text = f"{check.right} right, {len(check.wrong)} wrong"
    for tag, count in check.not_checked.items():
        text += f", {count} {tag.name.lower().replace('_', ' ')} not checked: {check.reasons[tag]}"
    return text


DAMAGE_SHOWN = 3


def warn_of_damage(path: object, damage: Sequence[str]) -> None:
    """Says on stderr that a source of pipelines is damaged: the first places, then how many more there are."""
    for text in damage[:DAMAGE_SHOWN]:
        echo(f"{path}: damaged: {text}", err=True)
    if (more := len(damage) - DAMAGE_SHOWN) > 0:
        echo(f"{path}: damaged: {more} more place{'' if more == 1 else 's'}; `kiln show` lists them", err=True)


def warn_of_nothing(family: str, total: int, unsupported: int) -> None:
    """Says on stderr that all of a job's pipelines are unsupported, which is no success in the eyes of most."""
    if total and total == unsupported:
        which = "the pipeline" if total == 1 else f"any of the {total} pipelines"
        echo(f"kiln: warning: nothing was compiled: {family} cannot take {which}", err=True)
