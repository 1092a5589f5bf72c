"""Lowers Pad in the modes edge, reflect and wrap to lookups by constant indices."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant_integers,
    first,
    nodes,
    operand,
    shape_of,
    string_attribute,
)
from mrt.rewrite.movement.pad import pads_of_every_axis

LONGEST_AXIS = (
    1 << 20
)  # of a padded value: the constant has an index for each element
_MODES = {
    "edge": "edge",
    "reflect": "reflect",
    "wrap": "wrap",
}  # ONNX's mode to numpy's


def lower_pad_modes(model: ir.Model) -> int:
    """Pad(edge, reflect, wrap) -> a Gather by constant indices for each padded axis.

    Elements that negative pads remove are removed before padding. Applies where the
    shape and the pads are known. Always equal.
    """
    count = 0
    for node in nodes(model, "Pad"):
        mode = string_attribute(node, "mode", "constant")
        shape = shape_of(first(node))
        pads = constant_integers(operand(node, 1))
        if mode not in _MODES or shape is None or pads is None:
            continue
        every = pads_of_every_axis(node, pads, len(shape))
        if (
            every is None
            or not any(every)
            or max(every) + max(shape) > LONGEST_AXIS
        ):
            continue
        remaining = [
            size + min(every[axis], 0) + min(every[axis + len(shape)], 0)
            for axis, size in enumerate(shape)
        ]
        if min(remaining) < 1:
            continue
        patch, value = Patch(node), first(node)
        for axis, size in enumerate(shape):
            before, after = every[axis], every[axis + len(shape)]
            if before or after:
                kept = np.arange(
                    max(-before, 0), size + min(after, 0), dtype=np.int64
                )
                indices = np.pad(
                    kept, (max(before, 0), max(after, 0)), mode=_MODES[mode]
                )  # type: ignore[call-overload]
                value = patch.add(
                    "Gather",
                    value,
                    patch.constant(indices, "indices"),
                    axis=axis,
                )
        patch.finish(value)
        count += 1
    return count
