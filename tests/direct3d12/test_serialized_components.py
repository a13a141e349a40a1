"""Serialized pipeline components on devices: the toy's for what no driver may see, real drivers for what they must take."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec
import pytest
from device_support import Bench, counts, real_family, shader_stream, text_stream, toy_family
from driver_support import multiply_shader
from job_support import log_lines
from sodb_example import example

from shaderkiln.descriptions.direct3d12.enums import DxgiFormat, PrimitiveTopologyType
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.states import RenderTargetFormats
from shaderkiln.direct3d12.component_pool import ComponentPool
from shaderkiln.direct3d12.derived_pipelines import ComputeVariation
from shaderkiln.direct3d12.objects import PipelineState
from shaderkiln.direct3d12.process_debug import ProcessDebugFlags, process_debug_flags, set_process_debug_flags
from shaderkiln.direct3d12.serialized_components import SerializeFlags
from shaderkiln.direct3d12.statistics import ObjectSource
from shaderkiln.errors import DamagedInputError, DriverError, InvalidArgumentError, NotFoundError, ShaderkilnError
from shaderkiln.formats import root_signature
from shaderkiln.formats.pipeline_components import (
    PipelineRecord,
    SerializedPipelineState,
    SerializedShader,
    ShaderSlot,
    assemble,
)
from shaderkiln.formats.root_signature import (
    DescriptorRange,
    DescriptorRangeType,
    DescriptorTable,
    RootConstants,
    RootDescriptor,
    RootParameterType,
    RootSignature,
    RootSignatureFlag,
    StaticSampler,
)
from shaderkiln.shaders.package import TranslatorPackages

SPACE = 77
"""A register space that no shader here uses."""


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, real_family(), toy=False)
    yield bench
    bench.close()


def fullscreen() -> PipelineStateStream:
    """A vertex and a pixel shader in SPIR-V."""
    return PipelineStateStream(
        vs=example.read("spirv/g1_fullscreen.vs.spv"),
        ps=example.read("spirv/g1_fullscreen.ps.spv"),
        render_target_formats=RenderTargetFormats((DxgiFormat.R8G8B8A8_UNORM,)),
        primitive_topology=PrimitiveTopologyType.TRIANGLE,
    )


def local_size(*size: int) -> PipelineStateStream:
    """The compute shader of the driver tests with another local size, which its code does not depend on."""
    code = multiply_shader()
    before = struct.pack("<6I", 6 << 16 | 16, 1, 17, 1, 1, 1)
    assert code.count(before) == 1
    return PipelineStateStream(cs=code.replace(before, struct.pack("<6I", 6 << 16 | 16, 1, 17, *size)))


# Serializing


@pytest.mark.spec("XS-01", "XS-02", "XS-03")
def test_a_compute_pipeline_comes_back_on_another_device_without_any_cache(bench: Bench) -> None:
    tool = bench.device(tool=True)
    created = tool.create_pipeline_state(bench.stream(1))
    serialized = tool.serialize_compute_pipeline_state(created, SerializeFlags.NONE)
    # The toy gives two binaries for its shader.
    active = [] if bench.toy else [ShaderSlot.COMPUTE]
    assert [slot for slot in ShaderSlot if serialized.shader(slot) is not None] == active
    game = bench.device(cache="an-empty-cache")
    pipeline = game.deserialize_compute_pipeline_state(serialized)
    assert pipeline.object_key == created.object_key
    assert pipeline.recreate() is ObjectSource.SERIALIZED
    # Created once, not in a PSDB, not compiled.
    assert counts(game) == (1, 1, 0, 0)
    assert tool.serialize_compute_pipeline_state(created) == serialized


@pytest.mark.driver
@pytest.mark.spec("XS-01", "XS-02", "XS-03")
def test_a_graphics_pipeline_has_instructions_and_metadata_for_each_of_its_shaders(real: Bench) -> None:
    tool = real.device(tool=True)
    created = tool.create_pipeline_state(fullscreen())
    serialized = tool.serialize_graphics_pipeline_state(created)
    active = {slot: shader for slot in ShaderSlot if (shader := serialized.shader(slot)) is not None}
    assert set(active) == {ShaderSlot.VERTEX, ShaderSlot.PIXEL} and not serialized.shared
    (stored,) = created.stored()
    for shader, (_, data) in zip(active.values(), stored.values, strict=True):
        # Machine code of RDNA is words; s_endpgm (0xBFB00000 on GFX11) ends the program, and s_code_end (0xBF9F0000) pads it.
        assert shader.metadata is not None and shader.metadata + shader.gpu_instructions == data
        words = struct.unpack(f"<{len(shader.gpu_instructions) // 4}I", shader.gpu_instructions)
        assert words[-1] == 0xBF9F0000 and 0xBFB00000 in words
        assert 0xBF9F0000 not in struct.unpack(f"<{len(shader.metadata) // 4}I", shader.metadata)
    game = real.device(cache="an-empty-cache")
    assert game.deserialize_graphics_pipeline_state(serialized).recreate() is ObjectSource.SERIALIZED
    assert counts(game) == (1, 1, 0, 0)


@pytest.mark.spec("XS-01")
def test_flags_must_be_none_and_the_pipeline_one_of_the_kind_and_device(toy: Bench) -> None:
    device, other = toy.device(tool=True), toy.device(tool=True)
    created = device.create_pipeline_state(toy.stream(1))
    for flags in (1, 2, -1, 1 << 40, None, "NONE"):
        with pytest.raises(InvalidArgumentError) as refused:
            device.serialize_compute_pipeline_state(created, flags)  # type: ignore[arg-type]
        assert refused.value.code == "E_INVALIDARG"
    for wrong in (None, b"", other.create_pipeline_state(toy.stream(1))):
        with pytest.raises(InvalidArgumentError):
            device.serialize_compute_pipeline_state(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError):
        device.serialize_graphics_pipeline_state(created)
    serialized = device.serialize_compute_pipeline_state(created)
    with pytest.raises(InvalidArgumentError):
        device.deserialize_graphics_pipeline_state(serialized)


@pytest.mark.spec("XS-02")
def test_object_code_in_one_piece_is_instructions_without_metadata(toy: Bench) -> None:
    device = toy.device(tool=True)
    created = device.create_pipeline_state(text_stream("one piece"))
    (stored,) = created.stored()
    serialized = device.serialize_compute_pipeline_state(created)
    # The toy gives two binaries for one shader, and nobody knows which is the shader's.
    assert serialized.shaders == (None,) * 8
    # It wants to see the shader, which is a piece too.
    spirv = b"one piece".ljust(12)
    assert serialized.shared == (*(SerializedShader(data) for _, data in stored.values), SerializedShader(spirv))


@pytest.mark.spec("XS-07")
def test_only_tools_and_processes_with_debug_flags_serialize(toy: Bench) -> None:
    retail = toy.device()
    created = retail.create_pipeline_state(toy.stream(1))
    with pytest.raises(ShaderkilnError) as refused:
        retail.serialize_compute_pipeline_state(created)
    assert refused.value.code == "DXGI_ERROR_NOT_CURRENTLY_AVAILABLE"
    serialized = []
    devices = [toy.device(tool=True)]
    try:
        for flags in (ProcessDebugFlags.INSTRUMENTED, ProcessDebugFlags.DEBUG_LAYER_ENABLED):
            set_process_debug_flags(flags)
            assert process_debug_flags() is flags
            devices.append(toy.device())
        for flags in (4, -1, "INSTRUMENTED", None):
            with pytest.raises(InvalidArgumentError):
                set_process_debug_flags(flags)  # type: ignore[arg-type]
    finally:
        set_process_debug_flags(ProcessDebugFlags.NONE)
    for device in devices:
        pipeline = device.create_pipeline_state(toy.stream(1))
        serialized.append(device.serialize_compute_pipeline_state(pipeline))
    assert serialized[0] == serialized[1] == serialized[2]
    # The device that players have still cannot, and takes what the others made.
    with pytest.raises(ShaderkilnError):
        retail.serialize_compute_pipeline_state(created)
    assert retail.deserialize_compute_pipeline_state(serialized[0]).kind == "compute"


def test_a_driver_without_object_code_serializes_nothing(toy: Bench) -> None:
    toy.family = toy_family(object_code_form="none")
    device = toy.device(tool=True)
    with pytest.raises(ShaderkilnError) as refused:
        device.serialize_compute_pipeline_state(device.create_pipeline_state(toy.stream(1)))
    assert refused.value.code == "DXGI_ERROR_UNSUPPORTED"


# Damage


def damaged_sets(serialized: SerializedPipelineState) -> Iterator[SerializedPipelineState]:
    """Every byte changed, every cut, every piece missing or swapped, for a set of shared pieces and the pipeline's own."""
    own = bytes(serialized.pipeline)
    for at in range(len(own)):
        yield replace(serialized, pipeline=own[:at] + bytes((own[at] ^ 1 << at % 8,)) + own[at + 1 :])
        yield replace(serialized, pipeline=own[:at])
    shared = serialized.shared
    for number, shader in enumerate(shared):
        code = bytes(shader.gpu_instructions)
        for at in range(len(code)):
            for changed in (code[:at] + bytes((code[at] ^ 1 << at % 8,)) + code[at + 1 :], code[:at]):
                yield replace(serialized, shared=(*shared[:number], SerializedShader(changed), *shared[number + 1 :]))
        yield replace(serialized, shared=(*shared[:number], *shared[number + 1 :]))
        yield replace(serialized, shared=(*shared[:number], SerializedShader(code, b""), *shared[number + 1 :]))
    yield replace(serialized, shared=shared[::-1])
    yield replace(serialized, shared=(), shaders=(*shared, *serialized.shaders[len(shared) :]))


@pytest.mark.spec("XS-04", "AL-02")
def test_no_driver_sees_a_damaged_set(toy: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = toy.device(tool=True)
    serialized = tool.serialize_compute_pipeline_state(tool.create_pipeline_state(toy.stream(1)))
    monkeypatch.setenv("TOY_LOG", str(toy.folder / "toy.log"))
    game = toy.device(cache="an-empty-cache")
    number = 0
    for damaged in damaged_sets(serialized):
        with pytest.raises((InvalidArgumentError, DamagedInputError)) as refused:
            game.deserialize_compute_pipeline_state(damaged)
        assert refused.value.code == "E_INVALIDARG"
        number += 1
    assert number > 500
    assert log_lines(toy.folder / "toy.log", "start") == []
    assert counts(game) == (0, 0, 0, 0)


def damaged_at_random(serialized: SerializedPipelineState, random: Random) -> SerializedPipelineState:
    """One to four pieces changed, cut, grown, swapped, emptied or left out."""
    pieces = [list(pair) for pair in _piece_list(serialized)]
    before = [list(pair) for pair in pieces]
    while pieces == before:
        for _ in range(random.randint(1, 4)):
            place = random.choice(
                [(n, i) for n, pair in enumerate(pieces) for i, piece in enumerate(pair) if piece is not None]
            )
            piece = bytes(pieces[place[0]][place[1]] or b"")
            at = random.randrange(len(piece) + 1)
            match random.randrange(6):
                case 0:
                    piece = piece[:at] + random.randbytes(random.randint(1, 8)) + piece[at + random.randint(0, 8) :]
                case 1:
                    piece = piece[:at]
                case 2:
                    piece = piece[at:] + piece[:at]
                case 3:
                    piece += piece[:at]
                case 4:
                    other = random.randrange(len(pieces))
                    pieces[other], pieces[place[0]] = pieces[place[0]], pieces[other]
                    continue
                case 5 if place[1] == 1:
                    pieces[place[0]][1] = None
                    continue
            pieces[place[0]][place[1]] = piece
    shaders = [None if one is None else SerializedShader(one, metadata) for one, metadata in pieces[1:]]
    return SerializedPipelineState(pieces[0][0], tuple(shaders))


def _piece_list(serialized: SerializedPipelineState) -> list[tuple[bytes | None, bytes | None]]:
    shaders = [(None, None) if one is None else (one.gpu_instructions, one.metadata) for one in serialized.shaders]
    return [(serialized.pipeline, None), *shaders]


def real_damage(serialized: SerializedPipelineState, step: int, mutations: int) -> Iterator[SerializedPipelineState]:
    """Every ``step``-th byte changed to another value and every such cut, of each piece; then random damage."""
    random = Random(4)
    for number, (name, piece) in enumerate(serialized.pieces()):
        for at in range(number % step, len(piece), step):
            for changed in (piece[:at] + bytes((piece[at] ^ random.randint(1, 255),)) + piece[at + 1 :], piece[:at]):
                if name == "pipeline":
                    yield replace(serialized, pipeline=changed)
                    continue
                slot, part = name.split(".")
                shaders = list(serialized.shaders)
                index = ShaderSlot[slot.upper()]
                shader = shaders[index]
                assert shader is not None
                shaders[index] = replace(shader, **{part: changed})
                yield replace(serialized, shaders=tuple(shaders))
    for _ in range(mutations):
        yield damaged_at_random(serialized, random)


@pytest.mark.driver
@pytest.mark.spec("XS-04", "AL-02")
@pytest.mark.parametrize("step, mutations", [(23, 500), pytest.param(1, 10_000, marks=pytest.mark.soak)])
def test_no_real_driver_sees_a_damaged_set(real: Bench, step: int, mutations: int) -> None:
    tool = real.device(tool=True)
    serialized = tool.serialize_graphics_pipeline_state(tool.create_pipeline_state(fullscreen()))
    game = real.device(cache="an-empty-cache")
    for damaged in real_damage(serialized, step, mutations):
        with pytest.raises((InvalidArgumentError, DamagedInputError)) as refused:
            game.deserialize_graphics_pipeline_state(damaged)
        assert refused.value.code == "E_INVALIDARG"
    # The driver was not even started.
    assert game._creation._driver._lanes == []
    game.deserialize_graphics_pipeline_state(serialized)


@pytest.mark.spec("XS-03", "XS-04")
def test_pieces_are_used_in_place_and_compared_each_time(toy: Bench) -> None:
    tool = toy.device(tool=True)
    serialized = tool.serialize_compute_pipeline_state(tool.create_pipeline_state(toy.stream(1)))
    mine = [bytearray(shader.gpu_instructions) for shader in serialized.shared]
    placed = replace(serialized, shared=tuple(map(SerializedShader, mine)))
    pipeline = toy.device(cache="an-empty-cache").deserialize_compute_pipeline_state(placed)
    assert all(shader.gpu_instructions is buffer for shader, buffer in zip(pipeline.serialized.shared, mine, strict=True))
    mine[0][0] ^= 1
    with pytest.raises(DamagedInputError):
        pipeline.recreate()
    mine[0][0] ^= 1
    assert pipeline.recreate() is ObjectSource.SERIALIZED


@pytest.mark.spec("XS-04")
def test_pieces_of_other_adapters_and_drivers_are_refused_before_the_driver(
    toy: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = toy.device(tool=True)
    serialized = tool.serialize_compute_pipeline_state(tool.create_pipeline_state(toy.stream(1)))
    monkeypatch.setenv("TOY_LOG", str(toy.folder / "toy.log"))
    for changes, code in (
        ({"family": "toy-two"}, "D3D12_ERROR_ADAPTER_NOT_FOUND"),
        ({"driver_build": "toy 2.2"}, "D3D12_ERROR_DRIVER_VERSION_MISMATCH"),
    ):
        toy.family = toy_family(**changes)
        with pytest.raises(ShaderkilnError) as refused:
            toy.device().deserialize_compute_pipeline_state(serialized)
        assert refused.value.code == code
    assert log_lines(toy.folder / "toy.log", "start") == []


def forged(serialized: SerializedPipelineState, **changes: object) -> SerializedPipelineState:
    """Pieces with another record and a CRC that is right."""
    record = assemble(serialized).record
    body = msgspec.msgpack.encode(msgspec.structs.replace(record, **changes))
    framed = (len(body) + 1).to_bytes(8, "little") + body
    for shader in (*serialized.shaders, *serialized.shared):
        for piece in (None, None) if shader is None else (shader.gpu_instructions, shader.metadata):
            framed += (0 if piece is None else len(piece) + 1).to_bytes(8, "little") + bytes(piece or b"")
    return replace(serialized, pipeline=b"SKPC\x01\0\0\0" + zlib.crc32(framed).to_bytes(4, "little") + body)


@pytest.mark.spec("AL-02")
def test_records_that_make_no_sense_are_refused_before_the_driver(toy: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = toy.device(tool=True)
    serialized = tool.serialize_compute_pipeline_state(tool.create_pipeline_state(toy.stream(1)))
    assert forged(serialized).pipeline == serialized.pipeline
    record: PipelineRecord = assemble(serialized).record
    info, objects = msgspec.msgpack.decode(record.description)
    descriptions: Sequence[object] = (
        None,
        [],
        [info],
        [info, []],
        [info, [["PipelineHandle", info]]],
        [info, [["Handle", info]]],
        [info, [["HEADER_VERSION", info]]],
        [info, [[kind, objects[0][1]] for kind, _ in objects]],
        [info, [[kind, [described[0], 7, *described[2:]]] for kind, described in objects]],
        [[28], objects],
    )
    monkeypatch.setenv("TOY_LOG", str(toy.folder / "toy.log"))
    game = toy.device()
    wrong = [forged(serialized, description=msgspec.msgpack.encode(one)) for one in descriptions]
    wrong += [
        forged(serialized, modules=0),
        forged(serialized, object_key=b""),
        forged(serialized, version=-1),
        forged(serialized, description=b"\xc1"),
    ]
    for one in wrong:
        with pytest.raises(DamagedInputError):
            game.deserialize_compute_pipeline_state(one)
    assert log_lines(toy.folder / "toy.log", "start") == []


def test_what_the_driver_does_not_take_is_an_error_and_is_not_compiled(toy: Bench) -> None:
    device = toy.device(tool=True)
    serialized = device.serialize_compute_pipeline_state(device.create_pipeline_state(text_stream("forgetful one")))
    before = counts(device)
    with pytest.raises(DriverError):
        device.deserialize_compute_pipeline_state(serialized)
    assert counts(device) == before
    device.close()
    with pytest.raises(InvalidArgumentError):
        device.deserialize_compute_pipeline_state(serialized)


# Variations


def base_signature() -> RootSignature:
    """What the shader c4_particles needs: root constants that are push constants, and UAVs with counters in a table."""
    return RootSignature((RootConstants(0, 0, 24), DescriptorTable((DescriptorRange(DescriptorRangeType.UAV, 2, 0),))))


def table(kind: DescriptorRangeType) -> DescriptorTable:
    return DescriptorTable((DescriptorRange(kind, 4, 0, SPACE),))


def variations() -> dict[str, RootSignature]:
    """Root signatures that add what the shader does not use, or take something away."""
    base = base_signature()
    types = DescriptorRangeType
    return {
        "flags": replace(base, flags=RootSignatureFlag.DENY_VERTEX_SHADER_ROOT_ACCESS),
        "samplers": replace(base, parameters=(*base.parameters, table(types.SAMPLER))),
        "samplers-first": replace(base, parameters=(table(types.SAMPLER), *base.parameters)),
        "static-sampler": replace(base, static_samplers=(StaticSampler(register=3, space=SPACE),)),
        "root-view": replace(base, parameters=(*base.parameters, RootDescriptor(RootParameterType.CBV, 5, SPACE))),
        "constants": replace(base, parameters=(*base.parameters, RootConstants(9, SPACE, 4))),
        # With these, what the shader uses lies elsewhere.
        "table": replace(base, parameters=(*base.parameters, table(types.UAV))),
        "table-first": replace(base, parameters=(table(types.UAV), *base.parameters)),
        "constants-first": replace(base, parameters=(RootConstants(9, SPACE, 4), *base.parameters)),
        "fewer": replace(base, parameters=base.parameters[:1]),
        "less": replace(base, parameters=(RootConstants(0, 0, 20), *base.parameters[1:])),
        "nothing": RootSignature(),
        "other-register": RootSignature((RootConstants(0, 0, 24), table(types.UAV))),
    }


KEPT = ("flags", "samplers", "samplers-first", "static-sampler", "root-view", "constants")
MOVED = ("table", "table-first", "constants-first")


def particles(signature: RootSignature) -> PipelineStateStream:
    """A translated shader, whose code depends on where the root signature puts its resources."""
    code = example.read("dxil/c4_particles.cs.dxil")
    return PipelineStateStream(cs=code, root_signature=root_signature.serialize(signature))


def code_of(pipeline: PipelineState) -> tuple[bytes, ...]:
    (stored,) = pipeline.stored()
    return tuple(data for _, data in stored.values)


@pytest.fixture
def translated(real: Bench) -> Bench:
    try:
        if TranslatorPackages().best().notice:
            pytest.skip("the translator cannot read DXIL")
    except NotFoundError as error:
        pytest.skip(f"no translator of shaders here: {error}")
    return real


@pytest.mark.driver
@pytest.mark.spec("XS-06")
def test_a_derived_pipeline_has_what_the_driver_would_compile_and_does_not_compile_it(translated: Bench) -> None:
    tool = translated.device(tool=True)
    base = tool.create_pipeline_state(particles(base_signature()))
    serialized = tool.serialize_compute_pipeline_state(base)
    game = translated.device(cache="an-empty-cache")
    pipeline = game.deserialize_compute_pipeline_state(serialized)
    assert game.create_derived_compute_pipeline_state(pipeline, ComputeVariation()).object_key == pipeline.object_key
    found = variations()
    for name in KEPT:
        # The driver itself, asked to compile with that root signature, makes the same object code.
        assert code_of(tool.create_pipeline_state(particles(found[name]))) == code_of(base), name
        variation = ComputeVariation(root_signature.serialize(found[name]))
        derived = game.create_derived_compute_pipeline_state(pipeline, variation)
        assert derived.recreate() is ObjectSource.SERIALIZED
        again = game.create_derived_compute_pipeline_state(derived, ComputeVariation())
        assert again.description == derived.description
        assert (derived.description == pipeline.description) is (name == "flags")
    for name in MOVED:
        assert code_of(tool.create_pipeline_state(particles(found[name]))) != code_of(base), name
    for name in found.keys() - set(KEPT):
        with pytest.raises(InvalidArgumentError, match="compiled again"):
            game.create_derived_compute_pipeline_state(pipeline, ComputeVariation(root_signature.serialize(found[name])))
    created, _, compiled, _ = counts(game)
    assert (created, compiled) == (2 + 2 * len(KEPT), 0)


@pytest.mark.driver
@pytest.mark.spec("XS-06")
def test_bases_and_variations_must_be_some(real: Bench) -> None:
    tool = real.device(tool=True)
    created = tool.create_pipeline_state(shader_stream(3))
    compute = tool.deserialize_compute_pipeline_state(tool.serialize_compute_pipeline_state(created))
    graphics = tool.serialize_graphics_pipeline_state(tool.create_pipeline_state(fullscreen()))
    other = real.device()
    for device, base, variation in (
        (tool, created, ComputeVariation()),
        (tool, None, ComputeVariation()),
        (other, compute, ComputeVariation()),
        (tool, tool.deserialize_graphics_pipeline_state(graphics), ComputeVariation()),
        (tool, compute, None),
        (tool, compute, ComputeVariation(b"damaged")),
    ):
        with pytest.raises(ShaderkilnError) as refused:
            device.create_derived_compute_pipeline_state(base, variation)  # type: ignore[arg-type]
        assert refused.value.code == "E_INVALIDARG"


@pytest.mark.spec("XS-06")
def test_other_drivers_keep_object_code_only_with_the_same_layout(toy: Bench) -> None:
    device = toy.device(tool=True)
    # The toy's pipelines have an empty layout.
    stream = msgspec.structs.replace(toy.stream(1), root_signature=root_signature.serialize(RootSignature()))
    created = device.create_pipeline_state(stream)
    base = device.deserialize_compute_pipeline_state(device.serialize_compute_pipeline_state(created))
    empty = RootSignature(flags=RootSignatureFlag.DENY_VERTEX_SHADER_ROOT_ACCESS)
    same = device.create_derived_compute_pipeline_state(base, ComputeVariation(root_signature.serialize(empty)))
    assert same.recreate() is ObjectSource.SERIALIZED
    more = RootSignature((RootConstants(0, 0, 1),))
    with pytest.raises(InvalidArgumentError, match="compiled again"):
        device.create_derived_compute_pipeline_state(base, ComputeVariation(root_signature.serialize(more)))
    # Without a root signature the shader alone says where its resources lie.
    created = device.create_pipeline_state(toy.stream(1))
    bare = device.deserialize_compute_pipeline_state(device.serialize_compute_pipeline_state(created))
    with pytest.raises(InvalidArgumentError, match="compiled again"):
        device.create_derived_compute_pipeline_state(bare, ComputeVariation(root_signature.serialize(empty)))


# Sharing


@pytest.mark.driver
@pytest.mark.spec("XS-05")
def test_shaders_that_differ_in_limits_alone_have_the_same_instructions(real: Bench) -> None:
    device = real.device(tool=True)
    pool = ComponentPool()
    sizes = ((1, 1, 1), (8, 8, 1), (64, 1, 1), (256, 1, 1))
    for size in sizes:
        created = device.create_pipeline_state(local_size(*size))
        pool.add(str(size), device.serialize_compute_pipeline_state(created))
    shaders = [pool.get(str(size)).shader(ShaderSlot.COMPUTE) for size in sizes]
    assert len({id(shader.gpu_instructions) for shader in shaders if shader is not None}) == 1
    assert len({shader.metadata for shader in shaders if shader is not None}) == len(sizes)
    instructions = shaders[0].gpu_instructions if shaders[0] is not None else b""
    assert pool.statistics().bytes_saved == (len(sizes) - 1) * len(instructions)
    game = real.device(cache="an-empty-cache")
    for size in sizes:
        game.deserialize_compute_pipeline_state(pool.get(str(size)))
    assert counts(game) == (4, 4, 0, 0)


def staged(*stages: str) -> PipelineStateStream:
    """A triangle shader with other stages between."""
    codes = {stage: example.read(f"stages/t1.{stage}.dxbc") for stage in stages}
    topology = PrimitiveTopologyType.PATCH if "hs" in stages else PrimitiveTopologyType.TRIANGLE
    vs, ps = example.read("dxbc51/g1_fullscreen.vs.dxbc"), example.read("dxbc51/g1_fullscreen.ps.dxbc")
    signature = root_signature.serialize(RootSignature())
    formats = RenderTargetFormats((DxgiFormat.R8G8B8A8_UNORM,))
    return PipelineStateStream(
        root_signature=signature, vs=vs, ps=ps, **codes, primitive_topology=topology, render_target_formats=formats
    )


@pytest.mark.driver
@pytest.mark.spec("XS-01", "XS-02")
@pytest.mark.parametrize("family", ["amd-navi31", "amd-navi10", "amd-polaris10"])
def test_merged_stages_have_their_pieces_in_the_shader_that_holds_them(family: str, translated: Bench) -> None:
    translated.family = real_family(family)
    device = translated.device(tool=True)
    slots = ShaderSlot
    for stages, active in (
        (("hs", "ds"), {slots.VERTEX, slots.HULL, slots.DOMAIN, slots.PIXEL}),
        (("gs",), {slots.VERTEX, slots.GEOMETRY, slots.PIXEL}),
    ):
        created = device.create_pipeline_state(staged(*stages))
        serialized = device.serialize_graphics_pipeline_state(created)
        found = {slot for slot in slots if serialized.shader(slot) is not None}
        if family == "amd-polaris10":
            # GFX8 has a program for each stage, and one of the driver's that copies the geometry shader's output.
            assert found == active and len(serialized.shared) == ("gs" in stages)
        else:
            assert found == active - {slots.VERTEX} and not serialized.shared
        assert device.deserialize_graphics_pipeline_state(serialized).recreate() is ObjectSource.SERIALIZED
