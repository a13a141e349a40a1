"""``examples/make_sodb.py`` as a module, for tests that need its shaders, root signatures or database."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

_PATH = Path(__file__).resolve().parents[1] / "examples" / "make_sodb.py"
_SPEC = importlib.util.spec_from_file_location("make_sodb", _PATH)
assert _SPEC is not None and _SPEC.loader is not None
example: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(example)
