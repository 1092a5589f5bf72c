"""Makes small models that compute with integers, and compares their numbers before and after a pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto

from mrt.graph.infer_shapes import infer_shapes
from tests.support.graphs import graph_of, run

X = np.array([-180, -61, -60, -59, -1, 0, 1, 59, 60, 61, 119, 7261])
NUMBERS = {
    "n": np.array(60), "f": np.float32(60), "k": np.array(7), "half": np.float32(0.5), "one": np.array(1),
    "minus_one": np.array(-1), "zero": np.array(0), "columns": np.full((2, 12), 60),
}  # fmt: skip


def model_with(
    nodes: Sequence[onnx.NodeProto],
    kind: int = TensorProto.INT64,
    dtype: Any = np.int64,
) -> ir.Model:
    """Return a model that reads X, with integer constants of the same type."""
    numbers = {
        name: array if array.dtype.kind == "f" else array.astype(dtype)
        for name, array in NUMBERS.items()
    }
    return graph_of(nodes, {"x": X.shape}, numbers, kind=kind)


def same_numbers(
    nodes: Sequence[onnx.NodeProto], one_pass: Callable[[ir.Model], int]
) -> int:
    """Return how many changes a pass makes, after which the numbers must be the same."""
    model = model_with(nodes)
    before = run(model, {"x": X})["y"]
    count = one_pass(model)
    infer_shapes(model)
    after = run(model, {"x": X})["y"]
    assert after.dtype == before.dtype
    assert after.tolist() == before.tolist()
    return count
