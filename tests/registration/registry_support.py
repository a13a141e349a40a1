"""What the registration tests share."""

from __future__ import annotations

from pathlib import Path

from shaderkiln.databases.psdb import PsdbBuilder
from shaderkiln.identity import ApplicationIdentity, CompilerIdentity

SOURCE = str(Path(__file__).parents[2] / "src")
GAME = ApplicationIdentity("Game", "game.exe", 0x0001_0002_0003_0004, "Engine", (1 << 64) - 2)


def psdb(path: Path, family: str = "amd-navi31", abi: int = 5 << 48, profile: int = 1 << 32) -> Path:
    """An empty but real PSDB made for that compiler."""
    identity = CompilerIdentity(
        family=family,
        vendor_id=0x1002,
        device_id=0x744C,
        driver_id=3,
        driver_name="radv",
        driver_version=1,
        driver_build="build",
        abi_version=abi,
        compiler_version="1",
        application_profile_version=profile,
        cache_uuid=bytes(16),
        global_key=b"",
        object_code_form="pipeline-binary",
        features=(),
        pointer_bits=64,
    )
    with PsdbBuilder(path, identity, GAME) as builder:
        builder.finish()
    return path
