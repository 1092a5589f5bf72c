"""Folds NonZero and Unique of constants.

The shapes of their results depend on the values.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.values import Array, constant, first, int_attribute, nodes
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT, put_constant


def fold_nonzero_unique(model: ir.Model) -> int:
    """NonZero(constant), Unique(constant) -> constant.

    Applies where the result has elements and the operand no NaN, since NaN differs even
    from itself. Always equal.
    """
    count = 0
    for node in nodes(model, "NonZero", "Unique"):
        x = constant(first(node))
        if (
            x is None
            or x.size > LARGEST_RESULT
            or (x.dtype.kind == "f" and np.isnan(x).any())
        ):
            continue
        results = _places(x) if node.op_type == "NonZero" else _unique(node, x)
        if not results[0].size:
            continue
        put_constant(node, *results[: len(node.outputs)])
        count += 1
    return count


def _places(x: Array) -> list[Array]:
    """Return [dimensions, count of nonzero numbers], in the order of the elements."""
    return [np.array(np.nonzero(np.atleast_1d(x)), np.int64)]


def _unique(node: ir.Node, x: Array) -> list[Array]:
    """Return the four outputs of Unique.

    They are the different numbers (or slices), the index where each occurs first, for
    each element the index of its number, and how often each number occurs.
    """
    axis = int_attribute(node, "axis", 0) if "axis" in node.attributes else None
    values, firsts, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not int_attribute(node, "sorted", 1):
        order = np.argsort(firsts, kind="stable")
        values = np.take(values, order, axis=axis or 0)
        firsts = firsts[order]
        counts = counts[order]
        inverse = np.argsort(order, kind="stable")[inverse]
    return [
        values,
        *(array.astype(np.int64) for array in (firsts, inverse, counts)),
    ]
