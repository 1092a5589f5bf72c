"""Residual streams: values that blocks add to and pass on, so that what is rounded off them is lost for all that follows."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.quantize.channel_centres import is_sum
from mrt.quantize.options import LayerBits, QuantizeOptions

CLIPS = ("Relu", "Clip")


def with_stream_bits(model: ir.Model, options: QuantizeOptions) -> QuantizeOptions:
    """The options with `stream_bits` written down for each layer that it is about, unless it has bits of its own."""
    if options.stream_bits is None:
        return options
    layers = dict(options.layers)
    for name in stream_values(model):
        own = layers.get(name, LayerBits())
        if own.activation_bits is None:
            layers[name] = replace(own, activation_bits=options.stream_bits)
    return replace(options, layers=layers, stream_bits=None)


def stream_values(model: ir.Model) -> list[str]:
    """What sums of two computed values give, or the clip that alone reads one; and what such sums take that others read too."""
    found: dict[str, None] = {}  # in order
    for node in model.graph:
        if is_sum(node):
            passed_on = [
                value
                for value in node.inputs
                if value is not None and len(value.uses()) > 1
            ]
            found |= dict.fromkeys(
                map(name_of, (*passed_on, _clipped(node.outputs[0])))
            )
    return list(found)


def _clipped(value: ir.Value) -> ir.Value:
    readers = [use.node for use in value.uses()]
    alone = (
        len(readers) == 1
        and readers[0].op_type in CLIPS
        and not value.is_graph_output()
    )
    return readers[0].outputs[0] if alone else value
