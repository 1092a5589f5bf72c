"""Reads a scatter with a reduction as rows: each update is combined with the row of x that its index names."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    first,
    int_attribute,
    operand,
    producer,
    shape_of,
)
from mrt.rewrite.lookup.row_numbers import number_rows


@dataclass(frozen=True)
class ScatteredRows:
    """x as [rows, rest] and the updates as [count, rest], with one index for each update."""

    node: ir.Node
    shape: tuple[int, ...]  # of x
    indices: ir.Value
    sizes: tuple[int, ...]  # of the axes of x that the indices count
    rest: int
    count: int

    @property
    def rows(self) -> int:
        """The number of rows of x."""
        return math.prod(self.sizes)

    def numbers(self, patch: Patch) -> ir.Value:
        """Return the number of the row that each update goes to, as [count]."""
        flat = reshape(patch, self.indices, (self.count, len(self.sizes)))
        return number_rows(patch, flat, self.sizes, axis=1)

    def updates(self, patch: Patch) -> ir.Value:
        """Return the updates, as [count, rest]."""
        shape = (self.count, self.rest)
        return reshape(patch, operand(self.node, 2), shape)

    def old(self, patch: Patch) -> ir.Value:
        """Return x, as [rows, rest]."""
        return reshape(patch, first(self.node), (self.rows, self.rest))

    def finish(self, patch: Patch, result: ir.Value) -> None:
        """Put a result of the shape [rows, rest] in the place of the scatter's."""
        patch.finish(reshape(patch, result, self.shape))


def scattered_rows(node: ir.Node) -> ScatteredRows | None:
    """Return the rows of a ScatterND or ScatterElements; None if shapes are unknown or no rows are whole.

    ScatterElements has whole rows where its indices are the same in all columns, or x
    has one column only, as a vector has.
    """
    x, updates = shape_of(first(node)), shape_of(operand(node, 2))
    if not x or updates is None or 0 in x:
        return None
    if node.op_type == "ScatterND":
        return _rows_of_tuples(node, x, updates)
    axis = int_attribute(node, "axis", 0) % len(x)
    if shape_of(operand(node, 1)) != updates:
        return None
    indices = _repeated(node, x, updates)
    if math.prod(x) == x[axis] and math.prod(updates) == updates[axis]:
        indices = operand(node, 1)
    if indices is None:
        return None
    return ScatteredRows(
        node,
        x,
        indices,
        sizes=(x[axis],),
        rest=math.prod(x) // x[axis],
        count=updates[axis],
    )


def _rows_of_tuples(
    node: ir.Node, x: tuple[int, ...], updates: tuple[int, ...]
) -> ScatteredRows | None:
    indices = operand(node, 1)
    shape = shape_of(indices)
    if indices is None or not shape or not 0 < shape[-1] <= len(x):
        return None
    sizes, rest = x[: shape[-1]], math.prod(x[shape[-1] :])
    count = math.prod(updates) // rest
    return ScatteredRows(node, x, indices, sizes, rest, count)


def _repeated(
    node: ir.Node, x: tuple[int, ...], updates: tuple[int, ...]
) -> ir.Value | None:
    """Return the indices of rows that an Expand repeats for every column; None if there are none."""
    expand = producer(operand(node, 1), "Expand")
    if expand is None or int_attribute(node, "axis", 0) % len(x):
        return None
    narrow = shape_of(first(expand))
    is_column = narrow is not None and math.prod(narrow) == updates[0]
    has_whole_rows = updates[1:] == x[1:] and narrow != updates
    if narrow is None or not is_column or not has_whole_rows:
        return None
    aligned = (1,) * (len(x) - len(narrow)) + narrow
    return first(expand) if aligned[0] == updates[0] else None


def reshape(
    patch: Patch, value: ir.Value | None, shape: tuple[int, ...]
) -> ir.Value:
    """Add a Reshape and return its output."""
    return patch.add("Reshape", value, patch.axes(shape, "shape"), allowzero=0)
