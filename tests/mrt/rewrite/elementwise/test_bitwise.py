"""lower_bitwise: single bits of integers by arithmetic, as onnxruntime and numpy have them."""

import numpy as np
import onnx
import pytest

from mrt.graph.infer_shapes import infer_shapes
from mrt.rewrite.elementwise.bitwise import lower_bitwise
from tests.support.graphs import graph_of, node, operators_of, run

KINDS = {np.int8: onnx.TensorProto.INT8, np.uint8: onnx.TensorProto.UINT8, np.int32: onnx.TensorProto.INT32,
         np.int64: onnx.TensorProto.INT64, np.uint32: onnx.TensorProto.UINT32}  # fmt: skip
NUMPY = {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}


def numbers(kind):
    limits = np.iinfo(kind)
    low, high = max(limits.min, -(2**30)), min(limits.max, 2**30)
    some = np.random.default_rng(1).integers(low, high, 14, dtype=np.int64)
    return np.array([low, 0, 1, high, *some], np.int64).astype(kind)


def lowered(nodes, kind, weights):
    model = graph_of(nodes, {"x": (18,)}, weights, kind=KINDS[kind])
    assert lower_bitwise(model) == 1
    infer_shapes(model)
    return model


@pytest.mark.parametrize("operator", sorted(NUMPY))
@pytest.mark.parametrize(
    ("kind", "mask"),
    [(np.int8, 0x5A), (np.int8, -7), (np.uint8, 0xF0), (np.uint8, 255), (np.uint8, 0), (np.int32, 0x00FF00F0),
     (np.int64, 3), (np.int64, -4), (np.int64, -1), (np.uint32, 0x0000FFFF)],
)  # fmt: skip
def test_a_mask_for_all(operator, kind, mask):
    held = np.array(mask, kind)
    model = lowered([node(operator, "x m", "y")], kind, {"m": held})
    x = numbers(kind)
    found = run(model, {"x": x})["y"]
    assert found.dtype == kind
    assert found.tolist() == NUMPY[operator](x, held).tolist()


@pytest.mark.parametrize("operator", sorted(NUMPY))
def test_a_mask_in_front(operator):
    held = np.array([0x5A], np.uint8)
    model = lowered([node(operator, "m x", "y")], np.uint8, {"m": held})
    x = numbers(np.uint8)
    assert (
        run(model, {"x": x})["y"].tolist() == NUMPY[operator](held, x).tolist()
    )


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32])
def test_all_bits_the_other_way(kind):
    model = lowered([node("BitwiseNot", "x", "y")], kind, {})
    x = numbers(kind)
    assert run(model, {"x": x})["y"].tolist() == np.invert(x).tolist()


@pytest.mark.parametrize(
    ("direction", "operator"), [("LEFT", "Mul"), ("RIGHT", "Div")]
)
def test_shifts_are_products_and_quotients(direction, operator):
    model = lowered(
        [node("BitShift", "x s", "y", direction=direction)],
        np.uint8,
        {"s": np.arange(18, dtype=np.uint8) % 5},
    )
    assert operators_of(model) == [operator]


@pytest.mark.parametrize("mask", [2**31 - 1, -(2**31)])
def test_a_run_of_ones_up_to_the_sign_stays(mask):
    model = graph_of(
        [node("BitwiseAnd", "x m", "y")],
        {"x": (4,)},
        {"m": np.array(mask, np.int32)},
        kind=KINDS[np.int32],
    )
    assert lower_bitwise(model) == 0


def test_a_mask_for_each_element_stays():
    model = graph_of(
        [node("BitwiseAnd", "x m", "y")],
        {"x": (4,)},
        {"m": np.array([1, 2, 3, 4], np.uint8)},
        kind=KINDS[np.uint8],
    )
    assert lower_bitwise(model) == 0
