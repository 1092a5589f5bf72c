"""Finds the logits that a Softmax, an ArgMax or a function of each reads behind a mask: a number like -1e9.

It excludes an entry from a Softmax or an ArgMax, and makes it 0 by Exp or Sigmoid and -1 by Tanh.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.operators import REARRANGEMENTS

FUNCTIONS = ("Exp", "Sigmoid", "Tanh")
"""Functions of each element that give what they give of minus infinity of a number below all others, too."""


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
            logits = _behind_movement(node.inputs[0], node.op_type)
            if logits is not None:
                yield logits


def _behind_movement(
    value: ir.Value | None, reader: str
) -> MaskedLogits | None:
    """Follow movement back to the node that applies the mask."""
    path = [value]
    while (
        node := _producer(path[-1])
    ) is not None and node.op_type in REARRANGEMENTS:
        path.append(node.inputs[0])
    if node is None or node.op_type not in ("Add", "Where"):
        return None
    read_once = [it for it in path if it is not None and len(it.uses()) <= 1]
    if len(read_once) < len(path):
        return None
    return MaskedLogits(node, [str(it.name) for it in read_once], reader)


def _producer(value: ir.Value | None) -> ir.Node | None:
    return (
        None if value is None or value.is_graph_output() else value.producer()
    )
