"""Sums of products for an engine on secrets, in units of each channel."""

from __future__ import annotations

import numpy as np

from cvm.lower.secret_steps import NOTHING, SecretValue
from cvm.lower.stored import Stored
from cvm.lower.writer import StepWriter
from cvm.program import Instruction, IntArray


def conv2d(
    writer: StepWriter,
    instruction: Instruction,
    x: SecretValue,
    constants: tuple[IntArray, IntArray],
) -> SecretValue:
    """A convolution; elements beyond the edge stand for the zero point, which adds nothing."""
    weights, bias = constants
    zero_point = instruction.integer("input_zp")
    groups = instruction.integer("groups")
    top, bottom, left, right = instruction.integers("pad")
    places = np.arange(x.elements).reshape(x.shape)
    edges = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(places, edges, constant_values=NOTHING)
    padded_value = writer.take([x], padded, zero_point)
    group_size = len(weights) // groups
    channels = weights.shape[-1]
    of = np.arange(len(weights)) // group_size * channels
    read = of[:, None] + np.arange(channels)  # channels of each output
    scaled, stored = _weighted(padded_value, weights, bias, read, zero_point)
    window = (
        instruction.integers("stride"),
        instruction.integers("dilation"),
        groups,
    )
    kernel = np.ascontiguousarray(scaled.transpose(0, 3, 1, 2))
    return writer.convolve(padded_value, kernel, window, stored)


def dense(
    writer: StepWriter,
    instruction: Instruction,
    x: SecretValue,
    constants: tuple[IntArray, IntArray],
) -> SecretValue:
    """x[M,K], w[N,K]."""
    weights, bias = constants
    read = np.broadcast_to(np.arange(x.shape[-1]), weights.shape)
    zero_point = instruction.integer("input_zp")
    scaled, stored = _weighted(x, weights, bias, read, zero_point)
    shape = (x.shape[0], len(weights))
    return writer.dot(x, np.ascontiguousarray(scaled.T), shape, stored)


def _weighted(
    x: SecretValue,
    weights: IntArray,
    bias: IntArray,
    read: IntArray,
    zero_point: int,
) -> tuple[IntArray, Stored]:
    """Weights of what is stored, and what their sums stand for: the unit of an output is common to its products.

    `weights` [O,..,C] meet the channels `read` [O,C] of x.
    """
    weights, bias = weights.astype(np.int64), bias.astype(np.int64)
    middle = tuple(range(1, weights.ndim - 1))
    low, high, factor, offset = (
        np.expand_dims(array[read], middle) for array in x.stored.arrays
    )
    products = weights * factor
    sums = tuple(range(1, weights.ndim))
    unit = np.gcd.reduce(products.reshape(len(weights), -1), axis=1)
    shape = (-1,) + (1,) * (weights.ndim - 1)
    scaled = products // np.maximum(unit, 1).reshape(shape)
    at_low, at_high = scaled * low, scaled * high
    stored = Stored(
        np.minimum(at_low, at_high).sum(axis=sums),
        np.maximum(at_low, at_high).sum(axis=sums),
        unit,
        bias + (weights * (offset - zero_point)).sum(axis=sums),
    )
    return scaled, stored


def reduce_sum(
    writer: StepWriter, x: SecretValue, axis: int, shape: tuple[int, ...]
) -> SecretValue:
    """The sum along an axis."""
    count = x.shape[axis]
    last = axis == len(x.shape) - 1
    stored = x.stored
    if last:
        factors, summed = _summed(stored)
    else:
        factors = np.ones(count, np.int64)
        summed = Stored(
            stored.low * count,
            stored.high * count,
            stored.factor,
            stored.offset * count,
        )
    axes = (*(i for i in range(len(x.shape)) if i != axis), axis)
    rows = x if last else writer.move(x, axes)
    return writer.dot(rows, factors[:, None], shape, summed)


def _summed(stored: Stored) -> tuple[IntArray, Stored]:
    """The sum of all channels, in their common unit."""
    unit = np.gcd.reduce(stored.factor, keepdims=True)
    factors = stored.factor // np.maximum(unit, 1)
    return factors, Stored(
        (factors * stored.low).sum(keepdims=True),
        (factors * stored.high).sum(keepdims=True),
        unit,
        stored.offset.sum(keepdims=True),
    )


def add(writer: StepWriter, x: SecretValue, y: SecretValue) -> SecretValue:
    """The sum of two values of one shape."""
    return combined(writer, x, y, 1)


def sub(writer: StepWriter, x: SecretValue, y: SecretValue) -> SecretValue:
    """The difference."""
    return combined(writer, x, y, -1)


def combined(
    writer: StepWriter, x: SecretValue, y: SecretValue, sign: int
) -> SecretValue:
    """x + sign * y, in the units common to both."""
    x_stored, y_stored = x.stored, y.stored
    unit = np.gcd(x_stored.factor, y_stored.factor)
    least = np.maximum(unit, 1)
    return writer.sum(
        [x, y],
        [x_stored.factor // least, sign * y_stored.factor // least],
        np.zeros(1, np.int64),
        (unit, x_stored.offset + sign * y_stored.offset),
    )
