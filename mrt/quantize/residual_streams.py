"""Residual streams: values that blocks add to and pass on.

What rounding loses of them is lost for all that follows.
"""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.graph.operators import CLIPS
from mrt.quantize.channel_centres import is_sum
from mrt.quantize.options import LayerBits, QuantizeOptions


def with_stream_bits(
    model: ir.Model, options: QuantizeOptions
) -> QuantizeOptions:
    """The options with `stream_bits` as those of each layer that is a residual stream.

    A layer with activation bits of its own keeps them.
    """
    if options.stream_bits is None:
        return options
    layers = dict(options.layers)
    for name in stream_values(model):
        own = layers.get(name, LayerBits())
        if own.activation_bits is None:
            layers[name] = replace(own, activation_bits=options.stream_bits)
    return replace(options, layers=layers, stream_bits=None)


def stream_values(model: ir.Model) -> list[str]:
    """The names of the residual streams, in order.

    They are the sums of two computed values, or the clip that alone reads one, and the
    operands of such sums that others read too.
    """
    names: dict[str, None] = {}
    for node in model.graph:
        if not is_sum(node):
            continue
        for operand in node.inputs:
            if operand is not None and len(operand.uses()) > 1:
                names[name_of(operand)] = None
        names[name_of(_clipped(node.outputs[0]))] = None
    return list(names)


def _clipped(value: ir.Value) -> ir.Value:
    """The result of the clip that alone reads the value, or else the value."""
    readers = [use.node for use in value.uses()]
    if len(readers) != 1 or value.is_graph_output():
        return value
    return readers[0].outputs[0] if readers[0].op_type in CLIPS else value
