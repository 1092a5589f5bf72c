"""Rows for a table with few entries: the index as a 1 among zeros (one-hot), in two halves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvm.export.r1cs.secret import Secret, constant, joined
from cvm.export.r1cs.system import System
from cvm.program import IntArray

MOST_BITS = 10


def rows(count: int) -> int:
    """How many rows a table with an index of so many bits takes."""
    low = count // 2
    high = count - low
    halves: int = 2**low + 2 ** (high + 1)
    return count + 2 + halves


def looked_up(
    system: System, index: Secret, count: int, tables: IntArray
) -> Secret:
    """A new wire for each entry. `tables` holds a row of 2^count entries for each element of the vector `index`."""
    return all_looked_up(system, index, count, (tables,))[0]


def all_looked_up(
    system: System, index: Secret, count: int, tables: Sequence[IntArray]
) -> list[Secret]:
    """A new wire for each entry of each of the tables, by one index."""
    bits = system.is_natural(index, count)
    return all_picked(system, bits, tables)


def picked(system: System, bits: Secret, tables: IntArray) -> Secret:
    """A new wire for each entry whose index has these bits, lowest first, along the last axis."""
    return all_picked(system, bits, (tables,))[0]


def all_picked(
    system: System, bits: Secret, tables: Sequence[IntArray]
) -> list[Secret]:
    """A new wire for each entry of each of the tables, by the bits of one index."""
    shape = bits.shape[:-1]
    count = bits.shape[-1]
    half = count // 2
    columns = _one_of(system, bits.at((..., slice(0, half))))
    lines = _one_of(system, bits.at((..., slice(half, count))))
    square = (*shape, 2 ** (count - half), 2**half)
    entries = columns.reshaped((*shape, 1, 2**half)).broadcast(square)
    wires = []
    for table in tables:
        of_line = entries.times(table.reshape(square)).total()
        wires.append(system.single(system.product(lines, of_line).total()))
    return wires


def _one_of(system: System, bits: Secret) -> Secret:
    """2^n numbers for n bits, along the last axis: 1 at the place whose number has these bits, 0 elsewhere."""
    shape = bits.shape[:-1]
    one_hot = constant(np.ones((*shape, 1), np.int64))
    for place in range(bits.shape[-1]):
        bit = bits.at((..., slice(place, place + 1)))
        with_bit = bit
        if place:
            with_bit = system.product(bit.broadcast(one_hot.shape), one_hot)
        one_hot = joined([one_hot.minus(with_bit), with_bit])
    return one_hot
