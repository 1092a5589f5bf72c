"""Runs a lowered program: functions by their steps, everything else by the reference machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from cvm.lower.lowering import Lowering
from cvm.lower.runnable import runnable
from cvm.lower.step_function import StepFunction, step_function
from cvm.program import DTYPES, IntArray
from cvm.reference.registry import RULES


class LoweredProgram:
    """A lowering with the steps of its functions, or of some; a function without steps runs at the argument itself."""

    def __init__(
        self, lowering: Lowering, values: Collection[int] | None = None
    ) -> None:
        self.lowering = lowering
        chosen = lowering.order if values is None else values
        self.functions = {
            number: runnable(lowering, function)
            for number, function in lowering.functions.items()
            if number in chosen
        }
        self.steps = {
            number: step_function(runner)
            for number, runner in self.functions.items()
        }

    def run(self, inputs: Mapping[str, IntArray]) -> dict[str, IntArray]:
        """Outputs by name, for one sample inside the declared intervals."""
        program = self.lowering.form.program
        named = [inputs[port.name] for port in program.inputs]
        values = dict(enumerate([*named, *program.constants]))
        self.compute(self.lowering.order, values)
        return {port.name: values[port.value] for port in program.outputs}

    def compute(
        self, numbers: Iterable[int], values: dict[int, IntArray]
    ) -> None:
        """Compute the values of these numbers and add them to those that they follow from."""
        form = self.lowering.form
        program = form.program
        for number in numbers:
            if number in self.functions:
                exact = self._function(number, values)
            else:
                instruction = program.instructions[
                    number - program.first_instruction
                ]
                operands = [values[value] for value in instruction.operands]
                exact = RULES[instruction.name].run(
                    *operands, **instruction.attributes
                )
            dtype = DTYPES[form.types[number].dtype]
            values[number] = np.asarray(exact).astype(dtype)

    def _function(
        self, number: int, values: Mapping[int, IntArray]
    ) -> IntArray:
        runner, steps = self.functions[number], self.steps[number]
        x = values[runner.function.argument].astype(np.int64)
        if isinstance(steps, StepFunction):
            return steps.look_up(x)
        members = runner.at(runner.classes.reshape(-1), x.reshape(-1))
        return members[number].reshape(x.shape)
