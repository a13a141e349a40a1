"""Pipeline libraries and cached blobs: what SHADER_CACHE_SUPPORT_LIBRARY promises."""

from __future__ import annotations

import gc
import hashlib
import json
import mmap
import random
import subprocess
import sys
import threading
import tracemalloc
import uuid
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import xxhash
from device_support import Bench, counts, real_family, shader_stream, text_stream, toy_family
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from job_support import log_lines
from msgspec.structs import replace
from sodb_example import example

from shaderkiln.compilers.plugin import FamilyNotFoundError, open_family
from shaderkiln.descriptions.direct3d12.enums import Blend, DxgiFormat, PrimitiveTopologyType
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.states import BlendDesc, RenderTargetBlendDesc, RenderTargetFormats
from shaderkiln.direct3d12.device import Direct3D12Device
from shaderkiln.direct3d12.features import Feature
from shaderkiln.direct3d12.parts import Part
from shaderkiln.direct3d12.pipeline_library import PipelineLibrary
from shaderkiln.direct3d12.statistics import ObjectSource
from shaderkiln.direct3d12.stored_objects import StoredObject
from shaderkiln.errors import DamagedInputError, InvalidArgumentError, NotFoundError, ShaderkilnError
from shaderkiln.formats.pipeline_library import Block, BlockWriter, LibraryPipeline, PiecePool
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.lowering.pipelines import direct3d12_application
from shaderkiln.sessions import CacheControlFlags, CacheKindFlags, ShaderCacheSupportFlags
from shaderkiln.workers.hosted import HostedFamily

GUID = uuid.UUID("0b3c7a52-57d3-4c9a-9a57-5b8d3f2c7e10")
REAL_DRIVERS = [("amd-navi31", None), ("amd-navi21", "mesa-stable")]
"""One of each form of object code."""


def graphics_stream(number: int = 0) -> PipelineStateStream:
    """A graphics pipeline for real drivers: one format of five, each of which needs another pixel shader, and blend states."""
    formats = DxgiFormat.R8G8B8A8_UNORM, DxgiFormat.R32G32B32A32_FLOAT, DxgiFormat.R16G16B16A16_FLOAT, DxgiFormat.R32_UINT
    format = (*formats, DxgiFormat.R32G32_FLOAT)[number % 5]
    enable = format is not DxgiFormat.R32_UINT
    blend = RenderTargetBlendDesc(blend_enable=enable, src_blend=Blend(2 + number % 8), dest_blend=Blend(2 + number // 8))
    return PipelineStateStream(
        vs=example.read("spirv/g2_mesh.vs.spv"),
        ps=example.read("spirv/g2_mesh.ps.spv"),
        input_layout=example.input_layout("g2_mesh"),
        render_target_formats=RenderTargetFormats((format,)),
        primitive_topology=PrimitiveTopologyType.TRIANGLE,
        blend=BlendDesc(render_target=(blend,)),
    )


def library_of(bench: Bench, count: int) -> bytes:
    """A block with ``pipeline 0`` and so on."""
    device = bench.device(cache="cache-of-the-builder")
    library = device.create_pipeline_library()
    for number in range(count):
        library.store_pipeline(f"pipeline {number}", device.create_pipeline_state(bench.stream(number)))
    return serialized(library)


def serialized(library: PipelineLibrary) -> bytes:
    blob = library.serialize()
    assert blob is not None
    return blob


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(ShaderkilnError) as refused:
        call()
    return refused.value.code


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path, real_family(), toy=False)
    yield found
    found.close()


# Libraries


@pytest.mark.spec("PL-01")
def test_an_empty_blob_gives_an_empty_library(bench: Bench) -> None:
    device = bench.device()
    for blob in (b"", bytearray(), memoryview(b"")):
        library = device.create_pipeline_library(blob)
        assert (len(library), list(library.names()), "one" in library) == (0, [], False)
        assert code_of(lambda library=library: library.load_pipeline("one", bench.stream(1))) == "E_INVALIDARG"
    # What an empty library gives is no empty blob, but an empty library again.
    blob = serialized(device.create_pipeline_library())
    assert len(device.create_pipeline_library(blob)) == 0
    with pytest.raises(InvalidArgumentError):
        device.create_pipeline_library("text")  # type: ignore[arg-type]


@pytest.mark.spec("EP-08", "PL-09")
def test_a_library_serves_another_device_without_any_cache(bench: Bench) -> None:
    device = bench.device()
    library = device.create_pipeline_library()
    for number in (2, 1):
        library.store_pipeline(f"pipeline {number}", device.create_pipeline_state(bench.stream(number)))
    blob = serialized(library)
    assert library.get_serialized_size() == len(blob)
    other = bench.device(cache="an-empty-cache")
    again = other.create_pipeline_library(blob)
    assert again.serialize() == blob
    assert again.get_serialized_size() == len(blob)
    for number in (1, 2):
        assert again.load_pipeline(f"pipeline {number}", bench.stream(number)).source is ObjectSource.LIBRARY
    # Not in a PSDB, but not compiled either.
    assert counts(other) == (2, 2, 0, 0)


@pytest.mark.spec("PL-02", "PL-12")
def test_the_blob_is_used_in_place_and_referenced(bench: Bench) -> None:
    path = bench.folder / "library"
    path.write_bytes(library_of(bench, 3))
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    device = bench.device(cache="an-empty-cache")
    library = device.create_pipeline_library(mapped)

    class Owner:
        pass

    owner = Owner()
    gone = weakref.ref(owner)
    library.set_private_data_interface(GUID, owner)
    del owner
    created = library.load_pipeline("pipeline 1", bench.stream(1))
    with pytest.raises(BufferError):
        mapped.close()
    gc.collect()
    assert library.get_private_data_interface(str(GUID)) is gone() is not None
    del library
    gc.collect()
    assert gone() is None
    mapped.close()  # the pipeline needs it no longer
    assert created.recreate() is not None


def test_what_is_loaded_can_be_stored_again_without_any_cache(bench: Bench) -> None:
    blob = library_of(bench, 2)
    device = bench.device(cache="an-empty-cache")
    library = device.create_pipeline_library(blob)
    again = device.create_pipeline_library()
    for number in range(2):
        again.store_pipeline(f"pipeline {number}", library.load_pipeline(f"pipeline {number}", bench.stream(number)))
    assert again.serialize() == blob
    assert counts(device) == (2, 2, 0, 0)


@pytest.mark.spec("PL-03")
def test_libraries_of_other_adapters_and_drivers_are_refused(toy: Bench) -> None:
    blob = library_of(toy, 1)
    hardware, driver = "D3D12_ERROR_ADAPTER_NOT_FOUND", "D3D12_ERROR_DRIVER_VERSION_MISMATCH"
    cases: list[tuple[dict[str, object], str]] = [
        ({"family": "toy-two"}, hardware),
        ({"vendor_id": 7}, hardware),
        ({"device_id": 7}, hardware),
        ({"family": "toy-two", "driver_build": "toy 2.2"}, hardware),
        ({"driver_build": "toy 2.2"}, driver),
        ({"driver_version": 8}, driver),
        ({"cache_uuid": bytes(16)}, driver),
        ({"features": ("robustBufferAccess",)}, driver),
        ({"abi_version": 1 << 48}, driver),
    ]
    damaged = blob[:-1] + bytes([blob[-1] ^ 1])
    other_format = bytearray(blob)
    other_format[32] += 1
    other_format[8:24] = xxhash.xxh3_128_digest(other_format[24:])
    for changes, code in cases:
        toy.family = toy_family(**changes)
        device = toy.device()
        for call in (device.create_pipeline_library, device.validate_pipeline_library):
            assert code_of(lambda call=call: call(blob)) == code
            # Damage comes before everything else, and the version of the format before what it may say of hardware.
            assert code_of(lambda call=call: call(damaged)) == "E_INVALIDARG"
            assert code_of(lambda call=call: call(bytes(other_format))) == driver


@pytest.mark.spec("PL-04")
def test_validation_only(bench: Bench) -> None:
    blob = library_of(bench, 1)
    device = bench.device()
    assert device.validate_pipeline_library(blob) == "S_FALSE"
    assert device.validate_pipeline_library(b"") == "S_FALSE"
    assert code_of(lambda: device.validate_pipeline_library(blob[1:])) == "E_INVALIDARG"
    assert counts(device) == (0, 0, 0, 0)


@pytest.mark.spec("PL-05")
def test_a_driver_without_stored_object_code_has_no_libraries(toy: Bench) -> None:
    blob = library_of(toy, 1)
    assert toy.device().check_feature_support(Feature.SHADER_CACHE).support_flags & ShaderCacheSupportFlags.LIBRARY
    toy.family = toy_family(object_code_form="none")
    device = toy.device()
    assert not device.check_feature_support(Feature.SHADER_CACHE).support_flags & ShaderCacheSupportFlags.LIBRARY
    for content in (b"", blob, b"damaged"):
        assert code_of(lambda content=content: device.create_pipeline_library(content)) == "DXGI_ERROR_UNSUPPORTED"
        assert code_of(lambda content=content: device.validate_pipeline_library(content)) == "DXGI_ERROR_UNSUPPORTED"


@pytest.mark.spec("PL-06")
def test_names_are_used_once(bench: Bench) -> None:
    device, stranger = bench.device(), bench.device()
    library = device.create_pipeline_library()
    created = device.create_pipeline_state(bench.stream(1))
    library.store_pipeline("one", created)
    library.store_pipeline("the same under a name with a \N{SNOWMAN}", created)
    refused = [("one", created), ("", created), ("x" * 65_537, created), ("\ud800", created), (None, created), ("two", None)]
    refused.append(("two", stranger.create_pipeline_state(bench.stream(1))))
    again = device.create_pipeline_library(serialized(library))
    for name, pipeline in refused:
        for where in (library, again):
            assert code_of(lambda n=name, p=pipeline, w=where: w.store_pipeline(n, p)) == "E_INVALIDARG"
    again.store_pipeline("two", created)
    assert sorted(again.names()) == ["one", "the same under a name with a \N{SNOWMAN}", "two"]
    assert len(again) == 3


@pytest.mark.driver
@pytest.mark.spec("PL-07")
def test_name_kind_and_desc_must_fit(real: Bench) -> None:
    device = real.device()
    library = device.create_pipeline_library()
    compute, graphics = real.stream(1), graphics_stream(1)
    library.store_pipeline("compute", device.create_pipeline_state(compute))
    library.store_pipeline("graphics", device.create_pipeline_state(graphics))
    other = real.device(cache="an-empty-cache")
    for one in (library, other.create_pipeline_library(serialized(library))):
        for call in (
            lambda one=one: one.load_pipeline("none", compute),
            lambda one=one: one.load_compute_pipeline("none", compute),
            lambda one=one: one.load_graphics_pipeline("none", graphics),
            lambda one=one: one.load_pipeline("graphics", compute),
            lambda one=one: one.load_pipeline("compute", graphics),
            lambda one=one: one.load_graphics_pipeline("compute", compute),
            lambda one=one: one.load_graphics_pipeline("compute", graphics),
            lambda one=one: one.load_compute_pipeline("graphics", graphics),
            lambda one=one: one.load_compute_pipeline("graphics", compute),
            lambda one=one: one.load_compute_pipeline("compute", real.stream(2)),
            lambda one=one: one.load_graphics_pipeline("graphics", graphics_stream(2)),
            lambda one=one: one.load_pipeline("", compute),
        ):
            assert code_of(call) == "E_INVALIDARG"
        assert one.load_compute_pipeline("compute", compute) is one.load_pipeline("compute", compute)
        assert one.load_graphics_pipeline("graphics", graphics) is one.load_pipeline("graphics", graphics)
        # A desc that means the same is the same.
        assert one.load_pipeline("compute", replace(compute, node_mask=1)) is one.load_pipeline("compute", compute)
    assert counts(other) == (2, 2, 0, 0)


@pytest.mark.spec("PL-08")
def test_one_name_gives_one_object(bench: Bench) -> None:
    blob = library_of(bench, 2)
    device = bench.device(cache="an-empty-cache")
    library = device.create_pipeline_library(blob)
    first = library.load_pipeline("pipeline 0", bench.stream(0))
    first.set_private_data_interface(GUID, "attached")
    identity = id(first)
    del first
    gc.collect()
    for _ in range(3):
        again = library.load_pipeline("pipeline 0", bench.stream(0))
        assert (id(again), again.get_private_data_interface(GUID)) == (identity, "attached")
    assert library.load_pipeline("pipeline 1", bench.stream(1)) is not again
    assert counts(device) == (2, 2, 0, 0)


@pytest.mark.spec("PL-09")
def test_serializing_into_a_buffer(bench: Bench) -> None:
    device = bench.device()
    library = device.create_pipeline_library()
    for number in range(3):
        library.store_pipeline(f"pipeline {number}", device.create_pipeline_state(bench.stream(number)))
        size = library.get_serialized_size()
        for length in (0, size - 1):
            buffer = bytearray(b"\xaa" * length)
            assert code_of(lambda buffer=buffer: library.serialize(buffer)) == "E_INVALIDARG"
            assert buffer == b"\xaa" * length
        for unfit in (memoryview(bytes(size)), "text", 5):
            assert code_of(lambda unfit=unfit: library.serialize(unfit)) == "E_INVALIDARG"  # type: ignore[arg-type]
        exact, larger = bytearray(size), bytearray(b"\xaa" * (size + 9))
        assert library.serialize(exact) is None
        library.serialize(memoryview(larger))
        assert bytes(exact) == library.serialize() == larger[:size]
        assert larger[size:] == b"\xaa" * 9
        # The same for a library that is as it was opened.
        opened = device.create_pipeline_library(bytes(exact))
        into = bytearray(size)
        opened.serialize(into)
        assert into == exact
        assert code_of(lambda opened=opened, size=size: opened.serialize(bytearray(size - 1))) == "E_INVALIDARG"


_LOADER = """
import json, mmap, sys
sys.path[:0] = json.loads(sys.argv[1])
from pathlib import Path
from device_support import Bench, counts, shader_stream
from test_pipeline_library import graphics_stream, open_real
folder = Path(sys.argv[2])
bench = Bench(folder, open_real(sys.argv[3], sys.argv[4] or None), toy=False)
device = bench.device(cache="an-empty-cache")
with open(folder / "library", "rb") as file:
    library = device.create_pipeline_library(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
sources = []
for name in library.names():
    kind, number = name.split()
    stream = shader_stream(int(number)) if kind == "compute" else graphics_stream(int(number))
    sources.append(str(library.load_pipeline(name, stream).source))
print(json.dumps([sources, counts(device)]))
bench.close()
"""


def open_real(family: str, package: str | None) -> object:
    try:
        return open_family(family, direct3d12_application(), package=package)
    except FamilyNotFoundError as error:
        pytest.skip(f"no driver for {family} here: {error}")


@pytest.mark.driver
@pytest.mark.spec("PL-09")
@pytest.mark.parametrize(("family", "package"), REAL_DRIVERS)
def test_a_new_process_loads_every_pipeline_without_compiling(tmp_path: Path, family: str, package: str | None) -> None:
    bench = Bench(tmp_path, open_real(family, package), toy=False)  # type: ignore[arg-type]
    try:
        device = bench.device()
        library = device.create_pipeline_library()
        for number in range(6):
            library.store_pipeline(f"compute {number}", device.create_pipeline_state(shader_stream(number)))
            library.store_pipeline(f"graphics {number}", device.create_pipeline_state(graphics_stream(number)))
        (tmp_path / "library").write_bytes(serialized(library))
    finally:
        bench.close()
    arguments = [sys.executable, "-c", _LOADER, json.dumps(sys.path), str(tmp_path), family, package or ""]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    sources, found = json.loads(done.stdout)
    assert sources == ["library"] * 12
    assert found == [12, 12, 0, 0]


@pytest.mark.spec("PL-10")
def test_what_pipelines_share_is_held_once(toy: Bench) -> None:
    """Of the toy's two values of a pipeline, one is the same for all."""
    blob = library_of(toy, 5)
    assert blob.count(b"part of pipeline") == 1
    assert [blob.count(b"code of pipeline %d" % number) for number in range(5)] == [1] * 5
    device = toy.device()
    library = device.create_pipeline_library(blob)
    own = [toy.stream(number) for number in range(5, 8)]
    for number, stream in enumerate(own, 5):
        library.store_pipeline(f"pipeline {number}", device.create_pipeline_state(stream))
    # The same pipelines once more, under other names: nothing but names.
    for number in range(5):
        library.store_pipeline(f"again {number}", device.create_pipeline_state(toy.stream(number)))
    assert library._pool.own_bytes == sum(len(b"code of pipeline 0") for _ in own)
    grown = serialized(library)
    assert grown.count(b"part of pipeline") == 1
    assert [grown.count(b"code of pipeline %d" % number) for number in range(8)] == [1] * 8
    everything = device.create_pipeline_library(grown)
    for number in range(8):
        assert everything.load_pipeline(f"pipeline {number}", toy.stream(number)).source is ObjectSource.LIBRARY


@pytest.mark.driver
@pytest.mark.spec("PL-10")
@pytest.mark.parametrize(("family", "package"), REAL_DRIVERS)
def test_what_pipelines_of_a_real_driver_share_is_in_the_block_once(tmp_path: Path, family: str, package: str | None) -> None:
    """One vertex shader and five pixel shaders in forty pipelines, also where the driver gives both as one value."""
    bench = Bench(tmp_path, open_real(family, package), toy=False)  # type: ignore[arg-type]
    try:
        device = bench.device()
        library = device.create_pipeline_library()
        stored = []
        for number in range(40):
            pipeline = device.create_pipeline_state(graphics_stream(number))
            library.store_pipeline(f"graphics {number}", pipeline)
            stored += [data for _, data in pipeline.object_code().values]
        blob = serialized(library)
        block = Block(blob)
        pieces = [bytes(block.piece(number).data) for number in range(block.piece_count)]
        assert len(set(pieces)) == len(pieces)
        if device.compiler.object_code_form == "pipeline-binary":
            assert set(pieces) == set(stored)
        else:
            # As much as the driver's values differ in, and the vertex shader once.
            assert sum(map(len, pieces)) < 0.6 * sum(map(len, set(stored)))
        assert [blob.count(piece) for piece in pieces if len(piece) > 64] == [1] * sum(len(piece) > 64 for piece in pieces)
        assert library._pool.own_bytes == sum(map(len, pieces))
        # And a kilobyte for what a block has once: its header, and whose it is.
        assert len(blob) <= 1.05 * sum(map(len, pieces)) + 64 * 40 + 1024
    finally:
        bench.close()


@pytest.mark.spec("PL-11")
def test_threads_load_and_store_at_once(bench: Bench) -> None:
    blob = library_of(bench, 4)
    device = bench.device(cache="an-empty-cache", workers=2)
    library = device.create_pipeline_library(blob)
    extra = [device.create_pipeline_state(bench.stream(number)) for number in range(4, 8)]
    start = threading.Barrier(8)

    def work(number: int) -> list[object]:
        start.wait()
        if number % 2:
            library.store_pipeline(f"extra {number}", extra[number // 2])
        found = [
            library.load_pipeline(f"pipeline {(number + turn) % 4}", bench.stream((number + turn) % 4)) for turn in range(4)
        ]
        assert len(serialized(library)) > 0
        return sorted(found, key=lambda one: bytes(one.object_key))

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(work, range(8)))
    assert all(one is other for result in results for one, other in zip(result, results[0], strict=True))
    # Each was created once, whichever thread came first.
    created, _, compiled, _ = counts(device)
    assert (created, compiled) == (4 + 4, 4)
    assert len(device.create_pipeline_library(serialized(library))) == 8
    assert library._loading == {}


@pytest.mark.spec("PL-11")
def test_of_threads_that_store_one_name_one_succeeds(toy: Bench) -> None:
    device = toy.device()
    library = device.create_pipeline_library()
    pipelines = [device.create_pipeline_state(toy.stream(number)) for number in range(8)]
    start = threading.Barrier(8)

    def store(number: int) -> bool:
        start.wait()
        try:
            library.store_pipeline("one", pipelines[number])
        except InvalidArgumentError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        stored = list(threads.map(store, range(8)))
    assert stored.count(True) == 1
    winner = stored.index(True)
    assert library.load_pipeline("one", toy.stream(winner)).source is ObjectSource.LIBRARY


def test_a_load_that_fails_leaves_nothing_behind(toy: Bench) -> None:
    blob = bytearray(library_of(toy, 1))
    device = toy.device(cache="an-empty-cache")
    library = device.create_pipeline_library(blob)
    at = blob.index(b"code of")
    blob[at] ^= 1
    for _ in range(2):
        with pytest.raises(DamagedInputError):
            library.load_pipeline("pipeline 0", toy.stream(0))
    assert library._loading == {}
    blob[at] ^= 1
    assert library.load_pipeline("pipeline 0", toy.stream(0)).source is ObjectSource.LIBRARY


@pytest.mark.spec("PL-12")
def test_what_is_attached_lives_as_long(toy: Bench) -> None:
    device = toy.device()
    library = device.create_pipeline_library()
    pipeline = device.create_pipeline_state(toy.stream(1))

    class Owner:
        pass

    for holder in (library, pipeline):
        first, second = Owner(), Owner()
        one, two = weakref.ref(first), weakref.ref(second)
        holder.set_private_data_interface(GUID, first)
        holder.set_private_data_interface(uuid.uuid4(), second)
        del first, second
        gc.collect()
        assert holder.get_private_data_interface(GUID) is one()
        holder.set_private_data_interface(GUID, None)
        gc.collect()
        assert one() is None
        assert two() is not None
        with pytest.raises(NotFoundError):
            holder.get_private_data_interface(GUID)
        holder.set_private_data_interface(GUID, None)
        for unfit in ("text", 5, None):
            with pytest.raises(InvalidArgumentError):
                holder.set_private_data_interface(unfit, two())  # type: ignore[arg-type]
    del library, pipeline, holder
    gc.collect()
    assert two() is None


# Cached blobs


@pytest.mark.spec("PL-13")
def test_a_cached_blob_creates_without_compiling(bench: Bench) -> None:
    blob = bench.device().create_pipeline_state(bench.stream(1)).get_cached_blob()
    device = bench.device(cache="an-empty-cache")
    created = device.create_pipeline_state(replace(bench.stream(1), cached_pso=blob))
    assert created.source is ObjectSource.CACHED_PSO
    assert counts(device) == (1, 1, 0, 0)
    # It gives the same again, though no cache has it.
    assert created.get_cached_blob() == blob
    assert device.create_pipeline_state(replace(bench.stream(1), cached_pso=b"")).source is ObjectSource.COMPILED


@pytest.mark.driver
@pytest.mark.spec("PL-13")
def test_a_cached_blob_must_fit_shaders_and_root_signature(real: Bench) -> None:
    stream = graphics_stream(1)
    blob = real.device().create_pipeline_state(stream).get_cached_blob()
    device = real.device(cache="an-empty-cache")
    root = example.fitting_root_signature(stream.vs, stream.ps)
    assert root
    for other in (
        real.stream(1),
        replace(stream, vs=example.read("spirv/g4_shadow.vs.spv")),
        replace(stream, ps=None),
        replace(stream, root_signature=root),
    ):
        assert code_of(lambda other=other: device.create_pipeline_state(replace(other, cached_pso=blob))) == "E_INVALIDARG"
    assert counts(device) == (0, 0, 0, 0)
    # Other states are no error: the blob is of no use then.
    assert device.create_pipeline_state(replace(graphics_stream(2), cached_pso=blob)).source is ObjectSource.COMPILED
    assert real.messages("cached-pso-not-used")
    assert device.create_pipeline_state(replace(stream, cached_pso=blob)).source is ObjectSource.CACHED_PSO


@pytest.mark.spec("PL-13", "PL-03")
def test_cached_blobs_of_others_and_damaged_ones_are_refused(toy: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    blob = toy.device().create_pipeline_state(toy.stream(1)).get_cached_blob()
    library = library_of(toy, 1)
    monkeypatch.setenv("TOY_LOG", str(toy.folder / "toy.log"))
    cases: list[tuple[dict[str, object], bytes, str]] = [
        ({}, library, "E_INVALIDARG"),
        ({}, b"some bytes", "E_INVALIDARG"),
        ({"family": "toy-two"}, blob, "D3D12_ERROR_ADAPTER_NOT_FOUND"),
        ({"driver_build": "toy 2.2"}, blob, "D3D12_ERROR_DRIVER_VERSION_MISMATCH"),
    ]
    cases += [({}, blob[:length], "E_INVALIDARG") for length in range(1, len(blob), 7)]
    cases += [({}, blob[:at] + bytes([blob[at] ^ 4]) + blob[at + 1 :], "E_INVALIDARG") for at in range(0, len(blob), 5)]
    for changes, content, code in cases:
        toy.family = toy_family(**changes)
        with toy.device(cache="an-empty-cache") as device:
            stream = replace(toy.stream(1), cached_pso=content)
            assert code_of(lambda device=device, stream=stream: device.create_pipeline_state(stream)) == code
    assert log_lines(toy.folder / "toy.log", "start") == []
    # A library's block has another magic, so a library is none of a cached blob either.
    toy.family = toy_family()
    assert code_of(lambda: toy.device().create_pipeline_library(blob)) == "E_INVALIDARG"


# Drivers that refuse, caches that are gone


def test_what_the_driver_refuses_is_created_as_without_a_library(toy: Bench) -> None:
    device = toy.device()
    library = device.create_pipeline_library()
    stream = text_stream("forgetful one")
    pipeline = device.create_pipeline_state(stream)
    library.store_pipeline("one", pipeline)
    assert library.load_pipeline("one", stream).source is ObjectSource.COMPILED
    blob = pipeline.get_cached_blob()
    assert device.create_pipeline_state(replace(stream, cached_pso=blob)).source is ObjectSource.COMPILED


def test_what_no_cache_has_is_compiled_again_to_be_stored(bench: Bench) -> None:
    device = bench.device()
    created = device.create_pipeline_state(bench.stream(1))
    device.shader_cache_control(CacheKindFlags.IMPLICIT_DRIVER_MANAGED, CacheControlFlags.CLEAR)
    library = device.create_pipeline_library()
    library.store_pipeline("one", created)
    other = bench.device(cache="an-empty-cache")
    again = other.create_pipeline_library(serialized(library))
    assert again.load_pipeline("one", bench.stream(1)).source is ObjectSource.LIBRARY
    device.shader_cache_control(CacheKindFlags.IMPLICIT_DRIVER_MANAGED, CacheControlFlags.CLEAR)
    stream = replace(bench.stream(1), cached_pso=created.get_cached_blob())
    assert other.create_pipeline_state(stream).source is ObjectSource.CACHED_PSO


def test_object_code_without_keys_of_its_own(toy: Bench) -> None:
    toy.family = HostedFamily(toy.compiler, "toy_compiler:NamelessPipelines")
    blob = library_of(toy, 3)
    device = toy.device(cache="an-empty-cache")
    library = device.create_pipeline_library(blob)
    for number in range(3):
        assert library.load_pipeline(f"pipeline {number}", toy.stream(number)).source is ObjectSource.LIBRARY


# Damage


@pytest.mark.spec("PL-03")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damaged_libraries_are_refused(toy: Bench, data: st.DataObject) -> None:
    device = toy.device() if not toy._devices else toy._devices[0]
    library = device.create_pipeline_library()
    library.store_pipeline("one", device.create_pipeline_state(toy.stream(1)))
    blob = bytearray(serialized(library))
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(blob) - 1))
        blob[at] ^= data.draw(st.integers(1, 255))
    else:
        del blob[data.draw(st.integers(1, len(blob) - 1)) :]
    with pytest.raises(DamagedInputError):
        device.create_pipeline_library(bytes(blob))


def mutants(blob: bytes, count: int, seed: int) -> Iterator[bytes]:
    """The same block with other numbers and bytes under a right checksum."""
    chance = random.Random(seed)
    for _ in range(count):
        mutant = bytearray(blob)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(24, len(blob) - 4)
            if chance.randrange(2):
                mutant[at] ^= 1 << chance.randrange(8)
            else:
                value = chance.choice((0, 1, 2, 0x3FFFFFFF, 0xFFFFFFFF, len(blob)))
                mutant[at & ~3 : (at & ~3) + 4] = value.to_bytes(4, "little")
        mutant[8:24] = xxhash.xxh3_128_digest(mutant[24:])
        yield bytes(mutant)


def watched(device: Direct3D12Device, monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, ...]]:
    """The object code that the driver is asked to take from now on, value by value."""
    asked: list[tuple[bytes, ...]] = []
    load = device._creation.load

    def watch(part: Part, stored: StoredObject, whence: str) -> bool:
        asked.append(tuple(data for _, data in stored.values))
        return load(part, stored, whence)

    monkeypatch.setattr(device._creation, "load", watch)
    return asked


def values_of(blob: bytes, count: int) -> list[tuple[bytes, ...]]:
    """The object code of each pipeline of a block that is whole."""
    block = Block(blob)
    places = [block.find(b"pipeline %d" % number) for number in range(count)]
    return [tuple(data for _, data in block.pipeline(place).values()) for place in places if place is not None]


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.soak)])
def test_no_damaged_object_code_reaches_the_driver(
    toy: Bench, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, count: int
) -> None:
    if count > 1000 and "soak" not in request.config.getoption("-m"):
        pytest.skip("takes a minute; run with -m soak")
    blob = library_of(toy, 3)
    good = values_of(blob, 3)
    device = toy.device(cache="an-empty-cache")
    more = device.create_pipeline_state(toy.stream(9))
    asked = watched(device, monkeypatch)
    allowed = {"E_INVALIDARG", "D3D12_ERROR_ADAPTER_NOT_FOUND", "D3D12_ERROR_DRIVER_VERSION_MISMATCH"}
    for mutant in mutants(blob, count, count):
        try:
            library = device.create_pipeline_library(mutant)
        except ShaderkilnError as error:
            assert error.code in allowed
            continue
        for number in range(3):
            try:
                library.load_pipeline(f"pipeline {number}", toy.stream(number))
            except ShaderkilnError as error:
                assert error.code in allowed
        try:
            assert library.get_serialized_size() == len(mutant)
            library.store_pipeline("one more", more)
            assert len(device.create_pipeline_library(serialized(library))) == len(library)
        except ShaderkilnError as error:
            assert error.code in allowed
    assert asked
    assert set(asked) <= set(good)


def damaged(blob: bytes, first: int, step: int) -> Iterator[bytes]:
    """The block with a changed byte at each place from ``first`` on, and the checksum that this needs."""
    for at in range(first, len(blob), step):
        changed = bytearray(blob)
        changed[at] ^= 0x10
        changed[8:24] = xxhash.xxh3_128_digest(changed[24:])
        yield bytes(changed)


@pytest.mark.driver
@pytest.mark.spec("PL-03")
@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.soak)])
def test_a_real_driver_gets_no_damaged_object_code(
    real: Bench, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, step: int
) -> None:
    """Each piece has a checksum of its own, so a block that somebody has sealed again after damage is not enough."""
    if step == 1 and "soak" not in request.config.getoption("-m"):
        pytest.skip("takes a minute; run with -m soak")
    blob = library_of(real, 2)
    good = values_of(blob, 2)
    device = real.device(cache="an-empty-cache")
    asked = watched(device, monkeypatch)
    begin = len(blob) - int.from_bytes(blob[72:80], "little")
    refused = 0
    for changed in damaged(blob, begin, step):
        library = device.create_pipeline_library(changed)
        for number in range(2):
            try:
                assert library.load_pipeline(f"pipeline {number}", real.stream(number)).source is ObjectSource.LIBRARY
            except DamagedInputError:
                refused += 1
    assert refused >= (len(blob) - begin) // step * 0.9
    assert set(asked) <= set(good)


@pytest.mark.driver
@pytest.mark.spec("PL-03")
@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.soak)])
def test_every_change_of_a_real_library_is_found(
    real: Bench, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, step: int
) -> None:
    """Changed bytes, truncation points and random mutations: refused before anything is asked of the driver."""
    if step == 1 and "soak" not in request.config.getoption("-m"):
        pytest.skip("takes a minute; run with -m soak")
    blob = library_of(real, 3)
    device = real.device(cache="an-empty-cache")
    asked = watched(device, monkeypatch)
    chance = random.Random(step)
    tracemalloc.start()
    try:
        for at in range(0, len(blob), step):
            changed = bytearray(blob)
            changed[at] ^= chance.randrange(1, 256)
            for content in (changed, blob[:at]) if at else (changed,):
                assert code_of(lambda content=content: device.create_pipeline_library(content)) == "E_INVALIDARG"
        for _ in range(10_000 // step):
            changed = bytearray(blob)
            for _ in range(chance.randrange(1, 9)):
                begin, other, size = (chance.randrange(len(blob)) for _ in range(3))
                changed[begin : begin + size % 64] = blob[other : other + size % 64]
            changed[chance.randrange(len(changed))] ^= 1
            if changed != blob:
                assert code_of(lambda content=changed: device.create_pipeline_library(content)) == "E_INVALIDARG"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 << 20
    assert asked == []


# Large libraries


@pytest.mark.driver
@pytest.mark.spec("PL-09", "PL-02")
def test_a_hundred_loads_from_a_library_of_ten_thousand(real: Bench) -> None:
    """A hundred pipelines of the driver among ten thousand: opened at once, held where it lies, loaded by name."""
    device = real.device(cache="cache-of-the-builder")
    library = device.create_pipeline_library()
    for number in range(100):
        library.store_pipeline(f"pipeline {number:05}", device.create_pipeline_state(real.stream(number)))
    pipelines = list(Block(serialized(library)).pipelines())
    pool = PiecePool()
    shaders = [
        (hashlib.sha256(b"%d" % number).digest(), pool.piece(random.Random(number).randbytes(3000))) for number in range(200)
    ]
    for number in range(100, 10_000):
        used = (shaders[number // 100], shaders[100 + number % 100])
        combination = pool.combination((key, [piece]) for key, piece in used)
        key = hashlib.sha256(b"desc %d" % number).digest()[:20]
        pipelines.append((b"pipeline %05d" % number, LibraryPipeline("graphics", key, combination)))
    pieces = {bytes(piece.data) for _, one in pipelines for _, parts in one.combination for piece in parts}
    writer = BlockWriter(pipelines, real.compiler, ApplicationIdentity())
    assert writer.size <= 1.05 * sum(map(len, pieces)) + 64 * 10_000
    path = real.folder / "library"
    path.write_bytes(writer.to_bytes())
    del pipelines, pool, shaders, pieces, writer, library
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    other = real.device(cache="an-empty-cache")
    streams = [real.stream(number) for number in range(100)]
    other.create_pipeline_library(mapped).load_pipeline("pipeline 00000", streams[0])  # the driver's process is there now
    gc.collect()
    tracemalloc.start()
    try:
        opened = other.create_pipeline_library(mapped)
        assert tracemalloc.get_traced_memory()[0] < 100_000
        loaded = [opened.load_pipeline(f"pipeline {number:05}", stream) for number, stream in enumerate(streams)]
        assert tracemalloc.get_traced_memory()[0] < 2 << 20
    finally:
        tracemalloc.stop()
    assert {one.source for one in loaded} == {ObjectSource.LIBRARY}
    assert counts(other) == (101, 101, 0, 0)
    assert path.stat().st_size == opened.get_serialized_size()
