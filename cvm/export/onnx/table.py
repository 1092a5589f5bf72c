"""The one table from instruction to what writes its nodes. It lacks nms, whose loop ends by its data."""

from __future__ import annotations

from collections.abc import Mapping

from cvm.export.onnx import arithmetic, linear, movement, reduction
from cvm.export.onnx.arithmetic import Writer, plain

TABLE: Mapping[str, Writer] = {
    "conv2d": linear.conv2d,
    "conv2d_transpose": linear.conv2d_transpose,
    "dense": linear.dense,
    "matmul": linear.matmul,
    "rescale": arithmetic.rescale,
    "clamp": arithmetic.clamp,
    "cast": arithmetic.cast,
    "add": plain("Add", "i32"),
    "sub": plain("Sub", "i32"),
    "mul": arithmetic.mul,
    "intdiv": plain("Div", "i32"),
    "maximum": plain("Max", "i32"),
    "minimum": plain("Min", "i32"),
    "abs": plain("Abs", "i32"),
    "negate": arithmetic.negate,
    "shift_left": arithmetic.shift_left,
    "shift_right": arithmetic.shift_right,
    "clz": arithmetic.clz,
    "isqrt": arithmetic.isqrt,
    "equal": plain("Equal", "i32", "bool"),
    "greater": plain("Greater", "i32", "bool"),
    "greater_equal": plain("GreaterOrEqual", "i32", "bool"),
    "logical_and": plain("And", "bool"),
    "logical_or": plain("Or", "bool"),
    "logical_not": plain("Not", "bool"),
    "select": arithmetic.select,
    "table": arithmetic.table,
    "gather": movement.gather,
    "interpolate": arithmetic.interpolate,
    "reduce_sum": reduction.along("ReduceSum"),
    "reduce_max": reduction.along("ReduceMax"),
    "reduce_min": reduction.along("ReduceMin"),
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
