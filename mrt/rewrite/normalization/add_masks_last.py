"""Adds a computed mask and a constant mask to the logits one after the other.

Their sum would have a coarse scale.
"""

from __future__ import annotations

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import constant, nodes, producer, shape_of

FILL = -1000.0  # below any logit; a number that masks is at most this


def add_masks_last(model: ir.Model) -> int:
    """Add(x, Add(m, fills)) -> Add(Add(x, m), fills).

    Applies where m is computed, but is not a Where, and x has the shape of the result.
    Equal up to rounding.
    """
    count = 0
    for node in nodes(model, "Add"):
        for index in (0, 1):
            inner, x = (
                producer(node.inputs[index], "Add"),
                node.inputs[1 - index],
            )
            parts = (
                None
                if inner is None or constant(x) is not None
                else _parts(inner)
            )
            if (
                parts is None
                or x is None
                or shape_of(x) is None
                or shape_of(x) != shape_of(node.outputs[0])
            ):
                continue
            patch = Patch(node)
            patch.finish(
                patch.add("Add", patch.add("Add", x, parts[0]), parts[1])
            )
            count += 1
            break
    return count


def _parts(node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    """Return the computed operand and the constant one, if that masks an element."""
    for index in (0, 1):
        mask, fills = node.inputs[index], node.inputs[1 - index]
        array = constant(fills)
        if (
            mask is None
            or fills is None
            or array is None
            or constant(mask) is not None
            or producer(mask, "Where")
        ):
            continue
        if array.dtype.kind == "f" and array.size and array.min() <= FILL:
            return mask, fills
    return None
