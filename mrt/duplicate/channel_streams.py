"""Finds values without a clip, and residual streams, whose channels can be duplicated.

A stream is all that must have the same channels: what sums add and give, and what
clips, max pools and channelwise convolutions make of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir

from mrt.duplicate.channel_chains import (
    Chain,
    channel_chains,
    is_convolution,
    is_depthwise,
    mixes_channels,
)
from mrt.graph.operators import CLIPS
from mrt.graph.values import nodes, rank_of
from mrt.quantize.channel_centres import is_sum


def channel_streams(model: ir.Model) -> Iterator[Chain]:
    """Yield each stream that is no chain of `channel_chains` and that only convolutions read in the end."""
    places = {node: place for place, node in enumerate(model.graph)}
    taken = {
        node for chain in channel_chains(model) for node in chain.convolutions
    }
    for node in nodes(model, "Conv"):
        if node in taken or not is_convolution(node):
            continue
        if mixes_channels(node):
            stream = _Stream(node, places)
            taken |= stream.convolutions
            if stream.is_whole:
                yield stream.as_chain()


class _Stream:
    """All that has the channels of a convolution's output; `is_whole` unless some of it cannot have more."""

    def __init__(self, node: ir.Node, places: dict[ir.Node, int]) -> None:
        self.convolutions: set[ir.Node] = set()
        self.is_whole = True
        self._places = places
        self._readers: list[ir.Node] = []
        self._makers: dict[ir.Node, ir.Value] = {}
        waiting = [node.outputs[0]]
        while waiting:
            value = waiting.pop()
            maker = value.producer()
            if maker is None or value.is_graph_output():
                self.is_whole = False
            elif maker not in self._makers:
                self._makers[maker] = value
                waiting += self._sources(maker)
                waiting += self._results(value)
        self.is_whole &= bool(self._readers) and any(
            map(_is_rounded, self._values)
        )

    @property
    def _values(self) -> list[ir.Value]:
        return [self._makers[node] for node in self._sorted(self._makers)]

    def as_chain(self) -> Chain:
        """Return the stream as a chain, in the order of the graph."""
        values = self._values
        return Chain(
            tuple(self._sorted(self.convolutions)),
            tuple(value for value in values if _is_rounded(value)),
            tuple(value for value in values if not _is_rounded(value)),
            tuple(self._sorted(self._readers)),
        )

    def _sorted(self, items: Iterable[ir.Node]) -> list[ir.Node]:
        return sorted(items, key=self._places.__getitem__)

    def _sources(self, maker: ir.Node) -> list[ir.Value]:
        """Return what a node makes each channel of, and note a convolution."""
        operands = [value for value in maker.inputs if value is not None]
        if _is_sum_of_images(maker):
            return operands
        if _keeps_channels(maker):
            return operands[:1]
        if not is_convolution(maker):
            self.is_whole = False
            return []
        self.convolutions.add(maker)
        if mixes_channels(maker):
            return []
        self.is_whole &= is_depthwise(maker)
        return operands[:1]

    def _results(self, value: ir.Value) -> list[ir.Value]:
        """Return what is made of each channel of a value, and note the convolutions that mix them."""
        results: list[ir.Value] = []
        for use in value.uses():
            if _is_sum_of_images(use.node):
                results += use.node.outputs
            elif use.idx != 0:
                self.is_whole = False
            elif is_convolution(use.node) and mixes_channels(use.node):
                self._readers.append(use.node)
            elif is_convolution(use.node) or _keeps_channels(use.node):
                results += use.node.outputs
            else:
                self.is_whole = False
        return results


def _keeps_channels(node: ir.Node) -> bool:
    if node.op_type == "MaxPool":
        return len(node.outputs) == 1
    return node.op_type in CLIPS


def _is_sum_of_images(node: ir.Node) -> bool:
    return (
        node.op_type == "Add" and rank_of(node.outputs[0]) == 4 and is_sum(node)
    )


def _is_rounded(value: ir.Value) -> bool:
    """Whether a value becomes integers of its own: a sum reads the accumulators of what it alone reads."""
    node = value.producer()
    if node is None or node.op_type == "MaxPool":
        return False
    if node.op_type in CLIPS or len(value.uses()) > 1:
        return True
    return any(use.node.op_type == "Conv" for use in value.uses())
