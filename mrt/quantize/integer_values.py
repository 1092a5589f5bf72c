"""Floats that are whole numbers whatever the inputs are: what says so is how they are made, not what calibration saw."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of

_MAKE_INTEGER = frozenset({"Floor", "Ceil", "Round", "Sign"})
_KEEP_INTEGER = frozenset(
    {"Add", "Sub", "Mul", "Max", "Min", "Neg", "Abs", "Relu", "Clip", "ReduceSum", "ReduceMax", "ReduceMin", "Gemm",
     "MatMul", "Conv", "MaxPool", "Concat", "Reshape", "Transpose", "Slice", "Pad", "Where", "Cast", "Gather",
     "GatherElements"}
)  # fmt: skip


def always_integer(value: ir.Value | None) -> bool:
    """Whether a value is whole: a sum, product or choice of whole ones is, down to rounded, counted and constant numbers."""
    waiting, seen = [value], set[int]()
    while waiting:
        item = waiting.pop()
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        array = constant_of(item)
        if array is not None:
            if not bool(np.all(array == np.floor(array))):
                return False
            continue
        if item.dtype not in (None, ir.DataType.FLOAT):
            continue
        node = item.producer()
        if node is None or node.op_type not in _MAKE_INTEGER | _KEEP_INTEGER:
            return False
        if node.op_type in _KEEP_INTEGER:
            waiting += node.inputs
    return True
