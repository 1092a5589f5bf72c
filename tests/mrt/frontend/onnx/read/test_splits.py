"""A Split whose outputs are not as many as it states is refused before the library infers shapes, which would end the process."""

import onnx
import pytest
from onnx import TensorProto, helper

from mrt.errors import BadModel
from mrt.frontend.onnx import load_onnx

FLOAT = TensorProto.FLOAT


def _write(path, nodes, functions=()):
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", FLOAT, [1, 4])], [info("y", FLOAT, None)]
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    model = helper.make_model(
        graph, opset_imports=opsets, ir_version=10, functions=functions
    )
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("stated", [-1, 0, 1, 3, 2**40])
def test_more_or_fewer_outputs_than_stated(tmp_path, stated):
    nodes = [
        helper.make_node(
            "Split", ["x"], ["a", "b"], "cut", axis=1, num_outputs=stated
        ),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    path = _write(tmp_path / "m.onnx", nodes)
    with pytest.raises(BadModel) as caught:
        load_onnx(path)
    assert str(caught.value) == (
        f"cut (Split): num_outputs={stated} for 2 outputs; expected num_outputs=2"
    )


def test_a_split_in_a_function_whose_caller_states_the_number(tmp_path):
    split = helper.make_node("Split", ["v"], ["a", "b"], "cut", axis=1)
    split.attribute.add(
        name="num_outputs",
        ref_attr_name="many",
        type=onnx.AttributeProto.INT,
    )
    body = [split, helper.make_node("Relu", ["a"], ["w"])]
    opsets = [helper.make_opsetid("", 21)]
    function = helper.make_function(
        "own", "Cut", ["v"], ["w"], body, opsets, ["many"]
    )
    call = helper.make_node("Cut", ["x"], ["y"], domain="own", many=1)
    path = _write(tmp_path / "m.onnx", [call], [function])
    with pytest.raises(BadModel, match="num_outputs=1 for 2 outputs"):
        load_onnx(path)


def test_a_split_that_states_its_own_number_is_read(tmp_path):
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    model, _ = load_onnx(_write(tmp_path / "m.onnx", nodes))
    assert list(model.graph.outputs[0].shape) == [1, 2]
