"""Where the real models and images lie that users do not have; tests that need them skip and say so."""

import os
from pathlib import Path

import pytest

SHARED = (
    Path(
        os.environ.get(
            "MRT_SHARED", Path(__file__).resolve().parents[3] / "shared"
        )
    )
    / "data"
)

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(),
    reason="the folder of real models and images is absent (set MRT_SHARED to its parent)",
)
