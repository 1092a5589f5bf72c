"""Rows for the entry of a table at an integer index: the polynomial through all entries, over the field.

Each row is a product of what earlier ones give. Other rows hold the integer to the places of the table, so it has one entry.
With the powers t, t^2 .. t^k of n, k terms take a row more. A table that is the same in reverse order, but for the sign,
has odd powers alone: t * Q(t * t).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from cvm.export.r1cs.field import PRIME
from cvm.export.r1cs.secret import Secret, constant
from cvm.export.r1cs.system import System
from cvm.program import IntArray

MOST_ENTRIES = 512
LEAST_ODD = 5  # entries, from which on an odd function saves rows


def is_odd(table: IntArray) -> bool:
    """Whether the table is an odd function around its middle, but for a constant."""
    pairs = table + table[::-1]
    return len(table) >= LEAST_ODD and bool((pairs == pairs[0]).all())


def rows_of(count: int, odd: bool) -> int:
    """How many rows an element takes, of a table with so many entries."""
    degree = count // 2 - 1 if odd else count - 1
    powers = _powers(degree)
    return powers - 1 + max(-(-degree // powers) - 1, 1) + 2 * odd


def evaluated(system: System, t: Secret, tables: Sequence[IntArray]) -> Secret:
    """A new wire for entry t of each table. All have as many entries, and all are odd or none is."""
    count = len(tables[0])
    places = t.values.tolist()
    y = system.new(
        np.array([x[place] for x, place in zip(tables, places, strict=True)])
    )
    # Around the middle, in halves, an odd function has no even powers.
    middle = t.times(np.array(2, object)).minus(count - 1)
    coefficients = [_coefficients(tuple(x.tolist())) for x in tables]
    factors = np.array(coefficients, object)
    if not is_odd(tables[0]):
        a, b, rest = _terms(system, middle, factors)
        system.require_product(a, b, y.minus(rest))
        return y
    square = _product(system, middle, middle)
    a, b, rest = _terms(system, square, factors[:, 1::2])
    quotient = _product(system, a, b).plus(rest)
    mean = y.minus(constant(np.zeros(y.shape)).plus(factors[:, 0]))
    system.require_product(middle, quotient, mean)
    return y


def _terms(
    system: System, x: Secret, factors: IntArray
) -> tuple[Secret, Secret, Secret]:
    """a, b and c, such that a * b + c is the sum of factors[:, i] * x^i."""
    degree = factors.shape[1] - 1
    count = _powers(degree)
    powers = [x]
    while len(powers) < count:
        powers.append(_product(system, powers[-1], x))
    first = (-(-degree // count) - 1) * count
    total = _sum(powers, factors[:, first:])
    if not first:
        ones, zeros = np.ones(x.shape), np.zeros(x.shape)
        return total, constant(ones), constant(zeros)
    while True:
        first -= count
        rest = _sum(powers, factors[:, first : first + count])
        if not first:
            return total, powers[-1], rest
        total = _product(system, total, powers[-1]).plus(rest)


def _powers(degree: int) -> int:
    """How many powers to compute first."""
    return min(
        range(1, degree + 1),
        key=lambda count: count + max(-(-degree // count), 2),
    )


def _sum(powers: Sequence[Secret], factors: IntArray) -> Secret:
    """The first column, plus each later one times its power."""
    total = constant(np.zeros(len(factors))).plus(factors[:, 0])
    for power, column in zip(powers, factors[:, 1:].T, strict=False):
        total = total.plus(power.times(column))
    return total


def _product(system: System, a: Secret, b: Secret) -> Secret:
    """New wires for products in the field."""
    products = system.new(a.values * b.values % PRIME)
    system.require_product(a, b, products)
    return products


@lru_cache(maxsize=256)
def _coefficients(entries: tuple[int, ...]) -> list[int]:
    """The polynomial with these values at 1 - n, 3 - n, ... n - 1, by Newton's differences."""
    count = len(entries)
    inverses = [pow(2 * gap, -1, PRIME) for gap in range(1, count)]
    differences = list(entries)
    for gap in range(1, count):
        for place in range(count - 1, gap - 1, -1):
            step = differences[place] - differences[place - 1]
            differences[place] = step * inverses[gap - 1] % PRIME
    coefficients = [0] * count
    for place in range(count - 1, -1, -1):
        root = 2 * place - (count - 1)
        # coefficients * (t - root) + the difference
        shifted = [0, *coefficients[:-1]]
        coefficients = [
            (high - root * low) % PRIME
            for high, low in zip(shifted, coefficients, strict=True)
        ]
        coefficients[0] = (coefficients[0] + differences[place]) % PRIME
    return coefficients
