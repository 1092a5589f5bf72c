"""Lowers sums of many rows at computed places, as of the messages in a graph network, to a product."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    int_attribute,
    nodes,
    operand,
    producer,
    shape_of,
    string_attribute,
)
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT
from mrt.rewrite.lookup.row_numbers import number_rows

FEWEST_UPDATES = 9  # fewer are choices: `computed_scatter`


def lower_summing_scatter(model: ir.Model) -> int:
    """Scatter*(x, computed indices, updates), reduction "add" -> x + MatMul(hits, updates).

    hits[n, e] is 1 where update e goes to row n, else 0. Applies to at least 9 updates of
    whole rows, which ScatterElements has where its indices are the same in all columns.
    Equal up to the order of the sums.
    """
    finders = {"ScatterND": _indices_of_rows, "ScatterElements": _repeated}
    count = 0
    for node in nodes(model, *finders):
        indices = finders[node.op_type](node)
        if indices is not None and _applies(node, indices):
            _write(node, indices)
            count += 1
    return count


def _indices_of_rows(node: ir.Node) -> ir.Value | None:
    return operand(node, 1)


def _repeated(node: ir.Node) -> ir.Value | None:
    """Return the indices of rows that an Expand repeats for every column; None if there are none."""
    expand = producer(operand(node, 1), "Expand")
    shapes = [shape_of(operand(node, place)) for place in range(3)]
    x, indices, updates = shapes
    if expand is None or x is None or not x or updates is None:
        return None
    if int_attribute(node, "axis", 0) % len(x) or indices != updates:
        return None
    narrow = shape_of(first(expand))
    is_column = narrow is not None and math.prod(narrow) == updates[0]
    has_whole_rows = updates[1:] == x[1:] and narrow != updates
    if narrow is None or not is_column or not has_whole_rows:
        return None
    aligned = (1,) * (len(x) - len(narrow)) + narrow
    return first(expand) if aligned[0] == updates[0] else None


def _applies(node: ir.Node, indices: ir.Value) -> bool:
    if string_attribute(node, "reduction", "none") != "add":
        return False
    x, updates = shape_of(first(node)), shape_of(operand(node, 2))
    index_shape = shape_of(indices)
    if (
        x is None
        or updates is None
        or not index_shape
        or constant(indices) is not None
    ):
        return False
    depth = index_shape[-1] if node.op_type == "ScatterND" else 1
    if not 0 < depth <= len(x):
        return False
    rows = math.prod(x[:depth])
    count = math.prod(updates) // max(math.prod(x[depth:]), 1)
    return count >= FEWEST_UPDATES and rows * count <= LARGEST_RESULT


def _write(node: ir.Node, indices: ir.Value) -> None:
    x, index_shape = shape_of(first(node)), shape_of(indices)
    updates = shape_of(operand(node, 2))
    assert x is not None and index_shape is not None and updates is not None
    depth = index_shape[-1] if node.op_type == "ScatterND" else 1
    rows, rest = math.prod(x[:depth]), math.prod(x[depth:])
    count = math.prod(updates) // rest
    patch = Patch(node)
    flat = _reshape(patch, indices, (count, depth))
    numbers = number_rows(patch, flat, x[:depth], axis=1)
    number = _reshape(patch, numbers, (1, count))
    column = patch.constant(np.arange(rows, dtype=np.int64)[:, None], "rows")
    hit = patch.add("Equal", number, column)
    hits = patch.add("Cast", hit, to=int(ir.DataType.FLOAT))
    new = _reshape(patch, operand(node, 2), (count, rest))
    old = _reshape(patch, first(node), (rows, rest))
    total = patch.add("Add", old, patch.add("MatMul", hits, new))
    patch.finish(_reshape(patch, total, x))


def _reshape(
    patch: Patch, value: ir.Value | None, shape: tuple[int, ...]
) -> ir.Value:
    return patch.add("Reshape", value, patch.axes(shape, "shape"), allowzero=0)
