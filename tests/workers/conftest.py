"""Makes the benches of the Direct3D 12 tests importable, and the shaders of the driver tests, which those use."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.extend(str(Path(__file__).parents[1] / folder) for folder in ("direct3d12", "drivers"))
