"""Whole models: real checkpoints against MXNet's own outputs, parameters found and compared, all refusals at once."""

import hashlib
import json

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from mrt.errors import BadModel, BadOption, Unsupported
from mrt.frontend.mxnet import ModelSource, find_params, load_mxnet, read_mxnet
from tests.support.mxnet_files import (
    node,
    params_bytes,
    symbol_json,
    variable,
    write_params,
    write_symbol,
)
from tests.support.shared_data import SHARED, needs_shared

MXNET = SHARED / "mxnet"
RELATIVE = 1e-4  # two correct float32 executions differ by about 5e-6
WEIGHT = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def compute(model: ir.Model, feed: dict) -> list[np.ndarray]:
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feed)


def assert_agrees(folder: str, name: str, x: str, y: str) -> None:
    golden = np.load(MXNET / folder / f"{name}-golden.npz")
    model = load_mxnet(
        MXNET / folder / f"{name}-symbol.json", None, {"data": golden[x].shape}
    )
    (result,) = compute(model, {"data": golden[x]})
    assert result.shape == golden[y].shape
    assert (
        np.abs(result - golden[y]).max() <= RELATIVE * np.abs(golden[y]).max()
    )


@needs_shared
@pytest.mark.parametrize("name", ["lenet_digits28", "resnet_digits8"])
def test_trained_checkpoints_agree_with_mxnet(name):
    assert_agrees("trained", name, "x_test", "logits_test")


@needs_shared
@pytest.mark.parametrize(
    "name", ["cifar_resnet20_v1", "mobilenet0.25", "squeezenet1.1"]
)
def test_untrained_checkpoints_agree_with_mxnet(name):
    assert_agrees("untrained", name, "x", "y")


@needs_shared
@pytest.mark.parametrize(
    ("name", "least"), [("mnist", 0.98), ("fashion-mnist", 0.9)]
)
def test_published_checkpoints_classify(name, least):
    data = np.load(SHARED / "images" / f"{name.replace('-', '_')}.npz")
    x = data["x_test"].astype(np.float32).reshape(-1, 1, 28, 28) / 255
    y = data["y_test"]
    x = (x - 0.13) / 0.31 if name == "fashion-mnist" else x
    model = load_mxnet(
        MXNET / "trained" / f"mxnet_{name}-symbol.json", None, {"data": x.shape}
    )
    (result,) = compute(model, {"data": x.astype(np.float32)})
    assert (result.argmax(1) == y).mean() >= least


@needs_shared
def test_the_model_of_version_0_8_runs():
    symbol = MXNET / "format" / "save_000800.json"
    model = read_mxnet(
        ModelSource(symbol, random_weights=0, shapes={"data": (2, 100)})
    ).model
    (result,) = compute(model, {"data": np.ones((2, 100), np.float32)})
    assert [value.name for value in model.graph.inputs] == ["data"]
    assert result.shape == (2, 10)
    np.testing.assert_allclose(result.sum(1), 1, rtol=1e-6)


ZOO = sorted(MXNET.glob("zoo*/*-symbol.json"))


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize(
    "path", ZOO, ids=[path.name.removesuffix("-symbol.json") for path in ZOO]
)
def test_published_architectures_import_and_random_weights_keep_their_answers_sane(
    path,
):
    size = (
        299 if "ception" in path.name else 32 if "cifar" in path.name else 224
    )
    model = read_mxnet(
        ModelSource(path, random_weights=0, shapes={"data": (1, 3, size, size)})
    ).model
    (output,) = model.graph.outputs
    assert tuple(output.shape) in ((1, 1000), (1, 10))
    assert all(
        value.shape.is_static()
        for item in model.graph
        for value in item.outputs
    )
    x = (
        np.random.default_rng(0)
        .normal(size=(1, 3, size, size))
        .astype(np.float32)
    )
    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    (result,) = session.run(None, {"data": x})
    assert 0.1 < np.sqrt(np.square(result).mean()) < 100


def dense_symbol(**hidden: str) -> list[dict]:
    fc = node("FullyConnected", "fc", [0, 1], num_hidden="2", no_bias="True")
    return [variable("x", **hidden), variable("w"), fc]


@pytest.fixture
def folder(tmp_path):
    """A dense layer whose file says its shape, and its parameters."""
    write_symbol(tmp_path / "m-symbol.json", dense_symbol(__shape__="(1, 3)"))
    write_params(tmp_path / "m-0000.params", {"arg:w": WEIGHT})
    return tmp_path


def test_shapes_come_from_the_file_and_names_from_the_source(folder):
    model = load_mxnet(folder / "m-symbol.json")
    assert [
        (value.name, tuple(value.shape)) for value in model.graph.inputs
    ] == [("x", (1, 3))]
    assert [
        (value.name, tuple(value.shape)) for value in model.graph.outputs
    ] == [("fc", (1, 2))]
    assert list(model.graph.initializers) == ["w"]
    assert compute(model, {"x": np.array([[1, 0, 2]], np.float32)})[
        0
    ].tolist() == [[7, 16]]


def test_a_shape_given_holds_against_the_file(folder):
    model = load_mxnet(folder / "m-symbol.json", None, {"x": (5, 3)})
    assert tuple(model.graph.outputs[0].shape) == (5, 2)


def test_an_unknown_batch_is_1(folder):
    write_symbol(folder / "m-symbol.json", dense_symbol(__shape__="(0, 3)"))
    assert tuple(
        load_mxnet(folder / "m-symbol.json").graph.inputs[0].shape
    ) == (1, 3)


@pytest.mark.parametrize(
    "hidden", [{}, {"__shape__": "(1, 0)"}, {"__shape__": "nonsense"}]
)
def test_an_unknown_shape_names_the_option_to_add(folder, hidden):
    write_symbol(folder / "m-symbol.json", dense_symbol(**hidden))
    with pytest.raises(
        BadModel,
        match=r"the shape of input 'x' is not known.*add --shape x=1,3,224,224",
    ):
        load_mxnet(folder / "m-symbol.json")


def test_a_shape_for_no_input_is_refused(folder):
    with pytest.raises(
        BadOption,
        match="--shape data: the model has no such input; its inputs: x",
    ):
        load_mxnet(folder / "m-symbol.json", None, {"data": (1, 3)})


def test_the_same_files_give_the_same_bytes(folder):
    first, second = (
        ir.to_proto(load_mxnet(folder / "m-symbol.json")).SerializeToString()
        for _ in range(2)
    )
    assert first == second


def test_the_digest_is_that_of_both_files(folder):
    digests = [
        hashlib.sha256((folder / name).read_bytes()).digest()
        for name in ("m-symbol.json", "m-0000.params")
    ]
    expected = hashlib.sha256(digests[0] + digests[1]).hexdigest()
    assert (
        read_mxnet(
            ModelSource(folder / "m-symbol.json", folder / "m-0000.params")
        ).sha256
        == expected
    )


@pytest.mark.parametrize("name", ["m.params", "m-0000.params", "m-0120.params"])
@pytest.mark.parametrize("symbol", ["m-symbol.json", "m.json"])
def test_parameters_are_found_beside_the_symbol(tmp_path, name, symbol):
    for other in (name, "mm-0000.params", "m-1.params", "other.params"):
        (tmp_path / other).touch()
    assert find_params(tmp_path / symbol) == tmp_path / name


def test_several_parameter_files_are_listed(folder):
    write_params(folder / "m-0010.params", {})
    with pytest.raises(
        BadModel,
        match=r"m-0000\.params, m-0010\.params; choose one with --params, or with --epoch N",
    ):
        load_mxnet(folder / "m-symbol.json")


def test_missing_parameter_files_are_named(folder):
    (folder / "m-0000.params").unlink()
    with pytest.raises(
        BadModel,
        match=r"looked for m\.params and m-NNNN\.params in .* --params",
    ):
        load_mxnet(folder / "m-symbol.json")


def test_a_model_without_parameters_needs_no_file(tmp_path):
    write_symbol(
        tmp_path / "m.json",
        [variable("x", __shape__="(1, 2)"), node("relu", "r", [0])],
    )
    (result,) = compute(
        load_mxnet(tmp_path / "m.json"), {"x": np.array([[-1, 2]], np.float32)}
    )
    assert result.tolist() == [[0, 2]]


def test_a_parameter_that_only_arithmetic_uses_is_found(tmp_path):
    scaled = [
        variable("x", __shape__="(2, 3)"),
        variable("s"),
        node("broadcast_mul", "y", [0, 1]),
    ]
    write_symbol(tmp_path / "m.json", scaled)
    write_params(
        tmp_path / "m.params", {"arg:s": np.array([1, 0, 2], np.float32)}
    )
    (result,) = compute(load_mxnet(tmp_path / "m.json"), {"x": WEIGHT})
    assert result.tolist() == [[1, 0, 6], [4, 0, 12]]


def test_files_that_cannot_be_read_are_refused(folder):
    with pytest.raises(
        BadModel,
        match=r"none\.json: No such file or directory",
    ):
        load_mxnet(folder / "none.json")
    with pytest.raises(BadModel, match=r"none\.params: cannot be read"):
        load_mxnet(folder / "m-symbol.json", folder / "none.params")


def test_all_that_is_wrong_with_parameters_is_one_message(tmp_path):
    names = ["x", "w", "b", "gamma", "beta", "mean", "var"]
    nodes = [
        *map(variable, names),
        node("FullyConnected", "fc", [0, 1, 2], num_hidden="2"),
        node("BatchNorm", "bn", [7, 3, 4, 5, 6]),
    ]
    write_symbol(tmp_path / "m.json", nodes)
    arrays = {
        "arg:w": WEIGHT.T.copy(),
        "arg:b": np.array([1, np.nan], np.float32),
        "arg:gamma": np.array([1, 2], np.int32),
        "arg:beta": np.array([1e300, 2]),
        "aux:mean": np.array([np.inf, np.inf], np.float32),
        "arg:left_over": np.zeros(1, np.float32),
    }
    write_params(tmp_path / "m.params", arrays)
    with pytest.raises(BadModel) as refused:
        load_mxnet(tmp_path / "m.json", None, {"x": (1, 3)})
    assert str(refused.value).splitlines()[1:8] == [
        "  left_over: not in the symbol",
        "  w: shape (3, 2); expected shape (2, 3)",
        "  b: 1 of 2 numbers are not finite float32",
        "  gamma: dtype int32; expected float32, float64, float16",
        "  beta: 1 of 2 numbers are not finite float32",
        "  mean: 2 of 2 numbers are not finite float32",
        "  var: missing; expected shape (2,)",
    ]
    assert "7 parameters do not suit the symbol" in str(refused.value)


def test_other_float_parameters_become_float32_and_the_model_says_so(folder):
    write_params(folder / "m-0000.params", {"arg:w": WEIGHT.astype(np.float16)})
    model = load_mxnet(folder / "m-symbol.json")
    assert model.graph.initializers["w"].const_value.numpy().dtype == np.float32
    assert (
        model.metadata_props["mrt_notes"]
        == "1 parameters converted from float16 to float32"
    )


def test_names_of_gluon_save_parameters_are_explained(folder):
    write_params(folder / "m-0000.params", {"0.weight": WEIGHT})
    with pytest.raises(
        BadModel,
        match=r"net\.load_parameters\('m-0000\.params'\), .* net\.export",
    ):
        load_mxnet(folder / "m-symbol.json")


def test_all_unsupported_nodes_are_listed_before_parameters_are_looked_for(
    tmp_path,
):
    nodes = [
        variable("x"),
        node("Custom", "first", [0]),
        node("Dropout", "second", [1], mode="always"),
        node("Activation", "third", [2], act_type="mish", foo="1"),
    ]
    write_symbol(tmp_path / "m.json", nodes)
    with pytest.raises(Unsupported) as refused:
        load_mxnet(tmp_path / "m.json", tmp_path / "none.params")
    assert refused.value.problems == [
        "first (Custom): unsupported operator: op_type='' is code of its own, which is not in the file",
        "second (Dropout): attribute mode='always': not supported; supported: training",
        "third (Activation): unknown attribute 'foo'",
        "third (Activation): attribute act_type='mish': not supported; "
        "supported: relu, sigmoid, tanh, softrelu, softsign",
    ]


def test_hidden_outputs_are_refused(tmp_path):
    write_symbol(
        tmp_path / "m.json",
        [variable("x"), node("Dropout", "d", [0]), node("relu", "r", [(1, 1)])],
    )
    with pytest.raises(
        Unsupported, match=r"r \(relu\): uses output 1 of d, which has 1"
    ):
        load_mxnet(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ([0], "heads: x is a variable"),
        ([1, 1], "heads: output 0 of r is listed twice"),
        ([(1, 2)], "uses output 2 of r"),
    ],
)
def test_heads_that_are_no_outputs_are_refused(tmp_path, heads, expected):
    write_symbol(
        tmp_path / "m.json", [variable("x"), node("relu", "r", [0])], heads
    )
    with pytest.raises(Unsupported, match=expected):
        load_mxnet(tmp_path / "m.json")


def test_labels_and_what_only_they_need_are_dropped(tmp_path):
    nodes = [
        variable("x", __shape__="(1, 2)"),
        variable("softmax_label"),
        node("Custom", "of_the_label", [1]),
        node("SoftmaxOutput", "softmax", [0, 2]),
    ]
    write_symbol(tmp_path / "m.json", nodes)
    model = load_mxnet(tmp_path / "m.json")
    assert [value.name for value in model.graph.inputs] == ["x"]
    assert compute(model, {"x": np.zeros((1, 2), np.float32)})[0].tolist() == [
        [0.5, 0.5]
    ]


def test_repeated_names_become_unique_and_heads_keep_theirs(tmp_path):
    nodes = [
        variable("x", __shape__="(1, 2)"),
        node("relu", "act", [0]),
        node("negative", "act", [1]),
        node("_plus_scalar", "act_constant", [2], scalar="1"),
        node("elemwise_add", "", [3, 3]),
    ]
    write_symbol(tmp_path / "m.json", nodes, heads=[2, 4])
    model = load_mxnet(tmp_path / "m.json")
    assert [value.name for value in model.graph.outputs] == ["act", "node"]
    names = [value.name for item in model.graph for value in item.outputs]
    assert names == ["act_2", "act", "act_constant", "node"]
    result = compute(model, {"x": np.array([[-1, 2]], np.float32)})
    assert [array.tolist() for array in result] == [[[0, -2]], [[2, -2]]]


def test_every_output_of_a_node_can_be_a_head(tmp_path):
    nodes = [
        variable("x", __shape__="(1, 2)"),
        node("SliceChannel", "halves", [0], num_outputs="2"),
    ]
    write_symbol(tmp_path / "m.json", nodes, heads=[(1, 1), (1, 0)])
    model = load_mxnet(tmp_path / "m.json")
    assert [value.name for value in model.graph.outputs] == [
        "halves_output1",
        "halves_output0",
    ]
    result = compute(model, {"x": np.array([[1, 2]], np.float32)})
    assert [array.tolist() for array in result] == [[[2]], [[1]]]


def test_one_weight_wanted_in_two_shapes_is_refused(tmp_path):
    nodes = [
        *dense_symbol(__shape__="(1, 3)"),
        node("FullyConnected", "again", [2, 1], num_hidden="2", no_bias="1"),
    ]
    write_symbol(tmp_path / "m.json", nodes)
    write_params(tmp_path / "m.params", {"w": WEIGHT})
    with pytest.raises(
        Unsupported,
        match=r"again .*'w' should have shape \(2, 2\) here and \(2, 3\) elsewhere",
    ):
        load_mxnet(tmp_path / "m.json")


def test_a_computed_weight_must_fit_too(tmp_path):
    nodes = [
        variable("x", __shape__="(2, 3)"),
        node("relu", "r", [0]),
        node("transpose", "t", [0]),
    ]
    dense = node("FullyConnected", "fc", [0, 1], num_hidden="2", no_bias="1")
    write_symbol(tmp_path / "m.json", [*nodes, dense])
    assert compute(load_mxnet(tmp_path / "m.json"), {"x": WEIGHT})[
        0
    ].tolist() == [
        [14, 32],
        [32, 77],
    ]
    write_symbol(
        tmp_path / "m.json",
        [*nodes, {**dense, "inputs": [[0, 0, 0], [2, 0, 0]]}],
    )
    with pytest.raises(
        Unsupported, match=r"input 't' has shape \(3, 2\); expected \(2, 3\)"
    ):
        load_mxnet(tmp_path / "m.json")


def test_a_computed_gamma_that_would_not_count_is_refused(tmp_path):
    nodes = [
        variable("x", __shape__="(3, 3)"),
        *map(variable, "gbmv"),
        node("relu", "r", [1]),
    ]
    write_symbol(
        tmp_path / "m.json", [*nodes, node("BatchNorm", "bn", [0, 5, 2, 3, 4])]
    )
    write_params(
        tmp_path / "m.params", {name: np.ones(3, np.float32) for name in "gbmv"}
    )
    with pytest.raises(
        Unsupported,
        match=r"bn \(BatchNorm\): fix_gamma=True with a computed gamma",
    ):
        load_mxnet(tmp_path / "m.json")


def test_a_missing_weight_that_is_computed_with_is_refused(tmp_path):
    nodes = [
        variable("x", __shape__="(2, 3)"),
        variable("w"),
        node("relu", "r", [1]),
    ]
    nodes += [
        node("FullyConnected", "fc", [0, 1], num_hidden="2", no_bias="1"),
        node("elemwise_add", "y", [2, 3]),
    ]
    write_symbol(tmp_path / "m.json", nodes)
    write_params(tmp_path / "m.params", {})
    with pytest.raises(
        Unsupported, match=r"r \(relu\): the shape of 'w' is unknown"
    ):
        load_mxnet(tmp_path / "m.json")


def test_a_parameter_without_array_is_refused(folder):
    (folder / "m-0000.params").write_bytes(
        params_bytes([bytes.fromhex("c9fa93f90000000000000000")], ["arg:w"])
    )
    with pytest.raises(BadModel, match="w: holds no array"):
        load_mxnet(folder / "m-symbol.json")


def test_an_input_of_an_unknown_dtype_is_refused(tmp_path):
    write_symbol(
        tmp_path / "m.json",
        [
            variable("x", __shape__="(1, 3)", __dtype__="99"),
            node("relu", "r", [0]),
        ],
    )
    with pytest.raises(Unsupported, match=r"x \(input\): dtype 99 is unknown"):
        load_mxnet(tmp_path / "m.json")


def test_an_input_of_integers_may_be_cast_and_looked_up_but_not_divided(
    tmp_path,
):
    image = variable("x", __shape__="(1, 3)", __dtype__="3")
    cast = node("Cast", "c", [0], dtype="float32")
    write_symbol(
        tmp_path / "m.json",
        [image, cast, node("_div_scalar", "r", [1], scalar="255")],
    )
    assert [node.op_type for node in load_mxnet(tmp_path / "m.json").graph] == [
        "Identity",
        "Div",
    ]
    write_symbol(
        tmp_path / "m.json",
        [image, node("_div_scalar", "r", [0], scalar="255")],
    )
    with pytest.raises(
        Unsupported,
        match=r"r \(_div_scalar\): input 'x' is uint8 in MXNet; supported: float32",
    ):
        load_mxnet(tmp_path / "m.json")


def test_the_file_of_the_symbol_is_not_trusted_with_memory(tmp_path):
    nodes = [variable(name) for name in ("x", "g", "b", "m", "v")]
    nodes[0]["attrs"] = {"__shape__": "(1, 200000000)"}
    (tmp_path / "m.json").write_text(
        json.dumps(symbol_json([*nodes, node("BatchNorm", "bn", range(5))]))
    )
    write_params(
        tmp_path / "m.params", {name: np.ones(1, np.float32) for name in "gbmv"}
    )
    with pytest.raises(
        BadModel, match=r"g: shape \(1,\); expected shape \(200000000,\)"
    ):
        load_mxnet(tmp_path / "m.json")
