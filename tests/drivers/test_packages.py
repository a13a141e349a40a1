"""Driver packages in the user's folder, and the drivers of the system."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.drivers import debian, packages
from shaderkiln.drivers.package_store import DriverPackageError, default_cache_folder
from shaderkiln.drivers.packages import DriverPackages
from shaderkiln.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError

MULTIARCH = f"usr/lib/{os.uname().machine}-linux-gnu"


@pytest.fixture
def store(tmp_path: Path) -> DriverPackages:
    return DriverPackages(tmp_path / "data" / "drivers", tmp_path / "cache")


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """An unpacked build with one driver, one shim, and ICD files that name nothing usable."""
    root = tmp_path / "a build"
    libraries = root / MULTIARCH
    libraries.mkdir(parents=True)
    for name in ("libvulkan_radeon.so", "libamdgpu_noop_drm_shim.so", "libdrm.so.2"):
        (libraries / name).write_bytes(b"\x7fELF")
    icd_folder = root / "usr/share/vulkan/icd.d"
    icd_folder.mkdir(parents=True)
    write_icd(icd_folder / "radeon_icd.json", "libvulkan_radeon.so")
    write_icd(icd_folder / "missing_icd.json", "libvulkan_gone.so")
    write_icd(icd_folder / "outside_icd.json", "../../../../../../../../bin/sh")
    (icd_folder / "damaged_icd.json").write_text('{"ICD": {"library_path"')
    return root


def write_icd(path: Path, library: str, **more: str) -> None:
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": library, **more}}))


def test_without_packages_there_is_the_system(store: DriverPackages) -> None:
    assert store.names() == ("system",)
    assert [package.name for package in store.list()] == ["system"]
    assert not store.get("system").removable
    assert not store.folder.exists()


def test_folders_are_those_of_the_base_directory_specification() -> None:
    assert packages.default_folder({"XDG_DATA_HOME": "/d", "HOME": "/h"}) == Path("/d/shaderkiln/drivers")
    assert packages.default_folder({"XDG_DATA_HOME": "relative", "HOME": "/h"}) == Path("/h/.local/share/shaderkiln/drivers")
    assert default_cache_folder({"HOME": "/h"}) == Path("/h/.cache/shaderkiln/apt")


def test_a_build_of_the_user_is_added_and_stays_where_it_is(store: DriverPackages, build: Path) -> None:
    before = sorted(str(p) for p in build.rglob("*"))
    package = store.add("mine", from_folder=build)
    assert package == store.get("mine")
    assert package.root == build
    assert package.icds == (str(build / MULTIARCH / "libvulkan_radeon.so"),)
    assert package.shims == (str(build / MULTIARCH / "libamdgpu_noop_drm_shim.so"),)
    assert package.library_folders == (str(build / MULTIARCH),)
    assert store.names() == ("mine", "system")
    assert store.add("mine", from_folder=build).icds == package.icds
    assert sorted(str(p) for p in build.rglob("*")) == before

    store.remove("mine")
    assert store.names() == ("system",)
    assert sorted(str(p) for p in build.rglob("*")) == before
    assert [p.name for p in store.folder.iterdir()] == [".locks"]


def test_what_cannot_be_added(store: DriverPackages, build: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="mesa-backports, mesa-stable"):
        store.add("mesa-nightly")
    with pytest.raises(InvalidArgumentError, match="always there"):
        store.add("system")
    with pytest.raises(InvalidArgumentError, match="choose another name"):
        store.add("mesa-stable", from_folder=build)
    with pytest.raises(NotFoundError, match="not a folder"):
        store.add("mine", from_folder=tmp_path / "nothing")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DriverPackageError, match="no Vulkan driver"):
        store.add("mine", from_folder=empty)
    colon = tmp_path / "a:b"
    colon.mkdir()
    with pytest.raises(InvalidArgumentError, match="cannot hold"):
        store.add("mine", from_folder=colon)
    store.add("mine", from_folder=build)
    other = tmp_path / "other"
    build.rename(other)
    build.mkdir()
    (build / "usr").symlink_to(other / "usr")
    with pytest.raises(AlreadyExistsError, match="remove it first"):
        store.add("mine", from_folder=other)


@pytest.mark.parametrize("name", ["", ".hidden", "../up", "a/b", "A", "a\0", "a" * 65, "a b"])
def test_names_that_are_not_allowed(store: DriverPackages, name: str) -> None:
    for call in (store.get, store.add, store.remove):
        with pytest.raises(InvalidArgumentError):
            call(name)


def test_what_cannot_be_removed(store: DriverPackages) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be removed"):
        store.remove("system")
    with pytest.raises(NotFoundError, match="mesa-backports"):
        store.remove("gone")
    with pytest.raises(NotFoundError, match="kiln drivers add mesa-stable"):
        store.get("mesa-stable")


def test_a_package_in_use_by_another_process_is_not_removed(store: DriverPackages, build: Path) -> None:
    store.add("mine", from_folder=build)
    program = (
        "import sys; from pathlib import Path; from shaderkiln.drivers.packages import DriverPackages\n"
        "with DriverPackages(Path(sys.argv[1])).use('mine'):\n    print('ready', flush=True); sys.stdin.read()\n"
    )
    user = subprocess.Popen(
        [sys.executable, "-c", program, str(store.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert user.stdout is not None
    assert user.stdout.readline() == "ready\n"
    with pytest.raises(DriverPackageError, match="in use"):
        store.remove("mine")
    with store.use("mine") as package:
        assert package.name == "mine"
    user.communicate("")
    store.remove("mine")


def test_leftovers_of_a_killed_call_are_removed_and_never_listed(store: DriverPackages, build: Path) -> None:
    left = store.folder / ".mine~x.partial"
    (left / "new" / "root").mkdir(parents=True)
    others = store.folder / ".mine.other~x.partial"
    others.mkdir()
    assert store.names() == ("system",)
    store.add("mine", from_folder=build)
    assert not left.exists()
    assert others.exists()


def test_a_package_of_which_a_killed_call_had_moved_the_old_one_comes_back(store: DriverPackages, build: Path) -> None:
    store.add("mine", from_folder=build)
    left = store.folder / ".mine~x.partial"
    left.mkdir()
    (store.folder / "mine").rename(left / "old")
    store.add("mine", from_folder=build)
    assert store.get("mine").root == build
    assert not left.exists()


def test_an_interrupted_replacement_leaves_the_old_package(
    store: DriverPackages, build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = store.add("mine", from_folder=build)
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.add("mine", from_folder=build)
    monkeypatch.undo()
    assert store.get("mine") == old
    assert sorted(p.name for p in store.folder.iterdir()) == [".locks", "mine"]


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"name": "other"},
        {"icds": ["/bin/sh"]},
        {"shims": ["../../x.so"]},
        {"icds": ["usr/lib/gone.so"]},
        {"icds": "text"},
        {"library_folders": ["a\0b"]},
    ],
)
def test_a_changed_manifest_is_refused(store: DriverPackages, build: Path, change: dict[str, object]) -> None:
    store.add("mine", from_folder=build)
    path = store.folder / "mine" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DriverPackageError, match="add it again"):
        store.get("mine")
    assert [package.name for package in store.list()] == ["system"]
    # Adding it again mends it.
    assert store.add("mine", from_folder=build).root == build


def test_no_manifest_is_read_beyond_its_limit(store: DriverPackages, build: Path) -> None:
    store.add("mine", from_folder=build)
    with (store.folder / "mine" / "manifest.json").open("r+b") as stream:
        stream.truncate(1 << 40)
    started = time.monotonic()
    with pytest.raises(DriverPackageError, match="too large"):
        store.get("mine")
    assert time.monotonic() - started < 1


@given(st.binary(max_size=300))
def test_any_manifest_gives_the_documented_error(data: bytes) -> None:
    with pytest.raises(DriverPackageError):
        DriverPackages(Path("/nowhere"))._place("mine").parse(data)


@given(
    st.one_of(
        st.binary(max_size=200),
        st.recursive(st.none() | st.text(), lambda s: st.dictionaries(st.text(), s)).map(
            lambda value: json.dumps({"ICD": value}).encode()
        ),
    )
)
def test_any_icd_file_is_read_without_an_exception(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "icd.json"
    path.write_bytes(data)
    library = packages.read_icd_file(path)
    assert library is None or (library and "\0" not in library)


def test_icd_files_of_another_word_size_are_left_out(tmp_path: Path) -> None:
    write_icd(tmp_path / "a.json", "libA.so", library_arch="32")
    write_icd(tmp_path / "b.json", "libB.so", library_arch="64")
    assert packages.read_icd_file(tmp_path / "a.json") is None
    assert packages.read_icd_file(tmp_path / "b.json") == "libB.so"
    (tmp_path / "deep.json").write_bytes(b"[" * 100_000)
    assert packages.read_icd_file(tmp_path / "deep.json") is None


def test_drivers_of_the_system_are_found_as_the_loader_finds_them(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_DIRS": str(tmp_path / "etc"), "XDG_DATA_DIRS": str(tmp_path / "share")}
    folder = tmp_path / "share" / "vulkan" / "icd.d"
    folder.mkdir(parents=True)
    own = tmp_path / "home" / ".config" / "vulkan" / "icd.d"
    own.mkdir(parents=True)
    driver = tmp_path / "libdriver.so"
    driver.write_bytes(b"\x7fELF")
    write_icd(folder / "b.json", str(driver))
    write_icd(own / "a.json", "libGLX_of_nobody.so.0")
    (folder / "notes.txt").write_text("no ICD")

    found = [path for path in packages.system_icd_files(home) if path.is_relative_to(tmp_path)]
    assert found == [own / "a.json", folder / "b.json"]
    icds = packages.system_package(home).icds
    # A bare name that is not found stays, because the dynamic linker may know more folders.
    assert [icd for icd in icds if "of_nobody" in icd or icd.startswith(str(tmp_path))] == [
        "libGLX_of_nobody.so.0",
        str(driver),
    ]

    only = {**home, "VK_DRIVER_FILES": f"{folder / 'b.json'}:{tmp_path / 'gone.json'}"}
    assert packages.system_package(only).icds == (str(driver),)
    older = {**home, "VK_ICD_FILENAMES": str(folder / "b.json")}
    assert packages.system_package(older).icds == (str(driver),)


def test_another_distribution_is_told_what_it_can_do(store: DriverPackages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "os_release", lambda: {"ID": "fedora", "PRETTY_NAME": "Fedora Linux 42"})
    with pytest.raises(debian.FetchError, match=r"Fedora Linux 42.*--from DIR"):
        store.add("mesa-stable")
    assert store.names() == ("system",)


def test_a_mirror_that_cannot_be_reached_leaves_nothing(store: DriverPackages, tmp_path: Path) -> None:
    if "debian" not in debian.os_release().get("ID", ""):
        pytest.skip("needs Debian")
    with pytest.raises(debian.FetchError, match=debian.MIRROR_VARIABLE):
        store.add("mesa-stable", mirror=f"copy:{tmp_path / 'no-mirror'}")
    assert store.names() == ("system",)
    assert not store.folder.exists() or [p.name for p in store.folder.iterdir()] == [".locks"]


@pytest.mark.driver
@pytest.mark.parametrize("name", packages.FETCHED)
def test_a_fetched_package_is_whole_and_adding_it_again_takes_no_time(name: str) -> None:
    store = DriverPackages()
    if name not in store.names():
        pytest.skip(f"driver package {name} is not installed for this user; `kiln drivers add {name}` installs it")
    package = store.get(name)
    assert package.manifest is not None
    assert package.version
    names = [deb.name for deb in package.manifest.debs]
    assert "mesa-vulkan-drivers" in names
    assert not {"libc6", "libstdc++6", "libgcc-s1", "python3"} & set(names)
    assert any(icd.endswith("/libvulkan_radeon.so") for icd in package.icds)
    assert all(len(deb.sha256) == 64 for deb in package.manifest.debs)

    started = time.monotonic()
    assert store.add(name) == package
    assert time.monotonic() - started < 0.5
