"""Divides values of a float model into groups, each of which memory holds at once."""

from __future__ import annotations

import math
from collections.abc import Iterable

import onnx_ir as ir

FLOAT_BYTES = 4


def in_groups(values: Iterable[ir.Value], most: int) -> list[list[str]]:
    """Return the names of the values, in groups of at most `most` bytes, or of one value."""
    groups: list[list[str]] = [[]]
    exposed = 0
    for value in values:
        size = FLOAT_BYTES * size_of(value)
        if groups[-1] and exposed + size > most:
            groups.append([])
            exposed = 0
        groups[-1].append(str(value.name))
        exposed += size
    return groups


def size_of(value: ir.Value) -> int:
    """Return the count of numbers in the value; an unknown dimension counts as 1."""
    if value.shape is None:
        return 1
    return math.prod(size for size in value.shape if isinstance(size, int))
