"""The lock that many share or one has alone."""

from __future__ import annotations

import threading

from shaderkiln.vulkan.gate import Gate


def run(work: object) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_two_share_and_the_third_waits_to_be_alone() -> None:
    gate = Gate()
    both = threading.Barrier(3)
    leave = threading.Event()
    order: list[str] = []

    def share() -> None:
        with gate.shared():
            both.wait(5)
            leave.wait(5)
            order.append("shared")

    def be_alone() -> None:
        with gate.alone():
            order.append("alone")

    sharing = [run(share), run(share)]
    both.wait(5)  # both are inside at once
    alone = run(be_alone)
    alone.join(0.05)
    assert order == []
    leave.set()
    for thread in (*sharing, alone):
        thread.join(5)
    assert order == ["shared", "shared", "alone"]


def test_who_waits_to_be_alone_goes_before_later_sharers() -> None:
    gate = Gate()
    inside, leave = threading.Event(), threading.Event()
    order: list[str] = []

    def first() -> None:
        with gate.shared():
            inside.set()
            leave.wait(5)

    def be_alone() -> None:
        with gate.alone():
            order.append("alone")

    def later() -> None:
        with gate.shared():
            order.append("later")

    one = run(first)
    assert inside.wait(5)
    two = run(be_alone)
    while not gate._waiting:
        pass
    three = run(later)
    three.join(0.05)
    assert order == []
    leave.set()
    for thread in (one, two, three):
        thread.join(5)
    assert order == ["alone", "later"]


def test_an_error_inside_leaves_the_gate_open() -> None:
    gate = Gate()
    for enter in (gate.alone, gate.shared, gate.alone):
        try:
            with enter():
                raise ValueError
        except ValueError:
            pass
    with gate.alone():
        pass
