"""Folds booleans that hold for every input, and the Where nodes that they decide."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, bypass
from mrt.graph.values import constant, nodes, operand, shape_of
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT, put_constant


def fold_booleans(model: ir.Model) -> int:
    """Equal(x, infinity) -> false; Where(all true, x, y) -> x, Where(all false, ..) -> y.

    The chosen value is expanded to the shape of the result. Applies to known shapes.
    Equal for the finite numbers of a program: like IsInf, the comparison with infinity
    is never true.
    """
    return sum(_never_infinite(node) for node in nodes(model, "Equal")) + sum(
        map(_decided, nodes(model, "Where"))
    )


def _never_infinite(node: ir.Node) -> bool:
    shape, other = shape_of(node.outputs[0]), constant(operand(node, 1))
    if (
        shape is None
        or other is None
        or other.dtype.kind != "f"
        or not np.isinf(other).all()
    ):
        return False
    if not other.size or math.prod(shape) > LARGEST_RESULT:
        return False
    put_constant(node, np.zeros(shape, np.bool_))
    return True


def _decided(node: ir.Node) -> bool:
    condition, shape = constant(operand(node, 0)), shape_of(node.outputs[0])
    if (
        condition is None
        or not condition.size
        or shape is None
        or condition.any() != condition.all()
    ):
        return False
    chosen = operand(node, 1 if condition.all() else 2)
    if chosen is None or constant(chosen) is not None:
        return False
    if shape_of(chosen) == shape and bypass(node, chosen):
        return True
    patch = Patch(node)
    patch.finish(patch.add("Expand", chosen, patch.axes(shape, "shape")))
    return True
