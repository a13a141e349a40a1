"""The device's side of the requirement check: what it has, looked up by any of the names that mean the same."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from shaderkiln.capabilities import Capabilities
from shaderkiln.descriptions.unmet import UNKNOWN, Unmet
from shaderkiln.vulkan_registry._device import FEATURES, PROPERTIES
from shaderkiln.vulkan_registry._requirements import ENUMERANTS, STRUCTURES
from shaderkiln.vulkan_registry.structures import BY_STRUCTURE_TYPE

# Members of a VkPhysicalDeviceVulkan11Properties that have another name in the structure that they came from.
_RENAMED_PROPERTIES = {
    "subgroupSize": "subgroupSize",
    "subgroupSupportedStages": "supportedStages",
    "subgroupSupportedOperations": "supportedOperations",
    "subgroupQuadOperationsInAllStages": "quadOperationsInAllStages",
}
# Features of Vulkan 1.2 and 1.4 without a structure of their own: the extension alone says it (their own descriptions there).
_BY_EXTENSION = {
    "VK_KHR_sampler_mirror_clamp_to_edge": ("VkPhysicalDeviceVulkan12Features.samplerMirrorClampToEdge",),
    "VK_EXT_sampler_filter_minmax": ("VkPhysicalDeviceVulkan12Features.samplerFilterMinmax",),
    "VK_EXT_shader_viewport_index_layer": (
        "VkPhysicalDeviceVulkan12Features.shaderOutputViewportIndex",
        "VkPhysicalDeviceVulkan12Features.shaderOutputLayer",
    ),
    "VK_KHR_push_descriptor": ("VkPhysicalDeviceVulkan14Features.pushDescriptor",),
}


def _same(tables: dict[str, tuple[int, int, tuple[str, ...], tuple[str, ...]]], suffix: str) -> dict[str, tuple[str, ...]]:
    """``VkStructure.member`` → its other names: VkPhysicalDeviceVulkan1x structures and those that were promoted into them."""
    groups: dict[str, set[str]] = {}
    for core in (f"VkPhysicalDeviceVulkan1{n}{suffix}" for n in (1, 2, 3, 4)):
        for member in tables[core][3]:
            original = (
                _RENAMED_PROPERTIES.get(member, member) if suffix == "Properties" and core.endswith("11Properties") else member
            )
            names = {f"{core}.{member}"}
            for structure, (_, version, _, members) in tables.items():
                if version and not structure.startswith("VkPhysicalDeviceVulkan1") and original in members:
                    names.add(f"{structure}.{original}")
            for name in names:
                groups[name] = groups.get(name, set()) | names
    return {name: tuple(sorted(same - {name})) for name, same in groups.items() if len(same) > 1}


_SAME_FEATURES = _same(FEATURES, "Features")
_SAME_PROPERTIES = _same(PROPERTIES, "Properties")


def version_text(version: int) -> str:
    """``1.3`` for an API version number."""
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}"


class AdvertisedDevice:
    """Look-ups in one set of capabilities."""

    def __init__(self, capabilities: Capabilities) -> None:
        self.version = capabilities.api_version & ~0xFFF
        self.extensions = capabilities.extensions
        features = set(capabilities.features)
        for extension, implied in _BY_EXTENSION.items():
            if extension in self.extensions:
                features.update(implied)
        for name in tuple(features):
            features.update(_SAME_FEATURES.get(name, ()))
        self.features = frozenset(features)
        self.properties = dict(capabilities.properties)
        for name, value in capabilities.properties.items():
            for other in _SAME_PROPERTIES.get(name, ()):
                self.properties.setdefault(other, value)
        self.structures = frozenset(
            BY_STRUCTURE_TYPE[s_type]
            for s_type, (_, version, extensions) in STRUCTURES.items()
            if s_type in BY_STRUCTURE_TYPE and self.offers(version, extensions)
        )
        self.enumerants = {
            group: frozenset(v for v, (_, version, extensions) in values.items() if self.offers(version, extensions))
            for group, values in ENUMERANTS.items()
        }

    def offers(self, version: int, extensions: Iterable[str]) -> bool:
        """Whether the API version (0: in none) or any of the extensions is there."""
        return bool(version and version <= self.version) or not self.extensions.isdisjoint(extensions)

    def limit(self, name: str) -> int | float | None:
        """A member of VkPhysicalDeviceLimits; None where it was not reported."""
        return self.properties.get("VkPhysicalDeviceLimits." + name)

    def alternative(self, alternative: tuple[object, ...]) -> bool:
        """Whether one alternative of a registry table is met."""
        kind = alternative[0]
        if kind == "version":
            return int(str(alternative[1])) <= self.version
        if kind == "extension":
            return alternative[1] in self.extensions
        if kind == "feature":
            return f"{alternative[1]}.{alternative[2]}" in self.features
        return bool(int(self.properties.get(f"{alternative[1]}.{alternative[2]}", 0)) & int(str(alternative[3])))


def alternative_text(alternative: tuple[object, ...]) -> str:
    """How an alternative of a registry table reads in a report."""
    kind = alternative[0]
    if kind == "version":
        return f"Vulkan {version_text(int(str(alternative[1])))}"
    if kind == "extension":
        return str(alternative[1])
    if kind == "feature":
        return f"{alternative[1]}.{alternative[2]}"
    return f"{alternative[1]}.{alternative[2]} & {alternative[3]}"


class Findings:
    """Collects what is unmet while a description is walked."""

    def __init__(self, device: AdvertisedDevice) -> None:
        self.device = device
        self.unmet: list[Unmet] = []

    def add(
        self,
        kind: str,
        name: str,
        needed: str | int | float | tuple[str, ...],
        available: str | int | float,
        where: str,
        what: str,
        *,
        exceeds: bool = False,
    ) -> None:
        unmet = Unmet(kind, name, needed, available, where, what, exceeds)
        if unmet not in self.unmet:
            self.unmet.append(unmet)

    def unknown(self, kind: str, name: str, where: str, what: str) -> None:
        """Something that the tables do not hold, and of which nobody can tell what it needs."""
        self.add(kind, name, "known", UNKNOWN, where, what)

    def feature(self, name: str, where: str, why: str, *others: str, kind: str = "feature") -> None:
        """Needs the feature ``name`` (``VkStructure.member``) or one of ``others``."""
        features = self.device.features
        if name not in features and features.isdisjoint(others):
            self.add(kind, name, (name, *others), "false", where, why)

    def at_most(self, value: int | float, limit: str, where: str, what: str) -> None:
        """``value`` must not exceed ``limit``: a member of VkPhysicalDeviceLimits, or a whole ``VkStructure.member``."""
        name = limit if "." in limit else "VkPhysicalDeviceLimits." + limit
        available = self.device.properties.get(name)
        if available is not None and value > available:
            self.add("limit", name, value, available, where, what, exceeds=True)

    def _offered(self, kind: str, row: tuple[str, int, tuple[str, ...]], where: str) -> None:
        """Needs what a row of a registry table came with: a version of Vulkan (0: none), or one of some extensions."""
        name, version, extensions = row
        needed = (f"Vulkan {version_text(version)}", *extensions) if version else extensions
        self.add(kind, name, needed, f"Vulkan {version_text(self.device.version)}", where, name)

    def enumerant(self, group: str, value: int, where: str, kind: str = "enumerant") -> bool:
        """A value that came with a later version or an extension. True if the device has it."""
        row = ENUMERANTS[group].get(value)
        if row is None or value in self.device.enumerants[group]:
            return True
        self._offered(kind, row, where)
        return False

    def flags(self, group: str, value: int, where: str) -> None:
        """Every set bit that came with a later version or an extension."""
        if value:
            for bit in ENUMERANTS[group]:
                if value & bit and bit & (bit - 1) == 0:
                    self.enumerant(group, bit, where)

    def chain(self, structures: Iterable[Struct], where: str) -> None:
        """The structures of a pNext chain (their own rules aside)."""
        for structure in structures:
            if type(structure) in self.device.structures:
                continue
            s_type = getattr(structure, "s_type", None)
            if s_type is not None:
                name = f"sType {s_type}"
                self.unknown("unknown-structure", name, where, f"a pNext structure with {name} is not known here")
            else:
                self._offered("structure", STRUCTURES[int(str(type(structure).__struct_config__.tag))], where)
