"""join_signed_shifts: exporters' shift of signed integers to the right, and what only looks like one."""

import numpy as np
import pytest
from onnx import TensorProto

from mrt.graph.infer_shapes import infer_shapes
from mrt.rewrite import rewrite
from mrt.rewrite.elementwise.signed_shift import join_signed_shifts
from tests.support.graphs import graph_of, node, operators_of, run

KINDS = {
    np.int8: (np.uint8, TensorProto.INT8, TensorProto.UINT8),
    np.int32: (np.uint32, TensorProto.INT32, TensorProto.UINT32),
    np.int64: (np.uint64, TensorProto.INT64, TensorProto.UINT64),
}


def shifting(kind, steps, mask=None, direction="RIGHT", condition="x zero"):
    """Return a graph like that of torch.onnx for x >> steps."""
    unsigned, signed_type, unsigned_type = KINDS[kind]
    bits = 8 * np.dtype(kind).itemsize
    highest = 2**bits - 2 ** (bits - steps) if mask is None else mask
    nodes = [
        node("Less", condition, "c"),
        node("Cast", "x", "u", to=unsigned_type),
        node("BitShift", "u s", "shifted", direction=direction),
        node("BitwiseOr", "shifted m", "filled"),
        node("Cast", "filled", "negative", to=signed_type),
        node("Cast", "shifted", "positive", to=signed_type),
        node("Where", "c negative positive", "y"),
    ]
    weights = {
        "zero": np.array(0, kind),
        "s": np.array(steps, unsigned),
        "m": np.array(highest, unsigned),
    }
    return graph_of(nodes, {"x": (12,)}, weights, kind=signed_type)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 3, 7])
def test_a_shift_of_signed_integers_rounds_down(kind, steps):
    model = shifting(kind, steps)
    assert join_signed_shifts(model) == 1
    infer_shapes(model)
    x = np.array(
        [-128, -127, -8, -7, -2, -1, 0, 1, 2, 7, 126, 127], np.int64
    ).astype(kind)
    answer = run(model, {"x": x})["y"]
    assert answer.dtype == kind
    assert answer.tolist() == (x >> steps).tolist()


def test_it_is_arithmetic_after_rewriting():
    model = shifting(np.int32, 3)
    rewrite(model)
    assert not {"BitShift", "BitwiseOr", "Where"} & set(operators_of(model))


@pytest.mark.parametrize(
    "other",
    [
        {"mask": 1},
        {"direction": "LEFT"},
        {"condition": "zero x"},
    ],
    ids=str,
)
def test_what_is_no_shift_of_signed_integers_stays(other):
    assert join_signed_shifts(shifting(np.int32, 3, **other)) == 0
