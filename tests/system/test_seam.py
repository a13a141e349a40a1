"""What only Linux or only Unix has is called by the modules of ``shaderkiln.system`` alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import shaderkiln

PACKAGE = Path(shaderkiln.__file__).parent
SYSTEM = PACKAGE / "system"

MODULES = {"ctypes", "fcntl", "grp", "msvcrt", "posix", "pty", "pwd", "resource", "termios", "winreg"}
CALLS = {
    "os": {
        "copy_file_range", "fchmod", "fchown", "fdatasync", "fork", "geteuid", "getuid", "killpg", "memfd_create", "pidfd_open",
        "posix_fadvise", "posix_fallocate", "posix_spawn", "sched_getaffinity", "sched_setaffinity", "sendfile", "setsid",
        "statvfs", "sysconf", "umask", "wait4", "waitid", "O_TMPFILE",
    },
    "signal": {"SIGALRM", "SIGKILL", "SIGUSR1", "alarm", "setitimer"},
    "mmap": {"MADV_DONTNEED", "MAP_PRIVATE", "MAP_SHARED", "PROT_READ", "PROT_WRITE"},
}  # fmt: skip
ARGUMENTS = {"preexec_fn", "process_group", "start_new_session"}


def of_one_system(source: str) -> list[str]:
    """What of a module's source other systems do not have."""
    tree = ast.parse(source)
    sentences = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = str(node.module)
            names = {alias.name for alias in node.names}
            found += [module] if module.split(".")[0] in MODULES else sorted(names & CALLS.get(module, set()))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found += [f"{node.value.id}.{node.attr}"] if node.attr in CALLS.get(node.value.id, set()) else []
        elif isinstance(node, ast.keyword):
            found += [node.arg] if node.arg in ARGUMENTS else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in sentences:
            found += [node.value] if node.value.startswith(("/proc/", "/sys/")) else []
    return found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import fcntl", ["fcntl"]),
        ("def f():\n    from ctypes.util import find_library", ["ctypes.util"]),
        ("import os\nos.killpg(1, 9)", ["os.killpg"]),
        ("from os import wait4, path", ["wait4"]),
        ("open(f'/proc/{1}/statm')", ["/proc/"]),
        ("run(start_new_session=True)", ["start_new_session"]),
        ('"""/proc/self/exe is not read here."""\nimport os\nos.getpid()', []),
    ],
)
def test_what_only_one_system_has_is_seen(source: str, found: list[str]) -> None:
    assert of_one_system(source) == found


def test_only_the_modules_of_the_seam_call_one_system() -> None:
    modules = [path for path in sorted(PACKAGE.rglob("*.py")) if not path.is_relative_to(SYSTEM)]
    assert len(modules) > 100
    found = {str(path.relative_to(PACKAGE)): of_one_system(path.read_text()) for path in modules}
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_the_seam_needs_nothing_else_of_the_package() -> None:
    for path in SYSTEM.glob("*.py"):
        assert "from shaderkiln" not in path.read_text() and "from .." not in path.read_text(), path.name
