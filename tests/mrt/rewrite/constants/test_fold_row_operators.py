"""fold_row_operators: operators of whole rows of known numbers give what onnxruntime computes."""

import numpy as np
import pytest

from mrt.rewrite import rewrite
from mrt.rewrite.constants.fold_row_operators import fold_row_operators
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
    run,
)

RNG = np.random.default_rng(0)
A, B = (RNG.normal(size=shape).astype(np.float32) for shape in ((3, 4), (4, 5)))
ROUNDINGS = 1e-6

CASES = {
    "matmul": (node("MatMul", "a b", "c"), {"a": A, "b": B}),
    "vector by matrix": (node("MatMul", "a b", "c"), {"a": A[0], "b": B}),
    "matrix by vector": (node("MatMul", "a b", "c"), {"a": A, "b": B[:, 0].copy()}),
    "stacks": (node("MatMul", "a b", "c"), {"a": np.stack([A, -A])[:, None], "b": np.stack([B, 2 * B, 3 * B])}),
    "gemm": (node("Gemm", "a b c0", "c", transA=1, transB=1, alpha=0.5, beta=2.0),
             {"a": A.T.copy(), "b": B.T.copy(), "c0": B[0]}),
    "softmax of three axes": (node("Softmax", "a", "c"), {"a": np.stack([A, 3 * A])}),
    "softmax": (node("Softmax", "a", "c", axis=0), {"a": A * 20}),
    "layer norm": (node("LayerNormalization", "a s t", "c", epsilon=0.01), {"a": A, "s": B[:, 0].copy(), "t": A[0]}),
    "layer norm of two axes": (node("LayerNormalization", "a s", "c", axis=0), {"a": A, "s": A + 1}),
    "cumsum": (node("CumSum", "a k", "c"), {"a": A, "k": np.array(1)}),
    "cumsum backwards": (node("CumSum", "a k", "c", exclusive=1, reverse=1), {"a": A, "k": np.array(-2)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_rows_of_known_numbers(name):
    made, arrays = CASES[name]
    nodes = [made, node("Mul", "x c", "y")]
    model = graph_of(nodes, {"x": (1,)}, arrays)
    expected = run(model, {"x": np.ones(1, np.float32)})["y"]
    assert fold_row_operators(model) == 1
    found = constant_named(model, "c")
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=ROUNDINGS, atol=ROUNDINGS)


_NONE = {"a": np.zeros((2, 0), np.float32), "s": np.zeros(0, np.float32)}
EMPTY = {
    "softmax": node("Softmax", "a", "c"),
    "layer norm": node("LayerNormalization", "a s", "c"),
    "cumsum": node("CumSum", "a k", "c", exclusive=1),
    "matmul": node("MatMul", "b a", "c"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_rows_without_numbers(name):
    nodes = [EMPTY[name], node("Concat", "x c", "y", axis=1)]
    arrays = _NONE | {"k": np.array(1), "b": np.ones((2, 2), np.float32)}
    model = graph_of(nodes, {"x": (2, 1)}, arrays)
    assert fold_row_operators(model) == 1
    assert constant_named(model, "c").shape == (2, 0)


def test_queries_that_were_learned_leave_nothing_constant_behind():
    """As a detector's decoder begins: a product, a norm and a softmax of weights alone."""
    nodes = [
        node("MatMul", "q w", "m"),
        node("Add", "m b", "p"),
        node("LayerNormalization", "p s t", "n"),
        node("MatMul", "n keys", "scores"),
        node("Softmax", "scores", "shares"),
        node("MatMul", "shares x", "y"),
    ]
    arrays = {
        "q": A,
        "w": B,
        "b": B[0],
        "s": B[1],
        "t": B[2],
        "keys": RNG.normal(size=(5, 6)).astype(np.float32),
    }
    model = graph_of(nodes, {"x": (1, 6, 7)}, arrays)
    x = RNG.normal(size=(1, 6, 7)).astype(np.float32)
    expected = run(model, {"x": x})["y"]
    rewrite(model)
    assert set(operators_of(model)) <= {
        "Conv",
        "Reshape",
        "Transpose",
        "MatMul",
        "Gemm",
    }
    assert np.allclose(run(model, {"x": x})["y"], expected, atol=1e-5)


def test_what_is_folded_stands_behind_what_stays():
    """Computed rows, sums of integers and numbers too large for float32 stay."""
    nodes = [
        node("MatMul", "x b", "computed"),
        node("CumSum", "i k", "sums"),
        node("MatMul", "large large", "infinite"),
        node("MatMul", "a b", "c"),
    ]
    arrays = {"i": np.arange(5), "k": np.array(0), "a": A, "b": B}
    arrays["large"] = np.full((1, 1), 1e30, np.float32)
    nodes.append(node("Relu", "c", "y"))
    model = graph_of(nodes, {"x": (3, 4)}, arrays)
    assert fold_row_operators(model) == 1
    assert operators_of(model) == ["MatMul", "CumSum", "MatMul", "Relu"]


def test_sums_of_integers_stay_and_operands_of_what_is_folded_go():
    nodes = [
        node("CumSum", "i k", "sums"),
        node("Cast", "sums", "s", to=1),
        node("MatMul", "a b", "c"),
        node("Mul", "x s", "p"),
        node("Add", "p c", "y"),
    ]
    arrays = {"i": np.arange(5), "k": np.array(0), "a": A, "b": B}
    model = graph_of(nodes, {"x": (3, 5)}, arrays)
    assert apply_pass(fold_row_operators, model) == 1
    assert operators_of(model) == ["CumSum", "Cast", "Mul", "Add"]
    assert set(model.graph.initializers) == {"i", "k", "c"}


def test_a_running_sum_along_a_computed_axis_stays():
    nodes = [
        node("Cast", "x", "i", to=7),
        node("CumSum", "a i", "c"),
        node("Identity", "c", "y"),
    ]
    model = graph_of(nodes, {"x": ()}, {"a": A})
    assert fold_row_operators(model) == 0
