"""Lowers division by a constant to multiplication."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.operators import ROUNDINGS
from mrt.graph.patch import Patch
from mrt.graph.values import constant, nodes, shape_of
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT, put_constant


def lower_div(model: ir.Model) -> int:
    """Div(x, k) -> Mul(x, 1/k); Div(x, x) -> 1, as scikit-learn's converter writes ones.

    1/k is computed in float64 and rounded once. Applies when every 1/k is a finite
    float32; not where k is one number and the quotient is rounded to an integer, which
    the rounding of 1/k could change: there x takes the shape of the result, as a function
    of one value does. Equal to one rounding of float32; 0 / 0 is NaN,
    which no program has, and `lower_is_nan` has seen before.
    """
    count = 0
    for node in nodes(model, "Div"):
        x, y = node.inputs
        if node.outputs[0].dtype not in (None, ir.DataType.FLOAT):
            continue
        if x is y and constant(x) is None and _becomes_one(node):
            count += 1
            continue
        divisor = constant(y)
        if divisor is None or divisor.dtype.kind != "f":
            continue
        if divisor.size == 1 and _is_cut(node):
            count += _in_shape_of_result(node)
            continue
        with np.errstate(all="ignore"):
            inverse = (1.0 / divisor.astype(np.float64)).astype(np.float32)
        if not np.isfinite(inverse).all():
            continue
        patch = Patch(node)
        patch.finish(patch.add("Mul", x, patch.constant(inverse, "inverse")))
        count += 1
    return count


def _in_shape_of_result(node: ir.Node) -> bool:
    """Reshape x where a divisor of one number has more axes."""
    x, divisor = node.inputs
    shape = shape_of(node.outputs[0])
    if shape is None or shape_of(x) in (shape, None):
        return False
    patch = Patch(node)
    reshaped = patch.add("Reshape", x, patch.axes(shape, "shape"))
    patch.finish(patch.add("Div", reshaped, divisor))
    return True


def _becomes_one(node: ir.Node) -> bool:
    """Put ones in the place of x / x, if there are not too many."""
    shape = shape_of(node.outputs[0])
    if shape is None or math.prod(shape) > LARGEST_RESULT:
        return False
    put_constant(node, np.ones(shape, np.float32))
    return True


def _is_cut(node: ir.Node) -> bool:
    """Whether a reader of the result rounds it to an integer or casts it."""
    return any(
        use.node.op_type in ROUNDINGS or use.node.op_type == "Cast"
        for use in node.outputs[0].uses()
    )
