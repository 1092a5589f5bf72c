"""Fuses a root mean square normalization into a layer normalization of the row and its negative."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, producer, scalar, shape_of
from mrt.rewrite.normalization.fuse_normalization import (
    mean_of_squares,
    without_epsilon,
)
from mrt.rewrite.normalization.normalized import add_normalized


def fuse_rms_normalization(model: ir.Model) -> int:
    """x / Sqrt(mean(x * x) + e), x * (1 / Sqrt(..)) -> the first half of LayerNormalization(Concat(x, -x)).

    The mean of a row and its negative is 0 and their variance the mean of squares, so that this is equal up to
    rounding. Applies to means over the last axis. Each row then has a scale of its own in integers, where squares and
    their root at one scale for all rows would lose the small ones.
    """
    matches = [_normalized(node) for node in nodes(model, "Div", "Mul")]
    for node, x, epsilon in filter(None, matches):
        _replace(node, x, epsilon)
    return len([match for match in matches if match])


def _normalized(node: ir.Node) -> tuple[ir.Node, ir.Value, float] | None:
    """The node, the value that it normalizes and the epsilon; None if it is no such node."""
    for place in (0, 1):
        x, factor = node.inputs[place], node.inputs[1 - place]
        if x is None or (node.op_type == "Div" and place == 1):
            continue
        root = factor if node.op_type == "Div" else _inverted(factor)
        epsilon = None if root is None else _epsilon_of(root, x)
        if epsilon is not None and shape_of(node.outputs[0]) == shape_of(x):
            return node, x, epsilon
    return None


def _inverted(value: ir.Value | None) -> ir.Value | None:
    """The value whose reciprocal this is."""
    node = producer(value, "Div")
    if node is None or scalar(first(node)) != 1.0:
        return None
    return node.inputs[1]


def _epsilon_of(value: ir.Value, x: ir.Value) -> float | None:
    """The epsilon under a root of the mean of x's squares along the last axis; None if it is none."""
    root, shape = producer(value, "Sqrt"), shape_of(x)
    if root is None or not shape or shape_of(value) != (*shape[:-1], 1):
        return None
    mean, epsilon = without_epsilon(first(root))
    axes = (len(shape) - 1,)
    return epsilon if mean_of_squares(mean, axes) is x else None


def _replace(node: ir.Node, x: ir.Value, epsilon: float) -> None:
    shape = shape_of(x)
    assert shape
    patch, last = Patch(node), len(shape) - 1
    both = patch.add("Concat", x, patch.add("Neg", x), axis=last)
    doubled = (*shape[:-1], 2 * shape[-1])
    value = add_normalized(patch, both, doubled, (last,), epsilon)
    patch.finish(patch.slice(value, last, 0, shape[-1]))
