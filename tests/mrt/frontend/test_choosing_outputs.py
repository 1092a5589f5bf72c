"""Other outputs than the file's own: by the name of a node or value, cutting off what only the old ones need."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import TensorProto, helper

from mrt.errors import BadModel, BadOption, Unsupported
from mrt.frontend import load
from tests.support.mxnet_files import node, variable, write_symbol

X = np.array([[-1, 2, -3, 4]], np.float32)


def run(model: ir.Model, feed: dict | None = None) -> dict[str, list]:
    proto = ir.to_proto(model)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in model.graph.outputs]
    return {
        name: array.tolist()
        for name, array in zip(
            names, session.run(names, feed or {"x": X}), strict=True
        )
    }


@pytest.fixture
def symbol(tmp_path):
    """relu twice under one name, two halves of it, and a head that nobody can convert."""
    nodes = [
        variable("x", __shape__="(1, 4)"),
        node("negative", "act", [0]),
        node("relu", "act", [1]),
        node("SliceChannel", "halves", [2], num_outputs="2"),
        node("Custom", "head", [(3, 0)]),
    ]
    write_symbol(tmp_path / "m.json", nodes)
    return tmp_path / "m.json"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["act"], {"act": [[1, -2, 3, -4]]}),
        (["act_2"], {"act_2": [[1, 0, 3, 0]]}),
        (["act_output"], {"act": [[1, -2, 3, -4]]}),
        (["halves"], {"halves_output0": [[1, 0]], "halves_output1": [[3, 0]]}),
        (
            ["halves_output1", "act_2"],
            {"halves_output1": [[3, 0]], "act_2": [[1, 0, 3, 0]]},
        ),
    ],
)
def test_a_symbol_ends_where_it_is_told_and_what_follows_need_not_be_supported(
    symbol, names, expected
):
    loaded = load(symbol, outputs=names)
    assert run(loaded.model) == expected
    assert loaded.missing_outputs == ()


def test_an_output_of_an_operator_under_another_name_of_mxnet(tmp_path):
    nodes = [
        variable("x", __shape__="(1, 4)"),
        node("_npi_split", "halves", [0], indices="(0, 2)", axis="1"),
        node("relu", "act", [(1, 0)]),
    ]
    write_symbol(tmp_path / "m.json", nodes)
    loaded = load(tmp_path / "m.json", outputs=["halves_output1"])
    assert loaded.missing_outputs == ()
    assert run(loaded.model) == {"halves_output1": [[-3, 4]]}


def test_without_the_cut_the_head_is_refused(symbol):
    with pytest.raises(Unsupported, match=r"head \(Custom\)"):
        load(symbol)


@pytest.mark.parametrize(
    "name",
    ["halves_output2", "nothing", "x", "act_output01234", "_output", "act_3"],
)
def test_names_that_a_symbol_lacks_are_left_and_its_own_outputs_stay(
    tmp_path, name
):
    nodes = [
        variable("x", __shape__="(1, 4)"),
        node("relu", "act", [0]),
        node("negative", "act", [1]),
    ]
    write_symbol(
        tmp_path / "m.json",
        [*nodes, node("SliceChannel", "halves", [2], num_outputs="2")],
    )
    loaded = load(tmp_path / "m.json", outputs=["act", name])
    assert loaded.missing_outputs == (name,)
    assert list(run(loaded.model)) == ["halves_output0", "act"]


def test_an_output_wanted_twice_is_refused(symbol):
    with pytest.raises(BadOption, match="'halves' is listed twice"):
        load(symbol, outputs=["halves_output1", "halves"])


@pytest.fixture
def onnx_file(tmp_path):
    """Relu, Neg, then an operator that nobody can convert, fed by an input of its own."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "first"),
        helper.make_node("Neg", ["r"], ["n"], "second"),
        helper.make_node("StringNormalizer", ["text"], ["t"], "head"),
        helper.make_node("Identity", ["n"], ["y"], "last"),
    ]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4])
        for name in ("x", "y")
    ]
    texts = [
        helper.make_tensor_value_info(name, TensorProto.STRING, [1])
        for name in ("text", "t")
    ]
    graph = helper.make_graph(
        nodes, "g", [values[0], texts[0]], [values[1], texts[1]]
    )
    onnx.save(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ),
        tmp_path / "m.onnx",
    )
    return tmp_path / "m.onnx"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["r"], {"r": [[0, 2, 0, 4]]}),
        (["second", "r"], {"n": [[0, -2, 0, -4]], "r": [[0, 2, 0, 4]]}),
        (["y"], {"y": [[0, -2, 0, -4]]}),
    ],
)
def test_an_onnx_model_ends_where_it_is_told(onnx_file, names, expected):
    loaded = load(onnx_file, outputs=names)
    assert [value.name for value in loaded.model.graph.inputs] == ["x"]
    assert run(loaded.model) == expected


def test_an_onnx_value_wanted_twice_is_refused(onnx_file):
    with pytest.raises(
        BadOption, match="'second' is listed twice, as the value 'n'"
    ):
        load(onnx_file, outputs=["n", "second"])


def test_the_shape_of_an_input_that_is_cut_off_is_not_needed(onnx_file):
    """Data for the whole model gives it, too; a name that the model never had is refused."""
    shapes = {"x": (1, 4), "text": (1,)}
    loaded = load(onnx_file, outputs=["r"], shapes=shapes)
    assert [value.name for value in loaded.model.graph.inputs] == ["x"]
    with pytest.raises(BadModel, match="--shape z: the model has no input"):
        load(onnx_file, outputs=["r"], shapes=shapes | {"z": (1,)})
