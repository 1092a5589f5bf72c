"""fold_constants: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import onnx
import pytest

from mrt.rewrite.constants.fold_constants import fold_constants
from tests.support.graphs import (
    apply_pass,
    constant_named,
    graph_of,
    node,
    operators_of,
)


def test_plumbing_of_shapes_becomes_a_constant():
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n zero", "n1"),
        node("Concat", "n1 rest", "t", axis=0),
        node("Reshape", "x t", "y"),
    ]
    model = graph_of(
        nodes, {"x": (2, 3, 4)}, {"zero": np.array(0), "rest": np.array([-1])}
    )
    assert apply_pass(fold_constants, model) == 4
    assert operators_of(model) == ["Reshape"]
    assert constant_named(model, "t").tolist() == [2, -1]


def test_part_of_a_shape_and_a_size():
    nodes = [node("Shape", "x", "s", start=1, end=-1), node("Size", "x", "n"), node("Mul", "s n", "t"),
             node("Cast", "t", "f", to=1), node("Mul", "x f", "y")]  # fmt: skip
    model = graph_of(nodes, {"x": (2, 3, 4)})
    apply_pass(fold_constants, model)
    assert constant_named(model, "f").tolist() == [3 * 24]


def test_float_arithmetic_is_rounded_once_to_float32():
    model = graph_of(
        [node("Div", "a b", "k"), node("Mul", "x k", "y")],
        {"x": (2,)},
        {"a": 1.0, "b": 3.0},
    )
    apply_pass(fold_constants, model)
    assert constant_named(model, "k") == np.float32(1 / 3)


def test_integer_division_truncates_toward_zero():
    weights = {"a": np.array([-7]), "b": np.array([2])}
    nodes = [
        node("Div", "a b", "q"),
        node("Cast", "q", "f", to=1),
        node("Mul", "x f", "y"),
    ]
    model = graph_of(nodes, {"x": (2,)}, weights)
    apply_pass(fold_constants, model)
    assert constant_named(model, "f").tolist() == [-3]


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_the_place_of_the_greatest_and_the_least(operator, last):
    nodes = [node(operator, "a", "k", axis=1, keepdims=0, select_last_index=last),
             node("Cast", "k", "f", to=1), node("Mul", "x f", "y")]  # fmt: skip
    numbers = np.float32([[3, 1, 3, 1], [0, 5, 4, 5]])
    model = graph_of(nodes, {"x": (2,)}, {"a": numbers})
    apply_pass(fold_constants, model)
    places = {"ArgMax": [[0, 1], [2, 3]], "ArgMin": [[1, 0], [3, 0]]}
    assert constant_named(model, "f").tolist() == places[operator][last]


@pytest.mark.parametrize(
    "operator", ["Exp", "Tanh", "ReduceSum", "MatMul", "Pow"]
)
def test_what_is_not_exactly_rounded_stays(operator):
    names = "a a" if operator in ("MatMul", "Pow") else "a"
    model = graph_of(
        [node(operator, names, "k"), node("Mul", "x k", "y")],
        {"x": (3, 3)},
        {"a": np.ones((3, 3), np.float32)},
    )
    assert apply_pass(fold_constants, model) == 0


def test_a_large_result_stays():
    nodes = [node("ConstantOfShape", "s", "k"), node("Add", "x k", "y")]
    model = graph_of(nodes, {"x": (1,)}, {"s": np.array([1 << 12, 1 << 11])})
    assert fold_constants(model) == 0


def test_a_constant_output_of_the_graph_is_held_by_a_reshape():
    model = graph_of(
        [node("Add", "a a", "y"), node("Relu", "x", "z")],
        {"x": (2,)},
        {"a": 1.0},
        outputs="y z",
    )
    assert apply_pass(fold_constants, model) == 1
    assert operators_of(model) == ["Reshape", "Relu"]
    assert apply_pass(fold_constants, model) == 0


def test_a_range_of_floats_does_not_add_up_the_errors_of_its_step():
    model = graph_of(
        [node("Range", "a b c", "r"), node("Add", "x r", "y")],
        {"x": (1000,)},
        {"a": 0.0, "b": 100.0, "c": 0.1},
    )
    fold_constants(model)
    folded = constant_named(model, "r")
    assert folded.dtype == np.float32
    assert (
        folded[[1, 10, 999]].tolist() == np.float32([0.1, 1.0, 99.9]).tolist()
    )


def test_a_constant_node_that_is_an_output_is_held_too():
    model = graph_of(
        [
            node("Constant", "", "y", value_floats=[1.0, 2.0]),
            node("Relu", "x", "z"),
        ],
        {"x": (2,)},
        outputs="y z",
    )
    assert apply_pass(fold_constants, model) == 1
    assert operators_of(model) == ["Reshape", "Relu"]


def test_a_shape_that_is_not_known_stays():
    model = graph_of(
        [node("Shape", "x", "s"), node("Reshape", "x s", "y")], {"x": ("n", 3)}
    )
    assert fold_constants(model) == 0


def test_what_makes_nan_stays():
    model = graph_of(
        [node("Div", "a a", "k"), node("Mul", "x k", "y")],
        {"x": (2,)},
        {"a": 0.0},
    )
    assert fold_constants(model) == 0


def test_an_impossible_gather_stays():
    nodes = [node("Gather", "a i", "k"), node("Mul", "x k", "y")]
    assert (
        fold_constants(
            graph_of(nodes, {"x": (2,)}, {"a": [1.0, 2.0], "i": np.array(5)})
        )
        == 0
    )


def test_constants_that_each_join_two_others_stay_within_a_bound(monkeypatch):
    """Of a and a Concat with a copy of itself the result may be as large as both together, again and again."""
    monkeypatch.setattr(
        "mrt.rewrite.constants.fold_constants.LARGEST_RESULT", 4
    )
    monkeypatch.setattr("mrt.rewrite.constants.fold_constants.MOST_ADDED", 1000)
    nodes, last = [], "k"
    for index in range(8):
        nodes.append(node("Neg", last, f"n{index}"))
        nodes.append(node("Concat", f"{last} n{index}", f"c{index}", axis=0))
        last = f"c{index}"
    nodes += [node("ReduceMax", last, "m", keepdims=0), node("Add", "x m", "y")]
    model = graph_of(nodes, {"x": (1, 4)}, {"k": np.ones(10, np.float32)})
    for _ in range(20):
        apply_pass(fold_constants, model)
    held = [
        value.const_value.size for value in model.graph.initializers.values()
    ]
    assert sum(held) <= 1010
    assert operators_of(model)[-3:] == ["Concat", "ReduceMax", "Add"]


@pytest.mark.parametrize(
    ("numbers", "kind", "integers"),
    [
        ([-np.inf, -2.5, 7.9], onnx.TensorProto.INT64, [-(2**63), -2, 7]),
        ([-np.inf, 3e9], onnx.TensorProto.INT32, None),
        ([np.inf], onnx.TensorProto.INT64, None),
        ([2.0**63], onnx.TensorProto.INT64, None),
        ([-1.0], onnx.TensorProto.UINT8, None),
        ([255.9], onnx.TensorProto.UINT8, [255]),
        ([-0.5, -128.9], onnx.TensorProto.INT8, [0, -128]),
        ([128.0], onnx.TensorProto.INT8, None),
    ],
)
def test_a_cast_to_integers_that_processors_make_differently_stays(
    numbers, kind, integers
):
    nodes = [node("Cast", "a", "c", to=kind), node("Cast", "c", "f", to=1), node("Add", "x f", "y")]  # fmt: skip
    model = graph_of(nodes, {"x": (1,)}, {"a": np.float32(numbers)})
    assert fold_constants(model) == (0 if integers is None else 2)
    if integers is not None:
        assert constant_named(model, "f").tolist() == integers


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    ("shape", "of_indices"),
    [
        ((3, 4), (3, 4)),
        ((70, 1), (70, 1)),
        ((100, 3), (100, 3)),
        ((5, 130), (2, 1)),
        ((70, 80, 2), (70, 80, 1)),
    ],
)
def test_elements_along_any_axis(axis, shape, of_indices):
    """The reference of onnx is wrong, or raises, along axes of more than 64."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=shape).astype(np.float32)
    size = shape[axis]
    indices = rng.integers(-size, size, of_indices)
    model = graph_of(
        [
            node("GatherElements", "a b", "k", axis=axis),
            node("Mul", "x k", "y"),
        ],
        {"x": of_indices},
        {"a": data, "b": indices},
    )
    apply_pass(fold_constants, model)
    expected = np.zeros(of_indices, np.float32)
    for place in np.ndindex(*of_indices):
        source = list(place)
        source[axis] = indices[place]
        expected[place] = data[tuple(source)]
    assert np.array_equal(constant_named(model, "k"), expected)


def test_elements_of_a_constant_at_itself():
    model = graph_of(
        [node("GatherElements", "a a", "k"), node("Mul", "n k", "y")],
        {"x": (3,)},
        {"a": np.array([2, 0, 1]), "n": np.array([1, 10, 100])},
    )
    assert fold_constants(model) == 2
    assert constant_named(model, "k").tolist() == [1, 2, 0]


def test_elements_outside_stay():
    model = graph_of(
        [node("GatherElements", "a b", "k"), node("Mul", "x k", "y")],
        {"x": (1,)},
        {"a": np.zeros(3, np.float32), "b": np.array([3])},
    )
    assert fold_constants(model) == 0
