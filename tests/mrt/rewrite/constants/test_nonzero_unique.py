"""fold_nonzero_unique: what known numbers give, as onnxruntime gives it."""

import numpy as np
import onnx
import pytest

from mrt.rewrite import rewrite
from mrt.rewrite.constants.nonzero_unique import fold_nonzero_unique
from tests.support.graphs import (
    build,
    constant_named,
    graph_of,
    node,
    operators_of,
    run,
)

NUMBERS = np.array([[2, 0, 1], [2, 0, 0], [2, 0, 1]], np.float32)


def both(one_pass, nodes, arrays, result="c"):
    """What the pass makes of a constant value, and what onnxruntime does."""
    proto = build(nodes, {"x": (1,)}, arrays, outputs=f"y {result}")
    proto.graph.output[1].type.Clear()
    proto.graph.output[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    expected = run(
        build(nodes, {"x": (1,)}, arrays, outputs="y"),
        {"x": np.ones(1, np.float32)},
    )["y"]
    model = graph_of(nodes, {"x": (1,)}, arrays)
    assert one_pass(model) == 1
    return constant_named(model, result), expected


def test_places_of_numbers_that_are_not_0():
    nodes = [
        node("NonZero", "a", "c"),
        node("Cast", "c", "f", to=1),
        node("Mul", "x f", "y"),
    ]
    found, expected = both(fold_nonzero_unique, nodes, {"a": NUMBERS})
    assert (
        found.tolist()
        == [[0, 0, 1, 2, 2], [0, 2, 0, 0, 2]]
        == expected.tolist()
    )


@pytest.mark.parametrize(
    "attributes", [{}, {"sorted": 0}, {"axis": 0}, {"axis": 1, "sorted": 0}]
)
@pytest.mark.parametrize("result", [0, 1, 2, 3])
def test_every_number_or_slice_once(attributes, result):
    outputs = ["v", "firsts", "inverse", "counts"]
    read = node("Cast", outputs[result], "f", to=1)
    nodes = [
        node("Unique", "a", " ".join(outputs), **attributes),
        read,
        node("Mul", "x f", "y"),
    ]
    found, expected = both(
        fold_nonzero_unique, nodes, {"a": NUMBERS}, outputs[result]
    )
    assert np.array_equal(found, expected)


def test_a_mask_known_at_conversion_selects_columns():
    """As exporters write x[:, mask]."""
    nodes = [
        node("NonZero", "mask", "n"),
        node("Transpose", "n", "t", perm=[1, 0]),
        node("Squeeze", "t one", "i"),
        node("Gather", "x i", "y", axis=1),
    ]
    arrays = {"mask": np.array([True, False, True, True]), "one": np.array([1])}
    model = graph_of(nodes, {"x": (2, 4)}, arrays)
    rewrite(model)
    assert "NonZero" not in operators_of(model)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert run(model, {"x": x})["y"].tolist() == [[0, 2, 3], [4, 6, 7]]


@pytest.mark.parametrize(
    "one",
    [
        node("NonZero", "a", "c"),
        node("Unique", "a", "c"),
        node("Unique", "a", "c", axis=0),
    ],
    ids=["NonZero", "Unique", "Unique of rows"],
)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_no_numbers_at_all_stay(one, shape):
    nodes = [one, node("Relu", "x", "y")]
    arrays = {"a": np.zeros(shape, np.float32)}
    assert fold_nonzero_unique(graph_of(nodes, {"x": (1,)}, arrays)) == 0


def test_an_output_that_the_file_leaves_out_needs_no_constant():
    nodes = [
        node("Unique", "ids", "distinct"),
        node("Gather", "x place", "y", axis=1),
    ]
    nodes[0].output[:] = ["distinct", "", "place"]
    model = graph_of(nodes, {"x": (2, 3)}, {"ids": np.array([5, 3, 5, 8])})
    assert fold_nonzero_unique(model) == 1
    assert constant_named(model, "place").tolist() == [1, 0, 1, 2]
