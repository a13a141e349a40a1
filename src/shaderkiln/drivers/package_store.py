"""Packages in folders of the user's: what driver packages and the shader translator's have in common.

A package is a folder with ``manifest.json`` and, unless the build stays in a folder of the user's, the unpacked build in
``root/``. It appears whole or not at all, and is neither removed nor made again while somebody uses it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from shaderkiln.errors import AccessDeniedError, InvalidArgumentError, ShaderkilnError, Trouble
from shaderkiln.system.files import sync
from shaderkiln.system.locks import open_lock, take_lock

if TYPE_CHECKING:
    from shaderkiln.drivers.debian import DebFile, PrivateApt, Progress

MANIFEST = "manifest.json"
MAX_JSON = 1 << 20
"""Bytes that are read of a JSON file at most."""
_NO_HOME = "/nonexistent"
"""Where the folders of a user without a home folder are looked for: nowhere."""


class DriverPackageError(ShaderkilnError):
    """A package is damaged, in use, or could not be made."""

    trouble = Trouble.DRIVER


class DriverFolderError(DriverPackageError, AccessDeniedError):
    """The folder of packages cannot be written to."""

    trouble = Trouble.OUTPUT


class Deb(msgspec.Struct, frozen=True):
    """One package file that a package was made from."""

    name: str
    version: str
    architecture: str
    sha256: str
    size: int
    """Bytes of the package file."""


class PackageManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a package is, as kept in its ``manifest.json``. Paths are relative to the root."""

    name: str
    suite: str
    """The Debian suite it came from; empty for a folder of the user's."""
    architecture: str
    debs: tuple[Deb, ...]
    library_folders: tuple[str, ...]
    created: str = msgspec.field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()))
    """UTC, ISO 8601."""
    root: str = "root"
    """Folder of the build: ``root``, or the absolute path of a folder of the user's."""
    format: int = 1

    @property
    def files(self) -> tuple[str, ...]:
        """Every path that the package is of no use without."""
        return self.library_folders

    def version_of(self, package: str) -> str:
        """The version of one of its package files; empty where there is none."""
        return next((deb.version for deb in self.debs if deb.name == package), "")


Kind = TypeVar("Kind", bound=PackageManifest)


@dataclass(frozen=True, slots=True)
class PackageFolder(Generic[Kind]):
    """The folder in which a package is, or would be."""

    path: Path
    title: str
    """What messages call the package: ``driver package 'mine'``."""
    again: str
    """What to do where it is damaged."""
    kind: type[Kind]

    def manifest(self) -> Kind | None:
        """What the package is; None where there is none. Raises DriverPackageError where it is damaged."""
        try:
            with (self.path / MANIFEST).open("rb") as stream:
                return self.parse(stream.read(MAX_JSON + 1))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise DriverPackageError(f"{self.title} cannot be read: {error}") from error

    def existing(self) -> Kind | None:
        """What the package is. A damaged one counts as absent, so that adding it again mends it."""
        with self.locked(exclusive=False), contextlib.suppress(DriverPackageError):
            return self.manifest()
        return None

    def root(self, manifest: Kind) -> Path:
        """The folder of the build."""
        return Path(manifest.root) if Path(manifest.root).is_absolute() else self.path / "root"

    def parse(self, data: bytes) -> Kind:
        """A manifest of this package, all of whose files are there. Raises DriverPackageError for anything else."""
        try:
            if len(data) > MAX_JSON:
                raise ValueError("too large")
            manifest = msgspec.json.decode(data, type=self.kind)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise DriverPackageError(f"the manifest of {self.title} is damaged ({error}); {self.again}") from None
        if manifest.format != 1 or manifest.name != self.path.name:
            raise DriverPackageError(f"the manifest of {self.title} is of another format or package; {self.again}")
        if any("\0" in part or Path(part).is_absolute() or ".." in Path(part).parts for part in manifest.files):
            raise DriverPackageError(f"the manifest of {self.title} names paths outside its folder; {self.again}")
        root = self.root(manifest)
        for part in manifest.files:
            if not (root / part).exists():
                raise DriverPackageError(f"{self.title} is incomplete: {root / part} is missing; {self.again}")
        return manifest

    def install(self, make: Callable[[Path], Kind]) -> None:
        """Puts a package in the place of what is there, all of it or nothing; ``make`` fills an empty folder and describes it.

        Raises DriverPackageError where the package is in use, and what ``make`` raises.
        """
        with self.locked(exclusive=True), self._scratch() as scratch:
            new = scratch / "new"
            new.mkdir()
            manifest = make(new)
            with (new / MANIFEST).open("xb") as stream:
                stream.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
            sync(new)
            if self.path.exists():
                self.path.rename(scratch / "old")
            try:
                new.rename(self.path)
            except BaseException:
                if (scratch / "old").exists() and not self.path.exists():
                    (scratch / "old").rename(self.path)
                raise
            sync(self.path.parent)

    def fetch(
        self, apt: PrivateApt, files: Sequence[DebFile], existing: Kind | None,
        describe: Callable[[Path, tuple[Deb, ...]], Kind], progress: Progress | None,
    ) -> None:  # fmt: skip
        """Makes the package from package files, unless ``existing`` was made from the same; ``describe`` gets its root.

        Raises FetchError, and as ``install`` does.
        """
        from shaderkiln.drivers.debian import unpack

        debs = tuple(Deb(f.name, f.version, f.architecture, f.sha256, f.size) for f in files)
        if existing and _versions(existing.debs) == _versions(debs):
            return
        archives = apt.download(files, progress)

        def make(new: Path) -> Kind:
            root = new / "root"
            root.mkdir()
            unpack(archives, root, progress)
            return describe(root, debs)

        self.install(make)
        apt.forget_archives()

    def remove(self) -> None:
        """Removes the package. Raises DriverPackageError where it is in use."""
        with self.locked(exclusive=True), self._scratch() as scratch:
            self.path.rename(scratch / "removed")

    @contextlib.contextmanager
    def locked(self, *, exclusive: bool) -> Iterator[None]:
        """Keeps the package as it is, or, ``exclusive``, everybody else from it. Raises DriverPackageError where it is in use."""
        with lock_file(self.path.parent / ".locks" / self.path.name, exclusive=exclusive, wait=not exclusive) as taken:
            if not taken:
                raise DriverPackageError(f"{self.title} is in use by another kiln; wait until it has ended")
            yield

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A folder beside the packages; what a killed call left there is put back or removed first."""
        import shutil
        import tempfile

        parent, name = self.path.parent, self.path.name
        for left in parent.glob(f".{name}~*.partial"):
            if (left / "old").exists() and not self.path.exists():
                (left / "old").rename(self.path)  # a call that was killed between its two renames
            shutil.rmtree(left, ignore_errors=True)
        try:
            scratch = Path(tempfile.mkdtemp(prefix=f".{name}~", suffix=".partial", dir=parent))
        except OSError as error:
            raise DriverFolderError(f"{parent} cannot be written to: {error.strerror}") from error
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _versions(debs: Sequence[Deb]) -> list[tuple[str, str, str]]:
    return sorted((deb.name, deb.version, deb.architecture) for deb in debs)


def refuse_separators(*paths: Path) -> None:
    """Raises InvalidArgumentError for a path that cannot stand in a list of library folders."""
    for path in paths:
        if re.search("[:;$]", str(path.absolute())):
            raise InvalidArgumentError(f"{path} has a character (':', ';' or '$') that a path of libraries cannot hold")


def default_cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_CACHE_HOME/shaderkiln/apt``, by default below ``~/.cache``: downloads that may be interrupted."""
    return xdg_folder(environment, "XDG_CACHE_HOME", ".cache") / "shaderkiln" / "apt"


def xdg_folder(environment: Mapping[str, str], variable: str, default: str) -> Path:
    """A base folder of the user's (XDG Base Directory Specification); ``default`` is relative to the home folder."""
    value = environment.get(variable, "")
    # The base directory specification: a relative path is invalid and counts as unset.
    if value.startswith("/"):
        return Path(value)
    home = environment.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  Path.expanduser raises where there is no home
    return Path(home if home.startswith("/") else _NO_HOME) / default


@contextlib.contextmanager
def lock_file(path: Path, *, exclusive: bool, wait: bool) -> Iterator[bool]:
    """Holds an advisory lock; yields False where somebody else holds it and ``wait`` is off. Raises DriverFolderError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = open_lock(path)
    except OSError as error:
        if not exclusive and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            yield True  # A folder that nobody here can write to needs no protection from being removed.
            return
        raise DriverFolderError(f"{path.parent} cannot be written to: {error.strerror}") from error
    try:
        yield take_lock(descriptor, shared=not exclusive, wait=wait)
    finally:
        os.close(descriptor)
