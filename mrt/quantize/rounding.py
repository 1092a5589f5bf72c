"""How the weights of one layer become integers, and what its bias takes back of the error: a step that can be exchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.quantize.fixed_point import FloatArray
from mrt.quantize.tensor import Tensor
from mrt.quantize.weights import mean_error, quantize_weights

if TYPE_CHECKING:
    from mrt.quantize.lowering import Lowering


@dataclass(frozen=True, eq=False)
class Layer:
    """A sum of products whose weights [O,..,C/groups] are to be rounded. `shares` as for `mean_error`."""

    node: ir.Node
    input: Tensor
    weights: FloatArray
    bias: FloatArray
    bits: int
    shares: FloatArray | float

    @property
    def input_scale(self) -> float:
        """The scale for which the weights are: the largest of the input's."""
        return float(self.input.scale.max())

    @property
    def input_name(self) -> str:
        """The float value that is multiplied."""
        return str(self.node.inputs[0].name)  # type: ignore[union-attr]

    @property
    def name(self) -> str:
        """The float value that is computed."""
        return str(self.node.outputs[0].name)


Rounding = Callable[["Lowering", Layer, FloatArray], tuple[IntArray, FloatArray]]
"""Gives the integers of the weights at these scales (one per output channel), and the bias, still real."""


def nearest(net: Lowering, layer: Layer, scales: FloatArray) -> tuple[IntArray, FloatArray]:
    """Each weight to the nearest integer; the bias gives back what that adds on average, as far as the means are known."""
    integers = quantize_weights(layer.weights, scales, bits=layer.bits)
    means = net.table.channel_means.get(layer.input_name)
    if not net.options.bias_correction or means is None:
        return integers, layer.bias
    relative = layer.input.scale / layer.input_scale  # the weights are for channels at the largest scale
    expected = np.asarray(means) / relative
    return integers, layer.bias - mean_error(integers, layer.weights, scales, expected, layer.shares)
