"""lower_einsum: which nodes an equation becomes, and which equations stay."""

import pytest

from mrt.rewrite.linear.einsum import lower_einsum
from tests.support.graphs import apply_pass, graph_of, node, operators_of


@pytest.mark.parametrize(
    ("equation", "shapes", "operators"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], ["MatMul"]),
        ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)], ["Transpose", "MatMul"]),
        ("i,j->ji", [(2,), (3,)], ["Mul", "Transpose"]),
        ("ijk->ki", [(2, 3, 4)], ["ReduceSum", "Transpose"]),
        ("ij,ij->", [(2, 3), (2, 3)], ["MatMul"]),
        ("ij,ij->ij", [(2, 3), (2, 3)], ["Mul"]),
    ],
)
def test_letters_become_products_and_sums(equation, shapes, operators):
    names = "xz"[: len(shapes)]
    model = graph_of(
        [node("Einsum", " ".join(names), "y", equation=equation)],
        dict(zip(names, shapes, strict=True)),
    )
    assert apply_pass(lower_einsum, model) == 1
    assert [
        name
        for name in operators_of(model)
        if name not in ("Reshape", "Identity")
    ] == operators


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ii->i", {"x": (3, 3)}),
        ("ii", {"x": (3, 3)}),
        ("bici->cb", {"x": (2, 3, 4, 3)}),
        ("aba->ab", {"x": (3, 4, 3)}),
        ("iii->i", {"x": (3, 3, 3)}),
        ("...i->i...", {"x": (2, 4, 3)}),
        ("...ij,...jk->...ik", {"x": (2, 1, 3, 4), "z": (1, 5, 4, 2)}),
        ("...ij,...jk", {"x": (2, 3, 4), "z": (2, 4, 2)}),
    ],
)
def test_diagonals_and_ellipses_are_spelled_out(equation, shapes):
    model = graph_of(
        [node("Einsum", " ".join(shapes), "y", equation=equation)], shapes
    )
    assert apply_pass(lower_einsum, model, 1e-5) == 1
    assert "Einsum" not in operators_of(model)
