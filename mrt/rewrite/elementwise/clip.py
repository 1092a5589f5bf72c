"""Canonicalizes Clip to two bounds, and to Relu where it equals one."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import constant, first, nodes, operand

_LARGEST = np.finfo(np.float32).max


def canonicalize_clip(model: ir.Model) -> int:
    """Clip(x, 0) without an upper bound -> Relu(x); else a missing bound -> a finite one.

    Infinite bounds are replaced likewise. Applies when the bounds are constant. Equal
    on every finite value.
    """
    count = 0
    for node in nodes(model, "Clip"):
        if first(node).dtype not in (None, ir.DataType.FLOAT):
            count += _write_integer(node)
            continue
        low, high = _limit(node, 1, -_LARGEST), _limit(node, 2, _LARGEST)
        if low is None or high is None:
            continue
        if low == 0 and high == _LARGEST:
            patch = Patch(node)
            patch.finish(patch.add("Relu", first(node)))
        elif any(_is_missing(node, index) for index in (1, 2)):
            patch = Patch(node)
            limits = [
                patch.constant(limit, role)
                for limit, role in ((low, "min"), (high, "max"))
            ]
            patch.finish(patch.add("Clip", first(node), *limits))
        else:
            continue
        count += 1
    return count


def _limit(
    node: ir.Node, index: int, missing: np.float32
) -> np.ndarray[tuple[()], np.dtype[np.float32]] | None:
    if operand(node, index) is None:
        return np.array(missing, np.float32)
    array = constant(operand(node, index))
    if array is None or array.size != 1 or np.isnan(array).any():
        return None
    return np.clip(array.astype(np.float32).reshape(()), -_LARGEST, _LARGEST)


def _write_integer(node: ir.Node) -> bool:
    """Canonicalize a Clip of integers.

    A missing bound becomes the least or the greatest integer of i32, in which they are
    computed.
    """
    bounds = [constant(operand(node, index)) for index in (1, 2)]
    kind = (first(node).dtype or ir.DataType.INT64).numpy()
    if len(node.inputs) == 3 and all(
        bound is not None and bound.shape == () for bound in bounds
    ):
        return False
    if any(
        bound is None and operand(node, index) is not None
        for index, bound in ((1, bounds[0]), (2, bounds[1]))
    ):
        return False
    widest = np.iinfo(kind)
    defaults = (max(widest.min, -(2**31)), min(widest.max, 2**31 - 1))
    patch = Patch(node)
    arrays = [
        np.array(default if bound is None else bound.reshape(-1)[0], kind)
        for bound, default in zip(bounds, defaults, strict=True)
    ]
    operands = [
        patch.constant(array, role)
        for array, role in zip(arrays, ("min", "max"), strict=True)
    ]
    patch.finish(patch.add("Clip", first(node), *operands))
    return True


def _is_missing(node: ir.Node, index: int) -> bool:
    """Whether a bound is absent, infinite, or not of rank 0."""
    array = constant(operand(node, index))
    return array is None or array.shape != () or not np.isfinite(array).all()
