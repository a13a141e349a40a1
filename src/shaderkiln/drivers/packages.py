"""Driver packages: builds of Vulkan drivers in folders of the user's, several side by side, and the system's own drivers.

A package lives in ``$XDG_DATA_HOME/shaderkiln/drivers/<name>/``: ``manifest.json`` and, unless it was added from a folder of
the user's, the unpacked build in ``root/``. Nothing of the system is changed and no privilege is needed. ``system`` stands for
the drivers that are installed on the machine; it is always there.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from shaderkiln.drivers.package_store import (
    MANIFEST,
    MAX_JSON,
    Deb,
    DriverPackageError,
    PackageFolder,
    PackageManifest,
    default_cache_folder,
    lock_file,
    refuse_separators,
    xdg_folder,
)
from shaderkiln.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from shaderkiln.drivers.debian import Progress

SYSTEM = "system"
"""Name of the implicit package of the machine's own drivers."""

FETCHED = ("mesa-backports", "mesa-stable")
"""Names of the packages that can be fetched."""

_DRIVERS = "mesa-vulkan-drivers"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Manifest(PackageManifest, frozen=True, kw_only=True):
    """What a driver package is."""

    icds: tuple[str, ...]
    """Vulkan drivers: shared objects."""
    shims: tuple[str, ...]
    """Libraries that stand in for the kernel's part of a driver, to be preloaded."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.icds, *self.shims, *self.library_folders)

    @property
    def version(self) -> str:
        """The version of the package with the Vulkan drivers; empty where it is unknown."""
        return self.version_of(_DRIVERS)


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
    return xdg_folder(environment, "XDG_DATA_HOME", ".local/share") / "shaderkiln" / "drivers"


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
                e.name for e in os.scandir(self.folder) if _NAME.fullmatch(e.name) and (Path(e.path) / MANIFEST).is_file()
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
        place = self._place(name)
        manifest = place.manifest()
        if manifest is None:
            advice = f"add it with `kiln drivers add {name}`" if name in FETCHED else f"known names: {', '.join(self._known())}"
            raise NotFoundError(f"no driver package {name!r} is here; {advice}")
        return _package(place, manifest)

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
        place = self._place(name)
        if from_folder is None and name not in FETCHED:
            raise InvalidArgumentError(
                f"unknown driver package {name!r}; packages that can be fetched: {', '.join(FETCHED)}; "
                "a build of your own is added with its folder (--from DIR)"
            )
        refuse_separators(place.path, *([from_folder] if from_folder else []))
        existing = place.existing()
        if from_folder is not None:
            _add_folder(place, from_folder, existing)
        elif existing is None or refresh:
            self._fetch(place, existing, mirror, progress)
        return self.get(name)

    def remove(self, name: str) -> None:
        """Removes a package; a folder of the user's that it was added from stays.

        Raises NotFoundError where there is none, InvalidArgumentError for ``system``, DriverPackageError where it is in use.
        """
        if name == SYSTEM:
            raise InvalidArgumentError(
                "the package 'system' stands for the drivers installed on this machine; it cannot be removed"
            )
        place = self._place(name)
        if not place.path.is_dir():
            raise NotFoundError(f"no driver package {name!r} is here; known names: {', '.join(self._known())}")
        place.remove()

    @contextlib.contextmanager
    def use(self, name: str) -> Iterator[DriverPackage]:
        """The package, which is neither removed nor made again before the block ends. Raises what ``get`` raises."""
        if name == SYSTEM:
            yield system_package()
            return
        place = self._place(name)
        if not place.path.is_dir():
            self.get(name)
        with place.locked(exclusive=False):
            yield self.get(name)

    def _fetch(
        self, place: PackageFolder[Manifest], existing: Manifest | None, mirror: str | None, progress: Progress | None
    ) -> None:
        from shaderkiln.drivers import debian

        codename = debian.codename(
            "driver packages come",
            "unpack a driver build yourself and add it with its folder (--from DIR), or use those of the package 'system'",
        )
        backports = place.path.name == "mesa-backports"
        suite = f"{codename}-backports" if backports else codename
        sources = debian.choose_sources(
            debian.read_apt_sources(),
            codename,
            [codename, suite] if backports else [codename],
            mirror or os.environ.get(debian.MIRROR_VARIABLE),
        )
        with lock_file(self._cache / f"{suite}.lock", exclusive=True, wait=True):
            if existing is None and place.existing():
                return  # Made by another process, while this one waited.
            apt = debian.PrivateApt(self._cache / suite, sources)
            apt.update(progress)
            wanted = [_DRIVERS, "mesa-drm-shim"] if apt.has("mesa-drm-shim") else [_DRIVERS]
            files = apt.closure(suite, wanted, required=[_DRIVERS])

            def describe(root: Path, debs: tuple[Deb, ...]) -> Manifest:
                return describe_root(place.path.name, root, suite=suite, architecture=apt.architecture, debs=debs)

            place.fetch(apt, files, existing, describe, progress)

    def _known(self) -> Sequence[str]:
        return sorted({*FETCHED, *self.names()})

    def _place(self, name: str) -> PackageFolder[Manifest]:
        if not _NAME.fullmatch(name):
            raise InvalidArgumentError(
                f"{name!r} is no name for a driver package: lower-case letters, digits, '.', '_' and '-', at most 64, "
                "beginning with a letter or digit"
            )
        again = f"add it again (`kiln drivers add {name}`)" if name in FETCHED else "remove it and add it again"
        return PackageFolder(self.folder / name, f"driver package {name!r}", again, Manifest)


def _add_folder(place: PackageFolder[Manifest], source: Path, existing: Manifest | None) -> None:
    name = place.path.name
    if name in FETCHED:
        raise InvalidArgumentError(f"{name!r} is the name of a package that is fetched; choose another name for {source}")
    source = source.resolve()
    if not source.is_dir():
        raise NotFoundError(f"{source} is not a folder")
    if existing and (root := place.root(existing)) != source:
        raise AlreadyExistsError(f"a driver package {name!r} is already here (from {root}); remove it first")
    described = describe_root(name, source, root_text=str(source))
    place.install(lambda _new: described)


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
        root=root_text,
    )


def read_icd_file(path: Path) -> str | None:
    """``ICD.library_path`` of a Vulkan ICD file (LoaderDriverInterface.md); None where the file is not one."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_JSON + 1)
        content = msgspec.json.decode(data) if len(data) <= MAX_JSON else None
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
        xdg_folder(environment, "XDG_CONFIG_HOME", ".config"),
        *_paths(environment.get("XDG_CONFIG_DIRS") or "/etc/xdg"),
        Path("/usr/local/etc"),
        Path("/etc"),
        xdg_folder(environment, "XDG_DATA_HOME", ".local/share"),
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


def _package(place: PackageFolder[Manifest], manifest: Manifest) -> DriverPackage:
    root = place.root(manifest)
    return DriverPackage(
        name=manifest.name,
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
