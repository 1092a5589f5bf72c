"""Tables and interpolations as sums of comparisons, and how many of these they take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.program import DTYPE_RANGES, IntArray
from cvm.reference.call import Call
from cvm.reference.lookup import SEGMENT


@dataclass(frozen=True, eq=False)
class TableSteps:
    """`first`, plus the sum of those `jumps` whose place x is beyond."""

    first: int
    places: IntArray
    jumps: IntArray


def steps_of(call: Call) -> TableSteps:
    """Where the entries of a table change, within the interval of its operand."""
    least = DTYPE_RANGES[call.types[0].dtype][0]
    low, high = call.bounds[0].min, call.bounds[0].max
    entries = call.constant(1)[low - least : high - least + 1].astype(np.int64)
    jumps = np.diff(entries)
    changes = np.flatnonzero(jumps)
    return TableSteps(int(entries[0]), changes + low, jumps[changes])


@dataclass(frozen=True, eq=False)
class LineSteps:
    """Lines slope * x + start: the first of each, and what changes at those places that x is beyond."""

    first: tuple[int, int]  # slope and start
    places: IntArray
    jumps: tuple[IntArray, IntArray]  # of the slope and of the start


def lines_of(call: Call) -> LineSteps:
    """Where the lines of `interpolate` bend, within the interval of its operand."""
    low, high = (
        end + 2**15 for end in (call.bounds[0].min, call.bounds[0].max)
    )
    points = call.constant(1).astype(np.int64)
    lines = np.arange(low // SEGMENT, high // SEGMENT + 1)
    slopes = points[lines + 1] - points[lines]
    starts = SEGMENT * points[lines] + slopes * (2**15 - SEGMENT * lines)
    bends = np.flatnonzero(np.diff(slopes))
    return LineSteps(
        (int(slopes[0]), int(starts[0])),
        SEGMENT * lines[bends + 1] - 2**15 - 1,
        (np.diff(slopes)[bends], np.diff(starts)[bends]),
    )


def comparisons_of(call: Call) -> int:
    """How many comparisons an element of a table's or an interpolation's operand takes."""
    steps = steps_of(call) if call.name == "table" else lines_of(call)
    return len(steps.places)
