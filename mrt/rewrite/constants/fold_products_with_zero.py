"""Folds products with a constant of zeros to zeros."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import replace_by_constant
from mrt.graph.values import constant, nodes, shape_of


def fold_products_with_zero(model: ir.Model) -> int:
    """x * 0 -> 0, where the zeros are a constant.

    Detectors make a tensor of x's shape this way. Equal for every finite x.
    """
    count = 0
    for node in nodes(model, "Mul"):
        shape, dtype = shape_of(node.outputs[0]), node.outputs[0].dtype
        zeros = [
            array
            for value in node.inputs
            if (array := constant(value)) is not None and not array.any()
        ]
        if (
            not zeros
            or shape is None
            or dtype != ir.DataType.FLOAT
            or node.outputs[0].is_graph_output()
        ):
            continue
        replace_by_constant(node.outputs[0], np.zeros(shape, np.float32))
        model.graph.remove(node, safe=True)
        count += 1
    return count
