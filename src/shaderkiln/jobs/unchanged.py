"""Records of compile runs that left nothing to do, so that the same run on the same files need not read them again.

A record holds what a run showed, and for every file that could change its outcome, those of this package included, what the system
says of it (``file_facts``). Records lie in the user's cache folder; without one everything is read, as ever.

Only the standard library's small modules are used here: a record is looked for before anything else is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from shaderkiln.cache_files import cache_folder, read_cached, write_cached
from shaderkiln.file_facts import facts_of

DECIDING = (
    *("HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "LD_LIBRARY_PATH"),
    *("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"),
)
"""Variables that say which drivers there are and how they work; which plugins there are follows from Python's own path."""
MAXIMUM_BYTES = 1 << 20
"""A record that would be larger is not kept."""


def find_record(question: Iterable[str], package: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any] | None:
    """What an earlier run with the same question showed, if every file is as it left it; ``package``: ``package_facts``."""
    import json

    asked = _asked(question, environment)
    path = _path(asked, environment)
    data = read_cached(path, MAXIMUM_BYTES) if path else None
    if data is None:
        return None
    try:
        record = json.loads(data)
        if (record["question"], record["package"]) != (asked, package) or not all(
            facts_of(path) == facts for path, facts in record["files"].items()
        ):
            return None
        shown = record["shown"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return shown if isinstance(shown, dict) else None


def keep_record(
    question: Iterable[str],
    package: str,
    inputs: Mapping[str, list[int] | None],
    files: Iterable[str],
    shown: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
    may_be_missing: Iterable[str] = (),
) -> None:
    """Keeps what a run showed, with all files that its outcome depends on; nothing is kept if one of them is not there.

    ``package`` has the facts of this package, and ``inputs`` those of files that may have changed since they were read, such as a
    capture that still grows, from before that; ``files`` are as they are now, and so is what ``may_be_missing``: a file that is
    there later counts as a change.
    """
    import json

    asked = _asked(question, environment)
    facts = {path: facts_of(path) for path in files} | dict(inputs)
    path = _path(asked, environment)
    if path is None or not package or None in facts.values():
        return
    facts |= {path: facts_of(path) for path in may_be_missing}
    data = json.dumps({"question": asked, "package": package, "files": facts, "shown": dict(shown)}).encode()
    if len(data) <= MAXIMUM_BYTES:
        write_cached(path, data)


def _asked(question: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    return [*(environment.get(name, "") for name in DECIDING), os.pathsep.join(sys.path), *question]


def _path(asked: list[str], environment: Mapping[str, str]) -> Path | None:
    import zlib

    folder = cache_folder(environment)
    if folder is None:
        return None
    text = "\0".join(asked).encode(errors="surrogateescape")
    # Two questions under one name only take each other's place; the question itself is compared.
    return folder / "runs" / f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}.json"
