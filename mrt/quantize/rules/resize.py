"""The rule of Resize: exact linear interpolation, because resize has integer weights over n."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

import numpy as np
import onnx_ir as ir

from cvm.errors import Unproven
from mrt.graph.canonical_values import shape_of
from mrt.quantize.context import LoweringContext
from mrt.quantize.rules.registry import rule
from mrt.quantize.tensor import Tensor

Steps = tuple[int, int, int, int]
"""n, d, offset, border: output index i lies at input position (i * d + offset) / n."""


@rule("Resize")
def resize(net: LoweringContext, node: ir.Node) -> None:
    """Write a resize of both axes at once.

    Columns are resized after rows where the product of both n is too fine for i32.
    """
    x = net.to_nhwc(net.requantized(node.inputs[0]))
    if x.zero_point:
        x = net.widen(x, "i16")
    old, new = shape_of(node.inputs[0])[2:], shape_of(node.outputs[0])[2:]
    mode = node.attributes["coordinate_transformation_mode"].as_string()
    rows, columns = (
        _steps(mode, *sizes) for sizes in zip(old, new, strict=True)
    )
    stay = (1, 1, 0, 0)
    try:
        result = _interpolated(net, x, rows, columns)
    except Unproven:
        tall = _interpolated(net, x, rows, stay)
        ratio = np.array([1.0 / rows[0]])
        between = replace(
            x, value=net.rescale(tall, ratio, net.dtype(x), x.zero_point)
        )
        result = _interpolated(net, between, stay, columns)
    net.define(node.outputs[0], result)


def _interpolated(
    net: LoweringContext, x: Tensor, rows: Steps, columns: Steps
) -> Tensor:
    """Emit one resize; its weights sum to the product of both n, so the scale is divided by it."""
    total = rows[0] * columns[0]
    value = net.builder.emit(
        "resize",
        x.value,
        scale=(*rows[:2], *columns[:2]),
        offset=(rows[2], columns[2]),
        border=(rows[3], columns[3]),
        mode="bilinear",
    )
    return replace(x, value=value, scale=x.scale / total)


def _steps(mode: str, old: int, new: int) -> Steps:
    """Return the steps of one axis from `old` to `new` elements, in lowest terms."""
    if mode == "align_corners":
        n, d, offset = (
            (new - 1, old - 1, 0)
            if new > 1 and old > 1
            else (2 * new, 2 * old, old - new)
        )
    elif mode == "half_pixel":  # (i + 1/2) * old / new - 1/2
        n, d, offset = 2 * new, 2 * old, old - new
    else:
        n, d, offset = new, old, 0
    common = gcd(gcd(n, d), offset)
    n, d, offset = n // common, d // common, offset // common
    return n, d, offset, (new - 1) * d - (old - 1) * n + offset
