"""Lowers Resize that repeats each element to Reshape and Concat.

Each element is repeated an integral number of times.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    CHANNELS_FIRST,
    CHANNELS_LAST,
    constant,
    first,
    ints_attribute,
    nodes,
    operand,
    shape_of,
    string_attribute,
)
from mrt.rewrite.canonical_operators import MOST_DIMENSIONS

# A greater factor is a lookup, so that no Concat has millions of operands.
MOST_COPIES = 1 << 10

# With these pairs (coordinate transformation, nearest mode) an integer factor
# repeats each element exactly.
_REPEATING = {("asymmetric", "floor")} | {
    (transformation, mode)
    for transformation in (
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
    )
    for mode in ("round_prefer_floor", "round_prefer_ceil")
}


def lower_resize_by_integers(model: ir.Model) -> int:
    """Resize(nearest) by integer factors -> Reshape, Concat of copies, Reshape; of an image, with channels last.

    The first Reshape puts an axis of 1 behind each axis that grows; the Concats run
    along these. Applies to the coordinate modes that repeat each element (no tie for
    the rounding mode occurs there), up to rank 6 and MOST_COPIES. Always equal.
    """
    count = 0
    for node in nodes(model, "Resize"):
        x, y = shape_of(first(node)), shape_of(node.outputs[0])
        if (
            x is None
            or y is None
            or not _repeats(node)
            or not _has_factors(node, x, y)
        ):
            continue
        growing = [
            axis
            for axis, (small, large) in enumerate(zip(x, y, strict=True))
            if small != large
        ]
        if len(x) + len(growing) > MOST_DIMENSIONS:
            continue
        if any(y[axis] // x[axis] > MOST_COPIES for axis in growing):
            continue
        patch, value = Patch(node), first(node)
        # A copy of pixels is one of runs where their channels lie side by side.
        if len(x) == 4 and growing and set(growing) <= {2, 3}:
            last = patch.add("Transpose", value, perm=CHANNELS_LAST)
            sizes = (
                [shape[axis] for axis in CHANNELS_LAST] for shape in (x, y)
            )
            value = patch.add(
                "Transpose", _repeated(patch, last, *sizes), perm=CHANNELS_FIRST
            )
        else:
            value = _repeated(patch, value, x, y)
        patch.finish(value)
        count += 1
    return count


def _repeated(
    patch: Patch, value: ir.Value | None, x: Sequence[int], y: Sequence[int]
) -> ir.Value:
    """Add what repeats the elements of a value of shape x until it has shape y."""
    grows = [small != large for small, large in zip(x, y, strict=True)]
    apart = [
        size
        for small, more in zip(x, grows, strict=True)
        for size in ((small, 1) if more else (small,))
    ]
    value = patch.add("Reshape", value, patch.axes(apart, "apart"), allowzero=0)
    growing = [axis for axis, more in enumerate(grows) if more]
    for behind, axis in enumerate(growing, 1):
        copies = [value] * (y[axis] // x[axis])
        value = patch.add("Concat", *copies, axis=axis + behind)
    return patch.add(
        "Reshape", value, patch.axes(list(y), "shape"), allowzero=0
    )


def _repeats(node: ir.Node) -> bool:
    transformation = string_attribute(
        node, "coordinate_transformation_mode", "half_pixel"
    )
    nearest = string_attribute(node, "nearest_mode", "round_prefer_floor")
    return (
        string_attribute(node, "mode", "nearest") == "nearest"
        and (transformation, nearest) in _REPEATING
    )


def _has_factors(node: ir.Node, x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether the new sizes are multiples of the old ones.

    Scales, where given, must be exactly these factors, not numbers that round to them.
    """
    if any(large % small for small, large in zip(x, y, strict=True)):
        return False
    scales = constant(operand(node, 2))
    axes = ints_attribute(node, "axes") or tuple(range(len(x)))
    if scales is None or scales.size == 0:
        return (
            string_attribute(node, "keep_aspect_ratio_policy", "stretch")
            == "stretch"
        )
    return all(
        float(scale) * x[axis] == y[axis]
        for scale, axis in zip(scales, axes, strict=True)
    )
