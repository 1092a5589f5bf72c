"""fold_functions: what known numbers give is known, and is what onnxruntime computes."""

import math
import sys
from decimal import Context, localcontext

import numpy as np
import pytest

from mrt.errors import Unsupported
from mrt.rewrite import rewrite
from mrt.rewrite.constants.fold_functions import fold_functions
from tests.support.graphs import (
    apply_pass,
    build,
    constant_named,
    graph_of,
    node,
    operators_of,
    run,
)

NUMBERS = np.array([[0.25, 1.0, 2.5], [-3.0, 40.0, -0.125]], np.float32)
POSITIVE = np.abs(NUMBERS)
ONE_ROUNDING = 6e-8


def folded(operator, arrays, inputs="a", **attributes):
    """What the pass makes of a constant operator, and what onnxruntime does."""
    nodes = [node(operator, inputs, "c", **attributes), node("Add", "x c", "y")]
    proto = build(nodes, {"x": (2, 3)}, arrays)
    (expected,) = run(proto, {"x": np.zeros((2, 3), np.float32)}).values()
    model = graph_of(nodes, {"x": (2, 3)}, arrays)
    assert apply_pass(fold_functions, model) == 1
    assert operators_of(model) == ["Add"]
    found = constant_named(model, "c")
    return np.broadcast_to(found, (2, 3)), expected


EMPTY = np.zeros((0, 3), np.float32)


@pytest.mark.parametrize(
    "operator",
    ["ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare"],
)
def test_rows_that_do_not_exist_have_no_sums(operator):
    nodes = [
        node(operator, "a axes", "c", keepdims=0),
        node("Concat", "x c", "y", axis=0),
    ]
    arrays = {"a": EMPTY, "axes": np.array([1])}
    model = graph_of(nodes, {"x": (2,)}, arrays)
    assert apply_pass(fold_functions, model) == 1
    assert constant_named(model, "c").shape == (0,)


@pytest.mark.parametrize("operator", ["ReduceL1", "ReduceL2", "ReduceSum"])
def test_a_sum_of_no_terms_is_0(operator):
    nodes = [node(operator, "a axes", "c", keepdims=0), node("Add", "x c", "y")]
    arrays = {"a": EMPTY, "axes": np.array([0])}
    model = graph_of(nodes, {"x": (3,)}, arrays)
    assert apply_pass(fold_functions, model) == 1
    assert constant_named(model, "c").tolist() == [0.0, 0.0, 0.0]


def test_a_mean_of_no_terms_is_refused():
    nodes = [
        node("ReduceMean", "a axes", "c", keepdims=0),
        node("Add", "x c", "y"),
    ]
    arrays = {"a": EMPTY, "axes": np.array([0])}
    model = graph_of(nodes, {"x": (3,)}, arrays)
    with pytest.raises(Unsupported, match="ReduceMean"):
        rewrite(model)


@pytest.mark.parametrize(
    "operator", ["Cos", "Exp", "Sigmoid", "Sin", "Softplus", "Tanh"]
)
def test_functions_of_one_number(operator):
    found, expected = folded(operator, {"a": np.minimum(NUMBERS, 20)})
    assert np.allclose(found, expected, rtol=4e-7, atol=1e-7)


ACTIVATIONS = {
    "Erf": {},
    "Gelu": {},
    "Gelu by tanh": {"approximate": "tanh"},
    "HardSwish": {},
    "Mish": {},
    "Softsign": {},
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_a_learned_tensor(name):
    found, expected = folded(
        name.split()[0], {"a": NUMBERS}, **ACTIVATIONS[name]
    )
    assert np.allclose(found, expected, rtol=4e-7, atol=1e-6)


@pytest.mark.parametrize("operator", ["Erf", "Gelu", "Mish"])
def test_an_activation_has_the_bits_of_its_decimals(operator, monkeypatch):
    """Whatever the enclosures leave open: here all, elsewhere nearly nothing."""
    far = np.linspace(-9, 9, 6, dtype=np.float32).reshape(2, 3)
    found, _ = folded(operator, {"a": far * np.float32(1.1)})
    monkeypatch.setattr("mrt.exact.enclosure.MARGIN", 0.5)
    decimals, _ = folded(operator, {"a": far * np.float32(1.1)})
    assert found.tobytes() == decimals.tobytes()


def test_the_callers_precision_does_not_matter():
    arrays = {"a": np.float32([[-0.1, -7.3, 2.5], [0.3, -40, 1e-9]])}
    expected, _ = folded("Sigmoid", arrays)
    with localcontext(Context(prec=3)):
        found, _ = folded("Sigmoid", arrays)
    assert found.tolist() == expected.tolist()


def test_logarithms_are_the_nearest_float():
    found, _ = folded("Log", {"a": POSITIVE})
    assert (
        found.tolist()
        == np.array(
            [[math.log(v) for v in row] for row in POSITIVE.tolist()],
            np.float32,
        ).tolist()
    )


@pytest.mark.parametrize("exponent", [-0.5, 0.5, 2.0, 0.0, -3.0])
def test_powers(exponent):
    found, expected = folded(
        "Pow", {"a": POSITIVE, "b": np.array(exponent, np.float32)}, "a b"
    )
    assert np.allclose(found, expected, rtol=ONE_ROUNDING * 4, atol=0)


def test_the_scale_of_attention():
    found, _ = folded(
        "Pow",
        {"a": np.array(16, np.float32), "b": np.array(-0.5, np.float32)},
        "a b",
    )
    assert (found == 0.25).all()


@pytest.mark.parametrize(
    "operator",
    ["ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare"],
)
@pytest.mark.parametrize("axes", [[1], [-2], [0, 1], None])
def test_sums(operator, axes):
    arrays = {"a": NUMBERS} | (
        {} if axes is None else {"axes": np.array(axes, np.int64)}
    )
    found, expected = folded(
        operator, arrays, "a" if axes is None else "a axes"
    )
    assert np.allclose(found, expected, rtol=ONE_ROUNDING * 4, atol=0)


def test_a_sum_that_cancels_is_exact():
    # 1e8 + 1 - 1e8: any order of additions in float32 gives 0
    nodes = [node("ReduceSum", "a", "c"), node("Add", "x c", "y")]
    terms = np.array([1e8, 1.0, -1e8], np.float32)
    model = graph_of(nodes, {"x": (2, 3)}, {"a": terms})
    assert fold_functions(model) == 1
    assert constant_named(model, "c").ravel().tolist() == [1.0]


@pytest.mark.parametrize(
    ("operator", "array"),
    [
        ("Log", -NUMBERS),
        ("Exp", NUMBERS * 1000),
        (
            "Sin",
            NUMBERS * np.float32(1e36),
        ),  # 34 digits do not determine the angle
        ("Cos", NUMBERS * np.float32(1e36)),
    ],
)
def test_what_is_no_finite_number_stays(operator, array):
    nodes = [node(operator, "a", "c"), node("Add", "x c", "y")]
    assert fold_functions(graph_of(nodes, {"x": (2, 3)}, {"a": array})) == 0


def test_the_logarithm_of_0_is_minus_infinity():
    """As in the relative positions of T5, which do not choose it; no other infinity is made."""
    nodes = [
        node("Log", "a", "c"),
        node("Max", "c least", "d"),
        node("Add", "x d", "y"),
    ]
    arrays = {"a": np.float32([0.0, 1.0]), "least": np.float32(-5)}
    model = graph_of(nodes, {"x": (2,)}, arrays)
    assert apply_pass(fold_functions, model) == 1
    assert constant_named(model, "c").tolist() == [-np.inf, 0.0]


def test_large_results_stay(monkeypatch):
    monkeypatch.setattr(
        sys.modules["mrt.rewrite.constants.fold_functions"], "MOST_RESULTS", 5
    )
    assert (
        fold_functions(
            graph_of(
                [node("Exp", "a", "c"), node("Add", "x c", "y")],
                {"x": (2, 3)},
                {"a": NUMBERS},
            )
        )
        == 0
    )


def test_numbers_that_repeat_count_once(monkeypatch):
    module = sys.modules["mrt.rewrite.constants.fold_functions"]
    monkeypatch.setattr(module, "MOST_RESULTS", 3)
    angles = np.float32([[0.5, -0.0, 2.0], [2.0, 0.5, 0.0]])
    model = graph_of(
        [node("Sin", "a", "c"), node("Add", "x c", "y")],
        {"x": (2, 3)},
        {"a": angles},
    )
    assert fold_functions(model) == 1
    np.testing.assert_allclose(
        constant_named(model, "c"), np.sin(angles), rtol=1e-7
    )


def test_a_scale_computed_from_a_shape_is_folded_whole():
    nodes = [
        node("Shape", "x", "s"), node("Gather", "s last", "n", axis=0), node("Cast", "n", "f", to=1),
        node("Pow", "f power", "k"), node("Mul", "x k", "y"),
    ]  # fmt: skip
    model = graph_of(
        nodes,
        {"x": (1, 4)},
        {"last": np.array(-1), "power": np.array(-0.5, np.float32)},
    )
    rewrite(model)
    assert operators_of(model) == ["Mul"]


def test_a_sum_over_computed_axes_stays():
    nodes = [
        node("Cast", "x", "i", to=7),
        node("ReduceSum", "a i", "c", keepdims=0),
        node("Identity", "c", "y"),
    ]
    model = graph_of(nodes, {"x": (1,)}, {"a": NUMBERS})
    assert fold_functions(model) == 0


@pytest.mark.parametrize(("noop", "shape"), [(0, ()), (1, (2, 3))])
def test_a_sum_over_no_axes_is_over_all_unless_it_does_nothing(noop, shape):
    axes = np.array([], np.int64)
    nodes = [
        node("ReduceSum", "a k", "c", keepdims=0, noop_with_empty_axes=noop),
        node("Add", "x c", "y"),
    ]
    model = graph_of(nodes, {"x": (2, 3)}, {"a": NUMBERS, "k": axes})
    assert fold_functions(model) == (0 if noop else 1)
    if not noop:
        total = constant_named(model, "c")
        assert total.shape == shape
        assert total == np.float32(NUMBERS.astype(np.float64).sum())


def test_a_sum_over_an_axis_folds_whatever_no_axes_would_mean():
    nodes = [
        node(*("ReduceSum", "a k", "c"), keepdims=0, noop_with_empty_axes=1),
        node("Add", "x c", "y"),
    ]
    constants = {"a": NUMBERS, "k": np.array([0])}
    model = graph_of(nodes, {"x": (2, 3)}, constants)
    assert fold_functions(model) == 1
    assert constant_named(model, "c").tolist() == NUMBERS.sum(0).tolist()
