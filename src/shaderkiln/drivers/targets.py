"""Targets: the adapter families that a driver package may be able to compile for, and the process each one needs.

Everything here is data and pure functions. Which candidates really work is found out by starting a process for each; a driver
aborts its process on a name it does not know.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from shaderkiln.drivers.packages import DriverPackage
from shaderkiln.formats.vendors import VENDORS

DRM_SHIM = "drm-shim"
"""Method: a preloaded library stands in for the kernel driver of the named GPU."""
NULL_WINSYS = "null-winsys"
"""Method: the driver itself runs without a kernel driver (RADV up to Mesa 25)."""
SOFTWARE = "software"
"""Method: the driver runs on the processor."""
DEVICE = "device"
"""Method: a real device of this machine; the family is known once the driver has been asked (``family_of_device``)."""


@dataclass(frozen=True, slots=True)
class Target:
    """A family of one driver package, and how to start a process that compiles for it."""

    family: str
    """Adapter family, for example ``amd-navi31``; empty for DEVICE until the driver has been asked."""
    package: str
    """Name of the driver package."""
    icd: str
    """Path of the driver's shared object, to be loaded directly (``vk_icdGetInstanceProcAddr``)."""
    environment: dict[str, str] = field(hash=False)
    """What the process needs on top of a clean environment (``process_environment``)."""
    vendor: str
    """First part of the family name; empty for DEVICE."""
    method: str
    """DRM_SHIM, NULL_WINSYS, SOFTWARE or DEVICE."""


@dataclass(frozen=True, slots=True)
class _Gpu:
    """One row of the tables: a family, and the names that the drivers have had for it, newest first."""

    family: str
    names: tuple[str, ...]


def _gpus(vendor: str, *rows: str) -> tuple[_Gpu, ...]:
    return tuple(_Gpu(f"{vendor}-{row.split()[0].replace('_', '-')}", tuple(row.split())) for row in rows)


AMD = _gpus(
    "amd",
    *("tahiti", "pitcairn", "verde", "oland", "hainan", "bonaire", "kabini", "kaveri", "hawaii"),
    *("tonga", "iceland", "carrizo", "fiji", "stoney", "polaris10", "polaris11", "polaris12", "vegam"),
    *("vega10", "vega12", "vega20", "raven", "raven2", "renoir", "mi100", "mi200", "gfx940"),
    *("navi10", "navi12", "navi14", "navi21", "navi22", "navi23", "navi24", "vangogh", "rembrandt"),
    *("raphael_mendocino gfx1036", "navi31 gfx1100", "navi32 gfx1101", "navi33 gfx1102"),
    *("phoenix gfx1103_r1", "phoenix2 gfx1103_r2", "strix1 gfx1150", "strix_halo gfx1151", "krackan1 gfx1152"),
    *("gfx1153", "gfx1200", "gfx1201"),
)
"""RADV: the names of AMDGPU_GPU_ID and RADV_FORCE_FAMILY. Mesa 22.3 knows the gfx11 chips by their gfx names only,
Mesa 26 gives gfx1150 to gfx1152 code names."""

# fmt: off
NVIDIA_CHIPS: Mapping[str, str] = MappingProxyType({
    "e4": "gk104", "e6": "gk106", "e7": "gk107", "ea": "gk20a", "f0": "gk110", "f1": "gk110b", "106": "gk208b", "108": "gk208",
    "117": "gm107", "118": "gm108", "120": "gm200", "124": "gm204", "126": "gm206", "12b": "gm20b",
    "130": "gp100", "132": "gp102", "134": "gp104", "136": "gp106", "137": "gp107", "138": "gp108", "13b": "gp10b",
    "140": "gv100", "162": "tu102", "164": "tu104", "166": "tu106", "167": "tu117", "168": "tu116",
    "170": "ga100", "172": "ga102", "173": "ga103", "174": "ga104", "176": "ga106", "177": "ga107", "17b": "ga10b",
    "192": "ad102", "193": "ad103", "194": "ad104", "196": "ad106", "197": "ad107",
})
# fmt: on
"""NVK: values of NOUVEAU_CHIPSET (hexadecimal) and NVIDIA's names of these chips."""

QUALCOMM = ("618", "630", "660", "702", "730", "740", "750", "810", "830")
"""Turnip: values of FD_GPU_ID of the GPUs it drives (Adreno 600 and later)."""

INTEL = _gpus(
    "intel",
    *("skl", "bxt", "kbl", "aml", "glk", "cfl", "whl", "cml", "icl", "ehl", "jsl", "tgl", "rkl", "dg1", "adl", "rpl"),
    *("dg2", "mtl", "arl", "lnl", "bmg", "ptl"),
)
"""ANV: values of INTEL_STUB_GPU_PLATFORM."""

INTEL_OLD = _gpus("intel", "ivb", "byt", "hsw", "bdw", "chv")
"""The hasvk driver: values of INTEL_STUB_GPU_PLATFORM."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {f"amd-{name.replace('_', '-')}": gpu.family for gpu in AMD for name in gpu.names[1:]}
    | {f"nvidia-nvk-{name}": f"nvidia-nvk-{chipset}" for chipset, name in NVIDIA_CHIPS.items()}
)
"""Other names of families: ``amd-gfx1100`` is ``amd-navi31``, ``nvidia-nvk-ga102`` is ``nvidia-nvk-172``."""


KNOWN_FAMILIES = frozenset(
    {gpu.family for gpu in (*AMD, *INTEL, *INTEL_OLD)}
    | {f"nvidia-nvk-{chipset}" for chipset in NVIDIA_CHIPS}
    | {f"qualcomm-a{gpu}" for gpu in QUALCOMM}
    | {"apple-g13g", "software-lavapipe"}
)
"""The families of the tables: names that may be compiled for somewhere, found without trying anything."""

_OF_THE_USER = tuple(
    f"{name}_"
    for name in (
        *("VK", "MESA", "RADV", "ACO", "AMD", "AMDGPU", "ANV", "HASVK", "INTEL", "NVK", "NAK", "NOUVEAU", "NV", "TU", "IR3"),
        *("FD", "FREEDRENO", "AGX", "ASAHI", "HK", "LVP", "LP", "GALLIUM", "LIBGL", "DRI", "DRIRC", "NIR", "SPIRV", "DRM"),
        *("FOSSILIZE", "LD", "__GL", "__NV", "DISABLE", "ENABLE", "GLSL", "VTN", "U", "UTIL", "SHADER", "DXVK", "VKD3D"),
        *("PVR", "V3D", "radv", "anv", "vk", "mesa", "vblank"),
    )
)
"""Beginnings of variables that change what a driver or the dynamic linker does: none of the user's reaches a worker."""


def candidate_targets(package: DriverPackage, family: str | None = None) -> tuple[Target, ...]:
    """Every target that could be tried with that package, in the order to try; with ``family`` those that may be that one.

    Of several with one family, the first that works counts.

    For ``system``, one target of method DEVICE for each driver; its devices name the families (``family_of_device``). NVIDIA's
    driver comes as two libraries, of which the one that its ICD file names needs X11's to load: both are tried. For every other
    package, the families of its drivers: through the package's drm-shims, then (AMD) through the null winsys.
    """
    if package.manifest is None:
        icds = (name for icd in package.icds for name in (icd, icd.replace("libGLX_nvidia", "libEGL_nvidia")))
        return tuple(Target("", package.name, icd, {}, "", DEVICE) for icd in dict.fromkeys(icds))
    targets: list[Target] = []
    for icd in package.icds:
        name = Path(icd).name
        candidates = _amd(package, family) if name == "libvulkan_radeon.so" else _CANDIDATES.get(name, ())
        wanted = (candidate for candidate in candidates if family in (None, candidate[0]))
        targets += [target for candidate in wanted if (target := _target(package, icd, candidate)) is not None]
    order = {family: number for number, family in enumerate(dict.fromkeys(target.family for target in targets))}
    return tuple(sorted(targets, key=lambda t: (t.vendor == "software", order[t.family], t.method != DRM_SHIM)))


def process_environment(target: Target, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a process for that target: ``base`` without what would change a driver, and what the target needs."""
    if target.method == DEVICE:
        # The system's own drivers and libraries are found with the user's library path, as every other program finds them.
        kept = {k: v for k, v in base.items() if not k.startswith(_OF_THE_USER) or k == "LD_LIBRARY_PATH"}
    else:
        kept = {k: v for k, v in base.items() if not k.startswith(_OF_THE_USER)}
    return kept | {"MESA_SHADER_CACHE_DISABLE": "true", "__GL_SHADER_DISK_CACHE": "0"} | dict(target.environment)


def canonical_family(name: str) -> str:
    """The name under which a family is known here, from any of its names in any case."""
    lowered = name.strip().lower().replace("_", "-")
    return ALIASES.get(lowered, lowered)


def family_of_device(device_name: str, vendor_id: int) -> str:
    """The adapter family of a real device, from VkPhysicalDeviceProperties (deviceName, vendorID).

    Mesa's drivers name the chip; it gives the same family as without the GPU: ``AMD Radeon RX 7900 XTX (RADV NAVI31)`` is
    ``amd-navi31``, ``NVIDIA GeForce RTX 3080 (NVK GA102)`` ``nvidia-nvk-172``, ``Turnip Adreno (TM) 740`` ``qualcomm-a740``,
    ``Apple M1 (G13G B1)`` ``apple-g13g``, ``Intel(R) Arc(tm) A770 Graphics (DG2)`` ``intel-dg2``; llvmpipe is
    ``software-lavapipe``. For every other driver it is the vendor and the name: trade marks, the vendor's name and what stands
    in parentheses left out, lower case, every run of other characters than letters and digits one hyphen, at most 64
    characters: ``NVIDIA H200`` is ``nvidia-h200``.
    """
    name = re.sub(r"\((?:R|TM|C)\)", " ", device_name[:256], flags=re.IGNORECASE)
    if match := re.search(r"\bRADV ([A-Z0-9_]{1,32})\b", name):
        return canonical_family(f"amd-{match[1]}")
    if match := re.search(r"\bNVK ([A-Z0-9]{1,32})\b", name):
        return canonical_family(f"nvidia-nvk-{match[1]}")
    if match := re.search(r"\bAdreno\s+X?(\d-?\d\d)\b", name):
        return f"qualcomm-a{match[1].replace('-', '')}"
    if match := re.search(r"\bApple\b.*\(([A-Z]\d\d[A-Z]?)\b", name):
        return f"apple-{match[1].lower()}"
    if "llvmpipe" in name:
        return "software-lavapipe"
    known = VENDORS.get(vendor_id)
    vendor = known.name if known else f"vendor-{vendor_id:04x}"
    if vendor == "intel" and (match := re.search(r"\(([A-Z]{3}|DG\d)\b[^()]*\)", name)):
        return f"intel-{match[1].lower()}"
    words = re.findall(r"[a-z0-9]+", re.sub(r"\([^()]*\)", " ", name).lower())
    slug = "-".join([vendor, *(word for word in words if word != vendor)])
    return slug[:64].rstrip("-")


def read_build_id(path: str | os.PathLike[str]) -> str | None:
    """The GNU build ID of an ELF file, in hexadecimal; None where the file is not ELF, is damaged, or has none.

    Reads a few KiB, whatever the file says about itself (ELF gABI, "Note Section"; 32 and 64 bit, both byte orders).
    """
    try:
        with Path(path).open("rb") as stream:
            header = stream.read(64)
            if header[:4] != b"\x7fELF" or len(header) < 52 or header[4] not in (1, 2) or header[5] not in (1, 2):
                return None
            wide, order = header[4] == 2, "<" if header[5] == 1 else ">"
            offset = struct.unpack_from(order + ("Q" if wide else "I"), header, 32 if wide else 28)[0]
            entry_size, count = struct.unpack_from(order + "HH", header, 54 if wide else 42)
            layout = struct.Struct(order + ("IIQQQQQQ" if wide else "IIIIIIII"))
            if entry_size < layout.size or entry_size > 256 or count > 1024:
                return None
            stream.seek(offset)
            table = stream.read(entry_size * count)
            for start in range(0, len(table) - layout.size + 1, entry_size):
                fields = layout.unpack_from(table, start)
                if fields[0] != 4:  # PT_NOTE
                    continue
                position, size = (fields[2], fields[5]) if wide else (fields[1], fields[4])
                stream.seek(position)
                for name, kind, content in _notes(stream.read(min(size, 1 << 16)), order):
                    if (name, kind) == (b"GNU\0", 3) and content:  # NT_GNU_BUILD_ID
                        return content.hex()
    except (OSError, ValueError, OverflowError, struct.error):
        return None
    return None


def _notes(data: bytes, order: str) -> Iterator[tuple[bytes, int, bytes]]:
    position = 0
    while position + 12 <= len(data):
        name_size, size, kind = struct.unpack_from(order + "III", data, position)
        name_start = position + 12
        start = name_start + (name_size + 3) // 4 * 4
        position = start + (size + 3) // 4 * 4
        if start + size > len(data):
            return
        yield data[name_start : name_start + name_size], kind, data[start : start + size]


_Candidate = tuple[str, str, str, Mapping[str, str]]
"""Family, method, name of the shim (empty: none), environment."""


def _amd(package: DriverPackage, family: str | None) -> Iterator[_Candidate]:
    gpus = [gpu for gpu in AMD if family in (None, gpu.family)]
    shim = _shim(package, "libamdgpu_noop_drm_shim.so") if gpus else None
    known = set(_names_in(shim, tuple(name for gpu in gpus for name in gpu.names))) if shim else set()
    null_winsys = _has_null_winsys(package)
    for gpu in gpus:
        for name in gpu.names:
            if name in known:
                yield gpu.family, DRM_SHIM, "libamdgpu_noop_drm_shim.so", {"AMDGPU_GPU_ID": name}
        if null_winsys:
            for name in gpu.names:
                yield gpu.family, NULL_WINSYS, "", {"RADV_FORCE_FAMILY": name}


def _simulated(kernel_driver: str, rows: Mapping[str, Mapping[str, str]]) -> tuple[_Candidate, ...]:
    """Families that one shim stands in for, each with its environment."""
    return tuple((family, DRM_SHIM, f"lib{kernel_driver}_noop_drm_shim.so", variables) for family, variables in rows.items())


# Mesa 25 wants to be told that the chips before Turing may be tried.
_ALLOW = {"NVK_I_WANT_A_BROKEN_VULKAN_DRIVER": "1"}

_CANDIDATES: Mapping[str, tuple[_Candidate, ...]] = MappingProxyType(
    {
        "libvulkan_nouveau.so": _simulated(
            "nouveau", {f"nvidia-nvk-{chipset}": {"NOUVEAU_CHIPSET": chipset, **_ALLOW} for chipset in NVIDIA_CHIPS}
        ),
        "libvulkan_freedreno.so": _simulated("freedreno", {f"qualcomm-a{gpu}": {"FD_GPU_ID": gpu} for gpu in QUALCOMM}),
        "libvulkan_asahi.so": _simulated("asahi", {"apple-g13g": {}}),
        "libvulkan_intel.so": _simulated("intel", {gpu.family: {"INTEL_STUB_GPU_PLATFORM": gpu.names[0]} for gpu in INTEL}),
        "libvulkan_intel_hasvk.so": _simulated(
            "intel", {gpu.family: {"INTEL_STUB_GPU_PLATFORM": gpu.names[0]} for gpu in INTEL_OLD}
        ),
        "libvulkan_lvp.so": (("software-lavapipe", SOFTWARE, "", {}),),
    }
)
"""By the driver's file; RADV's families depend on its build (``_amd``)."""


def _has_null_winsys(package: DriverPackage) -> bool:
    major = re.match(r"(?:\d+:)?(\d+)\.", package.version)
    return major is None or int(major[1]) < 26


def _target(package: DriverPackage, icd: str, candidate: _Candidate) -> Target | None:
    """The target of a candidate; None where the package lacks the shim."""
    family, method, shim_name, environment = candidate
    variables = dict(environment)
    if package.library_folders:
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(package.library_folders)
    if shim_name:
        shim = _shim(package, shim_name)
        if shim is None:
            return None
        # A bare name is found by LD_LIBRARY_PATH; LD_PRELOAD could not hold a path with a space.
        variables["LD_PRELOAD"] = shim_name if str(shim.parent) in package.library_folders else str(shim)
    drirc = package.root / "usr" / "share" / "drirc.d"
    if drirc.is_dir():
        variables["DRIRC_CONFIGDIR"] = str(drirc)
    return Target(family, package.name, icd, variables, family.split("-", 1)[0], method)


def _shim(package: DriverPackage, name: str) -> Path | None:
    return next((Path(path) for path in package.shims if Path(path).name == name), None)


def _names_in(shim: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the names that the shim has as a string: each try with another one would only abort a process."""
    try:
        with shim.open("rb") as stream:
            data = stream.read(1 << 24)
    except OSError:
        return names
    return tuple(name for name in names if b"\0" + name.encode() + b"\0" in data)
