"""Functions that wait for a maximum of windows: the greatest of f(x) is f of the greatest x, if f rises.

So f has rows for each element of the result alone, such as the rescale between sums and their max_pool2d. The differences of x
have more bits than those of f(x), and are as many: f waits where it saves more than they add.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from math import prod

import numpy as np

from cvm.export.r1cs import functions
from cvm.export.r1cs.instruction import SecretInstruction
from cvm.export.r1cs.secret import Secret
from cvm.export.r1cs.sums import greatest_in, windows
from cvm.export.refusals import Refusal
from cvm.lower import Lowering
from cvm.lower.monotonicity import Monotonicity, monotonicity_of
from cvm.lower.runnable import RunnableFunction, runnable

Waiting = Mapping[int, RunnableFunction]


def waiting_of(lowering: Lowering, busy: Container[int]) -> Waiting:
    """The function that waits for each maximum, by that; never one of `busy`, whose rows prove something of the argument."""
    program = lowering.form.program
    outputs = {output.value for output in program.outputs}
    waiting = {}
    for number, value in _pools(lowering):
        if value in outputs or value in busy or value not in lowering.functions:
            continue
        function = runnable(lowering, lowering.functions[value])
        if _rises(function) and _saves(lowering, number, function):
            waiting[number] = function
    return waiting


def _pools(lowering: Lowering) -> Iterator[tuple[int, int]]:
    """Each max_pool2d that is the only reader of its operand, and the operand."""
    program = lowering.form.program
    readers: dict[int, list[int]] = {}
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        for value in instruction.operands:
            readers.setdefault(value, []).append(number)
    for value, (number, *others) in readers.items():
        instruction = program.instructions[number - program.first_instruction]
        if (
            instruction.name == "max_pool2d"
            and not others
            and number in lowering.kept
        ):
            yield number, value


def _rises(function: RunnableFunction) -> bool:
    """Whether the function never falls, and is the same at every place of a channel."""
    direction = monotonicity_of(function)[function.function.value]
    classes = function.classes
    alike = (classes == classes[:1, :1, :1]).all()
    return direction is Monotonicity.RISING and bool(alike)


def _saves(lowering: Lowering, number: int, function: RunnableFunction) -> bool:
    """Whether waiting saves rows, if the function takes only a row for each bit of its argument."""
    form, value = lowering.form, function.function.value
    instruction = function.instruction(number)
    kernel = instruction.integers("kernel")
    low, high = form.intervals[value]
    before, after = _span(function).bit_length(), (high - low).bit_length()
    count, pooled = (prod(form.types[n].shape) for n in (value, number))
    added = pooled * (prod(kernel) - 1) * (before - after)
    return (count - pooled) * before > added


def _span(function: RunnableFunction) -> int:
    """The greatest difference of two arguments of one class."""
    return int((function.high - function.low).max())


def apply(
    instruction: SecretInstruction, function: RunnableFunction
) -> tuple[Secret, list[Refusal]]:
    """The function of the greatest of each window; the operand is the function's argument."""
    system = instruction.system
    interval = 0, _span(function)
    pooled = greatest_in(system, windows(instruction), interval)
    classes = np.broadcast_to(function.classes[:1, :1, :1], pooled.shape)
    return functions.apply(system, pooled, replace(function, classes=classes))
