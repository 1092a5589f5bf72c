"""What an engine on secret integers has to do for a program: five kinds of steps, on integers stored in units.

Movements, sums of products with constants, sums, and look-ups: nothing else is computed on secrets. Each
step makes one value; values are numbered inputs first, then one per step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.lower.stored import Stored
from cvm.program import IntArray

NOTHING = -1
"""A place that is no element: what is there is 0. As an index it is that of a 0 behind the last element."""


class NoSteps(Exception):
    """An instruction has no steps; the text is the reason, and a number the bits of a look-up that is too wide."""


class TooWide(NoSteps):
    """A look-up would need an index of so many bits."""

    def __init__(self, bits: int) -> None:
        super().__init__(f"a look-up of {bits} bits", bits)


@dataclass(frozen=True, eq=False)
class Take:
    """Element i is the element `places[i]` of the operands, one after another in row-major order."""

    operands: tuple[int, ...]
    places: IntArray


@dataclass(frozen=True, eq=False)
class Dot:
    """Rows of the operand, as long as a column of `weights` [K, O], times the weights."""

    operand: int
    weights: IntArray
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Convolve:
    """x[N,C,H,W] and weights [O,C/groups,KH,KW], without padding."""

    operand: int
    weights: IntArray
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


@dataclass(frozen=True, eq=False)
class Sum:
    """The sum of operands times factors, and a constant; these arrays fit the shape of the operands."""

    operands: tuple[int, ...]
    factors: tuple[IntArray, ...]
    constant: IntArray


@dataclass(frozen=True, eq=False)
class TableLookUp:
    """values[class][(x * factors[class] + constants[class]) >> dropped], an index of `bits` bits before the shift.

    `classes` fits the shape of the operand; the bits that are dropped never matter.
    `value` and `argument` are numbers of the program, for people.
    """

    operand: int
    classes: IntArray
    factors: IntArray
    constants: IntArray
    bits: int
    dropped: int
    tables: IntArray
    value: int
    argument: int


SecretStep = Take | Dot | Convolve | Sum | TableLookUp


@dataclass(frozen=True, eq=False)
class SecretValue:
    """A value of the engine: its number, its shape, which is no scalar's, and what its integers stand for."""

    number: int
    shape: tuple[int, ...]
    stored: Stored

    @property
    def elements(self) -> int:
        """How many integers there are."""
        return int(np.prod(self.shape, dtype=np.int64))


def operands_of(step: SecretStep) -> tuple[int, ...]:
    """The values that a step reads."""
    if isinstance(step, (Take, Sum)):
        return step.operands
    return (step.operand,)
