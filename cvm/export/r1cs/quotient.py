"""Rows for clip(floor((m * x + b) / 2^k)): the remainder in k bits, the result in its own, what is clipped in others.

With r of k bits, y in low..high, and h, l >= 0: m * x + b = 2^k * (y + h - l) + r, h * (high - y) = 0 and
l * (y - low) = 0 have one solution. A quotient inside low..high admits neither h nor l: h > 0 forces y = high
and then l = 0, since l > 0 would force y = low; so y + h lies beyond high. Likewise for l.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.export.r1cs.fit import Quotient
from cvm.export.r1cs.secret import Secret, constant
from cvm.export.r1cs.system import System, at_least, require_at_most
from cvm.program import IntArray


@dataclass(frozen=True)
class DivisionForm:
    """What positions must share for their rows to be written at once."""

    bits: int
    low: int
    high: int
    beyond_high: int  # bits of h
    beyond_low: int  # bits of l
    bends: tuple[int, ...] = ()  # values from which on the next line holds

    @classmethod
    def of(cls, found: Quotient) -> DivisionForm:
        """The form of a division."""
        return cls(
            found.bits,
            found.low,
            found.high,
            max(found.most - found.high, 0).bit_length(),
            max(found.low - found.least, 0).bit_length(),
            found.bends,
        )

    @property
    def is_free(self) -> bool:
        """Whether nothing is divided and nothing clipped."""
        return not (self.bits or self.beyond_high or self.beyond_low)

    @property
    def rows(self) -> int:
        """About as many rows an element takes."""
        most = (self.high - self.low).bit_length()
        clipped = self.beyond_high + self.beyond_low
        clipped += bool(self.beyond_high) + bool(self.beyond_low)
        bent = len(self.bends) * (most + 1)
        return self.bits + most + clipped + bent + 2


def divided(
    system: System,
    x: Secret,
    lines: list[tuple[IntArray, IntArray]],
    starts: list[IntArray],
    form: DivisionForm,
) -> Secret:
    """A new wire for each quotient. `lines` holds slopes and offsets by element, of one line or several.

    `starts` has the arguments from which the later lines hold, by element.
    """
    slope, offset = lines[0]
    for (next_slope, next_offset), start in zip(lines[1:], starts, strict=True):
        beyond_start = x.values >= start
        slope = np.where(beyond_start, next_slope, slope)
        offset = np.where(beyond_start, next_offset, offset)
    dividend = slope * x.values + offset
    quotient = dividend >> form.bits
    clipped = np.clip(quotient, form.low, form.high)
    y, y_bits = _result(system, clipped, form)
    total = y.times(1 << form.bits)
    total = total.plus(_remainder(system, dividend, form.bits))
    for sign, end, count in (
        (1, form.high, form.beyond_high),
        (-1, form.low, form.beyond_low),
    ):
        if count:
            over = np.maximum(sign * (quotient - end), 0)
            beyond, _ = system.natural(over, count)
            nothing = constant(np.zeros(x.shape, np.int64))
            room = constant(np.full(x.shape, end)).minus(y)
            system.require_product(beyond, room, nothing)
            total = total.plus(beyond.times(sign << form.bits))
    whole = x.times(lines[0][0]).plus(lines[0][1])
    for number, bend in enumerate(form.bends):
        later = at_least(system, y_bits, bend - form.low)
        (slope, offset), (next_slope, next_offset) = lines[number : number + 2]
        change = x.times(next_slope - slope).plus(next_offset - offset)
        whole = whole.plus(system.product(later, change))
    system.require_equal(total, whole)
    return system.single(y)


def _result(
    system: System, values: IntArray, form: DivisionForm
) -> tuple[Secret, Secret]:
    """The results, in low..high, and the bits of what they are above low."""
    count = (form.high - form.low).bit_length()
    if not count:
        return constant(np.full(values.shape, form.low)), constant(values)
    above, bits = system.natural(values - form.low, count)
    require_at_most(system, bits, form.high - form.low)
    return above.plus(form.low), bits


def _remainder(system: System, dividend: IntArray, bits: int) -> Secret:
    if not bits:
        return constant(np.zeros(dividend.shape, np.int64))
    number, _ = system.natural(dividend & ((1 << bits) - 1), bits)
    return number
