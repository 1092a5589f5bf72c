"""Reads a scatter with a reduction as rows: each update is combined with the row of x that its index names."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    first,
    int_attribute,
    operand,
    producer,
    shape_of,
)
from mrt.rewrite.lookup.row_numbers import count_from_front, number_rows

Shape = tuple[int, ...]
_NUMBERS = (
    ir.DataType.FLOAT,
    ir.DataType.DOUBLE,
    ir.DataType.INT32,
    ir.DataType.INT64,
)


@dataclass(frozen=True)
class ScatteredRows:
    """x as [rows, rest] and the updates as [count, rest], with one index for each update or each of its elements."""

    node: ir.Node
    shape: Shape  # of x
    indices: ir.Value | Array
    sizes: Shape  # of the axes of x that the indices count
    count: int
    axis: int = 0  # the first of these axes
    is_whole: bool = True  # one index for each update

    @property
    def rows(self) -> int:
        """The number of rows of x."""
        return math.prod(self.sizes)

    @property
    def rest(self) -> int:
        """The number of elements of a row."""
        return math.prod(self.shape) // self.rows

    @property
    def has_constant_indices(self) -> bool:
        """Whether the indices are known."""
        return constant(operand(self.node, 1)) is not None

    def numbers(self, patch: Patch) -> ir.Value:
        """Return the number of the row that each update goes to, as [count]; as [count, rest] where its elements differ."""
        indices = self.indices
        if not isinstance(indices, ir.Value):
            indices = patch.constant(indices, "indices")
        if not self.is_whole:
            flat = self.flat(patch, indices, self.count)
            return count_from_front(patch, flat, self.sizes)
        flat = patch.reshape(indices, (self.count, len(self.sizes)))
        return number_rows(patch, flat, self.sizes, axis=1)

    def hits(self, patch: Patch) -> ir.Value:
        """Return which update goes to which row, as [rows, count, 1 or rest]."""
        columns = 1 if self.is_whole else self.rest
        shape = (1, self.count, columns)
        numbers = patch.reshape(self.numbers(patch), shape)
        all_rows = np.arange(self.rows, dtype=np.int64).reshape(-1, 1, 1)
        return patch.add("Equal", numbers, patch.constant(all_rows, "rows"))

    def updates(self, patch: Patch) -> ir.Value:
        """Return the updates, as [count, rest]."""
        return self.flat(patch, operand(self.node, 2), self.count)

    def old(self, patch: Patch) -> ir.Value:
        """Return x, as [rows, rest]."""
        return self.flat(patch, first(self.node), self.rows)

    def finish(self, patch: Patch, result: ir.Value) -> None:
        """Put a result of the shape [rows, rest] in the place of the scatter's."""
        order = self._order()
        if order == sorted(order):
            patch.finish(patch.reshape(result, self.shape))
            return
        moved = tuple(self.shape[axis] for axis in order)
        back = tuple(int(place) for place in np.argsort(order))
        apart = patch.reshape(result, moved)
        patch.finish(patch.add("Transpose", apart, perm=back))

    def flat(
        self, patch: Patch, value: ir.Value | None, length: int
    ) -> ir.Value:
        """Return a value with the axes of x as [length, rest]."""
        order = self._order()
        if order != sorted(order):
            value = patch.add("Transpose", value, perm=tuple(order))
        return patch.reshape(value, (length, self.rest))

    def _order(self) -> list[int]:
        """Return the axes of x, that of the indices first, unless those in front have one place each."""
        order = list(range(len(self.shape)))
        if math.prod(self.shape[: self.axis]) > 1:
            order.insert(0, order.pop(self.axis))
        return order


def scattered_rows(node: ir.Node) -> ScatteredRows | None:
    """Return the rows of a ScatterND or ScatterElements; None if shapes are unknown or updates lack columns of x.

    ScatterElements has whole rows where its indices are the same in all columns, or x
    has one column only, as a vector has.
    """
    x, updates = shape_of(first(node)), shape_of(operand(node, 2))
    indices = operand(node, 1)
    shape = shape_of(indices)
    if not x or not updates or not shape or indices is None:
        return None
    if 0 in (*x, *updates) or first(node).dtype not in _NUMBERS:
        return None
    if node.op_type == "ScatterND":
        depth = shape[-1]
        count = math.prod(shape[:-1])
        is_valid = 0 < depth <= len(x)
        return (
            ScatteredRows(node, x, indices, x[:depth], count)
            if is_valid
            else None
        )
    axis = int_attribute(node, "axis", 0) % len(x)
    count = updates[axis]
    if shape != updates or updates != (*x[:axis], count, *x[axis + 1 :]):
        return None
    whole = _one_index_each(node, x, updates)
    return ScatteredRows(
        node,
        x,
        indices if whole is None else whole,
        x[axis : axis + 1],
        count,
        axis,
        is_whole=whole is not None,
    )


def _one_index_each(
    node: ir.Node, x: Shape, updates: Shape
) -> ir.Value | Array | None:
    """Return the one index that all elements of an update have; None if they may differ."""
    axis = int_attribute(node, "axis", 0) % len(x)
    if math.prod(updates) == updates[axis]:
        return operand(node, 1)
    array = constant(operand(node, 1))
    if array is None:
        return None if axis else _repeated(node, x, updates)
    columns = np.moveaxis(array, axis, 0).reshape(updates[axis], -1)
    is_same = bool((columns == columns[:, :1]).all())
    return columns[:, 0].copy() if is_same else None


def _repeated(node: ir.Node, x: Shape, updates: Shape) -> ir.Value | None:
    """Return the indices of rows that an Expand repeats for every column; None if there are none."""
    expand = producer(operand(node, 1), "Expand")
    narrow = None if expand is None else shape_of(first(expand))
    if expand is None or narrow is None or math.prod(narrow) != updates[0]:
        return None
    aligned = (1,) * (len(x) - len(narrow)) + narrow
    return first(expand) if aligned[0] == updates[0] else None
