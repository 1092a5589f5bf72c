"""Bounds the lists that the library's shape inference computes.

It computes lists of integers from which a shape may follow, number by number, and without
a bound: forty Concats of a list with itself would be lists of 2^40 numbers. Only Concat
makes a list longer than those it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

MOST_NUMBERS = 1 << 22  # in all lists together; each takes about 64 bytes
LONGEST_SHAPE = 64  # more than any shape has
_PASS_ON = frozenset(
    ["Add", "Cast", "Gather", "Mul", "Slice", "Squeeze", "Sub", "Unsqueeze"]
)

Step = tuple[str, Sequence[str], Sequence[str]]
"""A node: its operator, the names of its operands and those of its results."""


def are_bounded(steps: Iterable[Step], constants: Mapping[str, int]) -> bool:
    """Return whether inference may compute all lists; `constants` are the lengths of those that are known.

    The nodes are in topological order.
    """
    lengths = dict(constants)
    total = sum(lengths.values())
    for operator, operands, results in steps:
        length = _length(operator, [lengths.get(name, 0) for name in operands])
        if length:
            total += length
            lengths.update(dict.fromkeys(results, length))
        if total > MOST_NUMBERS:
            return False
    return True


def _length(operator: str, operands: Sequence[int]) -> int:
    """Return the most numbers in a result; 0 if it is no list that is known."""
    if operator == "Concat":
        return sum(operands) if all(operands) else 0
    if operator in _PASS_ON:
        return max(operands, default=0)
    if operator in ("Shape", "Size"):
        return LONGEST_SHAPE
    return 0
