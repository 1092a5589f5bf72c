"""Lists of which shape inference computes each number are bounded; shapes still follow from ordinary ones."""

import time
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mrt.frontend.onnx import load_onnx
from mrt.graph.known_lists import MOST_NUMBERS, are_bounded
from tests.support.graphs import build, node


def doublings(count: int) -> list[onnx.NodeProto]:
    names = ["k", *(f"c{index}" for index in range(count))]
    return [
        node("Concat", f"{old} {old}", new, axis=0)
        for old, new in pairwise(names)
    ]


def steps(nodes):
    return [(item.op_type, item.input, item.output) for item in nodes]


def test_concats_of_a_list_with_itself_are_bounded():
    assert are_bounded(steps(doublings(10)), {"k": 4})
    assert not are_bounded(steps(doublings(40)), {"k": 4})
    assert are_bounded(steps(doublings(40)), {})


def test_many_long_lists_are_bounded_together():
    casts = [("Cast", ["k"], [f"v{index}"]) for index in range(9)]
    assert are_bounded(casts[:7], {"k": MOST_NUMBERS // 8})
    assert not are_bounded(casts[:8], {"k": MOST_NUMBERS // 8})


def test_a_concat_of_a_list_and_of_what_the_inputs_decide_is_none():
    assert are_bounded([("Concat", ["k", "x"], ["y"])] * 2, {"k": MOST_NUMBERS})


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_a_list_joined_with_itself_forty_times_is_refused_at_once(
    tmp_path, kind
):
    nodes = [
        *doublings(40),
        node("Cast", "c39", "f", to=onnx.TensorProto.FLOAT),
        node("ReduceSum", "f", "s", keepdims=0),
        node("Add", "x s", "y"),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    weights = [numpy_helper.from_array(np.ones(100, kind), "k")]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    started = time.process_time()
    load_onnx(tmp_path / "m.onnx")
    assert time.process_time() - started < 2


def test_a_shape_still_follows_from_a_list_that_is_computed(tmp_path):
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "first"),
        node("Concat", "first rest", "t", axis=0),
        node("Reshape", "x t", "y"),
    ]
    weights = {"zero": np.array([0]), "rest": np.array([2, 6])}
    onnx.save(build(nodes, {"x": (5, 3, 4)}, weights), tmp_path / "m.onnx")
    model = load_onnx(tmp_path / "m.onnx")[0]
    assert model.graph.outputs[0].shape == [5, 2, 6]
