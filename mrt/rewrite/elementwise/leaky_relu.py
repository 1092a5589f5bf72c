"""Lowers LeakyRelu and PRelu to Relu."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    first,
    float_attribute,
    nodes,
    operand,
)


def lower_leaky_relu(model: ir.Model) -> int:
    """LeakyRelu(x), PRelu(x, slope) -> Relu(x) - slope * Relu(-x).

    Applies when the slope is constant. Equal.
    """
    count = 0
    for node in nodes(model, "LeakyRelu", "PRelu"):
        slope = _slope(node)
        if slope is None:
            continue
        patch = Patch(node)
        minus_one = patch.constant(np.array(-1.0, np.float32), "minus_one")
        below = patch.add("Relu", patch.add("Mul", first(node), minus_one))
        scaled = patch.add("Mul", below, patch.constant(slope, "slope"))
        patch.finish(patch.add("Sub", patch.add("Relu", first(node)), scaled))
        count += 1
    return count


def _slope(node: ir.Node) -> Array | None:
    if node.op_type == "LeakyRelu":
        return np.array(float_attribute(node, "alpha", 0.01), np.float32)
    return constant(operand(node, 1))
