"""Rewrite pools with ceil_mode without it, where the library's shape inference is wrong.

ceil_mode drops a last window that would begin in the end padding, and has no effect where
auto_pad sets the size. The library's shape inference ignores both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.patch import Patch, drop_attributes, set_attributes
from mrt.graph.values import (
    first,
    int_attribute,
    ints_attribute,
    shape_of,
    string_attribute,
)

_POOLS = ("MaxPool", "AveragePool", "LpPool")


def drop_auto_pad_beside_ceil_mode(model: ir.Model) -> None:
    """Rewrite every pool that has both, before inference: which of the two counts needs no shape."""
    for node in model.graph:
        if not _has_ceil_mode(node):
            continue
        auto_pad = string_attribute(node, "auto_pad", "")
        if auto_pad.startswith("SAME"):
            set_attributes(node, ceil_mode=0)
        elif auto_pad == "VALID":
            kernel = ints_attribute(node, "kernel_shape") or ()
            drop_attributes(node, "auto_pad")
            set_attributes(node, pads=(0,) * 2 * len(kernel))


def resolve_ceil_mode(node: ir.Node) -> bool:
    """If the node is a pool whose inferred size is wrong, rewrite it; return whether it was.

    Inference has to run again afterwards, since every size after the pool was wrong too.
    """
    is_explicit = string_attribute(node, "auto_pad", "") in ("", "NOTSET")
    return _has_ceil_mode(node) and is_explicit and _resolve_explicit_pads(node)


def _has_ceil_mode(node: ir.Node) -> bool:
    return node.op_type in _POOLS and bool(int_attribute(node, "ceil_mode", 0))


@dataclass(frozen=True)
class _Axis:
    """One spatial axis of a pool, with the size of its output as inferred."""

    size: int
    inferred: int
    extent: int  # of a window, dilation included
    stride: int
    begin: int
    end: int

    @property
    def last_start(self) -> int:
        """The start of the last window, counted from the start of the padding."""
        return (self.inferred - 1) * self.stride

    @property
    def drops_last(self) -> bool:
        """Whether the last window would begin in the end padding."""
        return self.last_start >= self.size + self.begin

    @property
    def new_end(self) -> int:
        """The end padding with which the size is right without ceil_mode."""
        if self.drops_last:
            return self.end
        overhang = self.last_start + self.extent - self.size - self.begin
        return max(self.end, overhang)


def _resolve_explicit_pads(node: ir.Node) -> bool:
    """If a window is dropped, write the overhang of the last windows as end padding."""
    x, y = shape_of(node.inputs[0]), shape_of(node.outputs[0])
    if x is None or y is None:
        return False
    axes = list(_axes(node, x[2:], y[2:]))
    if not any(axis.drops_last for axis in axes):
        return False
    begins = [axis.begin for axis in axes]
    ends = [axis.end for axis in axes]
    new_ends = [axis.new_end for axis in axes]
    if new_ends != ends and int_attribute(node, "count_include_pad", 0):
        if any(begins) or any(ends):
            _write_padding(node, begins, ends)
        begins = [0] * len(axes)
        new_ends = [axis.new_end - axis.end for axis in axes]
        set_attributes(node, count_include_pad=0)
    set_attributes(node, ceil_mode=0, pads=(*begins, *new_ends))
    return True


def _axes(
    node: ir.Node, sizes: tuple[int, ...], inferred: tuple[int, ...]
) -> Iterator[_Axis]:
    """Yield the spatial axes of a pool with these sizes of input and output."""
    kernel = ints_attribute(node, "kernel_shape") or ()
    ones = (1,) * len(kernel)
    strides = ints_attribute(node, "strides") or ones
    dilations = ints_attribute(node, "dilations") or ones
    pads = ints_attribute(node, "pads") or (0,) * 2 * len(kernel)
    for place, taps in enumerate(kernel):
        yield _Axis(
            size=sizes[place],
            inferred=inferred[place],
            extent=(taps - 1) * dilations[place] + 1,
            stride=strides[place],
            begin=pads[place],
            end=pads[len(kernel) + place],
        )


def _write_padding(node: ir.Node, begins: list[int], ends: list[int]) -> None:
    """Turn padding that counts into a Pad; elements of a window beyond it do not count."""
    patch = Patch(node, typed=False)
    pads = patch.axes([0, 0, *begins, 0, 0, *ends], "pads")
    node.replace_input_with(0, patch.add("Pad", first(node), pads))
