"""Weights and biases as integers: symmetric, one scale per output channel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from cvm.program import IntArray
from mrt.exact.fixed_point import FloatArray, quantize_array, usable_scale

BIAS_LIMIT = 2.0**30
"""Biases stay below this many accumulator steps, half of what i32 holds."""

LONE_BIAS_LIMIT = 2.0**20
"""The same where all weights round to 0 beside the bias: 16 bits show no more of it."""

CLIP_CANDIDATES = 32
"""Thresholds tried for coarse weights, from the full range down to half of it."""

PAIR_LIMIT = 127.0
"""Two products of a byte and weights that sum to 128 fit 16 bits; rounding adds at most 1."""

AT_ONCE = 2**17
"""So many numbers fit a processor's cache; large weights are computed piece by piece."""

EXACT_ERROR_BITS = 8
"""Fractional bits of a rounding error when errors are compared as integers."""


def weight_scales(
    weights: FloatArray,
    bias: FloatArray,
    input_scale: float,
    *,
    bits: int,
    scales: str,
    per_channel: bool = True,
    in_pairs: bool = False,
) -> FloatArray:
    """Return one scale per output channel (axis 0).

    Weights fit `bits`, and the bias fits i32 at input_scale * scale. Without
    `per_channel` all channels have the largest scale. With `in_pairs` both the positive
    and the negative weights of each pair of neighbours sum to at most PAIR_LIMIT.
    """
    most = 2 ** (bits - 1) - 1
    rows = weights.reshape(weights.shape[0], -1)
    greatest = rows.max(axis=1, initial=0.0)
    least = rows.min(axis=1, initial=0.0)
    ideal = np.maximum(greatest, -least) / most
    if bits < 8:
        ideal = ideal * _best_clip(rows, np.where(ideal > 0, ideal, 1.0), most)
    if in_pairs:
        ideal = np.maximum(ideal, _greatest_pair(rows) / PAIR_LIMIT)
    scale_of_bias = np.abs(bias) / (input_scale * BIAS_LIMIT)
    are_zero = np.maximum(greatest, -least) < scale_of_bias / 2
    coarser = BIAS_LIMIT / LONE_BIAS_LIMIT if per_channel else 1.0
    ideal = np.maximum(ideal, scale_of_bias * np.where(are_zero, coarser, 1.0))
    if not per_channel:
        ideal = np.full_like(ideal, ideal.max(initial=0.0))
    return np.array([usable_scale(float(scale), scales) for scale in ideal])


def quantize_weights(
    weights: FloatArray, scales: FloatArray, *, bits: int
) -> IntArray:
    """Round weights to i8, or to i16 beyond 8 bits: nearest, half up, in +-(2^(bits-1) - 1)."""
    most = 2 ** (bits - 1) - 1
    per_channel = scales.reshape(-1, *[1] * (weights.ndim - 1))
    integers = np.empty(weights.shape, np.int8 if bits <= 8 else np.int16)
    for piece in _pieces(weights):
        integers[piece] = quantize_array(
            weights[piece], per_channel[piece], -most, most
        )
    return integers


def quantize_bias(bias: FloatArray, accumulator_scales: FloatArray) -> IntArray:
    """Round biases to i32, in accumulator steps."""
    return quantize_array(bias, accumulator_scales, -(2**31), 2**31 - 1).astype(
        np.int32
    )


def mean_error(
    integers: IntArray,
    weights: FloatArray,
    scales: FloatArray,
    means: Sequence[float] | FloatArray,
    shares: FloatArray | float = 1.0,
) -> FloatArray:
    """Return the mean error of each output channel that rounding the weights causes.

    `means` are those of the input channels. Weights are [O,..,C/groups]; the input
    channels of output channel o are those of its group. `shares` is the share of the
    outputs for which each tap meets an input. Sums are exact (fsum).
    """
    outputs, inputs = weights.shape[0], weights.shape[-1]
    expected = np.asarray(means, np.float64).reshape(
        -1, 1, inputs
    )  # [groups, 1, C/groups]
    group = np.arange(outputs) // (outputs // len(expected))  # of each output
    per_channel = scales.reshape(-1, *[1] * (weights.ndim - 1))
    sums: list[float] = []
    for piece in _pieces(weights):
        errors = (
            integers[piece] * per_channel[piece] - weights[piece]
        ) * shares
        terms = errors.reshape(len(errors), -1, inputs) * expected[group[piece]]
        sums += [
            math.fsum(row.tolist()) for row in terms.reshape(len(errors), -1)
        ]
    return np.array(sums)


def _pieces(weights: FloatArray) -> Iterator[slice]:
    """Slices of the output channels (axis 0), of at most AT_ONCE weights or one channel."""
    outputs = weights.shape[0]
    together = max(AT_ONCE * outputs // max(weights.size, 1), 1)
    return (
        slice(start, start + together) for start in range(0, outputs, together)
    )


def _greatest_pair(rows: FloatArray) -> FloatArray:
    """Return, of each row, the greatest sum of like signs in a pair of neighbours."""
    even = np.pad(rows, ((0, 0), (0, rows.shape[1] % 2)))
    pairs = even.reshape(len(even), -1, 2)
    positive = np.maximum(pairs, 0).sum(axis=2).max(axis=1, initial=0.0)
    negative = np.maximum(-pairs, 0).sum(axis=2).max(axis=1, initial=0.0)
    greatest: FloatArray = np.maximum(positive, negative)
    return greatest


def _best_clip(rows: FloatArray, ideal: FloatArray, most: int) -> FloatArray:
    """Return the factor on each channel's scale that has the least squared error.

    Errors are summed as integers, so the sums are exact.
    """
    best = np.ones(len(rows))
    least: IntArray | None = None
    for step in range(CLIP_CANDIDATES):
        factor = 1 - step / (2 * CLIP_CANDIDATES)
        scale = (ideal * factor)[:, None]
        steps = quantize_array(rows, scale, -most, most) - rows / scale
        error = steps * factor * 2**EXACT_ERROR_BITS
        total = (np.floor(error).astype(np.int64) ** 2).sum(axis=1)
        if least is None:
            least = total
        best = np.where(total < least, factor, best)
        least = np.minimum(least, total)
    return best
