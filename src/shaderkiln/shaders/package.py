"""The shader translator's package: libvkd3d-shader in a folder of the user's, or the system's own.

It lives in ``$XDG_DATA_HOME/shaderkiln/translators/vkd3d-shader/``: ``manifest.json`` and the unpacked files in ``root/``. The
library that reads DXIL needs a newer C library than Debian 12 and 13 have, so that one is unpacked beside it, with its loader,
and used by the translator's process only (``translator.worker_arguments``). Nothing of the system is changed.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shaderkiln.drivers.package_store import (
    MANIFEST,
    Deb,
    DriverPackageError,
    PackageFolder,
    PackageManifest,
    default_cache_folder,
    lock_file,
    refuse_separators,
    xdg_folder,
)
from shaderkiln.errors import NotFoundError

if TYPE_CHECKING:
    from shaderkiln.drivers.debian import Progress

NAME = "vkd3d-shader"
"""Name of the package that can be fetched."""
SYSTEM = "system"
"""Stands for the library that is installed on the machine."""
SUITE = "forky"
"""The oldest Debian suite whose library reads DXIL (version 1.16 or newer)."""

_SONAME = "libvkd3d-shader.so.1"
_PACKAGE = "libvkd3d-shader1"
_UPSTREAM = re.compile(r"(?:\d+:)?(\d+)\.(\d+)")
_DXIL_FROM = (1, 16)

_NOTICE = (
    "the mirror gave no {package} of the suite {suite} ({why}); the one of {codename}, {version}, was taken: it translates "
    "shader models 4 and 5 (DXBC), and shaders of shader model 6 (DXIL) are reported as not translatable; "
    "add it again with --refresh to try once more"
)


class Manifest(PackageManifest, frozen=True, kw_only=True):
    """What the package is."""

    library: str
    loader: str
    """The dynamic loader that runs the process; empty: the system's."""
    notice: str
    """What the user should know; empty: nothing."""

    @property
    def files(self) -> tuple[str, ...]:
        return (self.library, *self.library_folders, *([self.loader] if self.loader else []))

    @property
    def version(self) -> str:
        return self.version_of(_PACKAGE)


@dataclass(frozen=True, slots=True)
class TranslatorPackage:
    """A libvkd3d-shader that can be loaded."""

    name: str
    library: str
    """Path, or the name that the dynamic linker resolves."""
    loader: str = ""
    library_folders: tuple[str, ...] = ()
    root: Path | None = None
    manifest: Manifest | None = None
    """None for the system's."""

    @property
    def version(self) -> str:
        """Of the Debian package; empty for the system's."""
        return self.manifest.version if self.manifest else ""

    @property
    def notice(self) -> str:
        """What the user should know of it; empty: nothing."""
        return self.manifest.notice if self.manifest else ""


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_DATA_HOME/shaderkiln/translators``, by default below ``~/.local/share``."""
    return xdg_folder(environment, "XDG_DATA_HOME", ".local/share") / "shaderkiln" / "translators"


class TranslatorPackages:
    """The translator's package of a user."""

    def __init__(self, folder: Path | None = None, cache: Path | None = None) -> None:
        """Touches nothing; both default to the user's XDG folders."""
        self.folder = folder or default_folder()
        self._place = PackageFolder(
            self.folder / NAME, f"the package {NAME!r}", f"add it again (`kiln drivers add {NAME}`)", Manifest
        )
        self._cache = cache or default_cache_folder()

    def names(self) -> tuple[str, ...]:
        """``vkd3d-shader`` where it is there, then ``system`` where the machine has a library."""
        names = [NAME] if (self._place.path / MANIFEST).is_file() else []
        return (*names, SYSTEM) if system_library() else tuple(names)

    def get(self, name: str = NAME) -> TranslatorPackage:
        """The package of that name.

        Raises NotFoundError where there is none, DriverPackageError where it is damaged.
        """
        if name == SYSTEM:
            library = system_library()
            if not library:
                raise NotFoundError(f"no {_SONAME} is installed; add one with `kiln drivers add {NAME}`")
            return TranslatorPackage(SYSTEM, library)
        if name != NAME:
            raise NotFoundError(f"no shader translator {name!r} is here; known names: {NAME}, {SYSTEM}")
        manifest = self._place.manifest()
        if manifest is None:
            raise NotFoundError(f"the shader translator is not here; add it with `kiln drivers add {NAME}`")
        return _package(self._place, manifest)

    def best(self) -> TranslatorPackage:
        """The user's package, else the system's library. Raises NotFoundError without either."""
        try:
            return self.get(NAME)
        except NotFoundError:
            if not system_library():
                raise
            return self.get(SYSTEM)

    def add(self, *, refresh: bool = False, mirror: str | None = None, progress: Progress | None = None) -> TranslatorPackage:
        """Fetches the package from the machine's own mirror (suite ``forky``), or, where that suite cannot be had, the library of
        the machine's suite, and then says so in ``notice``.

        A package that is there is returned as it is, without any use of the network; ``refresh`` asks for newer versions. An
        interrupted call leaves no package. Raises DriverPackageError and ``drivers.debian.FetchError``.
        """
        existing = self._place.existing()
        if existing and not refresh:
            return _package(self._place, existing)
        refuse_separators(self.folder)
        from shaderkiln.drivers import debian

        codename = debian.codename(
            "the shader translator comes", f"install its own package of {_SONAME} (vkd3d), which is found then"
        )
        mirror = mirror or os.environ.get(debian.MIRROR_VARIABLE)
        with lock_file(self._cache / "translator.lock", exclusive=True, wait=True):
            try:
                self._fetch(SUITE, codename, True, existing, mirror, progress)
            except debian.FetchError as error:
                # What is there stays rather than become an older one.
                if codename == SUITE or (existing and existing.suite == SUITE):
                    raise
                self._fetch(codename, codename, False, existing, mirror, progress, str(error))
        return self.get(NAME)

    def remove(self) -> None:
        """Removes the package. Raises NotFoundError where it is not there, DriverPackageError where it is in use."""
        if not self._place.path.is_dir():
            raise NotFoundError("the shader translator is not here")
        self._place.remove()

    def _fetch(
        self, suite: str, codename: str, own_c_library: bool, existing: Manifest | None, mirror: str | None,
        progress: Progress | None, why: str = "",
    ) -> None:  # fmt: skip
        from shaderkiln.drivers import debian

        sources = debian.choose_sources(debian.read_apt_sources(), codename, [suite], mirror)
        installed = tuple(name for name in debian.OF_THE_SYSTEM if not own_c_library or name != "libc6")
        apt = debian.PrivateApt(self._cache / f"translator-{suite}", sources, installed)
        notice = ""
        try:
            apt.update(progress)
        except debian.ExpiredListError:
            # What such a mirror has is signed all the same, and newer than what the machine's suite has.
            if not own_c_library:
                raise
            apt.update(progress, expired=True)
            notice = f"the mirror's list of the suite {suite} is past its date; it is signed by Debian, and was used"
        wanted = (_PACKAGE, "libc6") if own_c_library else (_PACKAGE,)
        files = tuple(f for f in apt.closure(suite, wanted, wanted) if f.name != "libc-gconv-modules-extra")
        version = next(f.version for f in files if f.name == _PACKAGE)
        if not _reads_dxil(version):
            why = why or "it is too old"
            notice = _NOTICE.format(package=_PACKAGE, suite=SUITE, why=why, codename=codename, version=version)

        def describe(root: Path, debs: tuple[Deb, ...]) -> Manifest:
            _slim(root)
            return _described(root, suite, apt.architecture, debs, own_c_library, notice)

        self._place.fetch(apt, files, existing, describe, progress)


def system_library() -> str:
    """The path of the machine's own library, where the dynamic linker would find it; empty without one."""
    machine = os.uname().machine
    for folder in (f"/usr/lib/{machine}-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"):
        path = Path(folder) / _SONAME
        if path.exists():
            return str(path)
    return ""


def clear_executable_stack(library: Path) -> bool:
    """Takes the mark away that asks for an executable stack (PF_X of PT_GNU_STACK), which new C libraries refuse to load.

    True where it was there. Raises DriverPackageError where the file is no 64-bit little-endian ELF file.
    """
    with library.open("r+b") as stream:
        header = stream.read(64)
        if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
            raise DriverPackageError(f"{library} is no 64-bit shared object")
        offset = struct.unpack_from("<Q", header, 32)[0]
        size, count = struct.unpack_from("<HH", header, 54)
        for number in range(count):
            at = offset + number * size
            stream.seek(at)
            entry = stream.read(8)
            if len(entry) < 8:
                raise DriverPackageError(f"{library} is cut")
            kind, flags = struct.unpack("<II", entry)
            if kind == 0x6474E551 and flags & 1:
                stream.seek(at + 4)
                stream.write(struct.pack("<I", flags & ~1))
                return True
    return False


def _reads_dxil(version: str) -> bool:
    match = _UPSTREAM.match(version)
    return bool(match) and (int(match[1]), int(match[2])) >= _DXIL_FROM  # type: ignore[index]


def _slim(root: Path) -> None:
    """Leaves out character set converters and programs, which the process never uses."""
    for pattern in ("usr/lib/*/gconv", "usr/lib/*/audit", "usr/bin", "usr/sbin", "etc"):
        for folder in root.glob(pattern):
            shutil.rmtree(folder, ignore_errors=True)


def _described(root: Path, suite: str, architecture: str, debs: tuple[Deb, ...], own_c_library: bool, notice: str) -> Manifest:
    library = next(iter(sorted(root.glob(f"usr/lib/*/{_SONAME}"))), None)
    if library is None:
        raise DriverPackageError(f"the package {_PACKAGE} has no {_SONAME}")
    clear_executable_stack(library.resolve())
    loader = ""
    if own_c_library:
        loaders = sorted(root.glob("usr/lib/*/ld-linux-*.so.*"))
        if not loaders:
            raise DriverPackageError("the package libc6 has no dynamic loader")
        loader = os.path.relpath(loaders[0], root)
    return Manifest(
        name=NAME,
        suite=suite,
        architecture=architecture,
        debs=debs,
        library=os.path.relpath(library, root),
        loader=loader,
        library_folders=(os.path.relpath(library.parent, root),),
        notice=notice,
    )


def _package(place: PackageFolder[Manifest], manifest: Manifest) -> TranslatorPackage:
    root = place.root(manifest)
    return TranslatorPackage(
        NAME,
        str(root / manifest.library),
        str(root / manifest.loader) if manifest.loader else "",
        tuple(str(root / part) for part in manifest.library_folders),
        root,
        manifest,
    )
