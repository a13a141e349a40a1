"""``kiln cache``: files of pipeline caches shown, merged, compared, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy_plugin import Kiln

from shaderkiln.formats.mesa_cache import PLAIN, Entry, read, seal, write
from shaderkiln.formats.vk_cache import CacheHeader

HEADER = CacheHeader(0x5143, 0x43050A01, bytes(range(16)))
FIRST = write(HEADER, [Entry(PLAIN, b"one", b"data"), Entry(PLAIN, b"two", b"data")])
SECOND = write(HEADER, [Entry(PLAIN, b"two", b"data"), Entry(PLAIN, b"three", b"data")])
OTHER = write(CacheHeader(0x5143, 1, bytes(16)), [Entry(PLAIN, b"four", b"data")])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, data in (("first", FIRST), ("second", SECOND), ("other", OTHER), ("cut", FIRST[:-1]), ("text", b"hello")):
        (tmp_path / f"{name}.bin").write_bytes(data)
    return tmp_path


@pytest.mark.spec("VC-13")
def test_show_tells_what_each_file_is(kiln: Kiln, files: Path) -> None:
    records = kiln.records("cache", "show", *(f"{name}.bin" for name in ("first", "cut", "text")), code=1)
    assert [(record["file"], record["state"], record["entries"]) for record in records] == [
        ("first.bin", "valid", 2), ("cut.bin", "truncated", 1), ("text.bin", "foreign", 0),
    ]  # fmt: skip
    assert records[0]["driver"] == "Turnip"
    assert records[0]["header"] == {"vendor_id": 0x5143, "device_id": 0x43050A01, "uuid": bytes(range(16)).hex()}
    done = kiln("cache", "show", "first.bin", "--entries")
    assert done.returncode == 0
    assert "first.bin: valid" in done.stdout
    assert "device   vendor 0x5143, device 0x43050a01, UUID 000102030405060708090a0b0c0d0e0f" in done.stdout
    assert b"two".hex() in done.stdout


@pytest.mark.spec("VC-10")
def test_merge_writes_the_union_and_says_what_became_of_each_entry(kiln: Kiln, files: Path) -> None:
    *ledgers, summary = kiln.records("cache", "merge", "-o", "all.bin", "first.bin", "second.bin")
    assert [(ledger["entries"], ledger["kept"], ledger["duplicates"]) for ledger in ledgers] == [(2, 2, 0), (2, 1, 1)]
    assert (summary["entries"], summary["bytes"]) == (3, (files / "all.bin").stat().st_size)
    assert [entry.key for entry in read((files / "all.bin").read_bytes())] == [b"one", b"two", b"three"]
    assert kiln("cache", "merge", "-o", "again.bin", "all.bin", "second.bin").returncode == 0
    assert (files / "again.bin").read_bytes() == (files / "all.bin").read_bytes()


@pytest.mark.spec("VC-10")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("-o", "all.bin"), 2, "Missing argument"),
        (("-o", "first.bin", "first.bin", "second.bin"), 2, "also an input"),
        (("-o", "all.bin", "first.bin", "other.bin"), 3, "other.bin: made for device 0x0001, not 0x43050a01"),
        (("-o", "all.bin", "first.bin", "cut.bin"), 3, "cut.bin: truncated"),
        (("-o", "all.bin", "first.bin", "text.bin"), 3, "text.bin: 5 bytes"),
        (("-o", "all.bin", "first.bin", "nothing.bin"), 3, "no such file"),
        (("-o", "other.bin", "first.bin", "second.bin"), 5, "there already"),
    ],
)
def test_what_merge_refuses_leaves_everything_as_it_was(
    arguments: tuple[str, ...], code: int, words: str, kiln: Kiln, files: Path
) -> None:
    before = {path.name: path.read_bytes() for path in files.glob("*.bin")}
    done = kiln("cache", "merge", *arguments)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert {path.name: path.read_bytes() for path in files.glob("*.bin")} == before


def test_salvage_leaves_out_what_does_not_fit(kiln: Kiln, files: Path) -> None:
    done = kiln("cache", "merge", "-o", "all.bin", "--salvage", "cut.bin", "second.bin", "other.bin", "text.bin")
    assert done.returncode == 1
    assert [entry.key for entry in read((files / "all.bin").read_bytes())] == [b"one", b"two", b"three"]
    assert "cut.bin: left out: truncated" in done.stdout
    assert "text.bin: left out: no pipeline cache data: 5 bytes" in done.stdout
    assert "other.bin: left out: made for device 0x0001" in done.stdout


def test_diff_lists_keys(kiln: Kiln, files: Path) -> None:
    (record,) = kiln.records("cache", "diff", "first.bin", "second.bin", code=1)
    assert record == {
        "type": "comparison", "equal": 1, "only_first": [b"one".hex()], "only_second": [b"three".hex()], "changed": [],
    }  # fmt: skip
    (files / "sealed.bin").write_bytes(seal(FIRST))
    assert kiln("cache", "diff", "first.bin", "sealed.bin").returncode == 0


def test_from_psdb_wants_a_psdb(kiln: Kiln, files: Path) -> None:
    done = kiln("cache", "from-psdb", "first.bin", "-o", "all.bin")
    assert done.returncode == 3
    assert not (files / "all.bin").exists()
