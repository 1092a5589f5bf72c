"""Readers of a float graph: constants, shapes, attributes, producers and users of values.

They return None for anything that is not known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy.typing as npt
import onnx_ir as ir

from mrt.graph.operators import MOVES_OF_ONE

Array = npt.NDArray[Any]
MOST_ELEMENTS = 1 << 28  # of one value of a float graph
GREATEST_MASK = -1000.0  # a number as low as this is a mask, below any logit
TABLE_RANK, SEQUENCE_RANK, IMAGE_RANK = (
    2,
    3,
    4,
)  # axes: rows and columns; samples, channels, height and width
CHANNELS_LAST, CHANNELS_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)  # of images
OWN_DOMAIN = "mrt"  # of nodes that no operator of ONNX can be
Attribute = int | float | str | tuple[int, ...]


def constant(value: ir.Value | None) -> Array | None:
    """Return the array of an initializer that no caller can replace; None for everything else."""
    if (
        value is None
        or not value.is_initializer()
        or value.is_graph_input()
        or value.const_value is None
    ):
        return None
    return value.const_value.numpy()


def scalar(value: ir.Value | None) -> float | None:
    """Return the one element of a constant, as a float."""
    array = constant(value)
    return (
        None if array is None or array.size != 1 else float(array.reshape(()))
    )


def is_read_elsewhere(value: ir.Value) -> bool:
    """Whether a value has a second reader, or is an output besides."""
    return len(value.uses()) > 1 or value.is_graph_output()


def shape_of(value: ir.Value | None) -> tuple[int, ...] | None:
    """Return the shape if every dimension is a known number."""
    if (
        value is None
        or value.shape is None
        or not all(isinstance(dimension, int) for dimension in value.shape)
    ):
        return None
    return tuple(int(str(dimension)) for dimension in value.shape)


def rank_of(value: ir.Value | None) -> int | None:
    """Return the number of dimensions if the shape is known."""
    shape = shape_of(value)
    return None if shape is None else len(shape)


def operand(node: ir.Node, index: int) -> ir.Value | None:
    """Return an operand; None where it is absent or left empty."""
    return node.inputs[index] if index < len(node.inputs) else None


def first(node: ir.Node) -> ir.Value:
    """Return the first operand, which every operator with operands has."""
    value = node.inputs[0]
    assert value is not None
    return value


def int_attribute(node: ir.Node, name: str, default: int) -> int:
    """Return an integer attribute, or the default."""
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_int()


def float_attribute(node: ir.Node, name: str, default: float) -> float:
    """Return a float attribute, or the default."""
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_float()


def string_attribute(node: ir.Node, name: str, default: str) -> str:
    """Return a string attribute, or the default."""
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_string()


def ints_attribute(node: ir.Node, name: str) -> tuple[int, ...] | None:
    """Return a list of integers; None if it is absent."""
    attribute = node.attributes.get(name)
    return None if attribute is None else tuple(attribute.as_ints())


def constant_integers(value: ir.Value | None) -> tuple[int, ...] | None:
    """Return the integers of a constant operand: axes, a shape, starts, ..."""
    array = constant(value)
    return (
        None
        if array is None
        else tuple(int(number) for number in array.reshape(-1))
    )


def sole_user(value: ir.Value) -> ir.Node | None:
    """Return the only node that reads this value; None if it is read twice or is a graph output."""
    if value.is_graph_output() or len(value.uses()) != 1:
        return None
    return next(iter(value.uses())).node


def producer(value: ir.Value | None, *operators: str) -> ir.Node | None:
    """Return the node that makes this value, if its operator is one of these."""
    node = None if value is None else value.producer()
    return (
        node
        if node is not None and node.op_type in operators and node.domain == ""
        else None
    )


def moved_from(
    value: ir.Value, operators: Iterable[str] = MOVES_OF_ONE
) -> list[ir.Value]:
    """Return a value and the values that it was moved from, back to one that no such operator makes.

    Each operator moves its first operand.
    """
    path, moves = [value], tuple(operators)
    while (node := producer(path[-1], *moves)) is not None:
        path.append(first(node))
    return path


def source_of_moves(
    value: ir.Value, operators: Iterable[str] = MOVES_OF_ONE
) -> ir.Value:
    """Return the value that was moved to this one, or the value itself."""
    return moved_from(value, operators)[-1]


def moved_to(
    value: ir.Value, operators: Collection[str] = MOVES_OF_ONE
) -> list[ir.Value]:
    """Return a value and all values that it is moved to."""
    values = [value]
    for moved in values:  # which grows as it is read
        readers = [use.node for use in moved.uses()]
        values += [it.outputs[0] for it in readers if it.op_type in operators]
    return values


def inputs_behind(value: ir.Value) -> list[str]:
    """Return the names of the model's inputs from which a value is computed, sorted."""
    waiting, visited = [value], {value}
    while waiting:
        node = waiting.pop().producer()
        operands = () if node is None else node.inputs
        new = {source for source in operands if source is not None} - visited
        visited |= new
        waiting += new
    return sorted(
        str(source.name)
        for source in visited
        if source.producer() is None and source.const_value is None
    )


def nodes(model: ir.Model, *operators: str) -> list[ir.Node]:
    """Return the nodes of these operators in graph order, listed before anything is changed."""
    return [
        node
        for node in model.graph
        if node.domain == "" and node.op_type in operators
    ]
