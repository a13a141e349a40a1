"""The way of a creation through the modules of this room: down through each one, and back."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
from device_support import Bench, text_state_object

import shaderkiln.direct3d12 as d3d12
from shaderkiln.direct3d12.statistics import ObjectSource

ROOM = "shaderkiln.direct3d12."
LANES = "shaderkiln.workers.lanes"


def module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


class Way:
    """The calls that a thread makes into ``direct3d12`` and the lanes, with the call stack of modules at each."""

    def __init__(self) -> None:
        self.stacks: list[list[str]] = []
        """Modules of the package from the outermost to the called one; neighbours that are equal are one."""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        # A session asks for the buffer of a value by a lambda, which is the end of the way.
        if event != "call" or not watched(module_of(frame)) or frame.f_code.co_name == "<lambda>":
            return
        stack: list[str] = []
        walked: FrameType | None = frame
        while walked is not None:
            name = module_of(walked)
            if name.startswith("shaderkiln.") and (not stack or stack[-1] != name):
                stack.append(name)
            walked = walked.f_back
        self.stacks.append(stack[::-1])

    def callers(self) -> dict[str, set[str]]:
        """For each module of the room, those of the room that it is called by."""
        found: dict[str, set[str]] = {}
        for stack in self.stacks:
            above = [name for name in stack if watched(name)]
            for caller, called in pairwise(above):
                found.setdefault(called, set()).add(caller)
        return found


def watched(name: str) -> bool:
    return name.startswith(ROOM) or name == LANES


def way_of(create: Callable[[], Any]) -> tuple[Way, Way, Any]:
    """The way of a call in this thread, that of threads which it starts, and what it gives."""
    mine, theirs = Way(), Way()
    threading.setprofile(theirs)
    sys.setprofile(mine)
    try:
        made = create()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return mine, theirs, made


def check(mine: Way, theirs: Way) -> None:
    for stack in mine.stacks:
        twice = [name for name, times in Counter(filter(watched, stack)).items() if times > 1]
        assert not twice, f"entered again from below: {twice} in {stack}"
    # The lanes' own threads know nothing of the room.
    assert not [stack for stack in theirs.stacks if stack[-1].startswith(ROOM)]
    # Every call of the device's module is the one from outside, and it hands over to one module only.
    callers = mine.callers()
    assert ROOM + "device" not in callers
    assert [called for called, by in callers.items() if ROOM + "device" in by] == [ROOM + "objects"]
    assert callers[ROOM + "creation"] == {ROOM + "objects"}
    assert callers[LANES] == {ROOM + "creation"}
    assert callers[ROOM + "local_cache"] <= {ROOM + "creation"}


@pytest.mark.spec("EP-04")
def test_a_miss_and_a_hit_pass_through_each_module_once_on_their_way_down(toy: Bench) -> None:
    device = toy.device()
    for source in (ObjectSource.COMPILED, ObjectSource.LOCAL_CACHE):
        mine, theirs, made = way_of(lambda: device.create_pipeline_state(toy.stream(1)))
        assert made.source is source
        check(mine, theirs)


@pytest.mark.spec("EP-01", "EP-02")
def test_so_do_objects_of_a_default_and_of_an_explicit_psdb(toy: Bench) -> None:
    toy.register(default=toy.psdb("default.psdb", [1]), DLC1=toy.psdb("dlc1.psdb", [2]))
    device = toy.device()
    session = device.create_shader_cache_session1(d3d12.RegisteredSessionDesc("DLC1"))
    for stream, source in (
        (toy.stream(1), ObjectSource.DEFAULT_PSDB),
        (toy.stream(2).with_psdb(session), ObjectSource.EXPLICIT_PSDB),
    ):
        mine, theirs, made = way_of(lambda stream=stream: device.create_pipeline_state(stream))
        assert made.source is source
        for stack in mine.stacks:
            assert max(Counter(filter(watched, stack)).values()) == 1, stack
        assert not [stack for stack in theirs.stacks if stack[-1].startswith(ROOM)]


def test_so_do_state_objects_and_their_additions(toy: Bench) -> None:
    device = toy.device()
    mine, theirs, base = way_of(lambda: device.create_state_object(text_state_object("one", "two", additions=True)))
    check(mine, theirs)
    mine, theirs, _ = way_of(lambda: device.add_to_state_object(text_state_object("three", additions=True), base))
    check(mine, theirs)


def test_no_other_module_of_the_room_knows_the_device() -> None:
    folder = Path(str(sys.modules["shaderkiln.direct3d12"].__file__)).parent
    assert isinstance(d3d12, ModuleType)
    for path in folder.glob("*.py"):
        if path.name not in ("device.py", "__init__.py"):
            text = path.read_text()
            assert "from .device import" not in text and "direct3d12.device" not in text, path.name
