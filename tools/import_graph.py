#!/usr/bin/env python3
"""The import graph of the package: which room uses which, and whether that is as docs/architecture.md says.

    tools/import_graph.py            a table of the rooms, and every fault; exit code 1 if there is one
    tools/import_graph.py --dot      the rooms as a Graphviz picture

A room is a folder of the package, or a module of its top. The document's table of rooms gives their order: a room uses those below
it. An import that goes up, or a circle of files inside a room, is a fault unless the document's list of exceptions names it, as
``- `from.module` → `to.module`: reason``. Imports inside functions and under TYPE_CHECKING count too, and so do modules that are
named in a string to be imported later.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = "shaderkiln"
ROW = re.compile(r"^\| ((?:`[\w/.]+`(?:, )?)+) \|", re.MULTILINE)
EXCEPTION = re.compile(r"^- `([\w.]+)` → `([\w.]+)`: \S", re.MULTILINE)

Edge = tuple[str, str]


def modules_of(source: Path) -> dict[str, Path]:
    """Every module below the package's folder by its name without the package's: ``formats.spirv``; ``""`` for the package."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(module: str, path: Path, modules: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """The modules that one module names, and whether only in a string."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    package = [part for part in package if part]
    known = set(modules)

    def resolved(name: str) -> str | None:
        if name == PACKAGE or name.startswith(f"{PACKAGE}."):
            name = name.removeprefix(PACKAGE).removeprefix(".")
            while name not in known:
                name = name.rpartition(".")[0]
            return name
        return None

    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([PACKAGE, *above, *filter(None, [node.module])]) if node.level else node.module or ""
            # What a package's face re-exports lies in a module of its own only if there is one of that name.
            names = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.partition(":")[0]
            if text.startswith(f"{PACKAGE}.") and text.removeprefix(f"{PACKAGE}.") in known:
                yield text.removeprefix(f"{PACKAGE}."), True
        for name in names:
            if (found := resolved(name)) is not None and found != module:
                yield found, False


def room_of(module: str) -> str:
    """``formats`` for ``formats.spirv``, ``errors`` for ``errors``, the package's name for the package itself."""
    return module.partition(".")[0] or PACKAGE


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected parts of more than one node (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = stack[stack.index(node) :]
            del stack[-len(part) :]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def check(source: Path, document: Path) -> tuple[dict[Edge, int], list[str]]:
    """How often each room imports from each other one, and the faults in words."""
    text = document.read_text()
    order = [name.strip("`").removesuffix("/").removesuffix(".py") for row in ROW.findall(text) for name in row.split(", ")]
    place = {room: number for number, room in enumerate(order)}
    excepted = set(EXCEPTION.findall(text))
    modules = modules_of(source)
    faults = [f"{room} is in no row of the table of rooms" for room in sorted({room_of(m) for m in modules} - place.keys())]
    faults += [
        f"the table of rooms has {room}, which is not there" for room in sorted(place.keys() - {room_of(m) for m in modules})
    ]
    rooms: defaultdict[Edge, int] = defaultdict(int)
    inside: defaultdict[str, set[str]] = defaultdict(set)
    between: defaultdict[str, set[str]] = defaultdict(set)
    used = set()
    for module, path in modules.items():
        for other, named in set(imports_of(module, path, modules)):
            here, there = room_of(module), room_of(other)
            if here != there:
                rooms[here, there] += 1
            if (module, other) in excepted:
                used.add((module, other))
            elif here != there:
                between[here].add(there)
                if place.get(there, -1) <= place.get(here, len(place)):
                    faults.append(f"{module} imports {other}: {there} is not below {here}")
            elif not named and "." in other and "." in module:
                # A package's face names what is in it, and what is in it is loaded through it.
                inside[module].add(other)
    faults += [f"a circle of files: {', '.join(part)}" for part in circles(inside)]
    faults += [f"a circle of rooms: {', '.join(part)}" for part in circles(between)]
    faults += [f"the document excepts {a} → {b}, which is no import" for a, b in sorted(excepted - used)]
    return dict(rooms), sorted(faults)


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    rooms, faults = check(root / "src" / PACKAGE, root / "docs" / "architecture.md")
    if "--dot" in sys.argv[1:]:
        print("digraph rooms {")
        for (here, there), count in sorted(rooms.items()):
            print(f'  "{here}" -> "{there}" [label={count}];')
        print("}")
    else:
        for here in sorted({here for here, _ in rooms}):
            used = ", ".join(f"{there} {count}" for (one, there), count in sorted(rooms.items()) if one == here)
            print(f"{here}: {used}")
    for fault in faults:
        print(f"fault: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
