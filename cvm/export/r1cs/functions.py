"""Rows for a function of one value: a division where its steps allow one, a table of few entries, or its members."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvm.export.r1cs import lookup
from cvm.export.r1cs.fit import Quotient, fit
from cvm.export.r1cs.quotient import DivisionForm, divided
from cvm.export.r1cs.secret import Secret, constant, joined
from cvm.export.r1cs.system import System
from cvm.lower.runnable import RunnableFunction
from cvm.lower.step_function import StepFunction, step_function
from cvm.program import IntArray

Plan = Quotient | IntArray
"""Of a class: a division, or the value at each argument."""


def apply(
    system: System, x: Secret, function: RunnableFunction
) -> Secret | None:
    """New wires for the function of `x`; None where its steps allow neither a division nor a table."""
    steps = step_function(function)
    plans = steps and _plans(function, steps)
    if not plans:
        return None
    classes = np.broadcast_to(function.classes, x.shape).reshape(-1)
    flat = x.flat()
    parts, places = [], []
    for members in _groups(plans):
        here = np.flatnonzero(np.isin(classes, members))
        chosen = [plans[which] for which in classes[here]]
        low = function.low[classes[here]]
        parts.append(_written(system, flat.at(here), chosen, low))
        places.append(here)
    order = np.argsort(np.concatenate(places))
    return joined(parts).at(order).reshaped(x.shape)


def _plans(
    function: RunnableFunction, steps: StepFunction
) -> list[Plan] | None:
    """The cheapest plan of each class; None if a class has none."""
    found: list[Plan] = []
    for which, low in enumerate(function.low):
        high = int(function.high[which])
        plan = _plan(*steps.of(which), int(low), high)
        if plan is None:
            return None
        found.append(plan)
    return found


def _plan(
    starts: IntArray, values: IntArray, low: int, high: int
) -> Plan | None:
    if len(starts) == 1:
        return values
    count = (high - low).bit_length()
    quotient = fit(starts, values, low, high)
    if quotient is not None:
        few = count > lookup.MOST_BITS or (
            DivisionForm.of(quotient).rows <= lookup.rows(count)
        )
        if few:
            return quotient
    if count > lookup.MOST_BITS:
        return quotient
    # Beyond the interval no index occurs; the last entry fills the table.
    places = np.searchsorted(starts, low + np.arange(2**count), "right") - 1
    table: IntArray = values[places]
    return table


def _groups(plans: list[Plan]) -> Iterator[list[int]]:
    """Classes whose rows can be written at once."""
    found: dict[object, list[int]] = {}
    for which, plan in enumerate(plans):
        key: object = (
            len(plan) if isinstance(plan, np.ndarray) else DivisionForm.of(plan)
        )
        found.setdefault(key, []).append(which)
    yield from found.values()


def _written(
    system: System, x: Secret, plans: list[Plan], low: IntArray
) -> Secret:
    """The rows of one group, by element."""
    first = plans[0]
    if isinstance(first, np.ndarray):
        tables = np.stack([np.asarray(plan) for plan in plans])
        if len(first) == 1:
            return constant(tables[:, 0])
        count = len(first).bit_length() - 1
        return lookup.looked_up(system, x.minus(low), count, tables)
    divisions = [plan for plan in plans if isinstance(plan, Quotient)]
    signs = np.array([-1 if plan.turned else 1 for plan in divisions])
    lines = [
        (
            np.array([plan.lines[number].slope for plan in divisions]),
            np.array([plan.lines[number].offset for plan in divisions]),
        )
        for number in range(len(divisions[0].lines))
    ]
    starts = list(np.array([plan.starts for plan in divisions]).T)
    form = DivisionForm.of(divisions[0])
    return divided(system, x.times(signs), lines, starts, form)
