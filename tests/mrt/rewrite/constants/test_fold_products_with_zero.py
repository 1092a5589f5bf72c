"""fold_products_with_zero: before and after on the smallest graphs, and where it must not apply."""

import numpy as np

from mrt.rewrite.constants.fold_products_with_zero import (
    fold_products_with_zero,
)
from tests.support.graphs import graph_of, node, operators_of


def test_a_product_with_zeros_is_zeros():
    model = graph_of(
        [node("Mul", "x z", "p"), node("Add", "p x", "y")],
        {"x": (2, 3)},
        {"z": np.float32([[0, 0, 0]])},
    )
    assert fold_products_with_zero(model) == 1
    assert operators_of(model) == ["Add"]


def test_a_product_with_some_zeros_stays():
    model = graph_of(
        [node("Mul", "x z", "p"), node("Add", "p x", "y")],
        {"x": (2, 3)},
        {"z": np.float32([[0, 1, 0]])},
    )
    assert fold_products_with_zero(model) == 0
