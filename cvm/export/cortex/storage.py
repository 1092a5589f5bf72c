"""Which nodes are needed, and which share a block of the runtime's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from cvm.errors import BadInput
from cvm.export.cortex.graph import CortexNode

MAX_BYTES = 2**32


def needed(
    nodes: Sequence[CortexNode], heads: Sequence[int]
) -> tuple[list[CortexNode], list[int]]:
    """The input, and the nodes that a head depends on, with new numbers; the heads by these."""
    used = {0, *heads}
    for number in range(len(nodes) - 1, 0, -1):
        if number in used:
            used.update(nodes[number].inputs)
    order = {number: index for index, number in enumerate(sorted(used))}
    kept = []
    for number in sorted(used):
        inputs = tuple(order[index] for index in nodes[number].inputs)
        kept.append(replace(nodes[number], inputs=inputs))
    return kept, [order[head] for head in heads]


def blocks(nodes: Sequence[CortexNode], heads: Sequence[int]) -> list[int]:
    """A block for each node. An operator's is free again after its last reader; a head's and a variable's never."""
    last = {}
    for number, node in enumerate(nodes):
        last.update(dict.fromkeys(node.inputs, number))
    last.update(dict.fromkeys(heads, len(nodes)))
    node_blocks: list[int] = []
    sizes: list[int] = []
    free: list[int] = []
    for number, node in enumerate(nodes):
        size = 4 * prod(node.shape)
        if node.operator and free:
            block = min(free, key=lambda b: abs(sizes[b] - size))
            free.remove(block)
            sizes[block] = max(sizes[block], size)
        else:
            block = len(sizes)
            sizes.append(size)
        node_blocks.append(block)
        ended = {k for k in node.inputs if last[k] == number}
        free += [node_blocks[k] for k in sorted(ended) if nodes[k].operator]
    if sum(sizes) > MAX_BYTES:
        raise BadInput(
            f"the values need {sum(sizes):,} bytes; the target cortex has {MAX_BYTES:,}"
        )
    return node_blocks
