"""Replaces minus infinity in the mask of a Softmax by a finite number.

The number masks as well as minus infinity does.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.operators import REARRANGEMENTS
from mrt.graph.patch import Patch
from mrt.graph.values import constant, nodes, operand, sole_user

# exp of a number so far below a float32 logit is 0; its sum with a logit is finite.
SHUT = np.float32(-1e9)


def replace_infinite_masks(model: ir.Model) -> int:
    """Add(x, mask), Where(c, x, fill) -> the same with -1e9 for -inf.

    Applies in front of a Softmax, when only movement lies between, and, after a Where,
    the addition to the logits. Equal, except for a row that is masked entirely: NaN
    becomes a number.
    """
    count = 0
    for node in nodes(model, "Add", "Where"):
        if not _leads_to_softmax(node):
            continue
        for index in range(node.op_type == "Where", len(node.inputs)):
            array = constant(operand(node, index))
            if array is not None and np.isneginf(array).any():
                finite = np.where(np.isneginf(array), SHUT, array).astype(
                    np.float32
                )
                node.replace_input_with(
                    index, Patch(node).constant(finite, "mask")
                )
                count += 1
    return count


def _leads_to_softmax(node: ir.Node) -> bool:
    between = (
        (*REARRANGEMENTS, "Add") if node.op_type == "Where" else REARRANGEMENTS
    )
    reader = sole_user(node.outputs[0])
    while reader is not None and reader.op_type in between:
        reader = sole_user(reader.outputs[0])
    return reader is not None and reader.op_type == "Softmax"
