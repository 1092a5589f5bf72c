"""A rank-1 constraint system being written: wires, and rows a * b = c of linear combinations of wires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cvm.errors import BadInput
from cvm.export.r1cs.field import PRIME
from cvm.export.r1cs.secret import Secret, constant, whole_numbers
from cvm.program import IntArray

MOST_ROWS = 2**20
MOST_TERMS = 2**25
ADVICE = "convert with --scales shift or fewer bits, or prove a smaller network"


@dataclass
class System:
    """Wires in order, the first of which is 1, with the sample's values; rows as blocks of combinations."""

    values: list[IntArray] = field(
        default_factory=lambda: [np.ones(1, np.int64)]
    )
    blocks: list[tuple[Secret, Secret, Secret]] = field(default_factory=list)
    wires: int = 1
    rows: int = 0
    terms: int = 0

    def new(self, values: IntArray) -> Secret:
        """A new wire for each value. Nothing holds it to that value yet."""
        values = whole_numbers(values)
        numbers = np.arange(self.wires, self.wires + values.size)
        self.wires += values.size
        self.values.append(values.reshape(-1))
        shape = (*values.shape, 1)
        ones = np.ones(shape, np.int64)
        zeros = np.zeros(values.shape, np.int64)
        return Secret(ones, numbers.reshape(shape), zeros, values)

    def require_product(self, a: Secret, b: Secret, c: Secret) -> None:
        """A row a * b = c for each element."""
        block = (a.flat(), b.flat(), c.flat())
        self.rows += a.constants.size
        self.terms += sum(combination.factors.size for combination in block)
        if self.is_too_large:
            self.blocks.clear()  # from now on the rows are only counted
        else:
            self.blocks.append(block)

    @property
    def is_too_large(self) -> bool:
        """Whether there are more rows or terms than are kept."""
        return self.rows > MOST_ROWS or self.terms > MOST_TERMS

    def require_limits(self) -> None:
        """Raise `BadInput` with the counts if there are too many rows or terms."""
        if self.is_too_large:
            raise BadInput(
                f"the target r1cs needs {self.rows:,} constraints with up to {self.terms:,} terms; "
                f"it writes at most {MOST_ROWS:,} and {MOST_TERMS:,}: {ADVICE}"
            )

    def require_equal(self, a: Secret, b: Secret) -> None:
        """A row for each pair of elements that must be equal."""
        ones = constant(np.ones(a.shape, np.int64))
        self.require_product(a, ones, b)

    def product(self, a: Secret, b: Secret) -> Secret:
        """New wires for the products of elements."""
        products = self.new(a.values * b.values)
        self.require_product(a, b, products)
        return products

    def single(self, x: Secret) -> Secret:
        """The same integers as one wire each, which later combinations can hold in one term."""
        plain = (x.factors == 1).all() and not x.constants.any()
        if x.factors.shape[-1] == 1 and plain:
            return x
        wires = self.new(x.values)
        self.require_equal(x, wires)
        return wires

    def bits(self, values: IntArray, count: int) -> Secret:
        """New wires, each held to 0 or 1, along a new last axis: the bits of natural numbers, lowest first."""
        places = np.arange(count)
        bits = self.new((values[..., None] >> places) & 1)
        nothing = constant(np.zeros(bits.shape, np.int64))
        self.require_product(bits, bits.minus(1), nothing)
        return bits

    def natural(self, values: IntArray, count: int) -> tuple[Secret, Secret]:
        """Numbers of so many bits, as combinations of new bits, and the bits."""
        bits = self.bits(values, count)
        weights = 2 ** np.arange(count, dtype=np.int64)
        return bits.times(weights).total(), bits

    def is_natural(self, x: Secret, count: int) -> Secret:
        """Require 0 <= x < 2^count; return the bits."""
        number, bits = self.natural(x.values, count)
        self.require_equal(number, x)
        return bits

    def witness(self) -> IntArray:
        """The value of every wire."""
        return np.concatenate(self.values)

    def set_values(self, first: int, values: IntArray) -> None:
        """Set the values of the wires of one call of `new`, by the number of the first."""
        start = 0
        for index, array in enumerate(self.values):
            if start == first:
                self.values[index] = whole_numbers(values).reshape(array.shape)
                return
            start += array.size
        raise AssertionError("no call of `new` gave this wire")


def weights_of(most: IntArray | int) -> IntArray:
    """Weights whose sums are the numbers 0..most, each of them and no other; along a new last axis, the highest last.

    They are 1, 2, 4, ... and then what is missing. All of `most` have as many bits.
    """
    most = np.asarray(most, np.int64)
    count = int(most.flat[0]).bit_length()
    assert (most >> max(count - 1, 0) == min(count, 1)).all()
    powers = 2 ** np.arange(max(count - 1, 0), dtype=np.int64)
    weights = np.broadcast_to(powers, (*most.shape, len(powers)))
    rest = most - powers.sum()
    return np.concatenate([weights, rest[..., None]], -1)[..., :count]


def in_range(system: System, x: Secret, weights: IntArray) -> Secret:
    """Require x to be a sum of some of the weights, of which the first is 1; return the bit of the last.

    Each bit is held to 0 or 1. The first is what the others leave of x, so that it takes no wire; if another has the weight 1, too,
    it does, since a change of that one could be made up for.
    """
    count = weights.shape[-1]
    if not count:
        nothing = constant(np.zeros(x.shape, np.int64))
        system.require_equal(x, nothing)
        return nothing
    if count == 1:
        _require_bits(system, x)
        return x
    digits, rest = _digits(x.values, weights)
    bits = system.new(digits[..., 1:])
    _require_bits(system, bits)
    first = x.minus(bits.times(weights[..., 1:]).total())
    if (weights[..., 1:] == 1).any():
        wire = system.new(rest)
        system.require_equal(wire, first)
        first = wire
    _require_bits(system, first)
    return bits.at((..., count - 2))


def _digits(numbers: IntArray, weights: IntArray) -> tuple[IntArray, IntArray]:
    """Which weights make up the numbers, the highest where the lower ones do not; and the remainder for the first."""
    digits = np.zeros((*numbers.shape, weights.shape[-1]), np.int64)
    rest = numbers
    for place in range(weights.shape[-1] - 1, 0, -1):
        digits[..., place] = rest > weights[..., :place].sum(-1)
        rest = rest - digits[..., place] * weights[..., place]
    return digits, rest


def number_of(
    system: System, values: IntArray, weights: IntArray
) -> tuple[Secret, Secret]:
    """New wires for numbers that are sums of the weights, and the bits of the last weight."""
    number = system.new(values)
    return number, in_range(system, number, weights)


def _require_bits(system: System, x: Secret) -> None:
    nothing = constant(np.zeros(x.shape, np.int64))
    system.require_product(x, x.minus(1), nothing)


def in_interval(system: System, x: Secret, low: int, high: int) -> None:
    """Require low <= x <= high."""
    in_range(system, x.minus(low), weights_of(high - low))


def positive_part(system: System, x: Secret, low: int, high: int) -> Secret:
    """The greater of x and 0, for integers that are known to lie in low..high."""
    if low >= 0:
        return x
    if high <= 0:
        return constant(np.zeros(x.shape, np.int64))
    is_positive = not_negative(system, x, low, high)
    return system.product(is_positive, x)


def not_negative(system: System, x: Secret, low: int, high: int) -> Secret:
    """1 where x is at least 0, else 0, for integers that are known to lie in low..high."""
    if low >= 0 or high < 0:
        return constant(np.full(x.shape, int(low >= 0), np.int64))
    count = max(-low - 1, high).bit_length()
    return in_range(
        system, x.plus(1 << count), weights_of(2 ** (count + 1) - 1)
    )


def merged(
    rows: IntArray, wires: IntArray, factors: IntArray
) -> Sequence[IntArray]:
    """Terms in order of row and wire, equal wires of a row added, none of factor 0."""
    order = np.lexsort((wires, rows))
    rows, wires, factors = rows[order], wires[order], factors[order]
    first = np.ones(len(rows), bool)
    first[1:] = (np.diff(rows) != 0) | (np.diff(wires) != 0)
    starts = np.flatnonzero(first)
    sums = np.add.reduceat(factors, starts) if len(starts) else factors
    if sums.dtype == object:  # the others are far below the prime
        sums = sums % PRIME
    kept = sums != 0
    return rows[starts][kept], wires[starts][kept], sums[kept]
