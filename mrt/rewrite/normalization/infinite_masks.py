"""Replaces minus infinity in the mask of a Softmax or an ArgMax by a finite number.

The number masks as well as minus infinity does.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.operators import REARRANGEMENTS
from mrt.graph.patch import Patch
from mrt.graph.values import constant, nodes, operand

# exp of a number so far below a float32 logit is 0; its sum with a logit is finite.
SHUT = np.float32(-1e9)

_SELECTION = frozenset(
    {"Concat", "Expand", "Gather", "GatherElements", "Pad", "Slice", "Tile"}
)
"""Operators that take elements of a mask, perhaps several times."""

_MASKED = ("Softmax", "ArgMax")
_OPERANDS = {"Add": (0, 1), "Where": (1, 2), "Gather": (0,), "Pad": (2,)}
"""The operands that may be masks, by operator."""


def replace_infinite_masks(model: ir.Model) -> int:
    """Add(x, mask), Where(c, x, fill), Gather(masks, i) -> the same with -1e9 for -inf.

    Applies where every reader leads to a Softmax, or an ArgMax, with only movement
    between, and, after a Where or a Gather, the addition to the logits. Equal, except for a row that
    is masked entirely: NaN becomes a number.
    """
    count = 0
    for node in nodes(model, *_OPERANDS):
        between = REARRANGEMENTS | _SELECTION
        if node.op_type != "Add":
            between |= {"Add"}
        for index in _OPERANDS[node.op_type]:
            array = constant(operand(node, index))
            if array is None or not np.isneginf(array).any():
                continue
            if _only_masks(node.outputs[0], between):
                finite = np.where(np.isneginf(array), SHUT, array)
                mask = Patch(node).constant(finite.astype(np.float32), "mask")
                node.replace_input_with(index, mask)
                count += 1
    return count


def _only_masks(value: ir.Value, between: frozenset[str]) -> bool:
    """Return whether every reader, behind operators between, is one in which such a number masks."""
    waiting, visited = [value], set[ir.Value]()
    while waiting:
        current = waiting.pop()
        if current in visited:
            continue
        visited.add(current)
        if current.is_graph_output() or not current.uses():
            return False
        for use in current.uses():
            if use.node.op_type in between:
                waiting.append(use.node.outputs[0])
            elif use.node.op_type not in _MASKED:
                return False
    return True
