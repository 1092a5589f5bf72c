"""Folds reversed channels (BGR for RGB) into the weights of the convolution that reads them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    constant_integers,
    first,
    int_attribute,
    nodes,
    operand,
    producer,
)


def fold_reversed_channels(model: ir.Model) -> int:
    """Conv(Slice(x) reversing axis 1, W) -> Conv(x, W with axis 1 reversed).

    Applies to convolutions of one group. Equal.
    """
    count = 0
    for node in nodes(model, "Conv"):
        turn = producer(first(node), "Slice")
        weights = constant(operand(node, 1))
        if (
            turn is None
            or weights is None
            or int_attribute(node, "group", 1) != 1
            or not _turns_channels(turn)
        ):
            continue
        node.replace_input_with(0, first(turn))
        node.replace_input_with(
            1, Patch(node).constant(np.flip(weights, 1), "weight")
        )
        count += 1
    return count


def _turns_channels(node: ir.Node) -> bool:
    """Whether a Slice in canonical form reverses axis 1 and does nothing else."""
    return constant_integers(operand(node, 3)) == (1,) and constant_integers(
        operand(node, 4)
    ) == (-1,)
