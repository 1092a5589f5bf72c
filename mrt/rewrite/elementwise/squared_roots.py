"""Folds the square of a square root."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch, bypass, copy_attributes
from mrt.graph.values import first, moved_from, nodes, operand, producer


def fold_squared_roots(model: ir.Model) -> int:
    """Mul(r, r) -> x for r = Sqrt(x), also with Transpose, Reshape or Slice between the two.

    The movements are then those of x. The root of a negative number is NaN in float,
    which no square mends, so x may be taken as 0 or above. Equal up to the rounding of
    the root.
    """
    return sum(map(_fold, nodes(model, "Mul")))


def _fold(node: ir.Node) -> bool:
    value = first(node)
    if operand(node, 1) is not value:
        return False
    *moves, source = moved_from(value)
    root = producer(source, "Sqrt")
    if root is None:
        return False
    if not moves:
        return bypass(node, first(root))
    patch, moved = Patch(node), first(root)
    for result in reversed(moves):
        moved = _moved_alike(patch, result, moved)
    patch.finish(moved)
    return True


def _moved_alike(patch: Patch, result: ir.Value, value: ir.Value) -> ir.Value:
    """Move a value by the operator that makes `result` of another one."""
    move = result.producer()
    assert move is not None
    moved = patch.add(move.op_type, value, *move.inputs[1:])
    copy_attributes(move, moved, *move.attributes)
    moved.shape = move.outputs[0].shape
    return moved
