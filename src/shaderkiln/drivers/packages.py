"""Driver packages: builds of Vulkan drivers in folders of the user's, several side by side, and the system's own drivers.

A package lives in ``$XDG_DATA_HOME/shaderkiln/drivers/<name>/``: ``manifest.json`` and, unless it was added from a folder of
the user's, the unpacked build in ``root/``. Nothing of the system is changed and no privilege is needed. ``system`` stands for
the drivers that are installed on the machine; it is always there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from shaderkiln.errors import AccessDeniedError, AlreadyExistsError, InvalidArgumentError, NotFoundError, ShaderkilnError
from shaderkiln.system.files import sync
from shaderkiln.system.locks import open_lock, take_lock

SYSTEM = "system"
"""Name of the implicit package of the machine's own drivers."""

FETCHED = ("mesa-backports", "mesa-stable")
"""Names of the packages that can be fetched."""

Progress = Callable[[str, float], None]
"""Called with what is being done and how much of it is done, 0 to 1."""

_MANIFEST = "manifest.json"
_MAX_JSON = 1 << 20
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_NO_HOME = "/nonexistent"
"""Where the folders of a user without a home folder are looked for: nowhere."""


class DriverPackageError(ShaderkilnError):
    """A driver package is damaged, in use, or could not be made."""


class DriverFolderError(DriverPackageError, AccessDeniedError):
    """The folder of driver packages cannot be written to."""


class Deb(msgspec.Struct, frozen=True):
    """One package file that a driver package was made from."""

    name: str
    version: str
    architecture: str
    sha256: str
    size: int
    """Bytes of the package file."""


class Manifest(msgspec.Struct, frozen=True):
    """What a driver package is, as kept in its ``manifest.json``. Paths are relative to the root."""

    name: str
    suite: str
    """The Debian suite it came from; empty for a folder of the user's."""
    architecture: str
    debs: tuple[Deb, ...]
    icds: tuple[str, ...]
    """Vulkan drivers: shared objects."""
    shims: tuple[str, ...]
    """Libraries that stand in for the kernel's part of a driver, to be preloaded."""
    library_folders: tuple[str, ...]
    created: str
    """UTC, ISO 8601."""
    root: str = "root"
    """Folder of the build: ``root``, or the absolute path of a folder of the user's."""
    format: int = 1

    @property
    def version(self) -> str:
        """The version of the package with the Vulkan drivers; empty where it is unknown."""
        return next((deb.version for deb in self.debs if deb.name == "mesa-vulkan-drivers"), "")


@dataclass(frozen=True, slots=True)
class DriverPackage:
    """One build of drivers, ready to be loaded."""

    name: str
    root: Path
    icds: tuple[str, ...]
    """Paths of the drivers' shared objects; for ``system`` also bare names that the dynamic linker resolves."""
    shims: tuple[str, ...] = ()
    library_folders: tuple[str, ...] = ()
    manifest: Manifest | None = None
    """None for ``system``."""

    @property
    def version(self) -> str:
        return self.manifest.version if self.manifest else ""

    @property
    def removable(self) -> bool:
        return self.manifest is not None


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_DATA_HOME/shaderkiln/drivers``, by default below ``~/.local/share``."""
    return _xdg(environment, "XDG_DATA_HOME", ".local/share") / "shaderkiln" / "drivers"


def default_cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_CACHE_HOME/shaderkiln/apt``, by default below ``~/.cache``: downloads that may be interrupted."""
    return _xdg(environment, "XDG_CACHE_HOME", ".cache") / "shaderkiln" / "apt"


class DriverPackages:
    """The driver packages of a user."""

    def __init__(self, folder: Path | None = None, cache: Path | None = None) -> None:
        """Touches nothing; ``folder`` and ``cache`` default to the user's XDG folders."""
        self.folder = folder or default_folder()
        self._cache = cache or default_cache_folder()

    def names(self) -> tuple[str, ...]:
        """The packages that are there, sorted, then ``system``."""
        try:
            entries = [
                e.name for e in os.scandir(self.folder) if _NAME.fullmatch(e.name) and (Path(e.path) / _MANIFEST).is_file()
            ]
        except (FileNotFoundError, NotADirectoryError):
            entries = []
        return (*sorted(entries), SYSTEM)

    def list(self) -> tuple[DriverPackage, ...]:
        """Every package that can be used, ``system`` last; damaged ones are left out (``get`` says what is wrong with one)."""
        packages = []
        for name in self.names():
            with contextlib.suppress(DriverPackageError, NotFoundError):
                packages.append(self.get(name))
        return tuple(packages)

    def get(self, name: str) -> DriverPackage:
        """The package of that name.

        Raises NotFoundError where there is none, DriverPackageError where it is damaged.
        """
        if name == SYSTEM:
            return system_package()
        folder = self._folder_of(name)
        try:
            with (folder / _MANIFEST).open("rb") as stream:
                data = stream.read(_MAX_JSON + 1)
        except (FileNotFoundError, NotADirectoryError):
            advice = f"add it with `kiln drivers add {name}`" if name in FETCHED else f"known names: {', '.join(self._known())}"
            raise NotFoundError(f"no driver package {name!r} is here; {advice}") from None
        except OSError as error:
            raise DriverPackageError(f"driver package {name!r} cannot be read: {error}") from error
        return _opened(folder, name, data)

    def add(
        self,
        name: str,
        *,
        from_folder: Path | None = None,
        refresh: bool = False,
        mirror: str | None = None,
        progress: Progress | None = None,
    ) -> DriverPackage:
        """Makes the package, by fetching it or, with ``from_folder``, from an unpacked build that stays where it is.

        A package that is already there is returned as it is, without any use of the network; with ``refresh`` it is made again
        where the suite has other versions now. ``mirror`` is the URI of a Debian mirror to use in place of the machine's own
        (also: environment variable SHADERKILN_DEBIAN_MIRROR). An interrupted call leaves no package, only downloads that the
        next call goes on with.

        Raises InvalidArgumentError for a name that is not allowed or not known, AlreadyExistsError where another folder has
        that name, DriverPackageError and ``debian.FetchError`` where it cannot be made; the messages say what to do.
        """
        if name == SYSTEM:
            raise InvalidArgumentError(
                "the package 'system' stands for the drivers installed on this machine; it is always there"
            )
        folder = self._folder_of(name)
        if from_folder is None and name not in FETCHED:
            raise InvalidArgumentError(
                f"unknown driver package {name!r}; packages that can be fetched: {', '.join(FETCHED)}; "
                "a build of your own is added with its folder (--from DIR)"
            )
        for part in (folder, from_folder):
            if part is not None and re.search("[:;$]", str(part.absolute())):
                raise InvalidArgumentError(f"{part} has a character (':', ';' or '$') that a path of libraries cannot hold")
        with self._locked(name, shared=True):
            existing = self._existing(name)
        if from_folder is not None:
            return self._add_folder(name, folder, from_folder, existing)
        if existing and not refresh:
            return existing
        return self._fetch(name, folder, existing, mirror, progress)

    def remove(self, name: str) -> None:
        """Removes a package; a folder of the user's that it was added from stays.

        Raises NotFoundError where there is none, InvalidArgumentError for ``system``, DriverPackageError where it is in use.
        """
        if name == SYSTEM:
            raise InvalidArgumentError(
                "the package 'system' stands for the drivers installed on this machine; it cannot be removed"
            )
        folder = self._folder_of(name)
        if not folder.is_dir():
            raise NotFoundError(f"no driver package {name!r} is here; known names: {', '.join(self._known())}")
        with self._locked(name), self._scratch(name) as scratch:
            folder.rename(scratch / "removed")

    @contextlib.contextmanager
    def use(self, name: str) -> Iterator[DriverPackage]:
        """The package, which is neither removed nor made again before the block ends. Raises what ``get`` raises."""
        if name == SYSTEM:
            yield system_package()
            return
        if not self._folder_of(name).is_dir():
            self.get(name)
        with self._locked(name, shared=True):
            yield self.get(name)

    def _fetch(
        self, name: str, folder: Path, existing: DriverPackage | None, mirror: str | None, progress: Progress | None
    ) -> DriverPackage:
        import shutil

        from shaderkiln.drivers import debian

        release = _os_release()
        codename = release.get("VERSION_CODENAME", "")
        distributions = (release.get("ID", ""), *release.get("ID_LIKE", "").split())
        if not re.fullmatch(r"[a-z][a-z0-9-]*", codename) or "debian" not in distributions:
            raise debian.FetchError(
                f"driver packages come from Debian's suites, and this machine runs {release.get('PRETTY_NAME', 'another')!r}; "
                "unpack a driver build yourself and add it with its folder (--from DIR), or use those of the package 'system'"
            )
        backports = name == "mesa-backports"
        suite = f"{codename}-backports" if backports else codename
        sources = debian.choose_sources(
            debian.read_apt_sources(),
            codename,
            [codename, suite] if backports else [codename],
            mirror or os.environ.get(debian.MIRROR_VARIABLE),
        )
        state = self._cache / suite
        with _lock_file(self._cache / f"{suite}.lock", wait=True):
            if existing is None and (made := self._existing(name)):
                return made  # By another process, while this one waited.
            apt = debian.PrivateApt(state, sources)
            apt.update(progress)
            wanted = ["mesa-vulkan-drivers"]
            if apt.has("mesa-drm-shim"):
                wanted.append("mesa-drm-shim")
            files = apt.closure(suite, wanted)
            if not any(file.name == wanted[0] for file in files):
                raise debian.FetchError(f"the suite {suite!r} has no package {wanted[0]} for {apt.architecture} on this mirror")
            versions = sorted((file.name, file.version, file.architecture) for file in files)
            if (
                existing
                and existing.manifest
                and versions == sorted((d.name, d.version, d.architecture) for d in existing.manifest.debs)
            ):
                return existing
            archives = apt.download(files, progress)
            with self._locked(name), self._scratch(name) as scratch:
                root = scratch / "new" / "root"
                root.mkdir(parents=True)
                debian.unpack(archives, root, progress)
                debs = tuple(Deb(f.name, f.version, f.architecture, f.sha256, f.size) for f in files)
                manifest = describe_root(name, root, suite=suite, architecture=apt.architecture, debs=debs)
                install_folder(folder, scratch, manifest)
            shutil.rmtree(state / "cache", ignore_errors=True)  # The package lists stay: they make the next refresh short.
        return self.get(name)

    def _add_folder(self, name: str, folder: Path, source: Path, existing: DriverPackage | None) -> DriverPackage:
        if name in FETCHED:
            raise InvalidArgumentError(f"{name!r} is the name of a package that is fetched; choose another name for {source}")
        source = source.resolve()
        if not source.is_dir():
            raise NotFoundError(f"{source} is not a folder")
        if existing and existing.root != source:
            raise AlreadyExistsError(f"a driver package {name!r} is already here (from {existing.root}); remove it first")
        described = describe_root(name, source, root_text=str(source))
        with self._locked(name), self._scratch(name) as scratch:
            (scratch / "new").mkdir()
            install_folder(folder, scratch, described)
        return self.get(name)

    def _existing(self, name: str) -> DriverPackage | None:
        # A damaged package counts as absent, so that adding it again mends it.
        try:
            return self.get(name)
        except (NotFoundError, DriverPackageError):
            return None

    def _known(self) -> Sequence[str]:
        return sorted({*FETCHED, *self.names()})

    def _folder_of(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise InvalidArgumentError(
                f"{name!r} is no name for a driver package: lower-case letters, digits, '.', '_' and '-', at most 64, "
                "beginning with a letter or digit"
            )
        return self.folder / name

    @contextlib.contextmanager
    def _scratch(self, name: str) -> Iterator[Path]:
        """A folder beside the packages; what a killed call left there is removed first."""
        import shutil
        import tempfile

        for left in self.folder.glob(f".{name}~*.partial"):
            shutil.rmtree(left, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{name}~", suffix=".partial", dir=self.folder))
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    @contextlib.contextmanager
    def _locked(self, name: str, *, shared: bool = False) -> Iterator[None]:
        with _lock_file(self.folder / ".locks" / name, shared=shared, wait=shared) as taken:
            if not taken:
                raise DriverPackageError(f"driver package {name!r} is in use by another kiln; wait until it has ended")
            yield


def install_folder(folder: Path, scratch: Path, manifest: msgspec.Struct) -> None:
    """Puts what was made in ``scratch / "new"``, with its manifest, in the place of ``folder``: all of it or nothing."""
    new = scratch / "new"
    with (new / _MANIFEST).open("xb") as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
    sync(new)
    if folder.exists():
        folder.rename(scratch / "old")
    try:
        new.rename(folder)
    except BaseException:
        if (scratch / "old").exists() and not folder.exists():
            (scratch / "old").rename(folder)
        raise
    sync(folder.parent)


def describe_root(
    name: str,
    root: Path,
    *,
    suite: str = "",
    architecture: str = "",
    debs: tuple[Deb, ...] = (),
    root_text: str = "root",
) -> Manifest:
    """The manifest of an unpacked build: its ICD files, shims and library folders, found by looking.

    Raises DriverPackageError where it has no Vulkan driver.
    """
    folders = [f for f in _library_folders(root) if any(_is_shared_object(p.name) for p in _entries(f))]
    icds: list[str] = []
    for icd_file in _icd_files(root):
        library = read_icd_file(icd_file)
        path = _find_library(library, icd_file, folders, root) if library else None
        if path is not None:
            icds.append(os.path.relpath(path, root))
    if not icds:
        raise DriverPackageError(
            f"{root} has no Vulkan driver: no ICD file (…/vulkan/icd.d/*.json) below it names a shared object that is there"
        )
    shims = sorted(os.path.relpath(p, root) for f in folders for p in _entries(f) if p.name.endswith("_noop_drm_shim.so"))
    return Manifest(
        name=name,
        suite=suite,
        architecture=architecture,
        debs=debs,
        icds=tuple(dict.fromkeys(sorted(icds))),
        shims=tuple(shims),
        library_folders=tuple(os.path.relpath(f, root) for f in folders),
        created=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        root=root_text,
    )


def read_icd_file(path: Path) -> str | None:
    """``ICD.library_path`` of a Vulkan ICD file (LoaderDriverInterface.md); None where the file is not one."""
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_JSON + 1)
        content = msgspec.json.decode(data) if len(data) <= _MAX_JSON else None
    except (OSError, msgspec.DecodeError, RecursionError, ValueError):
        return None
    icd = content.get("ICD") if isinstance(content, dict) else None
    library = icd.get("library_path") if isinstance(icd, dict) else None
    if not isinstance(icd, dict) or not isinstance(library, str) or not library or "\0" in library:
        return None
    return None if icd.get("library_arch", "64") != "64" else library


def system_icd_files(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The ICD files that the Vulkan loader would take, in its order (LoaderDriverInterface.md, "Driver Discovery on Linux")."""
    named = environment.get("VK_DRIVER_FILES") or environment.get("VK_ICD_FILENAMES")
    if named:
        return tuple(Path(part) for part in named.split(os.pathsep) if part)
    folders = [
        _xdg(environment, "XDG_CONFIG_HOME", ".config"),
        *_paths(environment.get("XDG_CONFIG_DIRS") or "/etc/xdg"),
        Path("/usr/local/etc"),
        Path("/etc"),
        _xdg(environment, "XDG_DATA_HOME", ".local/share"),
        *_paths(environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"),
    ]
    added = [Path(part) for part in environment.get("VK_ADD_DRIVER_FILES", "").split(os.pathsep) if part]
    found = [path for folder in dict.fromkeys(folders) for path in sorted(_entries(folder / "vulkan" / "icd.d"))]
    return tuple(dict.fromkeys([*added, *(path for path in found if path.suffix == ".json")]))


def system_package(environment: Mapping[str, str] = os.environ) -> DriverPackage:
    """The drivers that are installed on the machine; ``icds`` is empty where there are none."""
    folders = [f for f in _library_folders(Path("/")) if f.is_dir()]
    icds: list[str] = []
    for icd_file in system_icd_files(environment):
        library = read_icd_file(icd_file)
        if library:
            found = _find_library(library, icd_file, folders, None)
            if found is not None:
                icds.append(str(found))
            elif "/" not in library:
                icds.append(library)
    return DriverPackage(name=SYSTEM, root=Path("/"), icds=tuple(dict.fromkeys(icds)))


def _opened(folder: Path, name: str, data: bytes) -> DriverPackage:
    again = f"add it again (`kiln drivers add {name}`)" if name in FETCHED else "remove it and add it again"
    try:
        if len(data) > _MAX_JSON:
            raise ValueError("too large")
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise DriverPackageError(f"the manifest of driver package {name!r} is damaged ({error}); {again}") from None
    if manifest.format != 1 or manifest.name != name:
        raise DriverPackageError(f"the manifest of driver package {name!r} is of another format or package; {again}")
    root = Path(manifest.root) if Path(manifest.root).is_absolute() else folder / "root"
    parts = [*manifest.icds, *manifest.shims, *manifest.library_folders]
    if any("\0" in part or Path(part).is_absolute() or ".." in Path(part).parts for part in parts):
        raise DriverPackageError(f"the manifest of driver package {name!r} names paths outside its folder; {again}")
    missing = [part for part in parts if not (root / part).exists()]
    if missing:
        raise DriverPackageError(f"driver package {name!r} is incomplete: {root / missing[0]} is missing; {again}")
    return DriverPackage(
        name=name,
        root=root,
        icds=tuple(str(root / part) for part in manifest.icds),
        shims=tuple(str(root / part) for part in manifest.shims),
        library_folders=tuple(str(root / part) for part in manifest.library_folders),
        manifest=manifest,
    )


def _icd_files(root: Path) -> list[Path]:
    folders = [root / p / "vulkan" / "icd.d" for p in ("usr/share", "usr/local/share", "share", "etc", "usr/local/etc", ".")]
    return [path for folder in folders for path in sorted(_entries(folder)) if path.suffix == ".json"]


def _library_folders(root: Path) -> list[Path]:
    """Where libraries are below ``root``, the multiarch folders first."""
    bases = [root / p for p in ("usr/lib", "lib", "usr/local/lib", "usr/lib64", "lib64", "usr/local/lib64")]
    machine = os.uname().machine
    multiarch = [base / f"{machine}-linux-gnu" for base in bases]
    folders: dict[Path, Path] = {}
    for folder in [*multiarch, *bases]:
        if folder.is_dir():
            folders.setdefault(folder.resolve(), folder)
    return list(folders.values())


def _find_library(library: str, icd_file: Path, folders: Iterable[Path], root: Path | None) -> Path | None:
    """The file an ICD's ``library_path`` means: a bare name, a path relative to the ICD file, or an absolute path.

    With ``root``, only a file below it; an absolute path is also looked for below it, as the build was unpacked somewhere else.
    """
    if "/" not in library:
        candidates = [folder / library for folder in folders]
    elif library.startswith("/"):
        candidates = [Path(library)] if root is None else [Path(library), root / library.lstrip("/")]
    else:
        candidates = [icd_file.parent / library]
    for candidate in candidates:
        path = Path(os.path.normpath(candidate))
        if (root is None or path.is_relative_to(root)) and path.is_file():
            return path
    return None


def _is_shared_object(name: str) -> bool:
    return name.endswith(".so") or ".so." in name


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _paths(value: str) -> list[Path]:
    return [Path(part) for part in value.split(os.pathsep) if part.startswith("/")]


def _xdg(environment: Mapping[str, str], variable: str, default: str) -> Path:
    value = environment.get(variable, "")
    # The base directory specification: a relative path is invalid and counts as unset.
    if value.startswith("/"):
        return Path(value)
    home = environment.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  Path.expanduser raises where there is no home
    return Path(home if home.startswith("/") else _NO_HOME) / default


def _os_release() -> dict[str, str]:
    from shaderkiln.drivers.debian import parse_os_release

    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            with Path(path).open("rb") as stream:
                return parse_os_release(stream.read(_MAX_JSON).decode("utf-8", "replace"))
        except OSError:
            continue
    return {}


@contextlib.contextmanager
def _lock_file(path: Path, *, shared: bool = False, wait: bool) -> Iterator[bool]:
    """Holds an advisory lock; yields False where somebody else holds it and ``wait`` is off."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = open_lock(path)
    except OSError as error:
        if shared and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            yield True  # A folder that nobody here can write to needs no protection from being removed.
            return
        raise DriverFolderError(f"{path.parent} cannot be written to: {error.strerror}") from error
    try:
        yield take_lock(descriptor, shared=shared, wait=wait)
    finally:
        os.close(descriptor)
