"""Counts the products that copies of channels cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import onnx_ir as ir

from mrt.duplicate.channel_chains import Chain
from mrt.graph.values import nodes, shape_of

VECTOR = 16
"""Channels that a vector of sums holds: the engine takes as long for a part of a vector as for all of it."""


def cost_of_copies(chain: Chain, start: int, stop: int) -> float:
    """Return the products of the duplicates from `start` to `stop` of a chain.

    Convolutions that compute the channels do so by vectors; in those that read them,
    each channel counts.
    """
    slots = _slots(chain.channels + stop) - _slots(chain.channels + start)
    computed = slots * sum(map(_products, chain.convolutions))
    read = (stop - start) * sum(map(_products, chain.readers))
    return max(1, computed + read) / chain.channels


def products_of(model: ir.Model) -> int:
    """Return the products of one run of the model, 1 at least."""
    layers = nodes(model, "Conv", "Gemm", "ConvTranspose")
    return max(1, sum(map(_products, layers)))


class ProductsAdded:
    """The products that all copies together add, counted as `cost_of_copies` does.

    A convolution that reads copies and computes others has products of both.
    """

    def __init__(self) -> None:
        self._outputs: Counter[ir.Node] = Counter()
        self._inputs: Counter[ir.Node] = Counter()
        self.total = 0.0

    def add(self, chain: Chain, copies: int) -> float:
        """Count so many copies of the chain's channels, which may be less than none; return the total."""
        touched = {*chain.convolutions, *chain.readers}
        before = self._added(touched)
        self._outputs.update(dict.fromkeys(chain.convolutions, copies))
        self._inputs.update(dict.fromkeys(chain.readers, copies))
        self.total += self._added(touched) - before
        return self.total

    def _added(self, convolutions: Iterable[ir.Node]) -> float:
        return math.fsum(map(self._added_to, convolutions))

    def _added_to(self, node: ir.Node) -> float:
        outputs, inputs = (shape_of(node.inputs[1]) or (1, 1))[:2]
        filled = _slots(outputs + self._outputs[node]) - _slots(outputs)
        size = (outputs + filled) * (inputs + self._inputs[node])
        return _products(node) * (size / (outputs * inputs) - 1)


def _slots(channels: int) -> int:
    """Return the number of channels with the last vector filled."""
    return -(-channels // VECTOR) * VECTOR


def _products(node: ir.Node) -> int:
    """Return the products of one run: each weight counts once for each position.

    The positions are those of the outputs, or those of the inputs of a ConvTranspose.
    """
    weights = shape_of(node.inputs[1]) or ()
    transposed = node.op_type == "ConvTranspose"
    value = node.inputs[0] if transposed else node.outputs[0]
    places = (shape_of(value) or (1, 1))[2:]
    return math.prod(weights) * math.prod(places)
