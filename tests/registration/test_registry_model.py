"""Any sequence of calls leaves the registry as an ordinary dictionary would be; two writers and a killed one too."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from registry_support import SOURCE

from shaderkiln.errors import AlreadyExistsError, NotFoundError
from shaderkiln.identity import ApplicationIdentity
from shaderkiln.registration.explorer import Explorer
from shaderkiln.registration.installer import Installer
from shaderkiln.registration.records import Component, PsdbProperties, RegisteredApplication, RegistryBusyError, Scope

INSTALLERS = ("Store", "Launcher")
executables = st.sampled_from([Path(f"/games/{letter}") for letter in "abc"])
installers = st.sampled_from(INSTALLERS)
names = st.sampled_from(["default", "DLC1", "Ünïcode ✓", "'; DROP TABLE psdbs; --"])
versions = st.integers(0, (1 << 64) - 1)
identities = st.builds(
    ApplicationIdentity,
    name=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
    exe_filename=st.sampled_from(["", "game.exe"]),
    version=versions,
    engine_name=st.sampled_from(["", "Engine"]),
    engine_version=versions,
)
psdbs = st.lists(
    st.builds(PsdbProperties, st.sampled_from(["amd-navi31", "intel-dg2"]), st.sampled_from([Path("/p/1"), Path("/p/2")])),
    max_size=4,
)


class RegistryMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "registry.sqlite"
        self.open: dict[str, Installer] = {}
        self.model: dict[Path, tuple[str, ApplicationIdentity, dict[str, Component]]] = {}

    def teardown(self) -> None:
        for installer in self.open.values():
            installer.close()
        self.folder.cleanup()

    def installer(self, name: str) -> Installer:
        if name not in self.open:
            self.open[name] = Installer.open(name, registry=self.path)
        return self.open[name]

    @rule(name=installers)
    def reopen(self, name: str) -> None:
        with pytest.raises(RegistryBusyError):
            self.installer(name) and Installer.open(name, registry=self.path)
        self.open.pop(name).close()

    @rule(name=installers, path=executables, identity=identities)
    def register(self, name: str, path: Path, identity: ApplicationIdentity) -> None:
        if path in self.model and self.model[path][0] != name:
            with pytest.raises(AlreadyExistsError):
                self.installer(name).register_application(path, identity)
            return
        self.installer(name).register_application(path, identity)
        self.model[path] = (name, identity, self.model[path][2] if path in self.model else {})

    @rule(name=installers, path=executables)
    def remove(self, name: str, path: Path) -> None:
        if path in self.model and self.model[path][0] == name:
            self.installer(name).remove_application(path)
            del self.model[path]
        else:
            with pytest.raises(NotFoundError):
                self.installer(name).remove_application(path)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), component=names, list_=psdbs)
    def register_component(self, data: st.DataObject, component: str, list_: list[PsdbProperties]) -> None:
        path = data.draw(st.sampled_from(sorted(self.model)))
        made = self.installer(self.model[path][0]).register_component(path, component, "/s.sodb", list_)
        assert made == Component(component, Path("/s.sodb"), tuple(list_))
        self.model[path][2][component] = made

    @precondition(lambda self: self.model)
    @rule(data=st.data(), component=names)
    def remove_component(self, data: st.DataObject, component: str) -> None:
        path = data.draw(st.sampled_from(sorted(self.model)))
        installer = self.installer(self.model[path][0])
        if self.model[path][2].pop(component, None):
            installer.remove_component(path, component)
        else:
            with pytest.raises(NotFoundError):
                installer.remove_component(path, component)

    @rule(name=installers)
    def clear(self, name: str) -> None:
        self.installer(name).clear_all_state()
        self.model = {path: entry for path, entry in self.model.items() if entry[0] != name}

    @invariant()
    def same(self) -> None:
        expected = [
            RegisteredApplication(path, identity, owner, Scope.USER, tuple(components[key] for key in sorted(components)))
            for path, (owner, identity, components) in sorted(self.model.items())
        ]
        assert list(Explorer([(Scope.USER, self.path)]).applications()) == expected
        for name, installer in self.open.items():
            assert list(installer.applications()) == [each for each in expected if each.installer == name]


TestRegistry = pytest.mark.spec("EP-50", "AL-03")(RegistryMachine.TestCase)
TestRegistry.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)

WRITER = f"""
import json, random, sys
sys.path[:0] = [{str(Path(__file__).parent)!r}, {SOURCE!r}]
from pathlib import Path
from registry_support import GAME
from shaderkiln.registration.installer import Installer
from shaderkiln.registration.records import PsdbProperties
name, rounds = sys.argv[2], int(sys.argv[3])
with Installer.open(name, registry=Path(sys.argv[1])) as installer:
    print("open", flush=True)
    for number in range(rounds):
        game = f"/games/{{name}}/{{number % 5}}"
        installer.register_application(game, GAME)
        # The number is in every part, so that a torn change would show.
        installer.register_component(game, "default", f"/{{number}}.sodb", [PsdbProperties("f", Path(f"/{{number}}.psdb"))] * 20)
        print(number, flush=True)
"""


def check(path: Path) -> dict[str, int]:
    """The number in each application, equal in all of its parts."""
    found = {}
    for application in Explorer([(Scope.USER, path)]).applications():
        for component in application.components:
            numbers = {
                int(component.state_object_database.stem),
                *(int(p.path.stem) for p in component.precompiled_shader_databases),
            }
            assert len(numbers) == 1
            assert len(component.precompiled_shader_databases) == 20
            found[str(application.executable)] = numbers.pop()
    return found


@pytest.mark.spec("EP-50", "AL-03")
def test_two_processes_write_while_one_reads(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite"
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, "60"], stdout=subprocess.DEVNULL) for name in "ab"
    ]
    reads = 0
    while any(process.poll() is None for process in processes):
        check(path)
        reads += 1
    assert [process.returncode for process in processes] == [0, 0]
    assert reads > 0
    assert check(path) == {f"/games/{name}/{slot}": 55 + slot for name in "ab" for slot in range(5)}


@pytest.mark.spec("EP-50", "AL-03")
def test_a_writer_killed_at_any_moment_loses_nothing_and_frees_its_name(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite"
    source = random.Random(3)
    stored: dict[str, int] = {}
    for _ in range(12):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path), "a", "100000"], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        time.sleep(source.random() * 0.15)
        os.kill(process.pid, signal.SIGKILL)
        told = [int(line) for line in process.stdout.read().split("\n")[:-1]]
        process.wait()
        found = check(path)
        stored |= {f"/games/a/{number % 5}": number for number in told}
        for executable, number in stored.items():
            # The change in hand may be there as well, though nobody was told.
            assert found[executable] == number or found[executable] == (told[-1] + 1 if told else 0)
        stored = dict(found)
        with Installer.open("a", registry=path) as installer:
            assert json.dumps([str(each.executable) for each in installer.applications()])
