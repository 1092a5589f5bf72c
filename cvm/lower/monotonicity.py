"""Whether the members of a function rise or fall with its argument, in every class."""

from __future__ import annotations

from enum import Enum

import numpy as np

from cvm.lower.runnable import RunnableFunction
from cvm.program import Instruction


class Monotonicity(Enum):
    """How a value moves when the argument grows: never down, never up, or neither is certain."""

    RISING = 1
    FALLING = -1
    UNCERTAIN = 0


RISING, FALLING, UNCERTAIN = Monotonicity
KEEPING = frozenset(
    {"rescale", "clamp", "add", "maximum", "minimum", "shift_right", "isqrt"}
)
# Of these the second operand pulls the other way.
OPPOSING = frozenset({"sub", "greater", "greater_equal"})
TURNING = frozenset({"negate", "logical_not", "clz"})


def monotonicity_of(runner: RunnableFunction) -> dict[int, Monotonicity]:
    """The direction of the argument, which is rising, and of each member."""
    directions = {runner.function.argument: RISING}
    for number in runner.function.members:
        directions[number] = _direction(runner, number, directions)
    return directions


def _direction(
    runner: RunnableFunction, number: int, directions: dict[int, Monotonicity]
) -> Monotonicity:
    instruction = runner.instruction(number)
    signs = [directions.get(value) for value in instruction.operands]
    moving = [sign for sign in signs if sign is not None]
    if UNCERTAIN in moving:
        return UNCERTAIN
    if instruction.name in KEEPING and len(set(moving)) == 1:
        if instruction.name == "shift_right" and signs[1] is not None:
            return UNCERTAIN
        return moving[0]
    if instruction.name in TURNING:
        return _opposite(moving[0])
    if instruction.name in OPPOSING:
        signs[1] = _opposite(signs[1]) if signs[1] is not None else None
        turned = {sign for sign in signs if sign is not None}
        return turned.pop() if len(turned) == 1 else UNCERTAIN
    if instruction.name == "cast":
        return _of_cast(runner, instruction, number, moving[0])
    if instruction.name in ("mul", "table", "interpolate"):
        return _of_numbers(runner, instruction, number, moving)
    return UNCERTAIN


def _opposite(sign: Monotonicity) -> Monotonicity:
    return FALLING if sign is RISING else RISING


def _of_cast(
    runner: RunnableFunction,
    instruction: Instruction,
    number: int,
    sign: Monotonicity,
) -> Monotonicity:
    """To bool, a value that is never below 0 keeps its direction."""
    least = runner.lowering.form.intervals[instruction.operands[0]][0]
    to_bool = runner.lowering.form.types[number].dtype == "bool"
    return UNCERTAIN if to_bool and least < 0 else sign


def _of_numbers(
    runner: RunnableFunction,
    instruction: Instruction,
    number: int,
    moving: list[Monotonicity],
) -> Monotonicity:
    """A product with a constant by the constant's sign; a table, or lines between points, by the order of the values."""
    if len(moving) != 1:
        return UNCERTAIN
    if instruction.name in ("table", "interpolate"):
        numbers = np.diff(runner.tables[number, 1].astype(np.int64))
    else:
        place = next(p for p in (0, 1) if (number, p) in runner.entries)
        numbers = runner.entries[number, place]
    if (numbers >= 0).all():
        return moving[0]
    return _opposite(moving[0]) if (numbers <= 0).all() else UNCERTAIN
