"""Rows for a function of one value: a division where its steps allow one, a table of few entries, or its members."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from cvm.export.r1cs import bend, lookup, stages, stairs, tabulated
from cvm.export.r1cs.bend import Bend
from cvm.export.r1cs.fit import Edges, Quotient, edges_of, fit
from cvm.export.r1cs.instruction import SecretInstruction
from cvm.export.r1cs.quotient import divided, form_of, rows_of
from cvm.export.r1cs.rules import written
from cvm.export.r1cs.secret import Secret, constant, joined
from cvm.export.r1cs.stairs import Stairs
from cvm.export.r1cs.system import System
from cvm.export.r1cs.tabulated import Tabulated
from cvm.export.refusals import Refusal
from cvm.lower.runnable import RunnableFunction
from cvm.lower.step_function import StepFunction, step_function
from cvm.program import IntArray, TensorType

Plan = Quotient | Bend | Tabulated | Stairs | IntArray
"""Of a class: a line, two of them, a line and a table, steps, or the value at each argument."""


def apply(
    system: System,
    x: Secret,
    function: RunnableFunction,
    plans: Sequence[Plan | None] | None = None,
) -> tuple[Secret, list[Refusal]]:
    """New wires for the function of `x`, and the members without rows; classes without a plan take every member."""
    if plans is None:
        steps = step_function(function)
        plans = [None] * len(function.low)
        if steps is not None:
            plans = plans_of(function, steps)
    classes = np.broadcast_to(function.classes, x.shape).reshape(-1)
    flat = x.flat()
    results, places = [], []
    refusals: list[Refusal] = []
    for members in _groups(plans):
        indices = np.flatnonzero(np.isin(classes, members))
        element_classes, picked = classes[indices], flat.at(indices)
        chosen = [
            plan
            for place in element_classes
            if (plan := plans[place]) is not None
        ]
        if chosen:
            low = function.low[element_classes]
            results.append(_written(system, picked, chosen, low))
        else:
            result, refusals = by_members(
                system, picked, function, element_classes
            )
            results.append(result)
        places.append(indices)
    order = np.argsort(np.concatenate(places))
    return joined(results).at(order).reshaped(x.shape), refusals


def slopes_of(plan: Plan | None) -> list[int]:
    """The factors of the argument on its way through a plan that proves it an integer; empty if the plan does not."""
    if isinstance(plan, Quotient):
        return [plan.line.slope]
    if not isinstance(plan, Bend):
        return []
    inner = plan.inner or ()
    return [line.slope for line in (plan.upper, plan.lower, *inner)]


def by_members(
    system: System, x: Secret, function: RunnableFunction, which: IntArray
) -> tuple[Secret, list[Refusal]]:
    """The function of a vector, one member after another, with the constants of the classes `which`."""
    form = function.lowering.form
    values = {function.function.argument: x}
    refusals: list[Refusal] = []
    for number in function.function.members:
        instruction = function.instruction(number)
        constants = [
            None if value in values else function.constant(number, place, which)
            for place, value in enumerate(instruction.operands)
        ]
        operands = [
            values[value] if array is None else constant(array)
            for value, array in zip(
                instruction.operands, constants, strict=True
            )
        ]
        secret_instruction = SecretInstruction(
            system,
            instruction.name,
            tuple(operands),
            tuple(constants),
            tuple(form.types[value].dtype for value in instruction.operands),
            tuple(form.intervals[value] for value in instruction.operands),
            instruction.attributes,
            TensorType(form.types[number].dtype, which.shape),
        )
        values[number], refused = written(secret_instruction, number)
        refusals += refused
    return values[function.function.value], refusals


def plans_of(
    function: RunnableFunction, steps: StepFunction
) -> list[Plan | None]:
    """The cheapest plan of each class; None for a class that has none."""
    inside = stages.stages_of(function)
    return [
        _plan(
            function,
            class_,
            steps.of(class_),
            inside.edges(class_) if inside else None,
        )
        for class_ in range(len(function.low))
    ]


def _plan(
    function: RunnableFunction,
    class_: int,
    steps: tuple[IntArray, IntArray],
    outer: Edges | None,
) -> Plan | None:
    starts, values = steps
    if len(starts) == 1:
        return values
    low, high = interval = int(function.low[class_]), int(function.high[class_])
    plan: Quotient | Bend | Tabulated | None
    plan = _line(starts, values, interval, outer)
    if plan is None:
        plan = tabulated.tabulated_of(function, class_, steps, interval)
    rows = 0
    if isinstance(plan, Quotient):
        rows = rows_of(plan)
    elif plan is not None:
        rows = plan.rows
    count = (high - low).bit_length()
    if rows and (count > lookup.MOST_BITS or rows <= lookup.rows(count)):
        return plan
    if count > lookup.MOST_BITS:
        return stairs.stairs_of(starts, values, high)
    # Beyond the interval no index occurs; the last entry fills the table.
    places = np.searchsorted(starts, low + np.arange(2**count), "right") - 1
    table: IntArray = values[places]
    return table


def _line(
    starts: IntArray,
    values: IntArray,
    interval: tuple[int, int],
    outer: Edges | None,
) -> Quotient | Bend | None:
    """One line; else the shorter of two lines and two stages. `outer` are the edges of the last stage."""
    single = fit(starts, values, *interval)
    if single is not None:
        return single
    edges = edges_of(starts, values)
    if edges is None:
        return None
    candidates = [bend.shortest_bend(edges, *interval)]
    if outer is not None:
        candidates.append(stages.bend_inside(edges, outer, interval))
    bends = [x for x in candidates if x is not None]
    return min(bends, key=lambda x: x.rows, default=None)


def _groups(plans: Sequence[Plan | None]) -> Iterator[list[int]]:
    """Groups of classes whose rows can be written at once."""
    groups: dict[Hashable, list[int]] = {}
    for class_, plan in enumerate(plans):
        key: Hashable = None
        if isinstance(plan, Quotient):
            key = form_of(plan)
        elif isinstance(plan, Bend | Stairs | Tabulated):
            key = type(plan).__name__, plan.form
        elif plan is not None:
            key = len(plan)
        groups.setdefault(key, []).append(class_)
    yield from groups.values()


def _written(
    system: System, x: Secret, plans: list[Plan], low: IntArray
) -> Secret:
    """The rows of one group, by element."""
    if isinstance(plans[0], Quotient):
        return divided(
            system, x, [plan for plan in plans if isinstance(plan, Quotient)]
        )
    if isinstance(plans[0], Bend):
        return bend.bent(
            system, x, [plan for plan in plans if isinstance(plan, Bend)]
        )
    if isinstance(plans[0], Tabulated):
        return tabulated.picked(
            system, x, [plan for plan in plans if isinstance(plan, Tabulated)]
        )
    if isinstance(plans[0], Stairs):
        return stairs.climbed(
            system, x, [plan for plan in plans if isinstance(plan, Stairs)]
        )
    tables = np.stack([np.asarray(plan) for plan in plans])
    if tables.shape[1] == 1:
        return constant(tables[:, 0])
    count = tables.shape[1].bit_length() - 1
    return lookup.looked_up(system, x.minus(low), count, tables)
