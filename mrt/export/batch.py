"""Rewrites a graph of fixed shapes as one that takes any batch.

Constants written for one batch are then computed from the inputs. They are found by
reading the same model for two batches: a number that is 2 k in one and 3 k in the other
is k times the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import Array, constant, first, int_attribute, shape_of

DIMENSION = "batch"

Shape = tuple[int, ...]


class BatchDependence(Exception):
    """The reason why the model works for one batch only."""


@dataclass(frozen=True)
class AtBatch:
    """A model as it was read for one batch."""

    model: ir.Model
    batch: int


@dataclass(frozen=True)
class _Linear:
    """The number fixed + slope * batch."""

    fixed: int
    slope: int

    def at(self, batch: int) -> int:
        """Return the number for a batch."""
        return self.fixed + self.slope * batch


def with_any_batch(ours: AtBatch, other: AtBatch) -> None:
    """Change our model in place so that it takes any batch; raise BatchDependence if it cannot."""
    graph = ours.model.graph
    _require_same_nodes(graph, other.model.graph)
    _require_batch_first(ours, other)
    rewriter = _Rewriter(ours, other)
    for node in list(graph):
        for index, value in enumerate(node.inputs):
            replacement = rewriter.replacement(node, value)
            if replacement is not None:
                node.replace_input_with(index, replacement)
    for node in graph:
        for output in node.outputs:
            if not output.is_graph_output():
                output.shape = None
    for value in (*graph.inputs, *graph.outputs):
        sizes = list(value.shape or ())
        value.shape = ir.Shape([DIMENSION, *sizes[1:]])


def _require_same_nodes(ours: ir.Graph, theirs: ir.Graph) -> None:
    if len(ours) != len(theirs):
        raise BatchDependence("another batch needs other operators")
    for node, other in zip(ours, theirs, strict=True):
        label = f"{node.name} ({node.op_type})"
        is_same = node.op_type == other.op_type
        if not is_same or _names(node) != _names(other):
            raise BatchDependence(
                f"{label}: another batch needs other operators"
            )
        attributes = ir.to_proto(node).attribute
        if attributes != ir.to_proto(other).attribute:
            raise BatchDependence(f"{label}: an attribute depends on the batch")


def _names(node: ir.Node) -> list[str | None]:
    return [value.name if value else "" for value in node.inputs]


def _require_batch_first(ours: AtBatch, other: AtBatch) -> None:
    """Require the batch as the first dimension of every input and output."""
    graph, their_graph = ours.model.graph, other.model.graph
    values = [*graph.inputs, *graph.outputs]
    their_values = [*their_graph.inputs, *their_graph.outputs]
    for value, their_value in zip(values, their_values, strict=True):
        shape = shape_of(value) or ()
        expected = (other.batch, *shape[1:])
        if shape[:1] != (ours.batch,) or shape_of(their_value) != expected:
            raise BatchDependence(
                f"{value.name!r} of shape {shape_of(value)} does not have the batch "
                "as its first dimension"
            )


class _Rewriter:
    """Finds the constants that depend on the batch, and writes nodes in their place."""

    def __init__(self, ours: AtBatch, other: AtBatch) -> None:
        self.graph = ours.model.graph
        self.batch = ours.batch
        self.other_batch = other.batch
        theirs = other.model.graph
        self._their_constants = dict(theirs.initializers)
        self._their_shapes = {
            value.name: shape_of(value) for value in theirs.inputs
        }
        for node in theirs:
            for output in node.outputs:
                self._their_shapes[output.name] = shape_of(output)
        self._batch_value: ir.Value | None = None

    def replacement(
        self, node: ir.Node, value: ir.Value | None
    ) -> ir.Value | None:
        """Return the value to read in place of a constant operand, if it needs one."""
        array = constant(value)
        if value is None or array is None:
            return None
        other = self._their_constants.get(value.name or "")
        other_shape = shape_of(other)
        if other_shape != array.shape:
            return self._expanded(node, array, other_shape)
        other_array = constant(other)
        if other_array is None or np.array_equal(array, other_array):
            return None
        return self._recomputed(node, self._linear(node, array, other_array))

    def _expanded(
        self, node: ir.Node, array: Array, other_shape: Shape | None
    ) -> ir.Value:
        """Expand a constant that is uniform along one axis, whose length is the batch."""
        axis = self._batch_axis(array.shape, other_shape)
        if axis is not None:
            single = array.take([0], axis)
            repeated = np.broadcast_to(single, array.shape)
            if np.array_equal(repeated, array):
                return self._expand(node, single, axis)
        raise BatchDependence(
            f"{node.name} ({node.op_type}): a constant of shape {array.shape} "
            "depends on the batch"
        )

    def _batch_axis(
        self, shape: Shape, other_shape: Shape | None
    ) -> int | None:
        """Return the axis as long as the batch, if the shapes differ there alone."""
        if other_shape is None or len(other_shape) != len(shape):
            return None
        changed = [
            axis for axis, size in enumerate(shape) if other_shape[axis] != size
        ]
        if len(changed) != 1:
            return None
        axis = changed[0]
        if shape[axis] != self.batch or other_shape[axis] != self.other_batch:
            return None
        return axis

    def _expand(self, node: ir.Node, single: Array, axis: int) -> ir.Value:
        sizes = [_Linear(size, 0) for size in single.shape]
        sizes[axis] = _Linear(0, 1)
        patch = Patch(node, node.outputs[0])
        data = patch.constant(single, "one")
        shape = self._list(patch, sizes)
        expanded = patch.add("Expand", data, shape)
        expanded.type = data.type
        return expanded

    def _linear(
        self, node: ir.Node, array: Array, other: Array
    ) -> list[_Linear]:
        """Return each number of a list of integers as a formula in the batch."""
        label = f"{node.name} ({node.op_type})"
        if array.dtype != np.int64 or array.ndim != 1:
            raise BatchDependence(
                f"{label}: numbers of shape {array.shape} depend on the batch"
            )
        numbers = []
        added_batch = self.other_batch - self.batch
        pairs = zip(array.tolist(), other.tolist(), strict=True)
        for ours, theirs in pairs:
            slope, rest = divmod(theirs - ours, added_batch)
            if rest:
                raise BatchDependence(
                    f"{label}: {ours} and {theirs} do not grow with the batch"
                )
            fixed = ours - slope * self.batch
            numbers.append(_Linear(fixed, slope))
        return numbers

    def _recomputed(
        self, node: ir.Node, numbers: Sequence[_Linear]
    ) -> ir.Value:
        patch = Patch(node, node.outputs[0])
        codes = None
        if node.op_type == "Reshape":
            codes = self._reshape_codes(node, numbers)
        if codes is None:
            return self._list(patch, numbers)
        return patch.axes(codes, "shape")

    def _reshape_codes(
        self, node: ir.Node, numbers: Sequence[_Linear]
    ) -> list[int] | None:
        """Return 0 where the dimension is the input's own, -1 for one other dimension.

        Return None where more than one other would be needed.
        """
        if int_attribute(node, "allowzero", 0):
            return None
        data = first(node)
        ours = shape_of(data)
        theirs = self._their_shapes.get(data.name)
        codes = []
        for index, number in enumerate(numbers):
            if number.slope == 0:
                codes.append(number.fixed)
            elif _size_if_other(ours, theirs, index) == number.at(self.batch):
                codes.append(0)
            else:
                codes.append(-1)
        return codes if codes.count(-1) <= 1 else None

    def _list(self, patch: Patch, numbers: Sequence[_Linear]) -> ir.Value:
        """Compute numbers from the batch."""
        batch = self._batch_size()
        slopes = patch.axes([number.slope for number in numbers], "slopes")
        fixed = patch.axes([number.fixed for number in numbers], "fixed")
        grown = patch.add("Mul", batch, slopes)
        sizes = patch.add("Add", grown, fixed)
        for value in (grown, sizes):
            value.type = ir.TensorType(ir.DataType.INT64)
        return sizes

    def _batch_size(self) -> ir.Value:
        """Return the batch, which is computed once from the first input."""
        if self._batch_value is None:
            start = next(iter(self.graph))
            patch = Patch(start, start.outputs[0])
            data = self.graph.inputs[0]
            value = patch.add("Shape", data, start=0, end=1)
            value.type = ir.TensorType(ir.DataType.INT64)
            self._batch_value = value
        return self._batch_value


def _size_if_other(
    ours: Shape | None, theirs: Shape | None, axis: int
) -> int | None:
    """Return our size of an axis, if theirs differs."""
    if ours is None or theirs is None:
        return None
    if axis >= len(ours) or ours[axis] == theirs[axis]:
        return None
    return ours[axis]
