"""Lowers Expand and Tile to a Concat of copies of a value."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch, bypass
from mrt.graph.values import constant, first, nodes, shape_of

MOST_OPERANDS = 256
"""Of a Concat: more would make the graph large."""
MOST_COPIES = MOST_OPERANDS**2
"""Along an axis, by a Concat of Concats. A node with more stays, so that the check of the canonical form refuses it by name."""

_BROADCASTING = (
    "Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or",
)  # fmt: skip


def lower_expand(model: ir.Model) -> int:
    """Expand, Tile -> a Concat of copies for each axis that grows.

    The node is removed instead where all its readers broadcast. Applies to computed
    values of known shape and at most MOST_COPIES copies along an axis. Always equal.
    """
    count = 0
    for node in nodes(model, "Expand", "Tile"):
        x, y = shape_of(first(node)), shape_of(node.outputs[0])
        if (
            x is None
            or y is None
            or x == y
            or 0 in y
            or constant(first(node)) is not None
        ):
            continue
        aligned = (1,) * (len(y) - len(x)) + x
        if all(
            small in (1, large) for small, large in zip(aligned, y, strict=True)
        ) and _is_needless(node, x):
            bypass(node, first(node))
        elif all(
            large // small <= MOST_COPIES
            for small, large in zip(aligned, y, strict=True)
        ):
            _copy(node, aligned, y)
        else:
            continue
        count += 1
    return count


def _is_needless(node: ir.Node, x: tuple[int, ...]) -> bool:
    """Whether every reader has a result of the same shape without the node."""
    output = node.outputs[0]
    if output.is_graph_output():
        return False
    for use in output.uses():
        others = [
            shape_of(value) for value in use.node.inputs if value is not output
        ]
        if (
            use.node.op_type not in _BROADCASTING
            or len(others) != 1
            or others[0] is None
        ):
            return False
        if np.broadcast_shapes(x, others[0]) != shape_of(use.node.outputs[0]):
            return False
    return True


def _copy(node: ir.Node, x: tuple[int, ...], y: tuple[int, ...]) -> None:
    patch = Patch(node)
    value = first(node)
    if shape_of(value) != x:
        value = patch.add(
            "Reshape", value, patch.axes(x, "aligned"), allowzero=0
        )
    for axis, (small, large) in enumerate(zip(x, y, strict=True)):
        if small != large:
            value = _copies(patch, value, large // small, axis)
    patch.finish(value)


def _copies(patch: Patch, value: ir.Value, count: int, axis: int) -> ir.Value:
    """Return so many copies of a value side by side, by way of blocks of copies where they are many."""
    if count == 1:
        return value
    if count <= MOST_OPERANDS:
        return patch.add("Concat", *[value] * count, axis=axis)
    in_block = math.isqrt(count - 1) + 1
    block = _copies(patch, value, in_block, axis)
    blocks, rest = divmod(count, in_block)
    operands = [block] * blocks
    if rest:
        operands.append(_copies(patch, value, rest, axis))
    return patch.add("Concat", *operands, axis=axis)
