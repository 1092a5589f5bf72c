"""canonicalize_gemm: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import pytest

from mrt.rewrite.linear.gemm import canonicalize_gemm
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)

_W = np.arange(20, dtype=np.float32).reshape(5, 4)


def _gemm(x=(3, 5), names="x w c", c=None, **attributes):
    weights = {"w": _W if attributes.get("transB", 0) == 0 else _W.T.copy()}
    if c is not None:
        weights["c"] = c
    return graph_of([node("Gemm", names, "y", **attributes)], {"x": x}, weights)


def test_b_is_turned_and_alpha_and_beta_go_into_the_constants():
    model = _gemm(c=[1.0, 2.0, 3.0, 4.0], alpha=0.5, beta=2.0)
    assert apply_pass(canonicalize_gemm, model) == 1
    assert operators_of(model) == ["Gemm"]
    assert (constant_named(model, "y.weight") == _W.T / 2).all()
    assert constant_named(model, "y.bias").tolist() == [2.0, 4.0, 6.0, 8.0]
    assert apply_pass(canonicalize_gemm, model) == 0


@pytest.mark.parametrize(
    ("c", "bias"),
    [
        (None, [0.0] * 4),
        (0.5, [0.5] * 4),
        ([[1.0, 2.0, 3.0, 4.0]], [1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_c_becomes_one_number_per_output(c, bias):
    model = _gemm(names="x w" if c is None else "x w c", c=c)
    assert apply_pass(canonicalize_gemm, model) == 1
    assert constant_named(model, "y.bias").tolist() == bias


def test_a_is_turned_by_a_transpose():
    model = _gemm(x=(5, 3), c=0.0, transA=1, transB=1)
    assert apply_pass(canonicalize_gemm, model) == 1
    assert operators_of(model) == ["Transpose", "Gemm"]


def test_a_c_that_varies_along_the_rows_is_added_behind():
    model = _gemm(c=[[1.0], [2.0], [3.0]], beta=2.0)
    assert apply_pass(canonicalize_gemm, model) == 1
    assert operators_of(model) == ["Gemm", "Mul", "Add"]


def test_two_computed_matrices_are_a_matmul():
    model = graph_of(
        [node("Gemm", "x z", "y", transB=1, alpha=0.5)],
        {"x": (3, 5), "z": (4, 5)},
    )
    assert apply_pass(canonicalize_gemm, model) == 1
    assert operators_of(model) == ["Transpose", "MatMul", "Mul"]
