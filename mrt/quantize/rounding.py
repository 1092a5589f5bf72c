"""Layers with weights, and the rounding of their weights to integers.

The rule of such a layer computes its real weights and yields them as a `WeightedLayer`.
The caller of the lowering (`mrt.quantize.graph`) sends a `RoundedLayer` back:
`quantize` takes it from the calibration table, `mrt.refine` finds it on samples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray
from mrt.errors import BadData
from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import name_of
from mrt.quantize.options import QuantizeOptions
from mrt.quantize.tensor import Tensor
from mrt.quantize.weights import mean_error, quantize_weights
from mrt.table.decisions import LayerDecision
from mrt.table.table import CalibrationTable

EXACT = 1e-9
"""Steps that a weight may be off by the rounding of its scale."""


@dataclass(frozen=True, eq=False)
class WeightedLayer:
    """A sum of products whose weights [O,..,C/groups] are to be rounded.

    `bias` [O] is the bias of outputs that are counted from `centres`. `scales` [O] are
    the scales at which the weights are rounded. `tap_shares` holds, for each tap of the
    window, the share of the outputs for which the tap meets an input
    (`mrt.quantize.weights.mean_error`).
    """

    node: ir.Node
    input: Tensor
    weights: FloatArray
    bias: FloatArray
    centres: FloatArray
    bits: int
    tap_shares: FloatArray | float
    scales: FloatArray

    @property
    def input_scale(self) -> float:
        """The largest scale of the input's channels, for which the weights are given."""
        return float(self.input.scale.max())

    @property
    def averages(self) -> bool:
        """Whether each output has several weights, all equal: they are exact in any format."""
        rows = self.weights.reshape(len(self.weights), -1)
        return rows.shape[1] > 1 and bool(np.all(rows == rows[:, :1]))

    @property
    def is_exact(self) -> bool:
        """Whether integers are multiplied by weights that are integers in their scales: rounding loses nothing."""
        if not bool(np.all(self.input.scale == 1)):
            return False
        ones = [1] * (self.weights.ndim - 1)
        steps = self.weights / self.scales.reshape(-1, *ones)
        return bool(np.all(np.abs(steps - np.rint(steps)) < EXACT))

    @property
    def shares_weights(self) -> bool:
        """Whether other layers read the same weights."""
        weights = self.node.inputs[1]
        return weights is not None and len(weights.uses()) > 1

    @property
    def input_name(self) -> str:
        """The name of the float value that is multiplied."""
        return name_of(self.node.inputs[0])

    @property
    def output(self) -> ir.Value:
        """The float value that is computed."""
        return self.node.outputs[0]

    @property
    def name(self) -> str:
        """The name of the float value that is computed."""
        return name_of(self.output)


@dataclass(frozen=True, eq=False)
class RoundedLayer:
    """The weights as integers, the scale [O] of each output's weights, and the real bias [O]."""

    weights: IntArray
    scales: FloatArray
    bias: FloatArray


LayerSteps = Generator[WeightedLayer, RoundedLayer, None]
"""The lowering of one layer: it yields the layer once, and takes the rounded weights."""


def as_decided(
    layer: WeightedLayer,
    table: CalibrationTable,
    options: QuantizeOptions,
    memo: NearestMemo | None = None,
) -> RoundedLayer:
    """Return the integers in the calibration table, or `nearest` where it has none."""
    decision = table.decisions.layers.get(layer.name)
    if decision is None:
        return nearest(layer, table, options, memo)
    _check_decision(layer, decision)
    return RoundedLayer(
        decision.weights, layer.scales * decision.gains, decision.bias
    )


def _check_decision(layer: WeightedLayer, decision: LayerDecision) -> None:
    expected, shape = layer.weights.shape, decision.weights.shape
    if shape != expected or decision.bias.size != layer.bias.size:
        raise BadData(
            f"the calibration table has weights of shape {list(shape)} for "
            f"'{layer.name}', which needs {list(expected)}: calibrate this model again"
        )
    most = 2 ** (layer.bits - 1) - 1
    if np.abs(decision.weights.astype(np.int32)).max(initial=0) > most:
        raise BadData(
            f"the calibration table has weights beyond {most} for '{layer.name}': "
            "calibrate this model again"
        )


def nearest_keeping_bias(layer: WeightedLayer) -> RoundedLayer:
    """Round each weight to the nearest integer, and leave the bias: zeros stay zeros.

    A band of a spectrum must not take up a trace of strong bins outside it, as it would
    from weights that make up for each other's errors.
    """
    integers = quantize_weights(layer.weights, layer.scales, bits=layer.bits)
    return RoundedLayer(integers, layer.scales, layer.bias)


class NearestMemo:
    """The nearest integers of weights that several layers share, such as the steps of a recurrence."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[IntArray, FloatArray | float]] = {}

    def rounded(
        self, layer: WeightedLayer, means: Sequence[float] | None
    ) -> tuple[IntArray, FloatArray | float]:
        """Return the integers, and the mean error [O] of the outputs if there are means of the input."""
        if not layer.shares_weights:
            return _rounded(layer, means)
        key = _key(layer, means)
        if key not in self._known:
            self._known[key] = _rounded(layer, means)
        return self._known[key]


def _key(layer: WeightedLayer, means: Sequence[float] | None) -> bytes:
    """A digest of all that `_rounded` depends on; the weights follow from a constant of the model."""
    return digest_of(
        name_of(layer.node.inputs[1]),
        layer.node.op_type,
        layer.weights.shape,
        layer.bits,
        layer.scales,
        layer.input.scale,
        layer.input.centres,
        np.asarray(layer.tap_shares),
        np.asarray([] if means is None else means),
    )


def digest_of(*facts: object) -> bytes:
    """Return a digest of arrays, by their shapes and elements, and of what else has a repr."""
    digest = hashlib.sha256()
    for fact in facts:
        if isinstance(fact, np.ndarray):
            digest.update(f"{fact.shape}{fact.dtype}".encode())
            digest.update(np.ascontiguousarray(fact).data)
        else:
            digest.update(repr(fact).encode())
    return digest.digest()


def _rounded(
    layer: WeightedLayer, means: Sequence[float] | None
) -> tuple[IntArray, FloatArray | float]:
    integers = quantize_weights(layer.weights, layer.scales, bits=layer.bits)
    if means is None:
        return integers, 0.0
    # The weights are given for an input whose channels all have its largest scale.
    relative = layer.input.scale / layer.input_scale
    expected = (np.asarray(means) - layer.input.centres) / relative
    error = mean_error(
        integers, layer.weights, layer.scales, expected, layer.tap_shares
    )
    return integers, error


def nearest(
    layer: WeightedLayer,
    table: CalibrationTable,
    options: QuantizeOptions,
    memo: NearestMemo | None = None,
) -> RoundedLayer:
    """Round each weight to the nearest integer.

    Where the table has the means of the layer's input, the mean error of the rounding
    is subtracted from the bias.
    """
    means = None
    if options.bias_correction:
        means = table.channel_means.get(layer.input_name)
    integers, error = (memo or NearestMemo()).rounded(layer, means)
    bias = layer.bias if means is None else layer.bias - error
    return RoundedLayer(integers, layer.scales, bias)
