"""Outputs that are a Sigmoid's: scores from 0 to 1."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.operators import MOVES_OF_ONE


def score_values(output: ir.Value) -> list[ir.Value]:
    """Return an output and the values that it was moved from, up to the Sigmoid's; none if it is no Sigmoid's."""
    values = [output]
    node = output.producer()
    while node is not None and node.op_type in MOVES_OF_ONE:
        operand = node.inputs[0]
        if operand is None:
            return []
        values.append(operand)
        node = operand.producer()
    is_score = node is not None and node.op_type == "Sigmoid"
    return values if is_score else []
