"""Requantizing tensors and choosing their formats, without a graph."""

import numpy as np
import pytest

from cvm.program import Input, Meaning, TensorType
from mrt.quantize import QuantizeOptions
from mrt.quantize.context import LoweringContext
from mrt.quantize.tensor import Format, Tensor
from mrt.table.table import (
    CalibrationOptions,
    CalibrationTable,
    MeasuredRange,
)

RANGE = MeasuredRange(-8.0, 8.0, -8.0, 8.0)


def context(
    *, shared: bool = False, activation_bits: int = 8
) -> LoweringContext:
    ranges = dict.fromkeys(("one", "other"), RANGE)
    table = CalibrationTable("", CalibrationOptions(), 1, "", ranges)
    names = frozenset(ranges) if shared else frozenset[str]()
    options = QuantizeOptions(8, activation_bits)
    return LoweringContext(table, options, frozenset(), names)


def tensor(
    net: LoweringContext, low: int, high: int, zero_point: int = 0
) -> Tensor:
    """An input of i8 integers from `low` to `high` at scale 1/4."""
    number = len(net.builder.types)
    type_ = TensorType("i8", (1, 3))
    item = Input(f"x{number}", type_, low, high)
    handle = net.builder.input(item, Meaning(0.25, zero_point))
    return Tensor(handle, np.array([0.25]), zero_point, (0, 1))


@pytest.mark.parametrize("zero_points", [(-128, 0), (0, -128), (5, 5)])
def test_another_zero_point_alone_is_a_rescale(zero_points):
    before, after = zero_points
    net = context()
    given = tensor(net, -10, 20, before)
    target = Format("i8", 0.25, after, -128, 127)
    found = net.requantize_to(given, target)
    assert (found.value == given.value) == (before == after)
    proven = net.builder.bounds[found.value]
    moved = after - before
    assert (proven.min, proven.max) == (
        max(-10 + moved, -128),
        min(20 + moved, 127),
    )


@pytest.mark.parametrize("bits", [8, 16])
def test_values_measured_as_one_have_one_format_whatever_is_proven_of_each(
    bits,
):
    formats = {}
    for shared in (False, True):
        net = context(shared=shared)
        net._tensors["one"] = tensor(net, -12, 12)
        net._tensors["other"] = tensor(net, -128, 127)
        formats[shared] = [
            net.format_for(name, bits) for name in ("one", "other")
        ]
    assert formats[True][0] == formats[True][1]
    narrow, wide = formats[False]
    assert (narrow == wide) == (bits == 8)  # 16 bits need no room beyond
