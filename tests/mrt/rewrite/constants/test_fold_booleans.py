"""fold_booleans and remove_empty_operands: what is decided before any number is known."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from mrt.frontend.onnx import load_onnx
from mrt.rewrite import rewrite
from mrt.rewrite.constants.fold_booleans import fold_booleans
from mrt.rewrite.movement.remove_empty_operands import remove_empty_operands
from mrt.rewrite.normalization.infinite_masks import replace_infinite_masks
from tests.support.graphs import (
    apply_pass,
    assert_same,
    graph_of,
    node,
    operators_of,
    run,
    seeded,
)

X = (2, 3)


@pytest.mark.parametrize("limit", [-np.inf, np.inf])
def test_nothing_is_infinite(limit):
    nodes = [
        node("Equal", "x c", "e"),
        node("Where", "e z x", "w"),
        node("Relu", "w", "y"),
    ]
    model = graph_of(
        nodes, {"x": X}, {"c": np.float32(limit), "z": np.float32(0)}
    )
    assert apply_pass(fold_booleans, model) == 2
    assert operators_of(model) == ["Relu"]


@pytest.mark.parametrize(("boolean", "left"), [(True, "Neg"), (False, "Relu")])
@pytest.mark.parametrize("shape", [(2, 3), (2, 1)])
def test_a_choice_that_is_made(boolean, left, shape):
    nodes = [
        node("Neg", "a", "p"),
        node("Relu", "a", "q"),
        node("Where", "c p q", "w"),
        node("Tanh", "w", "y"),
    ]
    model = graph_of(nodes, {"a": shape}, {"c": np.full(X, boolean)})
    apply_pass(fold_booleans, model)
    assert operators_of(model) == [
        left,
        *([] if shape == X else ["Expand"]),
        "Tanh",
    ]


def test_a_choice_that_is_not_made_for_all_stays():
    nodes = [node("Where", "c x z", "y")]
    model = graph_of(
        nodes, {"x": X}, {"c": np.array([[True], [False]]), "z": np.float32(0)}
    )
    assert apply_pass(fold_booleans, model) == 0


def test_a_part_without_elements_is_left_out():
    nodes = [
        node("Relu", "x", "r"),
        node("Slice", "r n n one", "s"),
        node("Concat", "r s x", "y", axis=1),
    ]
    model = graph_of(
        nodes, {"x": X}, {"n": np.array([3]), "one": np.array([1])}
    )
    assert apply_pass(remove_empty_operands, model) == 1
    assert operators_of(model) == ["Relu", "Concat"]


def test_a_mask_that_is_chosen_and_then_added_is_finite():
    nodes = [
        node("Where", "m zero shut", "b"),
        node("Add", "x b", "s"),
        node("Softmax", "s", "y", axis=-1),
    ]
    shut = {"zero": np.float32(0), "shut": np.float32(-np.inf)}
    model = graph_of(nodes, {"x": X, "m": X}, shut)
    model.graph.inputs[1].dtype = ir.DataType.BOOL
    replace_infinite_masks(model)
    assert [
        float(value.const_value.numpy())
        for value in model.graph.initializers.values()
    ].count(-1e9) == 1


@pytest.mark.parametrize(
    ("operands", "attributes", "opset"),
    [
        ("q q q", {"q_num_heads": 2, "kv_num_heads": 2}, 23),
        ("q q q", {"q_num_heads": 2, "kv_num_heads": 2, "is_causal": 1}, 23),
    ],
)
def test_attention_as_one_operator_becomes_plain_ones(
    operands, attributes, opset, tmp_path
):
    """Between others, and of any batch: as exporters of today write it."""
    nodes = [
        node("Relu", "x", "q"),
        node("Attention", operands, "a", **attributes),
        node("Neg", "a", "y"),
    ]
    ends = [
        helper.make_tensor_value_info("x", 1, ["N", 5, 8]),
        helper.make_tensor_value_info("y", 1, None),
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    proto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10
    )
    onnx.save(proto, tmp_path / "m.onnx")
    model, _ = load_onnx(tmp_path / "m.onnx")
    rewrite(model)
    feeds = seeded({"x": (1, 5, 8)})
    assert "Softmax" in operators_of(model)
    assert_same(run(proto, feeds), run(model, feeds), 1e-5)


@pytest.mark.parametrize(
    ("operator", "known", "left"),
    [
        ("And", True, ["Less", "Cast"]),
        ("Or", False, ["Less", "Cast"]),
        ("Equal", True, ["Less", "Cast"]),
        ("And", False, ["Cast"]),
        ("Or", True, ["Cast"]),
        ("Equal", False, ["Less", "Equal", "Cast"]),
    ],
)
def test_a_boolean_joined_with_a_known_one(operator, known, left):
    nodes = [
        node("Less", "x zero", "l"),
        node(operator, "l k", "b"),
        node("Cast", "b", "y", to=1),
    ]
    constants = {"zero": np.float32(0), "k": np.array(known)}
    model = graph_of(nodes, {"x": X}, constants)
    assert apply_pass(fold_booleans, model) == (len(left) < 3)
    assert operators_of(model) == left


def test_booleans_that_are_not_all_known_alike_stay():
    nodes = [
        node("Less", "x zero", "l"),
        node("And", "l k", "b"),
        node("Cast", "b", "y", to=1),
    ]
    constants = {"zero": np.float32(0), "k": np.array([True, False, True])}
    model = graph_of(nodes, {"x": X}, constants)
    assert apply_pass(fold_booleans, model) == 0


def test_a_choice_of_a_constant_stays():
    nodes = [node("Where", "c z x", "w"), node("Relu", "w", "y")]
    model = graph_of(
        nodes, {"x": X}, {"c": np.array([True]), "z": np.float32(0)}
    )
    assert apply_pass(fold_booleans, model) == 0


def test_a_comparison_with_infinity_of_a_large_result_stays():
    nodes = [node("Equal", "x c", "e"), node("Cast", "e", "y", to=1)]
    constants = {"c": np.float32(np.inf)}
    model = graph_of(nodes, {"x": (2**14, 2**12)}, constants)
    assert fold_booleans(model) == 0
    assert operators_of(model) == ["Equal", "Cast"]
