"""Finds what gives the columns of an input table one size, and so must stay in front of products.

Weights could absorb it, but 8 bits of the table itself hold only its greatest columns.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.values import (
    SEQUENCE_RANK,
    TABLE_RANK,
    constant,
    first,
    shape_of,
)
from mrt.rewrite.linear.affine import Affine

UNEVEN = 4
"""The greatest scale of a column over the least, beyond which the columns of a table differ."""
_OF_TABLES = frozenset(
    {"Add", "Concat", "Gather", "Mul", "Slice", "Sub", "Transpose", "Where"}
)
_FUNCTIONS = frozenset({"Clip", "Log", "Sqrt"})
"""What is often taken of a column, in front of a scaler."""


def evens_columns(node: ir.Node, affine: Affine) -> bool:
    """Whether a node gives columns of very different sizes one size, in a table [N, C] or sequences that are an input."""
    shape = shape_of(node.outputs[0])
    if shape is None or len(shape) not in (TABLE_RANK, SEQUENCE_RANK):
        return False
    sizes = np.abs(affine.scale)
    return bool(sizes.max() > UNEVEN * sizes.min()) and _is_table(first(node))


def _is_table(value: ir.Value) -> bool:
    """Whether a value is an input, columns of some, or what movements, constants and functions of one column make of these."""
    waiting, visited = [value], set[ir.Value]()
    while waiting:
        current = waiting.pop()
        if current in visited or constant(current) is not None:
            continue
        visited.add(current)
        producer = current.producer()
        if producer is None:
            continue
        if producer.op_type not in _OF_TABLES | _FUNCTIONS:
            return False
        condition = 1 if producer.op_type == "Where" else 0
        sources = producer.inputs[condition:]
        waiting += [source for source in sources if source is not None]
    return True
