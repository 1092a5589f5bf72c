"""Resize that repeats every element a whole number of times is Reshape and Concat."""

from __future__ import annotations

import onnx_ir as ir

from mrt.rewrite.edit import Array, Patch, constant, first, nodes, operand, shape_of, word

# (coordinate transformation, nearest mode) pairs under which a whole factor repeats each element exactly.
_REPEATING = {("asymmetric", "floor")} | {
    (transformation, mode)
    for transformation in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
    for mode in ("round_prefer_floor", "round_prefer_ceil")
}


def lower_resize(model: ir.Model) -> int:
    """Resize(nearest) by whole factors of the two spatial axes -> Reshape to rank 6, Concat copies, Reshape.

    Applies to the coordinate modes that repeat each element; a rounding mode never meets a tie there. Always equal.
    """
    count = 0
    for node in nodes(model, "Resize"):
        x, y = shape_of(first(node)), shape_of(node.outputs[0])
        if x is None or y is None or len(x) != 4 or x[:2] != y[:2] or not _repeats(node):
            continue
        (n, c, h, w), (tall, wide) = x, (y[2] // x[2], y[3] // x[3])
        if (h * tall, w * wide) != y[2:] or not _has_factors(constant(operand(node, 2)), x, y):
            continue
        patch = Patch(node)
        value = patch.add("Reshape", first(node), patch.axes((n, c, h, 1, w, 1), "apart"), allowzero=0)
        for axis, times in ((3, tall), (5, wide)):
            value = patch.add("Concat", *[value] * times, axis=axis)
        patch.finish(patch.add("Reshape", value, patch.axes(y, "shape"), allowzero=0))
        count += 1
    return count


def _repeats(node: ir.Node) -> bool:
    transformation = word(node, "coordinate_transformation_mode", "half_pixel")
    nearest = word(node, "nearest_mode", "round_prefer_floor")
    return word(node, "mode", "nearest") == "nearest" and (transformation, nearest) in _REPEATING


def _has_factors(scales: Array | None, x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """The scales, where given, are those very factors and not numbers that round to the same sizes."""
    if scales is None or scales.size == 0:
        return True
    return scales.size >= 2 and all(
        float(scale) * small == large for scale, small, large in zip(scales[-2:], x[2:], y[2:], strict=True)
    )
