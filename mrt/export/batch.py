"""A graph of fixed shapes -> one that takes any batch: what was written out for one batch is computed from the inputs.

Which constants follow the batch is found by looking at the same model read for two batches. A number that is 2 k in the
one and 3 k in the other is k times the batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from mrt.graph.names import fresh_name
from mrt.graph.patch import add_constant
from mrt.graph.values import Array, constant, shape_of

DIMENSION = "batch"


class BatchDependence(Exception):
    """Why the model is for one batch only."""


def with_any_batch(
    model: ir.Model, batch: int, other: ir.Model, other_batch: int
) -> None:
    """Change `model`, read for `batch`, in place; `other` is the same read for `other_batch`. Raises BatchDependence."""
    graph, duplicate = model.graph, other.graph
    _require_same_nodes(graph, duplicate)
    _require_batch_first(
        [*graph.inputs, *graph.outputs],
        [*duplicate.inputs, *duplicate.outputs],
        batch,
        other_batch,
    )
    theirs = {str(value.name): value for value in duplicate.initializers.values()}
    size = _BatchSize(graph)
    for node in list(graph):
        for index, value in enumerate(node.inputs):
            ours = constant(value)
            if value is None or ours is None:
                continue
            duplicate_value = theirs.get(str(value.name))
            if shape_of(duplicate_value) != ours.shape:
                made = _repeated(
                    node, ours, shape_of(duplicate_value), (batch, other_batch), size
                )
                node.replace_input_with(index, made)
                continue
            found = constant(duplicate_value)
            if found is not None and not np.array_equal(ours, found):
                factors = _factors(node, ours, found, batch, other_batch)
                duplicates = {
                    str(item.name): shape_of(item)
                    for item in duplicate_values(duplicate)
                }
                node.replace_input_with(
                    index, _for_any_batch(node, factors, batch, duplicates, size)
                )
    for item in graph:
        for output in item.outputs:
            if not output.is_graph_output():
                output.shape = None
    for value in (*graph.inputs, *graph.outputs):
        value.shape = ir.Shape([DIMENSION, *list(value.shape or ())[1:]])


def duplicate_values(graph: ir.Graph) -> list[ir.Value]:
    """Inputs and computed values."""
    return [*graph.inputs, *(output for node in graph for output in node.outputs)]


def _require_same_nodes(graph: ir.Graph, duplicate: ir.Graph) -> None:
    ours, theirs = list(graph), list(duplicate)
    if len(ours) != len(theirs):
        raise BatchDependence("another batch needs other operators")
    for node, other in zip(ours, theirs, strict=True):
        names = [value.name if value else "" for value in node.inputs]
        if node.op_type != other.op_type or names != [
            value.name if value else "" for value in other.inputs
        ]:
            raise BatchDependence(
                f"{node.name} ({node.op_type}): another batch needs other operators"
            )
        if ir.to_proto(node).attribute != ir.to_proto(other).attribute:
            raise BatchDependence(
                f"{node.name} ({node.op_type}): an attribute depends on the batch"
            )


def _require_batch_first(
    ours: list[ir.Value], theirs: list[ir.Value], batch: int, other_batch: int
) -> None:
    for value, duplicate in zip(ours, theirs, strict=True):
        shape, other = shape_of(value), shape_of(duplicate)
        wanted = None if shape is None else (other_batch, *shape[1:])
        if not shape or shape[0] != batch or other != wanted:
            raise BatchDependence(
                f"{value.name!r} of shape {shape} does not have the batch as its first dimension"
            )


def _repeated(
    node: ir.Node,
    ours: Array,
    theirs: tuple[int, ...] | None,
    batches: tuple[int, int],
    size: _BatchSize,
) -> ir.Value:
    """A constant with one axis as long as the batch, the same all along it: expanded from one."""
    axes = [
        axis
        for axis, length in enumerate(ours.shape)
        if theirs is None or theirs[axis : axis + 1] != (length,)
    ]
    one = ours[(slice(None),) * axes[0] + (slice(1),)] if axes else ours
    grows = (
        theirs is not None
        and len(theirs) == ours.ndim
        and [(ours.shape[a], theirs[a]) for a in axes] == [batches]
    )
    if not grows or not np.array_equal(np.broadcast_to(one, ours.shape), ours):
        raise BatchDependence(
            f"{node.name} ({node.op_type}): a constant of shape {ours.shape} depends on the batch"
        )
    factors = [
        (0, 1) if axis == axes[0] else (length, 0)
        for axis, length in enumerate(ours.shape)
    ]
    name = f"{node.name}.one"
    repeated = _add(size.graph, node, "Expand", f"{node.name}.repeated", [add_constant(size.graph, one, name),
                                                                          size.list_of(node, factors)])  # fmt: skip
    repeated.type = ir.TensorType(ir.DataType.from_numpy(ours.dtype))
    return repeated


def _factors(
    node: ir.Node, ours: Array, theirs: Array, batch: int, other_batch: int
) -> list[tuple[int, int]]:
    """Each number of a list of integers as (a, k), meaning a + k * batch."""
    if ours.dtype != np.int64 or ours.ndim != 1:
        raise BatchDependence(
            f"{node.name} ({node.op_type}): numbers of shape {ours.shape} depend on the batch"
        )
    factors = []
    for one, two in zip(ours.tolist(), theirs.tolist(), strict=True):
        slope, rest = divmod(two - one, other_batch - batch)
        if rest:
            raise BatchDependence(
                f"{node.name} ({node.op_type}): {one} and {two} do not grow with the batch"
            )
        factors.append((one - slope * batch, slope))
    return factors


def _for_any_batch(
    node: ir.Node,
    factors: list[tuple[int, int]],
    batch: int,
    duplicates: Mapping[str, tuple[int, ...] | None],
    size: _BatchSize,
) -> ir.Value:
    if node.op_type == "Reshape":
        written = _reshape_codes(node, factors, batch, duplicates)
        if written is not None:
            return add_constant(
                size.graph, np.array(written, np.int64), f"{node.name}.shape"
            )
    return size.list_of(node, factors)


def _reshape_codes(
    node: ir.Node,
    factors: list[tuple[int, int]],
    batch: int,
    duplicates: Mapping[str, tuple[int, ...] | None],
) -> list[int] | None:
    """0 where the dimension is the input's own, -1 for one other; None where more would be needed."""
    if node.attributes.get_int("allowzero", 0):
        return None
    data = node.inputs[0]
    assert data is not None
    ours, theirs = shape_of(data), duplicates.get(str(data.name))
    written = []
    for index, (fixed, slope) in enumerate(factors):
        is_copied = (
            ours is not None
            and theirs is not None
            and index < len(ours)
            and ours[index] != theirs[index]
            and ours[index] == fixed + slope * batch
        )
        written.append(fixed if slope == 0 else 0 if is_copied else -1)
    return written if written.count(-1) <= 1 else None


class _BatchSize:
    """The batch as a value of the graph, computed from its first input where anything needs it."""

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self._value: ir.Value | None = None

    def value(self) -> ir.Value:
        if self._value is None:
            first = next(iter(self.graph))
            self._value = _add(
                self.graph,
                first,
                "Shape",
                "batch.size",
                [self.graph.inputs[0]],
                start=0,
                end=1,
            )
        return self._value

    def list_of(self, node: ir.Node, factors: list[tuple[int, int]]) -> ir.Value:
        """Fixed numbers plus factors times the batch, in front of the node."""
        batch = self.value()
        slopes = add_constant(
            self.graph,
            np.array([slope for _, slope in factors], np.int64),
            f"{node.name}.slopes",
        )
        fixed = add_constant(
            self.graph,
            np.array([item for item, _ in factors], np.int64),
            f"{node.name}.fixed",
        )
        grown = _add(self.graph, node, "Mul", f"{node.name}.grown", [batch, slopes])
        return _add(self.graph, node, "Add", f"{node.name}.sizes", [grown, fixed])


def _add(
    graph: ir.Graph,
    before: ir.Node,
    operator: str,
    name: str,
    inputs: list[ir.Value],
    **attributes: int,
) -> ir.Value:
    name = fresh_name(graph, name)
    node = ir.node(operator, inputs, dict(attributes), name=name)
    node.outputs[0].name = name
    node.outputs[0].type = ir.TensorType(ir.DataType.INT64)
    graph.insert_before(before, node)
    return node.outputs[0]
