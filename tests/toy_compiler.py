"""A compiler plugin from outside: it does what a shader's text tells it to, and writes down what it was asked for.

Its shaders are texts, padded with spaces to whole words. ``TOY_LOG`` names the file for the log, a line for each request: process,
verb, text. ``TOY_TALE`` makes every worker end before it is open, or makes all pipelines good. ``TOY_OTHER`` names a field of the
identity in which the worker says something else, ``TOY_FILES`` the files that the compiler depends on.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import structs

from shaderkiln.capabilities import Capabilities
from shaderkiln.compilers.plugin import AdapterFamily, Compiler, FamilyCompiler, FamilyNotFoundError
from shaderkiln.descriptions.pipeline import Application, PipelineDescription
from shaderkiln.descriptions.unmet import Unmet
from shaderkiln.drivers.protocol import Executable, Representation, Statistic
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.identity import CompilerIdentity
from shaderkiln.workers.hosted import HostedFamily, PipelineCompiler

GLOBAL_KEY = b"toy global key"
CACHE_UUID = b"toy-cache-uuid-1"
OTHER: dict[str, int | str | bytes] = {
    "vendor_id": 0xABCE, "device_id": 2, "driver_id": 98, "driver_name": "troy", "driver_version": 8,
    "cache_uuid": b"toy-cache-uuid-2",
}  # fmt: skip
"""What a worker says that is told so by ``TOY_OTHER``."""
ABI_VERSIONS = (2 << 48 | 1 << 32, 1 << 48)


def identity(family: str = "toy-one", abi_version: int = ABI_VERSIONS[0], **changes: object) -> CompilerIdentity:
    fields: dict[str, object] = {
        "family": family, "vendor_id": 0xABCD, "device_id": 1, "driver_id": 99, "driver_name": "toy", "driver_version": 7,
        "driver_build": "toy 2.1", "abi_version": abi_version, "compiler_version": "toy 2.1",
        "application_profile_version": 3 << 32, "cache_uuid": CACHE_UUID, "global_key": GLOBAL_KEY,
        "object_code_form": "pipeline-binary", "features": (), "pointer_bits": 64,
    }  # fmt: skip
    return CompilerIdentity(**(fields | changes))  # type: ignore[arg-type]


class ToyFamily(HostedFamily):
    """Takes everything; in the tale "choosy" nothing whose text begins so."""

    def check(self, description: PipelineDescription) -> tuple[Unmet, ...]:
        if os.environ.get("TOY_TALE") != "choosy" or not text_of(description).startswith("choosy"):
            return ()
        return (
            Unmet("feature", "Toy.patience", ("Toy.patience",), "false", "pipeline", "a choosy one"),
            Unmet("feature", "Toy.luck", "true", "false", "pipeline", "it has no luck"),
        )


class ToyCompiler(Compiler):
    name = "toy"

    def adapter_families(
        self, *, family: str | None = None, refresh: bool = False, progress: Callable[[str], None] | None = None
    ) -> tuple[AdapterFamily, ...]:
        return tuple(
            AdapterFamily(name, self.name, "toy-build", ABI_VERSIONS, "toy 2.1", 3 << 32, "Toy Device")
            for name in ("toy-one", "toy-two")
        )

    def open(
        self, family: str, application: Application, *, package: str | None = None, abi_version: int | None = None
    ) -> FamilyCompiler:
        if family not in ("toy-one", "toy-two") or abi_version not in (None, *ABI_VERSIONS):
            raise FamilyNotFoundError(f"plugin 'toy' has no family {family!r} of that ABI version; it has toy-one and toy-two")
        made_for = identity(family, abi_version or ABI_VERSIONS[0], features=application.features)
        opened = ToyFamily(made_for, "toy_compiler:ToyPipelines")
        opened.files = tuple(filter(None, os.environ.get("TOY_FILES", "").split(os.pathsep)))
        return opened


def log(verb: str, text: str) -> None:
    if path := os.environ.get("TOY_LOG"):
        with Path(path).open("a") as file:
            file.write(f"{os.getpid()} {verb} {text}\n")


class ToyPipelines(PipelineCompiler):
    def __init__(self, family: str, features: tuple[str, ...]) -> None:
        super().__init__(family, features)
        self.compiled = 0
        self.leaked: list[bytearray] = []
        log("start", family)
        if os.environ.get("TOY_TALE") == "no start":
            sys.stderr.write("toy: there is no toy\n")
            sys.stderr.flush()
            os._exit(7)

    def capabilities(self) -> Capabilities:
        toy = Capabilities(
            1 << 22,
            0xABCD,
            1,
            "Toy Device",
            4,
            7,
            99,
            "toy",
            "2.1",
            CACHE_UUID,
            frozenset(),
            frozenset(),
            {},
            "pipeline-binary",
        )
        other = os.environ.get("TOY_OTHER", "global_key")
        return toy if other == "global_key" else structs.replace(toy, **{other: OTHER[other]})

    def global_key(self) -> bytes:
        return b"another key" if os.environ.get("TOY_OTHER") == "global_key" else GLOBAL_KEY

    def compile(self, description: PipelineDescription) -> Sequence[tuple[bytes, bytes]]:
        text = text_of(description)
        log("compile", text)
        verb, _, rest = text.partition(" ")
        if os.environ.get("TOY_TALE") != "all good":
            self._act(verb, rest)
        self.compiled += 1
        if verb == "nothing":
            return ()
        if verb == "random":
            return ((b"key of " + rest.encode(), os.urandom(8)),)
        return object_code(text)

    def _act(self, verb: str, rest: str) -> None:
        match verb:
            case "crash":
                sys.stderr.write(f"toy: told to end with {rest}\n")
                sys.stderr.flush()
                os.kill(os.getpid(), signal.Signals[rest.split()[0]])
                time.sleep(60)
            case "exit":
                os._exit(int(rest.split()[0]))
            case "first" if self.compiled:
                os.abort()
            case "loop":
                while True:
                    time.sleep(0.05)
            case "slow":
                time.sleep(float(rest.split()[0]))
            case "eat":
                for _ in range(100):
                    self.leaked.append(bytearray(b"\x01") * (16 << 20))
                    time.sleep(0.02)
            case "leak":
                self.leaked.append(bytearray(b"\x01") * (int(rest.split()[0]) << 20))
            case "raise":
                raise ZeroDivisionError("the toy cannot divide")
            case "refuse":
                raise InvalidArgumentError("the toy does not like it", code="VK_ERROR_FEATURE_NOT_PRESENT")

    def recreate(self, description: PipelineDescription, values: Sequence[tuple[bytes, bytes]]) -> bool:
        text = text_of(description)
        log("recreate", text)
        if text.startswith("brittle"):
            os.abort()
        if text.startswith("slow"):
            self._act(*text.split(" ", 1))
        if text.startswith("forgetful"):
            return False
        return tuple(values) == tuple(object_code(text))

    def inspect(self, description: PipelineDescription) -> Sequence[Executable]:
        text = text_of(description)
        log("inspect", text)
        if text.startswith("brittle"):
            os.abort()
        if text.startswith("blind"):
            raise ZeroDivisionError("it is blind")
        statistics = (Statistic("Letters", "how many letters the text has", len(text)),)
        representations: tuple[Representation, ...] = (
            Representation("Toy assembly", "the text itself", True, text.encode() + b"\0"),
        )
        if text.startswith("dumb"):
            representations = ()
        return (Executable("toy main", "the only stage", 0x20, 8, statistics, representations),)


class NamelessPipelines(ToyPipelines):
    """Gives its object code no keys of its own."""

    def compile(self, description: PipelineDescription) -> Sequence[tuple[bytes, bytes]]:
        return [(b"", data) for _, data in super().compile(description)]

    def recreate(self, description: PipelineDescription, values: Sequence[tuple[bytes, bytes]]) -> bool:
        return tuple(values) == tuple((b"", data) for _, data in object_code(text_of(description)))


def text_of(description: PipelineDescription) -> str:
    create_info = description.create_info
    stage = getattr(create_info, "stage", None) or create_info.stages[0]  # type: ignore[union-attr]
    return bytes(description.objects[stage.module].code).decode().strip()  # type: ignore[attr-defined]


def object_code(text: str) -> tuple[tuple[bytes, bytes], ...]:
    """Two values: one of the text's own and one that all share with the same first word."""
    own, shared = hashlib.sha256(text.encode()).digest(), hashlib.sha256(text.split()[0].encode()).digest()
    return ((own, b"code of " + text.encode()), (shared, b"part of " + text.split()[0].encode()))
