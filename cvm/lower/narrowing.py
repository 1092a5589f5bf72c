"""Tables of few entries for functions of many arguments: bits that cannot matter are dropped from the index.

Where all steps of a function begin at places congruent modulo 2^k, an offset moves these to multiples of 2^k;
then the low k bits of an argument never matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.lower.step_function import StepFunction
from cvm.program import IntArray

MOST_DROPPED = 40


@dataclass(frozen=True)
class Index:
    """The index of a class: how many bits may be dropped, the offset to add before, and the `left` bits that remain."""

    dropped: int
    offset: int
    left: int


@dataclass(frozen=True, eq=False)
class Narrowed:
    """A function as tables: value = tables[class][(u * factors[class] + constants[class]) >> dropped].

    The index has `bits` bits before the shift and `left` bits after it. There are no tables where `left` is
    more than the engine has.
    """

    factors: IntArray
    constants: IntArray
    bits: int
    dropped: int
    left: int
    tables: IntArray | None


def narrowed(
    steps: StepFunction,
    low: IntArray,
    high: IntArray,
    most: int,
    quick: int = 0,
) -> Narrowed:
    """The tables of least entries whose index has at most `most` bits before any is dropped, if there are such.

    All classes share one index. A class that can drop fewer bits is multiplied by a power of two. An index of
    `quick` bits is looked up faster than bits are dropped, and keeps all.
    """
    classes = [
        _indices(steps.of(class_number)[0] - first, int(last - first) + 1)
        for class_number, (first, last) in enumerate(
            zip(low, high, strict=True)
        )
    ]
    longest = max(map(len, classes))
    choices = []
    for dropped in range(longest):
        left = max(_at(indices, dropped).left for indices in classes)
        wide = max(dropped + left, most)
        choices.append((wide, max(left, quick), dropped))
    *_, dropped = min(choices)
    chosen = [_at(indices, dropped) for indices in classes]
    left = max(1, *(index.left for index in chosen))
    factors = np.array([_factor(index, dropped) for index in chosen], np.int64)
    offsets = np.array([index.offset for index in chosen])
    bits = dropped + left
    tables = None
    if bits <= most:
        rows = [
            _table(
                steps.of(class_number),
                (low[class_number], high[class_number]),
                index,
                left,
            )
            for class_number, index in enumerate(chosen)
        ]
        tables = np.stack(rows)
    constants = factors * (offsets - low)
    return Narrowed(factors, constants, bits, dropped, left, tables)


def _indices(starts: IntArray, count: int) -> list[Index]:
    """The index that is left after each number of dropped bits; `starts` count from 0, where the first step begins."""
    if len(starts) == 1:
        return [Index(0, 0, 0)]
    spacing = int(np.gcd.reduce(starts[1:] - starts[1]))
    most = (spacing & -spacing).bit_length() - 1 if spacing else MOST_DROPPED
    indices: list[Index] = []
    for dropped in range(most + 1):
        offset = -int(starts[1]) % (1 << dropped)
        left = (count - 1 + offset >> dropped).bit_length()
        indices.append(Index(dropped, offset, left))
        if left == 1:
            break
    return indices


def _at(indices: list[Index], dropped: int) -> Index:
    """The index of a class without so many bits, or without as many as the class allows."""
    return indices[min(dropped, len(indices) - 1)]


def _factor(index: Index, dropped: int) -> int:
    """The factor from the index of one class to the common one; 0 for a class without steps."""
    return 1 << (dropped - index.dropped) if index.left else 0


def _table(
    step: tuple[IntArray, IntArray],
    interval: tuple[int, int],
    index: Index,
    left: int,
) -> IntArray:
    """The value of each entry; beyond the interval, that at its end."""
    starts, values = step
    low, high = interval
    first = (np.arange(1 << left) << index.dropped) - index.offset + low
    places = np.searchsorted(starts, np.clip(first, low, high), "right") - 1
    entries: IntArray = values[places]
    return entries
