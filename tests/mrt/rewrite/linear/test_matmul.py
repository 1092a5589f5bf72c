"""lower_matmul: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite import rewrite
from mrt.rewrite.linear.matmul import lower_matmul
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
    run,
    seeded,
)

_W = np.arange(20, dtype=np.float32).reshape(5, 4)


def test_a_product_with_a_constant_is_a_gemm_without_bias():
    model = graph_of([node("MatMul", "x w", "y")], {"x": (3, 5)}, {"w": _W})
    assert apply_pass(lower_matmul, model) == 1
    assert operators_of(model) == ["Gemm"]
    assert (constant_named(model, "y.weight") == _W.T).all()
    assert constant_named(model, "y.bias").tolist() == [0.0] * 4


def test_products_with_one_matrix_share_its_transposed_copy():
    nodes = [node("MatMul", "x w", "p"), node("MatMul", "x w", "q")]
    nodes.append(node("Add", "p q", "y"))
    model = graph_of(nodes, {"x": (3, 5)}, {"w": _W})
    assert apply_pass(lower_matmul, model) == 2
    gemms = [item for item in model.graph if item.op_type == "Gemm"]
    first, second = (gemm.inputs[1] for gemm in gemms)
    assert first is second
    assert (first.const_value.numpy() == _W.T).all()


@pytest.mark.parametrize(
    "shape", [(5,), (3, 5), (1, 3, 5), (2, 3, 5), (1, 2, 3, 5)]
)
def test_a_product_with_a_vector_lacks_the_last_axis(shape):
    vector = np.arange(5, dtype=np.float32)
    model = graph_of([node("MatMul", "x w", "y")], {"x": shape}, {"w": vector})
    feeds = seeded({"x": shape})
    expected = run(model, feeds)["y"]
    rewrite(model)  # every pass, until nothing changes
    np.testing.assert_allclose(run(model, feeds)["y"], expected, rtol=1e-5)


@pytest.mark.parametrize("order", ["p b", "b p"])
def test_the_add_behind_is_the_bias(order):
    nodes = [node("MatMul", "x w", "p"), node("Add", order, "y")]
    model = graph_of(
        nodes, {"x": (2, 3, 5)}, {"w": _W, "b": [1.0, 2.0, 3.0, 4.0]}
    )
    assert apply_pass(lower_matmul, model) == 1
    assert operators_of(model) == ["Reshape", "Gemm", "Reshape"]
    assert constant_named(model, "y.bias").tolist() == [1.0, 2.0, 3.0, 4.0]


def test_one_number_is_the_bias_of_every_output():
    nodes = [node("MatMul", "x w", "p"), node("Add", "p b", "y")]
    model = graph_of(nodes, {"x": (3, 5)}, {"w": _W, "b": 0.5})
    assert apply_pass(lower_matmul, model) == 1
    assert operators_of(model) == ["Gemm"]
    assert constant_named(model, "y.bias").tolist() == [0.5] * 4


@pytest.mark.parametrize("rows", [3, 4])
def test_an_add_that_varies_along_the_rows_stays_behind(rows):
    nodes = [node("MatMul", "x w", "p"), node("Add", "p b", "y")]
    model = graph_of(
        nodes,
        {"x": (rows, 5)},
        {"w": _W, "b": [[float(row)] for row in range(rows)]},
    )
    assert apply_pass(lower_matmul, model) == 1
    assert operators_of(model) == ["Gemm", "Add"]


def test_a_product_that_is_read_twice_keeps_its_add():
    nodes = [node("MatMul", "x w", "p"), node("Add", "p b", "y")]
    model = graph_of(nodes, {"x": (3, 5)}, {"w": _W, "b": 0.5}, outputs="y p")
    assert apply_pass(lower_matmul, model) == 1
    assert operators_of(model) == ["Gemm", "Add"]


@pytest.mark.parametrize("shape", [(4, 3), (6, 4, 3), (2, 5, 4, 3)])
def test_a_constant_in_front_is_turned_around(shape):
    model = graph_of([node("MatMul", "w x", "y")], {"x": shape}, {"w": _W})
    assert apply_pass(lower_matmul, model) == 1
    assert operators_of(model) == ["Transpose", "MatMul", "Transpose"]


@pytest.mark.parametrize(
    ("weights", "shape", "operators"),
    [
        (_W, (4,), ["MatMul"]),
        (_W[0], (4,), ["MatMul"]),
        (_W[0], (4, 3), ["Transpose", "MatMul"]),
        (_W[0], (2, 4, 3), ["Transpose", "MatMul"]),
    ],
)
def test_vectors_on_either_side_of_a_constant_in_front(
    weights, shape, operators
):
    model = graph_of([node("MatMul", "w x", "y")], {"x": shape}, {"w": weights})
    assert apply_pass(lower_matmul, model) == 1
    assert operators_of(model) == operators


@pytest.mark.parametrize("weights", [{}, {"z": np.ones((2, 5, 4), np.float32)}])
def test_computed_operands_and_many_matrices_stay(weights):
    inputs = {"x": (2, 3, 5)} if weights else {"x": (2, 3, 5), "z": (2, 5, 4)}
    assert (
        apply_pass(
            lower_matmul,
            graph_of([node("MatMul", "x z", "y")], inputs, weights),
        )
        == 0
    )


def test_an_add_that_brings_an_axis_stays_behind():
    nodes = [node("MatMul", "x w", "p"), node("Add", "p b", "y")]
    model = graph_of(
        nodes, {"x": (3, 5)}, {"w": _W, "b": [[[1.0, 2.0, 3.0, 4.0]]]}
    )
    assert apply_pass(lower_matmul, model) == 1
    assert operators_of(model) == ["Gemm", "Add"]
