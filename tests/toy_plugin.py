"""The toy compiler as a package of its own, installed beside this one, and the command line run with it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import toy_compiler

KILN = (sys.executable, "-m", "shaderkiln.cli.main")


def build_wheel(
    folder: Path, *, name: str = "toy", target: str = "toy_compiler:ToyCompiler", module: str | None = None
) -> Path:
    """A wheel with one module and an entry point of the group that plugins have."""
    source = Path(toy_compiler.__file__).read_text() if module is None else module
    info = f"{name}_compiler-1.0.dist-info"
    files = {
        f"{name}_compiler.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}-compiler\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[shaderkiln.compilers]\n{name} = {target}\n",
    }
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text.encode())}\n"
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    wheel = folder / f"{name}_compiler-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel


def install(wheel: Path, site: Path) -> None:
    """Installs a wheel into a folder, as a user would, without asking any registry."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check")
    subprocess.run([*pip, "--target", str(site), str(wheel)], check=True, timeout=60)


def search_path() -> list[str]:
    """Where this process was told to look for modules, for processes with another working folder."""
    return [str(Path(entry).absolute()) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


class Kiln:
    """``kiln`` in processes of its own: with the toy compiler, without driver packages, in an empty home and working folder."""

    def __init__(self, site: Path, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "toy.log"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": os.pathsep.join([str(site), *search_path()]),
            "TOY_LOG": str(self.log),
            "COLUMNS": "120",
            "LC_ALL": "C.UTF-8",
        }

    def start(self, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        environment = self.environment | options.pop("environment", {})
        return subprocess.Popen(
            [*KILN, *map(str, arguments)], cwd=self.folder, env=environment, encoding="utf-8", errors="surrogateescape",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **options,
        )  # fmt: skip

    def __call__(self, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs to the end, at most a minute."""
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=60)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def records(self, *arguments: object, code: int = 0) -> list[dict[str, Any]]:
        """The JSON lines of a command that must end with that exit code."""
        done = self(*arguments, "--json")
        assert done.returncode == code, done
        return [json.loads(line) for line in done.stdout.splitlines()]
