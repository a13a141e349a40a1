"""From a PSDB to one pipeline cache: a fresh driver that has only that cache creates every pipeline with compiling forbidden."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from shaderkiln import api
from shaderkiln.compilers.plugin import open_family
from shaderkiln.databases.cache_file import State, examine, trim
from shaderkiln.databases.psdb import PsdbBuilder
from shaderkiln.descriptions.pipeline import PipelineDescription, has_shaders
from shaderkiln.drivers.client import WorkerProcess
from shaderkiln.drivers.packages import DriverPackages
from shaderkiln.drivers.protocol import Create, CreateCache, Created, Define, Done, Open, Opened
from shaderkiln.errors import CacheCorruptError, DamagedInputError, NotFoundError, ShaderkilnError
from shaderkiln.formats.mesa_cache import PLAIN, Entry, Layout, read, seal, write
from shaderkiln.formats.vk_cache import CacheHeader
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity
from shaderkiln.jobs.cache_values import cache_value_key, cache_values, export_cache
from shaderkiln.jobs.compile import JobOptions
from shaderkiln.jobs.verdicts import Outcome
from shaderkiln.keys import Group, ObjectKey, Value, ValueKey, ValueType
from shaderkiln.vulkan_registry.structures import PipelineLibraryCreateInfoKHR

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "samples.foz"
CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "data" / "captures"
FAMILIES = (
    ("amd-navi31", "mesa-backports"),
    ("amd-navi21", "mesa-backports"),
    ("amd-navi31", "mesa-stable"),
    ("nvidia-nvk-172", "mesa-backports"),
    ("qualcomm-a740", "mesa-backports"),
    ("apple-g13g", "mesa-backports"),
)
IDENTITY = CompilerIdentity(
    "amd-navi31", 0x1002, 0x744C, 3, "radv", 1, "build", 1 << 48, "radv", 0, bytes(range(16)), b"g", "pipeline-binary", (), 64
)


def _capture(name: str) -> Path:
    path = SAMPLES if name == "samples" else CAPTURES / f"{name}.foz"
    if not path.exists():
        pytest.skip(f"the capture {name}.foz is not here")
    return path


def _compiled(name: str, family: str, package: str, folder: Path) -> tuple[Path, set[str]]:
    """The PSDB of a capture, and the pipelines in it."""
    if package not in [each.name for each in DriverPackages().list()]:
        pytest.skip(f"no driver package {package}")
    names: set[str] = set()

    def take(verdict: object) -> None:
        if getattr(verdict, "outcome", None) in (Outcome.COMPILED, Outcome.REUSED):
            names.add(verdict.pipeline)  # type: ignore[attr-defined]

    try:
        report = api.compile_capture(
            _capture(name), family, folder, package=package, options=JobOptions(pipeline_caches=True), on_verdict=take
        )
    except NotFoundError:
        pytest.skip(f"driver package {package} has no {family}")
    return report.path, names


def _links(description: PipelineDescription) -> bool:
    return any(isinstance(item, PipelineLibraryCreateInfoKHR) for item in description.create_info.next) or bool(
        getattr(description.create_info, "library_info", None)
    )


def _created(name: str, family: str, package: str, cache: bytes, names: set[str]) -> dict[str, str]:
    """What a new driver process answers for these pipelines of a capture: only the cache is there, and compiling forbidden."""
    with api.open_capture(_capture(name)) as capture:
        compiler = open_family(family, capture.application, package=package)
        command = compiler.worker_command()
        with WorkerProcess(command.arguments, command.environment) as worker:
            assert isinstance(worker.ask(Open(compiler.identity.features)), Opened)
            assert isinstance(worker.ask(CreateCache(1, 1, cache)), Done)
            results = {}
            for kind, hash in capture.pipelines():
                if f"{hash:016x}" not in names:
                    continue
                description = capture.load(kind, hash)
                for handle, item in description.objects.items():
                    worker.send(Define(type(handle).__name__, handle.value, item))
                answer = worker.ask(Create(2, description.create_info, 1, compiling_forbidden=True))
                results[description.name] = answer.result if isinstance(answer, Created) else str(answer)
            return results


@pytest.mark.driver
@pytest.mark.spec("VC-13", "VC-14")
@pytest.mark.parametrize(("family", "package"), FAMILIES)
@pytest.mark.parametrize("name", ["samples", "vkcube", "wgpu", "pygfx", "mpv", "taichi"])
def test_a_fresh_driver_with_only_the_exported_cache_compiles_nothing(
    name: str, family: str, package: str, tmp_path: Path
) -> None:
    path, compiled = _compiled(name, family, package, tmp_path)
    with api.open_psdb(path) as database:
        exported = export_cache(database)
        assert all(source.balanced for source in exported.merged.sources)
    found = examine(exported.data)
    assert (found.state, found.sealed, found.incomplete) == (State.VALID, True, 0)
    assert exported.missing == ()
    assert _created(name, family, package, exported.data, compiled) == dict.fromkeys(compiled, "VK_SUCCESS")
    nothing = _created(name, family, package, exported.data[:32], compiled)
    # What has no shaders of its own, or is linked from libraries without optimization, needs no compiling and no cache.
    with api.open_capture(_capture(name)) as capture:
        descriptions = [capture.load(kind, hash) for kind, hash in capture.pipelines()]
        own = {each.name for each in descriptions if has_shaders(each.create_info) and not _links(each)}
    assert {nothing[each] for each in own & compiled} <= {"VK_PIPELINE_COMPILE_REQUIRED"}


@pytest.mark.driver
@pytest.mark.spec("VC-13")
def test_caches_are_added_to_a_finished_psdb_and_the_same_file_comes_of_both_ways(tmp_path: Path) -> None:
    if "mesa-backports" not in [each.name for each in DriverPackages().list()]:
        pytest.skip("no driver package mesa-backports")
    capture = _capture("vkcube")
    (tmp_path / "later").mkdir()
    (tmp_path / "at once").mkdir()
    later = api.compile_capture(capture, "amd-navi31", tmp_path / "later", package="mesa-backports").path
    with api.open_psdb(later) as database, pytest.raises(NotFoundError, match="--cache"):
        export_cache(database)
    options = JobOptions(pipeline_caches=True)
    api.compile_capture(capture, "amd-navi31", tmp_path / "later", package="mesa-backports", options=options)
    at_once = api.compile_capture(capture, "amd-navi31", tmp_path / "at once", package="mesa-backports", options=options).path
    assert later.read_bytes() == at_once.read_bytes()
    with api.open_psdb(later) as database:
        assert export_cache(database).pipelines == 1


def _real_blobs(tmp_path: Path) -> list[bytes]:
    blobs = []
    for package in ("mesa-backports", "mesa-stable"):
        folder = tmp_path / package
        folder.mkdir()
        path, _ = _compiled("vkcube", "amd-navi31", package, folder)
        with api.open_psdb(path) as database:
            blobs.append(read(export_cache(database).data).data)
    return blobs


def _check_damaged(blob: bytes, places: list[int], sizes: list[int], values: list[int]) -> None:
    sealed = seal(blob)
    for size in sizes:
        cut = examine(sealed[:size])
        if size not in (32, len(blob)) and size < len(blob):
            assert cut.state is (State.TRUNCATED if size else State.FOREIGN), size
        assert not cut.sealed
        kept = trim(blob, size)
        assert kept == b"" if size < 32 else read(kept).fault is None
    for place in places:
        for value in values:
            changed = bytearray(sealed)
            changed[place] ^= value
            found = examine(bytes(changed))
            assert found.state is not State.VALID, (place, value)
            # Without the seal a change inside a key or data does not show; what is read then is no more than there is.
            unsealed = examine(bytes(changed[: len(blob)]))
            assert unsealed.entry_bytes <= len(blob)


@pytest.mark.driver
@pytest.mark.spec("VC-02", "VC-06", "VC-13")
def test_sampled_damage_of_real_blobs_is_told(tmp_path: Path) -> None:
    generator = random.Random(13)
    for blob in _real_blobs(tmp_path):
        places = sorted(generator.sample(range(len(blob) + 32), 300))
        sizes = sorted(generator.sample(range(len(blob) + 32), 300))
        _check_damaged(blob, places, sizes, [0x01, 0xFF])


@pytest.mark.driver
@pytest.mark.soak
@pytest.mark.spec("VC-02", "VC-06", "VC-13")
def test_all_damage_of_real_blobs_is_told(tmp_path: Path) -> None:
    generator = random.Random(14)
    for blob in _real_blobs(tmp_path):
        _check_damaged(blob, list(range(len(blob) + 32)), list(range(len(blob) + 32)), [1 << bit for bit in range(8)])
        sealed = seal(blob)
        for _ in range(10_000):
            changed = bytearray(sealed)
            for _ in range(generator.randrange(1, 6)):
                changed[generator.randrange(len(changed))] = generator.randrange(256)
            found = examine(bytes(changed))
            assert bytes(changed) == sealed or found.state is not State.VALID


# Without a driver


def _database(folder: Path, values: tuple[Value, ...], key: ObjectKey, value_keys: tuple[ValueKey, ...]) -> Path:
    path = folder / "game.psdb"
    with PsdbBuilder(path, IDENTITY, ApplicationIdentity()) as builder:
        builder.add(Group(key, 1, value_keys, "compute", "0123456789abcdef"), values)
        builder.finish()
    return path


KEY = ObjectKey(bytes(range(32)))
ENTRIES = (Entry(PLAIN, b"s" * 32, b"shader"), Entry(3, b"p" * 20, b"pipeline"))
CACHE = write(CacheHeader(0x1002, 0x744C, bytes(range(16))), ENTRIES)


@pytest.mark.spec("VC-13")
def test_what_is_stored_of_a_cache_gives_the_cache(tmp_path: Path) -> None:
    values = cache_values(KEY, CACHE)
    assert [(value.type, len(value.key)) for value in values] == [
        (ValueType.OBJECT_CODE, 40), (ValueType.OBJECT_CODE, 28), (ValueType.METADATA, 46)
    ]  # fmt: skip
    path = _database(tmp_path, values, KEY, (values[0].key,))
    with api.open_psdb(path) as database:
        exported = export_cache(database)
    assert exported.data == seal(CACHE)
    assert (exported.pipelines, exported.missing) == (1, ())


def test_an_opaque_cache_is_one_value_and_is_not_sealed(tmp_path: Path) -> None:
    opaque = bytes(CacheHeader(0x1002, 0x744C, bytes(range(16)))) + b"\xf1\x02\x9c\x77" * 99
    values = cache_values(KEY, opaque)
    assert len(values) == 2
    with api.open_psdb(_database(tmp_path, values, KEY, (values[0].key,))) as database:
        assert export_cache(database).data == opaque


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([2, "mesa", []]),
        msgspec.msgpack.encode([1, "other", []]),
        msgspec.msgpack.encode([1, "mesa", [[0, b"short"]]]),
        msgspec.msgpack.encode([1, "mesa", [[0, b"k" * 20]]]),
        msgspec.msgpack.encode([1, "mesa", [[1 << 40, b"s" * 32]]]),
        msgspec.msgpack.encode({"form": 1}),
        b"\x91" * 5000,
    ],
)
def test_a_list_of_entries_that_makes_no_sense_is_damage(record: bytes, tmp_path: Path) -> None:
    values = cache_values(KEY, CACHE)
    record = record.replace(b"s" * 32, bytes(values[0].key))
    listed = Value(cache_value_key(KEY), ValueType.METADATA, record or b"\0")
    with (
        api.open_psdb(_database(tmp_path, (*values[:2], listed), KEY, (values[0].key,))) as database,
        pytest.raises(ShaderkilnError) as caught,
    ):
        export_cache(database)
    assert isinstance(caught.value, CacheCorruptError)


def test_a_cache_that_is_not_whole_is_not_stored() -> None:
    with pytest.raises(DamagedInputError):
        cache_values(KEY, CACHE[:-1])
    assert read(CACHE).layout is Layout.MESA
