"""What a file holds is found whatever its types and sizes are, so that a model which is refused can be looked at."""

import onnx
import pytest
from onnx import TensorProto, helper

from mrt.frontend.contents import contents_of


@pytest.fixture
def shown(tmp_path):
    """What is found in a file of one Identity, with this type of input and these initializers."""

    def contents(kind=TensorProto.FLOAT, tensors=()):
        graph = helper.make_graph(
            [helper.make_node("Identity", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
            tensors,
        )
        graph.input[0].type.tensor_type.elem_type = kind
        opsets = [helper.make_opsetid("", 17)]
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        onnx.save(proto, tmp_path / "m.onnx")
        return contents_of(tmp_path / "m.onnx")

    return contents


def test_texts_have_the_bytes_of_their_letters(shown):
    texts = helper.make_tensor("s", TensorProto.STRING, [2], ["ab", "cde"])
    found = shown(tensors=[texts]).parameters
    assert (found.numbers, found.tensors, found.size) == (2, 1, 5)


def test_a_type_that_onnx_does_not_have_is_shown_by_its_number(shown):
    assert str(shown(kind=99).inputs[0]) == "x: type 99 [1,4]"


def test_sizes_that_no_float_holds(shown):
    tensor = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=[2**62] * 20
    )
    assert shown(tensors=[tensor]).parameters.size == 2**1240 * 4


def test_half_bytes_are_counted_in_pairs(shown):
    tensor = TensorProto(name="w", data_type=TensorProto.INT4, dims=[6])
    assert shown(tensors=[tensor]).parameters.size == 3
