"""Takes an ArgMax in front of the Softmax that it reads: rounded probabilities are equal oftener than scores."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.values import (
    first,
    int_attribute,
    nodes,
    operand,
    producer,
    rank_of,
)

SOFTMAXES = ("Softmax", "LogSoftmax")


def take_argmax_before_softmax(model: ir.Model) -> int:
    """ArgMax(Softmax(x)) -> ArgMax(x), of LogSoftmax likewise, along the same axis.

    Applies where the rank is known. Equal, except for scores so close or so small that
    float gives them one probability.
    """
    count = 0
    for node in nodes(model, "ArgMax"):
        rank = rank_of(first(node))
        softmax = producer(operand(node, 0), *SOFTMAXES)
        if not rank or softmax is None:
            continue
        axes = (
            int_attribute(node, "axis", 0),
            int_attribute(softmax, "axis", -1),
        )
        if axes[0] % rank == axes[1] % rank:
            node.replace_input_with(0, first(softmax))
            count += 1
    return count
