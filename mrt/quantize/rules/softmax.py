"""The rule of Softmax: differences to the greatest logit, exp by lookup table, one division.

With e = 32767 * exp(x - max) and one = 32767 (or 16384 where scales are powers of two):

    p = (e * one + sum / 2) / sum     the probability in steps of 1 / one, rounded half up
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.quantize.context import LoweringContext
from mrt.quantize.exponentials import ONE, Exponentials
from mrt.quantize.roots import Arithmetic
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Tensor

POWER_OF_TWO_ONE = (
    16384  # the integer of probability 1 where scales are powers of two
)


@rule("Softmax")
def softmax(net: LoweringContext, node: ir.Node) -> None:
    """Write the quotient of each exponential and their sum, provable for up to 65538 entries."""
    one = POWER_OF_TWO_ONE if net.options.scales == "shift" else ONE
    powers = Exponentials.of(net, node)
    a = Arithmetic(net.builder, len(powers.logits.layout))
    # The sum is at least ONE; the clamp is for the proof, whose interval begins at 0.
    total = a.clamp(powers.total(net), 1, 2**31 - 1)
    scaled = a.mul(powers.values, a.number(one))
    half = a.floor_right(total, 1)
    quotient = net.builder.emit("intdiv", a.add(scaled, half), total)
    value = net.builder.emit("cast", a.clamp(quotient, 0, one), dtype="i16")
    scale = np.array([1.0 / one])
    net.define(node.outputs[0], Tensor(value, scale, 0, powers.logits.layout))
