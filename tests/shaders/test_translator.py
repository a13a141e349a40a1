"""Real shaders through the real translator, and everything that can go wrong with it."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import shader_files

from shaderkiln.descriptions.direct3d12.binding_layout import binding_layout
from shaderkiln.drivers import frames
from shaderkiln.errors import DamagedInputError, DriverError
from shaderkiln.formats import dxbc
from shaderkiln.formats.root_signature import (
    UNBOUNDED,
    DescriptorRange,
    DescriptorRangeType,
    DescriptorTable,
    RootConstants,
    RootDescriptor,
    RootParameterType,
    RootSignature,
    ShaderVisibility,
    StaticSampler,
)
from shaderkiln.formats.spirv import Binding
from shaderkiln.shaders import messages
from shaderkiln.shaders import translator as translating
from shaderkiln.shaders.messages import ShaderInterface, StreamOutputElement, TargetOptions, TranslationRequest
from shaderkiln.shaders.package import TranslatorPackage
from shaderkiln.shaders.translator import NotTranslatable, Translation, Translator, library_version, prepare

pytestmark = pytest.mark.driver
SRV, UAV, CBV, SAMPLER = DescriptorRangeType
SPIRV_VAL = shutil.which("spirv-val")


def _read(name: str) -> bytes:
    return (shader_files.FOLDER / name).read_bytes()


def _translated(result: Translation | NotTranslatable) -> Translation:
    assert isinstance(result, Translation), result
    return result


def _bindings(result: Translation) -> Sequence[Binding]:
    return result.info.entry_points[0].bindings


def test_all_but_the_one_of_shader_model_6_6_are_translated(translator: Translator) -> None:
    results = {path.name: result for path, result, _ in shader_files.translate_all(translator)}
    assert len(results) == 28
    refused = {name: result for name, result in results.items() if isinstance(result, NotTranslatable)}
    assert set(refused) == {"c2_reduce.cs.sm6_6.dxil"}
    assert "createHandleFromBinding" in refused["c2_reduce.cs.sm6_6.dxil"].reason
    assert "E8013" in refused["c2_reduce.cs.sm6_6.dxil"].messages


def test_the_table_has_a_line_for_each(translator: Translator) -> None:
    lines = list(shader_files.table(translator))
    assert sum("translated, valid" in line for line in lines) == 27
    assert sum("createHandleFromBinding" in line for line in lines) == 1
    assert re.match(r"Translated by vkd3d-shader \d+\.\d+", lines[0])


@pytest.mark.skipif(SPIRV_VAL is None, reason="needs spirv-val (package spirv-tools)")
def test_the_validator_of_khronos_agrees(translator: Translator, tmp_path: Path) -> None:
    assert SPIRV_VAL
    for path, result, _ in shader_files.translate_all(translator):
        if isinstance(result, Translation):
            module = tmp_path / f"{path.name}.spv"
            module.write_bytes(result.spirv)
            run = subprocess.run([SPIRV_VAL, "--target-env", "vulkan1.1", module], capture_output=True, text=True, check=False)
            assert run.returncode == 0, f"{path.name}: {run.stdout}{run.stderr}"


def test_registers_lie_where_the_layout_says(translator: Translator) -> None:
    # g3_textured.hlsl: b0 is root constants, t0 and t1 lie in one table, s0 is static.
    code = _read("dxil/g3_textured.ps.dxil")
    layout = binding_layout(shader_files.fitting_root_signature(code))
    result = _translated(translator.translate_shader(code, layout))
    # The images are binding 1 of the tables' set; the buffers' binding 0 is not used.
    assert {(b.set, b.binding) for b in _bindings(result)} == {(1, 1), (3, 0)}
    vertex = _translated(translator.translate_shader(_read("dxil/g3_textured.vs.dxil"), layout))
    assert _bindings(vertex) == ()
    assert vertex.info.entry_points[0].push_constant_bytes > 0


def test_root_descriptors_and_counters(translator: Translator) -> None:
    # c4_particles.hlsl: b0, and the structured buffers u0 and u1, whose counter is used.
    signature = RootSignature(
        (
            RootDescriptor(RootParameterType.UAV, 0),
            RootDescriptor(RootParameterType.CBV, 0),
            DescriptorTable((DescriptorRange(UAV, 1, 1),)),
        )
    )
    result = _translated(translator.translate_shader(_read("dxil/c4_particles.cs.dxil"), binding_layout(signature)))
    found = {(b.set, b.binding): b.descriptor_types for b in _bindings(result)}
    assert {place: types[0] for place, types in found.items()} == {(0, 0): 5, (0, 1): 6, (1, 0): 5, (1, 2): 5}


def test_only_what_the_stage_sees_is_bound(translator: Translator) -> None:
    code = _read("dxil/g3_textured.ps.dxil")
    hidden = RootSignature((DescriptorTable((DescriptorRange(SRV, 2, 0),), ShaderVisibility.VERTEX),), (StaticSampler(0),))
    result = translator.translate_shader(code, binding_layout(hidden))
    assert isinstance(result, NotTranslatable)
    assert "binding" in result.reason
    seen = RootSignature((DescriptorTable((DescriptorRange(SRV, 2, 0),), ShaderVisibility.PIXEL),), (StaticSampler(0),))
    assert isinstance(translator.translate_shader(code, binding_layout(seen)), Translation)


def test_ranges_without_end_are_runtime_arrays(translator: Translator) -> None:
    code = _read("dxil/g3_textured.ps.dxil")
    signature = RootSignature((DescriptorTable((DescriptorRange(SRV, UNBOUNDED, 0),)),), (StaticSampler(0),))
    result = _translated(translator.translate_shader(code, binding_layout(signature)))
    assert {(b.set, b.binding, b.count) for b in _bindings(result)} == {(1, 1, None), (3, 0, 1)}
    assert 5302 in result.info.capabilities  # RuntimeDescriptorArray


def test_without_arrays_each_register_has_a_binding(translator: Translator) -> None:
    code = _read("dxil/g3_textured.ps.dxil")
    layout = binding_layout(shader_files.fitting_root_signature(code), arrays=False)
    result = _translated(translator.translate_shader(code, layout))
    assert {(b.set, b.binding, b.count) for b in _bindings(result)} == {(1, 1, 1), (1, 3, 1), (3, 0, 1)}
    assert 5302 not in result.info.capabilities


def test_the_compute_size_is_the_sources(translator: Translator) -> None:
    for name in ("dxil/c5_histogram.cs.dxil", "dxbc51/b5_histogram.cs.dxbc"):
        code = _read(name)
        result = _translated(translator.translate_shader(code, binding_layout(shader_files.fitting_root_signature(code))))
        (entry,) = result.info.entry_points
        assert result.info.workgroup_size(entry, {}) == (16, 16, 1)


def test_stream_output_becomes_transform_feedback(translator: Translator) -> None:
    code = _read("dxil/g1_fullscreen.vs.dxil")
    elements = (StreamOutputElement(0, "SV_Position", 0, 0, 4, 0), StreamOutputElement(0, "TEXCOORD", 0, 0, 2, 0))
    request = prepare(code, binding_layout(RootSignature()), stream_output=elements, stream_output_strides=(24,))
    assert isinstance(request, TranslationRequest)
    result = _translated(translator.translate(request))
    assert 53 in result.info.capabilities  # TransformFeedback
    assert 11 in result.info.entry_points[0].execution_modes  # Xfb
    plain = _translated(translator.translate_shader(code))
    assert 53 not in plain.info.capabilities


def test_options_reach_the_library(translator: Translator) -> None:
    code = _read("dxbc51/g3_textured.ps.dxbc")
    layout = binding_layout(shader_files.fitting_root_signature(code))
    with_demote = _translated(translator.translate_shader(code, layout))
    without = _translated(translator.translate_shader(code, layout, TargetOptions(demote_to_helper_invocation=False)))
    assert 5379 in with_demote.info.capabilities and 5379 not in without.info.capabilities
    named = _translated(translator.translate_shader(code, layout, TargetOptions(entry_point="pixels")))
    assert named.entry_point == "pixels" and named.info.entry_points[0].name == "pixels"


HULL, DOMAIN, GEOMETRY, FRAGMENT = 1, 2, 3, 4
"""SPIR-V execution models"""


@pytest.mark.parametrize(
    ("name", "model", "mode"),
    [
        ("t1.hs", HULL, (26, (3,))),  # OutputVertices 3
        ("t1.ds", DOMAIN, (22, ())),  # Triangles
        ("t1.gs", GEOMETRY, (26, (3,))),  # at most three vertices
        ("d1.ps", FRAGMENT, (7, ())),  # OriginUpperLeft
    ],
)
def test_the_other_stages(translator: Translator, name: str, model: int, mode: tuple[int, tuple[int, ...]]) -> None:
    result = _translated(translator.translate_shader(_read(f"stages/{name}.dxbc")))
    (entry,) = result.info.entry_points
    assert entry.execution_model == model
    assert entry.execution_modes[mode[0]] == (mode[1],)


def test_a_domain_shader_is_told_of_its_hull_shader(translator: Translator) -> None:
    # D3D_TESSELLATOR_OUTPUT_TRIANGLE_CW and D3D_TESSELLATOR_PARTITIONING_FRACTIONAL_ODD
    options = TargetOptions(tessellator_output=3, tessellator_partitioning=3)
    result = _translated(translator.translate_shader(_read("stages/t1.ds.dxbc"), options=options))
    modes = result.info.entry_points[0].execution_modes
    assert 3 in modes and {4, 5} & set(modes)  # SpacingFractionalOdd, a vertex order
    assert not {1, 2, 3, 4, 5} & set(
        _translated(translator.translate_shader(_read("stages/t1.ds.dxbc"))).info.entry_points[0].execution_modes
    )


def test_two_sources_of_blending(translator: Translator) -> None:
    code = _read("stages/d1.ps.dxbc")
    plain = _translated(translator.translate_shader(code))
    dual = _translated(translator.translate_shader(code, options=TargetOptions(dual_source_blending=True)))
    assert plain.info.entry_points[0].output_locations == (0, 1)
    assert dual.info.entry_points[0].output_locations == (0, 0)  # told apart by their Index


def test_a_missing_digest_is_filled_in_and_a_wrong_one_refused(translator: Translator) -> None:
    code = _read("dxil/g1_fullscreen.ps.dxil")
    whole = _translated(translator.translate_shader(code))
    unsigned = code[:4] + dxbc.NO_DIGEST + code[20:]
    assert _translated(translator.translate_shader(unsigned)).spirv == whole.spirv
    wrong = code[:4] + bytes([code[4] ^ 1]) + code[5:]
    result = translator.translate_shader(wrong)
    assert isinstance(result, NotTranslatable) and "checksum" in result.reason


def test_spirv_is_taken_as_it_is(translator: Translator) -> None:
    module = _read("spirv/c1_fill.cs.spv")
    result = _translated(translator.translate_shader(module))
    assert result.spirv == module and result.translator == ""
    with pytest.raises(DamagedInputError):
        translator.translate_shader(module[:-3])
    with pytest.raises(DamagedInputError):
        translator.translate_shader(b"")


def test_containers_without_shaders_and_other_kinds_are_reported(translator: Translator) -> None:
    result = translator.translate_shader(dxbc.write([dxbc.Part("PRIV", b"")]))
    assert isinstance(result, NotTranslatable) and "no shader" in result.reason
    program = (6 << 16 | 0x63).to_bytes(4, "little") + (6).to_bytes(4, "little")
    library = dxbc.write([dxbc.Part("DXIL", program + b"DXIL" + bytes([3, 1, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0]))])
    result = translator.translate_shader(library)
    assert isinstance(result, NotTranslatable) and "LIBRARY" in result.reason


def test_the_same_shader_gives_the_same_bytes(translator: Translator, translator_package: TranslatorPackage) -> None:
    code = _read("dxil/c2_reduce.cs.dxil")
    layout = binding_layout(shader_files.fitting_root_signature(code))
    first = _translated(translator.translate_shader(code, layout))
    with Translator(translator_package) as other:
        assert _translated(other.translate_shader(code, layout)).spirv == first.spirv


def test_altered_shaders_never_stop_the_translator(translator: Translator) -> None:
    rng = random.Random(7)
    layouts = {p: binding_layout(shader_files.fitting_root_signature(p.read_bytes())) for p in shader_files.DXIL}
    seen = set()
    for _ in range(250):
        path = rng.choice(shader_files.DXIL)
        data = bytearray(path.read_bytes())
        for _ in range(rng.choice((1, 2, 8))):
            data[rng.randrange(60, len(data))] = rng.randrange(256)
        data[4:20] = bytes(16)
        try:
            result = translator.translate_shader(bytes(data), layouts[path])
        except DamagedInputError:
            continue
        seen.add(type(result))
        assert isinstance(result, Translation) or result.reason
    assert seen == {Translation, NotTranslatable}
    code = _read("dxil/c2_reduce.cs.dxil")
    layout = binding_layout(shader_files.fitting_root_signature(code))
    assert isinstance(translator.translate_shader(code, layout), Translation)


def _worker_pid(translator: Translator) -> int:
    translator.name  # noqa: B018  starts it
    assert translator._process is not None
    return translator._process._process.pid


def test_a_process_that_was_killed_is_started_again(translator_package: TranslatorPackage) -> None:
    code = _read("dxil/g1_fullscreen.ps.dxil")
    with Translator(translator_package) as translator:
        first = _translated(translator.translate_shader(code))
        pid = _worker_pid(translator)
        os.kill(pid, signal.SIGKILL)
        assert _translated(translator.translate_shader(code)).spirv == first.spirv
        assert _worker_pid(translator) != pid
    # The shader that a new process dies on is not tried again.
    with Translator(translator_package) as translator:
        os.kill(_worker_pid(translator), signal.SIGKILL)
        result = translator.translate_shader(code)
        assert isinstance(result, NotTranslatable) and "SIGKILL" in result.reason
        assert isinstance(translator.translate_shader(code), Translation)


def test_time_is_limited(translator_package: TranslatorPackage) -> None:
    code = _read("dxil/g1_fullscreen.ps.dxil")
    with Translator(translator_package) as translator:
        pid = _worker_pid(translator)
        timer = threading.Timer(4.5, os.kill, (pid, signal.SIGCONT))
        os.kill(pid, signal.SIGSTOP)
        timer.start()
        request = prepare(code, seconds=1)
        assert isinstance(request, TranslationRequest)
        result = translator.translate(request)
        timer.cancel()
        assert isinstance(result, NotTranslatable) and "no answer in 3 seconds" in result.reason
        assert isinstance(translator.translate(request), Translation)


def test_memory_is_limited(translator_package: TranslatorPackage) -> None:
    code = _read("dxil/g4_shadow.ps.dxil")
    layout = binding_layout(shader_files.fitting_root_signature(code))
    with Translator(translator_package, memory=1 << 20) as translator:
        result = translator.translate_shader(code, layout)
        assert isinstance(result, NotTranslatable), "one MiB is less than Python takes"


def test_a_worker_that_cannot_start_says_why(translator_package: TranslatorPackage, tmp_path: Path) -> None:
    missing = replace(translator_package, library=str(tmp_path / "libvkd3d-shader.so.1"))
    with Translator(missing) as translator, pytest.raises(DriverError, match=r"libvkd3d-shader\.so\.1"):
        translator.translate_shader(_read("dxil/g1_fullscreen.ps.dxil"))
    nowhere = replace(translator_package, loader=str(tmp_path / "ld.so"))
    with Translator(nowhere) as translator, pytest.raises(DriverError, match="cannot start"):
        translator.translate_shader(_read("dxil/g1_fullscreen.ps.dxil"))


def test_what_a_library_without_dxil_says(translator_package: TranslatorPackage) -> None:
    with Translator(translator_package) as translator:
        translator.name  # noqa: B018
        translator._hello = messages.Hello("vkd3d-shader 1.2", (1,))
        assert not translator.has_arrays and not translator.has_dxil
        result = translator.translate_shader(_read("dxil/g1_fullscreen.ps.dxil"))
        assert isinstance(result, NotTranslatable) and "kiln drivers add" in result.reason
        assert isinstance(translator.translate_shader(_read("dxbc51/g1_fullscreen.ps.dxbc")), Translation)


def test_threads_may_share_a_translator(translator: Translator) -> None:
    code = _read("dxil/c1_fill.cs.dxil")
    layout = binding_layout(shader_files.fitting_root_signature(code))
    expected = _translated(translator.translate_shader(code, layout)).spirv
    results: list[bytes] = []

    def work() -> None:
        for _ in range(10):
            results.append(_translated(translator.translate_shader(code, layout)).spirv)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 40


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("vkd3d-shader 2.1 (Debian 2.1+ds-1)", (2, 1)),
        ("vkd3d-shader 1.16", (1, 16)),
        ("vkd3d-shader 1.2 (git abc)", (1, 2)),
        ("", ()),
    ],
)
def test_versions(name: str, version: tuple[int, ...]) -> None:
    assert library_version(name) == version


def test_messages_survive(translator: Translator) -> None:
    request = TranslationRequest(b"x" * 1000, True, ShaderInterface(), TargetOptions(rasterizer_sample_count=4), 5)
    payload = frames.frame(request)[4:]
    assert frames.decode(TranslationRequest, payload) == request
    for cut in (b"", payload[:-1], b"\xc1", payload[:10]):
        with pytest.raises(translating.InvalidArgumentError):
            frames.decode(TranslationRequest, cut)


def test_root_constants_past_the_limit_are_a_uniform_buffer(translator: Translator) -> None:
    code = _read("dxil/g3_textured.vs.dxil")
    layout = binding_layout(RootSignature((RootConstants(0, 0, 4),)), push_constant_bytes=8)
    result = _translated(translator.translate_shader(code, layout))
    assert [(b.set, b.binding, b.descriptor_types[0]) for b in _bindings(result)] == [(0, 0, 6)]
