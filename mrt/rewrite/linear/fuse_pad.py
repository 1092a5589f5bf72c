"""Fuses a Pad of zeros into the convolution after it."""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import set_attributes
from mrt.graph.values import (
    constant_integers,
    first,
    nodes,
    operand,
    producer,
    scalar,
    shape_of,
    string_attribute,
)
from mrt.rewrite.linear.conv_pool_attributes import window_of


def fuse_pad(model: ir.Model) -> int:
    """Pad(x, zeros) then Conv -> Conv with larger pads; the same for MaxPool(Relu).

    Applies when the Pad adds constant zeros on the two spatial axes only and removes
    nothing. Equal: a Conv pads with zeros itself. A MaxPool ignores its own padding;
    where x >= 0 (x comes from a Relu) and every window meets x, a zero there never wins
    either.
    """
    count = 0
    for node in nodes(model, "Conv", "MaxPool"):
        pad = producer(first(node), "Pad")
        window = window_of(node)
        pads = None if pad is None else _spatial_zeros(pad)
        if (
            pad is None
            or pads is None
            or window is None
            or "auto_pad" in node.attributes
        ):
            continue
        total = tuple(
            window_pad + more
            for window_pad, more in zip(window.pads, pads, strict=True)
        )
        if node.op_type == "MaxPool" and not (
            producer(first(pad), "Relu")
            and all(
                t < k for t, k in zip(total, window.kernel * 2, strict=True)
            )
        ):
            continue
        node.replace_input_with(0, first(pad))
        set_attributes(node, pads=total)
        count += 1
    return count


def _spatial_zeros(pad: ir.Node) -> tuple[int, ...] | None:
    """Return [top, left, bottom, right] of a Pad of zeros around a 4-D value.

    None if the Pad does anything else.
    """
    pads, shape = constant_integers(operand(pad, 1)), shape_of(first(pad))
    value = operand(pad, 2)
    if (
        string_attribute(pad, "mode", "constant") != "constant"
        or pads is None
        or operand(pad, 3) is not None
        or shape is None
    ):
        return None
    if (
        len(shape) != 4
        or min(pads) < 0
        or any(pads[axis] for axis in (0, 1, 4, 5))
    ):
        return None
    if value is not None and scalar(value) != 0.0:
        return None
    return (pads[2], pads[3], pads[6], pads[7])
