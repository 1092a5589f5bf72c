"""What is masked in front of Exp, Sigmoid or Tanh costs the other entries nothing, and becomes 0, 1 or -1."""

import numpy as np
import pytest

import mrt
from mrt.quantize.function_masks import ranges_without_function_masks
from mrt.quantize.softmax_masks import ranges_without_masks
from mrt.table.table import MeasuredRange
from tests.mrt.quantize.test_softmax_masks import _table
from tests.support.float_models import FloatModel, f32
from tests.support.graphs import graph_of, node

SHAPE = (1, 12, 16)
SHUT = np.random.default_rng(2).random(SHAPE) < 0.3
X = np.random.default_rng(1).uniform(-3, 3, (32, *SHAPE[1:])).astype(np.float32)
X[:, 0, :2] = -3, 3
LIMITS = {("Exp", -1): 0, ("Sigmoid", -1): 0, ("Sigmoid", 1): 1}
LIMITS |= {("Tanh", -1): -1, ("Tanh", 1): 1}
FUNCTION = {"Exp": np.exp, "Tanh": np.tanh}
FUNCTION["Sigmoid"] = lambda x: 1 / (1 + np.exp(-x))


def added(m: FloatModel, fill: float) -> str:
    return m.add("Add", "x", f32(np.where(SHUT, fill, 0)))


def chosen(m: FloatModel, fill: float) -> str:
    return m.add("Where", SHUT, f32(fill), "x")


def added_and_moved(m: FloatModel, fill: float) -> str:
    moved = m.add("Reshape", added(m, fill), np.array([1, 16, 12]))
    return m.add("Reshape", moved, np.array(SHAPE))


@pytest.mark.parametrize("put_on", [added, chosen, added_and_moved])
@pytest.mark.parametrize("fill", [np.inf, 1e38, 1e9, 2000.0])
@pytest.mark.parametrize(("operator", "sign"), LIMITS)
def test_a_mask_gives_the_limit_and_others_stay_exact(
    operator, sign, put_on, fill
):
    model = FloatModel(x=SHAPE)
    output = model.add(operator, put_on(model, sign * fill))
    converted = mrt.convert(model.proto(output), {"x": X}, bits=8)
    program = converted.program
    integers = program.run(program.quantize({"x": X[:, np.newaxis]}))
    found = program.dequantize(integers)[output].reshape(X.shape)
    shut = np.broadcast_to(SHUT, X.shape)
    limit = LIMITS[operator, sign]
    assert np.abs(found[shut] - limit).max() < 1e-4
    expected = FUNCTION[operator](X)[~shut]
    error = found[~shut] - expected
    assert (error**2).mean() < (expected**2).mean() * 10**-3.5


@pytest.mark.parametrize("operator", ["Softplus", "Exp"])
def test_what_no_number_stands_for_is_refused(operator):
    model = FloatModel(x=SHAPE)
    output = model.add(operator, added(model, np.inf))
    with pytest.raises(mrt.errors.BadData, match="NaN or infinity"):
        mrt.convert(model.proto(output), {"x": X}, bits=8)


def _cut(nodes, table, weights):
    model = graph_of(nodes, {"x": (2, 3)}, weights)
    return ranges_without_function_masks(list(model.graph), table)


@pytest.mark.parametrize(
    ("operator", "mask", "measured", "expected"),
    [
        ("Exp", [0, 1, -1e9], (-1e9, 5), (-6, 5)),
        ("Exp", [0, -20, -1e9], (-1e9, 5), (-23, 5)),
        ("Sigmoid", [0, 1, -1e9], (-1e9, 5), (-11, 5)),
        ("Sigmoid", [-9, -10, -1e9], (-1e9, -5), (-16, -5)),
        ("Sigmoid", [0, 1, 1e9], (-3, 1e9), (-3, 11)),
        ("Tanh", [0, -1e9, 1e9], (-1e9, 1e9), (-5.5, 5.5)),
    ],
)
def test_the_range_reaches_as_far_as_the_function_needs(
    operator, mask, measured, expected
):
    nodes = [node("Add", "x m", "a"), node(operator, "a", "y")]
    table = _table(x=(-3, 5), a=measured)
    ranges = _cut(nodes, table, {"m": np.float32(mask)})
    assert ranges == {"a": MeasuredRange(*expected, *expected)}


@pytest.mark.parametrize(
    ("operator", "mask", "measured"),
    [
        ("Sigmoid", [0, 1, -900], (-903, 5)),
        ("Exp", [0, 1, 1e9], (-3, 1e9)),
        ("Softmax", [0, 1, -1e9], (-1e9, 5)),
    ],
)
def test_other_ranges_stay(operator, mask, measured):
    nodes = [node("Add", "x m", "a"), node(operator, "a", "y")]
    table = _table(x=(-3, 5), a=measured)
    assert not _cut(nodes, table, {"m": np.float32(mask)})


@pytest.mark.parametrize("masked", ["x b", "b m"])
def test_a_value_that_was_not_measured_is_left_alone(masked):
    """As the products of a recurrence are not: only their sums are."""
    nodes = [
        node("Mul", "x x", "b"),
        node("Add", masked, "a"),
        node("Sigmoid", "a", "y"),
    ]
    table = _table(x=(-3, 5), a=(-1e9, 5))
    assert not _cut(nodes, table, {"m": np.float32([0, 1, -1e9])})


def test_nor_does_a_softmax_need_it():
    nodes = [
        node("Mul", "x x", "b"),
        node("Add", "b m", "a"),
        node("Softmax", "a", "y"),
    ]
    model = graph_of(nodes, {"x": (2, 3)}, {"m": np.float32([0, 1, -1e9])})
    table = _table(x=(-3, 5), a=(-1e9, 5))
    assert not ranges_without_masks(list(model.graph), table)
