"""How the weights of one layer become integers, and what its bias takes back of the error: a step that can be exchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.errors import BadData
from mrt.exact.fixed_point import FloatArray
from mrt.quantize.tensor import Tensor
from mrt.quantize.weights import mean_error, quantize_weights

if TYPE_CHECKING:
    from mrt.quantize.context import LoweringContext


@dataclass(frozen=True, eq=False)
class Layer:
    """A sum of products whose weights [O,..,C/groups] are to be rounded.

    `bias` [O] is that of outputs counted from `centres`; `shares` as for `mean_error`.
    """

    node: ir.Node
    input: Tensor
    weights: FloatArray
    bias: FloatArray
    centres: FloatArray
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
    def output(self) -> ir.Value:
        """The float value that is computed."""
        return self.node.outputs[0]

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.output.name)


@dataclass(frozen=True, eq=False)
class Rounded:
    """Integers of the weights, the scale of each output channel with which they count, and the bias [O], still real."""

    weights: IntArray
    scales: FloatArray
    bias: FloatArray


Rounding = Callable[["LoweringContext", Layer, FloatArray], Rounded]
"""Rounds the weights of a layer at these scales, one per output channel."""


def as_decided(net: LoweringContext, layer: Layer, scales: FloatArray) -> Rounded:
    """What the calibration table says of this layer; where it says nothing, `nearest`."""
    decision = net.table.decisions.layers.get(layer.name)
    if decision is None:
        return nearest(net, layer, scales)
    most = 2 ** (layer.bits - 1) - 1
    if (
        decision.weights.shape != layer.weights.shape
        or decision.bias.size != layer.bias.size
    ):
        raise BadData(
            f"the calibration table has weights of shape {list(decision.weights.shape)} for '{layer.name}', "
            f"which needs {list(layer.weights.shape)}: calibrate this model again"
        )
    if np.abs(decision.weights.astype(np.int32)).max(initial=0) > most:
        raise BadData(
            f"the calibration table has weights beyond {most} for '{layer.name}': calibrate this model again"
        )
    return Rounded(decision.weights, scales * decision.gains, decision.bias)


def nearest(net: LoweringContext, layer: Layer, scales: FloatArray) -> Rounded:
    """Each weight to the nearest integer; the bias gives back what that adds on average, as far as the means are known."""
    integers = quantize_weights(layer.weights, scales, bits=layer.bits)
    means = net.table.channel_means.get(layer.input_name)
    if not net.options.bias_correction or means is None:
        return Rounded(integers, scales, layer.bias)
    relative = (
        layer.input.scale / layer.input_scale
    )  # the weights are for channels at the largest scale
    expected = (np.asarray(means) - layer.input.centres) / relative
    return Rounded(
        integers,
        scales,
        layer.bias
        - mean_error(integers, layer.weights, scales, expected, layer.shares),
    )
