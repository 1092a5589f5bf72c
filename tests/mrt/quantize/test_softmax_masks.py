"""What is added before a Softmax to shut entries out: it must cost the other entries nothing."""

import numpy as np
import pytest

from mrt.graph.values import GREATEST_MASK
from mrt.quantize import QuantizeOptions
from mrt.quantize.softmax_masks import ranges_without_masks
from mrt.table.table import CalibrationOptions, CalibrationTable, MeasuredRange
from tests.support.float_models import (
    FloatModel,
    convert,
    f32,
    run_real,
    snr_db,
)
from tests.support.graphs import graph_of, node

SHAPE = (1, 12, 16)
SHUT = np.random.default_rng(2).random(SHAPE) < 0.3


def logits(m: FloatModel) -> str:
    return m.add("Mul", "x", f32(4.0))


def added(m: FloatModel, fill: float) -> str:
    return m.add("Add", logits(m), f32(np.where(SHUT, fill, 0)))


def chosen(m: FloatModel, fill: float) -> str:
    return m.add("Where", ~SHUT, logits(m), f32(fill))


@pytest.mark.parametrize("fill", [-1e4, -1e9])
@pytest.mark.parametrize("put_on", [added, chosen])
@pytest.mark.parametrize(("bits", "limit"), [(16, 52), (8, 34)])
def test_masked_logits_are_as_exact_as_others(fill, put_on, bits, limit):
    model = FloatModel(x=SHAPE)
    output = model.add("Softmax", put_on(model, fill), axis=2)
    assert (
        snr_db(model, output, options=QuantizeOptions(8, bits))[output] > limit
    )


@pytest.mark.parametrize("put_on", [added, chosen])
def test_masks_do_not_decide_the_greatest(put_on):
    model = FloatModel(x=SHAPE)
    place = model.add("ArgMax", put_on(model, -1e9), axis=2, keepdims=0)
    output = model.add("Cast", place, to=1)
    x = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    found = run_real(convert(model, output), {"x": x})[output]
    expected = np.where(SHUT, -np.inf, 4 * x).argmax(axis=2)
    assert (found == expected).mean() > 0.9


def test_movement_between_the_mask_and_the_softmax_does_not_matter():
    model = FloatModel(x=SHAPE)
    turned = model.add("Transpose", added(model, -1e9), perm=[0, 2, 1])
    output = model.add("Softmax", turned, axis=2)
    assert snr_db(model, output)[output] > 28


def test_what_is_shut_out_gets_nothing():
    model = FloatModel(x=SHAPE)
    output = model.add("Softmax", added(model, -1e9), axis=2)
    sample = {
        "x": np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    }
    found = run_real(convert(model, output), sample)[output]
    assert found[SHUT].max() == 0


SHUT_AGAIN = np.random.default_rng(3).random(SHAPE) < 0.2


def computed_mask(m: FloatModel, fill: float) -> str:
    """A mask that no constant holds, as that of padding; of the last places here, so that no rounding moves it."""
    places = m.add("Add", m.add("Mul", "x", f32(0.0)), f32(np.arange(16)))
    return m.add(
        "Where", m.add("Greater", places, f32(12.5)), f32(fill), f32(0.0)
    )


def added_twice(m: FloatModel, fill: float) -> str:
    return m.add("Add", added(m, fill), computed_mask(m, fill))


def a_sum_of_masks(m: FloatModel, fill: float) -> str:
    constant = f32(np.where(SHUT, fill, 0))
    return m.add(
        "Add", logits(m), m.add("Add", constant, computed_mask(m, fill))
    )


def added_and_chosen(m: FloatModel, fill: float) -> str:
    return m.add("Where", ~SHUT_AGAIN, added(m, fill), f32(fill))


def chosen_twice(m: FloatModel, fill: float) -> str:
    return m.add("Where", ~SHUT_AGAIN, chosen(m, fill), f32(fill))


def chosen_biases(m: FloatModel, fill: float) -> str:
    biases = m.add("Where", ~SHUT, m.add("Mul", "x", f32(-2.0)), f32(fill))
    return m.add("Add", logits(m), biases)


def joined(m: FloatModel, fill: float) -> str:
    return m.add("Concat", added(m, fill), m.add("Neg", "x"), axis=2)


def joined_with_masks(m: FloatModel, fill: float) -> str:
    shut = np.full((1, 12, 4), fill, np.float32)
    return m.add("Concat", logits(m), shut, axis=2)


def padded(m: FloatModel, fill: float) -> str:
    pads = np.array([0, 0, 2, 0, 0, 3])
    return m.add("Pad", logits(m), pads, f32(fill), mode="constant")


def cut_and_joined(m: FloatModel, fill: float) -> str:
    """The scores of a window: some masked, put next to others."""

    def cut(x: str, start: int, stop: int) -> str:
        ends = (
            np.array([start]),
            np.array([stop]),
            np.array([1]),
            np.array([1]),
        )
        return m.add("Slice", x, *ends)

    masked = added(m, fill)
    return m.add("Concat", cut(masked, 0, 4), cut(logits(m), 4, 12), axis=1)


def less_the_greatest(m: FloatModel, fill: float) -> str:
    row = joined(m, fill)
    greatest = m.add("ReduceMax", row, np.array([2]), keepdims=1)
    return m.add("Sub", row, greatest)


@pytest.mark.parametrize("fill", [-1e4, -1e9])
@pytest.mark.parametrize(
    "put_on",
    [
        added_twice,
        a_sum_of_masks,
        added_and_chosen,
        chosen_twice,
        chosen_biases,
        joined,
        joined_with_masks,
        padded,
        cut_and_joined,
        less_the_greatest,
    ],
)
@pytest.mark.parametrize(("bits", "limit"), [(16, 50), (8, 24)])
def test_masks_that_are_several_joined_or_moved_cost_nothing(
    fill, put_on, bits, limit
):
    model = FloatModel(x=SHAPE)
    output = model.add("Softmax", put_on(model, fill), axis=2)
    assert (
        snr_db(model, output, options=QuantizeOptions(8, bits))[output] > limit
    )


def _table(**ranges: tuple[float, float]) -> CalibrationTable:
    spread = {
        name: MeasuredRange(low, high, low, high)
        for name, (low, high) in ranges.items()
    }
    return CalibrationTable("0" * 64, CalibrationOptions(), 1, "0" * 64, spread)


def _cut(nodes, table, weights):
    model = graph_of(nodes, {"x": (2, 3)}, weights)
    return _ranges(model, table)


def _ranges(model, table):
    return table.ranges | ranges_without_masks(list(model.graph), table)


@pytest.mark.parametrize("fill", [GREATEST_MASK, -1e9])
def test_the_range_is_that_of_the_open_entries_and_a_margin_below(fill):
    nodes = [node("Add", "x m", "a"), node("Softmax", "a", "y")]
    ranges = _cut(
        nodes, _table(x=(-3, 5), a=(-1e9, 6), y=(0, 1)), {"m": [0.0, 1.0, fill]}
    )
    assert ranges["a"] == MeasuredRange(-14, 6, -14, 6)
    assert ranges["x"] == MeasuredRange(-3, 5, -3, 5)


def test_logits_that_something_else_reads_keep_their_range():
    nodes = [
        node("Add", "x m", "a"),
        node("Softmax", "a", "y"),
        node("Neg", "a", "z"),
    ]
    table = _table(x=(-3, 5), a=(-1e9, 6), y=(0, 1), z=(-6, 1e9))
    assert _cut(nodes, table, {"m": [0.0, 1.0, -1e9]})["a"].min == -1e9


def test_a_computed_mask_that_is_open_somewhere_adds_nothing_there():
    """Of a computed operand the least open number is not known; it is 0, or the greatest of all if that is below."""
    nodes = [node("Add", "x m", "a"), node("Softmax", "a", "y")]
    for greatest, least_open in ((0.5, 0.0), (-2.0, -2.0)):
        table = _table(x=(-3, 5), m=(-1e9, greatest), a=(-1e9, 6), y=(0, 1))
        model = graph_of(nodes, {"x": (2, 3), "m": (2, 3)})
        found = _ranges(model, table)["a"]
        assert found.lo == -3 + least_open - 11


def test_a_sum_without_masks_keeps_its_range():
    nodes = [node("Add", "x m", "a"), node("Softmax", "a", "y")]
    table = _table(x=(-3, 5), m=(-1, 1), a=(-3.5, 5.5), y=(0, 1))
    model = graph_of(nodes, {"x": (2, 3), "m": (2, 3)})
    found = _ranges(model, table)
    assert found["a"] == MeasuredRange(-3.5, 5.5, -3.5, 5.5)


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        (
            [
                node("Add", "x m", "a"),
                node("Softmax", "a", "s"),
                node("Add", "a s", "y"),
            ],
            "the logits are read elsewhere",
        ),
        (
            [node("Add", "x m", "a"), node("Sigmoid", "a", "y")],
            "no softmax reads them",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_values_keep_their_range(nodes, why):
    table = _table(x=(-3, 5), a=(-1e9, 6), s=(0, 1), y=(0, 1))
    assert _cut(nodes, table, {"m": [0.0, 1.0, -1e9]}) == table.ranges, why


@pytest.mark.parametrize(("moved", "cut"), [(-1e9, -14), (-5, -14)])
def test_the_sum_decides_what_is_moved_afterwards(moved, cut):
    """The masks are in the sum's range; that of the same numbers in another order is cut, whatever it is."""
    nodes = [
        node("Add", "x m", "a"),
        node("Transpose", "a", "t", perm=[1, 0]),
        node("Softmax", "t", "y"),
    ]
    table = _table(x=(-3, 5), a=(-1e9, 6), t=(moved, 6), y=(0, 1))
    ranges = _cut(nodes, table, {"m": [0.0, 1.0, -1e9]})
    assert ranges["a"] == ranges["t"] == MeasuredRange(cut, 6, cut, 6)


def test_a_mask_in_front_of_a_sum_leaves_room_for_what_is_added():
    """What is shut out stays below all logits where the greatest bias is added, too."""
    nodes = [
        node("Add", "x m", "a"),
        node("Where", "c shut bias", "b"),
        node("Add", "a b", "t"),
        node("Softmax", "t", "y"),
    ]
    table = _table(
        x=(-3, 5), a=(-1e9, 5), b=(-1e9, 2), bias=(-1, 2), t=(-2e9, 7), y=(0, 1)
    )
    weights = {
        "m": [0.0, 0.0, -1e9],
        "c": np.array([True, False, False]),
        "shut": -1e9,
    }
    model = graph_of(nodes, {"x": (2, 3), "bias": (2, 3)}, weights)
    ranges = _ranges(model, table)
    assert ranges["t"] == MeasuredRange(-15, 7, -15, 7)
    assert ranges["a"] == MeasuredRange(-17, 5, -17, 5)
    assert ranges["b"] == MeasuredRange(-20, 2, -20, 2)


def test_a_mask_of_zeros_keeps_its_scale_which_holds_them():
    nodes = [
        node("Where", "c shut zeros", "m"),
        node("Add", "x m", "a"),
        node("Softmax", "a", "y"),
    ]
    table = _table(x=(-3, 5), m=(-1e9, 0), a=(-1e9, 5), y=(0, 1))
    weights = {
        "c": np.array([True, False, False]),
        "shut": -1e9,
        "zeros": [0.0, 0.0, 0.0],
    }
    ranges = _cut(nodes, table, weights)
    assert (ranges["m"].min, ranges["a"].min) == (-1e9, -14)


@pytest.mark.parametrize(
    ("least", "end"), [(-20.0, -20), (1.0, -14), (-1e9, -1e9)]
)
def test_the_maximum_of_a_row_needs_what_it_chose(least, end):
    """One of -20 was chosen by a reader beside the Softmax; one of -1e9 where all of a row was masked."""
    nodes = [
        node("Add", "x m", "a"),
        node("Softmax", "a", "s"),
        node("ReduceMax", "a axis", "top"),
        node("Mul", "s top", "y"),
    ]
    table = _table(x=(-3, 5), a=(-1e9, 6), s=(0, 1), top=(least, 6), y=(-9, 9))
    weights = {"m": [0.0, 1.0, -1e9], "axis": np.array([1])}
    assert _cut(nodes, table, weights)["a"].min == end


def test_a_long_chain_of_masks_is_followed():
    """A recurrence of 1,024 steps keeps its state by a mask at each."""
    count = 1024
    nodes = [node("Where", "c shut x", "a0")]
    nodes += [
        node("Where", f"c a{step} x", f"a{step + 1}") for step in range(count)
    ]
    nodes += [node("Softmax", f"a{count}", "y")]
    table = _table(
        x=(-3, 5),
        y=(0, 1),
        **{f"a{step}": (-1e9, 5) for step in range(count + 1)},
    )
    weights = {"c": np.array([True, False, False]), "shut": -1e9}
    assert _cut(nodes, table, weights)["a0"].min == -14


@pytest.mark.parametrize(("least", "end"), [(-2.0, -13), (-1e9, -1e9)])
def test_the_least_that_is_chosen_stays_above_the_masks(least, end):
    """A TopK that chose a mask in the samples has to tell masks apart."""
    nodes = [node("Add", "x m", "a"), node("TopK", "a two", "y at")]
    table = _table(x=(-3, 5), a=(-1e9, 6), y=(least, 6))
    weights = {"m": [0.0, 1.0, -1e9], "two": np.array([2])}
    assert _cut(nodes, table, weights)["a"].min == end


def test_logarithms_that_exp_reads_end_where_it_gives_nothing():
    nodes = [
        node("Add", "x m", "a"),
        node("LogSoftmax", "a", "t"),
        node("Exp", "t", "y"),
    ]
    table = _table(x=(-3, 5), a=(-1e9, 6), t=(-1e9, 0), y=(0, 1))
    ranges = _cut(nodes, table, {"m": [0.0, 1.0, -1e9]})
    assert (ranges["a"].min, ranges["t"].min) == (-14, -11)
