"""Finds the logits that a Softmax, an ArgMax or a function of each reads behind a mask: a number like -1e9.

It excludes an entry from a Softmax or an ArgMax, and makes it 0 by Exp or Sigmoid and -1 by Tanh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.graph.operators import REARRANGEMENTS
from mrt.graph.values import (
    GREATEST_MASK,
    constant,
    first,
    is_read_elsewhere,
    moved_from,
    producer,
)

FUNCTIONS = ("Exp", "Sigmoid", "Tanh")
"""Functions of each element that give what they give of minus infinity of a number below all others, too."""

EXCLUDING = ("Softmax", "ArgMax")
"""Operators that exclude a masked entry beside others."""

CHOOSING = ("Gather", "GatherElements", "Slice", "TopK")
"""Operators that choose elements, which may be none of the masked ones."""

_MASKING = ("Add", "Where")
_HANDED_ON = {
    **dict.fromkeys((*REARRANGEMENTS, *CHOOSING), slice(0, 1)),
    "Concat": slice(None),
    "LogSoftmax": slice(0, 1),
    "Pad": slice(0, 3, 2),
    "Sub": slice(0, 1),
    "Where": slice(1, 3),
}
"""The operands whose elements an operator hands on; a LogSoftmax and a Sub hand them on shifted."""


@dataclass(frozen=True)
class MaskedLogits:
    """The Add or the Where that may apply a mask, and the operator that reads its result.

    `names` are those of the result: as it is given, and as movement hands it on.
    """

    node: ir.Node
    names: Sequence[str]
    reader: str


def masked_logits(nodes: Sequence[ir.Node]) -> Iterator[MaskedLogits]:
    """Yield the logits that nothing else reads, in the order of the nodes that read them."""
    for node in nodes:
        if node.op_type in ("Softmax", "ArgMax", *FUNCTIONS):
            logits = _behind_movement(first(node), node.op_type)
            if logits is not None:
                yield logits


def _behind_movement(value: ir.Value, reader: str) -> MaskedLogits | None:
    """Follow movement back to the node that applies the mask."""
    path = moved_from(value, REARRANGEMENTS)
    node = producer(path[-1], *_MASKING)
    if node is None or any(map(is_read_elsewhere, path)):
        return None
    return MaskedLogits(node, list(map(name_of, path)), reader)


def names_behind_masks(nodes: Sequence[ir.Node]) -> set[str]:
    """Return the names of logits whose masked entries are no numbers to compare."""
    names = {it for logits in masked_logits(nodes) for it in logits.names}
    masked = MaskedValues(
        nodes,
        lambda masked, node: any(
            it in masked or (it is not None and _scales_mask(it))
            for it in node.inputs
        ),
    )
    excluded: dict[ir.Value, bool] = {}
    for node in reversed(nodes):
        value = node.outputs[0]
        excluded[value] = (
            bool(value.uses())
            and not value.is_graph_output()
            and all(_is_excluded_by(*use, excluded) for use in value.uses())
        )
    return names | {
        name_of(it) for it in excluded if excluded[it] and it in masked
    }


def _is_excluded_by(
    node: ir.Node, index: int, excluded: Mapping[ir.Value, bool]
) -> bool:
    """Whether the masks in a node's operand are excluded there, or behind it."""
    if node.op_type in (*EXCLUDING, "ReduceMax", "Exp"):
        return True
    hands_on = node.op_type == "Add" or index in handed_on(node)
    return hands_on and excluded.get(node.outputs[0], False)


def _scales_mask(value: ir.Value) -> bool:
    """Whether a value is the product of a number that masks, perhaps moved, such as (1 - m) * -1e9, and no output on the way."""
    path = moved_from(value, REARRANGEMENTS)
    if any(it.is_graph_output() for it in path):
        return False
    node = producer(path[-1], "Mul")
    return node is not None and any(map(holds_mask, node.inputs))


def holds_mask(value: ir.Value | None) -> bool:
    """Whether a value is a constant that holds a number that masks."""
    array = constant(value)
    if array is None or array.dtype.kind != "f" or not array.size:
        return False
    return bool(array.min() <= GREATEST_MASK)


class MaskedValues:
    """Values with masks that an Add or a Where puts on, or a constant holds, also behind movement and joined with others."""

    def __init__(
        self,
        nodes: Sequence[ir.Node],
        puts_mask_on: Callable[[MaskedValues, ir.Node], bool],
    ) -> None:
        self._puts_mask_on = puts_mask_on
        self._known: dict[ir.Value, bool] = {}
        for node in nodes:  # in their order, so that no operand waits
            self._known[node.outputs[0]] = self._is_masked(node.outputs[0])

    def __contains__(self, value: ir.Value | None) -> bool:
        if value is None:
            return False
        if value not in self._known:
            self._known[value] = self._is_masked(value)
        return self._known[value]

    def _is_masked(self, value: ir.Value) -> bool:
        node = value.producer()
        if node is None:
            return holds_mask(value)
        if node.op_type in _MASKING:
            return self._puts_mask_on(self, node)
        return any(node.inputs[index] in self for index in handed_on(node))


def handed_on(node: ir.Node) -> range:
    """Return the places of the operands whose elements a node hands on."""
    places = _HANDED_ON.get(node.op_type, slice(0, 0))
    return range(len(node.inputs))[places]
