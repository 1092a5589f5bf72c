"""Replaces minus infinity in masks by which Attention finds fully masked rows.

A finite number takes its place.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    constant,
    first,
    nodes,
    operand,
    producer,
    source_of_moves,
)
from mrt.rewrite.normalization.infinite_masks import SHUT

_MASKS = (
    "Add",
    "Cast",
    "Concat",
    "Expand",
    "Identity",
    "Pad",
    "Reshape",
    "Transpose",
    "Unsqueeze",
    "Where",
)
_ON_THE_WAY = (*_MASKS, "Squeeze")
_HALF = (
    SHUT / 2
)  # below any logit, and above any sum of logits and a masking number


def rewrite_masked_rows(model: ir.Model) -> int:
    """Equal(ReduceMax(mask), -inf) -> LessOrEqual(ReduceMax(mask), -5e8).

    -inf becomes -1e9 in every constant from which the mask is computed. Applies where
    the mask is computed from constants with -inf and read on the way to softmaxes
    alone. Equal, since no number that is added to a mask is so large.
    """
    return sum(_write(node) for node in nodes(model, "Equal"))


def _write(node: ir.Node) -> bool:
    fill = constant(operand(node, 1))
    greatest = source_of_moves(first(node), ("Cast", "Identity", "Squeeze"))
    maker = producer(greatest, "ReduceMax")
    if fill is None or not np.isneginf(fill).all() or maker is None:
        return False
    infinite, computed = _made_of(first(maker))
    if not infinite or not all(map(_leads_to_softmax, computed)):
        return False
    for reader, index in infinite:
        array = constant(operand(reader, index))
        assert array is not None
        finite = np.where(np.isneginf(array), SHUT, array).astype(np.float32)
        reader.replace_input_with(index, Patch(reader).constant(finite, "mask"))
    patch = Patch(node)
    patch.finish(
        patch.add(
            "LessOrEqual",
            first(node),
            patch.constant(np.array(_HALF, np.float32), "shut"),
        )
    )
    return True


def _made_of(
    mask: ir.Value,
) -> tuple[list[tuple[ir.Node, int]], list[ir.Value]]:
    """Return the operands with -inf from which a mask is computed, and all results.

    The operands are (node, index); the results are the values computed on the way.
    """
    infinite, computed, waiting = [], [mask], [mask]
    while waiting:
        maker = waiting.pop().producer()
        if maker is None or maker.op_type not in _MASKS:
            continue
        for index, value in enumerate(maker.inputs):
            array = constant(value)
            if (
                array is not None
                and array.dtype == np.float32
                and np.isneginf(array).any()
            ):
                infinite.append((maker, index))
            elif (
                array is None
                and value is not None
                and value.dtype == ir.DataType.FLOAT
                and value not in computed
            ):
                computed.append(value)
                waiting.append(value)
    makers = [(value, value.producer()) for value in computed]
    return infinite, [
        value
        for value, maker in makers
        if maker is not None and maker.op_type in _MASKS
    ]


def _leads_to_softmax(value: ir.Value) -> bool:
    """Whether a value is read only on the way to a Softmax or a ReduceMax."""
    waiting, seen = [value], {value}
    while waiting:
        current = waiting.pop()
        if current.is_graph_output():
            return False
        for use in current.uses():
            if use.node.op_type in ("Softmax", "ReduceMax"):
                continue
            if use.node.op_type not in _ON_THE_WAY:
                return False
            for output in use.node.outputs:
                if output not in seen:
                    seen.add(output)
                    waiting.append(output)
    return True
