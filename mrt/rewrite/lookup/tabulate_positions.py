"""Looks up functions of a decoder's position, such as the cosines and sines of a rotary embedding."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx_ir as ir

from mrt.graph.notes import indices_of
from mrt.graph.patch import Patch
from mrt.graph.values import Array, constant, shape_of
from mrt.rewrite.constants.fold_constants import fold_constants
from mrt.rewrite.constants.fold_functions import FUNCTIONS, fold_functions
from mrt.rewrite.constants.fold_row_operators import fold_row_operators

MOST_POSITIONS = 4096
MOST_NUMBERS = 1 << 18  # of one table; a cosine takes tens of microseconds
_FOLDS: tuple[Callable[[ir.Model], int], ...] = (
    fold_constants,
    fold_functions,
    fold_row_operators,
)


def tabulate_positions(model: ir.Model) -> int:
    """f(position) -> Gather(table of f, position).

    Applies where an input is one integer of a known interval from 0, and f has a function such as Cos. The angles
    of a rotary embedding grow with the position, and would lose their precision in a format that holds the greatest;
    the table has each result for itself, computed as constants are.
    """
    return sum(
        _tabulate(model, value)
        for value in list(model.graph.inputs)
        if _positions(value)
    )


def _positions(value: ir.Value) -> int:
    """The number of integers that an input can be, if it is one integer from 0 on; else 0."""
    interval, shape = indices_of(value), shape_of(value)
    if interval is None or interval[0] or shape is None:
        return 0
    is_one = int(np.prod(shape)) == 1 and value.dtype == ir.DataType.INT64
    count = interval[1] + 1
    return count if is_one and count <= MOST_POSITIONS else 0


def _tabulate(model: ir.Model, position: ir.Value) -> int:
    """Replace the values that are made of the position alone and read with others; return how many."""
    derived = _made_of(model, position)
    results = list(_results(derived, _positions(position)))
    if not results:
        return 0
    rows = [
        _evaluated(model, derived, position, results, number)
        for number in range(_positions(position))
    ]
    if any(row is None for row in rows):
        return 0
    for node, column in zip(
        results, zip(*filter(None, rows), strict=True), strict=True
    ):
        _look_up(node, position, np.stack(column))
    return len(results)


def _made_of(model: ir.Model, position: ir.Value) -> dict[ir.Value, bool]:
    """The values made of the position and constants, each with whether a function is among its makers."""
    derived = {position: False}
    for node in model.graph:
        inputs = [value for value in node.inputs if value is not None]
        computed = [value for value in inputs if constant(value) is None]
        if not computed or len(node.outputs) != 1:
            continue
        if all(value in derived for value in computed):
            earlier = any(derived[value] for value in computed)
            derived[node.outputs[0]] = earlier or node.op_type in FUNCTIONS
    return derived


def _results(
    derived: dict[ir.Value, bool], positions: int
) -> Iterator[ir.Node]:
    """The nodes of functions whose result something else reads."""
    for value, has_function in derived.items():
        node, shape = value.producer(), shape_of(value)
        if node is None or shape is None or not has_function:
            continue
        readers = [use.node.outputs[0] for use in value.uses()]
        is_read = any(reader not in derived for reader in readers)
        small = positions * int(np.prod(shape)) <= MOST_NUMBERS
        is_float = value.dtype == ir.DataType.FLOAT
        if is_read and small and is_float and not value.is_graph_output():
            yield node


def _evaluated(
    model: ir.Model,
    derived: dict[ir.Value, bool],
    position: ir.Value,
    results: list[ir.Node],
    number: int,
) -> list[Array] | None:
    """The results at one position, computed as constants are; None if something cannot be folded."""
    shape = shape_of(position)
    assert shape is not None
    copies = {
        position: _initializer("position", np.full(shape, number, np.int64))
    }
    nodes: list[ir.Node] = []
    for value in derived:
        node = value.producer()
        if node is None:
            continue
        inputs = [_copied(source, copies) for source in node.inputs]
        copy = ir.Node("", node.op_type, inputs, list(node.attributes.values()))
        _describe(copy.outputs[0], value, f"v{len(nodes)}")
        copies[value] = copy.outputs[0]
        nodes.append(copy)
    outputs = [copies[node.outputs[0]] for node in results]
    identities = [ir.Node("", "Identity", [value]) for value in outputs]
    initializers = [
        value
        for value in copies.values()
        if value.is_initializer() or value.const_value is not None
    ]
    graph = ir.Graph(
        [],
        [identity.outputs[0] for identity in identities],
        nodes=[*nodes, *identities],
        initializers=initializers,
        opset_imports=model.opset_imports,
        name="position",
    )
    small = ir.Model(graph, ir_version=model.ir_version)
    while sum(fold(small) for fold in _FOLDS):
        pass
    folded = [constant(identity.inputs[0]) for identity in identities]
    arrays = [array for array in folded if array is not None]
    return arrays if len(arrays) == len(folded) else None


def _copied(
    value: ir.Value | None, copies: dict[ir.Value, ir.Value]
) -> ir.Value | None:
    if value is None or value in copies:
        return copies.get(value) if value is not None else None
    array = constant(value)
    assert array is not None
    copies[value] = _initializer(f"c{len(copies)}", array)
    return copies[value]


def _initializer(name: str, array: Array) -> ir.Value:
    tensor = ir.tensor(array, name=name)
    return ir.Value(
        name=name,
        shape=ir.Shape(array.shape),
        type=ir.TensorType(tensor.dtype),
        const_value=tensor,
    )


def _describe(copy: ir.Value, value: ir.Value, name: str) -> None:
    copy.name, copy.type, copy.shape = name, value.type, value.shape


def _look_up(node: ir.Node, position: ir.Value, rows: Array) -> None:
    """Gather the row of the position, in the result's shape."""
    shape = shape_of(node.outputs[0])
    assert shape is not None
    patch = Patch(node)
    table = patch.constant(
        rows.reshape(len(rows), -1).astype(np.float32), "table"
    )
    index = patch.add("Reshape", position, patch.axes((1,), "one"))
    row = patch.add("Gather", table, index, axis=0)
    patch.finish(patch.add("Reshape", row, patch.axes(shape, "shape")))
