"""Rows for the hash of four wires: three for each fifth power, none for what is added and mixed.

x * x = s, s * s = q, q * x = p: each new wire is a product of combinations of earlier ones, so that the inputs determine it.
The rows are the same for every hash but for the numbers of the wires: they are made once, with wires of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from cvm.export.r1cs.field import PRIME
from cvm.export.r1cs.poseidon import CELLS, RATE, constants, is_full
from cvm.export.r1cs.secret import Secret
from cvm.export.r1cs.system import System
from cvm.program import IntArray

Combination = Mapping[int, int]
"""Factors by wire; wire 0 is 1, the next four are hashed."""


@dataclass
class _HashRows:
    """Pairs of factors, by row; row i makes the wire RATE + 1 + i."""

    pairs: list[tuple[Combination, Combination]] = field(default_factory=list)

    def product(self, a: Combination, b: Combination) -> Combination:
        """A new wire; none for constants."""
        if not (a.keys() | b.keys()) - {0}:
            return {0: a.get(0, 0) * b.get(0, 0) % PRIME}
        self.pairs.append((a, b))
        return {RATE + len(self.pairs): 1}


def hashed(system: System, elements: Secret) -> Secret:
    """A wire for the hash of four elements, which are a wire each."""
    rows, last = _rows()
    values = [1, *elements.values.tolist()]
    sides: list[list[int]] = []
    for pair in rows.pairs:
        factors = [_value(side, values) for side in pair]
        values.append(factors[0] * factors[1] % PRIME)
        sides.append(factors)
    wires = system.new(np.array(values[RATE + 1 :], object))
    numbers = [0, *elements.wires[:, 0].tolist(), *wires.wires[:, 0].tolist()]
    places = np.array(numbers)
    a, b = (
        _secret([pair[side] for pair in rows.pairs], places, column)
        for side, column in enumerate(np.array(sides, object).T)
    )
    system.require_product(a, b, wires)
    value = np.array([_value(last, values)], object)
    return system.single(_secret([last], places, value))


def _value(combination: Combination, values: Sequence[int]) -> int:
    return sum(n * values[wire] for wire, n in combination.items()) % PRIME


def _secret(
    combinations: Sequence[Combination], places: IntArray, values: IntArray
) -> Secret:
    """Combinations of local wires, whose numbers in the system are `places`."""
    count, terms = len(combinations), max(map(len, combinations))
    factors = np.zeros((count, terms), object)
    wires = np.zeros((count, terms), np.int64)
    for row, combination in enumerate(combinations):
        for column, (wire, factor) in enumerate(combination.items()):
            factors[row, column] = factor
            wires[row, column] = places[wire]
    return Secret(factors, wires, np.zeros(count, object), values)


@cache
def _rows() -> tuple[_HashRows, Combination]:
    """The rows of a hash, and the combination that is the digest."""
    rows = _HashRows()
    cells: list[Combination] = [{}, *({1 + place: 1} for place in range(RATE))]
    for number, added in enumerate(constants().added):
        cells = [
            _sum([(1, cell), (more, {0: 1})])
            for cell, more in zip(cells, added, strict=True)
        ]
        raised = CELLS if is_full(number) else 1
        cells[:raised] = [_fifth_power(rows, cell) for cell in cells[:raised]]
        cells = [
            _sum(list(zip(row, cells, strict=True)))
            for row in constants().mixing
        ]
    return rows, cells[0]


def _fifth_power(rows: _HashRows, x: Combination) -> Combination:
    square = rows.product(x, x)
    return rows.product(rows.product(square, square), x)


def _sum(terms: Sequence[tuple[int, Combination]]) -> Combination:
    total: dict[int, int] = {}
    for factor, combination in terms:
        for wire, n in combination.items():
            total[wire] = (total.get(wire, 0) + factor * n) % PRIME
    return total
