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
