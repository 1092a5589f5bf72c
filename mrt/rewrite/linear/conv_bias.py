"""Adds a bias of zeros to every convolution without one."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import constant, int_attribute, nodes, operand


def add_conv_bias(model: ir.Model) -> int:
    """Conv or ConvTranspose without a bias -> the same with a bias of zeros.

    Applies when the weights are constant. Equal.
    """
    count = 0
    for node in nodes(model, "Conv", "ConvTranspose"):
        weights = constant(operand(node, 1))
        if operand(node, 2) is not None or weights is None:
            continue
        outputs = (
            weights.shape[0]
            if node.op_type == "Conv"
            else weights.shape[1] * int_attribute(node, "group", 1)
        )
        node.resize_inputs(3)
        node.replace_input_with(
            2, Patch(node).constant(np.zeros(outputs, np.float32), "bias")
        )
        count += 1
    return count
