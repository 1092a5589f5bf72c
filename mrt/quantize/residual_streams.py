"""Residual streams: values that blocks add to and pass on.

Information that the rounding of a stream loses is lost for all layers behind it.
"""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from mrt.graph.canonical_values import name_of
from mrt.graph.operators import CLIPS
from mrt.quantize.channel_centres import is_sum
from mrt.quantize.options import QuantizeOptions


def with_stream_bits(
    model: ir.Model, options: QuantizeOptions
) -> QuantizeOptions:
    """Give `stream_bits` to each layer that is a residual stream.

    A layer with activation bits of its own keeps them.
    """
    if options.stream_bits is None:
        return options
    options = options.with_bits_of_values(
        stream_values(model), options.stream_bits
    )
    return replace(options, stream_bits=None)


def stream_values(model: ir.Model) -> list[str]:
    """Return the names of the residual streams, in order.

    A stream is a sum of two computed values, or the clip that is the sum's only reader.
    Operands of such sums that have other readers too are streams as well.
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
    """Return the result of the clip that is the value's only reader, else the value."""
    readers = [use.node for use in value.uses()]
    if len(readers) != 1 or value.is_graph_output():
        return value
    return readers[0].outputs[0] if readers[0].op_type in CLIPS else value
