"""The measured ranges of a calibration table, as `mrt calibrate` writes it: JSON, one entry a line."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cvm.errors import BadInput, brief
from cvm.file import disk
from cvm.program import Program

FORMAT = "mrt calibration table"
MOST_BYTES = 2**28
DIGEST = "table_sha256"
"""The entry of a program's provenance that names its table."""
_SHAPES = re.compile(rb'^"input_shapes": .*?(?=^")', re.DOTALL | re.MULTILINE)
"""The lines that the digest leaves out: shapes, which a program has itself. Entries follow them."""

Ranges = Mapping[str, tuple[float, float]]
"""The least and the greatest number that calibration met, by the name of a float value."""


def read_ranges(path: Path, program: Program) -> Ranges:
    """The ranges by which a program was made; BadInput for another table, or if the program names none."""
    recorded = program.metadata and program.metadata.provenance.get(DIGEST)
    if not recorded:
        raise BadInput(
            f"{path}: the program does not record its calibration table ({DIGEST} in its provenance), so none can be given"
        )
    data = disk.read_bounded(path, MOST_BYTES)
    ranges = _ranges(path, data)
    digest = hashlib.sha256(_without_shapes(data)).hexdigest()
    if digest != recorded:
        raise BadInput(
            f"{path}: has the digest {digest}; expected the table that the program was made with, {brief(recorded)}"
        )
    return ranges


def _ranges(path: Path, data: bytes) -> Ranges:
    try:
        content = json.loads(data, object_pairs_hook=_unique)
    except _TwiceError as problem:
        raise BadInput(f"{path}: {problem}; calibrate again") from None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BadInput(f"{path}: is not a '{FORMAT}'; mrt calibrate writes one")
    entries = content.get("ranges")
    if not isinstance(entries, dict):
        raise BadInput(f"{path}: has no ranges; calibrate again")
    return {name: _range(path, name, entry) for name, entry in entries.items()}


class _TwiceError(Exception):
    """A key that an object has twice, of which readers see one or the other."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries:
            raise _TwiceError(f"the key {brief(key)} is there twice")
        entries[key] = value
    return entries


def _without_shapes(data: bytes) -> bytes:
    """The bytes that are hashed: those of the table without the lines of its shapes.

    Lines that hold anything but these shapes stay, and lead to another digest.
    """
    lines = _SHAPES.search(data)
    if lines is None:
        return data
    try:
        alone = json.loads(b"{%s}" % lines[0].rstrip().removesuffix(b","))
    except ValueError:
        return data
    shapes = {"input_shapes": json.loads(data).get("input_shapes")}
    return data.replace(lines[0], b"", 1) if alone == shapes else data


def _range(path: Path, name: str, entry: Any) -> tuple[float, float]:
    """The first two of min, max, lo and hi."""
    numbers = entry if isinstance(entry, list) else []
    is_valid = len(numbers) == 4 and all(
        type(number) in (int, float) and abs(number) < 2**1023
        for number in numbers
    )
    if (
        not is_valid
        or not math.isfinite(sum(numbers))
        or numbers[0] > numbers[1]
    ):
        raise BadInput(
            f"{path}: the range of {brief(name)} is {brief(entry)}; expected finite numbers min, max, lo, hi"
        )
    return float(numbers[0]), float(numbers[1])
