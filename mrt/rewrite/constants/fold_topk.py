"""Folds TopK of a constant, as of the lengths of sequences that --value fixes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.values import (
    Array,
    constant,
    first,
    int_attribute,
    nodes,
    operand,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT, put_constant


def fold_topk(model: ir.Model) -> int:
    """TopK(constant, k) -> constant, sorted; of equal elements the first comes first.

    Applies to numbers without NaN. Always equal, except that a TopK that may return its
    elements in any order returns them sorted.
    """
    count = 0
    for node in nodes(model, "TopK"):
        x, counts = constant(first(node)), constant(operand(node, 1))
        if x is None or counts is None or not x.ndim or x.size > LARGEST_RESULT:
            continue
        if x.dtype.kind == "f" and np.isnan(x).any():
            continue
        axis = int_attribute(node, "axis", -1) % x.ndim
        k = int(counts.reshape(-1)[0])
        if 0 <= k <= x.shape[axis]:
            put_constant(node, *_greatest(node, x, axis, k))
            count += 1
    return count


def _greatest(node: ir.Node, x: Array, axis: int, k: int) -> list[Array]:
    """Return the first `k` numbers of each row in order, and their indices."""
    if int_attribute(node, "largest", 1):
        # The last of equal elements of a reversed row is the first of the row.
        backwards = np.argsort(np.flip(x, axis), axis, kind="stable")
        order = x.shape[axis] - 1 - np.flip(backwards, axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    indices = np.take(order, range(k), axis)
    return [np.take_along_axis(x, indices, axis), indices.astype(np.int64)]
