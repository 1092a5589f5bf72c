"""Finds the integers of weights that a file stores as integers and that reading made real.

A real weight of such a file is an integer times the step of its output channel, rounded
once to float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrt.exact.fixed_point import FloatArray
from mrt.quantize.rounding import RoundedLayer, WeightedLayer

NEARLY = 2.0**-20
"""Relative error of a weight that was rounded to float32, and its step with it."""

MOST = 2**14 - 1
"""The greatest integer of a weight (15 bits)."""

MOST_TRIED = 255
"""Without the file's scales, a row is a multiple of a step if so few steps reach its greatest."""


def stored_integers(
    layer: WeightedLayer, steps: Sequence[FloatArray]
) -> RoundedLayer | None:
    """Return the integers of a layer and their steps [O]; None if the weights are no multiples.

    `steps` are those that the file has for its weights: arrays of one step, or of one for
    each output. Weights that a rewrite changed, such as by a BatchNormalization, have
    steps of their own, which are found from the weights.
    """
    rows = layer.weights.reshape(len(layer.weights), -1)
    wide: RoundedLayer | None = None
    for candidate in steps:
        if candidate.size not in (1, len(rows)) or not (candidate > 0).all():
            continue
        integers = _multiples(rows, np.broadcast_to(candidate, len(rows)))
        if integers is not None:
            rounded = _rounded(layer, integers, candidate)
            if rounded.weights.dtype == np.int8:
                return rounded
            wide = wide or rounded
    if wide is not None:
        return wide
    own_steps = _own_steps(rows, layer.bias)
    integers = None if own_steps is None else _multiples(rows, own_steps)
    return (
        None
        if integers is None or own_steps is None
        else _rounded(layer, integers, own_steps)
    )


def _rounded(
    layer: WeightedLayer, integers: FloatArray, steps: FloatArray
) -> RoundedLayer:
    dtype = (
        np.int8 if integers.min() >= -128 and integers.max() < 128 else np.int16
    )
    weights = integers.astype(dtype).reshape(layer.weights.shape)
    scales = np.array(np.broadcast_to(steps, len(weights)), np.float64)
    return RoundedLayer(weights, scales, layer.bias)


def _multiples(rows: FloatArray, steps: FloatArray) -> FloatArray | None:
    """Return the integers that the rows are of their steps, or None if they are not."""
    quotients = rows / steps[:, None]
    integers = np.rint(quotients)
    error = np.abs(quotients - integers)
    good = error <= NEARLY * np.maximum(np.abs(integers), 1)
    if not good.all() or np.abs(integers).max(initial=0) > MOST:
        return None
    return integers


def _own_steps(rows: FloatArray, bias: FloatArray) -> FloatArray | None:
    """Return for each row the finest of its steps that reach its greatest number in 127 or 255.

    Without a bias to be represented, return the coarsest: the weights of an average are 1.
    """
    steps = np.ones(len(rows))
    for index, row in enumerate(rows):
        greatest = float(np.abs(row).max(initial=0.0))
        if greatest == 0:
            continue
        count = _steps_to_greatest(row / greatest)
        if count is None:
            return None
        finer = max(127 // count, 1) if bias[index] else 1
        steps[index] = greatest / (count * finer)
    return steps


def _steps_to_greatest(row: FloatArray) -> int | None:
    """Return the fewest steps to 1 such that every number of the row is a multiple of one."""
    for count in range(1, MOST_TRIED + 1):
        steps = row * count
        error = np.abs(steps - np.rint(steps))
        if (error <= NEARLY * count).all():
            return count
    return None
