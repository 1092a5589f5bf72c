"""Canonicalizes nodes that only regroup elements to a Reshape to a constant shape."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch, set_attributes
from mrt.graph.values import (
    constant_integers,
    first,
    int_attribute,
    nodes,
    operand,
    producer,
    shape_of,
)


def canonicalize_reshape(model: ir.Model) -> int:
    """Flatten, Squeeze, Unsqueeze, Reshape with 0 and -1 -> Reshape(x, shape).

    Of several in a row only the last one remains. Applies where the result's shape is
    known. Safe because all of them keep the elements in row-major order.
    """
    count = 0
    for node in nodes(model, "Flatten", "Squeeze", "Unsqueeze", "Reshape"):
        shape = shape_of(node.outputs[0])
        if shape is None or 0 in shape:
            continue
        inner = producer(
            first(node), "Reshape", "Flatten", "Squeeze", "Unsqueeze"
        )
        if inner is not None:
            node.replace_input_with(0, first(inner))
        elif _is_written(node, shape):
            continue
        if _is_written(node, shape):
            set_attributes(node, allowzero=0)
        else:
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


def _is_written(node: ir.Node, shape: tuple[int, ...]) -> bool:
    """Whether a node is already a Reshape to a constant that is the result's shape."""
    return (
        node.op_type == "Reshape"
        and constant_integers(operand(node, 1)) == shape
        and int_attribute(node, "allowzero", 0) == 0
    )
