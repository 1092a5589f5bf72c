"""Rewrite a ConvTranspose that states the size of its result as one with pads.

The library's shape inference finds another size for it, or gives up.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.patch import drop_attributes, set_attributes
from mrt.graph.values import ints_attribute, shape_of, string_attribute


def resolve_conv_transpose_output(node: ir.Node) -> bool:
    """If the node is a ConvTranspose whose inferred shape is wrong, write its pads; return whether it was.

    Inference has to run again afterwards, since every size after it was wrong too.
    """
    return node.op_type == "ConvTranspose" and _resolve(node)


@dataclass(frozen=True)
class _Axis:
    """One spatial axis of a ConvTranspose."""

    size: int
    taps: int
    stride: int
    dilation: int
    output_padding: int

    @property
    def full_size(self) -> int:
        """The size of the result without pads."""
        extent = (self.taps - 1) * self.dilation + 1
        return (self.size - 1) * self.stride + extent + self.output_padding

    @property
    def same_size(self) -> int:
        """The size with SAME_UPPER and SAME_LOWER: input times stride, at most the full size."""
        return min(self.size * self.stride, self.full_size)


def _resolve(node: ir.Node) -> bool:
    mode = string_attribute(node, "auto_pad", "NOTSET")
    output_shape = ints_attribute(node, "output_shape")
    if not output_shape and not mode.startswith("SAME"):
        return False
    axes = _axes(node)
    if axes is None:
        return False
    spatial = len(axes)
    expected = tuple(axis.same_size for axis in axes)
    if output_shape:
        expected = output_shape[-spatial:]
    if len(expected) != spatial:
        return False
    y = shape_of(node.outputs[0])
    if y is not None and y[2:] == expected:
        return False
    _write_pads(node, axes, expected, upper=mode == "SAME_UPPER")
    return True


def _axes(node: ir.Node) -> list[_Axis] | None:
    """Return the spatial axes; None where shapes are unknown or do not fit the attributes."""
    x, weights = shape_of(node.inputs[0]), shape_of(node.inputs[1])
    if x is None or weights is None or len(x) < 3 or len(weights) != len(x):
        return None
    spatial = len(x) - 2
    columns = [
        x[2:],
        weights[2:],
        _ints(node, "strides", (1,) * spatial),
        _ints(node, "dilations", (1,) * spatial),
        _ints(node, "output_padding", (0,) * spatial),
    ]
    if any(len(column) != spatial for column in columns):
        return None
    return [_Axis(*numbers) for numbers in zip(*columns, strict=True)]


def _write_pads(
    node: ir.Node, axes: list[_Axis], expected: tuple[int, ...], *, upper: bool
) -> None:
    """Write the surplus as pads on both sides, and what is missing as output_padding."""
    begins, ends, extra = [], [], []
    for axis, size in zip(axes, expected, strict=True):
        surplus = axis.full_size - size
        total = max(surplus, 0)
        smaller = total // 2
        begin = smaller if upper else total - smaller
        begins.append(begin)
        ends.append(total - begin)
        extra.append(axis.output_padding + max(-surplus, 0))
    set_attributes(node, pads=(*begins, *ends), output_padding=tuple(extra))
    drop_attributes(node, "auto_pad", "output_shape")


def _ints(
    node: ir.Node, name: str, default: tuple[int, ...]
) -> tuple[int, ...]:
    numbers = ints_attribute(node, name)
    return default if numbers is None else numbers
