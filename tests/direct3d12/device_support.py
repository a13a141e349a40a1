"""Devices of the toy compiler and of real drivers, PSDBs of their objects, and registries, for the tests of this folder."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
import toy_compiler
from driver_support import multiply_shader

from shaderkiln.compilers.plugin import FamilyCompiler, FamilyNotFoundError, open_family
from shaderkiln.compilers.value_keys import object_code_values
from shaderkiln.databases.psdb import PsdbBuilder
from shaderkiln.descriptions.direct3d12.enums import StateObjectFlags, StateObjectType
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.state_object import DxilLibrary, StateObjectConfig, StateObjectDesc
from shaderkiln.descriptions.pipeline import Application, PipelineDescription
from shaderkiln.direct3d12.application import ApplicationDesc, DeclaredIdentity, declare
from shaderkiln.direct3d12.device import Direct3D12Device, create_device
from shaderkiln.direct3d12.objects import PipelineState, StateObject
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity
from shaderkiln.keys import OBJECT_VERSION, Group
from shaderkiln.lowering.pipelines import direct3d12_application
from shaderkiln.registration.installer import Installer
from shaderkiln.registration.records import PsdbProperties, Scope
from shaderkiln.sessions import DebugLayer, ShaderCacheControl
from shaderkiln.vulkan_registry.structures import (
    ComputePipelineCreateInfo,
    PipelineLayoutCreateInfo,
    PipelineLayoutHandle,
    PipelineShaderStageCreateInfo,
    ShaderModuleCreateInfo,
    ShaderModuleHandle,
)
from shaderkiln.workers.hosted import HostedFamily

GAME = ApplicationDesc("TestGame", "testgame.exe", "1.0", "TestEngine", "1.0")
APP_ID = "a1b2c3d4-e5f6-4890-abcd-ef1234567890"
REAL_FAMILY = "amd-navi31"


def game(desc: ApplicationDesc = GAME) -> DeclaredIdentity:
    return declare(desc, APP_ID)


class TextLowering:
    """Pipelines for the toy compiler: shaders are texts, and a state object has a pipeline for each library."""

    application = Application(ApplicationIdentity(), 1 << 22, ())

    def parts(
        self, desc: PipelineStateStream | StateObjectDesc, parents: Sequence[StateObjectDesc] = ()
    ) -> tuple[Callable[[bool], PipelineDescription], ...]:
        if isinstance(desc, PipelineStateStream):
            texts = [desc.cs or b""]
        else:
            texts = [library.bytecode + b" +" * len(parents) for library in desc.of(DxilLibrary)]
        return tuple(partial(_described, text) for text in texts)

    def close(self) -> None:
        pass


def _described(text: bytes, with_code: bool) -> PipelineDescription:
    code = text + b" " * (-len(text) % 4)
    # Workers remember what a handle stands for, so equal handles must mean equal shaders.
    module = ShaderModuleHandle(int.from_bytes(hashlib.sha256(code).digest()[:8], "little"))
    layout = PipelineLayoutHandle(1)
    stage = PipelineShaderStageCreateInfo(stage=0x20, module=module)
    objects = {layout: PipelineLayoutCreateInfo(), module: ShaderModuleCreateInfo(code=code)}
    name = text.decode().strip()
    return PipelineDescription(name, "compute", ComputePipelineCreateInfo(stage=stage, layout=layout), objects)


def text_stream(text: str) -> PipelineStateStream:
    return PipelineStateStream(cs=text.encode())


def text_state_object(*texts: str, additions: bool = False) -> StateObjectDesc:
    """A ray tracing pipeline of toy libraries."""
    flags = StateObjectFlags.ALLOW_STATE_OBJECT_ADDITIONS if additions else StateObjectFlags.NONE
    libraries = tuple(DxilLibrary(text.encode()) for text in texts)
    return StateObjectDesc(StateObjectType.COLLECTION, (StateObjectConfig(flags), *libraries))


def shader_stream(factor: int) -> PipelineStateStream:
    """A compute pipeline for real drivers: multiplies by a number of its own."""
    return PipelineStateStream(cs=_multiplied(factor))


def _multiplied(factor: int) -> bytes:
    """The shader whose specialization constant has another default: OpSpecConstant, type 4, result 9."""
    before, after = (struct.pack("<4I", 4 << 16 | 50, 4, 9, value) for value in (1, factor))
    code = multiply_shader()
    assert code.count(before) == 1
    return code.replace(before, after)


class Bench:
    """A folder with everything that devices share: local cache, registry, control and debug layer."""

    def __init__(self, folder: Path, family: FamilyCompiler, *, toy: bool) -> None:
        self.folder = folder
        self.family = family
        self.toy = toy
        self.executable = folder / "testgame.exe"
        self.registry = folder / "registry.sqlite"
        self.control = ShaderCacheControl(developer_mode=True)
        self.debug = DebugLayer()
        self._devices: list[Direct3D12Device] = []

    @property
    def compiler(self) -> CompilerIdentity:
        return self.family.identity

    def stream(self, number: int) -> PipelineStateStream:
        """A compute pipeline of its own for each number."""
        return text_stream(f"pipeline {number}") if self.toy else shader_stream(number)

    def device(self, *, cache: str = "cache", **changes: object) -> Direct3D12Device:
        """A device; those with one ``cache`` share their local cache."""
        arguments: dict[str, object] = {
            "application": game(),
            "executable": self.executable,
            "local_cache": self.folder / cache,
            "registries": [(Scope.USER, self.registry)],
            "control": self.control,
            "debug": self.debug,
            "workers": 1,
        }
        if self.toy:
            arguments["lowering"] = TextLowering()
        device = create_device(self.family, **(arguments | changes))  # type: ignore[arg-type]
        self._devices.append(device)
        return device

    def psdb(self, name: str, numbers: Sequence[int], *, application: ApplicationIdentity | None = None) -> Path:
        """A finished PSDB with the pipelines of those numbers, compiled by a device of its own."""
        with self.device(cache="cache-of-the-builder") as device:
            objects = [device.create_pipeline_state(self.stream(number)) for number in numbers]
            return finished_psdb(self.folder / name, device, objects, application or GAME.identity)

    def register(self, **components: Path) -> None:
        """Register the game with components by name, each with one PSDB of the bench's family."""
        with Installer.open("test", registry=self.registry) as installer:
            installer.register_application(self.executable, GAME.identity)
            for name, path in components.items():
                properties = PsdbProperties(self.compiler.family, path)
                installer.register_component(self.executable, name, self.folder / f"{name}.sodb", [properties])

    def unregister(self, component: str) -> None:
        with Installer.open("test", registry=self.registry) as installer:
            installer.remove_component(self.executable, component)

    def messages(self, topic: str) -> list[str]:
        return [message.text for message in self.debug.messages() if message.topic == topic]

    def close(self) -> None:
        for device in self._devices:
            device.close()


def finished_psdb(
    path: Path,
    device: Direct3D12Device,
    objects: Sequence[PipelineState | StateObject],
    application: ApplicationIdentity,
    *,
    parts: int | None = None,
) -> Path:
    """A PSDB with groups of the objects' pipelines, or of the first ``parts`` of each, as a compile job writes it."""
    form = device.compiler.object_code_form
    with PsdbBuilder(path, device.compiler, application) as builder:
        for one in objects:
            for stored in one.stored()[:parts]:
                key = stored.group.object_key
                values = object_code_values(form, key, stored.values)
                keys = tuple(value.key for value in values)
                assert keys == stored.group.value_keys
                builder.add(Group(key, OBJECT_VERSION, keys, "compute", "name"), values)
        builder.finish()
    return path


def toy_family(**changes: object) -> HostedFamily:
    return HostedFamily(toy_compiler.identity(**changes), "toy_compiler:ToyPipelines")  # type: ignore[arg-type]


def real_family(family: str = REAL_FAMILY) -> FamilyCompiler:
    try:
        return open_family(family, direct3d12_application(GAME.identity))
    except FamilyNotFoundError as error:
        pytest.skip(f"no driver for {family} here: {error}")


def counts(device: Direct3D12Device) -> tuple[int, int, int, int]:
    """Pipeline states: created, missed in PSDBs, missed in every cache, unknown."""
    found = device.get_state_object_statistics().pipeline_state_object_statistics
    return found.num_created, found.num_psdb_cache_missed, found.num_total_cache_missed, found.num_cache_unknown
