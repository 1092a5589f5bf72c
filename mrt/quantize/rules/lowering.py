"""Writes a node by the first rule that applies to its operands; all rules are reached from here."""

from __future__ import annotations

import onnx_ir as ir

from mrt.errors import Unsupported
from mrt.quantize.context import LoweringContext
from mrt.quantize.rounding import LayerSteps
from mrt.quantize.rules.integers import lower_integer
from mrt.quantize.rules.registry import OWN_RULES, RULES


def lower(net: LoweringContext, node: ir.Node) -> LayerSteps | None:
    """Write the instructions of a node, by the exact rule if it applies.

    For a layer with weights, return the steps that yield the layer.
    """
    if node.domain:
        return OWN_RULES[node.op_type](net, node)
    if lower_integer(net, node):
        return None
    if node.op_type not in RULES:
        raise Unsupported(
            [
                f"{node.name} ({node.op_type}): cannot be computed with integers here"
            ]
        )
    return RULES[node.op_type](net, node)
