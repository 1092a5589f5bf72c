"""Rows for a function that is a line, clipped: y in low..high, a remainder r in 0..most, the excess beyond in e >= 0.

m * x + b - d * y = r + sign * e * (most + 1), and e * (end - y) = 0, where sign and end are those of the half of low..high
that the highest bit of y names. So e > 0 forces y to an end. Without e, r in 0..most holds for the one y that
belongs to x (`fit.py`). With e, m * x + b - d * y is at least most + 1 at the high end, and below 0 at the low end: x
lies where the function is clipped to that end.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from cvm.export.r1cs.fit import Quotient
from cvm.export.r1cs.secret import Secret, constant
from cvm.export.r1cs.system import System, in_range, number_of, weights_of
from cvm.program import IntArray


def form_of(quotient: Quotient) -> Hashable:
    """What lines must share for their rows to be written at once."""
    return (
        quotient.low,
        quotient.high,
        quotient.line.most.bit_length(),
        quotient.under.bit_length(),
        quotient.over.bit_length(),
    )


def rows_of(quotient: Quotient) -> int:
    """The number of rows for each element."""
    beyond = max(quotient.under, quotient.over).bit_length()
    two_sided = quotient.under > 0 and quotient.over > 0
    bits = (quotient.high - quotient.low).bit_length()
    return (
        bits
        + quotient.line.most.bit_length()
        + beyond
        + (beyond > 0)
        + two_sided
    )


def divided(system: System, x: Secret, quotients: Sequence[Quotient]) -> Secret:
    """A new wire for each element of a vector, by its quotient; all share a form."""
    lines = [quotient.line for quotient in quotients]
    slope, offset, step, most = (
        np.array([getattr(line, name) for line in lines])
        for name in ("slope", "offset", "step", "most")
    )
    form = quotients[0]
    dividend = x.times(slope).plus(offset)
    values = np.clip(dividend.values // step, form.low, form.high)
    y = system.new(values)
    last = in_range(system, y.minus(form.low), weights_of(form.high - form.low))
    rest = dividend.minus(y.times(step))
    excess = _excess(system, rest.values // (most + 1), y, last, form)
    in_range(system, rest.minus(excess.times(most + 1)), weights_of(most))
    return y


def _excess(
    system: System, beyond: IntArray, y: Secret, last: Secret, form: Quotient
) -> Secret:
    """The excess beyond the ends, with its sign; 0 unless y is at the end that its highest bit selects."""
    count = max(form.under, form.over).bit_length()
    if not count:
        return constant(np.zeros(y.shape, np.int64))
    size, _ = number_of(system, np.abs(beyond), weights_of(2**count - 1))
    end = constant(np.full(y.shape, form.high if form.over else form.low))
    excess = size if form.over else size.times(-1)
    if form.over and form.under:
        end = last.times(form.high - form.low).plus(form.low)
        excess = system.product(last, size).times(2).minus(size)
    nothing = constant(np.zeros(y.shape, np.int64))
    system.require_product(size, end.minus(y), nothing)
    return excess
