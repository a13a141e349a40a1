"""What a target really is: asked of the driver in a process of its own, and kept so that the next run need not ask again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from shaderkiln.cache_files import cache_folder, read_cached, write_cached
from shaderkiln.capabilities import Capabilities
from shaderkiln.drivers.targets import Target, process_environment, read_build_id
from shaderkiln.file_facts import facts_of, package_facts

SECONDS = 30.0
"""Time that a driver has for its answer."""


class Probe(Struct, frozen=True):
    """A driver's answer, or why there is none."""

    error: str = ""
    """Empty if the target works."""
    capabilities: Capabilities | None = None
    global_key: bytes = b""
    build_id: str = ""
    """GNU build ID of the driver's shared object, or SHA-256 of the file where it has none."""


def probe(
    target: Target,
    features: tuple[str, ...] = (),
    *,
    refresh: bool = False,
    environment: Mapping[str, str] = os.environ,
    on_ask: Callable[[], None] | None = None,
) -> Probe:
    """The answer of a target's driver for a device with these code-changing features.

    An answer is kept in the user's cache folder and believed as long as this package, the driver's file and the target are the
    same; a driver that the dynamic linker finds by name alone is asked every time. ``on_ask`` is called if the driver is really
    asked. With ``refresh`` what is kept of this target is forgotten, whatever the features were.
    Never raises for a driver that fails: see ``Probe.error``.
    """
    path = _cache_path(target, features, environment)
    if path and refresh:
        for kept_path in path.parent.glob(f"{path.stem.partition('-')[0]}-*.msgpack"):
            with suppress(OSError):
                kept_path.unlink()
    elif path and (kept := _read(path)):
        return kept
    if on_ask:
        on_ask()
    answer = _ask(target, features)
    if path:
        write_cached(path, msgspec.msgpack.encode(answer))
    return answer


def remembered(target: Target, environment: Mapping[str, str] = os.environ) -> Probe | None:
    """The answer of a target's driver if it was asked before and nothing has changed since; no driver is started."""
    path = _cache_path(target, (), environment)
    return _read(path) if path else None


def _ask(target: Target, features: tuple[str, ...]) -> Probe:
    from shaderkiln.drivers.client import ask_once, worker_arguments
    from shaderkiln.drivers.protocol import Failed, Open, Opened
    from shaderkiln.errors import DriverError

    try:
        answer = ask_once(worker_arguments(target.icd), process_environment(target), Open(features), SECONDS)
    except DriverError as error:
        return Probe(error=str(error))
    if isinstance(answer, Failed):
        return Probe(error=f"{answer.code}: {answer.message}")
    if not isinstance(answer, Opened):
        return Probe(error=f"unexpected answer {type(answer).__name__}")
    return Probe("", answer.capabilities, answer.global_key, _build_id(target.icd))


def _build_id(icd: str) -> str:
    path = Path(icd)
    if not path.is_file():
        return ""
    if build_id := read_build_id(path):
        return build_id
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cache_path(target: Target, features: tuple[str, ...], environment: Mapping[str, str]) -> Path | None:
    # How devices are opened, and described by this package, is part of the answer.
    package, driver = package_facts(), facts_of(target.icd)
    if not package or driver is None:
        return None
    facts = (package, target.icd, driver)
    text = repr((facts, target.family, target.package, target.method, sorted(target.environment.items())))
    name, asked = (hashlib.sha256(part.encode()).hexdigest()[:32] for part in (text, repr(features)))
    folder = cache_folder(environment)
    return folder / "probes" / f"{name}-{asked}.msgpack" if folder else None


def _read(path: Path) -> Probe | None:
    data = read_cached(path, 1 << 22)
    try:
        return None if data is None else msgspec.msgpack.decode(data, type=Probe)
    except msgspec.MsgspecError:
        return None
