"""``--check-hashes``: entries that are not what their names say are named by show, verify, salvage and merge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toy_plugin import Kiln

from shaderkiln.databases.fossilize import ArchiveWriter, FossilizeArchive, HashCheck
from shaderkiln.formats.fossilize import Tag
from shaderkiln.formats.fossilize_hash import compute_hash
from shaderkiln.formats.fossilize_json import ApplicationInfo, write_body
from shaderkiln.vulkan_registry import structures as s

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "samples.foz"


def copy(source: Path, target: Path, changed: tuple[Tag, int], payload: bytes) -> Path:
    """The archive again, with right checksums and another payload under one name."""
    with FossilizeArchive.open(source, index=False) as archive, ArchiveWriter.create(target) as writer:
        for tag in Tag:
            for hash in archive.hashes(tag):
                writer.put(tag, hash, payload if (tag, hash) == changed else archive.read(tag, hash))
    return target


@pytest.fixture
def altered(tmp_path: Path) -> tuple[Path, str]:
    """The samples with one byte of one shader module changed, and the name of that entry."""
    with FossilizeArchive.open(SAMPLES, index=False) as archive:
        name = next(archive.hashes(Tag.SHADER_MODULE))
        payload = bytearray(archive.read(Tag.SHADER_MODULE, name))
    payload[-1] ^= 1
    path = copy(SAMPLES, tmp_path / "altered.foz", (Tag.SHADER_MODULE, name), bytes(payload))
    return path, f"shader_module {name:016x}"


def test_the_samples_are_what_their_names_say() -> None:
    with FossilizeArchive.open(SAMPLES, index=False) as archive:
        check = HashCheck(archive).run()
        assert (check.right, check.wrong, check.not_checked) == (len(archive), [], {})


def test_show_names_the_entry(kiln: Kiln, altered: tuple[Path, str]) -> None:
    path, name = altered
    assert name not in kiln("show", str(path)).stdout
    done = kiln("show", str(path), "--check-hashes")
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"damaged: {name}")]
    assert ": its content has the hash " in line
    with FossilizeArchive.open(path, index=False) as archive:
        assert f"hashes       {len(archive) - 1} right, 1 wrong\n" in done.stdout
    (record,) = kiln.records("show", str(path), "--check-hashes", code=1)
    assert (len(record["wrong_hashes"]), record["hashes_not_checked"], record["damage"]) == (1, {}, [])
    assert "wrong_hashes" not in kiln.records("show", str(path))[0]


def rightly_named(path: Path) -> Path:
    """A capture of one pipeline for the toy compiler, every entry of which has the name that its content hashes to."""

    def put(writer: ArchiveWriter, tag: Tag, structure: Any) -> int:
        name = compute_hash(structure, lambda handle: structure)
        writer.put(tag, name, write_body(tag, name, structure))
        return name

    with ArchiveWriter.create(path) as writer:
        put(writer, Tag.APPLICATION_INFO, ApplicationInfo(application_name="Toy", api_version=1 << 22))
        layout = put(writer, Tag.PIPELINE_LAYOUT, s.PipelineLayoutCreateInfo())
        module = put(writer, Tag.SHADER_MODULE, s.ShaderModuleCreateInfo(code=b"code a  "))
        stage = s.PipelineShaderStageCreateInfo(stage=0x20, module=s.ShaderModuleHandle(module))
        put(writer, Tag.COMPUTE_PIPELINE, s.ComputePipelineCreateInfo(stage=stage, layout=s.PipelineLayoutHandle(layout)))
    return path


def test_verify_names_the_entry(kiln: Kiln, tmp_path: Path) -> None:
    good = rightly_named(tmp_path / "good.foz")
    with FossilizeArchive.open(good, index=False) as archive:
        (module,) = archive.hashes(Tag.SHADER_MODULE)
    other = write_body(Tag.SHADER_MODULE, module, s.ShaderModuleCreateInfo(code=b"code b  "))
    copy(good, tmp_path / "game.foz", (Tag.SHADER_MODULE, module), other)
    for name in ("good", "game"):
        assert kiln("compile", f"{name}.foz", "-f", "toy-one", "-o", f"{name}.psdb").returncode == 0
        assert kiln("verify", f"{name}.psdb", f"{name}.foz").returncode == 0
    done = kiln("verify", "good.psdb", "good.foz", "--check-hashes")
    assert (done.returncode, "good.foz: hashes: 4 right, 0 wrong\n" in done.stdout) == (0, True)
    done = kiln("verify", "game.psdb", "game.foz", "--check-hashes")
    assert done.returncode == 1
    assert f"game.foz: damaged: shader_module {module:016x}: its content has the hash " in done.stdout
    *_, summary = kiln.records("verify", "game.psdb", "game.foz", "--check-hashes", code=1)
    assert (len(summary["wrong_hashes"]), summary["good"]) == (1, False)


@pytest.mark.parametrize("command", ["salvage", "merge"])
def test_a_wrong_entry_is_left_out(kiln: Kiln, altered: tuple[Path, str], tmp_path: Path, command: str) -> None:
    path, name = altered
    assert kiln(command, str(path), "-o", "same.foz").returncode == 0
    done = kiln(command, str(path), "-o", "good.foz", "--check-hashes")
    assert done.returncode == 1
    assert ", 1 dropped\n" in done.stdout
    assert f"({name}): its content has the hash " in done.stdout
    with FossilizeArchive.open(path, index=False) as before, FossilizeArchive.open(tmp_path / "good.foz", index=False) as after:
        assert len(after) == len(before) - 1
        assert not after.damage
        assert HashCheck(after).run().wrong == []
    ledger, _summary = kiln.records(command, str(path), "-o", "good.foz", "--check-hashes", "--replace", code=1)
    assert (ledger["dropped"], ledger["hashes_not_checked"], name in ledger["damage"][0]) == (1, 0, True)


def test_the_good_entry_of_a_later_input_takes_the_place_of_a_wrong_one(
    kiln: Kiln, altered: tuple[Path, str], tmp_path: Path
) -> None:
    assert kiln("merge", str(altered[0]), str(SAMPLES), "-o", "all.foz", "--check-hashes").returncode == 1
    with FossilizeArchive.open(SAMPLES, index=False) as one, FossilizeArchive.open(tmp_path / "all.foz", index=False) as other:
        assert {(tag, hash, one.read(tag, hash)) for tag in Tag for hash in one.hashes(tag)} == {
            (tag, hash, other.read(tag, hash)) for tag in Tag for hash in other.hashes(tag)
        }


def test_what_is_not_known_is_not_checked_and_never_wrong(tmp_path: Path) -> None:
    with FossilizeArchive.open(SAMPLES, index=False) as archive:
        name = next(archive.hashes(Tag.SAMPLER))
        payload = archive.read(Tag.SAMPLER, name)
    changed = payload.replace(b'"flags":0', b'"flags":0,"somethingNew":7', 1)
    assert changed != payload
    path = copy(SAMPLES, tmp_path / "later.foz", (Tag.SAMPLER, name), changed)
    with ArchiveWriter.append(path) as writer:
        writer.put(Tag.BUCKET_INFO, 5, b"{}")
    with FossilizeArchive.open(path, index=False) as archive:
        check = HashCheck(archive).run()
    assert check.wrong == []
    assert check.not_checked == {Tag.SAMPLER: 1, Tag.BUCKET_INFO: 1}


def test_a_pipeline_is_not_blamed_for_its_render_pass(tmp_path: Path) -> None:
    with FossilizeArchive.open(SAMPLES, index=False) as archive:
        name = next(archive.hashes(Tag.RENDER_PASS))
        payload = archive.read(Tag.RENDER_PASS, name)
    path = copy(SAMPLES, tmp_path / "pass.foz", (Tag.RENDER_PASS, name), payload.replace(b'"samples":1', b'"samples":2', 1))
    with FossilizeArchive.open(path, index=False) as archive:
        check = HashCheck(archive).run()
    assert [text.split(":")[0] for text in check.wrong] == [f"render_pass {name:016x}"]
    assert set(check.reasons.values()) == {"its render pass is damaged"}
