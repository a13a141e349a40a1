"""Fetches packages with the system's own package tools into a private folder: apt and dpkg-deb, as any user.

apt works with a state of its own (source list, package lists, an empty dpkg status, cache), so nothing of the system is read
but its sources and keyrings, and nothing of it is changed. Signatures are always checked with the keyring that the system uses
for the same mirror.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from shaderkiln.errors import ShaderkilnError, Trouble

MIRROR_VARIABLE = "SHADERKILN_DEBIAN_MIRROR"
"""Environment variable with the URI of a Debian mirror to use in place of the machine's own."""

Progress = Callable[[str, float], None]
"""Called with what is being done and how much of it is done, 0 to 1."""

OF_THE_SYSTEM = ("libc6", "libgcc-s1", "libstdc++6", "libcrypt1", "python3", "dpkg", "tar", "libvulkan1")
"""Packages that count as installed: the C and C++ runtimes must be the running system's, the others serve no driver."""

NOT_UNPACKED = re.compile(r"gcc-\d+-base|libx11-data|debconf|ucf|sensible-utils|[a-z0-9.+-]+-doc")
"""Packages of a closure that hold only data that no driver reads."""

_MAX_FILE = 1 << 20
_STANDARD_ALIASES = ("stable", "oldstable", "testing")


class FetchError(ShaderkilnError):
    """Packages could not be fetched or unpacked; the message says why and what to do."""

    trouble = Trouble.DRIVER


class ExpiredListError(FetchError):
    """The mirror lags behind: its signed list of packages is past its date."""

    def __init__(self, message: str, age: str) -> None:
        super().__init__(message)
        self.age = age
        """For how long, as apt writes it: ``3d 4h 5min 6s``."""


@dataclass(frozen=True, slots=True)
class AptSource:
    """One binary entry of the machine's apt sources."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str = ""
    """What ``Signed-By`` holds: paths, fingerprints, or a key itself (several lines); empty means the system's trusted keys."""


@dataclass(frozen=True, slots=True)
class DebFile:
    """One package file, as apt names it."""

    name: str
    version: str
    architecture: str
    file_name: str
    """The name apt gives the file in its cache (a colon of the version is ``%3a``)."""
    uri: str
    size: int
    """Bytes."""
    sha256: str
    """Of the file, in hexadecimal, from the signed package list."""


def parse_os_release(text: str) -> dict[str, str]:
    """The fields of an os-release file (os-release(5)); lines that are no assignment are left out."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.strip().partition("=")
        if not separator or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            continue
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        fields[name] = re.sub(r"\\([\"'$`\\])", r"\1", value)
    return fields


def os_release() -> dict[str, str]:
    """The fields of this machine's os-release file; empty where it has none."""
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            with Path(path).open("rb") as stream:
                return parse_os_release(stream.read(_MAX_FILE).decode("utf-8", "replace"))
        except OSError:
            continue
    return {}


def codename(what: str, advice: str) -> str:
    """The name of the suite that this machine runs, which ``what`` from there; elsewhere FetchError is raised with ``advice``."""
    release = os_release()
    name = release.get("VERSION_CODENAME", "")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or "debian" not in (release.get("ID"), *release.get("ID_LIKE", "").split()):
        machine = release.get("PRETTY_NAME", "another")
        raise FetchError(f"{what} from Debian's suites, and this machine runs {machine!r}; {advice}")
    return name


def parse_one_line_sources(text: str) -> tuple[AptSource, ...]:
    """The enabled ``deb`` lines of a ``.list`` file (sources.list(5)); lines apt would not take are left out."""
    sources = []
    for line in text.splitlines():
        match = re.fullmatch(r"\s*deb\s+(?:\[([^\]]*)\]\s*)?([^\s#\[]\S*)\s+([^\s#]+)([^#]*)(?:#.*)?", line)
        if not match:
            continue
        options = {name.lower(): value for name, value in re.findall(r"([A-Za-z-]+)\+?=(\S+)", match[1] or "")}
        signed_by = options.get("signed-by", "").replace(",", " ")
        sources.append(AptSource(match[2], (match[3],), tuple(match[4].split()), signed_by))
    return tuple(sources)


def parse_deb822_sources(text: str) -> tuple[AptSource, ...]:
    """The enabled ``deb`` entries of a ``.sources`` file (deb822 form of sources.list(5)), one for each URI."""
    sources: list[AptSource] = []
    for stanza in _stanzas(text):
        if "deb" not in stanza.get("types", "").split() or stanza.get("enabled", "yes").strip().lower() in ("no", "false", "0"):
            continue
        suites, components = tuple(stanza.get("suites", "").split()), tuple(stanza.get("components", "").split())
        if suites:
            signed_by = stanza.get("signed-by", "").strip()
            sources += [AptSource(uri, suites, components, signed_by) for uri in stanza.get("uris", "").split()]
    return tuple(sources)


def read_apt_sources(etc: Path = Path("/etc/apt")) -> tuple[AptSource, ...]:
    """Every enabled binary entry of the machine, in the order apt reads the files; unreadable files are left out."""
    folder = etc / "sources.list.d"
    files = [etc / "sources.list", *(sorted(folder.iterdir()) if folder.is_dir() else ())]
    sources: list[AptSource] = []
    for file in files:
        if file.suffix not in (".list", ".sources"):
            continue
        try:
            with file.open("rb") as stream:
                text = stream.read(_MAX_FILE).decode("utf-8", "replace")
        except OSError:
            continue
        sources += parse_deb822_sources(text) if file.suffix == ".sources" else parse_one_line_sources(text)
    return tuple(sources)


def choose_sources(
    sources: Iterable[AptSource], codename: str, suites: Sequence[str], mirror: str | None = None
) -> tuple[AptSource, ...]:
    """One entry for each suite: the machine's own entry for it, else the mirror and keyring of its entry for ``codename``.

    ``mirror`` replaces the URI. Raises FetchError where the machine has no entry that fits.
    """
    usable = [s for s in sources if not s.uri.startswith(("cdrom:", "cdrom/")) and (not s.components or "main" in s.components)]
    base = next((s for name in (codename, *_STANDARD_ALIASES) for s in usable if name in s.suites), None)
    chosen = []
    for suite in suites:
        entry = next((s for s in usable if suite in s.suites), base)
        if entry is None and not mirror:
            raise FetchError(
                f"the apt sources of this machine have no entry for {codename!r}, so the mirror for {suite!r} is unknown; "
                f"set {MIRROR_VARIABLE} to the URI of a Debian mirror"
            )
        chosen.append(AptSource(mirror or (entry.uri if entry else ""), (suite,), ("main",), entry.signed_by if entry else ""))
    return tuple(chosen)


def format_deb822_sources(sources: Iterable[AptSource], architecture: str) -> str:
    """The text of a ``.sources`` file with these entries, for one architecture."""
    stanzas = []
    for source in sources:
        lines = [
            "Types: deb",
            f"URIs: {source.uri}",
            f"Suites: {' '.join(source.suites)}",
            f"Components: {' '.join(source.components)}",
            f"Architectures: {architecture}",
        ]
        if source.signed_by:
            first, *rest = source.signed_by.splitlines()
            lines += [f"Signed-By: {first}" if first else "Signed-By:", *(f" {line}" for line in rest)]
        stanzas.append("\n".join(lines) + "\n")
    return "\n".join(stanzas)


def parse_print_uris(text: str) -> tuple[DebFile, ...]:
    """The package files in the output of ``apt-get --print-uris``; other lines (messages) are left out.

    Raises FetchError for a line that names a package file in a way that could leave the folder it is put into, or
    without SHA-256.
    """
    files = []
    for line in text.splitlines():
        match = re.fullmatch(r"'([^']+)' (\S+\.deb) (\d{1,15})(?: SHA256:([0-9a-f]{64}))?(?: \S*)?\s*", line)
        if not match:
            continue
        file_name = match[2]
        parts = file_name.removesuffix(".deb").split("_")
        if "/" in file_name or file_name.startswith(".") or len(parts) != 3 or not all(parts):
            raise FetchError(f"apt names a package file in an unexpected way: {file_name!r}")
        if not match[4]:
            raise FetchError(f"the package list of the mirror has no SHA-256 for {file_name}")
        files.append(DebFile(parts[0], unquote(parts[1]), parts[2], file_name, match[1], int(match[3]), match[4]))
    return tuple(files)


def parse_download_status(line: str) -> float | None:
    """The fraction done in a line that apt writes to ``APT::Status-Fd`` while it downloads; None for every other line."""
    match = re.match(r"dlstatus:\d+:(\d{1,3}(?:\.\d+)?):", line)
    return min(float(match[1]) / 100.0, 1.0) if match else None


def explain_apt_failure(messages: str, what: str) -> str:
    """A message that says what went wrong and what to do, from what apt wrote to standard error."""
    lines = [line for line in messages.splitlines() if line.startswith(("E:", "W:"))] or messages.strip().splitlines()
    first = lines[0].removeprefix("E:").removeprefix("W:").strip() if lines else "apt gave no reason"
    if re.search(r"NO_PUBKEY|not signed|BADSIG|EXPKEYSIG|couldn't be verified|signatures were invalid", messages):
        advice = "the mirror's signature could not be checked; install or update the package debian-archive-keyring"
    elif re.search(r"(?i)unable to locate package|has no installation candidate|no packages found", messages):
        advice = "the suite does not have it on this mirror"
    elif re.search(r"(?i)does not have a Release file|404", messages):
        advice = f"the mirror does not have this suite; set {MIRROR_VARIABLE} to the URI of a complete Debian mirror"
    elif re.search(r"(?i)no space left|enough free space", messages):
        advice = "free some space on that file system"
    elif re.search(r"(?i)resolv|connect|failed to fetch|timed out|unreachable|network", messages):
        advice = (
            f"check the network connection and try again, or set {MIRROR_VARIABLE} to the URI of a mirror that can be reached"
        )
    else:
        advice = "run it again; if it stays, the message above is apt's own"
    return f"{what} failed: {first}; {advice}"


def apt_failure(messages: str, what: str) -> FetchError:
    """The error that stands for a failure of apt, by what it wrote to standard error."""
    text = explain_apt_failure(messages, what)
    if expired := re.search(r"Release file for \S+ is expired \(invalid since ([^)]*)\)", messages):
        return ExpiredListError(text, expired[1])
    return FetchError(text)


class PrivateApt:
    """apt with a state of its own in ``folder``. Kept between calls, an interrupted download goes on where it stopped."""

    def __init__(self, folder: Path, sources: Sequence[AptSource], installed: Sequence[str] = OF_THE_SYSTEM) -> None:
        """``installed``: packages that count as installed. Raises FetchError where the machine has no apt or dpkg."""
        for tool in ("apt-get", "apt-cache", "dpkg", "dpkg-deb"):
            if not shutil.which(tool, path=_tool_path(os.environ)):
                raise FetchError(
                    f"{tool} is not on this machine, and driver packages are fetched with Debian's own tools; elsewhere, "
                    "unpack a driver build yourself and add it with its folder (--from DIR), or use the drivers of the system"
                )
        self._folder = folder
        for name in ("lists/partial", "cache/archives/partial", "none/partial", "log"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.architecture = _run_tool(["dpkg", "--print-architecture"], "asking dpkg for the architecture").strip()
        (folder / "status").write_text("".join(_INSTALLED.format(name, self.architecture) for name in installed))
        (folder / "apt.sources").write_text(format_deb822_sources(sources, self.architecture))
        (folder / "apt.conf").write_text(_APT_CONFIGURATION)

    def update(self, progress: Progress | None = None, *, expired: bool = False) -> None:
        """Fetches the package lists; with ``expired`` also signed ones past their date, for which ExpiredListError is raised else.

        Raises FetchError.
        """
        dates = ["-o", "Acquire::Check-Valid-Until=false"] if expired else []
        self._apt_get([*dates, "update", "--error-on=any"], "fetching the package lists", progress)

    def has(self, package: str) -> bool:
        """Whether the lists have that package."""
        try:
            _run_tool(["apt-cache", *self._options(), "show", "--no-all-versions", "--", package], "asking for a package")
        except FetchError:
            return False
        return True

    def closure(self, suite: str, packages: Sequence[str], required: Sequence[str] = ()) -> tuple[DebFile, ...]:
        """The packages and all that they depend on, beyond the installed ones, without the NOT_UNPACKED ones.

        Raises FetchError, also where one of the ``required`` is not among them.
        """
        # apt does not name what is downloaded already, so it looks where nothing is.
        options = ("-o", "Acquire::ForceHash=SHA256", "-o", f"Dir::Cache::archives={self._folder / 'none'}")
        arguments = ["install", "--print-uris", *options, "-qq", "-t", suite, *packages]
        files = parse_print_uris(self._apt_get(arguments, f"resolving {' '.join(packages)}"))
        for name in required:
            if not any(file.name == name for file in files):
                raise FetchError(f"the suite {suite!r} has no package {name} for {self.architecture} on this mirror")
        return tuple(sorted((f for f in files if not NOT_UNPACKED.fullmatch(f.name)), key=lambda f: f.name))

    def download(self, files: Sequence[DebFile], progress: Progress | None = None) -> list[Path]:
        """Fetches the files of a closure, verified by apt against the signed lists; their paths in the same order."""
        archives = self._folder / "cache" / "archives"
        wanted = [f for f in files if not is_whole(archives / f.file_name, f)]
        if wanted:
            names = [f"{f.name}:{f.architecture}={f.version}" for f in wanted]
            self._apt_get(["download", *names], "downloading the packages", progress, archives)
        paths = [archives / f.file_name for f in files]
        for path, file in zip(paths, files, strict=True):
            if file in wanted and not is_whole(path, file):
                raise FetchError(f"downloading {file.name} failed: {path} is missing or incomplete; run it again")
        return paths

    def forget_archives(self) -> None:
        """Removes the downloads. The package lists stay: they make the next refresh short."""
        shutil.rmtree(self._folder / "cache", ignore_errors=True)

    def _options(self) -> list[str]:
        folder = self._folder
        settings = {
            "Dir::State": folder,
            "Dir::State::Lists": folder / "lists",
            "Dir::State::status": folder / "status",
            "Dir::State::extended_states": folder / "extended_states",
            "Dir::Cache": folder / "cache",
            "Dir::Cache::archives": folder / "cache" / "archives",
            "Dir::Log": folder / "log",
            "Dir::Etc::SourceList": folder / "apt.sources",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "APT::Architecture": self.architecture,
        }
        return ["-c", str(folder / "apt.conf"), *(part for k, v in settings.items() for part in ("-o", f"{k}={v}"))]

    def _apt_get(
        self, arguments: Sequence[str], what: str, progress: Progress | None = None, folder: Path | None = None
    ) -> str:
        read_end, write_end = os.pipe()
        command = [
            "apt-get",
            *self._options(),
            "-o",
            f"APT::Status-Fd={write_end}",
            "-y",
            "--no-install-recommends",
            *arguments,
        ]
        with (
            os.fdopen(read_end, errors="replace") as status,
            tempfile.TemporaryFile("w+", errors="replace") as output,
            tempfile.TemporaryFile("w+", errors="replace") as errors,
        ):
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    cwd=folder,
                    pass_fds=(write_end,),
                    env=_tool_environment(),
                )
            finally:
                os.close(write_end)
            try:
                for line in status:
                    fraction = parse_download_status(line)
                    if progress and fraction is not None:
                        progress(what, fraction)
                return_code = process.wait()
            except BaseException:
                process.terminate()
                process.wait()
                raise
            output.seek(0)
            errors.seek(0)
            if return_code:
                raise apt_failure(errors.read(1 << 16), what)
            return output.read(1 << 24)


def is_whole(path: Path, file: DebFile) -> bool:
    """Whether the file is there as the package list says; one of the right size but other content is removed."""
    try:
        if path.stat().st_size != file.size:
            return False
        with path.open("rb") as stream:
            whole = hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256
    except OSError:
        return False
    if not whole:
        path.unlink(missing_ok=True)
    return whole


def unpack(archives: Sequence[Path], root: Path, progress: Progress | None = None) -> None:
    """Unpacks package files into ``root`` with dpkg-deb, without documentation and translations. Raises FetchError."""
    for number, archive in enumerate(archives):
        if progress:
            progress("unpacking", number / len(archives))
        _run_tool(["dpkg-deb", "-x", str(archive), str(root)], f"unpacking {archive.name}")
    for name in ("doc", "man", "locale", "bug", "lintian", "info", "doc-base"):
        shutil.rmtree(root / "usr" / "share" / name, ignore_errors=True)
    if progress:
        progress("unpacking", 1.0)


_INSTALLED = """\
Package: {0}
Status: install ok installed
Architecture: {1}
Multi-Arch: allowed
Version: 999:0
Maintainer: none
Description: of the system

"""

_APT_CONFIGURATION = """\
#clear APT::Architectures;
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
#clear APT::Default-Release;
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
APT::Get::AllowUnauthenticated "false";
APT::Sandbox::User "root";
"""


def _stanzas(text: str) -> Iterable[dict[str, str]]:
    stanza: dict[str, str] = {}
    name = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if stanza:
                yield stanza
            stanza, name = {}, ""
        elif line[0] in " \t":
            if name:
                stanza[name] += "\n" + line[1:]
        else:
            name, separator, value = line.partition(":")
            name = name.strip().lower() if separator else ""
            if name:
                stanza[name] = value.strip()


def _tool_path(environment: Mapping[str, str]) -> str:
    # The tools of the system, also where a plain user's PATH lacks the sbin folders that apt and dpkg look for.
    return os.pathsep.join([environment.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"])


def _tool_environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "LC_", "LANG", "DPKG_", "APT_"))}
    return kept | {"LC_ALL": "C.UTF-8", "PATH": _tool_path(os.environ), "DEBIAN_FRONTEND": "noninteractive"}


def _run_tool(command: Sequence[str], what: str) -> str:
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=_tool_environment(),
            check=False,
        )
    except OSError as error:
        raise FetchError(f"{what} failed: {error}") from error
    if result.returncode:
        lines = result.stderr.strip().splitlines()
        raise FetchError(f"{what} failed: {lines[-1] if lines else f'{command[0]} gave status {result.returncode}'}")
    return result.stdout
