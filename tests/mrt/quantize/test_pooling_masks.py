"""What a mask puts in the place of entries that pooling shall not choose costs the other entries nothing."""

import numpy as np
import pytest

from mrt.quantize import QuantizeOptions
from mrt.quantize.pooling_masks import ranges_without_fills
from mrt.table.table import CalibrationOptions, CalibrationTable, MeasuredRange
from tests.support.float_models import (
    FloatModel,
    convert,
    f32,
    run_real,
    snr_db,
)
from tests.support.graphs import graph_of, node

SHAPE = (1, 8, 6)
SHUT = np.random.default_rng(2).random(SHAPE) < 0.4
LIMIT = 40  # decibels with 8 bits; a fill that takes the scale leaves 0


def chosen(m: FloatModel, fill: float) -> str:
    return m.add("Where", ~SHUT, "x", f32(fill))


def chosen_one_by_one(m: FloatModel, fill: float) -> str:
    return m.add("Where", SHUT, np.full(SHAPE, fill, np.float32), "x")


def added(m: FloatModel, fill: float) -> str:
    return m.add("Add", "x", f32(np.where(SHUT, fill, 0)))


def decibels(m: FloatModel, output: str) -> float:
    return snr_db(m, output, options=QuantizeOptions(8, 8))[output]


@pytest.mark.parametrize("fill", [-1e4, -1e9, -3.4e38, -np.inf])
@pytest.mark.parametrize("put_on", [chosen, chosen_one_by_one, added])
def test_the_greatest_of_what_is_open_is_as_exact_as_without_a_mask(
    fill, put_on
):
    m = FloatModel(x=SHAPE)
    filled = put_on(m, fill)
    assert decibels(m, m.add("ReduceMax", filled, np.array([1]))) > LIMIT


@pytest.mark.parametrize("fill", [1e4, 1e9, 3.4e38, np.inf])
def test_the_least_of_what_is_open_likewise(fill):
    m = FloatModel(x=SHAPE)
    filled = chosen(m, fill)
    assert decibels(m, m.add("ReduceMin", filled, np.array([1]))) > LIMIT


def test_movement_and_windows_lie_between():
    m = FloatModel(x=SHAPE)
    turned = m.add("Transpose", chosen(m, -1e9), perm=[0, 2, 1])
    image = m.add("Reshape", turned, np.array([1, 6, 8, 1]))
    window = {"kernel_shape": [8, 1], "strides": [1, 1], "pads": [0, 0, 0, 0]}
    assert decibels(m, m.add("MaxPool", image, **window)) > LIMIT


def test_a_number_below_all_of_x_stays_the_greater_of_two():
    """The other operand of a Max is -8 where x is masked: the fill may not stop at the least of x."""
    m = FloatModel(x=SHAPE)
    least = m.add("Max", chosen(m, -1e9), f32(-8.0))
    assert decibels(m, least) > LIMIT


def test_a_fill_takes_no_sign_from_numbers_that_have_none():
    """255 steps for what a Relu leaves, not 127."""
    m = FloatModel(x=SHAPE)
    x = m.add("Relu", "x")
    filled = m.add("Where", ~SHUT, x, f32(-1e9))
    output = m.add("ReduceMax", filled, np.array([1]))
    program = convert(m, m.add("Add", output, f32(0.0)))
    assert -128 in {item.attributes.get("output_zp") for item in program.instructions}  # fmt: skip


def test_a_row_without_open_entries_gives_the_least_number():
    m = FloatModel(x=SHAPE)
    is_open = m.add("Less", "x", f32(2.0))
    filled = m.add("Where", is_open, "x", f32(-1e9))
    output = m.add("ReduceMax", filled, np.array([1]))
    x = np.full(SHAPE, 9, np.float32)
    found = run_real(convert(m, output), {"x": x})[output]
    assert (found < -2).all()
    assert (found > -8).all()


def _table(**ranges: tuple[float, float]) -> CalibrationTable:
    spread = {
        name: MeasuredRange(low, high, low, high)
        for name, (low, high) in ranges.items()
    }
    return CalibrationTable("0" * 64, CalibrationOptions(), 1, "0" * 64, spread)


FILLED = node("Where", "c fill x", "w")
POOLED = [FILLED, node("ReduceMax", "w axis", "y")]


def _found(nodes, *, fill=-1e9, **ranges):
    weights = {
        "c": np.array([True, False, False]),
        "fill": np.float32(fill),
        "axis": np.array([1]),
    }
    model = graph_of(nodes, {"x": (2, 3)}, weights)
    return ranges_without_fills(list(model.graph), _table(**ranges))


def test_the_range_is_that_of_x():
    found = _found(POOLED, x=(-3, 5), w=(-1e9, 5), y=(1, 5))
    assert found == {"w": MeasuredRange(-3, 5, -3, 5)}


def test_integers_have_no_range_that_a_fill_could_stretch():
    m = FloatModel(x=SHAPE)
    number = m.add("Cast", "x", to=6)
    filled = m.add("Add", number, np.where(SHUT, -9000, 0).astype(np.int32))
    output = m.add("ReduceMax", filled, np.array([1]))
    program = convert(m, m.add("Cast", output, to=1))
    assert [item.name for item in program.instructions].count("reduce_max") == 1


@pytest.mark.parametrize(
    ("nodes", "ranges", "why"),
    [
        (POOLED, {"y": (-1e9, 5)}, "a sample has a row that is masked"),
        (POOLED, {"fill": -9.0}, "it may be a number like others"),
        ([*POOLED, node("Relu", "w", "z")], {}, "others read it"),
        ([FILLED, node("ReduceMin", "w axis", "y")], {}, "it is the least"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_values_keep_their_range(nodes, ranges, why):
    measured = {"x": (-3, 5), "w": (-1e9, 5), "y": (1, 5)}
    assert not _found(nodes, **measured | ranges), why
