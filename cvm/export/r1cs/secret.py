"""Arrays of secret integers, each a linear combination of wires, with their values for the sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvm.program import IntArray


@dataclass(frozen=True, eq=False)
class Secret:
    """sum(factors * wires) + constants, element by element; the last axis of `factors` and `wires` counts the terms.

    Wire 0 is the one that is always 1; with a factor of 0 it fills up shorter combinations. `values` are
    the integers of the sample, on which nothing else here depends. Arrays of objects
    hold Python's integers, where 64 bits are too few.
    """

    factors: IntArray
    wires: IntArray
    constants: IntArray
    values: IntArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions of the array."""
        return self.constants.shape

    def at(self, places: Any) -> Secret:
        """The elements that numpy would pick by this index."""
        of_terms = places
        if isinstance(places, tuple):  # it may count axes from the last
            of_terms = (*places, slice(None))
        return Secret(
            self.factors[of_terms],
            self.wires[of_terms],
            self.constants[places],
            self.values[places],
        )

    def reshaped(self, shape: Sequence[int]) -> Secret:
        """The same elements in other dimensions."""
        terms = self.factors.shape[-1]
        return Secret(
            self.factors.reshape(*shape, terms),
            self.wires.reshape(*shape, terms),
            self.constants.reshape(shape),
            self.values.reshape(shape),
        )

    def flat(self) -> Secret:
        """The elements as a vector."""
        return self.reshaped((self.constants.size,))

    def broadcast(self, shape: Sequence[int]) -> Secret:
        """The elements repeated along axes of 1."""
        terms = self.factors.shape[-1]
        return Secret(
            np.broadcast_to(self.factors, (*shape, terms)),
            np.broadcast_to(self.wires, (*shape, terms)),
            np.broadcast_to(self.constants, tuple(shape)),
            np.broadcast_to(self.values, tuple(shape)),
        )

    def times(self, numbers: IntArray | int) -> Secret:
        """Products with constants, one for each element or one for all."""
        numbers = whole_numbers(numbers)
        return Secret(
            self.factors * numbers[..., None],
            np.broadcast_to(
                self.wires,
                np.broadcast_shapes(self.wires.shape, (*numbers.shape, 1)),
            ),
            self.constants * numbers,
            self.values * numbers,
        )

    def plus(self, other: Secret | IntArray | int) -> Secret:
        """Sums, with constants or with secrets of the same shape."""
        if not isinstance(other, Secret):
            numbers = whole_numbers(other)
            return Secret(
                self.factors,
                self.wires,
                self.constants + numbers,
                self.values + numbers,
            )
        return Secret(
            np.concatenate([self.factors, other.factors], -1),
            np.concatenate([self.wires, other.wires], -1),
            self.constants + other.constants,
            self.values + other.values,
        )

    def minus(self, other: Secret | IntArray | int) -> Secret:
        """Differences."""
        if isinstance(other, Secret):
            return self.plus(other.times(-1))
        return self.plus(-np.asarray(other, np.int64))

    def total(self) -> Secret:
        """The sums along the last axis."""
        shape = self.shape[:-1]
        return Secret(
            self.factors.reshape(*shape, -1),
            self.wires.reshape(*shape, -1),
            self.constants.sum(-1),
            self.values.sum(-1),
        )


def whole_numbers(numbers: IntArray | int) -> IntArray:
    """An array of 64 bits, or of objects as it is."""
    array: IntArray = np.asarray(numbers)
    return array if array.dtype == object else array.astype(np.int64)


def constant(numbers: IntArray | int) -> Secret:
    """Public integers."""
    array = np.asarray(numbers, np.int64)
    zeros = np.zeros((*array.shape, 1), np.int64)
    return Secret(zeros, zeros, array, array)


def joined(parts: Sequence[Secret]) -> Secret:
    """Vectors one after another, or arrays side by side along their last axis."""
    terms = max(part.factors.shape[-1] for part in parts)
    return Secret(
        np.concatenate([_filled(part.factors, terms) for part in parts], -2),
        np.concatenate([_filled(part.wires, terms) for part in parts], -2),
        np.concatenate([part.constants for part in parts], -1),
        np.concatenate([part.values for part in parts], -1),
    )


def _filled(array: IntArray, terms: int) -> IntArray:
    missing = terms - array.shape[-1]
    zeros = np.zeros((*array.shape[:-1], missing), array.dtype)
    return np.concatenate([array, zeros], -1)
