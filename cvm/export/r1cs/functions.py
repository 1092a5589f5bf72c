"""Rows for a function of one value: a division where its steps allow one, a table of few entries, or its members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cvm.export.r1cs import lookup
from cvm.export.r1cs.fit import Quotient, fit
from cvm.export.r1cs.instruction import SecretInstruction
from cvm.export.r1cs.quotient import DivisionForm, divided
from cvm.export.r1cs.rules import written
from cvm.export.r1cs.secret import Secret, constant, joined
from cvm.export.r1cs.system import System
from cvm.export.refusals import Refusal
from cvm.lower.runnable import RunnableFunction
from cvm.lower.step_function import StepFunction, step_function
from cvm.program import IntArray, TensorType

Plan = Quotient | IntArray
"""Of a class: a division, or the value at each argument."""


def apply(
    system: System, x: Secret, function: RunnableFunction
) -> tuple[Secret, list[Refusal]]:
    """New wires for the function of `x`, and the members without rows; classes without a plan take every member."""
    steps = step_function(function)
    plans = _plans(function, steps) if steps else [None] * len(function.low)
    classes = np.broadcast_to(function.classes, x.shape).reshape(-1)
    flat = x.flat()
    parts, places = [], []
    refusals: list[Refusal] = []
    for members in _groups(plans):
        here = np.flatnonzero(np.isin(classes, members))
        which, picked = classes[here], flat.at(here)
        chosen = [plan for place in which if (plan := plans[place]) is not None]
        if chosen:
            low = function.low[which]
            parts.append(_written(system, picked, chosen, low))
        else:
            part, refusals = _by_members(system, picked, function, which)
            parts.append(part)
        places.append(here)
    order = np.argsort(np.concatenate(places))
    return joined(parts).at(order).reshaped(x.shape), refusals


def _by_members(
    system: System, x: Secret, function: RunnableFunction, which: IntArray
) -> tuple[Secret, list[Refusal]]:
    """The function of a vector, one member after another, with the constants of the classes `which`."""
    form = function.lowering.form
    values = {function.function.argument: x}
    refusals: list[Refusal] = []
    for number in function.function.members:
        item = function.instruction(number)
        constants = [
            None if value in values else function.constant(number, place, which)
            for place, value in enumerate(item.operands)
        ]
        operands = [
            values[value] if array is None else constant(array)
            for value, array in zip(item.operands, constants, strict=True)
        ]
        instruction = SecretInstruction(
            system,
            item.name,
            tuple(operands),
            tuple(constants),
            tuple(form.types[value].dtype for value in item.operands),
            tuple(form.intervals[value] for value in item.operands),
            item.attributes,
            TensorType(form.types[number].dtype, which.shape),
        )
        values[number], refused = written(instruction, number)
        refusals += refused
    return values[function.function.value], refusals


def _plans(
    function: RunnableFunction, steps: StepFunction
) -> list[Plan | None]:
    """The cheapest plan of each class; None for a class that has none."""
    return [
        _plan(*steps.of(which), int(low), int(function.high[which]))
        for which, low in enumerate(function.low)
    ]


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


def _groups(plans: Sequence[Plan | None]) -> Iterator[list[int]]:
    """Classes whose rows can be written at once."""
    found: dict[object, list[int]] = {}
    for which, plan in enumerate(plans):
        key: object = None
        if isinstance(plan, Quotient):
            key = DivisionForm.of(plan)
        elif plan is not None:
            key = len(plan)
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
