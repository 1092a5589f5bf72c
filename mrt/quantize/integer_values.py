"""Finds floats that are integers for any input, by the operators that compute them.

Measured ranges are not used.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of
from mrt.graph.notes import is_whole

_MAKE_INTEGER = frozenset({"Floor", "Ceil", "Round", "Sign"})
_KEEP_INTEGER = frozenset(
    {"Add", "Sub", "Mul", "Max", "Min", "Neg", "Abs", "Relu", "Clip", "ReduceSum", "ReduceMax", "ReduceMin", "Gemm",
     "MatMul", "Conv", "MaxPool", "Concat", "Reshape", "Transpose", "Slice", "Pad", "Where", "Cast", "Gather",
     "GatherElements"}
)  # fmt: skip


def always_integer(value: ir.Value | None) -> bool:
    """Whether a value is an integer for any input.

    Sums, products and choices of integers are; so are rounded numbers, values of integer
    types, integral constants and inputs that are declared whole.
    """
    waiting, visited = [value], set[int]()
    while waiting:
        operand = waiting.pop()
        if operand is None or id(operand) in visited:
            continue
        visited.add(id(operand))
        array = constant_of(operand)
        if array is not None:
            if not bool(np.all(array == np.floor(array))):
                return False
            continue
        if operand.dtype not in (None, ir.DataType.FLOAT):
            continue
        if is_whole(operand):
            continue
        node = operand.producer()
        if node is None or node.op_type not in _MAKE_INTEGER | _KEEP_INTEGER:
            return False
        if node.op_type in _KEEP_INTEGER:
            waiting += node.inputs
    return True
