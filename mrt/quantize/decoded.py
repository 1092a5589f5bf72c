"""The linear form of a value that is an octave code, for readers that are no curves."""

from __future__ import annotations

import math

import numpy as np

from mrt.exact.fixed_point import quantize_array
from mrt.quantize.builder import ProgramBuilder
from mrt.quantize.octaves import FIRST
from mrt.quantize.tensor import Tensor, wide_format
from mrt.table.table import MeasuredRange


def decoded(
    builder: ProgramBuilder,
    code: Tensor,
    range_: MeasuredRange,
    scales: str,
    finer_bits: int = 0,
) -> Tensor:
    """Return the numbers of codes in 30 linear bits, by one table.

    The steps are 2^finer_bits times finer than what was measured needs; greater numbers
    are cut off.
    """
    assert code.octaves is not None
    reals = code.octaves.numbers() * float(code.scale[0])
    greatest = reals[builder.bounds[code.value].max - FIRST]
    target = wide_format(range_, (0.0, float(greatest)), scales)
    scale = math.ldexp(target.scale, -finer_bits)
    integers = quantize_array(reals, scale, 0, target.most)
    table = builder.constant(integers.astype(np.int32))
    value = builder.emit("table", code.value, table)
    return Tensor(value, np.array([scale]), 0, code.layout)
