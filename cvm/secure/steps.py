"""A table as a sum of comparisons, and how many of these it takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.program import DTYPE_RANGES, IntArray
from cvm.reference.call import Call


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
