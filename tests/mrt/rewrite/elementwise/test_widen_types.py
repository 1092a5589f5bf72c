"""widen_types: before and after on the smallest graphs, and where it must not apply."""

import numpy as np
import onnx
import pytest

from mrt.rewrite.elementwise.widen_types import widen_types
from tests.support.graphs import graph_of, node, operators_of, run


def test_a_pool_of_bytes_is_one_of_floats():
    pool = node("MaxPool", "x", "y", kernel_shape=[2], strides=[2])
    model = graph_of([pool], {"x": (1, 1, 4)}, kind=onnx.TensorProto.UINT8)
    assert widen_types(model) == 1
    assert operators_of(model) == ["Cast", "MaxPool", "Cast"]
    assert run(model, {"x": np.uint8([[[1, 200, 255, 3]]])})["y"].tolist() == [
        [[200, 255]]
    ]
    assert widen_types(model) == 0


@pytest.mark.parametrize(
    "kind", [onnx.TensorProto.INT16, onnx.TensorProto.UINT16]
)
def test_the_greatest_of_16_bits_is_found_in_32(kind):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    model = graph_of(
        [node("Max", "x k", "y")],
        {"x": (2,)},
        {"k": np.array([5, 30000], dtype)},
        kind=kind,
    )
    assert widen_types(model) == 1
    found = run(model, {"x": np.array([7, 9], dtype)})["y"]
    assert (found.dtype, found.tolist()) == (dtype, [7, 30000])


@pytest.mark.parametrize("operator", ["Abs", "Add", "Mul", "Neg", "Sub"])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2"])
def test_arithmetic_keeps_the_lowest_bits(operator, dtype):
    """As numpy's own does, which has these types."""
    if dtype[0] == "u" and operator in ("Abs", "Neg"):
        return
    ends = np.iinfo(dtype)
    x = np.array([ends.min, 3, 77, ends.max], dtype)
    k = np.array([99], dtype)
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    is_binary = operator in ("Add", "Mul", "Sub")
    model = graph_of(
        [node(operator, "x k" if is_binary else "x", "y")],
        {"x": (4,)},
        {"k": k} if is_binary else {},
        kind=kind,
    )
    assert widen_types(model) == 1
    numpy_of = {"Abs": np.abs, "Add": np.add, "Mul": np.multiply,
                "Neg": np.negative, "Sub": np.subtract}[operator]  # fmt: skip
    with np.errstate(over="ignore"):
        expected = numpy_of(x, k) if is_binary else numpy_of(x)
    found = run(model, {"x": x})["y"]
    assert (found.dtype, found.tolist()) == (x.dtype, expected.tolist())
    assert widen_types(model) == 0


def test_floats_and_wider_types_stay():
    assert (
        widen_types(
            graph_of([node("Max", "x k", "y")], {"x": (2,)}, {"k": [1.0, 2.0]})
        )
        == 0
    )
    assert (
        widen_types(
            graph_of(
                [node("Max", "x x", "y")],
                {"x": (2,)},
                kind=onnx.TensorProto.INT32,
            )
        )
        == 0
    )
