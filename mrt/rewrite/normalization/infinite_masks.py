"""Replaces infinity in the mask of a Softmax, an ArgMax, or of Exp, Sigmoid or Tanh by a finite number.

The number masks as well as infinity does.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from mrt.graph.operators import COMPARISONS, REARRANGEMENTS
from mrt.graph.patch import Patch
from mrt.graph.values import Array, constant, nodes, operand, producer

# exp of a number so far below a float32 logit is 0; its sum with a logit is finite.
SHUT = np.float32(-1e9)

_BETWEEN = REARRANGEMENTS | {
    "Add",
    "Concat",
    "Expand",
    "Gather",
    "GatherElements",
    "Pad",
    "ScatterElements",
    "ScatterND",
    "Slice",
    "Tile",
    "Where",
}
"""Operators that take elements of a mask, perhaps several times, or put it over more elements."""

_READERS = {
    -np.inf: (
        "Softmax",
        "ArgMax",
        "TopK",
        "ReduceLogSumExp",
        "ReduceMax",
        "Exp",
        "Sigmoid",
        "Tanh",
    ),
    np.inf: ("Sigmoid", "Tanh"),
}
"""By the sign of infinity, the operators that give the same of a great number, or choose others where there are some."""

_OF_LOGARITHMS = (
    "ArgMax",
    "Exp",
    "Gather",
    "GatherElements",
    "ReduceMax",
    "Slice",
    "Softmax",
    "TopK",
)
"""The operators that read a LogSoftmax and take its masked logarithms as such, or choose others."""

_OPERANDS = {
    "Add": (0, 1),
    "Where": (1, 2),
    "Gather": (0,),
    "Pad": (2,),
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
}
"""The operands that may be masks, by operator; of a Concat, all."""


def replace_infinite_masks(model: ir.Model) -> int:
    """Add(x, mask), Where(c, x, fill), Concat(x, mask), ... -> the same with -1e9 for -inf, and 1e9 for inf.

    Applies where every reader leads to a Softmax, an ArgMax, a TopK, a ReduceMax, a ReduceLogSumExp, a LogSoftmax of which
    some are chosen, Exp, Sigmoid or Tanh, or for inf to one of the last two, with only movement, differences and further masks
    between. Equal, except where all that is read is masked: NaN or infinity becomes a number.
    """
    count = 0
    for node in nodes(model, "Concat", *_OPERANDS):
        for index in _OPERANDS.get(node.op_type, range(len(node.inputs))):
            array = constant(operand(node, index))
            if array is None or not _is_replaced(array, node):
                continue
            finite = np.where(np.isneginf(array), SHUT, array)
            finite = np.where(np.isposinf(array), -SHUT, finite)
            mask = Patch(node).constant(finite.astype(np.float32), "mask")
            node.replace_input_with(index, mask)
            count += 1
    return count


def _is_replaced(array: Array, node: ir.Node) -> bool:
    """Whether a constant holds infinities, and the readers of the node's result take numbers for each."""
    signs = [sign for sign in _READERS if (array == sign).any()]
    return bool(signs) and all(
        _only_read_by(node.outputs[0], _READERS[sign]) for sign in signs
    )


def _only_read_by(value: ir.Value, readers: tuple[str, ...]) -> bool:
    """Return whether every reader, behind operators between, is one of these."""
    waiting, visited = [value], set[ir.Value]()
    while waiting:
        current = waiting.pop()
        if current in visited:
            continue
        visited.add(current)
        if current.is_graph_output() or not current.uses():
            return False
        for node, index in current.uses():
            if node.op_type in _BETWEEN or _shifts(node, index):
                waiting.append(node.outputs[0])
            elif not _takes(node, readers):
                return False
    return True


def _takes(node: ir.Node, readers: tuple[str, ...]) -> bool:
    """Whether a node is one of the readers, or chooses what they take; a maximum that is asked whether it is infinite is none."""
    if node.op_type == "ReduceMax" and _is_asked(node.outputs[0]):
        return False
    return node.op_type in readers or _chooses(node, readers)


def _is_asked(value: ir.Value) -> bool:
    """Whether a maximum, moved or not, is asked whether it is infinite, or compared."""
    waiting = [value]
    while waiting:
        for node, _ in waiting.pop().uses():
            if node.op_type in COMPARISONS | {"IsInf", "IsNaN"}:
                return True
            if node.op_type in REARRANGEMENTS | {"Cast", "Squeeze"}:
                waiting.append(node.outputs[0])
    return False


def _shifts(node: ir.Node, index: int) -> bool:
    """Whether a node takes a number from a row, or finds the row's maximum only for this."""
    if node.op_type == "Sub":
        maximum = producer(node.inputs[1], "ReduceMax", "ReduceLogSumExp")
        return index == 0 or maximum is not None
    uses = node.outputs[0].uses()
    return node.op_type == "ReduceMax" and all(
        it.node.op_type == "Sub" and it.idx == 1 for it in uses
    )


def _chooses(node: ir.Node, readers: tuple[str, ...]) -> bool:
    """Whether a node is a LogSoftmax of which all readers take logarithms of masked shares, or choose others."""
    if node.op_type != "LogSoftmax" or "Softmax" not in readers:
        return False
    waiting = [node.outputs[0]]
    while waiting:
        current = waiting.pop()
        if current.is_graph_output() or not current.uses():
            return False
        for reader, _ in current.uses():
            if reader.op_type in REARRANGEMENTS:
                waiting.append(reader.outputs[0])
            elif reader.op_type not in _OF_LOGARITHMS:
                return False
    return True
