"""Canonicalizes Pad to (x, pads of every axis, value); negative pads become a Slice."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    Array,
    constant,
    constant_integers,
    first,
    nodes,
    operand,
    shape_of,
    string_attribute,
)


def canonicalize_pad(model: ir.Model) -> int:
    """Pad with axes, without a value or with negative pads -> Slice, then a full Pad.

    The Slice removes what negative pads remove. Applies to mode constant with constant
    pads. Always equal.
    """
    count = 0
    for node in nodes(model, "Pad"):
        shape, pads = shape_of(first(node)), constant_integers(operand(node, 1))
        if (
            string_attribute(node, "mode", "constant") != "constant"
            or shape is None
            or pads is None
        ):
            continue
        every = pads_of_every_axis(node, pads, len(shape))
        value = _value(node, first(node).dtype or ir.DataType.FLOAT)
        if (
            every is None
            or value is None
            or (
                every == pads
                and min(pads, default=0) >= 0
                and len(node.inputs) == 3
                and operand(node, 2)
            )
        ):
            continue
        patch = Patch(node)
        x = (
            first(node)
            if min(every, default=0) >= 0
            else _slice_away(patch, first(node), every, shape)
        )
        kept = patch.axes([max(pad, 0) for pad in every], "pads")
        patch.finish(
            patch.add(
                "Pad",
                x,
                kept,
                patch.constant(value, "padding"),
                mode="constant",
            )
        )
        count += 1
    return count


def _value(node: ir.Node, kind: ir.DataType) -> Array | None:
    if operand(node, 2) is None:
        return np.zeros((), kind.numpy())
    array = constant(operand(node, 2))
    return (
        None
        if array is None or array.size != 1
        else array.astype(kind.numpy()).reshape(())
    )


def pads_of_every_axis(
    node: ir.Node, pads: tuple[int, ...], rank: int
) -> tuple[int, ...] | None:
    """Return the pads of a node with one pair for each axis.

    None where its axes are not constant, or where its pads are not one pair for each.
    """
    axes: tuple[int, ...] | None = tuple(range(rank))
    if operand(node, 3) is not None:
        axes = constant_integers(operand(node, 3))
    if axes is None or len(pads) != 2 * len(axes):
        return None
    every = [0] * (2 * rank)
    for index, axis in enumerate(axes):
        every[axis % rank] = pads[index]
        every[axis % rank + rank] = pads[index + len(axes)]
    return tuple(every)


def _slice_away(
    patch: Patch, x: ir.Value, pads: tuple[int, ...], shape: tuple[int, ...]
) -> ir.Value:
    rank = len(shape)
    starts = [max(-pad, 0) for pad in pads[:rank]]
    ends = [
        size + min(pad, 0) for size, pad in zip(shape, pads[rank:], strict=True)
    ]
    axes, steps = list(range(rank)), [1] * rank
    roles = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    return patch.add(
        "Slice",
        x,
        *(patch.axes(values, role) for role, values in roles.items()),
    )
