"""Finds the logits that a Softmax, or an ArgMax, reads behind a mask: a number like -1e9 that excludes an entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from mrt.graph.operators import REARRANGEMENTS


@dataclass(frozen=True)
class MaskedLogits:
    """The Add or the Where that may apply a mask, and its result's names: as it gives it, and as movement hands it on."""

    node: ir.Node
    names: Sequence[str]


def masked_logits(nodes: Sequence[ir.Node]) -> Iterator[MaskedLogits]:
    """Yield the logits that nothing else reads, in the order of the nodes that read them."""
    for node in nodes:
        if node.op_type in ("Softmax", "ArgMax"):
            logits = _behind_movement(node.inputs[0])
            if logits is not None:
                yield logits


def _behind_movement(value: ir.Value | None) -> MaskedLogits | None:
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
    return MaskedLogits(node, [str(it.name) for it in read_once])


def _producer(value: ir.Value | None) -> ir.Node | None:
    return (
        None if value is None or value.is_graph_output() else value.producer()
    )
