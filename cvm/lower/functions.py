"""A function of one value as a step for an engine on secrets: nothing where it is a line, else a look-up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.lower.narrowing import narrowed
from cvm.lower.runnable import RunnableFunction
from cvm.lower.secret_steps import SecretValue, TableLookUp
from cvm.lower.step_function import StepFunction, step_function
from cvm.lower.stored import Stored
from cvm.lower.writer import StepWriter, compact
from cvm.program import IntArray

MOST_INDEX_BITS = 16  # of TFHE's programmable bootstrapping, as Concrete has it
QUICK_INDEX_BITS = 5  # in Concrete 2.11, by its own figures of complexity
LINEAR = frozenset({"cast", "negate", "add", "sub", "mul"})


@dataclass(frozen=True, eq=False)
class Width:
    """How wide the index of a look-up is: of the stored integers, and without bits that cannot matter."""

    index: int
    needed: int


@dataclass(frozen=True, eq=False)
class AppliedFunction:
    """A function as the engine computes it. Without a value it has no table that is small enough.

    `width` is None where nothing is looked up; `steps` where there are too many to list.
    """

    value: SecretValue | None
    width: Width | None
    runner: RunnableFunction
    steps: StepFunction | None


def apply(
    writer: StepWriter,
    runner: RunnableFunction,
    argument: SecretValue,
) -> AppliedFunction:
    """The function of a value in units, which `runner` takes."""
    steps = step_function(runner)
    line = line_of(runner, steps)
    if line is not None:
        slope, start = (array[runner.classes] for array in line)
        value = writer.in_units(argument, slope, start)
        return AppliedFunction(value, None, runner, steps)
    if steps is None:
        span = int((runner.high - runner.low).max()).bit_length()
        return AppliedFunction(None, Width(span, span), runner, None)
    narrowing = narrowed(
        steps, runner.low, runner.high, MOST_INDEX_BITS, QUICK_INDEX_BITS
    )
    width = Width(narrowing.bits, narrowing.left)
    if narrowing.tables is None:
        return AppliedFunction(None, width, runner, steps)
    classes = compact(runner.classes, argument.shape)
    factor, offset = _units(narrowing.tables, classes.ndim == 1)
    tables = (narrowing.tables - offset[:, None]) // factor[:, None]
    step = TableLookUp(
        argument.number,
        classes,
        narrowing.factors,
        narrowing.constants,
        narrowing.bits,
        narrowing.dropped,
        tables,
        runner.function.value,
        runner.function.argument,
    )
    by_class = np.zeros_like(factor), tables.max(axis=1), factor, offset
    channel_classes = (
        classes if classes.ndim == 1 else np.zeros(argument.shape[-1:], int)
    )
    if classes.ndim > 1:
        by_class = (
            by_class[0],
            np.full_like(by_class[1], tables.max()),
            *by_class[2:],
        )
    stored = Stored(*(array[channel_classes] for array in by_class))
    value = writer.add(step, argument.shape, stored)
    return AppliedFunction(value, width, runner, steps)


def line_of(
    runner: RunnableFunction, steps: StepFunction | None
) -> tuple[IntArray, IntArray] | None:
    """Slope and value at 0 for each class, if the function is a line in all of them."""
    classes = np.arange(len(runner.low))
    next_argument = np.minimum(runner.low + 1, runner.high)
    number = runner.function.value
    first, second, last = (
        runner.at(classes, x)[number]
        for x in (runner.low, next_argument, runner.high)
    )
    slope = second - first
    straight = last == first + slope * (runner.high - runner.low)
    if not straight.all():
        return None
    if steps is None:
        is_line = _is_linear(runner)
    else:
        # As many steps as arguments, or one: all alike, for they go from the first to the last.
        is_line = all(
            _rises_evenly(*steps.of(class_number), slope=int(rise))
            for class_number, rise in enumerate(slope)
        )
    return (slope, first - slope * runner.low) if is_line else None


def _rises_evenly(starts: IntArray, values: IntArray, *, slope: int) -> bool:
    """Whether a step begins at each argument, and each is as high; one step, where the slope is 0."""
    if len(starts) == 1:
        return slope == 0
    return bool(
        (np.diff(starts) == 1).all() and (np.diff(values) == slope).all()
    )


def _is_linear(runner: RunnableFunction) -> bool:
    """Whether each member is a line, or one that ends at its dtype's bounds, of the member before it."""
    moving = {runner.function.argument, *runner.function.members}
    for number in runner.function.members:
        instruction = runner.instruction(number)
        read = [value for value in instruction.operands if value in moving]
        to_bool = runner.lowering.form.types[number].dtype == "bool"
        if instruction.name not in LINEAR or len(read) != 1 or to_bool:
            return False
        if instruction.attributes.get("shift", 0):
            return False
    return True


def _units(tables: IntArray, by_class: bool) -> tuple[IntArray, IntArray]:
    """The unit and the least of the entries of each table, or of all of them; a unit of 1 where nothing moves."""
    rows = tables if by_class else tables.reshape(1, -1)
    least = rows.min(axis=1)
    unit = np.maximum(np.gcd.reduce(rows - least[:, None], axis=1), 1)
    count = len(tables)
    return (
        np.broadcast_to(unit, count).copy(),
        np.broadcast_to(least, count).copy(),
    )
