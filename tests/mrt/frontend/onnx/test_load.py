"""What the loaded graph promises: static shapes, float32, names of the file."""

import hashlib

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from mrt.errors import BadModel, BadOption
from mrt.frontend import kind_of, load, operators
from tests.support.graphs import (
    assert_same,
    build,
    constant_named,
    node,
    run,
    seeded,
    shapes_of,
)

_W = np.array([[[0.5]], [[-1.5]], [[3.0]]], np.float32)


def loaded(tmp_path, proto, **shapes):
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    return load(path, shapes=shapes).model


def test_an_unknown_first_dimension_becomes_one(tmp_path):
    model = loaded(
        tmp_path, build([node("Relu", "x", "y")], {"x": ("N", 3, 4, 5)})
    )
    assert shapes_of(model) == {"x": (1, 3, 4, 5)}
    assert model.graph.outputs[0].shape == [1, 3, 4, 5]


def test_shapes_given_replace_those_of_the_file(tmp_path):
    model = loaded(
        tmp_path,
        build([node("Relu", "x", "y")], {"x": (1, 3, "H", 5)}),
        x=(2, 3, 9, 8),
    )
    assert model.graph.outputs[0].shape == [2, 3, 9, 8]


def test_an_output_without_a_shape_gets_one(tmp_path):
    proto = build([node("Flatten", "x", "y")], {"x": (1, 3, 2, 2)})
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    assert loaded(tmp_path, proto).graph.outputs[0].shape == [1, 12]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats_become_float32(tmp_path, dtype):
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        node("Mul", "x w", "a"),
        node("Cast", "a", "b", to=1),
        node("Cast", "b", "c", to=kind),
        node("Relu", "c", "y"),
    ]
    proto = build(
        nodes, {"x": (1, 3, 2, 2)}, {"w": _W.astype(dtype)}, kind=kind
    )
    model = loaded(tmp_path, proto)
    assert constant_named(model, "w").dtype == np.float32
    assert {
        value.dtype for entry in model.graph for value in entry.outputs
    } == {ir.DataType.FLOAT}
    feeds = seeded({"x": (1, 3, 2, 2)})
    half_a_bit = 2e-3  # of float16, in which the original computes
    before = run(proto, {"x": feeds["x"].astype(dtype)})
    assert_same(before, run(model, feeds), half_a_bit)


def test_weights_of_bfloat16_are_widened(tmp_path):
    proto = build([node("Mul", "x w", "y")], {"x": (1, 3, 2, 2)}, {"w": _W})
    bits = (_W.view(np.uint32) >> 16).astype(
        np.uint16
    )  # the upper half of a float32
    tensor = onnx.TensorProto(
        name="w",
        data_type=onnx.TensorProto.BFLOAT16,
        dims=_W.shape,
        raw_data=bits.tobytes(),
    )
    proto.graph.initializer[0].CopyFrom(tensor)
    proto.graph.node.insert(
        0, onnx.helper.make_node("Cast", ["w"], ["wide"], to=1)
    )
    proto.graph.node[1].input[1] = "wide"
    assert (
        constant_named(loaded(tmp_path, proto), "w").tobytes()
        == (bits.astype(np.uint32) << 16).tobytes()
    )


def test_initializers_that_are_also_inputs_are_constants(tmp_path):
    proto = build(
        [node("Mul", "x w", "y")], {"x": (1, 3, 2, 2)}, {"w": _W}, opset=8
    )
    assert [value.name for value in proto.graph.input] == ["x", "w"]
    assert list(shapes_of(loaded(tmp_path, proto))) == ["x"]


def test_constant_nodes_become_initializers_of_the_same_name(tmp_path):
    value = onnx.numpy_helper.from_array(_W)
    proto = build(
        [node("Constant", "", "c", value=value), node("Mul", "x c", "y")],
        {"x": (1, 3, 2, 2)},
    )
    assert (constant_named(loaded(tmp_path, proto), "c") == _W).all()


def test_infinite_limits_are_no_bad_weights(tmp_path):
    proto = build(
        [node("Clip", "x l h", "y")],
        {"x": (1, 3)},
        {"l": 0.0, "h": float("inf")},
    )
    assert np.isinf(constant_named(loaded(tmp_path, proto), "h"))


def test_a_short_time_transform_is_one_sided_unless_it_says_otherwise(tmp_path):
    # onnx's shape inference takes it for two-sided, and refuses the product.
    nodes = [
        node("STFT", "x s w", "z"),
        node("ReduceSum", "z a", "p", keepdims=0),
        node("MatMul", "p m", "y"),
    ]
    constants = {
        "s": np.array(4),
        "w": np.ones(8, np.float32),
        "a": np.array([3]),
        "m": np.ones((5, 2), np.float32),
    }
    proto = build(nodes, {"x": (1, 16, 1)}, constants, opset=17)
    model = loaded(tmp_path, proto)
    assert model.graph.outputs[0].shape == [1, 3, 2]


def test_reals_are_not_taken_for_lists_of_sizes(tmp_path):
    # onnx's inference with data computes q, and then takes q[:, None] for a shape.
    nodes = [
        node("Div", "b k", "t"),
        node("Div", "a k", "q"),
        node("Unsqueeze", "q last", "column"),
        node("Add", "column t", "s"),
        node("Mul", "x s", "y"),
    ]
    constants = {
        "a": np.float32([1, 2, 3]),
        "b": np.float32([1, 2, 3, 4, 5]),
        "k": np.float32(2),
        "last": np.array([-1]),
    }
    model = loaded(tmp_path, build(nodes, {"x": (1, 5)}, constants, opset=18))
    assert model.graph.outputs[0].shape == [3, 5]


def test_a_pool_window_that_begins_in_the_end_padding_is_dropped(tmp_path):
    # (4 + 1 + 1 - 2) / 3 + 1 = 2.33, up to 3; but the third window would begin at 6 - 1 = 5, behind the input of 4
    pool = node(
        "MaxPool",
        "x",
        "p",
        kernel_shape=[2, 2],
        strides=[3, 3],
        pads=[1, 1, 1, 1],
        ceil_mode=1,
    )
    model = loaded(
        tmp_path,
        build([pool, node("Flatten", "p", "y")], {"x": (1, 2, 4, 4)}, opset=13),
    )
    assert model.graph.outputs[0].shape == [1, 8]


def test_the_hash_is_of_the_files_bytes(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(build([node("Relu", "x", "y")], {"x": (1, 3)}), path)
    found = load(path)
    assert (found.sha256, found.origin) == (
        hashlib.sha256(path.read_bytes()).hexdigest(),
        "onnx",
    )


def test_parameters_beside_an_onnx_file_are_refused(tmp_path):
    with pytest.raises(
        BadOption,
        match=r"^--params p.params: an .onnx file holds its own parameters$",
    ):
        load(tmp_path / "m.onnx", params="p.params")


def test_content_tells_the_kind_where_the_name_does_not(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(
        build([node("Relu", "x", "y")], {"x": (1, 3)}).SerializeToString()
    )
    assert kind_of(path) == "onnx"
    path.write_text('{"nodes": []}')
    assert kind_of(path) == "mxnet"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "model.bin",
            b"PK\x03\x04",
            "unknown kind of file; expected an .onnx file or an MXNet symbol .json file",
        ),
        (
            "net.params",
            b"",
            "holds parameters; give the symbol's .json file, and these with --params",
        ),
        ("absent", None, "No such file or directory"),
    ],
)
def test_files_of_no_kind(tmp_path, name, content, sentence):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadModel) as caught:
        load(path)
    assert str(caught.value) == f"{path}: {sentence}"


def test_a_folder_of_no_kind(tmp_path):
    with pytest.raises(
        BadModel,
        match=r"is a folder; expected an \.onnx file or an MXNet symbol \.json file$",
    ):
        load(tmp_path)


def test_operators_are_listed_sorted():
    names = operators("onnx")
    assert names == sorted(names)
    assert {"Conv", "Gemm", "Softmax", "Upsample"} <= set(names)
    assert "Loop" not in names
