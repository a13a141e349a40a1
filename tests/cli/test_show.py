"""``kiln show``, ``isa``, ``merge`` and ``salvage``: what they say about captures and PSDBs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from job_support import name, put_frame, put_pipeline, write_capture
from toy_plugin import Kiln

from shaderkiln.cli.output import column_widths, print_table
from shaderkiln.cli.show import statistics_table
from shaderkiln.databases.fossilize import ArchiveWriter, FossilizeArchive
from shaderkiln.formats.fossilize import Tag
from shaderkiln.formats.fossilize_json import ApplicationInfo, ApplicationLink, write_body
from shaderkiln.sources.capture import Capture, link_hash

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@pytest.fixture
def built(kiln: Kiln, tmp_path: Path) -> Path:
    """A PSDB with three groups, of which two have equal parts, and one poison entry; ``game.foz`` lies beside its folder."""
    write_capture(tmp_path / "game.foz", ["code a", "code b", "other c", "crash SIGSEGV"])
    assert kiln("compile", "game.foz", "-f", "toy-one", "-o", "out", "--perf").returncode == 1
    return tmp_path / "out" / "game.toy-one.psdb"


def test_a_capture_for_people_and_programs(kiln: Kiln) -> None:
    with Capture.open(SAMPLES / "samples.foz") as capture:
        kinds = Counter(kind for kind, _ in capture.pipelines())
        names = {f"{hash:016x}" for _, hash in capture.pipelines()}
    *rows, record = kiln.records("show", SAMPLES / "samples.foz", "--pipelines")
    assert {row["pipeline"] for row in rows} == names
    assert all(len(row["object_key"]) == 64 for row in rows)
    assert record["type"] == "capture"
    assert record["pipelines"] == dict(kinds)
    assert record["damage"] == record["damaged_pipelines"] == []
    assert record["application"]["name"] == "Shaderkiln samples"
    assert record["file_bytes"] == (SAMPLES / "samples.foz").stat().st_size
    assert any(re.fullmatch(r"spirv-version SPIR-V 1\.\d", need) for need in record["needs"])
    assert record["needs"]["capability Tessellation"] == sum("Tessellation" in row["needs"] for row in rows) > 0
    shown = kiln("show", SAMPLES / "samples.foz").stdout
    assert f"pipelines    {kinds['graphics']} graphics, {kinds['compute']} compute" in shown
    assert " 0 " not in shown.splitlines()[6]


def test_a_capture_without_pipelines(kiln: Kiln, tmp_path: Path) -> None:
    with ArchiveWriter.create(tmp_path / "nothing.foz"):
        pass
    done = kiln("show", "nothing.foz")
    assert done.returncode == 0
    assert "pipelines    none" in done.stdout
    assert "application  (no name), engine (no name)" in done.stdout
    assert kiln("compile", "nothing.foz", "-f", "toy-one", "-o", "out").returncode == 0


def test_names_reach_no_terminal_as_commands_and_no_table_as_markup(kiln: Kiln, tmp_path: Path) -> None:
    write_capture(tmp_path / "game.foz", ["code a"], application="\x1b]0;owned\x07\x9b31m [/x] :cat:")
    for arguments in (
        ("compile", "game.foz", "-f", "toy-one", "-o", "out"),
        ("show", "game.foz"),
        ("show", "out/game.toy-one.psdb"),
    ):
        done = kiln(*arguments)
        assert done.returncode == 0
        assert not set(done.stdout) & set("\x1b\x07\x9b\r")
    assert "application  \ufffd]0;owned\ufffd\ufffd31m [/x] :cat:, engine Toy Engine" in done.stdout


def test_tables_show_cells_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("[b]title[/x]", ["a", "b"], [["[/x] :cat:", "\x1b[31m"]])
    shown = capsys.readouterr().out
    for text in ("[b]title[/x]", "[/x] :cat:", "\ufffd[31m"):
        assert text in shown


def test_a_row_is_one_line_where_no_person_reads(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ["a", "b"], [["x" * 300, "word " * 100], ["y", "z"]])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "x" in line or "y" in line]
    assert rows == [["x" * 300, *["word"] * 100], ["y", "z"]]


def test_narrow_terminals_get_whole_words_in_more_lines() -> None:
    assert column_widths([20, 30, 40], 90) == [20, 30, 40]
    assert column_widths([20, 30, 40], 80) == [20, 30, 30]
    assert column_widths([20, 30, 40], 60) == [20, 24, 16]
    assert column_widths([20, 30, 40], 40) == [20, 14, 6]
    assert column_widths([20, 3, 40], 10) == [6, 2, 2]


def test_a_table_for_programs_is_as_wide_as_it_must_be(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ["a", "b"], [["x" * 300, "y" * 200]])
    assert f"  {'x' * 300}   {'y' * 200}  \n" in capsys.readouterr().out


def test_damage_of_a_capture_is_shown(kiln: Kiln, tmp_path: Path) -> None:
    path = write_capture(tmp_path / "game.foz", ["code a", "code b"])
    data = bytearray(path.read_bytes())
    data[data.index(b"%024x%016x" % (Tag.COMPUTE_PIPELINE, 0x1001)) + 40 + 16 + 8] ^= 0xFF
    path.write_bytes(data)
    (record,) = kiln.records("show", "game.foz", code=1)
    assert len(record["damaged_pipelines"]) == 2  # one has no SPIR-V, the other is damaged
    assert any("checksum" in text for text in record["damaged_pipelines"])
    assert "damaged: compute 0000000000001001: " in kiln("show", "game.foz").stdout


def test_a_psdb_for_people(kiln: Kiln, built: Path) -> None:
    shown = kiln("show", built, "--pipelines", "--values").stdout
    assert [name(2), "toy", "main", "7"] in [line.split() for line in shown.splitlines()]
    brief = kiln("show", built).stdout
    assert "statistics   of 3 pipelines; --pipelines shows them" in brief
    assert "Letters" not in brief
    for text in (
        "PSDB, format 1, ", "family       toy-one (vendor 0xabcd, device 0x0001)", "driver       toy, toy 2.1",
        "ABI          2.1.0.0, pipeline-binary, 64 bits", "application  Toy Town, engine Toy Engine", "groups       3: 3 compute",
        "values       5 OBJECT_CODE", "values       3 PERFORMANCE_DATA",
        "sharing      6 value references by groups, 5 distinct values",
        "poison       crashed compute 0000000000001003 with SIGSEGV in toy 2.1", "Letters", name(2),
    ):  # fmt: skip
        assert text in shown, text


def test_a_psdb_for_programs(kiln: Kiln, built: Path) -> None:
    records = kiln.records("show", built, "--pipelines", "--values")
    pipelines = {record["pipeline"]: record for record in records if record["type"] == "pipeline"}
    values = [record for record in records if record["type"] == "value"]
    assert set(pipelines) == set(map(name, range(3)))
    assert pipelines[name(0)]["bytes"] == len(b"code of code a") + len(b"part of code")
    assert pipelines[name(0)]["statistics"][0]["statistics"] == {"Letters": 6}
    assert pipelines[name(0)]["values"][1] == pipelines[name(1)]["values"][1]
    assert Counter(value["value_type"] for value in values) == {"OBJECT_CODE": 5, "PERFORMANCE_DATA": 3}
    assert {key for each in pipelines.values() for key in each["values"]} <= {value["key"] for value in values}
    summary = records[-1]
    assert (summary["type"], summary["groups"], summary["statistics"]["values"]) == ("psdb", {"compute": 3}, 8)
    assert summary["poison"] == [{"pipeline": name(3), "kind": "compute", "outcome": "crashed", "signal": "SIGSEGV"}]
    assert summary["identity"]["driver_build"] == "toy 2.1"
    assert summary["abi_text"] == "2.1.0.0"


def test_disassembly_and_statistics_of_one_pipeline(kiln: Kiln, built: Path) -> None:
    done = kiln("isa", built, name(2))
    assert done.returncode == 0
    assert f"compute pipeline {name(2)} for toy-one, toy 2.1" in done.stdout
    assert "== toy main: the only stage, subgroup size 8" in done.stdout
    assert "Letters: 7" in done.stdout
    assert done.stdout.endswith("-- Toy assembly: the text itself\nother c\n")
    assert "Toy assembly" not in kiln("isa", built, name(2), "--statistics-only").stdout
    assert kiln("isa", built, name(2), "--asm").stdout == "other c\n"
    assert kiln("isa", built, name(2), "--asm", "--statistics-only").returncode == 2
    (record,) = kiln.records("isa", built, name(2))
    assert record["executables"][0]["representations"] == {"Toy assembly": "other c\0"}


def test_a_capture_is_found_where_the_help_says(kiln: Kiln, built: Path, tmp_path: Path) -> None:
    capture = tmp_path / "game.foz"
    kiln.folder = tmp_path / "here"
    (kiln.folder / "samples").mkdir(parents=True)
    for place in (built.parent, built.parent.parent, kiln.folder, kiln.folder / "samples"):
        capture = capture.rename(place / "game.foz")
        assert kiln("isa", built, name(2)).returncode == 0, place
    capture.unlink()
    missing = kiln("isa", built, name(2))
    assert missing.returncode == 2
    assert "beside the PSDB, one folder up, here, or in samples/" in missing.stderr


def test_a_driver_without_disassembly_is_said_to_have_none(kiln: Kiln, built: Path, tmp_path: Path) -> None:
    write_capture(tmp_path / "dumb.foz", ["dumb d"])
    for arguments in ((), ("--asm",), ("--json",)):
        done = kiln("isa", built, name(0), "-c", "dumb.foz", *arguments)
        assert done.returncode == 0
        assert done.stderr == "the driver of toy-one gives no disassembly\n"


def test_statistics_by_the_names_of_every_driver() -> None:
    executables = [
        ("a", {"name": "compute", "statistics": {"SGPRs": 128, "VGPRs": 24, "Code size": 48, "Latency": 9}}),
        ("b", {"name": "vertex", "statistics": {"Number of GPRs": 12, "Instruction count": 7, "Max warps/SM": 48}}),
    ]
    columns, rows = statistics_table(executables)
    assert columns == ["pipeline", "shader", "VGPRs", "SGPRs", "registers", "code size", "instructions", "cycles"]
    assert rows == [["a", "compute", "24", "128", "", "48", "", "9"], ["b", "vertex", "", "", "12", "", "7", ""]]


def test_disassembly_of_many_or_none(kiln: Kiln, built: Path) -> None:
    assert kiln("isa", built, "0000").returncode == 2
    assert kiln("isa", built, "f").returncode == 3


def test_merging_counts_every_entry(kiln: Kiln, tmp_path: Path) -> None:
    write_capture(tmp_path / "one.foz", ["code a", "code b"])
    write_capture(tmp_path / "two.foz", ["code a", "code c", "code d"])
    done = kiln("merge", "one.foz", "two.foz", "-o", "all.foz")
    # one: application, layout, two modules, two pipelines; two differs in the module and is equal in the pipeline of number 1.
    assert done.returncode == 1
    assert "one.foz: 6 entries: 6 kept, 0 duplicate\n" in done.stdout
    assert "two.foz: 8 entries: 2 kept, 5 duplicate, 1 conflicting\n" in done.stdout
    assert "two.foz: left out shader_module 0000000000002001: differs from that of one.foz" in done.stdout
    with FossilizeArchive.open(tmp_path / "all.foz") as archive:
        assert len(archive) == 8
    again = kiln("merge", "one.foz", "one.foz", "-o", "same.foz")
    assert again.returncode == 0
    assert "one.foz: 6 entries: 0 kept, 6 duplicate" in again.stdout


@pytest.fixture
def mixed(kiln: Kiln, tmp_path: Path) -> Path:
    """A merged capture: pipeline 0 is that of "Plain", pipeline 1 that of "Robust"."""
    for number, (application, robust) in enumerate((("Plain", 0), ("Robust", 1))):
        with ArchiveWriter.create(tmp_path / f"{application}.foz") as writer:
            put_frame(writer, "never seen")
            info = ApplicationInfo(application_name=application, api_version=1 << 22, robust_buffer_access=robust)
            hash = 0x50 + number
            writer.put(Tag.APPLICATION_INFO, hash, write_body(Tag.APPLICATION_INFO, hash, info))
            put_pipeline(writer, number, f"code {number}")
            link = ApplicationLink(hash, Tag.COMPUTE_PIPELINE, 0x1000 + number)
            place = link_hash(hash, link.tag, link.hash)
            writer.put(Tag.APPLICATION_BLOB_LINK, place, write_body(Tag.APPLICATION_BLOB_LINK, place, link))
    done = kiln("merge", "Plain.foz", "Robust.foz", "-o", "all.foz")
    assert done.returncode == 0
    assert "kiln: warning: all.foz: its applications had different robustness features" in done.stderr
    return tmp_path / "all.foz"


@pytest.mark.usefixtures("mixed")
def test_a_merged_capture_tells_its_applications(kiln: Kiln) -> None:
    shown = kiln("show", "all.foz").stdout
    assert "application  2: Plain, engine (no name); Vulkan 1.0.0; robustness none\n" in shown
    assert "application  3: Robust, engine (no name); Vulkan 1.0.0; robustness robustBufferAccess\n" in shown
    assert "compile for one at a time" in shown
    (record,) = kiln.records("show", "all.foz")
    summary = kiln.records("merge", "all.foz", "-o", "again.foz")[-1]
    for each in (record, summary):
        assert each["mixed_features"] is True
        assert [(a["number"], a["application"]["name"], len(a["features"])) for a in each["applications"]] == [
            (1, "never seen", 0), (2, "Plain", 0), (3, "Robust", 1),
        ]  # fmt: skip
    one = kiln("merge", "Plain.foz", "-o", "one.foz")
    assert (one.returncode, one.stderr) == (0, "")
    assert kiln.records("merge", "Plain.foz", "-o", "one.foz", "--replace")[-1]["mixed_features"] is False


@pytest.mark.usefixtures("mixed")
def test_a_capture_with_different_features_is_compiled_for_one_application(kiln: Kiln) -> None:
    for command in (("compile", "all.foz", "-f", "toy-one", "-o", "out"), ("replay", "all.foz", "-f", "toy-one")):
        refused = kiln(*command)
        assert refused.returncode == 2
        assert "--application" in refused.stderr and "3 'Robust' (robustBufferAccess)" in refused.stderr
    assert kiln("compile", "all.foz", "-f", "toy-one", "--application", "9").returncode == 3
    chosen = ("--application", "Robust")
    for _ in range(2):
        done = kiln("compile", "all.foz", "-f", "toy-one", "-o", "out", *chosen)
        assert done.returncode == 0, done.stderr
    database = "out/all.toy-one.psdb"
    *rows, record = kiln.records("show", database, "--pipelines")
    assert [row["pipeline"] for row in rows] == [name(1)]
    assert record["identity"]["features"] == ["VkPhysicalDeviceFeatures.robustBufferAccess"]
    assert record["application"]["name"] == "Robust"
    assert kiln("verify", database, "all.foz", *chosen).returncode == 0
    assert kiln("verify", database, "all.foz").returncode == 2
    assert kiln("verify", database, "all.foz", "--application", "2").returncode == 3
    assert kiln("isa", database, name(1), "--capture", "all.foz").returncode == 0
    # A database of the other application does not take its place.
    other = kiln("compile", "all.foz", "-f", "toy-one", "-o", "out", "--application", "2")
    assert other.returncode == 3 and "features" in other.stderr
    assert kiln("compile", "all.foz", "-f", "toy-one", "-o", "plain.psdb", "--application", "2").returncode == 0


def test_salvage_keeps_what_is_good_and_names_the_rest(kiln: Kiln, tmp_path: Path) -> None:
    path = write_capture(tmp_path / "game.foz", ["code a", "code b"])
    data = bytearray(path.read_bytes())
    at = data.index(b"%024x%016x" % (Tag.SHADER_MODULE, 0x2001))
    data[at + 40 + 16 + 8] ^= 0xFF
    path.write_bytes(data)
    *ledgers, summary = kiln.records("salvage", "game.foz", "-o", "good.foz", code=1)
    (ledger,) = ledgers
    assert (ledger["entries"], ledger["kept"], ledger["dropped"]) == (6, 5, 1)
    assert "shader_module 0000000000002001" in ledger["damage"][0]
    assert (summary["entries"], summary["bytes"]) == (5, (tmp_path / "good.foz").stat().st_size)
    assert path.read_bytes() == data
    before = (tmp_path / "good.foz").stat().st_mtime_ns
    refused = kiln("salvage", "game.foz", "-o", "good.foz")
    assert refused.returncode == 5
    assert refused.stderr == (
        "kiln: error: good.foz is there already; give another name, or --replace [DXGI_ERROR_ALREADY_EXISTS]\n"
    )
    assert (tmp_path / "good.foz").stat().st_mtime_ns == before
    shown = kiln("salvage", "game.foz", "-o", "good.foz", "--replace")
    assert "game.foz: 6 entries: 5 kept, 0 duplicate, 1 dropped" in shown.stdout
    sound = kiln("salvage", "good.foz", "-o", "better.foz")
    assert sound.returncode == 0
    assert (tmp_path / "better.foz").read_bytes() == (tmp_path / "good.foz").read_bytes()
    with FossilizeArchive.open(tmp_path / "good.foz") as archive:
        assert archive.contains(Tag.SHADER_MODULE, 0x2000)
        assert not archive.contains(Tag.SHADER_MODULE, 0x2001)
