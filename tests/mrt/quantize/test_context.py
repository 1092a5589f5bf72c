"""Requantizing tensors and choosing their formats, without a graph."""

import numpy as np
import pytest

from cvm.program import Input, Meaning, TensorType
from cvm.proof.validate import validate
from cvm.reference import interpreter
from mrt.quantize import QuantizeOptions
from mrt.quantize.context import LoweringContext
from mrt.quantize.lowering_plan import LoweringPlan
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
    return LoweringContext(table, options, LoweringPlan(shared_ranges=names))


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


@pytest.mark.parametrize(("bits", "found"), [(8, "i8"), (9, "i16")])
def test_a_format_of_the_file_is_finer_beyond_8_bits(bits, found):
    net = context()
    net.file_formats = {"one": Format("i8", 0.25, 3, -128, 127)}
    assert net.format_for("one", bits).dtype == found


def test_the_interval_of_reals_is_counted_from_the_zero_point():
    net = context()
    assert net.interval(tensor(net, -10, 20, 4)) == (-3.5, 4.0)


def test_integers_that_fit_are_rescaled_to_a_narrower_dtype():
    net = context()
    item = Input("wide", TensorType("i16", (1, 3)), -100, 100)
    given = Tensor(
        net.builder.input(item, Meaning(0.25, 0)), np.array([0.25]), 0, (0, 1)
    )
    found = net.requantize_to(given, Format("i8", 0.25, 0, -128, 127))
    assert net.dtype(found) == "i8"


def test_scales_by_channel_move_with_their_channels():
    net = context()
    item = Input("image", TensorType("i8", (1, 2, 3, 4)), -100, 100)
    handle = net.builder.input(item, Meaning(0.25, 0))
    given = Tensor(handle, np.arange(1.0, 5.0), 0, (0, 2, 3, 1))
    found = net.to_layout(given, (0, 3, 2, 1))
    assert net.shape(found) == (1, 3, 2, 4)
    with pytest.raises(AssertionError, match="must keep its last axis"):
        net.to_layout(given, (0, 1, 2, 3))


@pytest.mark.parametrize(
    ("layout", "low", "may"),
    [
        ((0, 2, 3, 1), 0.0, True),
        ((0, 2, 3, 1), -np.inf, True),
        ((0, 2, 3, 1), -1.0, False),
        ((0, 1, 2, 3), 0.0, False),
    ],
)
def test_channels_are_requantized_where_they_lie_last_and_only_0_clips(
    layout, low, may
):
    net = context()
    item = Input("image", TensorType("i8", (1, 2, 3, 4)), -100, 100)
    handle = net.builder.input(item, Meaning(0.25, 0))
    given = Tensor(handle, np.array([0.25]), 0, layout, low=low)
    target = Format("i8", 0.25, 0, -128, 127)
    assert net.can_requantize_by_channel(given, target) == may


@pytest.mark.parametrize("bits", [27, 28, 29, 30])
def test_steps_of_one_become_as_fine_as_a_format_asks(bits):
    """One instruction multiplies by 2^28 at most."""
    net = context()
    given = tensor(net, -3, 1)
    most = 2**31 - 1
    target = Format("i32", 0.25 / 2**bits, 0, -most - 1, most)
    fine = net.requantize_to(given, target)
    net.builder.output("y", fine.value, Meaning(target.scale, 0))
    program = net.builder.finish({}, [])
    integers = np.array([[1, 0, -1]], np.int8)
    found = interpreter.run(validate(program), {"x0": integers})["y"]
    assert found.tolist() == [[2**bits, 0, -(2**bits)]]
