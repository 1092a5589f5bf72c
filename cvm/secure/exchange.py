"""What the command and the process that has SPU exchange: lines of JSON, and arrays in files of one folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cvm.file import npy
from cvm.program import IntArray

PROGRAM, JOB, LOG = "program.cvm", "job.json", "spu.log"


def line_of(content: Mapping[str, Any]) -> bytes:
    """One message."""
    return json.dumps(content).encode() + b"\n"


def content_of(line: bytes) -> dict[str, Any]:
    """What a message holds; empty for a line that is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def write_arrays(path: Path, arrays: list[IntArray]) -> None:
    """Arrays by place."""
    named = {str(place): array for place, array in enumerate(arrays)}
    with path.open("wb") as file:
        npy.write_npz(file, named)


def read_arrays(path: Path) -> list[IntArray]:
    """What `write_arrays` wrote."""
    with np.load(path, allow_pickle=False) as found:
        return [found[str(place)] for place in range(len(found.files))]
