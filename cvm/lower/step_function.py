"""A function of one value as its steps: where it changes, and what it is from there on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvm.lower.monotonicity import Monotonicity, monotonicity_of
from cvm.lower.runnable import RunnableFunction
from cvm.program import IntArray

MOST_STEPS = 2**20
MOST_TABULATED = 2**20  # arguments, where nothing is known of the direction


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A function for each class. Steps lie one after another, by class and then by place.

    Step i begins at the argument `starts[i]` and has the value `values[i]`; those of class c
    are `offsets[c]` to `offsets[c + 1]`. The first begins at the least argument.
    """

    classes: IntArray
    offsets: IntArray
    starts: IntArray
    values: IntArray

    def of(self, which: int) -> tuple[IntArray, IntArray]:
        """The starts and values of one class."""
        span = slice(self.offsets[which], self.offsets[which + 1])
        return self.starts[span], self.values[span]

    def look_up(self, x: IntArray) -> IntArray:
        """The function of an array in the shape of `classes`."""
        result = np.empty(x.shape, np.int64)
        for class_number in range(len(self.offsets) - 1):
            mask = self.classes == class_number
            starts, values = self.of(class_number)
            places = np.searchsorted(starts, x[mask], side="right") - 1
            result[mask] = values[places]
        return result


def step_function(runner: RunnableFunction) -> StepFunction | None:
    """The steps of a function, found by halving; None where there may be more than are worth keeping.

    A function without a direction changes only where one of the members that it reads, and that have a direction, changes.
    """
    frontier = _frontier(runner)
    if frontier is None or _most_steps(runner, frontier) > MOST_STEPS:
        frontier = []
        if int((runner.high - runner.low + 1).sum()) > MOST_TABULATED:
            return None
    classes, x = _places(runner, frontier)
    values = runner.at(classes, x)[runner.function.value]
    first = np.diff(classes, prepend=-1) != 0
    changes = first | (np.diff(values, prepend=values[0]) != 0)
    classes, x, values = classes[changes], x[changes], values[changes]
    offsets = np.searchsorted(classes, np.arange(len(runner.low) + 1))
    return StepFunction(runner.classes, offsets, x, values)


def _frontier(runner: RunnableFunction) -> list[int] | None:
    """The members with a direction from which the value follows; None if it reads the argument past them."""
    directions = monotonicity_of(runner)
    members: set[int] = set()
    waiting = [runner.function.value]
    while waiting:
        number = waiting.pop()
        if number == runner.function.argument:
            return None
        if directions[number] is not Monotonicity.UNCERTAIN:
            members.add(number)
            continue
        operands = runner.instruction(number).operands
        waiting.extend(value for value in operands if value in directions)
    return sorted(members)


def _most_steps(runner: RunnableFunction, frontier: list[int]) -> int:
    """The greatest number of steps that the values at both ends allow."""
    classes = np.arange(len(runner.low))
    least = runner.at(classes, runner.low)
    most = runner.at(classes, runner.high)
    wide = runner.high - runner.low + 1
    moves = sum(np.abs(most[n] - least[n]) for n in frontier)
    return int(np.minimum(moves + 1, wide).sum())


def _places(
    runner: RunnableFunction, frontier: list[int]
) -> tuple[IntArray, IntArray]:
    """Arguments between which the function cannot change, by class: all of them, if there is no frontier."""
    sizes = runner.high - runner.low + 1
    if not frontier:
        classes = np.repeat(np.arange(len(sizes)), sizes)
        before = np.repeat(np.cumsum(sizes) - sizes, sizes)
        return classes, np.arange(len(classes)) - before + runner.low[classes]
    classes = np.repeat(np.arange(len(sizes)), 2)
    x = np.stack([runner.low, runner.high], axis=1).reshape(-1)
    results = runner.at(classes, x)
    values = {number: results[number] for number in frontier}
    while True:
        same = np.diff(classes) == 0
        apart = same & (np.diff(x) > 1)
        moved = np.zeros(len(same), bool)
        for number in frontier:
            moved |= np.diff(values[number]) != 0
        halved = np.flatnonzero(apart & moved)
        if not len(halved):
            return classes, x
        middle = x[halved] + (x[halved + 1] - x[halved]) // 2
        results = runner.at(classes[halved], middle)
        for number in frontier:
            values[number] = np.insert(
                values[number], halved + 1, results[number]
            )
        classes = np.insert(classes, halved + 1, classes[halved])
        x = np.insert(x, halved + 1, middle)
