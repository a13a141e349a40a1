"""Puts small faults into modules, one at a time, and tells which of them no test notices.

Each mutant is a process of its own, forked from one that has everything loaded but the module, into which the changed module goes
instead of the file's. Nothing is written into the source tree.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest
from operators import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    "src/shaderkiln/formats/mesa_cache.py": ("tests/formats/test_mesa_cache.py",),
    "src/shaderkiln/formats/fossilize_hash.py": (
        "tests/formats/test_fossilize_hash_members.py",
        "tests/formats/test_fossilize_hash.py",
    ),
    "src/shaderkiln/lowering/state.py": ("tests/lowering/test_lowering_states.py", "tests/lowering/test_lowering_pipelines.py"),
    "src/shaderkiln/lowering/layout.py": (
        "tests/lowering/test_lowering_layout.py",
        "tests/lowering/test_lowering_pipelines.py",
    ),
}
"""The modules that decide object code and identity, with the tests that are to notice a fault in them."""
AT_ONCE = 2
OWN = ("shaderkiln", "test_", "conftest", "__main__", "__mp_main__")
"""What a mutant loads itself: these may have loaded the module. Helpers of the tests are not found without pytest's paths."""
MEMORY = 4 << 30
"""Bytes of address space of a mutant: a loop that does not end may fill memory first."""


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module from a syntax tree instead of its file."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path, self.tree = name, path, tree

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=str(self.path))

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self.path)
        exec(compile(ast.fix_missing_locations(self.tree), str(self.path), "exec"), module.__dict__)


def run_tests(finder: Changed, mutant: Mutant | None, tests: Sequence[str], folder: str, seconds: float) -> int:
    """Fork a process that runs the tests on the module with the mutant in it; its process ID."""
    sys.stdout.flush()
    if child := os.fork():
        return child
    code = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nothing = os.open(os.devnull, os.O_WRONLY)
        if mutant is not None:
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            mutant.apply()
        sys.meta_path.insert(0, finder)
        options = [
            "-x",
            "-q",
            "--assert=plain",
            "--no-header",
            "--hypothesis-profile=mutants",
            f"--basetemp={folder}/{os.getpid()}",
        ]
        options += ["-p", "no:cacheprovider", "-p", "no:xdist"]
        code = next((int(code) for test in tests if (code := pytest.main([*options, test]))), 0)
        if mutant is None:
            Path(folder, "loaded").write_text("\n".join(name for name in sys.modules if not name.startswith(OWN)))
    finally:
        os._exit(code)


def survivors(path: Path, tests: Sequence[str], chosen: Sequence[Mutant], finder: Changed) -> list[Mutant]:
    """The mutants with which all tests pass."""
    found = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for _ in range(2):  # the second time with everything loaded that the first one loaded, as the mutants run
            started = time.monotonic()
            if os.waitpid(run_tests(finder, None, tests, folder, 600), 0)[1]:
                sys.exit(f"the tests of {path} fail without any mutant")
            for name in Path(folder, "loaded").read_text().split():
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
        seconds = max(10.0, 5 * (time.monotonic() - started))
        waiting, running = list(reversed(chosen)), dict[int, Mutant]()
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                mutant = waiting.pop()
                running[run_tests(finder, mutant, tests, folder, seconds)] = mutant
            child, status = os.waitpid(-1, 0)
            mutant = running.pop(child)
            if status == 0:
                found.append(mutant)
                print(
                    f"  {path.relative_to(ROOT)}:{mutant.line}: {mutant.before}  →  {mutant.after}", file=sys.stderr, flush=True
                )
    return sorted(found, key=lambda mutant: mutant.line)


def run_module(path: Path, tests: Sequence[str], sample: int | None, seed: int) -> dict[str, object]:
    """Run the mutants of a module. What is printed of it, as a record."""
    started = time.monotonic()
    name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    tree = ast.parse(path.read_text())
    every = mutants(tree)
    chosen = every if sample is None or sample >= len(every) else random.Random(seed).sample(every, sample)
    before = set(sys.modules)
    importlib.import_module(name)  # what it imports stays loaded
    package, _, last = name.rpartition(".")
    delattr(sys.modules[package], last)
    del sys.modules[name]
    left = survivors(path, tests, chosen, Changed(name, path, tree))
    for loaded in set(sys.modules) - before:
        if loaded.startswith("shaderkiln"):
            del sys.modules[loaded]
    return {
        "module": str(path.relative_to(ROOT)),
        "mutants": len(chosen),
        "killed": len(chosen) - len(left),
        "share": round(100 * (len(chosen) - len(left)) / max(1, len(chosen)), 1),
        "seconds": round(time.monotonic() - started),
        "survived": [{"line": mutant.line, "before": mutant.before, "after": mutant.after} for mutant in left],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="script/mutate", description=__doc__)
    parser.add_argument(
        "modules", nargs="*", type=Path, help="files in src; default: those that decide object code and identity"
    )
    parser.add_argument("--tests", nargs="+", help="test files that are to notice; needed for a module without any by default")
    parser.add_argument("--sample", type=int, metavar="N", help="only N mutants of each module")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="which N (default 0)")
    parser.add_argument("--least", type=float, default=85, metavar="PERCENT", help="fewer killed is exit code 1 (default 85)")
    parser.add_argument("--json", action="store_true", help="one JSON object a module")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    hypothesis.settings.register_profile(
        "mutants",
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=30,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    enough = True
    for given in arguments.modules or map(Path, MODULES):
        path = (ROOT / given).resolve()
        tests = arguments.tests or MODULES.get(str(path.relative_to(ROOT)))
        if not tests:
            parser.error(f"say with --tests which tests are to notice faults in {given}")
        result = run_module(path, tests, arguments.sample, arguments.seed)
        enough = enough and float(str(result["share"])) >= arguments.least
        if arguments.json:
            print(json.dumps(result))
            continue
        print("{module}: {killed} of {mutants} mutants killed, {share} %, {seconds} s".format(**result), flush=True)
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
