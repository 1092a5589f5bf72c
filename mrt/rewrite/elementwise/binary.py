"""Canonicalizes Sum, Mean, Max, Min, Add, Sub, Mul and Div to two operands.

A constant operand comes second.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import constant, nodes, operand

_FOLDS = {"Sum": "Add", "Mean": "Add", "Max": "Max", "Min": "Min"}


def canonicalize_binary(model: ir.Model) -> int:
    """Sum(a, b, c) -> Add(Add(a, b), c); Add(k, x) -> Add(x, k).

    Max and Min of many operands likewise; Mean -> the Add times 1/n; Sub(k, x) -> x *
    -1 + k; Sub(x, k) -> Add(x, -k). Equal but for the rounding of 1/n and the order of
    a Sum.
    """
    count = 0
    for node in nodes(model, *_FOLDS, "Add", "Mul", "Sub"):
        left, right = constant(operand(node, 0)), constant(operand(node, 1))
        if node.op_type in ("Sum", "Mean") or (
            node.op_type in _FOLDS and len(node.inputs) > 2
        ):
            _fold(node)
        elif node.op_type == "Sub" and right is not None and left is None:
            patch = Patch(node)
            patch.finish(
                patch.add(
                    "Add", node.inputs[0], patch.constant(-right, "negated")
                )
            )
        elif (
            left is not None
            and right is None
            and node.op_type == "Sub"
            and left.dtype.kind == "u"
        ):
            continue  # an unsigned type has no -1
        elif left is not None and right is None and node.op_type == "Sub":
            patch = Patch(node)
            negated = patch.add(
                "Mul",
                node.inputs[1],
                patch.constant(np.array(-1, left.dtype), "minus_one"),
            )
            patch.finish(patch.add("Add", negated, node.inputs[0]))
        elif left is not None and right is None and len(node.inputs) == 2:
            first, second = node.inputs
            node.replace_input_with(0, second)
            node.replace_input_with(1, first)
        else:
            continue
        count += 1
    return count


def _fold(node: ir.Node) -> None:
    patch = Patch(node)
    value = node.inputs[0]
    for other in node.inputs[1:]:
        value = patch.add(_FOLDS[node.op_type], value, other)
    if node.op_type == "Mean":
        value = patch.add(
            "Mul",
            value,
            patch.constant(
                np.array(1.0 / len(node.inputs), np.float32), "inverse_count"
            ),
        )
    assert value is not None
    patch.finish(value)
