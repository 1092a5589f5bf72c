"""Softmax in integers: differences to the greatest logit, exp by table, one division."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.quantize.context import LoweringContext
from mrt.quantize.exponentials import ONE, Exponentials
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Tensor

POWER_ONE = (
    16384  # what probability 1, else ONE, becomes where scales are powers of two
)


@rule("Softmax")
def softmax(net: LoweringContext, node: ir.Node) -> None:
    """p = (e * one + sum/2) / sum with e = ONE * exp(x - max): provable for up to 65538 entries."""
    one = POWER_ONE if net.options.scales == "shift" else ONE
    powers = Exponentials.of(net, node)
    emit, rank = net.builder.emit, len(powers.logits.layout)
    # Changes nothing: the proof of a sum allows for its empty subset.
    total = emit("clamp", powers.total(net), min=1, max=2**31 - 1)
    scaled = emit(
        "mul", powers.values, net.constant(np.full([1] * rank, one, np.int32)), shift=0
    )
    half = emit(
        "shift_right",
        total,
        net.constant(np.full([1] * rank, 1, np.int32)),
        round=False,
    )
    quotient = emit("intdiv", emit("add", scaled, half), total)
    value = emit("cast", emit("clamp", quotient, min=0, max=one), dtype="i16")
    net.define(
        node.outputs[0], Tensor(value, np.array([1.0 / one]), 0, powers.logits.layout)
    )
