"""The one table from instruction to what writes its operators. It lacks nms, whose loop ends by its data."""

from __future__ import annotations

from collections.abc import Mapping

from cvm.export.tosa import arithmetic, linear, movement, reduction
from cvm.export.tosa.instruction import Writer, plain

TABLE: Mapping[str, Writer] = {
    "conv2d": linear.conv2d,
    "conv2d_transpose": linear.conv2d_transpose,
    "dense": linear.dense,
    "matmul": linear.matmul,
    "rescale": arithmetic.rescale,
    "clamp": arithmetic.clamp,
    "cast": arithmetic.cast,
    "add": plain("ADD"),
    "sub": plain("SUB"),
    "mul": arithmetic.mul,
    "intdiv": plain("INTDIV"),
    "maximum": plain("MAXIMUM", nan_mode=1),
    "minimum": plain("MINIMUM", nan_mode=1),
    "abs": plain("ABS"),
    "negate": arithmetic.negate,
    "shift_left": plain("LOGICAL_LEFT_SHIFT"),
    "shift_right": arithmetic.shift_right,
    "clz": plain("CLZ"),
    "isqrt": arithmetic.isqrt,
    "equal": plain("EQUAL"),
    "greater": plain("GREATER"),
    "greater_equal": plain("GREATER_EQUAL"),
    "logical_and": plain("LOGICAL_AND"),
    "logical_or": plain("LOGICAL_OR"),
    "logical_not": plain("LOGICAL_NOT"),
    "select": plain("SELECT"),
    "table": arithmetic.table,
    "interpolate": arithmetic.interpolate,
    "gather": movement.gather,
    "reduce_sum": movement.along("REDUCE_SUM"),
    "reduce_max": reduction.extreme("REDUCE_MAX"),
    "reduce_min": reduction.extreme("REDUCE_MIN"),
    "argmax": reduction.argmax,
    "argsort": reduction.argsort,
    "max_pool2d": reduction.max_pool2d,
    "avg_pool2d": reduction.avg_pool2d,
    "reshape": movement.reshape,
    "transpose": movement.transpose,
    "concat": movement.along("CONCAT"),
    "slice": movement.with_shapes("SLICE", "start", "size"),
    "pad": movement.pad,
    "tile": movement.with_shapes("TILE", "multiples"),
    "reverse": movement.along("REVERSE"),
    "resize": movement.resize,
}
