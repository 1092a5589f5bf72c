"""Between which numbers each channel of a value lies, whatever the input, as far as interval arithmetic can tell."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from mrt.exact.ordered_sum import row_sums
from mrt.graph.notes import BYTES
from mrt.graph.values import constant, int_attribute, ints_attribute, operand, scalar

Floats = npt.NDArray[np.float64]
Reach = tuple[
    Floats, Floats
]  # least and greatest: of each index of axis 1, or of all together
_ROUNDING = (
    2.0**-18
)  # of the magnitudes that are added, by which a sum in float32 may be off


def channel_reach(graph: ir.Graph) -> dict[str, Reach]:
    """What is known of the values; of a value that is not there, nothing."""
    found: dict[str, Reach] = {}
    for value in graph.inputs:
        if BYTES in value.metadata_props:
            found[str(value.name)] = np.zeros(1), np.full(1, 255.0)
    for node in graph:
        reach = _of(node, found)
        if reach is not None:
            found[str(node.outputs[0].name)] = reach
    return found


def _of(node: ir.Node, known: Mapping[str, Reach]) -> Reach | None:
    if node.op_type in ("Relu", "Clip"):
        low, high = ends_of(node)
        least, greatest = _reach(node.inputs[0], known) or (
            np.full(1, -math.inf),
            np.full(1, math.inf),
        )
        return np.clip(least, low, high), np.clip(greatest, low, high)
    reaches = [
        _reach(value, known)
        for value in node.inputs[: None if node.op_type == "Concat" else 1]
    ]
    if any(item is None for item in reaches):
        return None
    least, greatest = (
        np.concatenate(ends)
        for ends in zip(*(item for item in reaches if item), strict=True)
    )
    if node.op_type in ("Transpose", "Concat"):
        return least.min(keepdims=True), greatest.max(keepdims=True)
    if node.op_type == "MaxPool":
        return least, greatest
    return _of_convolution(node, least, greatest) if node.op_type == "Conv" else None


def ends_of(node: ir.Node) -> tuple[float, float]:
    """Where a Relu or Clip stops numbers."""
    if node.op_type == "Relu":
        return 0.0, math.inf
    low, high = (scalar(operand(node, index)) for index in (1, 2))
    return -math.inf if low is None else low, math.inf if high is None else high


def _reach(value: ir.Value | None, known: Mapping[str, Reach]) -> Reach | None:
    array = constant(value)
    if array is not None and array.size:
        return np.full(1, float(array.min())), np.full(1, float(array.max()))
    return None if value is None else known.get(str(value.name))


def _of_convolution(node: ir.Node, least: Floats, greatest: Floats) -> Reach | None:
    weights, bias = constant(node.inputs[1]), constant(operand(node, 2))
    if weights is None or not np.isfinite([least, greatest]).all():
        return None
    groups, inputs = int_attribute(node, "group", 1), weights.shape[1]
    if any(ints_attribute(node, "pads") or ()):
        least, greatest = np.minimum(least, 0), np.maximum(greatest, 0)
    by_output = [
        np.repeat(
            np.broadcast_to(ends, groups * inputs).reshape(groups, inputs),
            len(weights) // groups,
            axis=0,
        )
        for ends in (least, greatest)
    ]
    taps = weights.astype(np.float64).reshape(*weights.shape[:2], -1)
    positive, negative = row_sums(np.maximum(taps, 0)), row_sums(np.minimum(taps, 0))
    added = np.zeros(len(weights)) if bias is None else bias.astype(np.float64)
    low = row_sums(positive * by_output[0] + negative * by_output[1]) + added
    high = row_sums(positive * by_output[1] + negative * by_output[0]) + added
    products = row_sums(
        (positive - negative) * np.maximum(np.abs(by_output[0]), np.abs(by_output[1]))
    )
    spare = np.where(products > 0, _ROUNDING * (products + np.abs(added)), 0.0)
    return low - spare, high + spare
