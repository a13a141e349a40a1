"""The shader translator's package: libvkd3d-shader in a folder of the user's, or the system's own.

It lives in ``$XDG_DATA_HOME/shaderkiln/translators/vkd3d-shader/``: ``manifest.json`` and the unpacked files in ``root/``. The
library that reads DXIL needs a newer C library than Debian 12 and 13 have, so that one is unpacked beside it, with its loader,
and used by the translator's process only (``translator.worker_arguments``). Nothing of the system is changed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from shaderkiln.drivers.packages import (
    Deb,
    DriverPackageError,
    Progress,
    _lock_file,
    _os_release,
    _xdg,
    default_cache_folder,
    install_folder,
)
from shaderkiln.errors import InvalidArgumentError, NotFoundError

NAME = "vkd3d-shader"
"""Name of the package that can be fetched."""
SYSTEM = "system"
"""Stands for the library that is installed on the machine."""
SUITE = "forky"
"""The oldest Debian suite whose library reads DXIL (version 1.16 or newer)."""

_SONAME = "libvkd3d-shader.so.1"
_PACKAGE = "libvkd3d-shader1"
_MANIFEST = "manifest.json"
_MAX_JSON = 1 << 20
_UPSTREAM = re.compile(r"(?:\d+:)?(\d+)\.(\d+)")
_DXIL_FROM = (1, 16)

_NOTICE = (
    "the mirror gave no {package} of the suite {suite} ({why}); the one of {codename}, {version}, was taken: it translates "
    "shader models 4 and 5 (DXBC), and shaders of shader model 6 (DXIL) are reported as not translatable; "
    "add it again with --refresh to try once more"
)


class Manifest(msgspec.Struct, frozen=True):
    """What the package is. Paths are relative to the root."""

    name: str
    suite: str
    architecture: str
    debs: tuple[Deb, ...]
    library: str
    loader: str
    """The dynamic loader that runs the process; empty: the system's."""
    library_folders: tuple[str, ...]
    notice: str
    """What the user should know; empty: nothing."""
    created: str
    """UTC, ISO 8601."""
    format: int = 1

    @property
    def version(self) -> str:
        return next((deb.version for deb in self.debs if deb.name == _PACKAGE), "")


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
    return _xdg(environment, "XDG_DATA_HOME", ".local/share") / "shaderkiln" / "translators"


class TranslatorPackages:
    """The translator's package of a user."""

    def __init__(self, folder: Path | None = None, cache: Path | None = None) -> None:
        """Touches nothing; both default to the user's XDG folders."""
        self.folder = folder or default_folder()
        self._cache = cache or default_cache_folder()

    def names(self) -> tuple[str, ...]:
        """``vkd3d-shader`` where it is there, then ``system`` where the machine has a library."""
        names = [NAME] if (self.folder / NAME / _MANIFEST).is_file() else []
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
        folder = self.folder / NAME
        try:
            with (folder / _MANIFEST).open("rb") as stream:
                data = stream.read(_MAX_JSON + 1)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(f"the shader translator is not here; add it with `kiln drivers add {NAME}`") from None
        except OSError as error:
            raise DriverPackageError(f"the package {NAME!r} cannot be read: {error}") from error
        return _opened(folder, data)

    def best(self) -> TranslatorPackage:
        """The user's package, else the system's library. Raises NotFoundError without either."""
        try:
            return self.get(NAME)
        except NotFoundError:
            library = system_library()
            if not library:
                raise
            return TranslatorPackage(SYSTEM, library)

    def add(self, *, refresh: bool = False, mirror: str | None = None, progress: Progress | None = None) -> TranslatorPackage:
        """Fetches the package from the machine's own mirror (suite ``forky``), or, where that suite cannot be had, the library of
        the machine's suite, and then says so in ``notice``.

        A package that is there is returned as it is, without any use of the network; ``refresh`` asks for newer versions. An
        interrupted call leaves no package. Raises DriverPackageError and ``drivers.debian.FetchError``.
        """
        with self._locked(shared=True):
            existing = self._existing()
        if existing and not refresh:
            return existing
        if re.search("[:;$]", str(self.folder.absolute())):
            raise InvalidArgumentError(f"{self.folder} has a character (':', ';' or '$') that a path of libraries cannot hold")
        from shaderkiln.drivers import debian

        release = _os_release()
        codename = release.get("VERSION_CODENAME", "")
        distributions = (release.get("ID", ""), *release.get("ID_LIKE", "").split())
        if not re.fullmatch(r"[a-z][a-z0-9-]*", codename) or "debian" not in distributions:
            raise debian.FetchError(
                f"the shader translator comes from Debian's suites, and this machine runs "
                f"{release.get('PRETTY_NAME', 'another')!r}; install its own package of {_SONAME} (vkd3d), which is found then"
            )
        mirror = mirror or os.environ.get(debian.MIRROR_VARIABLE)
        with _lock_file(self._cache / "translator.lock", wait=True):
            try:
                return self._fetch(SUITE, codename, True, existing, mirror, progress)
            except debian.FetchError as error:
                # What is there stays rather than become an older one.
                if codename == SUITE or (existing and existing.manifest and existing.manifest.suite == SUITE):
                    raise
                why = str(error)
            return self._fetch(codename, codename, False, existing, mirror, progress, why)

    def remove(self) -> None:
        """Removes the package. Raises NotFoundError where it is not there, DriverPackageError where it is in use."""
        if not (self.folder / NAME).is_dir():
            raise NotFoundError("the shader translator is not here")
        with self._locked(), self._scratch() as scratch:
            (self.folder / NAME).rename(scratch / "removed")

    def _fetch(
        self, suite: str, codename: str, own_c_library: bool, existing: TranslatorPackage | None, mirror: str | None,
        progress: Progress | None, why: str = "",
    ) -> TranslatorPackage:  # fmt: skip
        from shaderkiln.drivers import debian

        sources = debian.choose_sources(debian.read_apt_sources(), codename, [suite], mirror)
        installed = tuple(name for name in debian.OF_THE_SYSTEM if not own_c_library or name != "libc6")
        state = self._cache / f"translator-{suite}"
        apt = debian.PrivateApt(state, sources, installed)
        notice = ""
        try:
            apt.update(progress)
        except debian.FetchError as error:
            # A mirror that lags behind: what it has is signed all the same, and newer than what the machine's suite has.
            if not own_c_library or "expired" not in str(error):
                raise
            apt.update(progress, expired=True)
            notice = f"the mirror's list of the suite {suite} is past its date; it is signed by Debian, and was used"
        wanted = (_PACKAGE, "libc6") if own_c_library else (_PACKAGE,)
        files = tuple(f for f in apt.closure(suite, wanted) if f.name != "libc-gconv-modules-extra")
        library = next((f for f in files if f.name == _PACKAGE), None)
        if library is None:
            raise debian.FetchError(f"the suite {suite!r} has no package {_PACKAGE} for {apt.architecture} on this mirror")
        if own_c_library and not any(f.name == "libc6" for f in files):
            raise debian.FetchError(f"the suite {suite!r} has no package libc6 for {apt.architecture} on this mirror")
        versions = sorted((f.name, f.version, f.architecture) for f in files)
        known = existing.manifest.debs if existing and existing.manifest else ()
        if existing and versions == sorted((d.name, d.version, d.architecture) for d in known):
            return existing
        if not _reads_dxil(library.version):
            notice = _NOTICE.format(
                package=_PACKAGE, suite=SUITE, why=why or "it is too old", codename=codename, version=library.version
            )
        archives = apt.download(files, progress)
        with self._locked(), self._scratch() as scratch:
            root = scratch / "new" / "root"
            root.mkdir(parents=True)
            debian.unpack(archives, root, progress)
            _slim(root)
            debs = tuple(Deb(f.name, f.version, f.architecture, f.sha256, f.size) for f in files)
            install_folder(self.folder / NAME, scratch, _described(root, suite, apt.architecture, debs, own_c_library, notice))
        shutil.rmtree(state / "cache", ignore_errors=True)
        return self.get(NAME)

    def _existing(self) -> TranslatorPackage | None:
        # A damaged package counts as absent, so that adding it again mends it.
        try:
            return self.get(NAME)
        except (NotFoundError, DriverPackageError):
            return None

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        for left in self.folder.glob(f".{NAME}~*.partial"):
            shutil.rmtree(left, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{NAME}~", suffix=".partial", dir=self.folder))
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    @contextlib.contextmanager
    def _locked(self, *, shared: bool = False) -> Iterator[None]:
        with _lock_file(self.folder / ".locks" / NAME, shared=shared, wait=shared) as taken:
            if not taken:
                raise DriverPackageError(f"the package {NAME!r} is in use by another kiln; wait until it has ended")
            yield


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
    for folder in (
        *root.glob("usr/lib/*/gconv"),
        *root.glob("usr/lib/*/audit"),
        root / "usr/bin",
        root / "usr/sbin",
        root / "etc",
    ):
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
        NAME,
        suite,
        architecture,
        debs,
        os.path.relpath(library, root),
        loader,
        (os.path.relpath(library.parent, root),),
        notice,
        time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
    )


def _opened(folder: Path, data: bytes) -> TranslatorPackage:
    again = f"add it again (`kiln drivers add {NAME}`)"
    try:
        if len(data) > _MAX_JSON:
            raise ValueError("too large")
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise DriverPackageError(f"the manifest of the package {NAME!r} is damaged ({error}); {again}") from None
    if manifest.format != 1 or manifest.name != NAME:
        raise DriverPackageError(f"the manifest of the package {NAME!r} is of another format or package; {again}")
    parts = [manifest.library, *manifest.library_folders, *([manifest.loader] if manifest.loader else [])]
    if any("\0" in part or Path(part).is_absolute() or ".." in Path(part).parts for part in parts):
        raise DriverPackageError(f"the manifest of the package {NAME!r} names paths outside its folder; {again}")
    root = folder / "root"
    missing = [part for part in parts if not (root / part).exists()]
    if missing:
        raise DriverPackageError(f"the package {NAME!r} is incomplete: {root / missing[0]} is missing; {again}")
    return TranslatorPackage(
        NAME,
        str(root / manifest.library),
        str(root / manifest.loader) if manifest.loader else "",
        tuple(str(root / part) for part in manifest.library_folders),
        root,
        manifest,
    )
