"""Truncates floats toward zero to integers that serve as indices or counts.

The floats are held in steps of at most 1, so that no integer falls between two steps.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPE_RANGES, DTYPES
from mrt.errors import Unsupported
from mrt.exact.fixed_point import power_of_two_at_least
from mrt.graph.canonical_values import name_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.integer_values import always_integer
from mrt.quantize.rules.elementwise import I32
from mrt.quantize.tensor import OUTPUT_BITS, Format, Tensor, signed_integers
from mrt.quantize.wide_tables import emit_entries


def truncated(net: LoweringContext, node: ir.Node) -> Tensor:
    """Truncate floats in a Cast to an integer type, by a lookup table of exact fractions.

    Raise Unsupported where integers would be lost: in steps of more than 1, or in sums
    of integers that are not exact.
    """
    value = node.inputs[0]
    name = node.name or name_of(node.outputs[0])
    if always_integer(value):
        raise Unsupported(
            [
                f"{name} (Cast): sums of integers that cannot be held exactly in i32 here"
            ]
        )
    x = _in_fine_steps(net, value)
    step = Fraction(float(x.scale[0]))
    if step > 1:
        way_out = _way_out(net, value, x)
        raise Unsupported(
            [
                f"{name} (Cast): '{name_of(value)}' is held in steps of "
                f"{float(step):.3g}, between which integers are lost; {way_out}"
            ]
        )
    low, high = DTYPE_RANGES[net.dtype(x)]
    counts = range(low - x.zero_point, high - x.zero_point + 1)
    numbers = [_truncated_steps(step, count) for count in counts]
    entries = np.clip(np.array(numbers, np.float64), *I32).astype(np.int32)
    table = emit_entries(net, x.value, entries)
    return Tensor(table, np.ones(1), 0, x.layout)


def _way_out(net: LoweringContext, value: ir.Value | None, held: Tensor) -> str:
    """Return what to do about steps of more than 1: more bits where these suffice."""
    if _finest_step(net, value, held) <= 1:
        return f"give it {OUTPUT_BITS} bits, or make it an input of integers"
    return (
        f"more bits do not help, since even {OUTPUT_BITS}, the most, make steps of more than 1: make it an input of its own, "
        "of integers, or compute what the Cast is for in front of the model"
    )


def _finest_step(
    net: LoweringContext, value: ir.Value | None, held: Tensor
) -> float:
    """Return the step in the most bits: of what was moved from a value with fewer bits, such as a table, a step of that."""
    if net.as_computed(value) is not held:
        return net.format_for(name_of(value), OUTPUT_BITS).scale
    bits = 8 * DTYPES[net.dtype(held)].itemsize
    return math.ldexp(float(held.scale[0]), bits - OUTPUT_BITS)


def _in_fine_steps(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """Return the value as computed if it has 8 or 16 bits, else in 16 bits at a power of two.

    At a power of two every integer is a multiple of the step.
    """
    tensor = net.as_computed(value)
    one_scale = tensor.per_tensor and not tensor.clipped
    if net.dtype(tensor) in ("i8", "i16") and one_scale:
        return tensor
    name = name_of(value)
    scale = power_of_two_at_least(net.format_for(name, OUTPUT_BITS).scale)
    dtype, least, most = signed_integers(OUTPUT_BITS)
    return net.requantize_to(tensor, Format(dtype, scale, 0, least, most), name)


def _truncated_steps(step: Fraction, count: int) -> int:
    """Return trunc(count * step).

    Where integers are not multiples of the step, a number less than half a step short
    of an integer counts as that integer.
    """
    magnitude = abs(count) * step
    if step.numerator != 1:
        magnitude += step / 2
    return int(magnitude) if count >= 0 else -int(magnitude)
