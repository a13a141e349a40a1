"""Pipeline libraries: what SHADER_CACHE_SUPPORT_LIBRARY promises."""

from __future__ import annotations

import msgspec
import pytest
import xxhash
from device_support import Bench, counts, text_stream, toy_family
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from job_support import log_lines

from shaderkiln.direct3d12.pipeline_library import MAGIC
from shaderkiln.direct3d12.statistics import ObjectSource
from shaderkiln.errors import InvalidArgumentError, ShaderkilnError
from shaderkiln.sessions import CacheControlFlags, CacheKindFlags


@pytest.mark.spec("EP-08")
def test_a_library_serves_another_device_without_any_cache(bench: Bench) -> None:
    device = bench.device()
    library = device.create_pipeline_library()
    for number in (2, 1):
        library.store_pipeline(f"pipeline {number}", device.create_pipeline_state(bench.stream(number)))
    blob = library.serialize()
    assert library.get_serialized_size() == len(blob)
    other = bench.device(cache="an-empty-cache")
    again = other.create_pipeline_library(blob)
    assert again.serialize() == blob
    for number in (1, 2):
        assert again.load_pipeline(f"pipeline {number}", bench.stream(number)).source is ObjectSource.LIBRARY
    # Not in a PSDB, but not compiled either.
    assert counts(other) == (2, 2, 0, 0)


def test_names_and_streams_must_fit(toy: Bench) -> None:
    device, stranger = toy.device(), toy.device()
    library = device.create_pipeline_library()
    created = device.create_pipeline_state(toy.stream(1))
    library.store_pipeline("one", created)
    for name, pipeline in (("one", created), ("", created), ("two", stranger.create_pipeline_state(toy.stream(1)))):
        with pytest.raises(InvalidArgumentError):
            library.store_pipeline(name, pipeline)
    for name, number in (("two", 1), ("one", 2)):
        with pytest.raises(InvalidArgumentError):
            library.load_pipeline(name, toy.stream(number))
    device.shader_cache_control(CacheKindFlags.IMPLICIT_DRIVER_MANAGED, CacheControlFlags.CLEAR)
    with pytest.raises(ShaderkilnError) as gone:
        library.store_pipeline("three", created)
    assert gone.value.code == "DXGI_ERROR_NOT_FOUND"


def test_what_the_driver_refuses_is_created_as_without_a_library(toy: Bench) -> None:
    device = toy.device()
    library = device.create_pipeline_library()
    stream = text_stream("forgetful one")
    library.store_pipeline("one", device.create_pipeline_state(stream))
    assert library.load_pipeline("one", stream).source is ObjectSource.COMPILED


def test_libraries_of_other_adapters_and_drivers_are_refused(toy: Bench) -> None:
    blob = toy.device().create_pipeline_library().serialize()
    for changes, code in (
        ({"family": "toy-two"}, "D3D12_ERROR_ADAPTER_NOT_FOUND"),
        ({"driver_build": "toy 2.2"}, "D3D12_ERROR_DRIVER_VERSION_MISMATCH"),
    ):
        toy.family = toy_family(**changes)
        with pytest.raises(ShaderkilnError) as refused:
            toy.device().create_pipeline_library(blob)
        assert refused.value.code == code
    toy.family = toy_family(object_code_form="none")
    with pytest.raises(ShaderkilnError) as refused:
        toy.device().create_pipeline_library()
    assert refused.value.code == "DXGI_ERROR_UNSUPPORTED"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damaged_libraries_are_refused(toy: Bench, data: st.DataObject) -> None:
    device = toy.device() if not toy._devices else toy._devices[0]
    library = device.create_pipeline_library()
    library.store_pipeline("one", device.create_pipeline_state(toy.stream(1)))
    blob = bytearray(library.serialize())
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(blob) - 1))
        blob[at] ^= data.draw(st.integers(1, 255))
    else:
        del blob[data.draw(st.integers(1, len(blob) - 1)) :]
    with pytest.raises(InvalidArgumentError):
        device.create_pipeline_library(bytes(blob))


def test_content_that_is_none_is_refused_whatever_its_checksum(toy: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_LOG", str(toy.folder / "toy.log"))
    device = toy.device()
    good = msgspec.msgpack.decode(device.create_pipeline_library().serialize()[24:])
    for content in (None, [], [*good[:2], [["one", b"", 1, "compute", [b"k"], [], []]]], [good[0], good[1], 7]):
        body = msgspec.msgpack.encode(content)
        with pytest.raises(InvalidArgumentError):
            device.create_pipeline_library(MAGIC + xxhash.xxh3_128_digest(body) + body)
    assert log_lines(toy.folder / "toy.log", "start") == []
