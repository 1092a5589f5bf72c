"""Lowers ScatterND and ScatterElements at computed indices to choices, an update at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    int_attribute,
    nodes,
    operand,
    shape_of,
    string_attribute,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT
from mrt.rewrite.lookup.row_numbers import (
    count_from_front,
    number_rows,
)

MOST_UPDATES = 32  # each is a choice over the whole of x
REDUCTIONS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


def lower_computed_scatter(model: ir.Model) -> int:
    """Scatter*(x, computed indices, updates) -> a Where for each update.

      x -> Where(index of update k = 0, 1, 2, .., update k, x)
      with a reduction -> Where(.., reduction of x and update k, x)

    Applies to at most 32 updates of rows (ScatterND) or along the axis (ScatterElements,
    whose indices have the other axes of x). Equal; where an index occurs twice and
    nothing is reduced, the last update stays, as in onnxruntime.
    """
    lower = {"ScatterND": _rows, "ScatterElements": _elements}
    return sum(lower[node.op_type](node) for node in nodes(model, *lower))


def is_wide_scatter(node: ir.Node) -> bool:
    """Whether a scatter has computed indices and more updates than are lowered."""
    indices = operand(node, 1)
    shape = shape_of(indices)
    if constant(indices) is not None or shape is None:
        return False
    if node.op_type == "ScatterND":
        return math.prod(shape[:-1]) > MOST_UPDATES
    axis = int_attribute(node, "axis", 0) % len(shape)
    return shape[axis] > MOST_UPDATES


def _rows(node: ir.Node) -> bool:
    """Write rows of x, whose first axes the indices count, as one axis.

    x is [d1, .., dk, rest], the indices [w.., k], the updates [w.., rest].
    """
    shapes = _shapes(node)
    if shapes is None:
        return False
    x, indices, _ = shapes
    depth = indices[-1]
    if depth > len(x):
        return False
    count, rest = math.prod(indices[:-1]), x[depth:]
    rows = math.prod(x[:depth])
    if not 0 < count <= MOST_UPDATES:
        return False
    patch = Patch(node)
    flat_indices = patch.reshape(operand(node, 1), (count, depth))
    numbers = number_rows(patch, flat_indices, x[:depth], axis=1)
    old = patch.reshape(first(node), (rows, *rest))
    new = patch.reshape(operand(node, 2), (count, *rest))
    all_numbers = np.arange(rows, dtype=np.int64)
    column = all_numbers.reshape(rows, *(1,) * len(rest))
    for place in range(count):
        number = _slice(patch, numbers, place, axis=0)
        hit = patch.add("Equal", number, patch.constant(column, "rows"))
        old = _choose(patch, node, hit, _slice(patch, new, place, axis=0), old)
    patch.finish(patch.reshape(old, x))
    return True


def _elements(node: ir.Node) -> bool:
    """Write elements of x along one axis, all positions of the other axes at once."""
    shapes = _shapes(node)
    if shapes is None:
        return False
    x, indices, updates = shapes
    axis = int_attribute(node, "axis", 0) % len(x)
    count = indices[axis]
    expected = (*x[:axis], count, *x[axis + 1 :])
    if indices != expected or updates != expected:
        return False
    if not 0 < count <= MOST_UPDATES:
        return False
    patch = Patch(node)
    numbers = count_from_front(patch, operand(node, 1), (x[axis],))
    all_numbers = np.arange(x[axis], dtype=np.int64)
    column = all_numbers.reshape(-1, *(1,) * (len(x) - 1 - axis))
    old, new = first(node), operand(node, 2)
    for place in range(count):
        number = _slice(patch, numbers, place, axis)
        hit = patch.add("Equal", number, patch.constant(column, "places"))
        old = _choose(patch, node, hit, _slice(patch, new, place, axis), old)
    patch.finish(old)
    return True


def _shapes(
    node: ir.Node,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """Return the shapes of x, indices and updates, if all are known and may be lowered."""
    x, indices, updates = _operand_shapes(node)
    if x is None or indices is None or updates is None:
        return None
    if constant(operand(node, 1)) is not None or not x or not indices:
        return None
    return (x, indices, updates) if math.prod(x) <= LARGEST_RESULT else None


def _operand_shapes(node: ir.Node) -> Iterator[tuple[int, ...] | None]:
    return (shape_of(operand(node, place)) for place in range(3))


def _choose(
    patch: Patch, node: ir.Node, hit: ir.Value, new: ir.Value, old: ir.Value
) -> ir.Value:
    """Return the update where the index is hit, combined with the old number if the node has a reduction."""
    reduction = REDUCTIONS.get(string_attribute(node, "reduction", "none"))
    update = patch.add(reduction, old, new) if reduction else new
    return patch.add("Where", hit, update, old)


def _slice(
    patch: Patch, value: ir.Value | None, place: int, axis: int
) -> ir.Value:
    """Return one position of an axis, which stays."""
    return patch.add(
        "Slice",
        value,
        patch.axes([place], "start"),
        patch.axes([place + 1], "end"),
        patch.axes([axis], "axis"),
    )
