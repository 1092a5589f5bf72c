"""A choice between two values by comparing numbers is arithmetic with a mask of zeros and ones."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.rewrite.edit import Patch, constant, nodes, operand, producer

_COMPARISONS = ("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Not", "And", "Or")


def lower_where(model: ir.Model) -> int:
    """Where(c, a, b) -> a * mask(c) + b * (1 - mask(c)); Cast(c) to float -> mask(c). x > y has Relu(Sign(x - y)).

    Applies when c is constant or made of comparisons of floats by not, and, or; a branch of zeros goes. Equal wherever
    both branches are finite.
    """
    count = 0
    for node in nodes(model, "Where", "Cast"):
        condition = operand(node, 0)
        if node.op_type == "Cast" and node.attributes["to"].as_int() != ir.DataType.FLOAT:
            continue
        if condition is None or condition.dtype != ir.DataType.BOOL or not _is_made_of_comparisons(condition):
            continue
        if node.op_type == "Where" and not (parts := _branches(node)):
            continue
        patch = Patch(node)
        mask = _mask(patch, condition)
        if node.op_type == "Cast":
            patch.finish(mask)
        else:
            terms = [patch.add("Mul", branch, mask if first else _one_minus(patch, mask)) for branch, first in parts]
            patch.finish(terms[0] if len(terms) == 1 else patch.add("Add", *terms))
        count += 1
    return count


def _branches(node: ir.Node) -> list[tuple[ir.Value, bool]]:
    """The branches that are not constant zeros, and whether each is the first; none if one holds an infinity."""
    parts = [(value, index == 1) for index in (1, 2) if (value := operand(node, index)) is not None]
    arrays = [constant(value) for value, _ in parts]
    if any(array is not None and not np.isfinite(array).all() for array in arrays):
        return []
    kept = [part for part, array in zip(parts, arrays, strict=True) if array is None or array.any()]
    return kept if all(value.dtype == ir.DataType.FLOAT for value, _ in kept) else []


def _is_made_of_comparisons(value: ir.Value) -> bool:
    if constant(value) is not None:
        return True
    node = producer(value, *_COMPARISONS)
    if node is None:
        return False
    operands = [item for item in node.inputs if item is not None]
    if node.op_type in ("Not", "And", "Or"):
        return all(_is_made_of_comparisons(item) for item in operands)
    return all(item.dtype == ir.DataType.FLOAT for item in operands)


def _mask(patch: Patch, value: ir.Value) -> ir.Value:
    """1 where the condition holds, else 0."""
    array, node = constant(value), value.producer()
    if array is not None or node is None:
        return patch.constant(np.asarray(array, np.float32), "mask")
    left, right = node.inputs[0], node.inputs[-1]
    assert left is not None and right is not None
    match node.op_type:
        case "Greater":
            return _above(patch, left, right)
        case "Less":
            return _above(patch, right, left)
        case "GreaterOrEqual":
            return _one_minus(patch, _above(patch, right, left))
        case "LessOrEqual":
            return _one_minus(patch, _above(patch, left, right))
        case "Not":
            return _one_minus(patch, _mask(patch, left))
        case "And":
            return patch.add("Mul", _mask(patch, left), _mask(patch, right))
        case _:
            return patch.add("Max", _mask(patch, left), _mask(patch, right))


def _above(patch: Patch, left: ir.Value, right: ir.Value) -> ir.Value:
    return patch.add("Relu", patch.add("Sign", patch.add("Sub", left, right)))


def _one_minus(patch: Patch, mask: ir.Value) -> ir.Value:
    return patch.add("Sub", patch.constant(np.array(1.0, np.float32), "one"), mask)
