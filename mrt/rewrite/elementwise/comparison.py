"""Canonicalizes comparisons and logic: a constant second, Xor as And, Or and Not."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import constant, nodes, operand

_MIRRORED = {
    "Greater": "Less", "GreaterOrEqual": "LessOrEqual", "Less": "Greater", "LessOrEqual": "GreaterOrEqual",
    "Equal": "Equal", "And": "And", "Or": "Or",
}  # fmt: skip


def canonicalize_comparison(model: ir.Model) -> int:
    """k < x -> x > k, and likewise the other comparisons; Xor -> And, Or and Not.

    Xor(a, b) -> And(Or(a, b), Not(And(a, b))). Always equal.
    """
    count = 0
    for node in nodes(model, *_MIRRORED, "Xor"):
        left, right = node.inputs
        patch = Patch(node)
        if node.op_type == "Xor":
            both = patch.add("And", left, right)
            patch.finish(
                patch.add(
                    "And", patch.add("Or", left, right), patch.add("Not", both)
                )
            )
        elif (
            constant(operand(node, 0)) is not None
            and constant(operand(node, 1)) is None
        ):
            patch.finish(patch.add(_MIRRORED[node.op_type], right, left))
        else:
            continue
        count += 1
    return count
