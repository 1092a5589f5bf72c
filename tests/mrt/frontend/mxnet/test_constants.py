"""Tensors from attributes and shapes alone, by what MXNet 1.9.1 gave for them; sizes are checked before memory is taken."""

import numpy as np
import onnx_ir as ir
import pytest

from mrt.frontend.mxnet import load_mxnet
from tests.support.mxnet_files import node, variable, write_params, write_symbol
from tests.support.mxnet_rows import (
    check_refusal,
    check_row,
    compute,
    names,
    row,
)

X = np.ones((3, 4), np.float32)

ROWS = [
    row("zeros_like", X, np.zeros((3, 4))),
    row("zeros_like", X, np.zeros((3, 4)), dtype="int64"),
    row("ones_like", X, np.ones((3, 4))),
    row("_contrib_arange_like", X, np.arange(12).reshape(3, 4)),
    row("_contrib_arange_like", X, [1, 1.5, 2], axis="0", start="1", step=".5"),
    row(
        "_contrib_arange_like",
        X,
        [0, 0, 0, 1],
        axis="-1",
        repeat="3",
        ctx="cpu(0)",
    ),
    row("shape_array", X, [3, 4]),
    row("size_array", X, [12]),
    row(
        "_contrib_index_array", X[:2, :2], [[[0, 0], [0, 1]], [[1, 0], [1, 1]]]
    ),
    row(
        "_contrib_index_array",
        X[:2, :2],
        [[[0], [1]], [[0], [1]]],
        axes="(-1,)",
    ),
    row("_arange", [], [0, 1, 2, 3, 4], start="5"),
    row(
        "_arange",
        [],
        [1, 1, 1.3, 1.3, 1.6, 1.6, 1.9, 1.9],
        start="1",
        stop="2",
        step="0.3",
        repeat="2",
    ),
    row(
        "_arange",
        [],
        [5, 3, 1],
        start="5",
        stop="0",
        step="-2",
        infer_range="False",
        ctx="",
        dtype="float32",
    ),
    row("_arange", [], np.arange(10) / 10, start="0", stop="1", step="0.1"),
    # MXNet drops the fractions of start and step, but counts with them.
    row("_arange", [], [0] * 4, start="0", stop="2", step=".5", dtype="int32"),
    row(
        "_arange",
        [],
        [-1, 0, 1],
        start="-1.5",
        stop="3",
        step="1.9",
        dtype="int64",
    ),
    row(
        "_arange", [], [3, 2, 1], start="3", stop="0", step="-1", dtype="uint8"
    ),
    row(
        "_linspace",
        [],
        [-1, 0, 0, 1],
        start="-1.5",
        stop="1.5",
        num="4",
        dtype="int32",
    ),
    row(
        "_linspace", [], [0] * 50, start="0", stop="1", num="50", dtype="int32"
    ),
    row("_linspace", [], [0, 0.25, 0.5, 0.75, 1], start="0", stop="1", num="5"),
    row(
        "_linspace",
        [],
        [2, 1.25, 0.5, -0.25],
        start="2",
        stop="-1",
        num="4",
        endpoint="False",
    ),
    row("_zeros", [], [[0], [0]], shape="(2, 1)"),
    row(
        "_zeros", [], [[0, 0, 0]], shape="(0, 3)"
    ),  # the batch of a first state, broadcast later
    row("_zeros_without_dtype", [], [0, 0], shape="(2,)"),
    row("_ones", [], [1, 1], shape="2", dtype="int32"),
    row("_full", [], [1.5, 1.5], shape="(2,)", value="1.5"),
    row("_full", [], [-2, -2], shape="(2,)", value="-2.7", dtype="int32"),
    row("_full", [], [2, 2], shape="(2,)", value="2.7", dtype="uint8"),
    row("_full", [], [1, 1], shape="(2,)", value="2.7", dtype="bool"),
    row("_eye", [], [[0, 1, 0], [0, 0, 1]], N="2", M="3", k="1"),
    row("_eye", [], [[0, 0], [1, 0]], N="2", k="-1"),
    row("_eye", [], [[0, 0], [0, 0]], N="2", k="99"),
]

REFUSALS = [
    (
        row("_arange", [], X, start="3", stop="3"),
        "no numbers from 3.0 to 3.0 in steps of 1.0",
    ),
    (
        row("_arange", [], X, start="0", stop="5", step="-1"),
        "no numbers from 0.0 to 5.0 in steps of -1.0",
    ),
    (
        row("_arange", [], X, start="0", stop="5", step="0"),
        "no numbers from 0.0 to 5.0 in steps of 0.0",
    ),
    (
        row("_arange", [], X, start="1e15"),
        "a result of 1000000000000000 numbers; expected 1 to 2^28",
    ),
    (
        row("_arange", [], X, start="0", infer_range="True"),
        "infer_range='True': not supported",
    ),
    (
        row("_ones", [], X, shape="(2, 0)"),
        "shape=(2, 0): MXNet infers it from what follows",
    ),
    (
        row("_zeros", [], X, shape="(100000, 100000)"),
        "a result of 10000000000 numbers; expected 1 to 2^28",
    ),
    (
        row("_eye", [], X, N="100000"),
        "a result of 10000000000 numbers; expected 1 to 2^28",
    ),
    (row("_eye", [], X, N="2", M="-3"), "expected 1 to 2^28"),
    (
        row("_linspace", [], X, start="0", stop="1", num="2000000000"),
        "a result of 2000000000 numbers",
    ),
    (
        row("_full", [], X, shape="(2,)", value="300", dtype="uint8"),
        "value=300.0 with dtype=uint8: expected 0 to 255",
    ),
    (
        row("_arange", [], X, start="130", dtype="int8"),
        "value=129.0 with dtype=int8: expected -128 to 127",
    ),
]


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_a_constant_is_that_of_mxnet(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize(("case", "problem"), REFUSALS, ids=names(REFUSALS))
def test_a_size_that_is_unknown_or_too_large_is_refused(
    case, problem, tmp_path
):
    check_refusal(tmp_path, case, problem)


def integral(tmp_path, *nodes):
    """A symbol over x of shape (2, 3), imported."""
    write_symbol(tmp_path / "m.json", [variable("x"), *nodes])
    write_params(tmp_path / "m.params", {})
    return load_mxnet(tmp_path / "m.json", tmp_path / "m.params", {"x": (2, 3)})


INTEGRAL = [
    ([node("Cast", "i", [0], dtype="int32"), node("_plus_scalar", "y", [1], scalar="2")], [[4, 5, 0], [2, 1, 7]]),
    ([node("Cast", "i", [0], dtype="int32"), node("_mul_scalar", "y", [1], scalar="-3")], [[-6, -9, 6], [0, 3, -15]]),
    ([node("Cast", "i", [0], dtype="int64"), node("transpose", "y", [1])], [[2, 0], [3, -1], [-2, 5]]),
    ([node("_mul_scalar", "m", [0], scalar="100"), node("Cast", "i", [1], dtype="int32"),
      node("Cast", "y", [2], dtype="uint8")], [[19, 44, 6], [50, 131, 244]]),
    ([node("_mul_scalar", "m", [0], scalar="10"), node("Cast", "i", [1], dtype="int64"),
      node("_div_scalar", "y", [2], scalar="4")], [[6, 7, -6], [1, -3, 12]]),  # of 27, 30, -25, 5, -12, 50
    ([node("Cast", "i", [0], dtype="int64"), node("_mul_scalar", "m", [1], scalar="7"),
      node("shape_array", "s", [0]), node("SliceChannel", "p", [3], num_outputs="2", axis="0"),
      node("broadcast_div", "y", [2, (4, 1)])], [[4, 7, -4], [0, -2, 11]]),  # 14, 21, -14, 0, -7, 35 by 3
    ([node("Cast", "i", [0], dtype="int64"), node("_mod_scalar", "y", [1], scalar="3")], [[2, 0, 1], [0, 2, 2]]),
    ([node("Cast", "i", [0], dtype="int64"), node("_mod_scalar", "y", [1], scalar="-3")], [[-1, 0, -2], [0, -1, -1]]),
    ([node("Cast", "i", [0], dtype="int64"), node("zeros_like", "z", [1]), node("broadcast_mod", "y", [1, 2])],
     [[0, 0, 0], [0, 0, 0]]),
    ([node("argmax", "i", [0], axis="1"), node("_div_scalar", "y", [1], scalar="4")], [0.25, 0.5]),
    ([node("topk", "i", [0], dtype="int32"), node("Cast", "f", [1], dtype="float32"),
      node("_div_scalar", "y", [2], scalar="4")], [[0.25], [0.5]]),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "expected"), INTEGRAL)
def test_arithmetic_that_means_the_same_on_integers_is_done(
    nodes, expected, tmp_path
):
    numbers = np.array([[2.75, 3, -2.5], [0.5, -1.25, 5]], np.float32)
    np.testing.assert_array_equal(
        compute(integral(tmp_path, *nodes), [numbers]),
        np.array(expected, np.float32),
    )


TRUNCATED = [
    (
        node("_rdiv_scalar", "y", [1], scalar="2"),
        "y (_rdiv_scalar): input 'i' is int32 in MXNet",
    ),
    (
        node("_div_scalar", "y", [1], scalar="0"),
        "y (_div_scalar): a division of integers by 0",
    ),
    (
        node("mean", "y", [1]),
        "y (mean): input 'i' is int32 in MXNet; supported: float32, so put a Cast in front",
    ),
    (
        node("_plus_scalar", "y", [1], scalar="1.5"),
        "scalar=1.5 with an input that is int32; expected an integer",
    ),
]


@pytest.mark.parametrize(("second", "problem"), TRUNCATED)
def test_arithmetic_that_truncates_integers_is_refused(
    second, problem, tmp_path
):
    with pytest.raises(Exception, match="unsupported") as refused:
        integral(tmp_path, node("Cast", "i", [0], dtype="int32"), second)
    assert problem in str(refused.value)


def test_arithmetic_of_bytes_which_wraps_is_refused(tmp_path):
    with pytest.raises(Exception, match="unsupported") as refused:
        integral(
            tmp_path,
            node("Cast", "i", [0], dtype="uint8"),
            node("_plus_scalar", "y", [1], scalar="1"),
        )
    assert (
        "y (_plus_scalar): input 'i' is uint8 in MXNet; supported: float32"
        in str(refused.value)
    )


def test_a_constant_that_feeds_a_network_needs_no_input_of_its_own(tmp_path):
    model = integral(
        tmp_path,
        node("_arange", "steps", [], start="3"),
        node("broadcast_add", "y", [0, 1]),
    )
    assert isinstance(model, ir.Model)
    assert [value.name for value in model.graph.inputs] == ["x"]
    np.testing.assert_array_equal(
        compute(model, [X[:2, :3]]), [[1, 2, 3], [1, 2, 3]]
    )
