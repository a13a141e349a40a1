"""Fossilize archives as sources of pipelines."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from shaderkiln.descriptions.canonical import object_key
from shaderkiln.descriptions.pipeline import Application, PipelineDescription
from shaderkiln.errors import DamagedInputError, InvalidArgumentError, NotFoundError
from shaderkiln.formats.fossilize import Tag, file_header, pack_entry
from shaderkiln.formats.fossilize_json import (
    GROUPS,
    ApplicationInfo,
    ApplicationLink,
    FeatureStructure,
    write_body,
)
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.sources.capture import MAX_PIPELINE_DEPTH, Capture, link_hash
from shaderkiln.vulkan_registry import structures as s

CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "data" / "captures"
CODE = b"\3\2\x23\7\0\0\1\0\0\0\0\0"

Entry = tuple[Tag, int, Struct | bytes]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def archive(path: Path, entries: Iterable[Entry]) -> Path:
    """An archive of objects, or of payloads as they are."""
    with path.open("wb") as file:
        file.write(file_header())
        for tag, hash, content in entries:
            file.write(pack_entry(tag, hash, content if isinstance(content, bytes) else write_body(tag, hash, content)))
    return path


def compute(module: int = 0x40, layout: int = 0x30, base: int = 0) -> s.ComputePipelineCreateInfo:
    return s.ComputePipelineCreateInfo(
        flags=4 if base else 0,
        stage=s.PipelineShaderStageCreateInfo(0, 32, s.ShaderModuleHandle(module)),
        layout=s.PipelineLayoutHandle(layout),
        base_pipeline_handle=s.PipelineHandle(base) if base else None,
    )


LAYOUT: list[Entry] = [
    (Tag.SAMPLER, 0x10, s.SamplerCreateInfo(next=(s.SamplerYcbcrConversionCreateInfo(format=5),))),
    (
        Tag.DESCRIPTOR_SET_LAYOUT,
        0x20,
        s.DescriptorSetLayoutCreateInfo(bindings=(s.DescriptorSetLayoutBinding(0, 1, 1, 32, (s.SamplerHandle(0x10),)),)),
    ),
    (Tag.PIPELINE_LAYOUT, 0x30, s.PipelineLayoutCreateInfo(0, (s.DescriptorSetLayoutHandle(0x20),))),
    (Tag.SHADER_MODULE, 0x40, s.ShaderModuleCreateInfo(0, CODE)),
]


def test_a_pipeline_comes_with_all_that_it_reaches_dependencies_first(tmp_path: Path) -> None:
    library = s.GraphicsPipelineCreateInfo(flags=0x800, layout=s.PipelineLayoutHandle(0x30))
    pipeline = s.GraphicsPipelineCreateInfo(
        stages=(s.PipelineShaderStageCreateInfo(0, 1, s.ShaderModuleHandle(0x40)),),
        layout=s.PipelineLayoutHandle(0x30),
        render_pass=s.RenderPassHandle(0x50),
        next=(s.PipelineLibraryCreateInfoKHR((s.PipelineHandle(0x60),)),),
    )
    render_pass = s.RenderPassCreateInfo2(subpasses=(s.SubpassDescription2(),))
    path = archive(
        tmp_path / "a.foz",
        [
            (Tag.GRAPHICS_PIPELINE, 0x61, pipeline),
            (Tag.GRAPHICS_PIPELINE, 0x60, library),
            (Tag.RENDER_PASS, 0x50, render_pass),
            *LAYOUT,
            (Tag.COMPUTE_PIPELINE, 0x70, compute()),
        ],
    )
    with Capture.open(path) as capture:
        assert list(capture.pipelines()) == [("graphics", 0x61), ("graphics", 0x60), ("compute", 0x70)]
        description = capture.load("graphics", 0x61)
        assert (description.name, description.kind, description.create_info) == ("0000000000000061", "graphics", pipeline)
        conversion = s.SamplerYcbcrConversionHandle(0x10)
        expected: dict[Any, Struct] = {
            conversion: s.SamplerYcbcrConversionCreateInfo(format=5),
            s.SamplerHandle(0x10): s.SamplerCreateInfo(next=(s.SamplerYcbcrConversionInfo(conversion),)),
            s.DescriptorSetLayoutHandle(0x20): LAYOUT[1][2],
            s.PipelineLayoutHandle(0x30): LAYOUT[2][2],
            s.ShaderModuleHandle(0x40): LAYOUT[3][2],
            s.RenderPassHandle(0x50): render_pass,
            s.PipelineHandle(0x60): library,
        }  # type: ignore[dict-item]
        assert dict(description.objects) == expected
        seen: list[Any] = []
        for handle in description.objects:
            needed = {
                s.PipelineHandle: [s.PipelineLayoutHandle(0x30)],
                s.PipelineLayoutHandle: [s.DescriptorSetLayoutHandle(0x20)],
                s.DescriptorSetLayoutHandle: [s.SamplerHandle(0x10)],
                s.SamplerHandle: [conversion],
            }.get(type(handle), [])
            assert all(item in seen for item in needed)
            seen.append(handle)
        assert s.SamplerHandle(0x11) not in description.objects and len(description.objects) == 7
        assert capture.object_key("graphics", 0x61) == object_key(description)
        assert capture.object_key("graphics", 0x61) == object_key(
            PipelineDescription("other", "graphics", pipeline, dict(description.objects))
        )
        with pytest.raises(NotFoundError):
            capture.load("compute", 0x61)


@pytest.mark.parametrize("name", ["mpv", "pygfx", "taichi", "vkcube", "wgpu"])
def test_captures_of_real_programs_load(name: str) -> None:
    path = CAPTURES / f"{name}.foz"
    if not path.exists():
        pytest.skip("the captures of real programs are not here")
    with Capture.open(path) as capture:
        pipelines = list(capture.pipelines())
        assert len(pipelines) == {"mpv": 16, "pygfx": 53, "taichi": 8, "vkcube": 1, "wgpu": 50}[name]
        keys = set()
        for kind, hash in pipelines:
            description = capture.load(kind, hash)
            assert (description.name, description.kind) == (f"{hash:016x}", kind)
            key = capture.object_key(kind, hash)
            assert key == object_key(description)
            keys.add(key)
            codes = [
                len(item.code)
                for handle in description.objects
                if isinstance(handle, s.ShaderModuleHandle)
                and isinstance(item := description.objects[handle], s.ShaderModuleCreateInfo)
            ]
            assert sum(codes) // 4 <= capture.cost(kind, hash) <= sum(codes) + 300 * len(codes)
        assert len(keys) == len(pipelines)


@pytest.mark.spec("AL-03")
@pytest.mark.parametrize(
    ("entries", "names"),
    [
        (
            [(Tag.COMPUTE_PIPELINE, 1, compute(module=0x99))],
            ["compute_pipeline 0000000000000001", "shader_module", "99", "missing"],
        ),
        ([(Tag.COMPUTE_PIPELINE, 1, compute(layout=0x99))], ["pipeline_layout 0000000000000099", "missing"]),
        ([(Tag.COMPUTE_PIPELINE, 1, compute(base=1))], ["compute_pipeline 0000000000000001", "refers back"]),
        (
            [(Tag.COMPUTE_PIPELINE, 1, compute(base=2)), (Tag.COMPUTE_PIPELINE, 2, compute(base=1))],
            ["0000000000000001 -> compute_pipeline 0000000000000002", "refers back"],
        ),
        (
            [(Tag.COMPUTE_PIPELINE, number, compute(base=number + 1)) for number in range(1, MAX_PIPELINE_DEPTH + 9)],
            ["nested too deeply"],
        ),
        ([(Tag.COMPUTE_PIPELINE, 1, b"{}")], ["compute_pipeline 0000000000000001", "version"]),
        (
            [(Tag.COMPUTE_PIPELINE, 1, write_body(Tag.COMPUTE_PIPELINE, 2, compute()))],
            ["compute_pipeline 0000000000000001", "0000000000000002"],
        ),
        (
            [(Tag.COMPUTE_PIPELINE, 1, write_body(Tag.SAMPLER, 1, s.SamplerCreateInfo()))],
            ["compute_pipeline 0000000000000001", "computePipelines"],
        ),
        (
            [
                (Tag.COMPUTE_PIPELINE, 1, compute(module=0x41)),
                (Tag.SHADER_MODULE, 0x41, write_body(Tag.SHADER_MODULE, 0x41, s.ShaderModuleCreateInfo(0, CODE))[:-1]),
            ],
            ["compute_pipeline 0000000000000001", "shader_module 0000000000000041", "cut off"],
        ),
        (
            [(Tag.COMPUTE_PIPELINE, 1, msgspec.structs.replace(compute(), stage=s.PipelineShaderStageCreateInfo()))],
            ["stage 0 has no shader module"],
        ),
    ],
    ids=range(10),
)
def test_a_damaged_pipeline_is_named_and_harms_no_other(tmp_path: Path, entries: list[Entry], names: list[str]) -> None:
    path = archive(tmp_path / "a.foz", [*entries, *LAYOUT, (Tag.COMPUTE_PIPELINE, 0x77, compute())])
    with Capture.open(path) as capture:
        with pytest.raises(DamagedInputError) as caught:
            capture.load("compute", 1)
        assert all(name in str(caught.value) for name in names), str(caught.value)
        assert capture.load("compute", 0x77).create_info == compute()
        assert ("compute", 1) in list(capture.pipelines())


@pytest.mark.spec("AL-03")
def test_any_flipped_byte_is_an_error_of_a_pipeline_or_nothing(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.foz", [*LAYOUT, (Tag.COMPUTE_PIPELINE, 0x77, compute())])
    with Capture.open(path) as capture:
        expected = capture.object_key("compute", 0x77)
    data = path.read_bytes()
    for position in range(16, len(data), 5):
        damaged = tmp_path / "b.foz"
        damaged.write_bytes(data[:position] + bytes((data[position] ^ 0x10,)) + data[position + 1 :])
        with Capture.open(damaged) as capture:
            for kind, hash in capture.pipelines():
                try:
                    assert capture.object_key(kind, hash) == expected
                except DamagedInputError:
                    continue


APPLICATION = ApplicationInfo(
    "game",
    "engine",
    1,
    2,
    4206592,
    1,
    (
        FeatureStructure(1000286000, (1, 0, 1)),
        FeatureStructure(1000335000, (1,)),
        FeatureStructure(1000328000, (1, 1, 0, 0, 0)),
    ),
)


def test_the_application_and_its_robustness_features(tmp_path: Path) -> None:
    with Capture.open(archive(tmp_path / "a.foz", [(Tag.APPLICATION_INFO, 5, APPLICATION)])) as capture:
        assert capture.application == Application(
            ApplicationIdentity("game", "", 1, "engine", 2),
            4206592,
            (
                "VkPhysicalDeviceFeatures.robustBufferAccess",
                "VkPhysicalDeviceImageRobustnessFeatures.robustImageAccess",
                "VkPhysicalDeviceRobustness2FeaturesEXT.nullDescriptor",
                "VkPhysicalDeviceRobustness2FeaturesEXT.robustBufferAccess2",
            ),
        )


def test_features_have_the_names_that_devices_are_opened_with() -> None:
    from shaderkiln.sources.capture import application_of
    from shaderkiln.vulkan_registry._device import FEATURES

    for name in application_of(APPLICATION).features[1:]:
        structure, _, member = name.partition(".")
        assert member in FEATURES[structure][3]


def test_several_applications_are_told_apart_by_links(tmp_path: Path) -> None:
    second = ApplicationInfo("second", None, 0, 0, 1, 0)
    entries: list[Entry] = [
        (Tag.APPLICATION_INFO, 4, b"damaged"),
        (Tag.APPLICATION_INFO, 5, APPLICATION),
        (Tag.APPLICATION_INFO, 6, second),
        (Tag.COMPUTE_PIPELINE, 1, compute()),
        (Tag.COMPUTE_PIPELINE, 2, compute()),
        (Tag.APPLICATION_BLOB_LINK, link_hash(6, Tag.COMPUTE_PIPELINE, 2), ApplicationLink(6, Tag.COMPUTE_PIPELINE, 2)),
    ]
    with Capture.open(archive(tmp_path / "a.foz", entries)) as capture:
        assert capture.application.identity.name == "game"
        assert capture.application_of("compute", 1).identity.name == "game"
        assert capture.application_of("compute", 2).identity.name == "second"


def test_one_of_several_applications_is_chosen(tmp_path: Path) -> None:
    compute_tag = Tag.COMPUTE_PIPELINE
    links = [(5, 0x11), (6, 0x12), (5, 0x13), (6, 0x13)]
    entries: list[Entry] = [
        *LAYOUT,
        (Tag.APPLICATION_INFO, 5, APPLICATION),
        (Tag.APPLICATION_INFO, 6, ApplicationInfo("second", None, 0, 0, 1, 0)),
        (Tag.APPLICATION_INFO, 7, ApplicationInfo("second", None, 9, 0, 1, 0)),
        *((compute_tag, number, compute()) for number in (0x11, 0x12, 0x13, 0x14)),
        *((Tag.APPLICATION_BLOB_LINK, link_hash(a, compute_tag, n), ApplicationLink(a, compute_tag, n)) for a, n in links),
    ]
    with Capture.open(archive(tmp_path / "a.foz", entries)) as capture:
        first, second, third = capture.applications
        assert [each.identity.name for each in (first, second, third)] == ["game", "second", "second"]
        assert capture.application == first
        assert [hash for _, hash in capture.pipelines()] == [0x11, 0x12, 0x13, 0x14]
        assert capture.mixes_features
        with pytest.raises(InvalidArgumentError, match=r"1 'game' \(robustBufferAccess, .*2 'second' \(none\)"):
            capture.require_one_set_of_features()
        # What has no link is the first one's; what has two is chosen with either.
        pipelines = {1: [0x11, 0x13, 0x14], 2: [0x12, 0x13], 3: []}
        for number, expected in pipelines.items():
            chosen = capture.select(number)
            assert [hash for _, hash in chosen.pipelines()] == expected
            assert chosen.application == capture.applications[number - 1]
            assert not chosen.mixes_features
            chosen.require_one_set_of_features()
            assert all(chosen.application_of("compute", hash) == chosen.application for hash in expected)
        assert capture.select("game").application == first
        assert capture.load("compute", 0x13).objects.keys() == capture.select(2).load("compute", 0x13).objects.keys()
        for wrong in (0, 4, -1, "third", ""):
            with pytest.raises(NotFoundError, match="3 'second'"):
                capture.select(wrong)
        with pytest.raises(InvalidArgumentError, match="2 applications are called 'second'"):
            capture.select("second")


def test_applications_with_the_same_features_need_no_choice(tmp_path: Path) -> None:
    entries: list[Entry] = [
        (Tag.APPLICATION_INFO, number, ApplicationInfo(f"game {number}", None, 0, 0, 1, 0)) for number in range(3)
    ]
    with Capture.open(archive(tmp_path / "a.foz", entries)) as capture:
        assert not capture.mixes_features
        capture.require_one_set_of_features()


def test_an_archive_without_application_information(tmp_path: Path) -> None:
    with Capture.open(archive(tmp_path / "a.foz", [(Tag.APPLICATION_INFO, 0, ApplicationInfo())])) as capture:
        assert capture.application == Application() == capture.application_of("compute", 1)
    name = ApplicationInfo("g\udce4me", None, 0, 0, 1, 0)
    with Capture.open(archive(tmp_path / "b.foz", [(Tag.APPLICATION_INFO, 5, name)])) as capture:
        assert capture.application.identity.name == "g�me"


def test_cost_needs_no_good_entry(tmp_path: Path) -> None:
    entries: list[Entry] = [
        *LAYOUT,
        (Tag.COMPUTE_PIPELINE, 1, compute()),
        (Tag.COMPUTE_PIPELINE, 2, compute(module=0x99)),
    ]
    with Capture.open(archive(tmp_path / "a.foz", entries)) as capture:
        assert capture.cost("compute", 1) == len(write_body(Tag.SHADER_MODULE, 0x40, s.ShaderModuleCreateInfo(0, CODE)))
        assert capture.cost("compute", 2) == 0
        assert capture.cost("compute", 3) == 0


def test_memory_does_not_grow_with_the_pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shaderkiln.sources.capture.CACHE_SIZE", 1 << 20)
    monkeypatch.setattr("shaderkiln.sources.capture.KNOWN_DIGESTS", 100)
    many = 600
    entries: list[Entry] = list(LAYOUT[:3])
    for number in range(many):
        code = CODE + number.to_bytes(4, "little") + bytes(range(256)) * 40
        entries.append((Tag.SHADER_MODULE, 0x1000 + number, s.ShaderModuleCreateInfo(0, code)))
        entries.append((Tag.COMPUTE_PIPELINE, 0x2000 + number, compute(module=0x1000 + number)))
    with Capture.open(archive(tmp_path / "a.foz", entries)) as capture:
        peaks = []
        tracemalloc.start()
        for done, (kind, hash) in enumerate(capture.pipelines(), 1):
            capture.object_key(kind, hash)
            capture.load(kind, hash)
            if done in (many // 2, many):
                peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 200_000


def test_groups_and_tags_of_pipelines_agree() -> None:
    from shaderkiln.sources.capture import KIND_TAGS

    assert [GROUPS[tag][0][1] for tag in KIND_TAGS.values()] == [
        s.GraphicsPipelineCreateInfo,
        s.ComputePipelineCreateInfo,
        s.RayTracingPipelineCreateInfoKHR,
    ]
