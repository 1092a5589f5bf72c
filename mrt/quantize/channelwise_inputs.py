"""Values that only channelwise convolutions read.

Such a convolution has few products, a window for each output, so that 16 bits cost it little.
In its turn it passes on all of the noise: nothing is averaged over channels.
"""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of
from mrt.quantize.options import QuantizeOptions


def with_channelwise_bits(
    model: ir.Model, options: QuantizeOptions
) -> QuantizeOptions:
    """Give `channelwise_bits` to each layer that only channelwise convolutions read.

    A layer with activation bits of its own keeps them.
    """
    if options.channelwise_bits is None:
        return options
    options = options.with_bits_of_values(
        channelwise_inputs(model), options.channelwise_bits
    )
    return replace(options, channelwise_bits=None)


def channelwise_inputs(model: ir.Model) -> list[str]:
    """Return the names of the computed values that channelwise convolutions read, and nothing else, in order."""
    return [
        name_of(value)
        for node in model.graph
        for value in node.outputs
        if value.uses() and not value.is_graph_output()
        if all(_is_channelwise(use.node, use.idx) for use in value.uses())
    ]


def _is_channelwise(node: ir.Node, index: int) -> bool:
    """Whether each output of a convolution of several channels is computed from one channel of this operand."""
    if node.op_type != "Conv" or index != 0:
        return False
    weights = constant_of(node.inputs[1])
    groups = node.attributes["group"].as_int()
    return weights is not None and weights.shape[1] == 1 and groups > 1
