"""clip(floor((m * x + b) / 2^k)) of elements whose numbers may differ: the plan of each, and its rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from cvm.export.r1cs.fit import Line, Quotient, as_line, clipped
from cvm.export.r1cs.fractions import Division, divisions
from cvm.export.r1cs.instruction import Interval, NoRows
from cvm.export.r1cs.quotient import divided, form_of
from cvm.export.r1cs.secret import Secret, constant, joined
from cvm.export.r1cs.system import System
from cvm.program import IntArray

Plan = Quotient | Division | int
"""A line that is clipped, one that is a sum, or the only value."""


def written(
    system: System,
    x: Secret,
    interval: Interval,
    numbers: tuple[IntArray, IntArray, IntArray],
    limits: Interval,
) -> Secret:
    """The quotients of a vector on an interval, by slopes, offsets and bits of the divisors, clipped to `limits`."""
    unique, groups = np.unique(np.stack(numbers), axis=1, return_inverse=True)
    groups = groups.reshape(-1)
    plans = [
        plan_of(Division(m, b, 1 << k), interval, limits)
        for m, b, k in unique.T.tolist()
    ]
    quotients, places = [], []
    for members in _alike(plans):
        indices = np.flatnonzero(np.isin(groups, members))
        chosen = [plans[place] for place in groups[indices]]
        quotients.append(_rows(system, x.at(indices), chosen))
        places.append(indices)
    order = np.argsort(np.concatenate(places))
    return joined(quotients).at(order)


def plan_of(given: Division, interval: Interval, limits: Interval) -> Plan:
    """The shortest plan for a division; raises `NoRows` if the dividend may have too many bits."""
    low, high = interval
    if given.slope < 0:
        turned = replace(given, slope=-given.slope)
        plan = plan_of(turned, (-high, -low), limits)
        if isinstance(plan, Quotient):
            return replace(plan, line=_turned(plan.line))
        return given if isinstance(plan, Division) else plan
    quotients = given.at(low), given.at(high)
    first, last = (
        min(max(quotient, limits[0]), limits[1]) for quotient in quotients
    )
    if first == last:
        return first
    if given.step == 1 and quotients == (first, last):
        return given
    # Beyond these arguments every line that rises is clipped to the same value.
    low_used = low if quotients[0] == first else given.first(first + 1) - 1
    high_used = high if quotients[1] == last else given.first(last)
    shortest = next(divisions(given, low_used, high_used))
    line = clipped(as_line(shortest), (first, last), low, high)
    if line is None:
        raise NoRows("its dividend may have more than 62 bits")
    return line


def _turned(line: Line) -> Line:
    return replace(line, slope=-line.slope)


def _alike(plans: Sequence[Plan]) -> Iterator[list[int]]:
    """Groups of plans whose rows are written at once, by their places."""
    groups: dict[Hashable, list[int]] = {}
    for place, plan in enumerate(plans):
        key: Hashable = type(plan).__name__
        if isinstance(plan, Quotient):
            key = form_of(plan)
        groups.setdefault(key, []).append(place)
    yield from groups.values()


def _rows(system: System, x: Secret, plans: Sequence[Plan]) -> Secret:
    lines = [plan for plan in plans if isinstance(plan, Quotient)]
    if lines:
        return divided(system, x, lines)
    sums = [plan for plan in plans if isinstance(plan, Division)]
    if sums:
        slopes = np.array([plan.slope for plan in sums])
        return x.times(slopes).plus(np.array([plan.offset for plan in sums]))
    return constant(np.array(plans))
