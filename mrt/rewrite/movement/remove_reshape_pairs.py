"""Removes a Reshape and its inverse around a function of each row or element."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import first, nodes, producer, scalar, shape_of, sole_user

_OF_ONE_ELEMENT = (
    "Relu", "Clip", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Erf", "Elu", "Selu", "Neg", "Abs", "Reciprocal",
    "Mul", "Add",
)  # fmt: skip


def remove_reshape_pairs(model: ir.Model) -> int:
    """Reshape, f, Reshape back to the first shape -> f.

    f is a Softmax of the last axis or a function of one element. Applies when nothing
    else reads the values in between, and, for Softmax, when the last axis has the same
    size in both shapes. Safe because a Reshape keeps row-major order, and with it the
    rows.
    """
    count = 0
    for node in nodes(model, "Softmax", *_OF_ONE_ELEMENT):
        before = producer(node.inputs[0], "Reshape")
        after = sole_user(node.outputs[0])
        if (
            before is None
            or after is None
            or after.op_type != "Reshape"
            or sole_user(before.outputs[0]) is not node
        ):
            continue
        shape, inner = shape_of(first(before)), shape_of(before.outputs[0])
        if (
            not shape
            or not inner
            or shape != shape_of(after.outputs[0])
            or not _fits(node, shape, inner)
        ):
            continue
        patch = Patch(after)
        value = patch.add(node.op_type, first(before), *node.inputs[1:])
        maker = value.producer()
        assert maker is not None
        maker.attributes.update(node.attributes)
        if node.op_type == "Softmax":
            maker.attributes["axis"] = ir.AttrInt64("axis", len(shape) - 1)
        patch.finish(value)
        count += 1
    return count


def _fits(
    node: ir.Node, shape: tuple[int, ...], inner: tuple[int, ...]
) -> bool:
    if node.op_type == "Softmax":
        axis = (
            node.attributes["axis"].as_int()
            if "axis" in node.attributes
            else -1
        )
        return axis % len(inner) == len(inner) - 1 and shape[-1] == inner[-1]
    return all(scalar(value) is not None for value in node.inputs[1:])
