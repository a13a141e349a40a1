"""Reading the machine's apt sources, and fetching with apt into a private folder."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.drivers import debian
from shaderkiln.drivers.debian import AptSource, DebFile, ExpiredListError, FetchError

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n.\nmQENBF\n-----END PGP PUBLIC KEY BLOCK-----"


def test_os_release_values_are_unquoted() -> None:
    text = (
        '# comment\nID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
        'VERSION_CODENAME=\'bookworm\'\nX="a\\"b"\nnot a field\n'
    )
    assert debian.parse_os_release(text) == {
        "ID": "debian",
        "PRETTY_NAME": "Debian GNU/Linux 12 (bookworm)",
        "VERSION_CODENAME": "bookworm",
        "X": 'a"b',
    }


def test_one_line_sources() -> None:
    text = """\
# deb http://commented.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib # comment
deb [arch=amd64 Signed-By=/usr/share/keyrings/a.gpg,/b.gpg trusted=yes] https://other.example/debian bookworm-backports main
deb-src http://mirror.example/debian bookworm main
deb http://incomplete.example
nonsense
"""
    assert debian.parse_one_line_sources(text) == (
        AptSource("http://mirror.example/debian", ("bookworm",), ("main", "contrib")),
        AptSource("https://other.example/debian", ("bookworm-backports",), ("main",), "/usr/share/keyrings/a.gpg /b.gpg"),
    )


def test_deb822_sources() -> None:
    indented_key = KEY.replace("\n", "\n ")
    text = f"""\
# A comment
Types: deb deb-src
# in the middle
URIs: http://one.example/debian
  http://two.example/debian
Suites: bookworm bookworm-updates
Components: main
signed-by: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm

Types: deb
URIs: http://key.example/debian
Suites: trixie
Components: main
Signed-By:
 {indented_key}
"""
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    suites = ("bookworm", "bookworm-updates")
    assert debian.parse_deb822_sources(text) == (
        AptSource("http://one.example/debian", suites, ("main",), keyring),
        AptSource("http://two.example/debian", suites, ("main",), keyring),
        AptSource("http://key.example/debian", ("trixie",), ("main",), KEY),
    )


@given(
    st.lists(
        st.builds(
            AptSource,
            st.from_regex(r"https?://[a-z.]{1,20}/[a-z]{1,10}", fullmatch=True),
            st.tuples(st.from_regex(r"[a-z][a-z-]{0,20}", fullmatch=True)),
            st.just(("main",)),
            st.sampled_from(["", "/usr/share/keyrings/a.gpg", KEY]),
        ),
        max_size=4,
    )
)
def test_formatted_sources_are_read_as_they_were(sources: list[AptSource]) -> None:
    assert debian.parse_deb822_sources(debian.format_deb822_sources(sources, "amd64")) == tuple(sources)


@given(st.text())
def test_any_text_is_read_as_sources_without_an_exception(text: str) -> None:
    for source in debian.parse_one_line_sources(text) + debian.parse_deb822_sources(text):
        assert source.uri
        assert not any(character.isspace() for character in source.uri)
        assert source.suites
    debian.parse_os_release(text)
    debian.parse_download_status(text)
    assert debian.explain_apt_failure(text, "fetching").startswith("fetching failed: ")


def test_sources_are_read_from_both_kinds_of_files(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("deb http://a.example/debian bookworm main\n")
    (tmp_path / "sources.list.d" / "b.sources").write_text(
        "Types: deb\nURIs: http://b.example/d\nSuites: x\nComponents: main\n"
    )
    (tmp_path / "sources.list.d" / "c.list").write_bytes(b"deb http://c.example/\xff bookworm main\n")
    (tmp_path / "sources.list.d" / "d.list.disabled").write_text("deb http://d.example/debian bookworm main\n")
    (tmp_path / "sources.list.d" / "e.list").symlink_to(tmp_path / "nowhere")
    uris = [source.uri for source in debian.read_apt_sources(tmp_path)]
    assert uris == ["http://a.example/debian", "http://b.example/d", "http://c.example/\ufffd"]
    assert debian.read_apt_sources(tmp_path / "nothing") == ()


def test_the_mirror_and_keyring_of_the_machine_are_used_for_backports() -> None:
    sources = (
        AptSource("cdrom:[Debian]/", ("bookworm",), ("main",)),
        AptSource("http://security.example/debian-security", ("bookworm-security",), ("main",)),
        AptSource("http://mirror.example/debian", ("bookworm", "bookworm-updates"), ("main",), "/k.gpg"),
    )
    chosen = debian.choose_sources(sources, "bookworm", ["bookworm", "bookworm-backports"])
    assert chosen == (
        AptSource("http://mirror.example/debian", ("bookworm",), ("main",), "/k.gpg"),
        AptSource("http://mirror.example/debian", ("bookworm-backports",), ("main",), "/k.gpg"),
    )


def test_an_own_entry_for_backports_comes_first_and_an_override_before_all() -> None:
    sources = (
        AptSource("http://mirror.example/debian", ("stable",), ("main",)),
        AptSource("http://backports.example/debian", ("bookworm-backports",), ("main",), "/b.gpg"),
    )
    names = ["bookworm", "bookworm-backports"]
    assert [s.uri for s in debian.choose_sources(sources, "bookworm", names)] == [
        "http://mirror.example/debian",
        "http://backports.example/debian",
    ]
    overridden = debian.choose_sources(sources, "bookworm", names, "http://local.example/debian")
    assert {s.uri for s in overridden} == {"http://local.example/debian"}
    assert overridden[1].signed_by == "/b.gpg"


def test_a_machine_without_an_entry_is_told_what_to_set() -> None:
    with pytest.raises(FetchError, match=debian.MIRROR_VARIABLE):
        debian.choose_sources((), "bookworm", ["bookworm"])


def test_print_uris() -> None:
    first, second = "0a" * 32, "ff" * 32
    text = f"""\
'http://mirror.example/pool/main/z/zlib/zlib1g_1.2.13.dfsg-1_amd64.deb' zlib1g_1%3a1.2.13.dfsg-1_amd64.deb 86684 SHA256:{first}
'http://mirror.example/pool/x_all.deb' mesa-drm-shim_25.0.7-2~bpo12+1_amd64.deb 73024 SHA256:{second}
W: a message
"""
    assert debian.parse_print_uris(text) == (
        DebFile(
            "zlib1g",
            "1:1.2.13.dfsg-1",
            "amd64",
            "zlib1g_1%3a1.2.13.dfsg-1_amd64.deb",
            "http://mirror.example/pool/main/z/zlib/zlib1g_1.2.13.dfsg-1_amd64.deb",
            86684,
            first,
        ),
        DebFile(
            "mesa-drm-shim",
            "25.0.7-2~bpo12+1",
            "amd64",
            "mesa-drm-shim_25.0.7-2~bpo12+1_amd64.deb",
            "http://mirror.example/pool/x_all.deb",
            73024,
            second,
        ),
    )


@pytest.mark.parametrize("name", ["../a_1_amd64.deb", "/etc/a_1_amd64.deb", ".a_1_amd64.deb", "a_1.deb", "a__amd64.deb"])
def test_a_file_name_that_could_leave_the_folder_is_refused(name: str) -> None:
    with pytest.raises(FetchError, match="unexpected"):
        debian.parse_print_uris(f"'http://m/x' {name} 12 SHA256:{'0' * 64}")


@pytest.mark.parametrize("checksum", ["", "MD5Sum:8e7e741807b1e1939df8f58323affdcb", "SHA256:12"])
def test_a_file_without_sha256_is_refused(checksum: str) -> None:
    with pytest.raises(FetchError, match="SHA-256"):
        debian.parse_print_uris(f"'http://m/x' a_1_amd64.deb 12 {checksum}")


def test_download_status() -> None:
    assert debian.parse_download_status("dlstatus:3:81.8512:Retrieving file 3 of 12\n") == pytest.approx(0.818512)
    assert debian.parse_download_status("dlstatus:1:100:x") == 1.0
    assert debian.parse_download_status("pmstatus:dpkg:10:x") is None


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("E: Failed to fetch http://m/InRelease  Temporary failure resolving 'm'", "check the network"),
        ("W: GPG error: http://m x InRelease: NO_PUBKEY 0E98404D386FA1D9", "debian-archive-keyring"),
        ("E: Unable to locate package mesa-drm-shim", "does not have it"),
        ("E: The repository 'http://m x Release' does not have a Release file.", "does not have this suite"),
        ("E: You don't have enough free space in /var/cache/apt/archives/.", "free some space"),
    ],
)
def test_failures_say_what_to_do(message: str, advice: str) -> None:
    text = debian.explain_apt_failure("some noise\n" + message, "fetching the package lists")
    assert message[3:] in text
    assert advice in text


def test_a_machine_without_apt_is_told_about_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(debian, "_tool_path", lambda environment: str(tmp_path))
    with pytest.raises(FetchError, match="--from DIR"):
        debian.PrivateApt(tmp_path / "state", ())


def build_deb(folder: Path, name: str, depends: str, files: dict[str, str]) -> Path:
    """A real Debian package with these files."""
    tree = folder / f"tree-{name}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        f"Package: {name}\nVersion: 1:2.5-1\nArchitecture: all\nMaintainer: A <a@example.org>\n"
        + (f"Depends: {depends}\n" if depends else "")
        + "Description: test\n"
    )
    for path, content in files.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
    deb = folder / f"{name}_2.5-1_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(tree), str(deb)], check=True, capture_output=True)
    return deb


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mirror with one suite, unsigned: a driver that depends on a library, on what the system has, and on data."""
    if not all(shutil.which(tool) for tool in ("apt-get", "dpkg-deb")):
        pytest.skip("needs apt and dpkg")
    folder = tmp_path_factory.mktemp("mirror")
    debs = [
        build_deb(
            folder,
            "mesa-vulkan-drivers",
            "libfake1 (>= 1:2), libc6 (>= 2.30), python3:any, libx11-data",
            {"usr/lib/driver.so": "driver", "usr/share/doc/mesa/copyright": "c"},
        ),
        build_deb(folder, "libfake1", "", {"usr/lib/libfake.so.1": "library"}),
        build_deb(folder, "libx11-data", "", {"usr/share/data": "data"}),
    ]
    records = ""
    for deb in debs:
        control = subprocess.run(["dpkg-deb", "-f", str(deb)], check=True, capture_output=True, text=True).stdout
        digest = hashlib.sha256(deb.read_bytes()).hexdigest()
        records += f"{control}Filename: {deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n\n"
    architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()
    index = folder / "dists" / "suite" / "main" / f"binary-{architecture}" / "Packages.gz"
    index.parent.mkdir(parents=True)
    index.write_bytes(gzip.compress(records.encode(), mtime=0))
    entry = f" {hashlib.sha256(index.read_bytes()).hexdigest()} {index.stat().st_size} main/binary-{architecture}/Packages.gz\n"
    plain = f" {hashlib.sha256(records.encode()).hexdigest()} {len(records)} main/binary-{architecture}/Packages\n"
    (folder / "dists" / "suite" / "Release").write_text(
        f"Suite: suite\nCodename: suite\nArchitectures: {architecture}\nComponents: main\n"
        f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n{entry}{plain}"
    )
    return folder


def sign(mirror: Path, home: Path) -> str:
    """Signs the suite with a new key; the public key as text for Signed-By."""
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
    subprocess.run([*gpg, "--quick-gen-key", "test@example.org", "rsa2048", "sign", "never"], check=True, capture_output=True)
    suite = mirror / "dists" / "suite"
    subprocess.run(
        [*gpg, "--clearsign", "-o", str(suite / "InRelease"), str(suite / "Release")], check=True, capture_output=True
    )
    key = subprocess.run([*gpg, "--armor", "--export"], check=True, capture_output=True, text=True).stdout
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False, capture_output=True)
    return "\n" + "\n".join(line or "." for line in key.strip().splitlines())


def test_an_unsigned_mirror_is_refused(mirror: Path, tmp_path: Path) -> None:
    copy = tmp_path / "unsigned mirror"
    shutil.copytree(mirror, copy)
    (copy / "dists" / "suite" / "InRelease").unlink(missing_ok=True)
    apt = debian.PrivateApt(tmp_path / "state", [AptSource(f"copy:{copy}".replace(" ", "%20"), ("suite",), ("main",))])
    with pytest.raises(FetchError, match="signature could not be checked"):
        apt.update()


@pytest.mark.skipif(not shutil.which("gpg"), reason="needs gpg to sign a mirror of its own")
def test_a_driver_and_its_libraries_are_fetched_and_unpacked(mirror: Path, tmp_path: Path) -> None:
    key = sign(mirror, tmp_path / "gpg")
    state = tmp_path / "state with a space"
    apt = debian.PrivateApt(state, [AptSource(f"copy:{mirror}", ("suite",), ("main",), key)])
    apt.update()
    assert apt.has("libfake1")
    assert not apt.has("mesa-drm-shim")
    files = apt.closure("suite", ["mesa-vulkan-drivers"])
    assert [(f.name, f.version) for f in files] == [("libfake1", "1:2.5-1"), ("mesa-vulkan-drivers", "1:2.5-1")]

    archives = apt.download(files)
    assert [hashlib.sha256(a.read_bytes()).digest() for a in archives] == [
        hashlib.sha256((mirror / f"{name}_2.5-1_all.deb").read_bytes()).digest() for name in ("libfake1", "mesa-vulkan-drivers")
    ]
    steps: list[tuple[str, float]] = []
    root = tmp_path / "root"
    root.mkdir()
    debian.unpack(archives, root, lambda what, done: steps.append((what, done)))
    assert sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()) == [
        "usr/lib/driver.so",
        "usr/lib/libfake.so.1",
    ]
    assert steps[-1] == ("unpacking", 1.0)

    # What an interrupted download left, and what somebody altered, is fetched again.
    archives[0].write_bytes(archives[0].read_bytes()[:100])
    data = bytearray(archives[1].read_bytes())
    data[-1] ^= 1
    archives[1].write_bytes(data)
    again = apt.download(files)
    assert again[0].read_bytes() == (mirror / "libfake1_2.5-1_all.deb").read_bytes()
    assert again[1].read_bytes() == (mirror / "mesa-vulkan-drivers_2.5-1_all.deb").read_bytes()

    # What is downloaded already belongs to it as well.
    assert apt.closure("suite", ["mesa-vulkan-drivers"]) == files

    with pytest.raises(FetchError, match="does not have it"):
        apt.closure("suite", ["mesa-nonexistent"])
    with pytest.raises(FetchError, match=r"the suite 'suite' has no package libc6 for \w+ on this mirror"):
        apt.closure("suite", ["mesa-vulkan-drivers"], required=["mesa-vulkan-drivers", "libc6"])


def test_only_a_list_past_its_date_is_an_expired_one() -> None:
    late = (
        "E: Release file for http://m/dists/forky/InRelease is expired (invalid since 8d 4h 12min 3s). Updates are not applied."
    )
    error = debian.apt_failure(f"W: something else\n{late}", "fetching the package lists")
    assert isinstance(error, ExpiredListError)
    assert error.age == "8d 4h 12min 3s"
    for other in ("W: GPG error: http://m x InRelease: the key has expired", "E: The offer is expired (404)"):
        assert type(debian.apt_failure(other, "fetching the package lists")) is FetchError


def test_a_damaged_archive_is_reported(tmp_path: Path) -> None:
    if not shutil.which("dpkg-deb"):
        pytest.skip("needs dpkg-deb")
    (tmp_path / "a.deb").write_bytes(b"no archive")
    (tmp_path / "root").mkdir()
    with pytest.raises(FetchError, match=r"unpacking a\.deb failed"):
        debian.unpack([tmp_path / "a.deb"], tmp_path / "root")
