"""Inputs of floats that may hold integers: what would be gained by declaring it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of
from mrt.graph.notes import is_whole, picture_layout_of
from mrt.table.table import CalibrationTable


def whole_number_notes(model: ir.Model, table: CalibrationTable) -> list[str]:
    """A note on each input of floats that may hold integers, and is read by weights of -1, 0 and 1."""
    return [
        f"input '{value.name}' was measured from {measured.min:g} to {measured.max:g}, and weights of -1, 0 and 1 "
        "read it: if it holds integers, --input-dtype whole keeps their sums exact"
        for value in model.graph.inputs
        if value.dtype == ir.DataType.FLOAT
        and not is_whole(value)
        and picture_layout_of(value) is None
        and (measured := table.ranges.get(str(value.name))) is not None
        and measured.min.is_integer()
        and measured.max.is_integer()
        and any(_is_ternary(node, place) for node, place in value.uses())
    ]


def _is_ternary(node: ir.Node, place: int) -> bool:
    """Whether a reader has several weights for each output, 0 or of one size."""
    if node.op_type not in ("Conv", "Gemm") or place != 0:
        return False
    weights = constant_of(node.inputs[1])
    if weights is None:
        return False
    sizes = np.abs(weights.reshape(len(weights), -1))
    if sizes.shape[1] < 2:  # a scale for each channel
        return False
    greatest = sizes.max(axis=1, keepdims=True, initial=0.0)
    return bool(np.all((sizes == 0) | (sizes == greatest)))
