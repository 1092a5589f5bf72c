"""Lowers Hardmax, Compress, CastLike and CenterCropPad to plain operators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    constant_integers,
    first,
    int_attribute,
    ints_attribute,
    nodes,
    operand,
    shape_of,
)


def lower_hardmax_compress(model: ir.Model) -> int:
    """Hardmax, Compress, CastLike and CenterCropPad -> plain operators.

      Hardmax(x) -> Equal(ArgMax(x), 0, 1, ..)
      Compress(x, condition) -> Gather
      CastLike(x, y) -> Cast to the type of y
      CenterCropPad(x, shape) -> Pad, with negative pads where it crops

    Applies where shapes are known, and the condition and the shape constant. Always
    equal.
    """
    return sum(_LOWER[node.op_type](node) for node in nodes(model, *_LOWER))


def _hardmax(node: ir.Node) -> bool:
    shape = shape_of(first(node))
    if not shape:
        return False
    axis = int_attribute(node, "axis", -1) % len(shape)
    patch = Patch(node)
    best = patch.add(
        "ArgMax", first(node), axis=axis, keepdims=1, select_last_index=0
    )
    places = np.arange(shape[axis], dtype=np.int64).reshape(
        [-1 if i == axis else 1 for i in range(len(shape))]
    )
    hit = patch.add("Equal", best, patch.constant(places, "places"))
    patch.finish(
        patch.add("Cast", hit, to=int(patch.output.dtype or ir.DataType.FLOAT))
    )
    return True


def _compress(node: ir.Node) -> bool:
    """Lower a Compress to a Gather.

    The condition may be shorter than the axis. Without an axis, x is flattened.
    """
    shape, condition = shape_of(first(node)), constant(operand(node, 1))
    if shape is None or condition is None:
        return False
    patch, x, axis = Patch(node), first(node), 0
    if "axis" in node.attributes:
        axis = int_attribute(node, "axis", 0) % len(shape)
    else:
        x = patch.add("Reshape", x, patch.axes([-1], "row"), allowzero=0)
        shape = (int(np.prod(shape)),)
    kept = np.flatnonzero(condition[: shape[axis]])
    patch.output.shape = ir.Shape(
        [*shape[:axis], kept.size, *shape[axis + 1 :]]
    )
    patch.finish(
        patch.add(
            "Gather",
            x,
            patch.constant(kept.astype(np.int64), "kept"),
            axis=axis,
        )
    )
    return True


def _cast_like(node: ir.Node) -> bool:
    other = operand(node, 1)
    if other is None or other.dtype is None:
        return False
    patch = Patch(node)
    patch.finish(patch.add("Cast", first(node), to=int(other.dtype)))
    return True


def _crop_and_pad(node: ir.Node) -> bool:
    """Lower a CenterCropPad to a Pad; of an odd number the extra element is at the end."""
    shape, sizes = shape_of(first(node)), constant_integers(operand(node, 1))
    if shape is None or sizes is None:
        return False
    axes = [
        axis % len(shape)
        for axis in ints_attribute(node, "axes") or range(len(shape))
    ]
    before, after = [0] * len(shape), [0] * len(shape)
    for axis, size in zip(axes, sizes, strict=True):
        more = size - shape[axis]
        half = abs(more) // 2
        before[axis] = half if more > 0 else -half
        after[axis] = more - before[axis]
    patch = Patch(node)
    patch.output.shape = ir.Shape(
        [s + b + a for s, b, a in zip(shape, before, after, strict=True)]
    )
    patch.finish(
        patch.add(
            "Pad",
            first(node),
            patch.axes([*before, *after], "pads"),
            mode="constant",
        )
    )
    return True


_LOWER: dict[str, Callable[[ir.Node], bool]] = {
    "Hardmax": _hardmax,
    "Compress": _compress,
    "CastLike": _cast_like,
    "CenterCropPad": _crop_and_pad,
}
