"""Softmax in integers: differences to the greatest logit, exp by table, one division."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.errors import Unsupported
from mrt.quantize import enclosed_functions
from mrt.quantize.builder import Handle
from mrt.quantize.enclosure import Enclosure, rounded
from mrt.quantize.lowering import Lowering, identity, name_of
from mrt.quantize.precision import HALF, PRECISION, add, exp, multiply
from mrt.quantize.rules import rule
from mrt.quantize.tensor import Format, Tensor

LOGIT_LIMIT = 16383  # 15 bits, so that the difference of two logits fits i16
ONE = 32767  # what exp(0) and, but for scales "shift", probability 1 become
POWER_ONE = 16384  # what probability 1 becomes where scales are powers of two
MOST_ENTRIES = 65538  # their exponentials, at most ONE each, still sum to less than 2^31


@rule("Softmax")
def softmax(net: Lowering, node: ir.Node) -> None:
    """p = (e * one + sum/2) / sum with e = max(1, ONE * exp(x - max)): provable for up to 65538 entries."""
    one = POWER_ONE if net.options.scales == "shift" else ONE
    x, _, exponential = exponentiated(net, node, least=1)
    emit, shape_of_one = net.builder.emit, [1] * len(x.layout)
    total = emit("reduce_sum", exponential, axis=len(x.layout) - 1)
    # Changes nothing: the proof of a sum allows for its empty subset.
    total = emit("clamp", total, min=1, max=2**31 - 1)
    scaled = emit("mul", exponential, net.constant(np.full(shape_of_one, one, np.int32)), shift=0)
    half = emit("shift_right", total, net.constant(np.full(shape_of_one, 1, np.int32)), round=False)
    quotient = emit("intdiv", emit("add", scaled, half), total)
    value = emit("cast", emit("clamp", quotient, min=0, max=one), dtype="i16")
    net.define(node.outputs[0], Tensor(value, np.array([1.0 / one]), 0, x.layout))


def exponentiated(net: Lowering, node: ir.Node, *, least: int) -> tuple[Tensor, Handle, Handle]:
    """The logits, their differences to the greatest of each row, and the exponentials of those: `least` .. ONE."""
    x = net.logical(_logits(net, node))
    emit, axis = net.builder.emit, len(x.layout) - 1
    if net.shape(x)[axis] > MOST_ENTRIES:
        raise Unsupported(
            [f"{node.name} ({node.op_type}): {net.shape(x)[axis]} entries; at most {MOST_ENTRIES} can be proven"]
        )
    wide = emit("cast", x.value, dtype="i32")
    below = emit("sub", wide, emit("reduce_max", wide, axis=axis))
    index = emit("cast", emit("clamp", below, min=-32768, max=0), dtype="i16")
    return x, below, emit("table", index, net.constant(_exponentials(float(x.scale[0]), least)))


def _logits(net: Lowering, node: ir.Node) -> Tensor:
    """The logits in 15 bits, straight from the accumulator."""
    source = node.inputs[0]
    wide = net.format_for(name_of(source), 16)
    tensor = net.source(source)
    if not tensor.per_tensor and tensor.layout != identity(len(tensor.layout)):
        tensor = net.settled(source)
    target = Format("i16", wide.scale * 2, 0, -LOGIT_LIMIT, LOGIT_LIMIT)
    return net.bring(tensor, target, name_of(source))


def _exponentials(scale: float, least: int) -> IntArray:
    """max(least, round(ONE * exp(scale * d))) for d = -32768..0; above 0, which cannot occur, ONE."""
    step = Decimal(scale)

    def exactly(place: int) -> int:
        power = exp(multiply(step, Decimal(place - 32768)))
        return max(least, int(add(multiply(power, Decimal(ONE)), HALF).to_integral_value("ROUND_FLOOR", PRECISION)))

    powers = enclosed_functions.exp(Enclosure.of(scale) * Enclosure.of(np.arange(-32768, 1)))
    values = np.full(65536, ONE, np.int32)
    values[:32769] = rounded(powers * Enclosure.of(ONE), least, ONE, exactly)
    return values
