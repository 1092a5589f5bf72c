"""Lowers a dilated ConvTranspose to a plain one with zeros between the taps of its kernel."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import add_constant, set_attributes
from mrt.graph.values import constant, ints_attribute, nodes, operand
from mrt.rewrite.constants.fold_constants import LARGEST_RESULT


def lower_dilated_conv_transpose(model: ir.Model) -> int:
    """ConvTranspose(W, dilations) -> ConvTranspose(W with zeros between, dilations 1).

    Applies to constant weights if, with the zeros, they have at most LARGEST_RESULT
    elements. Always equal.
    """
    count = 0
    for node in nodes(model, "ConvTranspose"):
        weights = constant(operand(node, 1))
        dilations = ints_attribute(node, "dilations") or ()
        if (
            weights is None
            or all(dilation == 1 for dilation in dilations)
            or len(dilations) != weights.ndim - 2
        ):
            continue
        extent = [
            (size - 1) * step + 1
            for size, step in zip(weights.shape[2:], dilations, strict=True)
        ]
        if (
            min(dilations) < 1
            or math.prod(weights.shape[:2]) * math.prod(extent) > LARGEST_RESULT
        ):
            continue
        spread = np.zeros((*weights.shape[:2], *extent), weights.dtype)
        spread[
            (
                slice(None),
                slice(None),
                *(slice(None, None, step) for step in dilations),
            )
        ] = weights
        assert isinstance(node.graph, ir.Graph)
        node.replace_input_with(
            1,
            add_constant(node.graph, spread, f"{node.outputs[0].name}.spread"),
        )
        set_attributes(
            node, kernel_shape=tuple(extent), dilations=(1,) * len(extent)
        )
        count += 1
    return count
