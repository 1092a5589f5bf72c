"""Floats cut off toward zero to integers, which look things up or are counted: never in steps that a whole number falls between."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx_ir as ir

from cvm.program import DTYPE_RANGES
from mrt.errors import Unsupported
from mrt.exact.fixed_point import power_of_two_at_least
from mrt.graph.canonical_values import name_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.integer_values import always_integer
from mrt.quantize.rules.integers import I32
from mrt.quantize.tensor import OUTPUT_BITS, Format, Tensor, signed_integers


def cut_off(net: LoweringContext, node: ir.Node) -> Tensor:
    """What a Cast to an integer type makes of floats: a table of every integer that stands for one, in exact fractions.

    Raises Unsupported where whole numbers would be lost: between steps of more than 1, or in sums that are not exact.
    """
    value, name = node.inputs[0], node.name or name_of(node.outputs[0])
    if always_integer(value):
        raise Unsupported(
            [
                f"{name} (Cast): sums of whole numbers that cannot be held exactly in i32 here"
            ]
        )
    x = _fine(net, value)
    step = Fraction(float(x.scale[0]))
    if step > 1:
        raise Unsupported(
            [f"{name} (Cast): '{name_of(value)}' is held in steps of {float(step):.3g}, between which whole numbers"
             " are lost; give it more bits, or make it an input of whole numbers"]
        )  # fmt: skip
    low, high = DTYPE_RANGES[net.dtype(x)]
    numbers = [_cut(step, integer - x.zero_point) for integer in range(low, high + 1)]
    entries = np.clip(np.array(numbers, np.float64), *I32).astype(np.int32)
    return Tensor(
        net.builder.emit("table", x.value, net.constant(entries)),
        np.ones(1),
        0,
        x.layout,
    )


def _fine(net: LoweringContext, value: ir.Value | None) -> Tensor:
    """As it was computed where that is narrow, else in 16 bits, whole numbers a whole count of steps."""
    tensor = net.as_computed(value)
    if net.dtype(tensor) in ("i8", "i16") and tensor.per_tensor and not tensor.clipped:
        return tensor
    scale = power_of_two_at_least(net.format_for(name_of(value), OUTPUT_BITS).scale)
    dtype, least, most = signed_integers(OUTPUT_BITS)
    return net.requantize_to(
        tensor, Format(dtype, scale, 0, least, most), name_of(value)
    )


def _cut(step: Fraction, count: int) -> int:
    """Where whole numbers are no whole counts of steps, the one within half a step counts as reached."""
    reach = abs(count) * step + (0 if step.numerator == 1 else step / 2)
    return int(reach) if count >= 0 else -int(reach)
