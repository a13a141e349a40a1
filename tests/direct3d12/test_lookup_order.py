"""Where a device looks for the object code of a pipeline, and in which order; with the toy compiler and with a real driver."""

from __future__ import annotations

import threading

import pytest
from device_support import GAME, Bench, counts, game

from shaderkiln.descriptions.direct3d12.enums import PipelineStateSubobjectType, ShaderCacheSessionSubobjectFlags
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.psdb_subobject import ShaderCacheSessionSubobjectDesc
from shaderkiln.direct3d12.application import ApplicationDesc
from shaderkiln.direct3d12.features import Feature
from shaderkiln.direct3d12.statistics import ObjectSource
from shaderkiln.errors import InvalidArgumentError, NotCurrentlyAvailableError, NotFoundError
from shaderkiln.sessions import (
    CacheControlFlags,
    CacheKindFlags,
    FileSessionDesc,
    RegisteredSessionDesc,
    SessionFileFlags,
    ShaderCacheSupportFlags,
)

CREATE_ONLY = ShaderCacheSessionSubobjectFlags.CREATE_ONLY
READ_ONLY = SessionFileFlags.READ_ONLY


@pytest.mark.spec("EP-01")
def test_the_default_component_is_used_without_being_asked(bench: Bench) -> None:
    bench.register(default=bench.psdb("default.psdb", [1, 2]))
    device = bench.device()
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.DEFAULT_PSDB
    assert device.create_pipeline_state(bench.stream(2)).source is ObjectSource.DEFAULT_PSDB
    assert counts(device) == (2, 0, 0, 0)
    assert device.get_state_object_statistics().default_psdb_registered


@pytest.mark.spec("EP-01")
def test_other_components_are_no_default(bench: Bench) -> None:
    bench.register(DLC1=bench.psdb("dlc1.psdb", [1]))
    device = bench.device()
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.COMPILED
    assert not device.get_state_object_statistics().default_psdb_registered


@pytest.mark.spec("EP-02")
def test_an_explicit_session_keeps_the_default_psdb_out(bench: Bench) -> None:
    bench.register(default=bench.psdb("default.psdb", [1]), DLC1=bench.psdb("dlc1.psdb", [2]))
    device = bench.device()
    session = device.create_shader_cache_session1(RegisteredSessionDesc("DLC1"))
    # Only the default has the first one, only the explicit one the second.
    assert device.create_pipeline_state(bench.stream(1).with_psdb(session)).source is ObjectSource.COMPILED
    assert device.create_pipeline_state(bench.stream(2).with_psdb(session)).source is ObjectSource.EXPLICIT_PSDB
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.DEFAULT_PSDB
    assert counts(device) == (3, 1, 1, 0)


@pytest.mark.spec("EP-03")
def test_what_an_explicit_psdb_lacks_comes_from_the_local_cache_or_goes_there(bench: Bench) -> None:
    path = bench.psdb("other.psdb", [9])
    before = path.read_bytes()
    device = bench.device()
    session = device.create_shader_cache_session1(FileSessionDesc(path, READ_ONLY))
    stream = bench.stream(1).with_psdb(session)
    assert device.create_pipeline_state(stream).source is ObjectSource.COMPILED
    assert device.create_pipeline_state(stream).source is ObjectSource.LOCAL_CACHE
    # The local cache outlives the device, and has it for objects that name no session as well.
    device.close()
    assert bench.device().create_pipeline_state(bench.stream(1)).source is ObjectSource.LOCAL_CACHE
    assert path.read_bytes() == before


@pytest.mark.spec("EP-04")
def test_without_any_psdb_the_local_cache_is_asked_and_then_the_compiler(bench: Bench) -> None:
    device = bench.device()
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.COMPILED
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.LOCAL_CACHE
    assert device.create_pipeline_state(bench.stream(2)).source is ObjectSource.COMPILED
    assert counts(device) == (3, 3, 2, 0)


@pytest.mark.spec("EP-04")
def test_what_the_default_psdb_lacks_comes_from_the_local_cache_or_goes_there(bench: Bench) -> None:
    bench.register(default=bench.psdb("default.psdb", [1]))
    device = bench.device()
    assert device.create_pipeline_state(bench.stream(2)).source is ObjectSource.COMPILED
    assert device.create_pipeline_state(bench.stream(2)).source is ObjectSource.LOCAL_CACHE
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.DEFAULT_PSDB


@pytest.mark.spec("EP-06", "EP-08")
def test_a_device_says_what_it_supports(bench: Bench) -> None:
    device = bench.device()
    assert device.check_feature_support(Feature.EXPLICIT_PSDBS).explicit_psdbs_supported
    flags = device.check_feature_support(Feature.SHADER_CACHE).support_flags
    for name in (
        *("LIBRARY", "DRIVER_MANAGED_CACHE", "SHADER_CONTROL_CLEAR", "SHADER_SESSION_DELETE", "SESSION_DESC1"),
        *("TRIM_WHEN_FULL", "RESERVE_MAXIMUM_SIZE", "STORE_OVERWRITE", "STORE_DO_NOT_EVICT"),
    ):
        assert flags & ShaderCacheSupportFlags[name], name
    support = device.check_feature_support(Feature.SHADER_CACHE_ABI_SUPPORT)
    assert support.adapter_family == bench.compiler.family
    assert support.minimum_abi_support_version <= bench.compiler.abi_version <= support.maximum_abi_support_version
    assert support.compiler_version == bench.compiler.compiler_version
    assert support.application_profile_version == bench.compiler.application_profile_version
    with pytest.raises(InvalidArgumentError):
        device.check_feature_support(7)  # type: ignore[call-overload]


@pytest.mark.spec("EP-09")
def test_a_stream_carries_the_psdb_as_subobject_30_with_session_and_flags(bench: Bench) -> None:
    device = bench.device()
    session = device.create_shader_cache_session1(FileSessionDesc(bench.psdb("game.psdb", [1]), READ_ONLY))
    code = bench.stream(1).cs
    assert code is not None
    desc = ShaderCacheSessionSubobjectDesc(session, CREATE_ONLY)
    stream = PipelineStateStream.from_subobjects(
        [(PipelineStateSubobjectType.CS, code), (PipelineStateSubobjectType(30), desc)]
    )
    created = device.create_pipeline_state(stream)
    assert created.source is ObjectSource.EXPLICIT_PSDB
    assert created.desc.psdb is desc and created.session is None
    # The PSDB takes no part in the key.
    assert created.object_key == device.create_pipeline_state(bench.stream(1)).object_key


@pytest.mark.spec("EP-11")
def test_an_object_keeps_its_session_open_unless_it_is_for_creation_only(bench: Bench) -> None:
    device = bench.device()
    path = bench.psdb("game.psdb", [1, 2])
    keeping = device.create_shader_cache_session1(FileSessionDesc(path, READ_ONLY))
    kept = device.create_pipeline_state(bench.stream(1).with_psdb(keeping))
    passing = device.create_shader_cache_session1(FileSessionDesc(path, READ_ONLY))
    free = device.create_pipeline_state(bench.stream(2).with_psdb(passing, CREATE_ONLY))
    assert kept.source is free.source is ObjectSource.EXPLICIT_PSDB
    keeping.close()
    passing.close()
    assert kept.session is keeping and not keeping.closed
    assert free.session is None and passing.closed
    # Later lookups: through the session that was kept, or, as there is no default PSDB, past all PSDBs.
    assert kept.recreate() is ObjectSource.EXPLICIT_PSDB
    assert free.recreate() is ObjectSource.COMPILED
    assert counts(device)[0] == 2
    del kept
    assert keeping.closed


@pytest.mark.spec("EP-11")
def test_later_lookups_of_create_only_objects_use_the_default_psdb(bench: Bench) -> None:
    bench.register(default=bench.psdb("default.psdb", [1]), DLC1=bench.psdb("dlc1.psdb", [1]))
    device = bench.device()
    session = device.create_shader_cache_session1(RegisteredSessionDesc("DLC1"))
    kept = device.create_pipeline_state(bench.stream(1).with_psdb(session))
    free = device.create_pipeline_state(bench.stream(1).with_psdb(session, CREATE_ONLY))
    assert kept.source is free.source is ObjectSource.EXPLICIT_PSDB
    assert kept.recreate() is ObjectSource.EXPLICIT_PSDB
    assert free.recreate() is ObjectSource.DEFAULT_PSDB


@pytest.mark.spec("EP-12")
def test_a_null_session_means_that_none_is_named(bench: Bench) -> None:
    bench.register(default=bench.psdb("default.psdb", [1]))
    device = bench.device()
    assert device.create_pipeline_state(bench.stream(1).with_psdb(None)).source is ObjectSource.DEFAULT_PSDB
    for desc in (
        ShaderCacheSessionSubobjectDesc(None, CREATE_ONLY),
        ShaderCacheSessionSubobjectDesc(None, ShaderCacheSessionSubobjectFlags(2)),
    ):
        stream = bench.stream(1)
        with pytest.raises(InvalidArgumentError):
            device.create_pipeline_state(type(stream)(cs=stream.cs, psdb=desc))
    session = device.create_shader_cache_session1(FileSessionDesc(bench.folder / "new.psdb"))
    stream = bench.stream(1)
    with pytest.raises(InvalidArgumentError):
        device.create_pipeline_state(
            type(stream)(cs=stream.cs, psdb=ShaderCacheSessionSubobjectDesc(session, ShaderCacheSessionSubobjectFlags(4)))
        )
    assert counts(device) == (1, 0, 0, 0)


@pytest.mark.spec("EP-42")
def test_file_and_registered_sessions_need_an_identity_set_before_the_device(bench: Bench) -> None:
    bench.register(default=bench.psdb("default.psdb", [1]), DLC1=bench.psdb("dlc1.psdb", [2]))
    device = bench.device(application=None)
    for desc in (FileSessionDesc(bench.folder / "dlc1.psdb", READ_ONLY), RegisteredSessionDesc("DLC1")):
        with pytest.raises(InvalidArgumentError, match="identity"):
            device.create_shader_cache_session1(desc)
    # The default PSDB is that of the registered application.
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.DEFAULT_PSDB


@pytest.mark.spec("EP-42", "EP-01")
def test_a_default_psdb_of_another_application_is_not_used(bench: Bench) -> None:
    bench.register(default=bench.psdb("default.psdb", [1]))
    device = bench.device(application=game(ApplicationDesc("Another", "testgame.exe", "1.0", "TestEngine", "1.0")))
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.COMPILED
    assert not device.get_state_object_statistics().default_psdb_registered
    assert any(GAME.name in text and "Another" in text for text in bench.messages("no-default-psdb"))


@pytest.mark.spec("EP-47", "EP-48")
def test_disabled_psdbs_are_not_asked_and_do_not_keep_objects_from_being_created(bench: Bench) -> None:
    bench.register(default=bench.psdb("default.psdb", [1]), DLC1=bench.psdb("dlc1.psdb", [2]))
    device = bench.device()
    registered = device.create_shader_cache_session1(RegisteredSessionDesc("DLC1"))
    file = device.create_shader_cache_session1(FileSessionDesc(bench.folder / "dlc1.psdb", READ_ONLY))
    explicit, by_file = bench.stream(2).with_psdb(registered), bench.stream(2).with_psdb(file)
    device.shader_cache_control(CacheKindFlags.PSDB, CacheControlFlags.DISABLE)
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.COMPILED
    assert device.create_pipeline_state(explicit).source is ObjectSource.COMPILED
    # A FILE session follows APPLICATION_MANAGED.
    assert device.create_pipeline_state(by_file).source is ObjectSource.EXPLICIT_PSDB
    with pytest.raises(NotCurrentlyAvailableError):
        device.create_shader_cache_session1(RegisteredSessionDesc("DLC1"))
    device.shader_cache_control(CacheKindFlags.PSDB, CacheControlFlags.ENABLE)
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.DEFAULT_PSDB
    assert device.create_pipeline_state(explicit).source is ObjectSource.EXPLICIT_PSDB
    device.shader_cache_control(CacheKindFlags.APPLICATION_MANAGED, CacheControlFlags.DISABLE)
    assert device.create_pipeline_state(by_file).source is ObjectSource.LOCAL_CACHE
    assert device.create_pipeline_state(explicit).source is ObjectSource.EXPLICIT_PSDB
    # CLEAR does nothing to PSDBs.
    device.shader_cache_control(CacheKindFlags.PSDB, CacheControlFlags.CLEAR)
    assert device.create_pipeline_state(explicit).source is ObjectSource.EXPLICIT_PSDB


@pytest.mark.spec("EP-46", "EP-48")
def test_the_local_cache_is_controlled_as_the_drivers(bench: Bench) -> None:
    device = bench.device()
    kind = CacheKindFlags.IMPLICIT_DRIVER_MANAGED
    device.create_pipeline_state(bench.stream(1))
    device.shader_cache_control(kind, CacheControlFlags.DISABLE)
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.COMPILED
    assert device.create_pipeline_state(bench.stream(2)).source is ObjectSource.COMPILED
    device.shader_cache_control(kind, CacheControlFlags.ENABLE)
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.LOCAL_CACHE
    assert device.create_pipeline_state(bench.stream(2)).source is ObjectSource.COMPILED
    device.shader_cache_control(kind, CacheControlFlags.CLEAR)
    assert device.create_pipeline_state(bench.stream(1)).source is ObjectSource.COMPILED


@pytest.mark.spec("EP-51")
def test_statistics_tell_hits_from_both_kinds_of_miss(bench: Bench) -> None:
    bench.register(default=bench.psdb("default.psdb", [1, 2, 3]))
    device = bench.device()
    for number in (1, 2, 3, 4, 4, 5):
        device.create_pipeline_state(bench.stream(number))
    statistics = device.get_state_object_statistics()
    # 4 and 5 are in no PSDB; the second 4 is in the local cache.
    assert counts(device) == (6, 3, 2, 0)
    assert statistics.pipeline_state_object_statistics.num_psdb_cache_hits == 3
    assert statistics.state_object_statistics.num_created == 0
    # Another device counts for itself.
    assert counts(bench.device()) == (0, 0, 0, 0)


def test_a_session_that_the_application_has_filled_serves_as_a_psdb(bench: Bench) -> None:
    device = bench.device()
    pipeline = device.create_pipeline_state(bench.stream(1))
    session = device.create_shader_cache_session1(FileSessionDesc(bench.folder / "own.psdb"))
    pipeline.store_into(session)
    session.close()
    other = bench.device(cache="an-empty-cache")
    session = other.create_shader_cache_session1(FileSessionDesc(bench.folder / "own.psdb", READ_ONLY))
    assert other.create_pipeline_state(bench.stream(1).with_psdb(session)).source is ObjectSource.EXPLICIT_PSDB
    other.close()
    with pytest.raises(InvalidArgumentError, match="closed"):
        other.create_pipeline_state(bench.stream(1))


def test_a_file_session_that_may_write_serves_the_groups_of_a_finished_psdb(bench: Bench) -> None:
    path = bench.psdb("game.psdb", [1])
    device = bench.device()
    session = device.create_shader_cache_session1(FileSessionDesc(path))
    assert device.create_pipeline_state(bench.stream(1).with_psdb(session)).source is ObjectSource.EXPLICIT_PSDB


def test_threads_create_objects_at_once(bench: Bench) -> None:
    device = bench.device(workers=2)
    found: list[ObjectSource] = []
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            found.extend(device.create_pipeline_state(bench.stream(number)).source for number in range(first, first + 6))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in (1, 1, 4, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert set(found) <= {ObjectSource.COMPILED, ObjectSource.LOCAL_CACHE}
    assert counts(device)[:2] == (24, 24)
    again = [device.create_pipeline_state(bench.stream(number)).source for number in range(1, 10)]
    assert again == [ObjectSource.LOCAL_CACHE] * 9


def test_an_object_without_stored_code_cannot_be_stored(bench: Bench) -> None:
    device = bench.device()
    pipeline = device.create_pipeline_state(bench.stream(1))
    session = device.create_shader_cache_session1(FileSessionDesc(bench.folder / "own.psdb"))
    device.shader_cache_control(CacheKindFlags.IMPLICIT_DRIVER_MANAGED, CacheControlFlags.CLEAR)
    with pytest.raises(NotFoundError):
        pipeline.store_into(session)
