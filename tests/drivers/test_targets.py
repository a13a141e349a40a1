"""Targets of driver packages, family names, and build IDs of drivers."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderkiln.drivers import targets
from shaderkiln.drivers.package_store import Deb
from shaderkiln.drivers.packages import FETCHED, DriverPackage, DriverPackages, Manifest
from shaderkiln.drivers.targets import DRM_SHIM, NULL_WINSYS, SOFTWARE, Target


def package(tmp_path: Path, version: str, *names: str, known: str = "navi31 gfx1150") -> DriverPackage:
    """A package of that Mesa version with these drivers and shims; the AMD shim knows the given names."""
    libraries = tmp_path / "lib"
    libraries.mkdir(exist_ok=True)
    for name in names:
        (libraries / name).write_bytes(b"\x7fELF\0" + b"\0".join(known.encode().split()) + b"\0")
    debs = (Deb("mesa-vulkan-drivers", version, "amd64", "0" * 64, 1),)
    return DriverPackage(
        name="a-package",
        root=tmp_path,
        icds=tuple(str(libraries / n) for n in names if n.startswith("libvulkan_")),
        shims=tuple(str(libraries / n) for n in names if n.endswith("_shim.so")),
        library_folders=(str(libraries),),
        manifest=Manifest(name="a-package", suite="", architecture="", debs=debs, icds=(), shims=(), library_folders=()),
    )


def by_family(found: tuple[Target, ...]) -> dict[str, list[Target]]:
    families: dict[str, list[Target]] = {}
    for target in found:
        families.setdefault(target.family, []).append(target)
    return families


def test_amd_through_the_shim_first_then_through_the_null_winsys(tmp_path: Path) -> None:
    built = package(tmp_path, "25.0.7-2~bpo12+1", "libvulkan_radeon.so", "libamdgpu_noop_drm_shim.so")
    families = by_family(targets.candidate_targets(built))
    navi31 = families["amd-navi31"]
    assert [target.method for target in navi31] == [DRM_SHIM, NULL_WINSYS, NULL_WINSYS]
    assert navi31[0].environment == {
        "AMDGPU_GPU_ID": "navi31",
        "LD_PRELOAD": "libamdgpu_noop_drm_shim.so",
        "LD_LIBRARY_PATH": str(tmp_path / "lib"),
    }
    assert [target.environment["RADV_FORCE_FAMILY"] for target in navi31[1:]] == ["navi31", "gfx1100"]
    assert "LD_PRELOAD" not in navi31[1].environment
    # One name for a chip, whatever the driver calls it.
    assert families["amd-strix1"][0].environment["AMDGPU_GPU_ID"] == "gfx1150"
    # The shim does not know navi21.
    assert {target.method for target in families["amd-navi21"]} == {NULL_WINSYS}
    assert {target.vendor for target in navi31} == {"amd"}
    assert navi31[0].icd == str(tmp_path / "lib" / "libvulkan_radeon.so")


def test_mesa_26_has_no_null_winsys(tmp_path: Path) -> None:
    built = package(tmp_path, "26.1.6-1", "libvulkan_radeon.so", "libamdgpu_noop_drm_shim.so", known="navi21 strix1")
    assert [(t.family, t.method) for t in targets.candidate_targets(built)] == [
        ("amd-navi21", DRM_SHIM),
        ("amd-strix1", DRM_SHIM),
    ]


def test_every_vendor_needs_its_shim(tmp_path: Path) -> None:
    drivers = [f"libvulkan_{n}.so" for n in ("nouveau", "freedreno", "asahi", "intel", "intel_hasvk", "lvp", "virtio")]
    built = package(tmp_path, "26.1.6-1", *drivers)
    assert [(t.family, t.method) for t in targets.candidate_targets(built)] == [("software-lavapipe", SOFTWARE)]

    shims = [f"lib{name}_noop_drm_shim.so" for name in ("nouveau", "freedreno", "asahi", "intel")]
    found = targets.candidate_targets(package(tmp_path, "26.1.6-1", *drivers, *shims))
    families = by_family(found)
    assert families["nvidia-nvk-172"][0].environment["NOUVEAU_CHIPSET"] == "172"
    assert families["qualcomm-a740"][0].environment["FD_GPU_ID"] == "740"
    assert families["apple-g13g"][0].environment["LD_PRELOAD"] == "libasahi_noop_drm_shim.so"
    assert families["intel-dg2"][0].environment["INTEL_STUB_GPU_PLATFORM"] == "dg2"
    assert families["intel-dg2"][0].icd.endswith("/libvulkan_intel.so")
    assert families["intel-hsw"][0].icd.endswith("/libvulkan_intel_hasvk.so")
    assert found[-1].family == "software-lavapipe"
    assert len({(t.family, t.icd) for t in found}) == len(found)


def test_family_names_are_plain_and_lead_to_themselves(tmp_path: Path) -> None:
    names = {gpu.family for gpu in targets.AMD} | {f"nvidia-nvk-{chip}" for chip in targets.NVIDIA_CHIPS}
    for name in names:
        assert targets.canonical_family(name) == name
    assert targets.canonical_family("AMD-GFX1100") == "amd-navi31"
    assert targets.canonical_family("amd-raphael_mendocino") == "amd-raphael-mendocino"
    assert targets.canonical_family("nvidia-nvk-ga102") == "nvidia-nvk-172"
    assert targets.canonical_family("whatever-else") == "whatever-else"
    assert not set(targets.ALIASES) & names


@pytest.mark.parametrize(
    ("device", "vendor", "family"),
    [
        ("NVIDIA H200", 0x10DE, "nvidia-h200"),
        ("NVIDIA GeForce RTX 4090", 0x10DE, "nvidia-geforce-rtx-4090"),
        ("AMD Radeon RX 7900 XTX (RADV NAVI31)", 0x1002, "amd-navi31"),
        ("AMD Radeon Graphics (RADV GFX1103_R1)", 0x1002, "amd-phoenix"),
        ("AMD Radeon Graphics (RADV RAPHAEL_MENDOCINO)", 0x1002, "amd-raphael-mendocino"),
        ("Null hardware (RADV NAVI21)", 0x1002, "amd-navi21"),
        ("AMD Radeon RX 6800", 0x1002, "amd-radeon-rx-6800"),
        ("NVIDIA GeForce RTX 3080 (NVK GA102)", 0x10DE, "nvidia-nvk-172"),
        ("Turnip Adreno (TM) 740", 0x5143, "qualcomm-a740"),
        ("Adreno (TM) 830", 0x5143, "qualcomm-a830"),
        ("Apple M1 (G13G B1)", 0x106B, "apple-g13g"),
        ("Intel(R) Arc(tm) A770 Graphics (DG2)", 0x8086, "intel-dg2"),
        ("Intel(R) UHD Graphics 630 (CFL GT2)", 0x8086, "intel-cfl"),
        ("Intel(R) Arc(TM) B580 Graphics", 0x8086, "intel-arc-b580-graphics"),
        ("llvmpipe (LLVM 15.0.6, 256 bits)", 0x10005, "software-lavapipe"),
        ("Mali-G715", 0x13B5, "arm-mali-g715"),
        ("Something (x) New", 0xABCD, "vendor-abcd-something-new"),
        ("", 0x10DE, "nvidia"),
    ],
)
def test_families_of_real_devices(device: str, vendor: int, family: str) -> None:
    assert targets.family_of_device(device, vendor) == family


@given(st.text(max_size=300), st.integers(0, 2**32 - 1))
def test_any_device_name_gives_a_plain_family_name(device: str, vendor: int) -> None:
    family = targets.family_of_device(device, vendor)
    assert family
    assert len(family) <= 64
    assert set(family) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_the_drivers_of_the_system_are_asked_for_their_families() -> None:
    found = targets.candidate_targets(DriverPackage("system", Path("/"), ("/usr/lib/libdriver.so", "libGLX_nvidia.so.0")))
    assert [(t.family, t.icd, t.method) for t in found] == [
        ("", "/usr/lib/libdriver.so", "device"),
        ("", "libGLX_nvidia.so.0", "device"),
        ("", "libEGL_nvidia.so.0", "device"),
    ]
    environment = targets.process_environment(
        found[0], {"LD_LIBRARY_PATH": "/opt/driver", "LD_PRELOAD": "/x.so", "VK_LAYER_PATH": "/l"}
    )
    assert environment["LD_LIBRARY_PATH"] == "/opt/driver"
    assert "LD_PRELOAD" not in environment
    assert "VK_LAYER_PATH" not in environment


def test_nothing_of_the_user_that_changes_a_driver_reaches_a_worker(tmp_path: Path) -> None:
    built = package(tmp_path, "25.0.7", "libvulkan_radeon.so", "libamdgpu_noop_drm_shim.so")
    target = next(t for t in targets.candidate_targets(built) if t.family == "amd-navi31")
    kept = {"PATH": "/bin", "HOME": "/home/a", "LANG": "C.UTF-8", "PYTHONPATH": "/p", "USER": "a", "UV_CACHE_DIR": "/u"}
    dropped = dict.fromkeys(
        [
            *("VK_INSTANCE_LAYERS", "VK_DRIVER_FILES", "MESA_SHADER_CACHE_DIR", "MESA_LOADER_DRIVER_OVERRIDE", "RADV_DEBUG"),
            *("ACO_DEBUG", "AMD_DEBUG", "ANV_DEBUG", "INTEL_DEBUG", "NVK_DEBUG", "NAK_DEBUG", "TU_DEBUG", "IR3_SHADER_DEBUG"),
            *("FD_GPU_ID", "HK_DEBUG", "AGX_MESA_DEBUG", "LP_NUM_THREADS", "LIBGL_DEBUG", "NIR_DEBUG", "radv_invariant_geom"),
            *(
                "LD_PRELOAD",
                "LD_LIBRARY_PATH",
                "LD_AUDIT",
                "RADV_FORCE_FAMILY",
                "DRIRC_CONFIGDIR",
                "vblank_mode",
                "__GL_THREADED",
            ),
        ],
        "1",
    )
    environment = targets.process_environment(target, {**kept, **dropped})
    assert environment == {
        **kept,
        "MESA_SHADER_CACHE_DISABLE": "true",
        "__GL_SHADER_DISK_CACHE": "0",
        "AMDGPU_GPU_ID": "navi31",
        "LD_PRELOAD": "libamdgpu_noop_drm_shim.so",
        "LD_LIBRARY_PATH": str(tmp_path / "lib"),
    }


def elf(notes: bytes, *, wide: bool = True, order: str = "<", kind: int = 4, size: int | None = None) -> bytes:
    """An ELF file with one program header, for these notes (System V gABI, chapters 4 and 5)."""
    identification = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    header_size, entry_size = (64, 56) if wide else (52, 32)
    length = len(notes) if size is None else size
    position = header_size + entry_size
    if wide:
        header = struct.pack(order + "HHIQQQIHHHHHH", 3, 62, 1, 0, header_size, 0, 0, header_size, entry_size, 1, 0, 0, 0)
        entry = struct.pack(order + "IIQQQQQQ", kind, 4, position, 0, 0, length, length, 4)
    else:
        header = struct.pack(order + "HHIIIIIHHHHHH", 3, 3, 1, 0, header_size, 0, 0, header_size, entry_size, 1, 0, 0, 0)
        entry = struct.pack(order + "IIIIIIII", kind, position, 0, 0, length, length, 4, 4)
    return identification + header + entry + notes


def note(name: bytes, kind: int, content: bytes, order: str = "<") -> bytes:
    return (
        struct.pack(order + "III", len(name), len(content), kind)
        + name
        + bytes(-len(name) % 4)
        + content
        + bytes(-len(content) % 4)
    )


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
def test_build_id_of_every_kind_of_elf(tmp_path: Path, wide: bool, order: str) -> None:
    notes = note(b"Other\0", 3, b"xx", order) + note(b"GNU\0", 1, b"abi.", order) + note(b"GNU\0", 3, bytes(range(20)), order)
    path = tmp_path / "driver.so"
    path.write_bytes(elf(notes, wide=wide, order=order))
    assert targets.read_build_id(path) == "000102030405060708090a0b0c0d0e0f10111213"


def test_no_build_id(tmp_path: Path) -> None:
    path = tmp_path / "driver.so"
    for content in (b"", b"\x7fELF", b"text " * 100, elf(note(b"GNU\0", 1, b"abi.")), elf(note(b"GNU\0", 3, b"id"), kind=1)):
        path.write_bytes(content)
        assert targets.read_build_id(path) is None
    assert targets.read_build_id(tmp_path) is None
    assert targets.read_build_id(tmp_path / "nothing") is None
    assert targets.read_build_id("a\0b") is None


def test_a_file_that_lies_about_its_sizes_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "driver.so"
    good = elf(note(b"GNU\0", 3, b"id"), size=2**63)
    path.write_bytes(good)
    with path.open("r+b") as stream:
        stream.truncate(1 << 40)
    started = time.monotonic()
    assert targets.read_build_id(path) == b"id".hex()
    path.write_bytes(elf(struct.pack("<III", 0xFFFFFFFF, 0xFFFFFFFF, 3) + b"GNU\0"))
    assert targets.read_build_id(path) is None
    path.write_bytes(good[:32] + struct.pack("<Q", 2**64 - 1) + good[40:])
    assert targets.read_build_id(path) is None
    assert time.monotonic() - started < 1


@given(st.data())
def test_any_damage_gives_a_text_or_none(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(elf(note(b"GNU\0", 3, bytes(20))))
    for _ in range(data.draw(st.integers(0, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "driver.so"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    found = targets.read_build_id(path)
    assert found is None or bytes.fromhex(found)


@pytest.mark.skipif(not shutil.which("readelf"), reason="needs readelf")
def test_build_id_is_what_readelf_says() -> None:
    interpreter = Path(sys.executable).resolve()
    output = subprocess.run(["readelf", "-n", str(interpreter)], capture_output=True, text=True, check=True).stdout
    expected = output.split("Build ID:")[1].split()[0] if "Build ID:" in output else None
    assert targets.read_build_id(interpreter) == expected


@pytest.mark.driver
@pytest.mark.parametrize("name", FETCHED)
def test_a_fetched_package_has_candidates_for_real_families(name: str) -> None:
    store = DriverPackages()
    if name not in store.names():
        pytest.skip(f"driver package {name} is not installed for this user; `kiln drivers add {name}` installs it")
    installed = store.get(name)
    families = {target.family for target in targets.candidate_targets(installed)}
    assert {"amd-navi21", "amd-navi31", "software-lavapipe"} <= families
    build_ids = [targets.read_build_id(icd) for icd in installed.icds]
    assert all(build_ids)
    assert len(set(build_ids)) == len(build_ids)
