"""The one table from instruction to what writes its operations. It lacks nms, whose loop ends by its data."""

from __future__ import annotations

from collections.abc import Mapping

from cvm.export.mlir import arithmetic, linear, movement, reduction
from cvm.export.mlir.instruction import Writer, plain

TABLE: Mapping[str, Writer] = {
    "conv2d": linear.conv2d,
    "conv2d_transpose": linear.conv2d_transpose,
    "dense": linear.dense,
    "matmul": linear.matmul,
    "rescale": arithmetic.rescale,
    "clamp": arithmetic.clamp,
    "cast": arithmetic.cast,
    "add": plain("add"),
    "sub": plain("sub"),
    "mul": arithmetic.mul,
    "intdiv": plain("intdiv"),
    "maximum": plain("maximum"),
    "minimum": plain("minimum"),
    "abs": plain("abs"),
    "negate": arithmetic.negate,
    "shift_left": plain("logical_left_shift"),
    "shift_right": arithmetic.shift_right,
    "clz": plain("clz"),
    "isqrt": arithmetic.isqrt,
    "equal": plain("equal"),
    "greater": plain("greater"),
    "greater_equal": plain("greater_equal"),
    "logical_and": plain("logical_and"),
    "logical_or": plain("logical_or"),
    "logical_not": plain("logical_not"),
    "select": plain("select"),
    "table": arithmetic.table,
    "gather": movement.gather,
    "interpolate": arithmetic.interpolate,
    "reduce_sum": reduction.along("reduce_sum"),
    "reduce_max": reduction.along("reduce_max"),
    "reduce_min": reduction.along("reduce_min"),
    "argmax": reduction.argmax,
    "argsort": reduction.argsort,
    "max_pool2d": reduction.max_pool2d,
    "avg_pool2d": reduction.avg_pool2d,
    "reshape": movement.reshape,
    "transpose": movement.transpose,
    "concat": movement.concat,
    "slice": movement.slice_,
    "pad": movement.pad,
    "tile": movement.tile,
    "reverse": movement.reverse,
    "resize": movement.resize,
}
