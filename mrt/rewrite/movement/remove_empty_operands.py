"""Removes operands without elements from Concat."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import int_attribute, nodes, shape_of


def remove_empty_operands(model: ir.Model) -> int:
    """Concat(a, [no elements], b) -> Concat(a, b).

    Applies where another operand has elements. Always equal.
    """
    count = 0
    for node in nodes(model, "Concat"):
        full = [
            value
            for value in node.inputs
            if value is not None and 0 not in (shape_of(value) or ())
        ]
        if not full or len(full) == len(node.inputs):
            continue
        patch = Patch(node)
        patch.finish(
            patch.add("Concat", *full, axis=int_attribute(node, "axis", 0))
        )
        count += 1
    return count
