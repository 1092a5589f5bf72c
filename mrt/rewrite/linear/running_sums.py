"""Subtracts running sums of one value before they are computed: what is left are sums over windows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    constant_integers,
    first,
    int_attribute,
    nodes,
    operand,
    scalar,
    shape_of,
)


def subtract_running_sums(model: ir.Model) -> int:
    """Slices of one CumSum, subtracted -> the Gemm of the window between them.

    A CumSum is a Gemm by a triangle of ones here; its result may be padded by zeros and reshaped in
    front of both Slices. Applies along the last axis. Equal in real numbers, and more exact
    in others: a running sum grows far beyond the windows.
    """
    return sum(_subtract(node) for node in nodes(model, "Sub"))


@dataclass(frozen=True)
class _Sums:
    """Sums of the last axis of x: one for each row of 0 and 1."""

    x: ir.Value
    rows: Array


def _subtract(node: ir.Node) -> bool:
    upper, lower = (_sums(operand(node, index)) for index in (0, 1))
    shape = shape_of(node.outputs[0])
    if upper is None or lower is None or shape is None:
        return False
    if any(shape_of(operand(node, index)) != shape for index in (0, 1)):
        return False
    if upper.x is not lower.x or upper.rows.shape != lower.rows.shape:
        return False
    patch = Patch(node)
    weights = patch.constant(upper.rows - lower.rows, "weight")
    bias = patch.constant(np.zeros(len(upper.rows), np.float32), "bias")
    total = patch.add(
        "Gemm", upper.x, weights, bias, transA=0, transB=1, alpha=1.0, beta=1.0
    )
    patch.finish(patch.reshape(total, shape))
    return True


def _sums(value: ir.Value | None) -> _Sums | None:
    """Return the sums of which a value consists, cut, padded by zeros or reshaped; None where it does not."""
    node = None if value is None else value.producer()
    if node is None:
        return None
    if node.op_type == "Gemm":
        return _running(node)
    before, after = shape_of(first(node)), shape_of(value)
    if (
        node.op_type not in ("Slice", "Pad", "Reshape")
        or not before
        or not after
    ):
        return None
    inner = _sums(first(node))
    if inner is None:
        return None
    if node.op_type == "Reshape":
        return inner if before[-1] == after[-1] else None
    if node.op_type == "Pad":
        return _padded(inner, node, len(before))
    return _cut(inner, node, len(before))


def _running(gemm: ir.Node) -> _Sums | None:
    """Return the sums of a Gemm by a triangle of ones."""
    weights, bias = (constant(operand(gemm, index)) for index in (1, 2))
    if weights is None or bias is None or bias.any():
        return None
    is_plain = int_attribute(gemm, "transB", 0) == 1
    if not is_plain or not _is_triangle(weights):
        return None
    return _Sums(first(gemm), weights)


def _is_triangle(weights: Array) -> bool:
    """Whether ones fill a square below its diagonal or above it, with the diagonal or without."""
    size = len(weights)
    if weights.shape != (size, size) or not np.isin(weights[0], (0, 1)).all():
        return False
    ones = np.tri(size, k=int(weights[0, 0]) - 1, dtype=np.bool_)
    return any(np.array_equal(weights, it) for it in (ones, ones.T))


def _padded(inner: _Sums, node: ir.Node, rank: int) -> _Sums | None:
    pads, fill = constant_integers(operand(node, 1)), scalar(operand(node, 2))
    if pads is None or fill != 0 or len(pads) != 2 * rank:
        return None
    around = pads[rank - 1], pads[-1]
    if sum(map(abs, pads)) != sum(around) or min(around) < 0:
        return None
    return replace(inner, rows=np.pad(inner.rows, (around, (0, 0))))


def _cut(inner: _Sums, node: ir.Node, rank: int) -> _Sums | None:
    numbers = [
        constant_integers(operand(node, index)) for index in (1, 2, 3, 4)
    ]
    if any(it is None or len(it) != 1 for it in numbers):
        return None
    start, stop, axis, step = (it[0] for it in numbers if it is not None)
    if axis % rank != rank - 1 or step < 1:
        return None
    return replace(inner, rows=inner.rows[start:stop:step])
