"""Opsets 1 to 6, which onnxruntime does not run: expected numbers are worked out by hand or by numpy from ONNX's documents."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mrt.errors import BadModel, Unsupported
from mrt.frontend.onnx import load_onnx
from mrt.rewrite import rewrite
from tests.support.graphs import run

X = np.arange(-6, 18, dtype=np.float32).reshape(1, 2, 3, 4) / 4
COLUMN = np.array([2.0, -3.0], np.float32)
STATES = {"s": COLUMN, "b": COLUMN + 1, "m": COLUMN - 1, "v": np.abs(COLUMN)}


def loaded(folder, operator, opset, weights=None, inputs="x", **attributes):
    """What the model computes of X after loading and rewriting."""
    one = helper.make_node(
        operator, inputs.split(), ["h"], name="one", **attributes
    )
    arrays = weights or {}
    values = [helper.make_tensor_value_info("x", 1, X.shape)]
    values += [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape
        )
        for n, a in arrays.items()
    ]
    result = helper.make_tensor_value_info("y", 1, None)
    nodes = [one, helper.make_node("Neg", ["h"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        values,
        [result],
        [numpy_helper.from_array(a, n) for n, a in arrays.items()],
    )
    proto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3
    )
    onnx.save(proto, folder / "m.onnx")
    model, _ = load_onnx(folder / "m.onnx")
    rewrite(model)
    (found,) = run(model, {"x": X}).values()
    return -found


@pytest.mark.parametrize("opset", [1, 3, 5, 6])
@pytest.mark.parametrize(
    ("operator", "function"),
    [("Add", np.add), ("Mul", np.multiply), ("Sub", np.subtract)],
)
def test_an_operand_lies_along_the_axis_named(
    operator, function, opset, tmp_path
):
    found = loaded(
        tmp_path, operator, opset, {"k": COLUMN}, "x k", broadcast=1, axis=1
    )
    assert np.allclose(found, function(X, COLUMN.reshape(2, 1, 1)))


def test_two_axes_along_the_middle(tmp_path):
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.allclose(
        loaded(tmp_path, "Add", 6, {"k": rows}, "x k", broadcast=1, axis=1),
        X + rows[:, :, None],
    )


@pytest.mark.parametrize("attributes", [{}, {"axis": -1}])
def test_without_an_axis_it_lies_at_the_end(attributes, tmp_path):
    row = np.arange(4, dtype=np.float32)
    assert np.allclose(
        loaded(
            tmp_path, "Add", 6, {"k": row}, "x k", broadcast=1, **attributes
        ),
        X + row,
    )


def test_a_slope_for_each_channel(tmp_path):
    expected = np.where(X > 0, X, X * COLUMN.reshape(2, 1, 1))
    assert np.allclose(
        loaded(tmp_path, "PRelu", 6, {"k": COLUMN}, "x k"), expected
    )


def test_one_slope_for_all(tmp_path):
    expected = np.where(X > 0, X, X * 0.5)
    assert np.allclose(
        loaded(tmp_path, "PRelu", 6, {"k": np.array([0.5], np.float32)}, "x k"),
        expected,
    )


@pytest.mark.parametrize("attributes", [{"is_test": 1}, {}])
def test_stored_statistics_are_used(attributes, tmp_path):
    found = loaded(
        tmp_path,
        "BatchNormalization",
        6,
        STATES,
        "x s b m v",
        epsilon=0.0,
        **attributes,
    )
    s, b, m, v = (STATES[name].reshape(2, 1, 1) for name in "sbmv")
    assert np.allclose(found, (X - m) / np.sqrt(v) * s + b, atol=1e-5)


def test_a_list_of_what_was_overwritten_means_nothing(tmp_path):
    assert np.array_equal(
        loaded(tmp_path, "Relu", 1, consumed_inputs=[0]), np.maximum(X, 0)
    )


def test_dropout_drops_nothing(tmp_path):
    assert np.array_equal(loaded(tmp_path, "Dropout", 6, ratio=0.5), X)


def test_a_shape_that_is_an_attribute(tmp_path):
    assert np.array_equal(
        loaded(tmp_path, "Reshape", 1, shape=[0, -1]), X.reshape(1, 24)
    )


def test_concat_has_a_default_axis(tmp_path):
    assert np.array_equal(
        loaded(tmp_path, "Concat", 1, inputs="x x"), np.concatenate([X, X], 1)
    )


def test_pads_had_another_name(tmp_path):
    found = loaded(
        tmp_path, "Pad", 1, paddings=[0, 0, 1, 0, 0, 0, 0, 2], value=1.5
    )
    assert np.array_equal(
        found, np.pad(X, ((0, 0), (0, 0), (1, 0), (0, 2)), constant_values=1.5)
    )


def test_scales_of_height_and_width(tmp_path):
    found = loaded(tmp_path, "Upsample", 6, height_scale=2.0, width_scale=3.0)
    assert np.array_equal(found, X.repeat(2, 2).repeat(3, 3))


def test_a_type_that_is_a_word(tmp_path):
    assert np.array_equal(loaded(tmp_path, "Cast", 5, to="FLOAT"), X)


def test_selu_had_four_digits(tmp_path):
    expected = np.where(X > 0, 1.0507 * X, 1.0507 * 1.6732 * (np.exp(X) - 1))
    assert np.allclose(loaded(tmp_path, "Selu", 1), expected, atol=1e-6)


def test_c_of_a_product_is_spread(tmp_path):
    w = np.arange(8, dtype=np.float32).reshape(2, 4)
    c = np.array([1.0, -1.0], np.float32)
    flat = helper.make_node("Reshape", ["x"], ["f"], shape=[6, 4])
    gemm = helper.make_node(
        "Gemm", ["f", "w", "c"], ["h"], broadcast=1, transB=1
    )
    values = [
        helper.make_tensor_value_info(n, 1, s)
        for n, s in (("x", X.shape), ("w", (2, 4)), ("c", (2,)))
    ]
    graph = helper.make_graph(
        [flat, gemm], "g", values, [helper.make_tensor_value_info("h", 1, None)],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(c, "c")],
    )  # fmt: skip
    onnx.save(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 4)], ir_version=3
        ),
        tmp_path / "m.onnx",
    )
    model, _ = load_onnx(tmp_path / "m.onnx")
    assert np.allclose(run(model, {"x": X})["h"], X.reshape(6, 4) @ w.T + c)


@pytest.mark.parametrize(
    ("operator", "opset", "attributes", "sentence"),
    [
        (
            "Cast",
            5,
            {"to": "NUMBER"},
            r"one \(Cast\): to=NUMBER; expected the name of a type",
        ),
        ("Tile", 5, {}, r"one \(Tile\): in opset 5; expected opset 6 or newer"),
        (
            "Add",
            6,
            {"axis": -3, "broadcast": 1},
            r"one \(Add\): axis=-3; expected 0 or more",
        ),
    ],
)
def test_what_it_never_meant_is_named(
    operator, opset, attributes, sentence, tmp_path
):
    with pytest.raises(Unsupported, match=sentence):
        loaded(
            tmp_path,
            operator,
            opset,
            {},
            {"Add": "x x", "Tile": "x x x"}.get(operator, "x"),
            **attributes,
        )


def test_an_opset_that_never_was(tmp_path):
    with pytest.raises(BadModel, match="opset 0; supported are 1 to"):
        loaded(tmp_path, "Relu", 0)
