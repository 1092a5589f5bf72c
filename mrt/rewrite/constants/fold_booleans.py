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

    Of booleans: And(x, all true), Or(x, all false), Equal(x, all true) -> x; And(x, all
    false) -> false, Or(x, all true) -> true.

    The chosen value is expanded to the shape of the result. Applies to known shapes.
    Equal for the finite numbers of a program: like IsInf, the comparison with infinity
    is never true.
    """
    never = [_never_infinite(node) for node in nodes(model, "Equal")]
    known = [_known(node) for node in nodes(model, *_KEEPS)]
    chosen = [_decided(node) for node in nodes(model, "Where")]
    return sum(never) + sum(known) + sum(chosen)


_KEEPS = {"And": True, "Or": False, "Equal": True}
"""The second operand that leaves the first as it is."""


def _known(node: ir.Node) -> bool:
    x, other = node.inputs[0], _boolean_everywhere(operand(node, 1))
    if other is None or constant(x) is not None:
        return False
    if other == _KEEPS[node.op_type]:
        return _becomes(node, x)
    shape = shape_of(node.outputs[0])
    if node.op_type == "Equal" or shape is None:
        return False
    return _becomes_all(node, shape, other)


def _boolean_everywhere(value: ir.Value | None) -> bool | None:
    """Return the one boolean that a constant holds; None for another value."""
    array = constant(value)
    if array is None or array.dtype.kind != "b" or not array.size:
        return None
    return bool(array.all()) if array.any() == array.all() else None


def _becomes_all(node: ir.Node, shape: tuple[int, ...], boolean: bool) -> bool:
    """Put one boolean everywhere in the place of a result, if that is not too large."""
    if math.prod(shape) > LARGEST_RESULT:
        return False
    put_constant(node, np.full(shape, boolean))
    return True


def _becomes(node: ir.Node, value: ir.Value | None) -> bool:
    """Put an operand, expanded to the shape of the result, in its place."""
    shape = shape_of(node.outputs[0])
    if value is None or shape is None:
        return False
    if shape_of(value) == shape and bypass(node, value):
        return True
    patch = Patch(node)
    patch.finish(patch.add("Expand", value, patch.axes(shape, "shape")))
    return True


def _never_infinite(node: ir.Node) -> bool:
    shape, other = shape_of(node.outputs[0]), constant(operand(node, 1))
    if (
        shape is None
        or other is None
        or other.dtype.kind != "f"
        or not np.isinf(other).all()
    ):
        return False
    return bool(other.size) and _becomes_all(node, shape, False)


def _decided(node: ir.Node) -> bool:
    condition = _boolean_everywhere(operand(node, 0))
    if condition is None:
        return False
    chosen = operand(node, 1 if condition else 2)
    return constant(chosen) is None and _becomes(node, chosen)
