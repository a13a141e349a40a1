"""What an application may declare about itself, and when."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from shaderkiln.direct3d12.application import ApplicationDesc, IdentityScope, declare, process_executable
from shaderkiln.errors import AlreadyExistsError, InvalidArgumentError, InvalidCallError
from shaderkiln.identity import ApplicationIdentity, parse_version

APP_ID = "2f1d3ad5-9c0e-4f51-8a3e-0d6b3f0f7a11"
SOURCE = str(Path(__file__).parents[2] / "src")


@pytest.mark.spec("EP-49")
def test_every_field_reaches_the_identity() -> None:
    desc = ApplicationDesc("TestGame", "testgame.exe", "1.0", "TestEngine", "4.3")
    assert desc.identity == ApplicationIdentity(
        "TestGame", "testgame.exe", 0x0001_0000_0000_0000, "TestEngine", 0x0004_0003_0000_0000
    )


@pytest.mark.spec("EP-49")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.0", 0x0001000000000000),
        ("1.93.1", 0x0001005D00010000),
        ("1.2.3.65535", 0x000100020003FFFF),
        ("281474976710656", 0x0001000000000000),
        ("0x1000000000000", 0x0001000000000000),
        ("7", 7),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_versions(text: str, value: int) -> None:
    assert ApplicationDesc("a", version=text).version == value
    assert ApplicationDesc("a", engine_name="e", engine_version=value).engine_version == value
    assert parse_version(text) == value


@pytest.mark.spec("EP-49")
@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("name", {"name": ""}),
        ("name", {"name": "a\0b"}),
        ("name", {"name": "\ud800"}),
        ("name", {"name": "a" * 40_000}),
        ("exe_filename", {"exe_filename": "folder/game.exe"}),
        ("exe_filename", {"exe_filename": ""}),
        ("version", {"version": "1.65536"}),
        ("version", {"version": "1.2.3.4.5"}),
        ("version", {"version": "one"}),
        ("version", {"version": "0x10000000000000000"}),
        ("version", {"version": 2**64}),
        ("version", {"version": -1}),
        ("engine_version", {"engine_version": "1.0"}),
        ("engine_name", {"engine_name": 5}),
    ],
)
def test_a_wrong_field_is_named(field: str, arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{field}:"):
        ApplicationDesc(**{"name": "Game", **arguments})  # type: ignore[arg-type]


@pytest.mark.spec("EP-49")
def test_set_once_and_before_the_first_device() -> None:
    scope = IdentityScope()
    assert scope.identity is None
    desc = ApplicationDesc("Game", "game.exe")
    scope.set(desc, APP_ID)
    assert scope.identity is not None
    assert scope.identity.app_id == UUID(APP_ID)
    with pytest.raises(AlreadyExistsError, match="'Game'"):
        scope.set(desc, APP_ID)
    assert scope.seal() == declare(desc, UUID(APP_ID))

    late = IdentityScope()
    assert late.seal() is None
    with pytest.raises(InvalidCallError) as caught:
        late.set(desc, APP_ID)
    assert caught.value.code == "DXGI_ERROR_INVALID_CALL"
    assert late.identity is None


@pytest.mark.spec("EP-49")
@pytest.mark.parametrize("app_id", ["no uuid", "00000000-0000-0000-0000-000000000000", UUID(int=1), None, 4])
def test_the_application_identifier_is_a_version_4_uuid(app_id: object) -> None:
    scope = IdentityScope()
    with pytest.raises(InvalidArgumentError, match=r"^app_id:"):
        scope.set(ApplicationDesc("Game", "game.exe"), app_id)  # type: ignore[arg-type]
    assert scope.identity is None


@pytest.mark.spec("EP-49")
def test_the_identity_of_a_process_and_of_one_device(tmp_path: Path) -> None:
    script = tmp_path / "game.py"
    script.write_text(
        f"""
import sys
sys.path.insert(0, {SOURCE!r})
import shaderkiln.direct3d12 as d3d12
from shaderkiln.direct3d12.application import declare, identity_for_device
from shaderkiln.errors import ShaderkilnError
own = declare(d3d12.ApplicationDesc("Tool", "tool"), {APP_ID!r})
d3d12.set_application_identity(d3d12.ApplicationDesc("Game", version="1.0"), app_id={APP_ID!r})
assert identity_for_device(own) is own
print(identity_for_device().application.name, d3d12.application_identity().application.exe_filename)
try:
    d3d12.set_application_identity(d3d12.ApplicationDesc("Game"), {APP_ID!r})
except ShaderkilnError as error:
    print(error.code)
"""
    )
    lines = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True).stdout.splitlines()
    assert lines == ["Game game.py", "DXGI_ERROR_INVALID_CALL"]


def test_a_process_without_a_script_is_its_interpreter() -> None:
    code = (
        f"import sys; sys.path.insert(0, {SOURCE!r})\n"
        "from shaderkiln.direct3d12.application import process_executable\nprint(process_executable())"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert Path(found).samefile(sys.executable)
    assert process_executable().is_absolute()


def test_names_are_imported_when_used() -> None:
    code = (
        f"import sys; sys.path.insert(0, {SOURCE!r})\nimport shaderkiln.direct3d12 as d3d12\n"
        "assert 'shaderkiln.direct3d12.application' not in sys.modules\n"
        "assert {'ApplicationDesc', 'set_application_identity'} <= set(dir(d3d12))\n"
        "d3d12.ApplicationDesc\nassert not hasattr(d3d12, 'nothing')\nassert 'apsw' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
