"""Lowers convolutions and pools of one spatial axis to those of two with a width of 1."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch, set_attributes
from mrt.graph.values import (
    constant,
    first,
    ints_attribute,
    nodes,
    operand,
    rank_of,
    shape_of,
)

_WIDTH = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 0}


def lower_conv1d(model: ir.Model) -> int:
    """Conv, ConvTranspose, MaxPool, AveragePool on [N, C, L] -> the 2-D node.

    A Reshape to [N, C, L, 1] goes in front and a Reshape back behind. Applies when the
    window is written out and the weights are constant; runs after the fusions, which do
    not look through a Reshape. Always equal.
    """
    count = 0
    for node in nodes(model, "Conv", "ConvTranspose", "MaxPool", "AveragePool"):
        shape = shape_of(first(node))
        result = shape_of(node.outputs[0])
        pads = ints_attribute(node, "pads")
        weights = constant(operand(node, 1))
        is_convolution = node.op_type in ("Conv", "ConvTranspose")
        if (
            rank_of(first(node)) != 3
            or shape is None
            or result is None
            or pads is None
            or len(node.outputs) != 1
        ):
            continue
        if ints_attribute(node, "kernel_shape") is None or (
            is_convolution and weights is None
        ):
            continue
        patch = Patch(node)
        tall = patch.add(
            "Reshape", first(node), patch.axes((*shape, 1), "tall"), allowzero=0
        )
        operands = [tall, *node.inputs[1:]]
        if weights is not None:
            operands[1] = patch.constant(weights[..., None], "weight")
        value = patch.add(node.op_type, *operands)
        wide = value.producer()
        assert wide is not None
        wide.attributes.update(node.attributes)
        set_attributes(wide, pads=(pads[0], 0, pads[1], 0))
        for name, width in _WIDTH.items():
            if (numbers := ints_attribute(node, name)) is not None:
                set_attributes(wide, **{name: (*numbers, width)})
        patch.finish(
            patch.add(
                "Reshape", value, patch.axes(result, "shape"), allowzero=0
            )
        )
        count += 1
    return count
