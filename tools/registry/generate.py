#!/usr/bin/env python3
"""Generate ``src/shaderkiln/vulkan_registry`` from the Vulkan registry and the SPIR-V grammar.

usage: generate.py [--registry vk.xml] [--grammar spirv.core.grammar.json] [--output src/shaderkiln/vulkan_registry]

The inputs may be compressed with xz. Without arguments they are those in ``inputs/``, from which the committed files were made;
README.md beside this file says where they come from.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cffi

INPUTS = Path(__file__).resolve().parent / "inputs"
PACKAGE = Path(__file__).resolve().parents[2] / "src/shaderkiln/vulkan_registry"

# What the product describes, compiles and asks; everything else follows from the registry.
DESCRIBED = (
    "VkSamplerCreateInfo",
    "VkDescriptorSetLayoutCreateInfo",
    "VkPipelineLayoutCreateInfo",
    "VkShaderModuleCreateInfo",
    "VkRenderPassCreateInfo",
    "VkRenderPassCreateInfo2",
    "VkGraphicsPipelineCreateInfo",
    "VkComputePipelineCreateInfo",
    "VkRayTracingPipelineCreateInfoKHR",
    "VkSamplerYcbcrConversionCreateInfo",
)
COMMANDS = """
vkGetInstanceProcAddr vkGetDeviceProcAddr vkEnumerateInstanceVersion vkCreateInstance vkDestroyInstance
vkEnumerateInstanceExtensionProperties vkEnumeratePhysicalDevices vkGetPhysicalDeviceProperties
vkGetPhysicalDeviceProperties2 vkGetPhysicalDeviceFeatures2 vkGetPhysicalDeviceFormatProperties
vkGetPhysicalDeviceQueueFamilyProperties vkEnumerateDeviceExtensionProperties vkCreateDevice vkDestroyDevice
vkCreateSampler vkDestroySampler vkCreateDescriptorSetLayout vkDestroyDescriptorSetLayout vkGetDescriptorSetLayoutSupport
vkCreatePipelineLayout vkDestroyPipelineLayout vkCreateShaderModule vkDestroyShaderModule
vkCreateRenderPass vkCreateRenderPass2 vkDestroyRenderPass vkCreateSamplerYcbcrConversion vkDestroySamplerYcbcrConversion
vkCreateGraphicsPipelines vkCreateComputePipelines vkCreateRayTracingPipelinesKHR vkDestroyPipeline
vkCreatePipelineCache vkDestroyPipelineCache vkGetPipelineCacheData vkMergePipelineCaches
vkCreatePipelineBinariesKHR vkDestroyPipelineBinaryKHR vkGetPipelineKeyKHR vkGetPipelineBinaryDataKHR
vkReleaseCapturedPipelineDataKHR vkGetPipelineExecutablePropertiesKHR vkGetPipelineExecutableStatisticsKHR
vkGetPipelineExecutableInternalRepresentationsKHR
""".split()
# What a driver exports for a Vulkan loader (LoaderDriverInterface.md of the loader); not in the registry.
DRIVER_FUNCTIONS = """
VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *pVersion);
PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *pName);
"""
# Structures of the API that descriptions never carry: outputs, object code, or data that only one run of one driver can know.
NOT_DESCRIBED = {
    "VkPipelineCreationFeedbackCreateInfo",
    "VkPipelineBinaryInfoKHR",
    "VkPipelineCreateInfoKHR",
    "VkOpaqueCaptureDescriptorDataCreateInfoEXT",
    "VkShaderModuleValidationCacheCreateInfoEXT",
    "VkPipelineCompilerControlCreateInfoAMD",
    "VkPipelineIndirectDeviceAddressInfoNV",
    "VkComputePipelineIndirectBufferInfoNV",
    "VkDebugUtilsObjectNameInfoEXT",
    "VkValidationFeaturesEXT",
    "VkRenderPassCreationFeedbackCreateInfoEXT",
    "VkRenderPassCreationFeedbackInfoEXT",
    "VkRenderPassSubpassFeedbackCreateInfoEXT",
}
CALL_STRUCTURES = (
    "VkPipelineCreationFeedbackCreateInfo",
    "VkPipelineBinaryInfoKHR",
    "VkDevicePipelineBinaryInternalCacheControlKHR",
    "VkPhysicalDeviceDriverProperties",
)
REQUIRED_ENUMS = (
    "VkDynamicState VkDescriptorType VkShaderStageFlagBits VkPipelineCreateFlagBits VkPrimitiveTopology VkPolygonMode "
    "VkSamplerAddressMode VkFilter VkSamplerCreateFlagBits VkDescriptorSetLayoutCreateFlagBits VkBlendOp VkBorderColor "
    "VkPipelineCreateFlagBits2 VkPipelineShaderStageCreateFlagBits VkPipelineLayoutCreateFlagBits VkImageLayout "
    "VkAttachmentLoadOp VkAttachmentStoreOp VkRenderPassCreateFlagBits VkSubpassDescriptionFlagBits "
    "VkPipelineColorBlendStateCreateFlagBits VkPipelineDepthStencilStateCreateFlagBits VkFormat"
).split()
CONSTANT_ENUMS = (
    "VkResult VkStructureType VkPipelineCreateFlagBits VkPipelineCreateFlagBits2 VkShaderStageFlagBits VkDynamicState "
    "VkDescriptorType VkDriverId VkPipelineCreationFeedbackFlagBits VkPipelineExecutableStatisticFormatKHR VkPhysicalDeviceType "
    "VkPrimitiveTopology VkPolygonMode VkSampleCountFlagBits VkFormat VkPipelineBindPoint VkSubgroupFeatureFlagBits "
    "VkDescriptorSetLayoutCreateFlagBits VkSamplerCreateFlagBits VkPipelineShaderStageCreateFlagBits VkFormatFeatureFlagBits"
).split()
SCALARS = {
    "uint8_t": "B", "int8_t": "b", "uint16_t": "H", "int32_t": "i", "uint32_t": "I", "uint64_t": "Q", "int64_t": "q",
    "size_t": "N", "float": "f", "double": "d", "char": "c", "int": "i",
}  # fmt: skip


@dataclass(slots=True)
class Member:
    name: str
    type: str
    text: str
    stars: int
    length: str | None
    optional: bool
    array: tuple[int, ...]
    values: str | None
    bits: str | None


@dataclass(slots=True)
class Structure:
    name: str
    category: str
    members: list[Member]
    extends: tuple[str, ...]
    stype: str | None = None


@dataclass(slots=True)
class Origin:
    """Where a name comes from: core versions and extensions, any of which is enough."""

    versions: set[str] = field(default_factory=set)
    extensions: set[str] = field(default_factory=set)


def for_vulkan(node: ET.Element) -> bool:
    return "vulkan" in node.get("api", "vulkan").split(",")


class Registry:
    def __init__(self, text: bytes) -> None:
        root = ET.fromstring(text)
        self.version = next(
            "".join(t.itertext()).rsplit("VK_HEADER_VERSION", 1)[1].strip()
            for t in root.find("types")  # type: ignore[union-attr]
            if t.findtext("name") == "VK_HEADER_VERSION"
        )
        self.platform_extensions: set[str] = set()
        self.device_extensions: set[str] = set()
        self.aliases: dict[str, str] = {}
        self.categories: dict[str, str] = {}
        self.bitmask_width: dict[str, int] = {}
        self.base: dict[str, str] = {}
        self.dispatchable: dict[str, bool] = {}
        self.structures: dict[str, Structure] = {}
        self.funcpointers: set[str] = set()
        self.constants: dict[str, int | float] = {}
        self.enums: dict[str, dict[str, int]] = defaultdict(dict)
        self.enum_origin: dict[str, dict[str, Origin]] = defaultdict(lambda: defaultdict(Origin))
        self.origin: dict[str, Origin] = defaultdict(Origin)
        self.extension_depends: dict[str, str] = {}
        self.promoted: dict[str, str] = {}
        self.enum_width: dict[str, int] = {}
        self._enums(root)
        self._types(root)
        self._features(root)
        self.commands = {
            c.findtext("proto/name"): c for c in root.find("commands") if c.find("proto") is not None and for_vulkan(c)
        }  # type: ignore[union-attr]
        self.capabilities = root.find("spirvcapabilities")
        self.spirv_extensions = root.find("spirvextensions")
        for name, structure in self.structures.items():
            first = structure.members[0] if structure.members else None
            if first and first.name == "sType" and first.values:
                structure.stype = first.values
            del name

    def _enums(self, root: ET.Element) -> None:
        for group in root.findall("enums"):
            name = group.get("name", "")
            self.enum_width[name] = int(group.get("bitwidth", "32"))
            for entry in group.findall("enum"):
                if not for_vulkan(entry):
                    continue
                if group.get("type") == "constants":
                    if entry.get("value"):
                        self.constants[entry.get("name", "")] = self._constant(entry.get("value", "0"))
                    elif entry.get("alias"):
                        self.constants[entry.get("name", "")] = self.constants[entry.get("alias", "")]
                elif entry.get("alias") is None:
                    self.enums[name][entry.get("name", "")] = self._value(entry)

    @staticmethod
    def _constant(text: str) -> int | float:
        text = text.strip("()")
        if match := re.fullmatch(r"~(\d+)U(LL)?(?:-(\d))?", text):
            return (2 ** (64 if match[2] else 32) - 1 - int(match[1])) - int(match[3] or 0)
        return float(text.rstrip("Ff")) if "." in text else int(text.rstrip("UL"), 0)

    @staticmethod
    def _value(entry: ET.Element) -> int:
        if (bit := entry.get("bitpos")) is not None:
            return 1 << int(bit)
        return int(entry.get("value", "0"), 0)

    def _types(self, root: ET.Element) -> None:
        for node in root.find("types"):  # type: ignore[union-attr]
            if node.tag != "type" or not for_vulkan(node):
                continue
            name = node.get("name") or node.findtext("name") or node.findtext("proto/name") or ""
            category = node.get("category", "")
            if alias := node.get("alias"):
                self.aliases[name] = alias
                continue
            self.categories[name] = category
            if category == "bitmask":
                self.bitmask_width[name] = 64 if node.findtext("type") == "VkFlags64" else 32
            elif category == "basetype":
                self.base[name] = node.findtext("type") or ""
            elif category == "handle":
                self.dispatchable[name] = node.findtext("type") == "VK_DEFINE_HANDLE"
            elif category == "funcpointer":
                self.funcpointers.add(name)
            elif category in ("struct", "union"):
                members = [self._member(m) for m in node.findall("member") if for_vulkan(m)]
                extends = tuple(e for e in (node.get("structextends") or "").split(",") if e)
                self.structures[name] = Structure(name, category, members, extends)

    def _member(self, node: ET.Element) -> Member:
        for comment in node.findall("comment"):
            node.remove(comment)
        text = " ".join("".join(node.itertext()).split())
        name = node.findtext("name") or ""
        tail = text.split(name, 1)[1] if name in text else ""
        tail = text[text.rindex(name) + len(name) :] if not tail else tail
        dims = tuple(int(d) if d.isdigit() else int(self.constants[d]) for d in re.findall(r"\[(\w+)\]", text))
        bits = re.search(r":(\d+)$", text.replace(" ", ""))
        return Member(
            name, node.findtext("type") or "", text, text.count("*"), node.get("altlen") or node.get("len"),
            (node.get("optional") or "").split(",")[0] == "true", dims, node.get("values"), bits[1] if bits else None,
        )  # fmt: skip

    def _features(self, root: ET.Element) -> None:
        for feature in root.findall("feature"):
            if not for_vulkan(feature):
                continue
            for require in feature.findall("require"):
                self._require(require, feature.get("name", ""), None, 0)
        for extension in root.find("extensions"):  # type: ignore[union-attr]
            name = extension.get("name", "")
            supported = extension.get("supported", "").split(",")
            if "vulkan" not in supported:
                continue
            if extension.get("platform") or extension.get("provisional") == "true":
                self.platform_extensions.add(name)
            if extension.get("type") == "device":
                self.device_extensions.add(name)
            self.extension_depends[name] = extension.get("depends", "")
            if extension.get("promotedto"):
                self.promoted[name] = extension.get("promotedto", "")
            for require in extension.findall("require"):
                if for_vulkan(require):
                    self._require(require, None, name, int(extension.get("number", "0")))

    def _require(self, node: ET.Element, version: str | None, extension: str | None, number: int) -> None:
        for item in node:
            if not for_vulkan(item):
                continue
            name = item.get("name", "")
            origins = [self.origin[name]]
            if item.tag == "enum" and item.get("extends"):
                group = item.get("extends", "")
                if item.get("alias") is None:
                    if item.get("offset") is not None:
                        base = 1000000000 + (int(item.get("extnumber") or number) - 1) * 1000 + int(item.get("offset", "0"))
                        self.enums[group][name] = -base if item.get("dir") == "-" else base
                    else:
                        self.enums[group][name] = self._value(item)
                    origins.append(self.enum_origin[group][name])
                else:
                    origins.append(self.enum_origin[group][item.get("alias", "")])
            for origin in origins:
                if version:
                    origin.versions.add(version)
                if extension:
                    origin.extensions.add(extension)

    def resolve(self, name: str) -> str:
        while name in self.aliases:
            name = self.aliases[name]
        return name

    def category(self, name: str) -> str:
        return self.categories.get(self.resolve(name), "")

    def usable(self, name: str) -> bool:
        """Whether a structure belongs to the API on every platform (neither platform-bound nor disabled)."""
        names = [name, *(a for a in self.aliases if self.resolve(a) == name)]
        origin = [self.origin[n] for n in names if n in self.origin]
        return any(o.versions for o in origin) or any(o.extensions - self.platform_extensions for o in origin)

    def origins(self, name: str) -> Origin:
        total = Origin()
        for n in [name, *(a for a in self.aliases if self.resolve(a) == name)]:
            if n in self.origin:
                total.versions |= self.origin[n].versions
                total.extensions |= self.origin[n].extensions
        return total

    def extending(self, name: str) -> list[str]:
        return sorted(s.name for s in self.structures.values() if name in s.extends and self.usable(s.name))


def closure(registry: Registry, roots: list[str], *, chains: bool) -> list[str]:
    """Structures reachable from the roots, dependencies first."""
    done: dict[str, None] = {}
    active: set[str] = set()

    def visit(name: str) -> None:
        name = registry.resolve(name)
        if name in done or name in active or name not in registry.structures:
            return
        active.add(name)
        for member in registry.structures[name].members:
            visit(member.type)
        if chains:
            for extension in registry.extending(name):
                if extension not in NOT_DESCRIBED:
                    visit(extension)
        active.discard(name)
        done[name] = None

    for root in roots:
        visit(root)
    return list(done)


# ---------------------------------------------------------------------------------------------------------------- C definitions


def c_definitions(registry: Registry, described: list[str]) -> str:
    features = registry.extending("VkPhysicalDeviceFeatures2")
    properties = registry.extending("VkPhysicalDeviceProperties2")
    command_types = [
        p.findtext("type") or ""
        for c in COMMANDS
        for p in [*registry.commands[c].findall("param"), registry.commands[c].find("proto")]
    ]  # type: ignore[union-attr]
    roots = [
        *described,
        *features,
        *properties,
        *CALL_STRUCTURES,
        *(t for t in command_types if registry.category(t) in ("struct", "union")),
    ]
    names = closure(registry, roots, chains=False)
    lines: list[str] = []
    seen: set[str] = set()

    def declare(name: str) -> None:
        if name in seen or name in SCALARS or name in ("void", ""):
            return
        seen.add(name)
        if name in registry.aliases:
            declare(registry.resolve(name))
            lines.append(f"typedef {registry.resolve(name)} {name};")
            return
        category = registry.categories.get(name, "")
        if category == "handle":
            # Non-dispatchable handles are 64 bits wide everywhere; a number in Python is easier to keep than a pointer.
            lines.append(f"typedef struct {name}_T *{name};" if registry.dispatchable[name] else f"typedef uint64_t {name};")
        elif category == "enum":
            # A C enumeration is 32 bits wide in this API; 64-bit flag bits are never members.
            lines.append(f"typedef {'uint64_t' if registry.enum_width.get(name) == 64 else 'int32_t'} {name};")
        elif category == "bitmask":
            lines.append(f"typedef uint{registry.bitmask_width[name]}_t {name};")
        elif category == "basetype":
            lines.append(
                f"typedef {registry.base[name] or 'void*'} {name};"
                if registry.base[name]
                else f"typedef struct {name}_T {name};"
            )
        elif category == "funcpointer":
            lines.append(f"typedef void (*{name})(void);")
        elif name not in registry.structures:
            raise SystemExit(f"no declaration for {name} ({category})")

    for name in names:
        structure = registry.structures[name]
        for member in structure.members:
            if registry.category(member.type) not in ("struct", "union"):
                declare(member.type)
            elif member.type in registry.aliases:
                declare(member.type)
    forward = [f"typedef {registry.structures[n].category} {n} {n};" for n in names]
    body: list[str] = []
    for name in names:
        structure = registry.structures[name]
        body.append(f"{structure.category} {name} {{")
        for member in structure.members:
            text = member.text
            for size in re.findall(r"\[([A-Z_]\w*)\]", text):
                text = text.replace(f"[{size}]", f"[{registry.constants[size]}]")
            body.append(f"    {text.replace('struct ', '')};")
        body.append("};")
    calls: list[str] = []
    for command in COMMANDS:
        node = registry.commands[command]
        params = []
        for param in node.findall("param"):
            if for_vulkan(param):
                for comment in param.findall("comment"):
                    param.remove(comment)
                params.append(" ".join("".join(param.itertext()).split()).replace("struct ", ""))
                if registry.category(param.findtext("type") or "") not in ("struct", "union"):
                    declare(param.findtext("type") or "")
        returned = node.findtext("proto/type") or "void"
        declare(returned)
        calls.append(f"typedef {returned} (*PFN_{command})({', '.join(params)});")
    return "\n".join([*forward, *lines, *body, *calls, DRIVER_FUNCTIONS])


# ------------------------------------------------------------------------------------------------------------------ descriptions


def snake(name: str) -> str:
    name = re.sub(r"^p+(?=[A-Z])", "", name)
    name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()
    return {"pass": "pass_", "next": "next_member"}.get(name, name)


def class_name(name: str) -> str:
    return name.removeprefix("Vk")


def scalar_kind(registry: Registry, type_name: str) -> str | None:
    type_name = registry.resolve(type_name)
    if type_name in ("float", "double"):
        return "float"
    if type_name in SCALARS and type_name != "char":
        return "int"
    if registry.category(type_name) in ("enum", "bitmask"):
        return "int"
    if registry.category(type_name) == "basetype":
        return scalar_kind(registry, registry.base[type_name]) if registry.base[type_name] else None
    return None


@dataclass(slots=True)
class Field:
    name: str
    annotation: str
    default: str
    kind: str
    c_name: str
    c_type: str
    count: str = ""


def fields_of(registry: Registry, structure: Structure) -> list[Field] | None:
    """The fields of a described structure, or None if a member has no meaning outside the process that filled it."""
    arrays: dict[str, list[Member]] = defaultdict(list)
    for member in structure.members:
        if member.stars and member.length:
            arrays[member.length.split(",")[0]].append(member)
    fields: list[Field] = []
    for member in structure.members:
        if member.name in ("sType", "pNext"):
            continue
        resolved = registry.resolve(member.type)
        category = registry.category(member.type)
        scalar = scalar_kind(registry, member.type)
        name = snake(member.name)
        length = (member.length or "").split(",")[0]
        if member.name in arrays and not all(a.optional for a in arrays[member.name]):
            continue
        if member.name == "codeSize" or (
            member.stars and not member.length and member.optional and category not in ("struct", "handle")
        ):
            continue  # implied by the code; or memory that only the process that filled it can read
        if member.stars == 0 and not member.array:
            if category == "handle":
                handle = f"{class_name(resolved)}Handle"
                fields.append(Field(name, f"{handle} | None", "None", "handle", member.name, resolved))
            elif category == "struct":
                fields.append(
                    Field(
                        name,
                        class_name(resolved),
                        f"field(default_factory={class_name(resolved)})",
                        "struct",
                        member.name,
                        resolved,
                    )
                )
            elif scalar:
                fields.append(Field(name, scalar, "0.0" if scalar == "float" else "0", "value", member.name, resolved))
            elif resolved == "VkClearColorValue":
                fields.append(Field(name, "tuple[int, ...]", "(0, 0, 0, 0)", "color", member.name, resolved))
            else:
                return None
        elif member.stars == 0 and member.array:
            if not scalar:
                return None
            zero = "0.0" if scalar == "float" else "0"
            size = member.array[0]
            fields.append(
                Field(
                    name, f"tuple[{scalar}, ...]", f"({', '.join([zero] * size)},)", "fixed", member.name, resolved, str(size)
                )
            )
        elif member.stars == 1 and resolved == "char" and length == "null-terminated":
            fields.append(
                Field(
                    name,
                    "str | None" if member.optional else "str",
                    "None" if member.optional else '"main"',
                    "string",
                    member.name,
                    "char",
                )
            )
        elif member.stars == 1 and not length:
            if category != "struct":
                return None
            fields.append(Field(name, f"{class_name(resolved)} | None", "None", "pointer", member.name, resolved))
        elif member.stars == 1 and (resolved in ("void", "uint8_t") or length == "codeSize / 4"):
            count = "codeSize" if length == "codeSize / 4" else length
            fields.append(
                Field(
                    name,
                    "bytes | None" if member.optional else "bytes",
                    "None" if member.optional else 'b""',
                    "bytes",
                    member.name,
                    resolved,
                    count,
                )
            )
        elif member.stars == 1:
            count = length if re.fullmatch(r"\w+", length) else ""
            if category == "handle":
                element, kind = f"{class_name(resolved)}Handle | None", "handles"
            elif category == "struct":
                element, kind = class_name(resolved), "structs"
            elif scalar:
                element, kind = scalar, "values"
            else:
                return None
            annotation = f"tuple[{element}, ...]"
            optional = member.optional
            fields.append(
                Field(
                    name,
                    f"{annotation} | None" if optional else annotation,
                    "None" if optional else "()",
                    kind,
                    member.name,
                    resolved,
                    count,
                )
            )
        else:
            return None
    return fields


HEADER = '"""Generated by tools/registry/generate.py from the Vulkan registry, header version {version}; do not edit."""\n\n'


def structures_module(registry: Registry, names: list[str]) -> tuple[str, str, list[str]]:
    described: dict[str, list[Field]] = {}
    dropped: set[str] = set()
    for name in names:
        structure = registry.structures[name]
        fields = fields_of(registry, structure) if structure.category == "struct" else None
        if fields is None or any(
            f.kind in ("struct", "pointer", "structs") and registry.resolve(f.c_type) in dropped for f in fields
        ):
            dropped.add(name)
        else:
            described[name] = fields
    handles = sorted({f.c_type for fields in described.values() for f in fields if f.kind in ("handle", "handles")})
    out = [HEADER.format(version=registry.version)]
    out[0] = out[0].replace(
        "; do not edit.",
        "; do not edit.\n\nFields have the names of the C members in Python's spelling, without Hungarian prefixes. A count is implied by its array; a\n"
        "count that stands beside an optional array is meant, and not zero, only where the array is None (a null pointer in C).\n",
    )
    out.append(
        "# ruff: noqa\nfrom __future__ import annotations\n\nfrom typing import TypeAlias, Union\n\nfrom msgspec import Struct, field\n\n"
    )
    out.append("from shaderkiln.vulkan_registry.handles import Handle, UnknownStructure\n\n")
    out.append(f"HEADER_VERSION = {registry.version}\n\n")
    for handle in handles:
        out.append(f"\nclass {class_name(handle)}Handle(Handle):\n    __slots__ = ()\n")
    stypes = registry.enums["VkStructureType"]
    tables = [HEADER.format(version=registry.version)]
    tables.append("# C structure name, sType, and per field: name, kind, C member, C type, count member\n")
    tables.append("MEMBERS: dict[str, tuple[str, int, tuple[tuple[str, str, str, str, str], ...]]] = {\n")
    for name, fields in described.items():
        structure = registry.structures[name]
        tag = stypes[structure.stype] if structure.stype else None
        options = "frozen=True, array_like=True" + (f', tag={tag}, tag_field="structure_type"' if tag is not None else "")
        extensions = [e for e in registry.extending(name) if e in described and e not in NOT_DESCRIBED]
        out.append(f"\n\nclass {class_name(name)}(Struct, {options}):\n")
        out.append(f'    """``{name}``."""\n\n')
        for f in fields:
            out.append(f"    {f.name}: {f.annotation} = {f.default}\n")
        if structure.stype:
            union = "Union[" + ", ".join(['"UnknownStructure"', *(f'"{class_name(e)}"' for e in extensions)]) + "]"
            out.append(f"    next: tuple[{union}, ...] = ()\n")
        elif not fields:
            out.append("    pass\n")
        row = "".join(f"({f.name!r}, {f.kind!r}, {f.c_name!r}, {f.c_type!r}, {f.count!r}), " for f in fields)
        tables.append(f"    {class_name(name)!r}: ({name!r}, {tag if tag is not None else 0}, ({row})),\n")
    tables.append("}\n")
    out.append("\n\nBY_STRUCTURE_TYPE: dict[int, type[Struct]] = {\n")
    for name in described:
        if registry.structures[name].stype:
            out.append(f"    {stypes[registry.structures[name].stype or '']}: {class_name(name)},\n")
    out.append("}\n")
    return "".join(out), "".join(tables), list(described)


# ------------------------------------------------------------------------------------------------------------------ requirements


def version_number(name: str) -> int:
    major, minor = name.rsplit("_", 2)[-2:]
    return int(major) << 22 | int(minor) << 12


def requirement(registry: Registry, origin: Origin) -> tuple[int, tuple[str, ...]]:
    """The lowest core version (0: none) and the extensions; either is enough."""
    versions = sorted(version_number(v) for v in origin.versions)
    return (versions[0] if versions else 0, tuple(sorted(origin.extensions)))


def requirement_tables(registry: Registry, grammar: dict[str, object], described: list[str]) -> str:
    numbers: dict[str, int] = {}
    for kind in grammar["operand_kinds"]:  # type: ignore[attr-defined]
        if kind["kind"] == "Capability":
            for item in kind["enumerants"]:
                for name in [item["enumerant"], *item.get("aliases", [])]:
                    numbers[name] = item["value"]
    out = [HEADER.format(version=registry.version)]
    out.append("# SPIR-V capability -> alternatives, any of which is enough: ('version', api version), ('extension', name),\n")
    out.append("# ('feature', structure, member), ('property', structure, member, needed value)\n")
    out.append("CAPABILITIES: dict[int, tuple[str, tuple[tuple[object, ...], ...]]] = {\n")
    for node in registry.capabilities:  # type: ignore[union-attr]
        name = node.get("name", "")
        if name not in numbers:
            continue
        out.append(
            f"    {numbers[name]}: ({name!r}, ({''.join(repr(enable(registry, e)) + ', ' for e in node.findall('enable'))})),\n"
        )
    out.append("}\n\nCAPABILITY_NAMES: dict[int, str] = {\n")
    for number in sorted(set(numbers.values())):
        out.append(f"    {number}: {next(n for n, v in numbers.items() if v == number)!r},\n")
    out.append("}\n\n# SPIR-V extension -> alternatives\nSPIRV_EXTENSIONS: dict[str, tuple[tuple[object, ...], ...]] = {\n")
    for node in registry.spirv_extensions:  # type: ignore[union-attr]
        out.append(
            f"    {node.get('name')!r}: ({''.join(repr(enable(registry, e)) + ', ' for e in node.findall('enable'))}),\n"
        )
    out.append("}\n\n# structure type -> (C name, lowest core version or 0, extensions); either is enough\n")
    out.append("STRUCTURES: dict[int, tuple[str, int, tuple[str, ...]]] = {\n")
    for name in described:
        structure = registry.structures[name]
        if structure.stype:
            version, extensions = requirement(registry, registry.origins(name))
            out.append(f"    {registry.enums['VkStructureType'][structure.stype]}: ({name!r}, {version}, {extensions!r}),\n")
    out.append(
        "}\n\n# enumeration -> value -> (name, lowest core version or 0, extensions); values of Vulkan 1.0 without condition are left out\n"
    )
    out.append("ENUMERANTS: dict[str, dict[int, tuple[str, int, tuple[str, ...]]]] = {\n")
    for group in REQUIRED_ENUMS:
        out.append(f"    {group!r}: {{\n")
        for name, value in registry.enums[group].items():
            origin = registry.enum_origin[group].get(name)
            if origin and (origin.versions or origin.extensions):
                version, extensions = requirement(registry, origin)
                out.append(f"        {value}: ({name!r}, {version}, {extensions!r}),\n")
        out.append("    },\n")
    out.append(
        "}\n\n# extension -> what it depends on, in the registry's own notation ('+' and, ',' or)\nDEPENDS: dict[str, str] = {\n"
    )
    for name, depends in registry.extension_depends.items():
        if depends:
            out.append(f"    {name!r}: {depends!r},\n")
    out.append("}\n\n# extension -> core version that it became part of\nPROMOTED: dict[str, int] = {\n")
    for name, to in registry.promoted.items():
        if to.startswith("VK_VERSION"):
            out.append(f"    {name!r}: {version_number(to)},\n")
    out.append("}\n")
    return "".join(out)


def instruction_table(registry: Registry, grammar: dict[str, object]) -> str:
    """What the words of each SPIR-V instruction are, as far as finding ids goes."""
    ids = {"IdRef", "IdResultType", "IdResult", "IdScope", "IdMemorySemantics"}
    pairs = {"PairIdRefIdRef": "ids", "PairLiteralIntegerIdRef": "other", "PairIdRefLiteralInteger": "other"}
    one_word = {"LiteralInteger", "LiteralExtInstInteger", "LiteralFloat"}
    parameterless: set[str] = set()
    masks_of_ids: set[str] = set()
    for kind in grammar["operand_kinds"]:  # type: ignore[attr-defined]
        parameters = [p["kind"] for e in kind.get("enumerants", []) for p in e.get("parameters", [])]
        if kind["category"] in ("ValueEnum", "BitEnum"):
            (parameterless if not parameters else masks_of_ids if set(parameters) <= ids else set()).add(kind["kind"])
    out = [HEADER.format(version=registry.version)]
    out.append(
        "# SPIR-V opcode -> (fewest words, word of the result type or 0, word of the result or 0, words after the first that\n"
        "# are all ids, literal words after those, whether all words after those are ids)\n"
    )
    out.append("INSTRUCTIONS: dict[int, tuple[int, int, int, int, int, bool]] = {\n")
    for item in sorted(grammar["instructions"], key=lambda i: i["opcode"]):  # type: ignore[attr-defined]
        operands = item.get("operands", [])
        least, lead, skip, tail, closed = 1, 0, 0, False, False
        kinds = [o["kind"] for o in operands]
        for operand in operands:
            kind, quantifier = operand["kind"], operand.get("quantifier", "")
            if not quantifier:
                least += 2 if kind in pairs else 1
            if closed or tail:
                continue
            if kind in ids and not quantifier and not skip:
                lead += 1
            elif kind in ids or pairs.get(kind) == "ids":
                tail = True
            elif (kind in one_word and not quantifier) or (kind in parameterless and not quantifier):
                skip += 1
            elif kind in masks_of_ids:
                skip, tail = skip + 1, True
            else:
                closed = True
        rest = kinds[lead + skip :]
        if tail and any(k not in ids and pairs.get(k) != "ids" and k not in masks_of_ids for k in rest):
            tail = False
        out.append(
            f"    {item['opcode']}: ({least}, {kinds.index('IdResultType') + 1 if 'IdResultType' in kinds else 0}, "
            f"{kinds.index('IdResult') + 1 if 'IdResult' in kinds else 0}, {lead}, {skip}, {tail}),  # {item['opname']}\n"
        )
    out.append("}\n")
    return "".join(out)


def enable(registry: Registry, node: ET.Element) -> tuple[object, ...]:
    if node.get("version"):
        return ("version", version_number(node.get("version", "")))
    if node.get("extension"):
        return ("extension", node.get("extension"))
    if node.get("feature"):
        return ("feature", registry.resolve(node.get("struct", "")), node.get("feature"))
    value = node.get("value", "")
    values = [registry.enums[g].get(value) for g in registry.enums if value in registry.enums[g]]
    return (
        "property",
        registry.resolve(node.get("property", "")),
        node.get("member"),
        1 if value == "VK_TRUE" else values[0] if values else 1,
    )


def device_tables(registry: Registry) -> str:
    """Feature and property structures, as the driver worker asks for them."""
    out = [HEADER.format(version=registry.version)]
    for title, base in (("FEATURES", "VkPhysicalDeviceFeatures2"), ("PROPERTIES", "VkPhysicalDeviceProperties2")):
        out.append("# C name -> (sType, lowest core version or 0, extensions, members); arrays and strings are left out\n")
        out.append(f"{title}: dict[str, tuple[int, int, tuple[str, ...], tuple[str, ...]]] = {{\n")
        for name in registry.extending(base):
            structure = registry.structures[name]
            if not structure.stype:
                continue
            members = tuple(
                m.name
                for m in structure.members
                if m.name not in ("sType", "pNext") and not m.stars and not m.array and scalar_kind(registry, m.type)
            )
            version, extensions = requirement(registry, registry.origins(name))
            out.append(
                f"    {name!r}: ({registry.enums['VkStructureType'][structure.stype]}, {version}, {extensions!r}, {members!r}),\n"
            )
        out.append("}\n\n")
    out.append("# device extensions that are neither provisional nor of one platform -> what each depends on (see DEPENDS)\n")
    out.append("EXTENSIONS: dict[str, str] = {\n")
    for name in sorted(registry.device_extensions - registry.platform_extensions):
        out.append(f"    {name!r}: {registry.extension_depends.get(name, '')!r},\n")
    out.append("}\n")
    return "".join(out)


def constants_module(registry: Registry) -> str:
    out = [HEADER.format(version=registry.version)]
    for group in CONSTANT_ENUMS:
        out.append(f"\n# {group}\n")
        for name, value in registry.enums[group].items():
            out.append(f"{name} = {value}\n")
    out.append("\nNAMES: dict[str, dict[int, str]] = {\n")
    for group in CONSTANT_ENUMS:
        out.append(f"    {group!r}: {{{', '.join(f'{v}: {n!r}' for n, v in registry.enums[group].items())}}},\n")
    out.append("}\n")
    return "".join(out)


def read(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def add_inputs(ask: argparse.ArgumentParser) -> None:
    ask.add_argument("--registry", type=Path, default=INPUTS / "vk.xml.xz")
    ask.add_argument("--grammar", type=Path, default=INPUTS / "spirv.core.grammar.json.xz")


def read_inputs(registry: Path, grammar: Path) -> tuple[Registry, dict[str, Any]]:
    return Registry(read(registry)), json.loads(read(grammar))


def generate(registry: Registry, grammar: dict[str, Any], output: Path) -> str:
    """Write every generated module; a line that says how much there is."""
    structures, members, described = structures_module(registry, closure(registry, list(DESCRIBED), chains=True))
    cdef = c_definitions(registry, described)
    output.mkdir(parents=True, exist_ok=True)
    (output / "structures.py").write_text(structures)
    (output / "_members.py").write_text(members)
    (output / "_requirements.py").write_text(requirement_tables(registry, grammar, described))
    (output / "_spirv.py").write_text(instruction_table(registry, grammar))
    (output / "_device.py").write_text(device_tables(registry))
    (output / "constants.py").write_text(constants_module(registry))
    ffi = cffi.FFI()
    ffi.cdef(cdef)
    ffi.set_source("shaderkiln.vulkan_registry._vulkan", None)
    ffi.emit_python_code(str(output / "_vulkan.py"))
    return f"header version {registry.version}: {len(described)} structures described, {cdef.count('struct Vk')} in C"


def main() -> None:
    ask = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_inputs(ask)
    ask.add_argument("--output", type=Path, default=PACKAGE)
    args = ask.parse_args()
    print(generate(*read_inputs(args.registry, args.grammar), args.output))


if __name__ == "__main__":
    main()
