"""Inputs that are whole numbers: which integers the program takes for them.

The rewritten model says on an input what it is for: "mrt.indices" is the interval of the axis that it looks things up in
(places from behind only if calibration saw some), "mrt.compared" that of the constants it is held against. Without a word
the interval is what calibration saw.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from cvm.program import DTYPE_RANGES
from mrt.graph.canonical_values import name_of
from mrt.graph.notes import compared_of, indices_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.tensor import Format

_DTYPES = {
    ir.DataType.BOOL: ("bool", 0, 1),
    ir.DataType.UINT8: ("u8", 0, 255),
    ir.DataType.INT8: ("i8", -128, 127),
    ir.DataType.INT16: ("i16", -(2**15), 2**15 - 1),
    ir.DataType.UINT16: ("i32", 0, 2**16 - 1),
    ir.DataType.UINT32: ("i32", 0, 2**31 - 1),
    ir.DataType.UINT64: ("i32", 0, 2**31 - 1),
}


def input_interval(net: LoweringContext, value: ir.Value) -> Format | None:
    """The dtype and interval of a whole input, at scale 1; None for an input of floats that are not cut to whole ones."""
    indices = indices_of(value)
    if (
        value.dtype == ir.DataType.FLOAT
        and indices is None
        and compared_of(value) is None
    ):
        return None
    dtype, low, high = _DTYPES.get(
        value.dtype or ir.DataType.FLOAT, ("i32", *DTYPE_RANGES["i32"])
    )
    seen = net.table.ranges.get(name_of(value))
    if indices is not None:
        from_behind = seen is not None and seen.min < 0
        low, high = max(low, indices[0] if from_behind else 0), min(high, indices[1])
    elif dtype == "i32":
        low, high = _seen(net, value, low, high)
    return Format(dtype, 1.0, 0, low, high)


def _seen(
    net: LoweringContext, value: ir.Value, low: int, high: int
) -> tuple[int, int]:
    """What calibration saw, and what the model compares with; a little less would still be a guess."""
    seen, compared = net.table.ranges.get(name_of(value)), compared_of(value)
    ends = [seen.min, seen.max] if seen is not None else []
    ends += compared or ()
    if not ends:
        return low, high
    return max(low, math.floor(min(ends))), min(high, math.ceil(max(ends)))
