"""LogSoftmax in integers: differences to the greatest logit, less the logarithm of the sum of their exponentials.

The logarithm of a sum m * 2^e with m of 15 bits: e * ln 2 and, by two tables of 256, ln h + (m - h) / m' with h the upper
8 bits of m and m' the middle of its step. It is right to 2^-15.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.exact.fixed_point import usable_scale
from mrt.exact.precision import HALF, PRECISION, add, divide, subtract
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.exponentials import ONE, Exponentials
from mrt.quantize.roots import MANTISSA_BITS, Arithmetic, excess_bits
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Tensor

LOGARITHM_REACH = 32.0  # no logarithm of a sum of i32 is beyond
FINE_BITS = 29
SLOPE_BITS = 8  # of the slope below the unit of the result
UPPER = 2**7  # entries of a step; h = 128 .. 256


@rule("LogSoftmax")
def log_softmax(net: LoweringContext, node: ir.Node) -> None:
    """(x - max) - ln(sum of exp(x - max))."""
    powers = Exponentials.of(net, node)
    x, step = powers.logits, powers.scale
    a = Arithmetic(net.builder, len(x.layout))
    unit = usable_scale(
        math.ldexp(65536 * step + LOGARITHM_REACH, -FINE_BITS), net.options.scales
    )
    # True already: the greatest logit gives ONE.
    total = a.clamp(powers.total(net), 2 ** (MANTISSA_BITS - 1), 2**31 - 1)
    difference = net.rescale(
        Tensor(powers.below, x.scale, 0, x.layout), np.array([step / unit]), "i32", 0
    )
    difference = a.clamp(difference, -(2**30), 0)
    result = a.sub(difference, _logarithm(net, a, total, unit))
    net.define(node.outputs[0], Tensor(result, np.array([unit]), 0, x.layout))


def _logarithm(
    net: LoweringContext, a: Arithmetic, total: Handle, unit: float
) -> Handle:
    """ln(total / ONE) in units."""
    excess = excess_bits(a, total, MANTISSA_BITS)
    mantissa = a.clamp(
        a.right(total, excess, computed=True),
        2 ** (MANTISSA_BITS - 1),
        2**MANTISSA_BITS - 1,
    )
    upper = net.builder.emit("shift_right", mantissa, a.number(7), round=False)
    lower = a.clamp(a.sub(mantissa, a.left(upper, 7)), 0, UPPER - 1)
    index = net.builder.emit(
        "cast", a.clamp(a.add(upper, number=-UPPER), 0, 127), dtype="i8"
    )
    starts, slopes = (
        net.builder.emit("table", index, net.constant(values))
        for values in _tables(unit)
    )
    octaves = a.mul(excess, a.number(_units(PRECISION.ln(Decimal(2)), unit)))
    return a.add(a.add(octaves, starts), a.right(a.mul(lower, slopes), SLOPE_BITS))


def _tables(unit: float) -> tuple[IntArray, IntArray]:
    """ln(128 h / ONE), and 2^8 / (128 h + 64), in units, for h = 128 .. 255."""
    starts, slopes = np.zeros(256, np.int32), np.zeros(256, np.int32)
    for entry in range(128):
        start = Decimal((UPPER + entry) * UPPER)
        starts[128 + entry] = _units(
            subtract(PRECISION.ln(start), PRECISION.ln(Decimal(ONE))), unit
        )
        slopes[128 + entry] = _units(
            divide(Decimal(2**SLOPE_BITS), add(start, Decimal(UPPER // 2))), unit
        )
    return starts, slopes


def _units(real: Decimal, unit: float) -> int:
    return int(
        add(divide(real, Decimal(unit)), HALF).to_integral_value(
            "ROUND_FLOOR", PRECISION
        )
    )
