"""A run that finds everything as the last one left it takes that one's word; any file that changed makes it look again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_support import write_capture
from toy_plugin import Kiln

import shaderkiln
from shaderkiln.file_facts import facts_of


class Bench:
    """``kiln`` of a copy of the package, and a toy compiler that depends on one file, its driver."""

    def __init__(self, kiln: Kiln) -> None:
        folder = kiln.folder
        self.package = folder / "copy" / "shaderkiln"
        shutil.copytree(Path(shaderkiln.__file__).parent, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self.driver = folder / "libdriver.so"
        self.driver.write_bytes(b"\x7fELF and much more")
        (folder / ".local/share/shaderkiln/drivers").mkdir(parents=True)
        self.capture = write_capture(folder / "game.foz", ["code a", "code b"])
        kiln.environment |= {
            "PYTHONPATH": os.pathsep.join([str(self.package.parent), kiln.environment["PYTHONPATH"]]),
            "TOY_FILES": str(self.driver),
        }
        self._kiln = kiln
        assert self.looks()
        # The first one compiled: of this one everything is there.
        assert not self.looks()

    def looks(self) -> bool:
        """Whether a run looks at the capture and the compiler; it ends well in any case. A run that does renews the record."""
        before = self.record()
        done = self._kiln("compile", self.capture, "-f", "toy-one", "-o", "out")
        assert done.returncode == 0, done
        assert "2 pipelines: 2 " in done.stdout
        return self.record() != before

    def record(self) -> list[list[int] | None]:
        return [facts_of(str(path)) for path in (self._kiln.folder / ".cache").rglob("runs/*.json")]


@pytest.fixture
def bench(kiln: Kiln) -> Iterator[Bench]:
    return Bench(kiln)


MODULES = [
    "descriptions/requirements_state.py",
    "formats/fossilize_json.py",
    "drivers/marshal.py",
    "workers/pool.py",
    "cli/show.py",
]


def test_a_changed_added_or_removed_file_of_the_package_is_noticed(bench: Bench) -> None:
    for name in MODULES:
        with (bench.package / name).open("a") as module:
            module.write("# changed\n")
        assert bench.looks(), name
        assert not bench.looks(), name
    added = bench.package / "formats" / "added.py"
    added.write_text("")
    assert bench.looks()
    assert not bench.looks()
    added.unlink()
    assert bench.looks()
    assert not bench.looks()


def test_a_change_of_the_same_size_with_the_old_time_is_noticed(bench: Bench) -> None:
    path = bench.package / "drivers" / "marshal.py"
    before, text = path.stat(), path.read_text()
    with path.open("r+") as module:
        module.write(text.replace("the", "teh", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert bench.looks()


def test_code_broken_on_purpose_is_not_hidden_by_a_record(bench: Bench, kiln: Kiln) -> None:
    with (bench.package / "formats" / "fossilize_json.py").open("a") as module:
        module.write("raise RuntimeError('broken on purpose')\n")
    done = kiln("compile", bench.capture, "-f", "toy-one", "-o", "out")
    assert "broken on purpose" in done.stderr
    assert done.returncode != 0
    assert "reused" not in done.stdout


def test_a_changed_driver_is_noticed(bench: Bench) -> None:
    with bench.driver.open("r+b") as file:
        file.seek(4)
        file.write(b"!")
    assert bench.looks()
    assert not bench.looks()
    os.utime(bench.driver, (1, 1))
    assert bench.looks()
    assert not bench.looks()


def test_a_changed_capture_is_noticed(bench: Bench) -> None:
    again = bench.capture.with_name("again.foz")
    again.write_bytes(bench.capture.read_bytes())
    again.replace(bench.capture)
    assert bench.looks()
    assert not bench.looks()


def test_a_driver_that_changes_while_it_is_used_leaves_no_record(kiln: Kiln, bench: Bench) -> None:
    source = write_capture(kiln.folder / "slow.foz", ["slow 1.0"])
    process = kiln.start("compile", source, "-f", "toy-one", "-o", "slow")
    while "compile slow 1.0" not in kiln.log.read_text():
        assert process.poll() is None
    bench.driver.write_bytes(b"\x7fELF of another day")
    assert process.wait(60) == 0
    assert len(list((kiln.folder / ".cache").rglob("runs/*.json"))) == 1


def test_what_decides_which_driver_answers_is_noticed(bench: Bench, kiln: Kiln) -> None:
    manifest = kiln.folder / ".local/share/shaderkiln/drivers/another/manifest.json"
    manifest.parent.mkdir()
    manifest.write_text("{}")
    assert bench.looks()
    assert not bench.looks()
    manifest.write_text("{ }")
    assert bench.looks()
    (kiln.folder / ".drirc").write_text("<driconf/>")
    assert bench.looks()
    assert not bench.looks()
    Path(f"{bench.capture}-wal").write_text("news that are not in the file yet")
    # Such a run leaves no record either.
    before = bench.record()
    assert kiln("compile", bench.capture, "-f", "toy-one", "-o", "out").returncode == 0
    assert bench.record() == before
    Path(f"{bench.capture}-wal").unlink()
    kiln.environment["LD_LIBRARY_PATH"] = "/elsewhere"
    assert bench.looks()
    kiln.environment["PYTHONPATH"] += f":{kiln.folder}"
    assert bench.looks()
