"""Writes out kernel, strides, dilations and pads of convolutions and pools.

Resolves auto_pad and output_shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.patch import drop_attributes, set_attributes
from mrt.graph.values import (
    first,
    int_attribute,
    ints_attribute,
    nodes,
    operand,
    shape_of,
    string_attribute,
)


@dataclass(frozen=True)
class WindowAttributes:
    """The numbers of a 2-D convolution or pool; pads are [top, left, bottom, right]."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    @property
    def extent(self) -> tuple[int, ...]:
        """Number of elements along each axis that the dilated kernel spans."""
        return tuple(
            (k - 1) * d + 1
            for k, d in zip(self.kernel, self.dilations, strict=True)
        )


def canonicalize_conv_pool_attributes(model: ir.Model) -> int:
    """Convolutions and pools with implied attributes -> the same, all written out.

    Applies to Conv, ConvTranspose, MaxPool, AveragePool and LpPool of known shapes.
    auto_pad and output_shape are resolved by the operators' definitions, and only when
    the result has exactly the shape that was inferred.
    """
    count = 0
    for node in nodes(
        model, "Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"
    ):
        window = _explicit(node)
        if window is None:
            continue
        expected = {"kernel_shape": window.kernel, "strides": window.strides, "dilations": window.dilations,
                  "pads": window.pads}  # fmt: skip
        if node.op_type in ("Conv", "ConvTranspose"):
            expected["group"] = (int_attribute(node, "group", 1),)
        if node.op_type == "ConvTranspose":
            expected["output_padding"] = _output_padding(node, window)
        written = {name: _written(node, name) for name in expected}
        if (
            written == expected
            and "auto_pad" not in node.attributes
            and "output_shape" not in node.attributes
        ):
            continue
        if string_attribute(node, "auto_pad", "NOTSET").startswith("SAME"):
            drop_attributes(
                node, "ceil_mode"
            )  # with SAME the strides alone decide the size, not the rounding
        drop_attributes(node, "auto_pad", "output_shape")
        set_attributes(
            node,
            **{
                name: value[0] if name == "group" else value
                for name, value in expected.items()
            },
        )
        count += 1
    return count


def window_of(node: ir.Node) -> WindowAttributes | None:
    """Return the window of a node that `canonicalize_conv_pool_attributes` wrote out."""
    parts = [
        ints_attribute(node, name)
        for name in ("kernel_shape", "strides", "dilations", "pads")
    ]
    kernel, strides, dilations, pads = parts
    if kernel is None or strides is None or pads is None:
        return None
    return WindowAttributes(
        kernel, strides, dilations or (1,) * len(kernel), pads
    )


def _written(node: ir.Node, name: str) -> tuple[int, ...] | None:
    if name == "group":
        return (
            (int_attribute(node, name, 0),) if name in node.attributes else None
        )
    return ints_attribute(node, name)


def _explicit(node: ir.Node) -> WindowAttributes | None:
    x, y = shape_of(first(node)), shape_of(node.outputs[0])
    kernel = ints_attribute(node, "kernel_shape")
    if kernel is None and node.op_type in ("Conv", "ConvTranspose"):
        weights = shape_of(operand(node, 1))
        kernel = None if weights is None else weights[2:]
    if x is None or y is None or kernel is None:
        return None
    ones = (1,) * len(kernel)
    window = WindowAttributes(
        kernel, ints_attribute(node, "strides") or ones, ints_attribute(node, "dilations") or ones,
        ints_attribute(node, "pads") or (0, 0) * len(kernel),
    )  # fmt: skip
    mode = string_attribute(node, "auto_pad", "NOTSET")
    if node.op_type == "ConvTranspose":
        return _pads_of_transposed(node, window, x[2:], y[2:])
    if mode == "VALID":
        return WindowAttributes(
            window.kernel,
            window.strides,
            window.dilations,
            (0, 0) * len(kernel),
        )
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        totals = [max((-(-size // s) - 1) * s + e - size, 0)
                  for size, s, e in zip(x[2:], window.strides, window.extent, strict=True)]  # fmt: skip
        return WindowAttributes(
            window.kernel,
            window.strides,
            window.dilations,
            _split(totals, upper=mode == "SAME_UPPER"),
        )
    return window


def _pads_of_transposed(
    node: ir.Node,
    window: WindowAttributes,
    x: tuple[int, ...],
    y: tuple[int, ...],
) -> WindowAttributes | None:
    """Resolve the pads of a ConvTranspose.

    It computes s * (x - 1) + extra + extent elements per axis and removes the pads.
    """
    mode = string_attribute(node, "auto_pad", "NOTSET")
    extra = ints_attribute(node, "output_padding") or (0,) * len(x)
    full = [
        s * (size - 1) + o + e
        for size, s, o, e in zip(
            x, window.strides, extra, window.extent, strict=True
        )
    ]
    if mode == "NOTSET" and "output_shape" not in node.attributes:
        return window
    if mode == "VALID" and "output_shape" not in node.attributes:
        return WindowAttributes(
            window.kernel, window.strides, window.dilations, (0, 0) * len(x)
        )
    totals = [max(have - want, 0) for have, want in zip(full, y, strict=True)]
    return WindowAttributes(
        window.kernel,
        window.strides,
        window.dilations,
        _split(totals, upper=mode == "SAME_UPPER"),
    )


def _output_padding(node: ir.Node, window: WindowAttributes) -> tuple[int, ...]:
    """Return output_padding, enlarged where a requested shape needs more elements."""
    extra = ints_attribute(node, "output_padding") or (0,) * len(window.kernel)
    if (
        "output_shape" not in node.attributes
        and string_attribute(node, "auto_pad", "NOTSET") == "NOTSET"
    ):
        return extra
    x, y = (shape_of(value) or () for value in (first(node), node.outputs[0]))
    full = [
        s * (size - 1) + e
        for size, s, e in zip(x[2:], window.strides, window.extent, strict=True)
    ]
    return tuple(
        max(want - have, o)
        for want, have, o in zip(y[2:], full, extra, strict=True)
    )


def _split(totals: list[int], *, upper: bool) -> tuple[int, ...]:
    """Divide each total into a part in front and one behind.

    Of an odd total the larger part is behind when `upper`, else in front.
    """
    begins = [total // 2 if upper else total - total // 2 for total in totals]
    return (
        *begins,
        *(total - begin for total, begin in zip(totals, begins, strict=True)),
    )
