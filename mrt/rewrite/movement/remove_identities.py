"""Removes nodes that return their operand unchanged."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch, bypass
from mrt.graph.values import (
    constant,
    constant_integers,
    first,
    ints_attribute,
    nodes,
    operand,
    scalar,
    shape_of,
)

_OPERATORS = ("Identity", "Dropout", "Cast", "Transpose", "Reshape", "Expand", "Tile", "Slice", "Pad", "Concat", "Sum", "Max",
              "Min", "Mean", "Mul", "Add")  # fmt: skip


def remove_identities(model: ir.Model) -> int:
    """f(x) -> x where f changes nothing.

    Applies to Identity, Dropout at inference, and Cast, Transpose, Reshape and others
    that leave their operand unchanged. Between an input and an output of the graph the
    node becomes a Reshape to the same shape, since both names must stay.
    """
    count = 0
    for node in nodes(model, *_OPERATORS):
        if any(
            output.uses() or output.is_graph_output()
            for output in node.outputs[1:]
        ) or not _is_identity(node):
            continue
        if bypass(node, first(node)):
            count += 1
        elif (
            node.op_type != "Reshape"
            and (shape := shape_of(first(node))) is not None
        ):
            patch = Patch(node)
            patch.finish(
                patch.add(
                    "Reshape",
                    first(node),
                    patch.axes(shape, "shape"),
                    allowzero=0,
                )
            )
            count += 1
    return count


def _is_identity(node: ir.Node) -> bool:  # one line per operator
    x, shape = first(node), shape_of(first(node))
    same_shape = shape is not None and shape_of(node.outputs[0]) == shape
    match node.op_type:
        case "Identity":
            return True
        case "Dropout":
            return _never_trains(node)
        case "Cast":
            return (
                x.dtype is not None
                and x.dtype == node.attributes["to"].as_int()
            )
        case "Transpose":
            permutation = ints_attribute(node, "perm")
            return shape is not None and permutation == tuple(range(len(shape)))
        case "Reshape" | "Expand" | "Tile":
            return same_shape
        case "Slice":
            return same_shape and all(
                step > 0 for step in constant_integers(operand(node, 4)) or (1,)
            )
        case "Pad":
            pads = constant_integers(operand(node, 1))
            return pads is not None and not any(pads)
        case "Concat" | "Sum" | "Max" | "Min" | "Mean":
            return len(node.inputs) == 1
        case "Mul":
            return same_shape and scalar(operand(node, 1)) == 1.0
        case _:
            return same_shape and scalar(operand(node, 1)) == 0.0


def _never_trains(node: ir.Node) -> bool:
    """Whether training_mode, the third operand of a Dropout, is absent or false."""
    training = operand(node, 2)
    array = constant(training)
    return training is None or (array is not None and not bool(array.any()))
