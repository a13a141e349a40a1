"""One translator for all tests of the folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shaderkiln.errors import NotFoundError
from shaderkiln.shaders.package import NAME, TranslatorPackage, TranslatorPackages
from shaderkiln.shaders.translator import Translator


@pytest.fixture(scope="session")
def translator_package() -> TranslatorPackage:
    """The package that this user has; one that reads DXIL."""
    try:
        package = TranslatorPackages().get(NAME)
    except NotFoundError:
        pytest.skip(f"needs the shader translator: kiln drivers add {NAME}")
    if package.notice:
        pytest.skip(package.notice)
    return package


@pytest.fixture(scope="session")
def translator(translator_package: TranslatorPackage) -> Iterator[Translator]:
    with Translator(translator_package) as translator:
        yield translator
