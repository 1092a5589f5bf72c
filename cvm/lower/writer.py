"""Writes steps for an engine on secrets: each method adds at most a few, and bounds what it makes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvm.lower.secret_steps import (
    NOTHING,
    Convolve,
    Dot,
    SecretStep,
    SecretValue,
    Sum,
    Take,
)
from cvm.lower.stored import Stored
from cvm.program import IntArray


class StepWriter:
    """The steps so far, and the values that they make; inputs come first."""

    def __init__(self) -> None:
        self.values: list[SecretValue] = []
        self.steps: list[SecretStep] = []
        self.inputs = 0

    def input(self, shape: tuple[int, ...], stored: Stored) -> SecretValue:
        """An input's value; all inputs come before the first step."""
        assert not self.steps
        self.inputs += 1
        return self._value(shape, stored)

    def input_of_nobody(
        self, shape: tuple[int, ...], stored: Stored
    ) -> SecretValue:
        """A value that no step makes, in a program that is refused."""
        return SecretValue(NOTHING, shape, stored)

    def add(
        self, step: SecretStep, shape: tuple[int, ...], stored: Stored
    ) -> SecretValue:
        """The value of a new step."""
        self.steps.append(step)
        return self._value(shape, stored)

    def _value(self, shape: tuple[int, ...], stored: Stored) -> SecretValue:
        value = SecretValue(len(self.values), shape, stored)
        self.values.append(value)
        return value

    def take(
        self,
        parts: Sequence[SecretValue],
        places: IntArray,
        fillers: IntArray | int = 0,
    ) -> SecretValue:
        """Elements of the parts, one after another; where there is `NOTHING`, a 0 that stands for the filler.

        Where elements of different units come into one channel, all take on a common one.
        """
        units = [_flat(part) for part in parts]
        low, high, factor, offset = (
            np.append(np.concatenate(columns), 0)[places]
            for columns in zip(*units, strict=True)
        )
        offset = np.where(places == NOTHING, fillers, offset)
        shape = places.shape
        if len(parts) > 1 or not _is_identity(places, parts[0]):
            operands = tuple(part.number for part in parts)
            step = Take(operands, places)
            moved = self.add(step, shape, _ends(low, high, shape))
        else:
            moved = parts[0]
        return self.in_units(moved, factor, offset, (low, high))

    def in_units(
        self,
        value: SecretValue,
        factor: IntArray,
        offset: IntArray,
        ends: tuple[IntArray, IntArray] | None = None,
    ) -> SecretValue:
        """The same integers, where each stands for factor * u + offset, in units that are common to a channel.

        A factor may be negative; both arrays fit the shape of the value.
        """
        shape = value.shape
        low, high = ends or (value.stored.low, value.stored.high)
        common, first = _common(factor, offset, shape)
        unit = np.maximum(common, 1)
        zero = (low == 0) & (high == 0)  # whatever it is multiplied by
        return self.sum(
            [value],
            [np.where(zero, 1, factor // unit)],
            (offset - first) // unit,
            (common, first),
            [(low, high)],
        )

    def sum(
        self,
        parts: Sequence[SecretValue],
        factors: Sequence[IntArray],
        constant: IntArray,
        unit: tuple[IntArray, IntArray],
        ends: Sequence[tuple[IntArray, IntArray]] | None = None,
    ) -> SecretValue:
        """The sum of parts times factors and a constant, stored as `unit` has it for each channel."""
        shape = parts[0].shape
        if ends is None:
            ends = [(part.stored.low, part.stored.high) for part in parts]
        low, high = constant, constant
        for (least, most), factor in zip(ends, factors, strict=True):
            at_least, at_most = least * factor, most * factor
            low = low + np.minimum(at_least, at_most)
            high = high + np.maximum(at_least, at_most)
        bounds = _ends(low, high, shape)
        units = (np.broadcast_to(x, bounds.low.shape) for x in unit)
        stored = Stored(bounds.low, bounds.high, *units)
        plain = not np.any(constant) and np.all(factors[0] == 1)
        if len(parts) == 1 and plain:
            return SecretValue(parts[0].number, shape, stored)
        operands = tuple(part.number for part in parts)
        times = tuple(compact(x, shape) for x in factors)
        step = Sum(operands, times, compact(constant, shape))
        return self.add(step, shape, stored)

    def dot(
        self,
        value: SecretValue,
        weights: IntArray,
        shape: tuple[int, ...],
        stored: Stored,
    ) -> SecretValue:
        """Rows of the value times weights [K, O]."""
        return self.add(Dot(value.number, weights, shape), shape, stored)

    def convolve(
        self,
        value: SecretValue,
        weights: IntArray,
        window: tuple[tuple[int, ...], tuple[int, ...], int],
        stored: Stored,
    ) -> SecretValue:
        """A convolution of x[N,H,W,C], padded already; `window` holds stride, dilation and groups."""
        stride, dilation, groups = window
        images = self.move(value, (0, 3, 1, 2))
        kernel = weights.shape[2:]
        size = [
            (images.shape[2 + i] - (kernel[i] - 1) * dilation[i] - 1)
            // stride[i]
            + 1
            for i in (0, 1)
        ]
        shape = (images.shape[0], len(weights), *size)
        step = Convolve(images.number, weights, stride, dilation, groups)
        hull = _hull(stored, shape[-1])
        moved = self.move(self.add(step, shape, hull), (0, 2, 3, 1))
        return SecretValue(moved.number, moved.shape, stored)

    def move(self, value: SecretValue, axes: tuple[int, ...]) -> SecretValue:
        """The axes in another order; only the stored integers are moved, whatever they stand for."""
        places = np.arange(value.elements).reshape(value.shape).transpose(axes)
        shape = places.shape
        stored = _hull(value.stored, shape[-1])
        return self.add(Take((value.number,), places), shape, stored)


def _flat(value: SecretValue) -> list[IntArray]:
    """Ends, factor and offset of each element."""
    return [
        np.broadcast_to(array, value.shape).reshape(-1)
        for array in value.stored.arrays
    ]


def _is_identity(places: IntArray, value: SecretValue) -> bool:
    """Whether every element stays, in the same shape."""
    return places.shape == value.shape and bool(
        (places.reshape(-1) == np.arange(places.size)).all()
    )


def _common(
    factor: IntArray, offset: IntArray, shape: tuple[int, ...]
) -> tuple[IntArray, IntArray]:
    """For each channel the greatest unit in which all of its elements are, and the offset of the first."""
    rows = np.broadcast_shapes(factor.shape, offset.shape, shape[-1:])
    factor, offset = (
        np.broadcast_to(x, rows).reshape(-1, shape[-1])
        for x in (factor, offset)
    )
    first = offset[0]
    spacing = np.gcd.reduce(offset - first, axis=0)
    return np.gcd(np.gcd.reduce(factor, axis=0), spacing), first


def _ends(low: IntArray, high: IntArray, shape: tuple[int, ...]) -> Stored:
    """The hull of each channel, of integers that stand for themselves."""
    channels = shape[-1]
    rows = np.broadcast_shapes(low.shape, high.shape, (channels,))
    low, high = (
        np.broadcast_to(x, rows).reshape(-1, channels) for x in (low, high)
    )
    least, most = low.min(axis=0), high.max(axis=0)
    return Stored(least, most, np.ones_like(least), np.zeros_like(least))


def _hull(stored: Stored, channels: int) -> Stored:
    """One interval for all channels; what the integers stand for is left to the caller, who moves them back."""
    interval = np.array([stored.low.min()]), np.array([stored.high.max()])
    return _ends(*interval, (channels,))


def compact(array: IntArray, shape: tuple[int, ...]) -> IntArray:
    """The last axis alone, where all else repeats it."""
    rows = np.broadcast_to(array, np.broadcast_shapes(array.shape, (1,)))
    rows = rows.reshape(-1, rows.shape[-1])
    if (rows == rows[:1]).all():
        last: IntArray = rows[0].copy()
        return last
    return array.reshape(shape)
