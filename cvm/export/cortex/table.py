"""The one table from instruction to what writes it. It lacks what Cortex's operators cannot be made to answer."""

from __future__ import annotations

from collections.abc import Mapping

from cvm.export.cortex import (
    arithmetic,
    elements,
    linear,
    movement,
    pooling,
    reduction,
)
from cvm.export.cortex.elements import Writer, binary

TABLE: Mapping[str, Writer] = {
    "conv2d": linear.conv2d,
    "dense": linear.dense,
    "matmul": linear.matmul,
    "rescale": elements.rescale,
    "clamp": elements.clamp,
    "cast": elements.cast,
    "add": binary(arithmetic.add),
    "sub": binary(arithmetic.sub),
    "mul": elements.mul,
    "intdiv": elements.intdiv,
    "maximum": binary(arithmetic.maximum),
    "minimum": elements.minimum,
    "abs": elements.absolute,
    "negate": elements.negate,
    "shift_left": elements.shift_left,
    "shift_right": elements.shift_right,
    "clz": elements.clz,
    "equal": elements.equal,
    "greater": binary(arithmetic.greater),
    "greater_equal": elements.greater_equal,
    "logical_and": binary(arithmetic.mul),
    "logical_or": binary(arithmetic.maximum),
    "logical_not": elements.logical_not,
    "select": elements.select,
    "table": elements.table,
    "interpolate": elements.interpolate,
    "gather": movement.gather,
    "reduce_sum": reduction.reduce_sum,
    "reduce_max": reduction.reduce_max,
    "reduce_min": reduction.reduce_min,
    "argmax": reduction.argmax,
    "max_pool2d": pooling.max_pool2d,
    "avg_pool2d": pooling.avg_pool2d,
    "reshape": movement.reshape,
    "transpose": movement.transpose,
    "concat": movement.concat,
    "slice": movement.slice_,
    "pad": movement.pad,
    "tile": movement.tile,
    "reverse": movement.reverse,
    "resize": movement.resize,
}
