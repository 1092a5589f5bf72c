"""LogSoftmax in integers: (x - max) - ln(sum of exp(x - max)).

The sum of exponentials, in steps of 1/32767, is m * 2^e with a mantissa m of 15 bits. Let h
be the upper 8 bits of m, 128 .. 255, and l its lower 7, so that m = 128 h + l. Then

    ln(m * 2^e) = e * ln 2 + ln(128 h) + l / (128 h + 64), right to 2^-15

where two lookup tables, indexed by h, give the logarithm and the slope 1 / (128 h + 64), the
slope of ln in the middle of the step.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.exact.fixed_point import usable_scale
from mrt.exact.precision import PRECISION, add, divide, round_half_up, subtract
from mrt.quantize.builder import Handle
from mrt.quantize.context import LoweringContext
from mrt.quantize.exponentials import ONE, Exponentials
from mrt.quantize.roots import (
    LEAST_MANTISSA,
    MANTISSA_BITS,
    Arithmetic,
    excess_bits,
)
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Tensor

GREATEST_LOGARITHM = 32.0  # no sum in i32 has a greater logarithm
LOGARITHM_BITS = 29
SLOPE_BITS = 8  # bits of a slope after the point
LOWER_BITS = 7
STEPS = 2**LOWER_BITS  # entries of a table; also the mantissas in one step of h


@rule("LogSoftmax")
def log_softmax(net: LoweringContext, node: ir.Node) -> None:
    """Write the differences to the greatest logit, minus the logarithm of the sum.

    Both count in steps of `unit`, fine enough that differences of 16 bits fill 29 bits.
    """
    powers = Exponentials.of(net, node)
    logits, step = powers.logits, powers.scale
    a = Arithmetic(net.builder, len(logits.layout))
    greatest = 65536 * step + GREATEST_LOGARITHM
    unit = usable_scale(
        math.ldexp(greatest, -LOGARITHM_BITS), net.options.scales
    )
    # The sum is at least ONE, from the greatest logit; the clamp is for the proof.
    total = a.clamp(powers.total(net), LEAST_MANTISSA, 2**31 - 1)
    below = Tensor(powers.below, logits.scale, 0, logits.layout)
    difference = net.rescale(below, np.array([step / unit]), "i32", 0)
    difference = a.clamp(difference, -(2**30), 0)
    result = a.sub(difference, _logarithm(net, a, total, unit))
    net.define(
        node.outputs[0], Tensor(result, np.array([unit]), 0, logits.layout)
    )


def _logarithm(
    net: LoweringContext, a: Arithmetic, total: Handle, unit: float
) -> Handle:
    """Return ln(total / ONE) in steps of `unit`."""
    exponent = excess_bits(a, total, MANTISSA_BITS)
    shifted = a.right_by(total, exponent)
    mantissa = a.clamp(shifted, LEAST_MANTISSA, 2**MANTISSA_BITS - 1)
    upper = a.floor_right(mantissa, LOWER_BITS)
    lower = a.sub(mantissa, a.left(upper, LOWER_BITS))
    lower = a.clamp(lower, 0, STEPS - 1)
    place = a.clamp(a.add_number(upper, -STEPS), 0, STEPS - 1)
    index = net.builder.emit("cast", place, dtype="i8")
    start_table, slope_table = _tables(unit)
    start = net.builder.emit("table", index, net.constant(start_table))
    slope = net.builder.emit("table", index, net.constant(slope_table))
    log_of_two = _in_units(PRECISION.ln(Decimal(2)), unit)
    octaves = a.mul(exponent, a.number(log_of_two))
    at_step = a.add(octaves, start)
    within_step = a.right(a.mul(lower, slope), SLOPE_BITS)
    return a.add(at_step, within_step)


def _tables(unit: float) -> tuple[IntArray, IntArray]:
    """Return ln(128 h / ONE) and 2^8 / (128 h + 64), in units, for h = 128 .. 255.

    A table has 256 entries for an i8 index; the index is h - 128, entry 128 is for 0.
    """
    starts, slopes = np.zeros(256, np.int32), np.zeros(256, np.int32)
    log_of_one = PRECISION.ln(Decimal(ONE))
    half_step = Decimal(STEPS // 2)
    for place in range(STEPS):
        mantissa = Decimal((STEPS + place) * STEPS)
        logarithm = subtract(PRECISION.ln(mantissa), log_of_one)
        slope = divide(Decimal(2**SLOPE_BITS), add(mantissa, half_step))
        starts[128 + place] = _in_units(logarithm, unit)
        slopes[128 + place] = _in_units(slope, unit)
    return starts, slopes


def _in_units(real: Decimal, unit: float) -> int:
    """Return the nearest integer to real / unit, half up."""
    return int(round_half_up(divide(real, Decimal(unit))))
