"""Padding with what is there: edge, reflect and wrap are lookups by constant indices."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.rewrite.edit import Patch, constant_integers, first, nodes, operand, shape_of, word
from mrt.rewrite.write_pads import pads_of_every_axis

LONGEST_AXIS = 1 << 20  # of a padded value, whose every place is written down
_MODES = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}  # ONNX's word, numpy's


def lower_paddings(model: ir.Model) -> int:
    """Pad(edge, reflect, wrap) -> a Gather by constant indices for each axis that is padded. Always equal.

    Applies where the shape and the pads are known and none is negative.
    """
    count = 0
    for node in nodes(model, "Pad"):
        mode, shape = word(node, "mode", "constant"), shape_of(first(node))
        pads = constant_integers(operand(node, 1))
        if mode not in _MODES or shape is None or pads is None:
            continue
        every = pads_of_every_axis(node, pads, len(shape))
        if every is None or min(every) < 0 or not any(every) or max(every) + max(shape) > LONGEST_AXIS:
            continue
        patch, value = Patch(node), first(node)
        for axis, size in enumerate(shape):
            before, after = every[axis], every[axis + len(shape)]
            if before or after:
                indices = np.pad(np.arange(size, dtype=np.int64), (before, after), mode=_MODES[mode])  # type: ignore[call-overload]
                value = patch.add("Gather", value, patch.constant(indices, "indices"), axis=axis)
        patch.finish(value)
        count += 1
    return count
