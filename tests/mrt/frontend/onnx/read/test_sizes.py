"""Models of too many nodes are refused before anything takes time for each."""

import time

import onnx
import pytest
from onnx import helper

from mrt.errors import BadModel
from mrt.frontend.limits import MOST_NODES
from mrt.frontend.onnx import load_onnx
from tests.support.graphs import build, node


def chain(length: int) -> list[onnx.NodeProto]:
    names = ["x", *(f"v{index}" for index in range(1, length)), "y"]
    return [
        helper.make_node("Relu", [names[index]], [names[index + 1]])
        for index in range(length)
    ]


def refused(nodes, tmp_path, problem):
    onnx.save(build(nodes, {"x": (1, 4)}), tmp_path / "m.onnx")
    started = time.process_time()
    with pytest.raises(BadModel, match=problem):
        load_onnx(tmp_path / "m.onnx")
    assert time.process_time() - started < 3


def test_a_model_of_too_many_nodes(tmp_path):
    problem = f"{2 * MOST_NODES} nodes .*; at most {MOST_NODES} are read"
    refused(chain(2 * MOST_NODES), tmp_path, problem)


def test_nodes_in_branches_count(tmp_path):
    branch = helper.make_graph(
        chain(MOST_NODES), "b", [], [helper.make_empty_tensor_value_info("y")]
    )
    made = helper.make_node("If", ["c"], ["y"], then_branch=branch)
    made.attribute.add().CopyFrom(helper.make_attribute("else_branch", branch))
    proto = build(
        [node("Relu", "x", "r"), node("Cast", "r", "c", to=9)],
        {"x": (1, 1)},
        outputs="c",
    )
    proto.graph.node.append(made)
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(BadModel, match=rf"{2 * MOST_NODES + 3} nodes "):
        load_onnx(tmp_path / "m.onnx")


def test_nodes_of_many_operands_count_as_several(tmp_path):
    """The graph's library replaces operands one by one and copies all of them each time."""
    wide = [
        helper.make_node("Sum", ["x"] * 4096, [name]) for name in "abcdefgh"
    ]
    joined = helper.make_node("Sum", list("abcdefgh"), ["y"])
    problem = f"{8 * (1 + 128**2) + 1} nodes .*; at most {MOST_NODES} are read"
    refused([*wide, joined], tmp_path, problem)
