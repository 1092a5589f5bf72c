"""The real numbers for which a program's integers stand, and the order of their axes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import numpy.typing as npt

from cvm.program import IntArray, Meaning
from mrt.calibrate.session import Array


def factors_of(meaning: Meaning) -> npt.NDArray[np.float64]:
    """Return by what each channel scales further; 1 of all at once."""
    return np.array(meaning.channels or (1.0,))


def centres_of(meaning: Meaning) -> npt.NDArray[np.float64]:
    """Return the real for which each channel's zero stands; 0 of all at once."""
    return np.array(meaning.centres or (0.0,))


def real_of(value: IntArray, meaning: Meaning) -> Array:
    """Return the real numbers for which integers stand."""
    steps = value.astype(np.float64) - meaning.zero_point
    return steps * meaning.scale * factors_of(meaning) + centres_of(meaning)


def in_order_of(real: Array, integer: Array) -> Array:
    """Return a program's numbers with their axes in the order of the float value `real`."""
    return nearest_order(integer, real)


def nearest_order(array: Array, other: Array) -> Array:
    """Return the order of the array's axes that differs least from `other`; the same elements in its shape if none has it.

    A program does not record where its axes come from, so all orders that the shapes
    allow are compared.
    """
    candidates = list(_orders(array, other.shape))
    return min(
        candidates or [array.reshape(other.shape)],
        key=lambda candidate: float(np.sum((candidate - other) ** 2)),
    )


def _orders(array: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield the array with its axes in every order that has this shape; where axes of 1 lie makes no difference."""
    seen = set()
    for order in permutations(range(array.ndim)):
        moved = array.transpose(order)
        longer = tuple(axis for axis in order if array.shape[axis] > 1)
        if moved.shape == shape and longer not in seen:
            seen.add(longer)
            yield moved
