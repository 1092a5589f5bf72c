"""Plain ONNX from MXNet symbols: for any batch where possible, at each opset, with the original's answers."""

import json

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from mrt.errors import BadOption, Unsupported
from mrt.export import Exported, export, write
from mrt.export.opset import to_opset
from mrt.frontend import load
from tests.support.mxnet_files import node, variable, write_params, write_symbol

DATA = variable("data", __shape__="(1, 4, 6, 6)")
X = np.random.default_rng(3).normal(size=(5, 4, 6, 6)).astype(np.float32)


def exported(
    folder, nodes, heads=None, *, opset=17, any_batch=None, shape=(1, 4, 6, 6)
) -> Exported:
    write_symbol(folder / "m.json", nodes, heads)

    def load_for(shapes):
        return load(
            folder / "m.json",
            random_weights=0,
            shapes={"data": shape, **shapes},
        )

    return export(load_for, folder / "m.onnx", opset=opset, any_batch=any_batch)


def answers(path, x=X) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(
        str(path), providers=["CPUExecutionProvider"]
    ).run(None, {"data": x})


def reshape(name: str, data: int, shape: str) -> dict:
    return node("Reshape", name, [data], shape=shape)


def test_written_out_batches_become_any_batch(tmp_path):
    """Expectations by numpy. The codes: -3 joins two dimensions, -4 splits one."""
    nodes = [
        DATA,
        reshape("rows", 0, "(-1, 36)"),  # a batch times 4 rows
        reshape("split", 1, "(-4, -1, 4, 6, 6)"),
        reshape("flat", 2, "(0, -1)"),
        node("sum", "joined", [0], axis="(2, 3)"),
    ]
    result = exported(tmp_path, nodes, [3, 4])
    assert result.fixed_because == ""
    flat, joined = answers(tmp_path / "m.onnx")
    assert flat.tolist() == X.reshape(5, 144).tolist()
    np.testing.assert_allclose(joined, X.sum((2, 3)), rtol=1e-5, atol=1e-5)
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert [
        value.type.tensor_type.shape.dim[0].dim_param
        for value in (*graph.input, *graph.output)
    ] == ["batch"] * 3


def test_a_list_that_grows_with_the_batch_is_computed(tmp_path):
    """Tensors of shape (batch, 4, 6, 6) -> (2, batch * 2, 36) -> back: two dimensions are not the input's own."""
    nodes = [
        DATA,
        node("transpose", "t", [0], axes="(1, 0, 2, 3)"),
        reshape("r", 1, "(2, -1, 4, 9)"),
    ]
    nodes += [
        reshape("b", 2, "(4, -1, 6, 6)"),
        node("transpose", "y", [3], axes="(1, 0, 2, 3)"),
    ]
    assert exported(tmp_path, nodes).fixed_because == ""
    assert answers(tmp_path / "m.onnx")[0].tolist() == X.tolist()


def test_a_constant_as_long_as_the_batch_is_repeated(tmp_path):
    nodes = [
        DATA,
        node("ones_like", "ones", [0]),
        node("elemwise_add", "y", [0, 1]),
    ]
    assert exported(tmp_path, nodes).fixed_because == ""
    assert answers(tmp_path / "m.onnx")[0].tolist() == (X + 1).tolist()


def test_a_model_that_mixes_samples_keeps_its_batch_and_says_why(tmp_path):
    nodes = [
        DATA,
        node("mean", "middle", [0], axis="0", keepdims="True"),
        node("broadcast_sub", "y", [0, 1]),
    ]
    result = exported(tmp_path, nodes, shape=(5, 4, 6, 6))
    assert "differs" in result.fixed_because
    np.testing.assert_allclose(
        answers(tmp_path / "m.onnx")[0], X - X.mean(0, keepdims=True), atol=1e-6
    )
    assert (
        onnx.load(tmp_path / "m.onnx")
        .graph.input[0]
        .type.tensor_type.shape.dim[0]
        .dim_value
        == 5
    )


def test_an_output_without_batch_keeps_it_fixed(tmp_path):
    result = exported(tmp_path, [DATA, node("sum", "total", [0])])
    assert (
        result.fixed_because
        == "'total' of shape (1,) does not have the batch as its first dimension"
    )


def test_any_batch_can_be_demanded_or_declined(tmp_path):
    with pytest.raises(
        BadOption,
        match="--dynamic-batch: the model works for a batch of 1 only: 'total' of shape",
    ):
        exported(tmp_path, [DATA, node("sum", "total", [0])], any_batch=True)
    assert not (tmp_path / "m.onnx").exists()
    assert (
        exported(
            tmp_path, [DATA, node("relu", "y", [0])], any_batch=False
        ).fixed_because
        == "--fixed-batch"
    )


NETWORK = [
    DATA,
    *map(variable, ("w", "b", "gamma", "beta", "mean", "var")),
    node(
        "Convolution",
        "conv",
        [0, 1, 2],
        kernel="(3, 3)",
        pad="(1, 1)",
        num_filter="8",
    ),
    node("BatchNorm", "bn", [7, 3, 4, 5, 6], fix_gamma="False"),
    node("Activation", "relu", [8], act_type="relu"),
    node(
        "Pooling",
        "pool",
        [9],
        kernel="(2, 2)",
        stride="(2, 2)",
        pool_type="avg",
    ),
    node("LeakyReLU", "gelu", [10], act_type="gelu"),
    node("softmax", "soft", [11], axis="1"),
    node("mean", "y", [12], axis="(2, 3)"),
]


@pytest.mark.parametrize("opset", [11, 12, 13, 14, 17, 18, 20, 21, 26])
def test_every_opset_gives_the_answers_of_the_graph_as_read(tmp_path, opset):
    assert exported(tmp_path, NETWORK, opset=opset).fixed_because == ""
    model = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [(item.domain, item.version) for item in model.opset_import] == [
        ("", opset)
    ]
    used = {item.op_type for item in model.graph.node}
    assert ("Gelu" in used) == (opset >= 20)
    read = load(
        tmp_path / "m.json", random_weights=0, shapes={"data": X.shape}
    ).model
    expected = onnxruntime.InferenceSession(
        ir.to_proto(read).SerializeToString(),
        providers=["CPUExecutionProvider"],
    ).run(None, {"data": X})
    np.testing.assert_allclose(
        answers(tmp_path / "m.onnx")[0], expected[0], rtol=1e-4, atol=1e-6
    )


def test_names_and_parameters_stay(tmp_path):
    exported(tmp_path, NETWORK)
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert {"w", "b", "gamma", "beta", "mean", "var"} <= {
        item.name for item in graph.initializer
    }
    assert {"conv", "bn", "relu", "pool"} <= {item.name for item in graph.node}
    assert [value.name for value in graph.output] == ["y"]


@pytest.mark.parametrize("opset", [10, 27, -1])
def test_an_opset_outside_the_range_is_refused(tmp_path, opset):
    with pytest.raises(BadOption, match=rf"--opset {opset}: expected 11 to 26"):
        exported(tmp_path, NETWORK, opset=opset)


def test_what_an_opset_cannot_express_is_named():
    values = [
        onnx.helper.make_tensor_value_info(
            name, onnx.TensorProto.FLOAT, [1, 1, 2, 2]
        )
        for name in ("x", "g", "y")
    ]
    window = {"kernel_shape": [1, 1], "dilations": [2, 2]}
    items = [
        onnx.helper.make_node("GridSample", ["x", "g"], ["y"], "sampled"),
        onnx.helper.make_node("AveragePool", ["x"], ["z"], "pool", **window),
    ]
    graph = onnx.helper.make_graph(items, "g", values[:2], values[2:])
    model = ir.from_proto(
        onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 20)]
        )
    )
    with pytest.raises(Unsupported) as refused:
        to_opset(model, 13)
    assert refused.value.problems == [
        "pool (AveragePool): attribute dilations came after opset 13",
        "sampled (GridSample): there is no such operator in opset 13",
    ]
    assert "--opset 20 can" in str(refused.value)


@pytest.mark.parametrize("any_batch", [None, False])
def test_large_weights_go_to_a_file_beside_it(tmp_path, monkeypatch, any_batch):
    exported(tmp_path, NETWORK)
    (expected,) = answers(tmp_path / "m.onnx", X[:1])
    monkeypatch.setattr(write, "LARGEST_FILE", 100)
    assert exported(tmp_path, NETWORK, any_batch=any_batch).files == (
        "m.onnx",
        "m.onnx.data",
    )
    np.testing.assert_allclose(
        answers(tmp_path / "m.onnx", X[:1])[0], expected, rtol=1e-6
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "m.json",
        "m.onnx",
        "m.onnx.data",
    ]


def test_parameters_of_a_file_are_embedded(tmp_path):
    write_symbol(tmp_path / "m.json", [variable("x", __shape__="(1, 2)"), variable("w"),
                                       node("FullyConnected", "y", [0, 1], num_hidden="1", no_bias="1")])  # fmt: skip
    write_params(
        tmp_path / "m.params", {"arg:w": np.array([[2, 3]], np.float32)}
    )
    export(
        lambda shapes: load(tmp_path / "m.json", shapes=shapes),
        tmp_path / "m.onnx",
        opset=17,
        any_batch=None,
    )
    session = onnxruntime.InferenceSession(
        str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"]
    )
    assert session.run(None, {"x": np.array([[1, 1], [10, 0]], np.float32)})[
        0
    ].tolist() == [[5], [20]]


def test_a_refusal_leaves_what_was_there(tmp_path):
    (tmp_path / "m.onnx").write_text("old")
    with pytest.raises(Unsupported):
        exported(tmp_path, [DATA, node("Custom", "y", [0])])
    assert (tmp_path / "m.onnx").read_text() == "old"
    assert (
        json.loads((tmp_path / "m.json").read_text())["nodes"][1]["op"]
        == "Custom"
    )


@pytest.mark.parametrize(
    "kind", ["uint8", "int8", "int32", "int64", "bool", "float16", "double"]
)
def test_inputs_of_any_type_are_checked(kind, tmp_path):
    number = getattr(onnx.TensorProto, kind.upper())
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Cast", ["x"], ["y"], to=1)],
        "g",
        [info("x", number, [1, 4])],
        [info("y", onnx.TensorProto.FLOAT, [1, 4])],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    proto = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(proto, tmp_path / "in.onnx")
    path = tmp_path / "m.onnx"
    result = export(
        lambda shapes: load(tmp_path / "in.onnx", shapes=shapes),
        path,
        opset=17,
        any_batch=None,
    )
    assert result.files == ("m.onnx",)
    session = onnxruntime.InferenceSession(
        path, providers=["CPUExecutionProvider"]
    )
    (given,) = session.get_inputs()
    x = np.ones((3, 4)).astype(
        {"tensor(float)": "f4", "tensor(double)": "f8"}.get(given.type, kind)
    )
    assert session.run(None, {"x": x})[0].tolist() == [[1.0] * 4] * 3
