"""The noise that the rounding of a value causes behind its readers, by channel and scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import onnx_ir as ir

from mrt.graph.canonical_values import constant_of, name_of, shape_of
from mrt.quantize import QuantizeOptions
from mrt.quantize.channel_scales import candidates, readers
from mrt.quantize.curves.gate import comes_from_gates
from mrt.refine.channel_statistics import ChannelStatistics, Floats
from mrt.refine.clipping_errors import ROUNDING_VARIANCE
from mrt.table.table import CalibrationTable

# Powers of the difference between channels in size that are tried.
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
LEAST_IMPROVEMENT = 0.98  # a power is chosen only for at least 2 % less noise
PRODUCTS = ("Conv", "Gemm")
LEAST_POWER = 1e-30  # the least power of a reader's output


def equalizable_values(
    model: ir.Model, table: CalibrationTable, options: QuantizeOptions
) -> list[ir.Value]:
    """Return the values that products read in 8 bits or less, not constant, whose channels may have scales.

    Behind gates, channels differ so much in size that 16 bits need scales too. Rows have
    them where their requantization for products is an instruction of its own.
    """
    return [
        value
        for value in candidates(model)
        if _varies(name_of(value), table)
        and (_has_few_steps(name_of(value), options) or comes_from_gates(value))
        and (
            len(shape_of(value)) == 4 or _has_own_form(name_of(value), options)
        )
    ]


def _has_own_form(name: str, options: QuantizeOptions) -> bool:
    return options.product_bits_of(name) < options.activation_bits_of(name)


def _varies(name: str, table: CalibrationTable) -> bool:
    measured = table.ranges[name]
    return measured.max != measured.min


def _has_few_steps(name: str, options: QuantizeOptions) -> bool:
    return options.product_bits_of(name) <= 8


@dataclass(frozen=True, eq=False)
class ReaderNoise:
    """The readers of a value, with the statistics of what they read and compute.

    Noise is a variance over the variance of the reader's output. `residual_share` is
    the share of the noise of nearest weights that remains after the later rounding of
    the weights.
    """

    value: ir.Value
    statistics: Mapping[str, ChannelStatistics]
    residual_share: float
    options: QuantizeOptions

    @cached_property
    def importance(self) -> Floats:
        """Return the noise that an error of 1 in each element of a channel causes, [C]."""
        total = np.zeros(shape_of(self.value)[1])
        for node in readers(self.value):
            power = self._power_of(node)
            if node.op_type not in PRODUCTS:
                total += 1 / power
                continue
            weights, groups = _weights(node)
            squares = (weights**2).sum(axis=(2, 3))
            by_group = squares.reshape(groups, -1, weights.shape[1])
            total += by_group.sum(axis=1).reshape(-1) / power
        return total

    def best_power(self, difference: Floats, step: float) -> float:
        """Return the power of the channels' `difference` [C] with the least noise.

        `difference` is relative to the greatest channel's size, whose rounding step is
        `step`.
        """
        best, least = 0.0, np.inf
        for power in POWERS:
            noise = self._noise(difference**power, step)
            if noise < least * LEAST_IMPROVEMENT:
                best, least = power, noise
        return best

    def _noise(self, relative: Floats, step: float) -> float:
        """Return the noise of the value's rounding and of its readers' weights."""
        errors = (self.importance * (relative * step) ** 2).sum()
        noise = ROUNDING_VARIANCE * float(errors)
        for node in readers(self.value):
            if node.op_type in PRODUCTS:
                of_weights = self._weight_variance(node, relative)
                noise += self.residual_share * of_weights / self._power_of(node)
        return noise

    def _weight_variance(self, node: ir.Node, relative: Floats) -> float:
        """Return the variance that rounding the weights to the nearest adds to the outputs.

        The weights absorb `relative` [C], so the inputs count divided by it.
        """
        weights, groups = _weights(node)
        variance = self.statistics[name_of(self.value)].variance

        def by_output(of_channel: Floats) -> Floats:
            by_group = of_channel.reshape(groups, -1)
            repeated = np.repeat(by_group, len(weights) // groups, axis=0)
            return repeated[:, :, None, None]

        scaled = weights * by_output(relative)
        bits = self.options.weight_bits_of(name_of(node.outputs[0]))
        most = 2 ** (bits - 1) - 1
        steps = np.abs(scaled).max(axis=(1, 2, 3)) / most
        input_variance = by_output(variance / relative**2) * np.ones_like(
            weights
        )
        of_inputs = input_variance.sum(axis=(1, 2, 3))
        return ROUNDING_VARIANCE * float((steps**2 * of_inputs).sum())

    def _power_of(self, node: ir.Node) -> float:
        """Return the variance of a reader's output, over all channels."""
        statistics = self.statistics[name_of(node.outputs[0])]
        return max(float(statistics.variance.sum()), LEAST_POWER)


def _weights(node: ir.Node) -> tuple[Floats, int]:
    """Return the weights [O,C/groups,KH,KW] and the number of groups; those of a Gemm are [O,C,1,1]."""
    weights = constant_of(node.inputs[1])
    assert weights is not None
    if node.op_type == "Gemm":
        return weights[:, :, None, None], 1
    return weights, node.attributes["group"].as_int()
