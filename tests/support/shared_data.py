"""The location of the real models and images, which users do not have.

Tests that need them are skipped with that reason.
"""

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
