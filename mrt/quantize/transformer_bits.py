"""Bits of models with layer normalizations: products read few bits, all other values have 16.

In a transformer a few channels of the residual stream are many times greater than the
others, and each block adds to them. In 8 bits the others would be lost. Products take
nearly all of the time, and they read 8 bits as well as ever once their channels have
scales of their own.
"""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from mrt.quantize.options import QuantizeOptions

OTHER_BITS = 16


def with_transformer_bits(
    model: ir.Model, options: QuantizeOptions
) -> QuantizeOptions:
    """Give a model with layer normalizations `product_bits`, and 16 activation bits, unless the options choose either."""
    chosen = options.product_bits or options.stream_bits
    if chosen or options.activation_bits > 8 or not _normalizes_layers(model):
        return options
    return replace(
        options,
        activation_bits=OTHER_BITS,
        product_bits=options.activation_bits,
    )


def _normalizes_layers(model: ir.Model) -> bool:
    return any(node.op_type == "LayerNormalization" for node in model.graph)
